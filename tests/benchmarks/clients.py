"""Requests, jobs and errors of one embedded server that several clients use at the same time for minutes."""

import argparse
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.server.conftest import Service, silence
from tests.server.test_concurrent_clients import CLIENTS, use_server


def main(arguments: list[str]) -> int:
    """Run the clients and print the counts. Return 1 if a response was an error or a job did not complete once."""
    parser = argparse.ArgumentParser(prog="clients", description=__doc__)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=180)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder, "data"))
        wav = silence()
        with ThreadPoolExecutor(given.clients) as pool:
            results = list(pool.map(lambda _: use_server(service.url, wav, given.seconds), range(given.clients)))
        statuses = sum((statuses for _, statuses in results), Counter[int]())
        service.stop()
        log = service.log.read_text()
    jobs = [job for made, _ in results for job in made]
    once = sum(log.count(f"job {job}: completed") == 1 for job in jobs)
    print(f"{given.clients} clients for {given.seconds:g} s: {statuses.total()} requests, by status {dict(statuses)}")
    print(f"{len(jobs)} jobs, {once} completed once; {log.count('Traceback')} tracebacks in the log")
    return int(statuses.keys() != {200} or once < len(jobs) or "Traceback" in log)
