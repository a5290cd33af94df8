"""The layout of a corpus before the catalog: read once, as rows of the catalog, and then deleted."""

from __future__ import annotations

import contextlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from voxframe.corpus.opening import read_json
from voxframe.errors import CorpusError, CorpusWarning

Rows: TypeAlias = Iterator[tuple[str, dict[str, Any]]]  # names of tables of the catalog, and rows

_MARKS = ("ledger.sqlite", ".submissions", "parts", "people.json", "names", "corrections")


def is_there(root: Path) -> bool:
    """Return True if a corpus has files of the older layout."""
    return any((root / name).exists() for name in _MARKS)


def rows(root: Path, rows_of_ledger: Callable[[Path], Rows]) -> Rows:
    """Yield what people made or paid for. A file that cannot be read is set aside."""
    for path in sorted(root.glob(".submissions/*.json")):
        with _readable(path):
            yield "jobs", read_json(path, dict)
    if (root / "ledger.sqlite").exists():
        with _readable(root / "ledger.sqlite"):
            yield from rows_of_ledger(root / "ledger.sqlite")
    for table, column in ("names", "states"), ("corrections", "edits"):
        for path in sorted(root.glob(f"{table}/*.json")):
            with _readable(path):
                fields = read_json(path, dict)
                for n, value in enumerate(fields[column]):
                    row = {"transcript_id": fields["transcript_id"], "n": n, column[:-1]: json.dumps(value)}
                    yield "names" if table == "names" else "edits", row
    with _readable(root / "people.json"):
        for change, fields in enumerate(read_json(root / "people.json", dict)["changes"]):
            for transcript_id, labels in fields["people"].items():
                yield "people", {"change": change, "transcript_id": transcript_id, "labels": json.dumps(labels)}


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Move a file that cannot be read to `unreadable/` with a warning."""
    try:
        yield
    except FileNotFoundError:
        return
    except (CorpusError, OSError, KeyError, TypeError, AttributeError) as error:
        place = path.parent.joinpath("unreadable") if path.suffix == ".sqlite" or path.name == "people.json" else None
        place = place or path.parents[1] / "unreadable" / path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        path.replace(place / path.name)
        warnings.warn(
            f"{path} of an older version of voxframe cannot be read ({error}); it was moved to {place}, and what it "
            "held is missing: restore it from a backup, or set it again",
            CorpusWarning,
            stacklevel=2,
        )


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
