import dataclasses
import json
import os
import re
import threading
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import zstandard
from tests.corpus.conftest import export, forget_until, payload, raw_file

import voxframe
from voxframe.client.llm import LlmResponse, Usage
from voxframe.corpus import importing
from voxframe.errors import CorpusError, CorpusWarning, PayloadError, PayloadWarning, ServiceError


@pytest.fixture
def sent(peer, client, corpus, tmp_path: Path) -> voxframe.Corpus:
    """A corpus with five jobs at the service."""
    peer.outcome = "processing"
    for n in range(5):
        tmp_path.joinpath(f"{n}.mp3").write_bytes(bytes([n]))
    corpus.submit(tmp_path, client=client)
    return corpus


def test_finished_jobs_are_fetched(peer, client, sent) -> None:
    """Completed and failed jobs are fetched once; the others are left."""
    assert sent.sync(client=client).waiting == 5
    peer.statuses |= {"t1": "completed", "t2": "completed", "t3": "error"}
    done = sent.sync(client=client)
    assert (done.fetched, done.failed, done.waiting) == (2, 1, 2)
    jobs = sent.jobs().set_index("transcript_id")
    assert jobs["state"].loc[["t1", "t2", "t3", "t4"]].to_list() == ["completed", "completed", "error", "submitted"]
    assert jobs.loc["t1", "audio_duration_s"] == 2.0
    assert jobs.loc["t3", "error"] == "no audio"
    assert sent.table("words", "t1")["text"].to_list() == ["Good", "morning.", "Hello!"]
    peer.asked.clear()
    sent.sync(client=client)
    assert sum("/t1" in line or "/t3" in line for line in peer.asked) == 0


def test_many_jobs_are_polled_by_the_list(peer, client, sent) -> None:
    """Unfinished jobs are not requested one by one."""
    peer.asked.clear()
    sent.sync(client=client)
    assert [line.split("?")[0] for line in peer.asked] == ["GET /v2/transcript"]


def test_wait_returns_when_all_jobs_have_finished(peer, client, sent) -> None:
    """With wait=True, the call returns after the last job."""
    threading.Timer(0.5, lambda: peer.statuses.update(dict.fromkeys(peer.statuses, "completed"))).start()
    done = sent.sync(client=client, wait=True)
    assert (done.fetched, done.waiting) == (5, 0)
    assert done.ok


def test_a_transcript_that_the_service_does_not_know_is_uncertain(peer, client, sent) -> None:
    """It may have been deleted, or the key may be wrong, so the job is uncertain."""
    del peer.statuses["t1"]
    sent.sync(client=client)
    jobs = sent.jobs().set_index("transcript_id")
    assert jobs.loc["t1", "state"] == "uncertain"
    assert "not found" in jobs.loc["t1", "error"]
    assert sent.retry(client=client).sent == 0
    peer.statuses["t1"] = "completed"
    assert sent.sync(client=client).fetched == 1


def test_a_transcript_that_is_too_large_does_not_stop_the_others(peer, client, sent, tmp_path, monkeypatch) -> None:
    """It is named in the result and the ledger; a later sync with a larger limit fetches it."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    answer = peer.answer
    padded = {"id": "t3", "status": "completed", "text": "a" * 20_000}
    monkeypatch.setattr(
        peer, "answer", lambda method, path, body: (200, padded) if path.endswith("/t3") else answer(method, path, body)
    )
    small = voxframe.Client(dataclasses.replace(client.settings, max_response_mb=0.01))
    done = sent.sync(client=small, wait=True)
    assert (done.fetched, done.failed, done.waiting) == (4, 1, 1)
    job = sent.jobs().set_index("transcript_id").loc["t3"]
    assert job["state"] == "submitted"
    assert "larger than 10,485 bytes (GET /v2/transcript/t3)" in job["error"]
    assert sent.sync(client=client).fetched == 1
    assert sent.jobs()["error"].isna().all()


def test_a_response_that_is_never_json_does_not_stop_the_others(peer, client, sent, monkeypatch) -> None:
    """It fails after a few attempts with the reason in its row; a later sync fetches it."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    answer = peer.answer
    monkeypatch.setattr(
        peer,
        "answer",
        lambda method, path, body: (200, b'{"id": no}') if path.endswith("/t3") else answer(method, path, body),
    )
    done = sent.sync(client=client, wait=True)
    assert (done.fetched, done.failed, done.waiting) == (4, 1, 1)
    jobs = sent.jobs().set_index("transcript_id")
    assert jobs.loc["t3", "state"] == "submitted"
    assert "GET /v2/transcript/t3" in jobs.loc["t3", "error"]
    assert peer.asked.count("GET /v2/transcript/t3") <= 3
    monkeypatch.undo()
    assert sent.sync(client=client).fetched == 1


