"""Search by meaning over a corpus, as users call it."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import voxframe
from voxframe import encoder
from voxframe.corpus.search import sentence_index
from voxframe.corpus.search.meaning import sentences_of, top
from voxframe.corpus.search.sentence_index import COLUMNS, SentencePart, SentenceView
from voxframe.errors import CorpusError, CorpusWarning, ModelError, OptionError
from voxframe.schema import CORPUS_TABLES
from voxframe_engine.text import sentences_of as sentences_of_server

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"
CALLS = {
    "shop": "Good morning. The new phone is far too expensive. I will not pay that much. Do you have it in blue?",
    "garden": "The tomatoes need a lot of sun. Water them early in the morning. Snails have eaten all the lettuce.",
    "train": "We were stuck at the station for two hours. Nobody told us when the next train leaves.",
}


def say(corpus: voxframe.Corpus, transcript_id: str, text: str, **fields: object) -> None:
    """Store a transcript of these words, one word per second, by speakers A and B in turns of one sentence."""
    words, speaker = [], 0
    for n, word in enumerate(text.split()):
        words.append({"text": word, "start": 1000 * n, "end": 1000 * n + 900, "speaker": "AB"[speaker % 2], **fields})
        speaker += word.endswith((".", "?"))
    corpus.raw.put(transcript_id, json.dumps({"id": transcript_id, "status": "completed", "words": words}).encode())


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """Three short conversations."""
    corpus = voxframe.Corpus(tmp_path)
    for transcript_id, text in CALLS.items():
        say(corpus, transcript_id, text)
    return corpus


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the encoder encodes from now on."""
    texts: list[str] = []
    real = encoder.SentenceEncoder.encode

    def encode(self: encoder.SentenceEncoder, some: list[str]) -> encoder.Vectors:
        texts.extend(some)
        return real(self, some)

    monkeypatch.setattr(encoder.SentenceEncoder, "encode", encode)
    return texts


def test_sentences_that_mean_the_query_are_found(corpus: voxframe.Corpus) -> None:
    """A complaint in other words is first, with its times, its words and the words around it."""
    found = corpus.search("people complain about the price", mode="meaning", context=3)
    assert found["match"][0] == "The new phone is far too expensive."
    first = found.iloc[0]
    assert (first["transcript_id"], first["speaker"], first["start_ms"], first["end_ms"]) == ("shop", "B", 2000, 8900)
    assert (first["word_idx"], first["last_word_idx"], first["sentence_idx"]) == (2, 8, 1)
    assert (first["left"], first["right"]) == ("Good morning.", "I will not")
    assert {name: str(found[name].dtype) for name in found} == {
        c.name: c.dtype for c in CORPUS_TABLES["sentence_matches"].columns
    }
    assert len(corpus.search("people complain about the price", mode="meaning", min_score=-1)) == 9
    assert len(found) == 2
    assert (found["score"] >= 0.2).all()
    several = corpus.search(["insects", "delays of the railway"], mode="meaning", limit=1)
    assert several["transcript_id"].to_list() == ["garden", "train"]


def test_scores_are_the_cosines_of_all_sentences(corpus: voxframe.Corpus) -> None:
    """Order and scores equal a comparison of the query with every sentence, up to half precision."""
    found = corpus.search("a long delay", mode="meaning")
    cosines = encoder.load().encode(found["match"].to_list()) @ encoder.load().encode(["a long delay"])[0]
    assert found["score"].to_numpy() == pytest.approx(cosines, abs=3e-4)
    assert (np.diff(found["score"]) <= 0).all()


