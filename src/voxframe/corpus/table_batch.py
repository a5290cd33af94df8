"""Tables of many transcripts, collected and written in large parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from voxframe.corpus.part import NewMember
from voxframe.corpus.part_writer import PartWriter
from voxframe.corpus.parts import LARGEST, OPEN
from voxframe.corpus.store import Stored, View

if TYPE_CHECKING:
    from voxframe.corpus.archive import Archive


_AHEAD = 4  # payloads that are being stored


class _Storing(NamedTuple):
    """A payload that is being stored, and a function that returns its tables then."""

    view: View
    stored: Future[Stored]
    made: Callable[[Stored], NewMember]


class TableBatch:
    """Tables of many transcripts, written in large parts. Threads may share it."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._thread = ThreadPoolExecutor(1)
        self._storing: dict[str, _Storing] = {}
        self._mutex = threading.Lock()
        self._waiting: dict[View, dict[str, NewMember]] = {}
        self._writers: dict[View, PartWriter] = {}

    def put(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        recording: Mapping[str, object] | None = None,
        document: Any = None,
    ) -> None:
        """Store a payload and its tables. Both are on the disk after `close`, or earlier. One thread may call this.

        Args:
            transcript_id: Id of the transcript.
            view: Kind of response.
            raw: The payload.
            recording: See `Archive.put`.
            document: Result of `frames.decode_transcript` for the payload. None (default): decode it.

        Raises:
            CorpusError, OSError: The id is invalid, or this payload or an earlier one cannot be written.
            PayloadError: The payload was stored but cannot be read.
        """
        self._archive.check_id(transcript_id, view)
        self.settle(transcript_id)
        # The disk is written while the tables of this payload and the next are made.
        stored = self._thread.submit(self._archive.store.put, transcript_id, view, raw, None, recording)
        try:
            made = self._archive.made(transcript_id, view, raw, document)
        except BaseException:
            stored.result()  # a payload that cannot be stored is the first error
            raise
        self._storing[transcript_id] = _Storing(view, stored, made)
        if len(self._storing) > _AHEAD:
            self._settle_first()

    def settle(self, transcript_id: str) -> None:
        """Wait until no payload of a transcript is being stored."""
        while transcript_id in self._storing:
            self._settle_first()

    def _settle_first(self) -> None:
        first = self._storing.pop(next(iter(self._storing)))
        self.add(first.view, first.made(first.stored.result()))

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
        try:
            while self._storing:
                self._settle_first()
        finally:
            self._thread.shutdown()
            self._write()

    def _write(self) -> None:
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
