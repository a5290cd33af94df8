"""The two networks of voices, run by onnxruntime on one core: who speaks in a window of sound, and a vector per voice.

The graphs are built from the official weights at first use, which takes 3 s, and kept beside them in voxframe's cache.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError

Floats = NDArray[np.float32]

#: Samples per second of all sound in this package.
RATE = 16_000
#: Number of columns of voice vectors.
SIZE = 192
#: Seconds per frame of the segmentation.
FRAME_S = 270 / RATE
#: Frames of filter banks per second.
BANKS_PER_S = 100

_SETS = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))  # the speakers of each class of the segmentation
_SPEAKING = np.array([[speaker in group for speaker in range(3)] for group in _SETS], np.float32)
_LENGTH, _HOP, _FFT, _BANDS = 400, RATE // BANKS_PER_S, 512, 80
_LOWEST_HZ, _HIGHEST_HZ = 20.0, RATE / 2
_VERSION = 1  # of the graphs


class VoiceNetworks:
    """Both networks.

    Args:
        folder: Folder with `segmentation.onnx` and `voice.onnx`, as `built` returns it.
    """

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # its blocks for the largest input stay with the process
        self._segmentation, self._voice = (
            onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in ("segmentation.onnx", "voice.onnx")
        )

    def segment(self, windows: Floats) -> Floats:
        """Return the probabilities that each of three local speakers speaks, and that they speak alone.

        Args:
            windows: Sound, -1 to 1, shape (windows, samples).

        Returns:
            Array of shape (windows, 2, frames, 3). Which speaker has which column differs between windows.
        """
        classes = np.exp(self._segmentation.run(None, {"sound": windows[:, None]})[0])
        return np.stack([classes @ _SPEAKING, classes[:, :, 1:4]], axis=1)

    def encode(self, banks: Floats) -> Floats:
        """Return the vector of length 1 of the voice in filter banks, shape (192,).

        Args:
            banks: Filter banks of the frames in which the voice speaks, shape (frames, 80), at least 20.
        """
        vector = self._voice.run(None, {"banks": (banks - banks.mean(axis=0))[None]})[0][0]
        return np.asarray(vector / np.linalg.norm(vector))


@cache
def load() -> VoiceNetworks:
    """Return the networks, one pair per process. Downloads nothing.

    Raises:
        MissingExtraError: onnxruntime or onnx is not installed.
        ModelError: The models are not on this machine, or their files are damaged.
    """
    return VoiceNetworks(built())


def built() -> Path:
    """Return the folder with the graphs; build them if that was not done before, or if they are damaged.

    Raises:
        MissingExtraError: onnxruntime or onnx is not installed.
        ModelError: The models are not on this machine, or the folder cannot be written.
    """
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        raise MissingExtraError("local", "Telling voices apart")
    return models.derived(models.VOICES, _VERSION, _save, size=34_000_000)


def _save(source: Path, folder: Path) -> None:
    """Build the graphs."""
    import onnx

    from voxframe.voices import graphs
    from voxframe.voices.graphs import read_tensors

    onnx.save(graphs.segmentation(read_tensors(source / models.SEGMENTATION_FILE)), folder / "segmentation.onnx")
    onnx.save(graphs.voice_encoder(read_tensors(source / models.VOICES_FILE)), folder / "voice.onnx")


def filter_banks(sound: NDArray[np.int16]) -> Floats:
    """Return logarithmic mel filter banks as Kaldi computes them, without dither.

    Source: https://kaldi-asr.org/doc/feat.html, with its defaults except 80 bands at 16 kHz.

    Args:
        sound: Mono, 16 kHz.

    Returns:
        Array of shape (frames, 80). Row n covers the 25 ms from 10 n ms. No rows for less than 25 ms of sound.
    """
    if len(sound) < _LENGTH:
        return np.zeros((0, _BANDS), np.float32)
    window, bands = _tables()
    frames = np.lib.stride_tricks.sliding_window_view(sound.astype(np.float32), _LENGTH)[::_HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    frames = frames - np.float32(0.97) * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = np.fft.rfft(frames * window, _FFT)[:, : _FFT // 2]
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(np.log(np.maximum(power.astype(np.float32) @ bands, np.finfo(np.float32).eps)), np.float32)


@cache
def _tables() -> tuple[Floats, Floats]:
    """Return Kaldi's window (a power of a Hann window), and its mel filters of shape (bins, bands)."""
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_LENGTH) / (_LENGTH - 1))) ** 0.85

    def mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1127 * np.log(1 + hertz / 700))

    lowest, highest = mel(np.array([_LOWEST_HZ, _HIGHEST_HZ]))
    edges = np.linspace(lowest, highest, _BANDS + 2)
    bins = mel(np.arange(_FFT // 2) * RATE / _FFT)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return window.astype(np.float32), np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
