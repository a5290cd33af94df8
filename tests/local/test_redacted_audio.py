"""Redacted audio at an address that is good for a while."""

import time
import wave
from urllib.parse import parse_qs, urlsplit

import numpy as np
import orjson
import pytest
import requests

from voxframe.local import redacted
from voxframe.local.failed import JobFailed
from voxframe.local.jobs import Jobs
from voxframe.local.places import Places
from voxframe.local.redacted import RedactedAudio

SOUND = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def asked(service):
    """Makes jobs that asked for redacted audio, in whatever state, with or without a file."""

    def make(status="completed", sound=SOUND, kind="mp3"):
        places = Places(service.data_dir)
        jobs = Jobs(places.database)
        fields = {"audio_url": "http://192.0.2.1/a", "redact_pii": True, "redact_pii_audio": True}
        job = jobs.add(fields, None, "nobody", places.job).id
        # No holder: should the service have taken it already, what it makes of it is dropped.
        change = "UPDATE jobs SET status = ?, holder = NULL WHERE id = ?"
        jobs.database.connection.execute(change, (status, job))
        jobs.close()
        places.result(job).write_bytes(orjson.dumps({"text": "", "words": []}))
        if sound:
            places.redacted(job, kind).write_bytes(sound)
        return job

    return make


def ask(service, job):
    """The answer about a job's redacted audio."""
    return service.get(f"/v2/transcript/{job}/redacted-audio")


def test_ready_audio_has_the_shape_of_the_interface(service, asked, payload_folder):
    """Status and address, with an end to its time as storage services write it."""
    example = orjson.loads((payload_folder / "RedactedAudioResponse.json").read_bytes())
    ready = ask(service, asked())
    assert ready.status_code == 200
    assert ready.json().keys() == example.keys()
    assert ready.json()["status"] == example["status"]
    query = parse_qs(urlsplit(ready.json()["redacted_audio_url"]).query)
    assert query.keys() == {"Expires", "Signature"}
    assert 3500 < int(query["Expires"][0]) - time.time() <= 3600


@pytest.mark.parametrize(("kind", "media"), [("mp3", "audio/mpeg"), ("wav", "audio/wav")])
def test_address_needs_no_key(service, asked, kind, media):
    """A player in a browser can use it as it is; so can a download."""
    url = ask(service, asked(kind=kind)).json()["redacted_audio_url"]
    whole = requests.get(url, timeout=10)
    assert whole.status_code == 200
    assert whole.content == SOUND
    assert whole.headers["content-type"] == media
    assert whole.headers["accept-ranges"] == "bytes"
    head = requests.head(url, timeout=10)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(SOUND)))


def test_rest_of_a_broken_download_can_be_had(service, asked):
    """A range, where the file is still the same; all of it, where it is not."""
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


def test_address_that_was_changed_is_refused(service, asked):
    """No other file, no longer time, no other signature."""
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


def test_address_is_refused_when_its_time_is_over(tmp_path, monkeypatch):
    """Until then it is good, for a new process with the same key too; with another key never."""
    places = Places(tmp_path)
    places.make()
    job = "12345678-1234-4234-8234-123456789abc"
    places.job(job).mkdir()
    places.redacted(job, "mp3").write_bytes(SOUND)
    url = urlsplit(RedactedAudio(places, "key").url(job, "http://127.0.0.1:1"))
    signed = {name: values[0] for name, values in parse_qs(url.query).items()}
    given = (url.path.removeprefix(redacted.PREFIX), signed["Expires"], signed["Signature"])
    assert RedactedAudio(places, "key").at(*given) == (places.redacted(job, "mp3"), "audio/mpeg")
    with pytest.raises(PermissionError, match="not signed"):
        RedactedAudio(places, "another key").at(*given)
    later = time.time() + redacted.GOOD_FOR + 1
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(PermissionError, match="expired"):
        RedactedAudio(places, "key").at(*given)
    assert "key" not in repr(RedactedAudio(places, "key")).replace("places", "")


def test_not_ready_is_a_202(service, asked):
    """An empty object, until the transcript is completed."""
    answer = ask(service, asked("processing", sound=None))
    assert answer.status_code == 202
    assert answer.json() == {}


@pytest.mark.parametrize(("status", "named"), [("error", "error"), ("completed", "expired")])
def test_audio_that_will_not_come_is_a_400(service, asked, status, named):
    """A transcript that failed, and a file that is no longer kept."""
    answer = ask(service, asked(status, sound=None))
    assert answer.status_code == 400
    assert named in answer.json()["error"]


def test_audio_of_a_deleted_transcript_is_gone(service, asked):
    """Address and file go with the transcript."""
    job = asked()
    url = ask(service, job).json()["redacted_audio_url"]
    service.request("DELETE", f"/v2/transcript/{job}")
    assert requests.get(url, timeout=10).status_code == 404
    assert ask(service, job).status_code == 400


def test_file_is_made_from_the_recording(tmp_path, silent_wav):
    """A tone where something was to be covered and the recording elsewhere, as long as that; nothing half made."""
    places, job = Places(tmp_path), "12345678-1234-4234-8234-123456789abc"
    places.make()
    places.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    RedactedAudio.make(places, job, media, [[200, 600]], {"redact_pii_audio_quality": "wav"})
    assert [path.name for path in places.job(job).iterdir()] == ["redacted.wav"]
    with wave.open(str(places.redacted(job, "wav"))) as file:
        assert (file.getframerate(), file.getnframes()) == (16_000, 16_000)
        samples = np.frombuffer(file.readframes(16_000), "<i2")
    assert np.abs(samples[3200:9600]).max() > 1000
    assert not samples[:3200].any()
    assert not samples[9600:].any()
    RedactedAudio.make(places, job, media, [], {})
    assert places.redacted(job, "mp3").stat().st_size > 500


def test_parts_that_were_not_transcribed_are_covered(tmp_path, silent_wav):
    """Nobody looked for anything before `audio_start_from` and after `audio_end_at`."""
    places, job = Places(tmp_path), "12345678-1234-4234-8234-123456789abc"
    places.make()
    places.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    asked = {"redact_pii_audio_quality": "wav", "audio_start_from": 250, "audio_end_at": 500}
    RedactedAudio.make(places, job, media, [], asked)
    with wave.open(str(places.redacted(job, "wav"))) as file:
        samples = np.frombuffer(file.readframes(16_000), "<i2")
    assert np.flatnonzero(np.abs(samples.reshape(4, -1)).max(axis=1) > 1000).tolist() == [0, 2, 3]


def test_recording_in_which_nothing_was_looked_for_is_not_given_out(tmp_path, silent_wav):
    """It would be the recording itself under another name."""
    places, job = Places(tmp_path), "12345678-1234-4234-8234-123456789abc"
    places.make()
    places.job(job).mkdir()
    media = tmp_path / "media"
    media.write_bytes(silent_wav)
    with pytest.raises(JobFailed, match="redact_pii"):
        RedactedAudio.make(places, job, media, None, {})
    assert list(places.job(job).iterdir()) == []


def test_other_paths_still_need_the_key(service, asked):
    """Only a signed address goes without."""
    for path in ("/redacted-audio", "/v2/transcript", "/redacted-audio/../v2/transcript"):
        assert requests.get(service.url + path, timeout=10).status_code in (401, 403, 404)
