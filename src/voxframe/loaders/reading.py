"""Shared implementation of the loaders: resolve each source, build or read its tables, keep each transcript once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import frames
from voxframe.analysis.rows import add_recordings
from voxframe.corpus import Corpus
from voxframe.corpus.conditions import Where, checked
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.importing import UnreadableFileError, payload_stem
from voxframe.corpus.ledger import check_client
from voxframe.corpus.people import with_names
from voxframe.corpus.query import NONE_GIVEN, unfinished, why_empty
from voxframe.corpus.store import EXPORTS, UNFINISHED, View
from voxframe.errors import CorpusWarning, DamagedFileError, OptionError, PayloadError, PayloadWarning, caller
from voxframe.frames.corrected import with_original
from voxframe.frames.payloads import Head, head, payloads
from voxframe.importers import converted, recording_of
from voxframe.loaders.sources import (
    Content,
    Fetcher,
    Remote,
    Source,
    Sources,
    cached_export,
    cached_tables,
    each,
    resolve,
)
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES
from voxframe.validators import Boolean, Integer
from voxframe.validators import checked as check_value

_ALL = (*TRANSCRIPT_TABLES, *EXPORTS)
_TOGETHER = 64  # transcripts of a corpus that are read together
_ROW = "_row"
#: Columns of `transcripts` that an envelope or an error object may fill as well.
_OUTSIDE = frozenset({"transcript_id", "status", "error", "extra"})
_CONTENT = [place for place, name in enumerate(TABLES["transcripts"].names) if name not in _OUTSIDE]

#: Tables by name: of one payload, or of several transcripts of a corpus.
Made: TypeAlias = Mapping[str, "frames.Arrays | pa.Table"]
#: Builds the tables of a payload, as column arrays.
OfBytes: TypeAlias = Callable[[bytes], Made]
#: Reads or fetches the tables of a transcript of a service.
OfRemote: TypeAlias = Callable[[Corpus, Remote], Mapping[str, pa.Table]]
#: Errors of an unreadable payload, passed as a source or stored in a corpus.
Unreadable: TypeAlias = PayloadError | DamagedFileError


class LoadOptions(TypedDict, total=False):
    """The arguments that all loaders share; their docstrings describe them."""

    client: Fetcher | None
    corpus: Corpus | None
    refresh: bool
    limit: int | None
    category: bool
    timedeltas: bool
    corrected: bool


class RowOptions(LoadOptions, total=False):
    """The arguments that all loaders of one table share."""

    where: Where | None


def load(name: str, source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one table of transcripts."""
    return load_all(source, (name,), **options)[name]


def load_all(
    source: Sources,
    names: Collection[str] = _ALL,
    *,
    client: Fetcher | None = None,
    corpus: Corpus | None = None,
    refresh: bool = False,
    limit: int | None = None,
    where: Where | None = None,
    category: bool = False,
    timedeltas: bool = False,
    corrected: bool = True,
) -> dict[str, pd.DataFrame]:
    """Return tables of transcripts by name: all, with exports that are stored or can be fetched, or those requested."""
    limit = None if limit is None else check_value("limit", limit, Integer(0))
    flags = {"refresh": refresh, "category": category, "timedeltas": timedeltas, "corrected": corrected}
    for name, flag in flags.items():
        check_value(name, flag, Boolean())
    frames_by_name = load_some(names, source, client, corpus, refresh, limit, where, corrected=corrected)
    for name, frame in frames_by_name.items():
        head = frame if limit is None or len(frame) <= limit else frame.head(limit)
        frames_by_name[name] = frames.suited(head, category=category, timedeltas=timedeltas)
    return frames_by_name


