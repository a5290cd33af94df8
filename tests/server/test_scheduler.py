"""The job queue, used by several threads and processes at once."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
import time

import orjson
import pytest
from tests.server.test_restarts import until

from voxframe_engine.answers import Cancelled, ModelFailed
from voxframe_engine.speech.engines import EngineChoice
from voxframe_server.jobs import JobStore, UnusableDatabaseError, Webhook, scheduler
from voxframe_server.jobs.data_dir import sweep
from voxframe_server.jobs.scheduler import JobScheduler, ServerInstance
from voxframe_server.jobs.webhook_delivery import WebhookQueue, WebhookSender


def queue(jobs, data_dir, count=1):
    """Create queued jobs that have media; return their ids, oldest first."""
    jobs.add_upload("u", "me")
    return [jobs.add({"audio_url": "http://127.0.0.1/upload/u"}, "u", "me", data_dir.job).id for _ in range(count)]


def test_database_is_safe_against_power_cuts(jobs):
    """The database uses a write-ahead log and syncs every commit to disk."""
    assert jobs.database.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert jobs.database.connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_jobs_are_taken_in_order_and_once(jobs, data_dir):
    """Eight threads with separate connections take forty jobs, each once, oldest first."""
    jobs.add_upload("u", "me")
    ids = [jobs.add({"audio_url": "x"}, "u", "me", data_dir.job).id for _ in range(40)]
    taken = []

    def take():
        own = JobStore(data_dir.database)
        while job := own.claim("speech", "me", 100):
            taken.append(job.id)
        own.close()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids)
    assert taken[0] == ids[0]


def test_no_more_jobs_than_the_limit_in_all_processes_together(jobs, data_dir):
    """The limit includes jobs of other processes."""
    queue(jobs, data_dir, 3)
    assert jobs.claim("speech", "one", 2)
    assert jobs.claim("speech", "two", 2)
    assert jobs.claim("speech", "two", 2) is None


def test_the_result_of_a_job_that_is_no_longer_held_is_ignored(jobs, data_dir):
    """A process that lost its job, or whose job was deleted, cannot overwrite later results."""
    job = queue(jobs, data_dir)[0]
    jobs.claim("speech", "one", 2)
    jobs.release("one")
    assert jobs.claim("speech", "two", 2).id == job
    assert not jobs.complete(job, "one")
    assert not jobs.fail(job, "one", "late")
    assert jobs.complete(job, "two")
    assert jobs.get(job).status == "completed"


def test_database_of_a_newer_version_is_not_touched(jobs, data_dir):
    """A database of a newer version is refused and not changed."""
    jobs.database.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UnusableDatabaseError, match=r"a newer voxframe .*version 99"):
        JobStore(data_dir.database)


def test_lock_of_a_process_ends_with_it(data_dir):
    """A running process is never considered dead; a killed one always is."""
    code = """if True:
        import pathlib, sys, time
        from voxframe_server.jobs.scheduler import ServerInstance
        print(ServerInstance(pathlib.Path(sys.argv[1])).name, flush=True)
        time.sleep(60)"""
    mine = ServerInstance(data_dir.instances)
    with subprocess.Popen([sys.executable, "-c", code, data_dir.instances], stdout=subprocess.PIPE, text=True) as other:
        name = other.stdout.readline().strip()
        assert not mine.is_dead(name)
        assert (data_dir.instances / f"{name}.lock").exists()
        other.kill()
    assert mine.is_dead(name)
    assert not (data_dir.instances / f"{name}.lock").exists()
    assert mine.is_dead("never-lived")
    assert not mine.is_dead(mine.name)
    mine.close()


def test_many_instances_start_at_once(data_dir):
    """No process considers another dead while that one starts."""
    made = []

    def begin():
        one = ServerInstance(data_dir.instances)
        one.sweep()
        made.append(one)

    threads = [threading.Thread(target=begin) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.stem for path in data_dir.instances.iterdir()} == {one.name for one in made}
    for one in made:
        one.close()


def test_an_interrupted_deletion_is_completed(jobs, data_dir):
    """An interrupted deletion is completed later; files in use are kept."""
    gone, kept = queue(jobs, data_dir, 2)
    for job in (gone, kept):
        data_dir.result(job).write_bytes(b"{}")
    jobs.delete(gone, {})
    lost, fresh, known = (data_dir.uploads / name for name in (".lost", ".fresh", "u"))
    for path in (lost, fresh, known):
        path.write_bytes(b"media")
    for path in (lost, known):
        os.utime(path, (time.time() - 9999,) * 2)
    sweep(jobs, data_dir)
    assert not data_dir.job(gone).exists()
    assert data_dir.result(kept).exists()
    assert [path.exists() for path in (lost, fresh, known)] == [False, True, True]


def test_end_of_a_worker_is_noticed_though_its_child_holds_the_pipe(jobs, data_dir, silent_wav, monkeypatch):
    """The end of a worker process is noticed although its child keeps the pipe open."""
    code = (
        "import subprocess,sys,os; subprocess.Popen([sys.executable,'-c','import time; time.sleep(600)']); os._exit(7)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    monkeypatch.setattr(
        scheduler,
        "_start_worker",
        lambda: subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes),
    )
    job = queue(jobs, data_dir)[0]
    data_dir.upload("u").write_bytes(silent_wav)
    running = JobScheduler(jobs, data_dir, choice=EngineChoice("parrot"))
    running.start()
    until(lambda: jobs.get(job).status == "error")
    running.stop()
    assert "ended with status 7, 2 times" in jobs.get(job).error


@pytest.fixture
def no_threads():
    """Return a context in which no thread can be started, because no machine has memory for such a stack."""

    @contextlib.contextmanager
    def refused():
        threading.stack_size(1 << 50)
        try:
            yield
        finally:
            threading.stack_size(0)

    return refused


@pytest.mark.skipif(sys.maxsize < 1 << 50, reason="stacks of that size exist only on machines with 64 bits")
def test_a_lack_of_threads_delays_a_job(jobs, data_dir, no_threads, silent_wav, caplog):
    """A job whose thread cannot be started waits in the queue, and is completed once threads can be started again."""
    job = queue(jobs, data_dir)[0]
    data_dir.upload("u").write_bytes(silent_wav)
    running = JobScheduler(jobs, data_dir, choice=EngineChoice("parrot"))
    running._swept = time.monotonic()  # no thread for a sweep now
    running.start()
    until(lambda: jobs.get(job).status == "completed")
    with no_threads():
        later = jobs.add({"audio_url": "http://127.0.0.1/upload/u"}, "u", "me", data_dir.job).id
        running.wake()
        until(lambda: "can't start new thread" in caplog.text)
        assert jobs.get(later).status == "queued"
    until(lambda: jobs.get(later).status == "completed")
    running.stop()


@pytest.mark.skipif(sys.maxsize < 1 << 50, reason="stacks of that size exist only on machines with 64 bits")
def test_a_lack_of_threads_delays_a_notification(jobs, data_dir, no_threads, caplog):
    """A notification whose thread cannot be started is sent later."""
    caplog.set_level(logging.INFO, "voxframe_server")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        sender = WebhookSender(WebhookQueue(jobs.database), lambda _: None, 0.1)
        sender.start()
        request = {"audio_url": "http://192.0.2.1/a", "webhook_url": url}
        with no_threads():
            jobs.add(request, None, "", data_dir.job, Webhook(("transcript",), allowed=True))
            job = jobs.claim("fetch", "worker", 9)
            assert jobs.fail(job.id, "worker", "no reason")
            sender.wake()
            until(lambda: "can't start new thread" in caplog.text)
        jobs.database.connection.execute("UPDATE webhooks SET due = 0")  # instead of a wait of twelve seconds
        until(lambda: "could not be reached" in caplog.text)
        sender.stop()


@pytest.fixture
def run_job(jobs, data_dir, silent_wav):
    """Return a function that runs one job with auto_chapters, whose result a function rewrites, and returns its id."""
    running = []

    def run(rewrite):
        jobs.add_upload("u", "me")
        data_dir.upload("u").write_bytes(silent_wav)
        request = {"audio_url": "http://127.0.0.1/upload/u", "auto_chapters": True}
        job = jobs.add(request, "u", "me", data_dir.job).id
        running.append(JobScheduler(jobs, data_dir, choice=EngineChoice("parrot"), rewrite=rewrite))
        running[0].start()
        return job

    yield run
    running[0].stop()


def test_texts_are_rewritten_before_a_job_is_completed(jobs, data_dir, run_job):
    """Who sees a completed job sees the written texts; all else of its result stays."""
    job = run_job(lambda result, request, report: {"summary": f"{min(result)} {request['auto_chapters']}"})
    until(lambda: jobs.get(job).status == "completed")
    result = orjson.loads(data_dir.result(job).read_bytes())
    assert result["summary"] == f"{min(result.keys() - {'summary'})} True"


def test_a_writer_that_fails_costs_its_texts_only(jobs, data_dir, run_job, caplog):
    """The job is completed with the texts of the analyses, and the log has the reason."""

    def rewrite(result, request, report):
        raise ModelFailed(500, "no memory")

    job = run_job(rewrite)
    until(lambda: jobs.get(job).status == "completed")
    assert "no memory" in caplog.text


def test_a_deleted_job_is_not_written_any_more(jobs, data_dir, run_job):
    """A report of progress raises `Cancelled` once the job is deleted."""
    begun, ended = threading.Event(), threading.Event()

    def rewrite(result, request, report):
        begun.set()
        try:
            while True:
                report(0.5)
                time.sleep(0.01)
        except Cancelled:
            ended.set()
            raise

    job = run_job(rewrite)
    assert begun.wait(60)
    jobs.delete(job, {})
    assert ended.wait(60)