def test_a_missing_payload_is_fetched_again(peer, client, sent) -> None:
    """A completed job without its payload is fetched again."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    sent.sync(client=client)
    raw_file(sent, "t2.json.zst").unlink()
    assert sent.sync(client=client).fetched == 1
    assert "t2" in sent


def test_transcripts_fetched_before_an_outage_are_kept(peer, client, sent, monkeypatch) -> None:
    """A service that becomes unavailable is an error, and the next call continues."""
    monkeypatch.setattr("voxframe.corpus.batch.worker_pool.PATIENCE_S", 0.0)
    monkeypatch.setattr("voxframe.corpus.batch.worker_pool.FIRST_PATIENCE_S", 0.0)
    monkeypatch.setattr(client.transport, "attempts", 1)
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    answer = peer.answer

    def away(method: str, path: str, body: bytes) -> tuple[int, dict] | None:
        return (
            (503, {"error": "away"})
            if path.startswith(("/v2/transcript/t3", "/v2/transcript/t4"))
            else answer(method, path, body)
        )

    peer.answer = away
    with pytest.raises(ServiceError, match="away"):
        sent.sync(client=client)
    peer.answer = answer
    before = len(sent.ids())
    assert before < 5
    assert sent.sync(client=client).fetched == 5 - before


def test_adopt_fetches_all_transcripts_of_the_service(peer, client, corpus, tmp_path: Path) -> None:
    """Transcripts of another corpus are added; those with a URL are known to submit."""
    address = "https://audio.example/a.mp3"
    other = voxframe.Corpus(tmp_path / "other")
    other.submit([address, "https://audio.example/b.mp3"], client=client, speaker_labels=True)
    peer.statuses |= {"t3": "error", "t4": "processing", "t5": "completed"}
    peer.audio_urls |= {"t4": "https://audio.example/c.mp3", "t5": "http://deleted_by_user"}
    done = corpus.adopt(client)
    assert (done.adopted, done.fetched, done.waiting) == (3, 2, 1)
    assert corpus.ids() == ["t1", "t2"]
    assert corpus.plan(address, client=client, speaker_labels=True).known == 1
    assert corpus.plan(address, client=client).new_options == 1
    assert corpus.adopt(client).adopted == 0
    peer.statuses["t4"] = "completed"
    assert corpus.sync(client=client).fetched == 1


@pytest.mark.parametrize("answer", [(200, b'{"id": no}'), (410, {"error": "gone"})])
def test_adopt_continues_after_a_transcript_that_cannot_be_fetched(peer, client, corpus, monkeypatch, answer) -> None:
    """It is counted and named, and a later adopt fetches it."""
    for n in range(4):
        peer.statuses[f"t{n}"], peer.audio_urls[f"t{n}"] = "completed", f"https://audio.example/{n}.mp3"
    respond = peer.answer
    monkeypatch.setattr(
        peer, "answer", lambda method, path, body: answer if path.endswith("/t2") else respond(method, path, body)
    )
    client.transport.attempts = 1
    with pytest.warns(CorpusWarning, match="1 of 4 transcripts could not be fetched, such as t2"):
        done = corpus.adopt(client)
    assert (done.adopted, done.fetched, done.failed) == (3, 3, 1)
    monkeypatch.undo()
    assert corpus.adopt(client).fetched == 1


def test_two_adoptions_at_the_same_time_make_one_job(peer, client, corpus) -> None:
    """A transcript that another thread or process adopted in the meantime has one job."""
    peer.statuses["t1"], peer.audio_urls["t1"] = "completed", "https://audio.example/1.mp3"
    both, answer = threading.Barrier(2, timeout=20), peer.answer

    def listed_to_both(method: str, path: str, body: bytes) -> tuple[int, dict] | None:
        if path.startswith("/v2/transcript?"):
            both.wait()
        return answer(method, path, body)

    peer.answer = listed_to_both
    results = []
    corpora = [voxframe.Corpus(corpus.path) for _ in range(2)]
    adoptions = [threading.Thread(target=lambda c=one: results.append(c.adopt(client))) for one in corpora]
    for thread in adoptions:
        thread.start()
    for thread in adoptions:
        thread.join()
    assert corpus.jobs()["transcript_id"].to_list() == ["t1"]
    assert sorted(done.adopted for done in results) == [0, 1]


def test_adopt_leaves_jobs_alone_that_are_being_submitted(peer, client, corpus, recording: Path) -> None:
    """A job that another thread or process is submitting belongs to its submission, although it is listed already."""
    listed, go_on = threading.Event(), threading.Event()
    answer = peer.answer

    def slow(method: str, path: str, body: bytes) -> tuple[int, dict] | None:
        done = answer(method, path, body)
        if (method, path) == ("POST", "/v2/transcript"):
            listed.set()
            go_on.wait(20)
        return done

    peer.answer = slow
    submission = threading.Thread(target=corpus.submit, args=(recording,), kwargs={"client": client})
    submission.start()
    assert listed.wait(20)
    assert voxframe.Corpus(corpus.path).adopt(client).adopted == 0
    go_on.set()
    submission.join()
    assert corpus.jobs()["transcript_id"].to_list() == ["t1"]


def test_forget_deletes_a_transcript(peer, client, sent) -> None:
    """No file and no row is left, and on demand it is deleted at the service."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    sent.sync(client=client)
    sent.raw.put("t1", json.dumps(export("t1", "sentences")).encode(), "sentences")
    sent.forget("t1")
    assert peer.count("DELETE") == 0
    sent.forget("t2", remote=True, client=client)
    assert [line for line in peer.asked if line.startswith("DELETE")] == ["DELETE /v2/transcript/t2"]
    assert sent.ids() == ["t3", "t4", "t5"]
    assert not [path for path in sent.path.rglob("*") if path.name.startswith(("t1", "t2"))]
    assert set(sent.jobs()["transcript_id"]) == {"t3", "t4", "t5"}
    with pytest.raises(CorpusError, match="no transcript 't1'"):
        sent.forget("t1")


