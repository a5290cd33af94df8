"""A server that is killed repeatedly at any moment."""

import json
import random
import sqlite3
import threading
import time
from pathlib import Path

import pytest
import requests
from tests.server.conftest import silence

ROUNDS = 5
SPEECH = Path(__file__).parents[2] / "data" / "call.flac"
SPEECH_SECONDS = 59


@pytest.mark.long
@pytest.mark.speech
def test_every_job_outlives_kills_at_any_moment(start, web):
    """Every job ends exactly once, with the right status, although the server is killed at random moments."""
    seed = time.time_ns()
    chance = random.Random(seed)
    print(f"seed {seed}")
    lengths: dict[str, float] = {}  # of each job that was promised, in seconds
    tried = 0
    services = []
    for _ in range(ROUNDS):
        service = start("--allow-origin", web.origin)
        services.append(service)
        threading.Timer(chance.uniform(0.05, 1.2), service.process.kill).start()
        try:
            while True:
                tried += 1
                seconds = 1 + tried % 7
                if tried % 3:
                    options = {"audio_url": web.page(f"/{tried}.wav", silence(seconds))}
                elif tried % 2:
                    options = {"audio_url": service.upload(silence(seconds))}
                else:
                    options = {"audio_url": service.upload(SPEECH.read_bytes()), "audio_end_at": 2000}
                lengths[service.create(**options)["id"]] = SPEECH_SECONDS if "audio_end_at" in options else seconds
                time.sleep(chance.uniform(0, 0.3))
        except requests.RequestException:
            service.process.wait(10)

    last = start("--allow-origin", web.origin)
    for job, seconds in lengths.items():
        done = last.wait(job)
        assert done["status"] == "completed", done["error"]
        assert done["audio_duration"] == seconds
    rows = sqlite3.connect(last.data_dir / "jobs.sqlite").execute("SELECT id, status, holder FROM jobs").fetchall()
    noted = {job: status for job, status, _ in rows}
    for job in noted.keys() - lengths.keys():  # noted, and killed before it could be promised
        last.wait(job)
    assert lengths.keys() <= noted.keys()
    assert len(noted) <= tried
    assert all(json.loads((last.data_dir / "jobs" / job / "result.json").read_bytes()) for job in lengths)
    logs = "".join(service.log.read_text() for service in [*services, last])
    assert all(logs.count(f"{job}: completed") <= 1 for job in noted)
    assert "trying again" not in logs  # a kill of the service is not held against a job
