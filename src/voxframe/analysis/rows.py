"""Rows of speech: their recordings, speakers, words and times, and turns of speakers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, TEXT_DTYPE, takes_frames
from voxframe._text import join_words
from voxframe.errors import OptionError, caller
from voxframe.validators import Number, checked, name_list, shown

P = ParamSpec("P")
R = TypeVar("R")

_ID, _NAME = "transcript_id", "recording"
_VOICES = ("speaker_name", "channel")  # columns that name a voice without a label
_ID_CHARS = 8  # of an id that tells transcripts of one recording apart


def keeps_recordings(function: Callable[P, pd.DataFrame]) -> Callable[P, pd.DataFrame]:
    """Give the result of a function the column `recording` of its first argument, after `transcript_id`."""

    @wraps(function)
    def with_recordings(*args: P.args, **options: P.kwargs) -> pd.DataFrame:
        result = function(*args, **options)
        source = next((value for value in (*args, *options.values()) if isinstance(value, pd.DataFrame)), None)
        if source is not None and {_ID, _NAME} <= {*source.columns} and _ID in result and _NAME not in result:
            add_recordings(result, known_names(result[_ID].unique(), source))
        return result

    return with_recordings


def add_recordings(df: pd.DataFrame, names: Mapping[Any, str]) -> None:
    """Insert the column `recording` after `transcript_id`, or fill its nulls; without a name, it is the id."""
    code, ids = pd.factorize(df[_ID])
    texts = [*(names.get(transcript_id, transcript_id) for transcript_id in ids), None]
    values = pd.Series(pd.array(texts, dtype=TEXT_DTYPE).take(code), index=df.index)  # -1 is a row without an id
    if _NAME in df:
        df[_NAME] = df[_NAME].fillna(values)
    else:
        df.insert([*df.columns].index(_ID) + 1, _NAME, values)


#: True while a measure runs, so that the measures that it is made of do not warn again.
_IS_RUNNING: ContextVar[bool] = ContextVar("a measure is running", default=False)


@contextmanager
def as_a_part() -> Iterator[None]:
    """Let measures that something else is made of leave out rows without a warning."""
    token = _IS_RUNNING.set(True)
    try:
        yield
    finally:
        _IS_RUNNING.reset(token)


def uses(
    *columns: str, needs: Sequence[str] = (), empty: str = "", pauses: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a measure or plot that leaves out rows with a null in these columns: one warning says how many and why.

    Another warning counts turns whose ends are guessed, if the measure uses ends.

    Args:
        needs: Columns whose nulls are only named if the result has no rows.
        empty: Why there are no rows if nothing is null, such as "no sentence ends with a question mark".
        pauses: The measure is of pauses between words: a warning counts words that share the time of their segment.

    Warns:
        UserWarning: The measure cannot use some rows, or has no rows from a table with rows.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def with_warning(*args: P.args, **options: P.kwargs) -> R:
            if _IS_RUNNING.get():
                return function(*args, **options)
            with as_a_part():
                result = function(*args, **options)
            is_empty = isinstance(result, pd.DataFrame) and result.empty
            tables = [value for value in (*args, *options.values()) if isinstance(value, pd.DataFrame)]
            why = _left_out(tables, columns, (*columns, *needs), is_empty=is_empty)
            if is_empty and not why and empty and any(map(len, tables)):
                why = [f"the result is empty, because {empty}"]
            if "end_ms" in columns:
                why += _guessed_ends(tables)
            if pauses:
                why += _shared_times(tables)
            for reason in why:
                warnings.warn(f"{function.__name__}: {reason}", stacklevel=caller())
            return result

        return with_warning

    return decorated


def _left_out(
    tables: Sequence[pd.DataFrame], columns: Sequence[str], needed: Sequence[str], *, is_empty: bool
) -> list[str]:
    """Say how many rows lack what a measure uses, or needs for a result."""
    named = needed if is_empty else columns
    tables = [table for table in tables if {*named} & {*table.columns}]
    if not tables:
        return []
    parts = [table.reindex(columns=table.columns.intersection([*named])).isna() for table in tables]
    for table, part in zip(tables, parts, strict=True):
        if "speaker" in part and {*_VOICES} & {*table.columns}:
            part["speaker"] &= table[table.columns.intersection([*_VOICES])].isna().all(axis=1)
    unknown: pd.DataFrame = pd.concat(parts)
    unknown = unknown.astype("boolean").fillna(False).astype(bool)  # a column that only another table has
    count = int(unknown.any(axis=1).sum())
    lacking = [name for name in named if name in unknown and unknown[name].any()]
    what = dict.fromkeys("times" if name.endswith("_ms") else name for name in lacking)
    empty = ", so that the result is empty" if is_empty and count == len(unknown) else ""
    reason = f"{count:,} of {len(unknown):,} rows have no {' or '.join(what)} and are left out{empty}"
    return [reason] if count else []


def _guessed_ends(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Say how many turns reach to the turn beside them, because their source has no ends."""
    guessed, rows = 0, 0
    for table in tables:
        if {"utterance_idx", "timing"} <= {*table.columns} and "word_idx" not in table:
            guessed, rows = guessed + int((table["timing"] == "shared").sum()), rows + len(table)
    reason = (
        f"{guessed:,} of {rows:,} turns lack a start or an end in their source and reach to the turn beside them, so "
        "that their times include pauses (timing is 'shared')"
    )
    return [reason] if guessed else []


