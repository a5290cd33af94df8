"""Inputs of a batch: expand files, folders, patterns, URLs, lists and DataFrames to recordings."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pandas as pd

from voxframe.corpus.addresses import is_address, is_remote
from voxframe.corpus.batch.media import filesystem, reading
from voxframe.corpus.metadata import check_columns
from voxframe.corpus.recording_names import EXTENSIONS, checked_name
from voxframe.errors import AudioNotFoundError, OptionError

#: One source: the path of a file or folder, a pattern (`*`, `?`, `[]`, `**`), or a URL.
OneSource: TypeAlias = "str | os.PathLike[str]"
#: One source, an iterable of sources, or a DataFrame with a column of them.
Recordings: TypeAlias = "OneSource | Iterable[OneSource] | pd.DataFrame"

#: Allowed names of the column of sources in a DataFrame.
SOURCE_COLUMNS = ("audio", "path", "url", "source", "file", "audio_url")

_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class Recording:
    """One recording of a batch.

    Attributes:
        source: Path or URL.
        metadata: Columns about it, by name.
        name: Its name, if the user gave one.
    """

    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None


def expand(sources: Recordings) -> list[Recording]:
    """Return every recording that the sources stand for, in order. Files of a folder or pattern are sorted.

    Args:
        sources: A path, a pattern, a folder (searched recursively), an http or https URL, a URL that fsspec knows
            (`s3://bucket/calls/*.mp3`), an iterable of these, or a DataFrame. The DataFrame has one column of sources
            named audio, path, url, source, file or audio_url. A column `recording` names the recordings; its other
            columns are metadata.

    Raises:
        OptionError: The sources have another type, or the DataFrame is ambiguous.
        AudioNotFoundError: A path, a pattern or a folder matches no recording.
    """
    if isinstance(sources, pd.DataFrame):
        return list(_of_frame(sources))
    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    if isinstance(several, bytes | Mapping) or not isinstance(several, Iterable):
        raise _not_sources(sources)
    return [Recording(path) for one in several for path in _paths(one)]


def _of_frame(df: pd.DataFrame) -> Iterator[Recording]:
    named = [name for name in SOURCE_COLUMNS if name in df.columns]
    if len(named) != 1:
        found = f"it has {' and '.join(named)}" if named else f"it has {', '.join(map(str, df.columns)) or 'none'}"
        raise OptionError(
            f"a DataFrame of recordings must have one column of paths or URLs, named {', '.join(SOURCE_COLUMNS[:-1])} "
            f"or {SOURCE_COLUMNS[-1]}; {found}. Rename the column"
        )
    check_columns(df.columns.drop("recording", errors="ignore"), named[0])
    others = [name for name in df.columns if name not in (named[0], "recording")]
    given = list(df["recording"]) if "recording" in df.columns else [None] * len(df)
    for row, source in enumerate(df[named[0]]):
        if not isinstance(source, str | os.PathLike):
            raise OptionError(f"row {row} of the column {named[0]!r} must be a path or a URL, got {source!r}")
        metadata = {name: df[name].iloc[row] for name in others}
        recording = checked_name(given[row])
        for path in _paths(source):
            yield Recording(path, metadata, recording)


def _paths(source: object) -> list[str]:
    if not isinstance(source, str | os.PathLike):
        raise _not_sources(source)
    text = os.fspath(source)
    if not isinstance(text, str) or not text:
        raise _not_sources(source)
    if is_address(text):
        return [text]
    if text.lower().startswith("file://"):
        text = text[7:] if Path(text[7:]).exists() else unquote(text[7:])
    if is_remote(text):
        return _remote(text)
    path = Path(text).expanduser()
    if path.is_dir():
        return _found(_media(map(str, path.rglob("*"))), text)
    if _MAGIC.isdisjoint(text) or path.exists():
        return [str(path)]
    matched = sorted(found for found in glob.glob(str(path), recursive=True) if Path(found).is_file())  # noqa: PTH207
    return _found(matched if path.suffix else _media(matched), text)


def _remote(address: str) -> list[str]:
    """Return the files that a URL in a store stands for: one file, those of a folder, or those that match."""
    return reading(address, lambda: _in_store(address))


def _in_store(address: str) -> list[str]:
    system, path = filesystem(address)
    if not _MAGIC.isdisjoint(path):
        matched = [str(found) for found, info in system.glob(path, detail=True).items() if info["type"] == "file"]
        found = sorted(matched) if Path(path).suffix else _media(matched, local=False)
    elif system.isdir(path):
        found = _media(map(str, system.find(path)), local=False)
    else:
        return [address]
    return _found([system.unstrip_protocol(name) for name in found], address)


def _media(paths: Iterable[str], *, local: bool = True) -> list[str]:
    """Return the sorted paths of recordings that are not hidden."""
    return sorted(
        path
        for path in paths
        if Path(path).suffix.lower() in EXTENSIONS
        and not Path(path).name.startswith(".")
        and (not local or Path(path).is_file())
    )


def _found(paths: list[str], text: str) -> list[str]:
    if not paths:
        raise AudioNotFoundError(
            f"{text!r} matches no recording; check the path. Recordings in a folder are found by their extension, such "
            "as .mp3; a pattern such as 'calls/**/*.mp3' finds any file"
        )
    return paths


def _not_sources(value: object) -> OptionError:
    return OptionError(f"recordings must be paths, folders, patterns, URLs or a DataFrame, got {value!r:.100}")
