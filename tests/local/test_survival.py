"""What becomes of jobs when processes die, and when several share a data directory."""

import time

import psutil
import pytest


def children(service):
    """Worker processes of a service."""
    return [p for p in psutil.Process(service.process.pid).children(recursive=True) if p.is_running()]


def until(condition, seconds=30, *, what="the condition"):
    """Wait for something to be true; return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.02)
    return found


def test_queued_job_survives_kill_9(start, web, silent_wav):
    """A service that is killed during a download leaves a job that the next one finishes, and no process."""
    url = web.slow_page("/a.wav", silent_wav)
    first = start("--allow-origin", web.origin)
    job = first.create(url)["id"]
    worker = until(lambda: web.asked and children(first))[0]
    first.kill()
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, what="the end of the worker")
    web.finish.set()
    second = start("--allow-origin", web.origin)
    assert second.wait(job)["status"] == "completed"
    assert "queued again" in second.log.read_text()


def test_stop_queues_work_again_at_once(start, web, silent_wav):
    """A service that ends in peace leaves nothing half done either."""
    url = web.slow_page("/a.wav", silent_wav)
    first = start("--allow-origin", web.origin)
    job = first.create(url)["id"]
    worker = until(lambda: web.asked and children(first))[0]
    first.stop()
    assert first.process.returncode == 0
    assert not worker.is_running()
    assert list((first.data_dir / "instances").iterdir()) == []
    web.finish.set()
    second = start("--allow-origin", web.origin)
    assert second.wait(job)["status"] == "completed"


def test_two_services_share_a_data_directory(start, silent_wav):
    """Each sees the other's jobs, every job is done once, and neither takes the other's away."""
    first, second = start(), start()
    jobs = []
    for _ in range(6):
        jobs += [service.create(service.upload(silent_wav))["id"] for service in (first, second)]
    for job in jobs:
        assert first.wait(job)["status"] == "completed"
        assert second.transcript(job)["status"] == "completed"
    logs = first.log.read_text() + second.log.read_text()
    assert "queued again" not in logs
    for job in jobs:
        assert logs.count(f"{job}: speech") == 1
        assert logs.count(f"{job}: completed") == 1


def test_survivor_takes_over_from_a_killed_service(start, web, silent_wav):
    """Where two share the work and one is killed, the other finishes its jobs without a restart."""
    url = web.slow_page("/a.wav", silent_wav)
    first = start("--allow-origin", web.origin)
    job = first.create(url)["id"]
    until(lambda: web.asked)
    second = start("--allow-origin", web.origin)
    first.kill()
    web.finish.set()
    assert second.wait(job)["status"] == "completed"


def test_worker_that_crashes_twice_is_an_error_with_a_reason(start, web, silent_wav):
    """One more try, then the transcript says what happened; the service lives on."""
    url = web.slow_page("/a.wav", silent_wav)
    service = start("--allow-origin", web.origin)
    job = service.create(url)["id"]
    for attempt in (1, 2):
        until(lambda attempt=attempt: len(web.asked) == attempt)
        for worker in until(lambda: children(service)):
            worker.kill()
    failed = service.wait(job)
    assert failed["status"] == "error"
    assert "signal 9, 2 times" in failed["error"]
    assert service.wait(service.create(service.upload(silent_wav))["id"])["status"] == "completed"


def test_worker_that_crashes_once_is_forgiven(start, web, silent_wav):
    """The second try may well succeed."""
    url = web.slow_page("/a.wav", silent_wav)
    service = start("--allow-origin", web.origin)
    job = service.create(url)["id"]
    until(lambda: web.asked)
    until(lambda: children(service))[0].kill()
    web.finish.set()
    assert service.wait(job)["status"] == "completed"


def test_delete_stops_work_under_way(start, web, silent_wav):
    """Nobody waits for a job that was deleted, and nothing of it stays."""
    url = web.slow_page("/a.wav", silent_wav)
    service = start("--allow-origin", web.origin)
    job = service.create(url)["id"]
    worker = until(lambda: web.asked and children(service))[0]
    deleted = service.request("DELETE", f"/v2/transcript/{job}").json()
    assert deleted["status"] == "error"
    assert deleted["text"] == "Deleted by user."
    until(lambda: not worker.is_running(), what="the end of the worker")
    assert list((service.data_dir / "jobs").iterdir()) == []
    assert service.transcript(job)["status"] == "error"


def test_waiting_for_others_is_reported_as_throttled(start, web, silent_wav):
    """More downloads than run at once: the rest wait, say so, and no longer say so once they are done."""
    urls = [web.slow_page(f"/{n}.wav", silent_wav) for n in range(6)]
    service = start("--allow-origin", web.origin)
    jobs = [service.create(url)["id"] for url in urls]
    listed = until(lambda: service.get("/v2/transcript?throttled_only=True").json()["transcripts"])
    assert {item["id"] for item in listed} == set(jobs[4:])
    assert service.transcript(jobs[5])["throttled"] is True
    assert service.transcript(jobs[0])["throttled"] is None
    web.finish.set()
    assert [service.wait(job)["throttled"] for job in jobs[4:]] == [False, False]
    assert service.get("/v2/transcript?throttled_only=True").json()["transcripts"] == []


@pytest.mark.speech
def test_speech_survives_kill_9(start):
    """A recording whose transcription is cut off by kill -9 is transcribed by the next service."""
    from pathlib import Path

    recording = (Path(__file__).parents[2] / "data" / "call.flac").read_bytes()
    first = start()
    job = first.create(first.upload(recording), audio_end_at=30_000)["id"]
    until(lambda: first.transcript(job)["status"] == "processing" and children(first))
    time.sleep(1)
    workers = children(first)
    first.kill()
    until(
        lambda: not any(w.is_running() and w.status() != psutil.STATUS_ZOMBIE for w in workers), what="the workers' end"
    )
    second = start()
    done = second.wait(job)
    assert done["status"] == "completed"
    assert len(done["words"]) > 20
