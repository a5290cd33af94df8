"""Tables of words or turns become payloads: DataFrames, CSV, TSV, Excel, and data sets of several of our own tables.

The dictionary of columns has the path of each value in a payload (`Column.path`), so none of our tables has code of its
own.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from voxframe._arrow import takes_frames
from voxframe._text import join_words, split_words
from voxframe.errors import MissingExtraError, OptionError, PayloadError
from voxframe.formats.payload import SpokenTurn, SpokenWord, from_turns, from_words, label, ms, number
from voxframe.formats.whisper import unit_of
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES, Column, Table
from voxframe.validators import shown

_SUFFIXES = (".parquet", ".csv", ".jsonl")
_PATHS = {column.path for name in TRANSCRIPT_TABLES for column in TABLES[name].columns if column.path}
#: Paths of lists and objects whose values have columns of their own.
_CONTAINERS = {path for path in _PATHS if any(other.startswith((f"{path}.", f"{path}[")) for other in _PATHS)}
_SPOKEN = frozenset({"words", "utterances"})


def dataset_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each table of a data set in a folder, or nothing if it has no table of words or turns."""
    by_table: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        name = path.name if path.is_dir() else path.stem
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path] if path.suffix in _SUFFIXES else []
        if name in TABLES and files and all(_has(file, "transcript_id") for file in files):
            by_table.setdefault(name, []).extend(files)
    is_ours = len(by_table) > 1 or all(_has(file, "timing") for files in by_table.values() for file in files)
    return by_table if is_ours and by_table.keys() & _SPOKEN else {}


def _has(file: Path, column: str) -> bool:
    """Return True if a file has a column, in its rows or in the names of its folders."""
    try:
        if file.suffix == ".parquet":
            return column in pq.read_schema(file).names or f"/{column}=" in file.as_posix()
        with file.open("rb") as lines:
            first = lines.readline(1 << 20)
    except (pa.ArrowException, OSError):
        return False
    return column.encode() in first or not first  # JSON lines without rows have no columns


def of_folder(folder: Path) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield recording and payload of each transcript of a data set."""
    tables, name = {}, ""
    try:
        for name, paths in dataset_files(folder).items():
            if name in TRANSCRIPT_TABLES:  # sentences and paragraphs are made from the words
                tables[name] = pd.concat(
                    [_dataset_rows(path, folder, TABLES[name]) for path in paths], ignore_index=True
                )
        name = "transcripts"
        payloads = [*payloads_of(tables)]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise PayloadError(f"the table {name} of the data set {str(folder)!r} cannot be read ({reason})") from None
    yield from payloads


def _dataset_rows(path: Path, folder: Path, table: Table) -> pd.DataFrame:
    if path.suffix == ".csv":
        return typed_csv(path.read_bytes(), table)
    if path.suffix == ".jsonl":
        return pd.DataFrame([orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()])
    columns = [part.partition("=")[0] for part in path.relative_to(folder).parts[:-1] if "=" in part]
    values = ds.partitioning(pa.schema([(name, pa.string()) for name in columns]), flavor="hive")
    return _frame(ds.dataset(path, partitioning=values, partition_base_dir=str(folder)).to_table())


def typed_csv(data: bytes, table: Table) -> pd.DataFrame:
    """Return the rows of a CSV file of one of our tables. An empty field is null, and `""` is an empty text."""
    names = next(csv.reader(io.StringIO(data[: 1 << 20].decode("utf-8-sig", "replace"))))
    types = {column.name: column.type for column in CORPUS_TABLES[table.name].columns}
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()) | types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    rows = pyarrow.csv.read_csv(io.BytesIO(data), convert_options=options, parse_options=parse)
    return _frame(pa.table({name: rows[name] if name in types else _typed(rows[name]) for name in rows.column_names}))


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of metadata with the type that its texts are written with; "001" is a text."""
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("s")):
        with suppress(pa.ArrowException):
            typed = column.cast(kind)
            if typed.cast(pa.string()).equals(column):
                return typed
    return column


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return plain Python objects, with None for nulls."""
    return pd.DataFrame({name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names})


def table_of(columns: Iterable[object]) -> Table | None:
    """Return which of our tables of words or turns has these columns, or None."""
    names = {*columns}
    marks = {"words": {"word_idx", "start_ms", "timing"}, "utterances": {"utterance_idx", "first_word_idx", "start_ms"}}
    return next(
        (TABLES[name] for name, required in marks.items() if {"transcript_id", "text", *required} <= names), None
    )


def payloads_of(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield recording and payload of each transcript that the tables have. Corrected texts and given names are kept.

    Times that reading the payload makes again (`timing`) are left out: those that turns have from their words, and
    those of words that share the time of their turn.
    """
    rows: dict[str, dict[str, list[Any]]] = {}
    for name in (name for name in TRANSCRIPT_TABLES if name in tables):
        df = tables[name]
        for row in df.astype(object).where(df.notna(), None).to_dict("records") if len(df) else ():
            rows.setdefault(str(row["transcript_id"]), {}).setdefault(name, []).append(row)
    for transcript_id, by_table in rows.items():
        payload: dict[str, Any] = {"id": transcript_id, "status": "completed"}
        for name, group in by_table.items():
            for row in group:
                _put(payload, TABLES[name], row)
        recording = next((group[0]["recording"] for group in by_table.values() if group[0].get("recording")), None)
        yield recording, _whole(payload, by_table)