def load_some(
    names: Collection[str],
    source: Sources,
    client: Fetcher | None,
    corpus: Corpus | None,
    refresh: bool = False,
    limit: int | None = None,
    where: Where | None = None,
    *,
    corrected: bool = True,
) -> dict[str, pd.DataFrame]:
    """Return tables of transcripts by name; exports are read or fetched if they are among them."""
    views = [view for view in EXPORTS if view in names]
    nothing_to_fetch = names is not _ALL and not (views and client)
    if isinstance(source, Corpus) and not refresh and nothing_to_fetch:
        return _of_corpus(_only(source, corpus), names, limit, where, corrected=corrected)
    conditions = {name: checked(name, where) for name in names}
    empty = _Empty(names)

    def of_bytes(raw: bytes) -> Made:
        if names is _ALL:
            return _everything(raw)
        return {view: _export(raw, view) for view in views} if views else _some(raw, names, empty)

    def of_remote(corpus: Corpus, remote: Remote) -> Mapping[str, pa.Table]:
        tables = {name: CORPUS_TABLES[name].empty for name in names}
        if of_transcript := [name for name in names if name not in views]:
            tables |= cached_tables(corpus, remote, of_transcript, refresh=refresh, corrected=corrected)
        if names is not _ALL or remote.fetch is not None or remote.transcript_id in corpus:
            for view in views:
                tables[view] = cached_export(corpus, remote, view, refresh=refresh, corrected=corrected)
        return tables

    enough = limit if where is None else None
    reads = _Reads(names, of_bytes, of_remote, empty, refresh, enough, corrected, {})
    loaded = _made(source, client, corpus, reads)
    if not loaded and isinstance(source, Corpus):
        source.parts.query.report_empty("transcripts", None)
    elif not loaded:
        warnings.warn(NONE_GIVEN, PayloadWarning, stacklevel=caller())
    empty.report(loaded)
    frames_by_name = _one_each(loaded, names, reads.stems)
    return {name: _rows_of(frame, name, conditions[name]) for name, frame in frames_by_name.items()}


def _some(raw: bytes, names: Collection[str], empty: _Empty) -> Mapping[str, frames.Arrays]:
    """Return some tables of the payload of a transcript."""
    arrays = frames.transcript_arrays(raw, only=names)
    if _says_nothing(arrays):
        if (kind := _plain(raw).kind) != "transcript":
            raise PayloadError(f"this payload is an export of {kind}, not a transcript; load it with load_{kind}")
        empty.note(frames.transcript_tables(raw, ("transcripts",))["transcripts"])
    return arrays


def _everything(raw: bytes) -> Made:
    """Return all tables of the payload of a transcript or an export."""
    nothing = {name: frames.no_rows(name) for name in _ALL}
    arrays = frames.transcript_arrays(raw)
    if not _says_nothing(arrays) or (kind := _plain(raw).kind) == "transcript":
        return nothing | arrays
    return nothing | {kind: _export(raw, kind)}


def _rows_of(frame: pd.DataFrame, name: str, condition: pc.Expression | None) -> pd.DataFrame:
    """Return the rows of a table for which a condition holds. Columns that only a corpus has are null."""
    if condition is None:
        return frame
    needed = {field.name: field.type for field in CORPUS_TABLES[name].arrow if field.name in str(condition)}
    here = pa.Table.from_pandas(frame[[column for column in frame if column in needed]], preserve_index=False)
    columns = {
        column: here[column].cast(dtype) if column in here.column_names else pa.nulls(len(frame), dtype)
        for column, dtype in needed.items()
    }
    rows = pa.table({**columns, _ROW: range(len(frame))}).filter(condition)[_ROW].to_numpy()
    selected: pd.DataFrame = frame.iloc[rows].reset_index(drop=True)
    return selected


def _of_corpus(
    corpus: Corpus, names: Collection[str], limit: int | None, where: Where | None, *, corrected: bool
) -> dict[str, pd.DataFrame]:
    """Return tables of all transcripts of a corpus."""
    failed = corpus.parts.query.table("transcripts", columns=["transcript_id", "status"], where="status != 'completed'")
    frames_by_name = {name: corpus.table(name, where=where, limit=limit, corrected=corrected) for name in names}
    without = [f"{job.transcript_id!r} ({job.status})" for job in failed.itertuples()]
    if without and "transcripts" not in names and not all(frame.empty for frame in frames_by_name.values()):
        warnings.warn(unfinished(" or ".join(sorted(names)), without), PayloadWarning, stacklevel=caller())
    return frames_by_name


