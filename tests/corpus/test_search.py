"""Search over a corpus, as users call it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest

import voxframe
from voxframe.errors import CorpusWarning, OptionError
from voxframe.schema import CORPUS_TABLES
from voxframe_server.http.app import search_terms, search_words

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


def say(corpus: voxframe.Corpus, transcript_id: str, text: str, **fields: object) -> None:
    """Store a transcript of these words, one word per second."""
    words = [
        {"text": word, "start": 1000 * n, "end": 1000 * n + 900, **fields} for n, word in enumerate(text.split("/"))
    ]
    corpus.raw.put(transcript_id, json.dumps({"id": transcript_id, "status": "completed", "words": words}).encode())


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """The recordings in data/, as transcribed by the embedded server."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("recordings"))
    for name in ("call", "interview", "panel"):
        corpus.raw.put(name, (PAYLOADS / f"{name}.json").read_bytes())
    return corpus


def test_the_same_matches_as_the_service(recordings: voxframe.Corpus) -> None:
    """Every word and every phrase of two to five words of each recording is found like in the service's word search."""
    for name in recordings.ids():
        words = json.loads(recordings.raw.get(name))["words"]
        texts = [word["text"] for word in words]
        runs = {" ".join(texts[n : n + size]) for size in range(1, 6) for n in range(0, len(texts), size)}
        terms = [term for term in search_terms(run.replace(",", "") for run in sorted(runs)) if "*" not in term]
        matches = search_words(words, terms)
        expected = {
            (match["text"], index, start, end)
            for match in matches
            for index, (start, end) in zip(match["indexes"], match["timestamps"], strict=True)
        }
        found = recordings.search(terms, context=0, ids=name)
        rows = found[["term", "word_idx", "start_ms", "end_ms"]].itertuples(index=False, name=None)
        assert len(terms) > 100
        assert set(rows) == expected
        assert len(found) == len(expected)


def test_the_same_matches_as_an_example_of_the_interface(tmp_path: Path, payload_folder: Path) -> None:
    """The API's example response has the same matches as a search over its transcript."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t", (payload_folder / "transcripts" / "completed.json").read_bytes())
    answer = voxframe.load_word_matches((payload_folder / "transcript_word-search.json").read_bytes())
    found = corpus.search(list(answer["term"].unique()))
    columns = ["term", "word_idx", "start_ms", "end_ms"]
    pd.testing.assert_frame_equal(found[columns].astype(answer[columns].dtypes), answer[columns])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("dont", ["Don't", "dont", "DON\u2019T!"]),
        ("don't", ["Don't", "dont", "DON\u2019T!"]),
        ("bostons", ["Boston's"]),
        ("Boston's", ["Boston's"]),
        ("boston", ["boston"]),
        ("boston*", ["Boston's", "boston"]),
        ("cafe", ["caf\u00e9", "Cafe,"]),
        ("CAF\u00c9", ["caf\u00e9", "Cafe,"]),
        ("3000", ["3,000"]),
        ("3.5", ["3.5."]),
        ("35", []),
        ("econom*", ["Economy.", "economic"]),
        ("*ics", ["politics"]),
        ("p*t*s", ["politics"]),
        ("cafe dont", ["Cafe, dont"]),
        ("york 3,000", ["New York 3,000"]),
        ("economy * politics", ["Economy. economic politics"]),
    ],
)
def test_spellings(tmp_path_factory: pytest.TempPathFactory, query: str, found: list[str]) -> None:
    """Case, accents, apostrophes and other punctuation are ignored; a star stands for letters or a word."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("spellings"))
    said = "Don't/caf\u00e9/Cafe,/dont/DON\u2019T!/Boston's/boston/New York/3,000/3.5./Economy./economic/politics"
    say(corpus, "t", said)
    assert corpus.search(query)["match"].to_list() == found


