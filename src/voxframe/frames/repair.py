"""The tolerant path: repair a payload that the fast path refused, value by value, and write it as valid JSON."""

from __future__ import annotations

import json
import math
import re
import warnings
from typing import Any, TypeAlias

import orjson

from voxframe.errors import PayloadError, PayloadWarning, caller
from voxframe.frames.extra import Misfit, is_nothing, json_text
from voxframe.frames.json_schema import Shape
from voxframe.schema import BOOL, FLOAT, INT, Column

#: First bytes of files that are not JSON, what the files are, and what to do with them.
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(beginning, re.DOTALL), kind, advice)
    for beginning, kind, advice in (
        (
            rb"ID3|\xff[\xe2\xe3\xf0-\xf5\xf8-\xfd]|R(IFF|F64)....WAVE|FORM....AIF|fLaC|OggS|....ftyp|\x1aE\xdf\xa3",
            "audio or video",
            "transcribe it with client.transcribe or `voxframe transcribe`",
        ),
        (rb"%PDF", "a PDF document", "save its text as a .txt file"),
        (
            rb"PK\x03\x04",
            "a zip archive or an Office document",
            "pass the files in the archive, or save the text of the document as a .txt file",
        ),
        (rb"\x89PNG|\xff\xd8\xff|GIF8", "an image", "pass a transcript"),
        (
            rb"\x1f\x8b|\x28\xb5\x2f\xfd",
            "compressed with gzip or zstd",
            "decompress it, or give it as a file whose name ends in .gz or .zst",
        ),
    )
)


def not_json(raw: bytes, text: str, error: ValueError) -> PayloadError:
    """Return the error for bytes that are not JSON."""
    for beginning, kind, advice in _KINDS:
        if beginning.match(raw):
            return PayloadError(f"the payload is {kind}, not a transcript; {advice}")
    return _unreadable(_reason(text, error))


def not_an_object(document: Any) -> PayloadError:
    """Return the error for JSON that is not an object."""
    return PayloadError(
        f"a payload must be a JSON object, not {kind_of(document)}; pass one transcript, or fetch it again"
    )


def too_deep() -> PayloadError:
    """Return the error for a payload nested too deeply for the Python stack."""
    return _unreadable("the payload is nested too deeply")


def kind_of(value: Any) -> str:
    """Return a description of a JSON value.

    Example:
        >>> kind_of([1, 2]), kind_of("a"), kind_of(None)
        ('a list of 2', 'a string', 'null')
    """
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _unreadable(reason: str) -> PayloadError:
    return PayloadError(
        f"{reason}; fetch it again, or pass the response of the service unchanged or a file in one of the formats of "
        "voxframe.formats.FORMATS"
    )


def _reason(text: str, error: ValueError) -> str:
    start = text.lstrip()[:500]
    if not start:
        return "the payload is empty"
    if start.startswith("<"):
        return "the payload is a web page or XML, not JSON"
    if start[0] not in "{[":
        return f"the payload is not JSON: it begins with {start[:20]!r}"
    if not isinstance(error, json.JSONDecodeError):
        return f"the payload is not JSON ({error})"
    if error.msg == "Extra data":
        return f"the payload has extra data after its end (character {error.pos} of {len(text)})"
    if not text.rstrip().endswith(("}", "]")):
        return f"the payload is truncated after {len(text)} characters"
    return f"the payload is not JSON ({error.msg} at character {error.pos} of {len(text)})"


#: Path to a value: the steps to it, innermost first, as nested pairs. It is formatted only for a warning.
Place: TypeAlias = "tuple[Place, str | int] | None"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"true": True, "false": False}
_SHOWN = 5  # problems listed in one warning


def repair_payload(raw: bytes, shape: Shape) -> tuple[bytes, dict[str, Any]]:
    """Repair a payload to JSON with the shape and types of the data dictionary.

    Safe conversions are made silently: 42.0 and "42" to 42, 7 to "7" for a text field, "true" to true, `{}` to an empty
    list, NaN to null. Other values become null, with one warning that lists their paths: 42.5 or 2**64 for an integer,
    a list for a text. If a name occurs twice, the last value is kept. Numbers beyond the range of floats are read as
    text.

    Returns:
        UTF-8 JSON that the strict decoder of the same shape reads, and the payload with all its original fields, each
        value that became null in a `Misfit`.
    """
    repair = _Repair()
    document = parse(bytes(raw), repair)
    if not isinstance(document, dict):
        raise not_an_object(document)
    try:
        clean = repair.convert(document, shape, None)
    except RecursionError:  # json.dumps uses more stack per level than json.loads
        raise too_deep() from None
    repair.warn(document.get("id"))
    return orjson.dumps(clean), document


