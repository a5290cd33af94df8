import numpy as np
import pandas as pd
import pytest

from voxframe.analysis import annotate, relative_time, split_spans
from voxframe.errors import OptionError

WORDS = pd.DataFrame(
    {
        "transcript_id": ["t", "t", "t", "t", "u"],
        "text": ["a", "b", "c", "d", "e"],
        "start_ms": pd.array([0, 900, 1500, None, 100], dtype="Int64"),
        "end_ms": pd.array([400, 1300, 1900, 2000, 200], dtype="Int64"),
    },
    index=[9, 8, 7, 6, 5],
)
CHAPTERS = pd.DataFrame(
    {"transcript_id": "t", "chapter_idx": [0, 1], "headline": ["x", "y"], "start_ms": [0, 1000], "end_ms": [1000, 1600]}
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("most", "xyy"), ("start", "xxy"), ("middle", "xy-"), ("within", "x--")],
)
def test_the_rule_decides_about_straddling_words(rule, expected):
    """A word over two chapters goes to the one with most of it, its start or its middle, or to none."""
    found = annotate(WORDS, CHAPTERS, rule=rule)
    assert "".join(found["headline"].fillna("-")) == f"{expected}--"
    assert found.index.tolist() == [9, 8, 7, 6, 5]
    assert found["chapter_idx"].dtype == "Int64"
    assert "chapter_idx" not in WORDS


def test_all_others_of_a_span_are_returned_with_the_common_time():
    """With "all", each pair is a row with its common time; a span without one keeps its row."""
    found = annotate(WORDS, CHAPTERS, rule="all")
    assert found["text"].tolist() == list("abbcde")
    assert found["headline"].fillna("-").tolist() == list("xxyy--")
    assert found["overlap_ms"].fillna(-1).tolist() == [400, 100, 300, 100, -1, -1]


def naive(spans, others, rule):
    """The definition, one span at a time."""
    rows = []
    for s in spans.itertuples():
        fit = []
        for o in others.itertuples():
            same = o.transcript_id == s.transcript_id and o.end_ms > o.start_ms
            point = {"middle": (s.start_ms + s.end_ms) / 2}.get(rule, s.start_ms)
            common = min(s.end_ms, o.end_ms) - max(s.start_ms, o.start_ms)
            if rule in ("most", "all"):
                meets = common > 0 or (s.start_ms == s.end_ms and o.start_ms <= s.start_ms < o.end_ms)
            else:
                meets = o.start_ms <= point < o.end_ms and (rule != "within" or s.end_ms <= o.end_ms)
            if same and meets:
                fit.append((-common if rule == "most" else -o.start_ms, o.start_ms, common, o.Index))
        if rule == "all":
            rows += [(s.Index, o, c) for _, _, c, o in fit]
        else:
            rows.append(min(fit)[:3] if fit else None)
    return sorted(rows) if rule == "all" else rows


@pytest.mark.parametrize("rule", ["most", "start", "middle", "within", "all"])
def test_random_spans_meet_as_the_definition_says(rule):
    """Overlapping, nested, empty and touching spans of several transcripts give the pairs of a plain double loop."""
    rng = np.random.default_rng(7)
    for size in (3, 25):
        spans, others = (
            pd.DataFrame({"transcript_id": rng.choice(["a", "b", "c"], n), "start_ms": rng.integers(0, 60, n)})
            for n in (60, size)
        )
        spans["end_ms"] = spans["start_ms"] + rng.integers(0, 12, len(spans))
        others["end_ms"] = others["start_ms"] + rng.integers(0, 30, len(others))
        found = annotate(spans, others.assign(n=others.index, o=others["start_ms"], e=others["end_ms"]), rule=rule)
        if rule == "all":
            pairs = found.dropna(subset="n").reset_index()
            got = sorted(zip(pairs["index"], pairs["n"], pairs["overlap_ms"], strict=True))
            assert got == naive(spans, others, rule)
            continue
        for got, wanted in zip(found.itertuples(), naive(spans, others, rule), strict=True):
            assert pd.isna(got.n) == (wanted is None)
            if wanted is not None:  # equals may be any of those with the same score and start
                common = min(got.end_ms, got.e) - max(got.start_ms, got.o)
                assert (-common if rule == "most" else -got.o, got.o) == wanted[:2]


def test_other_columns_can_be_chosen_renamed_and_matched():
    """Columns are chosen and prefixed; channels of one recording are kept apart with `on`."""
    words = pd.DataFrame({"channel": ["1", "2"], "text": ["a", "b"], "start_ms": 0, "end_ms": 10})
    turns = pd.DataFrame({"channel": ["2", "1"], "text": ["B", "A"], "start_ms": 0, "end_ms": 20})
    assert annotate(words, turns, on="channel", prefix="turn_")["turn_text"].tolist() == ["A", "B"]
    with pytest.raises(OptionError, match="prefix="):
        annotate(words, turns, on="channel")
    with pytest.raises(OptionError, match="rule must be one of"):
        annotate(words, turns, rule="nearest", columns=[])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lacks transcript_id"):
        annotate(words, CHAPTERS)


def test_nothing_to_join_gives_nulls():
    """Without other spans, or without spans, the columns exist."""
    assert annotate(WORDS, CHAPTERS.iloc[:0])["headline"].isna().all()
    assert annotate(WORDS.iloc[:0], CHAPTERS)["chapter_idx"].tolist() == []
    assert annotate(WORDS, CHAPTERS.iloc[:0], rule="all")["overlap_ms"].isna().all()


def test_cut_spans_lie_in_one_bin_and_keep_their_time():
    """Pieces lie within their bin and add up to the span; a span that ends at a limit has no empty piece."""
    spans = pd.DataFrame(
        {"transcript_id": ["t", "t", "u"], "start_ms": [500, 1000, 100], "end_ms": [3000, 2000, 100], "x": [1, 2, 3]}
    )
    cut = split_spans(spans, window_s=1)
    assert cut[["x", "bin_idx", "start_ms", "end_ms", "first_piece"]].values.tolist() == [
        [1, 0, 500, 1000, True],
        [1, 1, 1000, 2000, False],
        [1, 2, 2000, 3000, False],
        [2, 1, 1000, 2000, True],
        [3, 0, 100, 100, True],
    ]
    with pytest.raises(OptionError, match="give either window_s or parts, not window_s=None"):
        split_spans(spans)


def test_parts_of_recordings_of_different_length():
    """Parts are fractions of each recording, whose length is that of the audio if it is known."""
    spans = pd.DataFrame({"transcript_id": ["t", "u"], "start_ms": [0, 0], "end_ms": [1000, 100]})
    assert split_spans(spans, parts=2)["end_ms"].tolist() == [500, 1000, 50, 100]
    known = pd.DataFrame({"transcript_id": ["t", "u"], "audio_duration_s": [4.0, 0.1]})
    assert split_spans(spans, parts=2, transcripts=known)["bin_idx"].tolist() == [0, 0, 1]
    assert relative_time(spans, known).tolist() == [0.125, 0.5]


def test_tables_that_both_name_the_recording_are_annotated():
    """A `recording` in both DataFrames is that of the rows; it is not added a second time."""
    words = pd.DataFrame({"transcript_id": "t1", "recording": "call", "start_ms": [0], "end_ms": [9]})
    chapters = words.assign(chapter="one")
    assert annotate(words, chapters).columns.tolist() == [*words.columns, "chapter"]
