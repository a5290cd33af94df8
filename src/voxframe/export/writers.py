"""Write tables and transcripts to files in any export format."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

import pandas as pd
import pyarrow.parquet as pq

from voxframe._arrow import takes_frames
from voxframe._files import file_name, file_stems
from voxframe.analysis.rows import known_names
from voxframe.errors import OptionError
from voxframe.export.data_card import DataCard, name_of
from voxframe.export.table_writer import TableWriter, arrow, text_of, with_card
from voxframe.export.targets import Folder, check_target, file, folder
from voxframe.formats import SPEECH_FORMATS, SUFFIXES, TABLE_FORMATS
from voxframe.formats.writing import LIMITS, ExportResult, Losses, warn, with_turns
from voxframe.validators import Boolean, checked, name_list, nearest, shown

_NAMED = 3  # tables in a message
#: Formats that are written, and the file extensions of exports.
FORMATS = {name: next(iter(form.suffixes), "") for name, form in (TABLE_FORMATS | SPEECH_FORMATS).items()}


@takes_frames
def write(
    data: pd.DataFrame | Mapping[str, pd.DataFrame],
    target: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002  the usual name in pandas
    *,
    partition_by: str | Sequence[str] = (),
    escape_formulas: bool = False,
    license: str | None = None,  # noqa: A002  the key of dataset cards
    overwrite: bool = False,
) -> ExportResult:
    """Write a DataFrame or named tables to files.

    If the target has the file extension of a format (`words.csv`), one file is written. Otherwise the target is a
    directory, with one file per transcript for speech formats and one file or folder per table for the others. It
    appears when all is written.

    Values are written exactly. Values that the format cannot hold are counted in the result and in a warning. In CSV, a
    null is an empty field and an empty text is `""`; all texts are quoted.

    A directory has a data card (README.md; README.txt among Markdown files) and the hashes of all files (SHA256SUMS),
    and with several tables their columns in the Croissant format (croissant.json), in parquet with a `_` before the
    names. One DataFrame as Parquet has its card in the metadata of each file, under the key `voxframe.data_card`. A
    single file of another format has no card. `datasets.load_dataset(target, "words")` loads the table `words` of the
    format huggingface. A column `split`, such as metadata with "train" and "test", makes its splits; rows without a
    value are in the split "other".

    Args:
        data: Words or turns for `voxframe.formats.SPEECH_FORMATS`, or both as {"words": ..., "utterances": ...}: turns
            then have their own limits and not those of their words. Any DataFrame or dict of tables for the others.
        target: Path, or a URL that fsspec supports (`s3://bucket/calls`; extra `remote`).
        format: One of `FORMATS`. None (default): see `format_of`.
        partition_by: Columns whose values become folders; Parquet only. Null and empty text share a folder. A table
            that lacks one of the columns is not divided by it.
        escape_formulas: Put an apostrophe before texts that begin with `=`, `+`, `-`, `@`, a tab or a line end; CSV
            only. A spreadsheet would run these as formulas. Use it for files that people open in a spreadsheet, and
            leave it off for files that programs read.
        license: Licence of the data, for the data card, such as "cc-by-4.0".
        overwrite: Replace an existing file, or an existing directory in which voxframe wrote every file and none was
            edited since.

    Returns:
        The files written, and the number of values that the format could not hold.

    Raises:
        OptionError: An argument is invalid, or a column is missing.
        ExportError: The target already exists, has a file that voxframe did not write or that was edited since, or
            cannot be written.

    Warns:
        ExportWarning: The format cannot hold a value.

    Example:
        >>> import tempfile
        >>> words = pd.DataFrame({"transcript_id": ["a", "b"], "text": ["Hi.", "Yes?"], "start_ms": 0, "end_ms": 400})
        >>> sorted(write(words, f"{tempfile.mkdtemp()}/captions", "srt"))
        ['a.srt', 'b.srt']
    """
    _check_data(data)
    format = format_of(target, format)  # noqa: A001
    checked("overwrite", overwrite, Boolean())
    check_options(format, partition_by, escape_formulas=escape_formulas)
    losses: Losses = Counter()
    omitted: Losses = Counter()
    single = is_single(target, format, partition_by)
    card = DataCard(license=license)
    if format in SPEECH_FORMATS:
        if not isinstance(data, pd.DataFrame):
            if {*data} != {"words", "utterances"}:
                raise OptionError(
                    f"{format} needs one DataFrame of words or turns, or a dict of the tables words and utterances; "
                    f"for other tables, choose {', '.join(TABLE_FORMATS)}"
                )
            data = with_turns(data["words"], data["utterances"])
        if single:
            text = _speech(data, format, losses, omitted)
            with file(target, overwrite=overwrite) as out:
                out.write(text)
        else:
            with folder(target, overwrite=overwrite) as into:
                write_transcripts(data, into, format, losses, omitted)
                written = [*into.files]
                card.transcripts = len(written)
                card.write(into, name_of(target), format, {})
    elif single:
        if not isinstance(data, pd.DataFrame) and len(data) != 1:
            raise OptionError(f"one file holds one table, not {', '.join(data)}; give a directory as the target")
        name, df = ("data", data) if isinstance(data, pd.DataFrame) else next(iter(data.items()))
        with file(target, overwrite=overwrite) as out:
            write_single(df, out, target, format, losses, card, name, escape_formulas=escape_formulas)
    else:
        lone = "data" if format == "huggingface" else None
        named: dict[str | None, pd.DataFrame] = dict(data.items()) if isinstance(data, Mapping) else {lone: data}
        check_partitions(partition_by, {table or "the table": df.columns for table, df in named.items()})
        inside = format == "parquet" and None in named  # readers of the folder take every file in it for a part
        with folder(target, overwrite=overwrite) as into:
            writers: dict[str, TableWriter] = {}
            for table, df in named.items():
                table_card = card.of_table(name_of(target), format, table or "data") if inside else None
                with TableWriter(
                    into,
                    table,
                    format,
                    losses,
                    name_list(partition_by),
                    escape_formulas=escape_formulas,
                    card=table_card,
                ) as writer:
                    writer.add(df)
                writers[table or "data"] = writer
                if table == "transcripts":
                    card.add(df)
            if not inside:
                write_card(card, into, target, writers, format)
            written = into.files
    return finished([os.fspath(target)] if single else written, target, losses, omitted)


def _check_data(data: object) -> None:
    """Check that a DataFrame, or DataFrames by names that can be file names, were given."""
    tables = data if isinstance(data, Mapping) else {"data": data}
    for name, df in tables.items():
        if not isinstance(df, pd.DataFrame):
            kind = type(df).__name__
            raise OptionError(f'an export needs a DataFrame, or a dict such as {{"words": df}}, not of type {kind}')
        if not isinstance(name, str) or name in ("", ".", "..") or re.search(r"[/\\\0]", name):
            raise OptionError(f"the name of a table is text without slashes, such as 'words', got {shown(name)}")
    if not tables:
        raise OptionError("there is no table to export; the dict is empty")


def is_single(target: str | os.PathLike[str], format: str, partition_by: str | Sequence[str]) -> bool:  # noqa: A002
    """Return True if a target is one file: it has the extension of the format, and there are no partitions."""
    return _suffix(target) == FORMATS[format].lower() != "" and not partition_by


_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")


def _suffix(target: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(target))[1].lower()  # noqa: PTH122  none if the target ends in /


def format_of(target: str | os.PathLike[str], format: str | None) -> str:  # noqa: A002
    """Return the format of an export, and check that the target fits it.

    Without a format, it is the one that the file extension names: `words.csv` is csv, `call.TextGrid` is textgrid.
    A target with another extension, or without one, is a directory of Parquet.

    Example:
        >>> format_of("calls.srt", None), format_of("calls", None), format_of("labels.txt", "audacity")
        ('srt', 'parquet', 'audacity')
    """
    check_target(target)
    if format is not None and (not isinstance(format, str) or format not in FORMATS):
        near = nearest(format, [*FORMATS])
        raise OptionError(
            f"there is no format {format!r} of exports{near}; formats are csv, parquet, vtt, srt, docx and the others "
            "of voxframe.export.FORMATS"
        )
    suffix = _suffix(target)
    fitting = [name for name, ending in FORMATS.items() if ending and ending.lower() == suffix]
    if format is None and suffix[1:] in fitting:
        return suffix[1:]
    inner = _suffix(os.fspath(target)[: -len(suffix)]) if suffix in _COMPRESSED else ""
    if format is None and inner and inner in map(str.lower, FORMATS.values()):
        raise OptionError(
            f"{os.fspath(target)!r} ends in {suffix}, but exports are not compressed; pass a target without {suffix}, "
            "and compress the file afterwards"
        )
    if not fitting and suffix in SUFFIXES:
        raise OptionError(
            f"{os.fspath(target)!r} ends in {suffix}, which is read but not written; pass a target that "
            f"ends in .csv, for example, or without {suffix}"
        )
    if fitting and format not in fitting:
        stated = "no format is given" if format is None else f"the format is {format}"
        raise OptionError(
            f"{os.fspath(target)!r} ends in {suffix}, which is for {' and '.join(fitting)}, but {stated}; pass "
            f"{' or '.join(f'format={name!r}' for name in fitting)}, or a target without {suffix}"
        )
    return format or "parquet"


def write_card(
    card: DataCard,
    into: Folder,
    target: str | os.PathLike[str],
    writers: Mapping[str, TableWriter],
    format: str,  # noqa: A002
) -> None:
    """Write the data card of tables that are complete."""
    tables = {
        name: (writer.schema, writer.rows, writer.patterns)
        for name, writer in writers.items()
        if writer.schema is not None
    }
    card.write(into, name_of(target), format, tables)


def finished(files: list[str], target: str | os.PathLike[str], losses: Losses, omitted: Losses) -> ExportResult:
    """Warn about losses, and return the result of a completed export."""
    losses, omitted = +losses, +omitted  # unary plus drops zero counts
    warn(losses, os.fspath(target))
    return ExportResult(files, dict(losses), dict(omitted))


def check_options(format: str, partition_by: str | Sequence[str], *, escape_formulas: bool) -> None:  # noqa: A002
    """Check the options of a format."""
    checked("escape_formulas", escape_formulas, Boolean())
    if partition_by and format != "parquet":
        raise OptionError(f"only parquet can be partitioned, not {format}; leave partition_by out")
    if escape_formulas and format != "csv":
        raise OptionError(f"escape_formulas works with csv, which spreadsheets open, not with {format}; leave it out")


def check_partitions(partition_by: str | Sequence[str], columns: Mapping[str, Iterable[object]]) -> None:
    """Check that at least one table has each column to partition by; the other tables are not divided by it."""
    by_table = {name: list(map(str, names)) for name, names in columns.items()}
    for column in name_list(partition_by):
        if not any(column in names for names in by_table.values()):
            there = "; ".join(f"{name} has {', '.join(names)}" for name, names in list(by_table.items())[:_NAMED])
            raise OptionError(f"cannot partition by {column!r}: no table has such a column; {there}")


def write_transcripts(
    df: pd.DataFrame,
    into: Folder,
    format: str,  # noqa: A002  the usual name in pandas
    losses: Losses,
    omitted: Losses,
    stems: Mapping[str, str] | None = None,
) -> None:
    """Write one file per transcript into a directory.

    Args:
        omitted: Counter for values of columns that the format has no field for.
        stems: Name of the file of each transcript without its suffix, by id. None (default): its recording.
    """
    if "transcript_id" not in df:
        _content(df, format, losses)  # raises OptionError with the missing columns
    if stems is None:
        ids = [str(transcript_id) for transcript_id in df["transcript_id"].dropna().unique()]
        stems = file_stems(dict(zip(ids, ids, strict=True)) | known_names(ids, df))
    for transcript_id, part in df.groupby("transcript_id", sort=False, dropna=False):
        name = "" if pd.isna(transcript_id) else str(transcript_id)
        with into.open(f"{stems.get(name) or file_name(name)}{FORMATS[format]}") as out:
            out.write(_speech(part, format, losses, omitted))


def _content(df: pd.DataFrame, format: str, losses: Losses) -> str | bytes:  # noqa: A002
    text = SPEECH_FORMATS[format].write
    assert text is not None
    return text(df, losses=losses)


def _speech(df: pd.DataFrame, format: str, losses: Losses, omitted: Losses) -> bytes:  # noqa: A002
    content = _content(df, format, losses)
    for column in df.columns:
        if column not in SPEECH_FORMATS[format].columns | {*LIMITS}:
            omitted[str(column)] += int(df[column].count())
    return content if isinstance(content, bytes) else content.encode()


def write_single(
    df: pd.DataFrame,
    out: IO[bytes],
    target: str | os.PathLike[str],
    format: str,  # noqa: A002
    losses: Losses,
    card: DataCard,
    name: str,
    *,
    escape_formulas: bool,
) -> None:
    """Write a table as one file. Parquet has the data card in its metadata."""
    table = arrow(df, losses)
    if format == "parquet":
        table = with_card(table, card.of_table(name_of(target), format, name))
        pq.write_table(table, out, compression="zstd", compression_level=1)
    else:
        out.write(text_of(table, format, losses, escape_formulas=escape_formulas))
