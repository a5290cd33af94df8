"""Words of a transcript that is being made, and the turns, sentences, passages and subtitles of a finished one."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from voxframe import _text
from voxframe._text import DEFAULT_CHARS, Cue, WordDict, join_words, sentences


@dataclass
class Word:
    """A word while its text is being formatted.

    Attributes:
        text: The word; at the end with its punctuation.
        start: Start time in the file, in ms.
        end: End time in the file, in ms.
        confidence: 0 to 1.
        speaker: Speaker label, or None.
        channel: Channel number as a string, starting at "1"; None if channels were mixed.
        ends_sentence: True if a sentence ends after it.
        spelling_fixed: True if its spelling was set by `custom_spelling`; no capital is added.
        mark: Punctuation that the engine wrote after it, kept apart until the text is finished.
        span: Number of the uninterrupted speech of its speaker that it is in, or None.
    """

    text: str
    start: int
    end: int
    confidence: float
    speaker: str | None = None
    channel: str | None = None
    ends_sentence: bool = False
    spelling_fixed: bool = False
    mark: str = ""
    span: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the word as it appears in a transcript."""
        word = {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "confidence": round(self.confidence, 5),
            "speaker": self.speaker,
        }
        return word if self.channel is None else {**word, "channel": self.channel}


def runs(words: Iterable[Word]) -> Iterator[list[Word]]:
    """Yield groups of consecutive words of one speaker on one channel."""
    for _, run in groupby(words, key=lambda word: (word.speaker, word.channel)):
        yield list(run)


def merged(words: Sequence[Word], texts: Sequence[str]) -> list[Word]:
    """Replace words by other texts in the same time span, which is divided in proportion to their lengths."""
    first, last = words[0], words[-1]
    confidence = sum(word.confidence for word in words) / len(words)
    letters = sum(map(len, texts))
    result, done = [], 0
    for text in texts:
        start = first.start + (last.end - first.start) * done // letters
        done += len(text)
        end = first.start + (last.end - first.start) * done // letters
        result.append(Word(text, start, end, confidence, first.speaker, first.channel, span=first.span))
    result[-1].ends_sentence, result[-1].mark = last.ends_sentence, last.mark
    return result


_PAUSE_MS = 1500  # ends a turn if there are several channels
_ROOM_MS = 250  # shortest pause in which a word on another channel ends a turn


def turns(channels: Sequence[Sequence[Word]]) -> list[list[Word]]:
    """Group words into turns, ordered by start time.

    Args:
        channels: Words of each channel, in order, with their speakers.

    Returns:
        Lists of words of one speaker. A turn ends at a word of another speaker, unless its own goes on meanwhile: then
        turns overlap. With several channels, it also ends at a pause of 1.5 s, and at a shorter pause in which a word
        is said on another channel.
    """
    from voxframe.voices.diarization import turns_of  # imports numpy, without which the server starts faster

    groups: list[list[Word]] = []
    for channel in channels:
        other_times = sorted(
            (word.start + word.end) // 2 for other in channels if other is not channel for word in other
        )
        latest: dict[int, list[Word]] = {}  # by the number of the turn, or of its part
        for word, turn in zip(channel, turns_of([w.speaker for w in channel], [w.span for w in channel]), strict=True):
            part = latest.get(turn)
            if part is None or (len(channels) > 1 and _ends_between(part[-1], word, other_times)):
                part = latest[turn] = []
                groups.append(part)
            part.append(word)
    return sorted(groups, key=lambda group: group[0].start)


def _ends_between(before: Word, after: Word, other_times: Sequence[int]) -> bool:
    pause = after.start - before.end
    spoken = bisect_left(other_times, after.start) > bisect_right(other_times, before.end)
    return pause >= _PAUSE_MS or (pause >= _ROOM_MS and spoken)


def utterance(turn: Sequence[Word]) -> dict[str, Any]:
    """Return a turn as it appears in a transcript."""
    words = [word.to_dict() for word in turn]
    return {"confidence": sum(word["confidence"] for word in words) / len(words), **passage(words)}


#: As in the sentences response: text, start, end, words, speaker, and channel if channels are separate.
Sentence = dict[str, Any]

#: White space between two sentences of a text.
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

_PASSAGE_MS = 30_000


def sentences_of(words: Sequence[WordDict]) -> list[Sentence]:
    """Return the sentences of a transcript, ordered by start time."""
    return [passage(group) for group in sentences(words)]


def passages(sentences: Sequence[Sentence]) -> Iterator[tuple[int, int]]:
    """Yield groups of whole sentences of about 30 s, as indexes of the first and last sentence."""
    first = 0
    for at, sentence in enumerate(sentences):
        if at > first and sentence["end"] - sentences[first]["start"] > _PASSAGE_MS:
            yield first, at - 1
            first = at
    if sentences:
        yield first, len(sentences) - 1


def joined(sentences: Sequence[Sentence]) -> str:
    """Return the text of several sentences."""
    return join_words(sentence["text"] for sentence in sentences)


def spanned(sentences: Sequence[Sentence]) -> dict[str, int]:
    """Return start and end of several sentences, in the form of the field `timestamp`."""
    return {"start": sentences[0]["start"], "end": max(sentence["end"] for sentence in sentences)}


def passage(words: Sequence[WordDict]) -> Sentence:
    """Return words as one passage. Its speaker, and its channel, are those of all words, else None."""
    speakers, channels = ({word.get(name) for word in words} for name in ("speaker", "channel"))
    fields = {
        "text": join_words(word["text"] for word in words),
        "start": words[0]["start"],
        "end": max(word["end"] for word in words),
        "words": list(words),
        "speaker": speakers.pop() if len(speakers) == 1 else None,
    }
    channel = channels.pop() if len(channels) == 1 else None
    return fields if channel is None else {**fields, "channel": channel}


def captions(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> Iterator[Cue]:
    """Split a transcript into captions.

    A caption holds words of one speaker and one channel, in order. A word longer than a caption is split.
    """
    cues = [
        cue
        for turn in _turns(transcript)
        for cue in _text.cues((Cue(word["text"], word["start"], word["end"]) for word in turn), chars)
    ]
    yield from _text.readable(sorted(cues, key=lambda cue: cue.start))


def srt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """Return the captions of a transcript as SRT."""
    return _text.srt(captions(transcript, chars))


def vtt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """Return the captions of a transcript as WebVTT."""
    return _text.vtt(captions(transcript, chars))


def _turns(transcript: dict[str, Any]) -> Iterator[list[WordDict]]:
    """Runs of words of one voice. Words of channels that overlap alternate in `words`; utterances keep them whole."""
    for line in transcript.get("utterances") or [transcript]:
        for _, turn in groupby(line.get("words") or (), key=lambda word: (word.get("speaker"), word.get("channel"))):
            yield list(turn)
