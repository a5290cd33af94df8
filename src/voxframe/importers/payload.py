"""Build payloads of the interface from transcripts in other formats. Values that a format does not have are null."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from voxframe._text import join_words


class SpokenWord(NamedTuple):
    """A word, with its times in milliseconds. Unknown values are None."""

    text: str
    start: int | None = None
    end: int | None = None
    confidence: float | None = None
    speaker: str | None = None
    channel: str | None = None


class SpokenTurn(NamedTuple):
    """A passage of one speaker, with times in milliseconds. Without `words`, its text is split at white space."""

    text: str
    start: int | None = None
    end: int | None = None
    speaker: str | None = None
    words: Sequence[SpokenWord] = ()
    confidence: float | None = None
    channel: str | None = None


def ms(seconds: Any) -> int | None:
    """Return seconds as whole milliseconds, from a number or text such as "1.5s"; None if there are none.

    Example:
        >>> ms(1.2345), ms("0.5s"), ms(None)
        (1234, 500, None)
    """
    if seconds is None or seconds == "":
        return None
    value = float(seconds.removesuffix("s") if isinstance(seconds, str) else seconds)
    return round(value * 1000) if math.isfinite(value) else None


def number(value: Any) -> float | None:
    """Return a number, also from text; None if there is none."""
    return None if value is None or value == "" else float(value)


def label(value: Any) -> str | None:
    """Return the label of a speaker or channel as text; None if there is none."""
    return None if value is None or str(value).strip() == "" else str(value)


def from_turns(turns: Iterable[SpokenTurn], **fields: Any) -> dict[str, Any]:
    """Return the payload of a transcript given as turns. Its list of words joins the words of the turns."""
    utterances, words = [], []
    for turn in turns:
        given = turn.words or [
            SpokenWord(text, speaker=turn.speaker, channel=turn.channel) for text in turn.text.split()
        ]
        spoken = [_word(word) for word in given]
        words += spoken
        utterances.append(
            {**_word(SpokenWord(*turn[:3], turn.confidence, turn.speaker, turn.channel)), "words": spoken}
        )
    text = fields.pop("text", None) or join_words(turn["text"] for turn in utterances)
    return {"status": "completed", "text": text, "words": words, "utterances": utterances, **fields}


def from_words(words: Sequence[SpokenWord], **fields: Any) -> dict[str, Any]:
    """Return the payload of a transcript in words. Words in a row of one known speaker make a turn."""
    if any(word.speaker is not None for word in words):
        runs = [[*run] for _, run in groupby(words, key=lambda word: (word.speaker, word.channel))]
        turns = (
            SpokenTurn(
                join_words(word.text for word in run),
                next((word.start for word in run if word.start is not None), None),
                next((word.end for word in reversed(run) if word.end is not None), None),
                run[0].speaker,
                run,
                channel=run[0].channel,
            )
            for run in runs
        )
        return from_turns(turns, **fields)
    text = fields.pop("text", None) or join_words(word.text for word in words)
    return {"status": "completed", "text": text, "words": [_word(word) for word in words], **fields}


def _word(word: SpokenWord) -> dict[str, Any]:
    found = {**word._asdict(), "text": word.text.strip()}
    if word.channel is None:
        del found["channel"]
    return found
