"""A microphone as a source of a streaming session."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

from voxframe.errors import AudioError, MissingExtraError, OptionError

_BLOCK_MS = 100
_HELD_SECONDS = 60  # of sound nobody has taken yet; past that the oldest is let go of


class Microphone:
    """Sound of a microphone, as 16-bit mono samples. `voxframe.microphone` makes one.

    It records from the moment it is iterated until the iteration ends, which a session does by itself.

    Attributes:
        sample_rate: Samples a second.
        dropped_ms: Sound that was lost because nobody took it in time, in ms.
    """

    def __init__(self, sample_rate: int, device: int | str | None) -> None:
        self.sample_rate = sample_rate
        self._device = device
        self.dropped_ms = 0

    def __iter__(self) -> Iterator[bytes]:
        blocks: queue.Queue[bytes] = queue.Queue(_HELD_SECONDS * 1000 // _BLOCK_MS)

        def take(data: Any, *_: object) -> None:
            if blocks.full():
                blocks.get_nowait()
                self.dropped_ms += _BLOCK_MS
            blocks.put_nowait(bytes(data))

        sounddevice = _sounddevice()
        try:
            recording = sounddevice.RawInputStream(
                samplerate=self.sample_rate,
                blocksize=self.sample_rate * _BLOCK_MS // 1000,
                device=self._device,
                channels=1,
                dtype="int16",
                callback=take,
            )
        except (sounddevice.PortAudioError, ValueError) as error:
            which = "the default microphone" if self._device is None else f"the microphone {self._device!r}"
            raise AudioError(
                f"{which} cannot be used at {self.sample_rate} Hz ({error}); `python -m sounddevice` lists the devices"
            ) from error
        with recording:
            while True:
                yield blocks.get()

    def __repr__(self) -> str:
        return f"Microphone({self.sample_rate} Hz)"


def microphone(sample_rate: int = 16_000, device: int | str | None = None) -> Microphone:
    """A microphone, to be given to `client.stream`.

    Args:
        sample_rate: Samples a second, in Hz.
        device: Number or name of the device, as `python -m sounddevice` lists them; None is the system's own choice.

    Raises:
        MissingExtraError: The extra `mic` is not installed.
        AudioError: The system's sound library is missing.
        OptionError: The sample rate is no whole number above 0.

    Example:
        >>> with client.stream(voxframe.microphone()) as session:          # doctest: +SKIP
        ...     for message in session:
        ...         print(message)
    """
    if isinstance(sample_rate, bool) or not isinstance(sample_rate, int) or sample_rate <= 0:
        raise OptionError(f"sample_rate is {sample_rate!r}; it must be a whole number of Hz, such as 16000")
    _sounddevice()
    return Microphone(sample_rate, device)


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ModuleNotFoundError as error:
        raise MissingExtraError("mic", "Recording from a microphone") from error
    except OSError as error:  # its wheels for Linux leave PortAudio to the system
        raise AudioError(
            f"the sound library of the system cannot be loaded ({error}); on Debian: apt install libportaudio2"
        ) from error
    return sounddevice
