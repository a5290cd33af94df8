"""What was said about a turn holds for that turn only: how to know it again where its transcript was made anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

#: Where a turn begins in milliseconds, and its text as it came.
Mark: TypeAlias = tuple[int | None, str | None]


def marks(turns: pa.Table) -> dict[int, Mark]:
    """Of each turn of a transcript what it is known by, by `utterance_idx`.

    Args:
        turns: Its table `utterances`.
    """
    columns = (turns[name].to_pylist() for name in ("utterance_idx", "start_ms", "text"))
    return {position: (start_ms, text) for position, start_ms, text in zip(*columns, strict=True)}


def holding(positions: Iterable[int], made_for: Mapping[int, Mark], turns: pa.Table) -> set[int]:
    """Those turns that are still what they were.

    Args:
        positions: Turns about which something was said.
        made_for: What each was then; one that is not in it, from an older version, is taken for the same.
        turns: What there is now.
    """
    now = marks(turns)
    return {n for n in positions if n in now and made_for.get(n, now[n]) == now[n]}


def as_json(made_for: Mapping[int, Mark]) -> dict[str, list[int | str | None]]:
    """Marks as they are kept in a file."""
    return {str(position): list(mark) for position, mark in made_for.items()}


def from_json(found: Mapping[str, list[int | str | None]]) -> dict[int, Mark]:
    """The same read again.

    Raises:
        ValueError, TypeError: It is nothing of the kind.
    """
    return {int(position): (start_ms, text) for position, (start_ms, text) in found.items()}  # type: ignore[misc]
