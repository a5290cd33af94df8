"""The words of a finished transcript in sentences, paragraphs, passages and subtitles (SRT and WebVTT)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from voxframe import _text
from voxframe._text import DEFAULT_CHARS, Cue, WordDict, join_words, sentences

#: As in the sentences response: text, start, end, words, speaker, and channel if channels are separate.
Sentence = dict[str, Any]

#: White space between two sentences of a text.
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

_PASSAGE_MS = 30_000


def sentences_of(words: Sequence[WordDict]) -> list[Sentence]:
    """Return the sentences of a transcript, ordered by start time."""
    return [_sentence(group) for group in sentences(words)]


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


def _sentence(words: Sequence[WordDict]) -> Sentence:
    voices = {word.get("speaker") for word in words}
    sentence = {
        "text": join_words(word["text"] for word in words),
        "start": words[0]["start"],
        "end": max(word["end"] for word in words),
        "words": list(words),
        "speaker": voices.pop() if len(voices) == 1 else None,
    }
    channel = words[0].get("channel")
    return sentence if channel is None else {**sentence, "channel": channel}


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
    """Return the captions of a transcript as SRT.

    Example:
        >>> print(srt({"words": [{"text": "Hi!", "start": 250, "end": 650}]}), end="")
        1
        00:00:00,250 --> 00:00:01,050
        Hi!
    """
    return _text.srt(captions(transcript, chars))


def vtt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """Return the captions of a transcript as WebVTT.

    Example:
        >>> print(vtt({"words": [{"text": "R&D", "start": 250, "end": 650}]}), end="")
        WEBVTT
        <BLANKLINE>
        00:00:00.250 --> 00:00:01.050
        R&amp;D
    """
    return _text.vtt(captions(transcript, chars))


def _turns(transcript: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Runs of words of one voice. Words of channels that overlap alternate in `words`; utterances keep them whole."""
    utterances = transcript.get("utterances")
    for utterance in utterances or [transcript]:
        turn: list[dict[str, Any]] = []
        for word in utterance.get("words") or ():
            if turn and _voice(turn[-1]) != _voice(word):
                yield turn
                turn = []
            turn.append(word)
        if turn:
            yield turn


def _voice(word: dict[str, Any]) -> tuple[Any, Any]:
    return word.get("speaker"), word.get("channel")
