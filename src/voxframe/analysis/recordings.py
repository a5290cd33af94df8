"""Names of recordings that travel with a DataFrame, in `DataFrame.attrs`, so that plots and groups can show them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeAlias

import pandas as pd

from voxframe.errors import caller

P = ParamSpec("P")

_KEY, _ID, _NAME = "recordings", "transcript_id", "recording"
_ID_CHARS = 8  # of an id that tells transcripts of one recording apart


class CorpusNames(Protocol):
    """Names of the recordings of a corpus, read when they are needed."""

    def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of the recordings of transcripts, by id."""

    def shared_names(self) -> set[str]:
        """Return the names of the recordings that have several transcripts in the corpus."""


#: Names by transcript id, or the names of a corpus.
Source: TypeAlias = "Mapping[str, str] | CorpusNames"


class AttachedNames(dict[str, str]):
    """Sources of names as a value of `DataFrame.attrs`.

    pandas copies `attrs` in most operations, compares them in `concat` and writes them to Parquet files as JSON. So
    copying returns the object itself, and JSON contains an empty dict.

    Args:
        sources: The sources; the first one that knows a transcript names it.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__()
        self._sources = list(sources)

    def names(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the names of the recordings of transcripts, by id; unknown ones are missing."""
        found: dict[str, str] = {}
        for source in self._sources:
            if rest := [one for one in ids if one not in found]:
                if isinstance(source, Mapping):
                    found |= {one: source[one] for one in rest if one in source}
                else:
                    found |= source.names(rest)
        return found

    def shared_names(self) -> set[str]:
        """Return the names of recordings with several transcripts, also of those that are not among the rows."""
        given: dict[str, str] = {}
        found: set[str] = set()
        for source in self._sources:
            if isinstance(source, Mapping):
                given |= source
            else:
                found |= source.shared_names()
        return found | repeated(given.values())

    def __repr__(self) -> str:
        return "<names of recordings>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AttachedNames) and self._sources == other._sources

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __deepcopy__(self, memo: object) -> AttachedNames:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return AttachedNames, (self._sources,)


def attach(df: pd.DataFrame, *sources: Source) -> pd.DataFrame:
    """Attach names of recordings to a DataFrame, and return it.

    Args:
        df: Rows with `transcript_id`.
        *sources: The names.
    """
    df.attrs[_KEY] = AttachedNames(sources)
    return df


def keeps_names(function: Callable[P, pd.DataFrame]) -> Callable[P, pd.DataFrame]:
    """Attach the names of the first argument of a function to its result."""

    @wraps(function)
    def with_names(*args: P.args, **options: P.kwargs) -> pd.DataFrame:
        found = function(*args, **options)
        source = next((one for one in (*args, *options.values()) if isinstance(one, pd.DataFrame)), None)
        if source is not None and _KEY in source.attrs:
            found.attrs[_KEY] = source.attrs[_KEY]
        return found

    return with_names


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


def uses(*columns: str, needs: Sequence[str] = ()) -> Callable[[Callable[P, pd.DataFrame]], Callable[P, pd.DataFrame]]:
    """Decorate a measure that leaves out rows with a null in these columns: one warning says how many and why.

    Args:
        needs: Columns whose nulls are only named if the result has no rows.

    Warns:
        UserWarning: The measure cannot use some rows, or none.
    """

    def decorated(function: Callable[P, pd.DataFrame]) -> Callable[P, pd.DataFrame]:
        @wraps(function)
        def with_warning(*args: P.args, **options: P.kwargs) -> pd.DataFrame:
            if _IS_RUNNING.get():
                return function(*args, **options)
            with as_a_part():
                found = function(*args, **options)
            tables = [one for one in (*args, *options.values()) if isinstance(one, pd.DataFrame)]
            named = [*columns, *(needs if found.empty else ())]
            if not tables:
                return found
            unknown = pd.concat([table.reindex(columns=table.columns.intersection(named)).isna() for table in tables])
            unknown = unknown.astype("boolean").fillna(False).astype(bool)  # a column that only another table has
            if count := int(unknown.any(axis=1).sum()):
                lacking = [name for name in named if name in unknown and unknown[name].any()]
                what = dict.fromkeys("times" if name.endswith("_ms") else name for name in lacking)
                empty = ", so that the result is empty" if found.empty else ""
                warnings.warn(
                    f"{function.__name__}: {count:,} of {len(unknown):,} rows have no {' or '.join(what)} and are left "
                    f"out{empty}",
                    stacklevel=caller(),
                )
            return found

        return with_warning

    return decorated


def known_names(ids: Sequence[Any], *tables: pd.DataFrame | None) -> dict[Any, str]:
    """Return the names of recordings by transcript id, from the column `recording`, otherwise from attached names.

    Args:
        ids: Ids of the transcripts.
        *tables: Tables that may have the columns `transcript_id` and `recording`, or names.
    """
    found: dict[Any, str] = {}
    for table in tables:
        if table is None:
            continue
        if isinstance(attached := table.attrs.get(_KEY), AttachedNames):
            found |= attached.names([one for one in dict.fromkeys(ids) if isinstance(one, str)])
        if {_ID, _NAME} <= {*table.columns}:
            rows = table[[_ID, _NAME]].dropna().drop_duplicates(_ID)
            found |= {id_: str(name) for id_, name in rows.itertuples(index=False)}
    return found


def distinct_names(ids: Sequence[str | None], *tables: pd.DataFrame | None) -> list[str | None]:
    """Return a different name for each transcript: its recording, the id if it is unknown.

    A recording with several transcripts is followed by the start of the id, as in "call-1f3a22bc". Attached names also
    cover transcripts that have no rows in the table, so a part of a table gives the same names as the whole table.

    Args:
        ids: Ids of the transcripts, each once.
        *tables: As for `known_names`.

    Example:
        >>> rows = pd.DataFrame({"transcript_id": ["a1", "b2", "c3"], "recording": ["call", "call", "talk"]})
        >>> distinct_names(["a1", "b2", "c3", "d4"], rows)
        ['call-a1', 'call-b2', 'talk', 'd4']
    """
    known = known_names(ids, *tables)
    attached = [table.attrs.get(_KEY) for table in tables if table is not None]
    shared = set[str]().union(*(one.shared_names() for one in attached if isinstance(one, AttachedNames)))
    names = [known.get(one, one) for one in ids]
    for chars in (_ID_CHARS, None):
        shared |= repeated(names)
        names = [
            f"{known[one]}-{one[:chars]}" if one in known and one is not None and name in shared else name
            for one, name in zip(ids, names, strict=True)
        ]
    return names


def repeated(names: Iterable[Any]) -> set[Any]:
    """Return the names that occur more than once."""
    return {name for name, count in Counter(names).items() if count > 1}
