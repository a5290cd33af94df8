"""A missing or damaged ledger is rebuilt before anything is sent, so that nothing is charged twice."""

import contextlib
import json
import os
import shutil
import sqlite3
import threading
import warnings
from pathlib import Path

import pandas as pd
import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.client.llm import LlmResponse, Usage
from voxframe.corpus.batch import sync
from voxframe.errors import CorpusWarning

SHOWN = ["key", "source", "service", "state", "transcript_id", "attempts", "error", "audio_duration_s", "customer"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six recordings."""
    folder = tmp_path / "calls"
    folder.mkdir()
    for n in range(6):
        folder.joinpath(f"{n}.mp3").write_bytes(f"sound {n}".encode())
    return folder


def submit(corpus: voxframe.Corpus, client, folder: Path) -> voxframe.corpus.batch.submit.BatchResult:
    """Submit the recordings with an option and a metadata column."""
    paths = sorted(folder.iterdir())
    table = pd.DataFrame({"path": paths, "customer": [path.stem for path in paths]})
    return corpus.submit(table, client=client, speaker_labels=True)


def lose(path: Path) -> None:
    """Delete a ledger."""
    for part in path.parent.glob("catalog.sqlite*"):
        part.unlink()


def overwrite(path: Path) -> None:
    """Overwrite the beginning of a ledger."""
    with path.open("r+b") as file:
        file.write(b"no database" * 300)


def damage_inside(path: Path) -> None:
    """Overwrite everything except the first page of a ledger."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def cut(path: Path) -> None:
    """Truncate a ledger to half its size."""
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    """Truncate a ledger to no bytes."""
    path.write_bytes(b"")


def put_another(path: Path) -> None:
    """Replace a ledger by another database."""
    lose(path)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE other (x)")


ACCIDENTS = [lose, overwrite, damage_inside, cut, empty, put_another]


@pytest.mark.parametrize(("accident", "fetched"), [*((accident, 3) for accident in ACCIDENTS), (lose, 0), (lose, 6)])
def test_nothing_is_submitted_again(peer, client, corpus, folder: Path, accident, fetched: int) -> None:
    """Submit knows all jobs as they were, fetched or not."""
    peer.outcome = "processing"
    submit(corpus, client, folder)
    peer.statuses |= dict.fromkeys([f"t{n + 1}" for n in range(fetched)], "completed")
    corpus.sync(client=client)
    before = corpus.jobs()[SHOWN].sort_values("key", ignore_index=True)
    accident(corpus._ledger.path)
    with pytest.warns(CorpusWarning, match="rebuilt with 6 submissions"):
        done = submit(corpus, client, folder)
    assert (done.sent, done.known, done.waiting) == (0, 6, 6 - fetched)
    assert peer.count("POST /v2/transcript") == 6
    pd.testing.assert_frame_equal(corpus.jobs()[SHOWN].sort_values("key", ignore_index=True), before)
    peer.statuses = dict.fromkeys(peer.statuses, "completed")
    assert corpus.sync(client=client).fetched == 6 - fetched


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_sync_rebuilds_the_ledger(peer, client, corpus, folder: Path, accident) -> None:
    """Jobs at the service are fetched although the ledger was lost."""
    submit(corpus, client, folder)
    accident(corpus._ledger.path)
    with pytest.warns(CorpusWarning, match="rebuilt"):
        assert corpus.sync(client=client).fetched == 6


def test_jobs_whose_answer_was_lost_are_found_without_a_ledger(peer, client, corpus, folder: Path, monkeypatch) -> None:
    """The record written before the request is enough to find the job, or to call it uncertain."""
    peer.cut_submissions, peer.lagging = 6, True
    submit(corpus, client, folder)
    lose(corpus._ledger.path)
    monkeypatch.setattr(sync, "SETTLE_S", 0)
    with pytest.warns(CorpusWarning, match="rebuilt"):
        assert submit(corpus, client, folder).uncertain == 6
    peer.catch_up()
    assert corpus.sync(client=client).adopted == 6
    assert peer.count("POST /v2/transcript") == 6


def test_transcribe_retry_and_plan_rebuild_the_ledger(peer, client, corpus, folder: Path) -> None:
    """Every method that sends or plans requests knows the submitted jobs."""
    first = corpus.transcribe(folder / "0.mp3", client=client)
    for act in (
        lambda: corpus.transcribe(folder / "0.mp3", client=client) == first,
        lambda: corpus.retry(failed=True, uncertain=True, client=client).sent == 0,
        lambda: corpus.plan(folder / "0.mp3", client=client).known == 1,
        lambda: corpus.adopt(client).adopted == 0,
    ):
        lose(corpus._ledger.path)
        with pytest.warns(CorpusWarning, match="rebuilt"):
            assert act()
    assert peer.count("POST /v2/transcript") == 1


def test_the_first_write_rebuilds_the_ledger(peer, client, corpus, folder: Path) -> None:
    """An empty ledger is not treated as a new one."""
    submit(corpus, client, folder)
    corpus.sync(client=client)
    customer = corpus.metadata.get("t1")["customer"][0]
    empty(corpus._ledger.path)
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "agent": ["Ada"]}))
    assert submit(corpus, client, folder).sent == 0
    assert corpus.metadata.get("t1")[["customer", "agent"]].to_numpy().tolist() == [[customer, "Ada"]]


