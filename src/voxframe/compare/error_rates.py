"""Error rates and time differences of an alignment, in total and by group, with bootstrap intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import is_unspaced, quantity
from voxframe.analysis.grouping import By, bin_keys, group_columns, key_list, ratio, time_bin
from voxframe.analysis.speaker_turns import TEXT, require
from voxframe.analysis.statistics import Bootstrap, Sums, group_number, summed
from voxframe.compare.alignment import EDITS, INSERTION, MATCH
from voxframe.errors import OptionError, caller
from voxframe.measures import defines
from voxframe.validators import Choice, checked, shown

_BANDS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = ("words", "matches", "substitutions", "deletions", "insertions", "characters", "char_edits")
_NEEDED = ("recording", "edit", "ref_chars", "char_edits")


@takes_frames
@defines("wer", "cer")
def error_rates(
    alignment: pd.DataFrame,
    by: By = None,
    *,
    resample: str | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return word error rate (WER) and character error rate (CER), in total or by group.

    WER is (substitutions + deletions + insertions) / words of the reference. CER is edits of characters / characters of
    the reference, in the alignment of the characters of both texts; a space between two words is one character. Both
    are fractions, 0 or more, and can exceed 1. They are NaN if the reference has no words in the group. Edits and words
    are summed over recordings before dividing, so long recordings count more. Source: the manual of NIST's sclite; A.
    Morris et al., "From WER and RIL to MER and WIL", Interspeech 2004. Values equal those of jiwer and meeteval for the
    same text.

    Args:
        alignment: Result of `voxframe.compare.align`.
        by: Column to group by, a Series with a value for each row, or a list of these. Besides the columns of the
            alignment and those merged into it:

            - "speaker": speaker of the reference. An insertion counts for the preceding word of the reference (at the
              beginning: the following one). A label belongs to a recording, so that several add "recording".
            - "minute", or a length such as "30s" or "5min": time bin of the reference's start, else of the hypothesis's
              start, else of the preceding row, counted from 0.
            - "confidence_band": confidence of the hypothesis in bands, such as "0.90-0.95"; 0.95 is in the next band.
              Deletions have none and form the group null.
        resample: Column with the units that the bootstrap draws, such as "recording" or "minute"; adds intervals. A
            minute or speaker of one recording is a unit. None (default): no intervals.
        level: Confidence level of the intervals.
        resamples: Number of bootstrap samples.
        seed: Seed of the random numbers; the same seed gives the same intervals.

    Returns:
        One row per group, sorted, or one row in total. Columns: those of `by`, then `words` (of the reference),
        `matches`, `substitutions`, `deletions`, `insertions` int64, `wer` float64, `characters` (of the reference),
        `char_edits` int64, `cer` float64. With `resample` also `units` int64 (number of units in the group), and
        `wer_low`, `wer_high`, `cer_low`, `cer_high`: percentile intervals; NaN for fewer than two units. Source: M.
        Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004.

    Raises:
        OptionError: A column or an argument is invalid.

    Example:
        >>> from voxframe.compare import align
        >>> words = pd.DataFrame({"speaker": ["A", "A", "B"], "text": ["good", "day", "hello"]})
        >>> rates = error_rates(align(words, "good day yellow"), by="speaker")
        >>> rates[["speaker", "words", "wer"]].values.tolist()
        [['A', 2, 0.0], ['B', 1, 1.0]]
    """
    counts, keys = _counts(alignment, by, "error_rates", _COUNTED)
    table = _with_rates(summed(counts, keys))
    if resample is None:
        return table
    unit = group_number(_units(alignment, resample), alignment.index)
    drawn = Bootstrap(counts, keys, unit, resamples=resamples, level=level, seed=seed)
    table["units"] = drawn.units
    for rate, (edits, of) in _RATES.items():

        def value(sums: Sums, edits: str = edits, of: str = of) -> npt.NDArray[np.float64]:
            return ratio(sums[edits], sums[of])

        table[f"{rate}_low"], table[f"{rate}_high"] = drawn.interval(value)
    return table


