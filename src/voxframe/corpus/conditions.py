"""The columns and rows that a read selects. Conditions, text or triples, become expressions of pyarrow.

Nothing in a text such as `confidence < 0.5 and speaker == 'A'` is ever executed. Each value must fit the type of its
column.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial, reduce
from itertools import product
from operator import and_, or_
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types

from voxframe.analysis.rows import SPEAKER_COLUMNS
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES, RECORDING_COLUMNS
from voxframe.validators import listed, name_list, nearest, shown, speaker_label

#: A column, an operator and a value.
Triple: TypeAlias = tuple[str, str, Any]

_MAX_CHARS, _MAX_CLAUSES = 10_000, 100
#: Operators, with the opposite of each and the same with its sides exchanged.
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str, str | None]] = {
    ast.Eq: ("==", "!=", "=="),
    ast.NotEq: ("!=", "==", "!="),
    ast.Lt: ("<", ">=", ">"),
    ast.LtE: ("<=", ">", ">="),
    ast.Gt: (">", "<=", "<"),
    ast.GtE: (">=", "<", "<="),
    ast.Is: ("==", "!=", "=="),
    ast.IsNot: ("!=", "==", "!="),
    ast.In: ("in", "not in", None),
    ast.NotIn: ("not in", "in", None),
}
#: Tests for null as methods of pandas, and their operators.
_TESTS = {"isna": "==", "isnull": "==", "notna": "!=", "notnull": "!="}
_LIKE = "__like__"
#: A quoted text, which is left alone, a name in backticks, or a test for null as in SQL.
_QUOTED = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`([^`]+)`|\bis\s+(not\s+)?null\b|\b(not\s+)?(like)\b(?=\s*["'])""",
    re.DOTALL | re.IGNORECASE,
)


def parse(text: str) -> list[list[Triple]]:
    """Return conditions written as text as clauses, one of which must hold. All triples of a clause must hold.

    The text is a Python expression of comparisons of a column with a value, joined by `and`, `or` and `not` (or `&`,
    `|` and `~`, with parentheses around comparisons). `in` and `not in` take a list. `like` and `not like` take a
    pattern of a text as in SQL: `%` stands for any characters, `_` for one. A name with blanks is written in backticks.
    Dates are ISO text, such as '2026-01-31'. Nulls meet only tests for null: `speaker is null` as in SQL, `speaker is
    None` or `speaker.isna()`, and their opposites `is not null`, `is not None` and `notna()`.

    Example:
        >>> parse("confidence < 0.5 and (speaker == 'A' or `call type` in ['new', 'old'])")
        [[('confidence', '<', 0.5), ('speaker', '==', 'A')], [('confidence', '<', 0.5), ('call type', 'in', ['new', 'old'])]]
    """  # noqa: E501  one line of output
    names: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[0]
        if match[5] is not None:
            return f"{'not ' if match[4] else ''}in {_LIKE} +"
        if match[2] is None:
            return f"is {'not ' if match[3] else ''}None"
        names.setdefault(name := f"quoted_name_{len(names)}", match[2])
        return f" {name} "

    if len(text) > _MAX_CHARS:
        raise _refused(text, f"it has {len(text)} characters, and at most {_MAX_CHARS} are allowed")
    try:
        clauses = _clauses(ast.parse(f"({_QUOTED.sub(plain, text)}\n)", mode="eval").body, False)
    except _NotPlainError as reason:
        raise _refused(text, str(reason)) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = "= must be ==" if re.search(r"(?<![=!<>])=(?!=)", text) else str(getattr(error, "msg", error))
        raise _refused(text, why) from None
    return [[(names.get(column, column), operator, value) for column, operator, value in clause] for clause in clauses]


class _NotPlainError(Exception):
    """A part of the text is no comparison of a column with a value."""


def _refused(text: str, reason: str) -> CorpusError:
    return CorpusError(
        f"where={text[:200]!r} cannot be read: {reason}. Compare columns with values and join comparisons by and, or, "
        "not: \"confidence < 0.5 and speaker == 'A'\"; operators are ==, !=, <, <=, >, >=, in, not in, like, "
        "not like, is null"
    )


def _clauses(node: ast.expr, negated: bool) -> list[list[Triple]]:
    """Return an expression, or its opposite, as clauses."""
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return _clauses(operand, not negated)
        case ast.BoolOp(op=op, values=values):
            return _joined([_clauses(value, negated) for value in values], isinstance(op, ast.And) != negated)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as op, left=left, right=right):
            return _joined([_clauses(side, negated) for side in (left, right)], isinstance(op, ast.BitAnd) != negated)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = zip([left, *comparators], ops, comparators, strict=False)
            return _joined([[[_triple(*side, negated=negated)]] for side in sides], not negated)
        case ast.Name(id=name):
            return [[(name, "==", not negated)]]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=test), args=[], keywords=[]) if test in _TESTS:
            return [[(name, "!=" if (_TESTS[test] == "==") == negated else "==", None)]]
    raise _unclear(node)


