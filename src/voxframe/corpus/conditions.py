"""Conditions on rows as pyarrow expressions, after a check that each value fits the type of its column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types

from voxframe.corpus.where_text import Triple, parse
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES
from voxframe.validators import name_list, shown

#: Rows to read: text such as "confidence < 0.5 and speaker == 'A'", a pyarrow expression, or conditions as for
#: `pandas.read_parquet(filters=...)`: (column, operator, value) triples that must all hold, or a list of such lists,
#: one of which must hold.
Where: TypeAlias = "str | pc.Expression | Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]"

#: Column on request: the person of each row (`corpus.speakers.assign`).
PERSON = pa.field("person", pa.string())
_ID = "transcript_id"
_OPERATORS = ("==", "!=", "<", ">", "<=", ">=", "in", "not in", "like", "not like")


class _Kind(NamedTuple):
    """A kind of values: names for a column of them and for one of them, and what such a column is compared with."""

    plural: str
    singular: str
    includes: Sequence[Callable[[pa.DataType], bool]]
    advice: str


_KINDS = (
    _Kind("text", "text", (types.is_string, types.is_large_string), "text in quotes"),
    _Kind("numbers", "a number", (types.is_integer, types.is_floating, types.is_decimal), "a number, without quotes"),
    _Kind("booleans", "a boolean", (types.is_boolean,), "True or False"),
    _Kind(
        "times",
        "a time",
        (types.is_timestamp, types.is_date),
        "an ISO date or time in quotes, such as '2026-01-31' or '2026-01-31T09:30'",
    ),
)


def clauses(where: Where | None, id_of: Callable[[str], str] | None = None) -> list[list[Triple]]:
    """Return conditions as clauses, one of which must hold; a pyarrow expression has none. `id_of` maps ids."""
    if where is None or isinstance(where, pc.Expression):
        return []
    if not isinstance(where, Iterable) or isinstance(where, bytes):
        raise CorpusError(
            "where takes text such as \"speaker == 'A'\", (column, operator, value) triples, or an expression of "
            f"pyarrow, not {where!r}"
        )
    parts: list[Any] = parse(where) if isinstance(where, str) else list(where)
    if parts and isinstance(parts[0], str):  # one condition, not in a list
        parts = [tuple(parts)]
    parts = parts if all(isinstance(part, list) for part in parts) else [parts]
    if not all(parts):
        raise CorpusError("where has an empty list of conditions; leave it out, or name a condition in it")
    return [[_checked_triple(triple, id_of) for triple in part] for part in parts]


def _checked_triple(triple: Any, id_of: Callable[[str], str] | None) -> Triple:
    if not (isinstance(triple, tuple) and len(triple) == 3 and isinstance(triple[0], str)):
        raise CorpusError(
            "where takes (column, operator, value) triples such as ('speaker', '==', 'A'), or an expression of "
            f"pyarrow, not {triple!r}"
        )
    column, operator, value = triple[0], triple[1], _plain(triple[2])
    if id_of is not None and column == _ID:
        if isinstance(value, list | tuple | set | frozenset):
            value = [id_of(text) if isinstance(text, str) else text for text in value]
        elif isinstance(value, str):  # None stands for null
            value = id_of(value)
    return column, operator, value


def _plain(value: Any) -> Any:
    """Return a value of pyarrow or NumPy as a Python value, and an iterator as a list."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        value = pd.to_datetime(value)  # `tolist` of NumPy would make nanoseconds integers
    for name in ("as_py", "to_pylist", "tolist"):  # a scalar and an array of pyarrow; an array and a scalar of NumPy
        if (convert := getattr(value, name, None)) is not None:
            return convert()
    return list(value) if isinstance(value, Iterator) else value


def with_ids(where: Where | None, id_of: Callable[[str], str]) -> Where | None:
    """Return conditions with ids instead of names of recordings in those on `transcript_id`."""
    return where if where is None or isinstance(where, pc.Expression) else clauses(where, id_of)


def ids_of(where: Where | None) -> set[str] | None:
    """Return the ids of the transcripts that conditions allow; None if they allow any."""
    allowed, parts = set[str](), clauses(where)
    for clause in parts:
        ids = [
            {value} if operator in ("=", "==") else set(value)
            for column, operator, value in clause
            if column == _ID and operator in ("=", "==", "in")
        ]
        if not ids:
            return None
        allowed |= set.intersection(*ids)
    return allowed if parts else None


def expression(name: str, where: Where | None, *, person: bool = False) -> pc.Expression | None:
    """Return conditions as a pyarrow expression, or None if there are none. `person`: they may use the column."""
    if where is None or isinstance(where, pc.Expression):
        return where
    parts = clauses(where)
    for column, *_ in itertools.chain.from_iterable(parts):
        _check_column(name, column, person=person)
    schema = CORPUS_TABLES[name].arrow
    schema = schema.append(PERSON) if person else schema
    return reduce(or_, (all_of(clause, schema) for clause in parts)) if parts else None