def test_the_best_sentences_are_exact() -> None:
    """Scores that float32 cannot tell apart are ordered by their exact values, then by transcript and sentence."""
    chance = np.random.default_rng(1)
    base = chance.standard_normal((40, encoder.SIZE))
    vectors = np.repeat(base, 50, axis=0) + chance.choice([0, 0, 1e-4], (2000, encoder.SIZE))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    rows = {name: [None] * 2000 for name in COLUMNS.names}
    ids = [f"t{n % 7}" for n in range(2000)]
    rows |= {"transcript_id": sorted(ids), "text": ["x"] * 2000, "sentence_idx": [*range(2000)]}
    part = SentencePart(pa.table(rows, schema=COLUMNS), dict.fromkeys(ids, ""), vectors)
    view = SentenceView([(part, set(ids))])
    wanted = (base[3] / np.linalg.norm(base[3])).astype(np.float32)
    chosen = np.arange(0, 2000, 3)
    best, scores = top(view, wanted, view.scores(wanted), chosen, 30)
    exact = [math.fsum(map(math.prod, zip(row.tolist(), wanted.tolist(), strict=True))) for row in part.vectors]
    expected = sorted(chosen.tolist(), key=lambda n: (-exact[n], rows["transcript_id"][n], n))[:30]
    assert best.tolist() == expected
    assert scores.tolist() == pytest.approx([exact[n] for n in expected], abs=1e-15)


def test_filters_are_those_of_word_search(corpus: voxframe.Corpus) -> None:
    """Speakers, names, transcripts, conditions, metadata and the limit select rows before the best are chosen."""
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["shop", "train"], "year": [2023, 2024]}))
    corpus.speakers.set("garden", {"B": "Mia"})
    query = "people complain about the price"
    by_speaker = corpus.search(query, mode="meaning", min_score=-1, speaker="A")
    assert set(by_speaker["speaker"]) == {"A"}
    assert len(by_speaker) == 5
    assert corpus.search(query, mode="meaning", min_score=-1, speaker="Mia")["speaker_name"].to_list() == ["Mia"]
    assert set(corpus.search(query, mode="meaning", min_score=-1, ids=["garden", "train"])["transcript_id"]) == {
        "garden",
        "train",
    }
    of_year = corpus.search(query, mode="meaning", min_score=-1, where=[("year", "==", 2024)], metadata="year")
    assert of_year[["transcript_id", "year"]].drop_duplicates().to_numpy().tolist() == [["train", 2024]]
    late = corpus.search(
        query, mode="meaning", min_score=-1, where=[("start_ms", ">=", 9000), ("score", ">", -1)], limit=2
    )
    assert len(late) == 2
    assert late["start_ms"].min() >= 9000
    assert corpus.search(query, mode="meaning", min_score=-1, limit=0).empty
    with pytest.raises(CorpusError, match="nobody"):
        corpus.search(query, mode="meaning", min_score=-1, ids="nobody")
    with pytest.raises(OptionError, match="slop"):
        corpus.search(query, mode="meaning", min_score=-1, slop=3)
    with pytest.raises(OptionError, match="mode must be"):
        corpus.search(query, mode="sense")
    with pytest.raises(OptionError, match="pass a sentence"):
        corpus.search("  ", mode="meaning", min_score=-1)


def test_sentences_are_encoded_once(corpus: voxframe.Corpus, encoded: list[str]) -> None:
    """A second search, also by another process, encodes its query only; a replaced transcript its new sentences."""
    corpus.search("delay", mode="meaning", min_score=-1)
    assert len(encoded) == 10
    encoded.clear()
    corpus.search("delay", mode="meaning", min_score=-1)
    again = voxframe.Corpus(corpus.path)
    assert len(again.search("delay", mode="meaning", min_score=-1)) == 9
    assert encoded == ["delay", "delay"]
    encoded.clear()
    say(corpus, "train", CALLS["train"] + " It was late.")
    assert "It was late." in again.search("delay", mode="meaning", min_score=-1)["match"].to_list()
    assert sorted(encoded) == ["It was late.", "delay"]


def test_deleted_transcripts_leave_no_sentences(corpus: voxframe.Corpus) -> None:
    """After `forget`, neither a search nor a file has the sentences."""
    corpus.search("delay", mode="meaning", min_score=-1)
    corpus.forget("train")
    left = pd.concat([pd.read_parquet(path) for path in corpus.path.glob("meaning/*.parquet")])
    assert set(left["transcript_id"]) == {"shop", "garden"}
    assert set(corpus.search("delay", mode="meaning", min_score=-1)["transcript_id"]) == {"shop", "garden"}


