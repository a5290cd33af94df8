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
    """A service with one completed transcript."""
    peer.statuses["t1"] = "completed"


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")  # why a table is empty
def test_an_id_is_fetched_once(peer, client, corpus) -> None:
    """The first load requests the transcript; later loads send none, also with another Corpus object."""
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


def test_a_stored_transcript_needs_no_client(peer, client, corpus) -> None:
    """A transcript in the corpus is read without a service."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    assert len(voxframe.load_utterances("t1", corpus=corpus)) == 2
    assert len(peer.asked) == 1


def test_a_completed_handle_is_not_requested_again(peer, client, corpus) -> None:
    """The response that a handle already has is stored without another request."""
    transcript = client.transcript("t1")
    assert len(voxframe.load_words(transcript, corpus=corpus)) == 3
    assert len(voxframe.load_words(client.transcript("t1"), corpus=corpus)) == 3
    assert peer.asked == ["GET /v2/transcript/t1"] * 2
    assert corpus.raw.get("t1") == transcript.raw


def test_an_unfinished_handle_is_requested_again(peer, client, corpus) -> None:
    """A handle that was created before the job finished does not give an outdated response."""
    peer.statuses["t1"] = "processing"
    transcript = client.transcript("t1")
    peer.statuses["t1"] = "completed"
    assert len(voxframe.load_words(transcript, corpus=corpus)) == 3


def test_refresh_fetches_again(peer, client, corpus) -> None:
    """With refresh, the transcript is requested again and the new response is stored."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    peer.statuses["t1"] = "error"
    assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3
    assert len(voxframe.load_words("t1", client=client, corpus=corpus, refresh=True)) == 0
    assert voxframe.load_transcripts("t1", corpus=corpus)["status"].to_list() == ["error"]
    assert peer.count("GET") == 2


def test_a_damaged_payload_is_fetched_again(peer, client, corpus) -> None:
    """With a client, a damaged payload is fetched again and replaced."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    raw_file(corpus, "t1.json.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3
    assert len(voxframe.load_words("t1", corpus=corpus)) == 3


@pytest.mark.parametrize("view", _EXPORTS)
def test_exports_are_fetched_once(peer, client, corpus, view: str) -> None:
    """Sentences and paragraphs are requested once, and know their first and last word."""
    load = getattr(voxframe, f"load_{view}")
    first = load("t1", client=client, corpus=corpus)
    assert first["first_word_idx"].to_list() == [0, 2]
    asked = list(peer.asked)
    assert asked == ["GET /v2/transcript/t1", f"GET /v2/transcript/t1/{view}"]
    pd.testing.assert_frame_equal(load("t1", corpus=corpus), first)
    assert peer.asked == asked
    load("t1", client=client, corpus=corpus, refresh=True)
    assert peer.asked == [*asked, asked[1]]


def test_an_unfinished_transcript_warns_and_is_not_stored(peer, client, corpus) -> None:
    """Tables of an unfinished transcript are empty, warn at the caller's line, and are requested again."""
    peer.statuses["t1"] = "processing"
    with pytest.warns(UserWarning, match=r"t1 is still 'processing'.*client\.wait") as caught:
        assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 0
    assert caught[0].filename == __file__
    assert "t1" not in corpus
    peer.statuses["t1"] = "completed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(voxframe.load_words("t1", client=client, corpus=corpus)) == 3


def test_a_failed_transcript_is_stored_and_has_no_exports(peer, client, corpus) -> None:
    """A failure is final: it is stored with its error and no words, and its sentences are not requested."""
    peer.statuses["t1"] = "error"
    row = voxframe.load_transcripts("t1", client=client, corpus=corpus).iloc[0]
    assert (row["status"], row["error"]) == ("error", "no audio")
    assert len(voxframe.load_sentences("t1", client=client, corpus=corpus)) == 0
    assert peer.asked == ["GET /v2/transcript/t1"]


