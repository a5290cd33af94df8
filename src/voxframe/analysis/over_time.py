"""Joins by time, cuts at time bins, and measures in windows of time: pace, sentiment, and the share of labels."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.grouping import By, durations_ms, key_list, ratio, with_keys
from voxframe.analysis.rows import floats, keeps_recordings, require, require_words, uses, with_times, words_in_rows
from voxframe.analysis.speech_delivery import speech_pieces
from voxframe.dictionary import defines
from voxframe.errors import OptionError
from voxframe.validators import Choice, Integer, Number, checked, name_list, shown

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.intp]
Rule: TypeAlias = Literal["most", "start", "middle", "within", "all"]

_RULES = ("most", "start", "middle", "within", "all")
_CHUNK = 4_000_000  # spans at a time, to limit memory
#: Lengths of windows of time.
WINDOW_S = Number(0.001, 1e9, "seconds")


@takes_frames
@keeps_recordings
def annotate(
    spans: pd.DataFrame,
    others: pd.DataFrame,
    *,
    rule: Rule = "most",
    columns: str | Sequence[str] | None = None,
    on: str | Sequence[str] = "transcript_id",
    prefix: str = "",
) -> pd.DataFrame:
    """Add to each span the columns of the other span that it lies in, such as the chapter of each word.

    Spans are half-open: a word that starts when a chapter ends belongs to the next chapter. The rule decides about
    spans that straddle a boundary:

    - "most" (default): the other span with the longest common time; of equals, the one that starts first.
    - "start", "middle": the other span that contains the start or the middle; of several, the one that starts last.
    - "within": like "start", but only if it contains the whole span.
    - "all": every other span with common time: one row per pair, and `overlap_ms` float64 (ms, NaN without one).

    A span without length, such as a word whose times are equal, lies in the spans that contain its start.

    Args:
        spans: Any rows with `start_ms` and `end_ms`, such as words.
        others: Any rows with `start_ms` and `end_ms`, such as chapters, topics or turns. They may overlap each other.
            Rows without times, or that do not end after their start, are left out.
        rule: Rule for spans that straddle a boundary.
        columns: Column or columns of `others` to add. None (default): all except the times, `extra`, those of `on`,
                and a `recording` that both have.
        on: Column or columns that must be equal in both, such as ["transcript_id", "channel"]. If neither has
            `transcript_id`, all rows belong to one recording.
        prefix: Text to put before the names of the added columns. Needed if `spans` has columns of the same name.

    Returns:
        The rows of `spans` in their order and with their index, and the added columns; null if no other span fits.

    Raises:
        ValueError: A column is missing.
        OptionError: The rule is unknown, or an added column exists already.

    Example:
        >>> words = pd.DataFrame({"start_ms": [0, 900, 1500], "end_ms": [400, 1300, 1900]})
        >>> chapters = pd.DataFrame({"chapter": ["one", "two"], "start_ms": [0, 1000], "end_ms": [1000, 1600]})
        >>> annotate(words, chapters)["chapter"].tolist()
        ['one', 'two', 'two']
        >>> annotate(words, chapters, rule="within")["chapter"].tolist()
        ['one', nan, nan]
    """
    keys = name_list(on, "the columns of on=")
    for df in (spans, others):
        require(df, ("start_ms", "end_ms"), "annotate")
    if keys == ["transcript_id"] and not any("transcript_id" in df.columns for df in (spans, others)):
        keys = []
    for df in (spans, others):
        require(df, tuple(keys), "annotate")
    checked("rule", rule, Choice(_RULES))
    if not isinstance(prefix, str):
        raise OptionError(f"prefix must be a text, got {shown(prefix)}")
    twice = {"recording"} & {*spans.columns} if "transcript_id" in keys else set()
    usual = [name for name in others.columns if name not in {"start_ms", "end_ms", "extra", *keys, *twice}]
    names = usual if columns is None else name_list(columns, "columns to add")
    require(others, tuple(names), "annotate")
    if clashes := [prefix + name for name in names if prefix + name in spans.columns]:
        raise OptionError(f"both DataFrames have the column {clashes[0]!r}; choose columns=[...], or pass a prefix=")
    # Transcripts follow each other on one axis, so that one sorted array serves all of them.
    starts, ends, low, high = _one_axis(spans, others, keys)
    row, other, shared = _pairs(starts, ends, low, high, rule)
    if rule == "all":
        alone = np.setdiff1d(np.arange(len(spans)), row)
        row, other = np.r_[row, alone], np.r_[other, np.full(len(alone), -1)]
        order = np.lexsort((np.r_[low, np.inf][other], row))
        rows, other = spans.iloc[row[order]], other[order]
        extra = {"overlap_ms": np.r_[shared, np.full(len(alone), np.nan)][order]}
    else:
        best = np.full(len(spans), -1)
        best[row] = other
        rows, other, extra = spans, best, {}
    added: dict[str, Any] = {prefix + name: _taken(others[name], other) for name in names}
    table: pd.DataFrame = rows.assign(**added, **extra)
    return table


def _taken(column: pd.Series[Any], rows: _Ints) -> Any:
    """Return the values at some positions, null for -1, of a nullable dtype if there are nulls."""
    if (rows < 0).any() and column.dtype.kind in "iub":
        column = column.astype("boolean" if column.dtype.kind == "b" else "Int64")
    return column.reset_index(drop=True).reindex(rows).array


def _one_axis(spans: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """Return starts and ends of both on one axis on which recordings follow each other; NaN if unknown."""
    start, end = (np.concatenate([floats(df[name]) for df in (spans, others)]) for name in ("start_ms", "end_ms"))
    valid = np.isfinite(start) & np.isfinite(end) & (end >= start)
    code = np.zeros(len(start), np.intp)
    for key in keys:
        codes, values = pd.factorize(pd.concat([spans[key], others[key]], ignore_index=True), use_na_sentinel=False)
        code = code * len(values) + codes
    low = start[valid].min(initial=0.0)
    length = end[valid].max(initial=0.0) - low + 1
    code = pd.factorize(code)[0] if len(keys) > 1 else code  # keep the axis short, so that times stay exact
    place = np.where(valid, code * length - low, np.nan)
    start, end, count = start + place, end + place, len(spans)
    return start[:count], end[:count], start[count:], end[count:]


def _pairs(start: _Floats, end: _Floats, low: _Floats, high: _Floats, rule: str) -> tuple[_Ints, _Ints, _Floats]:
    """Return the rows of spans, the rows of others that fit (one at most, unless the rule is "all"), and a score."""
    usable = np.flatnonzero(high > low)
    usable = usable[np.lexsort((high[usable], low[usable]))]
    layer = pack(low[usable], high[usable])
    rows = np.flatnonzero(np.isfinite(start))
    if (np.diff(start[rows]) < 0).any():
        rows = rows[np.argsort(start[rows], kind="stable")]
    begins, reach = start[rows], np.maximum.accumulate(end[rows])
    pairs: list[tuple[_Ints, _Ints, _Floats]] = [(rows[:0], rows[:0], start[:0])]
    best, score = np.full(len(start), -1), np.full(len(start), -np.inf)
    for n in range(int(layer.max(initial=-1)) + 1):
        of = usable[layer == n]  # sorted, and no two overlap
        left, right = low[of], high[of]
        stop = np.searchsorted(begins, right, "left")
        first = np.maximum(np.searchsorted(reach, left, "left"), np.r_[0, stop[:-1]])
        near = rows[_ranges(first, np.maximum(stop - first, 0))]  # the spans that can meet this layer
        for part in (near[at : at + _CHUNK] for at in range(0, len(near), _CHUNK)):
            row, place, shared = _meetings(part, start[part], end[part], left, right, rule)
            if rule == "all":
                pairs.append((row, of[place], shared))
                continue
            before = best[row]
            better = (before < 0) | (shared > score[row])
            tied = np.flatnonzero(shared == score[row])
            better[tied] = left[place[tied]] < low[before[tied]]
            best[row[better]], score[row[better]] = of[place[better]], shared[better]
    if rule == "all":
        row, other, common = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return row, other, common
    row = np.flatnonzero(best >= 0)
    return row, best[row], score[row]


def _meetings(
    row: _Ints, start: _Floats, end: _Floats, left: _Floats, right: _Floats, rule: str
) -> tuple[_Ints, _Ints, _Floats]:
    """Return the rows of spans that meet one of some disjoint sorted spans, its position, and a score.

    The score is the common time, or the start of the other span if the rule goes by a point. Only the rule "all" gives
    more than one pair per row.
    """
    if rule not in ("all", "most"):
        point = (start + end) / 2 if rule == "middle" else start
        place = np.searchsorted(left, point, "right") - 1
        inside = (place >= 0) & (point < right[place])
        if rule == "within":
            inside &= end <= right[place]
        place = place[inside]
        return row[inside], place, left[place]
    first = np.searchsorted(right, start, "right")
    last = np.searchsorted(left, np.maximum(end, np.nextafter(start, np.inf)), "left")
    single, several = np.flatnonzero(last - first == 1), np.flatnonzero(last - first > 1)
    at, place = single, first[single]
    if len(several):
        count = last[several] - first[several]
        again, places = np.repeat(several, count), _ranges(first[several], count)
        if rule == "most":  # the longest first, then the earliest
            common = np.minimum(end[again], right[places]) - np.maximum(start[again], left[places])
            order = np.lexsort((places, -common, again))
            order = order[np.r_[True, np.diff(again[order]) != 0]]
            again, places = again[order], places[order]
        at, place = np.r_[at, again], np.r_[place, places]
    return row[at], place, np.minimum(end[at], right[place]) - np.maximum(start[at], left[place])


def _ranges(first: _Ints, count: _Ints) -> _Ints:
    """Return the integers of ranges that begin at `first` and have `count` members, one range after another.

    Example:
        >>> _ranges(np.array([5, 2]), np.array([2, 1])).tolist()
        [5, 6, 2]
    """
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(count.sum())


def pack(start: _Floats, end: _Floats) -> _Ints:
    """Return a lane for each span, the first free one (interval partitioning: Kleinberg and Tardos, 4.1).

    Example:
        >>> pack(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 4.0, 3.0, 5.0])).tolist()
        [0, 1, 0, 0]
    """
    lanes = np.zeros(len(start), np.intp)
    if not (start[1:] < np.maximum.accumulate(end)[:-1]).any():
        return lanes
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for n, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes[n] = lane
        heapq.heappush(busy, (finish, lane))
    return lanes


@takes_frames
@keeps_recordings
def split_spans(
    spans: pd.DataFrame,
    *,
    window_s: float | None = None,
    parts: int | None = None,
    transcripts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Cut spans at the limits of time bins, so that each piece lies in one bin.

    Args:
        spans: Rows with `transcript_id`, `start_ms` and `end_ms`. Rows without times are left out.
        window_s: Length of a bin in seconds.
        parts: Number of bins of equal length per recording, instead of `window_s`.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        One row per piece, in the order of the spans: their columns with the times of the piece, `bin_idx` int64 (counts
        from 0 in each recording) and `first_piece` bool. Pieces keep the index of their span. With `parts`, times are
        rounded to ms.

    Raises:
        ValueError: A column is missing.
        OptionError: Not exactly one of `window_s` and `parts` is given, or it is not allowed.

    Example:
        >>> turns = pd.DataFrame({"transcript_id": "t", "start_ms": [50_000], "end_ms": [130_000]})
        >>> split_spans(turns, window_s=60)[["bin_idx", "start_ms", "end_ms"]].values.tolist()
        [[0, 50000, 60000], [1, 60000, 120000], [2, 120000, 130000]]
    """
    require(spans, ("transcript_id", "start_ms", "end_ms"), "split_spans")
    if (window_s is None) == (parts is None):
        raise OptionError(f"give either window_s or parts, not window_s={window_s!r} and parts={parts!r}")
    start, end = floats(spans["start_ms"]), floats(spans["end_ms"])
    step: Any
    if parts is None:
        step = 1000 * checked("window_s", window_s, WINDOW_S)
    else:
        parts = checked("parts", parts, Integer(1))
        step = durations_ms(spans, transcripts).reindex(spans["transcript_id"]).to_numpy(np.float64) / parts
    step = np.broadcast_to(np.maximum(step, 1e-9), start.shape)
    valid = np.flatnonzero(np.isfinite(start) & np.isfinite(end) & (end >= start))
    start, end, step = start[valid], end[valid], step[valid]
    top = np.inf if parts is None else parts - 1
    first = np.minimum(np.floor(start / step + 1e-9), top)
    last = np.maximum(np.minimum(np.ceil(end / step - 1e-9) - 1, top), first)
    count = (last - first).astype(np.intp) + 1
    row = np.repeat(np.arange(len(valid)), count)
    piece = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    place = first[row] + piece
    left = np.maximum(start[row], np.where(piece == 0, start[row], place * step[row]))
    right = np.where(piece == count[row] - 1, end[row], (place + 1) * step[row])
    return spans.iloc[valid[row]].assign(
        start_ms=np.rint(left).astype(np.int64),
        end_ms=np.rint(right).astype(np.int64),
        bin_idx=place.astype(np.int64),
        first_piece=piece == 0,
    )


