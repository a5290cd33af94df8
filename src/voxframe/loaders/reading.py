"""Shared implementation of the loaders: resolve each source, build or read its tables, keep each transcript once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypedDict, Unpack

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
    nothing_to_fetch = names is not _ALL and not (client and {*EXPORTS} & {*names})
    if isinstance(source, Corpus) and not refresh and nothing_to_fetch:
        return _of_corpus(_only(source, corpus), names, limit, where, corrected=corrected)
    conditions = {name: checked(name, where) for name in names}
    check_client(client, "fetch")
    sources = source
    if isinstance(source, Corpus):
        corpus, sources = _only(source, corpus), source.ids()
    loading = _Loading(names, client, corpus, refresh, limit if where is None else None, corrected)
    for n, item in enumerate(each(sources)):
        if loading.is_enough():
            break
        loading.read(item, _name(item, None if item is sources else n))
    loaded = loading.finish()
    if not loaded and isinstance(source, Corpus):
        source.parts.query.report_empty("transcripts", None)
    elif not loaded:
        warnings.warn(NONE_GIVEN, PayloadWarning, stacklevel=caller())
    frames_by_name = _one_each(loaded, names, loading.stems)
    return {name: _rows_of(frame, name, conditions[name]) for name, frame in frames_by_name.items()}


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


def _only(source: Corpus, corpus: Corpus | None) -> Corpus:
    if corpus is not None and corpus.path != source.path:
        raise OptionError(f"the source is already a corpus, {source!r}; leave out corpus={corpus!r}")
    return source


class _Loading:
    """One call of a loader: how it reads sources, and what it has read; no more than `limit` rows are needed."""

    def __init__(
        self,
        names: Collection[str],
        client: Fetcher | None,
        corpus: Corpus | None,
        refresh: bool,
        limit: int | None,
        corrected: bool,
    ) -> None:
        self._names, self._client, self._corpus = names, client, corpus
        self._refresh, self._limit, self._corrected = refresh, limit, corrected
        self._views = [view for view in EXPORTS if view in names]
        self._collected, self._bad = Collected(), list[Unreadable]()
        self._next = dict[str, Remote]()  # transcripts of the corpus, to be read together
        self._asked = set[str]()
        self._empty = list[pa.Table]()  # rows of `transcripts` of those without rows in the tables
        self.stems = dict[str, str]()  # of files, by transcript id

    def is_enough(self) -> bool:
        """Return True if the tables have so many rows that no other source is needed."""
        if self._limit is None or not self._collected.good:
            return False
        sizes = [[*map(rows_in, tables.values())] for tables in self._collected.good]
        return all(sum(size) >= self._limit for size in zip(*sizes, strict=True))

    def read(self, item: Source, name: str) -> None:
        """Read a source, or keep it to be read together with the next ones."""
        try:
            resolved = resolve(item, self._client)
        except UnreadableFileError as error:
            self._read_next()
            self._bad.append(error)
            return
        if isinstance(resolved, Remote):
            self._read_transcript(resolved, name)
            return
        self._read_next()
        for place, tables in self._payloads(resolved):
            label = f"{name or 'payload'}{place}"
            if isinstance(tables, PayloadError):
                self._bad.append(_named(tables, label if name or place else ""))
            elif self._collected.add(tables, label) and isinstance(item, str | os.PathLike):
                for transcript_id in ids_in(tables):
                    stem = recording_of(transcript_id, resolved.data) if place else payload_stem(str(item))
                    self.stems.update({transcript_id: stem} if stem else {})

    def finish(self) -> list[Made]:
        """Return the tables of each payload; warn of payloads that are left out or have no rows."""
        self._read_next()
        bad, loaded = self._bad, self._collected.good
        if bad and not loaded:
            raise bad[0]
        if bad:
            warnings.warn(
                f"{len(bad)} of {self._collected.count + len(bad)} payloads cannot be read and are left out: "
                f"{first_of([*map(str, bad)])}",
                PayloadWarning,
                stacklevel=caller(),
            )
        self._collected.report()
        if self._empty and "transcripts" not in self._names:
            of_all = not any(rows_in(table) for part in loaded for table in part.values())
            about = pa.concat_tables([table.select(TABLES["transcripts"].names) for table in self._empty])
            if (reason := why_empty(" or ".join(sorted(self._names)), about, of_all=of_all)) is not None:
                warnings.warn(reason, PayloadWarning, stacklevel=caller())
        return loaded

    def _read_transcript(self, remote: Remote, name: str) -> None:
        corpus = chosen_corpus(self._corpus)
        stored_id = corpus.parts.archive.recordings.id(remote.transcript_id)
        if stored_id != remote.transcript_id:  # the name of a recording
            remote = Remote(stored_id, None if self._client is None else partial(self._client.fetch, stored_id))
        if stored_id in self._asked:
            self._collected.repeat(name, stored_id)
            return
        self._asked.add(stored_id)
        complete = remote.fetch is None or all(corpus.parts.archive.has(stored_id, view) for view in self._views)
        if not self._refresh and complete and stored_id in corpus:  # no request is needed
            if len(self._next) == _TOGETHER:
                self._read_next()
            self._next[stored_id] = remote
        else:
            self._read_next()
            self._read_one(corpus, remote)

    def _read_next(self) -> None:
        """Read the transcripts of the corpus that are next, together if none is damaged."""
        remotes, self._next = self._next, {}
        if not remotes:
            return
        corpus = chosen_corpus(self._corpus)
        if not any(transcript_id in self._collected for transcript_id in remotes):  # else they are compared one by one
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", CorpusWarning)
                    self._collected.add_stored(self._of_stored(corpus, list(remotes)), remotes)
            except (CorpusWarning, PayloadError, DamagedFileError):
                pass
            else:
                return
        for remote in remotes.values():
            self._read_one(corpus, remote)

    def _read_one(self, corpus: Corpus, remote: Remote) -> None:
        try:
            self._collected.add(self._of_remote(corpus, remote), repr(remote.transcript_id))
        except (PayloadError, DamagedFileError) as error:
            if not corpus.parts.archive.has(remote.transcript_id):  # not stored at all, rather than damaged
                raise
            self._bad.append(_named(error, repr(remote.transcript_id)))

    def _of_stored(self, corpus: Corpus, ids: Sequence[str]) -> Made:
        """Return the tables of several transcripts of a corpus."""
        read = partial(corpus.parts.query.arrow, ids=ids, asked=True, corrected=self._corrected)
        tables = {name: read(name) for name in self._names}
        here = {stored_id for table in tables.values() for stored_id in table["transcript_id"].unique().to_pylist()}
        if without := [transcript_id for transcript_id in ids if transcript_id not in here]:
            self._empty.append(corpus.parts.query.arrow("transcripts", without))
        return tables

    def _of_remote(self, corpus: Corpus, remote: Remote) -> Made:
        """Read or fetch the tables of a transcript."""
        flags = {"refresh": self._refresh, "corrected": self._corrected}
        tables = {name: CORPUS_TABLES[name].empty for name in self._names}
        if of_transcript := [name for name in self._names if name not in self._views]:
            tables |= cached_tables(corpus, remote, of_transcript, **flags)
        if self._names is not _ALL or remote.fetch is not None or remote.transcript_id in corpus:
            tables |= {view: cached_export(corpus, remote, view, **flags) for view in self._views}
        return tables

    def _payloads(self, content: Content) -> Iterator[tuple[str, Made | PayloadError]]:
        """Yield location and tables of each payload of a source, or the error if it cannot be read.

        The bytes are nearly always one payload, and searching for others would take longer than reading it. So they are
        only split if they cannot be read as one.
        """
        try:
            raw = converted(content.data, content.file)
            try:
                tables = self._of_bytes(raw)
            except PayloadError:
                parts = [*payloads(raw)]
                if parts == [("", raw)]:
                    raise
            else:
                yield "", tables
                return
        except PayloadError as error:
            yield "", error
            return
        for place, part in parts:
            try:
                yield place, self._of_bytes(part)
            except PayloadError as error:
                yield place, error

    def _of_bytes(self, raw: bytes) -> Made:
        """Build the tables of a payload, as column arrays."""
        if self._names is not _ALL and self._views:
            return {view: _export(raw, view) for view in self._views}
        arrays = frames.transcript_arrays(raw, only=None if self._names is _ALL else self._names)
        kind = _plain(raw).kind if _says_nothing(arrays) else "transcript"
        if self._names is _ALL:
            nothing = {name: frames.no_rows(name) for name in _ALL}
            return nothing | (arrays if kind == "transcript" else {kind: _export(raw, kind)})
        if kind != "transcript":
            raise PayloadError(f"this payload is an export of {kind}, not a transcript; load it with load_{kind}")
        if _says_nothing(arrays):
            self._empty.append(frames.transcript_tables(raw, ("transcripts",))["transcripts"])
        return arrays


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
        columns = max((table.column_names for table in parts), key=len)
        return pa.concat_tables(parts, promote_options="default").select(columns)
    return frames.concat_tables(parts, name)


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
    table = frames.passage_table(raw, view)
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
