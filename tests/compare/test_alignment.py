"""Alignments, and their rates against jiwer."""

import random
from functools import partial

import jiwer
import pandas as pd
import pytest

import voxframe
from voxframe.compare import RULES, align, compare_engines, error_rates, normalized, time_differences
from voxframe.errors import OptionError

_WORDS = pd.DataFrame(
    {
        "transcript_id": "t",
        "word_idx": [0, 1, 2, 3],
        "speaker": ["A", "A", "B", "B"],
        "text": ["Good", "morning,", "twenty-one", "trees."],
        "start_ms": [0, 400, 61_000, 62_000],
        "end_ms": [300, 900, 61_800, 62_500],
        "confidence": [0.9, 0.8, 0.7, 0.6],
    }
)


def noisy(words: list[str], seed: int) -> list[str]:
    """Return words with substitutions, deletions and insertions."""
    drawn = random.Random(seed)
    changed = []
    for word in words:
        kind = drawn.random()
        if kind < 0.05:
            continue
        changed.append(word + "s" if kind < 0.12 else word)
        if kind > 0.95:
            changed.append(drawn.choice(words))
    return changed


@pytest.fixture(scope="module")
def truth() -> list[str]:
    return (voxframe.sample().parent / "scripts/interview.txt").read_text("utf-8").split()


def test_each_pair_of_words_has_one_row() -> None:
    """A row has the edit, both words as compared and as written, and speaker, times and confidence of each side."""
    heard = _WORDS.iloc[[0, 2, 3]].assign(text=["good", "twenty", "trees"], speaker="1", start_ms=[50, 61_010, 62_000])
    rows = align(_WORDS, heard)
    assert rows[["edit", "ref_token", "hyp_token"]].fillna("").values.tolist() == [
        ["match", "good", "good"],
        ["deletion", "morning", ""],
        ["match", "twenty", "twenty"],
        ["deletion", "one", ""],
        ["match", "trees", "trees"],
    ]
    first = rows.iloc[0].drop(["ref_chars", "char_edits"])
    assert first.to_list() == ["t", "match", "good", "good", "Good", "good", "A", "1", 0, 300, 50, 300, 0.9, 0, 0]
    assert rows["ref_text"].to_list() == ["Good", "morning,", "twenty-one", "twenty-one", "trees."]
    assert rows["hyp_idx"].isna().to_list() == [False, True, False, True, False]
    assert rows.dtypes.astype(str).to_list()[-9:] == ["Int64"] * 4 + ["float64"] + ["Int64"] * 2 + ["int64"] * 2


def test_an_empty_side_gives_only_deletions_or_insertions() -> None:
    """Nothing against three words is three edits, and nothing against nothing has no rows."""
    assert align("one two three", "")["edit"].to_list() == ["deletion"] * 3
    assert align("", "one two three")["edit"].to_list() == ["insertion"] * 3
    assert align("", _WORDS.iloc[:0]).empty
    assert error_rates(align("", "one"))["wer"].isna().all()


@pytest.mark.parametrize("seed", range(5))
def test_rates_equal_those_of_jiwer(truth: list[str], seed: int) -> None:
    """Counts of words, WER and CER equal jiwer's for the same normalised text."""
    heard = noisy(truth, seed)
    rates = error_rates(align(" ".join(truth), " ".join(heard))).iloc[0]
    said, found = normalized(" ".join(truth)), normalized(" ".join(heard))
    expected, characters = jiwer.process_words(said, found), jiwer.process_characters(said, found)
    assert rates["wer"] == expected.wer
    assert rates["cer"] == characters.cer
    assert rates[["matches", "words"]].to_list() == [expected.hits, len(said.split())]
    edits = (expected.substitutions, expected.deletions, expected.insertions)
    assert sum(rates[["substitutions", "deletions", "insertions"]]) == sum(edits)


