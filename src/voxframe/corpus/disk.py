"""What the operating system or SQLite refuses, as an error that says which corpus it is about."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from voxframe.errors import CorpusError, VoxframeError


@contextlib.contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Say of what the operating system or SQLite refuses which corpus it is about."""
    try:
        yield
    except VoxframeError:  # some of these are OSError too: no connection, no audio file
        raise
    except (OSError, sqlite3.Error) as e:
        if isinstance(e, sqlite3.DatabaseError) and not isinstance(e, sqlite3.OperationalError):
            raise CorpusError(
                f"the ledger of the corpus {path} is damaged ({e}). Move {path / 'ledger.sqlite'} away to go on "
                "without it: transcripts stay, but what was sent before is not known any more"
            ) from None
        raise CorpusError(f"cannot write to the corpus {path}: {getattr(e, 'strerror', None) or e}") from None
