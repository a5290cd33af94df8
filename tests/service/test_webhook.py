import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from requests.structures import CaseInsensitiveDict
from starlette.datastructures import Headers

from voxframe import webhooks
from voxframe.errors import OptionError, PayloadError, ServiceError, ServiceTimeoutError, SettingsError
from voxframe.settings import Secret

NAME, VALUE = "X-Notified", "a-secret-value"
DONE = {"transcript_id": "one", "status": "completed"}


@pytest.fixture
def inbox() -> Iterator[webhooks.Inbox]:
    with webhooks.listen(header=(NAME, VALUE)) as listening:
        yield listening


def post(inbox: webhooks.Inbox, body: Any, *, url: str | None = None, header: str | None = VALUE) -> int:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if header is None else {NAME.upper(): header}
    return requests.post(url or inbox.url, data=data, headers=headers, timeout=10).status_code


def test_the_example_bodies_are_understood(payload_folder: Path) -> None:
    """Each example notification gives its id, status and address."""
    for name in ("webhook_transcript_completed", "webhook_transcript_error", "TranscriptReadyNotification"):
        body = (payload_folder / f"{name}.json").read_bytes()
        found = webhooks.parse(body)
        assert (found.transcript_id, found.status) == (json.loads(body)["transcript_id"], json.loads(body)["status"])
        assert found.failed is (found.status == "error")
    body = (payload_folder / "webhook_redacted_audio.json").read_bytes()
    found = webhooks.parse(body)
    assert (found.transcript_id, found.status) == (None, "redacted_audio_ready")
    assert found.redacted_audio_url == json.loads(body)["redacted_audio_url"]


@pytest.mark.parametrize(
    "body", [b'{"transcript_id": "one", "status": "completed", "more": [1]}', json.dumps(DONE), DONE]
)
def test_a_body_comes_in_any_form(body: Any) -> None:
    """Bytes, text and what a framework has parsed already are the same; unknown fields stay in `raw`."""
    found = webhooks.parse(body, params={"job": "7"})
    assert (found.transcript_id, found.status, found.params) == ("one", "completed", {"job": "7"})


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"{}", b'{"status": "completed"}', b"\xff\xfe", None, 5])
def test_what_is_no_notification_is_refused(body: bytes) -> None:
    """Anything else is a PayloadError, never another exception."""
    with pytest.raises(PayloadError):
        webhooks.parse(body)


def message() -> Message:
    headers = Message()
    headers["x-NOTIFIED"] = VALUE
    return headers


@pytest.mark.parametrize(
    "headers",
    [
        {"x-notified": VALUE},
        {"X-NOTIFIED": VALUE},
        CaseInsensitiveDict({"X-Notified": VALUE}),
        Headers(raw=[(b"host", b"a"), (b"x-notified", VALUE.encode())]),
        [(b"x-notified", VALUE.encode()), (b"other", b"x")],
        [("X-Notified", VALUE)],
        {"HTTP_X_NOTIFIED": VALUE, "wsgi.version": (1, 0)},
        {"X-Notified": [VALUE]},
        message(),
    ],
    ids=["lower", "upper", "requests", "starlette", "asgi", "pairs", "wsgi", "lists", "http.server"],
)
def test_the_header_is_found_in_any_frameworks_headers(headers: Any) -> None:
    """The case of the name does not matter, nor what kind of mapping it is."""
    assert webhooks.verify(headers, NAME, VALUE)
    assert webhooks.verify(headers, NAME.lower(), Secret(VALUE))
    assert not webhooks.verify(headers, NAME, VALUE + "x")
    assert not webhooks.verify(headers, "X-Other", VALUE)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {NAME: ""},
        {NAME: VALUE[:-1]},
        {NAME: VALUE.upper()},
        [(NAME, VALUE), (NAME, "x")],
        {NAME: None},
        {NAME: "\udcff"},
    ],
)
def test_anything_else_is_not_verified(headers: Any) -> None:
    """Missing, empty, nearly right, and right only once of twice are all wrong."""
    assert not webhooks.verify(headers, NAME, VALUE)


