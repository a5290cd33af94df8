"""Captions with speakers, as SRT and WebVTT that a browser's own parser reads whatever was said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from voxframe.errors import OptionError
from voxframe.export.segments import Segment, grouped, joined, whole

#: Most characters of a caption: two lines of the usual width.
DEFAULT_CHARS = 84


def srt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True) -> str:
    """Captions of one transcript as SRT.

    A caption holds words of one speaker. SRT has no field for the speaker: the name stands before the first words of
    each turn. SRT has no escapes either: an arrow in the text is written as one character, so that it is not taken for
    a line of times.

    Args:
        df: Words (`voxframe.load_words`), or longer rows, each of which then becomes a caption or several.
        chars: Most characters of a caption, the name not counted.
        speakers: Whether to name them.

    Raises:
        OptionError: A column is missing, or there are several transcripts.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400, "speaker": "A"})
        >>> print(srt(words), end="")
        1
        00:00:00,000 --> 00:00:00,400
        A: Hi!
    """
    blocks = []
    for n, (cue, begins) in enumerate(_cues(whole(df, "srt"), chars), 1):
        name = f"{cue.voice}: " if speakers and begins and cue.voice else ""
        text = (name + cue.text).replace("-->", "\N{RIGHTWARDS ARROW}")
        blocks.append(f"{n}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{text}\n")
    return "\n".join(blocks)


def vtt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True) -> str:
    """Captions of one transcript as WebVTT, each with its speaker as a voice (`<v Name>`).

    Args:
        df: As for `srt`.
        chars: Most characters of a caption.
        speakers: Whether to name them.

    Raises:
        OptionError: A column is missing, or there are several transcripts.
    """
    blocks = ["WEBVTT\n"]
    for cue, _ in _cues(whole(df, "vtt"), chars):
        name = f"<v {_escape(cue.voice)}>" if speakers and cue.voice else ""
        blocks.append(f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{name}{_escape(cue.text)}\n")
    return "\n".join(blocks)


def _cues(segments: list[Segment], chars: int) -> Iterator[tuple[Segment, bool]]:
    """Captions by time, and of each whether its speaker begins with it."""
    if isinstance(chars, bool) or not isinstance(chars, int) or chars < 1:
        raise OptionError(f"chars is a number of characters from 1, not {chars!r}")
    cues: list[tuple[Segment, bool]] = []
    for run in grouped(segments):
        line: list[Segment] = []
        begins = True
        for piece in (piece for segment in run for piece in _pieces(segment, chars)):
            if line and sum(len(s.text) + 1 for s in line) + len(piece.text) > chars:
                cues.append((joined(line), begins))
                line, begins = [], False
            line.append(piece)
        cues.append((joined(line), begins))
    yield from sorted(cues, key=lambda cue: cue[0].start)


def _pieces(segment: Segment, chars: int) -> Iterator[Segment]:
    """The words of a segment, its time shared out by their length; a word that is too long is cut."""
    words = [word[at : at + chars] for word in segment.text.split() for at in range(0, len(word), chars)]
    said = [0]
    for word in words:
        said.append(said[-1] + len(word))
    length = segment.end - segment.start
    for word, (before, after) in zip(words, pairwise(said), strict=True):
        start = segment.start + length * before // said[-1]
        end = segment.start + length * after // said[-1]
        yield segment._replace(text=word, start=start, end=max(end, start + 1))


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(ms: int, point: str) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{ms:03}"
