"""Formats with one line per segment: RTTM, CTM, STM and Audacity labels.

RTTM: NIST Rich Transcription 2009 evaluation plan, appendix A. CTM and STM: the manual of NIST's sclite. Times are in
seconds. Spaces separate the fields, so spaces in a name or a label become `_`.
"""

from __future__ import annotations

import pandas as pd

from voxframe.export.result import Losses, counted
from voxframe.export.segments import SpeechSegment, token, transcripts, turns, whole

_NO_LENGTH = "turns without a length, left out"
_NO_SPEAKER = "turns without a speaker, written as 'unknown'"
_SHARED_TIMES = "words of rows with several words, at times estimated from the number of letters"
_LABELS = "turns that begin with <, which would begin a label, written without it"


def rttm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    r"""Return who speaks when as RTTM: one line per turn, for any number of transcripts.

    A turn without a speaker has the speaker `unknown`. Rows without times are left out.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        losses: Counter for values that RTTM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: RTTM cannot hold a value.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 50, "end_ms": 450, "speaker": "A"})
        >>> rttm(words)
        'SPEAKER t 1 0.050 0.400 <NA> <NA> A <NA> <NA>\n'
    """
    lines = []
    with counted(losses, "rttm") as lost:
        for name, segments in transcripts(df, "rttm", lost, untimed=False):
            for s in turns(segments):
                if s.end == s.start:
                    lost[_NO_LENGTH] += 1
                    continue
                times = f"{_seconds(s.start)} {_seconds(s.end - s.start)}"
                lines.append(f"SPEAKER {_place(name, s, lost)} {times} <NA> <NA> {_speaker(s, lost)} <NA> <NA>\n")
    return "".join(lines)


def ctm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return words with times and confidences as CTM, sorted by transcript, channel and time.

    Rows without times are left out.

    Args:
        df: Words. Longer rows are split into words, which share the time by their number of letters.
        losses: Counter for values that CTM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: CTM cannot hold a value.
    """
    lines = []
    with counted(losses, "ctm") as lost:
        for name, segments in sorted(transcripts(df, "ctm", lost, untimed=False)):
            for s in sorted(segments, key=lambda s: (s.channel, s.start)):
                confidence = "" if s.confidence is None else f" {s.confidence!r}"
                words = s.text.split()
                if len(words) > 1:
                    lost[_SHARED_TIMES] += len(words)
                letters = sum(map(len, words))
                begin = 0
                for word in words:
                    start, end = (s.start + (s.end - s.start) * n // letters for n in (begin, begin + len(word)))
                    begin += len(word)
                    times = f"{_seconds(start)} {_seconds(end - start)}"
                    lines.append(f"{_place(name, s, lost)} {times} {word}{confidence}\n")
    return "".join(lines)


def stm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return who says what when as STM: one line per turn, for any number of transcripts.

    A turn without a speaker has the speaker `unknown`. A `<` at the beginning of a text is removed, because it would
    start a label.

    Args:
        df: Words, or turns.
        losses: Counter for values that STM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: STM cannot hold a value.
    """
    lines = []
    with counted(losses, "stm") as lost:
        for name, segments in sorted(transcripts(df, "stm", lost)):
            for s in sorted(turns(segments), key=lambda s: (s.channel, s.start)):
                text = s.text.lstrip("< ")
                if text != s.text:
                    lost[_LABELS] += 1
                times = f"{_seconds(s.start)} {_seconds(s.end)}"
                lines.append(f"{_place(name, s, lost)} {_speaker(s, lost)} {times} {text}".rstrip() + "\n")
    return "".join(lines)


def audacity(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return turns of one transcript as an Audacity label track (File, Import, Labels).

    Each line has start, end and text, separated by tabs.

    Args:
        df: Words, or turns.
        losses: Counter for values that a label cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: A label cannot hold a value.
    """
    with counted(losses, "audacity") as lost:
        return "".join(
            f"{_seconds(s.start)}\t{_seconds(s.end)}\t{f'{s.voice}: ' if s.voice else ''}{s.text}\n"
            for s in turns(whole(df, "audacity", lost))
        )


def _place(name: str, segment: SpeechSegment, losses: Losses) -> str:
    return f"{token(name, losses)} {token(segment.channel, losses)}"


def _speaker(segment: SpeechSegment, losses: Losses) -> str:
    if segment.voice is None:
        losses[_NO_SPEAKER] += 1
        return "unknown"
    return token(segment.voice, losses)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"