def test_no_match_runs_over_the_end_of_a_transcript(tmp_path: Path) -> None:
    """The last words of one transcript and the first of the next are not a phrase."""
    corpus = voxframe.Corpus(tmp_path)
    say(corpus, "a", "climate")
    say(corpus, "b", "change")
    assert corpus.search("climate change").empty
    assert corpus.search("change climate", slop=5).empty
    row = corpus.search("change").iloc[0]
    assert (row["left"], row["right"]) == ("", "")


def test_slop_finds_words_in_any_order(tmp_path: Path) -> None:
    """With slop=, the shortest spans that contain all words of the query are found."""
    corpus = voxframe.Corpus(tmp_path)
    say(corpus, "t", "change/the/climate/of/a/great/change/change")
    found = corpus.search("climate change", slop=5)
    assert found["match"].to_list() == ["change the climate", "climate of a great change"]
    assert corpus.search("climate change", slop=3)["match"].to_list() == ["change the climate"]
    assert corpus.search("change change", slop=2)["word_idx"].to_list() == [6]


def test_columns_and_dtypes_also_without_rows(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """The table has the columns of the data dictionary with many rows, none, and in a corpus that does not exist."""
    some, none = recordings.search("the"), recordings.search("zebra")
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        nowhere = voxframe.Corpus(tmp_path / "nothing").search("the")
    assert len(some) > 20
    for df in (some, none, nowhere):
        assert df.dtypes.astype(str).to_dict() == {c.name: c.dtype for c in CORPUS_TABLES["concordance"].columns}
    assert not (tmp_path / "nothing").exists()


def test_filters_and_limit(recordings: voxframe.Corpus) -> None:
    """Speakers, ids, an expression over the columns and a limit select rows and keep their order."""
    whole = recordings.search(["the", "a"])
    assert whole["term"].to_list() == sorted(whole["term"], reverse=True)
    one = recordings.search(["the", "a"], speaker="B", ids=["interview", "panel"])
    expected = whole[(whole["speaker"] == "B") & (whole["transcript_id"] != "call")].reset_index(drop=True)
    pd.testing.assert_frame_equal(one, expected)
    early = recordings.search(["the", "a"], where=(pc.field("start_ms") < 20_000) & pc.field("channel").is_null())
    assert early.equals(whole[(whole["start_ms"] < 20_000) & whole["channel"].isna()].reset_index(drop=True))
    assert recordings.search("the", where=[("start_ms", "<", 20_000)]).equals(
        whole[(whole["start_ms"] < 20_000) & (whole["term"] == "the")].reset_index(drop=True)
    )
    for limit in (0, 3, 30, 10_000):
        assert recordings.search(["the", "a"], limit=limit).equals(whole.head(limit))
        assert recordings.search(["the", "a"], speaker=["A", "B"], limit=limit).equals(
            whole[whole["speaker"].isin(["A", "B"])].head(limit).reset_index(drop=True)
        )


def test_rows_join_to_the_words(recordings: voxframe.Corpus) -> None:
    """The positions of a match are those of the words table."""
    words = recordings.table("words").set_index(["transcript_id", "word_idx"])
    for row in recordings.search(["in the", "of"]).to_dict("records"):
        last = words.loc[(row["transcript_id"], row["last_word_idx"])]
        first = words.loc[(row["transcript_id"], row["word_idx"])]
        assert (first["start_ms"], last["end_ms"]) == (row["start_ms"], row["end_ms"])
        assert row["match"].split()[0] == first["text"]
        assert pd.isna(row["utterance_idx"]) == pd.isna(first["utterance_idx"])
        assert pd.isna(row["utterance_idx"]) or row["utterance_idx"] == first["utterance_idx"]


def test_counts_equal_the_rows_of_a_search(recordings: voxframe.Corpus) -> None:
    """Counts equal the number of rows for every group, including groups without matches."""
    rows = recordings.search(["the", "trees"])
    words = recordings.table("words")
    counted = recordings.counts(["the", "trees"])
    assert len(counted) == 6
    for row in counted.to_dict("records"):
        of_group = (rows["term"] == row["term"]) & (rows["transcript_id"] == row["transcript_id"])
        said = len(" ".join(words["text"][words["transcript_id"] == row["transcript_id"]]).replace("-", " ").split())
        assert (row["occurrences"], row["words"]) == (of_group.sum(), said)
        assert row["per_1000"] == pytest.approx(1000 * of_group.sum() / said)
    by_speaker = recordings.counts("the", by=["speaker", "transcript_id"]).set_index(["speaker", "transcript_id"])
    assert (
        by_speaker["occurrences"].to_dict()
        == rows[rows["term"] == "the"].groupby(["speaker", "transcript_id"]).size().to_dict()
    )
    about = pd.DataFrame({"transcript_id": ["call", "interview"], "customer": ["Ann", "Bo"]})
    by_customer = recordings.counts("the", by="customer", about=about)
    assert by_customer["customer"].fillna("nobody").to_list() == ["Ann", "Bo", "nobody"]
    assert by_customer["occurrences"].sum() == (rows["term"] == "the").sum()
    total = recordings.counts(["the", "trees"], by=(), speaker="B")
    assert total["occurrences"].to_list() == [
        ((rows["term"] == q) & (rows["speaker"] == "B")).sum() for q in ("the", "trees")
    ]


def test_counts_of_an_empty_corpus(tmp_path: Path) -> None:
    """A corpus without transcripts gives all columns, and a total of 0."""
    corpus = voxframe.Corpus(tmp_path / "nothing")
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        none = corpus.counts("the", by=["transcript_id", "speaker"])
    assert none.columns.to_list() == [
        "term",
        "transcript_id",
        "recording",
        "speaker",
        "occurrences",
        "words",
        "per_1000",
    ]
    assert none.empty
    assert none.dtypes.astype(str).to_list() == ["str", "str", "str", "str", "int64", "int64", "float64"]
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert corpus.counts("the", by=())["occurrences"].to_list() == [0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "?!"}, "the query '?!' has no word to search for"),
        ({"query": "*"}, "no word to search for"),
        ({"query": []}, "no term to search for"),
        ({"query": [3]}, "a search query must be a text, such as 'climate change', not 3"),
        ({"query": "a b", "slop": 1}, "slop must be a whole number of at least 2, got 1"),
        ({"query": "a", "context": -1}, "context must be a whole number of at least 0"),
        ({"query": "a", "limit": 1.5}, "limit must be a whole number"),
        ({"query": "a", "context": 10**30}, "context must be at most 9007199254740992, got 1000"),
        ({"query": [["a"]]}, r"a search query must be a text, such as 'climate change', not \['a'\]"),
        ({"query": "a", "where": pc.field("nope") == 1}, "where must be an expression over transcript_id"),
        ({"query": "a", "where": pc.field("left") == "the"}, "where must be an expression over transcript_id"),
    ],
)
def test_invalid_searches_are_refused(recordings: voxframe.Corpus, arguments: dict, said: str) -> None:
    """The message names the value and what is allowed."""
    with pytest.raises(OptionError, match=said.replace("?", r"\?").replace("*", r"\*")):
        recordings.search(**arguments)