def test_payloads_alone_restore_their_jobs(peer, client, corpus, folder: Path, tmp_path: Path) -> None:
    """The jobs of payloads copied to another corpus are known to submit."""
    submit(corpus, client, folder)
    corpus.sync(client=client)
    other = voxframe.Corpus(tmp_path / "other")
    shutil.copytree(corpus.path / "raw", other.path / "raw")
    with pytest.warns(CorpusWarning, match="6 submissions"):
        assert submit(other, client, folder).known == 6


def test_a_payload_that_is_replaced_keeps_its_submission(peer, client, corpus, folder: Path) -> None:
    """Fetching a transcript again keeps the record of its submission."""
    submit(corpus, client, folder)
    corpus.sync(client=client)
    for n in range(6):
        corpus.raw.put(f"t{n + 1}", corpus.raw.get(f"t{n + 1}"))
    lose(corpus._ledger.path)
    with pytest.warns(CorpusWarning, match="6 submissions"):
        assert submit(corpus, client, folder).known == 6


def test_the_last_of_two_submissions_is_restored(peer, client, corpus, folder: Path) -> None:
    """Of two transcripts of the same audio and options, the rebuilt ledger names the later one."""
    corpus.transcribe(folder / "0.mp3", client=client)
    second = corpus.transcribe(folder / "0.mp3", client=client, force=True)
    lose(corpus._ledger.path)
    assert corpus.raw.rebuild_ledger() == 1
    assert corpus._batch.find_transcript(folder / "0.mp3", client) == second


def test_forgotten_transcripts_are_not_restored(peer, client, corpus, folder: Path) -> None:
    """No record is left of a deleted transcript, fetched or not."""
    peer.outcome = "processing"
    submit(corpus, client, folder)
    peer.statuses["t1"] = "completed"
    corpus.sync(client=client)
    corpus.forget("t1")
    corpus.forget("t2")
    lose(corpus._ledger.path)
    assert corpus.raw.rebuild_ledger() == 4
    assert not set(corpus.jobs()["transcript_id"]) & {"t1", "t2"}


def test_an_older_copy_of_the_ledger_is_completed(peer, client, corpus, folder: Path, tmp_path: Path) -> None:
    """A restored backup gets the later jobs and keeps its own content."""
    corpus.submit(folder / "0.mp3", client=client)
    corpus.sync(client=client)
    with contextlib.closing(sqlite3.connect(corpus._ledger.path)) as db:
        db.execute("VACUUM INTO ?", [str(tmp_path / "copy")])
    submit(corpus, client, folder)
    lose(corpus._ledger.path)
    shutil.copy(tmp_path / "copy", corpus._ledger.path)
    assert submit(corpus, client, folder).known == 6
    assert corpus.raw.rebuild_ledger() == 0
    assert len(corpus.jobs()) == 7


def test_what_was_made_or_paid_for_survives_a_lost_catalog(peer, client, corpus, folder: Path) -> None:
    """Metadata, responses, names, people, corrections and planned jobs come back from the records."""
    peer.refuse_submissions = 1
    submit(corpus, client, folder)
    corpus.sync(client=client)
    corpus.raw.note_response(LlmResponse("r1", "task", (), Usage(1, 1), transcript_ids=("t1",)), client=client)
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["changed"]}))
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.speakers.assign(by="name")
    corpus.corrections.set("t1", {0: "Good evening."})
    before = corpus.words("t1")
    lose(corpus._ledger.path)
    assert corpus.raw.rebuild_ledger() == 6
    assert corpus.jobs()["state"].value_counts().to_dict() == {"completed": 5, "error": 1}
    assert corpus.metadata.get("t1")["customer"].to_list() == ["changed"]
    assert corpus._ledger.requests(corpus.jobs()["service"][0], "t1") == ["r1"]
    assert corpus.speakers.table("t1")["person"].to_list()[0] == "Ada"
    pd.testing.assert_frame_equal(corpus.words("t1"), before)
    assert before["text"].to_list()[:2] == ["Good", "evening."]


