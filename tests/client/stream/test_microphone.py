import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

import pytest

import voxframe
from voxframe.client.stream import Stream
from voxframe.errors import AudioError, MissingExtraError, OptionError


class Device:
    """Replaces a sound card, which test machines lack: yields blocks as fast as it is told."""

    opened: "list[Device]" = []  # noqa: RUF012 - emptied by the fixture

    def __init__(
        self, *, samplerate: int, blocksize: int, device: Any, channels: int, dtype: str, callback: Any
    ) -> None:
        if device == "none":
            raise PortAudioError("no such device")
        self.asked = (samplerate, blocksize, channels, dtype)
        self.take = callback
        self.closed = threading.Event()
        self.opened.append(self)

    def give(self, block: bytes) -> None:
        self.take(memoryview(block), len(block) // 2, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()


class PortAudioError(Exception):
    pass


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Device]:
    module = ModuleType("sounddevice")
    module.RawInputStream = Device  # type: ignore[attr-defined]
    module.PortAudioError = PortAudioError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    Device.opened.clear()

    def opened() -> Device:
        until = time.monotonic() + 10
        while not Device.opened:
            assert time.monotonic() < until
            time.sleep(0.01)
        return Device.opened[0]

    return opened


def test_a_microphone_is_streamed_and_closed(device: Any, stream: Callable[..., Stream], peer: Any) -> None:
    """Sound is streamed at the rate of the microphone, and recording stops when the session ends."""
    session = stream(voxframe.microphone(8000), sample_rate=None).start()
    recording = device()
    assert recording.asked == (8000, 800, 1, "int16")
    for i in range(20):
        recording.give(bytes([i]) * 1600)
    while session.sent_ms < 2000:
        time.sleep(0.01)
    assert session.terminate()[-1].text == "second 2"
    recording.give(bytes(1600))  # what waits for sound sees the end with the next block
    assert recording.closed.wait(10)
    assert b"".join(peer.sessions[0].frames) == b"".join(bytes([i]) * 1600 for i in range(20))
    assert peer.sessions[0].query["sample_rate"] == "8000"


def test_unread_sound_is_limited(device: Any) -> None:
    """Unread sound is limited to a minute; dropped sound is counted."""
    microphone = voxframe.microphone(8000)
    blocks = iter(microphone)
    threading.Timer(0.1, lambda: device().give(b"ab")).start()
    assert next(blocks) == b"ab"
    for i in range(605):
        device().give(i.to_bytes(2, "little"))
    assert microphone.dropped_ms == 500
    assert next(blocks) == (5).to_bytes(2, "little")
    blocks.close()  # type: ignore[attr-defined]
    assert device().closed.is_set()


def test_an_unknown_device_is_named(device: Any) -> None:
    """The error for an unknown device names the command that lists the devices."""
    with pytest.raises(AudioError, match=r"'none' cannot be used at 16000 Hz.*python -m sounddevice"):
        next(iter(voxframe.microphone(device="none")))


def test_another_rate_or_encoding_is_refused(device: Any, stream: Callable[..., Stream]) -> None:
    """A rate or encoding that the microphone does not provide is refused before anything is opened."""
    with pytest.raises(OptionError, match="records at 8000 Hz"):
        stream(voxframe.microphone(8000), sample_rate=16_000)
    with pytest.raises(OptionError, match="linear samples"):
        stream(voxframe.microphone(8000), sample_rate=None, encoding="pcm_mulaw")
    with pytest.raises(OptionError, match="sample_rate must be a whole number of at least 1 Hz, got 0"):
        voxframe.microphone(0)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the error names the extra."""
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(MissingExtraError, match=r"voxframe\[mic\]"):
        voxframe.microphone()
