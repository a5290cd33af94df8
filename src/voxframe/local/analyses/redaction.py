"""Redaction of what was detected: in words, and in the time of the recording.

A word of an entity becomes "#" signs, one a character, punctuation at its ends kept (`hash`), or all words of it
become one word "[PERSON_NAME]" (`entity_name`). Whatever the detectors miss stays: see `entities`. Never call the
result complete.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from voxframe.local.analyses.entities import Entity
from voxframe.local.analyses.passages import WireWord

_PAD_MS = 60  # what the times of words may be wrong by
_EDGES = re.compile(r"^(?P<open>[\"'(\[]*)(?P<word>.*?)(?P<close>[.,;:?!\"')\]]*)$", re.DOTALL)
_Key = tuple[Any, int, int, str]


class Redaction:
    """What is to be redacted, and how.

    Args:
        words: Words of the transcript.
        found: What was detected in them.
        policies: Kinds to redact; none at all stands for all.
        substitute: `hash`, or `entity_name` (also spelled `entity_type`).
    """

    def __init__(
        self,
        words: Sequence[WireWord],
        found: Iterable[Entity],
        policies: Collection[str] | None = None,
        substitute: str | None = None,
    ) -> None:
        self._named = substitute in ("entity_name", "entity_type")
        chosen = [entity for entity in found if not policies or entity.kind in policies]
        self._marks: dict[_Key, tuple[int, str]] = {
            _key(words[place]): (number, entity.kind) for number, entity in enumerate(chosen) for place in entity.places
        }
        times = [(words[place]["start"], words[place]["end"]) for entity in chosen for place in _ends(entity)]
        pairs = zip(times[::2], times[1::2], strict=True)
        self.spans = _merged((first[0] - _PAD_MS, max(first[1], last[1]) + _PAD_MS) for first, last in pairs)
        """Stretches of the recording to cover, in milliseconds, in order."""

    def words(self, words: Sequence[WireWord]) -> list[WireWord]:
        """The words, redacted. They may be the transcript's or any part of them, such as an utterance's."""
        made: list[WireWord] = []
        places: dict[int, int] = {}  # of entities that became a word; words of another channel may come between theirs
        for word in words:
            number, kind = self._marks.get(_key(word), (None, ""))
            if number is None:
                made.append(word)
            elif not self._named:
                made.append({**word, "text": _hashed(word["text"])})
            elif number in places:
                made[places[number]] = _joined(made[places[number]], word)
            else:
                places[number] = len(made)
                opening, _, closing = _parts(word["text"])
                made.append({**word, "text": f"{opening}[{kind.upper()}]{closing}"})
        return made

    def line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """An utterance or a sentence, redacted in its words and its text."""
        words = self.words(line["words"])
        return {**line, "words": words, "text": " ".join(word["text"] for word in words)}

    def quote(self, words: Sequence[WireWord]) -> str:
        """How an entity is quoted: its words, redacted, without punctuation around them."""
        return " ".join(word["text"] for word in self.words(words)).strip(" .,;:?!\"'()")

    def touches(self, words: Iterable[WireWord]) -> bool:
        """Whether any of the words is redacted."""
        return any(_key(word) in self._marks for word in words)


def _key(word: WireWord) -> _Key:
    return word.get("channel"), word["start"], word["end"], word["text"]


def _ends(entity: Entity) -> tuple[int, int]:
    return entity.places[0], entity.places[-1]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((max(0, start), end))
    return merged


def _parts(text: str) -> tuple[str, str, str]:
    """What stands before a word, the word, what stands after it. What is nothing but punctuation is a word."""
    match = _EDGES.match(text)
    if match is None or not match["word"]:
        return "", text, ""
    return match["open"], match["word"], match["close"]


def _hashed(text: str) -> str:
    opening, word, closing = _parts(text)
    return opening + "#" * len(word) + closing


def _joined(first: WireWord, word: WireWord) -> WireWord:
    """One more word of an entity that is one word already."""
    label, _, _ = first["text"].rpartition("]")
    return {**first, "text": f"{label}]{_parts(word['text'])[2]}", "end": max(first["end"], word["end"])}
