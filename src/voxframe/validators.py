"""Types of option values: each checks and converts a Python value."""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from voxframe._text import masked, one_line
from voxframe.errors import OptionError

#: Largest integer that every JSON reader keeps exactly.
LARGEST_INTEGER = 2**53

#: Largest number of allowed values that a message lists.
MOST_LISTED = 12

_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidValueError(Exception):
    """A value is not allowed. The message completes a sentence that starts with the name of the option."""


class ValueType(Protocol):
    """A kind of value that an option can have."""

    def convert(self, value: object) -> Any:
        """Return the value as it is sent."""
        ...


@dataclass(frozen=True)
class Boolean:
    """True or False."""

    def convert(self, value: object) -> bool:
        """Return the value as a bool."""
        value = _scalar(value)
        if not isinstance(value, bool):
            raise InvalidValueError("must be True or False")
        return value


@dataclass(frozen=True)
class Number:
    """A number between two bounds, both included; without an upper bound, also infinity."""

    low: float
    high: float = math.inf
    unit: str = ""

    def convert(self, value: object) -> float:
        """Return the value as an int or float."""
        value = _scalar(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            unit = f" {self.unit}" if self.unit else ""
            allowed = f"of at least {self.low:g}" if self.high == math.inf else f"from {self.low:g} to {self.high:g}"
            raise InvalidValueError(f"must be a number {allowed}{unit}")
        return value


@dataclass(frozen=True)
class Integer:
    """A whole number between two bounds, both included."""

    low: int
    high: int | None = None
    unit: str = ""

    def convert(self, value: object) -> int:
        """Return the value as an int; floats with no fraction are accepted."""
        unit = f" {self.unit}" if self.unit else ""
        value = _scalar(value)
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)  # an integer column with a missing value is float in pandas
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or value < self.low
            or (self.high is not None and value > self.high)
        ):
            allowed = f"from {self.low} to {self.high}" if self.high is not None else f"of at least {self.low}"
            raise InvalidValueError(f"must be a whole number {allowed}{unit}")
        if value > LARGEST_INTEGER:
            raise InvalidValueError(f"must be at most {LARGEST_INTEGER}{unit}")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a closed list of strings.

    Attributes:
        meanings: Meanings of strings that do not explain themselves, such as names of languages by code.
    """

    allowed: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)

    def convert(self, value: object) -> str:
        """Return the value in its listed spelling."""
        text = self.aliases.get(value, value) if isinstance(value, str) else value
        if not isinstance(text, str) or text not in self.allowed:
            many = len(self.allowed) > MOST_LISTED
            listed = (
                f"one of {len(self.allowed)} values, such as {self.allowed[0]}"
                if many
                else f"one of {', '.join(self.allowed)}"
            )
            named = [one for one, meaning in self.meanings.items() if meaning.casefold() == str(value).casefold()]
            near = f" (did you mean {named[0]!r}?)" if named else nearest(value, self.allowed)
            raise InvalidValueError(f"must be {listed}{near}")
        return text


@dataclass(frozen=True)
class Text:
    """A non-empty string."""

    def convert(self, value: object) -> str:
        """Return the string."""
        if not isinstance(value, str) or not value:
            raise InvalidValueError("must be a non-empty text")
        if _SURROGATE.search(value):
            raise InvalidValueError("must be text that UTF-8 can hold, without half of a surrogate pair")
        return value


@dataclass(frozen=True)
class HeaderName:
    """The name of an HTTP header (a token of RFC 9110, section 5.6.2)."""

    pattern = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"

    def convert(self, value: object) -> str:
        """Return the name."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise InvalidValueError("must be the name of an HTTP header: letters, digits and hyphens")
        return value


