"""Speech segments as all formats need them: speaker, text and times, one transcript after the other."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import pandas as pd

from voxframe._text import PAUSE_MS, join_words, one_line
from voxframe.errors import OptionError
from voxframe.export.result import Losses
from voxframe.validators import shown

_NEEDED = ("transcript_id", "text", "start_ms", "end_ms")
_NUMBERS = ("start_ms", "end_ms", "confidence")

_TEXT_CHANGED = "texts with control characters, line ends or repeated blanks, written as one line without them"
_NAME_CHANGED = "names with blanks, line ends or control characters, written with _ or without them"
_TEXT_MISSING = "rows with times but no text, left out"
_TIMES_CORRECTED = "rows with impossible times (negative, the end before the start, one missing, fractions), corrected"
_UNTIMED_PLACED = "rows without times, given those of the nearest row of the same speaker"
_UNTIMED_LEFT_OUT = "rows without times, left out"


class SpeechSegment(NamedTuple):
    """A piece of speech by one speaker, with times in milliseconds.

    Attributes:
        start: Start.
        end: End; equal to the start if the length is zero.
        text: Text on one line.
        voice: Name of the speaker, or None.
        channel: Audio channel; "1" if the row has none.
        confidence: Confidence (0-1), or None.
        timed: False if the row has no times. The times are then those of the nearest row of the same speaker.
        row: Position of the row among those of its transcript.
    """

    start: int
    end: int
    text: str
    voice: str | None
    channel: str
    confidence: float | None
    timed: bool = True
    row: int = 0


def transcripts(
    df: pd.DataFrame, purpose: str, losses: Losses, *, untimed: bool = True
) -> Iterator[tuple[str, list[SpeechSegment]]]:
    """Yield the id and the segments of each transcript, in time order.

    Args:
        df: Words, or any rows with `transcript_id`, `text`, `start_ms` and `end_ms`.
        purpose: Name of the format, for error messages.
        losses: Counter for rows that are changed or left out.
        untimed: Keep rows without times, next to the nearest row of the same speaker. If False, leave them out.

    Raises:
        OptionError: `df` is not a DataFrame, a column is missing or occurs twice, or a time or confidence is not a
            number.
    """
    check_columns(df, purpose)
    for transcript_id, rows in df.groupby("transcript_id", sort=False, dropna=False):
        found = _segments(rows, losses)
        kept = _placed(found if untimed else [s for s in found if s.timed], losses)
        if dropped := len(found) - len(kept):
            losses[_UNTIMED_LEFT_OUT] += dropped
        if kept:
            yield "" if pd.isna(transcript_id) else str(transcript_id), kept


def check_columns(df: object, purpose: str) -> None:
    """Check that rows have the columns of speech segments, each once, with numbers as times and confidences.

    Args:
        df: The rows.
        purpose: Name of the format, for error messages.

    Raises:
        OptionError: `df` is not a DataFrame, a column is missing or occurs twice, or a time or confidence is not a
            number.
    """
    if not isinstance(df, pd.DataFrame):
        raise OptionError(
            f"{purpose} needs a DataFrame, such as the result of voxframe.load_words, not {type(df).__name__}"
        )
    if missing := [name for name in _NEEDED if name not in df.columns]:
        raise OptionError(f"{purpose} needs the columns {', '.join(_NEEDED)}; the DataFrame lacks {', '.join(missing)}")
    if len(twice := df.columns[df.columns.duplicated()]):
        raise OptionError(f"{purpose} needs unique column names, but {twice[0]!r} occurs twice; rename or drop one")
    for name in _NUMBERS:
        if name in df and not pd.api.types.is_numeric_dtype(df[name]):
            others = [value for value in df[name].dropna() if not isinstance(value, Real | Decimal)]
            if others:
                raise OptionError(f"{purpose} needs numbers in the column {name}, got {shown(others[0])}")


def whole(df: pd.DataFrame, purpose: str, losses: Losses, *, untimed: bool = True) -> list[SpeechSegment]:
    """Return the segments of the only transcript.

    Raises:
        OptionError: There is more than one transcript.
    """
    found = list(transcripts(df, purpose, losses, untimed=untimed))
    if len(found) > 1:
        raise OptionError(
            f"{purpose} needs one transcript, got {len(found)}; select one, or write one file per transcript with "
            f"voxframe.export.write(df, directory, {purpose!r})"
        )
    return found[0][1] if found else []


def grouped(segments: list[SpeechSegment]) -> list[list[SpeechSegment]]:
    """Group segments, sorted by start, into turns: runs of one speaker without a long pause or another speaker."""
    runs: list[list[SpeechSegment]] = []
    last: dict[tuple[str | None, str], list[SpeechSegment]] = {}
    for segment in segments:
        key = (segment.voice, segment.channel)
        run = last.get(key)
        others = (other for other in last.values() if other is not run)
        if run and segment.start - run[-1].end < PAUSE_MS and all(o[-1].start < run[-1].start for o in others):
            run.append(segment)
        else:
            last[key] = run = [segment]
            runs.append(run)
    return runs


def turns(segments: list[SpeechSegment]) -> list[SpeechSegment]:
    """Return each turn as one segment."""
    return [joined(run) for run in grouped(segments)]


def joined(run: list[SpeechSegment]) -> SpeechSegment:
    """Return a turn as one segment, without a confidence."""
    text = join_words(s.text for s in run)
    return run[0]._replace(end=max(s.end for s in run), text=text, confidence=None, timed=True)


def token(text: str, losses: Losses) -> str:
    """Return a text as a field of a space-separated format: never empty, and never the start of a comment."""
    field = "_".join(one_line(text).split()).lstrip(";") or "_"
    if field != text:
        losses[_NAME_CHANGED] += 1
    return field


def _segments(rows: pd.DataFrame, losses: Losses) -> list[SpeechSegment]:
    """Return the rows that have text as segments, in their order. Rows without times get the time 0."""
    found = []
    columns = [_values(rows, name) for name in ("start_ms", "end_ms", "text", "confidence")]
    for row, (start_ms, end_ms, text, confidence, voice, channel) in enumerate(
        zip(*columns, _voices(rows, losses), _values(rows, "channel"), strict=True)
    ):
        start, end, timed = _times(start_ms, end_ms, losses)
        line = "" if text is None else one_line(str(text))
        if text is not None and line != text:
            losses[_TEXT_CHANGED] += 1
        if line:
            sure = None if confidence is None else float(confidence)
            found.append(SpeechSegment(start, end, line, voice, one_line(str(channel or 1)) or "1", sure, timed, row))
        elif timed and not text:
            losses[_TEXT_MISSING] += 1
    return found


def _times(start: Any, end: Any, losses: Losses) -> tuple[int, int, bool]:
    known = [time for time in (start, end) if time is not None and math.isfinite(time)]
    if not known:
        return 0, 0, False
    begin = max(0, round(known[0]))
    stop = max(begin, round(known[-1]))
    if (begin, stop) != (start, end):
        losses[_TIMES_CORRECTED] += 1
    return begin, stop, True


def _placed(segments: list[SpeechSegment], losses: Losses) -> list[SpeechSegment]:
    """Return the segments in time order, untimed ones with the times of the nearest segment of the same speaker.

    Untimed segments are left out if no segment of their speaker has times.
    """
    places: dict[tuple[str | None, str], list[int]] = {}
    for n, s in enumerate(segments):
        if s.timed:
            places.setdefault((s.voice, s.channel), []).append(n)
    found = []
    for n, s in enumerate(segments):
        if s.timed:
            found.append(s)
        elif around := places.get((s.voice, s.channel)):
            at = bisect(around, n)
            beside = segments[min(around[max(0, at - 1) : at + 1], key=lambda place: abs(place - n))]
            found.append(s._replace(start=beside.start, end=beside.end))
            losses[_UNTIMED_PLACED] += 1
    return sorted(found, key=lambda s: s.start)


def _voices(df: pd.DataFrame, losses: Losses) -> list[str | None]:
    """Return the speaker of each row: `speaker_name`, else `speaker`, else "channel" and the channel name."""
    columns = (_values(df, name) for name in ("speaker_name", "speaker", "channel"))
    found = []
    for name, label, channel in zip(*columns, strict=True):
        given = next((str(value) for value in (name, label) if value is not None and one_line(str(value))), None)
        if given is None and channel is not None and one_line(str(channel)):
            given = f"channel {channel}"
        voice = None if given is None else one_line(given)
        if voice != given:
            losses[_NAME_CHANGED] += 1
        found.append(voice)
    return found


def _values(df: pd.DataFrame, name: str) -> list[Any]:
    """Return the values of a column as a list, with None for missing values or a missing column."""
    if name not in df:
        return [None] * len(df)
    column = df[name]
    return column.astype(object).where(column.notna(), None).to_list()
