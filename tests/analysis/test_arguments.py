"""Arguments that are not allowed are named, with their value and what is allowed."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pandas as pd
import pytest

from voxframe import analysis
from voxframe.errors import OptionError

WORDS = pd.DataFrame(
    {
        "transcript_id": "t",
        "word_idx": range(4),
        "speaker": list("AABA"),
        "text": ["Is", "it?", "Um,", "yes."],
        "start_ms": [0, 500, 1000, 2000],
        "end_ms": [400, 900, 1500, 2900],
        "confidence": 0.9,
    }
)
SENTIMENTS = WORDS.assign(sentiment="POSITIVE")
COUNTS = analysis.ngrams(WORDS, by="speaker")
TABLE = analysis.delivery(WORDS)
MS = "must be a number of at least 0 ms"
SECONDS = r"must be a number from 0\.001 to 1e\+09 seconds"
COUNT = "must be a whole number of at least 0"
CALLS: dict[str, tuple[Any, str]] = {
    "pause_ms": (lambda value: analysis.turns(WORDS, pause_ms=value), MS),
    "min_ms": (lambda value: analysis.pauses(WORDS, min_ms=value), MS),
    "min_pause_ms": (lambda value: analysis.delivery(WORDS, min_pause_ms=value), MS),
    "max_pause_ms": (lambda value: analysis.turn_taking(WORDS, max_pause_ms=value), MS),
    "max_pause_ms of activity": (lambda value: analysis.speech_activity(WORDS, max_pause_ms=value), MS),
    "interruption_ms": (lambda value: analysis.turn_statistics(WORDS, interruption_ms=value), MS),
    "low": (lambda value: analysis.delivery(WORDS, low=value), "must be a number from 0 to 1"),
    "window_s": (lambda value: analysis.pace(WORDS, window_s=value), SECONDS),
    "window_s of sentiment": (lambda value: analysis.sentiment_over_time(SENTIMENTS, window_s=value), SECONDS),
    "step_s": (lambda value: analysis.pace(WORDS, step_s=value), SECONDS),
    "window_s of pieces": (lambda value: analysis.split_spans(WORDS, window_s=value), SECONDS),
    "parts": (lambda value: analysis.split_spans(WORDS, parts=value), "must be a whole number of at least 1"),
    "n": (lambda value: analysis.ngrams(WORDS, value), "must be a whole number of at least 1"),
    "min_count": (lambda value: analysis.keyness(COUNTS, "speaker", min_count=value), COUNT),
    "min_count of pairs": (lambda value: analysis.collocations(analysis.ngrams(WORDS, 2), min_count=value), COUNT),
    "prior_words": (lambda value: analysis.distinctive_words(COUNTS, "speaker", prior_words=value), "must be a number"),
    "per": (lambda value: analysis.rates(TABLE, "fillers", "words", per=value), "must be a number of at least 0"),
    "level": (lambda value: analysis.rates(TABLE, "fillers", "words", level=value), "must be a number from 0 to 1"),
    "resamples": (lambda value: analysis.compare_groups(TABLE, "words", "speaker", resamples=value), "whole number"),
    "seed": (lambda value: analysis.compare_groups(TABLE, "words", "speaker", seed=value), COUNT),
}


@pytest.mark.parametrize("value", ["x", True, [1], -1, float("nan")])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_are_not_allowed_are_named(name: str, value: Any) -> None:
    """Text, flags, lists, negative numbers and NaN are errors that name the argument and what is allowed."""
    call, allowed = CALLS[name]
    with pytest.raises(OptionError, match=rf"^{name.split(maxsplit=1)[0]} .*{allowed}"):
        call(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: analysis.find_words(WORDS, 5), "words to find are given as a text or a list of texts, got 5"),
        (lambda: analysis.delivery(WORDS, fillers=None), "words to find are given as a text or a list of texts"),
        (lambda: analysis.turn_taking(WORDS, backchannels="yeah"), "backchannels must be a list of words, got 'yeah'"),
        (lambda: analysis.turns(WORDS, keep=5), "columns to keep are given as a name or a list of names, got 5"),
        (lambda: analysis.annotate(WORDS, WORDS, columns=5), "columns to add are given as a name or a list of names"),
        (lambda: analysis.annotate(WORDS, WORDS, on=None), "the columns of on= are given as a name or a list of"),
        (lambda: analysis.annotate(WORDS, WORDS, prefix=None), "prefix must be a text, got None"),
        (lambda: analysis.compare_groups(TABLE, "words", None), "group must be one column or one Series, got None"),
        (lambda: analysis.compare_groups(TABLE, "speaker", "speaker"), "the column 'speaker' must have numbers"),
        (lambda: analysis.rates(TABLE, "speaker", "words"), "the column 'speaker' must have numbers, got 'A'"),
        (lambda: analysis.keyness(COUNTS, "ngram"), "group must be the column with the groups, not 'ngram'"),
        (lambda: analysis.turns(WORDS.assign(start_ms="0:01")), "the column 'start_ms' must have numbers, got '0:01'"),
        (lambda: analysis.turn_matrix(WORDS, by=["transcript_id", "speaker"]), "by= cannot contain 'speaker'"),
    ],
)
def test_other_arguments_that_are_not_allowed_are_named(call: Any, said: str) -> None:
    """Lists that are none, columns without numbers and groups that cannot be are errors that say so."""
    with pytest.raises(OptionError, match=said):
        call()


def test_every_function_says_that_it_needs_a_dataframe() -> None:
    """A list in place of a DataFrame is a TypeError that says what is needed, in every function."""
    for name in analysis.__all__:
        function = getattr(analysis, name)
        if not inspect.isfunction(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        with pytest.raises(TypeError, match="needs a DataFrame"):
            function(*[[1]] * len(needed))


def test_a_time_of_years_is_refused_before_its_windows_are_made() -> None:
    """A wrong time, such as microseconds as milliseconds, gives an error that says so, not billions of windows."""
    with pytest.raises(OptionError, match="check the times of the rows"):
        analysis.pace(WORDS.assign(end_ms=10**15))


@pytest.mark.parametrize(
    "measure",
    [
        analysis.talk_time, analysis.speech_activity, analysis.pace, analysis.sentiment_over_time, analysis.delivery,
        analysis.ngrams, analysis.turn_taking, analysis.turn_statistics, analysis.turn_matrix, analysis.balance,
        partial(analysis.label_shares, WORDS.assign(label="x")),
        partial(analysis.rates, numerator="start_ms", denominator="end_ms"),
    ],
)  # fmt: skip
def test_a_group_cannot_have_the_name_of_a_measured_column(measure: Any) -> None:
    """Every measure refuses a metadata column with the name of a column of its result, which it would overwrite."""
    rows = WORDS.assign(sentiment="POSITIVE", site="x")
    own = set(measure(rows, by=["transcript_id", "site"]).columns) - {"transcript_id", "speaker", "site"}
    assert len(own) >= 3
    for name in own:
        with pytest.raises(OptionError, match=f"the measure has a column '{name}' of its own; rename yours"):
            measure(rows if name in rows else rows.assign(**{name: "x"}), by=["transcript_id", name])
        with pytest.raises(OptionError, match=f"the measure has a column '{name}' of its own; rename yours"):
            measure(rows, by=["transcript_id", pd.Series("x", rows.index, name=name)])


def test_one_column_needs_no_list() -> None:
    """The name of one column is not read letter by letter."""
    rows = WORDS.assign(customer="Acme")
    assert analysis.turns(rows, keep="customer")["customer"].unique().tolist() == ["Acme"]
    kinds = pd.DataFrame({"transcript_id": ["t"], "kind": ["opening"], "start_ms": [0], "end_ms": [950]})
    assert analysis.annotate(WORDS, kinds, columns="kind")["kind"].fillna("").tolist() == ["opening"] * 2 + [""] * 2


@pytest.mark.parametrize("name", ["group", "code", "who", None])
def test_groups_may_have_any_name(name: str | None) -> None:
    """Columns named as those that the functions use inside, and Series without a name, are groups like others."""
    values = pd.Series(["x"] * 4, name=name)
    by = [values] if name is None else [name]
    rows = (
        WORDS.assign(role=["a", "a", "b", "a"]) if name is None else WORDS.assign(**{name: values}, role=list("aaba"))
    )
    assert analysis.turn_taking(rows, by)[name or "group"].tolist() == ["x"] * 3
    assert analysis.turn_matrix(rows, by, of="role")["transfers"].tolist() == [1, 1]
    assert analysis.turn_matrix(rows.assign(recording="x"), "recording")["transfers"].tolist() == [1, 1]
