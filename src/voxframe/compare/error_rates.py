"""Error rates, in total and by group: of the words and times of an alignment, and of speakers (cpWER, diarization).

Labels of speakers need not be the same in two transcripts, so their error rates are computed without an alignment.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import is_unspaced, quantity
from voxframe.analysis.grouping import (
    Bootstrap,
    By,
    Sums,
    bin_keys,
    group_columns,
    group_number,
    key_list,
    ratio,
    summed,
    time_bin,
)
from voxframe.analysis.rows import floats, require, row_speakers
from voxframe.compare.alignment import (
    DEFAULT,
    EDITS,
    INSERTION,
    MATCH,
    Normalization,
    Spoken,
    by_recording,
    common,
    pairs,
)
from voxframe.dictionary import defines
from voxframe.errors import OptionError, caller
from voxframe.validators import Boolean, Choice, Number, checked, shown

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


_Matrix = npt.NDArray[np.float64]


@takes_frames
@defines("cpwer")
def cpwer(
    reference: Spoken,
    hypothesis: Spoken,
    *,
    on: str | None = None,
    by: Literal["recording", "speaker"] | None = None,
    normalize: Normalization = DEFAULT,
) -> pd.DataFrame:
    """Return the concatenated minimum-permutation word error rate (cpWER).

    The words of each speaker are joined, in the order of the rows. Each speaker of the reference is paired with at most
    one of the hypothesis such that the sum of edits is smallest. All words of a speaker without a partner are deletions
    or insertions. cpWER is (substitutions + deletions + insertions) / words of the reference: a fraction, 0 or more. It
    counts a word given to the wrong speaker as an error. Source: S. Watanabe et al., "CHiME-6 challenge", CHiME 2020.
    cpWER, words and the sum of edits equal those of meeteval for the same text. Alignments with the same number of
    edits can divide them differently into substitutions, deletions and insertions.

    Args:
        reference: The correct words with their speakers: rows with `text` and `speaker`, such as words or turns. Rows
            without a speaker count as one more speaker.
        hypothesis: The words to be judged, in the same form.
        on: Column of both that identifies the recording, as for `align`.
        by: "recording" for a row per recording, "speaker" for a row per recording and pair of speakers. None (default):
            one row, with edits and words summed over recordings.
        normalize: Names of rules from `voxframe.compare.RULES`, or a function from text to text.

    Returns:
        Columns: with `by`, `recording` str; with `by="speaker"`, `ref_speaker` and `hyp_speaker` str, null if there is
        no partner; then `words` (of the reference), `substitutions`, `deletions`, `insertions` int64, and `cpwer`
        float64, NaN if there are no words.

    Raises:
        TypeError: An argument is neither a DataFrame nor str.
        OptionError: A column or an argument is invalid.

    Example:
        >>> reference = pd.DataFrame({"speaker": ["A", "B", "A"], "text": ["good day", "hello", "all well"]})
        >>> hypothesis = pd.DataFrame({"speaker": ["2", "1", "1"], "text": ["good day", "hello", "all well"]})
        >>> cpwer(reference, hypothesis)[["words", "deletions", "insertions", "cpwer"]].values.tolist()
        [[5.0, 2.0, 2.0, 0.8]]
    """
    from rapidfuzz.distance import Levenshtein

    if by not in (None, "recording", "speaker"):
        raise OptionError(f"by must be None, 'recording' or 'speaker', not {by!r}")
    rows: list[tuple[Any, ...]] = []
    for ref, hyp in pairs(reference, hypothesis, on, normalize, "cpwer"):
        texts = [
            {name: side.tokens[code == n].tolist() for n, name in enumerate(names)}
            for side in (ref, hyp)
            for code, names in [pd.factorize(side.table["speaker"].to_numpy()[side.rows], use_na_sentinel=False)]
        ]
        speakers = [[*side] for side in texts]
        size = max(map(len, speakers))
        edits = np.array(
            [[Levenshtein.distance(_nth(texts[0], n), _nth(texts[1], m)) for m in range(size)] for n in range(size)],
            np.float64,
        ).reshape(size, size)
        for n, m in enumerate(_assignment(edits)):
            ref_words, heard = _nth(texts[0], n), _nth(texts[1], m)
            tags = [op.tag for op in Levenshtein.editops(ref_words, heard)]
            names = [side[at] if at < len(side) else None for side, at in zip(speakers, (n, m), strict=True)]
            counts = [tags.count(tag) for tag in ("replace", "delete", "insert")]
            rows.append((ref.recording, *names, len(ref_words), *counts))
    counted = ["words", "substitutions", "deletions", "insertions"]
    types = dict.fromkeys(["recording", "ref_speaker", "hyp_speaker"], TEXT) | dict.fromkeys(counted, "int64")
    table = pd.DataFrame(rows, columns=[*types]).astype(types)
    if by is None:
        table = table[counted].sum().to_frame().T
    elif by == "recording":
        table = table.groupby("recording", sort=False, dropna=False)[counted].sum().reset_index()
    edited = table["substitutions"] + table["deletions"] + table["insertions"]
    table["cpwer"] = edited / table["words"].where(table["words"] > 0)
    return table


@takes_frames
@defines("reference_s", "missed_s", "false_alarm_s", "confusion_s", "der")
def diarization_error_rate(
    reference: pd.DataFrame,
    hypothesis: pd.DataFrame,
    *,
    on: str | None = None,
    by: Literal["recording"] | None = None,
    collar_ms: float = 0,
    skip_overlap: bool = False,
) -> pd.DataFrame:
    """Return the diarization error rate (DER) and its parts.

    DER is (missed speech + false alarm + confusion) / speech of the reference: a fraction, 0 or more. All four are
    seconds; speech of two people at the same time counts twice. Speakers are paired one to one such that the time in
    which paired speakers speak together is longest. Source: NIST Rich Transcription 2009 evaluation plan. Values equal
    those of `pyannote.metrics.diarization.DiarizationErrorRate`, whose `collar` is twice `collar_ms`.

    Args:
        reference: Who spoke when: rows with `start_ms`, `end_ms` and `speaker`, such as those of
            `voxframe.load_utterances`. Rows of one speaker that touch or overlap are merged. Rows without times or
            speaker are left out.
        hypothesis: The rows to be judged, in the same form. With words instead of turns, pauses between words are not
            speech.
        on: Column of both that identifies the recording, as for `align`.
        by: "recording" for one row per recording. None (default): one row, with seconds summed over recordings.
        collar_ms: Time on each side of the boundaries of the reference that is not evaluated, in ms. Usual values: 0,
            and 250.
        skip_overlap: Do not evaluate times at which several speakers of the reference speak.

    Returns:
        Columns: with `by`, `recording` str; then float64 `reference_s` (of the reference), `missed_s`, `false_alarm_s`,
        `confusion_s` and `der`, NaN if there is no speech.

    Raises:
        TypeError: An argument is not a DataFrame.
        OptionError: A column or an argument is invalid.

    Example:
        >>> reference = pd.DataFrame({"speaker": ["A", "B"], "start_ms": [0, 6000], "end_ms": [6000, 10000]})
        >>> hypothesis = pd.DataFrame({"speaker": ["1", "2"], "start_ms": [0, 5000], "end_ms": [5000, 10000]})
        >>> diarization_error_rate(reference, hypothesis)[["reference_s", "confusion_s", "der"]].values.tolist()
        [[10.0, 1.0, 0.1]]
    """
    if by not in (None, "recording"):
        raise OptionError(f"by must be None or 'recording', not {by!r}")
    collar_ms = checked("collar_ms", collar_ms, Number(0, 1e9, "ms"))
    skip_overlap = checked("skip_overlap", skip_overlap, Boolean())
    sides = []
    for df in (reference, hypothesis):
        require(df, ("start_ms", "end_ms", "speaker"), "diarization_error_rate")
        sides.append(by_recording(df.assign(text=""), on, "diarization_error_rate"))
    rows = []
    for name in common(sides[0], sides[1], on):
        ref, hyp = (_spans(side[name]) for side in sides)
        rows.append((name, *_der(ref, hyp, collar_ms, skip_overlap=skip_overlap)))
    names = ["reference_s", "missed_s", "false_alarm_s", "confusion_s"]
    table = pd.DataFrame(rows, columns=["recording", *names]).astype({"recording": TEXT})
    if by is None:
        table = table[names].sum().to_frame().T
    wrong = table["missed_s"] + table["false_alarm_s"] + table["confusion_s"]
    table["der"] = wrong / table["reference_s"].where(table["reference_s"] > 0)
    return table


def _nth(texts: dict[Any, list[str]], n: int) -> list[str]:
    return [*texts.values()][n] if n < len(texts) else []


def _spans(df: pd.DataFrame) -> list[_Matrix]:
    """Return start and end of the speech of each speaker, in milliseconds."""
    start, end = floats(df["start_ms"]), floats(df["end_ms"])
    spans = pd.DataFrame({"speaker": row_speakers(df).array, "start_ms": start, "end_ms": end}).dropna()
    return [_merged(rows[["start_ms", "end_ms"]].to_numpy()) for _, rows in spans.groupby("speaker", sort=False)]


def _merged(spans: _Matrix) -> _Matrix:
    spans = spans[(spans[:, 1] > spans[:, 0])]
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    if not len(spans):
        return spans
    latest = np.maximum.accumulate(spans[:, 1])
    begins = np.flatnonzero(np.r_[True, spans[1:, 0] > latest[:-1]])
    return np.stack([spans[begins, 0], latest[np.r_[begins[1:] - 1, len(spans) - 1]]], axis=1)


def _der(ref: list[_Matrix], hyp: list[_Matrix], collar: float, *, skip_overlap: bool) -> Iterator[float]:
    """Yield seconds of speech, missed speech, false alarm and confusion."""
    edges = np.concatenate([np.zeros((0, 2)), *ref]).ravel()
    ignored = np.stack([edges - collar, edges + collar], axis=1) if collar else np.zeros((0, 2))
    points = np.unique(np.concatenate([ignored.ravel(), edges, *(spans.ravel() for spans in hyp)]))
    length = np.diff(points) / 1000
    ref_active, heard = (_active(spans, points) for spans in (ref, hyp))
    length = length * ~_active([_merged(ignored)], points)[0]
    if skip_overlap:
        length = length * (ref_active.sum(0) < 2)
    together = (ref_active * length) @ heard.T
    size = max(together.shape)
    padded = np.zeros((size, size))
    padded[: len(ref_active), : len(heard)] = together
    right = sum(
        (
            ref_active[n] & heard[m]
            for n, m in enumerate(_assignment(-padded))
            if n < len(ref_active) and m < len(heard)
        ),
        np.zeros(len(length), int),
    )
    speaking, detected = ref_active.sum(0), heard.sum(0)
    yield float((speaking * length).sum())
    yield float((np.maximum(speaking - detected, 0) * length).sum())
    yield float((np.maximum(detected - speaking, 0) * length).sum())
    yield float(((np.minimum(speaking, detected) - right) * length).sum())


def _active(speakers: list[_Matrix], points: _Matrix) -> npt.NDArray[np.bool_]:
    """Return a mask of the speakers who speak in each interval between two points."""
    active = np.zeros((len(speakers), max(0, len(points) - 1)), bool)
    for row, spans in zip(active, speakers, strict=True):
        step = np.zeros(len(points) + 1, int)
        np.add.at(step, np.searchsorted(points, spans[:, 0]), 1)
        np.add.at(step, np.searchsorted(points, spans[:, 1]), -1)
        row[:] = np.cumsum(step)[: len(row)] > 0
    return active


def _assignment(cost: _Matrix) -> list[int]:
    """Return the column of each row of a square matrix such that the sum of costs is smallest.

    Source: the Hungarian algorithm with potentials; R. Jonker and A. Volgenant, "A shortest augmenting path algorithm
    for dense and sparse linear assignment problems", Computing 38, 1987.
    """
    size = len(cost)
    row_potential, column_potential = np.zeros(size + 1), np.zeros(size + 1)
    row_of = np.full(size + 1, -1)  # the last column is virtual: it holds the row that is being assigned
    for row in range(size):
        row_of[size], column = row, size
        distance, before = np.full(size, np.inf), np.full(size, size)
        used = np.zeros(size + 1, bool)
        while row_of[column] >= 0:
            used[column] = True
            at = row_of[column]
            reduced = cost[at] - row_potential[at] - column_potential[:size]
            closer = ~used[:size] & (reduced < distance)
            distance[closer], before[closer] = reduced[closer], column
            nearest = int(np.argmin(np.where(used[:size], np.inf, distance)))
            delta = distance[nearest]
            row_potential[row_of[used]] += delta
            column_potential[used] -= delta
            distance[~used[:size]] -= delta
            column = nearest
        while column != size:
            row_of[column] = row_of[before[column]]
            column = before[column]
    columns = np.empty(size, int)
    columns[row_of[:size]] = np.arange(size)
    return [int(n) for n in columns]
