"""A corpus of the layout before the catalog keeps what people made or paid for."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from tests.corpus.conftest import payload

import voxframe
from voxframe._files import file_name
from voxframe.errors import CorpusWarning

_JOBS = (
    "key PRIMARY KEY, source, service, options, state, media, transcript_id, attempts, error, audio_duration_s, "
    "address, metadata, created, sent, sent_clock_s, sent_order, answered_order, updated, recording"
)
_WHEN = "2026-11-01T10:00:00+00:00"
_JOB = {
    "key": "job of b2",
    "source": "calls/b2.mp3",
    "service": "http://127.0.0.1:1",
    "options": "{}",
    "state": "uncertain",
    "media": "sound of b2",
    "attempts": 1,
    "metadata": '{"agent": "Bob"}',
    "created": _WHEN,
    "sent": _WHEN,
    "sent_order": 1,
    "updated": _WHEN,
    "recording": "b2",
}


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


def _ledger(path: Path) -> None:
    """Write a ledger with a job, metadata, an answer, and a request without one."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"CREATE TABLE jobs ({_JOBS})")
        db.execute(f"INSERT INTO jobs ({', '.join(_JOB)}) VALUES ({', '.join('?' * len(_JOB))})", [*_JOB.values()])
        db.execute("CREATE TABLE about (transcript_id, metadata, PRIMARY KEY (transcript_id))")
        db.execute("INSERT INTO about VALUES ('a/Ü', ?)", ['{"agent": "Zoë", "score": 3}'])
        db.execute("CREATE TABLE requests (request_id, service, transcript_id)")
        db.execute("INSERT INTO requests VALUES ('r1', 'http://127.0.0.1:1', 't1')")
        columns = "key PRIMARY KEY, service, transcript_id, request_id, request, content, created, pending_since"
        db.execute(f"CREATE TABLE answers ({columns})")
        about = json.dumps({"task": "summary", "prompt": None, "transcript_ids": ["t1"]})
        answer = b'{"request_id": "r1", "response": "A talk.", "usage": {}}'
        db.execute(
            "INSERT INTO answers VALUES ('k1', 'http://127.0.0.1:1', NULL, 'r1', ?, ?, ?, NULL)", [about, answer, _WHEN]
        )
        about = json.dumps({"task": "task", "prompt": "Say it.", "transcript_ids": ["t1"]})
        db.execute(
            "INSERT INTO answers VALUES ('k2', 'http://127.0.0.1:1', NULL, NULL, ?, NULL, NULL, ?)", [about, _WHEN]
        )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A corpus of format 3 with two transcripts."""
    place = tmp_path / "corpus"
    place.mkdir()
    _write(place / "format.json", {"format": 3})
    for name in ("t1", "a/Ü"):
        (place / "raw").mkdir(exist_ok=True)
        raw = json.dumps(payload(name)).encode()
        (place / "raw" / f"{file_name(name)}.json.zst").write_bytes(zstandard.compress(raw))
    _ledger(place / "ledger.sqlite")
    lost = {**_JOB, "key": "job of c3", "media": "sound of c3", "source": "calls/c3.mp3", "recording": "c3"}
    _write(place / ".submissions/c3.json", lost)
    states = [
        {"speakers": {"A": "Ada Lovelace"}, "turns": {}, "made": _WHEN, "made_for": {}},
        {"speakers": {"A": "Ada"}, "turns": {"1": "Gast Ü"}, "made": _WHEN, "made_for": {"1": [900, "Hello!"]}},
    ]
    _write(place / "names/t1.json", {"transcript_id": "t1", "states": states})
    edit = {"action": "text", "turn": 0, "was": {"start": 100, "end": 700, "text": "Good morning."}, "other_was": None}
    edit |= {"value": {"text": "Good evening."}, "made": _WHEN, "author": "eva", "change": 1, "undone": None}
    second = {**edit, "value": {"text": "Good night."}, "change": 2, "undone": _WHEN}
    _write(place / "corrections" / f"{file_name('a/Ü')}.json", {"transcript_id": "a/Ü", "edits": [edit, second]})
    changes = [{"made": _WHEN, "people": {"t1": {"A": "Ada Byron"}}}, {"made": _WHEN, "people": {"a/Ü": {"B": "Bo"}}}]
    _write(place / "people.json", {"changes": changes})
    (place / "parts").mkdir()
    (place / "tables/words").mkdir(parents=True)
    (place / "tables/words/01-02.parquet").write_bytes(b"of the older layout")
    return place


def _check(corpus: voxframe.Corpus) -> None:
    jobs = corpus.jobs().set_index("key")
    assert jobs["state"].to_dict() == {"job of b2": "uncertain", "job of c3": "uncertain"}
    assert jobs["attempts"].tolist() == [1, 1]
    assert jobs["source"].to_dict() == {"job of b2": "calls/b2.mp3", "job of c3": "calls/c3.mp3"}
    about = corpus.metadata.get().set_index("transcript_id")
    assert about.loc["a/Ü", ["agent", "score"]].tolist() == ["Zoë", 3]
    turns = corpus.table("utterances", "t1")
    assert turns["speaker_name"].tolist() == ["Ada", "Gast Ü"]
    assert corpus.speakers.table("t1")["person"].tolist()[0] == "Ada Byron"
    assert corpus.speakers.table("a/Ü").set_index("speaker")["person"]["B"] == "Bo"
    turns = corpus.table("utterances", "a/Ü")
    assert turns["text"].tolist() == ["Good evening.", "Hello!"]
    assert corpus.corrections.history()[["change", "author"]].values.tolist() == [[1, "eva"], [2, "eva"]]
    assert corpus.raw.responses()["response"].tolist() == ["A talk."]
    assert corpus.unanswered()["prompt"].tolist() == ["Say it."]


def test_what_people_made_or_paid_for_is_there(place: Path) -> None:
    """It is there when the corpus is opened, in other processes, and after the new catalog is lost."""
    _check(voxframe.Corpus(place))
    assert not [name for name in ("ledger.sqlite", ".submissions", "names", "people.json") if (place / name).exists()]
    assert not (place / "tables/words/01-02.parquet").exists()
    for path in place.glob("catalog.sqlite*"):
        path.unlink()
    _check(voxframe.Corpus(place))
    corpus = voxframe.Corpus(place)
    corpus.speakers.undo("t1")
    assert corpus.table("utterances", "t1")["speaker_name"].tolist()[0] == "Ada Lovelace"


_DYING = """
import os, sys, voxframe
from voxframe.corpus import catalog
setattr(catalog, sys.argv[2], lambda *_: os._exit(9))
voxframe.Corpus(sys.argv[1]).speakers.get()
"""


def test_a_killed_conversion_is_completed(place: Path) -> None:
    """If the process is killed before the catalog is in its place, the next one has everything."""
    command = [sys.executable, "-c", _DYING, str(place), "put_in_place"]
    assert subprocess.run(command, check=False).returncode == 9
    _check(voxframe.Corpus(place))


def test_a_later_change_is_not_undone(place: Path) -> None:
    """When the catalog is made again, what was read from the older layout does not replace what was changed since."""
    corpus = voxframe.Corpus(place)
    corpus.speakers.set("t1", {"A": "Augusta"})
    corpus.corrections.undo("a/Ü")
    for path in place.glob("catalog.sqlite*"):
        path.unlink()
    corpus = voxframe.Corpus(place)
    assert corpus.table("utterances", "t1")["speaker_name"].tolist()[0] == "Augusta"
    assert corpus.table("utterances", "a/Ü")["text"].tolist() == ["Good morning.", "Hello!"]


def test_what_cannot_be_read_is_moved_aside(place: Path) -> None:
    """A damaged file costs what it held, is named, and is kept."""
    damaged = [place / "names/t1.json", place / "people.json", place / "ledger.sqlite"]
    for path in damaged:
        path.write_bytes(b"no JSON, and no database" * 100)
    for suffix in ("-wal", "-shm"):
        (place / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    corpus = voxframe.Corpus(place)
    with pytest.warns(CorpusWarning) as caught:
        turns = corpus.table("utterances", "a/Ü")
    assert turns["text"].tolist() == ["Good evening.", "Hello!"]
    assert corpus.jobs()["key"].tolist() == ["job of c3"]
    said = [str(one.message) for one in caught]
    for path in damaged:
        assert any(path.name in line and "unreadable" in line for line in said)
    kept = sorted(path.name for path in (place / "unreadable").rglob("*") if path.is_file())
    assert kept == ["ledger.sqlite", "people.json", "t1.json"]
