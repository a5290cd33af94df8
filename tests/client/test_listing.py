import json
from datetime import UTC, date, datetime

import pytest

from voxframe.errors import OptionError


def history(peer, reply, count, base="http://elsewhere.example", loop=False):
    """Serve lists of `count` transcripts, newest first, with links to another host."""
    ids = [f"t{n}" for n in range(count, 0, -1)]

    def answer(request):
        limit = int(request.query.get("limit", ["10"])[0])
        before = request.query.get("before_id", [None])[0]
        rest = ids[ids.index(before) + 1 :] if before else ids
        page = rest[:limit]
        last = page[-1] if page else before
        older = f"{base}/v2/transcript?limit={limit}&before_id={last}" if len(rest) > limit or loop else None
        return reply({
            "page_details": {"limit": limit, "result_count": len(page), "prev_url": older,
                             "next_url": f"{base}/v2/transcript?after_id={page[0] if page else last}"},
            "transcripts": [{"id": i, "status": "completed"} for i in page],
        })  # fmt: skip

    peer.on("GET", "/v2/transcript", answer)
    return ids


def test_a_page_of_the_documented_response(client, peer, reply, payload_folder):
    """A page has its items in order, with UTC times, links and the response as received."""
    raw = (payload_folder / "TranscriptList.json").read_bytes()
    peer.on("GET", "/v2/transcript", reply(raw))
    page = client.list()
    expected = json.loads(raw)
    assert [item.id for item in page] == [t["id"] for t in expected["transcripts"]]
    assert page[0].created == datetime(2024, 3, 11, 21, 29, 59, 936851, UTC)
    assert page[0].completed == datetime(2024, 3, 11, 21, 30, 7, 314223, UTC)
    assert (page[1].status, page[1].completed) == ("error", None)
    assert page[1].error.startswith("Download error")
    assert (page.limit, page.result_count, page.raw, len(page)) == (3, 3, raw, 3)
    assert page.prev_url == expected["page_details"]["prev_url"]


def test_filters_are_sent(client, peer):
    """Every filter is a query parameter."""
    peer.on("GET", "/v2/transcript", {"transcripts": []})
    client.list(
        limit=200, status="error", created_on=date(2024, 3, 11), before_id="b", after_id="a", throttled_only=True
    )
    client.list(created_on="2024-03-11", throttled_only=False)
    client.list(created_on=datetime(2024, 3, 11, 12, tzinfo=UTC))
    client.list()
    assert [r.query for r in peer.requests] == [
        {"limit": ["200"], "status": ["error"], "created_on": ["2024-03-11"], "before_id": ["b"], "after_id": ["a"],
         "throttled_only": ["true"]},
        {"created_on": ["2024-03-11"], "throttled_only": ["false"]},
        {"created_on": ["2024-03-11"]},
        {},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 to 200 transcripts per page, got 0"),
        ({"limit": 201}, "got 201"),
        ({"limit": True}, "got True"),
        ({"created_on": "11.3.2024"}, "created_on must be a date such as '2024-03-11', got '11.3.2024'"),
    ],
)
def test_invalid_filters_send_nothing(client, peer, given, message):
    """An invalid filter raises an OptionError, and nothing is sent."""
    with pytest.raises(OptionError) as caught:
        client.list(**given)
    assert message in str(caught.value)
    assert peer.requests == []


def test_all_transcripts_are_iterated(client, peer, reply):
    """Iteration yields each transcript once, newest first, over all pages."""
    ids = history(peer, reply, 23)
    assert [item.id for item in client.iter_transcripts(page_size=5)] == ids
    assert len(peer.requests) == 5


def test_a_transcript_on_two_pages_is_returned_once(client, peer):
    """A transcript that moves to the next page, because a new one was made meanwhile, is returned once."""
    older = "/v2/transcript?before_id=b"
    first, second = ([{"id": i, "status": "completed"} for i in ids] for ids in ("ab", "bc"))
    peer.on(
        "GET", "/v2/transcript", {"page_details": {"prev_url": older}, "transcripts": first}, {"transcripts": second}
    )
    assert [item.id for item in client.iter_transcripts()] == ["a", "b", "c"]


