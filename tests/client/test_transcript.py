import json
from urllib.parse import unquote

import pytest

from voxframe.client import Transcript
from voxframe.errors import NotFoundError, OptionError, TranscriptError, UnreadableAnswerError

ID = "47b95ba5-8889-44d8-bc80-5de38306e582"


@pytest.fixture
def on(peer, reply, payload_folder):
    """Respond to GET on the transcript, or on a path below it, with an example of the API."""

    def script(example, below=""):
        raw = (payload_folder / example).read_bytes()
        peer.on("GET", f"/v2/transcript/{ID}{below}", reply(raw))
        return raw

    return script


def test_transcribe_uploads_submits_and_waits(client, peer, tmp_path):
    """`transcribe` uploads, submits every option and returns the finished transcript."""
    audio = tmp_path / "talk.wav"
    audio.write_bytes(b"audio")
    peer.on("POST", "/v2/upload", {"upload_url": "https://cdn.example/1"})
    peer.on("POST", "/v2/transcript", {"id": ID, "status": "queued"})
    peer.on(
        "GET",
        f"/v2/transcript/{ID}",
        {"id": ID, "status": "processing"},
        {"id": ID, "status": "completed", "text": "Hi."},
    )
    transcript = client.transcribe(audio, speaker_labels=True, word_boost=["Decarlo"], punctuate=None)
    assert (transcript.status, transcript.text, transcript.error, transcript.id) == ("completed", "Hi.", None, ID)
    assert peer.made("POST", "/v2/transcript")[0].json == {
        "audio_url": "https://cdn.example/1",
        "speaker_labels": True,
        "word_boost": ["Decarlo"],
    }
    assert [r.method for r in peer.requests] == ["POST", "POST", "GET", "GET"]


@pytest.mark.parametrize(
    "url", ["https://host.example/talk.mp3?x=1&y=2", "http://host.example/a b".replace(" ", "%20")]
)
def test_a_url_is_not_uploaded(client, peer, url):
    """A URL is submitted without an upload."""
    peer.on("POST", "/v2/transcript", {"id": ID, "status": "queued"})
    assert client.submit(url).status == "queued"
    assert [r.path for r in peer.requests] == ["/v2/transcript"]
    assert peer.requests[0].json == {"audio_url": url}


def test_an_invalid_option_prevents_the_upload(client, peer):
    """Options are checked before the audio is uploaded."""
    with pytest.raises(OptionError, match="speaker_labels"):
        client.submit(b"audio", speaker_label=True)
    assert peer.requests == []


def test_a_submission_without_an_id_is_an_error(client, peer):
    """A response without an id raises an UnreadableAnswerError."""
    peer.on("POST", "/v2/transcript", {"status": "queued"})
    with pytest.raises(UnreadableAnswerError, match="POST /v2/transcript"):
        client.submit("https://host.example/a.mp3")


def test_a_completed_transcript(client, on):
    """Text, duration and raw response are those of the service."""
    raw = on("transcripts/completed.json")
    transcript = client.transcript(ID)
    expected = json.loads(raw)
    assert (transcript.raw, transcript.json(), transcript.text) == (raw, expected, expected["text"])
    transcript.json()["words"].clear()
    assert transcript.words == expected["words"]
    assert transcript.audio_duration_s == expected["audio_duration"]
    assert transcript.done
    assert transcript.raise_for_status() is transcript


def test_results_are_lists_of_dicts(client, peer):
    """Each result of a transcript is an attribute with the objects that the service sent."""
    passages = [{"text": "Hi.", "labels": []}]
    sent = {
        "words": [{"text": "Hi.", "new": 1}],
        "utterances": [{"speaker": "A"}],
        "chapters": [{"gist": "Hello"}],
        "entities": [{"text": "Ann"}],
        "sentiment_analysis_results": [{"sentiment": "POSITIVE"}],
        "auto_highlights_result": {"status": "success", "results": [{"rank": 0.1}]},
        "iab_categories_result": {"results": passages},
        "content_safety_labels": {"results": passages},
    }
    peer.on("GET", f"/v2/transcript/{ID}", {"id": ID, "status": "completed", "summary": "A greeting.", **sent})
    transcript = Transcript(client.transport, ID)
    assert transcript.summary == "A greeting."
    assert [transcript.words, transcript.utterances] == [sent["words"], sent["utterances"]]
    assert [transcript.chapters, transcript.entities] == [sent["chapters"], sent["entities"]]
    assert transcript.sentiments == sent["sentiment_analysis_results"]
    assert transcript.highlights == [{"rank": 0.1}]
    assert transcript.topics == transcript.content_safety == passages


