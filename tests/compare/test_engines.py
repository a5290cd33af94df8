"""Two engines over a corpus, intervals and time differences."""

import numpy as np
import pandas as pd
import pytest

from voxframe.compare import align, compare_engines, disagreements, error_rates, time_differences
from voxframe.errors import OptionError

_SIZE = 10  # words in a recording


def _corpus(errors: list[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return reference and hypothesis with a number of substitutions in each recording."""
    names = np.repeat([f"r{n}" for n in range(len(errors))], _SIZE)
    text = [f"w{n}" for n in range(_SIZE)] * len(errors)
    truth = pd.DataFrame({"recording": names, "text": text})
    wrong = [n < count for count in errors for n in range(_SIZE)]
    return truth, truth.assign(text=np.where(wrong, "x", text))


def test_the_interval_is_that_of_the_bootstrap_distribution() -> None:
    """The interval of WER is near the normal approximation for the mean of many recordings of equal length."""
    errors = np.random.default_rng(1).integers(0, 6, 200)
    rates = error_rates(align(*_corpus(errors.tolist()), on="recording"), resample="recording", resamples=4000).iloc[0]
    spread = 1.96 * errors.std() / _SIZE / np.sqrt(len(errors))
    assert rates["units"] == 200
    assert rates["wer"] == errors.mean() / _SIZE
    assert rates["wer_low"] == pytest.approx(rates["wer"] - spread, abs=spread / 10)
    assert rates["wer_high"] == pytest.approx(rates["wer"] + spread, abs=spread / 10)


def test_engines_are_compared_by_metadata() -> None:
    """Each group has the rates of both engines; drawing the same recordings makes a constant difference certain."""
    truth, heard_a = _corpus([3, 4, 5, 1, 1, 1])
    _, heard_b = _corpus([2, 3, 4, 1, 2, 0])
    about = pd.DataFrame({"recording": [f"r{n}" for n in range(6)], "room": ["loud"] * 3 + ["calm"] * 3})
    a, b = (align(truth, heard, on="recording").merge(about, on="recording") for heard in (heard_a, heard_b))
    table = compare_engines(a, b, by="room").set_index("room")
    assert table.loc["loud", ["units", "words", "wer_a", "wer_b"]].to_list() == pytest.approx([3, 30, 0.4, 0.3])
    assert table.loc["loud", ["difference", "low", "high", "b_better"]].to_list() == pytest.approx([-0.1] * 3 + [1])
    assert table.loc["calm", ["wer_a", "wer_b", "difference"]].to_list() == pytest.approx([0.1, 0.1, 0])
    assert table.loc["calm", "low"] < 0 < table.loc["calm", "high"]
    pd.testing.assert_frame_equal(table, compare_engines(a, b, by="room").set_index("room"))
    assert compare_engines(a, b, rate="cer").columns[1:4].to_list() == ["characters", "cer_a", "cer_b"]


@pytest.mark.parametrize("by", [None, "recording"])
def test_counts_are_integers(by: str | None) -> None:
    """Words, characters and edits are int64 and rates float64, in total, by group, with intervals and without words."""
    rows = align(*_corpus([1, 2]), on="recording")
    for alignment in (rows, rows.iloc[:0]):
        table = error_rates(alignment, by, resample="recording").drop(columns=by or [])
        assert [name for name in table.columns if table[name].dtype == "int64"] == [
            *("words", "matches", "substitutions", "deletions", "insertions", "characters", "char_edits", "units")
        ]
        assert {str(table[name].dtype) for name in ("wer", "cer", "wer_low", "cer_high")} == {"float64"}
    assert compare_engines(rows, rows, by)["words"].dtype == "int64"
    assert compare_engines(rows, rows, by, rate="cer")["characters"].dtype == "int64"


def test_a_single_unit_has_no_interval() -> None:
    """One recording gives rates but no interval."""
    row = align("one two", "one too")
    assert error_rates(row, resample="recording")[["units", "wer_low"]].isna().values.tolist() == [[False, True]]
    assert compare_engines(row, row)[["low", "high"]].isna().all(axis=None)


def test_engines_share_their_recordings() -> None:
    """Recordings of one engine only are left out with a warning; without a common one there is an error."""
    truth, heard = _corpus([1, 2])
    whole = align(truth, heard, on="recording")
    part = whole[whole["recording"] == "r1"]
    with pytest.warns(UserWarning, match="left out 1 recording that only one of the alignments has"):
        assert compare_engines(whole, part)["words"].to_list() == [10.0]
    with pytest.raises(OptionError, match="no recording is in both"):
        compare_engines(part, whole[whole["recording"] == "r0"])
    with pytest.raises(OptionError, match="rate must be"):
        compare_engines(whole, whole, rate="mer")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="level must be a number from 0 to 1, got 95"):
        error_rates(whole, resample="recording", level=95)


def test_time_differences_are_of_matching_words_with_times() -> None:
    """Only words that match and have times count; late words have positive differences."""
    words = pd.DataFrame(
        {"text": ["a", "b", "c", "d-e"], "start_ms": [0, 100, 200, 300], "end_ms": [90, 190, 290, 390]}
    )
    heard = words.assign(text=["a", "b", "x", "d-e"], start_ms=[40, 40, 900, 900], end_ms=[90, None, 290, 390])
    table = time_differences(align(words, heard)).set_index("boundary")
    assert table.loc["start"].to_list() == [2, -10.0, -10.0, 50.0, 59.0, 0.5, 1.0, 1.0]
    assert table.loc["end", ["words", "mean_ms"]].to_list() == [1, 0.0]
    speakers = time_differences(align(words.assign(speaker=[*"AAAB"]), heard), by="speaker")
    assert speakers[["speaker", "boundary", "words"]].values.tolist() == [["A", "start", 2], ["A", "end", 1]]
    assert time_differences(align("a", "a")).empty


def test_minutes_and_speakers_of_several_recordings_are_units_of_their_own() -> None:
    """The first minute of one recording and that of another are two units, as are speakers with equal labels."""
    words = pd.DataFrame({"text": ["a", "b", "c"], "start_ms": [0, 1000, 61_000], "end_ms": [500, 1500, 61_500]})
    truth = pd.concat([words.assign(recording=name, speaker=["A", "B", "A"]) for name in ("x", "y")])
    aligned = align(truth, truth, on="recording")
    assert error_rates(aligned, resample="minute")["units"].tolist() == [4]
    assert error_rates(aligned, resample="speaker")["units"].tolist() == [4]
    assert error_rates(aligned, resample="confidence_band")["units"].tolist() == [1]
    longer = align(truth, pd.concat([truth, words.tail(1).assign(recording="x", start_ms=121_000)]), on="recording")
    assert compare_engines(aligned, longer, resample="minute")["units"].tolist() == [5]


@pytest.mark.parametrize("resample", [None, ["recording", "edit"]])
def test_a_unit_is_one_column(resample: object) -> None:
    """Units that are not one column are refused."""
    aligned = align(*_corpus([1, 2]), on="recording")
    with pytest.raises(OptionError, match="resample must be one column, got"):
        compare_engines(aligned, aligned, resample=resample)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["x", None, [1], -1, True])
def test_numbers_of_a_bootstrap_are_checked(value: object) -> None:
    """Text, flags, lists and negative numbers are errors that name the argument."""
    aligned = align(*_corpus([1, 2]), on="recording")
    for name in ("level", "resamples", "seed"):
        with pytest.raises(OptionError, match=f"^{name} must be a .*number"):
            error_rates(aligned, resample="recording", **{name: value})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^context must be a whole number of at least 0"):
        disagreements(aligned, context=value)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^rate must be one of wer, cer"):
        compare_engines(aligned, aligned, rate=value or "none")  # type: ignore[arg-type]
