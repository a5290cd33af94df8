"""Metadata: columns about recordings (customer, date, group), stored in the ledger and joined to any table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe._arrow import DTYPES, takes_frames
from voxframe._text import masked, quantity
from voxframe.corpus.archive import Archive
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.conditions import PERSON, Triple, Wanted, Where, all_of, clauses, columns_of, table_columns
from voxframe.corpus.job import Job
from voxframe.errors import CorpusError, OptionError
from voxframe.schema import CORPUS_TABLES, JOBS, RECORDING_COLUMNS
from voxframe.validators import name_list, shown

_ID = "transcript_id"


class Metadata:
    """Columns about the recordings of a corpus, as `corpus.metadata`."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __repr__(self) -> str:
        return f"Metadata({str(self._archive.path)!r})"

    @takes_frames
    def set(self, about: pd.DataFrame) -> pd.DataFrame:
        """Set columns about recordings, such as customer, date or group, in addition to those passed to `submit`.

        They join to every table with `table(..., metadata=True)`. They also work in `where`, `search`, `counts(by=...)`
        and `export`, and in `sql` as the table `metadata`. Other columns and transcripts keep their values; a null
        removes a value.

        Args:
            about: A DataFrame with `transcript_id` or `recording`, and columns of text, numbers, booleans or dates.
                Names of recordings may stand for ids. The columns `recording` and `source` themselves do not change.

        Returns:
            The metadata of all transcripts, as `get` returns it.

        Raises:
            OptionError: A column or value cannot be stored, or a transcript occurs twice; nothing was changed.
            CorpusError: A transcript is not in the corpus, a recording has several transcripts, or the corpus cannot be
                written.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> corpus.raw.put("t1", b'{"id": "t1", "words": [{"text": "Hi", "start": 0, "end": 90}]}')
            >>> _ = corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"]}))
            >>> corpus.table("words", where=[("customer", "==", "Acme")], metadata=True)[["text", "customer"]].values
            array([['Hi', 'Acme']], dtype=object)
        """
        about = self._by_id(about)
        names = [name for name in about.columns if name != _ID]
        rows = {
            row[_ID]: metadata_to_json({name: row[name] for name in names})
            for row in about.astype(object).to_dict("records")
        }
        with clear_errors(self._archive.path):
            is_there = self._archive.path.is_dir()
            unknown = self._archive.ledger.set_metadata(rows, self._archive.has) if is_there else list(rows)
        if unknown:
            raise CorpusError(
                f"{quantity(len(unknown), 'transcript')} not found in the corpus {self._archive.path}, such as "
                f"{unknown[0]!r}{self._archive.similar(unknown[0])}; Corpus.ids() lists its transcripts"
            )
        return self.get()

    def get(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Return the metadata of recordings.

        Args:
            ids: Id or ids, or names of recordings, in this order. None (default): all transcripts in the corpus.

        Returns:
            One row per transcript, even if it has no metadata: `transcript_id`, the `recording` and its `source`, and
            the columns passed to `submit` and `set`. Text is str, integers are Int64, booleans boolean, dates
            datetime64.
        """
        self._archive.report_missing()
        return to_frame(metadata_table(self._archive, ids if ids is None else self._archive.known(ids)))

    def _by_id(self, about: object) -> pd.DataFrame:
        """Return columns to set with their `transcript_id`, after checking them."""
        if not isinstance(about, pd.DataFrame) or not {_ID, "recording"} & {*about.columns}:
            raise OptionError(
                "metadata must be a DataFrame with a column transcript_id or recording, and the columns to set, got "
                f"{shown(about)}"
            )
        key = _ID if _ID in about.columns else "recording"
        recording_columns = [name for name in RECORDING_COLUMNS if name in about.columns and name != key]
        check_columns(about.columns.drop(recording_columns), key)
        if not_text := [value for value in about[key] if not isinstance(value, str)]:
            raise OptionError(
                f"the column {key} must contain only text, got {shown(not_text[0])}; drop rows without a value, "
                "and read numbers as text"
            )
        ids = about[key].map(self._archive.recordings.id)
        if not ids.is_unique:
            raise OptionError(
                f"the column {key} contains {about[key][ids.duplicated()].iloc[0]!r} more than once; keep one row"
            )
        values = about.drop(columns=[name for name in RECORDING_COLUMNS if name in about.columns])
        return values.assign(**{_ID: ids})


def metadata_table(archive: Archive, ids: str | Iterable[str] | None = None) -> pa.Table:
    """Return the metadata of recordings as an Arrow table; see `Metadata.get`.

    The type of a column depends on its values of all recordings, so that all selections of them have the same.
    """
    selected = archive.ids() if ids is None else archive.recordings.ids(ids)
    about = archive.recordings.table(selected)
    rows: dict[str, dict[str, Any]] = {}
    for transcript_id, text in archive.ledger.metadata():
        rows.setdefault(transcript_id, {}).update(metadata_from_json(text))
    names = list(dict.fromkeys(n for row in rows.values() for n in row if n not in RECORDING_COLUMNS))
    places = {transcript_id: place for place, transcript_id in enumerate(rows)}
    order = pa.array([places.get(i, len(rows)) for i in selected], pa.int64())
    for name, column in typed([*rows.values(), {}], names).items():  # the last one is of those without metadata
        about = about.append_column(name, column.take(order))
    return about


def resolve(
    name: str, where: Where | None, about: pa.Table, *, people: bool = True
) -> tuple[Where | None, set[str] | None]:
    """Replace the conditions on metadata by conditions on the ids of the transcripts that match them."""
    not_about = _not_about(name, people=people)
    resolved: list[list[Triple]] = []
    possible: set[str] | None = set()
    for clause in clauses(where):
        on_metadata = [triple for triple in clause if _is_about(triple[0], not_about, about)]
        if not on_metadata:
            resolved.append(clause)
            possible = None
            continue
        matching = set(about.filter(all_of(on_metadata, about.schema))[_ID].to_pylist())
        triples = [triple for triple in clause if triple not in on_metadata]
        resolved.append([(_ID, "in", sorted(matching)), *triples])
        if possible is not None:
            possible |= matching
    return (resolved, possible) if resolved else (where, None)


def with_metadata(
    read: Callable[[list[str], Sequence[str] | None, Where | None], pd.DataFrame],
    name: str,
    about: pa.Table,
    *,
    columns: Sequence[str] | None,
    where: Where | None,
    metadata: Wanted,
    people: bool = True,
) -> pd.DataFrame:
    """Return a table with the requested metadata columns; see `Corpus.table`."""
    of_table, with_own_names = table_columns(name), about
    about = apart(with_own_names, of_table)
    asked = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    new_names = dict(zip(with_own_names.column_names, about.column_names, strict=True))
    for column in (*(asked or ()), *columns_of(where)):
        if column not in of_table and new_names.get(column, column) != column:
            raise CorpusError(
                f"the metadata column {column!r} is called {new_names[column]!r} in the table {name!r}, because the "
                "table has a column whose name differs only in case"
            )
    remaining, possible = resolve(name, where, about, people=people)
    ids = [i for i in about[_ID].to_pylist() if possible is None or i in possible]
    if asked is None:
        return join(read(ids, None, remaining), apart(with_own_names, CORPUS_TABLES[name].names), metadata)
    of_about = [column for column in asked if _is_about(column, _not_about(name, people=people), about)]
    frame = read(ids, list(dict.fromkeys([*(c for c in asked if c not in of_about), _ID])), remaining)
    whole = join(frame, about, [*of_about, *chosen(about, metadata)])
    return whole[[*asked, *(column for column in whole.columns if column not in frame and column not in asked)]]


def apart(about: pa.Table, columns: Collection[str]) -> pa.Table:
    """Return metadata without name conflicts: a column with the name of a table's column becomes `metadata_<name>`."""
    about = about.drop_columns([n for n in RECORDING_COLUMNS if n in columns and n in about.column_names])
    return about.rename_columns(names_apart(about.column_names, columns))


def names_apart(names: Sequence[str], columns: Collection[str]) -> list[str]:
    """Return names of metadata columns, with a prefix for those that conflict with columns of a table; see `apart`."""
    conflicting = {name.lower() for name in columns}  # Delta, Spark and SQL ignore case
    used = conflicting | {name.lower() for name in names}
    renamed = []
    for name in names:
        new = name
        if name != _ID and name.lower() in conflicting:
            while new.lower() in used:
                new = f"metadata_{new}"
            used.add(new.lower())
        renamed.append(new)
    return renamed


def join(frame: pd.DataFrame, about: pa.Table, added: Wanted) -> pd.DataFrame:
    """Append metadata columns to a table."""
    names = chosen(about, added)
    values = to_frame(about.select([_ID, *names])).drop_duplicates(_ID).set_index(_ID)
    rows = values.index.get_indexer(pd.Index(frame[_ID]))
    return frame.assign(**{name: values[name].array.take(rows, allow_fill=True) for name in names})


def chosen(about: pa.Table, metadata: Wanted) -> list[str]:
    """Return the names of the requested metadata columns, without those that the table has itself; see `apart`."""
    available = [name for name in about.column_names if name != _ID]
    if isinstance(metadata, bool):
        return available if metadata else []
    names = []
    for name in dict.fromkeys(name_list(metadata)):
        if name in RECORDING_COLUMNS and name not in available:
            continue
        column = name if name in available else f"metadata_{name}"
        if column not in available:
            raise CorpusError(
                f"there is no metadata column {name!r}; the columns are: {', '.join(available) or '(none)'}. "
                "corpus.metadata.set adds columns"
            )
        names.append(column)
    return names


def to_frame(about: pa.Table) -> pd.DataFrame:
    """Return metadata as a DataFrame."""
    frame: pd.DataFrame = about.to_pandas(types_mapper=DTYPES.get)
    return frame


def check_columns(columns: pd.Index[Any], key: str) -> None:
    """Check that all columns except `key` can be stored as metadata."""
    if not columns.is_unique:
        raise OptionError(
            f"the DataFrame has the column {columns[columns.duplicated()][0]!r} more than once; rename or drop one"
        )
    bad = [name for name in columns if name != key and (not isinstance(name, str) or not name or name in JOBS.names)]
    if bad:
        raise OptionError(
            f"metadata cannot be named {', '.join(map(repr, bad))}: a name must be non-empty text and must not be a "
            "column of Corpus.jobs(). Rename the column, or leave it out with df.drop(columns=...)"
        )


def _not_about(name: str, *, people: bool) -> list[str]:
    """Return the columns of a table that are not metadata, with `person` if it has speakers."""
    columns = table_columns(name)
    return [*columns, PERSON.name] if people and "speaker" in columns else columns


def _is_about(column: str, columns: Collection[str], about: pa.Table) -> bool:
    return column not in columns and column in about.column_names


def metadata_to_json(metadata: Mapping[str, Any]) -> str:
    """Return the metadata of a recording as JSON. Times become `{"datetime": ..., "zone": ...}`."""
    text = json.dumps({name: _plain(name, value) for name, value in metadata.items()}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"metadata is not valid Unicode, it contains an unpaired surrogate: {text!r:.200}") from None
    return text


def metadata_from_json(text: str) -> dict[str, Any]:
    """Return the metadata of a recording from the JSON of `metadata_to_json`."""
    values: dict[str, Any] = json.loads(text)
    return {name: _timestamp(value) if isinstance(value, dict) else value for name, value in values.items()}


def typed(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, pa.Array]:
    """Return metadata columns by name, with one value per row."""
    return {name: _column([row.get(name) for row in rows]) for name in names}


def jobs_frame(jobs: Sequence[Job]) -> pd.DataFrame:
    """Return jobs as the table `jobs` with their metadata columns. Passwords and signatures in URLs are masked."""
    rows = [asdict(job) | {"source": masked(job.source), "error": job.error and masked(job.error)} for job in jobs]
    df = frames.to_pandas(pa.Table.from_pylist(rows, schema=JOBS.arrow), "jobs")
    return beside(df, [job.metadata for job in jobs])


def beside(df: pd.DataFrame, metadata: Sequence[str]) -> pd.DataFrame:
    """Append metadata columns to a table."""
    rows = [metadata_from_json(text) for text in metadata]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return df
    columns = pa.table(typed(rows, names)).to_pandas(types_mapper=DTYPES.get)
    return df.assign(**{name: columns[name].array for name in names})


def _plain(name: str, value: Any) -> Any:
    if getattr(value, "ndim", None) == 0:  # a NumPy scalar
        value = pd.Timestamp(value) if value.dtype.kind == "M" else value.item()
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, datetime | date):
        zone = getattr(getattr(value, "tzinfo", None), "key", None)  # the zone's name: an offset lacks summer time
        return {"datetime": value.isoformat()} | ({"zone": zone} if zone else {})
    if isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"metadata {name!r} must be text, numbers, booleans or dates, got {shown(value)}")


def _timestamp(value: Mapping[str, str]) -> pd.Timestamp:
    moment = pd.Timestamp(value["datetime"])
    return moment.tz_convert(value["zone"]) if "zone" in value else moment


def _column(values: list[Any]) -> pa.Array:
    zones = {str(value.tz) for value in values if isinstance(value, pd.Timestamp)}
    if len(zones) > 1 and "None" not in zones:
        values = [value.tz_convert("UTC") if isinstance(value, pd.Timestamp) else value for value in values]
    try:
        column = None if len(zones) > 1 and "None" in zones else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is None:
        column = pa.array([None if value is None else str(value) for value in values], pa.string())
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column
