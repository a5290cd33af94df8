"""The SQLite file of the service."""

import random
import sqlite3
import threading

import pytest

from voxframe.local.database import Database

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, text TEXT)"


@pytest.mark.parametrize("seed", range(20))
def test_what_was_deleted_is_nowhere_on_disk(tmp_path, seed):
    """After many rows of mixed length came, changed and went, no file holds any byte of those that went."""
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


def test_wipe_that_cannot_be_done_says_so(tmp_path):
    """Where another process reads on, what was deleted may still be on disk."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)
    database.connection.execute("PRAGMA busy_timeout = 100")
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


def test_transaction_that_fails_changes_nothing(tmp_path):
    """All or nothing."""
    database = Database(tmp_path / "notes.sqlite", SCHEMA, 1)

    def change():
        with database.transaction() as run:
            run("INSERT INTO notes VALUES ('a', 'text')")
            raise LookupError

    with pytest.raises(LookupError):
        change()
    assert database.rows("SELECT * FROM notes") == []
    database.close()


def test_threads_share_one_connection(tmp_path):
    """Eight threads write and read at once; nothing is lost."""
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