def test_an_empty_secret_verifies_nothing() -> None:
    """A secret that was not configured lets nobody in."""
    assert not webhooks.verify({NAME: ""}, NAME, "")
    with pytest.raises(OptionError, match="the secret is a NoneType"):
        webhooks.verify({NAME: ""}, NAME, None)  # type: ignore[arg-type]


def test_the_comparison_takes_the_same_time_wherever_the_values_differ() -> None:
    """The time says nothing about how much of a guess was right: early and late differences cost the same."""
    value = "s" * 4000
    early, late = "x" + value[1:], value[:-1] + "x"

    def cost(guess: str) -> float:
        return min(timed(guess) for _ in range(15))

    def timed(guess: str) -> float:
        begun = time.perf_counter()
        for _ in range(200):
            webhooks.verify({NAME: guess}, NAME, value)
        return time.perf_counter() - begun

    assert cost(early) / cost(late) == pytest.approx(1.0, abs=0.35)


def test_a_notification_arrives(inbox: webhooks.Inbox) -> None:
    """What is posted to the inbox's address can be taken from it."""
    assert post(inbox, DONE) == 200
    found = inbox.get(timeout=5)
    assert (found.transcript_id, found.status) == ("one", "completed")


def test_options_lead_to_the_inbox() -> None:
    """A job submitted with the inbox's options is told apart by its parameters; the secret is not shown."""
    with webhooks.listen() as inbox:
        options = inbox.options(job="a b&c")
        name, value = options["webhook_auth_header_name"], options["webhook_auth_header_value"]
        answer = requests.post(options["webhook_url"], json=DONE, headers={name: value}, timeout=10)
        assert answer.status_code == 200
        assert inbox.get(5).params == {"job": "a b&c"}
        assert value not in repr(inbox) + repr(vars(inbox))


def test_only_who_knows_the_secret_gets_in(inbox: webhooks.Inbox) -> None:
    """A wrong header, none, or a wrong address is refused and leaves nothing behind."""
    parts = urlsplit(inbox.url)
    assert post(inbox, DONE, header="wrong") == 401
    assert post(inbox, DONE, header=None) == 401
    assert post(inbox, DONE, url=f"http://{parts.netloc}/") == 404
    assert requests.get(inbox.url, timeout=10).status_code == 501
    with pytest.raises(ServiceTimeoutError, match=parts.netloc):
        inbox.get(0.2)
    assert inbox.refused == 3


def test_redacted_audio_may_come_without_the_header(inbox: webhooks.Inbox) -> None:
    """The interface promises the header for finished transcripts only; a wrong one is refused all the same."""
    body = {"status": "redacted_audio_ready", "redacted_audio_url": "https://audio.example/a.mp3?Signature=1"}
    assert post(inbox, body, header="wrong") == 401
    assert post(inbox, body, header=None) == 200
    found = inbox.get(5)
    assert found.redacted_audio_url == body["redacted_audio_url"]
    assert "Signature" not in repr(found)
    with pytest.raises(ServiceError, match="no client"):
        found.transcript()


def test_repetitions_are_given_once_in_any_order(inbox: webhooks.Inbox) -> None:
    """The service delivers again when it is unsure; each notification is still taken once."""
    other = {"transcript_id": "two", "status": "error"}
    audio = [
        {"status": "redacted_audio_ready", "redacted_audio_url": f"https://audio.example/a.mp3?Signature={i}"}
        for i in (1, 2)
    ]
    for body in (other, DONE, other, audio[1], DONE, DONE, audio[0]):
        assert post(inbox, body) == 200
    taken = [inbox.get(5) for _ in range(3)]
    assert [(found.transcript_id, found.status) for found in taken] == [
        ("two", "error"),
        ("one", "completed"),
        (None, "redacted_audio_ready"),
    ]
    with pytest.raises(ServiceTimeoutError):
        inbox.get(0)
    assert inbox.repeated == 4