def test_numbers_may_be_of_numpy_or_pandas(recordings: voxframe.Corpus) -> None:
    """A whole number that pandas holds as a float counts as an integer."""
    some = recordings.search("the", context=np.float64(2), limit=np.int64(3))
    pd.testing.assert_frame_equal(some, recordings.search("the", context=2, limit=3))
    assert len(recordings.counts("the", limit=np.float64(2))) == 2


def test_a_slop_longer_than_the_transcripts(tmp_path: Path) -> None:
    """Words of which one is rare are found at any distance."""
    corpus = voxframe.Corpus(tmp_path)
    say(corpus, "t", "/".join(["the"] * 50 + ["zebra"]))
    assert corpus.search("the zebra", slop=10**10)["match"].to_list() == ["the zebra"]


def test_invalid_groups_are_refused(recordings: voxframe.Corpus) -> None:
    """Groups are names of columns, each counted once; rows about one transcript must agree, and ids are text."""
    assert recordings.counts("the", by=["channel", "channel"]).equals(recordings.counts("the", by="channel"))
    wrong: Any
    for wrong in (3, [3], [["speaker"]]):
        with pytest.raises(OptionError, match="by must be a column or a list of columns"):
            recordings.counts("the", by=wrong)
    ids, customers = ["call", "panel", "call"], ["Ann", "Bo", "Bo"]
    for about, said in (
        (pd.DataFrame({"transcript_id": ids, "customer": customers}), "different rows for the transcript 'call'"),
        (pd.DataFrame({"transcript_id": [1, 2, 3], "customer": customers}), "transcript_id of about must contain text"),
        (pd.DataFrame([["call", 1, 2]], columns=["transcript_id", "x", "x"]), "the column 'x' more than once"),
    ):
        with pytest.raises(OptionError, match=said):
            recordings.counts("the", by="customer", about=about)
    about = pd.DataFrame({"transcript_id": ids, "customer": ["Ann", "Bo", "Ann"]})
    assert recordings.counts("the", by="customer", about=about)["customer"].dropna().to_list() == ["Ann", "Bo"]


