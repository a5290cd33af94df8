"""A server with a database that another program uses."""

import sqlite3
import time

import pytest
from tests.server.conftest import silence

MARK = "secretname"


@pytest.fixture
def other(start):
    """A running server, and a connection of another program to its database."""
    service = start()
    connection = sqlite3.connect(service.data_dir / "jobs.sqlite", isolation_level=None)
    yield service, connection
    connection.close()


def marked(service):
    """Create a transcript with a recognizable text in its request; return its id."""
    spelling = [{"from": [MARK], "to": "Othername"}]
    return service.wait(service.create(service.upload(silence()), custom_spelling=spelling)["id"])["id"]


def test_open_read_transaction_holds_up_no_request(other):
    """While another program reads, 5 of 5 deletions and 40 of 40 other requests succeed; the wipe follows later."""
    service, reader = other
    jobs = [marked(service) for _ in range(5)]
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (5,)
    answers = []
    for job in jobs:
        answers.append(service.request("DELETE", f"/v2/transcript/{job}").status_code)
        for _ in range(4):
            answers.append(service.get("/v2/transcript").status_code)
            answers.append(service.request("POST", "/v2/upload", data=b"no audio").status_code)
    assert answers == [200] * 45
    assert service.holds(MARK)
    reader.execute("COMMIT")
    until = time.monotonic() + 30
    while service.holds(MARK):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_locked_database_is_a_503_with_retry_after(other):
    """While another program writes, changes are a 503 with Retry-After, and reads succeed."""
    service, writer = other
    job = marked(service)
    writer.execute("BEGIN IMMEDIATE")
    create = {"audio_url": "http://192.0.2.1/a.mp3"}
    refused = [
        service.request("POST", "/v2/transcript", json=create),
        service.request("POST", "/v2/upload", data=b"bytes"),
        service.request("DELETE", f"/v2/transcript/{job}"),
    ]
    for answer in refused:
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "locked" in answer.json()["error"]
    assert service.get("/v2/transcript").json()["page_details"]["result_count"] == 1
    assert service.transcript(job)["status"] == "completed"
    writer.execute("ROLLBACK")
    assert service.request("POST", "/v2/transcript", json=create).status_code == 200
    deleted = service.request("DELETE", f"/v2/transcript/{job}")
    assert deleted.json()["text"] == "Deleted by user."
    assert [path for path in service.data_dir.glob("uploads/*") if path.read_bytes() == b"bytes"] == []
