"""Sample recordings that are installed with voxframe."""

from __future__ import annotations

from pathlib import Path

#: An installed package contains the recordings; a checkout has them in `data/`, beside `src/`.
_FOLDERS = (Path(__file__).parent / "data", Path(__file__).parents[2] / "data")


def sample(name: str = "interview") -> Path:
    """Return the path of a recording that is installed with voxframe.

    Args:
        name: "interview" (two speakers, about 2 min). A checkout of the project also has "panel" (four speakers) and
            "call" (stereo, one speaker per channel).

    Returns:
        Path of a FLAC file.

    Raises:
        ValueError: The sample does not exist in this installation.

    Example:
        >>> sample("interview").name
        'interview.flac'
    """
    for folder in _FOLDERS:
        path = folder / f"{name}.flac"
        if path.is_file() and path.parent == folder:
            return path
    here = sorted({path.stem for folder in _FOLDERS for path in folder.glob("*.flac")})
    raise ValueError(f"there is no sample {name!r}; available: {', '.join(here) or 'none, so reinstall voxframe'}")