def test_invalid_searches_by_meaning_are_refused(recordings: voxframe.Corpus) -> None:
    """A sentence is text or a row, and the numbers of topics are whole; no model is needed to tell."""
    wrong: Any
    for wrong in (3, None, [["a"]]):
        with pytest.raises(OptionError, match="pass a sentence or a few words to search for"):
            recordings.similar(wrong)
    with pytest.raises(OptionError, match="sentence_idx must be a whole number of at least 0, got nan"):
        recordings.similar(pd.Series({"transcript_id": "call", "sentence_idx": float("nan"), "text": "Hi."}))
    for name, value in {"words": -1, "seed": "x"}.items():
        wrong = {name: value}
        with pytest.raises(OptionError, match=f"{name} must be a whole number of at least"):
            recordings.discover_topics(**wrong)


def test_counts_by_an_unknown_column(recordings: voxframe.Corpus) -> None:
    """The message names the columns to group by."""
    with pytest.raises(
        OptionError,
        match="among transcript_id, speaker, speaker_name, channel, person, recording, source, got 'customer'",
    ):
        recordings.counts("the", by="customer")


def test_a_hit_names_its_utterance(tmp_path: Path) -> None:
    """Utterances of one speaker that follow each other are told apart."""
    corpus = voxframe.Corpus(tmp_path)
    turns = [
        {"text": text, "speaker": "A", "start": start, "end": start + 1900, "confidence": 0.9, "words": words}
        for start, text in ((0, "good morning"), (2000, "good night"))
        for words in [
            [
                {"text": word, "start": start + 1000 * n, "end": start + 1000 * n + 900, "speaker": "A"}
                for n, word in enumerate(text.split())
            ]
        ]
    ]
    words = [word for turn in turns for word in turn["words"]]
    payload = {"id": "t", "status": "completed", "words": words, "utterances": turns}
    corpus.raw.put("t", json.dumps(payload).encode())
    assert corpus.search("good")["utterance_idx"].to_list() == [0, 1]


def test_transcripts_without_words_are_counted(tmp_path: Path) -> None:
    """A corpus in which nobody speaks has no speakers to count, and its transcripts have no words."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("silent", b'{"id": "silent", "status": "completed", "words": []}')
    assert len(corpus.counts("word", by="speaker")) == 0
    assert corpus.counts("word")[["occurrences", "words"]].to_numpy().tolist() == [[0, 0]]


def test_counts_of_the_most_frequent(recordings: voxframe.Corpus) -> None:
    """`limit` returns the rows with the most occurrences, most first, and refuses what is no number of rows."""
    whole = recordings.counts(["the", "a"])
    some = recordings.counts(["the", "a"], limit=2)
    assert some["occurrences"].to_list() == sorted(whole["occurrences"], reverse=True)[:2]
    with pytest.raises(OptionError, match="limit must be a whole number of at least 0, got -1"):
        recordings.counts("the", limit=-1)
