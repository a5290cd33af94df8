"""Values of options: a function for each kind, which returns the value as it goes on the wire or says what is wrong."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

LARGEST_INTEGER = 2**53  # what every JSON reader keeps


class WrongError(Exception):
    """What is wrong with one value."""


def _scalar(value: object) -> object:
    """A NumPy or pandas scalar as the Python value it stands for."""
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value


def boolean(value: object) -> bool:
    """True or False."""
    value = _scalar(value)
    if not isinstance(value, bool):
        raise WrongError("must be True or False")
    return value


def number(low: float, high: float) -> Callable[[object], float]:
    """A number in a range, its ends included."""

    def convert(value: object) -> float:
        value = _scalar(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise WrongError(f"must be a number from {low:g} to {high:g}")
        return value

    return convert


def whole(low: int, high: int | None = None, unit: str = "") -> Callable[[object], int]:
    """A whole number in a range, its ends included; `unit` is for the message."""
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"

    def convert(value: object) -> int:
        value = _scalar(value)
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)  # a whole column with one gap is float in pandas
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
            raise WrongError(f"must be a whole number {allowed}{unit}")
        if value > LARGEST_INTEGER:
            raise WrongError(f"must be at most {LARGEST_INTEGER}{unit}")
        return value

    return convert


def nearest(value: object, allowed: Sequence[str]) -> str:
    """What was probably meant, for the end of a message; empty where nothing allowed is near."""
    close = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def one_of(allowed: Sequence[str], spellings: Mapping[str, str] | None = None) -> Callable[[object], str]:
    """One of the texts that are allowed, or another spelling of one."""

    def convert(value: object) -> str:
        text = (spellings or {}).get(value, value) if isinstance(value, str) else value
        if not isinstance(text, str) or text not in allowed:
            listed = ", ".join(allowed) if len(allowed) <= 12 else f"one of {len(allowed)} values, such as {allowed[0]}"
            raise WrongError(f"must be {listed}{nearest(value, allowed)}")
        return text

    return convert


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise WrongError("must be a text that is not empty")
    return value


def header_name(value: object) -> str:
    """Name of an HTTP header."""
    if not isinstance(value, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", value):
        raise WrongError("must be the name of an HTTP header: letters, digits and hyphens")
    return value


def header_value(value: object) -> str:
    """Value of an HTTP header, which is never shown."""
    if not isinstance(value, str) or not value or not all(" " <= c < "\x7f" for c in value):
        raise WrongError("must be printable ASCII on one line (the value itself is not shown)")
    return value


def web_address(value: object) -> str:
    """An http or https address."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        usable = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # urlsplit: a bracket without its fellow, a port that is no number
        usable = False
    if not usable or re.search(r"[\s\x00-\x1f]", str(value)):
        raise WrongError("must be an http or https address")
    return str(value)


def listed(item: Callable[[object], Any], what: str) -> Callable[[object], list[Any]]:
    """A list of values of one kind, named `what` in the message."""

    def convert(value: object) -> list[Any]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise WrongError(f"must be a list of {what}")
        converted = []
        for n, entry in enumerate(value):
            try:
                converted.append(item(entry))
            except WrongError as wrong:
                raise WrongError(f"must be a list of {what}; entry {n}, {shown(entry)}, {wrong}") from None
        return converted

    return convert


def spelling(value: object) -> dict[str, Any]:
    """An entry of `custom_spelling`."""
    if not isinstance(value, Mapping) or not {"from", "to"} <= set(value):
        raise WrongError('must be {"from": ["heard"], "to": "written"}')
    heard = [value["from"]] if isinstance(value["from"], str) else value["from"]
    heard = listed(text, "spellings")(heard)
    if not heard:
        raise WrongError('needs at least one spelling in "from"')
    return {"from": heard, "to": text(value["to"])}


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