def checked_columns(name: str, columns: Sequence[str] | None, *, person: bool = False) -> list[str] | None:
    """Return the names of the columns to read; None for all."""
    names = None if columns is None else list(dict.fromkeys(name_list(columns)))
    for column in names or ():
        _check_column(name, column, person=person)
    return names


def checked(name: str, where: Where | None, *, person: bool = False) -> pc.Expression | None:
    """Return conditions as a pyarrow expression over a table of a corpus. None: no conditions."""
    condition = expression(name, where, person=person)
    try:
        if condition is not None:
            empty = CORPUS_TABLES[name].empty
            ds.dataset(empty.append_column(PERSON, pa.array([], PERSON.type)) if person else empty).to_table(
                filter=condition
            )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise CorpusError(
            f"where={where!r} cannot be answered ({str(e).splitlines()[0]}); "
            f"voxframe.describe({name!r}) says what type each column has"
        ) from None
    return condition


def all_of(conditions: Sequence[tuple[str, str, Any]], schema: pa.Schema) -> pc.Expression:
    """Return conditions that must all hold as a pyarrow expression. The values None, NaN, NA and NaT stand for null."""
    return reduce(and_, (_condition(*condition, schema.field(condition[0]).type) for condition in conditions))


def _condition(column: str, operator: str, value: Any, dtype: pa.DataType) -> pc.Expression:
    def refused(reason: str) -> CorpusError:
        name = column if column.isidentifier() else f"`{column}`"
        return CorpusError(f"the condition {name} {operator} {shown(value)} cannot be answered: {reason}")

    if operator not in (*_OPERATORS, "="):
        raise refused(f"an operator is one of {', '.join(_OPERATORS)}")
    if operator in ("in", "not in"):
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise refused(f"{operator!r} needs a list of values, such as [{value!r}]")
        values = [_fitting(item, column, dtype, refused) for item in value]
        if any(item is not None for item in values):
            return pq.filters_to_expression([(column, operator, values)])
        # Arrow would give a list of nulls, and an empty one, the type null.
        condition = pc.field(column).is_null() if values else pc.scalar(False)
        return condition if operator == "in" else ~condition
    if operator in ("like", "not like"):
        if not isinstance(value, str) or _kind(dtype) is not _KINDS[0]:
            raise refused(f"{operator} compares a column of text with a pattern, such as 'A%'")
        condition = pc.match_like(pc.field(column), value)
        return condition if operator == "like" else ~condition
    value = _fitting(value, column, dtype, refused)
    if value is not None:
        return pq.filters_to_expression([(column, operator, value)])
    if operator not in ("=", "==", "!="):
        raise refused(f"a null is neither less nor greater than a value; write {column} is null, or is not null")
    null = pc.field(column).is_null()
    return ~null if operator == "!=" else null


def _fitting(value: Any, column: str, dtype: pa.DataType, refused: Callable[[str], CorpusError]) -> Any:
    """Return a value that can be compared with a column; None for a null. Times are parsed from text."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    expected = _kind(dtype)
    if types.is_timestamp(dtype) and isinstance(value, str):
        value = _moment(value, refused)
    try:
        kind = _kind(pa.scalar(value).type)
    except OverflowError:
        raise refused(f"{shown(value)} is too large for an integer of 64 bits") from None
    except (pa.ArrowException, TypeError, ValueError):
        kind = None
    if expected is None:
        return value
    if kind is not expected:
        description = f"of type {type(value).__name__}" if kind is None else kind.singular
        raise refused(
            f"the column {column!r} contains {expected.plural}, but {shown(value)} is {description}; compare it with "
            f"{expected.advice}"
        )
    return _in_zone(pd.Timestamp(value), dtype, refused) if types.is_timestamp(dtype) else value


def _kind(dtype: pa.DataType) -> _Kind | None:
    return next((kind for kind in _KINDS if any(test(dtype) for test in kind.includes)), None)


def _moment(text: str, refused: Callable[[str], CorpusError]) -> pd.Timestamp:
    try:
        datetime.fromisoformat(text)  # pandas reads other forms too, some of them with the month first
        return pd.Timestamp(text)
    except ValueError:
        advice = "write year, month and day, such as '2026-01-31' or '2026-01-31T09:30'"
        raise refused(f"{shown(text)} is not an ISO date; {advice}") from None


def _in_zone(moment: pd.Timestamp, dtype: pa.DataType, refused: Callable[[str], CorpusError]) -> pd.Timestamp:
    """Return a time with the time zone of a column if it has none."""
    if moment.tz is not None and dtype.tz is None:
        raise refused("the column has times without a time zone; leave the time zone out")
    return moment.tz_localize(dtype.tz) if dtype.tz and moment.tz is None else moment


def _check_column(name: str, column: str, *, person: bool) -> None:
    """Check that a table has a column."""
    names = CORPUS_TABLES[name].names
    if column not in names and not (person and column == PERSON.name and "speaker" in names):
        raise CorpusError(f"the table {name!r} has no column {column!r}; it has {', '.join(names)}")
