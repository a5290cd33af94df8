"""The queue in SQLite, where several threads and processes use it at once."""

import os
import subprocess
import sys
import threading
import time

import pytest

from voxframe.local import runner
from voxframe.local.instances import Instance
from voxframe.local.jobs import Jobs
from voxframe.local.sweep import sweep


def queue(jobs, places, count=1):
    """Ids of jobs whose media is there, oldest first."""
    jobs.add_upload("u", "me")
    return [jobs.add({"audio_url": "http://127.0.0.1/upload/u"}, "u", "me", places.job).id for _ in range(count)]


def test_database_is_safe_against_power_cuts(jobs):
    """Write-ahead log, and every commit on disk before it counts."""
    assert jobs.database.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert jobs.database.connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_jobs_are_taken_in_order_and_once(jobs, places):
    """Eight threads with a connection each take forty jobs: each once, the oldest first."""
    jobs.add_upload("u", "me")
    ids = [jobs.add({"audio_url": "x"}, "u", "me", places.job).id for _ in range(40)]
    taken = []

    def take():
        own = Jobs(places.database)
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


def test_no_more_jobs_than_the_limit_in_all_processes_together(jobs, places):
    """What another process works on counts."""
    queue(jobs, places, 3)
    assert jobs.claim("speech", "one", 2)
    assert jobs.claim("speech", "two", 2)
    assert jobs.claim("speech", "two", 2) is None


def test_outcome_of_a_job_that_is_no_longer_held_is_dropped(jobs, places):
    """A process that was taken for dead, or whose job was deleted, cannot overwrite what came after."""
    job = queue(jobs, places)[0]
    jobs.claim("speech", "one", 2)
    jobs.release("one")
    assert jobs.claim("speech", "two", 2).id == job
    assert not jobs.complete(job, "one")
    assert not jobs.fail(job, "one", "late")
    assert jobs.complete(job, "two")
    assert jobs.get(job).status == "completed"


def test_database_of_a_newer_version_is_not_touched(jobs, places):
    """An older voxframe says so instead of guessing."""
    import sqlite3

    jobs.database.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(sqlite3.DatabaseError, match="version 99"):
        Jobs(places.database)


def test_lock_of_a_process_ends_with_it(places):
    """A living process is never taken for dead, a killed one always is."""
    code = """if True:
        import pathlib, sys, time
        from voxframe.local.instances import Instance
        print(Instance(pathlib.Path(sys.argv[1])).name, flush=True)
        time.sleep(60)"""
    mine = Instance(places.instances)
    with subprocess.Popen([sys.executable, "-c", code, places.instances], stdout=subprocess.PIPE, text=True) as other:
        name = other.stdout.readline().strip()
        assert not mine.is_dead(name)
        assert (places.instances / f"{name}.lock").exists()
        other.kill()
    assert mine.is_dead(name)
    assert not (places.instances / f"{name}.lock").exists()
    assert mine.is_dead("never-lived")
    assert not mine.is_dead(mine.name)
    mine.close()


def test_many_instances_start_at_once(places):
    """None takes another for dead while it starts."""
    made = []

    def begin():
        one = Instance(places.instances)
        one.sweep()
        made.append(one)

    threads = [threading.Thread(target=begin) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.stem for path in places.instances.iterdir()} == {one.name for one in made}
    for one in made:
        one.close()


def test_deletion_that_was_cut_off_is_finished(jobs, places):
    """A kill between the database and the disk leaves nothing for good; what is in use stays."""
    gone, kept = queue(jobs, places, 2)
    for job in (gone, kept):
        places.result(job).write_bytes(b"{}")
    jobs.delete(gone, {})
    lost, fresh, known = (places.uploads / name for name in (".lost", ".fresh", "u"))
    for path in (lost, fresh, known):
        path.write_bytes(b"media")
    for path in (lost, known):
        os.utime(path, (time.time() - 9999,) * 2)
    sweep(jobs, places)
    assert not places.job(gone).exists()
    assert places.result(kept).exists()
    assert [path.exists() for path in (lost, fresh, known)] == [False, True, True]


def test_worker_process_that_hangs_is_noticed(monkeypatch):
    """One that says nothing for long is given up."""
    monkeypatch.setattr(runner, "STALLED", 0.3)
    monkeypatch.setattr(runner, "_TICK", 0.1)
    code = "import time; print('{\"progress\": 0.5}', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    messages = runner._messages(child)
    assert next(messages) == {"progress": 0.5}
    assert next(messages) is None
    runner._kill(child)
    assert child.returncode is not None
    child.stdout.close()


def test_end_of_a_worker_is_noticed_though_its_child_holds_the_pipe(monkeypatch):
    """A process that the worker started must not make it look alive."""
    monkeypatch.setattr(runner, "_TICK", 0.1)
    code = (
        "import subprocess,sys,os; subprocess.Popen([sys.executable,'-c','import time; time.sleep(60)']); os._exit(7)"
    )
    began = time.monotonic()
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert list(runner._messages(child)) == []
    assert time.monotonic() - began < 20
    assert child.returncode == 7
    child.stdout.close()
