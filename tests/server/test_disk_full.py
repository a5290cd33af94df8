"""A server that may not write files larger than a megabyte, as if its disk were full."""

import os
import sys

import pytest
from tests.server.conftest import silence

LIMIT = 1_000_000
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")


@pytest.fixture
def full(start, web):
    """A running server with that limit, which its child processes inherit."""
    import resource

    service = start("--allow-origin", web.origin)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    return service


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux limits another process")
def test_uploads_without_room_are_refused_and_leave_nothing(full):
    """Uploads that do not fit are a 507 and leave no file; those that fit in between succeed."""
    refused = []
    for _ in range(3):
        refused.append(full.request("POST", "/v2/upload", data=bytes(2 * LIMIT)))
        last = full.upload(silence())
    assert [answer.status_code for answer in refused] == [507] * 3
    assert all("disk" in answer.json()["error"] for answer in refused)
    assert len(list((full.data_dir / "uploads").iterdir())) == 3
    assert full.wait(full.create(last)["id"])["status"] == "completed"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux limits another process")
def test_jobs_without_room_fail_and_say_why(full, web):
    """Downloads that do not fit fail at the first attempt and name the disk; another job is completed."""
    large, small = web.page("/large.wav", silence(60)), web.page("/small.wav", silence())
    for failed in [full.wait(job["id"]) for job in [full.create(large) for _ in range(2)]]:
        assert failed["status"] == "error"
        assert "disk of the server is full" in failed["error"]
    assert full.wait(full.create(small)["id"])["status"] == "completed"
    assert web.asked.count("/large.wav") == 2
    assert list(full.data_dir.glob("jobs/*/*.part")) == []
    assert full.get("/v2/transcript?status=error").json()["page_details"]["result_count"] == 2
