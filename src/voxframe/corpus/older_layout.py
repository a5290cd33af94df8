"""The layout of a corpus before the catalog: read once, as rows of the catalog, and then deleted."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voxframe._files import open_sqlite
from voxframe.corpus.job import JOB_COLUMNS
from voxframe.corpus.opening import read_json
from voxframe.errors import CorpusError

_COLUMNS = {
    "jobs": JOB_COLUMNS,
    "requests": ("request_id", "service", "transcript_id"),
    "about": ("transcript_id", "metadata"),
    "answers": ("key", "service", "transcript_id", "request_id", "request", "content", "created", "pending_since"),
}
_MARKS = ("ledger.sqlite", ".submissions", "parts", "people.json", "names", "corrections")


def is_there(root: Path) -> bool:
    """Return True if a corpus has files of the older layout."""
    return any((root / name).exists() for name in _MARKS)


def rows(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what people made or paid for, as names of tables and rows. What cannot be read is left out."""
    for path in sorted(root.glob(".submissions/*.json")):
        with contextlib.suppress(CorpusError, OSError):
            yield "jobs", read_json(path, dict)
    ledger = root / "ledger.sqlite"
    if ledger.is_file() and not ledger.is_symlink():
        for table, columns in _COLUMNS.items():
            with contextlib.suppress(sqlite3.Error), contextlib.closing(open_sqlite(ledger, "rw", pragmas=False)) as db:
                present = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
                names = ", ".join(name if name in present else "NULL" for name in columns)
                for row in db.execute(f"SELECT {names} FROM {table}"):  # noqa: S608  names of ours
                    yield table, dict(zip(columns, row, strict=True))
    for path in sorted(root.glob("names/*.json")):
        with contextlib.suppress(CorpusError, OSError, KeyError, TypeError):
            found = read_json(path, dict)
            for n, state in enumerate(found["states"]):
                yield "names", {"transcript_id": found["transcript_id"], "n": n, "state": json.dumps(state)}
    for path in sorted(root.glob("corrections/*.json")):
        with contextlib.suppress(CorpusError, OSError, KeyError, TypeError):
            found = read_json(path, dict)
            for n, edit in enumerate(found["edits"]):
                yield "edits", {"transcript_id": found["transcript_id"], "n": n, "edit": json.dumps(edit)}
    with contextlib.suppress(CorpusError, OSError, KeyError, TypeError, AttributeError):
        for change, found in enumerate(read_json(root / "people.json", dict)["changes"]):
            for transcript_id, labels in found["people"].items():
                yield "people", {"change": change, "transcript_id": transcript_id, "labels": json.dumps(labels)}


def remove(root: Path) -> None:
    """Delete the files of the older layout; tables and indexes are made again when they are read."""
    if not is_there(root):
        return
    for path in (*root.glob("ledger.sqlite*"), root / "people.json", *root.glob("tables/*/*.parquet")):
        path.unlink(missing_ok=True)
    for name in (".submissions", "parts", "names", "corrections", "search", "meaning"):
        place = root / name
        if place.is_symlink():
            place.unlink()
        else:
            shutil.rmtree(place, ignore_errors=True)
