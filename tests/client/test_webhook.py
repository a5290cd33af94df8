import hmac
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
def inbox() -> Iterator[webhooks.WebhookReceiver]:
    with webhooks.listen(header=(NAME, VALUE)) as listening:
        yield listening


def post(inbox: webhooks.WebhookReceiver, body: Any, *, url: str | None = None, header: str | None = VALUE) -> int:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if header is None else {NAME.upper(): header}
    return requests.post(url or inbox.url, data=data, headers=headers, timeout=10).status_code


def test_documented_bodies_are_parsed(payload_folder: Path) -> None:
    """Each documented body gives its id, status and URL."""
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
def test_a_body_is_parsed_in_any_form(body: Any) -> None:
    """Bytes, text and parsed JSON give the same notification; unknown fields are in `raw`."""
    found = webhooks.parse(body, params={"job": "7"})
    assert (found.transcript_id, found.status, found.params) == ("one", "completed", {"job": "7"})


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"{}", b'{"status": "completed"}', b"\xff\xfe", None, 5])
def test_an_invalid_body_is_refused(body: bytes) -> None:
    """Any other body raises a PayloadError."""
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
def test_the_header_is_found_in_any_framework(headers: Any) -> None:
    """The header is found in upper or lower case, in any kind of mapping."""
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
def test_other_headers_are_not_verified(headers: Any) -> None:
    """A missing, empty or similar value, or a second wrong value, is not verified."""
    assert not webhooks.verify(headers, NAME, VALUE)


def test_an_empty_secret_verifies_nothing() -> None:
    """An empty secret verifies no request."""
    assert not webhooks.verify({NAME: ""}, NAME, "")
    with pytest.raises(OptionError, match="the webhook_auth_header_value of the job as text, got NoneType"):
        webhooks.verify({NAME: ""}, NAME, None)  # type: ignore[arg-type]


def test_the_comparison_takes_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are only compared by `hmac.compare_digest`, whose time does not depend on where they differ."""
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *values: compared.append(values) or compare(*values))
    assert not webhooks.verify({NAME: "guess"}, NAME, "value")
    assert not webhooks.verify([(NAME, "guess"), (NAME, "value")], NAME, "value")
    assert compared == [(b"guess", b"value"), (b"guess", b"value"), (b"value", b"value")]


def test_a_notification_is_received(inbox: webhooks.WebhookReceiver) -> None:
    """A notification posted to the URL of the receiver can be read from it."""
    assert post(inbox, DONE) == 200
    found = inbox.get(timeout=5)
    assert (found.transcript_id, found.status) == ("one", "completed")


def test_options_address_the_receiver() -> None:
    """A job submitted with the receiver's options is identified by its parameters, and the secret is hidden."""
    with webhooks.listen() as inbox:
        options = inbox.options(job="a b&c")
        name, value = options["webhook_auth_header_name"], options["webhook_auth_header_value"]
        answer = requests.post(options["webhook_url"], json=DONE, headers={name: value}, timeout=10)
        assert answer.status_code == 200
        assert inbox.get(5).params == {"job": "a b&c"}
        assert value not in repr(inbox) + repr(vars(inbox))


def test_requests_without_the_secret_are_refused(inbox: webhooks.WebhookReceiver) -> None:
    """A wrong or missing header and a wrong path are refused."""
    parts = urlsplit(inbox.url)
    assert post(inbox, DONE, header="wrong") == 401
    assert post(inbox, DONE, header=None) == 401
    assert post(inbox, DONE, url=f"http://{parts.netloc}/") == 404
    assert requests.get(inbox.url, timeout=10).status_code == 501
    with pytest.raises(ServiceTimeoutError, match=parts.netloc):
        inbox.get(0.2)
    assert inbox.refused == 3


def test_redacted_audio_may_come_without_the_header(inbox: webhooks.WebhookReceiver) -> None:
    """Redacted audio is accepted without the header, but not with a wrong one."""
    body = {"status": "redacted_audio_ready", "redacted_audio_url": "https://audio.example/a.mp3?Signature=1"}
    assert post(inbox, body, header="wrong") == 401
    assert post(inbox, body, header=None) == 200
    found = inbox.get(5)
    assert found.redacted_audio_url == body["redacted_audio_url"]
    assert "Signature" not in repr(found)
    with pytest.raises(ServiceError, match="no client"):
        found.transcript()


