"""Pieces of speech with speaker, text and times, for all writers; and counts of values that a format cannot hold."""

from __future__ import annotations

import math
import warnings
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from voxframe._text import PAUSE_MS, SENTENCE_ENDS, join_words, one_line
from voxframe.errors import ExportWarning, OptionError, caller
from voxframe.validators import shown

#: Number of affected values by description of the change.
Losses: TypeAlias = Counter[str]
LENGTHENED = "captions shown longer than they are spoken, so that they can be read"
PARTS = "captions after the first of a turn, read as turns of their own"
#: Changes that are wanted in captions, so that no warning reports them.
WANTED = frozenset({LENGTHENED, PARTS})


@dataclass(frozen=True)
class ExportResult:
    """The files that an export wrote, and the number of values that the format could not hold.

    Iterating gives the file names; `len` is their number.

    Attributes:
        files: File names relative to the directory, or the target itself. With one file per transcript, the data card
            and the hashes are not listed.
        losses: Number of changed or omitted values, by description of the change. Empty if every value was written
            exactly. An `ExportWarning` reports the same, but for how turns are shown as captions.
        omitted: Number of values in columns that the format has no field for, by column, such as `confidence` in
            captions. No warning reports these.

    Example:
        >>> ExportResult(["a.srt"], {"rows without times, left out": 2}).losses
        {'rows without times, left out': 2}
    """

    files: list[str]
    losses: dict[str, int] = field(default_factory=dict)
    omitted: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)


@contextmanager
def counted(losses: Losses | None, what: str) -> Iterator[Losses]:
    """Count losses in the given counter, whose owner warns, or in a new one that is reported as a warning."""
    if losses is not None:
        yield losses
        return
    counter: Losses = Counter()
    yield counter
    warn(counter, what)


def warn(losses: Losses, what: str) -> None:
    """Warn about losses, if there are any."""
    if lost := {reason: count for reason, count in losses.items() if count and reason not in WANTED}:
        reasons = "; ".join(f"{count} {reason}" for reason, count in lost.items())
        warnings.warn(f"{what} cannot hold every value exactly: {reasons}", ExportWarning, stacklevel=caller())


_NEEDED = ("transcript_id", "text", "start_ms", "end_ms")
_NUMBERS = ("start_ms", "end_ms", "confidence")

