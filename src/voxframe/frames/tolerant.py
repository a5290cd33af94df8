"""The tolerant way: a payload that the fast way refuses is put right, value by value, and written as plain JSON."""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
import warnings
from typing import Any, TypeAlias

import orjson

from voxframe.errors import PayloadError, PayloadWarning
from voxframe.frames.shape import Shape
from voxframe.schema import BOOL, FLOAT, INT, Column

#: Where a value stands: the steps to it, innermost first, as nested pairs. It is spelled out only for a warning.
Place: TypeAlias = "tuple[Place, str | int] | None"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"true": True, "false": False}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LONGEST = 400  # digits of an integer; longer ones are out of every range, and Python refuses thousands
_SHOWN = 5  # places named in one warning


def put_right(raw: bytes, shape: Shape) -> bytes:
    """JSON with the values of a payload, in the shape and with the types of the data dictionary.

    What is safe is converted: 42.0 and "42" to 42, 7 to "7" where text belongs, "true" to true, `{}` to no elements
    where a list belongs, NaN to null. What is not (42.5 or 2**64 where an integer belongs, a list where text belongs)
    becomes null, with one warning that names the places. Of a name that comes twice the last value counts.

    Args:
        raw: A JSON object; with a byte order mark, in invalid UTF-8, with NaN or lone surrogates, if need be.
        shape: What to keep.

    Returns:
        UTF-8 JSON that the strict decoder of the same shape reads.

    Raises:
        PayloadError: It is no JSON object: empty, cut short, a web page, ...
    """
    repair = _Repair()
    document = _parse(_text(bytes(raw), repair))
    if not isinstance(document, dict):
        raise PayloadError(
            f"a payload is the JSON object that the service answers, not {_kind(document)}; pass one transcript, or "
            "fetch it again"
        )
    clean = repair.convert(document, shape, None)
    repair.warn(document.get("id"))
    return orjson.dumps(clean)


class _Repair:
    """One pass over a document, and what it met."""

    def __init__(self) -> None:
        self.problems: list[tuple[Place, str]] = []

    def convert(self, value: Any, shape: Shape, place: Place) -> Any:
        if value is None:
            return None
        if isinstance(shape, Column):
            return self._leaf(value, shape, place)
        if "[]" in shape:
            if isinstance(value, list):
                item = shape["[]"]
                return [self._element(v, item, (place, i)) for i, v in enumerate(value)]
            return self._misfit(value, "a list", place)
        if not isinstance(value, dict):
            return self._misfit(value, "an object", place)
        if "*" in shape:
            return {self._string(k, place): self._element(v, shape["*"], (place, k)) for k, v in value.items()}
        return {k: self.convert(value[k], child, (place, k)) for k, child in shape.items() if k in value}

    def _element(self, value: Any, shape: Shape, place: Place) -> Any:
        """An object or list that is null keeps its place among the others, with nothing in it."""
        converted = self.convert(value, shape, place)
        if converted is None and isinstance(shape, dict):
            return [] if "[]" in shape else {}
        return converted

    def _leaf(self, value: Any, column: Column, place: Place) -> Any:
        if column.json:
            plain = json.loads(json.dumps(value), parse_constant=lambda _: None)  # NaN and Infinity are no JSON
            return orjson.Fragment(self._string(json.dumps(plain, ensure_ascii=False), place))
        if column.type is INT:
            return self._integer(value, place)
        if column.type is FLOAT:
            number = _number(value)
            return self._misfit(value, "a number", place) if number is None else number
        if column.type is BOOL:
            return self._boolean(value, place)
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, (int, float)) and math.isfinite(value):
            return json.dumps(value)
        return self._misfit(value, "text", place)

    def _integer(self, value: Any, place: Place) -> Any:
        if type(value) is int and -(2**63) <= value < 2**63:
            return value
        number = _number(value)
        if number is None or not number.is_integer():
            return self._misfit(value, "an integer", place)
        exact = int(value) if isinstance(value, int) or str(value).strip().lstrip("+-").isdecimal() else int(number)
        return exact if -(2**63) <= exact < 2**63 else self._misfit(value, "an integer of 64 bits", place)

    def _boolean(self, value: Any, place: Place) -> Any:
        word = value.strip().lower() if isinstance(value, str) else None
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        return _BOOLS[word] if word in _BOOLS else self._misfit(value, "true or false", place)

    def _string(self, value: str, place: Place) -> str:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            self.problems.append((place, "half a surrogate pair was read as U+FFFD"))
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value

    def _misfit(self, value: Any, wanted: str, place: Place) -> Any:
        """Null for a value that does not fit. {}, [], "" and NaN say "nothing" themselves: no warning."""
        is_nan = isinstance(value, float) and math.isnan(value)
        if value not in ({}, [], "") and not is_nan:
            self.problems.append((place, f"{_brief(value)} is not {wanted}, read as null"))

    def warn(self, identifier: Any) -> None:
        if self.problems:
            which = f"the payload of {identifier!r}" if isinstance(identifier, str) else "a payload"
            shown = "; ".join(f"{_path(place)}: {problem}" for place, problem in self.problems[:_SHOWN])
            more = f"; and {len(self.problems) - _SHOWN} more" if len(self.problems) > _SHOWN else ""
            warnings.warn(f"not all of {which} made sense: {shown}{more}", PayloadWarning, stacklevel=_caller())


def _text(raw: bytes, repair: _Repair) -> str:
    encoding = "utf-8"
    for bom, name in _BOMS:
        if raw.startswith(bom):
            raw, encoding = raw[len(bom) :], name
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as e:
        repair.problems.append(
            (None, f"bytes that are not {encoding.upper()} (the first is byte {e.start}) were read as U+FFFD")
        )
        return raw.decode(encoding, "replace")


def _parse(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_int=lambda s: int(s) if len(s) < _LONGEST else float(s))
    except (ValueError, RecursionError) as e:
        raise PayloadError(f"{_diagnosis(text, e)}; fetch it again, or pass the service's answer as it came") from None


def _diagnosis(text: str, error: Exception) -> str:
    start = text[:500].lstrip()
    if not text.strip():
        return "the payload is empty"
    if start.startswith("<"):
        return "the payload is a web page or XML, not JSON"
    if isinstance(error, RecursionError):
        return "the payload is nested too deeply to be an answer of the service"
    if not isinstance(error, json.JSONDecodeError):
        return f"the payload is not JSON ({error})"
    if error.msg == "Extra data":
        return f"the payload goes on after its end (character {error.pos} of {len(text)})"
    if start[0] in "{[" and not text.rstrip().endswith(("}", "]")):
        return f"the payload is cut short after {len(text)} characters"
    return f"the payload is not JSON ({error.msg} at character {error.pos} of {len(text)})"


def _number(value: Any) -> float | None:
    """A finite float, or None."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _path(place: Place) -> str:
    """`words[3].start`, for a person."""
    steps = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".") or "the whole payload"


def _brief(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _kind(value)
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _kind(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return {str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _caller() -> int:
    """Stack level, for a warning made by the caller of this function, of the nearest code outside voxframe."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("voxframe."):
        level, frame = level + 1, frame.f_back
    return level