def _joined(parts: list[list[list[Triple]]], all_hold: bool) -> list[list[Triple]]:
    if not all_hold:
        return [clause for part in parts for clause in part]
    clauses: list[list[Triple]] = [[]]
    for part in parts:
        if len(clauses) * len(part) > _MAX_CLAUSES:
            raise _NotPlainError(f"it has more than {_MAX_CLAUSES} combinations of and and or")
        clauses = [[*clause, *further] for clause, further in product(clauses, part)]
    return clauses


def _triple(left: ast.expr, op: ast.cmpop, right: ast.expr, *, negated: bool) -> Triple:
    operator, opposite, exchanged = _COMPARISONS[type(op)]
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        raise _NotPlainError(
            f"it compares the columns {left.id} and {right.id}; pass a pyarrow expression, or put quotes around a text"
        )
    if not isinstance(left, ast.Name):
        if exchanged is None or not isinstance(right, ast.Name):
            raise _unclear(left)
        left, right, operator = right, left, exchanged
        opposite = next(other for name, other, _ in _COMPARISONS.values() if name == operator)
    if isinstance(right, ast.BinOp) and isinstance(right.left, ast.Name) and right.left.id == _LIKE:
        pattern = _value(right.right)
        if not isinstance(pattern, str):
            raise _NotPlainError(f"like needs a text, not {ast.unparse(right.right)}")
        return left.id, {"in": "like", "not in": "not like"}[opposite if negated else operator], pattern
    value = _value(right)
    if (operator in ("in", "not in")) != isinstance(value, list):
        needed = "a list of values" if operator in ("in", "not in") else "one value"
        raise _NotPlainError(f"{operator} needs {needed}, not {ast.unparse(right)}")
    return left.id, opposite if negated else operator, value


def _value(node: ast.expr) -> Any:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_value(item) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
    raise _unclear(node)


def _unclear(node: ast.expr) -> _NotPlainError:
    return _NotPlainError(f"{ast.unparse(node)} is neither a column nor a value")


#: Rows to read: text such as "confidence < 0.5 and speaker == 'A'", a pyarrow expression, or conditions as for
#: `pandas.read_parquet(filters=...)`: (column, operator, value) triples that must all hold, or a list of such lists,
#: one of which must hold.
Where: TypeAlias = "str | pc.Expression | Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]"

#: Columns to join: True for all, False for none, a name, or a list of names.
Wanted: TypeAlias = "bool | str | Sequence[str]"

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
    convert: Callable[[Any], Any] | None = None
    if id_of is not None and column == _ID:
        convert = partial(_id_of_text, id_of)
    elif column in SPEAKER_COLUMNS and operator in ("=", "==", "!=", "in", "not in"):
        convert = speaker_label
    if convert is not None:
        is_list = isinstance(value, list | tuple | set | frozenset)
        value = [*map(convert, value)] if is_list else convert(value)
    return column, operator, value


def _id_of_text(id_of: Callable[[str], str], value: Any) -> Any:
    return id_of(value) if isinstance(value, str) else value  # None stands for null


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
        raise CorpusError(
            f"the table {name!r} has no column {column!r}{nearest(column, names)}; it has {listed(names)} "
            f"(voxframe.describe({name!r}))"
        )


def is_named(name: str, columns: Sequence[str] | None, where: Where | None, metadata: Wanted) -> bool:
    """Return True if a read uses columns that are not in its table."""
    of_table = table_columns(name)
    asked = [columns] if isinstance(columns, str) else columns or ()
    return (
        bool(metadata)
        or any(column not in of_table for column in asked)
        or any(column not in of_table for column in columns_of(where))
    )


def wanted_names(metadata: Wanted) -> bool | list[str]:
    """Return the requested columns in a form that can be read several times: an iterator becomes a list."""
    return metadata if isinstance(metadata, bool) else name_list(metadata)


def without_person(metadata: Wanted) -> tuple[bool | list[str], bool]:
    """Return the requested columns without `person`, which is a column of rows, and True if it is one of them."""
    names = wanted_names(metadata)
    if isinstance(names, bool):
        return names, False
    return [name for name in names if name != PERSON.name], PERSON.name in names


def table_columns(name: str) -> list[str]:
    """Return the columns of a table, without those about the recording, which are read like metadata."""
    return [c for c in CORPUS_TABLES[name].names if c not in RECORDING_COLUMNS] if name in CORPUS_TABLES else []


def columns_of(where: Where | None) -> list[str]:
    """Return the columns of conditions."""
    return [column for clause in clauses(where) for column, *_ in clause]
