"""Lenient conversion of JSON values: convert what is safe, return None otherwise."""

from __future__ import annotations

import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from voxframe.errors import OptionError


def as_int(value: object) -> int | None:
    """Return a whole number, also from 42.0 or "42"; None for anything else."""
    number = as_float(value)
    return int(value) if isinstance(value, int) and number is not None else None if number is None else int(number)


def as_float(value: object) -> float | None:
    """Return a finite number, also from "0.5"; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_text(value: object) -> str | None:
    """Return text, also from a number such as the speaker label 1; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_path(value: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded, if the home directory is known.

    Raises:
        OptionError: The value is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"the path must be a str or a Path, got {type(value).__name__}")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)


def is_unicode(text: str) -> bool:
    """Return True if the text can be encoded; half a surrogate pair cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def as_dict(value: object) -> dict[str, Any]:
    """Return the dict, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_moment(value: object) -> datetime | None:
    """Return a UTC datetime from ISO text, or None."""
    from datetime import UTC

    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # OverflowError: the year 0 or 10000 in UTC
        return None
