"""The rule by which words form sentences and paragraphs: in the embedded server, and where a service sends none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WordDict = dict[str, Any]

#: Punctuation that ends a sentence, in all scripts.
SENTENCE_ENDS = tuple(".?!\u2026\u3002\uff1f\uff01\u061f\u06d4\u0964\u0965\u1362\u1367\u104b\u17d4")
#: Words whose full stop ends no sentence.
ABBREVIATIONS = frozenset({"Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Prof.", "Jr.", "vs.", "e.g.", "i.e."})
_UNMARKED_PAUSE_MS = 500  # ends a sentence if the words have no punctuation
_PARAGRAPH_PAUSE_MS = 1500
_FULL_PARAGRAPH = 70  # words; after that, a pause of _FULL_PAUSE_MS ends a paragraph
_FULL_PAUSE_MS = 400
_LONGEST_PARAGRAPH = 120  # words


def sentences(words: Sequence[WordDict]) -> list[list[WordDict]]:
    """Group words into sentences, ordered by start time.

    A sentence ends at ".", "?", "!" or their like in other scripts, and at a change of speaker or channel. If no word
    of the transcript has such a mark, it ends at pauses of half a second. Channels are processed separately, so that
    overlapping speech does not split sentences.

    Example:
        >>> words = [{"text": t, "start": 0, "end": 1} for t in "Good morning. So what is it?".split()]
        >>> [" ".join(word["text"] for word in sentence) for sentence in sentences(words)]
        ['Good morning.', 'So what is it?']
    """
    marked = any(_closes(word) for word in words)
    channels: dict[Any, list[WordDict]] = {}
    for word in words:
        channels.setdefault(word.get("channel"), []).append(word)
    groups: list[list[WordDict]] = []
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


def paragraphs(words: Sequence[WordDict]) -> list[list[WordDict]]:
    """Group words into paragraphs: consecutive sentences of one speaker on one channel.

    A new paragraph starts after a pause of 1.5 s; after 70 words, at the next pause of 0.4 s; after 120 words, at the
    next sentence.
    """
    groups: list[list[WordDict]] = []
    for sentence in sentences(words):
        if groups and _goes_on(groups[-1], sentence):
            groups[-1].extend(sentence)
        else:
            groups.append(list(sentence))
    return groups


def _closes(word: WordDict) -> bool:
    text = word["text"].rstrip("\"')]")
    return text.endswith(SENTENCE_ENDS) and text not in ABBREVIATIONS


def _goes_on(paragraph: Sequence[WordDict], sentence: Sequence[WordDict]) -> bool:
    last, first = paragraph[-1], sentence[0]
    if any(last.get(name) != first.get(name) for name in ("speaker", "channel")):
        return False
    pause = first["start"] - last["end"]
    if pause >= _PARAGRAPH_PAUSE_MS or len(paragraph) >= _LONGEST_PARAGRAPH:
        return False
    return len(paragraph) < _FULL_PARAGRAPH or pause < _FULL_PAUSE_MS