@pytest.mark.parametrize("value", [None, 3, {"results": None}, {"results": [None, 3]}, ["x"]])
def test_absent_and_unexpected_results_are_empty_lists(client, peer, value):
    """A result that was not requested, or that is no list of objects, is an empty list."""
    fields = {"words": value, "auto_highlights_result": value, "iab_categories_result": value}
    peer.on("GET", f"/v2/transcript/{ID}", {"id": ID, "status": "completed", **fields})
    transcript = Transcript(client.transport, ID)
    assert transcript.words == transcript.highlights == transcript.topics == transcript.chapters == []
    assert transcript.summary is None


@pytest.mark.parametrize("example", ["failed_download", "failed_not_audio", "failed_too_short"])
def test_a_failed_transcript_is_a_value(client, on, example):
    """A failed transcript raises nothing until `raise_for_status`, whose error has id and reason."""
    raw = on(f"{example}.json")
    transcript = client.transcript(ID)
    reason = json.loads(raw)["error"]
    assert (transcript.status, transcript.error, transcript.done) == ("error", reason, True)
    with pytest.raises(TranscriptError) as caught:
        transcript.raise_for_status()
    assert str(caught.value) == f"transcript {ID} failed: {reason}"


def test_a_deleted_transcript(client, peer, reply, payload_folder):
    """`delete` of the client and of the handle returns the emptied transcript."""
    raw = (payload_folder / "transcripts" / "deleted.json").read_bytes()
    peer.on("DELETE", f"/v2/transcript/{ID}", reply(raw))
    assert client.delete(ID).text == "Deleted by user."
    handle = Transcript(client.transport, ID)
    assert handle.delete() is handle
    assert handle.json()["words"] is None


def test_sentences_and_paragraphs(client, on):
    """Sentences and paragraphs have their words, times in ms and the response as received."""
    for name, example in (("sentences", "SentencesResponse.json"), ("paragraphs", "ParagraphsResponse.json")):
        raw = on(example, f"/{name}")
        expected = json.loads(raw)
        found = getattr(Transcript(client.transport, ID), name)()
        assert found.raw == raw
        assert client.fetch(ID, name) == raw
        assert (found.confidence, found.audio_duration_s) == (expected["confidence"], expected["audio_duration"])
        assert len(found) == len(expected[name]) > 0
        for passage, wire in zip(found, expected[name], strict=True):
            assert (passage.text, passage.start_ms, passage.end_ms) == (wire["text"], wire["start"], wire["end"])
            assert [(w.text, w.start_ms, w.end_ms, w.confidence, w.speaker) for w in passage.words] == [
                (w["text"], w["start"], w["end"], w["confidence"], w["speaker"]) for w in wire["words"]
            ]


def test_incomplete_passages_are_read(client, peer):
    """Missing fields are None, numeric strings are numbers, and entries that are not objects are left out."""
    peer.on(
        "GET", f"/v2/transcript/{ID}/sentences", {"sentences": [{"text": "Hi", "start": "42", "end": 43.0}, None, 3]}
    )
    (only,) = client.sentences(ID)
    assert (only.text, only.start_ms, only.end_ms, only.speaker, only.words) == ("Hi", 42, 43, None, ())


