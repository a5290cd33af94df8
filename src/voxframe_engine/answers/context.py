"""The input of a request: sentences of transcripts or of a text with their speakers, and its size in tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from voxframe import _text

_SPEAKER = re.compile(r"\s*(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?\s*)?((?:Speaker )?[^\W\d_][\w .'-]{0,39}):\s+(?=\S)")
#: The boundary between two turns of a dialogue on one line.
_TURN = re.compile(r"(?<=[.?!])\s+(?=(?:Speaker )?[^\W\d_a-z]\w{0,19}(?: [^\W\d_a-z]\w{0,19})?:\s)")
#: A line about the text, such as the number of a passage.
_NOTE = re.compile(r"\s*\[.*\]\s*")
_PIECE = 20  # maximum number of sentences per piece
_LONGEST = 60  # sentences without punctuation are cut after this number of words


class Line(NamedTuple):
    """A sentence."""

    text: str
    speaker: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Source:
    """One transcript or text.

    Attributes:
        breaks: Indexes of sentences that do not follow the one before, such as the first one after a note.
    """

    lines: Sequence[Line] = field(repr=False)
    seconds: float = 0.0
    breaks: Sequence[int] = ()
    transcript_id: str | None = None


def from_transcript(transcript: dict[str, Any]) -> Source:
    """Return the sentences of a transcript."""
    lines = [
        Line(
            _text.join_words(word["text"] for word in words),
            words[0].get("speaker"),
            words[0]["start"],
            words[-1]["end"],
        )
        for words in _text.sentences(transcript["words"] or [])
    ]
    return Source(lines, transcript["audio_duration"] or 0.0, transcript_id=transcript.get("id"))


def from_text(text: str) -> Source:
    r"""Return the sentences of a text. A name and a colon at the start of a line name the speaker.

    A line in square brackets is a note and no sentence.

    Example:
        >>> [line[:2] for line in from_text("Ann: Hello. Who is there?\nBob: It is me.").lines]
        [('Hello.', 'Ann'), ('Who is there?', 'Ann'), ('It is me.', 'Bob')]
    """
    lines, breaks, speaker = list[Line](), list[int](), None
    rows = (part for row in text.splitlines() for part in (_TURN.split(row) if _SPEAKER.match(row) else [row]))
    for row in rows:
        if _NOTE.fullmatch(row):
            speaker = None
            breaks.append(len(lines))
            continue
        if match := _SPEAKER.match(row):
            speaker, row = match[1], row[match.end() :]
        elif not row.strip():
            speaker = None
        lines += [Line(sentence, speaker) for sentence in _sentences(row)]
    return Source(lines, breaks=[at for at in breaks if at < len(lines)])


def _sentences(row: str) -> Iterator[str]:
    # All times are 0, so that only punctuation ends a sentence.
    words = [{"text": word, "start": 0, "end": 0} for word in row.split()]
    for sentence in _text.sentences(words):
        for at in range(0, len(sentence), _LONGEST):
            yield _text.join_words(word["text"] for word in sentence[at : at + _LONGEST])


def is_question(text: str) -> bool:
    """Return True if a sentence is a question."""
    return text.rstrip("\"')] ").endswith("?")


def written(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the lines as dialogue: the speaker, then consecutive sentences, in pieces of limited length."""
    turn: list[Line] = []
    for line in lines:
        if turn and (line.speaker != turn[-1].speaker or len(turn) == _PIECE):
            yield _turn(turn)
            turn = []
        turn.append(line)
    if turn:
        yield _turn(turn)


def _turn(lines: Sequence[Line]) -> str:
    text = " ".join(line.text for line in lines)
    return f"Speaker {lines[0].speaker}: {text}" if _is_label(lines[0].speaker) else _named(lines[0].speaker, text)


def _is_label(speaker: str | None) -> bool:
    return speaker is not None and len(speaker) <= 2


def _named(speaker: str | None, text: str) -> str:
    return text if speaker is None else f"{speaker}: {text}"


#: One token of the extractive answerer: a punctuation mark, or up to eight letters of a word.
_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")


def count(text: str) -> int:
    """Return the number of tokens in a text.

    Example:
        >>> count("Smoke, everywhere.")
        5
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def cut(text: str, most: int) -> str:
    """Return the beginning of a text with at most `most` tokens, ending at the end of a word.

    Example:
        >>> cut("Smoke, everywhere.", 2), cut("Smoke, everywhere.", 3), cut("Smoke.", 9)
        ('Smoke,', 'Smoke,', 'Smoke.')
    """
    ends = [match.end() for match, _ in zip(_TOKEN.finditer(text), range(most + 1), strict=False)]
    if len(ends) <= most:
        return text
    end = start = ends[most - 1] if most else 0
    if text[end : end + 1].isalnum():
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1  # to the start of the word that is cut
    return text[: start or end].rstrip()
