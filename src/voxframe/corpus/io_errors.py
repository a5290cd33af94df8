"""Errors of the operating system and SQLite, re-raised with the path of the corpus."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from voxframe.errors import CorpusError, VoxframeError


@contextlib.contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Re-raise OS and SQLite errors as CorpusError, naming the corpus."""
    try:
        yield
    except VoxframeError:  # some of these are OSError too: no connection, no audio file
        raise
    except (OSError, sqlite3.Error) as e:
        if isinstance(e, sqlite3.DatabaseError) and not isinstance(e, sqlite3.OperationalError):
            raise CorpusError(
                f"the ledger of the corpus {path} is damaged ({e}). `voxframe doctor --corpus {path} --rebuild-ledger` "
                "rebuilds it from the records of submissions; Corpus.submit() and Corpus.sync() do so automatically"
            ) from None
        if getattr(e, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise CorpusError(
                f"the ledger of the corpus {path} is locked by another program; close that program, or wait until "
                "it has finished, and try again"
            ) from None
        raise CorpusError(f"cannot write to the corpus {path}: {getattr(e, 'strerror', None) or e}") from None
