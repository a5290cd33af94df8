"""Names of recordings in results of measures, plots and groups: from the column `recording`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import pandas as pd

from voxframe._arrow import TEXT_DTYPE
from voxframe.errors import caller

P = ParamSpec("P")
R = TypeVar("R")

_ID, _NAME = "transcript_id", "recording"
_VOICES = ("speaker_name", "channel")  # columns that name a voice without a label
_ID_CHARS = 8  # of an id that tells transcripts of one recording apart


def keeps_recordings(function: Callable[P, pd.DataFrame]) -> Callable[P, pd.DataFrame]:
    """Give the result of a function the column `recording` of its first argument, after `transcript_id`."""

    @wraps(function)
    def with_recordings(*args: P.args, **options: P.kwargs) -> pd.DataFrame:
        result = function(*args, **options)
        source = next((value for value in (*args, *options.values()) if isinstance(value, pd.DataFrame)), None)
        if source is not None and {_ID, _NAME} <= {*source.columns} and _ID in result and _NAME not in result:
            add_recordings(result, known_names(result[_ID].unique(), source))
        return result

    return with_recordings


def add_recordings(df: pd.DataFrame, names: Mapping[Any, str]) -> None:
    """Insert the column `recording` into a DataFrame after `transcript_id`, or fill its nulls.

    Args:
        names: Names by transcript id. A transcript without one has its id as the name.
    """
    code, ids = pd.factorize(df[_ID])
    texts = [*(names.get(transcript_id, transcript_id) for transcript_id in ids), None]
    values = pd.Series(pd.array(texts, dtype=TEXT_DTYPE).take(code), index=df.index)  # -1 is a row without an id
    if _NAME in df:
        df[_NAME] = df[_NAME].fillna(values)
    else:
        df.insert([*df.columns].index(_ID) + 1, _NAME, values)


#: True while a measure runs, so that the measures that it is made of do not warn again.
_IS_RUNNING: ContextVar[bool] = ContextVar("a measure is running", default=False)


@contextmanager
def as_a_part() -> Iterator[None]:
    """Let measures that something else is made of leave out rows without a warning."""
    token = _IS_RUNNING.set(True)
    try:
        yield
    finally:
        _IS_RUNNING.reset(token)


def uses(
    *columns: str, needs: Sequence[str] = (), empty: str = "", pauses: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a measure or plot that leaves out rows with a null in these columns: one warning says how many and why.

    Another warning counts turns whose ends are guessed, if the measure uses ends.

    Args:
        needs: Columns whose nulls are only named if the result has no rows.
        empty: Why there are no rows if nothing is null, such as "no sentence ends with a question mark".
        pauses: The measure is of pauses between words: a warning counts words that share the time of their segment.

    Warns:
        UserWarning: The measure cannot use some rows, or has no rows from a table with rows.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def with_warning(*args: P.args, **options: P.kwargs) -> R:
            if _IS_RUNNING.get():
                return function(*args, **options)
            with as_a_part():
                found = function(*args, **options)
            is_empty = isinstance(found, pd.DataFrame) and found.empty
            tables = [value for value in (*args, *options.values()) if isinstance(value, pd.DataFrame)]
            why = _left_out(tables, columns, (*columns, *needs), is_empty=is_empty)
            if is_empty and not why and empty and any(map(len, tables)):
                why = [f"the result is empty, because {empty}"]
            if "end_ms" in columns:
                why += _guessed_ends(tables)
            if pauses:
                why += _shared_times(tables)
            for reason in why:
                warnings.warn(f"{function.__name__}: {reason}", stacklevel=caller())
            return found

        return with_warning

    return decorated


def _left_out(
    tables: Sequence[pd.DataFrame], columns: Sequence[str], needed: Sequence[str], *, is_empty: bool
) -> list[str]:
    """Say how many rows lack what a measure uses, or needs for a result."""
    named = needed if is_empty else columns
    tables = [table for table in tables if {*named} & {*table.columns}]
    if not tables:
        return []
    parts = [table.reindex(columns=table.columns.intersection([*named])).isna() for table in tables]
    for table, part in zip(tables, parts, strict=True):
        if "speaker" in part and {*_VOICES} & {*table.columns}:
            part["speaker"] &= table[table.columns.intersection([*_VOICES])].isna().all(axis=1)
    unknown: pd.DataFrame = pd.concat(parts)
    unknown = unknown.astype("boolean").fillna(False).astype(bool)  # a column that only another table has
    count = int(unknown.any(axis=1).sum())
    lacking = [name for name in named if name in unknown and unknown[name].any()]
    what = dict.fromkeys("times" if name.endswith("_ms") else name for name in lacking)
    empty = ", so that the result is empty" if is_empty and count == len(unknown) else ""
    reason = f"{count:,} of {len(unknown):,} rows have no {' or '.join(what)} and are left out{empty}"
    return [reason] if count else []


def _guessed_ends(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Say how many turns reach to the turn beside them, because their source has no ends."""
    guessed, rows = 0, 0
    for table in tables:
        if {"utterance_idx", "timing"} <= {*table.columns} and "word_idx" not in table:
            guessed, rows = guessed + int((table["timing"] == "shared").sum()), rows + len(table)
    reason = (
        f"{guessed:,} of {rows:,} turns lack a start or an end in their source and reach to the turn beside them, so "
        "that their times include pauses (timing is 'shared')"
    )
    return [reason] if guessed else []


def _shared_times(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Say how many words have no times of their own, so that no pause shows between them."""
    timings = [table["timing"] for table in tables if {"word_idx", "timing"} <= {*table.columns}]
    shared, words = sum(int((timing == "segment").sum()) for timing in timings), sum(map(len, timings))
    reason = f"{shared:,} of {words:,} words share the time of their segment, so that pauses in it are not known"
    return [reason] if shared else []


def known_names(ids: Iterable[Any], *tables: pd.DataFrame | None) -> dict[Any, str]:
    """Return the names of recordings by transcript id, from the column `recording`.

    Args:
        ids: Ids of the transcripts.
        *tables: Tables that may have the columns `transcript_id` and `recording`.
    """
    names: dict[Any, str] = {}
    for table in tables:
        if table is not None and {_ID, _NAME} <= {*table.columns}:
            rows = table[[_ID, _NAME]].drop_duplicates().dropna().drop_duplicates(_ID)
            names |= {id_: str(name) for id_, name in rows.itertuples(index=False)}
    return {id_: names[id_] for id_ in ids if id_ in names}


def distinct_names(ids: Sequence[str | None], *tables: pd.DataFrame | None) -> list[str | None]:
    """Return a different name for each transcript: its recording, the id if it is unknown.

    A recording with several transcripts is followed by the start of the id, as in "call-1f3a22bc".

    Args:
        ids: Ids of the transcripts, each once.
        *tables: As for `known_names`.

    Example:
        >>> rows = pd.DataFrame({"transcript_id": ["a1", "b2", "c3"], "recording": ["call", "call", "talk"]})
        >>> distinct_names(["a1", "b2", "c3", "d4"], rows)
        ['call-a1', 'call-b2', 'talk', 'd4']
    """
    known = known_names(ids, *tables)
    names = [known.get(id_, id_) for id_ in ids]
    shared = set[Any]()
    for chars in (_ID_CHARS, None):
        shared |= repeated(names)
        names = [
            f"{known[id_]}-{id_[:chars]}" if id_ in known and id_ is not None and name in shared else name
            for id_, name in zip(ids, names, strict=True)
        ]
    return names


def repeated(names: Iterable[Any]) -> set[Any]:
    """Return the names that occur more than once."""
    return {name for name, count in Counter(names).items() if count > 1}
