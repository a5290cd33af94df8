import warnings

import pandas as pd
import pytest
from tests.corpus.conftest import raw_file

import voxframe
from voxframe.errors import NotFoundError, OptionError, PayloadError, ServiceUnreachableError
from voxframe.schema import TRANSCRIPT_TABLES

_EXPORTS = ("sentences", "paragraphs")
_TABLES = [getattr(voxframe, f"load_{name}") for name in TRANSCRIPT_TABLES if name != "utterance_words"]


@pytest.fixture(autouse=True)
def _one(peer) -> None:
    """The service has one finished transcript."""
    peer.statuses["t1"] = "completed"


def test_an_id_is_fetched_once(peer, client, corpus) -> None:
    """The first load asks the service; any load of any table afterwards asks nothing, also in another Corpus object."""
    words = voxframe.load_words("t1", client=client, corpus=corpus)
    assert words["text"].to_list() == ["Good", "morning.", "Hello!"]
    assert peer.asked == ["GET /v2/transcript/t1"]
    again = voxframe.Corpus(corpus.path)
    for load in _TABLES:
        load("t1", client=client, corpus=again)
    pd.testing.assert_frame_equal(voxframe.load_words("t1", client=client, corpus=again), words)
    assert peer.asked == ["GET /v2/transcript/t1"]
    for _ in range(2):
        assert voxframe.tables("t1", client=client, corpus=again)["sentences"]["text"].to_list()
    assert peer.asked[1:] == ["GET /v2/transcript/t1/sentences", "GET /v2/transcript/t1/paragraphs"]


def test_what_is_kept_needs_no_client(peer, client, corpus) -> None:
    """An identifier that the corpus has is read with no service at hand."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    assert len(voxframe.load_utterances("t1", corpus=corpus)) == 2
    assert len(peer.asked) == 1


def test_a_handle_that_saw_the_end_is_not_asked_about_again(peer, client, corpus) -> None:
    """The answer that a handle holds already is kept, without another request."""
    transcript = client.transcript("t1")
    assert len(voxframe.load_words(transcript, corpus=corpus)) == 3
    assert len(voxframe.load_words(client.transcript("t1"), corpus=corpus)) == 3
    assert peer.asked == ["GET /v2/transcript/t1"] * 2
    assert corpus.raw.get("t1") == transcript.raw


def test_a_handle_on_a_job_under_way_is_asked_about(peer, client, corpus) -> None:
    """A handle that was made before the job was done does not give an old answer."""
    peer.statuses["t1"] = "processing"
    transcript = client.transcript("t1")
    peer.statuses["t1"] = "completed"
    assert len(voxframe.load_words(transcript, corpus=corpus)) == 3


def test_refresh_fetches_again(peer, client, corpus) -> None:
    """With refresh the service is asked, and what it says now is what is kept."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    peer.statuses["t1"] = "error"
    assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3
    assert len(voxframe.load_words("t1", client=client, corpus=corpus, refresh=True)) == 0
    assert voxframe.load_transcripts("t1", corpus=corpus)["status"].to_list() == ["error"]
    assert peer.count("GET") == 2


def test_a_damaged_payload_is_fetched_again(peer, client, corpus) -> None:
    """A payload that lost bytes counts as absent: it is fetched again with a client, which replaces it."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    raw_file(corpus, "t1.json.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3
    assert len(voxframe.load_words("t1", corpus=corpus)) == 3


@pytest.mark.parametrize("view", _EXPORTS)
def test_exports_are_fetched_once(peer, client, corpus, view: str) -> None:
    """Sentences and paragraphs come from the service the first time, with their place among the words."""
    load = getattr(voxframe, f"load_{view}")
    first = load("t1", client=client, corpus=corpus)
    assert first["first_word_idx"].to_list() == [0, 2]
    asked = list(peer.asked)
    assert asked == ["GET /v2/transcript/t1", f"GET /v2/transcript/t1/{view}"]
    pd.testing.assert_frame_equal(load("t1", corpus=corpus), first)
    assert peer.asked == asked
    load("t1", client=client, corpus=corpus, refresh=True)
    assert peer.asked == [*asked, asked[1]]


def test_a_job_under_way_warns_and_is_not_kept(peer, client, corpus) -> None:
    """Tables of an unfinished transcript are empty, say so at the caller's line, and are asked for again."""
    peer.statuses["t1"] = "processing"
    with pytest.warns(UserWarning, match=r"t1 is still 'processing'.*client\.wait") as caught:
        assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 0
    assert caught[0].filename == __file__
    assert "t1" not in corpus
    peer.statuses["t1"] = "completed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3


