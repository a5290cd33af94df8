"""Groups by week, month and other periods of a date in the metadata."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import voxframe
from voxframe import analysis, plots, scale
from voxframe.errors import OptionError

_DATES = {"a": "2026-01-05", "b": "2026-01-11", "c": "2026-02-01"}  # Monday and Sunday of a week, and a Sunday


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """Three recordings of two words each, with a date."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    for transcript_id in _DATES:
        words: list[dict[str, Any]] = [
            {"text": text, "start": 500 * n, "end": 500 * n + 400, "speaker": "A", "confidence": 0.5}
            for n, text in enumerate(["good", "day"])
        ]
        corpus.add({"id": transcript_id, "status": "completed", "text": "good day", "words": words})
    dates = pd.DataFrame({"transcript_id": [*_DATES], "day_of": pd.to_datetime([*_DATES.values()])})
    corpus.metadata.set(dates)
    return corpus


@pytest.mark.parametrize("kind", ["timestamp", "date", "text", "zone"])
@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("week", {"2026-01-05": 2, "2026-01-26": 1}),
        ("month", {"2026-01-01": 2, "2026-02-01": 1}),
        ("year", {"2026-01-01": 3}),
        (pd.Grouper(key="day_of", freq="W"), {"2026-01-11": 2, "2026-02-01": 1}),
        (pd.Grouper(key="day_of", freq="MS"), {"2026-01-01": 2, "2026-02-01": 1}),
    ],
    ids=str,
)
def test_measures_by_period(corpus: voxframe.Corpus, by: Any, expected: dict[str, int], kind: str) -> None:
    """A week begins on Monday; dates may be timestamps, dates, ISO text or zoned times; a Grouper is pandas' own."""
    words = corpus.table("words", metadata="day_of")
    day = words["day_of"]
    words["day_of"] = {
        "timestamp": day,
        "date": day.dt.date,
        "text": day.dt.strftime("%Y-%m-%d"),
        "zone": day.dt.tz_localize("Asia/Tokyo"),
    }[kind]
    name = by if isinstance(by, str) else by.key
    table = analysis.talk_time(words, by=by)
    assert {f"{key:%Y-%m-%d}": n / 2 for key, n in zip(table[name], table["words"], strict=True)} == expected
    ngrams = analysis.ngrams(words, 2, by=by)
    assert ngrams["count"].tolist() == [*expected.values()]


@pytest.mark.long
def test_counts_by_period(corpus: voxframe.Corpus) -> None:
    """Counts of a corpus and of Dask frames have periods, also with the speaker."""
    by_month = corpus.counts("day", by="month")
    assert list(zip(by_month["month"].dt.month, by_month["occurrences"], strict=True)) == [(1, 2), (2, 1)]
    grouped = corpus.counts("day", by=[pd.Grouper(key="day_of", freq="MS"), "speaker"])
    assert grouped.groupby("day_of")["occurrences"].sum().tolist() == [2, 1]
    about = corpus.metadata.get()
    on_dask = scale.counts(corpus.to_dask("words"), "day", by="month", about=about)
    assert on_dask["occurrences"].tolist() == [2, 1]


@pytest.mark.long
def test_counts_of_dask_frames_by_any_column(corpus: voxframe.Corpus) -> None:
    """A column of the frame divides the words; a phrase lies within one group."""
    words = corpus.to_dask("words").assign(half=lambda df: (df["word_idx"] > 0).astype("int64"))
    found = scale.counts(words, ["day", "good day"], by="half")
    assert found[["term", "half", "occurrences", "words"]].to_numpy().tolist() == [
        ["day", 0, 0, 3],
        ["day", 1, 3, 3],
        ["good day", 0, 0, 3],
        ["good day", 1, 0, 3],
    ]


def test_a_plot_by_period(corpus: voxframe.Corpus) -> None:
    """The lanes of a plot are the periods."""
    ax = plots.talk_time(corpus.table("words", metadata="day_of"), by="month")
    labels = " ".join(label.get_text() for label in [*ax.get_yticklabels(), *ax.get_xticklabels()])
    assert "2026-01" in labels
    assert "2026-02" in labels


def test_a_period_needs_one_date(corpus: voxframe.Corpus) -> None:
    """Without a date, or with two, the message says what to do."""
    words = corpus.table("words")
    with pytest.raises(OptionError, match="by='week' needs one column with dates, and the table has none"):
        analysis.talk_time(words, by="week")
    two = words.assign(a=pd.Timestamp("2026-01-01"), b=pd.Timestamp("2026-01-01"))
    with pytest.raises(OptionError, match=r"has a, b; pd.Grouper"):
        analysis.talk_time(two, by="month")
    with pytest.raises(OptionError, match="a Grouper needs the column of a date"):
        analysis.talk_time(words, by=pd.Grouper(freq="W"))
