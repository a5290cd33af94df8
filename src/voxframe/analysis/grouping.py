"""Groups of rows: columns, speakers and time bins that measures accept as `by=`, rates of groups, and comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import combinations
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.rows import distinct_names, floats, keeps_recordings, known_names, require, row_speakers
from voxframe.dictionary import defines
from voxframe.errors import OptionError
from voxframe.validators import Integer, Number, checked, listed, shown

#: Columns to group by: names, a Series with a value for each row, or periods of a date.
By: TypeAlias = "str | pd.Series[Any] | pd.Grouper | Sequence[str | pd.Series[Any] | pd.Grouper] | None"
_BIN = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)$")
_UNITS = {"s": 1, "min": 60, "h": 3600}
#: Columns from which keys are computed.
_NEEDED = {"person": "person", "recording": "transcript_id"}
#: Periods of the calendar, and their names in pandas.
PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]|$)")


class Calendar(str):
    """The column of a `pd.Grouper`, whose dates become periods."""

    __slots__ = ("grouper",)
    grouper: pd.Grouper

    def __new__(cls, grouper: pd.Grouper) -> Self:
        """Check that the Grouper has a column."""
        if not isinstance(getattr(grouper, "key", None), str):
            raise OptionError('a Grouper needs the column of a date, such as pd.Grouper(key="day", freq="W")')
        column = super().__new__(cls, grouper.key)
        column.grouper = grouper
        return column

    def __getnewargs__(self) -> tuple[pd.Grouper]:  # type: ignore[override]  # of str: its text
        return (self.grouper,)


def key_list(by: By, result: Collection[str] = ()) -> list[str | pd.Series[Any]]:
    """Return what to group by as a list, each name once; a name of `result`, the columns of a measure, is refused."""
    if by is None:
        return []
    is_one = isinstance(by, str | bytes | pd.Series | pd.Grouper) or not isinstance(by, Iterable)
    groups: list[str | pd.Series[Any]] = []
    names = set[str]()
    keys: Iterable[Any] = [by] if is_one else by  # type: ignore[assignment]  # mypy knows no Grouper
    for key in keys:
        if isinstance(key, pd.Grouper):
            key = Calendar(key)
        if not isinstance(key, str | pd.Series):
            raise OptionError(f"groups are given as a column, a Series, or a list of these, got {shown(by)}")
        if (name := key.name if isinstance(key, pd.Series) else key) in result:
            raise OptionError(f"the measure has a column {name!r} of its own; rename yours to group by it")
        if isinstance(key, pd.Series):
            groups.append(key)
        elif key not in names:
            names.add(key)
            groups.append(key)
    return groups


def time_bin(key: object) -> dict[str, Any] | None:
    """Return the arguments with which `split_spans` cuts spans for a time bin; None for another key.

    Example:
        >>> time_bin("minute"), time_bin("5min"), time_bin("tenth"), time_bin("topic")
        ({'window_s': 60}, {'window_s': 300.0}, {'parts': 10}, None)
    """
    if key in ("minute", "tenth"):
        return {"window_s": 60} if key == "minute" else {"parts": 10}
    match = _BIN.match(key) if isinstance(key, str) else None
    return {"window_s": float(match[1]) * _UNITS[match[2]]} if match and float(match[1]) > 0 else None


def bin_keys(df: pd.DataFrame, by: By) -> list[str]:
    """Return the time bins among the groups. A column of the same name goes first."""
    groups = key_list(by)
    return [key for key in groups if isinstance(key, str) and key not in df.columns and time_bin(key)]


def group_columns(
    df: pd.DataFrame, by: By, computed: Mapping[str, Callable[[pd.DataFrame], pd.Series[Any]]]
) -> list[pd.Series[Any]]:
    """Return groups as columns: a column, a Series, or a key that `computed` makes from the rows."""
    groups = key_list(by)
    columns = []
    for key in groups:
        if isinstance(key, pd.Series):
            columns.append(key.reindex(df.index).rename(str(key.name or "group")))
        elif isinstance(key, Calendar) or (key in PERIODS and key not in df.columns):
            columns.append(periods(df, key))
        elif key in df.columns and not (key in ("speaker", "person") and key in computed):
            columns.append(df[key])
        elif key in computed and _NEEDED.get(key) in (None, *df.columns):
            columns.append(computed[key](df).rename(key))
        else:
            names = [str(name) for name in dict.fromkeys([*computed, *df.columns]) if name != key]
            raise OptionError(
                f"cannot group by {key!r}; choose from {listed(names)}, or read the table with "
                f"metadata={key!r}, or merge it into the DataFrame"
            )
    return columns


def periods(df: pd.DataFrame, key: str) -> pd.Series[Any]:
    """Return the period of each row: the first day of its week, month and so on, or the label of a `pd.Grouper`."""
    if isinstance(key, Calendar):
        if key not in df.columns:
            raise OptionError(f"there is no column {str(key)!r} to group by; read the table with metadata={str(key)!r}")
        rows = pd.DataFrame({str(key): _dates(df[key])})
        labels = pd.Series(pd.NaT, index=df.index, dtype=rows[key].dtype, name=str(key))
        for label, inside in rows.reset_index(drop=True).groupby(key.grouper):
            labels.iloc[inside.index] = label
        return labels
    dated = [name for name in df.columns if pd.api.types.is_datetime64_any_dtype(df[name]) or _has_dates(df[name])]
    if len(dated) != 1:
        have = f"has {', '.join(map(str, dated))}" if dated else "has none; read it with metadata="
        raise OptionError(
            f"by={key!r} needs one column with dates, and the table {have}; pd.Grouper(key=..., freq=...) names one"
        )
    dates = _dates(df[dated[0]])
    local = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    starts: pd.Series[Any] = local.dt.to_period(PERIODS[key]).dt.start_time.rename(key)
    return starts


def _has_dates(column: pd.Series[Any]) -> bool:
    """Return True for a column of dates as objects or ISO text."""
    values = column.dropna() if column.dtype == object or pd.api.types.is_string_dtype(column.dtype) else column[:0]
    return bool(len(values)) and all(
        isinstance(value, date) or (isinstance(value, str) and _DATE.match(value)) for value in values.unique()
    )


def _dates(column: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return pd.to_datetime(column, format=None if pd.api.types.is_datetime64_any_dtype(column) else "ISO8601")
    except (TypeError, ValueError):
        raise OptionError(
            f"the column {column.name!r} has values that are no dates, such as {column.iloc[0]!r}"
        ) from None


def with_keys(
    df: pd.DataFrame, by: By, *, result: Collection[str] = (), split: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Return a DataFrame with its groups as columns, and their names.

    A key is a column, such as metadata that was merged into the DataFrame, a Series, or one of these:

    - "speaker": name, else label, else channel of the speaker within a transcript. Labels of different transcripts are
      different speakers, so `transcript_id` is added to the keys.
    - "person": person across transcripts, in the column `person`. A label without a person is a group of its own:
      "call · A", with the recording or else the id of its transcript.
    - "recording": name of the recording, if the rows come from a corpus or from files; else the id of the transcript.
    - A time bin, by the start of a row: "minute" of the recording, or a length such as "30s", "5min" or "1h". The value
      is the number of the bin, from 0.
    - "day", "week", "month", "quarter" or "year": first day of the period of the only date among the columns, such as
      metadata. `pd.Grouper(key="day", freq="W")` names the column and any period of pandas.
    - "tenth": tenth of the recording in which a row starts, 0 to 9. A recording ends with the last row.

    Args:
        df: The rows.
        by: The keys.
        result: Columns that the caller adds to the groups.
        split: Leave out time bins, which the caller computes after it has cut spans at their limits.

    Raises:
        OptionError: There is no such column, or it has the name of a column of the result.
    """
    groups = key_list(by, result)
    names = [key for key in groups if isinstance(key, str)]
    if "speaker" in names and "transcript_id" in df.columns and "transcript_id" not in names:
        groups = ["transcript_id", *groups]
    timed = bin_keys(df, groups)
    bins = {key: partial(_bin_number, key=key) for key in ("minute", "5min", "tenth", *timed)}
    computed: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {**_COMPUTED, **bins}
    used = [key for key in groups if isinstance(key, pd.Series) or not split or key not in timed]
    values = group_columns(df, used, computed)
    columns = {str(key.name): key for key in values}
    names = [key if isinstance(key, str) else str(key.name or "group") for key in groups]
    return df.assign(**columns), names


