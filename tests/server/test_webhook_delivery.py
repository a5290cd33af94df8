"""Notifications from the server to a receiver over loopback."""

import json
import socket
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest
import requests
from tests.server.conftest import Service

from voxframe_server.jobs import JobStore, Webhook, webhook_delivery
from voxframe_server.jobs.data_dir import DataDir
from voxframe_server.jobs.webhook_delivery import post

SECRET = "a-value-nobody-else-may-see"


class Receiver:
    """A receiver on loopback. It returns the given statuses in order, then repeats the last one."""

    def __init__(self):
        receiver = self
        self.statuses = [200]
        self.got = []
        self.times = []
        self.hang = threading.Event()
        self.hang.set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.times.append(time.monotonic())
                receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
                status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
                receiver.hang.wait(30)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture(scope="module")
def shared_receiver():
    """A receiver for all tests."""
    running = Receiver()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def receiver(shared_receiver):
    """The receiver, which has got nothing yet."""
    shared_receiver.statuses = [200]
    shared_receiver.got, shared_receiver.times = [], []
    yield shared_receiver
    shared_receiver.hang.set()


@pytest.fixture(scope="module")
def notifying(tmp_path_factory, shared_receiver):
    """A server that may notify the receiver, and repeats failed attempts after 0.1 s."""
    data_dir = tmp_path_factory.mktemp("notifying") / "data"
    arguments = ("--engine", "parrot", "--allow-origin", shared_receiver.origin, "--webhook-interval", "0.1")
    running = Service(data_dir, *arguments)
    yield running
    running.stop()


