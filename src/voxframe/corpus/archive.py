"""The payloads of a corpus and the tables made from them."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voxframe import frames
from voxframe._files import write_atomic
from voxframe.corpus.job import Job, record_of
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.ledger_file import clear_errors
from voxframe.corpus.part import NewMember, Part, PartDamagedError, PartReplacedError, PartWriter, new_member
from voxframe.corpus.part_files import file_without_rows, stored_schema
from voxframe.corpus.part_reading import DAMAGE, Located, assemble, damage_of, rows_of
from voxframe.corpus.parts import Parts
from voxframe.corpus.recordings import RecordingNames
from voxframe.corpus.speaker_names import SpeakerFiles
from voxframe.corpus.store import EXPORTS, UNFINISHED, Store, Stored, View, check_writable, folder, sweep
from voxframe.corpus.table_batch import TableBatch
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError, NewerCorpusError, PayloadError
from voxframe.frames.repair import caller
from voxframe.schema import TRANSCRIPT_TABLES
from voxframe.validators import nearest, shown

T = TypeVar("T")

_TRIES = 20  # reads of parts that other processes keep changing
_MANY = 64  # transcripts; for more, the payload files are listed instead of looked up one by one


class MissingTranscriptError(CorpusError):
    """A transcript, or an export of one, is not in the corpus. It may have been deleted during a read."""


def changing(path: Path) -> CorpusError:
    """Return the error for a corpus that changes during each of several reads."""
    return CorpusError(f"the corpus {path} changes all the time; stop what writes to it and try again")


class Archive:
    """Payloads and tables of the transcripts of a corpus.

    Tables are derived: if a part is missing, damaged or from another version, it is rebuilt from the payloads.

    Args:
        path: Directory of the corpus.

    Attributes:
        path: The directory.
        store: The payloads in it.
        parts: The tables in it, with the labels of the service.
        names: The names of speakers, which are added when tables are read.
        ledger: The jobs, and the names of recordings that were not submitted.
        recordings: The names of recordings, which are added when tables are read and are accepted instead of ids.
        merges: True if small parts are merged after writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)
        self.parts = Parts(path, stored_tables())
        self.names = SpeakerFiles(path)
        self.ledger = Ledger(path / "ledger.sqlite", self.store.submissions, self.store.recordings)
        self.recordings = RecordingNames(self.store, self.ledger)
        self.merges = True
        self._prepared = self._is_checked = False
        self._merging: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Archive({str(self.path)!r})"

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path}  # a copy reads the files itself

    def __setstate__(self, state: dict[str, Path]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def put(
        self,
        transcript_id: str,
        raw: bytes,
        view: View = "transcript",
        *,
        job: Job | None = None,
        recording: Mapping[str, object] | None = None,
        batch: TableBatch | None = None,
    ) -> NewMember:
        """Store a payload and its tables, replacing older ones. The payload is written first.

        Args:
            transcript_id: Id of the transcript; any non-empty text. It is never used as a file name unchecked.
            raw: The response of the service, byte for byte.
            view: Kind of response: "transcript", "sentences" or "paragraphs".
            job: The submission that produced it, stored with the payload. None (default): keep the recorded one.
            recording: The record of the recording from `Ledger.name_recordings`, stored with the payload. None
                (default): keep the stored one.
            batch: Collects the tables of many transcripts. None (default): write the tables now.

        Returns:
            What was stored, with the Arrow tables by name, without names of speakers.

        Raises:
            CorpusError: The id is invalid, or the directory cannot be written.
            PayloadError: The payload was stored but cannot be read.
        """
        self.check_id(transcript_id, view)
        with clear_errors(self.path):
            submission = None if job is None else record_of(job)
            with ThreadPoolExecutor(1) as thread:  # the disk is written while the tables are made
                stored = thread.submit(self.store.put, transcript_id, view, raw, submission, recording)
                try:
                    made = self.made(transcript_id, view, raw)
                finally:
                    stored.result()  # a payload that cannot be stored is the first error
            new = made(stored.result())
            self._keep(view, new, batch)
        return new

    def check_id(self, transcript_id: str, view: View) -> None:
        """Check that a payload can be stored under an id.

        Raises:
            CorpusError: The id or the view is invalid.
        """
        self._check_view(view)
        if not isinstance(transcript_id, str) or not transcript_id:
            raise CorpusError(f"a transcript id is a text that is not empty, not {transcript_id!r}")
        if any("\ud800" <= c <= "\udfff" for c in transcript_id):  # cannot be encoded as UTF-8 in Parquet
            raise CorpusError(f"a transcript id is Unicode text; {transcript_id!r} holds half of a surrogate pair")

    @contextlib.contextmanager
    def batch(self) -> Iterator[TableBatch]:
        """Collect the tables of many transcripts, which are written in large parts: see `put`."""
        batch = TableBatch(self)
        try:
            yield batch
        finally:
            batch.close()

    def raw(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Return the payload byte for byte as received.

        Raises:
            CorpusError: It is not in the corpus, or its file is damaged.
        """
        self._check_view(view)
        raw = self.store.raw(transcript_id, view)
        if raw is None:
            raise self.missing(transcript_id, view)
        return raw

    def report_missing(self) -> None:
        """Warn if there is no corpus, before a read returns nothing, and if it is newer: see `report_newer`."""
        if not self.path.is_dir():
            reason = f"there is no corpus in {str(self.path)!r} yet; Corpus.submit and Corpus.add create it"
            warnings.warn(reason, CorpusWarning, stacklevel=caller())
        self.report_newer()

    def report_newer(self) -> None:
        """Warn once if a newer version of voxframe wrote the corpus: this version may miss a part of its content."""
        if not self._is_checked and self.path.is_dir():
            self._is_checked = True
            try:
                check_writable(self.path)
            except NewerCorpusError as error:
                warnings.warn(str(error), CorpusWarning, stacklevel=caller())

    def ids(self) -> list[str]:
        """Return the ids of all transcripts, sorted."""
        return self.store.ids()

    def has(self, transcript_id: str, view: View = "transcript") -> bool:
        """Return True if the payload is stored, even if it is damaged."""
        return self.store.has(transcript_id, view)

    def is_finished(self, transcript_id: str) -> bool:
        """Return True if the transcript is stored, can be read, and was finished when it was stored."""
        try:
            return self.store.has(transcript_id, "transcript") and self.status(transcript_id) not in UNFINISHED
        except (PayloadError, CorpusError):  # damaged, or removed since
            return False

    def status(self, transcript_id: str) -> str | None:
        """Return the stored status of a transcript: "completed", "error" or whatever the service sent.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        part = self._part(transcript_id, "transcript")
        if part is not None:
            return part.status(transcript_id)
        status: str | None = self.table("transcripts", transcript_id)["status"][0].as_py()
        return status

    def table(self, name: str, transcript_id: str) -> pa.Table:
        """Return one table of one transcript, rebuilt from the payload if necessary; see `tables`."""
        return self.tables(transcript_id, [name])[name]

    def tables(self, transcript_id: str, names: Collection[str] = TRANSCRIPT_TABLES) -> dict[str, pa.Table]:
        """Return tables of one transcript, all made from the same payload, without names of speakers.

        Args:
            transcript_id: Id of the transcript.
            names: Tables that are made from the same kind of response.

        Raises:
            CorpusError: The transcript, or the export that the tables are made from, is not in the corpus.
        """
        (view,) = {view_of(name) for name in names}

        def read() -> dict[str, pa.Table] | None:
            part = self._part(transcript_id, view)
            return None if part is None else {name: rows_of(self.parts, part, transcript_id, name) for name in names}

        tables: Mapping[str, pa.Table] | None = self._steady(read)
        if tables is None:
            new = self.make(transcript_id, view)
            with contextlib.suppress(OSError, CorpusError):  # a corpus on a read-only or full disk can still be read
                self._keep(view, new, None)
            tables = new.exact_tables()
        return {name: tables[name] for name in names}

    def select(self, name: str, ids: Iterable[str] | None) -> list[str]:
        """Return the ids that a read of a table covers.

        Args:
            name: Name of the table.
            ids: Ids to read. None: all transcripts that have the table.

        Raises:
            CorpusError: There is no such table.
        """
        if name not in TRANSCRIPT_TABLES and name not in EXPORTS:
            known = [*TRANSCRIPT_TABLES, *EXPORTS]
            raise CorpusError(f"a corpus has no table {name!r}{nearest(name, known)}; it has {', '.join(known)}")
        if ids is not None:
            return list(ids)
        view = view_of(name)
        if view == "transcript":
            return self.ids()
        return sorted(map(self.store.id_of, self.store.listing().keys() & self.store.listing(view).keys()))

    def locate(self, name: str, ids: Sequence[str], *, verify: bool = False) -> Located:
        """Return where the rows of transcripts are, after rebuilding missing and outdated ones.

        Args:
            name: Name of the table.
            ids: Ids of the transcripts.
            verify: Read every file to its end, which finds damage that its footer does not show.

        Raises:
            CorpusError: A transcript is not in the corpus.
        """
        view, found = view_of(name), Located()
        pending = self._pending(view, ids, found)
        if verify:
            damaged = self._damaged(name, dict.fromkeys(found.members.values()))
            for transcript_id in [i for i, part in found.members.items() if part in damaged]:
                del found.members[transcript_id]
                pending.append(transcript_id)
        if pending:
            self._fill(view, pending, found, name)
        return found

    def read(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
        made: Mapping[str, pa.Table] | None = None,
    ) -> tuple[pa.Table, Located]:
        """Return the rows of transcripts in their order, without names of speakers.

        Args:
            name: Name of the table.
            ids: Ids of the transcripts.
            columns: Columns to read. None (default): all.
            where: Rows to read. None (default): all.
            made: Tables to use instead of the stored ones, by transcript id; see `assemble`. None (default): none.
        """

        def read() -> tuple[pa.Table, Located]:
            located = self.locate(name, ids if not made else [i for i in ids if i not in made])
            located.loose.update(made or {})
            return assemble(self.parts, name, ids, located, columns, where), located

        return self._steady(read)

    def batches(self, name: str, ids: Iterable[str], size: int) -> Iterator[list[str]]:
        """Yield transcripts a few at a time, in the order of the files of a table.

        A row group holds several transcripts and is read as a whole. Batches in the order of the ids would read it
        again for each of them.
        """
        self.parts.refresh()
        members = self.parts.members(view_of(name))
        parts = ((members.get(transcript_id), transcript_id) for transcript_id in ids)
        stored = [i for *_, i in sorted((part.name, part.places[i], i) if part else ("", 0, i) for part, i in parts)]
        yield from (stored[at : at + size] for at in range(0, len(stored), size))

    def with_rows(self, name: str, ids: Sequence[str]) -> set[str]:
        """Return the ids of those transcripts that have rows in a table."""
        return set(self.locate(name, ids).rows(name))

    def stale(self, view: View = "transcript", *, verify: bool = False) -> list[str]:
        """Return the ids of transcripts with a table that must be rebuilt, or removed because the payload is gone.

        Args:
            view: Kind of response that the tables are made from.
            verify: Read files to their end, not only their footers.
        """
        names = TRANSCRIPT_TABLES if view == "transcript" else (view,)
        found = Located()
        stale = {*self._pending(view, self.select(names[0], None), found)}
        parts = dict.fromkeys(found.members.values())
        damaged = {part for name in names for part in self._damaged(name, parts, whole=verify)}
        stale |= {i for i, part in found.members.items() if part in damaged}
        return sorted(stale | {i for i, _ in found.bad} | self._orphans(view))

    def source_hash(self, transcript_id: str, view: View = "transcript") -> str | None:
        """Return a hash of the payloads that the tables of a view are made from. None if it is not stored."""
        content = self.store.content(transcript_id, view)
        if content is None or view == "transcript":
            return content
        return _joined(content, self.store.content(transcript_id, "transcript"))

    def remove(self, transcript_id: str) -> None:
        """Delete every row and file of a transcript.

        The rows are first: if the process dies, other programs read none of a transcript without a payload. No process
        can write them again meanwhile, because the lock for changes is held.
        """
        with clear_errors(self.path):
            self.prepare()
            with self.parts.writing():
                for view in get_args(View):
                    self.parts.drop(self.parts.find(view, [transcript_id]))
                self.store.remove(transcript_id)
                self.parts.sweep()  # unfinished files of processes that died may have its rows, too

    @contextlib.contextmanager
    def kept(self, *transcript_ids: str) -> Iterator[None]:
        """Hold the lock that `remove` needs, to store something about transcripts that are still there.

        Raises:
            MissingTranscriptError: A transcript is not in the corpus.
            OSError: The directory cannot be written.
        """
        with self.parts.writing():
            if gone := self._gone("transcript", transcript_ids):
                raise self.missing(min(gone))
            yield

    def drop_orphans(self, view: View) -> None:
        """Remove the rows of transcripts whose payload is gone.

        Raises:
            CorpusError, OSError: The directory cannot be written.
        """
        if self._orphans(view):
            self.prepare()
            with self.parts.writing():
                self.parts.drop(self.parts.find(view, self._orphans(view)))

    def _orphans(self, view: View) -> set[str]:
        """Return the ids of transcripts that have rows although their payload is gone."""
        self.parts.refresh()
        listed = self.select("transcripts" if view == "transcript" else view, None)
        return self._gone(view, self.parts.members(view).keys() - set(listed))

    def _gone(self, view: View, ids: Iterable[str]) -> set[str]:
        """Return those ids of which a payload that the tables of a view are made from is not stored."""
        sources: set[View] = {view, "transcript"}
        return {i for i in ids if not all(self.store.has(i, source) for source in sources)}

    def _is_current(self, view: View, transcript_id: str, source: str, mark: str) -> bool:
        """Return True if rows made from payloads with this hash and stamp are those of the stored payloads."""
        if self._gone(view, [transcript_id]):
            return False
        try:
            return mark == self._stamp(transcript_id, view) or source == self.source_hash(transcript_id, view)
        except DamagedFileError:
            return False

    def has_left(self, transcript_id: str) -> bool:
        """Return True if there is any file or row of a transcript, even without its payload."""
        self.parts.refresh()
        files, is_listed = self.store.files(transcript_id), transcript_id in self.ids()
        return is_listed or bool(files) or any(self.parts.find(view, [transcript_id]) for view in get_args(View))

    def missing(self, transcript_id: str, view: View = "transcript") -> CorpusError:
        """Return the error for a payload that is not in the corpus."""
        what = "transcript" if view == "transcript" else f"{view} export of"
        call = "tables" if view == "transcript" else f"load_{view}"
        return MissingTranscriptError(
            f"there is no {what} {transcript_id!r} in the corpus {str(self.path)!r}; Corpus.ids() lists what is there, "
            f"and voxframe.{call}({transcript_id!r}, client=client, corpus=corpus) fetches it"
        )

    def wait(self) -> None:
        """Wait until no parts are being merged."""
        if self._merging is not None:
            self._merging.join()

    def write_parts(self, writer: PartWriter) -> None:
        """Add a new part, but no transcript that was removed or replaced since its tables were made."""
        self.prepare()
        part = writer.part
        with self.parts.writing():
            self.parts.publish(writer)
            made = zip(part.ids, part.sources, part.stamps, strict=True)
            changed = [i for i, *own in made if i is not None and not self._is_current(part.view, i, *own)]
            self.parts.drop(self.parts.find(part.view, changed))
            for transcript_id in {*changed} - self._gone(part.view, changed):
                with contextlib.suppress(PayloadError, CorpusError):  # the next read reports it
                    self.write_table(part.view, self.make(transcript_id, part.view))
        self.merge_later()

    def write_table(self, view: View, new: NewMember) -> None:
        """Add one transcript to the open part, unless it was removed or replaced since its tables were made."""
        self.prepare()
        with self.parts.writing():
            if self._is_current(view, new.transcript_id, new.source, new.stamp):
                self._steady(lambda: self.parts.add(view, new))
        self.merge_later()

    def _keep(self, view: View, new: NewMember, batch: TableBatch | None) -> None:
        if batch is None:
            self.write_table(view, new)
        else:
            batch.add(view, new)

    def _part(self, transcript_id: str, view: View) -> Part | None:
        """Return the part of a transcript; None if its tables must be made.

        Raises:
            CorpusError: The transcript is not in the corpus, or its payload is damaged.
        """
        mark = self._stamp(transcript_id, view)
        if mark is None:
            raise self.missing(transcript_id, view)
        part = self.parts.members(view).get(transcript_id)
        if part is None or part.stamp(transcript_id) != mark:
            self.parts.refresh()
            part = self.parts.members(view).get(transcript_id)
        if part is None or part.stamp(transcript_id) == mark:
            return part
        return part if part.source(transcript_id) == self.source_hash(transcript_id, view) else None

    def _stamp(self, transcript_id: str, view: View) -> str | None:
        mark = self.store.stamp(transcript_id, view)
        if mark is None or view == "transcript":
            return mark
        return _joined(mark, self.store.stamp(transcript_id, "transcript"))

    def _pending(self, view: View, ids: Sequence[str], found: Located) -> list[str]:
        """Sort transcripts into `found`. Return those with tables that must be made."""
        self.parts.refresh()
        members = self.parts.members(view)
        several = len(ids) > _MANY
        marks = self._stamps(view) if several else {}
        pending = []
        for transcript_id in ids:
            part = members.get(transcript_id)
            if several and part is not None and marks.get(transcript_id) == part.stamp(transcript_id):
                found.members[transcript_id] = part
                continue
            try:
                part = self._part(transcript_id, view)
            except DamagedFileError as error:
                found.bad.append((transcript_id, error))
                continue
            if part is None:
                pending.append(transcript_id)
            else:
                found.members[transcript_id] = part
        return pending

    def _stamps(self, view: View) -> dict[str, str]:
        """Return the stamps of all payloads, by transcript id."""
        marks = self.store.listing()
        if view != "transcript":
            marks = {stem: _joined(mark, marks.get(stem)) for stem, mark in self.store.listing(view).items()}
        return {self.store.id_of(stem): mark for stem, mark in marks.items()}

    def _fill(self, view: View, pending: Sequence[str], found: Located, name: str) -> None:
        """Make the tables of transcripts, and write them if possible."""
        sources: dict[str, str] = {}
        with contextlib.suppress(OSError, CorpusError):  # a corpus on a read-only or full disk can still be read
            self.prepare()
            with self.parts.writing():  # the parts may have been listed while another process changed them
                pending = self._pending(view, pending, found)
            with self.batch() as batch:
                for transcript_id in pending:
                    try:
                        new = self.make(transcript_id, view)
                    except (PayloadError, DamagedFileError) as error:
                        found.bad.append((transcript_id, error))
                    else:
                        sources[transcript_id] = new.source
                        batch.add(view, new)
        members, bad = self.parts.members(view), {transcript_id for transcript_id, _ in found.bad}
        for transcript_id in pending:
            part = members.get(transcript_id)
            if part is not None and part.source(transcript_id) == sources.get(transcript_id):
                found.members[transcript_id] = part
            elif transcript_id not in bad:
                try:
                    new = self.make(transcript_id, view)
                    found.loose[transcript_id] = new.exact_tables()[name]
                except (PayloadError, DamagedFileError) as error:
                    found.bad.append((transcript_id, error))

    def _damaged(self, name: str, parts: Iterable[Part], *, whole: bool = True) -> list[Part]:
        """Return the parts of which the file of a table is damaged, with a warning. They are no longer used."""
        damaged = []
        for part in parts:
            if (layout := part.files.get(name)) is None:
                continue
            try:
                with self.parts.open(name, part) as file:
                    for group in range(len(layout.groups) if whole else 0):
                        file.read([group])
            except PartReplacedError:
                continue
            except (PartDamagedError, *DAMAGE) as error:
                self._discard(damage_of(error, part, self.parts.path(name, part)))
                damaged.append(part)
        return damaged

    def _discard(self, damage: PartDamagedError) -> None:
        """Report a damaged part and stop using it, so that its tables are rebuilt."""
        if damage.path.exists():
            warnings.warn(f"{damage}; its tables are rebuilt from the raw payloads", CorpusWarning, stacklevel=2)
        self.parts.forget(damage.part)

    def _steady(self, read: Callable[[], T]) -> T:
        """Call a function that reads parts until no part changes meanwhile."""
        for _ in range(_TRIES):
            try:
                return read()
            except PartReplacedError:
                continue
            except PartDamagedError as damage:
                self._discard(damage)
        raise changing(self.path)

    def prepare(self, *, again: bool = False) -> None:
        """Create the folders of tables and delete what belongs to no part, once per process and if one is missing.

        Args:
            again: Do it although it was done before.

        Raises:
            CorpusError, OSError: The directory cannot be written.
        """
        self.store.prepare()
        names = [f"tables/{name}" for name in self.parts.tables]
        places = [f"{self.path}/{name}" for name in ("parts", *names)]
        if self._prepared and not again and all(map(os.path.isdir, places)):
            return
        for name in ("tables", "parts", *names):
            folder(self.path / name)
        for name in names:
            sweep(self.path / name)
        with self.parts.writing():
            self.parts.sweep()
            for name in self.parts.tables:
                _write_schema(self.path / "tables" / name / "_schema.parquet", name)
        self._prepared = True

    def merge_later(self) -> None:
        """Merge small parts in a background thread, if any should be merged."""
        idle = self._merging is None or not self._merging.is_alive()
        if self.merges and idle and self.parts.has_to_merge():
            self._merging = threading.Thread(target=self._merge, name="voxframe merge of parts")
            with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
                self._merging.start()

    def _merge(self) -> None:
        with contextlib.suppress(*DAMAGE):  # the next read reports it
            self.parts.merge()

    def make(self, transcript_id: str, view: View) -> NewMember:
        """Return the tables of a stored payload.

        Raises:
            CorpusError: The payload is not in the corpus, or its file is damaged.
            PayloadError: The payload cannot be read.
        """
        stored = self.stored(transcript_id, view)
        return self.made(transcript_id, view, stored.raw)(stored)

    def stored(self, transcript_id: str, view: View) -> Stored:
        """Return a stored payload with the marks of its file.

        Raises:
            CorpusError: The payload is not in the corpus, or its file is damaged.
        """
        stored = self.store.read(transcript_id, view)
        if stored is None:
            raise self.missing(transcript_id, view)
        return stored

    def made(self, transcript_id: str, view: View, raw: bytes, document: Any = None) -> Callable[[Stored], NewMember]:
        """Make the tables of a payload. Return a function that returns them when the payload is stored.

        Args:
            transcript_id: Id of the transcript.
            view: Kind of response.
            raw: The payload.
            document: Result of `frames.decode_transcript` for the payload. None (default): decode it.

        Raises:
            PayloadError: The payload cannot be read.
        """
        if view == "transcript":
            arrays = frames.transcript_arrays(raw, transcript_id=transcript_id, document=document)
            tables = {name: frames.uncast_table(name, columns) for name, columns in arrays.items()}
            return new_member(transcript_id, tables)
        make = frames.sentence_table if view == "sentences" else frames.paragraph_table
        words, of_words, at = None, self.store.content(transcript_id, "transcript"), ""
        if of_words is not None:
            at = self.store.stamp(transcript_id, "transcript") or ""
            if self._part(transcript_id, "transcript") is not None:
                words = self.table("words", transcript_id)
            else:
                found = frames.transcript_tables(self.raw(transcript_id), ("words",), transcript_id)
                words = found["words"]
        table = make(raw, words, transcript_id)
        return lambda own: NewMember(
            transcript_id, _joined(own.content, of_words), _joined(own.stamp, at), None, {view: table}
        )

    def _check_view(self, view: View) -> None:
        if view != "transcript" and view not in EXPORTS:
            raise CorpusError(f"view must be one of transcript, {', '.join(EXPORTS)}, got {shown(view)}")


def stored_tables() -> list[str]:
    """Return the names of the tables that a corpus stores as files."""
    return [*TRANSCRIPT_TABLES, *EXPORTS]


def view_of(table: str) -> View:
    """Return the kind of response that a table is made from."""
    return "sentences" if table == "sentences" else "paragraphs" if table == "paragraphs" else "transcript"


def _joined(own: str, of_transcript: str | None) -> str:
    return f"{own} {of_transcript or ''}"


def _write_schema(path: Path, name: str) -> None:
    """Write a file without rows, so that a glob always finds a file with the right columns."""
    with contextlib.suppress(FileNotFoundError, pa.ArrowException):
        # Other versions of pyarrow write other bytes.
        if path.read_bytes() == file_without_rows(name) or pq.read_schema(path).equals(
            stored_schema(name), check_metadata=True
        ):
            return
    write_atomic(path, file_without_rows(name))
