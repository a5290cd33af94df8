"""Measures: one definition per name, one name per definition, and every measured column is defined."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe import analysis
from voxframe.dictionary import MEASURES


@pytest.fixture(scope="module")
def results() -> dict[str, pd.DataFrame]:
    """Results of the measuring functions for one recording, by function and grouped by speaker if they can be."""
    words = voxframe.load_words(Path("data/payloads/panel.json"))
    end = words["end_ms"].max()
    labels = pd.DataFrame(
        {"transcript_id": words["transcript_id"].iloc[0], "label": ["x"], "start_ms": 0, "end_ms": end}
    )
    mood = words.assign(
        sentiment=["POSITIVE", "NEGATIVE", "NEUTRAL", "POSITIVE"] * (len(words) // 4) + ["NEUTRAL"] * (len(words) % 4)
    )
    counts = analysis.ngrams(words, by="speaker")
    alignment = voxframe.compare.align(words, words)
    by = "speaker"
    return {
        "talk_time": analysis.talk_time(words, by),
        "delivery": analysis.delivery(words, by),
        "pace": analysis.pace(words, by, window_s=end / 1000),
        "turn_statistics": analysis.turn_statistics(words, by),
        "label_shares": analysis.label_shares(labels, words, by=by),
        "sentiment_over_time": analysis.sentiment_over_time(mood, by, window_s=end / 1000),
        "vocabulary": analysis.vocabulary(counts),
        "keyness": analysis.keyness(counts, by).head(1),
        "distinctive_words": analysis.distinctive_words(counts, by).head(1),
        "collocations": analysis.collocations(analysis.ngrams(words, 2)).head(1),
        "turn_matrix": analysis.turn_matrix(words).head(1),
        "speech_activity": analysis.speech_activity(words),
        "balance": analysis.balance(words),
        "low_confidence": analysis.low_confidence(words, below=1).head(1),
        "error_rates": voxframe.compare.error_rates(alignment),
        "cpwer": voxframe.compare.cpwer(words, words),
        "diarization_error_rate": voxframe.compare.diarization_error_rate(words, words),
    }


def test_no_two_measures_have_the_same_definition() -> None:
    """A definition (numerator, denominator and unit) has one name."""
    repeated = [d for d, n in Counter((m.numerator, m.denominator, m.unit) for m in MEASURES.values()).items() if n > 1]
    assert not repeated


def test_every_measured_column_is_defined_and_documented(results) -> None:
    """Each float column of a result is in the table of measures, and its definition is in the function's docstring."""
    for function, table in results.items():
        documented = (getattr(analysis, function, None) or getattr(voxframe.compare, function)).__doc__
        for name in table.columns[[str(dtype).lower().startswith("float") for dtype in table.dtypes]]:
            assert name in MEASURES, f"{function} returns {name}, which has no definition"
            assert str(MEASURES[name]) in documented, f"the docstring of {function} does not define {name}"


def test_functions_agree_on_a_measure(results) -> None:
    """A measure that several functions return for the same speakers of a recording has the same values in all."""
    values: dict[str, dict[str, list[float]]] = {}
    for function, table in results.items():
        if "speaker" not in table.columns or not table["speaker"].is_unique:
            continue
        for name in set(table.columns) & set(MEASURES):
            values.setdefault(name, {})[function] = table.sort_values("speaker")[name].tolist()
    shared = {name: by_function for name, by_function in values.items() if len(by_function) > 1}
    assert set(shared) >= {"words_per_minute", "articulation_wpm", "articulation_s"}
    for name, by_function in shared.items():
        first, *others = by_function.values()
        for other in others:
            assert other == pytest.approx(first, nan_ok=True), (name, list(by_function))


def test_describe_lists_the_measures() -> None:
    """`describe("measures")` has a row per measure, with its numerator and denominator."""
    rows = {row[0]: row for row in voxframe.describe("measures").rows}
    assert rows.keys() == MEASURES.keys()
    assert rows["words_per_minute"][2:4] == ("words", "talk time in minutes, with pauses inside turns")


def test_rates_agree_if_speakers_overlap() -> None:
    """Words per minute are the same in `talk_time` and `delivery` if a turn begins while another speaker goes on."""
    words = pd.DataFrame(
        {
            "transcript_id": "t",
            "speaker": list("ABBA"),
            "word_idx": range(4),
            "text": "x",
            "start_ms": [0, 500, 700, 1500],
            "end_ms": [1000, 600, 800, 1900],
        }
    )
    of_b = [
        measure(words, "speaker").set_index("speaker")["words_per_minute"]["B"]
        for measure in (analysis.talk_time, analysis.delivery)
    ]
    assert of_b == pytest.approx([60 * 2 / 0.3] * 2)
