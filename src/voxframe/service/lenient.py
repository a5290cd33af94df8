"""Values of the wire as Python values: what is safe is coerced, what is not becomes None."""

from __future__ import annotations

import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from voxframe.errors import OptionError


def as_int(value: object) -> int | None:
    """A whole number, also from 42.0 or "42"."""
    number = as_float(value)
    return int(value) if isinstance(value, int) and number is not None else None if number is None else int(number)


def as_float(value: object) -> float | None:
    """A finite number, also from "0.5"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_text(value: object) -> str | None:
    """Text; a number becomes its digits, as for a speaker called 1."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_path(value: str | os.PathLike[str]) -> Path:
    """A path, with `~` as the user's own directory where there is such a user.

    Raises:
        OptionError: It is none.
    """
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"the path is a {type(value).__name__}; give a text or a Path")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)


def is_unicode(text: str) -> bool:
    """Whether text can be sent: half a surrogate pair cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def as_list(value: object) -> list[Any]:
    """A list; anything else is an empty one."""
    return value if isinstance(value, list) else []


def as_moment(value: object) -> datetime | None:
    """A moment from ISO text, in UTC where it names no zone; None where it is none."""
    from datetime import UTC

    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
