"""Requests as other clients write them: header names in any case, unknown parameters, unsupported fields."""

import http.client
import json

import pytest

from voxframe import options

SERVICE_ARGUMENTS = ("--engine", "whisper")  # the parrot knows few languages


def raw(service, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, bytes]:
    """Send a request with exactly these headers, plus Host and Content-Length."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("CONTENT-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told


@pytest.fixture(scope="module")
def finished(service, silent_wav) -> str:
    """Id of a completed transcript."""
    return service.wait(service.create(service.upload(silent_wav))["id"])["id"]


@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION", "aUTHORIZATION"])
def test_header_names_in_any_case(service, silent_wav, name):
    """Header names are accepted in any case."""
    key = service.session.headers["Authorization"]
    assert raw(service, "GET", "/v2/transcript", {name: key})[0] == 200
    status, body = raw(service, "POST", "/v2/upload", {name: key}, silent_wav)
    assert status == 200
    asked = json.dumps({"audio_url": json.loads(body)["upload_url"]}).encode()
    assert raw(service, "POST", "/v2/transcript", {name: key, "CONTENT-TYPE": "APPLICATION/JSON"}, asked)[0] == 200


@pytest.mark.parametrize(
    "kind", [None, "application/octet-stream", "audio/mpeg", "text/plain; charset=x", "multipart/form-data", "nonsense"]
)
def test_an_upload_is_its_bytes_whatever_its_content_type(service, kind):
    """An upload is stored unchanged, whatever its content type."""
    data = b"--x\r\n\r\na=b&c=%20\xff\r\n--x--"
    headers = {"Authorization": service.session.headers["Authorization"]}
    status, body = raw(service, "POST", "/v2/upload", headers | ({"Content-Type": kind} if kind else {}), data)
    assert status == 200
    assert (service.data_dir / "uploads" / json.loads(body)["upload_url"].rpartition("/")[2]).read_bytes() == data


@pytest.mark.parametrize("view", ["", "/srt", "/vtt", "/sentences", "/paragraphs", "/word-search?words=a"])
def test_unknown_query_parameters_change_nothing(service, finished, view):
    """Unknown query parameters do not affect any endpoint of a transcript."""
    path = f"/v2/transcript/{finished}{view}"
    known = service.get(path)
    more = service.get(f"{path}{'&' if '?' in path else '?'}from_the_future=1&also&also=%FF")
    assert (known.status_code, more.status_code) == (200, 200)
    assert more.content == known.content
    created = service.request("POST", "/v2/transcript?new=1", json={"audio_url": "http://192.0.2.1/a"})
    assert created.status_code == 200
    assert service.request("POST", "/v2/upload?new=1", data=b"a").status_code == 200


@pytest.mark.parametrize("example", ["TranscriptParams.json", "TranscriptOptionalParams.json"])
def test_example_requests_of_the_interface_are_accepted_and_echoed(service, payload_folder, example):
    """Example requests are accepted, except for their URLs, and their options are echoed."""
    body = json.loads((payload_folder / example).read_text())
    body |= {"audio_url": "http://192.0.2.1/a", "webhook_url": None}
    created = service.create(**body)
    told = {name: value for name, value in body.items() if name != "webhook_auth_header_value"}
    assert {name: created[name] for name in told} == told


def test_what_is_null_is_not_asked_for(service):
    """A request with all fields null gets the defaults."""
    everything = dict.fromkeys(options.FIELDS)
    plain = service.create("http://192.0.2.1/a")
    nulls = service.create(**{**everything, "audio_url": "http://192.0.2.1/a"})
    assert {**nulls, "id": plain["id"]} == plain