_TEXT_CHANGED = "texts with control characters, line ends or repeated blanks, written as one line without them"
_NAME_CHANGED = "names with blanks, line ends or control characters, written with _ or without them"
_TEXT_MISSING = "rows with times but no text, left out"
_TIMES_CORRECTED = "rows with impossible times (negative, the end before the start, one missing, fractions), corrected"
_UNTIMED_PLACED = "rows without times, given those of the nearest row of the same speaker"
_UNTIMED_LEFT_OUT = "rows without times, left out"
_TEXTS = ("txt", "md", "docx")  # formats that need no times
_INTERJECTION_MS = 1000  # the longest silence in a sentence in which another speaker says something


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
        turn: Its turn, or None if it is unknown.
        limits: Start and end of the turn, if these are known.
    """

    start: int
    end: int
    text: str
    voice: str | None
    channel: str
    confidence: float | None
    timed: bool = True
    row: int = 0
    turn: int | None = None
    limits: tuple[int, int] | None = None


#: Columns that `with_turns` adds.
LIMITS = ("turn_start_ms", "turn_end_ms")


def with_turns(words: pd.DataFrame, utterances: pd.DataFrame) -> pd.DataFrame:
    """Return words with the limits of their turns, followed by the turns of transcripts without words."""
    keys = ["transcript_id", "utterance_idx"]
    if utterances.empty or not {*keys} <= {*words.columns}:
        return words
    limits = utterances[[*keys, "start_ms", "end_ms"]].set_axis([*keys, *LIMITS], axis=1).astype({keys[0]: object})
    joined = words.astype({keys[0]: object}).merge(limits.astype({keys[1]: "Int64"}), how="left", on=keys)
    joined = joined.set_index(words.index)
    silent = utterances[~utterances["transcript_id"].isin(words["transcript_id"])]
    if silent.empty:
        return joined
    return pd.concat([joined, silent[[name for name in silent.columns if name in words.columns]]], ignore_index=True)


def transcripts(
    df: pd.DataFrame, purpose: str, losses: Losses, *, untimed: bool = True
) -> Iterator[tuple[str, list[SpeechSegment]]]:
    """Yield the id and the segments of each transcript, in time order.

    Rows without times are next to the nearest row of the same speaker, or left out if `untimed` is False. In formats
    of text, all rows keep their order.
    """
    check_columns(df, purpose)
    for transcript_id, rows in df.groupby("transcript_id", sort=False, dropna=False):
        segments = _segments(rows, losses, texts=purpose != "rttm")
        in_order = purpose in _TEXTS and not all(s.timed for s in segments)
        placed = segments if in_order else _placed(segments if untimed else [s for s in segments if s.timed], losses)
        if dropped := len(segments) - len(placed):
            losses[_UNTIMED_LEFT_OUT] += dropped
        if placed:
            yield "" if pd.isna(transcript_id) else str(transcript_id), placed


def check_columns(df: object, purpose: str) -> None:
    """Check that rows have the columns of speech segments, each once, with numbers as times and confidences."""
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
            invalid = [value for value in df[name].dropna() if not isinstance(value, Real | Decimal)]
            if invalid:
                raise OptionError(f"{purpose} needs numbers in the column {name}, got {shown(invalid[0])}")


def whole(df: pd.DataFrame, purpose: str, losses: Losses, *, untimed: bool = True) -> list[SpeechSegment]:
    """Return the segments of the only transcript."""
    pairs = list(transcripts(df, purpose, losses, untimed=untimed))
    if len(pairs) > 1:
        raise OptionError(
            f"{purpose} needs one transcript, got {len(pairs)}; select one, or write one file per transcript with "
            f"voxframe.export.write(df, directory, {purpose!r})"
        )
    return pairs[0][1] if pairs else []


def grouped(segments: list[SpeechSegment], *, is_sentence_whole: bool = False) -> list[list[SpeechSegment]]:
    """Group segments, sorted by start, into turns: those of the transcript.

    Rows without a turn make runs of one speaker without a long pause. Another speaker ends a run, unless the sentence
    goes on within a second: an interjection does not cut it.

    Args:
        is_sentence_whole: Join turns of one speaker, too, if an interjection cuts a sentence.
    """
    runs: list[list[SpeechSegment]] = []
    last: dict[tuple[str | None, str], list[SpeechSegment]] = {}
    of_turn: dict[tuple[int | None, str | None, str], list[SpeechSegment]] = {}
    for segment in segments:
        key = (segment.voice, segment.channel)
        run = None if segment.turn is None else of_turn.get((segment.turn, *key))
        if run is None and (before := last.get(key)):
            is_free = before[-1].turn is segment.turn is None
            pause = segment.start - before[-1].end
            if all(other[-1].start < before[-1].start for other in last.values() if other is not before):
                goes_on = is_free and pause < PAUSE_MS
            else:
                is_open = not before[-1].text.endswith(SENTENCE_ENDS)
                goes_on = (is_free or is_sentence_whole) and is_open and pause < _INTERJECTION_MS
            run = before if goes_on else None
        if run is None:
            run = []
            runs.append(run)
        run.append(segment)
        last[key] = of_turn[segment.turn, *key] = run
    return runs


def turns(segments: list[SpeechSegment]) -> list[SpeechSegment]:
    """Return each turn as one segment."""
    return [joined(run) for run in grouped(segments)]


def joined(run: list[SpeechSegment]) -> SpeechSegment:
    """Return a turn as one segment, without a confidence."""
    text = join_words(s.text for s in run)
    start, end = run[0].limits or (run[0].start, max(s.end for s in run))
    return run[0]._replace(start=start, end=end, text=text, confidence=None, timed=any(s.timed for s in run))


def token(text: str, losses: Losses) -> str:
    """Return a text as a field of a space-separated format: never empty, and never the start of a comment."""
    field = "_".join(one_line(text).split()).lstrip(";") or "_"
    if field != text:
        losses[_NAME_CHANGED] += 1
    return field


def _segments(rows: pd.DataFrame, losses: Losses, *, texts: bool) -> list[SpeechSegment]:
    """Return the rows that have text, or all if `texts` is False, in their order. Rows without times get the time 0."""
    segments = []
    columns = [_values(rows, name) for name in ("start_ms", "end_ms", "text", "confidence", "utterance_idx", *LIMITS)]
    for row, (start_ms, end_ms, text, confidence, turn, *known, voice, channel) in enumerate(
        zip(*columns, _voices(rows, losses), _values(rows, "channel"), strict=True)
    ):
        start, end, timed = _times(start_ms, end_ms, losses)
        line = "" if text is None else one_line(str(text))
        if text is not None and line != text:
            losses[_TEXT_CHANGED] += 1
        if line or (timed and not texts):
            sure = None if confidence is None else float(confidence)
            limits = (
                None if None in known or known[1] < known[0] else (max(0, round(known[0])), max(0, round(known[1])))
            )
            turn = None if turn is None else int(turn)
            track = one_line(str(channel or 1)) or "1"
            segments.append(SpeechSegment(start, end, line, voice, track, sure, timed, row, turn, limits))
        elif timed and not text:
            losses[_TEXT_MISSING] += 1
    return segments


def _times(start: Any, end: Any, losses: Losses) -> tuple[int, int, bool]:
    times = [time for time in (start, end) if time is not None and math.isfinite(time)]
    if not times:
        return 0, 0, False
    begin = max(0, round(times[0]))
    stop = max(begin, round(times[-1]))
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
    placed = []
    for n, s in enumerate(segments):
        if s.timed:
            placed.append(s)
        elif around := places.get((s.voice, s.channel)):
            at = bisect(around, n)
            beside = segments[min(around[max(0, at - 1) : at + 1], key=lambda place: abs(place - n))]
            placed.append(s._replace(start=beside.start, end=beside.end))
            losses[_UNTIMED_PLACED] += 1
    return sorted(placed, key=lambda s: s.start)


def _voices(df: pd.DataFrame, losses: Losses) -> list[str | None]:
    """Return the speaker of each row: `speaker_name`, else `speaker`, else "channel" and the channel name."""
    columns = (_values(df, name) for name in ("speaker_name", "speaker", "channel"))
    voices = []
    for name, label, channel in zip(*columns, strict=True):
        speaker = next((str(value) for value in (name, label) if value is not None and one_line(str(value))), None)
        if speaker is None and channel is not None and one_line(str(channel)):
            speaker = f"channel {channel}"
        voice = None if speaker is None else one_line(speaker)
        if voice != speaker:
            losses[_NAME_CHANGED] += 1
        voices.append(voice)
    return voices


def _values(df: pd.DataFrame, name: str) -> list[Any]:
    """Return the values of a column as a list, with None for missing values or a missing column."""
    if name not in df:
        return [None] * len(df)
    column = df[name]
    return column.astype(object).where(column.notna(), None).to_list()
