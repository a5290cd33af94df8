"""Eight clients that use the server at the same time. `python -m tests.benchmarks clients` does it for 3 minutes."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from tests.server.conftest import KEY

CLIENTS = 8


def use_server(url: str, wav: bytes, seconds: float) -> tuple[list[str], Counter[int]]:
    """Submit, poll, list and export jobs at least once and for `seconds`; return the job ids and the statuses seen."""
    statuses: Counter[int] = Counter()
    jobs: list[str] = []
    until = time.monotonic() + seconds
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = KEY

        def call(method: str, path: str, **content: Any) -> Any:
            response = session.request(method, path if path.startswith("http") else url + path, timeout=120, **content)
            statuses[response.status_code] += 1
            return response.json()

        while not jobs or time.monotonic() < until:
            upload_url = call("POST", "/v2/upload", data=wav)["upload_url"]
            job = call("POST", "/v2/transcript", json={"audio_url": upload_url})["id"]
            jobs.append(job)
            while call("GET", f"/v2/transcript/{job}")["status"] in ("queued", "processing"):
                call("GET", "/v2/transcript?limit=5")
                time.sleep(0.2)
            assert call("GET", f"/v2/transcript/{job}/sentences") == {
                "id": job,
                "sentences": [],
                "confidence": 0.0,
                "audio_duration": 1,
            }
    return jobs, statuses


@pytest.mark.parametrize("seconds", [0, pytest.param(4, marks=pytest.mark.long)])
def test_eight_clients_are_all_served(service: Any, silent_wav: bytes, seconds: float) -> None:
    """Every request succeeds, every job of every client completes once, and the log contains no error."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(lambda _: use_server(service.url, silent_wav, seconds), range(CLIENTS)))
    jobs = [job for made, _ in results for job in made]
    assert len(jobs) >= CLIENTS
    assert sum((statuses for _, statuses in results), Counter()).keys() == {200}
    assert all(service.transcript(job)["status"] == "completed" for job in jobs)
    log = service.log.read_text()
    assert [log.count(f"job {job}: completed") for job in jobs] == [1] * len(jobs)
    assert "Traceback" not in log
    assert "trying again" not in log
