"""Text with speakers or times: SRT, WebVTT, Audacity labels, and plain text with "NAME:" turns.

Except in WebVTT, a speaker is a name and a colon at the beginning. A text such as "Note: ..." looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from voxframe._text import one_line
from voxframe.importers.payload import SpokenTurn, from_turns, ms

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMES = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}")
_TAG = re.compile(r"</?[a-zA-Z][^>]*>|<\d[\d:.]*>|\{\\[^}]*\}")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
#: A name before a colon: at most five words that begin with an upper-case letter or a digit, as in "Speaker 1:".
_NAME = re.compile(r"^\s*((?:[^\W_a-z][\w.'\-]*)(?: (?:[^\W_a-z][\w.'\-]*|\d+)){0,4}):(?:\s+|$)")
_SINCE = re.compile(r"^\s*\[(?:(\d+):)?(\d{1,2}):(\d{2})\]\s+")
_LABEL = re.compile(r"^\d+(\.\d+)?\t\d+(\.\d+)?(\t|\r|$)", re.MULTILINE)


def srt(text: str) -> dict[str, Any]:
    """Read SRT. A cue that begins with a name and a colon belongs to that speaker; tags are removed.

    Source: the SubRip documentation, https://wiki.videolan.org/SubRip. As SRT has no field for the speaker, cues after
    it without a name have none. A cue ends where the next one begins, so its text may have blank lines.
    """
    turns = []
    lines = _lines(text)
    at = [n for n, line in enumerate(lines) if _TIMES.match(line)]
    for n, until in zip(at, [*at[1:], len(lines) + 1], strict=True):
        numbered = until <= len(lines) and lines[until - 1].strip().isdigit()  # the number of the next cue
        speaker, said = _named(_TAG.sub("", " ".join(lines[n + 1 : until - numbered])))
        if said and (times := _TIMES.match(lines[n])):
            turns.append(SpokenTurn(said, _ms(*times.groups()[:4]), _ms(*times.groups()[4:]), speaker))
    return from_turns(turns)


def webvtt(text: str) -> dict[str, Any]:
    """Read WebVTT, with the speakers of voice tags. Source: W3C, "WebVTT: The Web Video Text Tracks Format"."""
    turns = []
    for start, end, lines in _cues(text):
        payload = " ".join(lines)
        pieces = _VOICE.split(payload)
        for speaker, said in zip([None, *pieces[1::2]], pieces[::2], strict=True):
            clean = one_line(unescape(_TAG.sub("", said)))
            if clean:
                name = None if speaker is None else one_line(unescape(speaker)) or None
                turns.append(SpokenTurn(clean, start, end, name))
    return from_turns(turns)


def audacity(text: str) -> dict[str, Any]:
    """Read an Audacity label track. A label that begins with a name and a colon belongs to that speaker.

    Source: the manual of Audacity, "Importing and Exporting Labels". Lines with frequencies begin with a backslash.
    """
    turns = []
    for line in _lines(text):
        if line.strip() and not line.startswith("\\"):
            start, end, *rest = line.split("\t", 2)
            speaker, said = _named(" ".join(rest))
            if said:
                turns.append(SpokenTurn(said, ms(start), ms(end), speaker))
    return from_turns(turns)


def plain(text: str) -> dict[str, Any]:
    """Read plain text in which turns begin with "NAME:" or "[0:01:15] NAME:"; other lines continue the turn before."""
    turns = list[tuple[str | None, int | None, list[str]]]()
    for line in text.splitlines():
        since = _SINCE.match(line)
        speaker, said = _named(line[since.end() :] if since else line)
        if speaker is not None or since or not turns:
            turns.append((speaker, _ms(since[1], since[2], since[3], "0") if since else None, [said]))
        else:
            turns[-1][2].append(said)
    joined = ((speaker, start, one_line(" ".join(lines))) for speaker, start, lines in turns)
    return from_turns(SpokenTurn(said, start, speaker=speaker) for speaker, start, said in joined if said)


def is_labels(text: str) -> bool:
    """Return True if the first line is an Audacity label."""
    return _LABEL.match(text) is not None


def is_srt(text: str) -> bool:
    """Return True if one of the first three lines has the times of a cue."""
    return any(_TIMES.match(line) for line in _lines(text.lstrip())[:3])


def _named(text: str) -> tuple[str | None, str]:
    """Split "Ann: Yes" into name and text; the name is None if there is none."""
    found = _NAME.match(text)
    return (found[1], one_line(text[found.end() :])) if found else (None, one_line(text))


def _cues(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield start, end and lines of each cue that has text."""
    for block in re.split(r"\n[ \t]*\n", "\n".join(_lines(text))):
        lines = block.split("\n")
        for n, line in enumerate(lines):
            if found := _TIMES.match(line):
                said = [part for part in lines[n + 1 :] if part.strip()]
                if said:
                    yield _ms(*found.groups()[:4]), _ms(*found.groups()[4:]), said
                break


def _lines(text: str) -> list[str]:
    """Split at LF, CRLF and CR, but not at other characters, such as U+2028 in a text."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _ms(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    return (int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)) * 1000 + int(fraction.ljust(3, "0"))
