"""Formats of speech evaluation with one line per word or segment: CTM, STM, and the speakers of RTTM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from voxframe.errors import PayloadError
from voxframe.importers.payload import SpokenTurn, SpokenWord, from_turns, from_words, ms, number

_ALTERNATIVES = re.compile(r"\{([^{}/]*)/[^{}]*\}")
_IGNORED = frozenset({"ignore_time_segment_in_scoring", "inter_segment_gap"})


def ctm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read CTM: recording, channel, start, duration, word, confidence. Of alternatives, the first is read.

    Source: the manual of NIST's sclite, "ctm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. Scores
    outside 0-1, as in its example, are no confidence.

    Returns:
        Name and payload of each recording.
    """
    found: dict[str, list[SpokenWord]] = {}
    is_other = False
    for fields in _lines(text):
        recording, channel, begin, length, word = fields[:5]
        if begin == "*":  # <ALT_BEGIN>, <ALT> and <ALT_END> have no times
            is_other = word == "<ALT>" or (is_other and word != "<ALT_END>")
        if begin == "*" or is_other:
            continue
        start = ms(begin)
        end = None if start is None or length == "NA" else start + (ms(length) or 0)
        confidence = number(fields[5]) if len(fields) > 5 and fields[5] not in ("NA", "<NA>") else None
        found.setdefault(recording, []).append(SpokenWord(word, start, end, confidence, None, channel))
    return [(name, from_words(_channels(words))) for name, words in found.items()]


def stm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read STM: recording, channel, speaker, start, end, labels, text. Of alternatives { a / b }, the first is read.

    Source: the manual of NIST's sclite, "stm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. "@" stands
    for no word.

    Returns:
        Name and payload of each recording.
    """
    found: dict[str, list[SpokenTurn]] = {}
    for fields in _lines(text):
        recording, channel, speaker, start, end = fields[:5]
        words = fields[5:]
        if words and words[0].startswith("<") and words[0].endswith(">"):  # labels, such as <o,f0,male>
            words = words[1:]
        said = " ".join(words)
        while (first := _ALTERNATIVES.sub(r"\1", said)) != said:  # they may be nested
            said = first
        said = " ".join(word for word in said.split() if word != "@")
        if said and said.lower() not in _IGNORED:
            name = None if speaker == "unknown" else speaker
            found.setdefault(recording, []).append(SpokenTurn(said, ms(start), ms(end), name, channel=channel))
    return [(name, from_turns(_channels(turns))) for name, turns in found.items()]


def rttm(text: str) -> dict[str, list[tuple[int, int, str]]]:
    """Read who speaks when from RTTM. Source: NIST Rich Transcription 2009 evaluation plan, appendix A.

    Returns:
        Start and end in milliseconds and speaker of each turn, by recording.
    """
    found: dict[str, list[tuple[int, int, str]]] = {}
    for fields in _lines(text):
        if fields[0] == "SPEAKER":
            start, length = ms(fields[3]), ms(fields[4])
            if start is not None and length is not None:
                found.setdefault(fields[1], []).append((start, start + length, fields[7]))
    return found


def with_speakers(payload: Mapping[str, Any], text: str, recording: str | None = None) -> dict[str, Any]:
    """Join the speakers of an RTTM file to the words of a transcript.

    A word gets the speaker of the turn that overlaps it longest (in ms; the first of equals). A word without times, or
    without any overlap, gets none.

    Args:
        payload: A transcript, as a payload of the interface with `words`.
        text: Content of the RTTM file.
        recording: Name of the recording in the RTTM file. None (default): the file has only one.

    Returns:
        The payload with the speakers. Consecutive words of one speaker make a turn.

    Raises:
        PayloadError: The RTTM file has several recordings, or not this one.

    Example:
        >>> words = [{"text": "Hi", "start": 0, "end": 400}, {"text": "Yes", "start": 500, "end": 900}]
        >>> line = "SPEAKER x 1 0.000 0.450 <NA> <NA> Ann <NA> <NA>"
        >>> [word["speaker"] for word in with_speakers({"id": "a", "words": words}, line)["words"]]
        ['Ann', None]
    """
    found = rttm(text)
    if recording is None and len(found) != 1:
        raise PayloadError(f"the RTTM file has {len(found)} recordings; pass recording=..., one of {', '.join(found)}")
    turns = next(iter(found.values())) if recording is None else found.get(recording)
    if turns is None:
        raise PayloadError(f"the RTTM file has no recording {recording!r}; it has {', '.join(found)}")
    begins, ends = (np.array([turn[side] for turn in turns], np.float64) for side in (0, 1))

    def speaker(start: int | None, end: int | None) -> str | None:
        if start is None or end is None:
            return None
        overlaps = np.minimum(ends, end) - np.maximum(begins, start)
        longest = int(overlaps.argmax())
        return turns[longest][2] if overlaps[longest] > 0 else None

    words = [
        SpokenWord(
            word["text"],
            word.get("start"),
            word.get("end"),
            word.get("confidence"),
            speaker(word.get("start"), word.get("end")),
            word.get("channel"),
        )
        for word in payload["words"]
    ]
    kept = {name: value for name, value in payload.items() if name not in ("words", "utterances", "status")}
    return from_words(words, **kept)


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(";;")]


def _channels(rows: list[Any]) -> list[Any]:
    """Sort the rows of several channels by start; leave the channel out if there is only one."""
    several = len({row.channel for row in rows}) > 1
    return sorted(rows, key=lambda row: row.start or 0) if several else [row._replace(channel=None) for row in rows]
