"""Citations: the moments of recordings that answers rest on."""

import json
from pathlib import Path

import pytest

import voxframe
from voxframe.corpus.llm import NumberedPassage, cite
from voxframe_engine.answers import from_text

TALKS = {
    "a": "Ann says: The fee doubled in May. Nobody was told about it. We left the club.",
    "b": "The garden has a new gate. It squeaks all night.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """Two short transcripts, one word per second."""
    corpus = voxframe.Corpus(tmp_path)
    for transcript_id, text in TALKS.items():
        words = [
            {"text": w, "start": 1000 * n, "end": 1000 * n + 900, "speaker": "A"} for n, w in enumerate(text.split())
        ]
        corpus.raw.put(transcript_id, json.dumps({"id": transcript_id, "status": "completed", "words": words}).encode())
    corpus.speakers.set("a", {"A": "Ann"})
    return corpus


@pytest.fixture
def passages(corpus: voxframe.Corpus) -> list[NumberedPassage]:
    """The passages that are closest to a question."""
    found = corpus._search.meaning.passages(["Why did members leave?"], corpus.ids(), 2)
    return [NumberedPassage(n, table) for n, table in enumerate(found, 1)]


def test_passages_are_the_closest_sentences_with_those_beside_them(passages: list[NumberedPassage]) -> None:
    """A passage is written with its number, place and speaker; the extractive answerer reads only its sentences."""
    assert passages[0].written() == (
        "[1: a, 0:00]\nAnn: Ann says: The fee doubled in May. Nobody was told about it. We left the club."
    )
    lines = from_text(passages[0].written()).lines
    assert [line.text for line in lines][1:] == ["Nobody was told about it.", "We left the club."]
    assert {line.speaker for line in lines} == {"Ann"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Because of the fee [1].", [("a", 0, 15900)]),
        ("She says that nobody was told about it.", [("a", 7000, 11900)]),
        ("They quit the club.", [("a", 12000, 15900)]),
        ("The moon is made of cheese.", []),
    ],
)
def test_citations_are_numbers_then_quotations_then_meaning(corpus, passages, answer, expected) -> None:
    """An answer cites the passages it numbers, else what it quotes, else what is close to it, else nothing."""
    found = cite([answer], passages[:1], corpus.search, corpus.ids())
    assert [*found[["transcript_id", "start_ms", "end_ms"]].itertuples(index=False, name=None)] == expected
    assert found.dtypes.astype(str)[["question_idx", "start_ms"]].to_list() == ["int64", "Int64"]


def test_a_citation_has_its_place_in_the_answer(corpus, passages) -> None:
    """The place of a numbered passage is the mark in brackets, the first if named twice, and else the sentence."""
    answer = "The fee doubled [1: a, 0:00]. Members left [1; 7]."
    numbered = cite([answer], passages[:1], corpus.search, corpus.ids())
    assert [answer[row.begin : row.end] for row in numbered.itertuples()] == ["[1: a, 0:00]"]
    for said in ("She says that nobody was told about it.", "They quit the club."):
        answer = f"Well. {said}"
        found = cite([answer], passages[:1], corpus.search, corpus.ids())
        assert [answer[row.begin : row.end].strip() for row in found.itertuples()] == [said]


def test_several_passages_in_one_mark(corpus, passages) -> None:
    """A mark can name several passages, also as a range; numbers of no passage are ignored."""
    sent = [NumberedPassage(n, passages[0].sentences.slice(n - 1, 1)) for n in (1, 2, 3)]
    for mark, count in (
        ("[1, 3]", 2),
        ("[1-3]", 3),
        ("[2 \u2013 9]", 2),
        ("[1 and 2; 7]", 2),
        ("[3-1]", 0),
        ("[2]", 1),
    ):
        assert len(cite([f"They left {mark}."], sent, corpus.search, corpus.ids())) == count, mark
