"""Subtitles of a finished transcript, as SRT and WebVTT that a browser's own parser reads whatever was said."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

#: Characters of a caption where nobody says how many: two lines of the usual width.
DEFAULT_CHARS = 84
_PAUSE_MS = 2000  # a caption does not stay on screen through a longer silence


class Caption(NamedTuple):
    """One caption: its text on one line, and when it is shown, in milliseconds."""

    text: str
    start: int
    end: int


def captions(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> Iterator[Caption]:
    """Split a transcript into captions.

    A caption holds words of one speaker and one channel, in order. A word that is longer than a caption may be is
    shown in pieces.

    Args:
        transcript: A finished transcript object.
        chars: Most characters of a caption.
    """
    for turn in _turns(transcript):
        text, start, end = "", 0, 0
        for piece in _pieces(turn, chars):
            if text and (len(text) + 1 + len(piece.text) > chars or piece.start - end >= _PAUSE_MS):
                yield Caption(text, start, end)
                text = ""
            start = piece.start if not text else start
            text = f"{text} {piece.text}".strip()
            end = max(piece.end, start + 1)
        if text:
            yield Caption(text, start, end)


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


def _pieces(words: Iterable[dict[str, Any]], chars: int) -> Iterator[Caption]:
    """Words as one line each and without control characters; what is too long is cut, its time shared out."""
    for word in words:
        texts = _plain(word["text"]).split()
        start, length = word["start"], word["end"] - word["start"]
        said, whole = 0, sum(map(len, texts))
        for text in texts:
            for at in range(0, len(text), chars):
                piece = text[at : at + chars]
                begin, end = (start + length * (said + n) // whole for n in (at, at + len(piece)))
                yield Caption(piece, begin, end)
            said += len(text)


def _plain(text: str) -> str:
    # The first turns newlines and tabs, which are control characters too, into blanks.
    return "".join(c for c in " ".join(text.split()) if unicodedata.category(c) != "Cc")


def _clock(ms: int, comma: str) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{comma}{ms:03}"


def srt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """The transcript as SRT.

    Example:
        >>> print(srt({"words": [{"text": "Smoke", "start": 250, "end": 650}]}), end="")
        1
        00:00:00,250 --> 00:00:00,650
        Smoke
    """
    # SRT has no escapes: an arrow in the text would be taken for a line of times.
    return "\n".join(
        f"{n}\n{_clock(c.start, ',')} --> {_clock(c.end, ',')}\n{c.text.replace('-->', '→')}\n"
        for n, c in enumerate(captions(transcript, chars), 1)
    )


def vtt(transcript: dict[str, Any], chars: int = DEFAULT_CHARS) -> str:
    """The transcript as WebVTT.

    Example:
        >>> print(vtt({"words": [{"text": "R&D", "start": 250, "end": 650}]}), end="")
        WEBVTT
        <BLANKLINE>
        00:00:00.250 --> 00:00:00.650
        R&amp;D
    """
    cues = "\n".join(
        f"{_clock(c.start, '.')} --> {_clock(c.end, '.')}\n{_escape(c.text)}\n" for c in captions(transcript, chars)
    )
    return f"WEBVTT\n\n{cues}"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
