import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxframe._files import file_name, file_stems, in_threads, private_folder, readable_name, write_atomic
from voxframe._shared_files import file_lock, open_sqlite


def test_plain_ids_are_their_own_name() -> None:
    """The file name of a lower-case UUID is the UUID."""
    for plain in ("7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0", "a_1", "0", "a" * 128):
        assert file_name(plain) == plain


@pytest.mark.parametrize(
    "hostile",
    [
        *(
            "../../etc/passwd",
            "/etc/passwd",
            "..",
            ".",
            ".hidden",
            "a/b",
            "a\\b",
            "C:x",
            "nul",
            "com1",
            "-rf",
            "_schema",
        ),
        *("a\0b", "a\nb", "a*b?", "~", "é", "\ud800", "a" * 129, "x" * 5000, "A", "a.b", "a b", ""),
    ],
)
def test_hostile_ids_become_safe_names(hostile: str) -> None:
    """Whatever the id, its file stays in its folder and is visible to every reader."""
    name = file_name(hostile)
    assert name != hostile
    assert len(name) <= 128
    assert name[0].isalnum()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~")


@given(st.dictionaries(st.text("abAB", min_size=1, max_size=2), st.text("abA-", max_size=4), max_size=8))
def test_files_of_transcripts_have_different_names(names: dict[str, str]) -> None:
    """Transcripts with any names have different files, also where case is ignored, and a unique name is kept."""
    stems = file_stems(names)
    assert stems.keys() == names.keys()
    assert len({stem.casefold() for stem in stems.values()}) == len(names)
    assert file_stems({"a1": "Call", "b2": "Call", "c3": "Call-a1", "d4": "Other"}) == {
        "a1": "Call-a1",
        "b2": "Call-b2",
        "c3": "Call-a1-c3",
        "d4": "Other",
    }


def test_ids_that_differ_in_case_have_two_files() -> None:
    """On a file system that ignores case, ids that differ only in case have different files."""
    names = {file_name(text).lower() for text in ("abc", "ABC", "Abc", "aBC")}
    assert len(names) == 4


@given(st.text(), st.text())
def test_different_ids_have_different_names(one: str, other: str) -> None:
    """Two ids have the same file name only if they are equal."""
    assert (file_name(one).lower() == file_name(other).lower()) == (one == other)


def test_a_lock_excludes_other_threads_and_processes(tmp_path: Path) -> None:
    """A held lock is refused to this process and to another; its file is removed on release."""
    path = tmp_path / "locks" / "a"
    probe = "import sys, pathlib; from voxframe._shared_files import file_lock\n"
    probe += "with file_lock(pathlib.Path(sys.argv[1]), wait=False) as held: print(held)"

    def in_another_process() -> str:
        return subprocess.run([sys.executable, "-c", probe, path], capture_output=True, text=True, check=True).stdout

    with file_lock(path) as held:
        assert held
        with file_lock(path, wait=False) as again:
            assert not again
        assert in_another_process() == "False\n"
    assert not path.exists()
    assert in_another_process() == "True\n"


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """The operating system releases the lock of a process that is killed."""
    path = tmp_path / "lock"
    hold = "import sys, pathlib, time; from voxframe._shared_files import file_lock\n"
    hold += "with file_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", hold, path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with file_lock(path, wait=False) as held:
            assert not held
        holder.kill()
    with file_lock(path) as held:
        assert held


def test_one_thread_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    """Threads that wait for a lock get it one after the other, although its file is removed each time."""
    inside, most, mutex = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal inside, most
        with file_lock(tmp_path / "lock"):
            with mutex:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            with mutex:
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(20)))
    assert most == 1


@pytest.mark.parametrize("name", ["file:a.sqlite", "a b?c#d.sqlite"])
def test_a_database_is_opened_at_any_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters with a meaning in a URI are part of the file name, and a missing file is only created if allowed."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sqlite3.OperationalError):
        open_sqlite(Path(name), "rw")
    with closing(open_sqlite(Path(name))) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA secure_delete").fetchone() == (1,)
    assert (tmp_path / name).is_file()


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    """If the content cannot be made, the file is as before, and no temporary file is left."""
    path = tmp_path / "a.json"
    write_atomic(path, b"old")

    def fail(file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_atomic(path, fail)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.json", b"old")]


def test_a_private_folder_is_for_its_owner(tmp_path: Path) -> None:
    """Other users cannot enter it; one that exists keeps its permissions."""
    private_folder(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "old").mkdir(mode=0o750)
    private_folder(tmp_path / "old")
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o750


def test_names_that_shells_and_programs_treat_specially_are_changed() -> None:
    """A tilde is a home directory to a shell, and a dot hides a file."""
    assert [readable_name(name) for name in ("~a", ".a", "a~", "nul.txt")] == ["_~a", "_a", "a~", "_nul.txt"]


@pytest.mark.parametrize("started", [0, 1, 2, 8])
def test_work_in_threads_is_done_once_for_each_item(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results come in order, and no item is missing or done twice if the system refuses more threads."""
    start, left, begun = threading.Thread.start, iter(range(started)), []

    def start_some(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    def work(item: int) -> int:
        begun.append(item)
        time.sleep(0.001)
        return item * item

    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert in_threads(work, range(50), 4) == [item * item for item in range(50)]
    assert sorted(begun) == [*range(50)]


@pytest.mark.parametrize("error", [ValueError, IndexError])
def test_an_error_in_a_thread_ends_the_work(error: type[Exception]) -> None:
    """The error is raised when the items that were begun are done, and no other item is begun."""
    begun, done = [], []

    def work(item: int) -> None:
        begun.append(item)
        if item == 3:
            raise error("three")
        time.sleep(0.02)
        done.append(item)

    with pytest.raises(error, match="three"):
        in_threads(work, range(1000), 4)
    assert len(begun) < 12
    assert {*begun} == {*done, 3}
