import contextlib
import copy
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import voxframe
from voxframe.corpus import catalog
from voxframe.corpus.catalog import Catalog
from voxframe.corpus.job import Job, new_job
from voxframe.corpus.ledger import Ledger, service_name
from voxframe.corpus.media import identify
from voxframe.corpus.metadata import jobs_frame
from voxframe.corpus.store import Store
from voxframe.errors import CorpusError
from voxframe.options import check
from voxframe.schema import JOBS


def _ledger(root: Path) -> Ledger:
    return Ledger(Catalog(root, Store(root)))


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    path = tmp_path / "a.wav"
    path.write_bytes(b"sound")
    return path


def job_of(source: Path | str, options: dict, service: str) -> Job:
    """Return the job of a file or URL."""
    return new_job(str(source), identify(str(source), _ledger(Path("nowhere"))).identity, options, service)


def test_same_content_and_options_are_the_same_job(audio: Path, tmp_path: Path) -> None:
    """The file name and the spelling and order of options do not change the key."""
    copy = tmp_path / "other name.mp3"
    copy.write_bytes(b"sound")
    one = job_of(audio, check(speaker_labels=True, punctuate=True, speakers_expected=2), "https://s.example")
    two = job_of(copy, check(speakers_expected=2, speaker_labels=True, language_code=None), "https://s.example")
    assert one.key == two.key


@pytest.mark.parametrize(
    "options", [{"word_boost": []}, {"custom_spelling": []}, {"audio_start_from": 0}, {"speech_threshold": 0}]
)
def test_options_without_effect_do_not_change_the_job(audio: Path, options: dict) -> None:
    """An empty list, a start of 0 and a speech threshold of 0 do not change the key."""
    assert job_of(audio, check(**options), "s").key == job_of(audio, {}, "s").key


def test_a_service_has_one_name() -> None:
    """The default port in the URL of a service does not change its name."""
    addresses = ("https://s.example", "https://S.Example:443/", "https://s.example:8443")
    names = [service_name(voxframe.connect(address, api_key="key")) for address in addresses]
    assert names == ["https://s.example", "https://s.example", "https://s.example:8443"]


def test_other_content_options_or_service_is_another_job(audio: Path) -> None:
    """Everything that changes the transcript changes the key."""
    keys = {job_of(audio, {}, "s").key, job_of(audio, {"punctuate": False}, "s").key, job_of(audio, {}, "t").key}
    audio.write_bytes(b"other sound")
    keys |= {job_of(audio, {}, "s").key, job_of("https://a.example/x.mp3", {}, "s").key}
    assert len(keys) == 5


def test_no_secret_is_stored(audio: Path, tmp_path: Path) -> None:
    """Webhook settings are neither part of the key nor on disk."""
    options = check(
        webhook_url="https://me.example/hook", webhook_auth_header_name="X-Me", webhook_auth_header_value="hidden-value"
    )
    job = job_of(audio, options, "s")
    assert job.key == job_of(audio, {}, "s").key
    ledger = _ledger(tmp_path)
    ledger.save(job)
    assert b"hidden-value" not in b"".join(path.read_bytes() for path in tmp_path.glob("catalog.sqlite*"))


def test_a_job_is_found_as_it_was_saved(audio: Path, tmp_path: Path) -> None:
    """Another process, or the same one later, reads the last state."""
    ledger = _ledger(tmp_path / "deep")
    job = ledger.save(job_of(audio, {"punctuate": False}, "s"))
    assert ledger.find(job.key) == job
    done = ledger.save(job, state="completed", transcript_id="t1")
    assert done.created == job.created
    assert done.updated >= job.updated
    assert _ledger(ledger.path.parent).find(job.key) == done
    assert ledger.find("another") is None


def test_reading_creates_no_file(tmp_path: Path) -> None:
    """A ledger without jobs has no file."""
    ledger = _ledger(tmp_path)
    assert ledger.find("x") is None
    assert ledger.jobs() == []
    assert list(tmp_path.iterdir()) == []