def test_groups_add_up_to_the_total(truth: list[str]) -> None:
    """The counts of speakers, minutes and confidence bands add up to the counts of all."""
    words = pd.DataFrame({"text": truth, "start_ms": range(0, 500 * len(truth), 500)})
    words["speaker"] = [f"S{n // 50}" for n in range(len(truth))]
    heard = pd.DataFrame({"text": noisy(truth, 7)})
    heard["confidence"] = [n % 10 / 10 for n in range(len(heard))]
    rows = align(words, heard)
    total = error_rates(rows).drop(columns=["wer", "cer"]).iloc[0]
    for by in ("speaker", "minute", "confidence_band", rows["edit"] == "match"):
        sums = error_rates(rows, by).iloc[:, 1:].drop(columns=["wer", "cer"]).sum()
        pd.testing.assert_series_equal(sums, total, check_names=False)


def test_insertions_count_for_the_speaker_before() -> None:
    """An inserted word counts for the speaker of the word before it, at the beginning for the first speaker."""
    rows = align(_WORDS, "oh good morning well twenty one trees")
    rates = error_rates(rows, "speaker").set_index("speaker")
    assert rates["insertions"].to_dict() == {"A": 2, "B": 0}
    assert rates["wer"].to_dict() == {"A": 1.0, "B": 0.0}


def test_minutes_and_confidence_bands_follow_their_side() -> None:
    """Minutes are those of the reference, bands those of the confidence of the hypothesis."""
    heard = pd.DataFrame({"text": ["good", "mourning", "twenty", "one"], "confidence": [0.95, 0.9, 0.4, 1.0]})
    rows = align(_WORDS, heard)
    assert error_rates(rows, "minute")[["minute", "words"]].values.tolist() == [[0, 2], [1, 3]]
    bands = error_rates(rows, "confidence_band").set_index("confidence_band")["wer"]
    assert bands.loc[["0.00-0.50", "0.90-0.95", "0.95-1.00"]].to_list() == [0.0, 1.0, 0.0]
    assert bands[bands.index.isna()].to_list() == [1.0]  # the deleted word


def test_every_rule_does_what_it_says() -> None:
    """Each rule alone changes a text as described."""
    text = "Um, It\u2019s [noise] ½ Zoë's well-known 1,000.5!"
    assert {name: normalized(text, [name]) for name in RULES} == {
        "unicode": "Um, It's [noise] 1\u20442 Zoë's well-known 1,000.5!",
        "annotations": "Um, It\u2019s ½ Zoë's well-known 1,000.5!",
        "fillers": "It\u2019s [noise] ½ Zoë's well-known 1,000.5!",
        "case": "um, it\u2019s [noise] ½ zoë's well-known 1,000.5!",
        "accents": "Um, It\u2019s [noise] ½ Zoe's well-known 1,000.5!",
        "punctuation": "Um It s noise ½ Zoë's well known 1,000.5",
    }
    assert normalized(text, []) == text
    assert normalized("A b", lambda text: text.replace("A", "x y")) == "x y b"


def test_rules_that_span_words_see_the_whole_text() -> None:
    """An annotation of several words is removed from a text given as str."""
    rows = align("so [a door opens] hello", "so hello", normalize=["annotations"])
    assert rows["edit"].to_list() == ["match", "match"]


def test_recordings_are_paired_by_a_column() -> None:
    """With `on`, each recording is aligned with itself, and recordings on one side only are named in a warning."""
    both = pd.DataFrame({"transcript_id": ["1", "2", "3"], "take": ["x", "y", "z"], "text": ["one", "two", "three"]})
    with pytest.warns(UserWarning, match="left out 1 recording on one side only: z"):
        rows = align(both, both.iloc[[1, 0]].assign(transcript_id=["8", "9"]), on="take")
    assert rows[["recording", "edit", "ref_token"]].values.tolist() == [["x", "match", "one"], ["y", "match", "two"]]
    with pytest.raises(OptionError, match="pass on="):
        align(both, "one two")
    with pytest.raises(OptionError, match="no value of 'take'"):
        align(both, both.assign(take="other"), on="take")
    with pytest.raises(OptionError, match="a text belongs to one recording"):
        align("one", both, on="take")