def test_an_interrupted_run_goes_on(
    corpus: voxframe.Corpus, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences that were written before Ctrl-C are not encoded again."""
    monkeypatch.setattr(sentence_index, "_WRITTEN_AT_ONCE", 1)
    counting = encoder.SentenceEncoder.encode

    def interrupt(self: encoder.SentenceEncoder, some: list[str]) -> encoder.Vectors:
        if any("phone" in text for text in some):
            raise KeyboardInterrupt
        return counting(self, some)

    with monkeypatch.context() as patch:
        patch.setattr(encoder.SentenceEncoder, "encode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            corpus.search("delay", mode="meaning", min_score=-1)
    assert sorted(encoded) == sorted(sentences(CALLS["garden"]))
    encoded.clear()
    assert len(corpus.search("delay", mode="meaning", min_score=-1)) == 9
    assert sorted(encoded) == sorted(["delay", *sentences(CALLS["shop"]), *sentences(CALLS["train"])])


def sentences(text: str) -> list[str]:
    """Return the sentences of a text of this file."""
    return [part if part.endswith("?") else f"{part}." for part in text.rstrip(".").split(". ")]


def test_damaged_files_are_encoded_again(corpus: voxframe.Corpus) -> None:
    """A file whose vectors are damaged is reported, and replaced."""
    expected = corpus.search("delay", mode="meaning")
    (path,) = corpus.path.glob("meaning/*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    again = voxframe.Corpus(corpus.path)
    with pytest.warns(CorpusWarning, match="damaged"):
        pd.testing.assert_frame_equal(again.search("delay", mode="meaning"), expected)
    assert not path.exists()


def test_a_corpus_that_cannot_be_written_is_searched(corpus: voxframe.Corpus) -> None:
    """If the folder of the vectors cannot be made, they stay in memory."""
    (corpus.path / "meaning").write_text("a file is in the way")
    assert len(corpus.search("delay", mode="meaning", min_score=-1)) == 9
    assert len(corpus.search("delay", mode="meaning", min_score=-1)) == 9


def test_many_small_files_become_one(corpus: voxframe.Corpus) -> None:
    """Transcripts that are added one by one end up in few files, and every search finds all of them."""
    for n in range(12):
        say(corpus, f"more{n}", f"Bus number {n} was late.")
        assert len(corpus.search("bus", mode="meaning", min_score=-1, limit=100)) == 10 + n
    assert len([*corpus.path.glob("meaning/*.parquet")]) < 9


def test_sentences_are_those_of_the_server() -> None:
    """The sentences made from words equal those of the embedded server's own splitter, for each recording of data/."""
    for name in ("call", "interview", "panel"):
        raw = (PAYLOADS / f"{name}.json").read_bytes()
        words = json.loads(raw)["words"]
        expected = sorted(sentences_of_server(words), key=lambda one: words.index(one["words"][0]))
        table = sentences_of(voxframe.frames.transcript_tables(raw)["words"]).to_pylist()
        rows = [(row["text"], row["start_ms"], row["end_ms"], row["speaker"], row["channel"]) for row in table]
        assert rows == [(s["text"], s["start"], s["end"], s["speaker"], s.get("channel")) for s in expected]


def test_sentences_of_the_service_are_preferred(corpus: voxframe.Corpus) -> None:
    """If the sentences export is in the corpus, its sentences are searched."""
    words = json.loads(corpus.raw.get("shop"))["words"]
    export = {"id": "shop", "sentences": [{"text": "A dear phone", "start": 0, "end": 900, "words": words[:2]}]}
    corpus.search("delay", mode="meaning")
    corpus.raw.put("shop", json.dumps(export).encode(), "sentences")
    found = corpus.search("expensive", mode="meaning", ids="shop")
    assert found[["match", "word_idx", "last_word_idx"]].to_numpy().tolist() == [["A dear phone", 0, 1]]


def test_corrected_text_is_searched(tmp_path: Path) -> None:
    """After a correction, the sentences are those of the corrected turn, with the times of its words."""
    corpus = voxframe.Corpus(tmp_path)
    words = [
        {"text": text, "start": 1000 * n, "end": 1000 * n + 900, "speaker": "A"}
        for n, text in enumerate("The three is tall. It is old.".split())
    ]
    turn = {"speaker": "A", "text": "The three is tall. It is old.", "start": 0, "end": 6900, "words": words}
    payload = {"id": "t", "status": "completed", "words": words, "utterances": [turn]}
    corpus.raw.put("t", json.dumps(payload).encode())
    assert corpus.search("an oak", mode="meaning", min_score=-1)["match"].to_list() == [
        "The three is tall.",
        "It is old.",
    ]
    before = corpus.search("an oak", mode="meaning", min_score=-1)["score"][0]
    corpus.corrections.set("t", {0: "The tree is tall. It is old."})
    found = corpus.search("an oak", mode="meaning", min_score=-1)
    assert found["match"].to_list() == ["The tree is tall.", "It is old."]
    assert found["score"][0] > before + 0.1
    assert found[["start_ms", "end_ms", "utterance_idx"]].to_numpy().tolist() == [[0, 3900, 0], [4000, 6900, 0]]


def test_similar_sentences(corpus: voxframe.Corpus) -> None:
    """A row finds what is close to it, but not itself; a text finds its own sentence."""
    row = corpus.search("cost", mode="meaning").set_index("match").loc["I will not pay that much."]
    row["match"] = row.name
    found = corpus.similar(row, limit=2)
    assert found["match"][0] == "The new phone is far too expensive."
    assert "I will not pay that much." not in found["match"].to_list()
    own = corpus.similar("I will not pay that much.", limit=1)
    assert own["match"].to_list() == ["I will not pay that much."]
    assert own["score"][0] == pytest.approx(1, abs=1e-6)
    with pytest.raises(OptionError, match="sentence_idx"):
        corpus.similar(pd.Series({"transcript_id": "shop"}))


def test_topics_group_what_belongs_together(corpus: voxframe.Corpus) -> None:
    """Two themes fall into two topics with their words, the same each time; short sentences belong to none."""
    say(
        corpus,
        "shop2",
        "This phone costs more than my old phone. Too expensive for me. The price of this phone is high.",
    )
    say(corpus, "garden2", "The lettuce grows well in the sun. The tomatoes are ripe. Snails like wet lettuce.")
    found = corpus.discover_topics(2, ids=["shop2", "garden2"], words=3)
    groups = found.sentences.groupby("topic_idx")["transcript_id"].agg(["unique", "size"])
    assert sorted(map(tuple, groups["unique"])) == [("garden2",), ("shop2",)]
    assert found.topics["sentences"].to_list() == groups["size"].to_list() == [3, 3]
    words = {row["transcript_id"]: row["words"].split(", ") for _, row in found.topics.iterrows()}
    assert "phone" in words["shop2"]
    assert "lettuce" in words["garden2"]
    again = corpus.discover_topics(2, ids=["shop2", "garden2"], words=3)
    pd.testing.assert_frame_equal(again.sentences, found.sentences)
    with pytest.raises(OptionError, match="topics=99"):
        corpus.discover_topics(99)
    assert corpus.discover_topics(ids=[]).topics.empty


def test_without_the_model_the_error_says_how_to_get_it(
    corpus: voxframe.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the encoder, the error names the command; searching words goes on."""
    for name in ("VOXFRAME_MODEL_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    encoder.load.cache_clear()
    try:
        with pytest.raises(ModelError, match="voxframe models get"):
            corpus.search("delay", mode="meaning")
    finally:
        encoder.load.cache_clear()
    assert len(corpus.search("train")) == 1
