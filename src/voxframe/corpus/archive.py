"""The payloads of a corpus and the tables made from them, and their rows as they are now: with edits applied."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa

from voxframe import frames
from voxframe.corpus.catalog import Catalog, Writing, clear_errors
from voxframe.corpus.job import Job, record_of
from voxframe.corpus.ledger import EditLog, Ledger, NameLog, RecordingNames
from voxframe.corpus.store import EXPORTS, UNFINISHED, Store, Stored, View, check_writable
from voxframe.corpus.tables import (
    KINDS,
    Kind,
    Member,
    NewMember,
    NewPart,
    PartBatch,
    PartDamagedError,
    PartReplacedError,
    Tables,
    kinds_of,
    new_member,
)
from voxframe.corpus.views import DAMAGE, Located, assemble, runs_of
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError, NewerCorpusError, PayloadError, caller
from voxframe.frames import derived_passages
from voxframe.frames.corrected import TURN_TABLES, correct_tables, with_original
from voxframe.frames.tables import with_derived
from voxframe.schema import SCHEMA_VERSION, TRANSCRIPT_TABLES
from voxframe.validators import listed, nearest, shown

if TYPE_CHECKING:
    from voxframe.corpus.ledger import Ids

T = TypeVar("T")
_Method = TypeVar("_Method", bound=Callable[..., Any])

_TRIES = 20  # reads of parts that other processes keep changing
_SIMILAR = 2000  # transcripts; of more, the names are not compared with a misspelled one
_MANY = 64  # transcripts; for more, the payload files are listed instead of looked up one by one


class MissingTranscriptError(CorpusError):
    """A transcript, or an export of one, is not in the corpus. It may have been deleted during a read."""


def changing(path: Path) -> CorpusError:
    """Return the error for a corpus that changes during each of several reads."""
    return CorpusError(f"the corpus {path} changes all the time; stop what writes to it and try again")


def in_session(method: _Method) -> _Method:
    """Let a method of an archive, or of an object with `_archive`, use one connection of the catalog."""

    @wraps(method)
    def method_in_session(self: Any, *args: Any, **options: Any) -> Any:
        with getattr(self, "_archive", self).catalog.session():
            return method(self, *args, **options)

    return cast("_Method", method_in_session)


class Archive:
    """Payloads and tables of the transcripts of a corpus. Copies and pickles read the same directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)
        self.catalog = Catalog(path, self.store)
        self.files = Tables(path, self.catalog)
        self.edits = EditLog(self.catalog)
        self.names = NameLog(self.catalog)
        self.ledger = Ledger(self.catalog)
        self.recordings = RecordingNames(self.store, self.ledger)
        self.merges = True  # small parts are merged after writes
        self._is_checked = False
        self._merging: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Archive({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Archive, (self.path,)

    @in_session
    def put(
        self,
        transcript_id: str,
        raw: bytes,
        view: View = "transcript",
        *,
        job: Job | None = None,
        recording: Mapping[str, object] | None = None,
        batch: PartBatch | None = None,
    ) -> NewMember:
        """Store a payload and its tables, replacing older ones. The payload is written first."""
        self.check_id(transcript_id, view)
        with clear_errors(self.path):
            submission = None if job is None else record_of(job)
            with ThreadPoolExecutor(1) as thread:  # the disk is written while the tables are made
                stored = thread.submit(self.store.put, transcript_id, view, raw, submission, recording)
                try:
                    rows = self.made(transcript_id, view, raw)
                finally:
                    stored.result()  # a payload that cannot be stored is the first error
            new = rows(stored.result())
            if batch is None:
                self.write_table(view, new)
            else:
                batch.add(view, new)
        return new

    def check_id(self, transcript_id: str, view: View) -> None:
        """Check that a payload can be stored under an id."""
        self._check_view(view)
        if not isinstance(transcript_id, str) or not transcript_id:
            raise CorpusError(f"a transcript id is a text that is not empty, not {transcript_id!r}")
        if any("\ud800" <= c <= "\udfff" for c in transcript_id):  # cannot be encoded as UTF-8 in Parquet
            raise CorpusError(f"a transcript id is Unicode text; {transcript_id!r} holds half of a surrogate pair")

    def batch(self) -> contextlib.closing[PartBatch]:
        """Collect the tables of many transcripts, which are written in large parts: see `put`."""
        return contextlib.closing(PartBatch(self.write_part))

    def raw(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Return the payload byte for byte as received."""
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
        except (PayloadError, DamagedFileError, MissingTranscriptError):  # damaged, or removed since
            return False

    def status(self, transcript_id: str) -> str | None:
        """Return the stored status of a transcript: "completed", "error" or whatever the service sent."""
        member = self._member(transcript_id, "transcript")
        if member is not None:
            return member.status
        status: str | None = self.table("transcripts", transcript_id)["status"][0].as_py()
        return status

    def table(self, name: str, transcript_id: str) -> pa.Table:
        """Return one table of one transcript as sent, made from the payload if necessary."""
        return self.tables(transcript_id, [name])[name]

    @in_session
    def tables(self, transcript_id: str, names: Collection[str] = TRANSCRIPT_TABLES) -> dict[str, pa.Table]:
        """Return tables of one transcript as sent, all made from the same payload, without names of speakers."""
        (view,) = {view_of(name) for name in names}

        def read() -> dict[str, pa.Table]:
            located = Located()
            self._locate_sent(view, [transcript_id], located)
            for _, error in located.bad:
                raise error
            return {name: assemble(self.files, name, [transcript_id], located) for name in names}

        return self._steady(read)

    def current(self, name: str, transcript_id: str) -> pa.Table:
        """Return one table of one transcript with its edits applied."""
        table, located = self.read(name, [transcript_id])
        for _, error in located.bad:
            raise error
        return table

    def select(self, name: str, ids: Iterable[str] | None) -> list[str]:
        """Return the ids that a read of a table covers."""
        if name not in TRANSCRIPT_TABLES and name not in EXPORTS:
            tables = [*TRANSCRIPT_TABLES, *EXPORTS]
            raise CorpusError(f"a corpus has no table {name!r}{nearest(name, tables)}; it has {listed(tables)}")
        if ids is not None:
            return list(ids)
        view = view_of(name)
        if view == "transcript":
            return self.ids()
        return sorted(map(self.store.id_of, self.store.listing().keys() & self.store.listing(view).keys()))

    def locate(self, name: str, ids: Sequence[str], *, corrected: bool | None = True) -> Located:
        """Return where the rows of transcripts are, after making missing and outdated ones."""
        kind, current = kinds_of(name)
        located = Located()
        if kind == "transcript" or corrected is None:
            self._locate_sent(kind, ids, located)
        if corrected is None or current is None or (not (edited := self.edits.hashes(ids)) and kind == "transcript"):
            return located
        if kind == "transcript":
            if corrected:
                sources = {i: f"{located.source(i)} {edited[i]}" for i in ids if i in edited and located.has(i)}
                self._locate_current(current, sources, edited, located)
            return located
        exported = set(self.select(name, None)) if len(ids) > _MANY else {i for i in ids if self.has(i, view_of(name))}
        alone = {i for i in exported.intersection(ids) if not self.has(i, "transcript")}  # stored before its transcript
        words = self.locate("words", [i for i in ids if i not in alone], corrected=None)
        located.bad.extend(words.bad)
        here = [i for i in ids if words.has(i) or i in exported]
        self._locate_sent(kind, [i for i in here if i in exported], located)
        sources = {}
        for i in here:
            if i not in exported:
                sources[i] = " ".join(filter(None, [words.source(i), edited.get(i)]))
            elif i in edited and corrected and located.has(i):
                sources[i] = f"{located.source(i)} {edited[i]}"
        stored = sources if corrected else {i: source for i, source in sources.items() if i not in edited}
        self._locate_current(current, stored, edited, located)
        for i in sources.keys() - stored.keys():
            located.loose[i] = NewMember(
                i, sources[i], "", None, {name: derived_passages(self.table("words", i), name)}
            )
        return located

    def _locate_sent(self, kind: Kind, ids: Sequence[str], located: Located) -> None:
        assert kind == "transcript" or kind in EXPORTS
        view: View = kind
        if pending := self._pending(view, ids, located):
            self._fill(view, pending, located)

    def _locate_current(
        self, kind: Kind, sources: Mapping[str, str], edited: Mapping[str, str], located: Located
    ) -> None:
        """Locate the rows that replace those as sent. They are written with an edit; missing ones are made now."""
        if not sources:
            return
        members = self.files.members(kind, None if len(sources) > _MANY else sources)
        missing = []
        for i, source in sources.items():
            member = members.get(i)
            if member is not None and member.source == source:
                located.members[i] = member
                located.loose.pop(i, None)
            else:
                missing.append(i)
        news = []
        for i in missing:
            try:
                new = self._make_current(kind, i, sources[i], is_edited=i in edited)
            except (PayloadError, DamagedFileError) as error:
                located.bad.append((i, error))
                continue
            news.append(new)
            located.members.pop(i, None)
            located.loose[i] = new
        self.write_current(kind, news)

    def _make_current(self, kind: Kind, transcript_id: str, source: str, *, is_edited: bool) -> NewMember:
        """Return the rows that replace those as sent."""
        if kind != "edited" and not self.has(transcript_id, view_of(KINDS[kind][0])):
            words = self.current("words", transcript_id) if is_edited else self.table("words", transcript_id)
            (name,) = KINDS[kind]
            return NewMember(
                transcript_id, source, "", None, {name: with_original(derived_passages(words, name), name)}
            )
        rows = self.sent(transcript_id, KINDS[kind])
        corrected = correct_tables(rows, self.edits.active(transcript_id)).tables
        current = {name: corrected[name] for name in KINDS[kind]}
        current |= {name: with_derived(current[name], derived=False) for name in current if name in EXPORTS}
        return NewMember(transcript_id, source, "", None, current)

    def sent(self, transcript_id: str, names: Collection[str] = ()) -> dict[str, pa.Table]:
        """Return the tables of a transcript that edits are applied to: those of the turns, and those in `names`."""
        stored = [*TURN_TABLES, *(n for n in names if view_of(n) == "transcript" and n not in TURN_TABLES)]
        tables = self.tables(transcript_id, stored)
        for view in EXPORTS:
            if view in names and self.has(transcript_id, view):
                tables[view] = self.table(view, transcript_id)
        return tables

    def write_current(self, kind: Kind, news: Sequence[NewMember]) -> None:
        """Write rows that replace those as sent, if the corpus can be written."""
        part = NewPart(kind)
        for new in news:
            part.add(new)
        if news:
            with contextlib.suppress(OSError, CorpusError), clear_errors(self.path):
                self.files.add(part, lambda _, i, __: self.has(i))

    @in_session
    def refresh(self, transcript_id: str) -> None:
        """Write the rows of a transcript whose edits have changed."""
        if self.edits.hashes([transcript_id]):
            self.locate("words", [transcript_id])
        else:
            with self.catalog.writing() as tx:
                for kind in ("edited", "sentences+", "paragraphs+"):
                    self.files.drop(tx, kind, [transcript_id])
            self.files.settle()

    @in_session
    def read(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None = None,
        choose: Callable[[pa.Table], pa.Table] | None = None,
        *,
        corrected: bool | None = True,
    ) -> tuple[pa.Table, Located]:
        """Return the rows of transcripts in their order, without names of speakers; see `assemble`."""

        def read() -> tuple[pa.Table, Located]:
            located = self.locate(name, ids, corrected=corrected)
            return assemble(self.files, name, ids, located, columns, choose), located

        return self._steady(read)

    def stored_labels(self) -> list[tuple[str, str]]:
        """Return the speakers of each transcript as sent, as far as tables are written, by id: merges reorder files."""

        def read() -> pa.Table:
            members = self.files.members("transcript")
            return assemble(
                self.files, "utterances", sorted(members), Located(dict(members)), ["transcript_id", "speaker"]
            )

        pairs = self._steady(read).group_by(["transcript_id", "speaker"], use_threads=False).aggregate([])
        return [(i, label) for i, label in zip(*pairs.to_pydict().values(), strict=True) if label is not None]

    def each(self, name: str, ids: Iterable[str], columns: Sequence[str]) -> Iterator[tuple[str, pa.Table | Exception]]:
        """Yield some columns of a table of each transcript as it is now, in the order of the files."""
        for batch in self.batches(name, ids, _MANY):
            try:
                table, located = self.read(name, batch, list(dict.fromkeys([*columns, "transcript_id"])))
            except MissingTranscriptError as error:
                if len(batch) == 1:
                    yield batch[0], error
                else:  # one of them was removed meanwhile
                    for transcript_id in batch:
                        yield from self.each(name, [transcript_id], columns)
                continue
            runs = runs_of(table["transcript_id"])
            yield from ((i, table.slice(*runs.get(i, (0, 0)))) for i in batch if located.has(i))
            yield from located.bad

    def batches(self, name: str, ids: Iterable[str], size: int) -> Iterator[list[str]]:
        """Yield transcripts a few at a time, in the order of the files of a table."""
        members = self.files.members(kinds_of(name)[0])
        parts = ((members.get(transcript_id), transcript_id) for transcript_id in ids)
        stored = [i for *_, i in sorted((m.part, m.place, i) if m else (0, 0, i) for m, i in parts)]
        yield from (stored[at : at + size] for at in range(0, len(stored), size))

    def with_rows(self, name: str, ids: Sequence[str]) -> set[str]:
        """Return the ids of those transcripts that have rows in a table."""
        return set(self._steady(lambda: self.locate(name, ids).rows(self.files, name)))

    def stale(self, view: View = "transcript", *, verify: bool = False) -> list[str]:
        """Return the ids of transcripts with a table that must be rebuilt, or removed because the payload is gone."""
        located = Located()
        names = KINDS[view]
        stale = {*self._pending(view, self.select(names[0], None), located)}
        damaged = {
            part for part in {m.part for m in located.members.values()} if not self._is_sound(part, names, verify)
        }
        stale |= {i for i, member in located.members.items() if member.part in damaged}
        return sorted(stale | {i for i, _ in located.bad} | self.orphans(view))

    def _is_sound(self, part: int, names: Iterable[str], verify: bool) -> bool:
        """Return True if all files of a part can be read; otherwise warn, and stop using it."""
        for name in names:
            try:
                if groups := self.files.groups(part, name):
                    self.files.path(part, name)
                    if verify:
                        self.files.read(part, name, range(len(groups)))
            except PartReplacedError:
                continue
            except PartDamagedError as error:
                self.discard(error)
                return False
        return True

    def source_hash(self, transcript_id: str, view: View = "transcript") -> str | None:
        """Return a hash of the payloads that the tables of a view are made from. None if it is not stored."""
        content = self.store.content(transcript_id, view)
        if content is None or view == "transcript":
            return content
        return _joined(content, self.store.content(transcript_id, "transcript"))

    def fingerprints(self, ids: Mapping[View, Iterable[str]], about: Mapping[str, object]) -> dict[str, str]:
        """Return a hash of everything that the rows of a transcript are made from, by transcript id."""
        sources: dict[str, list[str]] = {}
        for view, of_view in ids.items():
            for transcript_id in of_view:
                source = None
                with contextlib.suppress(DamagedFileError):
                    source = self.source_hash(transcript_id, view)
                sources.setdefault(transcript_id, []).append(f"{view} {source}")
        names = {i: self.names.get(i) for i in sources} if len(sources) <= _MANY else self.names.all()
        edits = self.edits.hashes(sources)
        recordings = {row["transcript_id"]: row for row in self.recordings.table(list(sources)).to_pylist()}
        return {
            i: hashlib.sha256(
                repr((SCHEMA_VERSION, of_it, names.get(i) or None, edits.get(i), about.get(i), recordings[i])).encode()
            ).hexdigest()
            for i, of_it in sources.items()
        }

    @in_session
    def unchanged(
        self,
        ids: Mapping[View, Iterable[str]],
        read: Callable[[], T],
        about: Callable[[], Mapping[str, object]] = dict,
    ) -> T:
        """Repeat a read until nothing that its rows are made from changes meanwhile."""
        before = self.fingerprints(ids, about())
        for _ in range(_TRIES):
            rows = read()
            if (now := self.fingerprints(ids, about())) == before:
                return rows
            before = now
        raise changing(self.path)

    def remove(self, transcript_id: str) -> None:
        """Delete every row and file of a transcript."""
        with clear_errors(self.path):
            self.store.prepare()
            with self.catalog.writing(durable=True) as tx:
                for kind in KINDS:
                    self.files.drop(tx, kind, [transcript_id])
                self.files.delete_retired(tx)
                self.store.remove(transcript_id)
            self.files.settle()

    @contextlib.contextmanager
    def kept(self, *transcript_ids: str) -> Iterator[Writing]:
        """Hold the lock that `remove` needs, to store something about transcripts that are still there."""
        with self.catalog.writing() as tx:
            if gone := self._gone("transcript", transcript_ids):
                raise self.missing(min(gone))
            yield tx

    def drop_orphans(self, view: View) -> None:
        """Remove the rows of transcripts whose payload is gone."""
        if orphans := self.orphans(view):
            self.store.prepare()
            with self.catalog.writing() as tx:
                self.files.drop(tx, view, orphans)
            self.files.settle()

    def orphans(self, view: View) -> set[str]:
        """Return the ids of transcripts that have rows although their payload is gone."""
        listed = self.select("transcripts" if view == "transcript" else view, None)
        return self._gone(view, self.files.members(view).keys() - set(listed))

    def _gone(self, view: View, ids: Iterable[str]) -> set[str]:
        """Return those ids of which a payload that the tables of a view are made from is not stored."""
        sources: set[View] = {view, "transcript"}
        return {i for i in ids if not all(self.store.has(i, source) for source in sources)}

    def _is_current(self, view: View, transcript_id: str, member: Member) -> bool:
        """Return True if rows are made from the payloads that are stored now."""
        if self._gone(view, [transcript_id]):
            return False
        try:
            is_same = member.stamp == self._stamp(transcript_id, view)
            return is_same or member.source == self.source_hash(transcript_id, view)
        except DamagedFileError:
            return False

    def has_left(self, transcript_id: str) -> bool:
        """Return True if there is anything of a transcript, even without its payload."""
        return bool(self.store.files(transcript_id)) or self.catalog.mentions(transcript_id)

    def missing(self, transcript_id: str, view: View = "transcript") -> CorpusError:
        """Return the error for a payload that is not in the corpus."""
        what = "transcript" if view == "transcript" else f"{view} export of"
        call = "tables" if view == "transcript" else f"load_{view}"
        return MissingTranscriptError(
            f"there is no {what} {transcript_id!r} in the corpus {str(self.path)!r}{self.similar(transcript_id)}; "
            f"Corpus.ids() lists what is there, "
            f"and voxframe.{call}({transcript_id!r}, client=client, corpus=corpus) fetches it"
        )

    def known(self, ids: Ids) -> list[str]:
        """Return the ids of transcripts; raise `missing` for one of which there is nothing."""
        found = self.recordings.ids(ids)
        if unknown := next((i for i in found if not self.has(i) and not self.has_left(i)), None):
            raise self.missing(unknown)
        return found

    def similar(self, text: str) -> str:
        """Return the recording whose name is similar to a misspelled one, for the end of an error message."""
        ids = self.ids()
        if len(ids) > _SIMILAR:
            return ""
        names = {*self.recordings.names(ids).values()} - {text}
        return nearest(text, sorted(names)) or nearest(text.rpartition(".")[0], sorted(names))

    def wait(self) -> None:
        """Wait until no parts are being merged."""
        if self._merging is not None:
            self._merging.join()

    @in_session
    def write_part(self, new: NewPart) -> None:
        """Add a new part, but no transcript that was removed or replaced since its tables were made."""
        view: View = new.kind  # type: ignore[assignment]
        self.store.prepare()
        outdated: list[str] = []

        def is_current(_: Writing, transcript_id: str, member: Member) -> bool:
            current = self._is_current(view, transcript_id, member)
            if not current:
                outdated.append(transcript_id)
            return current

        self.files.add(new, is_current)
        for transcript_id in outdated:
            if not self._gone(view, [transcript_id]):
                with contextlib.suppress(PayloadError, CorpusError):  # the next read reports it
                    self.write_table(view, self.make(transcript_id, view))
        if view == "transcript":
            for transcript_id in self.edits.hashes(new.members):
                with contextlib.suppress(PayloadError, CorpusError):
                    self.refresh(transcript_id)
        self.merge_later()

    def write_table(self, view: View, new: NewMember) -> None:
        """Add one transcript."""
        member = self.files.members(view, [new.transcript_id]).get(new.transcript_id)
        if member is not None and member.source == new.source:
            return
        part = NewPart(view)
        part.add(new)
        self.write_part(part)

    def _member(self, transcript_id: str, view: View) -> Member | None:
        """Return where the rows of a transcript are; None if its tables must be made."""
        mark = self._stamp(transcript_id, view)
        if mark is None:
            raise self.missing(transcript_id, view)
        member = self.files.members(view, [transcript_id]).get(transcript_id)
        if member is None or member.stamp == mark:
            return member
        return member if member.source == self.source_hash(transcript_id, view) else None

    def _stamp(self, transcript_id: str, view: View) -> str | None:
        mark = self.store.stamp(transcript_id, view)
        if mark is None or view == "transcript":
            return mark
        return _joined(mark, self.store.stamp(transcript_id, "transcript"))

    def _pending(self, view: View, ids: Sequence[str], located: Located) -> list[str]:
        """Sort transcripts into `located`. Return those with tables that must be made."""
        several = len(ids) > _MANY
        members = self.files.members(view, None if several else ids)
        marks = self._stamps(view) if several else {i: self._stamp(i, view) for i in ids}
        pending = []
        for transcript_id in ids:
            member, mark = members.get(transcript_id), marks.get(transcript_id)
            if mark is None and (mark := self._stamp(transcript_id, view)) is None:
                raise self.missing(transcript_id, view)
            if member is not None and mark != member.stamp:
                try:
                    member = member if member.source == self.source_hash(transcript_id, view) else None
                except DamagedFileError as error:
                    located.bad.append((transcript_id, error))
                    continue
            if member is None:
                pending.append(transcript_id)
            else:
                located.members[transcript_id] = member
        return pending

    def _stamps(self, view: View) -> dict[str, str | None]:
        """Return the stamps of all payloads, by transcript id."""
        marks = self.store.listing()
        if view != "transcript":
            marks = {stem: _joined(mark, marks.get(stem)) for stem, mark in self.store.listing(view).items()}
        return {self.store.id_of(stem): mark for stem, mark in marks.items()}

    def _fill(self, view: View, pending: Sequence[str], located: Located) -> None:
        """Make the tables of transcripts, and write them if possible."""
        sources: dict[str, str] = {}
        # A corpus on a read-only or full disk can still be read.
        with contextlib.suppress(OSError, CorpusError), clear_errors(self.path), self.batch() as batch:
            for transcript_id in pending:
                try:
                    new = self.make(transcript_id, view)
                except (PayloadError, DamagedFileError) as error:
                    located.bad.append((transcript_id, error))
                else:
                    sources[transcript_id] = new.source
                    batch.add(view, new)
        members, bad = self.files.members(view, pending), {transcript_id for transcript_id, _ in located.bad}
        for transcript_id in pending:
            member = members.get(transcript_id)
            if member is not None and member.source == sources.get(transcript_id):
                located.members[transcript_id] = member
            elif transcript_id not in bad:
                try:
                    located.loose[transcript_id] = self.make(transcript_id, view)
                except (PayloadError, DamagedFileError) as error:
                    located.bad.append((transcript_id, error))

    def discard(self, damage: PartDamagedError) -> None:
        """Report a damaged part and stop using it, so that its tables are rebuilt."""
        if damage.path.exists():
            warnings.warn(f"{damage}; its tables are rebuilt from the raw payloads", CorpusWarning, stacklevel=2)
        self.files.discard(damage.part)

    def _steady(self, read: Callable[[], T]) -> T:
        """Call a function that reads parts until no part changes meanwhile."""
        for _ in range(_TRIES):
            try:
                return read()
            except PartReplacedError:
                continue
            except PartDamagedError as damage:
                self.discard(damage)
        raise changing(self.path)

    def merge_later(self) -> None:
        """Merge small parts in a background thread, if any should be merged."""
        idle = self._merging is None or not self._merging.is_alive()
        if self.merges and idle and self.files.to_merge() is not None:
            self._merging = threading.Thread(target=self._merge, name="voxframe merge of parts")
            with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
                self._merging.start()

    def _merge(self) -> None:
        with contextlib.suppress(*DAMAGE, CorpusError), clear_errors(self.path):  # the next read reports it
            self.files.merge()

    def make(self, transcript_id: str, view: View) -> NewMember:
        """Return the tables of a stored payload."""
        stored = self.stored(transcript_id, view)
        return self.made(transcript_id, view, stored.whole)(stored)

    def stored(self, transcript_id: str, view: View) -> Stored:
        """Return a stored payload with the marks of its file."""
        stored = self.store.read(transcript_id, view)
        if stored is None:
            raise self.missing(transcript_id, view)
        return stored

    def made(self, transcript_id: str, view: View, raw: bytes, document: Any = None) -> Callable[[Stored], NewMember]:
        """Make the tables of a payload. Return a function that returns them when the payload is stored."""
        if view == "transcript":
            arrays = frames.transcript_arrays(raw, transcript_id=transcript_id, document=document)
            tables = {name: frames.uncast_table(name, columns) for name, columns in arrays.items()}
            return new_member(transcript_id, tables)
        words, of_words, at = None, self.store.content(transcript_id, "transcript"), ""
        if of_words is not None:
            at = self.store.stamp(transcript_id, "transcript") or ""
            if self._member(transcript_id, "transcript") is not None:
                words = self.table("words", transcript_id)
            else:
                of_words_only = frames.transcript_tables(
                    self.stored(transcript_id, "transcript").whole, ("words",), transcript_id
                )
                words = of_words_only["words"]
        table = frames.passage_table(raw, view, words, transcript_id)
        return lambda stored: NewMember(
            transcript_id, _joined(stored.content, of_words), _joined(stored.stamp, at), None, {view: table}
        )

    def _check_view(self, view: View) -> None:
        if view != "transcript" and view not in EXPORTS:
            raise CorpusError(f"view must be one of transcript, {', '.join(EXPORTS)}, got {shown(view)}")


def view_of(table: str) -> View:
    """Return the kind of response that a table is made from."""
    return "sentences" if table == "sentences" else "paragraphs" if table == "paragraphs" else "transcript"


def _joined(mark: str, of_transcript: str | None) -> str:
    return f"{mark} {of_transcript or ''}"
