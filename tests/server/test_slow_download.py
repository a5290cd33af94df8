"""Slow but steady downloads, with the scheduler in this process and short limits."""

import logging
import time

import pytest

from voxframe.server.jobs import scheduler as running
from voxframe.server.jobs.scheduler import JobScheduler


def steady(web, path, body, pieces, pause):
    """Serve `path` with a body in the given number of parts, with a pause before each."""
    size = len(body) // pieces + 1

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for start in range(0, len(body), size):
            time.sleep(pause)
            handler.wfile.write(body[start : start + size])

    web.pages[path] = answer
    return web.origin + path


def finished(jobs, job):
    """Return a job once it is completed or an error."""
    until = time.monotonic() + 60
    while (found := jobs.get(job.id)).status in ("queued", "processing"):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


@pytest.fixture
def scheduler(jobs, data_dir, web):
    """A scheduler that may fetch from the test web server."""
    made = JobScheduler(jobs, data_dir, frozenset({web.origin}))
    made.start()
    yield made
    made.stop()


def test_slow_but_steady_download_is_not_taken_for_hung(
    jobs, data_dir, web, scheduler, silent_wav, monkeypatch, caplog
):
    """A download that takes longer than a silent worker may is completed at once and reports its progress."""
    monkeypatch.setattr(running, "STALLED", 3.0)
    caplog.set_level(logging.INFO, "voxframe.server")
    job = jobs.add({"audio_url": steady(web, "/a.wav", silent_wav, 14, 0.5)}, None, "owner", data_dir.job)
    scheduler.wake()
    until, told = time.monotonic() + 30, {}
    while not told and time.monotonic() < until:
        told = scheduler.downloads()
        time.sleep(0.02)
    assert told[job.id]["of"] == len(silent_wav)
    assert 0 < told[job.id]["bytes"] <= len(silent_wav)
    done = finished(jobs, job)
    assert (done.status, done.error, done.crashes) == ("completed", None, 0)
    assert len(web.asked) == 1
    assert caplog.text.count("MB downloaded") >= 3
    assert scheduler.downloads() == {}


def test_download_that_hangs_says_so(jobs, data_dir, web, scheduler, silent_wav, monkeypatch):
    """The error of a hung download names the download and a remedy, and does not mention converting the file."""
    monkeypatch.setattr(running, "STALLED", 1.0)
    job = jobs.add({"audio_url": web.slow_page("/a.wav", silent_wav)}, None, "owner", data_dir.job)
    scheduler.wake()
    done = finished(jobs, job)
    assert done.status == "error"
    assert "downloading the media" in done.error
    assert "uploading the file" in done.error
