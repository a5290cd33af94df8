import json

import pandas as pd
import pytest

import voxframe
from voxframe import analysis
from voxframe.errors import OptionError


def payload(name: str, text: str, channels: str = "") -> dict:
    said = [
        {
            "text": word,
            "start": 100 * n,
            "end": 100 * n + 90,
            "channel": channels[n % len(channels)] if channels else None,
        }
        for n, word in enumerate(text.split())
    ]
    return {"id": name, "status": "completed", "words": said}


PAYLOADS = [
    payload("a", "The café, the CAFE. It's three thousand: 3,000 … dogs' dogged dog"),
    payload("b", "green blue green blue light light", "12"),
    payload("c", "the"),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cafe", [("a", 1), ("a", 3)]),
        ("the café", [("a", 0), ("a", 2)]),
        ("3000 dogs", [("a", 7)]),
        ("dog*", [("a", 9), ("a", 10), ("a", 11)]),
        ("green green", [("b", 0)]),
        ("green blue", []),
        ("light", [("b", 4), ("b", 5)]),
        ("the the", []),
        ("its * thousand", [("a", 4)]),
    ],
)
def test_find_words_equals_a_search_of_a_corpus(query, expected, tmp_path):
    """`find_words` and `Corpus.search` find the same words, phrases within one channel, and wildcards."""
    words = voxframe.load_words(PAYLOADS)
    found = analysis.find_words(words, query)
    assert sorted(zip(found["transcript_id"], found["word_idx"], strict=True)) == expected
    corpus = voxframe.Corpus(tmp_path)
    for item in PAYLOADS:
        corpus.raw.put(item["id"], json.dumps(item).encode())
    columns = ["term", "transcript_id", "word_idx", "start_ms", "end_ms"]
    searched = corpus.search(query)[columns].astype(object).values.tolist()
    assert found.sort_values(["transcript_id", "word_idx"])[columns].astype(object).values.tolist() == searched


def test_nothing_found_has_all_columns():
    """Without words, or without matches, the result has the same columns and dtypes."""
    words = voxframe.load_words(PAYLOADS)
    found, none = analysis.find_words(words, "the"), analysis.find_words(words, ["zebra"])
    pd.testing.assert_series_equal(none.dtypes, found.dtypes)
    assert none.empty
    assert list(analysis.find_words(words.iloc[:0], "the").columns) == list(found.columns)
    assert found["match_idx"].tolist() == [0, 1, 0]


def test_phrases_end_with_their_transcript_and_points_are_literal():
    """A phrase is not found across two transcripts, and the point in 3.5 stands for no other character."""
    texts = {"a": ["one", "3.5"], "b": ["two", "345"]}
    words = voxframe.load_words(
        [{"id": name, "words": [{"text": text, "start": 0, "end": 1} for text in of]} for name, of in texts.items()]
    )
    assert analysis.find_words(words, "3.5 two").empty
    assert analysis.find_words(words, "3.5")["transcript_id"].tolist() == ["a"]


def test_a_query_of_wildcards_is_refused():
    """A query needs at least one word that is not only `*`."""
    with pytest.raises(OptionError, match="no word to search for"):
        analysis.find_words(voxframe.load_words(PAYLOADS), "* *")


def test_occurrences_in_turns_have_the_times_of_their_turn():
    """Turns are searched word by word, and every occurrence has the start and the end of its turn."""
    turns = pd.DataFrame({"text": ["A tree. A tree?", "No."], "start_ms": [0, 900], "end_ms": [800, 1000]})
    found = voxframe.analysis.find_words(turns, "a tree")
    assert found[["start_ms", "end_ms"]].values.tolist() == [[0, 800], [0, 800]]


def test_occurrences_keep_the_dtypes_of_their_words():
    """Ends have the dtype of the words, whether all are known or some are missing."""
    words = voxframe.load_words(payload("a", "a tree a house"))
    words.loc[3, "end_ms"] = pd.NA
    for query in ("tree", "house"):
        found = analysis.find_words(words, query)
        assert found[["start_ms", "end_ms"]].dtypes.astype(str).tolist() == ["Int64", "Int64"]
