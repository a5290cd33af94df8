from collections import Counter

import numpy as np
import pandas as pd
import pytest

import voxframe
from voxframe.analysis import collocations, distinctive_words, keyness, ngrams, vocabulary
from voxframe.analysis.search_terms import spoken
from voxframe.errors import OptionError


def words(text: str, transcript_id: str = "t", speaker: str = "A") -> pd.DataFrame:
    rows = text.split()
    return pd.DataFrame(
        {"transcript_id": transcript_id, "speaker": speaker, "text": rows, "start_ms": range(len(rows))}
    )


def test_sequences_stay_within_a_speaker_and_a_recording():
    """Pairs do not cross speakers or recordings; spelling differences count as one word."""
    spoken = pd.concat(
        [words("The tree, the TREE"), words("the tree", speaker="B").assign(start_ms=[9, 10]), words("A tree", "u")]
    )
    assert ngrams(spoken).values.tolist() == [["tree", 4, 2], ["the", 3, 1], ["a", 1, 1]]
    assert ngrams(spoken, 2).values.tolist() == [["the tree", 3, 1], ["a tree", 1, 1], ["tree the", 1, 1]]
    assert ngrams(spoken, 3, by="speaker").values.tolist() == [
        ["t", "A", "the tree the", 1, 1],
        ["t", "A", "tree the tree", 1, 1],
    ]
    assert len(ngrams(spoken, 9)) == len(ngrams(spoken.iloc[:0])) == 0
    with pytest.raises(OptionError, match="at least 1, got 0"):
        ngrams(spoken, 0)


def test_counts_of_a_recording_equal_a_plain_count():
    """Counts of words and pairs of a recording equal those of a Counter over its turns."""
    turns = voxframe.load_utterances("data/payloads/panel.json")
    spoken = voxframe.load_words("data/payloads/panel.json")
    plain = [[word.strip(".,?").lower() for word in text.split()] for text in turns["text"]]
    for n in (1, 2):
        counted = Counter(" ".join(turn[i : i + n]) for turn in plain for i in range(len(turn) - n + 1))
        table = ngrams(spoken, n)
        assert dict(zip(table["ngram"], table["count"], strict=True)) == {
            key.replace(".", "").replace("-", ""): count for key, count in counted.items()
        }


COUNTS = pd.DataFrame(
    {
        "site": ["x", "x", "x", "y", "y", "z"],
        "ngram": ["the", "tree", "car", "the", "car", "the"],
        "count": [60, 30, 10, 70, 30, 50],
    }
)


def test_keyness_worked_by_hand():
    """G2 has the sign of the difference and is 0 for equal frequencies; the log ratio is that of the frequencies."""
    table = keyness(COUNTS, "site", ignore=None).set_index(["site", "ngram"])
    # "tree": 30 of 100 against 0 of 150; expected 12 and 18, 88 and 132
    expected = 2 * (30 * np.log(30 / 12) + 70 * np.log(70 / 88) + 150 * np.log(150 / 132))
    assert table.loc[("x", "tree"), "g2"] == pytest.approx(expected)
    assert table.loc[("y", "tree"), "g2"] < 0
    assert table.loc[("x", "tree"), "log_ratio"] == pytest.approx(np.log2(0.3 / (0.5 / 150)))
    assert table.loc[("x", "the"), ["per_1000", "other_per_1000"]].tolist() == [600, 800]
    assert table.index[0] == ("x", "tree")
    assert "tree" not in set(keyness(COUNTS, "site", min_count=31)["ngram"])
    listed = keyness(COUNTS, "site")  # the other rows are the same without the function words
    pd.testing.assert_frame_equal(
        listed.set_index(["site", "ngram"]), table[table.index.get_level_values("ngram") != "the"]
    )
    with pytest.raises(OptionError, match="at least two groups"):
        keyness(COUNTS[COUNTS["site"] == "x"], "site")


def test_distinctive_words_worked_by_hand():
    """Log-odds and z follow the formula; words as frequent in both are near 0; a stronger prior pulls towards 0."""
    table = distinctive_words(COUNTS, "site", prior_words=50).set_index(["site", "ngram"])
    prior = 50 * 30 / 250
    odds = np.log((30 + prior) / (150 - 30 - prior)) - np.log(prior / (200 - prior))
    assert table.loc[("x", "tree"), "log_odds"] == pytest.approx(odds)
    assert table.loc[("x", "tree"), "z"] == pytest.approx(odds / np.sqrt(1 / (30 + prior) + 1 / prior))
    strong = distinctive_words(COUNTS, "site", prior_words=5000).set_index(["site", "ngram"])
    assert 0 < strong.loc[("x", "tree"), "log_odds"] < table.loc[("x", "tree"), "log_odds"]
    alone = distinctive_words(COUNTS[COUNTS["ngram"] == "the"], "site", ignore=None)
    assert alone["z"].isna().all()  # there are no odds without other words
    with pytest.raises(OptionError, match=r"prior_words must be a number from 0\.001"):
        distinctive_words(COUNTS, "site", prior_words=0)