def until(condition, seconds=20):
    """Wait until a condition is true; return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)
    return found


def rows(service):
    """Return the notifications in the database."""
    with sqlite3.connect(service.data_dir / "jobs.sqlite") as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM webhooks")]


def test_a_completed_transcript_is_notified(notifying, receiver, silent_wav, payload_folder):
    """A notification has the body, header and query of the API; the transcript has the status, and no secret."""
    example = json.loads((payload_folder / "webhook_transcript_completed.json").read_text())
    receiver.statuses = [204]
    job = notifying.create(
        notifying.upload(silent_wav),
        webhook_url=f"{receiver.origin}/hook/ü?customer=7&job=a%2Fb",
        webhook_auth_header_name="X-Secret",
        webhook_auth_header_value=SECRET,
    )
    assert job["webhook_auth"] is True
    assert job["webhook_status_code"] is None
    until(lambda: receiver.got)
    path, headers, body = receiver.got[0]
    assert path == "/hook/%C3%BC?customer=7&job=a%2Fb"
    assert headers["x-secret"] == SECRET
    assert headers["content-type"] == "application/json"
    assert body == {**example, "transcript_id": job["id"]}
    done = until(lambda: (found := notifying.transcript(job["id"]))["webhook_status_code"] and found)
    assert (done["status"], done["webhook_status_code"], done["webhook_auth"]) == ("completed", 204, True)
    assert done["webhook_auth_header_name"] == "X-Secret"
    until(lambda: not notifying.holds(SECRET))
    assert SECRET not in json.dumps(done) + notifying.log.read_text()
    assert receiver.origin not in notifying.log.read_text()
    time.sleep(0.5)
    assert len(receiver.got) == 1


def test_a_failed_transcript_is_notified(notifying, receiver, payload_folder):
    """A failed transcript is notified too."""
    example = json.loads((payload_folder / "webhook_transcript_error.json").read_text())
    job = notifying.create(notifying.upload(b"<html>no audio</html>"), webhook_url=f"{receiver.origin}/hook")
    assert job["webhook_auth"] is False
    until(lambda: receiver.got)
    assert receiver.got[0][2] == {**example, "transcript_id": job["id"]}
    assert until(lambda: notifying.transcript(job["id"])["webhook_status_code"]) == 200


def test_failed_attempts_are_repeated(notifying, receiver, silent_wav):
    """Any response except 2xx, redirects included, leads to another attempt; the last status is kept."""
    receiver.statuses = [500, 302, 404, 201]
    job = notifying.create(notifying.upload(silent_wav), webhook_url=f"{receiver.origin}/hook?a=1")["id"]
    until(lambda: notifying.transcript(job)["webhook_status_code"] == 201)
    assert [path for path, _, _ in receiver.got] == ["/hook?a=1"] * 4
    pauses = [after - before for before, after in zip(receiver.times, receiver.times[1:], strict=False)]
    assert all(0.08 < pause < 3 for pause in pauses)


def end(service, origin, *, file):
    """End a job with redacted audio as its worker would, and return its id."""
    data_dir = DataDir(service.data_dir)
    jobs = JobStore(data_dir.database)
    fields = {"audio_url": "http://192.0.2.1/a", "redact_pii_audio": True, "webhook_url": f"{origin}/hook"}
    job = jobs.add(fields, None, "", data_dir.job, Webhook(("transcript", "redacted_audio"), allowed=True)).id
    data_dir.result(job).write_bytes(b'{"words": []}')
    if file:
        data_dir.redacted(job, "wav").write_bytes(b"sound")
    jobs.database.connection.execute("UPDATE jobs SET holder = 'worker' WHERE id = ?", (job,))
    assert jobs.complete(job, "worker")
    jobs.close()
    return job


def test_redacted_audio_is_notified(start, receiver, payload_folder):
    """A second notification, without an id, has a working URL."""
    example = json.loads((payload_folder / "webhook_redacted_audio.json").read_text())
    service = start()
    job = end(service, receiver.origin, file=True)
    until(lambda: len(receiver.got) == 2)
    first, second = sorted((body for _, _, body in receiver.got), key=len)
    told = next(body for body in (first, second) if "transcript_id" not in body)
    assert told.keys() == example.keys()
    assert told["status"] == example["status"]
    assert job in told["redacted_audio_url"]
    assert requests.get(told["redacted_audio_url"], timeout=10).content == b"sound"
    until(lambda: [row["status_code"] for row in rows(service)] == [200, 200])


def test_missing_redacted_audio_is_not_notified(start, receiver):
    """If there is no redacted audio, only the end of the transcript is notified."""
    service = start()
    job = end(service, receiver.origin, file=False)
    until(lambda: [row["due"] for row in rows(service)] == [None, None])
    assert [body for _, _, body in receiver.got] == [{"transcript_id": job, "status": "completed"}]


def test_attempts_are_limited(notifying, receiver, silent_wav):
    """After eleven attempts the notification is given up, the last status stays, and the secret is deleted."""
    receiver.statuses = [503]
    job = notifying.create(
        notifying.upload(silent_wav),
        webhook_url=f"{receiver.origin}/hook",
        webhook_auth_header_name="X-Secret",
        webhook_auth_header_value=SECRET,
    )["id"]
    until(lambda: "given up after 11 attempts" in notifying.log.read_text())
    time.sleep(0.5)
    assert len(receiver.got) == 11
    assert notifying.transcript(job)["webhook_status_code"] == 503
    until(lambda: not notifying.holds(SECRET))


def test_an_unreachable_receiver_leaves_no_status(start, silent_wav):
    """A receiver that cannot be reached leaves no status code."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
        service = start("--allow-origin", origin, "--webhook-interval", "0.05")
        job = service.create(service.upload(silent_wav), webhook_url=origin)["id"]
        until(lambda: "given up after 11 attempts" in service.log.read_text())
    assert service.transcript(job)["webhook_status_code"] is None


@pytest.mark.long
def test_pending_notification_survives_kill_9(start, receiver, silent_wav):
    """A notification that is due when the server is killed is delivered by the next one, with its header."""
    service = start("--allow-origin", receiver.origin, "--webhook-interval", "0.5")
    receiver.statuses = [500]
    job = service.create(
        service.upload(silent_wav),
        webhook_url=f"{receiver.origin}/hook",
        webhook_auth_header_name="X-Secret",
        webhook_auth_header_value=SECRET,
    )["id"]
    until(lambda: receiver.got)
    service.kill()
    receiver.statuses, before = [200], len(receiver.got)
    second = start("--webhook-interval", "0.5")  # what was allowed when it was asked for stays allowed
    until(lambda: second.transcript(job)["webhook_status_code"] == 200)
    assert len(receiver.got) == before + 1
    assert receiver.got[-1][1]["x-secret"] == SECRET


