"""What is looked at before a recording is sent anywhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from voxframe.errors import AudioError, AudioNotFoundError

_TYPES = "wav, mp3, m4a, flac, ogg, mp4 or most others"


def check_audio(path: Path) -> None:
    """Check that a file is a recording, so that a slip costs no wait and no money.

    Whether there is sound in it is seen with the decoder of the embedded service; where that is not installed the
    service finds out.

    Args:
        path: The file.

    Raises:
        AudioError: There is no such file, or it holds no audio.
    """
    if path.is_dir():
        raise AudioError(f"{str(path)!r} is a directory; name one recording in it")
    if not path.exists():
        raise AudioNotFoundError(f"there is no file {str(path)!r}; check its path")
    if not path.is_file():
        raise AudioError(f"{str(path)!r} is no file but a pipe or a device; save the recording to a file first")
    if path.stat().st_size == 0:
        raise AudioError(f"{str(path)!r} is empty")
    if find_spec("av") is None:
        return
    from voxframe.local.audio import Audio
    from voxframe.local.failed import JobFailed

    try:
        next(Audio(path).blocks(), None)  # the first seconds are enough to know
    except JobFailed as e:
        raise AudioError(f"{str(path)!r} cannot be transcribed. {e} Give {_TYPES}, of 160 ms or more.") from None