@pytest.mark.parametrize("step", ["_archive.remove", "_archive.files.drop", "_archive.catalog.forget"])
def test_an_interrupted_forget_is_not_undone_by_a_sync(peer, client, sent, step: str) -> None:
    """A transcript that is gone after a kill is not fetched again, and another call with its recording finishes."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    sent.sync(client=client)
    (name,) = sent.table("transcripts", "t1")["recording"]
    sent.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"]}))
    forget_until(sent, name, f"_batch.{step}")
    here = sent.ids()
    sent.sync(client=client)
    assert sent.ids() == here
    if "t1" in here:
        about = sent.table("transcripts", name, metadata="customer")
        assert about[["recording", "customer"]].to_numpy().tolist() == [[name, "Acme"]]
    sent.forget(name)
    sent.raw.rebuild_ledger()
    sent.sync(client=client)
    assert sent.ids() == ["t2", "t3", "t4", "t5"]
    with pytest.raises(CorpusError, match="there is no transcript"):
        sent.forget(name)


def test_forget_purges_language_model_responses(peer, client, sent) -> None:
    """Responses about it are purged before it is deleted at the service; others stay."""
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    sent.sync(client=client)
    for request_id, about in (("r1", ("t1", "t2")), ("r2", ("t2",)), ("r3", ("t3",))):
        sent.raw.note_response(LlmResponse(request_id, "task", (), Usage(1, 1), transcript_ids=about), client=client)
    sent.forget("t2", remote=True)
    deleted = [line for line in peer.asked if line.startswith("DELETE")]
    assert deleted == ["DELETE /llm/v3/r1", "DELETE /llm/v3/r2", "DELETE /v2/transcript/t2"]
    sent.forget("t1", remote=True)
    assert peer.count("DELETE /llm") == 2


def test_a_failed_forget_changes_nothing(peer, client, sent, monkeypatch) -> None:
    """If the service does not delete it, the corpus keeps it; a transcript of another service is refused."""
    peer.statuses["t1"] = "completed"
    sent.sync(client=client)
    answer = peer.answer
    peer.answer = lambda m, p, b: (400, {"error": "not now"}) if m == "DELETE" else answer(m, p, b)
    with pytest.raises(ServiceError, match="not now"):
        sent.forget("t1", remote=True, client=client)
    assert "t1" in sent
    other = voxframe.connect("https://other.example", api_key="k")
    with pytest.raises(CorpusError, match=r"is at http://127"):
        sent.forget("t1", remote=True, client=other)


def test_payload_files_are_added(corpus, tmp_path: Path) -> None:
    """Files, lists, compressed files, exports and zips are added byte for byte; others are named with a reason."""
    folder = tmp_path / "old"
    folder.mkdir()
    raw = json.dumps(payload("a1"), indent=1).encode()
    folder.joinpath("a1.json").write_bytes(raw)
    folder.joinpath("b1.json.zst").write_bytes(zstandard.compress(json.dumps(payload("b1")).encode()))
    folder.joinpath("c.json").write_text(json.dumps([payload("c1"), payload("c2", "error"), {"id": "c3"}]))
    folder.joinpath("c1.sentences.json").write_text(json.dumps(export("c1", "sentences")))
    folder.joinpath("d.json").write_text(json.dumps(payload("d", "queued")))
    folder.joinpath("e.json").write_text("{broken")
    folder.joinpath("nan.json").write_text('{"id": "n1", "status": "completed", "confidence": NaN}')
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("../../evil.json", json.dumps(payload("../../evil")))
        archive.writestr("x/y.json", json.dumps(payload("z1")))
        archive.writestr("read.me", "hello")
    done = corpus.add(folder)
    assert corpus.ids() == ["../../evil", "a1", "b1", "c1", "c2", "n1", "z1"]
    assert (done.added, done.transcripts, done.known) == (8, 7, 0)
    assert str(done).startswith("7 transcripts added (8 payloads), 0 payloads known, 4 left out\n")
    reasons = {name.rpartition("/")[2]: reason for name, reason in done.left_out}
    assert set(reasons) == {"c.json[2]", "d.json", "e.json", "more.zip:read.me"}
    assert "status is 'queued'" in reasons["d.json"]
    assert corpus.raw.get("a1") == raw
    assert len(corpus.table("sentences", "c1")) == 2
    assert not list(tmp_path.parent.glob("evil*"))
    again = corpus.add(f"{folder}/*.json")
    assert (again.added, again.known) == (0, 5)
    assert str(again).startswith("0 transcripts added, 5 payloads known, 3 left out\n")


def test_odd_ids_file_names_and_urls_stop_no_import(corpus, tmp_path: Path) -> None:
    """A lone surrogate in an id leaves out this payload; one in a file name or URL, and an invalid URL, are escaped."""
    sources = {
        b"half.json": payload("\ud800"),
        b"caf\xe9.json": payload("a1"),
        b"url.json": payload("a2") | {"audio_url": "https://h/\ud800.mp3"},
        b"host.json": payload("a3") | {"audio_url": "https://[x/call.mp3"},
        b"host2.json": payload("a4") | {"audio_url": "https://[y/call.mp3"},
    }
    for name, one in sources.items():
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(json.dumps(one).encode())
    with pytest.warns(PayloadWarning, match="'a2' has invalid values: audio_url: an unpaired surrogate was replaced"):
        done = corpus.add(tmp_path)
    assert (done.added, [Path(name).name for name, _ in done.left_out]) == (4, ["half.json"])
    assert "surrogate" in done.left_out[0][1]
    assert corpus.ids() == ["a1", "a2", "a3", "a4"]
    assert corpus.add(dict(payload("a5"), audio_url="https://[x/call.mp3")).added == 1
    known = corpus.table("transcripts", columns=["transcript_id", "recording"]).set_index("transcript_id")["recording"]
    assert known["a5"] == known["a3"] != known["a4"]
    assert str(done).encode()


def test_a_different_payload_needs_replace(corpus, tmp_path: Path) -> None:
    """A different payload with the same id is stored only with replace=True."""
    corpus.raw.put("a1", json.dumps(payload("a1")).encode())
    path = tmp_path / "a1.json"
    path.write_text(json.dumps(payload("a1") | {"text": "Other."}))
    assert "replace=True" in repr(corpus.add(path))
    assert corpus.add([path], replace=True).added == 1
    assert corpus.table("transcripts")["text"].to_list() == ["Other."]


def test_decompression_is_limited(corpus, tmp_path: Path, monkeypatch) -> None:
    """A file that decompresses to more than the limit is not read to its end."""
    monkeypatch.setattr(importing, "MAX_BYTES", 10_000)
    monkeypatch.setattr(importing, "MAX_MEMBERS", 2)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(3):
            archive.writestr(f"{n}.json", b'{"id": "' + b"0" * 10**6)
    tmp_path.joinpath("bomb.json.zst").write_bytes(zstandard.compress(b" " * 10**6))
    tmp_path.joinpath("no.zip").write_bytes(b"PK\3\4 no")
    done = corpus.add(tmp_path)
    assert done.added == 0
    assert [re.search("is larger than|contains 3 files|cannot be read", reason)[0] for _, reason in done.left_out] == [
        *["is larger than"] * 3, "contains 3 files", "cannot be read"
    ]  # fmt: skip
    with pytest.raises(PayloadError, match="matches no payload file"):
        corpus.add(f"{tmp_path}/*.xml")


@pytest.mark.parametrize("slip", ["", 3, None, [None]])
def test_invalid_payload_sources_are_refused(corpus, tmp_path: Path, monkeypatch, slip) -> None:
    """Empty text does not mean the working directory, and other types are errors."""
    tmp_path.joinpath("a.json").write_text(json.dumps(payload("a")))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PayloadError, match="payloads must be files, folders"):
        corpus.add(slip)
    assert not corpus.path.exists()


def test_suffixes_in_capitals(corpus, tmp_path: Path) -> None:
    """.JSON and .ZIP are read; the error for a zip inside a zip says what to do."""
    tmp_path.joinpath("A.JSON").write_text(json.dumps(payload("a")))
    with zipfile.ZipFile(tmp_path / "B.ZIP", "w") as archive:
        archive.writestr("b.Json", json.dumps(payload("b")))
        archive.write(tmp_path / "A.JSON", "inner.zip")
    done = corpus.add(tmp_path)
    assert corpus.ids() == ["a", "b"]
    assert [reason for _, reason in done.left_out] == ["unpack it first"]


def test_exports_may_come_before_their_transcripts(corpus, tmp_path: Path) -> None:
    """The order of files does not matter; an export without its transcript is named once."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("s.json", json.dumps(export("t", "sentences")))
        archive.writestr("orphan.json", json.dumps(export("gone", "paragraphs")))
        archive.writestr("t.json", json.dumps(payload("u")))
    tmp_path.joinpath("b.json").write_text(json.dumps(payload("t")))
    done = corpus.add(tmp_path)
    assert (done.added, done.transcripts, done.known, len(done.left_out)) == (3, 2, 0, 1)
    assert "export of transcript 'gone', which is not in the corpus" in done.left_out[0][1]
    assert len(corpus.table("sentences", "t")) == 2


@pytest.mark.parametrize(("method", "at"), [("lzma", 60), ("stored", -2), ("new", 4)])
def test_a_damaged_zip_does_not_stop_an_import(corpus: voxframe.Corpus, tmp_path: Path, method: str, at: int) -> None:
    """A zip with damaged data, an early end or of a newer version is left out with a reason; other files are added."""
    kind = {"lzma": zipfile.ZIP_LZMA}.get(method, zipfile.ZIP_STORED)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", kind) as archive:
        archive.writestr("a.json", json.dumps(payload("a")))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    directory = data.rindex(b"PK\1\2")
    if method == "new":
        data[directory + 6] = data[4] = 200  # version needed to extract
    elif method == "stored":
        data[directory + 20 : directory + 28] = (10**6).to_bytes(4, "little") * 2  # its size
    else:
        data[at : at + 8] = bytes(8)
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "b.json").write_text(json.dumps(payload("b")))
    added = corpus.add([tmp_path / "a.zip", tmp_path / "b.json"])
    assert corpus.ids() == ["b"]
    ((name, reason),) = added.left_out
    assert name.startswith(str(tmp_path / "a.zip"))
    assert "it cannot be read: " in reason