def test_an_attempt_interrupted_by_a_stop_is_repeated(start, receiver, silent_wav):
    """An attempt interrupted by a stop is repeated immediately by the next server."""
    service = start("--allow-origin", receiver.origin)
    receiver.hang.clear()
    job = service.create(service.upload(silent_wav), webhook_url=f"{receiver.origin}/hook")["id"]
    until(lambda: receiver.got)
    service.stop()
    assert service.process.returncode == 0
    receiver.hang.set()
    second = start()
    until(lambda: second.transcript(job)["webhook_status_code"] == 200)
    assert [row["tries"] for row in rows(second)] == [1]


@pytest.mark.long
def test_two_servers_deliver_each_notification_once(start, receiver, silent_wav):
    """Servers that share a data directory deliver each notification once."""
    first = start("--allow-origin", receiver.origin)
    start("--allow-origin", receiver.origin)
    jobs = [first.create(first.upload(silent_wav), webhook_url=f"{receiver.origin}/{n}")["id"] for n in range(6)]
    until(lambda: all(first.transcript(job)["webhook_status_code"] == 200 for job in jobs), 60)
    assert sorted(path for path, _, _ in receiver.got) == [f"/{n}" for n in range(6)]


@pytest.mark.long
def test_a_receiver_that_hangs_does_not_delay_others(start, receiver, silent_wav):
    """A receiver that hangs does not delay jobs and other notifications; its attempt fails after 10 s."""
    slow = Receiver()
    slow.hang.clear()
    service = start("--allow-origin", receiver.origin, "--allow-origin", slow.origin)
    url = service.upload(silent_wav)
    stuck = [service.create(url, webhook_url=f"{slow.origin}/hook")["id"] for _ in range(3)]
    for job in stuck:
        service.wait(job)
    until(lambda: len(slow.got) == 3)
    other = service.create(url, webhook_url=f"{receiver.origin}/hook")["id"]
    until(lambda: service.transcript(other)["webhook_status_code"] == 200)
    assert service.transcript(stuck[0])["webhook_status_code"] is None
    assert "did not respond" not in service.log.read_text()  # the attempts still hang
    until(lambda: "did not respond within 10 s; next attempt in 10 s" in service.log.read_text())
    assert service.transcript(stuck[0])["webhook_status_code"] is None
    slow.hang.set()
    slow.server.shutdown()
    slow.server.server_close()


def test_a_deleted_transcript_is_not_notified(notifying, receiver, silent_wav):
    """Deleting a transcript removes its pending notification and the secret."""
    receiver.statuses = [500]
    job = notifying.create(
        notifying.upload(silent_wav),
        webhook_url=f"{receiver.origin}/hook",
        webhook_auth_header_name="X-Secret",
        webhook_auth_header_value=SECRET,
    )["id"]
    until(lambda: receiver.got)
    deleted = notifying.request("DELETE", f"/v2/transcript/{job}").json()
    assert (deleted["webhook_auth"], deleted["webhook_status_code"]) == (False, None)
    assert deleted["webhook_url"] == "http://deleted_by_user"
    until(lambda: not notifying.holds(SECRET))
    time.sleep(0.2)
    count = len(receiver.got)
    time.sleep(0.5)
    assert len(receiver.got) == count


def test_the_header_value_is_stored_in_one_place(start, receiver, web, silent_wav):
    """During a job, the header value is stored in one place only, out of reach of worker processes."""
    service = start("--allow-origin", receiver.origin, "--allow-origin", web.origin)
    job = service.create(
        web.slow_page("/a.wav", silent_wav),
        webhook_url=f"{receiver.origin}/hook",
        webhook_auth_header_name="X-Secret",
        webhook_auth_header_value=SECRET,
    )["id"]
    until(lambda: web.asked)
    with sqlite3.connect(service.data_dir / "jobs.sqlite") as database:
        assert SECRET not in database.execute("SELECT request FROM jobs").fetchone()[0]
    assert [row["header_value"] for row in rows(service)] == [SECRET]
    for worker in psutil.Process(service.process.pid).children():
        assert SECRET not in " ".join(worker.cmdline()) + str(worker.environ())
    web.finish.set()
    until(lambda: service.transcript(job)["webhook_status_code"] == 200)
    assert [row["header_value"] for row in rows(service)] == [None]


