"""Data sets of several tables, as `voxframe.export` writes them, become payloads again: the inverse of the tables.

The dictionary of columns has the path of each value in a payload (`Column.path`), so no table has code of its own.
"""

from __future__ import annotations

import csv
import io
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

from voxframe._text import join_words, split_words
from voxframe.errors import PayloadError
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES, Column, Table

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
                tables[name] = pd.concat([_read(path, folder, TABLES[name]) for path in paths], ignore_index=True)
        name = "transcripts"
        payloads = [*payloads_of(tables)]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise PayloadError(f"the table {name} of the data set {str(folder)!r} cannot be read ({reason})") from None
    yield from payloads


def _read(path: Path, folder: Path, table: Table) -> pd.DataFrame:
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
        payload["text"] = join_words(item["text"] for item in texts if item.get("text"))
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
    text = join_words(word["text"] for word in words if word.get("text"))
    who: dict[str, Any] = {name: words[0][name] for name in ("speaker", "channel") if name in words[0]}
    return {"text": text, "start": words[0].get("start"), "end": words[-1].get("end"), **who, "words": words}
