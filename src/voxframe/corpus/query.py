"""Reads of tables over many transcripts: DataFrames, datasets, results of DuckDB queries, and why there are no rows."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, wraps
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from voxframe._arrow import DTYPES
from voxframe._text import html_table, quantity
from voxframe.corpus import conditions
from voxframe.corpus.archive import Archive, MissingTranscriptError, changing, in_session
from voxframe.corpus.conditions import Wanted, Where, is_named, wanted_names, without_person
from voxframe.corpus.ledger import identifiers
from voxframe.corpus.metadata import metadata_table, with_metadata
from voxframe.corpus.people import add_names, add_people, valid_names
from voxframe.corpus.store import EXPORTS
from voxframe.corpus.tables import KINDS, PartDamagedError, PartReplacedError
from voxframe.corpus.views import DamageError, Located, View, lazy_frame, run_sql
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError, MissingExtraError, PayloadError, caller
from voxframe.frames import all_to_pandas, joined, suited, to_pandas
from voxframe.frames.corrected import correct_tables, with_original
from voxframe.frames.tables import with_derived
from voxframe.schema import (
    CORPUS_TABLES,
    CORRECTED_TABLES,
    DERIVED,
    REQUESTED_BY,
    SPEAKER_NAME,
    TABLES,
    TEXT_ORIGINAL,
    TRANSCRIPT_TABLES,
)
from voxframe.validators import Integer, checked, listed, name_list, nearest, shown

if TYPE_CHECKING:
    import dask.dataframe as dd
    import polars as pl


_SHOWN = 5  # transcripts named in one warning
#: The warning about an empty list or DataFrame of transcripts.
NONE_GIVEN = "no transcripts were given, so there are no rows: the list or DataFrame is empty; pass at least one"


class TablesByName(dict[str, pd.DataFrame]):
    """DataFrames by name of table, which are also attributes. The error for another name lists the tables."""

    def __missing__(self, name: str) -> pd.DataFrame:
        raise KeyError(self._no_table(name))

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name in self:
            return self[name]
        raise AttributeError(self._no_table(name), name=name, obj=None)  # without obj, Python suggests nothing itself

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        rows = self._summary()
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())

    def _repr_html_(self) -> str:
        return html_table(self._summary())

    def _no_table(self, name: str) -> str:
        return f"there is no table {name!r}{nearest(name, [*self])}; the tables are {listed(self)}"

    def _summary(self) -> dict[str, str]:
        """Return the recordings, the options that they were transcribed with, and the number of rows of each table."""
        about = self.get("transcripts", pd.DataFrame())
        names = [*map(str, about["recording"])] if "recording" in about else []
        options = {option for of_table in REQUESTED_BY.values() for option in of_table}
        requested = [name for name in about if name in options and _is_set(about[name]).any()]
        rows = {name: len(table) for name, table in self.items()}
        return {
            "recordings" if len(names) > 1 else "recording": _some(names),
            "made with": ", ".join(requested) or "no analyses",
            **{name: quantity(count, "row") for name, count in rows.items() if count},
            "without rows": ", ".join(name for name, count in rows.items() if not count),
        }


def _is_set(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return True for each transcript that was made with an option."""
    return values.notna() & ~values.isin([False, "[]"])


def columns_about(name: str) -> list[str]:
    """Return the columns of `transcripts` that tell why a table has no rows."""
    text = ["text"] if name == "words" else []
    return ["transcript_id", "status", "error", "audio_url", *text, *REQUESTED_BY.get(name, ())]


