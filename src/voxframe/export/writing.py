"""Writes tables and transcripts to files in any format of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO

import pandas as pd
import pyarrow.parquet as pq

from voxframe.errors import OptionError
from voxframe.export import captions, lines, tiers
from voxframe.export.files import Folder, file, folder
from voxframe.export.tables import TABLE_FORMATS, TableWriter, arrow, text_of
from voxframe.file_names import file_name

#: Formats of speech and the functions that make them. The first ones hold one transcript each.
ONE_TRANSCRIPT: dict[str, Callable[[pd.DataFrame], str]] = {
    "srt": captions.srt,
    "vtt": captions.vtt,
    "textgrid": tiers.textgrid,
    "eaf": tiers.eaf,
    "audacity": lines.audacity,
}
SPEECH_FORMATS = ONE_TRANSCRIPT | {"rttm": lines.rttm, "ctm": lines.ctm, "stm": lines.stm}

#: Every format, and the ending of its files.
FORMATS = TABLE_FORMATS | {name: f".{name}" for name in SPEECH_FORMATS} | {"textgrid": ".TextGrid", "audacity": ".txt"}


def write(
    data: pd.DataFrame | Mapping[str, pd.DataFrame],
    target: str | os.PathLike[str],
    format: str,  # noqa: A002  what pandas and its readers call it
    *,
    partition_by: str | Sequence[str] = (),
    overwrite: bool = False,
) -> list[str]:
    """Write a DataFrame, or tables by name.

    A target with the ending of the format is one file. Any other is a directory: with a file a transcript where the
    format is one of speech, with a file or folder a table otherwise. It appears when all is written.

    Args:
        data: Words or turns for formats of speech (srt, vtt, textgrid, eaf, rttm, ctm, stm, audacity); any DataFrame or
            tables by name for parquet, csv, jsonl and huggingface.
        target: Path, or an address that fsspec knows (`s3://bucket/calls`; extra `remote`).
        format: One of `FORMATS`.
        partition_by: Columns whose values become folders; Parquet only.
        overwrite: Whether to replace what is there.

    Returns:
        The files that were written: their names in the directory, or the target itself.

    Raises:
        OptionError: An argument is wrong, or a column is missing.
        ExportError: The target is there already or cannot be written.

    Example:
        >>> import tempfile
        >>> words = pd.DataFrame({"transcript_id": ["a", "b"], "text": ["Hi.", "Yes?"], "start_ms": 0, "end_ms": 400})
        >>> sorted(write(words, f"{tempfile.mkdtemp()}/captions", "srt"))
        ['a.srt', 'b.srt']
    """
    check_format(format, partition_by)
    if format in SPEECH_FORMATS:
        if not isinstance(data, pd.DataFrame):
            raise OptionError(
                f"{format} is made of one DataFrame of words or turns; tables are for {', '.join(TABLE_FORMATS)}"
            )
        return _write_speech(data, target, format, overwrite=overwrite)
    suffix = FORMATS[format]
    if suffix and os.fspath(target).lower().endswith(suffix) and not partition_by:
        if not isinstance(data, pd.DataFrame) and len(data) != 1:
            raise OptionError(f"one file holds one table; name a directory for {', '.join(data)}")
        with file(target, overwrite=overwrite) as out:
            _write_single(data if isinstance(data, pd.DataFrame) else next(iter(data.values())), out, format)
        return [os.fspath(target)]
    tables: Mapping[str | None, pd.DataFrame] = {None: data} if isinstance(data, pd.DataFrame) else dict(data.items())
    with folder(target, overwrite=overwrite) as into:
        for name, df in tables.items():
            with TableWriter(into, name, format, names(partition_by)) as writer:
                writer.add(df)
    return into.files


def check_format(format: str, partition_by: str | Sequence[str] = ()) -> None:  # noqa: A002
    """Check the name of a format, and that it can be partitioned where that is asked for.

    Raises:
        OptionError: It is none, or cannot.
    """
    if format not in FORMATS:
        raise OptionError(f"there is no format {format!r}; there is {', '.join(FORMATS)}")
    if partition_by and format != "parquet":
        raise OptionError(f"only parquet can be partitioned, not {format}")


def names(given: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    return [given] if isinstance(given, str) else list(given)


def _write_speech(df: pd.DataFrame, target: str | os.PathLike[str], format: str, *, overwrite: bool) -> list[str]:  # noqa: A002
    make, suffix = SPEECH_FORMATS[format], FORMATS[format]
    if os.fspath(target).lower().endswith(suffix.lower()):
        text = make(df)
        with file(target, overwrite=overwrite) as out:
            out.write(text.encode("utf-8", "replace"))
        return [os.fspath(target)]
    with folder(target, overwrite=overwrite) as into:
        write_transcripts(df, into, format)
    return into.files


def write_transcripts(df: pd.DataFrame, into: Folder, format: str) -> None:  # noqa: A002
    """Write a file a transcript into a directory.

    Raises:
        OptionError: A column is missing.
    """
    if "transcript_id" not in df:
        SPEECH_FORMATS[format](df)  # says what is missing
    for transcript_id, part in df.groupby("transcript_id", sort=False):
        into.write(f"{file_name(str(transcript_id))}{FORMATS[format]}", SPEECH_FORMATS[format](part))


def _write_single(df: pd.DataFrame, out: IO[bytes], format: str) -> None:  # noqa: A002
    if format == "parquet":
        pq.write_table(arrow(df), out, compression="zstd", compression_level=1)
    else:
        out.write(text_of(df, format))
