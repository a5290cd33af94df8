"""Conditions on columns as pyarrow expressions, after a check that each value fits the type of its column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from voxframe.errors import CorpusError
from voxframe.validators import shown

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


def all_of(conditions: Sequence[tuple[str, str, Any]], schema: pa.Schema) -> pc.Expression:
    """Return conditions that must all hold as a pyarrow expression. The values None, NaN, NA and NaT stand for null."""
    return reduce(and_, (_condition(*one, schema.field(one[0]).type) for one in conditions))


def _condition(column: str, operator: str, value: Any, dtype: pa.DataType) -> pc.Expression:
    def refused(reason: str) -> CorpusError:
        name = column if column.isidentifier() else f"`{column}`"
        return CorpusError(f"the condition {name} {operator} {shown(value)} cannot be answered: {reason}")

    if operator not in (*_OPERATORS, "="):
        raise refused(f"an operator is one of {', '.join(_OPERATORS)}")
    if operator in ("in", "not in"):
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise refused(f"{operator!r} needs a list of values, such as [{value!r}]")
        values = [_fitting(one, column, dtype, refused) for one in value]
        if any(one is not None for one in values):
            return pq.filters_to_expression([(column, operator, values)])
        found = pc.field(column).is_null() if values else pc.scalar(False)  # Arrow would give the list the type null
        return found if operator == "in" else ~found
    if operator in ("like", "not like"):
        if not isinstance(value, str) or _kind(dtype) is not _KINDS[0]:
            raise refused(f"{operator} compares a column of text with a pattern, such as 'A%'")
        found = pc.match_like(pc.field(column), value)
        return found if operator == "like" else ~found
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
    wanted = _kind(dtype)
    if types.is_timestamp(dtype) and isinstance(value, str):
        value = _moment(value, refused)
    try:
        kind = _kind(pa.scalar(value).type)
    except OverflowError:
        raise refused(f"{shown(value)} is too large for an integer of 64 bits") from None
    except (pa.ArrowException, TypeError, ValueError):
        kind = None
    if wanted is None:
        return value
    if kind is not wanted:
        given = f"of type {type(value).__name__}" if kind is None else kind.singular
        raise refused(
            f"the column {column!r} contains {wanted.plural}, but {shown(value)} is {given}; compare it with "
            f"{wanted.advice}"
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
