import time

import pytest

from voxframe.errors import ServiceTimeoutError
from voxframe.service import Transcript


class Jobs:
    """A service whose jobs finish a while after they are first looked at, with a list in pages."""

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


def test_a_thousand_jobs_are_watched_by_pages(client, peer, reply):
    """Five pages a round, no question about any single job, and handles in the order given."""
    jobs = Jobs(peer, reply, 1000, 2.0, failed={"t7"})
    handles = client.wait_all([Transcript(client, i) for i in jobs.ids])
    assert [h.id for h in handles] == jobs.ids
    assert {h.status for h in handles} == {"completed", "error"}
    assert (handles[7].status, handles[7].error) == ("error", "broken")
    assert {r.path for r in peer.requests} == {"/v2/transcript"}
    assert len(peer.requests) <= 5 * 6
    peer.requests.clear()
    assert handles[3].text == "text of t3"
    assert len(peer.requests) == 1


def test_the_walk_ends_where_nobody_is_left_to_find(client, peer, reply):
    """Ten new jobs before a long history cost one page a round."""
    jobs = Jobs(peer, reply, 5000, 0.0)
    client.wait_all(jobs.ids[-10:])
    assert len(peer.requests) == 1


def test_a_few_jobs_are_asked_about_one_by_one(client, peer, reply):
    """Two jobs need no list; one that is finished already is not asked about."""
    jobs = Jobs(peer, reply, 3, 1.0)
    first = client.wait(jobs.ids[0])
    peer.requests.clear()
    client.wait_all([first, *jobs.ids[1:]])
    assert {r.path for r in peer.requests} == {"/v2/transcript/t1", "/v2/transcript/t2"}


def test_jobs_the_list_does_not_show_are_found_all_the_same(client, peer, reply):
    """A list that lags behind, or hides some, makes nobody wait for ever."""
    jobs = Jobs(peer, reply, 30, 1.0, unlisted={f"t{n}" for n in range(15)})
    handles = client.wait_all(jobs.ids, timeout=60)
    assert all(h.status == "completed" for h in handles)
    counts = [len(peer.made("GET", f"/v2/transcript/t{n}")) for n in range(15)]
    assert max(counts) <= 4


def test_a_service_that_is_away_for_a_while_is_waited_for(client, peer, reply):
    """Broken pages are asked for again in the next round."""
    Jobs(peer, reply, 10, 0.0)
    page = peer._scripts["GET", "/v2/transcript"][0]
    peer.on("GET", "/v2/transcript", *[reply(b"", 503)] * 6, page)
    assert len(client.wait_all([f"t{n}" for n in range(10)])) == 10


def test_progress_counts_states(client, peer, reply, capsys, monkeypatch):
    """The bar says how many are done, and what the others are at."""
    monkeypatch.setattr("voxframe.service.progress.PATIENCE_S", 0.0)
    Jobs(peer, reply, 10, 1.0)
    client.wait_all([f"t{n}" for n in range(10)], progress=True)
    shown = capsys.readouterr().err
    assert "10 processing" in shown
    assert "10/10" in shown


def test_time_runs_out_for_some(client, peer, reply):
    """The message counts those that are not finished; those that are can be used."""
    Jobs(peer, reply, 10, 60.0)
    with pytest.raises(ServiceTimeoutError, match=r"10 of 10 transcripts are not finished after 0\.5 s"):
        client.wait_all([f"t{n}" for n in range(10)], timeout=0.5)


def test_nothing_to_wait_for(client, peer):
    """No jobs, no requests."""
    assert client.wait_all([]) == []
    assert peer.requests == []


def test_the_same_job_twice(client, peer, reply):
    """Both handles of one id are finished at the end."""
    Jobs(peer, reply, 6, 0.5)
    one, two = Transcript(client, "t0"), Transcript(client, "t0")
    client.wait_all([one, two, *(f"t{n}" for n in range(1, 6))])
    assert one.done
    assert two.done
