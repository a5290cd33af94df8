"""Payloads of many transcripts, stored while tables are made of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from voxframe import frames
from voxframe.corpus.archive import Archive
from voxframe.corpus.store import Stored, View
from voxframe.corpus.tables import NewMember, PartBatch, new_member
from voxframe.errors import CorpusError, PayloadError, VoxframeError

_AHEAD = 3  # payloads that are being stored
#: Payloads whose recordings are named and whose tables are made together, and their bytes.
TOGETHER, BYTES_TOGETHER = 16, 5 << 20


class _Storing(NamedTuple):
    """A payload that is being stored. `stored` waits for it, and `made` returns its tables then."""

    view: View
    stored: Callable[[], Stored]
    made: Callable[[Stored], NewMember]


class _Held(NamedTuple):
    """A payload with tables that are made together with those of the next ones: see `TableBatch.make`."""

    transcript_id: str
    view: View
    raw: bytes
    stored: Callable[[], Stored]
    failed: Callable[[VoxframeError], None]
    document: Any


class TableBatch:
    """Payloads of many transcripts that are stored while the tables of others are made, and written in large parts."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._thread = ThreadPoolExecutor(1)
        self._held: list[_Held] = []
        self._storing: dict[str, _Storing] = {}
        self._parts = PartBatch(archive.write_part)

    def put(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        failed: Callable[[VoxframeError], None],
        recording: Mapping[str, object] | None = None,
        document: Any = None,
    ) -> None:
        """Store a payload and its tables. Both are on the disk after `close`, or earlier. One thread may call this."""
        self._archive.check_id(transcript_id, view)
        self.settle(transcript_id)
        # The disk is written while the tables of this payload and the next are made.
        stored = self._thread.submit(self._archive.store.put, transcript_id, view, raw, None, recording)
        self.make(transcript_id, view, raw, stored.result, failed, document)

    def make(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        stored: Callable[[], Stored],
        failed: Callable[[VoxframeError], None],
        document: Any = None,
    ) -> None:
        """Make the tables of a payload now, or together with those of the next ones. One thread may call this."""
        if document is None and view == "transcript":
            document = frames.decode_transcript(raw)
        payload = _Held(transcript_id, view, raw, stored, failed, document)
        if document is None:
            self._make_alone(payload)
            return
        self._held.append(payload)
        if len(self._held) == TOGETHER or sum(len(item.raw) for item in self._held) >= BYTES_TOGETHER:
            self.make_held()

    def make_held(self) -> None:
        """Make the tables of the payloads that were held."""
        if not self._held:
            return
        ids = [payload.transcript_id for payload in self._held]
        together = frames.tables_together([payload.document for payload in self._held], ids) if len(ids) > 1 else None
        for place, payload in enumerate(self._held):
            if together is None:
                self._make_alone(payload)
            else:
                self._storing[payload.transcript_id] = _Storing(
                    payload.view, payload.stored, new_member(payload.transcript_id, together[place])
                )
        self._held = []
        self._settle_all_but(_AHEAD)

    def _make_alone(self, payload: _Held) -> None:
        try:
            finish = self._archive.made(payload.transcript_id, payload.view, payload.raw, payload.document)
        except (PayloadError, CorpusError) as error:
            payload.stored()  # a payload that cannot be stored is the first error
            payload.failed(error)
        else:
            self._storing[payload.transcript_id] = _Storing(payload.view, payload.stored, finish)
            self._settle_all_but(_AHEAD)

    def settle(self, transcript_id: str) -> None:
        """Wait until no payload of a transcript is being stored."""
        if any(item.transcript_id == transcript_id for item in self._held):
            self.make_held()
        while transcript_id in self._storing:
            self._settle_first()

    def _settle_all_but(self, count: int) -> None:
        while len(self._storing) > count:
            self._settle_first()

    def _settle_first(self) -> None:
        first = self._storing.pop(next(iter(self._storing)))
        self._parts.add(first.view, first.made(first.stored()))

    def close(self) -> None:
        """Write what was collected."""
        try:
            self.make_held()
            self._settle_all_but(0)
        finally:
            self._thread.shutdown()
            self._parts.close()
