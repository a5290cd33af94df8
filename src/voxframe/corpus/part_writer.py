"""Files of a new part, under hidden names until they are published."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from voxframe._files import in_threads
from voxframe.corpus.part import NewMember, Part
from voxframe.corpus.part_files import TableFile

if TYPE_CHECKING:
    from voxframe.corpus.parts import Parts


class PartWriter:
    """A new part, or new transcripts of an open one, as files under hidden names.

    Args:
        parts: The parts of the corpus.
        view: Kind of response that its tables are made from.
        base: The open part. None (default): a new part.
    """

    def __init__(self, parts: Parts, view: str, base: Part | None = None) -> None:
        name = f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(4)}"
        self.part = replace(base, moves={}, retired=()) if base else Part(name, view)
        self.is_committed = False
        self._parts, self._base = parts, base
        self._files: dict[str, TableFile] = {}

    def add(self, new: NewMember) -> None:
        """Add a transcript."""
        place = self._append(new.transcript_id, new.source, new.stamp, new.status)
        for name, table in new.tables.items():
            if table.num_rows:
                self._file(name).add(place, table)

    def copy(self, part: Part) -> None:
        """Add the transcripts of another part.

        Raises:
            PartReplacedError, PartDamagedError, pa.ArrowException: The part cannot be read.
        """
        places = {
            place: self._append(transcript_id, part.sources[place], part.stamps[place], part.statuses[place])
            for place, transcript_id in enumerate(part.ids)
            if transcript_id is not None
        }
        for name, layout in part.files.items():
            with self._parts.open(name, part) as file:
                for group in range(len(layout.groups)):
                    for place, rows in file.transcripts(group):
                        self._file(name).add(places[place], rows)

    def finish(self) -> None:
        """Close the files, flushed to the disk together, so that a file system can write them at once."""
        files = dict(zip(self._files, in_threads(TableFile.close, self._files.values()), strict=True))
        moves = {name: file.path.name for name, file in self._files.items()}
        self.part = replace(self.part, files={**self.part.files, **files}, moves=moves)

    def discard(self) -> None:
        """Delete the files, unless they belong to a part by now."""
        if not self.is_committed:
            for file in self._files.values():
                file.discard()

    def _append(self, transcript_id: str, source: str, mark: str, status: str | None) -> int:
        part = self.part
        self.part = replace(
            part,
            ids=(*part.ids, transcript_id),
            sources=(*part.sources, source),
            stamps=(*part.stamps, mark),
            statuses=(*part.statuses, status),
        )
        return len(part.ids)

    def _file(self, name: str) -> TableFile:
        if name not in self._files:
            base = self._parts.path(name, self._base) if self._base and name in self._base.files else None
            layout = self._base.files[name] if self._base and base else None
            self._files[name] = TableFile(self._parts.path(name, self.part), name, base, layout)
        return self._files[name]