class _Empty:
    """The transcripts without rows in the requested tables, to warn about the reason."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._about: list[pa.Table] = []

    def note(self, transcripts: pa.Table) -> None:
        """Add rows of the table `transcripts`."""
        self._about.append(transcripts.select(TABLES["transcripts"].names))

    def report(self, parts: Sequence[Made]) -> None:
        """Warn about transcripts without a result. If no table has rows, also about an option that was not set."""
        if not self._about or "transcripts" in self._names:
            return
        about = pa.concat_tables(self._about)
        name = " or ".join(sorted(self._names))
        of_all = not any(rows_in(table) for part in parts for table in part.values())
        if (reason := why_empty(name, about, of_all=of_all)) is not None:
            warnings.warn(reason, PayloadWarning, stacklevel=caller())


def _only(source: Corpus, corpus: Corpus | None) -> Corpus:
    if corpus is not None and corpus.path != source.path:
        raise OptionError(f"the source is already a corpus, {source!r}; leave out corpus={corpus!r}")
    return source


class _Reads(NamedTuple):
    """Ways to read the tables of a loader; no further source is read once they have `limit` rows."""

    names: Collection[str]
    of_bytes: OfBytes
    of_remote: OfRemote
    empty: _Empty
    refresh: bool
    limit: int | None
    corrected: bool
    stems: dict[str, str]

    def is_stored(self, corpus: Corpus, remote: Remote) -> bool:
        """Return True if a transcript can be read from the corpus together with others, without a request."""
        views = [view for view in EXPORTS if view in self.names]
        complete = remote.fetch is None or all(corpus.parts.archive.has(remote.transcript_id, view) for view in views)
        return not self.refresh and complete and remote.transcript_id in corpus

    def of_stored(self, corpus: Corpus, ids: Sequence[str]) -> Made:
        """Return the tables of several transcripts of a corpus."""
        read = partial(corpus.parts.query.arrow, ids=ids, asked=True, corrected=self.corrected)
        tables = {name: read(name) for name in self.names}
        here = {stored_id for table in tables.values() for stored_id in table["transcript_id"].unique().to_pylist()}
        if without := [transcript_id for transcript_id in ids if transcript_id not in here]:
            self.empty.note(corpus.parts.query.arrow("transcripts", without))
        return tables

    def is_enough(self, good: Sequence[Made]) -> bool:
        """Return True if the tables have so many rows that no other source is needed."""
        if self.limit is None or not good:
            return False
        sizes = [[*map(rows_in, tables.values())] for tables in good]
        return all(sum(size) >= self.limit for size in zip(*sizes, strict=True))


def _made(source: Sources, client: Fetcher | None, corpus: Corpus | None, reads: _Reads) -> list[Made]:
    """Build the tables of each payload of each source; warn of payloads that are left out."""
    check_client(client, "fetch")
    if isinstance(source, Corpus):
        corpus, source = _only(source, corpus), source.ids()
    collected = Collected()
    bad: list[Unreadable] = []
    stored: dict[str, Remote] = {}
    asked = set[str]()

    def read_one(where: Corpus, remote: Remote) -> None:
        try:
            collected.add(reads.of_remote(where, remote), repr(remote.transcript_id))
        except (PayloadError, DamagedFileError) as error:
            if not where.parts.archive.has(remote.transcript_id):  # not stored at all, rather than damaged
                raise
            bad.append(_named(error, repr(remote.transcript_id)))

    def read_stored() -> None:
        """Read the transcripts of the corpus that are next, together if none is damaged."""
        remotes = dict(stored)
        stored.clear()
        if not remotes:
            return
        where = chosen_corpus(corpus)
        if not any(transcript_id in collected for transcript_id in remotes):  # else they are compared one by one
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", CorpusWarning)
                    collected.add_stored(reads.of_stored(where, list(remotes)), remotes)
            except (CorpusWarning, PayloadError, DamagedFileError):
                pass
            else:
                return
        for remote in remotes.values():
            read_one(where, remote)

    for n, item in enumerate(each(source)):
        if reads.is_enough(collected.good):
            break
        name = _name(item, None if item is source else n)
        try:
            resolved = resolve(item, client)
        except UnreadableFileError as error:
            read_stored()
            bad.append(error)
            continue
        if isinstance(resolved, Remote):
            where = chosen_corpus(corpus)
            stored_id = where.parts.archive.recordings.id(resolved.transcript_id)
            if stored_id != resolved.transcript_id:  # the name of a recording
                resolved = Remote(stored_id, None if client is None else partial(client.fetch, stored_id))
            if stored_id in asked:
                collected.repeat(name, stored_id)
                continue
            asked.add(stored_id)
            if len(stored) == _TOGETHER:
                read_stored()
            if reads.is_stored(where, resolved):
                stored[stored_id] = resolved
            else:
                read_stored()
                read_one(where, resolved)
            continue
        read_stored()
        for place, tables in _each_payload(resolved, reads.of_bytes):
            label = f"{name or 'payload'}{place}"
            if isinstance(tables, PayloadError):
                bad.append(_named(tables, label if name or place else ""))
            elif collected.add(tables, label) and isinstance(item, str | os.PathLike):
                for transcript_id in ids_in(tables):
                    stem = recording_of(transcript_id, resolved.data) if place else payload_stem(str(item))
                    reads.stems.update({transcript_id: stem} if stem else {})
    read_stored()
    if bad and not collected.good:
        raise bad[0]
    if bad:
        warnings.warn(
            f"{len(bad)} of {collected.count + len(bad)} payloads cannot be read and are left out: "
            f"{first_of([*map(str, bad)])}",
            PayloadWarning,
            stacklevel=caller(),
        )
    collected.report()
    return collected.good


def _each_payload(content: Content, make: OfBytes) -> Iterator[tuple[str, Made | PayloadError]]:
    """Yield location and tables of each payload of a source, or the error if it cannot be read.

    The bytes are nearly always one payload, and searching for others would take longer than reading it. So they are
    only split if they cannot be read as one.
    """
    try:
        raw = converted(content.data, content.file)
    except PayloadError as error:
        yield "", error
        return
    try:
        tables = make(raw)
    except PayloadError as error:
        failure = error
    else:
        yield "", tables
        return
    try:
        parts = [*payloads(raw)]
    except PayloadError as error:
        yield "", error
        return
    if parts == [("", raw)]:
        yield "", failure
        return
    for place, part in parts:
        try:
            yield place, make(part)
        except PayloadError as error:
            yield place, error


def _name(source: Source, place: int | None) -> str:
    """Return the name of a source for messages: the path of a file, or the index of one of several payloads."""
    if isinstance(source, str | os.PathLike):
        return repr(str(source))
    return "" if place is None else f"source {place} (counted from 0)"


def _named(error: Unreadable, name: str) -> Unreadable:
    return type(error)(f"{name}: {error}") if name and name not in str(error) else error


def _one_each(parts: Sequence[Made], names: Collection[str], stems: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    if len(parts) == 1 and not any(isinstance(table, pa.Table) for table in parts[0].values()):
        return frames.all_to_pandas(parts[0], recordings=stems)
    tables = frames.all_to_pandas(
        {name: with_original(_together([as_table(name, part[name]) for part in parts], name), name) for name in names}
    )
    for frame in tables.values():
        add_recordings(frame, stems)
    return tables


def _together(parts: Sequence[pa.Table], name: str) -> pa.Table:
    """Concatenate tables of several sources; if one comes from a corpus, all get the columns that a corpus adds."""
    if any(table.num_columns != parts[0].num_columns for table in parts):
        parts = [with_original(with_names(table, {}), name) for table in parts]
        names = max(parts, key=lambda table: len(table.column_names)).schema
        parts = [_with_columns(table, names) for table in parts]
    return frames.concat_tables(parts, name)


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema, with nulls in those that it does not have."""
    missing = [field for field in schema if field.name not in table.column_names]
    for field in missing:
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names)


