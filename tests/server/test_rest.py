"""REST endpoints of the embedded server over loopback."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests
from tests.server.conftest import Service

from voxframe_server.jobs.data_dir import DataDir
from voxframe_server.server import _kept_key

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_upload_create_poll_complete(service, silent_wav):
    """An uploaded file is transcribed; the transcript has the duration of the media and its words."""
    url = service.upload(silent_wav)
    created = service.create(url)
    assert created["status"] == "queued"
    assert created["audio_url"] == url
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", created["id"])
    done = service.wait(created["id"])
    assert done["status"] == "completed", done.get("error")
    assert done["words"] == []
    assert done["audio_duration"] == 1
    assert "error" not in done


def test_a_queued_transcript_has_the_fields_of_the_api(service, payload_folder):
    """A new transcript has every field of the example, with the same defaults."""
    example = json.loads((payload_folder / "transcripts" / "queued.json").read_text())
    created = service.create("http://192.0.2.1/a.mp3")
    assert example.keys() <= created.keys()
    # Who computed it and null or false for a channel that was not asked for are the service's own business.
    own = {"id", "audio_url", "language_model", "acoustic_model", "dual_channel"}
    assert {k: created[k] for k in example.keys() - own} == {k: example[k] for k in example.keys() - own}


def test_the_request_is_echoed_without_its_secret(service):
    """Settings are returned as sent, except the value of the webhook header."""
    sent = {
        "language_code": "en_uk",
        "punctuate": False,
        "format_text": False,
        "disfluencies": True,
        "dual_channel": True,
        "audio_start_from": 10,
        "audio_end_at": 28000,
        "boost_param": "high",
        "filter_profanity": True,
        "speaker_labels": True,
        "speakers_expected": 3,
        "custom_spelling": [{"from": ["dicarlo"], "to": "Decarlo"}],
        "speech_threshold": 0.5,
        "webhook_auth_header_name": "X-Secret",
    }
    created = service.create("http://192.0.2.1/a.mp3", webhook_auth_header_value="not-to-be-shown", **sent)
    assert {name: created[name] for name in sent} == sent
    assert created["webhook_auth"] is True
    everywhere = json.dumps(created) + service.get(f"/v2/transcript/{created['id']}").text + service.log.read_text()
    assert "not-to-be-shown" not in everywhere


def test_unknown_fields_and_nulls_are_ignored(service):
    """Unknown fields and nulls do not affect a request."""
    spelling = {"from": ["a"], "to": "b"}
    more = {"from_the_future": [1], "custom_spelling": [{**spelling, "from_the_future": 1}]}
    created = service.create("http://192.0.2.1/a.mp3", speakers_expected=None, word_boost=[], **more)
    assert created["custom_spelling"] == [spelling]
    assert created["status"] == "queued"
    assert "from_the_future" not in created


@pytest.mark.parametrize("address", [{"audio_url": "http://192.0.2.1/a.mp3"}, {"audio_ulr": "http://192.0.2.1/a.mp3"}])
def test_unknown_fields_are_named_in_a_header_and_in_the_log(service, address):
    """Names at both levels, percent-encoded, without their values, also if the request is refused."""
    spelling = [{"from": ["a"], "to": "b", "of": "hidden value"}]
    body = {**address, "speaker labels": True, "line\nbreak": "hidden value", "ü": 1, "custom_spelling": spelling}
    answer = service.request("POST", "/v2/transcript", json=body)
    assert answer.status_code == (200 if "audio_url" in address else 400)
    misspelled = ["audio_ulr"] if "audio_ulr" in address else []
    expected = ", ".join([*misspelled, "speaker%20labels", "line%0Abreak", "%C3%BC", "custom_spelling.of"])
    assert answer.headers["X-Unknown-Fields"] == expected
    log = service.log.read_text()
    assert f"unknown fields were ignored: {expected}\n" in log
    assert "hidden value" not in log
    known = service.request("POST", "/v2/transcript", json={"audio_url": "http://192.0.2.1/a.mp3"})
    assert "X-Unknown-Fields" not in known.headers


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "(empty)"),
        (" ", "%20"),
        ("日本語", "%E6%97%A5%E6%9C%AC%E8%AA%9E"),
        ("Größe\r\nSet-Cookie: a=b", "Gr%C3%B6%C3%9Fe%0D%0ASet-Cookie%3A%20a%3Db"),
        ("\x00", "%00"),
    ],
)
def test_a_header_can_hold_the_name_of_any_unknown_field(service, name, shown):
    """An empty name, or one with any character, is in the header of a valid response."""
    answer = service.request("POST", "/v2/transcript", json={"audio_url": "http://192.0.2.1/a.mp3", name: 1})
    assert (answer.status_code, answer.headers["X-Unknown-Fields"]) == (200, shown)
    assert "Set-Cookie" not in answer.headers


def test_a_name_that_is_no_unicode_is_refused(service):
    """An unpaired surrogate in a name is an error of the request, not of the server."""
    body = b'{"audio_url": "http://192.0.2.1/a.mp3", "\\ud800": 1}'
    answer = service.request("POST", "/v2/transcript", data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "audio_url"),
        ({"audio_url": None}, "audio_url"),
        ({"audio_url": "file:///etc/passwd"}, "audio_url"),
        ({"audio_url": 7}, "audio_url"),
        ({"audio_url": "http://192.0.2.1/a", "format_text": "yes"}, "format_text"),
        ({"audio_url": "http://192.0.2.1/a", "speakers_expected": 11}, "10"),
        ({"audio_url": "http://192.0.2.1/a", "speech_threshold": 1.5}, "speech_threshold"),
        ({"audio_url": "http://192.0.2.1/a", "boost_param": "most"}, "low, default, high"),
        ({"audio_url": "http://192.0.2.1/a", "audio_start_from": 10**30}, "audio_start_from"),
        ({"audio_url": "http://192.0.2.1/a", "language_code": "pcd"}, "pcd"),
        ({"audio_url": "http://192.0.2.1/a", "custom_spelling": [{"from": "a"}]}, "custom_spelling"),
        ({"audio_url": "http://192.0.2.1/a", "redact_pii_audio": True}, "requires redact_pii"),
        ({"audio_url": "http://192.0.2.1/a", "redact_pii_policies": ["shoe_size"]}, "redact_pii_policies"),
        ({"audio_url": "http://192.0.2.1/a", "webhook_url": "http://192.0.2.1/hook"}, "webhook_url"),
        ([], "JSON object"),
        ("text", "JSON object"),
    ],
)
def test_an_invalid_value_is_a_400_that_names_it(service, body, named):
    """An invalid or unsupported value is a 400 that names it."""
    answer = service.request("POST", "/v2/transcript", json=body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"error"}
    assert named in answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"audio_url": NaN}', b"[" * 100_000, b'{"a":"\\ud800"}'])
def test_body_that_is_no_json_is_a_400(service, body):
    """Any body that is not JSON gets an error object."""
    answer = service.request("POST", "/v2/transcript", data=body)
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]


def test_byte_order_mark_and_any_content_type_are_accepted(service):
    """JSON is accepted with a byte order mark and with any content type."""
    body = b'\xef\xbb\xbf{"audio_url": "http://192.0.2.1/a"}'
    assert service.request("POST", "/v2/transcript", data=body).status_code == 200


@pytest.mark.parametrize("key", [None, "", "wrong", "a-key-for-test", "a-key-for-tests ü".encode()])
def test_wrong_key_is_a_401(service, payload_folder, key):
    """A missing, different or nearly right key is a 401 on every endpoint, with the API's text."""
    example = json.loads((payload_folder / "error_Unauthorized.json").read_text())
    headers = {} if key is None else {"Authorization": key}
    for method, path in (
        ("GET", "/v2/transcript"),
        ("POST", "/v2/upload"),
        ("GET", "/queue"),
        ("GET", "/nowhere"),
        ("DELETE", f"/v2/transcript/{UNKNOWN}"),
    ):
        answer = requests.request(method, service.url + path, headers=headers, timeout=10)
        assert answer.status_code == 401
        assert answer.json() == example