def test_pages_are_fetched_lazily(client, peer, reply):
    """Reading the first few of many transcripts sends one request."""
    history(peer, reply, 1000)
    walk = client.iter_transcripts(page_size=10)
    assert peer.requests == []
    assert [next(walk).id for _ in range(10)] == [f"t{n}" for n in range(1000, 990, -1)]
    assert len(peer.requests) == 1


def test_filters_apply_to_every_page(client, peer, reply):
    """Filters are kept although a link does not contain them."""
    history(peer, reply, 6)
    list(client.iter_transcripts(page_size=2, status="completed", created_on="2024-03-11"))
    assert {(r.query["status"][0], r.query["created_on"][0]) for r in peer.requests} == {("completed", "2024-03-11")}


def test_links_to_another_host_are_not_followed(client, peer, other_peer, reply):
    """Only the query of a link is used; nothing is sent to its host."""
    history(peer, reply, 6, base=other_peer.url)
    assert len(list(client.iter_transcripts(page_size=2))) == 6
    assert other_peer.requests == []


def test_a_repeated_link_ends_the_iteration(client, peer, reply):
    """Iteration ends at a page that links to itself."""
    history(peer, reply, 4, loop=True)
    assert [item.id for item in client.iter_transcripts(page_size=2)] == ["t4", "t3", "t2", "t1"]
    assert len(peer.requests) == 3  # two pages, and an empty one whose link is the last one's


def test_an_empty_page_does_not_end_the_iteration(client, peer):
    """Iteration continues after a page that a filter has emptied."""

    def page(ids, older):
        return {"page_details": {"prev_url": older and f"x?before_id={older}"}, "transcripts": [{"id": i} for i in ids]}

    peer.on("GET", "/v2/transcript", page(["t9"], "t9"), page([], "t5"), page(["t2"], None))
    assert [item.id for item in client.iter_transcripts(status="error")] == ["t9", "t2"]


@pytest.mark.parametrize(
    "body",
    [
        {"page_details": {"prev_url": "http://[::1"}},
        {},
        {"transcripts": None},
        {"page_details": None, "transcripts": [None, {}, {"id": 5}]},
    ],
)
def test_an_incomplete_list_is_read(client, peer, body):
    """Missing details, missing lists and invalid entries are tolerated."""
    peer.on("GET", "/v2/transcript", body)
    assert [item.id for item in client.iter_transcripts()] in ([], ["5"])


def test_progress_of_unfinished_jobs(client, peer, reply):
    """`progress` returns shares by id, 0 for queued jobs, and nothing for a service without that endpoint."""
    assert client.progress() == {}
    peer.on("GET", "/queue", reply({"waiting": {"w": 1}, "progress": {"a": 0.25, "b": "1", "c": None}}))
    assert client.progress() == {"w": 0.0, "a": 0.25, "b": 1.0}
    peer.requests.clear()
    client.transport.base_url = "https://speech.example"
    assert client.progress() == {}
    assert not peer.requests


def test_a_repr_shows_no_login_and_no_signature(client, peer):
    """URLs in the repr of a list item, and in repr and HTML of a failed transcript, are masked; the values are not."""
    url = "https://ada:unseen@audio.example/a.mp3?X-Amz-Signature=hidden"
    item = {"id": "a", "status": "error", "audio_url": url, "error": f"cannot download {url}"}
    peer.on("GET", "/v2/transcript", {"transcripts": [item]})
    peer.on("GET", "/v2/transcript/a", item)
    listed, transcript = client.list()[0], client.transcript("a")
    assert (listed.audio_url, transcript.error) == (url, item["error"])
    shown = repr(listed) + repr(transcript) + transcript._repr_html_()
    assert "https://***@audio.example/a.mp3?X-Amz-Signature=***" in repr(listed)
    assert not [secret for secret in ("ada", "unseen", "hidden") if secret in shown]
