"""Tokens as this service counts them: a mark, or up to eight letters of a word. A model of one's own counts its own."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")


def count(text: str) -> int:
    """How many tokens a text has.

    Example:
        >>> count("Smoke, everywhere.")
        5
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def cut(text: str, most: int) -> str:
    """A text of at most so many tokens: the beginning, where it is longer, up to the end of a word.

    Example:
        >>> cut("Smoke, everywhere.", 2), cut("Smoke, everywhere.", 3), cut("Smoke.", 9)
        ('Smoke,', 'Smoke,', 'Smoke.')
    """
    ends = [match.end() for match, _ in zip(_TOKEN.finditer(text), range(most + 1), strict=False)]
    if len(ends) <= most:
        return text
    end = ends[most - 1] if most else 0
    inside = end and text[end - 1].isalnum() and text[end : end + 1].isalnum()
    kept = text[:end]
    return (re.sub(r"\w+$", "", kept) or kept).rstrip() if inside else kept.rstrip()
