"""A word on its way from the engine to the wire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any


@dataclass
class Word:
    """A word while its text is being shaped.

    Attributes:
        text: The word; in the end with its punctuation.
        start: Where it begins, in milliseconds of the file.
        end: Where it ends.
        confidence: 0 to 1.
        speaker: Label of the speaker, or None.
        channel: Channel it was heard on, from "1", or None where channels are mixed.
        ends_sentence: Whether a sentence seems to end after it.
        given: Whether its spelling is the client's own, so that no capital is added.
        mark: Punctuation after it, where the engine wrote some, until the text is finished.
    """

    text: str
    start: int
    end: int
    confidence: float
    speaker: str | None = None
    channel: str | None = None
    ends_sentence: bool = False
    given: bool = False
    mark: str = ""

    def wire(self) -> dict[str, Any]:
        """The word as the interface has it."""
        word = {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "confidence": round(self.confidence, 5),
            "speaker": self.speaker,
        }
        return word if self.channel is None else {**word, "channel": self.channel}


def runs(words: Iterable[Word]) -> Iterator[list[Word]]:
    """Words in a row of one speaker on one channel."""
    for _, run in groupby(words, key=lambda word: (word.speaker, word.channel)):
        yield list(run)


def merged(words: Sequence[Word], texts: Sequence[str]) -> list[Word]:
    """The same stretch of time with other texts, shared out among them by length."""
    first, last = words[0], words[-1]
    confidence = sum(word.confidence for word in words) / len(words)
    letters = sum(map(len, texts))
    made, done = [], 0
    for text in texts:
        start = first.start + (last.end - first.start) * done // letters
        done += len(text)
        end = first.start + (last.end - first.start) * done // letters
        made.append(Word(text, start, end, confidence, first.speaker, first.channel))
    made[-1].ends_sentence, made[-1].mark = last.ends_sentence, last.mark
    return made
