"""Pace and sentiment in windows of time, and the share of labels such as topics by speaker and minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.grouping import By, durations_ms, key_list, ratio, with_keys
from voxframe.analysis.recordings import keeps_recordings, uses
from voxframe.analysis.spans import WINDOW_S, annotate, split_spans
from voxframe.analysis.speaker_turns import floats, require, require_words, with_times, words_in_rows
from voxframe.analysis.speech_delivery import speech_pieces
from voxframe.errors import OptionError
from voxframe.measures import defines
from voxframe.validators import checked

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
    """Sum counts in windows of time, per group and recording, also in windows without rows.

    Args:
        rows: Rows with times.
        by: Groups of the rows.
        counts: Count of each row by name. A row belongs to the window of its middle.
        window_s: Length of a window in seconds.
        step_s: Seconds between the starts of windows.
        transcripts: The table `transcripts`, for the length of recordings.
        measures: Function of the sums and of the lengths of the windows (s) that returns columns.
        speech: Spans of speech, with the position of the row as `row`, to sum as `articulation_s`.
    """
    window_s = checked("window_s", window_s, WINDOW_S)
    step = window_s if step_s is None else checked("step_s", step_s, WINDOW_S)
    if window_s < step or abs(window_s / step - round(window_s / step)) > 1e-9:
        raise OptionError(f"window_s must be a multiple of step_s, got {window_s!r} and {step!r}")
    width, given = round(window_s / step), key_list(by)
    has_id = any(isinstance(key, str) and key in ("transcript_id", "speaker") for key in given)
    given = given if has_id else ["transcript_id", *given]
    known, names = with_keys(rows, given)
    group = known.groupby(names, dropna=False, sort=True).ngroup().to_numpy()
    keys = known.iloc[np.unique(group, return_index=True)[1]][names].reset_index(drop=True)
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
    key_list(given, {"start_ms", "end_ms", *measured})  # refuses a group that they would overwrite
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
    known, names = with_keys(words, by, result=("label", "words", "word_share", "strength"))
    keys = [pd.Series(known[name].array, name=name) for name in names] or [pd.Series(0, range(len(known)), name="all")]
    group = pd.DataFrame({key.name: key for key in keys}).groupby([k.name for k in keys], dropna=False, sort=True)
    number = group.ngroup().to_numpy()
    middle = (floats(words["start_ms"]) + floats(words["end_ms"])) / 2
    points = pd.DataFrame({"transcript_id": words["transcript_id"].array, "start_ms": middle, "end_ms": middle})
    strength = next((name for name in ("severity", "relevance", "confidence") if name in labels.columns), None)
    given = labels[["transcript_id", "start_ms", "end_ms", "label"]].assign(
        strength=floats(labels[strength]) if strength else np.nan
    )
    count = words_in_rows(words).to_numpy(np.int64)
    points = points.assign(word=range(len(words)), words=count, group=number)
    pairs = annotate(points, given, rule="all").dropna(subset="label")
    pairs = pairs.drop_duplicates(["word", "label"])  # segments of one label can overlap
    found = pairs.groupby(["group", "label"], sort=True).agg(words=("words", "sum"), strength=("strength", "mean"))
    found = found.reset_index()
    found.insert(3, "word_share", ratio(found["words"], np.bincount(number, count)[found["group"].to_numpy()]))
    firsts = np.unique(number, return_index=True)[1]
    heads: Sequence[Any] = [key.iloc[firsts[found["group"].to_numpy()]].reset_index(drop=True) for key in keys]
    parts = [*(heads if names else []), found.drop(columns="group").astype({"label": TEXT})]
    table: pd.DataFrame = pd.concat(parts, axis=1)
    return table
