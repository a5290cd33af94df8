"""What a request is about: the sentences of transcripts or of a text, with who says them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from voxframe.local import sentences as boundaries

_SPEAKER = re.compile(r"\s*(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?\s*)?((?:Speaker )?[^\W\d_][\w .'-]{0,39}):\s+(?=\S)")
#: Between two turns of a conversation that is written in one line.
_TURN = re.compile(r"(?<=[.?!])\s+(?=(?:Speaker )?[^\W\d_a-z]\w{0,19}(?: [^\W\d_a-z]\w{0,19})?:\s)")
_PIECE = 20  # sentences
_LONGEST = 60  # words of a sentence, after which one without marks is cut


class Line(NamedTuple):
    """A sentence.

    Attributes:
        text: What is said.
        speaker: Who says it, where that is known.
    """

    text: str
    speaker: str | None = None


@dataclass(frozen=True)
class Source:
    """One transcript or text.

    Attributes:
        lines: Its sentences, in order.
        seconds: How long it is, where that is known.
    """

    lines: Sequence[Line] = field(repr=False)
    seconds: float = 0.0


def from_transcript(transcript: dict[str, Any]) -> Source:
    """The sentences of a transcript object, channels one after another where people talk at once."""
    lines = [
        Line(" ".join(word["text"] for word in words), words[0].get("speaker"))
        for words in boundaries.sentences(transcript["words"] or [])
    ]
    return Source(lines, transcript["audio_duration"] or 0.0)


def from_text(text: str) -> Source:
    r"""The sentences of a text. In a line that begins with a name and a colon, and after it, names say who speaks.

    Example:
        >>> [tuple(line) for line in from_text("Ann: Hello. Who is there?\nBob: It is me.").lines]
        [('Hello.', 'Ann'), ('Who is there?', 'Ann'), ('It is me.', 'Bob')]
    """
    lines, speaker = [], None
    rows = (part for row in text.splitlines() for part in (_TURN.split(row) if _SPEAKER.match(row) else [row]))
    for row in rows:
        if match := _SPEAKER.match(row):
            speaker, row = match[1], row[match.end() :]
        elif not row.strip():
            speaker = None
        lines += [Line(sentence, speaker) for sentence in _sentences(row)]
    return Source(lines)


def _sentences(row: str) -> Iterator[str]:
    # As far apart as words without a pause are: only marks end a sentence.
    words = [{"text": word, "start": 0, "end": 0} for word in row.split()]
    for sentence in boundaries.sentences(words):
        for at in range(0, len(sentence), _LONGEST):
            yield " ".join(word["text"] for word in sentence[at : at + _LONGEST])


def written(lines: Sequence[Line]) -> Iterator[str]:
    """The lines as people write conversations: who speaks, then what is said in a row, in pieces not too long."""
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
