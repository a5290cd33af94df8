"""The words of a finished transcript in sentences, paragraphs, passages and subtitles (SRT and WebVTT)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from voxframe import _text
from voxframe._text import DEFAULT_CHARS, Cue
from voxframe.server.text.formatting import SENTENCE_ENDS

WordDict = dict[str, Any]
#: As in the sentences response: text, start, end, words, speaker, and channel if channels are separate.
Sentence = dict[str, Any]

#: Words whose full stop ends no sentence.
ABBREVIATIONS = frozenset({"Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Prof.", "Jr.", "vs.", "e.g.", "i.e."})
_UNMARKED_PAUSE_MS = 500  # ends a sentence if the words have no punctuation
_PARAGRAPH_PAUSE_MS = 1500
_FULL_PARAGRAPH = 70  # words; after that, a pause of _FULL_PAUSE_MS ends a paragraph
_FULL_PAUSE_MS = 400
_LONGEST_PARAGRAPH = 120  # words
_PASSAGE_MS = 30_000


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
    return " ".join(sentence["text"] for sentence in sentences)


def spanned(sentences: Sequence[Sentence]) -> dict[str, int]:
    """Return start and end of several sentences, in the form of the field `timestamp`."""
    return {"start": sentences[0]["start"], "end": max(sentence["end"] for sentence in sentences)}


def _sentence(words: Sequence[WordDict]) -> Sentence:
    voices = {word.get("speaker") for word in words}
    sentence = {
        "text": " ".join(word["text"] for word in words),
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

    Args:
        transcript: A finished transcript object.
        chars: Limit of characters in a caption.
    """
    for turn in _turns(transcript):
        words = (Cue(word["text"], word["start"], word["end"]) for word in turn)
        yield from map(_text.visible, _text.cues(words, chars))


def srt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """Return the captions of a transcript as SRT.

    Example:
        >>> print(srt({"words": [{"text": "Hi!", "start": 250, "end": 650}]}), end="")
        1
        00:00:00,250 --> 00:00:00,650
        Hi!
    """
    return _text.srt(captions(transcript, chars))


def vtt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """Return the captions of a transcript as WebVTT.

    Example:
        >>> print(vtt({"words": [{"text": "R&D", "start": 250, "end": 650}]}), end="")
        WEBVTT
        <BLANKLINE>
        00:00:00.250 --> 00:00:00.650
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