def durations_ms(df: pd.DataFrame, transcripts: pd.DataFrame | None = None) -> pd.Series[float]:
    """Return the length of each recording in ms: its audio or the end of its last row, whichever is longer."""
    end = pd.Series(floats(df["end_ms"]), index=df.index)
    last = end.groupby(df["transcript_id"], sort=False, dropna=False).max().fillna(0.0)
    if transcripts is None:
        return last
    require(transcripts, ("transcript_id", "audio_duration_s"), "the table transcripts")
    seconds = pd.Series(floats(transcripts["audio_duration_s"]), index=transcripts.index)
    lengths = 1000 * seconds.groupby(transcripts["transcript_id"]).max()
    return last.combine(lengths.reindex(last.index), np.fmax)


def people_of(df: pd.DataFrame) -> pd.Series[str]:
    """Return the person of each row; if it has none, the label with the recording, such as "call · A"."""
    return df["person"].astype(TEXT).fillna(labels_of(df)).rename("person")


def labels_of(df: pd.DataFrame) -> pd.Series[str]:
    """Return the speaker of each row with the recording, or else the id of the transcript, such as "call · A"."""
    return recordings_of(df, distinct=True).fillna("") + " · " + row_speakers(df).fillna("no speaker")


def recordings_of(df: pd.DataFrame, *, distinct: bool = False) -> pd.Series[str]:
    """Return the recording of each row or the id of its transcript; another one for each transcript if `distinct`."""
    if "transcript_id" not in df.columns:
        column = df["recording"] if "recording" in df.columns else pd.Series(index=df.index)
        return column.astype(TEXT)
    code, values = pd.factorize(df["transcript_id"])
    ids = list(values)
    name_of = known_names(ids, df)
    names = distinct_names(ids, df) if distinct else [name_of.get(id_, id_) for id_ in ids]
    texts = pd.array([*names, None], dtype=TEXT)  # the last one is for rows without an id
    return pd.Series(texts.take(code), index=df.index, name="recording")