def why_empty(name: str, about: pa.Table, *, of_all: bool = True) -> str | None:
    """Return why a table has no rows, and what to do about it. None if nothing is missing."""
    if name == "transcripts":
        return None
    rows = about.select(columns_about(name)).to_pylist()
    if failed := [row for row in rows if row["error"] or row["status"] not in (None, "completed")]:
        return unfinished(name, [_why_failed(row) for row in failed])
    if name == "words" and (untimed := [_named(row["transcript_id"]) for row in rows if row["text"]]):
        return (
            f"no words in transcripts with a text but no list of words: {_some(untimed)}; "
            "voxframe.load_transcripts has the text"
        )
    options = REQUESTED_BY.get(name, ())
    asked = any(pc.any(about[option], min_count=0).as_py() for option in options if about[option].type == pa.bool_())
    not_flags = [option for option in options if about[option].type != pa.bool_()]
    if not of_all or not options or not rows or asked or any(about[o].null_count < len(rows) for o in not_flags):
        return None
    setting = options[0] if options[0] in not_flags else f"{options[0]}=True"
    other = {"speaker_labels": "find them by voice with corpus.speakers.detect", "custom_topics": ""}.get(
        options[0], f"add it with corpus.analyze({setting})"
    )
    reason = f"no {name}: the transcripts were made without {options[0]}"
    if pc.all(pc.is_null(about["audio_url"])).as_py():  # imported, so there is nothing that a service could transcribe
        return reason + (other and f"; {other}")
    return f"{reason}; transcribe them with {setting}" + (other and f", or {other}")


def unfinished(name: str, without: Sequence[str]) -> str:
    """Return the message about transcripts without rows because they are not completed."""
    return (
        f"no {name} in transcripts that are not completed: {_some(without)}; voxframe.load_transcripts has status and "
        "error"
    )