@dataclass(frozen=True)
class HeaderValue:
    """The value of an HTTP header. Messages never show it."""

    pattern = "[ -~]+"

    def convert(self, value: object) -> str:
        """Return the value."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise InvalidValueError("must be printable ASCII on one line (the value itself is not shown)")
        return value


@dataclass(frozen=True)
class WebAddress:
    """An absolute http or https URL."""

    def convert(self, value: object) -> str:
        """Return the URL."""
        try:
            parts = urlsplit(value if isinstance(value, str) else "")
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # an unbalanced bracket, or a port that is not a number up to 65535
            usable = False
        if not usable or re.search(r"[\s\x00-\x1f]", str(value)) or _SURROGATE.search(str(value)):
            raise InvalidValueError("must be an http or https URL")
        return str(value)


@dataclass(frozen=True)
class ListOf:
    """A list of values of one type; `noun` names them in messages."""

    item: ValueType
    noun: str

    def convert(self, value: object) -> list[Any]:
        """Return a list of converted values."""
        one_dimensional = getattr(value, "ndim", 1) == 1  # a DataFrame would be a list of its columns
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or not one_dimensional:
            raise InvalidValueError(f"must be a list of {self.noun}")
        converted = []
        for n, entry in enumerate(value):
            try:
                converted.append(self.item.convert(entry))
            except InvalidValueError as e:
                raise InvalidValueError(f"must be a list of {self.noun}; entry {n}, {shown(entry)}, {e}") from None
        return converted


@dataclass(frozen=True)
class Spelling:
    """An entry of `custom_spelling`: `{"from": ["dicarlo"], "to": "Decarlo"}`. `from` may be a single string."""

    def convert(self, value: object) -> dict[str, Any]:
        """Return the entry with `from` as a list."""
        if not isinstance(value, Mapping) or not {"from", "to"} <= set(value):
            raise InvalidValueError('must be {"from": ["heard"], "to": "written"}')
        heard = [value["from"]] if isinstance(value["from"], str) else value["from"]
        converted = {}
        for name, given, kind in (("from", heard, ListOf(Text(), "spellings")), ("to", value["to"], Text())):
            try:
                converted[name] = kind.convert(given)
            except InvalidValueError as reason:
                raise InvalidValueError(f"has a wrong value: {name!r} {reason}") from None
        if not converted["from"]:
            raise InvalidValueError('needs at least one spelling in "from"')
        return converted


def nearest(value: object, allowed: Sequence[str]) -> str:
    """Return a suggestion for the end of an error message, or an empty string if nothing is similar."""
    names = {name.lstrip("-"): name for name in reversed(allowed)}  # the dashes of options are no similarity
    close = difflib.get_close_matches(str(value).lstrip("-"), names, n=1, cutoff=0.6)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""


def listed(names: Iterable[str]) -> str:
    """Return names for a message: all if they are few, otherwise the first ones and the number of the others."""
    names = list(names)
    more = len(names) - MOST_LISTED
    return f"{', '.join(names[:MOST_LISTED])} and {more} more" if more > 1 else ", ".join(names)


def shown(value: object) -> str:
    """Return the repr of a value on one line, shortened to 80 characters, for an error message.

    Logins and signatures in URLs are masked first, because the shortened text may not show that it is a URL.
    """
    text = masked(repr(value)[:1000])
    text = one_line(text) if "\n" in text else text  # a DataFrame
    return text if len(text) <= 80 else text[:77] + "..."


def name_list(given: str | Iterable[str], what: str = "tables and columns") -> list[str]:
    """Return one name or several as a list. `what` they are names of is for the error."""
    if not isinstance(given, Iterable):
        raise OptionError(f"{what} are given as a name or a list of names, got {shown(given)}")
    return [given] if isinstance(given, str) else list(given)


def checked(name: str, given: object, kind: ValueType) -> Any:
    """Return an argument as its kind converts it."""
    try:
        return kind.convert(given)
    except InvalidValueError as reason:
        raise OptionError(f"{name} {reason}, got {shown(given)}") from None


def checked_timeout(given: object) -> float | None:
    """Return the argument `timeout`, a number of seconds. None stands for no limit."""
    seconds: float | None = None if given is None else checked("timeout", given, Number(0, unit="seconds"))
    return seconds


def _scalar(value: object) -> object:
    """Convert a NumPy or pandas scalar to the Python value. An array or a column is not one, whatever its length."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def speaker_label(value: Any) -> Any:
    """Return the label of a speaker; a whole number is the label of its digits."""
    return str(int(value)) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


def checked_text(value: object, description: str, longest: int) -> str | None:
    """Return a name or a corrected text with single spaces between words. None stays None."""
    if value is None:
        return None
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text or len(text) > longest or any("\ud800" <= c <= "\udfff" for c in text):
        raise OptionError(
            f"{description} must be text of 1 to {longest:,} characters, or None to remove it, got {value!r:.100}"
        )
    return text


def checked_mapping(value: object, description: str, example: str) -> dict[Any, Any]:
    """Return a mapping of names or texts as a dict."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{description} must be a dict, such as {example}, got {shown(value)}")
    return dict(value)
