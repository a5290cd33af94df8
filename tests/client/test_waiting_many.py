import time

import pytest

from voxframe.client import Transcript
from voxframe.errors import ServiceTimeoutError


class Jobs:
    """A service with a paged list, whose jobs finish some time after the first request."""

    def __init__(self, peer, reply, count, after_s, failed=(), unlisted=()):
        self.ids = [f"t{n}" for n in range(count)]
        self._start, self._after_s = None, after_s
        self._failed = set(failed)
        listed = [i for i in reversed(self.ids) if i not in unlisted]

        def status(identifier):
            self._start = self._start or time.monotonic()
            if time.monotonic() - self._start < self._after_s:
                return "processing"
            return "error" if identifier in self._failed else "completed"

        def page(request):
            limit, before = int(request.query["limit"][0]), request.query.get("before_id", [None])[0]
            rest = listed[listed.index(before) + 1 :] if before else listed
            items = [
                {"id": i, "status": status(i), "error": "broken" if status(i) == "error" else None}
                for i in rest[:limit]
            ]
            older = f"x?before_id={items[-1]['id']}" if len(rest) > limit else None
            return reply({"page_details": {"prev_url": older}, "transcripts": items})

        peer.on("GET", "/v2/transcript", page)
        for i in self.ids:
            peer.on(
                "GET",
                f"/v2/transcript/{i}",
                lambda request, i=i: reply({"id": i, "status": status(i), "text": f"text of {i}"}),
            )


def test_many_jobs_are_followed_through_the_list(client, peer, reply):
    """A thousand jobs need five pages per round and no single requests; handles keep their order."""
    jobs = Jobs(peer, reply, 1000, 2.0, failed={"t7"})
    handles = client.wait_all([Transcript(client.transport, i) for i in jobs.ids])
    assert [h.id for h in handles] == jobs.ids
    assert {h.status for h in handles} == {"completed", "error"}
    assert (handles[7].status, handles[7].error) == ("error", "broken")
    assert {r.path for r in peer.requests} == {"/v2/transcript"}
    assert len(peer.requests) <= 5 * 6
    peer.requests.clear()
    assert handles[3].text == "text of t3"
    assert len(peer.requests) == 1


def test_the_list_is_read_no_further_than_needed(client, peer, reply):
    """Ten new jobs before a long history need one page per round."""
    jobs = Jobs(peer, reply, 5000, 0.0)
    client.wait_all(jobs.ids[-10:])
    assert len(peer.requests) == 1


def test_few_jobs_are_polled_one_by_one(client, peer, reply):
    """Two jobs are polled without the list, and a finished one is not polled."""
    jobs = Jobs(peer, reply, 3, 1.0)
    first = client.wait(jobs.ids[0])
    peer.requests.clear()
    client.wait_all([first, *jobs.ids[1:]])
    assert {r.path for r in peer.requests} == {"/v2/transcript/t1", "/v2/transcript/t2"}


def test_unlisted_jobs_are_polled(client, peer, reply):
    """Jobs that the list does not show are polled one by one."""
    jobs = Jobs(peer, reply, 30, 1.0, unlisted={f"t{n}" for n in range(15)})
    handles = client.wait_all(jobs.ids, timeout=60)
    assert all(h.status == "completed" for h in handles)
    counts = [len(peer.made("GET", f"/v2/transcript/t{n}")) for n in range(15)]
    assert max(counts) <= 4


def test_failed_pages_are_requested_again(client, peer, reply):
    """A failed page is requested again in the next round."""
    Jobs(peer, reply, 10, 0.0)
    page = peer._scripts["GET", "/v2/transcript"][0]
    peer.on("GET", "/v2/transcript", *[reply(b"", 503)] * 6, page)
    assert len(client.wait_all([f"t{n}" for n in range(10)])) == 10


def test_progress_shows_counts_by_status(client, peer, reply, capsys, monkeypatch):
    """The progress bar shows the number of finished jobs and the statuses of the others."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    Jobs(peer, reply, 10, 1.0)
    client.wait_all([f"t{n}" for n in range(10)], progress=True)
    shown = capsys.readouterr().err
    assert "10 processing" in shown
    assert "10/10" in shown


def test_a_timeout_counts_unfinished_jobs(client, peer, reply):
    """The timeout error counts the unfinished jobs; finished ones can be used."""
    Jobs(peer, reply, 10, 60.0)
    with pytest.raises(ServiceTimeoutError, match=r"10 of 10 transcripts are not finished after 0\.5 s"):
        client.wait_all([f"t{n}" for n in range(10)], timeout=0.5)


def test_no_jobs_need_no_requests(client, peer):
    """Waiting for no jobs sends no requests."""
    assert client.wait_all([]) == []
    assert peer.requests == []


def test_two_handles_of_one_job_are_finished(client, peer, reply):
    """Both handles of one id are finished at the end."""
    Jobs(peer, reply, 6, 0.5)
    one, two = Transcript(client.transport, "t0"), Transcript(client.transport, "t0")
    client.wait_all([one, two, *(f"t{n}" for n in range(1, 6))])
    assert one.done
    assert two.done


def test_all_handles_of_one_job_are_updated(client, peer, soon):
    """Two handles of a job are both finished after the wait, with one request per round."""
    peer.on("GET", "/v2/transcript/a", *({"id": "a", "status": status} for status in ("queued", "queued", "completed")))
    first, second = client.transcript("a"), client.transcript("a")
    assert [t.status for t in client.wait_all([first, second])] == ["completed", "completed"]
    assert len(peer.requests) == 3
