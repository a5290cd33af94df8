"""The best known time of words and turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

import voxframe


def _tables(words: list[list[Any]], turns: list[tuple[int | None, int | None]]) -> dict[str, Any]:
    """Return the tables of turns, each with words given as text, start and end."""
    lists = [[dict(zip(("text", "start", "end"), word, strict=True)) for word in turn] for turn in words]
    limits = [{"start": start, "end": end} for start, end in turns]
    utterances = [{**limit, "words": of} for limit, of in zip(limits, lists, strict=True)]
    return voxframe.tables({"id": "a", "status": "completed", "utterances": utterances})


def _rows(df: Any) -> list[list[Any]]:
    found = df[["start_ms", "end_ms", "timing"]].astype(object)
    return found.where(found.notna(), None).values.tolist()


def test_words_without_times_share_their_turn() -> None:
    """A turn of 900 ms gives 300 ms to a word of two characters and 600 ms to one of four."""
    tables = _tables([[("ab", None, None), ("abcd", None, None)]], [(100, 1000)])
    assert _rows(tables["words"]) == [[100, 400, "segment"], [400, 1000, "segment"]]
    assert _rows(tables["utterances"]) == [[100, 1000, "segment"]]


def test_a_word_between_timed_words_has_the_time_between_them() -> None:
    """Measured times stay; the word between them is marked."""
    words = [("with", 0, 200), ("2266", None, None), ("okay", 700, 900)]
    assert _rows(_tables([words], [(0, 1000)])["words"]) == [
        [0, 200, "word"],
        [200, 700, "segment"],
        [700, 900, "word"],
    ]


def test_a_boundary_that_was_not_measured_is_shared() -> None:
    """Two turns of 3 and 1 characters share the 400 ms around them, and both are marked."""
    tables = _tables([[("abc", None, None)], [("d", None, None)]], [(0, None), (None, 400)])
    assert _rows(tables["words"]) == [[0, 300, "segment"], [300, 400, "segment"]]
    assert _rows(tables["utterances"]) == [[0, 300, "shared"], [300, 400, "shared"]]


def test_a_turn_without_times_has_those_of_its_words() -> None:
    """The limits of the turn are those of its first and last word, and say so."""
    tables = _tables([[("a", 10, 20), ("b", 30, 40)]], [(None, None)])
    assert _rows(tables["utterances"]) == [[10, 40, "word"]]


@pytest.mark.parametrize("limits", [(None, None), (5, None)])
def test_nothing_is_known_without_a_time_on_both_sides(limits: tuple[int | None, int | None]) -> None:
    """A time that no known time precedes or follows stays null."""
    start, _ = limits
    (row,) = _rows(_tables([[("a", None, None)]], [limits])["words"])
    assert row == [start, None, "segment" if start is not None else None]


def test_huge_times_and_times_that_jump_back_are_kept() -> None:
    """Known times are exact beyond the precision of floats, and a share of a negative time is no time at all."""
    words = [("a", 2**53 + 1, None), ("b", None, None), ("c", 7, 8)]
    payload = {"id": "a", "words": [dict(zip(("text", "start", "end"), word, strict=True)) for word in words]}
    found = voxframe.load_words(json.loads(json.dumps(payload)))
    assert found["start_ms"].to_list() == [2**53 + 1, 2**53, 7]
    assert found["end_ms"].to_list() == [2**53, 2**53, 8]


def test_corrected_words_say_how_their_times_are_known(tmp_path: Any) -> None:
    """An unchanged word keeps its mark, a moved one is measured, and new text shares the time of the old."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    words = [{"text": text, "start": n, "end": n + 50} for n, text in ((0, "one"), (100, "two"), (200, "six"))]
    corpus.add(
        {"id": "a", "words": words, "utterances": [{"start": 0, "end": 250, "words": words, "text": "one two six"}]}
    )
    corpus.corrections.set_time("a", 0, 5, 40)
    corpus.corrections.set("a", {0: "one two seven days"})
    found = corpus.words()
    assert dict(zip(found["text"], found["timing"], strict=True)) == {
        "one": "word",
        "two": "word",
        "seven": "segment",
        "days": "segment",
    }