def _some(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _named(transcript_id: str | None) -> str:
    return "one without an id" if transcript_id is None else repr(transcript_id)


def _why_failed(row: Mapping[str, Any]) -> str:
    """Return the name of a transcript and its status; without one, the error that the service sent."""
    why = row["status"] or f"the service answered {shown(row['error'])}"
    return f"{_named(row['transcript_id'])} ({why})"


T = TypeVar("T")
_Read = TypeVar("_Read", bound=Callable[..., Any])

_PERSON = conditions.PERSON.name
_TRIES = 20  # reads of transcripts that other processes keep deleting
_AT_A_TIME = 64  # transcripts in memory if rows are chosen by a column that is not stored, or the first rows are read
#: Rows of a Dask partition: about 65 MB of words, and so few transcripts that their files are looked up one by one.
_ROWS = 500_000
_IN_CATEGORIES = 32  # transcripts in memory without categories
#: Columns from which names of speakers are derived.
_NAMING = ("transcript_id", "speaker", "channel", "utterance_idx", "start_ms")


def _repeated(read: _Read) -> _Read:
    """Repeat a read if files are replaced, or if one of all transcripts is deleted. `read` takes a table and ids."""

    @wraps(read)
    def repeated(self: Query, name: str, ids: Any = None, *args: Any, **options: Any) -> Any:
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._archive.catalog.session():
                    return read(self, name, ids, *args, **options)
            except MissingTranscriptError:
                if ids is not None or not tries_left:
                    raise
            except PartReplacedError:
                continue
        raise changing(self._archive.path)

    return cast("_Read", repeated)


class Query:
    """Reads tables over many transcripts. The callers warn if there is no corpus, once per call."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    @in_session
    def tables(self, transcript_id: str, *, corrected: bool = True) -> dict[str, pd.DataFrame]:
        """Return every table of one transcript by name."""
        transcript_id = self._archive.recordings.id(transcript_id)
        names = [*TRANSCRIPT_TABLES, *EXPORTS]
        by_name = all_to_pandas(self.arrow_tables(transcript_id, names, corrected=corrected))
        return TablesByName(by_name)

    @in_session
    def arrow_tables(
        self, transcript_id: str, names: Collection[str], *, corrected: bool = True
    ) -> dict[str, pa.Table]:
        """Return tables of one transcript with names of speakers. Exports that cannot be read are left out."""
        stored = [name for name in names if name not in EXPORTS]
        tables = self._archive.tables(transcript_id, stored) if stored else {}
        edited = KINDS["edited"] if corrected and self._archive.edits.hashes([transcript_id]) else ()
        for name in names:
            if name not in (*EXPORTS, *edited):
                continue
            try:
                table, located = self._archive.read(name, [transcript_id], corrected=corrected)
                for _, error in located.bad:
                    raise error
                tables[name] = table
            except (PayloadError, DamagedFileError) as error:
                if name not in EXPORTS:
                    raise
                warnings.warn(
                    f"the {name} of {transcript_id!r} cannot be read and are left out: {error}",
                    CorpusWarning,
                    stacklevel=caller(),
                )
        completed = {name: self.complete(name, tables[name]) for name in names if name in tables}
        return {name: table.select(CORPUS_TABLES[name].names) for name, table in completed.items()}

    def finished(
        self, transcript_id: str, tables: Mapping[str, pa.Table], *, corrected: bool = True
    ) -> dict[str, pa.Table]:
        """Return tables of one transcript with corrections and the columns that a corpus adds."""
        completed = dict(tables)
        if corrected and (edits := self._archive.edits.active(transcript_id)):
            corrected_tables = {
                name: table for name, table in completed.items() if name in (*CORRECTED_TABLES, "sentiments")
            }
            completed |= correct_tables(corrected_tables, edits).tables
        return {name: self.complete(name, table) for name, table in completed.items()}

    def complete(self, name: str, table: pa.Table) -> pa.Table:
        """Return a stored or corrected table with the columns that a corpus adds when it is read."""
        table = with_original(table, name)
        if name in EXPORTS:
            table = with_derived(table, derived=False)
            if DERIVED.name in table.column_names:
                place, values = table.column_names.index(DERIVED.name), pc.fill_null(table[DERIVED.name], False)
                table = table.set_column(place, DERIVED.name, values)
        return self._archive.recordings.add_to(add_names(self._archive, table), name)

    @_repeated
    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
        limit: int | None = None,
        category: bool = False,
        *,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return one table over many transcripts."""
        limit = None if limit is None else checked("limit", limit, Integer(0))
        where = conditions.with_ids(where, self._archive.recordings.id)
        names = None if columns is None else name_list(columns)
        about_columns, person = without_person(metadata)
        if person := person or _PERSON in (names or ()):
            if name in TABLES and "speaker" not in TABLES[name].names:
                raise CorpusError(f"the table {name!r} has no speakers, so it has no column {_PERSON!r}")
            columns = None if names is None else list(dict.fromkeys([*names, _PERSON]))
        else:
            columns = names

        def read(batch: Sequence[str], columns: Sequence[str] | None, where: Where | None) -> pd.DataFrame:
            return self._frame(
                name, batch, columns, where, limit, category, asked=ids is not None, corrected=corrected, person=person
            )

        selected = self._select(name, ids)
        if not is_named(name, columns, where, about_columns):
            return read(selected, columns, where)
        about = metadata_table(self._archive, selected)
        frame = with_metadata(read, name, about, columns=columns, where=where, metadata=about_columns)
        if person and _PERSON not in (names or ()):  # the last column
            frame.insert(frame.shape[1] - 1, _PERSON, frame.pop(_PERSON))
        return frame

    def report_no_rows(self, name: str, ids: str | Iterable[str] | None) -> None:
        """Warn about the reason if a table has no rows at all; see `report_empty`."""
        if self.table(name, ids, ["transcript_id"], limit=1).empty:  # `rows` would make all sentences from the words
            self.report_empty(name, ids)

    def report_empty(self, name: str, ids: str | Iterable[str] | None) -> None:
        """Warn about the reason if a table without rows has one: failed transcripts, or an option that was not set."""
        if not self._archive.path.is_dir():  # reported already
            return
        selected = self._archive.ids() if ids is None else self._archive.recordings.ids(ids)
        about = self.arrow("transcripts", selected, columns_about(name))
        reason = why_empty(name, about)
        if not selected and ids is not None:
            reason = NONE_GIVEN
        elif not selected:
            reason = "the corpus has no transcripts yet; Corpus.sync fetches those that were submitted"
        if reason is not None:
            warnings.warn(reason, CorpusWarning, stacklevel=caller())

    def _frame(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None,
        where: Where | None,
        limit: int | None,
        category: bool,
        **options: bool,
    ) -> pd.DataFrame:
        if category and limit is None and len(ids) > _IN_CATEGORIES:
            with_id = None if columns is None else list(dict.fromkeys([*columns, "transcript_id"]))
            parts = (
                self.arrow(name, batch, with_id, where, **options)
                for batch in self._archive.batches(name, ids, _IN_CATEGORIES)
            )
            frame = joined([suited(to_pandas(table, name), category=True) for table in parts], ids)
            return frame if columns is None else frame[list(columns)]
        if limit is None or len(ids) <= _AT_A_TIME:
            table = self.arrow(name, ids, columns, where, **options)
        else:  # the first rows are often in the first transcripts
            table = self.arrow(name, ids[:0], columns, where, **options)
            at, size = 0, _AT_A_TIME
            while at < len(ids) and table.num_rows < limit:
                batch = ids[at : at + size]
                table = pa.concat_tables([table, self.arrow(name, batch, columns, where, **options)])
                at, size = at + size, 2 * size
        return to_pandas(table.slice(0, limit), name)

    @in_session
    def arrow(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        asked: bool = False,
        corrected: bool = True,
        person: bool = False,
    ) -> pa.Table:
        """Return rows of one table in the order of `ids`, with corrections and the columns that a corpus adds."""
        condition = conditions.checked(name, where, person=True)
        if (names := conditions.checked_columns(name, columns, person=True)) is None:
            names = [*CORPUS_TABLES[name].names, *([_PERSON] if person else [])]
        if (allowed := conditions.ids_of(where)) is not None:
            ids = [transcript_id for transcript_id in ids if transcript_id in allowed]
        added = {*CORPUS_TABLES[name].names, _PERSON}.difference(TABLES[name].names)
        text = str(condition)
        of_condition = {column for column in {*TABLES[name].names, *added} if column in text}
        needed = {*names, *of_condition}
        needed |= {*_NAMING} if needed & {SPEAKER_NAME.name, _PERSON} else set()
        needed |= {"text"} if TEXT_ORIGINAL.name in needed else set()
        needed |= {"word_count"} if name in EXPORTS and needed & added else set()
        needed |= {"transcript_id"} if condition is not None or needed & added or not needed else set()
        is_whole = {*TABLES[name].names} <= needed

        def complete(rows: pa.Table) -> pa.Table:
            rows = self.complete(name, rows) if needed & added else rows
            is_asked = _PERSON in needed and "speaker" in rows.column_names
            return add_people(self._archive, rows) if is_asked else rows

        def choose(rows: pa.Table) -> pa.Table:
            return (complete(rows) if of_condition & added else rows).filter(condition)

        stored = None if is_whole else [column for column in TABLES[name].names if column in needed]
        choice = None if condition is None else choose
        table, located = self._archive.read(name, ids, stored, choice, corrected=corrected)
        _report(located, len(ids), asked=asked)
        return (table if of_condition & added else complete(table)).select(names)

    def readable(self, name: str) -> list[str]:
        """Return the transcripts with this table that can be read. A warning names the others."""
        ids = self._archive.select(name, None)
        located = self._archive.locate(name, ids, corrected=None)
        _report(located, len(ids), asked=False)
        bad = {transcript_id for transcript_id, _ in located.bad}
        if name in EXPORTS:  # those of the other transcripts are made from their words
            return [transcript_id for transcript_id in self.readable("words") if transcript_id not in bad]
        return [transcript_id for transcript_id in ids if transcript_id not in bad]

    def batches(self, name: str, ids: str | Iterable[str] | None, size: int) -> Iterator[list[str]]:
        """Yield the ids of transcripts with a table, `size` at a time, in the order of the files."""
        return self._archive.batches(name, self._select(name, ids), checked("size", size, Integer(1)))

    def without_deleted(
        self, read: Callable[[list[str]], T], batches: Iterable[list[str]], *, asked: bool
    ) -> Iterator[T]:
        """Yield what is read for each batch of transcripts, without those that are deleted meanwhile unless `asked`."""
        for batch in batches:
            while batch:
                try:
                    rows = read(batch)
                except MissingTranscriptError:
                    if asked:
                        raise
                    batch = [transcript_id for transcript_id in batch if self._archive.has(transcript_id)]
                else:
                    yield rows
                    break

    @_repeated
    def rows(self, name: str, ids: str | Iterable[str] | None = None) -> dict[str, tuple[int, str | None]]:
        """Return the number of rows and the source of each transcript that has rows, in the order of the files."""
        ids = None if ids is None else identifiers(ids)  # an iterator is read once
        here = self._select(name, ids)
        located = self._archive.locate(name, here)
        _report(located, len(here), asked=ids is not None)
        rows = located.rows(self._archive.files, name)
        counts = {i: (count, located.source(i)) for i, count in rows.items() if count}
        if not counts:
            self.report_empty(name, ids)
        return counts

    def source(self, name: str, transcript_id: str) -> str | None:
        """Return a hash of the payloads that the rows of a transcript are made from; None if it was deleted."""
        return self._archive.locate(name, [transcript_id]).source(transcript_id)

    def scan(self, name: str, ids: str | Iterable[str] | None = None) -> ds.Dataset:
        """Return one table over many transcripts, as stored, as a pyarrow dataset."""
        ids = None if ids is None else identifiers(ids)  # an iterator is read once
        if ids is None:
            self._report_exports(name)
        rows = self._rows(name, ids)
        if name not in EXPORTS and not rows:
            self.report_empty(name, ids)
        if len(rows) == 1:
            return rows[0]
        return ds.dataset(pa.concat_tables([TABLES[name].empty, *(of_files.to_table() for of_files in rows)]))

    def to_polars(self, name: str, ids: str | Iterable[str] | None = None) -> pl.LazyFrame:
        """Return one table over many transcripts as a Polars LazyFrame."""
        return lazy_frame(name, self._view(name, None if ids is None else identifiers(ids)))

    @in_session
    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] | None,
        further: Mapping[str, Callable[[], object]],
        external: bool,
        timeout_s: float | None,
    ) -> pd.DataFrame:
        """Run a DuckDB query; `further` are functions that return further tables, by name."""
        tables = [*TRANSCRIPT_TABLES, *EXPORTS]
        # Every table has `recording`; twice, it would be ambiguous after a join.
        further = {"metadata": lambda: metadata_table(self._archive).drop_columns("recording"), **further}
        for _ in range(_TRIES):  # files are replaced meanwhile
            try:
                rows = run_sql(query, parameters, tables, self._view, further, external=external, timeout_s=timeout_s)
            except DamageError:
                self._archive.files.check_again()
            else:
                frame: pd.DataFrame = rows.to_pandas(types_mapper=DTYPES.get)
                return frame
        raise changing(self._archive.path)

    @_repeated
    def _rows(self, name: str, ids: str | Iterable[str] | None, *, corrected: bool | None = None) -> list[ds.Dataset]:
        """Return the rows of transcripts as datasets; None for `corrected`: as stored."""
        if ids is not None:
            ids = self._archive.recordings.ids(ids)
        selected = self._select(name, ids) if corrected else self._archive.select(name, ids)
        located = self._archive.locate(name, selected, corrected=corrected)
        _report(located, len(selected), asked=ids is not None)
        try:
            return located.datasets(self._archive.files, name)
        except PartDamagedError as damage:
            self._archive.discard(damage)
            raise PartReplacedError from None

    @_repeated
    def _view(self, name: str, ids: str | Iterable[str] | None = None) -> View:
        """Return the current rows of a table, and what is joined to them. Warn of the reason if it is empty."""
        selected = self._select(name, ids)
        rows = self._rows(name, ids, corrected=True)
        if not rows:
            self.report_empty(name, ids)
        recordings = self._archive.recordings.table(selected)
        if SPEAKER_NAME not in CORPUS_TABLES[name].columns:
            return View(rows, recordings, None)
        key, names = list(TABLES[name].key), valid_names(self._archive)
        named = self.arrow(name, [i for i in selected if i in names], [*key, "speaker", SPEAKER_NAME.name])
        differs = pc.fill_null(pc.not_equal(named["speaker"], named[SPEAKER_NAME.name]), True)
        return View(rows, recordings, named.filter(differs).select([*key, SPEAKER_NAME.name]))

    def _select(self, name: str, ids: str | Iterable[str] | None) -> list[str]:
        if name in EXPORTS and ids is None:
            return self._archive.ids()
        return self._archive.select(name, None if ids is None else self._archive.recordings.ids(ids))

    def _report_exports(self, name: str) -> None:
        """Warn about completed transcripts without sentences or paragraphs, which a service sends on request."""
        if name not in EXPORTS:
            return
        members, here = self._archive.files.members("transcript"), {*self._archive.select(name, None)}
        without = [
            i for i in self._archive.ids() if i not in here and (i not in members or members[i].status == "completed")
        ]
        if without:
            warnings.warn(
                f"{len(without)} of {len(without) + len(here)} transcripts have no {name}, such as {without[0]!r}: the "
                f"service sends them on request. voxframe.load_{name}(corpus.ids(), client=client, corpus=corpus) "
                "fetches them",
                CorpusWarning,
                stacklevel=caller(),
            )


