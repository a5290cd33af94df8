"""Write tables and transcripts to files in any export format, with a data card and the hash of every file.

A data card is a README.md that says what a data set is; SHA256SUMS has the hashes. Beside the card of a data set of
tables is `croissant.json` for data set hubs, search engines and `mlcroissant`. Source: the Croissant format 1.0,
https://docs.mlcommons.org/croissant/docs/croissant-spec.html.

In Parquet data sets their names begin with `_`, so that pandas, pyarrow and Spark skip them when they read the folder.
Among Markdown files the card is README.txt, so that a pattern such as `*.md` finds the transcripts only. A Parquet file
or folder of one table has its card in the metadata of the files: some readers take every file in a folder for a part.

The card begins with the metadata of Hugging Face dataset cards, with one config per table, so that
`datasets.load_dataset(folder, "words")` loads a table. Tables without rows have no config: `datasets` refuses them.
Source: https://huggingface.co/docs/hub/datasets-cards and
https://huggingface.co/docs/hub/datasets-manual-configuration.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import PurePath
from typing import IO, Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from voxframe._arrow import takes_frames
from voxframe._files import file_name, file_stems
from voxframe._text import quantity
from voxframe.analysis.rows import known_names
from voxframe.errors import OptionError
from voxframe.export.table_writer import TableWriter, arrow, text_of, with_card
from voxframe.export.targets import CARD_MARK, CARDS, CHECKSUMS, CROISSANT, Folder, check_target, file, folder
from voxframe.formats import SPEECH_FORMATS, SUFFIXES, TABLE_FORMATS
from voxframe.formats.writing import LIMITS, ExportResult, Losses, warn, with_turns
from voxframe.options import TranscriptOptions
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES
from voxframe.validators import Boolean, checked, name_list, nearest, shown

_MODELS = ("speech_model", "acoustic_model", "language_model")
_REDACTION = ("redact_pii", "redact_pii_audio", "redact_pii_sub")
_PRIVATE = re.compile("webhook|url|auth")
#: Options whose values are shown. Others are free text, which may be personal, so only their number is.
_SHOWN = [
    column
    for column in TABLES["transcripts"].columns
    if column.name.removesuffix("_ms") in TranscriptOptions.__annotations__
    and column.name not in (*_MODELS, *_REDACTION)
    and not _PRIVATE.search(column.name)
]
#: Columns of the table `transcripts` that a card needs.
CARD_COLUMNS = (
    "transcript_id",
    "audio_duration_s",
    *_MODELS,
    *_REDACTION,
    "status",
    *(column.name for column in _SHOWN),
)
_MANY = 5  # values of one option in a card
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$&])")


#: Schema, number of rows and patterns of the files of each table by split, by name.
Tables: TypeAlias = Mapping[str, tuple[pa.Schema, int, Mapping[str, str]]]


@dataclass
class DataCard:
    """Collects what the card of a data set says."""

    source: str = ""
    license: str | None = None
    redaction: str = ""
    dates: tuple[datetime, datetime] | None = None
    transcripts: int | None = None
    checksums: str = "none"
    _values: Counter[tuple[str, Any]] = field(default_factory=Counter)
    _seconds: float | None = None

    def __post_init__(self) -> None:
        if self.license is not None and not isinstance(self.license, str):
            raise OptionError(f"license is text, such as 'cc-by-4.0', got {self.license!r}")

    def add(self, transcripts: pd.DataFrame) -> None:
        """Count options, models and durations of rows of the table `transcripts`, which need not be exported."""
        self.transcripts = (self.transcripts or 0) + len(transcripts)
        seconds = transcripts.get("audio_duration_s", pd.Series(dtype=float)).fillna(0).sum()
        self._seconds = (self._seconds or 0.0) + float(seconds)
        for name in CARD_COLUMNS[2:]:
            if name in transcripts:
                for value, count in transcripts[name].dropna().value_counts().items():
                    self._values[name, getattr(value, "item", lambda value=value: value)()] += int(count)

    def write(self, into: Folder, name: str, form: str, tables: Tables) -> None:
        """Write the card, and the hashes of all files, into a directory, after all other files were written."""
        prefix = "_" if form == "parquet" else ""
        sums, card = f"{prefix}{CHECKSUMS}", f"{prefix}{CARDS[form == 'md']}"
        self.checksums = f"SHA-256 of every file, in {sums}: `sha256sum -c {sums}`"
        if tables:
            about = f"Transcripts of {self.source}" if self.source else "Transcripts"
            into.write(f"{prefix}{CROISSANT}", croissant(name, about, self.license, form, tables, into))
        into.write(card, self.text(name, form, tables))
        into.write(sums, "".join(f"{into.checksum(file)}  {file}\n" for file in sorted(into.files)))

    def text(self, name: str, form: str, tables: Tables) -> str:
        """Return the card as Markdown; `tables` is empty for files of speech."""
        return "\n".join([*self._front_matter(name, tables), *self._body(name, form, tables)]) + "\n"

    def of_table(self, name: str, form: str, table: str) -> Callable[[pa.Schema, int], str]:
        """Return a function that returns the card of a data set of one table, given its schema and number of rows."""
        return lambda schema, rows: self.text(name, form, {table: (schema, rows, {})})

    def _front_matter(self, name: str, tables: Tables) -> list[str]:
        languages = {str(value).split("_")[0].split("-")[0] for (key, value) in self._values if key == "language_code"}
        codes = sorted(code for code in languages if re.fullmatch("[a-z]{2,3}", code))
        return [
            "---",
            f"pretty_name: {json.dumps(name)}",
            *([f"license: {json.dumps(self.license)}"] if self.license else []),
            *([f"language: {json.dumps(codes)}"] if codes else []),
            "configs:" if any(rows and patterns for _, rows, patterns in tables.values()) else "configs: []",
            *(
                f"- config_name: {json.dumps(table)}\n  data_files:"
                + "".join(
                    f"\n  - split: {json.dumps(split)}\n    path: {json.dumps(path)}"
                    for split, path in patterns.items()
                )
                for table, (_, rows, patterns) in tables.items()
                if rows and patterns
            ),
            "---",
        ]

    def _body(self, name: str, form: str, tables: Tables) -> list[str]:
        counts = [] if self.transcripts is None else [quantity(self.transcripts, "transcript")]
        counts += [] if self._seconds is None else [f"{self._seconds / 3600:,.2f} hours of audio"]
        counts += [quantity(tables["words"][1], "word")] if "words" in tables else []
        dates = "" if self.dates is None else " to ".join(moment.isoformat(timespec="seconds") for moment in self.dates)
        facts = {
            "Contents": ", ".join(counts),
            "Source": self.source or "a DataFrame",
            "Submitted for transcription": dates or "not known",
            "Format": form,
            "Written": f"{datetime.now(UTC).isoformat(timespec='seconds')}{CARD_MARK}{version('voxframe')}",
            "Models": self._summary(_MODELS) or "not stated by the service",
            "Options": self._summary([column.name for column in _SHOWN]) or "none known",
            "Personal data": "; ".join(part for part in (self.redaction, self._redacted()) if part) or "not known",
            "Licence": self.license or "not stated",
            "Schema version": SCHEMA_VERSION,
            "Checksums": self.checksums,
        }
        lines = ["", f"# {_plain(name)}", "", "| | |", "|---|---|"]
        lines += [f"| {key} | {text if key == 'Checksums' else _plain(text)} |" for key, text in facts.items() if text]
        if not tables:
            return lines
        lines += [
            "",
            "Times are milliseconds from the start of the media; indices count from 0; an empty value is a null.",
        ]
        lines += ["", "| table | one row per | rows |", "|---|---|---|"]
        for table, (_, rows, _) in tables.items():
            lines.append(f"| {_plain(table)} | {TABLES[table].grain if table in TABLES else ''} | {rows:,} |")
        for table, (schema, _, _) in tables.items():
            about = {column.name: column for column in CORPUS_TABLES[table].columns} if table in CORPUS_TABLES else {}
            lines += ["", f"## {_plain(table)}", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
            for of in schema:
                column = about.get(of.name)
                unit, text = (column.unit or "", column.description) if column else ("", "")
                lines.append(f"| {_plain(of.name)} | {_plain(str(of.type))} | {unit} | {text} |")
        return lines

    def _redacted(self) -> str:
        redacted = sum(count for (key, value), count in self._values.items() if key == "redact_pii" and value)
        if not redacted:
            return "" if self._seconds is None else "no transcript was redacted by the service"
        return f"redacted by the service: {redacted:,} of {quantity(self.transcripts or 0, 'transcript')}"

    def _summary(self, names: Collection[str]) -> str:
        """Return the values of columns with their counts: "speech_model best (3), nano (1)"."""
        lines = []
        text = {column.name for column in _SHOWN if column.json}
        for name in names:
            values = [
                (value, n)
                for (key, value), n in self._values.most_common()
                if key == name and value is not False and value != "[]"  # not used
            ]
            if not values:
                continue
            if name in text:
                lines.append(f"{name} ({sum(n for _, n in values):,})")
                continue
            counts = [f"{n:,}" if value is True else f"{value}: {n:,}" for value, n in values[:_MANY]]
            lines.append(f"{name} ({', '.join(counts)}{', ...' if len(values) > _MANY else ''})")
        return "; ".join(lines)


def name_of(target: object) -> str:
    """Return the name of a data set: the last part of its path or URL."""
    return PurePath(str(target).rstrip("/")).name or "data"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


_TYPES = {"csv": "text/csv", "jsonl": "application/jsonlines", "parquet": "application/x-parquet"}
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {
    name: f"cr:{name}"
    for name in (
        "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset "
        "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
        "subField transform"
    ).split()
}


def croissant(
    name: str,
    description: str,
    license: str | None,  # noqa: A002  the key of the format
    form: str,
    tables: Mapping[str, tuple[pa.Schema, int, Mapping[str, str]]],
    into: Folder,
) -> str:
    """Return the metadata of a data set as JSON-LD."""
    distribution, records = [], []
    for table, (schema, rows, patterns) in tables.items():
        suffix = form if form in _TYPES else "parquet"  # huggingface
        paths = [path for path in into.files if path == f"{table}.{suffix}" or path.startswith(f"{table}/")]
        if not rows or not paths:
            continue
        about: dict[str, Any] = {"@id": table, "name": table, "encodingFormat": _TYPES[suffix]}
        kind = "fileObject" if len(paths) == 1 else "fileSet"
        if kind == "fileObject":
            about |= {"@type": "cr:FileObject", "contentUrl": paths[0], "sha256": into.checksum(paths[0])}
        else:
            about |= {"@type": "cr:FileSet", "includes": list(patterns.values())}
        distribution.append(about)
        in_folders = {part.partition("=")[0] for part in paths[0].split("/")[1:-1]}
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{table}/{column.name}",
                "name": column.name,
                "description": _about(table, column.name),
                "dataType": _data_type(column.type),
                "source": {kind: {"@id": table}, "extract": {"column": column.name}},
            }
            for column in schema
            if column.name not in in_folders
        ]
        records.append({"@type": "cr:RecordSet", "@id": f"{table}-rows", "name": f"{table}-rows", "field": fields})
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": description,
        **({"license": license} if license else {}),
        "datePublished": datetime.now(UTC).date().isoformat(),
        "version": f"1.0.0+{SCHEMA_VERSION}",
        "distribution": distribution,
        "recordSet": records,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _about(table: str, name: str) -> str:
    """Return what a column holds, with its unit; empty for a column that is not in the data dictionary."""
    for column in CORPUS_TABLES[table].columns if table in CORPUS_TABLES else ():
        if column.name == name:
            return f"{column.description} Unit: {column.unit}." if column.unit else column.description
    return ""


def _data_type(of: pa.DataType) -> str:
    if pa.types.is_boolean(of):
        return "sc:Boolean"
    if pa.types.is_integer(of):
        return "sc:Integer"
    if pa.types.is_floating(of):
        return "sc:Float"
    return "sc:Date" if pa.types.is_date(of) else "sc:DateTime" if pa.types.is_timestamp(of) else "sc:Text"


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
    """Write one file per transcript into a directory, named after `stems` by id, or else after its recording."""
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