def test_wrong_key_on_a_large_upload_is_still_a_401(service):
    """A client that is still sending a large upload receives the 401."""
    answer = requests.post(
        service.url + "/v2/upload", data=bytes(20 << 20), headers={"Authorization": "wrong"}, timeout=30
    )
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/v2",
        "/v2/",
        "/v2/transcript/",
        "/page/",
        "/page/key",
        "/v3/transcript",
        "/v2/transcript/a/b/c",
        "/%00",
    ],
)
def test_an_unknown_path_is_a_404(service, path, payload_folder):
    """An unknown path gets an error object."""
    answer = service.get(path)
    assert answer.status_code == 404
    assert answer.json() == json.loads((payload_folder / "error_NotFound.json").read_text())


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/v2/transcript"), ("GET", "/v2/upload"), ("OPTIONS", "/v2/transcript")]
)
def test_wrong_method_is_a_405(service, method, path):
    """An unsupported method gets an error object."""
    answer = service.request(method, path)
    assert answer.status_code == 405
    assert answer.json().keys() == {"error"}


@pytest.mark.parametrize(
    "name",
    [UNKNOWN, "no-uuid", "..%2f..%2fkey", "%2e%2e", "....//key", "'; DROP TABLE jobs; --", "%00", "ü" * 300, "key"],
)
def test_unknown_or_hostile_id_is_a_404(service, name):
    """An unknown id is a 404 and is never used as a path."""
    for path in (f"/v2/transcript/{name}", f"/v2/transcript/{name}/srt", f"/v2/transcript/{name}/sentences"):
        answer = service.get(path)
        assert answer.status_code == 404, path
        assert answer.json().keys() == {"error"}
    assert service.request("DELETE", f"/v2/transcript/{name}").status_code == 404


