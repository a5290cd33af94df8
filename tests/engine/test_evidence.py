"""Texts of a job by a local model: a stand-in writes them, so that each case is certain."""

import pytest

from voxframe_engine.answers import Cancelled
from voxframe_engine.answers.chat import ModelReply
from voxframe_engine.answers.evidence import rewrite

BRIDGE = "Last winter the bridge over the Sava was closed for thirty-five days. Ships had hit a pillar of the bridge."
POOL = "The swimming pool opens in May. Tickets for the pool cost four euros."


class Writes:
    """A model that writes one title and one summary per subject."""

    name = "tiny"

    def __init__(self, titles, summaries):
        self.titles, self.summaries = titles, summaries
        self.requests = []

    def ask(self, system, request, size, temperature, report=lambda _: None):
        self.requests.append(request)
        texts = self.titles if "Write a title" in request else self.summaries
        report(1.0)
        return ModelReply(texts["Sava" not in request], 10, 5)


@pytest.fixture
def result():
    """A transcript of two chapters, as the analyses leave it."""
    texts = f"{BRIDGE} {POOL}".split()
    words = [{"text": text, "start": 400 * n, "end": 400 * n + 300} for n, text in enumerate(texts)]
    pool = 400 * len(BRIDGE.split())
    chapters = [
        {"gist": "bridge", "headline": "bridge and days", "summary": BRIDGE, "start": 0, "end": pool - 100},
        {"gist": "pool", "headline": "pool and tickets", "summary": POOL, "start": pool, "end": words[-1]["end"]},
    ]
    return {"words": words, "audio_duration": 12, "chapters": chapters, "summary": BRIDGE, "summary_method": "quoted"}


def test_chapters_get_titles_and_summaries_that_their_own_sentences_support(result):
    """The model reads one chapter at a time; the gist stays, and the chapter says who wrote it."""
    model = Writes(
        ["# Bridge over the Sava closed.", '"Swimming pool opens in May"'],
        ["The bridge over the Sava was shut for 35 days.", "The pool opens in May."],
    )
    bridge, pool = rewrite(result, {"auto_chapters": True}, model)["chapters"]
    assert bridge["headline"] == "Bridge over the Sava closed"
    assert pool["headline"] == "Swimming pool opens in May"
    assert bridge["summary"] == "The bridge over the Sava was shut for 35 days."
    assert (bridge["gist"], bridge["start"]) == ("bridge", 0)
    assert bridge["method"] == pool["method"] == "written by tiny, checked against the text"
    assert not any("Sava" in request and "pool" in request for request in model.requests)


def test_an_invented_text_leaves_the_field_as_it_was(result):
    """A title or summary of the other chapter, or of neither, is not used; a chapter with neither has no method."""
    model = Writes(
        ["Swimming pool opens in May", "The new airport"], ["The pool opens in May.", "Planes land at night."]
    )
    assert rewrite(result, {"auto_chapters": True}, model)["chapters"] == result["chapters"]


def test_the_summary_has_the_form_of_the_request(result):
    """`summary_type` and `summary_model` are in the request to the model, and the method says who wrote the summary."""
    del result["chapters"]
    model = Writes(["", ""], ["- The bridge over the Sava was closed for 35 days.\n- Aliens came.", ""])
    options = {"summarization": True, "summary_type": "bullets", "summary_model": "conversational"}
    assert rewrite(result, options, model) == {
        "summary": "- The bridge over the Sava was closed for 35 days.",
        "summary_method": "written by tiny, checked against the text",
    }
    assert "bullets" in model.requests[0]
    assert "who said what" in model.requests[0]


def test_progress_counts_the_texts_and_may_cancel(result):
    """The share grows over chapters and summary to 1; an exception of the report ends the work."""
    shares = []
    model = Writes(["", ""], ["The bridge was closed.", "The pool opens in May."])
    rewrite(result, {"auto_chapters": True, "summarization": True}, model, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    def cancel(_):
        raise Cancelled

    with pytest.raises(Cancelled):
        rewrite(result, {"auto_chapters": True}, model, cancel)