def _report(located: Located, total: int, *, asked: bool) -> None:
    """Warn about transcripts that cannot be read, or raise the error of the first if none can be."""
    bad = located.bad
    if bad and asked and not located.members and not located.loose:
        transcript_id, error = bad[0]
        raise type(error)(f"{transcript_id!r}: {error}")
    if bad:
        listed = "; ".join(f"{transcript_id!r}: {error}" for transcript_id, error in bad[:_SHOWN])
        tail = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        warnings.warn(
            f"{len(bad)} of {total} transcripts cannot be read and are left out: {listed}{tail}",
            CorpusWarning,
            stacklevel=caller(),
        )


def dask_frame(
    name: str, rows: dict[str, tuple[int, str | None]], path: Path, metadata: Wanted = False
) -> dd.DataFrame:
    """Return one table as a Dask DataFrame; see `Corpus.to_dask`."""
    try:
        import dask
        import dask.dataframe as dd
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "Corpus.to_dask") from None
    about = wanted_names(metadata)
    groups: list[list[str]] = [[]]
    sizes = [0]
    for transcript_id, (count, _) in rows.items():
        if sizes[-1] and sizes[-1] + count > _ROWS:
            groups.append([])
            sizes.append(0)
        groups[-1].append(transcript_id)
        sizes[-1] += count
    starts = [0, *accumulate(sizes)]
    with dask.config.set({"dataframe.convert-string": False}):  # it would replace the dtypes of the dictionary
        frame: dd.DataFrame = dd.from_map(
            _partition,
            groups,
            sizes,
            starts[:-1],
            [[rows[transcript_id][1] for transcript_id in group] for group in groups],
            path=path,
            name=name,
            metadata=about,
            frame=secrets.token_hex(8),  # Dask takes equal arguments for equal results, and the corpus may have changed
            meta=_query(path).table(name, groups[0][:1], metadata=about).iloc[:0],
            divisions=(*starts[:-1], max(0, starts[-1] - 1)),
            label=name,
        )
    return frame


def _partition(
    ids: Sequence[str],
    rows: int,
    first: int,
    sources: Sequence[str | None],
    *,
    path: Path,
    name: str,
    metadata: Wanted,
    frame: str,  # noqa: ARG001  tells frames apart
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the rows of some transcripts. This runs in a worker."""
    query = _query(path)
    table = query.table(name, ids, columns, metadata=metadata if columns is None else False)
    if len(table) != rows or [query.source(name, transcript_id) for transcript_id in ids] != [*sources]:
        raise CorpusError(f"transcripts of {path} were replaced since Corpus.to_dask was called; call it again")
    table.index = pd.RangeIndex(first, first + rows)
    return table


@lru_cache(maxsize=8)
def _query(path: Path) -> Query:
    """Return the reader of a corpus, one per process: it keeps the manifests that it has read."""
    return Query(Archive(path))