def test_header_without_an_address_is_kept_nowhere(service, silent_wav):
    """A header without a webhook_url is not stored."""
    fields = {"webhook_auth_header_name": "X-Secret", "webhook_auth_header_value": SECRET}
    assert service.create(service.upload(silent_wav), **fields)["webhook_auth"] is True
    until(lambda: not service.holds(SECRET))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/hook",
        "http://localhost/hook",
        "http://[::1]:80/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.1.2.3/",
        "http://[::ffff:127.0.0.1]/",
        "http://hooks.localhost./",
    ],
)
def test_a_private_url_is_refused_at_once(service, url):
    """A private webhook_url is a 400 that names the option to allow it."""
    answer = service.request("POST", "/v2/transcript", json={"audio_url": "http://192.0.2.1/a", "webhook_url": url})
    assert answer.status_code == 400
    assert "--allow-origin http" in answer.json()["error"]


def test_urls_that_resolve_to_this_machine_are_not_contacted(start, receiver, silent_wav):
    """URLs that turn out to be private on lookup are refused at delivery, without a connection."""
    service = start("--webhook-interval", "0.05")
    audio = service.upload(silent_wav)
    for host in ("2130706433", "0x7f.1", "127.1"):
        service.create(audio, webhook_url=f"http://{host}:{receiver.server.server_port}/")
    until(lambda: service.log.read_text().count("given up after 11 attempts") == 3)
    assert receiver.got == []


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding"])
def test_header_that_frames_a_request_is_refused(service, name):
    """Headers that control the framing of a request are refused."""
    body = {
        "audio_url": "http://192.0.2.1/a",
        "webhook_auth_header_name": name,
        "webhook_auth_header_value": "5",
    }
    answer = service.request("POST", "/v2/transcript", json=body)
    assert answer.status_code == 400
    assert name in answer.json()["error"]


def test_an_invalid_port_is_a_400(service):
    """An invalid port is a 400."""
    body = {"audio_url": "http://192.0.2.1/a", "webhook_url": "http://hooks.example:99999/"}
    answer = service.request("POST", "/v2/transcript", json=body)
    assert answer.status_code == 400
    assert "webhook_url" in answer.json()["error"]


def test_a_slow_response_exceeds_the_time_limit(receiver):
    """A response that arrives one byte at a time exceeds the time limit."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle():
            server, _ = listening.accept()
            with server:
                try:
                    while True:
                        server.sendall(b"H")
                        time.sleep(0.05)
                except OSError:
                    pass

        threading.Thread(target=trickle, daemon=True).start()
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        outcome = post(origin, {}, None, frozenset({origin}), seconds=0.5)
    assert outcome == webhook_delivery.DeliveryResult(None, "did not respond within 0.5 s")


def test_a_response_that_is_not_http_is_a_failed_attempt():
    """A response that is not HTTP is a failed attempt."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def babble():
            server, _ = listening.accept()
            with server:
                server.recv(1000)
                server.sendall(b"220 mail.example ESMTP\r\n")

        threading.Thread(target=babble, daemon=True).start()
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        outcome = post(origin, {}, None, frozenset({origin}))
    assert not outcome.ok
    assert outcome.status_code is None


def test_parent_may_allow_a_receiver(start, receiver, silent_wav):
    """The parent process may allow one more origin exactly; a client may not."""
    service = start()
    body = {"audio_url": service.upload(silent_wav), "webhook_url": f"{receiver.origin}/hook"}
    assert service.request("POST", "/v2/transcript", json=body).status_code == 400

    def say(line):
        service.process.stdin.write(line + b"\n")
        service.process.stdin.flush()
        return json.loads(service.process.stdout.readline())

    for nonsense in (b"nonsense", b"[]", b"{}", b'{"allow_webhooks": 7}', b'{"allow_webhooks": "file:///etc"}'):
        assert "error" in say(nonsense)
    assert say(json.dumps({"allow_webhooks": receiver.origin}).encode()) == {"allowed": receiver.origin}
    job = service.request("POST", "/v2/transcript", json=body).json()["id"]
    assert until(lambda: service.transcript(job)["webhook_status_code"]) == 200
    other = {**body, "webhook_url": receiver.origin.replace(str(receiver.server.server_port), "1")}
    assert service.request("POST", "/v2/transcript", json=other).status_code == 400
    media = service.wait(service.create(f"{receiver.origin}/a.wav")["id"])
    assert "not on the public internet" in media["error"]
