"""Verification and progress of downloads from all sources."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from voxframe.models.catalog import ModelFile

#: A progress bar appears when a download takes longer.
_DELAY_S = 1.0


class SourceError(Exception):
    """A source could not deliver a model; the next one is tried. Never leaves `voxframe.models`."""


def save(file: ModelFile, chunks: Iterable[bytes], folder: Path) -> None:
    """Write a file of a model, and check that it is the official file.

    Args:
        file: The official file.
        chunks: Its content. No more is read than the official file has.
        folder: Folder to write to.

    Raises:
        SourceError: The content is not that of the official file.
        OSError: It cannot be written.
    """
    digest, size = hashlib.sha256(), 0
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for chunk in chunks:
            size += len(chunk)
            if size > file.size:
                raise SourceError(f"{file.name} has more than {file.size:,} bytes, so it is not the official file")
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise SourceError(f"{file.name} has the SHA-256 {digest.hexdigest()}, expected {file.sha256}")


def progress_bar(label: str, total: int) -> Any:
    """Return a bar of bytes, shown in a terminal or a notebook unless the download is quick."""
    from tqdm.auto import tqdm

    # tqdm itself would also show no bar in a notebook, whose standard error is no terminal.
    shown = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    return tqdm(desc=label, total=total, unit="B", unit_scale=True, delay=_DELAY_S, leave=False, disable=not shown)