def _bin_number(df: pd.DataFrame, key: str) -> pd.Series[Any]:
    cut = time_bin(key) or {}
    if "window_s" in cut:
        require(df, ("start_ms",), f"by={key!r}")
        number = np.floor(floats(df["start_ms"]) / (1000 * cut["window_s"]))
    else:
        require(df, ("transcript_id", "start_ms", "end_ms"), f"by={key!r}")
        length = durations_ms(df).reindex(df["transcript_id"]).to_numpy(np.float64)
        number = np.minimum(np.floor(cut["parts"] * ratio(floats(df["start_ms"]), length)), cut["parts"] - 1)
    return pd.Series(number, index=df.index).astype("Int64")


@takes_frames
def relative_time(df: pd.DataFrame, transcripts: pd.DataFrame | None = None) -> pd.Series[float]:
    """Return the middle of each row as a fraction of its recording, so that many recordings can share an axis.

    Definition: the mean of start and end, divided by the length of the recording. Unit: none, 0 (beginning) to 1 (end).
    Denominator: length of the recording. Source: the measure is our own.

    Args:
        df: Rows with `transcript_id`, `start_ms` and `end_ms`.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        A float64 Series named `relative_time` with the index of `df`; NaN for rows without times.

    Raises:
        ValueError: A column is missing.

    Example:
        >>> times = {"start_ms": [0, 6000, 0], "end_ms": [4000, 8000, 10]}
        >>> rows = pd.DataFrame({"transcript_id": ["a", "a", "b"], **times})
        >>> relative_time(rows).tolist()
        [0.25, 0.875, 0.5]
    """
    require(df, ("transcript_id", "start_ms", "end_ms"), "relative_time")
    lengths = durations_ms(df, transcripts)
    length = lengths.reindex(df["transcript_id"]).to_numpy(np.float64)
    middle = (floats(df["start_ms"]) + floats(df["end_ms"])) / 2
    return pd.Series(ratio(middle, length), index=df.index, name="relative_time")


