import numpy as np
import pandas as pd
import pytest

from voxframe.analysis import compare_groups, rates
from voxframe.errors import OptionError

COUNTS = pd.DataFrame(
    {
        "transcript_id": ["a", "a", "b", "c", "d"],
        "speaker": list("ABAAA"),
        "site": ["x", "x", "x", "y", "y"],
        "fillers": [1, 2, 0, 4, 6],
        "words": [50, 50, 200, 100, 50],
    }
)


def test_rates_are_ratios_of_sums():
    """A rate divides sums, so long recordings count more; its units are recordings; it is the same every time."""
    table = rates(COUNTS, "fillers", "words", "site", per=100)
    assert table[["site", "units", "fillers", "words", "rate"]].values.tolist() == [
        ["x", 2, 3.0, 300.0, 1.0],
        ["y", 2, 10.0, 150.0, pytest.approx(100 / 15)],
    ]
    # Of two recordings, each sample has the rate of one, the other, or both: 3 %, 0 % or 1 %.
    assert table[["low", "high"]].values[0].tolist() == [0, 3]
    pd.testing.assert_frame_equal(table, rates(COUNTS, "fillers", "words", "site", per=100))
    assert rates(COUNTS, "fillers", "words")["rate"].tolist() == [13 / 450]
    assert rates(COUNTS, "fillers", "words", "speaker")["low"].isna().all()
    with pytest.raises(OptionError, match="level must be a number from 0 to 1, got 95"):
        rates(COUNTS, "fillers", "words", level=95)


def test_unknown_counts_are_left_out_of_rates():
    """A recording without one of the counts adds to neither sum and is no unit; no rows at all give no rate."""
    table = pd.DataFrame({"transcript_id": list("abc"), "overlap_s": [1.0, None, 3.0], "speech_s": [10.0, 10.0, 10.0]})
    found = rates(table, "overlap_s", "speech_s")
    assert found[["units", "overlap_s", "speech_s", "rate"]].values.tolist() == [[2, 4.0, 20.0, 0.2]]
    assert found[["low", "high"]].values.tolist() == [[0.1, 0.3]]
    nothing = rates(table.iloc[:0], "overlap_s", "speech_s")
    assert nothing["units"].tolist() == [0]
    assert nothing[["rate", "low", "high"]].isna().all(axis=None)


def test_effect_sizes_worked_by_hand():
    """Hedges' g and Cliff's delta of three groups equal those worked by hand, with ties and missing values."""
    table = pd.DataFrame({"site": list("xxxyyyzz"), "pace": [1.0, 2, 3, 3, 4, 5, 2, None]})
    found = compare_groups(table, "pace", "site")
    assert found[["group_a", "group_b", "n_a", "n_b"]].values.tolist() == [
        ["x", "y", 3, 3],
        ["x", "z", 3, 1],
        ["y", "z", 3, 1],
    ]
    first = found.iloc[0]
    assert first["difference"] == 2
    assert first["hedges_g"] == pytest.approx(2 * (1 - 3 / 15))  # both variances are 1
    assert first["cliffs_delta"] == pytest.approx(8 / 9)  # 8 of 9 pairs are above, one is equal
    assert 0 < first["low"] < 2 < first["high"] < 4
    assert found["cliffs_delta"][1] == 0
    assert found["hedges_g"][1:].isna().all()
    assert len(compare_groups(table, "pace", pd.Series("all", index=table.index))) == 0


@pytest.mark.long
def test_intervals_and_effect_sizes_equal_those_of_scipy():
    """Cliff's delta follows from scipy's Mann-Whitney U; intervals equal those of scipy's bootstrap within noise."""
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(5)
    a, b = random.normal(0, 1, 40), random.normal(0.4, 1.5, 60)
    table = pd.DataFrame({"pace": np.r_[a, b], "site": ["x"] * 40 + ["y"] * 60})
    found = compare_groups(table, "pace", "site", resamples=20_000).iloc[0]
    u = stats.mannwhitneyu(b, a).statistic
    assert found["cliffs_delta"] == pytest.approx(2 * u / (40 * 60) - 1)
    drawn = stats.bootstrap(
        (b, a), lambda b, a, axis: b.mean(axis) - a.mean(axis), method="percentile", n_resamples=20_000, rng=1
    )
    assert [found["low"], found["high"]] == pytest.approx(list(drawn.confidence_interval), abs=0.02)
