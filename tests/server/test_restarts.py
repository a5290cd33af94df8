"""Jobs when processes die, and when several servers share a data directory."""

import contextlib
import time
from pathlib import Path

import psutil
import pytest
from tests.server.test_realtime import open_stream


def children(service):
    """Return the worker processes of a server."""
    return [p for p in psutil.Process(service.process.pid).children(recursive=True) if p.is_running()]


def command(process):
    """Return the command line of a process; empty if the process has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also a process that has ended and is not yet reaped
        return ""


def has_engine(process):
    """Return True if a process has loaded the library of a speech engine, which it does when it starts to work."""
    try:
        return any("ctranslate2" in file.path for file in process.memory_maps())
    except psutil.NoSuchProcess:
        return False


def until(condition, seconds=30, *, what="the condition"):
    """Wait until a condition is true; return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.02)
    return found


def test_queued_job_survives_kill_9(start, web, silent_wav):
    """A server killed during a download leaves no process, and the next one completes the job."""
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
    """A server that is stopped normally leaves nothing incomplete either."""
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
    """Two servers see each other's jobs, every job runs once, and neither takes over the other's jobs."""
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


def test_another_server_completes_the_jobs_of_a_killed_one(start, web, silent_wav):
    """If one of two servers is killed, the other completes its jobs without a restart."""
    url = web.slow_page("/a.wav", silent_wav)
    first = start("--allow-origin", web.origin)
    job = first.create(url)["id"]
    until(lambda: web.asked)
    second = start("--allow-origin", web.origin)
    first.kill()
    web.finish.set()
    assert second.wait(job)["status"] == "completed"


def test_worker_that_crashes_twice_is_an_error_with_a_reason(start, web, silent_wav):
    """A job that crashes twice is an error with a reason, and the server continues."""
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


def test_a_job_that_crashed_once_is_repeated(start, web, silent_wav):
    """A job that crashes once can be completed by the second attempt."""
    url = web.slow_page("/a.wav", silent_wav)
    service = start("--allow-origin", web.origin)
    job = service.create(url)["id"]
    until(lambda: web.asked)
    until(lambda: children(service))[0].kill()
    web.finish.set()
    assert service.wait(job)["status"] == "completed"


def test_delete_stops_work_under_way(start, web, silent_wav):
    """Deleting a running job stops its worker and leaves no file."""
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
    """Downloads beyond the limit wait with throttled true, and have throttled false once they are done."""
    urls = [web.slow_page(f"/{n}.wav", silent_wav) for n in range(6)]
    service = start("--allow-origin", web.origin)
    jobs = [service.create(url)["id"] for url in urls]

    def throttled():
        return {item["id"] for item in service.get("/v2/transcript?throttled_only=True").json()["transcripts"]}

    until(lambda: len(throttled()) >= 2, what="two throttled jobs")
    assert throttled() == set(jobs[4:])
    assert service.transcript(jobs[5])["throttled"] is True
    assert service.transcript(jobs[0])["throttled"] is None
    web.finish.set()
    assert [service.wait(job)["throttled"] for job in jobs[4:]] == [False, False]
    assert throttled() == set()


@pytest.mark.long
@pytest.mark.speech
def test_speech_survives_kill_9(start):
    """A transcription interrupted by kill -9 is completed by the next server."""
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


@pytest.mark.speech
@pytest.mark.skipif(not psutil.LINUX, reason="elsewhere a process that is stopped cannot look for its parent")
def test_all_processes_end_with_a_killed_server(start, web, silent_wav):
    """Killing the server ends the processes of a download, a job and a session, even if they are stopped."""
    service = start("--allow-origin", web.origin)
    service.create(web.slow_page("/a.wav", silent_wav))
    recording = (Path(__file__).parents[2] / "data" / "call.flac").read_bytes()
    service.create(service.upload(recording), audio_end_at=60_000)
    with open_stream(service.url) as stream:
        stream.recv(30)

        def all_at_work():
            found = {process: line for process in children(service) if (line := command(process))}
            decoders = [process for process, line in found.items() if "realtime.decode_pool" in line]
            workers = [process for process, line in found.items() if "jobs.worker_process" in line]
            there = (
                web.asked
                and len(workers) == 2
                and any(map(has_engine, workers))
                and any("multiprocessing.forkserver" in line for line in found.values())
                and any("realtime.stream_worker" in line for line in found.values())
                and decoders
                and all(map(has_engine, decoders))
            )
            return found if there else {}

        found = until(all_at_work, 60, what="a process of each kind at work")
        for process, line in found.items():
            if "resource_tracker" not in line:  # Python's own, which ends with its pipe
                with contextlib.suppress(psutil.NoSuchProcess):  # the one that decodes the file may be done
                    process.suspend()  # as native code that holds the interpreter does
        service.kill()
        _, alive = psutil.wait_procs(found, 10)
        for process in alive:
            process.kill()
    assert alive == []


@pytest.mark.skipif(not psutil.LINUX, reason="uses the process tree of Linux")
def test_a_worker_process_is_kept_after_a_job_and_replaced_after_an_error(start, silent_wav):
    """The second job has the worker of the first; after a hostile file the next job has another one and is done."""
    service = start()

    def run(media):
        done = service.wait(service.create(service.upload(media))["id"])
        return done["status"], {p.pid for p in children(service) if "worker_process" in command(p)}

    assert run(silent_wav)[0] == "completed"
    first = until(lambda: {p.pid for p in children(service) if "worker_process" in command(p)})
    assert run(silent_wav) == ("completed", first)
    assert run(b"RIFF\xff\xff\xff\xffWAVEfmt " + bytes(range(256)) * 20)[0] == "error"
    status, after = run(silent_wav)
    assert status == "completed"
    assert not first & after