def parse(raw: bytes, repair: _Repair | None = None) -> Any:
    """Decode JSON in any Unicode encoding; NaN, control characters and invalid bytes are accepted."""
    text = _text(raw, repair or _Repair())
    try:
        return json.loads(text, strict=False, parse_int=_whole_number, parse_float=_float, parse_constant=_constant)
    except RecursionError:
        raise too_deep() from None
    except ValueError as e:
        raise not_json(raw, text, e) from None


class _Repair:
    """One pass over a document; collects the problems it finds."""

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
                return [self._element(value, i, item, (place, i)) for i in range(len(value))]
            return self._misfit(value, "a list", place)
        if not isinstance(value, dict):
            return self._misfit(value, "an object", place)
        if "*" in shape:
            return {self._string(k, place): self._element(value, k, shape["*"], (place, k)) for k in value}
        return {k: self._member(value, k, child, (place, k)) for k, child in shape.items() if k in value}

    def _member(self, of: Any, key: str | int, shape: Shape, place: Place) -> Any:
        """Convert a member of an object or list; if it does not fit, put a `Misfit` in its place and return None."""
        converted = self.convert(of[key], shape, place)
        if not isinstance(converted, Misfit):
            return converted
        of[key] = converted
        return None

    def _element(self, of: Any, key: str | int, shape: Shape, place: Place) -> Any:
        """Convert an element of a list; a null object or list becomes an empty one, so that indices stay the same."""
        converted = self._member(of, key, shape, place)
        if converted is None and isinstance(shape, dict):
            if of[key] in ([], ""):  # fine as a missing field, wrong as a list element
                of[key] = self._wrong(of[key], "a list" if "[]" in shape else "an object", place)
            return [] if "[]" in shape else {}
        return converted

    def _leaf(self, value: Any, column: Column, place: Place) -> Any:
        if column.json:
            return orjson.Fragment(json_text(value))
        if column.type is INT:
            return self._integer(value, place)
        if column.type is FLOAT:
            number = _number(value)
            return self._misfit(value, "a number", place) if number is None else number
        if column.type is BOOL:
            return self._boolean(value, place)
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
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
            self.problems.append((place, "an unpaired surrogate was replaced by U+FFFD"))
            return whole_pairs(value)
        return value

    def _misfit(self, value: Any, kind: str, place: Place) -> Any:
        """Return a value that does not fit as a `Misfit`, with a warning; None if it stands for an absent value."""
        return None if is_nothing(value) else self._wrong(value, kind, place)

    def _wrong(self, value: Any, kind: str, place: Place) -> Misfit:
        self.problems.append((place, f"{_brief(value)} is not {kind} and was read as null"))
        return Misfit(value)

    def warn(self, identifier: Any) -> None:
        if self.problems:
            which = f"the payload of {identifier!r}" if isinstance(identifier, str) else "a payload"
            problems = "; ".join(f"{_path(place)}: {problem}" for place, problem in self.problems[:_SHOWN])
            remainder = f"; and {len(self.problems) - _SHOWN} more" if len(self.problems) > _SHOWN else ""
            warnings.warn(f"{which} has invalid values: {problems}{remainder}", PayloadWarning, stacklevel=caller())


def whole_pairs(text: str) -> str:
    """Return a text with each unpaired surrogate replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _text(raw: bytes, repair: _Repair) -> str:
    encoding = json.detect_encoding(raw)  # with or without a byte order mark
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as e:
        name = encoding.upper().removesuffix("-SIG")
        repair.problems.append(
            (None, f"bytes that are not valid {name} (the first is byte {e.start}) were replaced by U+FFFD")
        )
        return raw.decode(encoding, "replace")


def _whole_number(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # Python refuses integers of thousands of digits
        return digits


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _constant(name: str) -> float | str:
    return math.nan if name == "NaN" else name


def _number(value: Any) -> float | None:
    """Return a value as a finite float, or None if it is not a number."""
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
    """Format a path for people: `words[3].start`."""
    steps = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".") or "the whole payload"


def _brief(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return kind_of(value)
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
