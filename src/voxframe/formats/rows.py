"""Tables of turns or words: DataFrames, CSV, TSV and Excel."""

from __future__ import annotations

import datetime as dt
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import split_words
from voxframe.errors import MissingExtraError, OptionError, PayloadError
from voxframe.formats.datasets import payloads_of, table_of, typed_csv
from voxframe.formats.payload import SpokenTurn, SpokenWord, from_turns, from_words, label, ms, number
from voxframe.formats.whisper import unit_of
from voxframe.validators import shown

#: Names of columns in common tables, in lower case, by the names of our own.
_NAMES = {
    "transcript_id": ("transcript_id", "recording", "file", "filename", "session_id", "session", "call_id", "id"),
    "text": ("text", "transcript", "utterance", "content", "sentence", "body", "word", "words", "token", "said"),
    "start": tuple(
        "start start_s start_sec start_seconds start_time starttime begin begin_s from onset tmin time timestamp "
        "ts".split()
    ),
    "end": tuple("end end_s end_sec end_seconds end_time endtime stop stop_s to offset tmax endts".split()),
    "duration": ("duration", "duration_s", "dur", "length"),
    "start_ms": ("start_ms", "startms", "begin_ms"),
    "end_ms": ("end_ms", "endms", "stop_ms"),
    "speaker": ("speaker_name", "speaker", "name", "participant", "speaker_id", "spk", "who", "role"),
    "channel": ("channel",),
    "confidence": ("confidence", "score", "probability"),
}


@takes_frames
def from_table(
    source: pd.DataFrame | str | os.PathLike[str], columns: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the transcripts in a table of turns or words as payloads, for the loaders and `Corpus.add`.

    Args:
        source: A DataFrame, or the path of a .csv, .tsv, .xlsx, .parquet or .jsonl file.
        columns: The table's name of each of these columns: `text` (needed), `transcript_id`, `speaker`, `channel`,
            `confidence`, and the times, either `start_ms` and `end_ms` (milliseconds) or `start` and `end` (seconds, or
            text such as "1:02.5"). Columns that are not given are found by common names, such as "Speaker" or "Begin".

    Returns:
        One payload per transcript. Other columns are kept in `extra`. Rows with one word each are words, others turns.

    Raises:
        OptionError: The table has no such column, no column with text, or a time that cannot be read.
        MissingExtraError: An Excel file needs openpyxl.

    Example:
        >>> df = pd.DataFrame({"Who": ["Ann"], "Said": ["Good day."], "Begin": [1.5], "End": [2.5]})
        >>> payloads = from_table(df, columns={"speaker": "Who", "text": "Said", "start": "Begin"})
        >>> [(turn["speaker"], turn["text"], turn["start"], turn["end"]) for turn in payloads[0]["utterances"]]
        [('Ann', 'Good day.', 1500, 2500)]
    """
    if not isinstance(columns, Mapping | None):
        raise OptionError(f'columns is a dict such as {{"text": "Said"}}, got {shown(columns)}')
    df = source if isinstance(source, pd.DataFrame) else _read(Path(source))
    of = _columns(df, dict(columns or {}))
    df = df.astype(object).where(df.notna(), None)
    ids = df[of["transcript_id"]] if "transcript_id" in of else pd.Series([None] * len(df), index=df.index)
    payloads = []
    for name, rows in df.groupby(ids, sort=False, dropna=False) if len(df) else ():
        payloads.append({"id": None if pd.isna(name) else str(name), **_payload(rows, of)})
    return payloads


def of_text(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read CSV or TSV with column names in the first line."""
    first = text.partition("\n")[0].rstrip("\r")
    separator = max("\t,;|", key=first.count)
    if separator == "," and (table := table_of(name.strip('"') for name in first.split(","))) is not None:
        return _named(typed_csv(text.encode(), table))
    return _named(pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, na_values=[""]))