def ratio(part: npt.ArrayLike, total: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Divide, with NaN if the denominator is 0."""
    part, total = np.asarray(part, np.float64), np.asarray(total, np.float64)
    return part / np.where(total > 0, total, np.nan)


_COMPUTED: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {
    "speaker": row_speakers,
    "person": people_of,
    "recording": recordings_of,
}


Sums: TypeAlias = "dict[str, npt.NDArray[np.float64]]"
_CHUNK = 2_000_000  # sampled units at a time


class Bootstrap:
    """Bootstrap of ratios of sums of counts: draws units with replacement, within each group of rows."""

    def __init__(
        self,
        counts: pd.DataFrame,
        keys: list[pd.Series[Any]],
        unit: pd.Series[Any],
        *,
        resamples: int,
        level: float,
        seed: int,
    ) -> None:
        resamples, self.tails, random = _sampling(resamples, level, seed)
        units, self.samples = list[int](), list[Sums]()
        if not keys and counts.empty:  # `summed` has one row
            units, self.samples = [0], [{name: np.zeros(resamples) for name in counts.columns}]
        numbers = counts.groupby([group_number(keys, counts.index), unit.rename("unit")], dropna=False, sort=True).sum()
        for _, rows in numbers.groupby(level=0):
            values, size = rows.to_numpy(np.float64), len(rows)
            step = max(1, _CHUNK // size)
            sums = [
                np.stack([column[drawn].sum(1) for column in values.T], axis=1)
                for n in range(0, resamples, step)
                for drawn in [random.integers(0, size, (min(step, resamples - n), size))]
            ]
            units.append(size)
            self.samples.append(dict(zip(counts.columns, np.concatenate(sums).T, strict=True)))
        self.units: npt.NDArray[np.int64] = np.array(units, np.int64)

    def interval(self, statistic: Callable[[Sums], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Return the lower and the upper ends of the percentile intervals of each group, of shape (2, groups)."""
        ends = []
        for size, sums in zip(self.units, self.samples, strict=True):
            values = statistic(sums)
            has_interval = size > 1 and not np.isnan(values).all()
            ends.append(np.nanquantile(values, self.tails).tolist() if has_interval else [np.nan, np.nan])
        return np.array(ends, np.float64).reshape(-1, 2).T

    def share(self, condition: Callable[[Sums], npt.NDArray[np.bool_]]) -> npt.NDArray[np.float64]:
        """Return the fraction of the samples of each group that meet a condition."""
        return np.array([condition(sums).mean() for sums in self.samples], np.float64)


def _sampling(resamples: int, level: float, seed: int) -> tuple[int, list[float], np.random.Generator]:
    """Return the number of samples, the quantiles at the ends of an interval, and a source of random numbers."""
    level = checked("level", level, Number(0, 1))
    random = np.random.default_rng(checked("seed", seed, Integer(0)))
    return checked("resamples", resamples, Integer(1)), [(1 - level) / 2, (1 + level) / 2], random


def group_number(keys: list[pd.Series[Any]], index: pd.Index[Any]) -> pd.Series[Any]:
    """Return the number of the group of each row, in the order of `summed`."""
    frame = pd.DataFrame(dict(enumerate(keys)), index=index)
    number = frame.groupby([*frame], dropna=False, sort=True).ngroup() if keys else 0
    return pd.Series(number, index=index, name="group")


def summed(counts: pd.DataFrame, keys: list[pd.Series[Any]]) -> pd.DataFrame:
    """Return the sums of each group, sorted, or in total."""
    if not keys:
        return counts.sum().to_frame().T
    return counts.groupby(keys, dropna=False, sort=True).sum().reset_index()


@takes_frames
@defines("rate")
@keeps_recordings
def rates(
    table: pd.DataFrame,
    numerator: str,
    denominator: str,
    by: By = None,
    *,
    per: float = 1,
    resample: str = "transcript_id",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a rate per group with a bootstrap interval, such as fillers per 100 words by customer.

    Definition: sum of the numerator / sum of the denominator, times `per`. Unit: that of the columns, per `per`. Rows
    in which either is null are left out. Long recordings count more, as they do in the sums. The interval is the
    percentile interval of the bootstrap that draws whole recordings, because words of one recording are not
    independent. Sums of parts of a corpus add up, so the rate of a corpus is exact, also if its tables were computed in
    parts, as with `voxframe.scale.each`.

    Source: B. Efron and R. Tibshirani, "An introduction to the bootstrap", 1993, chapters 8 and 13.

    Args:
        table: Result of a measure, such as `delivery`, with metadata merged into it, or any table of counts.
        numerator: Column with the counts above the line.
        denominator: Column with the counts below it.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`.
        per: Factor of the rate, such as 100 or 1000.
        resample: Column with the units that the bootstrap draws.
        level: Confidence level of the interval, 0-1.
        resamples: Number of bootstrap samples.
        seed: Seed of the random numbers; the same seed gives the same intervals.

    Returns:
        One row per group, sorted. Columns: those of `by`, `units` int64, the numerator and the denominator (sums),
        `rate`, `low`, `high` float64 (interval; NaN for fewer than two units).

    Raises:
        ValueError: A column is missing.
        OptionError: A group or an argument is invalid.

    Example:
        >>> table = pd.DataFrame({"transcript_id": ["a", "b", "c"], "site": ["x", "x", "y"],
        ...                       "fillers": [1, 3, 5], "words": [100, 100, 100]})
        >>> rates(table, "fillers", "words", "site", per=100)[["site", "rate", "low", "high"]].values.tolist()
        [['x', 2.0, 1.0, 3.0], ['y', 5.0, nan, nan]]
    """
    require(table, (numerator, denominator, resample), "rates")
    per = checked("per", per, Number(0))
    rows, names = with_keys(table, by, result=(numerator, denominator, "units", "rate", "low", "high"))
    rows = rows.dropna(subset=[numerator, denominator])
    keys = [rows[name] for name in names]
    counts = pd.DataFrame({name: floats(rows[name]) for name in (numerator, denominator)}, index=rows.index)
    drawn = Bootstrap(counts, keys, rows[resample], resamples=resamples, level=level, seed=seed)
    result = summed(counts, keys)
    result.insert(len(names), "units", drawn.units)
    result["rate"] = per * ratio(result[numerator], result[denominator])
    result["low"], result["high"] = drawn.interval(lambda sums: per * ratio(sums[numerator], sums[denominator]))
    return result


@takes_frames
@defines("hedges_g", "cliffs_delta")
def compare_groups(
    table: pd.DataFrame,
    value: str,
    group: str | pd.Series[Any],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare a measure between groups: difference of the means with an interval, and effect sizes.

    Definition: for each pair of groups A and B with values a and b,

    - `difference` is mean(b) - mean(a), in the unit of the measure, with a percentile bootstrap interval.
    - `hedges_g` is the difference divided by the pooled standard deviation, times 1 - 3 / (4 (n_a + n_b) - 9), which
      corrects the bias of small samples. Unit: standard deviations.
    - `cliffs_delta` is P(b > a) - P(b < a), -1 to 1. It needs no normal distribution.

    Denominator: rows. Rows must be independent of each other, so pass one row per recording or person, not per word.

    Source: L. Hedges, "Distribution theory for Glass's estimator of effect size and related estimators", Journal of
    Educational Statistics 6, 1981; N. Cliff, "Dominance statistics", Psychological Bulletin 114, 1993.

    Args:
        table: Result of a measure with one row per recording or person.
        value: Column with the measure. Rows without a value are left out.
        group: Column with the groups, or a Series.
        level: Confidence level of the interval, 0-1.
        resamples: Number of bootstrap samples.
        seed: Seed of the random numbers; the same seed gives the same intervals.

    Returns:
        One row per pair of groups, sorted. Columns: `group_a`, `group_b` str, `n_a`, `n_b` int64, `mean_a`, `mean_b`,
        `difference`, `low`, `high`, `hedges_g` and `cliffs_delta` float64. NaN where a group has fewer than two values
        (the interval and `hedges_g`), or no spread (`hedges_g`).

    Raises:
        ValueError: A column is missing.
        OptionError: There is no such group, or an argument is invalid.

    Example:
        >>> table = pd.DataFrame({"site": ["x", "x", "x", "y", "y", "y"], "pace": [150, 160, 170, 170, 180, 190]})
        >>> compare_groups(table, "pace", "site")[["difference", "hedges_g", "cliffs_delta"]].round(3).values.tolist()
        [[20.0, 1.6, 0.889]]
    """
    require(table, (value,), "compare_groups")
    resamples, tails, random = _sampling(resamples, level, seed)
    if len(group_keys := group_columns(table, group, {})) != 1:
        raise OptionError(f"group must be one column or one Series, got {shown(group)}")
    keys, values = group_keys[0], pd.Series(floats(table[value]), index=table.index)
    complete = values.notna() & keys.notna()
    groups = {str(name): floats(rows) for name, rows in values[complete].groupby(keys[complete], sort=True)}
    rows = [(a, b, *_compared(groups[a], groups[b], random, resamples, tails)) for a, b in combinations(groups, 2)]
    columns = "group_a group_b n_a n_b mean_a mean_b difference low high hedges_g cliffs_delta".split()
    dtypes = (
        dict.fromkeys(columns[:2], TEXT) | dict.fromkeys(columns[2:4], "int64") | dict.fromkeys(columns[4:], "float64")
    )
    return pd.DataFrame(rows, columns=columns).astype(dtypes)


def _compared(
    a: npt.NDArray[np.float64],
    b: npt.NDArray[np.float64],
    random: np.random.Generator,
    resamples: int,
    tails: list[float],
) -> tuple[float, ...]:
    """Return sizes, means, difference, interval and effect sizes of two groups."""
    n, m = len(a), len(b)
    low = high = g = np.nan
    difference = float(b.mean() - a.mean())
    if n > 1 and m > 1:
        step = max(1, _CHUNK // max(n, m))
        drawn = [
            b[random.integers(0, m, (size, m))].mean(1) - a[random.integers(0, n, (size, n))].mean(1)
            for at in range(0, resamples, step)
            for size in [min(step, resamples - at)]
        ]
        low, high = np.quantile(np.concatenate(drawn), tails)
        pooled = np.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / (n + m - 2))
        g = difference / pooled * (1 - 3 / (4 * (n + m) - 9)) if pooled > 0 else np.nan
    order = np.sort(a)
    above, below = np.searchsorted(order, b, "left").sum(), (n - np.searchsorted(order, b, "right")).sum()
    return n, m, float(a.mean()), float(b.mean()), difference, low, high, g, (above - below) / (n * m)