def test_invalid_arguments_name_what_is_allowed() -> None:
    """Unknown rules and groups are errors that list the known ones."""
    with pytest.raises(OptionError, match="the rules of normalize= are given as a name or a list of names, got None"):
        align("a", "a", normalize=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="normalized needs a text, not int"):
        normalized(5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="the column 'start_ms' must have numbers, got '0:01'"):
        align("a", pd.DataFrame({"text": ["a"], "start_ms": ["0:01"]}))
    with pytest.raises(OptionError, match="unknown rule 'lower'; the rules are unicode"):
        align("a", "a", normalize=["lower"])
    with pytest.raises(
        OptionError, match="cannot group by 'customer'; choose from speaker, confidence_band, minute, 5min"
    ):
        error_rates(align("a", "a"), "customer")
    with pytest.raises(TypeError, match="not list"):
        align(["a"], "a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "measure",
    [
        partial(error_rates, resample="recording"),
        lambda rows, by: compare_engines(rows, rows, by),
        lambda rows, by: compare_engines(rows, rows, by, rate="cer"),
        time_differences,
    ],
)
def test_a_group_cannot_have_the_name_of_a_measured_column(measure):
    """A column with the name of a column of the result, which it would overwrite, is refused as a group."""
    rows = align(_WORDS, _WORDS).assign(site="x")
    own = set(measure(rows, by="site").columns) - {"site"}
    assert len(own) >= 8
    for name in own:
        with pytest.raises(OptionError, match=f"the measure has a column '{name}' of its own; rename yours"):
            measure(rows if name in rows else rows.assign(**{name: "x"}), by=name)


def test_labels_of_several_recordings_are_different_speakers() -> None:
    """`by="speaker"` has a row for each recording and label; with one recording it has no column `recording`."""
    both = pd.concat([_WORDS.assign(call=name) for name in ("one", "two")])
    heard = both.assign(text=both["text"].where(both["call"] == "one", "wrong"))
    found = error_rates(align(both, heard, on="call"), by="speaker")
    rates = found.set_index(["recording", "speaker"])["wer"].to_dict()
    assert rates == {("one", "A"): 0, ("one", "B"): 0, ("two", "A"): 1, ("two", "B"): 1}
    assert "recording" not in error_rates(align(_WORDS, _WORDS), by="speaker").columns


def test_a_difference_at_the_limit_is_within_it() -> None:
    """A word that is late by 50 ms is within 50 ms."""
    words = pd.DataFrame({"text": ["yes"], "start_ms": [0], "end_ms": [100], "confidence": [0.9], "speaker": ["A"]})
    found = time_differences(align(words, words.assign(start_ms=50, end_ms=151)))
    assert found["within_50_ms"].to_list() == [1.0, 0.0]


def test_time_bins_of_error_rates() -> None:
    """A bin of a stated length counts the edits of its words; a leading insertion counts where it was heard."""
    heard = pd.concat([_WORDS.assign(text="um", start_ms=31_000)[:1], _WORDS[1:]], ignore_index=True)
    rates = error_rates(align(_WORDS[1:], heard), by="30s").set_index("30s")
    assert rates["insertions"].to_dict() == {0: 0, 1: 1, 2: 0}
    assert rates["words"].to_dict() == {0: 1, 1: 0, 2: 3}


def test_fractions_of_a_millisecond_are_rounded() -> None:
    """Times that a table has as float, such as seconds times 1000, are whole milliseconds in the alignment."""
    rows = align(_WORDS.assign(start_ms=[0.4, 399.6, 61_000.0, None]), _WORDS)
    assert rows["ref_start_ms"].to_list()[:3] == [0, 400, 61_000]
    assert rows["ref_start_ms"].isna().sum() == 1


def test_rows_without_a_recording_are_named() -> None:
    """Rows of no recording are left out with a warning."""
    truth = _WORDS.assign(call=["x", "x", "x", None])
    with pytest.warns(UserWarning, match="left out 1 row without a value of 'call'"):
        assert error_rates(align(truth, _WORDS.assign(call="x"), on="call"))["words"].to_list() == [4]


def test_numbers_of_recordings_are_equal_with_and_without_missing_ones() -> None:
    """A column of numbers is float if one of them is missing, and still names the same recordings."""
    truth = pd.DataFrame({"take": [1, 2], "text": ["a", "b"]})
    heard = pd.DataFrame({"take": [1, None, 2], "text": ["a", "x", "b"]})
    with pytest.warns(UserWarning, match="left out 1 row"):
        aligned = align(truth, heard, on="take")
    assert aligned[["recording", "edit"]].values.tolist() == [["1", "match"], ["2", "match"]]