def test_collocations_worked_by_hand():
    """Expected counts, PMI and t-score of pairs in groups equal those worked by hand."""
    counts = pd.DataFrame(
        {"site": list("xxxy"), "ngram": ["new york", "new day", "a day", "a day"], "count": [8, 2, 10, 5]}
    )
    table = collocations(counts, min_count=1).set_index(["site", "ngram"])
    row = table.loc[("x", "new york")]
    assert row[["first_count", "second_count", "expected", "pmi"]].tolist() == [10, 8, 4, 1]
    assert row["t_score"] == pytest.approx(4 / np.sqrt(8))
    assert table.loc[("y", "a day"), "pmi"] == 0
    assert len(collocations(counts, min_count=6)) == 2
    with pytest.raises(OptionError, match="ngrams"):
        collocations(COUNTS)
    assert len(collocations(ngrams(words("one"), 2))) == 0


def test_function_words_are_left_out():
    """Function words of a language and n-grams of these are left out, and other words that were named."""
    counts = pd.DataFrame(
        {"site": list("xxxy") * 2, "ngram": ["of the", "the tree", "don't", "und für"] * 2, "count": 5}
    )
    counts["ngram"] = [" ".join(spoken(text)) for text in counts["ngram"]]

    def listed(**options):
        return {*keyness(counts, "site", **options)["ngram"]}

    assert listed() == {"the tree", " ".join(spoken("und für"))}
    assert listed(ignore="de") == {"of the", "the tree", *spoken("don't")}
    assert listed(ignore=["the", "Tree"]) == listed(ignore=None) - {"the tree"}
    with pytest.raises(OptionError, match="no list of function words for ignore='xx_'"):
        listed(ignore="xx_")


@pytest.mark.long
def test_log_likelihood_equals_that_of_scipy():
    """G2 of words and of pairs equals scipy's log-likelihood test of the same 2 by 2 tables."""
    stats = pytest.importorskip("scipy.stats")
    spoken = voxframe.load_words(["data/payloads/panel.json", "data/payloads/interview.json"])
    for row in keyness(ngrams(spoken, by="transcript_id"), "transcript_id").itertuples():
        sizes = (
            1000 * row.count / row.per_1000 if row.count else None,
            1000 * row.other_count / row.other_per_1000 if row.other_count else None,
        )
        if None not in sizes:
            cells = [[row.count, row.other_count], [sizes[0] - row.count, sizes[1] - row.other_count]]
            result = stats.chi2_contingency(cells, correction=False, lambda_="log-likelihood")
            assert abs(row.g2) == pytest.approx(result.statistic, abs=1e-9)
    pairs = ngrams(spoken, 2)
    for row in collocations(pairs, min_count=2).itertuples():
        rest = pairs["count"].sum() - row.first_count - row.second_count + row.count
        cells = [[row.count, row.first_count - row.count], [row.second_count - row.count, rest]]
        assert row.g2 == pytest.approx(
            stats.chi2_contingency(cells, correction=False, lambda_="log-likelihood").statistic
        )


def test_the_vocabulary_grows():
    """New types are those that no earlier group of the same recording has; Yule's K equals that worked by hand."""
    spoken = pd.concat([words("a b a c"), words("b d", "u")]).assign(half=[0, 0, 1, 1, 0, 1])
    table = vocabulary(ngrams(spoken, by=["transcript_id", "half"]))
    assert table[["transcript_id", "half", "tokens", "types", "hapaxes", "new_types", "all_types"]].values.tolist() == [
        ["t", 0, 2, 2, 2, 2, 2],
        ["t", 1, 2, 2, 2, 1, 3],
        ["u", 0, 1, 1, 1, 1, 1],
        ["u", 1, 1, 1, 1, 1, 2],
    ]
    total = vocabulary(ngrams(words("a a a b b c")))
    assert total[["tokens", "types", "hapaxes"]].values.tolist() == [[6, 3, 1]]
    assert total["yules_k"].tolist() == pytest.approx([10_000 * (9 + 4 + 1 - 6) / 36])
    assert len(vocabulary(ngrams(spoken.iloc[:0], by="half"))) == 0
