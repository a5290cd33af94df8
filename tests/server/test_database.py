"""SQLite databases of the server."""

import random
import sqlite3
import subprocess
import sys
import threading

import pytest

from voxframe_server import jobs
from voxframe_server.jobs import Database, DatabaseBusyError, UnusableDatabaseError
from voxframe_server.jobs.data_dir import is_disk_full

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, text TEXT)"


@pytest.mark.parametrize("seed", range(20))
def test_deleted_rows_leave_the_disk(tmp_path, seed):
    """After many rows of mixed length were added, changed and deleted, no file contains a byte of the deleted ones."""
    chance = random.Random(seed)
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    database.connection.execute("PRAGMA synchronous = OFF")  # thousands of commits, and no power cut in this test
    alive, gone = [], []
    for _ in range(600):
        name = f"{chance.getrandbits(64):016x}"
        longest = 400 if chance.random() < 0.3 else 20
        with database.transaction() as run:
            run("INSERT INTO notes VALUES (?, ?)", (name, f"<{name}>" * chance.randint(1, longest)))
        alive.append(name)
        if chance.random() < 0.6:
            gone.append(alive.pop(chance.randrange(len(alive))))
            with database.transaction() as run:
                run("DELETE FROM notes WHERE id = ?", (gone[-1],))
    assert database.wipe()
    on_disk = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(gone) > 200
    assert [name for name in gone if name.encode() in on_disk] == []
    assert [name for name in alive if name.encode() not in on_disk] == []
    database.close()


def test_a_database_that_cannot_be_used_is_named_with_the_next_step(tmp_path):
    """One of an older version, a damaged one and a locked one each give their path and what to do."""
    old, damaged = tmp_path / "old.sqlite", tmp_path / "damaged.sqlite"
    Database(old, SCHEMA, 1).close()
    damaged.write_bytes(b"not a database" * 100)
    with pytest.raises(UnusableDatabaseError, match=r"old\.sqlite cannot be used: .*older voxframe.* Rename the file"):
        Database(old, SCHEMA, 2)
    assert sqlite3.connect(old).execute("PRAGMA user_version").fetchone() == (1,)
    with pytest.raises(UnusableDatabaseError, match=r"damaged\.sqlite cannot be used: .*not a database.* Rename"):
        Database(damaged, SCHEMA, 1)


def test_a_locked_database_is_named_with_the_next_step(tmp_path, monkeypatch):
    """A database that another program holds locked says so; renaming it is not advised."""
    monkeypatch.setattr(jobs, "_OPENING_SECONDS", 0.1)
    path = tmp_path / "locked.sqlite"
    Database(path, SCHEMA, 1).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UnusableDatabaseError, match=r"locked\.sqlite is locked by another program; close it"):
        Database(path, SCHEMA, 1)
    other.close()


def test_wipe_returns_false_while_the_file_is_used(tmp_path):
    """wipe() returns False while another process reads, because deleted data may still be on disk."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    with database.transaction() as run:
        run("INSERT INTO notes VALUES ('a', 'text')")
    reader = sqlite3.connect(tmp_path / "notes.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    assert not database.wipe()
    reader.execute("COMMIT")
    assert database.wipe()
    reader.close()
    database.close()


def test_wipe_gives_way_to_writers(tmp_path):
    """200 transactions succeed while a large file is wiped repeatedly, and the wipe completes afterwards."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    with database.transaction() as run:
        for number in range(3000):
            run("INSERT INTO notes VALUES (?, ?)", (f"large {number}", f"<{number}>" * 1000))
    with database.transaction() as run:
        run("DELETE FROM notes WHERE id LIKE '%7'")
    database.wipe_soon()
    for number in range(200):
        with database.transaction() as run:
            run("INSERT INTO notes VALUES (?, 'text')", (str(number),))
        database.wipe_soon()
    assert database.rows("SELECT count(*) FROM notes")[0][0] == 2900
    database.close()
    assert b"<1237>" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_the_next_start_completes_an_interrupted_wipe(tmp_path):
    """A row deleted while another process read leaves the disk once a new process is the only user of the file."""
    path = tmp_path / "notes.sqlite"
    script = (
        "import os, sys; from pathlib import Path; from voxframe_server.jobs import Database\n"
        f"database = Database(Path(sys.argv[1]), {SCHEMA!r}, 1)\n"
        "with database.transaction() as run: run(\"INSERT INTO notes VALUES ('a', '<to be wiped>')\")\n"
        "database.connection.execute('PRAGMA secure_delete = OFF')\n"  # overwrites most deleted rows, but not all
        "with database.transaction() as run: run('DELETE FROM notes')\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    Database(path, SCHEMA, 1).close()
    assert b"<to be wiped>" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_locked_file_is_an_error_of_its_own_for_writers_and_none_for_readers(tmp_path, monkeypatch):
    """Writers get DatabaseBusyError while another process holds the file; nothing is lost, and readers continue."""
    monkeypatch.setattr(jobs, "BUSY_SECONDS", 0.1)
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    other = sqlite3.connect(tmp_path / "notes.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusyError), database.transaction() as run:
        run("INSERT INTO notes VALUES ('a', 'text')")
    assert database.rows("SELECT * FROM notes") == []
    other.execute("ROLLBACK")
    other.close()
    with database.transaction() as run:
        run("INSERT INTO notes VALUES ('a', 'text')")
    assert [tuple(row) for row in database.rows("SELECT * FROM notes")] == [("a", "text")]
    database.close()


def test_transaction_that_fails_changes_nothing(tmp_path):
    """A failed transaction is rolled back completely, and the next one succeeds."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)

    def change():
        with database.transaction() as run:
            run("INSERT INTO notes VALUES ('a', 'text')")
            raise LookupError

    with pytest.raises(LookupError):
        change()
    assert database.rows("SELECT * FROM notes") == []
    with database.transaction() as run:
        run("INSERT INTO notes VALUES ('b', 'text')")
    assert [row[0] for row in database.rows("SELECT id FROM notes")] == ["b"]
    database.close()


def test_a_full_database_changes_nothing_and_works_again(tmp_path):
    """20 of 20 transactions that do not fit are rolled back and count as a full disk; the next that fits is kept."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
    database.connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    def add():
        with database.transaction() as run:
            run("INSERT INTO notes VALUES ('small', 'a')")
            run("INSERT INTO notes VALUES ('large', ?)", ("a" * 100_000,))

    for _ in range(20):
        with pytest.raises(sqlite3.OperationalError) as raised:
            add()
        assert is_disk_full(raised.value)
    assert database.rows("SELECT * FROM notes") == []
    with database.transaction() as run:
        run("INSERT INTO notes VALUES ('a', 'text')")
    assert [tuple(row) for row in database.rows("SELECT * FROM notes")] == [("a", "text")]
    database.close()


def test_threads_share_one_connection(tmp_path):
    """Nothing is lost when eight threads read and write at once."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)

    def write(number):
        for turn in range(25):
            with database.transaction() as run:
                run("INSERT INTO notes VALUES (?, 'text')", (f"{number} {turn}",))
            database.rows("SELECT count(*) FROM notes")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.rows("SELECT count(*) FROM notes")[0][0] == 200
    database.close()