def test_iterating_ends_with_the_inbox(inbox: webhooks.Inbox) -> None:
    """A loop over the inbox waits for the next, and ends when the inbox is closed."""
    taken: list[str | None] = []
    loop = threading.Thread(target=lambda: taken.extend(found.transcript_id for found in inbox))
    loop.start()
    post(inbox, DONE)
    post(inbox, {"transcript_id": "two", "status": "completed"})
    until = time.monotonic() + 5
    while len(taken) < 2 and time.monotonic() < until and inbox._notifications.qsize():
        time.sleep(0.01)
    inbox.close()
    loop.join(5)
    assert not loop.is_alive()
    assert taken == ["one", "two"]
    with pytest.raises(ServiceError, match="closed"):
        inbox.get()


def test_many_deliveries_at_once_are_all_taken(inbox: webhooks.Inbox) -> None:
    """Notifications that come at the same time do not get in each other's way."""

    def deliver(part: int) -> None:
        for i in range(20):
            assert post(inbox, {"transcript_id": f"{part}-{i}", "status": "completed"}) == 200

    threads = [threading.Thread(target=deliver, args=(part,)) for part in range(8)]
    for thread in threads:
        thread.start()
    taken = {inbox.get(10).transcript_id for _ in range(160)}
    for thread in threads:
        thread.join()
    assert taken == {f"{part}-{i}" for part in range(8) for i in range(20)}


def test_bodies_are_bounded(inbox: webhooks.Inbox) -> None:
    """What is too large, has no length, or is no notification is answered at once and not kept."""
    parts = urlsplit(inbox.url)

    def ask(**headers: str) -> int:
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        connection.putrequest("POST", parts.path)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    assert ask(Content_Length="65537") == 413
    assert ask(Content_Length="9" * 5000) == 413
    assert ask() == 411
    assert ask(Content_Length="-1") == 411
    assert post(inbox, b"no json") == 400


def test_the_queue_is_bounded(inbox: webhooks.Inbox) -> None:
    """When nobody takes them, the service is asked to come again later, and the same one is then accepted."""
    for i in range(1000):
        assert inbox._take(webhooks.parse({"transcript_id": str(i), "status": "completed"})) == 200
    assert post(inbox, DONE) == 503
    inbox.get()
    assert post(inbox, DONE) == 200


def test_a_sender_that_dawdles_is_cut_off(inbox: webhooks.Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that does not arrive in time holds nothing open."""
    from voxframe.service import inbox as module

    monkeypatch.setattr(module, "_SECONDS", 0.5)
    parts = urlsplit(inbox.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as slow:
        slow.sendall(f"POST {parts.path} HTTP/1.1\r\nContent-Length: 50\r\n\r\n".encode())
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 5:
                slow.sendall(b" ")
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - begun < 3
    assert post(inbox, DONE) == 200


def test_it_listens_on_this_machine_only(inbox: webhooks.Inbox) -> None:
    """Nobody on the network can reach it."""
    assert inbox._server.server_address[0] == "127.0.0.1"
    with pytest.raises(SettingsError, match="port=0"):
        webhooks.listen(port=inbox._server.server_port)
    with pytest.raises(OptionError, match="pair"):
        webhooks.listen(header="X-Notified")  # type: ignore[arg-type]


def test_a_notification_becomes_a_handle(client: Any, peer: Any) -> None:
    """With a client, a notification leads to the transcript as the service has it, whatever the body said."""
    peer.on("GET", "/v2/transcript/one", {"id": "one", "status": "completed", "text": "From the service."})
    with webhooks.listen(header=(NAME, VALUE), client=client) as inbox:
        post(inbox, DONE | {"text": "From the body."})
        assert inbox.get(5).transcript().text == "From the service."
    assert webhooks.parse(DONE).transcript(client).text == "From the service."