def _shared_times(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Say how many words have no times of their own, so that no pause shows between them."""
    timings = [table["timing"] for table in tables if {"word_idx", "timing"} <= {*table.columns}]
    shared, words = sum(int((timing == "segment").sum()) for timing in timings), sum(map(len, timings))
    reason = f"{shared:,} of {words:,} words share the time of their segment, so that pauses in it are not known"
    return [reason] if shared else []


def known_names(ids: Iterable[Any], *tables: pd.DataFrame | None) -> dict[Any, str]:
    """Return the names of recordings by transcript id, from the column `recording` of any of the tables."""
    names: dict[Any, str] = {}
    for table in tables:
        if table is not None and {_ID, _NAME} <= {*table.columns}:
            rows = table[[_ID, _NAME]].drop_duplicates().dropna().drop_duplicates(_ID)
            names |= {id_: str(name) for id_, name in rows.itertuples(index=False)}
    return {id_: names[id_] for id_ in ids if id_ in names}


def distinct_names(ids: Sequence[str | None], *tables: pd.DataFrame | None) -> list[str | None]:
    """Return a different name for each transcript: its recording (with the start of its id if shared), or the id.

    Example:
        >>> rows = pd.DataFrame({"transcript_id": ["a1", "b2", "c3"], "recording": ["call", "call", "talk"]})
        >>> distinct_names(["a1", "b2", "c3", "d4"], rows)
        ['call-a1', 'call-b2', 'talk', 'd4']
    """
    name_of = known_names(ids, *tables)
    names = [name_of.get(id_, id_) for id_ in ids]
    shared = set[Any]()
    for chars in (_ID_CHARS, None):
        shared |= repeated(names)
        names = [
            f"{name_of[id_]}-{id_[:chars]}" if id_ in name_of and id_ is not None and name in shared else name
            for id_, name in zip(ids, names, strict=True)
        ]
    return names


def repeated(names: Iterable[Any]) -> set[Any]:
    """Return the names that occur more than once."""
    return {name for name, count in Counter(names).items() if count > 1}


_SHOWN = 40  # characters of a text in a message


def require(df: pd.DataFrame, needed: tuple[str, ...], purpose: str) -> None:
    """Raise an error that names `purpose` if the argument is not a DataFrame or lacks a column."""
    if not isinstance(df, pd.DataFrame):
        raise TypeError(
            f"{purpose} needs a DataFrame, such as the result of voxframe.load_words, not {type(df).__name__}"
        )
    if odd := [name for name in needed if not isinstance(name, str) or not name]:
        raise OptionError(f"{purpose} takes names of columns, got {shown(odd[0])}")
    missing = [name for name in needed if name not in df.columns]
    if missing:
        raise ValueError(f"{purpose} needs the columns {', '.join(needed)}; the DataFrame lacks {', '.join(missing)}")


def with_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose start and end are known."""
    return rows[rows["start_ms"].notna() & rows["end_ms"].notna()]


def floats(column: pd.Series[Any]) -> npt.NDArray[np.float64]:
    """Return a column of numbers, such as times, as float64; NaN if unknown."""
    if column.dtype.kind not in "mM":  # NumPy would return dates and durations as numbers of their unit
        try:
            return column.to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            pass
    other = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    odd = shown(other.iloc[0]) if len(other) else f"the dtype {column.dtype}"
    raise OptionError(f"the column {column.name!r} must have numbers, got {odd}")


#: Columns that say who speaks. Shares of a speaker are of everything in the other groups.
SPEAKER_COLUMNS = frozenset({"speaker", "speaker_name", "person"})


def require_words(df: pd.DataFrame, needed: tuple[str, ...], purpose: str) -> None:
    """Check that a DataFrame has the columns and one word per row: `word_idx`, or no `word_count` and short texts."""
    require(df, needed, purpose)
    if "word_idx" in df.columns:
        return
    texts = df["text"].dropna().astype(str)
    several = texts.str.contains(r"\S\s+\S")
    if "word_count" in df.columns or several.mean() > 0.5:
        example = f", such as {texts[several].iloc[0][:_SHOWN]!r}" if several.any() else ""
        raise OptionError(
            f"{purpose} needs one word per row, got turns or other longer rows{example}; pass words instead, from "
            "voxframe.load_words(transcript) or corpus.table('words')"
        )


def words_in_rows(df: pd.DataFrame) -> pd.Series[int]:
    """Return the number of words in each row: of words, those with a letter or a digit, else `word_count` or `text`."""
    if "word_idx" in df.columns and "text" in df.columns:
        codes, texts = pd.factorize(df["text"])
        is_word = np.array([*(any(map(str.isalnum, str(text))) for text in texts), False])  # the last one: null
        return pd.Series(is_word[codes], index=df.index).astype("int64")
    if "word_idx" in df.columns:
        return pd.Series(1, index=df.index)
    written = df["text"].fillna("").str.count(r"\S*[^\W_]\S*")
    counted = df["word_count"].fillna(written) if "word_count" in df.columns else written
    return counted.astype("int64")


def row_speakers(df: pd.DataFrame) -> pd.Series[str]:
    """Return the speaker of each row: the name, else the label, else "channel" and the channel name, else null."""
    code, names = speaker_codes(df)
    values = pd.array(names, dtype=TEXT)
    return pd.Series(values.take(code) if len(df) else values[:0], index=df.index, name="speaker")


def speaker_labels(df: pd.DataFrame) -> pd.Series[str]:
    """Return the original speaker label of each row, ignoring names; else "channel" and the channel name, else null."""
    return row_speakers(_unnamed(df))


def label_names(df: pd.DataFrame) -> dict[Any, Any] | None:
    """Return the most frequent name of each label of one transcript, or the label; None if no row has a name.

    Example:
        >>> label_names(pd.DataFrame({"speaker": ["A", "A", "B"], "speaker_name": ["Ada", "Ada", None]}))
        {'A': 'Ada', 'B': 'B'}
    """
    if "speaker_name" not in df.columns or df["speaker_name"].isna().all():
        return None
    code, labels = speaker_codes(_unnamed(df))
    named = pd.DataFrame({"label": code, "name": df["speaker_name"].to_numpy(object)}).dropna()
    counts = named.groupby(["label", "name"]).size().sort_values(ascending=False, kind="stable").reset_index()
    most = counts.drop_duplicates("label")
    return dict(zip(labels, labels, strict=True)) | {
        labels[label]: str(name) for label, name in zip(most["label"], most["name"], strict=True)
    }


def _unnamed(df: pd.DataFrame) -> pd.DataFrame:
    return df[[name for name in ("speaker", "channel") if name in df.columns]]


def speaker_codes(df: pd.DataFrame) -> tuple[npt.NDArray[np.intp], list[str | None]]:
    """Return the speaker of each row as an index in a list of names, which may have None.

    Example:
        >>> code, names = speaker_codes(pd.DataFrame({"speaker": ["B", None, "B"], "channel": ["1", "1", None]}))
        >>> code.tolist(), names
        ([0, 1, 0], ['B', 'channel 1'])
    """
    codes, names = np.full(len(df), -1, np.intp), list[str]()
    for column, prefix in (("speaker_name", ""), ("speaker", ""), ("channel", "channel ")):
        if column in df.columns and df[column].notna().any() and (codes < 0).any():
            places, labels = pd.factorize(df[column])
            complete = not names and (places >= 0).all()
            codes = places if complete else np.where((codes < 0) & (places >= 0), places + len(names), codes)
            names += [f"{prefix}{label}" for label in labels]
            if complete:
                return codes, list(names)
    if not names:
        return np.zeros(len(df), np.intp), [None] * min(1, len(df))
    place, unique = pd.factorize(np.array([*names, None], object), use_na_sentinel=False)  # a label may equal a name
    used, rows = np.unique(place[codes], return_inverse=True)  # code -1 is the last entry: no speaker
    return rows, [None if pd.isna(unique[n]) else str(unique[n]) for n in used]


#: Lengths of time that measures accept, in ms.
MILLISECONDS = Number(0, unit="ms")
#: Silences of one speaker up to this length (ms) belong to their speech.
LONGEST_SILENCE_MS = 200


def begins_spurt(
    speaker: npt.NDArray[Any], start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], max_pause_ms: float
) -> npt.NDArray[np.bool_]:
    """Return a mask of spans, sorted by speaker and start, that begin speech without silences above `max_pause_ms`.

    Example:
        >>> begins_spurt(np.array([0, 0, 1]), np.array([0.0, 150, 300]), np.array([100.0, 250, 400]), 60).tolist()
        [True, False, True]
    """
    reach = pd.Series(end).groupby(speaker).cummax().to_numpy()
    mask = np.ones(len(start), bool)
    mask[1:] = (speaker[1:] != speaker[:-1]) | (start[1:] - reach[:-1] > max_pause_ms)
    return mask


