"""Slow but steady downloads, with the scheduler in this process and short limits."""

import logging
import re
import time
from types import SimpleNamespace

import pytest

from voxframe_server.jobs import scheduler as running
from voxframe_server.jobs.scheduler import JobScheduler


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
    passed, reports = 0.0, []  # `passed`: seconds that the scheduler's clock is ahead
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed, sleep=time.sleep))
    caplog.set_level(logging.INFO, "voxframe_server")

    def answer(handler):
        """Send an eighth and then single bytes until the worker has reported it, four times; then the rest."""
        nonlocal passed
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(silent_wav)))
        handler.end_headers()
        left, size = silent_wav, len(silent_wav) // 8
        for eighth in range(1, 5):
            handler.wfile.write(left[:size])
            left = left[size:]
            while scheduler.downloads().get(job.id, {"bytes": 0})["bytes"] * 8 < eighth * len(silent_wav):
                handler.wfile.write(left[:1])
                left = left[1:]
                time.sleep(0.02)
            reports.append(scheduler.downloads()[job.id])
            passed += 0.7 * running.STALLED
        handler.wfile.write(left)

    web.pages["/a.wav"] = answer
    job = jobs.add({"audio_url": f"{web.origin}/a.wav"}, None, "owner", data_dir.job)
    scheduler.wake()
    done = finished(jobs, job)
    assert (done.status, done.error, done.crashes) == ("completed", None, 0)
    assert len(web.asked) == 1
    sizes = [report["bytes"] for report in reports]
    assert [size * 8 >= len(silent_wav) * n for n, size in enumerate(sizes, 1)] == [True] * 4
    assert {report["of"] for report in reports} == {len(silent_wav)}
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


def test_exception_of_a_worker_is_in_the_error(jobs, data_dir, web, scheduler, silent_wav):
    """A job that ends with an exception twice has its class and message in `error`."""
    web.finish.set()  # not slow
    job = jobs.add({"audio_url": web.slow_page("/a.wav", silent_wav)}, None, "owner", data_dir.job)
    data_dir.result(job.id).mkdir()  # where a worker writes its result
    scheduler.wake()
    done = finished(jobs, job)
    assert done.status == "error"
    assert re.search("ended with .*, 2 times. The error is IsADirectoryError: ", done.error)