def test_parent_folders_in_a_path_are_not_followed(service):
    """A raw request with .. in its path returns no file."""
    import http.client

    host, port = service.url.removeprefix("http://").split(":")
    for path in (
        "/v2/transcript/../../key",
        "/v2/transcript/%2e%2e/%2e%2e/key",
        "/../../../../etc/passwd",
        "//etc/passwd",
    ):
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        connection.request("GET", path, headers={"Authorization": service.session.headers["Authorization"]})
        answer = connection.getresponse()
        assert answer.status == 404
        assert json.loads(answer.read()).keys() == {"error"}
        connection.close()


def test_json_body_over_five_megabytes_is_a_413(service):
    """A JSON body over 5 MB gets an error object, with or without a Content-Length."""
    body = b'{"audio_url": "' + b"a" * 5_000_000 + b'"}'
    announced = service.request("POST", "/v2/transcript", data=body)
    chunked = service.request("POST", "/v2/transcript", data=iter([body[:3_000_000], body[3_000_000:]]))
    for answer in (announced, chunked):
        assert answer.status_code == 413
        assert "5 MB" in answer.json()["error"]


def test_upload_that_announces_too_much_is_a_413(service):
    """An upload with a Content-Length over 2.2 GB is refused before it is sent."""
    import socket

    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=15) as connection:
        head = (
            f"POST /v2/upload HTTP/1.1\r\nHost: {host}\r\nAuthorization: {service.session.headers['Authorization']}\r\n"
        )
        connection.sendall(f"{head}Content-Length: 2200000001\r\n\r\n".encode() + bytes(1000))
        answer = b""
        while b"2200 MB" not in answer and (more := connection.recv(4096)):  # it is closed only later
            answer += more
    assert b" 413 " in answer.split(b"\r\n")[0]
    assert b"2200 MB" in answer


def test_empty_upload_is_a_400(service):
    """An empty upload is refused."""
    answer = service.request("POST", "/v2/upload", data=b"")
    assert answer.status_code == 400
    assert "empty" in answer.json()["error"]


def test_an_upload_is_stored_under_a_generated_name(service):
    """An upload is stored byte for byte under a name that contains nothing sent by the client."""
    data = bytes(range(256)) * 20_000
    url = service.upload(data)
    stored = service.data_dir / "uploads" / url.rpartition("/")[2]
    assert stored.read_bytes() == data


def test_an_interrupted_upload_leaves_no_file(service):
    """An interrupted upload leaves no file."""
    import socket

    before = set((service.data_dir / "uploads").iterdir())
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=15) as connection:
        head = (
            f"POST /v2/upload HTTP/1.1\r\nHost: {host}\r\nAuthorization: {service.session.headers['Authorization']}\r\n"
        )
        connection.sendall(f"{head}Content-Length: 5000000\r\n\r\n".encode() + bytes(3_000_000))
    until = time.monotonic() + 10
    while set((service.data_dir / "uploads").iterdir()) != before:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "169.254.169.254", "127.0.0.1.evil.example", "localhost@evil.example"]
)
def test_foreign_host_name_is_refused(service, host):
    """A request with another host name is refused (DNS rebinding)."""
    answer = service.get("/v2/transcript", headers={"Host": host})
    assert answer.status_code == 400
    assert "Host" in answer.json()["error"]


def test_names_of_this_machine_are_accepted(service):
    """Requests to localhost and to loopback addresses are accepted."""
    port = service.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"LOCALHOST.:{port}", "127.0.0.1", f"[::1]:{port}"):
        assert service.get("/v2/transcript", headers={"Host": host}).status_code == 200


