"""Formats of evaluations, one line per word or turn of any number of recordings: CTM, STM and RTTM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from voxframe.errors import PayloadError
from voxframe.formats.payload import SpokenTurn, SpokenWord, from_turns, from_words, in_time, ms, number
from voxframe.formats.text_readers import lines_of

_ALTERNATIVES = re.compile(r"\{([^{}/]*)/[^{}]*\}")
#: Fields of an RTTM line; those without a name here have a place in a payload.
_RTTM = ("", "", "", "", "", "orthography", "subtype", "", "", "lookahead")
_IGNORED = frozenset({"ignore_time_segment_in_scoring", "inter_segment_gap"})


def ctm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read CTM: recording, channel, start, duration, word, confidence. Of alternatives, the first is read.

    Source: the manual of NIST's sclite, "ctm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. Scores
    outside 0-1, as in its example, are no confidence.
    """
    by_recording: dict[str, list[SpokenWord]] = {}
    unused: dict[str, list[str]] = {}
    is_other = False
    for fields in _rows(text, "recording, channel, start, duration, word"):
        recording, channel, begin, length, word = fields[:5]
        if begin == "*":  # <ALT_BEGIN>, <ALT> and <ALT_END> have no times
            is_other = word == "<ALT>" or (is_other and word != "<ALT_END>")
        if is_other and word != "<ALT>":
            unused.setdefault(recording, []).append(" ".join(fields))
        if begin == "*" or is_other:
            continue
        start = ms(begin)
        end = None if start is None or length == "NA" else start + (ms(length) or 0)
        confidence = number(fields[5]) if len(fields) > 5 and fields[5] not in ("NA", "<NA>") else None
        extra = {"fields": fields[6:]} if len(fields) > 6 else None
        by_recording.setdefault(recording, []).append(SpokenWord(word, start, end, confidence, None, channel, extra))
    return [
        (name, _rest(text, unused.get(name)) | from_words(_channels(words))) for name, words in by_recording.items()
    ]


def _rest(text: str, lines: Sequence[str] | None) -> dict[str, Any]:
    """Return the lines of a file of scoring that are no rows: comments, and those that a reader leaves out."""
    comments = [line.strip() for line in lines_of(text) if line.lstrip().startswith(";;")]
    return {name: value for name, value in (("comments", comments), ("other_lines", lines)) if value}


def stm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read STM: recording, channel, speaker, start, end, labels, text. Of alternatives { a / b }, the first is read.

    Source: the manual of NIST's sclite, "stm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. "@" stands
    for no word.
    """
    by_recording: dict[str, list[SpokenTurn]] = {}
    unused: dict[str, list[str]] = {}
    for fields in _rows(text, "recording, channel, speaker, start, end"):
        recording, channel, speaker, start, end = fields[:5]
        words, extra = fields[5:], dict[str, str]()
        if words and words[0].startswith("<") and words[0].endswith(">"):  # labels, such as <o,f0,male>
            extra["labels"], words = words[0][1:-1], words[1:]
        if any("{" in word or word == "@" for word in words):
            extra["alternatives"] = " ".join(words)
        spoken = " ".join(words)
        while (first := _ALTERNATIVES.sub(r"\1", spoken)) != spoken:  # they may be nested
            spoken = first
        spoken = " ".join(word for word in spoken.split() if word != "@")
        if spoken and spoken.lower() not in _IGNORED:
            name = None if speaker == "unknown" else speaker
            by_recording.setdefault(recording, []).append(
                SpokenTurn(spoken, ms(start), ms(end), name, channel=channel, source=extra or None)
            )
        else:
            unused.setdefault(recording, []).append(" ".join(fields))
    return [
        (name, _rest(text, unused.get(name)) | from_turns(_channels(turns))) for name, turns in by_recording.items()
    ]


def rttm(text: str) -> dict[str, list[SpokenTurn]]:
    """Read who speaks when from RTTM: the turns without text of each recording.

    Source: NIST Rich Transcription 2009 evaluation plan, appendix A.
    """
    by_recording: dict[str, list[SpokenTurn]] = {}
    for fields in _rows(text):
        if fields[0] != "SPEAKER":
            continue
        try:
            start, length, speaker = ms(fields[3]), ms(fields[4]), fields[7]
            fields += ["<NA>"] * (len(_RTTM) - len(fields))
            sure = None if fields[8] == "<NA>" else number(fields[8])
        except (IndexError, ValueError):
            raise PayloadError(
                "a line of an RTTM file must be SPEAKER, recording, channel, start, duration, two fields and the "
                f"speaker, but is {' '.join(fields)[:60]!r}"
            ) from None
        if start is not None and length is not None:
            turn = SpokenTurn("", start, start + length, None if speaker in ("<NA>", "unknown") else speaker)
            others = {name: fields[n] for n, name in enumerate(_RTTM) if name and fields[n] != "<NA>"}
            extra = others | {"fields": fields[len(_RTTM) :]} if len(fields) > len(_RTTM) else others
            turn = turn._replace(confidence=sure, channel=fields[2], source=extra or None)
            by_recording.setdefault(fields[1], []).append(turn)
    return {name: _channels(sorted(turns, key=lambda turn: turn.start or 0)) for name, turns in by_recording.items()}


def turns_of_rttm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read who speaks when from RTTM alone: turns without text, by recording. Other lines are in "other_lines"."""
    unused = [fields for fields in _rows(text) if fields[0] != "SPEAKER"]
    return [
        (name, _rest(text, [" ".join(fields) for fields in unused if fields[1:2] == [name]]) | from_turns(turns))
        for name, turns in rttm(text).items()
    ]