def test_duplicates_are_dropped(inbox: webhooks.WebhookReceiver) -> None:
    """Each notification is returned once, although it is delivered repeatedly in any order."""
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


def test_only_the_newest_notifications_are_remembered(
    inbox: webhooks.WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: a repetition is recognised among the newest notifications, and the oldest are forgotten."""
    monkeypatch.setattr("voxframe.webhooks._MAX_SEEN", 2)
    for name in ("a", "b", "a", "c", "b", "c", "a"):
        assert post(inbox, {"transcript_id": name, "status": "completed"}) == 200
    assert [inbox.get(timeout=1).transcript_id for _ in range(4)] == ["a", "b", "c", "a"]
    assert inbox.repeated == 3


def test_iteration_ends_when_the_receiver_is_closed(inbox: webhooks.WebhookReceiver) -> None:
    """Iteration waits for notifications and ends when the receiver is closed."""
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


def test_concurrent_notifications_are_received(inbox: webhooks.WebhookReceiver) -> None:
    """Notifications that arrive at the same time are all received."""

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


def test_invalid_requests_are_refused(inbox: webhooks.WebhookReceiver) -> None:
    """A body that is too large, invalid or without a length is refused."""
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


def test_the_queue_is_bounded(inbox: webhooks.WebhookReceiver) -> None:
    """If notifications are not read, further ones get a 503 and are accepted later."""
    for i in range(1000):
        assert inbox._take(webhooks.parse({"transcript_id": str(i), "status": "completed"})) == 200
    assert post(inbox, DONE) == 503
    inbox.get()
    assert post(inbox, DONE) == 200


def test_a_slow_sender_is_disconnected(inbox: webhooks.WebhookReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that does not arrive in time is disconnected."""
    monkeypatch.setattr(webhooks, "_REQUEST_SECONDS", 0.5)
    parts = urlsplit(inbox.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as slow:
        slow.sendall(f"POST {parts.path} HTTP/1.1\r\nContent-Length: 50\r\n\r\n".encode())

        def send_forever() -> None:
            while True:
                slow.sendall(b" ")
                time.sleep(0.05)

        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_forever()
    assert post(inbox, DONE) == 200


def test_the_receiver_listens_on_loopback_only(inbox: webhooks.WebhookReceiver) -> None:
    """The receiver cannot be reached from the network."""
    assert inbox._server.server_address[0] == "127.0.0.1"
    with pytest.raises(SettingsError, match="port=0"):
        webhooks.listen(port=inbox._server.server_port)
    with pytest.raises(OptionError, match="pair"):
        webhooks.listen(header="X-Notified")  # type: ignore[arg-type]


def test_a_notification_leads_to_the_transcript(client: Any, peer: Any) -> None:
    """`transcript()` fetches the transcript from the service, whatever the body contained."""
    peer.on("GET", "/v2/transcript/one", {"id": "one", "status": "completed", "text": "From the service."})
    with webhooks.listen(header=(NAME, VALUE), client=client) as inbox:
        post(inbox, DONE | {"text": "From the body."})
        assert inbox.get(5).transcript().text == "From the service."
    assert webhooks.parse(DONE).transcript(client).text == "From the service."


def test_verify_names_what_is_missing() -> None:
    """A name that is no text, and headers that are none, are named."""
    with pytest.raises(OptionError, match="name must be the webhook_auth_header_name of the job as text, got NoneType"):
        webhooks.verify({}, None, VALUE)  # type: ignore[arg-type]
    for headers in (None, "X-Notified: a"):
        with pytest.raises(OptionError, match="headers must be a mapping or pairs of the headers, got"):
            webhooks.verify(headers, NAME, VALUE)  # type: ignore[arg-type]


def test_an_empty_parameter_is_kept(inbox: webhooks.WebhookReceiver) -> None:
    """A parameter of the webhook URL without a value is returned too."""
    assert post(inbox, DONE, url=inbox.options(job="", part="2")["webhook_url"]) == 200
    assert inbox.get(10).params == {"job": "", "part": "2"}
    with pytest.raises(OptionError, match="timeout must be a number of at least 0 seconds, got '5'"):
        inbox.get("5")  # type: ignore[arg-type]
