"""Fingerprints that tell whether an annotated turn is unchanged after its transcript was replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

#: Fingerprint of a turn: its start in milliseconds, and its text as received.
Mark: TypeAlias = tuple[int | None, str | None]


def marks(turns: pa.Table) -> dict[int, Mark]:
    """Return the fingerprint of each turn of a transcript, by `utterance_idx`.

    Args:
        turns: Table `utterances` of the transcript.
    """
    columns = (turns[name].to_pylist() for name in ("utterance_idx", "start_ms", "text"))
    return {position: (start_ms, text) for position, start_ms, text in zip(*columns, strict=True)}


def holding(positions: Iterable[int], made_for: Mapping[int, Mark], turns: pa.Table) -> set[int]:
    """Return the positions of the turns that are unchanged.

    Args:
        positions: Positions of annotated turns (`utterance_idx`).
        made_for: Fingerprints at the time of the annotation. A turn without one, from an older version, counts as
            unchanged.
        turns: The current table `utterances`.
    """
    now = marks(turns)
    return {n for n in positions if n in now and made_for.get(n, now[n]) == now[n]}


def as_json(made_for: Mapping[int, Mark]) -> dict[str, list[int | str | None]]:
    """Return fingerprints in the form stored in JSON files."""
    return {str(position): list(mark) for position, mark in made_for.items()}


def from_json(found: Mapping[str, list[int | str | None]]) -> dict[int, Mark]:
    """Return fingerprints from the form of `as_json`.

    Raises:
        ValueError, TypeError: The value has another form.
    """
    return {int(position): (start_ms, text) for position, (start_ms, text) in found.items()}  # type: ignore[misc]
