"""Files that voxframe makes from a model, such as its weights in another format, kept beside the models."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from voxframe import models
from voxframe.errors import ModelError

_HASHES = "sha256.json"


def is_sound(folder: Path) -> bool:
    """Return True if the files of the folder are those that were written. All of them are read."""
    try:
        hashes = json.loads((folder / _HASHES).read_text("utf-8"))
        return bool(hashes) and all(_hash(folder / name) == found for name, found in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def make(name: str, write: Callable[[Path], None], folder: Path, size: int) -> None:
    """Make a folder of files, all at once. One that another process made is kept.

    Args:
        name: Name of the model.
        write: Function that writes the files into an empty folder.
        folder: The folder to make; a damaged one is replaced.
        size: Size of the files in bytes.

    Raises:
        ModelError: The folder cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staging:
            made = Path(staging) / "made"
            made.mkdir()
            write(made)
            hashes = {path.name: _hash(path) for path in sorted(made.iterdir())}
            (made / _HASHES).write_text(json.dumps(hashes), "utf-8")
            if folder.exists() and not is_sound(folder):
                folder.rename(Path(staging) / "damaged")
            try:
                made.rename(folder)
            except OSError:
                if not is_sound(folder):
                    raise
    except OSError as e:
        raise ModelError(
            f"cannot write the converted model {name!r} to {folder}: {e.strerror or e}. Make room for "
            f"{size / 1e6:.0f} MB, or set {models.CACHE_VARIABLE} to a folder that can be written"
        ) from e


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