def _says_nothing(tables: Mapping[str, frames.Arrays]) -> bool:
    """Return True if no table has rows, apart from a transcript without any content."""
    return all(
        not len(arrays[0])
        or (name == "transcripts" and all(arrays[place].null_count == len(arrays[place]) for place in _CONTENT))
        for name, arrays in tables.items()
    )


def _plain(raw: bytes) -> Head:
    """Identify a payload that gave empty tables."""
    if [*payloads(raw)] != [("", raw)]:
        raise PayloadError("the payload is in an envelope")  # never shown: the caller reads the payload in it
    return head(raw)


def _export(raw: bytes, view: View) -> frames.Arrays | pa.Table:
    """Return the sentences or paragraphs of a payload; those of a transcript are made from its words."""
    table = frames.sentence_table(raw) if view == "sentences" else frames.paragraph_table(raw)
    if table.num_rows == 0 and view not in head(raw).fields:
        if len(words := frames.transcript_tables(raw, ("words",))["words"]):
            return frames.derived_passages(words, view)
        raise PayloadError(
            f"this payload has no {view} and no words to make them from: the service sends them in a separate "
            f"response. Pass the result of client.fetch(id, {view!r}), a transcript handle, or an id with client=..."
        )
    return table.columns


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
    rows = {name: _of_transcript(name, table, transcript_id) for name, table in tables.items() if rows_in(table)}
    rows_before = {name: _of_transcript(name, before[name], transcript_id) for name in rows}
    shared = [name for name, table in rows_before.items() if len(table)]
    return None if not shared else all(rows[name].equals(rows_before[name]) for name in rows)


def _is_unfinished(tables: Made) -> bool:
    """Return True if the tables are those of one transcript whose job has not ended."""
    if "transcripts" not in tables or rows_in(tables["transcripts"]) != 1:
        return False
    return as_table("transcripts", tables["transcripts"])["status"][0].as_py() in UNFINISHED


def _of_transcript(name: str, table: frames.Arrays | pa.Table, transcript_id: str) -> pa.Table:
    """Return the rows of a transcript, without the columns that a corpus adds."""
    rows = as_table(name, table).select(TABLES[name].names).cast(TABLES[name].arrow)
    return rows.filter(pc.field("transcript_id") == transcript_id)