def test_a_failed_transcript_is_kept_and_has_no_exports(peer, client, corpus) -> None:
    """A failure is a final answer: kept, its error in the table, no words, no request for sentences."""
    peer.statuses["t1"] = "error"
    row = voxframe.load_transcripts("t1", client=client, corpus=corpus).iloc[0]
    assert (row["status"], row["error"]) == ("error", "no audio")
    assert len(voxframe.load_sentences("t1", client=client, corpus=corpus)) == 0
    assert peer.asked == ["GET /v2/transcript/t1"]


def test_an_iterable_keeps_its_order(peer, client, corpus) -> None:
    """Ids, handles and payloads together make one DataFrame in their order."""
    peer.statuses["t2"] = "completed"
    sources = [client.transcript("t2"), {"id": "mine", "words": [{"text": "x"}]}, "t1"]
    words = voxframe.load_words(iter(sources), client=client, corpus=corpus)
    assert words["transcript_id"].to_list() == ["t2"] * 3 + ["mine"] + ["t1"] * 3
    assert corpus.ids() == ["t1", "t2"]


def test_a_column_of_ids_is_an_iterable(client, corpus) -> None:
    """Identifiers straight from a DataFrame work; the DataFrame itself is refused with that hint."""
    jobs = pd.DataFrame({"transcript_id": ["t1"]})
    assert len(voxframe.load_words(jobs["transcript_id"], client=client, corpus=corpus)) == 3
    with pytest.raises(PayloadError, match="one of its columns"):
        voxframe.load_words(jobs, client=client, corpus=corpus)


def test_the_default_corpus_is_used(peer, client, tmp_path, monkeypatch) -> None:
    """With no corpus named, transcripts are kept in the data directory."""
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    voxframe.load_words("t1", client=client)
    voxframe.load_words("t1")
    assert len(peer.asked) == 1
    assert list(tmp_path.glob("data/corpus/raw/*/t1.json.zst"))


def test_an_unknown_id_is_the_services_error(client, corpus) -> None:
    """What the service does not have is its own 404, and nothing is kept."""
    with pytest.raises(NotFoundError, match="not found"):
        voxframe.load_words("nope", client=client, corpus=corpus)
    assert corpus.ids() == []


def test_no_service_is_an_error_and_nothing_is_kept(corpus) -> None:
    """With the service away, what is not in the corpus cannot be loaded."""
    with (
        voxframe.connect("http://127.0.0.1:9", api_key="k") as client,
        pytest.raises(ServiceUnreachableError),
    ):
        voxframe.load_words("t1", client=client, corpus=corpus)
    assert not corpus.path.exists()


@pytest.mark.parametrize("load", [*_TABLES, voxframe.load_sentences, voxframe.load_paragraphs, voxframe.tables])
def test_a_text_that_is_nothing_says_what_to_do(load, corpus) -> None:
    """A string that is no file and no known id is answered with what was missing."""
    with pytest.raises(
        PayloadError, match=r"'interveiw' is neither a file nor a transcript in .*client=voxframe\.connect"
    ):
        load("interveiw", corpus=corpus)


def test_what_only_a_service_can_give_says_so(client, corpus) -> None:
    """A transcript that is in the corpus is not called unknown where a client is missing to fetch more of it."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    with pytest.raises(PayloadError, match=r"'t1' is in Corpus.*to fetch it again, pass client=voxframe\.connect"):
        voxframe.load_words("t1", corpus=corpus, refresh=True)
    with pytest.raises(PayloadError, match=r"'t1' is in Corpus.*its sentences.*pass client=voxframe\.connect"):
        voxframe.load_sentences("t1", corpus=corpus)


def test_a_path_is_no_corpus_and_a_key_no_client(client, corpus) -> None:
    """The error says what to pass, and shows nothing of what may be a key."""
    for given in (corpus.path, str(corpus.path)):
        with pytest.raises(OptionError, match=r"pass corpus=voxframe\.Corpus\('.*corpus'\)"):
            voxframe.load_words("t1", client=client, corpus=given)
    with pytest.raises(OptionError, match="not of type int"):
        voxframe.tables("t1", client=client, corpus=3)
    with pytest.raises(OptionError, match=r"result of voxframe\.connect\(\), not of type str") as told:
        voxframe.load_words("t1", client="canary-key", corpus=corpus)
    assert "canary" not in str(told.value)
