"""A run of words as one text that patterns can read, and the way back from a match to its words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

WireWord = dict[str, Any]

_LONG_PAUSE_MS = 5000  # nothing that is said as one thing has a pause this long in it
_LONGEST_WORD = 80  # characters of a word that are read: some patterns take long over thousands without a blank


class Found(NamedTuple):
    """A stretch of a text that says something of a kind.

    Attributes:
        kind: Name of the kind, as in the interface's list of policies.
        start: First character.
        end: One past the last character.
        weight: Of two that overlap the one with the greater weight stays; of equals, the longer. 90 and more: called by
            name, or of an unmistakable form; 70 and more: checked, or known by its company; 50 and more: by its words;
            less: a guess.
    """

    kind: str
    start: int
    end: int
    weight: int


class Rule(NamedTuple):
    """A pattern over lower-case text. What it finds is its group `it`, or all of it where it has no such group."""

    kind: str
    weight: int
    pattern: re.Pattern[str]

    def find(self, low: str) -> Iterator[Found]:
        """Everything in a text that the rule speaks of."""
        group = "it" if "it" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(low):
            yield Found(self.kind, *match.span(group), self.weight)


def rules(kind: str, weight: int, *forms: str) -> list[Rule]:
    """A rule for each form."""
    return [Rule(kind, weight, re.compile(form)) for form in forms]


def said(run: Run, table: Iterable[Rule]) -> Iterator[Found]:
    """What any of the rules finds."""
    for rule in table:
        yield from rule.find(run.low)


@dataclass(frozen=True)
class Run:
    """Words in a row of one speaker on one channel.

    Attributes:
        places: Where they are in the transcript's list of words.
        text: Their texts, joined by blanks.
        low: The same in lower case, character for character.
        starts: First character of each word.
        asked: What another speaker said just before, in lower case: "and your last name?"
    """

    places: Sequence[int]
    text: str
    low: str
    starts: Sequence[int]
    asked: str = ""

    def places_of(self, start: int, end: int) -> tuple[int, ...]:
        """Places of the words of a stretch of the text."""
        return tuple(self.places[bisect_right(self.starts, start) - 1 : bisect_right(self.starts, end - 1)])

    def opens_sentence(self, at: int) -> bool:
        """Whether the character opens the run or follows a full stop, a question or exclamation mark."""
        before = self.text[:at].rstrip("\"'( ")
        return not before or before[-1] in ".?!:"


def runs(words: Sequence[WireWord]) -> Iterator[Run]:
    """The words as runs, cut where the speaker changes and at long pauses; each channel is read by itself."""
    channels: dict[Any, list[int]] = {}
    for place, word in enumerate(words):
        channels.setdefault(word.get("channel"), []).append(place)
    for places in channels.values():
        asked, first = "", 0
        for at, place in enumerate(places, 1):
            here, after = words[place], words[places[at]] if at < len(places) else None
            turns = after is not None and after.get("speaker") != here.get("speaker")
            if after is None or turns or after["start"] - here["end"] >= _LONG_PAUSE_MS:
                run = _run(words, places[first:at], asked)
                yield run
                asked, first = run.low if turns else "", at


def _run(words: Sequence[WireWord], places: Sequence[int], asked: str) -> Run:
    texts = [words[place]["text"][:_LONGEST_WORD] for place in places]
    starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))
    text = " ".join(texts)
    return Run(places, text, _lower(text), starts, asked)


def _lower(text: str) -> str:
    """The text in lower case with as many characters as before, and with plain apostrophes."""
    low = text.lower()
    if len(low) != len(text):  # a few letters become two: "İ"
        low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    return low.replace("\u2019", "'")
