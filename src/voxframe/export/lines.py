"""Formats with a line a segment: RTTM, CTM, STM and Audacity's labels.

RTTM: NIST Rich Transcription 2009 evaluation plan, appendix A. CTM and STM: the manual of NIST's sclite. Times are
seconds. Fields are separated by blanks: blanks in a name, a label or a word become `_`.
"""

from __future__ import annotations

import pandas as pd

from voxframe.export.segments import Segment, grouped, joined, token, transcripts, whole


def rttm(df: pd.DataFrame) -> str:
    r"""Who speaks when, as RTTM: a line a turn, of all transcripts. Where nobody is known it is `unknown`.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).

    Raises:
        OptionError: A column is missing.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 50, "end_ms": 450, "speaker": "A"})
        >>> rttm(words)
        'SPEAKER t 1 0.050 0.400 <NA> <NA> A <NA> <NA>\n'
    """
    lines = []
    for name, segments in transcripts(df, "rttm"):
        for s in _turns(segments):
            fields = (token(name), s.channel, _s(s.start), _s(s.end - s.start), "<NA> <NA>", _who(s), "<NA> <NA>")
            lines.append(f"SPEAKER {' '.join(map(str, fields))}\n")
    return "".join(lines)


def ctm(df: pd.DataFrame) -> str:
    """Words with times and confidences, as CTM: sorted by transcript, channel and time, as scoring tools want it.

    Args:
        df: Words. Of longer rows the time is shared out by the length of their words.

    Raises:
        OptionError: A column is missing.
    """
    lines = []
    for name, segments in sorted(transcripts(df, "ctm")):
        for s in sorted(segments, key=lambda s: (s.channel, s.start)):
            confidence = "" if s.confidence is None else f" {s.confidence:.4f}"
            words = s.text.split()
            letters = sum(map(len, words))
            begin = 0
            for word in words:
                start, end = (s.start + (s.end - s.start) * n // letters for n in (begin, begin + len(word)))
                begin += len(word)
                lines.append(f"{token(name)} {s.channel} {_s(start)} {_s(end - start)} {word}{confidence}\n")
    return "".join(lines)


def stm(df: pd.DataFrame) -> str:
    """Who says what when, as STM: a line a turn. A `<` at the beginning of a text, where a label would be, is left out.

    Args:
        df: Words, or turns.

    Raises:
        OptionError: A column is missing.
    """
    lines = []
    for name, segments in sorted(transcripts(df, "stm")):
        for s in sorted(_turns(segments), key=lambda s: (s.channel, s.start)):
            text = s.text.lstrip("< ")
            lines.append(f"{token(name)} {s.channel} {_who(s)} {_s(s.start)} {_s(s.end)} {text}\n".replace(" \n", "\n"))
    return "".join(lines)


def audacity(df: pd.DataFrame) -> str:
    """Turns of one transcript as a label track for Audacity (File, Import, Labels): start, end and text, with tabs.

    Args:
        df: Words, or turns.

    Raises:
        OptionError: A column is missing, or there are several transcripts.
    """
    turns = _turns(whole(df, "audacity"))
    return "".join(f"{_s(s.start)}\t{_s(s.end)}\t{f'{s.voice}: ' if s.voice else ''}{s.text}\n" for s in turns)


def _turns(segments: list[Segment]) -> list[Segment]:
    return [joined(run) for run in grouped(segments)]


def _who(segment: Segment) -> str:
    return token(segment.voice or "unknown")


def _s(ms: int) -> str:
    return f"{ms / 1000:.3f}"
