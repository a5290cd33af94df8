"""The tolerant way: a payload that the fast way refuses is put right, value by value, and written again as plain JSON."""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
import warnings
from typing import Any

import orjson
import pyarrow as pa

from voxframe.errors import PayloadError, PayloadWarning
from voxframe.frames.shape import Shape
from voxframe.schema import Column

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BOOLS = {"true": True, "false": False}
_SHOWN = 5  # places named in one warning


def put_right(raw: bytes, shape: Shape) -> bytes:
    """JSON with the same values as a payload, in the shape and with the types of the data dictionary.

    What is safe is converted: 42.0 and "42" to 42, 7 to "7" where text belongs, `{}` to no elements where a list belongs.
    What is not (42.5 or 2**64 where an integer belongs) becomes null, with one warning that names the places.

    Args:
        raw: A JSON object; with a byte order mark, in invalid UTF-8, with NaN or lone surrogates, if need be.
        shape: What to keep.

    Returns:
        UTF-8 JSON that the strict decoder of the same shape reads.

    Raises:
        PayloadError: It is no JSON object: empty, cut short, a web page, ...
    """
    problems: list[tuple[str, str]] = []
    document = _parse(raw, problems)
    if not isinstance(document, dict):
        raise PayloadError(
            f"a payload is a JSON object as the service answers it, not {_kind(document)}; pass one transcript (a list of "
            "them goes to a loader item by item), or fetch it again"
        )
    clean = _convert(document, shape, "", problems)
    if problems:
        _warn(problems)
    return orjson.dumps(clean)


def _parse(raw: bytes, problems: list[tuple[str, str]]) -> Any:
    text = _decode(raw, problems)
    try:
        return json.loads(text, strict=False, parse_int=_parse_int)  # later duplicates win, NaN and Infinity are taken
    except (ValueError, RecursionError) as e:
        raise PayloadError(f"{_diagnosis(text, e)}; fetch it again, or pass the service's answer as it came") from None


def _decode(raw: bytes, problems: list[tuple[str, str]]) -> str:
    encoding = "utf-8"
    for bom, name in _BOMS:
        if raw.startswith(bom):
            raw, encoding = raw[len(bom) :], name
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as e:
        problems.append(("$", f"bytes that are not {encoding} (first at {e.start}) were read as U+FFFD"))
        return raw.decode(encoding, "replace")


def _diagnosis(text: str, error: Exception) -> str:
    start = text.lstrip()[:200]
    if not start:
        return "the payload is empty"
    if start.startswith("<"):
        return "the payload is a web page or XML, not JSON"
    if isinstance(error, RecursionError):
        return "the payload is nested too deeply to be an answer of the service"
    if isinstance(error, json.JSONDecodeError):
        if error.msg == "Extra data":
            return f"the payload has something after its end, at character {error.pos} of {len(text)}"
        if start[0] in "{[" and not text.rstrip().endswith(("}", "]")):
            return f"the payload is cut short after {len(text)} characters ({error.msg} at {error.pos})"
        return f"the payload is not JSON ({error.msg} at character {error.pos} of {len(text)})"
    return f"the payload is not JSON ({error})"


def _parse_int(digits: str) -> int | float:
    return (
        int(digits) if len(digits) < 400 else float(digits)
    )  # longer ones are out of any range, and Python refuses them


def _convert(value: Any, shape: Shape, path: str, problems: list[tuple[str, str]]) -> Any:
    if value is None:
        return None
    if isinstance(shape, Column):
        return _leaf(value, shape, path, problems)
    if "[]" in shape:
        if not isinstance(value, list):
            return _misfit(value, "a list", path, problems)
        item = shape["[]"]
        return [_element(_convert(v, item, f"{path}[{i}]", problems), item) for i, v in enumerate(value)]
    if not isinstance(value, dict):
        return _misfit(value, "an object", path, problems)
    prefix = f"{path}." if path else ""
    if "*" in shape:
        return {
            _text(k, f"{prefix}{k}", problems): _element(_convert(v, shape["*"], f"{prefix}{k}", problems), shape["*"])
            for k, v in value.items()
        }
    return {k: _convert(value[k], child, f"{prefix}{k}", problems) for k, child in shape.items() if k in value}


def _element(value: Any, shape: Shape) -> Any:
    """An element that is null keeps its place: as an object without fields, or a list without elements."""
    if value is not None or isinstance(shape, Column):
        return value
    return [] if "[]" in shape else {}


def _leaf(value: Any, column: Column, path: str, problems: list[tuple[str, str]]) -> Any:
    if column.json:
        plain = json.loads(json.dumps(value), parse_constant=lambda _: None)  # NaN and Infinity are no JSON
        return orjson.Fragment(_text(json.dumps(plain, ensure_ascii=False), path, problems))
    if pa.types.is_int64(column.type):
        return _integer(value, path, problems)
    if pa.types.is_float64(column.type):
        number = _number(value)
        return number if number is not None else _misfit(value, "a number", path, problems)
    if pa.types.is_boolean(column.type):
        return _boolean(value, path, problems)
    if isinstance(value, str):
        return _text(value, path, problems)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return json.dumps(value)
    return _misfit(value, "text", path, problems)


def _integer(value: Any, path: str, problems: list[tuple[str, str]]) -> int | None:
    number: int | float | None = _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 30:
        number = int(value)
    if number is None or number != int(number) or not -(2**63) <= number < 2**63:
        return _misfit(value, "a 64-bit integer", path, problems)
    return int(number)


def _number(value: Any) -> float | None:
    """A finite float, or None."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _boolean(value: Any, path: str, problems: list[tuple[str, str]]) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _BOOLS:
        return _BOOLS[value.strip().lower()]
    if value in (0, 1):
        return bool(value)
    return _misfit(value, "true or false", path, problems)


def _text(value: str, path: str, problems: list[tuple[str, str]]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        problems.append((path, "half a surrogate pair was read as U+FFFD"))
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def _misfit(value: Any, wanted: str, path: str, problems: list[tuple[str, str]]) -> None:
    """Null in place of a value that does not fit. NaN, {}, [] and "" say "nothing" already; null loses nothing."""
    if value not in ({}, [], "") and value == value:
        problems.append((path, f"{_brief(value)} is not {wanted}, read as null"))


def _brief(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _kind(value)
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _kind(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return {str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _warn(problems: list[tuple[str, str]]) -> None:
    shown = "; ".join(f"{path}: {problem}" for path, problem in problems[:_SHOWN])
    more = f"; and {len(problems) - _SHOWN} more places" if len(problems) > _SHOWN else ""
    warnings.warn(f"not all of this payload made sense: {shown}{more}", PayloadWarning, stacklevel=_outside())


def _outside() -> int:
    """Stack level of the nearest caller outside voxframe, seen from `_warn`."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("voxframe."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level