def of_parquet(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Read a table in Parquet."""
    return _named(pd.read_parquet(io.BytesIO(data)))


def of_excel(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Read the sheets of an Excel file that have rows with a text, or the first one if none has."""
    sheets = _excel(io.BytesIO(data), None)
    spoken = {name: df for name, df in sheets.items() if len(df) and (len(sheets) == 1 or _has_text(df))}
    named = [(name, _named(df)) for name, df in (spoken or dict([*sheets.items()][:1])).items()]
    return [
        (sheet if own == "table" and len(named) > 1 else own, payload) for sheet, rows in named for own, payload in rows
    ]


def _has_text(df: pd.DataFrame) -> bool:
    try:
        return bool(_columns(df, {}))
    except OptionError:
        return False


def is_json_lines(data: bytes, _: str) -> bool:
    """Return True for JSON lines with rows of a table of transcripts."""
    first = data.lstrip()[:100_000].partition(b"\n")[0]
    return first.startswith(b"{") and all(name in first for name in (b'"transcript_id"', b'"text"', b'"start_ms"'))


def of_json_lines(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Read JSON lines with rows of a table."""
    return _named(pd.DataFrame([orjson.loads(line) for line in data.splitlines() if line.strip()]))


def _named(df: pd.DataFrame) -> list[tuple[str, dict[str, Any]]]:
    """Return the transcripts in a table with their names."""
    if (table := table_of(df.columns)) is not None:
        return [(name or payload["id"], payload) for name, payload in payloads_of({table.name: df})]
    try:
        payloads = from_table(df)
    except OptionError as error:
        raise PayloadError(str(error)) from None
    return [(payload["id"] or "table", {**payload, "id": payload["id"]}) for payload in payloads]


def _excel(source: Any, sheet: int | None = 0) -> Any:
    """Return a sheet, or all of them by name."""
    try:
        return pd.read_excel(source, sheet, dtype=object)
    except ImportError:
        raise MissingExtraError("excel", "Reading Excel files") from None


def _read(path: Path) -> pd.DataFrame:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        return pd.read_csv(path, sep="\t" if kind == ".tsv" else None, engine="python", dtype=str)
    if kind == ".xlsx":
        df: pd.DataFrame = _excel(path)
        return df
    if kind in (".parquet", ""):
        return pd.read_parquet(path)
    if kind == ".jsonl":
        return pd.read_json(path, lines=True, dtype=False)
    raise OptionError(f"a table is a .csv, .tsv, .xlsx, .parquet or .jsonl file, got {str(path)!r}")


def _columns(df: pd.DataFrame, given: dict[str, str]) -> dict[str, str]:
    """Return the table's name of each column of ours that it has."""
    if unknown := [name for name in given if name not in _NAMES]:
        raise OptionError(f"columns has the key {unknown[0]!r}; allowed are {', '.join(_NAMES)}")
    if missing := [name for name in given.values() if name not in df.columns]:
        raise OptionError(f"the table has no column {shown(missing[0])}; it has {', '.join(map(str, df.columns))}")
    lower = {re.sub(r"\W+", "_", str(name)).strip("_").lower(): name for name in reversed(df.columns)}
    columns = dict(given)
    for name, usual in _NAMES.items():
        column = next(
            (lower[spelling] for spelling in usual if spelling in lower and lower[spelling] not in columns.values()),
            None,
        )
        if name not in columns and column is not None:
            columns[name] = column
    rows = columns.get("transcript_id")
    if rows is not None and rows not in given.values() and str(rows).lower() == "id" and df[rows].is_unique:
        del columns["transcript_id"]  # it numbers the rows
    if "text" not in columns:
        if not len(df.columns):
            raise OptionError("the table has no columns; it needs one with text")
        have = ", ".join(map(str, df.columns))
        raise OptionError(
            f"the table has no column with text, such as text or transcript; its columns are {have}. "
            'voxframe.importers.from_table(df, columns={"text": ...}) names one'
        )
    return columns


def _payload(rows: pd.DataFrame, of: Mapping[str, str]) -> dict[str, Any]:
    turns = []
    has_marks = rows.columns.isin(around := ("prepunctuation", "punctuation")).sum() == len(around)
    if has_marks and rows[of["text"]].str.contains(r"\w|<", na=True).all():  # of Rev's fstalign, not as rows too
        before, after = (rows[name].fillna("") for name in around)
        rows = rows.assign(**{of["text"]: before + rows[of["text"]].fillna("") + after}).drop(columns=[*around])
    extras = [name for name in rows.columns if name not in of.values()]
    records = rows.to_dict("records")
    unit = unit_of(
        (str(row[of["text"]] or ""), *(_number(row.get(of.get(s))) for s in ("start", "end"))) for row in records
    )
    for row in records:
        start, end = _time(row, of, "start", unit), _time(row, of, "end", unit)
        if start is not None and end is None and (length := _time(row, of, "duration", unit)) is not None:
            end = start + length
        at = {name: row[of[name]] for name in ("text", "speaker", "channel", "confidence") if name in of}
        extra = {str(name): row[name] for name in extras if row[name] is not None}
        turns.append(
            SpokenTurn(
                str(at["text"] or ""),
                start,
                end,
                label(at.get("speaker")),
                confidence=number(at.get("confidence")),
                channel=label(at.get("channel")),
                source={"source": extra} if extra else None,
            )
        )
    if "word_idx" in rows or all(len(split_words(turn.text)) <= 1 for turn in turns):
        return from_words(
            [SpokenWord(t.text, t.start, t.end, t.confidence, t.speaker, t.channel, t.source) for t in turns]
        )
    return from_turns(turns)


def _time(row: Mapping[Any, Any], of: Mapping[str, str], side: str, unit: str) -> int | None:
    exact = row[of[f"{side}_ms"]] if f"{side}_ms" in of else None
    value = row[of[side]] if side in of else None
    at = value if exact is None else exact
    try:
        if isinstance(at, str) and "day" in at:  # as pandas writes a timedelta
            at = pd.Timedelta(at)
        if isinstance(at, dt.timedelta):  # of `timedeltas=True`
            return round(at.total_seconds() * 1000)
        if exact is None and unit == "s":
            return ms(value)
        return None if at is None else round(float(at))
    except (TypeError, ValueError):
        raise OptionError(
            f"{shown(at)} in the column of the {side} is no time; allowed are seconds, milliseconds, and text such as "
            "'1:02.5'"
        ) from None


def _number(value: Any) -> Any:
    """Return a number that is given as text as a number, and everything else as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