def test_table_has_the_dictionary_schema(audio: Path, tmp_path: Path) -> None:
    """The table of jobs has the columns of the data dictionary, oldest first."""
    ledger = _ledger(tmp_path)
    ledger.save(job_of(audio, {}, "s"))
    ledger.save(job_of("https://a.example/x.mp3", {}, "s"), state="error", error="no audio")
    df = jobs_frame(ledger.jobs())
    assert df.columns.to_list() == JOBS.arrow.names
    assert df.dtypes.astype(str).to_list() == [column.dtype for column in JOBS.columns]
    assert df["source"].to_list() == [str(audio), "https://a.example/x.mp3"]
    assert df["error"].fillna("").to_list() == ["", "no audio"]


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    """A file name with bytes that are not UTF-8 does not prevent a submission."""
    audio = tmp_path / "caf\udce9.wav"
    try:
        audio.write_bytes(b"sound")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    ledger = _ledger(tmp_path)
    ledger.save(job_of(audio, {}, "s"))
    assert ledger.jobs()[0].source.endswith("caf\\udce9.wav")


def test_it_is_a_plain_sqlite_file_in_wal_mode(audio: Path, tmp_path: Path) -> None:
    """Any SQLite tool can read the ledger, also while voxframe writes."""
    path = tmp_path / "catalog.sqlite"
    _ledger(tmp_path).save(job_of(audio, {}, "s"))
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("SELECT state FROM jobs").fetchall() == [("planned",)]


def test_one_thread_holds_a_lock(tmp_path: Path) -> None:
    """Two threads never hold the same lock at once; other keys do not wait."""
    ledger = _ledger(tmp_path)
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(20):
            with ledger.lock("k"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    with ledger.lock("a"), ledger.lock("b"):
        pass


@pytest.mark.long
def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    """A waiting process gets the lock when the holder is killed."""
    path = tmp_path / "catalog.sqlite"
    program = (
        "import sys, time; from pathlib import Path; from voxframe import Corpus\n"
        "with Corpus(Path(sys.argv[1]).parent)._ledger.lock('k'): print('held', flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            got = threading.Event()

            def wait() -> None:
                with _ledger(path.parent).lock("k"):
                    got.set()

            waiting = threading.Thread(target=wait)
            waiting.start()
            assert not got.wait(0.3)
        finally:
            holder.kill()
        assert got.wait(10)
        waiting.join()


def test_a_locked_ledger_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    """While another program holds the ledger, a batch fails with an error that says so; the ledger is unchanged."""
    monkeypatch.setattr(catalog, "_WAIT_S", 0.1)
    corpus, recording = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "a.mp3"
    recording.write_bytes(b"sound")
    with voxframe.connect("http://127.0.0.1:9", api_key="key") as client:
        corpus._ledger.save(new_job("b.mp3", "sha256:1", {}, service_name(client)))
        other = sqlite3.connect(tmp_path / "corpus" / "catalog.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CorpusError, match=r"is locked by another program .*; close that program, or wait"):
            corpus.submit(recording, client=client)
        other.execute("ROLLBACK")
        other.close()
    assert corpus.jobs()["source"].to_list() == ["b.mp3"]


def test_locks_that_do_not_exclude_are_refused(tmp_path: Path, monkeypatch) -> None:
    """On a file system whose locks let two writers in, nothing is written, and the error says so."""
    monkeypatch.setattr(catalog, "file_lock", lambda *_, **__: contextlib.nullcontext(True))
    with pytest.raises(CorpusError, match=r"no locks that work .they do not exclude a second writer."):
        voxframe.Corpus(tmp_path / "corpus").raw.put("t", b'{"id": "t", "status": "completed", "words": []}')


def test_a_corpus_and_a_client_are_pickled_without_the_key(tmp_path: Path, monkeypatch) -> None:
    """A copy of a corpus reads the same directory; that of a client looks its key up again."""
    monkeypatch.setenv("VOXFRAME_API_KEY", "looked-up")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    with voxframe.connect("http://127.0.0.1:9", api_key="hidden") as client:
        corpus._ledger.save(new_job("b.mp3", "sha256:1", {}, service_name(client)))
        content = pickle.dumps((corpus, client))
        assert b"hidden" not in content
        for copied, other in (pickle.loads(content), copy.deepcopy((corpus, client))):
            assert copied.jobs()["source"].to_list() == ["b.mp3"]
            assert other.base_url == client.base_url
            assert other.settings.api_key.reveal() == "looked-up"
