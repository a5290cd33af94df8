"""Lists of words that speak for a label, and what of them a text holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from voxframe.local.analyses.english import stem, words_of


class Clue(NamedTuple):
    """A word or phrase that speaks for a label.

    Attributes:
        label: The label, or whatever stands before the colon.
        sign: "!" where it is enough alone, "?" where it counts only beside others, else empty.
    """

    label: str
    sign: str


#: Clues by their stems.
Clues = Mapping[tuple[str, ...], tuple[Clue, ...]]


@cache
def clues(file: str) -> Clues:
    """Read a file of `label: word, !word, ?word phrase`."""
    found: dict[tuple[str, ...], tuple[Clue, ...]] = {}
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        label, colon, listed = line.partition(": ")
        if line.startswith("#") or not colon:
            continue
        for entry in listed.split(","):
            term = entry.strip()
            sign = term[0] if term[0] in "!?" else ""
            key = stems(term.removeprefix(sign))
            found[key] = (*found.get(key, ()), Clue(label, sign))
    return found


def stems(text: str) -> tuple[str, ...]:
    """Stems of all words of a text."""
    return tuple(stem(word) for word in words_of(text))


def heard(text: str, known: Clues, longest: int = 3) -> Iterator[tuple[tuple[str, ...], tuple[Clue, ...]]]:
    """Every clue in a text, the longest at each place, as often as it comes."""
    parts = stems(text)
    at = 0
    while at < len(parts):
        for length in range(min(longest, len(parts) - at), 0, -1):
            key = parts[at : at + length]
            if key in known:
                yield key, known[key]
                at += length - 1
                break
        at += 1


def above(label: str) -> Iterable[str]:
    """Labels that a hierarchical label is under.

    Example:
        >>> list(above("Sports>Soccer"))
        ['Sports']
    """
    levels = label.split(">")
    return (">".join(levels[:depth]) for depth in range(1, len(levels)))
