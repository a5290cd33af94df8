"""Data cards: a README.md that says what an exported data set is, and SHA256SUMS with the hash of every file.

In Parquet data sets their names begin with `_`, so that pandas, pyarrow and Spark skip them when they read the folder.

The card begins with the metadata of Hugging Face dataset cards, with one config per table, so that
`datasets.load_dataset(folder, "words")` loads a table. Tables without rows have no config: `datasets` refuses them.
Source: https://huggingface.co/docs/hub/datasets-cards and
https://huggingface.co/docs/hub/datasets-manual-configuration.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import pandas as pd
import pyarrow as pa

from voxframe.export.targets import Folder
from voxframe.options import TranscriptOptions
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES

_CARD, _CHECKSUMS = "README.md", "SHA256SUMS"

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
_MANY = 5  # values of one option in a card
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$&])")


@dataclass
class DataCard:
    """Collects what the card of a data set says.

    Attributes:
        source: Where the transcripts are from, such as the name of a corpus.
        license: Licence of the data; None: not stated.
        redaction: What the export did to personal data.
        dates: First and last time at which the recordings were submitted, if known.
    """

    source: str = ""
    license: str | None = None
    redaction: str = ""
    dates: tuple[datetime, datetime] | None = None
    _values: Counter[tuple[str, Any]] = field(default_factory=Counter)
    _seconds: float = 0.0
    _transcripts: int | None = None

    def add(self, transcripts: pd.DataFrame) -> None:
        """Count options, models and durations of rows of the table `transcripts`, which need not be exported."""
        self._transcripts = (self._transcripts or 0) + len(transcripts)
        self._seconds += float(transcripts.get("audio_duration_s", pd.Series(dtype=float)).fillna(0).sum())
        for name in (*_MODELS, *_REDACTION, "status", *(c.name for c in _SHOWN)):
            if name in transcripts:
                for value, count in transcripts[name].dropna().value_counts().items():
                    self._values[name, getattr(value, "item", lambda value=value: value)()] += int(count)

    def write(
        self, into: Folder, name: str, tables: Mapping[str, tuple[pa.Schema, int, str]], prefix: str = ""
    ) -> None:
        """Write the card and the hashes of all other files into a data set.

        Args:
            into: The directory, after all tables were written.
            name: Name of the data set.
            tables: Schema, number of rows and pattern of the files of each table.
            prefix: Begin of the names of both files.
        """
        sums = f"{prefix}{_CHECKSUMS}"
        into.write(sums, "".join(f"{digest}  {file}\n" for file, digest in sorted(into.checksums.items())))
        card = [*self._front_matter(name, tables), *self._body(name, tables, sums)]
        into.write(f"{prefix}{_CARD}", "\n".join(card) + "\n")

    def _front_matter(self, name: str, tables: Mapping[str, tuple[pa.Schema, int, str]]) -> list[str]:
        languages = {str(value).split("_")[0].split("-")[0] for (key, value) in self._values if key == "language_code"}
        known = sorted(code for code in languages if re.fullmatch("[a-z]{2,3}", code))
        return [
            "---",
            f"pretty_name: {json.dumps(name)}",
            *([f"license: {json.dumps(self.license)}"] if self.license else []),
            *([f"language: {json.dumps(known)}"] if known else []),
            "configs:" if any(rows for _, rows, _ in tables.values()) else "configs: []",
            *(
                f"- config_name: {json.dumps(table)}\n  data_files:\n  - split: train\n    path: {json.dumps(pattern)}"
                for table, (_, rows, pattern) in tables.items()
                if rows
            ),
            "---",
        ]

    def _body(self, name: str, tables: Mapping[str, tuple[pa.Schema, int, str]], sums: str) -> list[str]:
        count = self._transcripts
        counts = [] if count is None else [f"{count:,} transcripts", f"{self._seconds / 3600:,.2f} hours of audio"]
        counts += [f"{tables['words'][1]:,} words"] if "words" in tables else []
        dates = "" if self.dates is None else " to ".join(moment.isoformat(timespec="seconds") for moment in self.dates)
        facts = {
            "Contents": ", ".join(counts),
            "Source": self.source or "a DataFrame",
            "Submitted for transcription": dates or "not known",
            "Written": f"{datetime.now(UTC).isoformat(timespec='seconds')} by voxframe {version('voxframe')}",
            "Models": self._summary(_MODELS) or "not stated by the service",
            "Options": self._summary([column.name for column in _SHOWN]) or "none known",
            "Personal data": "; ".join(part for part in (self.redaction, self._redacted()) if part),
            "Licence": self.license or "not stated",
            "Schema version": str(SCHEMA_VERSION),
            "Checksums": f"SHA-256 of every file, in {sums}: `sha256sum -c {sums}`",
        }
        lines = ["", f"# {_plain(name)}", "", "| | |", "|---|---|"]
        lines += [f"| {key} | {text if key == 'Checksums' else _plain(text)} |" for key, text in facts.items() if text]
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
            return "" if self._transcripts is None else "no transcript was redacted by the service"
        return f"{redacted:,} of {self._transcripts:,} transcripts were redacted by the service"

    def _summary(self, names: Collection[str]) -> str:
        """Return the values of columns with their counts: "speech_model best (3), nano (1)"."""
        found = []
        text = {column.name for column in _SHOWN if column.json}
        for name in names:
            values = [
                (value, n) for (key, value), n in self._values.most_common() if key == name and value is not False
            ]
            if not values:
                continue
            if name in text:
                found.append(f"{name} ({sum(n for _, n in values):,})")
                continue
            shown = [f"{n:,}" if value is True else f"{value}: {n:,}" for value, n in values[:_MANY]]
            found.append(f"{name} ({', '.join(shown)}{', ...' if len(values) > _MANY else ''})")
        return "; ".join(found)


def name_of(target: object) -> str:
    """Return the name of a data set: the last part of its path or URL."""
    return PurePath(str(target).rstrip("/")).name or "data"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
