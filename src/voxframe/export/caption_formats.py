"""Captions with speakers as SRT and WebVTT."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd

from voxframe import _text
from voxframe._text import DEFAULT_CHARS, Cue
from voxframe.errors import OptionError
from voxframe.export.result import Losses, counted
from voxframe.export.segments import grouped, whole

_NO_LENGTH = "captions without a length, shown for one millisecond"
_ESTIMATED = "captions that begin or end inside a row, at a time estimated from the number of letters"
_ARROWS = "captions with -->, written as \N{RIGHTWARDS ARROW}"
_MARKUP = "captions that a player may read as markup, because SRT has no escapes"
_MARKUP_OF_PLAYERS = re.compile(r"</?\s*[A-Za-z][^>]*>|\{\\")


def srt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True, losses: Losses | None = None) -> str:
    """Return captions of one transcript as SRT.

    A caption contains words of one speaker, from the start of its first word to the end of its last. A word without
    times is shown next to the nearest word of the same speaker. SRT has no field for the speaker, so each turn starts
    with the name. SRT has no escapes either: `-->` in the text is written as one character, so that no parser reads the
    line as a timestamp.

    Args:
        df: Words (`voxframe.load_words`), or longer rows, each of which becomes one or more captions.
        chars: Maximum number of characters in a caption, without the name.
        speakers: Include the names of the speakers.
        losses: Counter for values that SRT cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: SRT cannot hold a value.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400, "speaker": "A"})
        >>> print(srt(words), end="")
        1
        00:00:00,000 --> 00:00:00,400
        A: Hi!
    """
    with counted(losses, "srt") as lost:
        captions = []
        for cue, begins in _captions(df, "srt", chars, lost):
            text = f"{cue.speaker}: {cue.text}" if speakers and begins and cue.speaker else cue.text
            if "-->" in text:
                lost[_ARROWS] += 1
            if _MARKUP_OF_PLAYERS.search(text):
                lost[_MARKUP] += 1
            captions.append(cue._replace(text=text))
        return _text.srt(captions)


def vtt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True, losses: Losses | None = None) -> str:
    """Return captions of one transcript as WebVTT, with the speaker of each as a voice tag (`<v Name>`).

    Args:
        df: Words or longer rows, as for `srt`.
        chars: Maximum number of characters in a caption.
        speakers: Include the names of the speakers.
        losses: Counter for values that WebVTT cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: WebVTT cannot hold a value.
    """
    with counted(losses, "vtt") as lost:
        captions = (cue for cue, _ in _captions(df, "vtt", chars, lost))
        return _text.vtt(cue if speakers else cue._replace(speaker=None) for cue in captions)


def _captions(df: pd.DataFrame, purpose: str, chars: int, losses: Losses) -> Iterator[tuple[Cue, bool]]:
    """Yield captions by start time, each with True if it is the first of its turn."""
    if isinstance(chars, bool) or not isinstance(chars, int) or chars < 1:
        raise OptionError(f"chars must be an integer of at least 1, got {chars!r}")
    found: list[tuple[Cue, bool]] = []
    for run in grouped(whole(df, purpose, losses)):
        words = (Cue(s.text, s.start, s.end) for s in run)
        found += [(cue, n == 0) for n, cue in enumerate(_text.cues(words, chars, run[0].voice))]
    for cue, begins in sorted(found, key=lambda pair: pair[0].start):
        if cue.estimated:
            losses[_ESTIMATED] += 1
        shown = _text.visible(cue)
        if shown != cue:
            losses[_NO_LENGTH] += 1
        yield shown, begins
