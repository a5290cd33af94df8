"""Data cards: a README.md that says what an exported data set is, and SHA256SUMS with the hash of every file.

Beside the card of a data set of tables is `croissant.json` for data set hubs, search engines and `mlcroissant`. Source:
the Croissant format 1.0, https://docs.mlcommons.org/croissant/docs/croissant-spec.html.

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
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa

from voxframe._text import quantity
from voxframe.errors import OptionError
from voxframe.export.targets import CARD_MARK, CARDS, CHECKSUMS, CROISSANT, Folder
from voxframe.options import TranscriptOptions
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES

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
        into.write(sums, "".join(f"{digest}  {file}\n" for file, digest in sorted(into.checksums.items())))

    def text(self, name: str, form: str, tables: Tables) -> str:
        """Return the card as Markdown.

        Args:
            tables: Schema, number of rows and patterns of the files of each table. Empty for files of speech. There is
                no pattern if `datasets` cannot load the files.
        """
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
    """Return the metadata of a data set as JSON-LD.

    Args:
        tables: Schema, number of rows and patterns of the files of each table by split, by name.
    """
    distribution, records = [], []
    for table, (schema, rows, patterns) in tables.items():
        suffix = form if form in _TYPES else "parquet"  # huggingface
        paths = [path for path in into.checksums if path == f"{table}.{suffix}" or path.startswith(f"{table}/")]
        if not rows or not paths:
            continue
        about: dict[str, Any] = {"@id": table, "name": table, "encodingFormat": _TYPES[suffix]}
        kind = "fileObject" if len(paths) == 1 else "fileSet"
        if kind == "fileObject":
            about |= {"@type": "cr:FileObject", "contentUrl": paths[0], "sha256": into.checksums[paths[0]]}
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