def test_a_damaged_record_costs_only_itself(corpus, client, peer, folder: Path) -> None:
    """A flipped bit in a record is found by its checksum; the record is named and left out, and the others are read."""
    submit(corpus, client, folder)
    corpus.sync(client=client)
    corpus.speakers.set("t1", {"A": "Ada Lovelace"})
    corpus.speakers.set("t2", {"A": "Grace"})
    (path,) = corpus.path.glob("records/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"Ada Lovelace", b"Ada Lovehace"))
    lose(corpus._ledger.path)
    with pytest.warns(CorpusWarning, match=r"a record in .*jsonl at byte \d+ is damaged"):
        assert corpus.speakers.get()["speaker_name"].to_list() == ["Grace"]
    assert len(corpus.words()) == 18


@pytest.mark.parametrize(
    ("content", "changed"),
    [
        (b"Ada Lovelace", b"Ada Lovehace"),
        (b"Good evening", b"Good\xffevening"),
        (b"Acme", b"Acne"),
        (b"[[[0, 1]", b"[[[1, 0]"),
    ],
    ids=["name", "text that is not UTF-8", "metadata", "place of rows"],
)
def test_a_flipped_bit_in_the_catalog_is_found(corpus, content: bytes, changed: bytes) -> None:
    """`verify` names the row, and a read says so and returns what is recorded, not the changed value."""
    corpus.add([json.dumps(payload(name)).encode() for name in ("t1", "t2")])
    corpus.speakers.set("t1", {"A": "Ada Lovelace"})
    corpus.corrections.set("t1", {0: "Good evening."})
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"]}))
    before = corpus.table("words", metadata=True)
    path = corpus._ledger.path
    assert content in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(content, changed))
    with pytest.warns(CorpusWarning, match="wrong checksum"):
        found = voxframe.Corpus(corpus.path).table("words", metadata=True)
    pd.testing.assert_frame_equal(found, before)
    assert voxframe.Corpus(corpus.path).raw.verify() == []


def test_verify_names_damage_of_rows_that_are_not_read(corpus) -> None:
    """A changed row of a large table is found by `verify`, and `rebuild_ledger` mends it."""
    corpus.add(json.dumps(payload("t1")).encode())
    path = corpus._ledger.path
    path.write_bytes(path.read_bytes().replace(b"completed", b"Completed"))
    corpus = voxframe.Corpus(corpus.path)
    (problem,) = corpus.raw.verify()
    assert "1 row of" in problem
    assert "--rebuild-ledger" in problem
    with pytest.warns(CorpusWarning, match="wrong checksum"):
        corpus.raw.rebuild_ledger()
    assert len(corpus.words()) == 3
    assert corpus.raw.verify() == []


def test_a_change_that_was_recorded_and_not_committed_is_made(corpus, monkeypatch) -> None:
    """If the process or the power ends between the record and the commit, the next read repeats the change."""
    corpus.add(json.dumps(payload("t1")).encode())
    catalog = corpus._archive.catalog
    append = catalog.records.append

    def die(lines) -> None:
        append(lines)
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog.records, "append", die)
    with pytest.raises(KeyboardInterrupt):
        corpus.speakers.set("t1", {"A": "Ada"})
    assert voxframe.Corpus(corpus.path).words()["speaker_name"].to_list() == ["Ada", "Ada", "B"]


@pytest.mark.parametrize("cut", range(1, 400, 57))
def test_half_a_record_does_not_spoil_the_next(corpus, cut: int) -> None:
    """After a power cut in the middle of a record, what is recorded next is read."""
    corpus.add([json.dumps(payload(name)).encode() for name in ("t1", "t2")])
    corpus.speakers.set("t1", {"A": "Ada"})
    (path,) = corpus.path.glob("records/*.jsonl")
    content = path.read_bytes()
    path.write_bytes(content[: max(1, len(content) - cut)])
    corpus.speakers.set("t2", {"A": "Grace"})
    lose(corpus._ledger.path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorpusWarning)
        names = corpus.speakers.get("t2")["speaker_name"].to_list()
    assert names == ["Grace"]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_ledger_is_private(peer, client, corpus, folder: Path) -> None:
    """Only the owner can read the ledger and enter the corpus, because sources may contain passwords."""
    submit(corpus, client, folder)
    assert corpus.path.stat().st_mode & 0o777 == 0o700
    assert (corpus.path / "records").stat().st_mode & 0o777 == 0o700
    with corpus._archive.catalog.session():
        modes = {path.name: path.stat().st_mode & 0o777 for path in corpus.path.glob("catalog.sqlite*")}
    assert set(modes.values()) == {0o600}, modes


def test_only_one_of_two_processes_rebuilds_a_missing_catalog(peer, client, corpus, folder: Path) -> None:
    """A process that waited while another one made the catalog gives no warning about it."""
    submit(corpus, client, folder)
    catalog = corpus._archive.catalog
    lose(catalog.path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with catalog.lock("catalog"):
            waiting = threading.Thread(target=catalog.restore)
            waiting.start()
            waiting.join(0.2)
            assert waiting.is_alive()
            assert catalog._make() == 6  # as the other process does
        waiting.join()
    assert not caught
    assert len(corpus.jobs()) == 6