@takes_frames
def compare_engines(
    alignment_a: pd.DataFrame,
    alignment_b: pd.DataFrame,
    by: By = None,
    *,
    rate: Literal["wer", "cer"] | None = None,
    resample: str = "recording",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the error rates of two engines on the same recordings with the same reference.

    The paired bootstrap draws units, by default recordings, and takes the edits of both engines from each drawn unit.
    The difference is significant at `level` if the interval does not contain 0. Source: M. Bisani and H. Ney,
    "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004.

    Args:
        alignment_a: Result of `align(reference, hypothesis of engine A, on=...)`.
        alignment_b: Result of `align(reference, hypothesis of engine B, on=...)`. Recordings that only one of the two
            has are left out with a warning.
        by: Columns of both to group by, as for `error_rates`. For metadata, merge it into both alignments on
            `recording`.
        rate: "wer" or "cer", as defined in `error_rates`: a fraction of the words or characters of the reference. None
            (default): "cer" if most of the reference is in scripts without spaces, such as Chinese; otherwise "wer".
        resample: Column of both with the units that are drawn.
        level: Confidence level of the intervals.
        resamples: Number of bootstrap samples.
        seed: Seed of the random numbers.

    Returns:
        One row per group. Columns: those of `by`, `units`, `words` or `characters` int64 (of the reference, in
        alignment A), `wer_a`, `wer_b` (or `cer_a`, `cer_b`), `difference` (B - A), `low`, `high` (interval of the
        difference; NaN for fewer than two units), and `b_better` (fraction of samples in which B has the lower rate),
        these float64.

    Raises:
        OptionError: A column or an argument is invalid, or no recording is in both.

    Example:
        >>> from voxframe.compare import align
        >>> truth = pd.DataFrame({"recording": ["x", "y"], "text": ["one two", "three four"]})
        >>> a = align(truth, truth.assign(text=["one too", "tree four"]), on="recording")
        >>> b = align(truth, truth, on="recording")
        >>> compare_engines(a, b)[["wer_a", "wer_b", "difference", "low", "b_better"]].values.tolist()
        [[0.5, 0.0, -0.5, -0.5, 1.0]]
    """
    for alignment in (alignment_a, alignment_b):
        require(alignment, _NEEDED, "compare_engines")
    if rate is None:
        unspaced = (
            alignment_a["ref_token"].dropna().map(is_unspaced) if "ref_token" in alignment_a else pd.Series([0.0])
        )
        rate = "cer" if unspaced.mean() > _MOST else "wer"
    checked("rate", rate, Choice(tuple(_RATES)))
    edits, of = _RATES[rate]
    alignment_a, alignment_b = _shared(alignment_a, alignment_b)
    sides = []
    for engine, alignment in (("a", alignment_a), ("b", alignment_b)):
        counts, keys = _counts(alignment, by, "compare_engines", _COMPARED)
        counts = counts[[edits, of]].add_suffix(f"_{engine}").reset_index(drop=True)
        sides.append((counts, keys, _units(alignment, resample)))
    counts = pd.concat([side[0] for side in sides], ignore_index=True).fillna(0).astype("int64")
    keys = [pd.concat(pair, ignore_index=True) for pair in zip(sides[0][1], sides[1][1], strict=True)]
    units = [pd.concat(pair, ignore_index=True) for pair in zip(sides[0][2], sides[1][2], strict=True)]
    unit = group_number(units, counts.index)

    def difference(sums: Sums) -> npt.NDArray[np.float64]:
        return ratio(sums[f"{edits}_b"], sums[f"{of}_b"]) - ratio(sums[f"{edits}_a"], sums[f"{of}_a"])

    rates_table = summed(counts, keys)
    drawn = Bootstrap(counts, keys, unit, resamples=resamples, level=level, seed=seed)
    table = rates_table[[str(key.name) for key in keys]].copy()
    table["units"] = drawn.units
    table[of] = rates_table[f"{of}_a"]
    for engine in ("a", "b"):
        table[f"{rate}_{engine}"] = ratio(rates_table[f"{edits}_{engine}"], rates_table[f"{of}_{engine}"])
    table["difference"] = table[f"{rate}_b"] - table[f"{rate}_a"]
    table["low"], table["high"] = drawn.interval(difference)
    table["b_better"] = drawn.share(lambda sums: difference(sums) < 0)
    return table


@takes_frames
def time_differences(alignment: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Return how far the times of matching words are apart, in milliseconds.

    The difference is the time in the hypothesis minus the time in the reference: positive if the hypothesis is late.
    Only matches count whose rows have times and contain one normalised word each, so pass words, not turns. `within_*`
    are fractions of these words. Source: M. Bain et al., "WhisperX: Time-accurate speech transcription of long-form
    audio", Interspeech 2023, which accepts 200 ms.

    Args:
        alignment: Result of `voxframe.compare.align`.
        by: Columns to group by, as for `error_rates`.

    Returns:
        One row per group and boundary. Columns: those of `by`, `boundary` str ("start" or "end"), `words` int64
        (matches with times), then float64 `mean_ms`, `median_ms` (signed), `mean_absolute_ms`, `p95_absolute_ms`,
        `within_50_ms`, `within_100_ms` and `within_200_ms` (0-1).

    Raises:
        OptionError: A column is missing.

    Example:
        >>> from voxframe.compare import align
        >>> words = pd.DataFrame({"text": ["a", "b"], "start_ms": [0, 500], "end_ms": [400, 900]})
        >>> late = words.assign(start_ms=[100, 520])
        >>> time_differences(align(words, late))[["boundary", "mean_ms", "within_50_ms"]].values.tolist()
        [['start', 60.0, 0.5], ['end', 0.0, 1.0]]
    """
    require(alignment, (*_NEEDED, "ref_start_ms", "ref_end_ms", "hyp_start_ms", "hyp_end_ms"), "time_differences")
    keys = _groups(alignment, _within(alignment, by, _DIFFERENCES))
    single = (alignment["edit"] == MATCH).to_numpy(bool, copy=True)
    for side in ("ref", "hyp"):
        single &= ~alignment.duplicated(["recording", f"{side}_idx"], keep=False).to_numpy(bool)
    parts = []
    for boundary in ("start", "end"):
        values = [alignment[f"{side}_{boundary}_ms"].to_numpy(np.float64, na_value=np.nan) for side in ("ref", "hyp")]
        late = pd.Series(np.where(single, values[1] - values[0], np.nan), index=alignment.index)
        rows = pd.DataFrame({"late": late, "apart": late.abs()})
        for limit in (50, 100, 200):
            rows[f"within_{limit}_ms"] = (rows["apart"] <= limit).astype("float64")
        rows = rows[late.notna()]
        groups = rows.groupby([key[late.notna()] for key in keys] or np.zeros(len(rows), int), dropna=False)
        table = groups.agg(
            words=("late", "size"),
            mean_ms=("late", "mean"),
            median_ms=("late", "median"),
            mean_absolute_ms=("apart", "mean"),
            p95_absolute_ms=("apart", lambda values: values.quantile(0.95)),
            **{name: (name, "mean") for name in rows.columns[2:]},
        ).reset_index(drop=not keys)
        table.insert(len(keys), "boundary", pd.Series([boundary] * len(table), dtype=TEXT))
        parts.append(table)
    together = pd.concat(parts, ignore_index=True)
    return together.sort_values([str(key.name) for key in keys], kind="stable", ignore_index=True) if keys else together


#: Numerator and denominator of each rate.
_MOST = 0.5  # share of words in a script without spaces above which characters are compared
_RATES = {"wer": ("edits", "words"), "cer": ("char_edits", "characters")}
#: Columns of `error_rates`, of `compare_engines` and of `time_differences`.
_COUNTED = frozenset({*_COUNTS, "edits", "units", *(rate + end for rate in _RATES for end in ("", "_low", "_high"))})
_COMPARED = frozenset("units words characters wer_a wer_b cer_a cer_b difference low high b_better".split())
_DIFFERENCES = frozenset(
    "boundary words mean_ms median_ms mean_absolute_ms p95_absolute_ms within_50_ms within_100_ms within_200_ms".split()
)


def _counts(
    alignment: pd.DataFrame, by: By, purpose: str, result: Collection[str]
) -> tuple[pd.DataFrame, list[pd.Series[Any]]]:
    """Return the counts of each row of an alignment, and its groups."""
    require(alignment, _NEEDED, purpose)
    names = ("matches", "substitutions", "deletions", "insertions")
    counts = {name: (alignment["edit"] == edit).to_numpy(bool) for name, edit in zip(names, EDITS, strict=True)}
    counts["words"] = (alignment["edit"] != INSERTION).to_numpy(bool)
    counts["edits"] = (alignment["edit"] != MATCH).to_numpy(bool)
    chars = {"characters": alignment["ref_chars"], "char_edits": alignment["char_edits"]}
    table = pd.DataFrame({**counts, **chars}, index=alignment.index).astype("int64")
    return table, _groups(alignment, _within(alignment, by, result))


def _groups(alignment: pd.DataFrame, by: By) -> list[pd.Series[Any]]:
    cuts = {key: time_bin(key) or {} for key in ("minute", "5min", *bin_keys(alignment, by))}
    bins = {key: partial(_bin_number, window_s=cut["window_s"]) for key, cut in cuts.items() if "window_s" in cut}
    computed: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {**_COMPUTED, **bins}
    return group_columns(alignment, by, computed)


def _units(alignment: pd.DataFrame, resample: str) -> list[pd.Series[Any]]:
    """Return the columns that identify units. Speakers and time bins of different recordings are different units."""
    units = _groups(alignment, resample)
    if len(units) != 1:
        raise OptionError(f"resample must be one column, got {shown(resample)}")
    in_recording = isinstance(resample, str) and (resample == "speaker" or bool(bin_keys(alignment, resample)))
    return [alignment["recording"], *units] if in_recording else units


def _within(alignment: pd.DataFrame, by: By, result: Collection[str]) -> By:
    """Return the groups with "recording" before "speaker": labels of different recordings are different speakers."""
    keys = key_list(by, result)
    names = [key for key in keys if isinstance(key, str)]
    several = "speaker" in names and "recording" not in names and alignment["recording"].nunique(dropna=False) > 1
    return ["recording", *keys] if several else by


def _with_rates(sums: pd.DataFrame) -> pd.DataFrame:
    for rate, (edits, of) in _RATES.items():
        sums[rate] = ratio(sums[edits], sums[of])
    keys = [name for name in sums.columns if name not in {*_COUNTS, "edits", *_RATES}]
    return sums[[*keys, *_COUNTS[:5], "wer", *_COUNTS[5:], "cer"]]


def _shared(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = [set(alignment["recording"].dropna()) for alignment in (a, b)]
    if a["recording"].isna().all() and b["recording"].isna().all():
        return a, b
    if not names[0] & names[1]:
        raise OptionError("no recording is in both alignments; align both with the same on=...")
    if others := len(names[0] ^ names[1]):
        warnings.warn(
            f"left out {quantity(others, 'recording')} that only one of the alignments has", stacklevel=caller()
        )
    return tuple(alignment[alignment["recording"].isin(names[0] & names[1])] for alignment in (a, b))  # type: ignore[return-value]


def _speaker(alignment: pd.DataFrame) -> pd.Series[Any]:
    """Return the reference speaker of each row. An insertion has that of the nearest word before it, else after it."""
    place = pd.Series(np.arange(len(alignment), dtype=float), alignment.index)
    place = _carried(place.where(alignment["edit"] != INSERTION), alignment)
    speakers = alignment["ref_speaker"].reset_index(drop=True)
    return speakers.reindex(place.fillna(-1).astype(int)).set_axis(alignment.index)


def _bin_number(alignment: pd.DataFrame, window_s: float) -> pd.Series[Any]:
    start = alignment["ref_start_ms"].fillna(alignment["hyp_start_ms"])
    return (_carried(start, alignment) // (1000 * window_s)).astype("Int64")


def _carried(values: pd.Series[Any], alignment: pd.DataFrame) -> pd.Series[Any]:
    """Fill nulls with the value before, else after, of the same recording."""
    values = values.groupby(alignment["recording"], dropna=False).ffill()
    return values.groupby(alignment["recording"], dropna=False).bfill()


def _confidence_band(alignment: pd.DataFrame) -> pd.Series[Any]:
    labels: pd.Series[Any] = pd.Series([f"{low:.2f}-{high:.2f}" for low, high in pairwise(_BANDS)], dtype=TEXT)
    value = alignment["hyp_confidence"]
    place = np.clip(np.searchsorted(_BANDS, value.to_numpy(np.float64), "right") - 1, 0, len(labels) - 1)
    return labels.iloc[place].set_axis(alignment.index).where(value.notna())


_COMPUTED = {"speaker": _speaker, "confidence_band": _confidence_band}