@pytest.mark.parametrize(
    ("kind", "example"), [("srt", "SrtSubtitlesResponse.txt"), ("vtt", "VttSubtitlesResponse.txt")]
)
def test_subtitles_in_both_formats(client, on, peer, kind, example):
    """Captions are returned as text, with the character limit in the query."""
    raw = on(example, f"/{kind}")
    assert client.subtitles(ID, kind, chars_per_caption=32) == raw.decode()
    assert peer.requests[-1].query == {"chars_per_caption": ["32"]}
    assert Transcript(client.transport, ID).subtitles(kind) == raw.decode()
    assert peer.requests[-1].query == {}


def test_a_byte_order_mark_is_no_part_of_captions(client, peer, reply):
    """A byte order mark before the captions is removed."""
    peer.on("GET", f"/v2/transcript/{ID}/vtt", reply("\ufeffWEBVTT\n".encode()))
    assert client.subtitles(ID, "vtt") == "WEBVTT\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.subtitles(ID, "txt"), "the subtitle format is 'txt'; give 'srt' or 'vtt'"),
        (
            lambda c: c.subtitles(ID, chars_per_caption=0),
            "chars_per_caption must be a whole number of at least 1, got 0",
        ),
        (
            lambda c: c.subtitles(ID, chars_per_caption=3.5),
            "chars_per_caption must be a whole number of at least 1, got 3.5",
        ),
        (lambda c: c.fetch(ID, "words"), "the view is 'words'; give 'transcript', 'sentences' or 'paragraphs'"),
        (lambda c: c.transcript(""), "'' is not the id of a transcript"),
        (lambda c: c.delete(".."), "'..' is not the id of a transcript"),
        (lambda c: c.transcript(None), "None is not the id of a transcript"),
    ],
)
def test_invalid_arguments_send_nothing(client, peer, call, message):
    """An invalid argument is named with the allowed values, and nothing is sent."""
    with pytest.raises(OptionError) as caught:
        call(client)
    assert message in str(caught.value)
    assert peer.requests == []


@pytest.mark.parametrize("identifier", ["a/../b", "x?y=1", "näme", "a b", "..%2f", "#"])
def test_ids_are_quoted(client, peer, identifier):
    """An id that is not a UUID works and cannot lead to another endpoint."""
    with pytest.raises(NotFoundError):
        client.transcript(identifier)
    assert peer.requests[0].path.count("/") == 3
    assert unquote(peer.requests[0].path.removeprefix("/v2/transcript/")) == identifier
    assert peer.requests[0].query == {}


def test_a_handle_fetches_when_first_read(client, peer):
    """A handle made from an id sends one request when an attribute is first read, and one per refresh."""
    peer.on("GET", f"/v2/transcript/{ID}", {"id": ID, "status": "queued"}, {"id": ID, "status": "completed"})
    handle = Transcript(client.transport, ID)
    assert repr(handle) == f"Transcript('{ID}')"
    shown = handle._repr_html_()
    assert (shown.count("<tr>"), ID in shown) == (1, True)
    assert peer.requests == []
    assert (handle.status, handle.text) == ("queued", None)
    assert handle.refresh().status == "completed"
    assert len(peer.requests) == 2


def test_markup_is_escaped_in_a_notebook(client, peer):
    """Markup in an id, a text or an error is escaped."""
    evil = "<script>alert(1)</script>"
    peer.on("GET", "/v2/transcript/%3Cb%3E", {"status": "error" + evil, "error": evil, "text": evil + "x" * 1000})
    html = client.transcript("<b>")._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert len(html) < 900


def test_unexpected_values_are_tolerated(client, peer):
    """A numeric status, a text as duration and an unknown status raise no error."""
    peer.on("GET", f"/v2/transcript/{ID}", {"status": 5, "audio_duration": "12.5", "text": None, "error": {}})
    transcript = client.transcript(ID)
    assert (transcript.status, transcript.audio_duration_s, transcript.text, transcript.error) == (
        "5",
        12.5,
        None,
        None,
    )
    assert not transcript.done
    assert "12.5" in repr(transcript)


def test_the_key_is_hidden(client, peer, key):
    """Neither the repr nor the attributes of a client show the key."""
    assert repr(client) == f"Client({peer.url!r})"
    assert key not in repr(vars(client)) + repr(vars(client.transport))