_MOST_WINDOWS = 20_000_000  # 2 GB with their sums
#: Function of the sums of windows and of their lengths in seconds that returns columns.
_Measures: TypeAlias = "Callable[[pd.DataFrame, np.ndarray], dict[str, Any]]"


@takes_frames
@defines("articulation_s", "window_wpm", "articulation_wpm")
@keeps_recordings
@uses("start_ms", "end_ms")
def pace(
    words: pd.DataFrame,
    by: By = "transcript_id",
    *,
    window_s: float = 30,
    step_s: float | None = None,
    transcripts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the number of words per minute in windows of time.

    Definition: a word belongs to the window that contains its middle. Pauses are at least 250 ms long.

    Source: J. Miller, F. Grosjean and C. Lomanto, "Articulation rate and its variability in spontaneous speech",
    Phonetica 41, 1984.

    Args:
        words: Words, as returned by `voxframe.load_words`.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`. `transcript_id` is added.
        window_s: Length of a window in seconds.
        step_s: Seconds between the starts of windows; `window_s` must be a multiple. None (default): `window_s`, so
            that windows do not overlap. Less gives rolling windows.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        One row per group and window, sorted. Columns: those of `by`, `start_ms`, `end_ms` int64 (of the window; the
        last one ends with the recording), `words` int64, `articulation_s`, `window_wpm`, `articulation_wpm` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown, `window_s` is not a multiple of `step_s`, or the rows are turns, not words.

    Example:
        >>> times = {"start_ms": [0, 500, 2000], "end_ms": [400, 900, 4000]}
        >>> words = pd.DataFrame({"transcript_id": "t", "text": "x", **times})
        >>> pace(words, window_s=2)[["start_ms", "words", "window_wpm"]].values.tolist()
        [[0.0, 2.0, 60.0], [2000.0, 1.0, 30.0]]
    """
    require_words(words, ("transcript_id", "text", "start_ms", "end_ms"), "pace")
    words = with_times(words)
    return _windows(
        words,
        by,
        {"words": words_in_rows(words)},
        window_s,
        step_s,
        transcripts,
        lambda sums, length: {
            "words": sums["words"].astype("int64"),
            "articulation_s": sums["articulation_s"],
            "window_wpm": 60 * ratio(sums["words"], length),
            "articulation_wpm": 60 * ratio(sums["words"], sums["articulation_s"]),
        },
        speech=speech_pieces(words, "pace"),
    )


@takes_frames
@defines("polarity")
@keeps_recordings
@uses("start_ms", "end_ms")
def sentiment_over_time(
    sentiments: pd.DataFrame,
    by: By = "transcript_id",
    *,
    window_s: float = 60,
    step_s: float | None = None,
    transcripts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the balance of positive and negative sentences in windows of time.

    Definition: a sentence belongs to the window that contains its middle. `polarity` is (positive - negative) /
    sentences, from -1 to 1. Unit: none. Denominator: all sentences of the window, also neutral ones.

    Source: the saliency scale in W. Lowe et al., "Scaling policy preferences from coded political texts", Legislative
    Studies Quarterly 36, 2011.

    Args:
        sentiments: Result of `voxframe.load_sentiments`.
        by: Columns to group by, as for `pace`.
        window_s: Length of a window in seconds, as for `pace`.
        step_s: Seconds between the starts of windows, as for `pace`.
        transcripts: The table `transcripts`, as for `pace`.

    Returns:
        One row per group and window, sorted. Columns: those of `by`, `start_ms`, `end_ms`, `sentences`, `positive`,
        `neutral`, `negative` int64, `polarity` float64 (-1 to 1, NaN without sentences).

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown, or `window_s` is not a multiple of `step_s`.

    Example:
        >>> rows = pd.DataFrame({"transcript_id": "t", "sentiment": ["POSITIVE", "NEGATIVE", "NEUTRAL", "POSITIVE"],
        ...                      "start_ms": [0, 2000, 4000, 61_000], "end_ms": [2000, 4000, 5000, 63_000]})
        >>> sentiment_over_time(rows)["polarity"].tolist()
        [0.0, 1.0]
    """
    require(sentiments, ("transcript_id", "sentiment", "start_ms", "end_ms"), "sentiment_over_time")
    sentiments = with_times(sentiments)
    label = sentiments["sentiment"].astype("string").str.upper()
    kinds = ("positive", "neutral", "negative")
    counts = {kind: (label == kind.upper()).fillna(False).astype("int64") for kind in kinds}
    counts["sentences"] = pd.Series(1, index=sentiments.index)
    return _windows(
        sentiments,
        by,
        counts,
        window_s,
        step_s,
        transcripts,
        lambda sums, _: {
            **{name: sums[name].astype("int64") for name in ("sentences", *kinds)},
            "polarity": ratio(sums["positive"] - sums["negative"], sums["sentences"]),
        },
    )


def _windows(
    rows: pd.DataFrame,
    by: By,
    counts: dict[str, Any],
    window_s: float,
    step_s: float | None,
    transcripts: pd.DataFrame | None,
    measures: _Measures,
    *,
    speech: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Sum counts of rows, and `speech` as `articulation_s`, in windows of time, also in windows without rows."""
    window_s = checked("window_s", window_s, WINDOW_S)
    step = window_s if step_s is None else checked("step_s", step_s, WINDOW_S)
    if window_s < step or abs(window_s / step - round(window_s / step)) > 1e-9:
        raise OptionError(f"window_s must be a multiple of step_s, got {window_s!r} and {step!r}")
    width, groups = round(window_s / step), key_list(by)
    has_id = any(isinstance(key, str) and key in ("transcript_id", "speaker") for key in groups)
    groups = groups if has_id else ["transcript_id", *groups]
    keyed, names = with_keys(rows, groups)
    group = keyed.groupby(names, dropna=False, sort=True).ngroup().to_numpy()
    keys = keyed.iloc[np.unique(group, return_index=True)[1]][names].reset_index(drop=True)
    length = durations_ms(rows, transcripts).reindex(keys["transcript_id"]).to_numpy(np.float64)
    bins = np.maximum(np.ceil(length / (1000 * step) - 1e-9), 1).astype(np.intp)
    if bins.sum() > _MOST_WINDOWS:
        raise OptionError(
            f"there are {bins.sum():,} windows of {step:g} s in {length.sum() / 3_600_000:,.0f} hours, more than the "
            f"{_MOST_WINDOWS:,} allowed; check the times of the rows, or choose longer windows"
        )
    offset = np.cumsum(bins) - bins
    middle = (floats(rows["start_ms"]) + floats(rows["end_ms"])) / 2
    timed = np.isfinite(middle)
    place = np.clip(np.floor(middle[timed] / (1000 * step)), 0, bins[group[timed]] - 1).astype(np.intp)
    cell, total = offset[group[timed]] + place, int(bins.sum())
    sums = {name: np.bincount(cell, np.asarray(values, float)[timed], total) for name, values in counts.items()}
    if speech is not None:
        pieces = split_spans(speech, window_s=step)
        of = group[pieces["row"].to_numpy()]
        cell = offset[of] + np.clip(pieces["bin_idx"].to_numpy(), 0, bins[of] - 1)
        sums["articulation_s"] = np.bincount(cell, (pieces["end_ms"] - pieces["start_ms"]) / 1000, total)
    count = np.maximum(bins - width + 1, 1)
    at = np.repeat(np.arange(len(keys)), count)
    first = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    begin, stop = offset[at] + first, offset[at] + np.minimum(first + width, bins[at])
    totals = {name: np.r_[0.0, np.cumsum(values)] for name, values in sums.items()}
    rolled = pd.DataFrame({name: np.round(values[stop] - values[begin], 9) for name, values in totals.items()})
    start = first * 1000 * step
    end = np.minimum(start + 1000 * window_s, np.maximum(length[at], start))
    table: pd.DataFrame = keys.iloc[at].reset_index(drop=True)
    table["start_ms"], table["end_ms"] = np.rint(start).astype(np.int64), np.rint(end).astype(np.int64)
    measured = measures(rolled, (end - start) / 1000)
    key_list(groups, {"start_ms", "end_ms", *measured})  # refuses a group that they would overwrite
    return table.assign(**measured)


@takes_frames
@defines("word_share", "strength")
@keeps_recordings
@uses("start_ms", "end_ms")
def label_shares(
    labels: pd.DataFrame, words: pd.DataFrame, by: By = ("transcript_id", "speaker", "minute")
) -> pd.DataFrame:
    """Return how much each speaker says under each label, such as a topic or a content safety label, by minute.

    Labels belong to segments of time that may span several speakers. Definition: a word has the labels of the segments
    that contain its middle. Unit: words. Denominator of `word_share`: all words of the group. A word can have several
    labels, so shares can add up to more than 1. Source: the measure is our own.

    Args:
        labels: Result of `voxframe.load_topics`, `load_content_safety` or `load_custom_topics`, or other rows with
            `transcript_id`, `label` and times.
        words: Words of the same recordings.
        by: Columns of `words` to group by; see `voxframe.analysis.grouping.with_keys`.

    Returns:
        One row per group and label, sorted. Columns: those of `by`, `label` str, `words` int64, `word_share` float64
        (0-1), `strength` float64 (mean over the words of `severity`, `relevance` or `confidence`, the first that
        `labels` has; 0-1, else NaN).

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown, or `words` are turns.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "A", "B"], "text": "x",
        ...                       "start_ms": [0, 1000, 2000], "end_ms": [900, 1900, 2900]})
        >>> topics = pd.DataFrame({"transcript_id": "t", "label": ["Trees"], "start_ms": [950], "end_ms": [3000]})
        >>> label_shares(topics, words)[["speaker", "label", "words", "word_share"]].values.tolist()
        [['A', 'Trees', 1, 0.5], ['B', 'Trees', 1, 1.0]]
    """
    require(labels, ("transcript_id", "label", "start_ms", "end_ms"), "label_shares")
    require_words(words, ("transcript_id", "text", "start_ms", "end_ms"), "label_shares")
    keyed, names = with_keys(words, by, result=("label", "words", "word_share", "strength"))
    keys = [pd.Series(keyed[name].array, name=name) for name in names] or [pd.Series(0, range(len(keyed)), name="all")]
    group = pd.DataFrame({key.name: key for key in keys}).groupby([k.name for k in keys], dropna=False, sort=True)
    number = group.ngroup().to_numpy()
    middle = (floats(words["start_ms"]) + floats(words["end_ms"])) / 2
    points = pd.DataFrame({"transcript_id": words["transcript_id"].array, "start_ms": middle, "end_ms": middle})
    strength = next((name for name in ("severity", "relevance", "confidence") if name in labels.columns), None)
    label_rows = labels[["transcript_id", "start_ms", "end_ms", "label"]].assign(
        strength=floats(labels[strength]) if strength else np.nan
    )
    count = words_in_rows(words).to_numpy(np.int64)
    points = points.assign(word=range(len(words)), words=count, group=number)
    pairs = annotate(points, label_rows, rule="all").dropna(subset="label")
    pairs = pairs.drop_duplicates(["word", "label"])  # segments of one label can overlap
    shares = pairs.groupby(["group", "label"], sort=True).agg(words=("words", "sum"), strength=("strength", "mean"))
    shares = shares.reset_index()
    shares.insert(3, "word_share", ratio(shares["words"], np.bincount(number, count)[shares["group"].to_numpy()]))
    firsts = np.unique(number, return_index=True)[1]
    heads: Sequence[Any] = [key.iloc[firsts[shares["group"].to_numpy()]].reset_index(drop=True) for key in keys]
    parts = [*(heads if names else []), shares.drop(columns="group").astype({"label": TEXT})]
    table: pd.DataFrame = pd.concat(parts, axis=1)
    return table