def _put(payload: dict[str, Any], table: Table, row: Mapping[Any, Any]) -> None:
    """Put the values of a row where they were in its payload."""
    keys = [row.get(name) for name in table.key if name != "transcript_id"]
    timing = row.get("timing")
    is_of_words = table.name == "utterances" and timing in ("shared", "word")
    item = payload
    for column in table.columns:
        value = row.get(column.name)
        if column.name == "speaker":
            value = row.get("speaker_name") or value
        if column.path is None or column.path in _CONTAINERS or column.name == "transcript_id":
            continue
        *place, last = column.path.split(".")
        target = _at(payload, place, keys)
        item = target if target is not None and "[]" in "".join(place[-1:]) else item
        if target is not None and value is not None and not (is_of_words and column.name in ("start_ms", "end_ms")):
            target[str(keys[-1]) if last == "*" else last] = _value(value, column)
    if row.get("extra"):
        _merge(item, orjson.loads(row["extra"]))
    if table.name == "transcripts":
        columns = {*CORPUS_TABLES["transcripts"].names, "audio"}
        payload.update({name: value for name, value in row.items() if name not in columns and value is not None})


def _at(value: dict[str, Any], path: list[str], keys: list[Any]) -> dict[str, Any] | None:
    """Return the object at a path, after making it; None if a key is null."""
    remaining = list(keys)
    for part in path:
        name = part.removesuffix("[]")
        if part == "*":
            name = remaining[-1]
        if name is None:
            return None
        if not part.endswith("[]"):
            value = value.setdefault(name, {})
            continue
        items = value.setdefault(name, [])
        if not remaining or (index := remaining.pop(0)) is None:
            return None
        while len(items) <= int(index):
            items.append({})
        value = items[int(index)]
    return value


def _value(value: Any, column: Column) -> Any:
    if column.json and isinstance(value, str):
        return orjson.loads(value)
    if isinstance(value, float) and pa.types.is_integer(column.type) and value.is_integer():
        return int(value)
    return value


def _merge(target: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Put fields into an object, also into the objects inside it."""
    for name, value in fields.items():
        if isinstance(value, Mapping) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


def _whole(payload: dict[str, Any], rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a payload with the words of its turns, or with the turns of its words, whichever table is missing."""
    words = payload.get("words") or []
    spoken = list(zip(rows.get("words", ()), words, strict=False))
    for row, turn in zip(rows.get("utterances", ()), payload.get("utterances") or (), strict=False):
        if "words" not in turn and words and row.get("first_word_idx") is not None:
            first = int(row["first_word_idx"])
            inside = spoken[first : first + int(row["word_count"] or 0)]
            turn["words"] = [word for _, word in inside]
            if row.get("timing") == "segment" and all(word["timing"] == "segment" for word, _ in inside):
                _unshare(turn)
    if "utterances" not in rows and any(row.get("utterance_idx") is not None for row in rows.get("words", ())):
        payload["utterances"] = []
        for _, run in groupby(spoken, key=lambda pair: pair[0].get("utterance_idx")):
            inside = list(run)
            payload["utterances"].append(turn := _turn([word for _, word in inside]))
            if all(row.get("timing") == "segment" for row, _ in inside):
                _unshare(turn)
    if "words" not in rows and "utterances" in rows:
        for turn in payload["utterances"]:
            who = {name: turn[name] for name in ("speaker", "channel") if name in turn}
            turn.setdefault("words", [{"text": text, **who} for text in split_words(turn.get("text") or "")])
        payload["words"] = [word for turn in payload["utterances"] for word in turn["words"]]
    if not payload.get("text"):
        texts = payload.get("utterances") or payload.get("words") or ()
        payload["text"] = join_words(item.get("text") for item in texts)
    return payload


def _unshare(turn: dict[str, Any]) -> None:
    """Delete the times of the words of a turn if sharing its time by characters gives them again."""
    start, end, words = turn.get("start"), turn.get("end"), turn["words"]
    if start is None or end is None:
        return
    reach = [0, *accumulate(max(len(word.get("text") or ""), 1) for word in words)]
    shared = [round(start + (end - start) * n / reach[-1]) for n in reach]
    if [(word.get("start"), word.get("end")) for word in words] == [*pairwise(shared)]:
        for word in words:
            del word["start"], word["end"]


def _turn(words: list[dict[str, Any]]) -> dict[str, Any]:
    text = join_words(word.get("text") for word in words)
    who: dict[str, Any] = {name: words[0][name] for name in ("speaker", "channel") if name in words[0]}
    return {"text": text, "start": words[0].get("start"), "end": words[-1].get("end"), **who, "words": words}


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
