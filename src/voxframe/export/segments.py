"""What every export of speech starts from: who says what from when to when, transcript by transcript."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from voxframe.errors import OptionError

_NEEDED = ("transcript_id", "text", "start_ms", "end_ms")
#: A silence after which the same voice begins a new segment.
PAUSE_MS = 2000


class Segment(NamedTuple):
    """Something one voice says, in milliseconds; `voice` is None where nobody is known, `channel` counts from 1."""

    start: int
    end: int
    text: str
    voice: str | None
    channel: int
    confidence: float | None


def transcripts(df: pd.DataFrame, purpose: str) -> Iterator[tuple[str, list[Segment]]]:
    """Each transcript with its rows in time order, those of each voice without overlap.

    Rows with no time or no text are left out. A row that ends before it begins is of one millisecond, and one that
    begins before the last one of the same voice has ended begins there: annotation formats allow nothing else.

    Args:
        df: Words, or any rows with `transcript_id`, `text`, `start_ms` and `end_ms`.
        purpose: What they are for, in words for the message.

    Raises:
        OptionError: It is no DataFrame, or lacks a column.
    """
    if not isinstance(df, pd.DataFrame):
        raise OptionError(
            f"{purpose} takes a DataFrame, such as voxframe.load_words(...) gives, not {type(df).__name__}"
        )
    missing = [name for name in _NEEDED if name not in df.columns]
    if missing:
        raise OptionError(f"{purpose} needs the columns {', '.join(_NEEDED)}; the DataFrame lacks {', '.join(missing)}")
    rows = df[df["start_ms"].notna() & df["text"].notna()]
    columns = pd.DataFrame(
        {
            "start": rows["start_ms"].astype("int64"),
            "end": rows["end_ms"].fillna(rows["start_ms"]).astype("int64"),
            "text": [plain(text) for text in rows["text"]],
            "voice": voices(rows),
            "channel": _channels(rows),
            "confidence": rows["confidence"].astype("float64") if "confidence" in rows else np.nan,
        }
    )
    for transcript_id, places in rows.groupby("transcript_id", sort=False).indices.items():
        yield str(transcript_id), _in_order(columns.iloc[places])


def whole(df: pd.DataFrame, purpose: str) -> list[Segment]:
    """The rows of the only transcript.

    Raises:
        OptionError: There are several.
    """
    found = list(transcripts(df, purpose))
    if len(found) > 1:
        raise OptionError(
            f"{purpose} is of one transcript and the DataFrame holds {len(found)}; take one of them, or "
            "voxframe.export.write(df, directory, format) for a file each"
        )
    return found[0][1] if found else []


def grouped(segments: list[Segment], pause_ms: int = PAUSE_MS) -> list[list[Segment]]:
    """Runs of one voice with no long silence and nobody else in between, by time."""
    runs: list[list[Segment]] = []
    last: dict[tuple[str | None, int], list[Segment]] = {}
    for segment in segments:
        key = (segment.voice, segment.channel)
        run = last.get(key)
        others = (other for other in last.values() if other is not run)
        if run and segment.start - run[-1].end < pause_ms and all(o[-1].start < run[-1].start for o in others):
            run.append(segment)
        else:
            last[key] = run = [segment]
            runs.append(run)
    return runs


def joined(run: list[Segment]) -> Segment:
    """A run as one segment; its confidence is not known."""
    first = run[0]
    return first._replace(end=max(s.end for s in run), text=" ".join(s.text for s in run if s.text), confidence=None)


def plain(text: object) -> str:
    """Text as one line without control characters: white space becomes single blanks."""
    line = " ".join(str(text).split())
    return "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs"))


def token(text: object) -> str:
    """Text as a field of a format whose fields are separated by blanks, never empty and never a comment."""
    field = "_".join(plain(text).split()).lstrip(";")
    return field or "_"


def voices(df: pd.DataFrame) -> list[str | None]:
    """Who speaks in each row: `speaker_name`, else `speaker`, else "channel" and its name."""
    columns = [df[name] if name in df else [None] * len(df) for name in ("speaker_name", "speaker", "channel")]
    return [
        next((plain(v) for v in (name, label) if isinstance(v, str) and plain(v)), None)
        or (f"channel {plain(channel)}" if isinstance(channel, str) and plain(channel) else None)
        for name, label, channel in zip(*columns, strict=True)
    ]


def _channels(df: pd.DataFrame) -> list[int]:
    if "channel" not in df:
        return [1] * len(df)
    return [
        int(c) if isinstance(c, str) and c.isascii() and c.isdigit() and 0 < int(c) < 1000 else 1 for c in df["channel"]
    ]


def _in_order(rows: pd.DataFrame) -> list[Segment]:
    ends: dict[tuple[str | None, int], int] = {}
    found = []
    for start, end, text, voice, channel, confidence in rows.sort_values("start", kind="stable").itertuples(
        index=False, name=None
    ):
        if not text:
            continue
        who = voice if isinstance(voice, str) else None
        begin = max(0, start, ends.get((who, channel), 0))
        ends[who, channel] = stop = max(end, begin + 1)
        found.append(Segment(begin, stop, text, who, channel, None if np.isnan(confidence) else float(confidence)))
    return sorted(found, key=lambda s: s.start)
