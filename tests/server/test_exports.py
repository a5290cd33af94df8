"""Exports of a completed transcript with known words."""

import json

import orjson
import pytest
import srt as srt_reader

from voxframe_server.jobs import JobStore
from voxframe_server.jobs.data_dir import DataDir


@pytest.fixture(scope="module")
def finished(service, payload_folder):
    """A completed job with the words of the API example."""
    example = json.loads((payload_folder / "transcripts" / "completed.json").read_text())
    data_dir = DataDir(service.data_dir)
    jobs = JobStore(data_dir.database)
    job = jobs.add({"audio_url": "http://192.0.2.1/a.mp3"}, None, "nobody", data_dir.job)
    jobs.database.connection.execute(
        "UPDATE jobs SET status = 'completed', completed = created WHERE id = ?", (job.id,)
    )
    jobs.close()
    fields = ("text", "words", "confidence", "audio_duration")
    data_dir.result(job.id).write_bytes(orjson.dumps({name: example[name] for name in fields}))
    return service.transcript(job.id)


def export(service, finished, view, **query):
    """Return an export of the transcript."""
    return service.get(f"/v2/transcript/{finished['id']}/{view}", params=query)


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_subtitles_are_plain_text(service, finished, kind):
    """Subtitles are plain text with a charset."""
    answer = export(service, finished, kind)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "Smoke" in answer.text


def test_chars_per_caption_is_respected(service, finished):
    """No caption is longer than requested."""
    read = list(srt_reader.parse(export(service, finished, "srt", chars_per_caption=32).text))
    assert 20 < max(len(c.content) for c in read) <= 32


def test_captions_may_have_any_length(service, finished):
    """A huge chars_per_caption gives the same captions as no limit."""
    huge = export(service, finished, "vtt", chars_per_caption="9" * 3000)
    assert huge.status_code == 200
    assert huge.text == export(service, finished, "vtt", chars_per_caption=100_000).text


@pytest.mark.parametrize("wrong", ["0", "-5", "many", "1.5", "³"])
def test_wrong_chars_per_caption_is_a_400(service, finished, wrong):
    """An invalid chars_per_caption is named in the error."""
    answer = export(service, finished, "vtt", chars_per_caption=wrong)
    assert answer.status_code == 400
    assert "chars_per_caption" in answer.json()["error"]


@pytest.mark.parametrize(
    ("view", "example"), [("sentences", "SentencesResponse.json"), ("paragraphs", "ParagraphsResponse.json")]
)
def test_sentences_and_paragraphs_have_the_fields_of_the_api(service, finished, payload_folder, view, example):
    """Passages contain every word once and in order, with the fields of the example."""
    shape = json.loads((payload_folder / example).read_text())
    found = export(service, finished, view).json()
    assert found.keys() == shape.keys()
    assert found["id"] == finished["id"]
    assert found["audio_duration"] == finished["audio_duration"]
    assert found["confidence"] == finished["confidence"]
    groups = found[view]
    assert len(groups) > 3
    assert [word for group in groups for word in group["words"]] == finished["words"]
    for group in groups:
        assert shape[view][0].keys() <= group.keys()
        assert group["text"] == " ".join(word["text"] for word in group["words"])
        assert group["start"] == group["words"][0]["start"]
        assert group["end"] == group["words"][-1]["end"]
        assert 0 <= group["confidence"] <= 1


def test_word_search_returns_the_example_of_the_api(service, finished, payload_folder):
    """A word search returns the API's example response for its transcript."""
    example = json.loads((payload_folder / "transcript_word-search.json").read_text())
    for query in ({"words": "hopkins,wildfires"}, {"words": ["hopkins", "wildfires"]}):
        found = export(service, finished, "word-search", **query).json()
        assert found == {**example, "id": finished["id"]}


@pytest.mark.parametrize("query", [{}, {"words": ""}, {"words": "a b c d e f"}])
def test_word_search_without_words_or_with_too_many_is_a_400(service, finished, query):
    """The error describes valid search terms."""
    answer = export(service, finished, "word-search", **query)
    assert answer.status_code == 400
    assert "words" in answer.json()["error"]


def test_redacted_audio_that_was_not_requested_is_a_400(service, finished):
    """Redacted audio that was not requested is a 400."""
    assert export(service, finished, "redacted-audio").status_code == 400
