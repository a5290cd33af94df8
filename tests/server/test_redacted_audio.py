"""Redacted audio at signed URLs."""

import time
import wave
from urllib.parse import parse_qs, urlsplit

import numpy as np
import orjson
import pytest
import requests

from voxframe_engine import JobFailed
from voxframe_server.jobs import JobStore
from voxframe_server.jobs import data_dir as data_directory
from voxframe_server.jobs.data_dir import DataDir, RedactedAudioStore

SOUND = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def asked(service):
    """Create jobs that requested redacted audio, in any status, with or without a file."""

    def make(status="completed", sound=SOUND, kind="mp3"):
        data_dir = DataDir(service.data_dir)
        jobs = JobStore(data_dir.database)
        fields = {"audio_url": "http://192.0.2.1/a", "redact_pii": True, "redact_pii_audio": True}
        job = jobs.add(fields, None, "nobody", data_dir.job).id
        # No holder: should the service have taken it already, what it makes of it is dropped.
        change = "UPDATE jobs SET status = ?, holder = NULL WHERE id = ?"
        jobs.database.connection.execute(change, (status, job))
        jobs.close()
        data_dir.result(job).write_bytes(orjson.dumps({"text": "", "words": []}))
        if sound:
            data_dir.redacted(job, kind).write_bytes(sound)
        return job

    return make


def ask(service, job):
    """Return the redacted-audio response of a job."""
    return service.get(f"/v2/transcript/{job}/redacted-audio")


def test_ready_audio_has_the_fields_of_the_api(service, asked, payload_folder):
    """The response has a status and a URL with an expiry in the style of storage services."""
    example = orjson.loads((payload_folder / "RedactedAudioResponse.json").read_bytes())
    ready = ask(service, asked())
    assert ready.status_code == 200
    assert ready.json().keys() == example.keys()
    assert ready.json()["status"] == example["status"]
    query = parse_qs(urlsplit(ready.json()["redacted_audio_url"]).query)
    assert query.keys() == {"Expires", "Signature"}
    assert 3500 < int(query["Expires"][0]) - time.time() <= 3600


@pytest.mark.parametrize(("kind", "media"), [("mp3", "audio/mpeg"), ("wav", "audio/wav")])
def test_a_signed_url_needs_no_key(service, asked, kind, media):
    """A signed URL works without the key."""
    url = ask(service, asked(kind=kind)).json()["redacted_audio_url"]
    whole = requests.get(url, timeout=10)
    assert whole.status_code == 200
    assert whole.content == SOUND
    assert whole.headers["content-type"] == media
    assert whole.headers["accept-ranges"] == "bytes"
    head = requests.head(url, timeout=10)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(SOUND)))


def test_a_range_is_returned(service, asked):
    """A range is returned if the file is unchanged, otherwise the complete file."""
    url = ask(service, asked()).json()["redacted_audio_url"]
    tag = requests.get(url, timeout=10).headers["etag"]
    rest = requests.get(url, headers={"Range": "bytes=1000-", "If-Range": tag}, timeout=10)
    assert rest.status_code == 206
    assert rest.headers["content-range"] == f"bytes 1000-{len(SOUND) - 1}/{len(SOUND)}"
    assert rest.content == SOUND[1000:]
    other = requests.get(url, headers={"Range": "bytes=1000-", "If-Range": '"another"'}, timeout=10)
    assert (other.status_code, other.content) == (200, SOUND)
    past = requests.get(url, headers={"Range": f"bytes={len(SOUND)}-"}, timeout=10)
    assert past.status_code == 416


def test_a_changed_url_is_refused(service, asked):
    """A URL with another file, expiry or signature is refused."""
    mine, other = asked(), asked()
    url = ask(service, mine).json()["redacted_audio_url"]
    until = parse_qs(urlsplit(url).query)["Expires"][0]
    for changed in (
        url.replace(mine, other),
        url.replace(until, str(int(until) + 9999)),
        url[:-1] + ("0" if url[-1] != "0" else "1"),
        url.partition("?")[0],
        url.replace("mp3", "wav"),
        url.replace(mine, "..%2F..%2Fkey"),
        url.replace("Signature=", "Signature=%C3%BC"),
    ):
        answer = requests.get(changed, timeout=10)
        assert answer.status_code in (403, 404), changed
        assert answer.json().keys() == {"error"}


