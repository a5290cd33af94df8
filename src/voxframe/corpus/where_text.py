"""Conditions on rows written as text: `confidence < 0.5 and speaker == 'A'`. Nothing in the text is ever executed."""

from __future__ import annotations

import ast
import re
from itertools import product
from typing import Any, TypeAlias

from voxframe.errors import CorpusError

#: A column, an operator and a value.
Triple: TypeAlias = tuple[str, str, Any]

_MAX_CHARS, _MAX_CLAUSES = 10_000, 100
#: Operators, with the opposite of each and the same with its sides exchanged.
_OPERATORS: dict[type[ast.cmpop], tuple[str, str, str | None]] = {
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
    operator, opposite, exchanged = _OPERATORS[type(op)]
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        raise _NotPlainError(
            f"it compares the columns {left.id} and {right.id}; pass a pyarrow expression, or put quotes around a text"
        )
    if not isinstance(left, ast.Name):
        if exchanged is None or not isinstance(right, ast.Name):
            raise _unclear(left)
        left, right, operator = right, left, exchanged
        opposite = next(other for name, other, _ in _OPERATORS.values() if name == operator)
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