def test_an_iterable_keeps_its_order(peer, client, corpus) -> None:
    """Ids, handles and payloads together give one DataFrame in their order."""
    peer.statuses["t2"] = "completed"
    sources = [client.transcript("t2"), {"id": "mine", "words": [{"text": "x"}]}, "t1"]
    words = voxframe.load_words(iter(sources), client=client, corpus=corpus)
    assert words["transcript_id"].to_list() == ["t2"] * 3 + ["mine"] + ["t1"] * 3
    assert corpus.ids() == ["t1", "t2"]


def test_a_column_of_ids_is_an_iterable(client, corpus) -> None:
    """A column of ids works, and so does a DataFrame with that column."""
    jobs = pd.DataFrame({"transcript_id": ["t1"]})
    assert len(voxframe.load_words(jobs["transcript_id"], client=client, corpus=corpus)) == 3
    assert len(voxframe.load_words(jobs, client=client, corpus=corpus)) == 3


def test_the_default_corpus_is_used(peer, client, tmp_path, monkeypatch) -> None:
    """Without a corpus, transcripts are stored in the data directory."""
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    voxframe.load_words("t1", client=client)
    voxframe.load_words("t1")
    assert len(peer.asked) == 1
    assert list(tmp_path.glob("data/corpus/raw/*/t1.json.zst"))


def test_an_unknown_id_is_the_services_error(client, corpus) -> None:
    """A transcript that the service does not have raises its 404, and nothing is stored."""
    with pytest.raises(NotFoundError, match="not found"):
        voxframe.load_words("nope", client=client, corpus=corpus)
    assert not corpus.path.exists()


def test_an_unavailable_service_is_an_error_and_nothing_is_stored(corpus) -> None:
    """Without a service, a transcript that is not in the corpus cannot be loaded."""
    with (
        voxframe.connect("http://127.0.0.1:9", api_key="k") as client,
        pytest.raises(ServiceUnreachableError),
    ):
        voxframe.load_words("t1", client=client, corpus=corpus)
    assert not corpus.path.exists()


@pytest.mark.parametrize("load", [*_TABLES, voxframe.load_sentences, voxframe.load_paragraphs, voxframe.tables])
def test_text_that_is_neither_file_nor_id_says_what_to_do(load, corpus) -> None:
    """The error for text that is neither a file nor a known id says what is missing."""
    with pytest.raises(
        PayloadError, match=r"'interveiw' is neither a file nor a transcript in .*client=voxframe\.connect"
    ):
        load("interveiw", corpus=corpus)


def test_a_missing_export_asks_for_a_client(client, corpus) -> None:
    """The error says that a client is missing, not that the transcript is unknown; sentences can be made from words."""
    voxframe.load_words("t1", client=client, corpus=corpus)
    with pytest.raises(PayloadError, match=r"'t1' is in Corpus.*to fetch it again, pass client=voxframe\.connect"):
        voxframe.load_words("t1", corpus=corpus, refresh=True)
    assert voxframe.load_sentences("t1", corpus=corpus)["derived"].all()
    with pytest.raises(PayloadError, match=r"'t1' is in Corpus.*its sentences.*pass client=voxframe\.connect"):
        voxframe.load_sentences("t1", corpus=corpus, refresh=True)


def test_wrong_types_of_corpus_and_client(client, corpus) -> None:
    """The error says what to pass and does not show a value that may be a key."""
    for given in (corpus.path, str(corpus.path)):
        with pytest.raises(OptionError, match=r"pass corpus=voxframe\.Corpus\('.*corpus'\)"):
            voxframe.load_words("t1", client=client, corpus=given)
    with pytest.raises(OptionError, match="not of type int"):
        voxframe.tables("t1", client=client, corpus=3)
    with pytest.raises(OptionError, match=r"result of voxframe\.connect\(\), not of type str") as told:
        voxframe.load_words("t1", client="canary-key", corpus=corpus)
    assert "canary" not in str(told.value)
