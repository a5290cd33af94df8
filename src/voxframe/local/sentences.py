"""Sentences and paragraphs of a finished transcript: groups of its words, as they are on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WireWord = dict[str, Any]

_ABBREVIATIONS = frozenset({"Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Prof.", "Jr.", "vs.", "e.g.", "i.e."})
_UNMARKED_PAUSE_MS = 500  # ends a sentence where the words carry no punctuation
_PARAGRAPH_PAUSE_MS = 1500
_FULL_PARAGRAPH = 70  # words, after which a short pause between sentences is enough...
_FULL_PAUSE_MS = 400
_LONGEST_PARAGRAPH = 120  # ...and after which none is needed


def sentences(words: Sequence[WireWord]) -> list[list[WireWord]]:
    """Words of each sentence, in order of their beginning.

    A sentence ends with ".", "?" or "!", and where another speaker or channel goes on. Where no word of the transcript
    has such a mark, it ends at pauses of half a second. Channels are read one by one, so that people who talk at
    once do not break each other's sentences.

    Example:
        >>> said = [{"text": t, "start": 0, "end": 1} for t in "Good morning. So what is it?".split()]
        >>> [" ".join(word["text"] for word in sentence) for sentence in sentences(said)]
        ['Good morning.', 'So what is it?']
    """
    marked = any(_closes(word) for word in words)
    channels: dict[Any, list[WireWord]] = {}
    for word in words:
        channels.setdefault(word.get("channel"), []).append(word)
    groups: list[list[WireWord]] = []
    for channel in channels.values():
        open_group = False
        for at, word in enumerate(channel):
            if open_group:
                groups[-1].append(word)
            else:
                groups.append([word])
            after = channel[at + 1] if at + 1 < len(channel) else None
            open_group = (
                after is not None
                and after.get("speaker") == word.get("speaker")
                and not (_closes(word) if marked else after["start"] - word["end"] >= _UNMARKED_PAUSE_MS)
            )
    return sorted(groups, key=lambda group: group[0]["start"])


def paragraphs(words: Sequence[WireWord]) -> list[list[WireWord]]:
    """Words of each paragraph: sentences that follow each other, by one speaker on one channel.

    A new one begins after a pause of 1.5 s, after 70 words at the next pause of 0.4 s, after 120 words at the next
    sentence.
    """
    groups: list[list[WireWord]] = []
    for sentence in sentences(words):
        if groups and _goes_on(groups[-1], sentence):
            groups[-1].extend(sentence)
        else:
            groups.append(list(sentence))
    return groups


def _closes(word: WireWord) -> bool:
    text = word["text"].rstrip("\"')]")
    return text.endswith((".", "?", "!")) and text not in _ABBREVIATIONS


def _goes_on(paragraph: Sequence[WireWord], sentence: Sequence[WireWord]) -> bool:
    last, first = paragraph[-1], sentence[0]
    if any(last.get(name) != first.get(name) for name in ("speaker", "channel")):
        return False
    pause = first["start"] - last["end"]
    if pause >= _PARAGRAPH_PAUSE_MS or len(paragraph) >= _LONGEST_PARAGRAPH:
        return False
    return len(paragraph) < _FULL_PARAGRAPH or pause < _FULL_PAUSE_MS
