"""Recordings that come with voxframe, for trying things out."""

from __future__ import annotations

from pathlib import Path

#: In an installed package the recordings are inside it; in a checkout they are in `data/`, beside `src/`.
_FOLDERS = (Path(__file__).parent / "data", Path(__file__).parents[2] / "data")


def sample(name: str = "interview") -> Path:
    """Path of a recording that comes with voxframe.

    Args:
        name: "interview" (two speakers, about 2 min). A checkout of the project also has "panel" (four speakers) and
            "call" (stereo, one speaker a channel).

    Returns:
        Path of a FLAC file.

    Raises:
        ValueError: There is no such sample here.

    Example:
        >>> sample("interview").name
        'interview.flac'
    """
    for folder in _FOLDERS:
        path = folder / f"{name}.flac"
        if path.is_file() and path.parent == folder:
            return path
    here = sorted({path.stem for folder in _FOLDERS for path in folder.glob("*.flac")})
    raise ValueError(f"there is no sample {name!r} here; there is {', '.join(here) or 'none: install voxframe again'}")
