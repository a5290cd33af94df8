"""Files that voxframe makes from a model at first use, and keeps beside it: converted weights and graphs."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from voxframe.errors import ModelError

_HASHES = "sha256.json"  # of the files


def build(folder: Path, save: Callable[[Path], None], *, size: int, name: str, variable: str) -> None:
    """Make a folder of derived files all at once, unless it is there. A damaged one is replaced."""
    if _is_sound(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staging:
            files = Path(staging) / "files"
            files.mkdir()
            save(files)
            hashes = {path.name: _hash(path) for path in sorted(files.iterdir())}
            (files / _HASHES).write_text(json.dumps(hashes), "utf-8")
            if folder.exists() and not _is_sound(folder):
                folder.rename(Path(staging) / "damaged")
            try:
                files.rename(folder)
            except OSError:
                if not _is_sound(folder):  # another process has made it in the meantime
                    raise
    except OSError as e:
        raise ModelError(
            f"cannot write the files made from the model {name!r} to {folder}: {e.strerror or e}. Make room for "
            f"{size / 1e6:.0f} MB, or set {variable} to a folder that can be written"
        ) from e


def _is_sound(folder: Path) -> bool:
    """Return True if the files of the folder are those that were written. All of them are read."""
    try:
        hashes = json.loads((folder / _HASHES).read_text("utf-8"))
        return bool(hashes) and all(_hash(folder / name) == digest for name, digest in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