def with_speakers(payload: Mapping[str, Any], text: str, recording: str | None = None) -> dict[str, Any]:
    """Join the speakers of an RTTM file to the words of a transcript.

    A word gets the speaker of the turn that overlaps it longest (in ms; the first of equals). A word without times, or
    without any overlap, gets none.

    Args:
        payload: A transcript, as a payload of the interface with `words`.
        text: Content of the RTTM file.
        recording: Name of the recording in the RTTM file. None (default): the file has only one.

    Returns:
        The payload with the speakers. Consecutive words of one speaker make a turn. Words keep their other fields.

    Raises:
        PayloadError: The payload has no list of words, the text is not RTTM, or it has several recordings or not this
            one.

    Example:
        >>> words = [{"text": "Hi", "start": 0, "end": 400}, {"text": "Yes", "start": 500, "end": 900}]
        >>> line = "SPEAKER x 1 0.000 0.450 <NA> <NA> Ann <NA> <NA>"
        >>> [word["speaker"] for word in with_speakers({"id": "a", "words": words}, line)["words"]]
        ['Ann', None]
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("words"), list):
        kind = "a dict without it" if isinstance(payload, Mapping) else type(payload).__name__
        raise PayloadError(
            f"payload must be a dict with the list words, got {kind}; pass the transcript as the service returned it"
        )
    by_recording = rttm(text) if isinstance(text, str) else {}
    if not by_recording:
        raise PayloadError("text has no line that begins with SPEAKER; pass the content of an RTTM file, not its name")
    if recording is None and len(by_recording) != 1:
        raise PayloadError(
            f"the RTTM file has {len(by_recording)} recordings; pass recording=..., one of {', '.join(by_recording)}"
        )
    turns = next(iter(by_recording.values())) if recording is None else by_recording.get(recording)
    if turns is None:
        raise PayloadError(f"the RTTM file has no recording {recording!r}; it has {', '.join(by_recording)}")
    begins, ends = (
        np.array(side, np.float64) for side in zip(*((turn.start, turn.end) for turn in turns), strict=True)
    )

    def speaker(start: Any, end: Any) -> str | None:
        if not isinstance(start, int | float) or not isinstance(end, int | float):
            return None
        overlaps = np.minimum(ends, end) - np.maximum(begins, start)
        longest = int(overlaps.argmax())
        return turns[longest].speaker if overlaps[longest] > 0 else None

    own_words = [word if isinstance(word, Mapping) else {} for word in payload["words"]]
    words = [
        SpokenWord(
            str(word.get("text") or ""),
            word.get("start"),
            word.get("end"),
            None,
            speaker(word.get("start"), word.get("end")),
            word.get("channel"),
        )
        for word in own_words
    ]
    fields = {name: value for name, value in payload.items() if name not in ("words", "utterances", "status")}
    joined = from_words(words, **fields)
    for word, counterpart in zip(joined["words"], own_words, strict=True):  # turns have the same objects
        word.update({**counterpart, "speaker": word["speaker"]})
    return joined


def _rows(text: str, needed: str = "") -> Iterator[list[str]]:
    """Yield the fields of each line that is not a comment."""
    for n, line in enumerate(lines_of(text), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        if len(fields) < needed.count(",") + bool(needed):
            raise PayloadError(f"line {n} must begin with {needed}, but is {line.strip()[:60]!r}")
        yield fields


def _channels(rows: list[Any]) -> list[Any]:
    """Sort the rows of several channels by start; leave the channel out if there is only one."""
    several = len({row.channel for row in rows}) > 1
    return in_time(rows) if several else [row._replace(channel=None) for row in rows]