def test_page_of_another_origin_is_refused(service):
    """A web page of another origin is refused, even with the key."""
    for origin in ("http://evil.example", "null", service.url.replace("http", "https"), "http://127.0.0.1:1"):
        answer = service.get("/v2/transcript", headers={"Origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert service.get("/v2/transcript", headers={"Origin": service.url}).status_code == 200


def test_a_file_without_audio_fails_with_the_text_of_the_api(service, payload_folder):
    """A job on a web page is an error with the API's text."""
    example = json.loads((payload_folder / "failed_not_audio.json").read_text())
    failed = service.wait(service.create(service.upload(b"<!DOCTYPE html><html><p>Not here</p></html>"))["id"])
    assert failed["status"] == "error"
    assert failed["error"].startswith(example["error"].partition(" (")[0])


def test_audio_under_160_ms_fails_with_the_text_of_the_api(service, payload_folder):
    """A job on too short audio is an error with the API's text."""
    import io
    import wave

    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(2 * 8 * 150))
    failed = service.wait(service.create(service.upload(held.getvalue()))["id"])
    assert failed["error"] == json.loads((payload_folder / "failed_too_short.json").read_text())["error"]


def test_exports_of_a_transcript_that_is_not_completed_are_a_400(service):
    """Failed and deleted transcripts have no subtitles, and the error gives their status."""
    failed = service.wait(service.create(service.upload(b"no audio"))["id"])
    for view in ("srt", "vtt", "sentences", "paragraphs", "word-search?words=a"):
        answer = service.get(f"/v2/transcript/{failed['id']}/{view}")
        assert answer.status_code == 400
        assert "error" in answer.json()["error"]
    assert service.get(f"/v2/transcript/{failed['id']}/txt").status_code == 404


def test_delete_empties_the_transcript_and_the_disk(service, silent_wav, payload_folder):
    """A deleted transcript keeps the fields of the API; its media, result and traces in the database are gone."""
    example = json.loads((payload_folder / "transcripts" / "deleted.json").read_text())
    marked = silent_wav + b"bytes that must go"
    url = service.upload(marked)
    done = service.wait(service.create(url, custom_spelling=[{"from": ["secretname"], "to": "Othername"}])["id"])
    assert done["status"] == "completed"
    answer = service.request("DELETE", f"/v2/transcript/{done['id']}")
    assert answer.status_code == 200
    own = {"id", "language_model", "acoustic_model", "audio_duration"}
    found = answer.json()
    assert example.keys() <= found.keys()
    assert {k: found[k] for k in example.keys() - own} == {k: example[k] for k in example.keys() - own}
    assert {k: found[k] for k in own} == {k: done[k] for k in own}
    assert service.transcript(done["id"]) == found
    assert service.request("DELETE", f"/v2/transcript/{done['id']}").json() == found
    listed = next(t for t in service.get("/v2/transcript?limit=200").json()["transcripts"] if t["id"] == done["id"])
    assert listed["audio_url"] == "http://deleted_by_user"
    assert listed["status"] == "completed"
    assert service.get(f"/v2/transcript/{done['id']}/srt").status_code == 400
    kept = [path for path in service.data_dir.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"bytes that must go" in path.read_bytes()]
    until = time.monotonic() + 30  # the database is wiped beside the requests
    while any(b"secretname" in path.read_bytes() for path in kept if path.exists()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not [path for path in kept if done["id"] in str(path)]


def test_media_that_another_transcript_needs_stays(service, silent_wav):
    """Deleting one of two transcripts of an upload keeps the media."""
    url = service.upload(silent_wav)
    stored = service.data_dir / "uploads" / url.rpartition("/")[2]
    first, second = (service.wait(service.create(url)["id"])["id"] for _ in range(2))
    service.request("DELETE", f"/v2/transcript/{first}")
    assert stored.exists()
    service.request("DELETE", f"/v2/transcript/{second}")
    assert not stored.exists()


def test_upload_is_usable_by_its_own_key_only(start, silent_wav, tmp_path):
    """An upload of another key is not found."""
    first = start()
    url = first.upload(silent_wav)
    first.stop()
    other = start(key="another-key")
    failed = other.wait(other.create(url)["id"])
    assert failed["status"] == "error"
    assert failed["error"].startswith("Download error")
    other.stop()
    again = start()  # at another port than the one in the address
    assert again.wait(again.create(url)["id"])["status"] == "completed"


def test_key_is_made_once_and_kept_for_the_owner_only(start, tmp_path):
    """A generated key is stored in the data directory, readable by the owner only, and nowhere else."""
    first = start(key=None)
    key = first.data_dir / "key"
    value = key.read_text().strip()
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(value) >= 32
    assert first.get("/v2/transcript").status_code == 200
    first.stop()
    second = start(key=None)
    assert second.session.headers["Authorization"] == value
    assert value not in first.log.read_text() + second.log.read_text()
    assert str(key) in first.log.read_text()


@pytest.mark.parametrize("stored", [None, ""], ids=["no file", "an empty file"])
def test_servers_that_start_together_have_one_key(tmp_path, stored):
    """Of sixteen servers that find no key, one makes it, and the others read it; nothing else is left."""
    directory = DataDir(tmp_path)
    if stored is not None:
        directory.key.write_text(stored)
    together = threading.Barrier(16)

    def key(_: int) -> str:
        together.wait()
        return _kept_key(directory)[0]

    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(key, range(16)))
    assert keys == {directory.key.read_text().strip()}
    assert len(keys.pop()) >= 32
    assert list(tmp_path.iterdir()) == [directory.key]


@pytest.mark.parametrize(
    "host",
    ["LOCALHOST", pytest.param("127.0.0.2", marks=pytest.mark.skipif(not psutil.LINUX, reason="it has one address"))],
)
def test_a_loopback_host_in_any_spelling_is_protected(start, host):
    """A server on a loopback address refuses other host names, however its own was spelled."""
    service = start("--host", host)
    for name in (host, "localhost", service.url.removeprefix("http://")):
        assert service.get("/v2/transcript", headers={"Host": name}).status_code == 200
    assert service.get("/v2/transcript", headers={"Host": "evil.example"}).status_code == 400


def test_a_key_file_that_cannot_be_read_is_named_at_the_start(tmp_path):
    """If the file of the key cannot be read, the start ends with a message that names it and the next step."""
    (tmp_path / "data" / "key").mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOXFRAME_")}
    command = [sys.executable, "-P", "-m", "voxframe_server", "--engine", "parrot", "--port", "0", "--data-dir"]
    ended = subprocess.run(
        [*command, tmp_path / "data"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert str(tmp_path / "data" / "key") in ended.stderr
    assert "--data-dir" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_upload_of_a_deleted_transcript_is_named_as_such(service, silent_wav):
    """Another job on an upload that was deleted with its transcript is an error that says so."""
    url = service.upload(silent_wav)
    first = service.wait(service.create(url)["id"])
    service.request("DELETE", f"/v2/transcript/{first['id']}")
    again = service.wait(service.create(url)["id"])
    assert again["status"] == "error"
    assert again["error"].startswith(f"Download error, unable to download {url}.")
    assert "no such upload" in again["error"]


def test_prefix_of_the_language_model_is_a_setting(start):
    """The first path segment of the language-model endpoints can be set."""
    service = start("--llm-prefix", "lm")
    asked = {"input_text": "We met at noon."}
    assert service.request("POST", "/lm/v3/generate/summary", json=asked).status_code == 200
    assert service.request("POST", "/llm/v3/generate/summary", json=asked).status_code == 404


def test_an_internal_error_is_a_500_with_an_error_object(service, silent_wav):
    """An unreadable result is a 500 with an error object, and the server continues."""
    done = service.wait(service.create(service.upload(silent_wav))["id"])
    (service.data_dir / "jobs" / done["id"] / "result.json").write_bytes(b"{broken")
    for _ in range(20):  # on one connection, which stays
        answer = service.get(f"/v2/transcript/{done['id']}")
        assert answer.status_code == 500
        assert answer.json().keys() == {"error"}
        assert service.get("/v2/transcript").status_code == 200


def test_the_log_shows_the_stages_of_a_job_and_no_key(service, silent_wav):
    """The log shows each stage of a job with its id, and no key."""
    job = service.wait(service.create(service.upload(silent_wav))["id"])["id"]
    log = service.log.read_text()
    for state in ("queued", "speech", "completed in"):
        assert f"job {job}: {state}" in log
    assert f"open {service.url}/ in a browser to see jobs and their text" in log
    assert service.session.headers["Authorization"] not in log


@pytest.mark.skipif(not psutil.LINUX, reason="the libraries of another process are read from /proc")
def test_the_server_process_imports_no_audio_packages(tmp_path, silent_wav):
    """The server process imports no audio, speech or analysis packages."""
    service = Service(tmp_path / "data")
    service.wait(service.create(service.upload(silent_wav))["id"])
    loaded = " ".join(Path(part.path).as_posix() for part in psutil.Process(service.process.pid).memory_maps())
    service.stop()
    assert "/orjson/" in loaded
    assert [name for name in ("av", "ctranslate2", "onnxruntime", "faster_whisper") if f"/{name}/" in loaded] == []
