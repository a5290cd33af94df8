"""Redaction of detected entities in words and in the time span of the recording.

With `hash`, each character of an entity's words becomes "#" and punctuation at the ends stays. With `entity_name`, all
words of an entity become one word such as "[PERSON_NAME]". Whatever the detectors miss is not redacted: see `entities`.
Never call the result complete.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from voxframe._text import ABBREVIATIONS, WordDict
from voxframe_engine.analyses.entities import Entity

_PAD_MS = 60  # tolerance for errors in word times
_EDGES = re.compile(r"^(?P<open>[\"'(\[]*)(?P<word>.*?)(?P<close>[.,;:?!\"')\]]*)$", re.DOTALL)
_Key = tuple[Any, int, int, str]


class Redaction:
    """The entities to redact, and the substitution.

    Args:
        words: Words of the transcript.
        found: Detected entities.
        policies: Kinds to redact; None or empty means all.
        substitute: `hash`, or `entity_name` (also spelled `entity_type`).
    """

    def __init__(
        self,
        words: Sequence[WordDict],
        entities: Iterable[Entity],
        policies: Collection[str] | None = None,
        substitute: str | None = None,
    ) -> None:
        self._named = substitute in ("entity_name", "entity_type")
        redacted = [entity for entity in entities if not policies or entity.kind in policies]
        self._marks: dict[_Key, tuple[int, str]] = {
            _key(words[index]): (number, entity.kind)
            for number, entity in enumerate(redacted)
            for index in entity.indexes
        }
        times = [(words[index]["start"], words[index]["end"]) for entity in redacted for index in _ends(entity)]
        pairs = zip(times[::2], times[1::2], strict=True)
        self.spans = _merged((first[0] - _PAD_MS, max(first[1], last[1]) + _PAD_MS) for first, last in pairs)
        """Spans of the recording to beep out, in ms, in order."""

    def words(self, words: Sequence[WordDict]) -> list[WordDict]:
        """Return the words, redacted. They may be those of the transcript or any part of it, such as an utterance."""
        result: list[WordDict] = []
        positions: dict[int, int] = {}  # position of each entity's word; words of other channels may lie between
        for word in words:
            number, kind = self._marks.get(_key(word), (None, ""))
            if number is None:
                result.append(word)
            elif not self._named:
                result.append({**word, "text": _hashed(word["text"])})
            elif number in positions:
                result[positions[number]] = _joined(result[positions[number]], word)
            else:
                positions[number] = len(result)
                opening, _, closing = _parts(word["text"])
                result.append({**word, "text": f"{opening}[{kind.upper()}]{closing}"})
        return result

    def line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Return an utterance or sentence with its words and text redacted."""
        words = self.words(line["words"])
        return {**line, "words": words, "text": " ".join(word["text"] for word in words)}

    def quote(self, words: Sequence[WordDict]) -> str:
        """Return the words of an entity, redacted, without punctuation around them."""
        return " ".join(word["text"] for word in self.words(words)).strip(" .,;:?!\"'()")

    def touches(self, words: Iterable[WordDict]) -> bool:
        """Return True if any of the words is redacted."""
        return any(_key(word) in self._marks for word in words)


def _key(word: WordDict) -> _Key:
    return word.get("channel"), word["start"], word["end"], word["text"]


def _ends(entity: Entity) -> tuple[int, int]:
    return entity.indexes[0], entity.indexes[-1]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((max(0, start), end))
    return merged


def _parts(text: str) -> tuple[str, str, str]:
    """Split a word into opening punctuation, the word, and closing punctuation. Punctuation alone counts as a word."""
    match = _EDGES.match(text)
    if match is None or not match["word"]:
        return "", text, ""
    return match["open"], match["word"], match["close"]


def _hashed(text: str) -> str:
    opening, word, closing = _parts(text)
    if f"{word}." in ABBREVIATIONS and closing.startswith("."):  # the full stop would seem to end a sentence
        word, closing = f"{word}.", closing[1:]
    return opening + "#" * len(word) + closing


def _joined(first: WordDict, word: WordDict) -> WordDict:
    """Extend the one-word form of an entity by another of its words."""
    label, _, _ = first["text"].rpartition("]")
    return {**first, "text": f"{label}]{_parts(word['text'])[2]}", "end": max(first["end"], word["end"])}