def test_an_expired_url_is_refused(tmp_path, monkeypatch):
    """A URL is valid until its expiry, also in a new process with the same key, and never with another key."""
    data_dir = DataDir(tmp_path)
    data_dir.make()
    job = "12345678-1234-4234-8234-123456789abc"
    data_dir.job(job).mkdir()
    data_dir.redacted(job, "mp3").write_bytes(SOUND)
    url = urlsplit(RedactedAudioStore(data_dir, "key").url(job, "http://127.0.0.1:1"))
    signed = {name: values[0] for name, values in parse_qs(url.query).items()}
    given = (url.path.removeprefix(data_directory.SIGNED_PREFIX), signed["Expires"], signed["Signature"])
    assert RedactedAudioStore(data_dir, "key").at(*given) == (data_dir.redacted(job, "mp3"), "audio/mpeg")
    with pytest.raises(PermissionError, match="signature"):
        RedactedAudioStore(data_dir, "another key").at(*given)
    later = time.time() + data_directory.GOOD_FOR + 1
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(PermissionError, match="expired"):
        RedactedAudioStore(data_dir, "key").at(*given)
    assert "key" not in repr(RedactedAudioStore(data_dir, "key")).replace("data_dir", "")


def test_not_ready_is_a_202(service, asked):
    """An unfinished transcript gives a 202 with an empty object."""
    answer = ask(service, asked("processing", sound=None))
    assert answer.status_code == 202
    assert answer.json() == {}


@pytest.mark.parametrize(("status", "named"), [("error", "error"), ("completed", "expired")])
def test_unavailable_audio_is_a_400(service, asked, status, named):
    """A failed transcript and a removed file are a 400."""
    answer = ask(service, asked(status, sound=None))
    assert answer.status_code == 400
    assert named in answer.json()["error"]


def test_audio_of_a_deleted_transcript_is_gone(service, asked):
    """Deleting a transcript removes the file and invalidates its URL."""
    job = asked()
    url = ask(service, job).json()["redacted_audio_url"]
    service.request("DELETE", f"/v2/transcript/{job}")
    assert requests.get(url, timeout=10).status_code == 404
    assert ask(service, job).status_code == 400


def test_file_is_made_from_the_recording(tmp_path, silent_wav):
    """The file has a tone over the spans, the recording elsewhere, and the same duration; no partial file remains."""
    data_dir, job = DataDir(tmp_path), "12345678-1234-4234-8234-123456789abc"
    data_dir.make()
    data_dir.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    RedactedAudioStore.make(data_dir, job, media, [[200, 600]], {"redact_pii_audio_quality": "wav"})
    assert [path.name for path in data_dir.job(job).iterdir()] == ["redacted.wav"]
    with wave.open(str(data_dir.redacted(job, "wav"))) as file:
        assert (file.getframerate(), file.getnframes()) == (16_000, 16_000)
        samples = np.frombuffer(file.readframes(16_000), "<i2")
    assert np.abs(samples[3200:9600]).max() > 1000
    assert not samples[:3200].any()
    assert not samples[9600:].any()
    RedactedAudioStore.make(data_dir, job, media, [], {})
    assert data_dir.redacted(job, "mp3").stat().st_size > 500


def test_parts_that_were_not_transcribed_are_covered(tmp_path, silent_wav):
    """Audio before `audio_start_from` and after `audio_end_at` is covered."""
    data_dir, job = DataDir(tmp_path), "12345678-1234-4234-8234-123456789abc"
    data_dir.make()
    data_dir.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    asked = {"redact_pii_audio_quality": "wav", "audio_start_from": 250, "audio_end_at": 500}
    RedactedAudioStore.make(data_dir, job, media, [], asked)
    with wave.open(str(data_dir.redacted(job, "wav"))) as file:
        samples = np.frombuffer(file.readframes(16_000), "<i2")
    assert np.flatnonzero(np.abs(samples.reshape(4, -1)).max(axis=1) > 1000).tolist() == [0, 2, 3]


def test_audio_that_was_not_searched_is_never_returned(tmp_path, silent_wav):
    """A recording that was not searched is never returned as redacted."""
    data_dir, job = DataDir(tmp_path), "12345678-1234-4234-8234-123456789abc"
    data_dir.make()
    data_dir.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    with pytest.raises(JobFailed, match="redact_pii"):
        RedactedAudioStore.make(data_dir, job, media, None, {})
    assert list(data_dir.job(job).iterdir()) == []


def test_other_paths_still_need_the_key(service, asked):
    """Only signed URLs work without the key."""
    for path in ("/redacted-audio", "/v2/transcript", "/redacted-audio/../v2/transcript"):
        assert requests.get(service.url + path, timeout=10).status_code in (401, 403, 404)