@takes_frames
@keeps_recordings
@uses("start_ms", needs=("end_ms",))
def turns(words: pd.DataFrame, *, pause_ms: float | None = None, keep: str | Sequence[str] = ()) -> pd.DataFrame:
    """Group words, or longer rows, into turns: a new turn begins when the speaker changes.

    Rows are sorted by `start_ms` within each transcript; rows with the same start keep their order. If a row has no
    speaker, its channel is used ("channel 1"). If it has neither, its speaker is null. Rows without a start are left
    out.

    Args:
        words: Words, as returned by `voxframe.load_words`, or longer rows such as sentences.
        pause_ms: Also begin a new turn after a silence longer than this, in ms. None (default): never.
        keep: Other column or columns to keep, such as metadata, with the value of the first row of each turn.

    Returns:
        One row per turn: `transcript_id` str, `turn_idx` int64 (counts from 0 in each transcript), `speaker` str,
        `text` str, `start_ms` Int64, `end_ms` Int64, `word_count` int64, and those of `keep`.

    Raises:
        ValueError: A column is missing.
        OptionError: `pause_ms` is negative or not a number.

    Example:
        >>> import pandas as pd
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "A", "B"], "text": ["How", "far?", "Here."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> turns(words)[["speaker", "text", "end_ms"]].values.tolist()
        [['A', 'How far?', 500], ['B', 'Here.', 1300]]
    """
    keep = name_list(keep, "columns to keep")
    require(words, ("transcript_id", "text", "start_ms", "end_ms", *keep), "turns")
    longest = np.inf if pause_ms is None else checked("pause_ms", pause_ms, MILLISECONDS)
    rows = words.assign(speaker=row_speakers(words))[["transcript_id", "speaker", "text", "start_ms", "end_ms", *keep]]
    count = words_in_rows(words)[rows["start_ms"].notna()].to_numpy(np.int64)
    rows = rows[rows["start_ms"].notna()]
    # Codes keep the order of the transcripts and sort faster than text.
    transcript, _ = pd.factorize(rows["transcript_id"], use_na_sentinel=False)
    speaker, _ = pd.factorize(rows["speaker"], use_na_sentinel=False)
    start, end = floats(rows["start_ms"]), floats(rows["end_ms"].fillna(rows["start_ms"]))
    order = np.lexsort((start, transcript))
    rows = rows.iloc[order]
    transcript, speaker, start, end, count = transcript[order], speaker[order], start[order], end[order], count[order]

    begins = np.ones(len(rows), bool)
    begins[1:] = (transcript[1:] != transcript[:-1]) | (speaker[1:] != speaker[:-1])
    begins[1:] |= start[1:] - end[:-1] > longest
    first = np.flatnonzero(begins)
    text = rows["text"].fillna("").astype(object).to_numpy()
    edges = np.r_[first, len(rows)]
    texts = [join_words(filter(None, text[a:b])) for a, b in pairwise(edges)]
    new_transcript = np.flatnonzero(np.r_[True, np.diff(transcript[first]) != 0]) if len(first) else first
    sizes = np.diff(np.r_[new_transcript, len(first)])
    last = np.maximum.reduceat(end, first) if len(first) else end
    return pd.DataFrame(
        {
            "transcript_id": pd.array(rows["transcript_id"].to_numpy()[first], dtype=TEXT),
            "turn_idx": np.arange(len(first)) - np.repeat(new_transcript, sizes),
            "speaker": rows["speaker"].array[first],
            "text": pd.array(texts, dtype=TEXT),
            "start_ms": pd.array(np.rint(start[first]), dtype="Int64"),
            "end_ms": pd.array(np.rint(last), dtype="Int64"),
            "word_count": np.add.reduceat(count, first) if len(first) else count,
            **{name: rows[name].array[first] for name in keep},
        }
    )
