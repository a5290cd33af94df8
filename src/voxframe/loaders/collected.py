"""Tables of several payloads, with each transcript once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from voxframe import frames
from voxframe.corpus.store import UNFINISHED
from voxframe.errors import PayloadWarning, caller
from voxframe.schema import TABLES

#: Tables by name: of one payload, or of several transcripts of a corpus.
Made: TypeAlias = Mapping[str, "frames.Arrays | pa.Table"]

_SHOWN = 5  # payloads named in one warning


class Collected:
    """Tables of payloads in their order. Of payloads with the same id and rows in the same table, the first is kept.

    If the first is not finished, such as a response with the status "processing", a later one takes its place.
    """

    def __init__(self) -> None:
        self.good: list[Made] = []
        self.count = 0
        self._of: dict[str, list[tuple[Made, str]]] = {}
        self._equal: list[str] = []
        self._different: list[str] = []

    def __contains__(self, transcript_id: str) -> bool:
        return transcript_id in self._of

    def add(self, tables: Made, name: str) -> bool:
        """Add the tables of one payload. Return False if they are left out."""
        self.count += 1
        for transcript_id in ids_in(tables):
            for place, (before, source) in enumerate(self._of.get(transcript_id, ())):
                is_equal = _is_equal(tables, before, transcript_id)
                if is_equal is None:
                    continue
                if is_equal:
                    self._note(name, transcript_id, source)
                    return False
                if not _is_unfinished(before) or _is_unfinished(tables):
                    self._different.append(f"{name} has the id {transcript_id!r} of {source}")
                    return False
                self._different.append(f"{source}, which is not finished, has the id {transcript_id!r} of {name}")
                self._of[transcript_id][place] = (tables, name)
                self.good = [tables if each is before else each for each in self.good]
                return True
            self._of.setdefault(transcript_id, []).append((tables, name))
        self.good.append(tables)
        return True

    def add_stored(self, tables: Made, ids: Iterable[str]) -> None:
        """Add the tables of several transcripts of a corpus, none of which was added before."""
        for transcript_id in ids:
            self.count += 1
            self._of[transcript_id] = [(tables, repr(transcript_id))]
        self.good.append(tables)

    def repeat(self, name: str, transcript_id: str) -> None:
        """Note that a source names a transcript that another source has named, so that it is not read."""
        self.count += 1
        self._note(name, transcript_id, repr(transcript_id))

    def report(self) -> None:
        """Warn about payloads that were left out."""
        if self._equal:
            warnings.warn(
                f"{len(self._equal)} of {self.count} payloads repeat another one and are loaded once, such as "
                f"{self._equal[0]}",
                PayloadWarning,
                stacklevel=caller(),
            )
        if self._different:
            warnings.warn(
                f"{len(self._different)} of {self.count} payloads differ from another one with the same id and are "
                f"left out: {first_of(self._different)}. Give them other ids, or load them separately",
                PayloadWarning,
                stacklevel=caller(),
            )

    def _note(self, name: str, transcript_id: str, source: str) -> None:
        self._equal.append(name if name == source else f"{name} (transcript {transcript_id!r}, as in {source})")


def ids_in(tables: Made) -> list[str]:
    """Return the id of the transcript in a payload; an empty list if no table has rows, or if it has no id."""
    for table in tables.values():
        column = table["transcript_id"] if isinstance(table, pa.Table) else table[0]
        if len(column):
            transcript_id = column[0].as_py()
            return [] if transcript_id is None else [transcript_id]
    return []


def rows_in(table: frames.Arrays | pa.Table) -> int:
    """Return the number of rows of a table."""
    return len(table) if isinstance(table, pa.Table) else len(table[0])


def as_table(name: str, rows: frames.Arrays | pa.Table) -> pa.Table:
    """Return a table that may be column arrays as an Arrow table."""
    return rows if isinstance(rows, pa.Table) else frames.as_table(name, rows)


def first_of(messages: Sequence[str]) -> str:
    """Return the first messages of a list as one, with the number of the others."""
    tail = f"; and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
    return "; ".join(messages[:_SHOWN]) + tail


def _is_equal(tables: Made, before: Made, transcript_id: str) -> bool | None:
    """Return True if a payload has the same rows of a transcript as another one; None if no table has rows of both."""
    rows = {name: _rows_of(name, table, transcript_id) for name, table in tables.items() if rows_in(table)}
    rows_before = {name: _rows_of(name, before[name], transcript_id) for name in rows}
    shared = [name for name, table in rows_before.items() if len(table)]
    return None if not shared else all(rows[name].equals(rows_before[name]) for name in rows)


def _is_unfinished(tables: Made) -> bool:
    """Return True if the tables are those of one transcript whose job has not ended."""
    if "transcripts" not in tables or rows_in(tables["transcripts"]) != 1:
        return False
    return as_table("transcripts", tables["transcripts"])["status"][0].as_py() in UNFINISHED


def _rows_of(name: str, table: frames.Arrays | pa.Table, transcript_id: str) -> pa.Table:
    """Return the rows of a transcript, without the columns that a corpus adds."""
    rows = as_table(name, table).select(TABLES[name].names).cast(TABLES[name].arrow)
    return rows.filter(pc.field("transcript_id") == transcript_id)
