"""Statistics over a corpus: rates with bootstrap intervals, and comparisons of groups with effect sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.grouping import By, group_columns, ratio, with_keys
from voxframe.analysis.recordings import keeps_recordings
from voxframe.analysis.speaker_turns import floats, require
from voxframe.errors import OptionError
from voxframe.measures import defines
from voxframe.validators import Integer, Number, checked, shown

Sums: TypeAlias = "dict[str, npt.NDArray[np.float64]]"
_CHUNK = 2_000_000  # sampled units at a time


class Bootstrap:
    """Bootstrap of ratios of sums: draws units with replacement, within each group.

    Args:
        counts: Counts to sum, one row per word or other event.
        keys: Groups of the rows.
        unit: Unit of each row.
        resamples: Number of samples.
        level: Confidence level.
        seed: Seed of the random numbers.

    Raises:
        OptionError: `resamples`, `level` or `seed` is not allowed.
    """

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
            known = size > 1 and not np.isnan(values).all()
            ends.append(np.nanquantile(values, self.tails).tolist() if known else [np.nan, np.nan])
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
    known, names = with_keys(table, by, result=(numerator, denominator, "units", "rate", "low", "high"))
    known = known.dropna(subset=[numerator, denominator])
    keys = [known[name] for name in names]
    counts = pd.DataFrame({name: floats(known[name]) for name in (numerator, denominator)}, index=known.index)
    drawn = Bootstrap(counts, keys, known[resample], resamples=resamples, level=level, seed=seed)
    found = summed(counts, keys)
    found.insert(len(names), "units", drawn.units)
    found["rate"] = per * ratio(found[numerator], found[denominator])
    found["low"], found["high"] = drawn.interval(lambda sums: per * ratio(sums[numerator], sums[denominator]))
    return found


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
    if len(found := group_columns(table, group, {})) != 1:
        raise OptionError(f"group must be one column or one Series, got {shown(group)}")
    keys, values = found[0], pd.Series(floats(table[value]), index=table.index)
    kept = values.notna() & keys.notna()
    groups = {str(name): floats(rows) for name, rows in values[kept].groupby(keys[kept], sort=True)}
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
