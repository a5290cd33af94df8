"""Tables of many transcripts, collected and written in large parts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from voxframe.corpus.part import NewMember
from voxframe.corpus.part_writer import PartWriter
from voxframe.corpus.parts import LARGEST, OPEN
from voxframe.corpus.store import View

if TYPE_CHECKING:
    from voxframe.corpus.archive import Archive


class TableBatch:
    """Tables of many transcripts, written in large parts. Threads may share it.

    Args:
        archive: The corpus.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._mutex = threading.Lock()
        self._waiting: dict[View, dict[str, NewMember]] = {}
        self._writers: dict[View, PartWriter] = {}

    def add(self, view: View, new: NewMember) -> None:
        """Add a transcript. It can be read from the tables on disk after `close`, or earlier."""
        with self._mutex:
            writer, waiting = self._writers.get(view), self._waiting.setdefault(view, {})
            if writer is not None and new.transcript_id in writer.part.ids:
                self._publish(view)
                writer = None
            if writer is None:
                waiting[new.transcript_id] = new
                if len(waiting) >= OPEN:
                    self._archive.prepare()
                    self._writers[view] = PartWriter(self._archive.parts, view)
                    for one in waiting.values():
                        self._writers[view].add(one)
                    waiting.clear()
            else:
                writer.add(new)
                if writer.part.count >= LARGEST:
                    self._publish(view)

    def close(self) -> None:
        """Write what was collected."""
        with self._mutex:
            try:
                for view in [*self._writers]:
                    self._publish(view)
                for view, waiting in self._waiting.items():
                    for new in waiting.values():
                        self._archive.write_table(view, new)
            finally:
                for writer in self._writers.values():
                    writer.discard()

    def _publish(self, view: View) -> None:
        writer = self._writers.pop(view)
        try:
            writer.finish()
            self._archive.write_parts(writer)
        except BaseException:
            writer.discard()
            raise
