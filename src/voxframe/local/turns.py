"""Utterances: what one person says before another does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from voxframe.local.words import Word, runs

_PAUSE_MS = 1500  # ends a turn where channels are apart
_ROOM_MS = 250  # a pause in which somebody else's word counts as a turn


def turns(channels: Sequence[Sequence[Word]]) -> list[list[Word]]:
    """The words of each turn, in order of their beginning.

    Args:
        channels: Words of each channel, in order, with their speakers.

    Returns:
        Words in a row of one speaker. Where there are several channels, a turn also ends at a pause of 1.5 s, and where
        somebody says a word on another channel during a shorter one.
    """
    groups: list[list[Word]] = []
    for own in channels:
        others = sorted((word.start + word.end) // 2 for other in channels if other is not own for word in other)
        for run in runs(own):
            groups.append([run[0]])
            for before, after in pairwise(run):
                if len(channels) > 1 and _ends_between(before, after, others):
                    groups.append([])
                groups[-1].append(after)
    return sorted(groups, key=lambda group: group[0].start)


def _ends_between(before: Word, after: Word, others: Sequence[int]) -> bool:
    pause = after.start - before.end
    spoken = bisect_left(others, after.start) > bisect_right(others, before.end)
    return pause >= _PAUSE_MS or (pause >= _ROOM_MS and spoken)


def utterance(turn: Sequence[Word]) -> dict[str, Any]:
    """A turn as the interface has it."""
    words = [word.wire() for word in turn]
    channel = {} if turn[0].channel is None else {"channel": turn[0].channel}
    return {
        "confidence": sum(word["confidence"] for word in words) / len(words),
        "start": turn[0].start,
        "end": max(word.end for word in turn),
        "speaker": turn[0].speaker,
        **channel,
        "text": " ".join(word.text for word in turn),
        "words": words,
    }
