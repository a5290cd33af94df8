"""Export of a corpus to files, batch by batch, and publication of what changed as Delta tables."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._files import file_stems
from voxframe._text import masked, quantity
from voxframe.client.response import as_path
from voxframe.corpus.archive import Archive, changing, view_of
from voxframe.corpus.conditions import PERSON, Wanted, wanted_names, without_person
from voxframe.corpus.edits import Corrections
from voxframe.corpus.job import Job
from voxframe.corpus.ledger import EMBEDDED, Ledger
from voxframe.corpus.metadata import apart, chosen, join, metadata_table
from voxframe.corpus.people import all_people
from voxframe.corpus.query import Query
from voxframe.corpus.speakers import Speakers
from voxframe.corpus.store import View
from voxframe.errors import CorpusWarning, ExportError, OptionError, caller
from voxframe.export.annotation_edits import read_edits
from voxframe.export.delta import DeltaTarget, clear_delta_errors
from voxframe.export.pii_masking import check_detected, masked_tables, personal_types
from voxframe.export.table_writer import TableWriter
from voxframe.export.targets import check_target, file, folder, is_remote
from voxframe.export.writers import (
    CARD_COLUMNS,
    DataCard,
    check_options,
    check_partitions,
    finished,
    format_of,
    is_single,
    name_of,
    write,
    write_card,
    write_single,
    write_transcripts,
)
from voxframe.formats import TABLE_FORMATS
from voxframe.formats.writing import ExportResult, Losses, with_turns
from voxframe.schema import CORPUS_TABLES, RECORDING_COLUMNS, TRANSCRIPT_TABLES
from voxframe.validators import Boolean, checked, name_list, shown

_AT_A_TIME = 64  # transcripts in memory
_IN_CARD = 4096  # transcripts of which the options are read at once
_TRIES = 5  # reads of transcripts that change before all their tables are read
_SHOWN = 5  # changes named in one warning
_MAX_RECORDING = 2**31 - 1  # bytes of a value in Arrow's binary type


class Exporter:
    """Writes the transcripts of a corpus to files."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._query = archive, Query(archive)

    def export(
        self,
        target: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002  the name in pandas
        *,
        tables: str | Sequence[str] | None = None,
        ids: str | Iterable[str] | None = None,
        partition_by: str | Sequence[str] = (),
        metadata: Wanted = False,
        pii: Literal["mask", "drop"] | None = None,
        pii_types: Collection[str] | None = None,
        escape_formulas: bool = False,
        license: str | None = None,  # noqa: A002  the key of dataset cards
        audio: bool | Mapping[str, str | os.PathLike[str]] = False,
        overwrite: bool = False,
        corrected: bool = True,
    ) -> ExportResult:
        """Write the corpus, or a part of it, to files that other tools read.

        A dataset (parquet, csv, jsonl, huggingface) is a directory with one file or folder per table.
        `datasets.load_dataset(target, "words")` loads the table `words` of the format huggingface. Captions,
        annotations and texts (srt, vtt, textgrid, eaf, rttm, ctm, stm, audacity, labelstudio, txt, md, tsv, and docx
        with the extra `docx`) are a directory with one file per transcript, named by its recording. Transcripts without
        words are left out. A target with the file extension of a format (`calls.rttm`) is one file. The target
        appears only after everything is written. All tables have the same version of a transcript, even if it is
        replaced meanwhile.

        Every directory has a data card (README.md; README.txt among Markdown files) and the hashes of all files
        (SHA256SUMS), and with tables their columns in the Croissant format (croissant.json). In parquet these names
        begin with `_`, so that pandas reads the folder. The card states
        source, dates, options, models, redaction, licence, counts and schema version. One Parquet file has its card in
        its metadata, under the key `voxframe.data_card`; other single files have none.

        Values are written exactly. If the format cannot represent a value, the result and a warning report how many.

        Args:
            target: Path, or a URL that fsspec supports (`s3://bucket/calls`; extra `remote`). The files for a URL are
                written to a temporary directory first.
            format: One of `voxframe.export.FORMATS`. None (default): the format that the file extension of the target
                names (`calls.rttm`, `words.csv`), or parquet.
            tables: Tables of a dataset. None (default): all except `sentences` and `paragraphs`, which repeat the
                words of `words` and have to be named.
            ids: Only these transcripts. None (default): all transcripts.
            partition_by: Columns with values that become folders (`speaker=A/`); parquet only. Every table can be
                divided by `recording`, `source` and metadata, and tables with speakers by "person". A table that lacks
                one of the columns is not divided by it; if all lack it, that is an error. Rows without a value, or with
                an empty text, are in `__HIVE_DEFAULT_PARTITION__`. DuckDB, Polars, Spark and
                `pyarrow.dataset.dataset(path, partitioning="hive")`, which pandas can read from, return null for them.
            metadata: Metadata columns to add to every table of a dataset: a name, a list of names, or True for all.
                `pii` does not change them. A column `split` makes the splits of the format huggingface, also if it is
                not named. "person" is added to tables with speakers, also for `partition_by`.
            pii: Treatment of personal data found by entity detection. "mask" writes `[PERSON_NAME]` and similar labels,
                each as one word in tables and formats of words; "drop" leaves the words out; see
                `voxframe.export.mask`. None (default): write everything.
            pii_types: Entity types that count as personal. None (default): those of `voxframe.options.PII_POLICIES`.
            escape_formulas: Put an apostrophe before texts that a spreadsheet would run as a formula; CSV only. See
                `voxframe.export.write`.
            license: Licence of the data, for the data card, such as "cc-by-4.0".
            audio: Add the column `audio` to `transcripts` with the submitted files that still exist; huggingface only.
                `datasets` reads it as `Audio`. Also paths by transcript id or recording.
            overwrite: Replace an existing file, or an existing directory in which voxframe wrote every file and none
                was edited since.
            corrected: False writes the text, words and turns as the service sent them.

        Returns:
            The files that were written, and how many values the format could not represent.

        Raises:
            OptionError: An argument is invalid, the target overlaps the directory of the corpus, or `pii` is set and a
                transcript was made without entity detection. Nothing was written.
            CorpusError: A transcript or table is not in the corpus, or transcripts keep changing.
            ExportError: The target exists, has a file that voxframe did not write or that was edited since, or cannot
                be written.

        Warns:
            ExportWarning: The format cannot represent a value.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = b'[{"text": "Hi", "start": 0, "end": 90, "speaker": "A"}]'
            >>> corpus.raw.put("a1", b'{"id": "a1", "words": %s}' % words)
            >>> corpus.export(f"{tempfile.mkdtemp()}/captions", "vtt").files
            ['a1.vtt']
        """
        self._archive.report_missing()
        columns, (about_columns, by_person) = name_list(partition_by), without_person(metadata)
        kind = format_of(target, format)
        check_options(kind, columns, escape_formulas=escape_formulas)
        _check_outside(target, self._archive.path)
        selected = self._archive.ids() if ids is None else self._archive.recordings.ids(ids)
        single = is_single(target, kind, columns)
        if kind not in TABLE_FORMATS:
            if tables is not None:
                raise OptionError(f"tables= is for {', '.join(TABLE_FORMATS)}; {kind} contains only words")
            if about_columns or by_person:
                raise OptionError(f"metadata= is for {', '.join(TABLE_FORMATS)}; {kind} cannot contain it")
            names = ["words", "utterances"]
        else:
            names = table_names(tables)
        paths = audio.values() if isinstance(audio, Mapping) else ()
        if not isinstance(audio, bool | Mapping) or not all(isinstance(path, str | os.PathLike) for path in paths):
            raise OptionError(f"audio must be True, False or a dict of paths by transcript id, got {shown(audio)}")
        if audio and (kind != "huggingface" or pii or "transcripts" not in names):
            raise OptionError(
                "audio= needs the format huggingface with the table transcripts, and excludes pii=, because recordings "
                "have all that was said"
            )
        checked("overwrite", overwrite, Boolean())
        types = self._personal(selected, pii, pii_types)
        added = [name for name in columns if name != PERSON.name] + ["split"] * (kind == "huggingface")
        about = self._about(selected, added, about_columns)
        by_person = by_person or PERSON.name in columns
        if kind in TABLE_FORMATS:
            by_table = {"metadata": about[0].column_names} if about else {}
            check_partitions(columns, by_table | {n: _columns_of(n, about, by_person=by_person) for n in names})
        parts = self._parts(
            selected, names, about, pii, types, by_person=by_person, corrected=corrected, asked=ids is not None
        )
        jobs = _jobs(self._archive.ledger, selected)
        card = _started_card(self._archive.path, jobs, license)
        card.source += "; corrections are applied" if corrected else "; the text of the service, without corrections"
        card.redaction = _redaction(pii, None if pii_types is None else types)
        losses: Losses = Counter()
        omitted: Losses = Counter()
        if single:
            if kind in TABLE_FORMATS and len(names) > 1:
                raise OptionError(
                    f"{os.fspath(target)!r} is one file, which can contain only one table; select it with tables=, "
                    "or pass a directory"
                )
            tables_of_parts = [[part[name] for name in names] for part in self._counted(parts, card)]
            table, *turns = (pd.concat(frames, ignore_index=True) for frames in zip(*tables_of_parts, strict=True))
            if kind not in TABLE_FORMATS:
                return write({"words": table, "utterances": turns[0]}, target, kind, overwrite=overwrite)
            with file(target, overwrite=overwrite) as out:
                write_single(table, out, target, kind, losses, card, names[0], escape_formulas=escape_formulas)
            return finished([os.fspath(target)], target, losses, omitted)
        with folder(target, overwrite=overwrite) as into:
            if kind not in TABLE_FORMATS:
                stems = file_stems(self._archive.recordings.names(selected))
                for part in self._counted(parts, card):
                    rows = with_turns(part["words"], part["utterances"])
                    write_transcripts(rows, into, kind, losses, omitted, stems)
                written = [*into.files]
                card.write(into, name_of(target), kind, {})
            else:
                if isinstance(audio, Mapping):
                    audio = {self._archive.recordings.id(name): path for name, path in audio.items()}
                recordings = _recordings(jobs, audio)
                writers = {
                    name: TableWriter(
                        into,
                        name,
                        kind,
                        losses,
                        columns,
                        escape_formulas=escape_formulas,
                        audio=recordings if name == "transcripts" else None,
                    )
                    for name in names
                }
                with ExitStack() as open_files:
                    for writer in writers.values():
                        open_files.enter_context(writer)
                    for part in self._counted(parts, card):
                        for name, writer in writers.items():
                            writer.add(part[name])
                write_card(card, into, target, writers, kind)
                written = into.files
        return finished(written, target, losses, omitted)

    def _personal(
        self, ids: list[str], pii: Literal["mask", "drop"] | None, types: Collection[str] | None
    ) -> list[str]:
        """Return the types of entities to mask or drop; none if `pii` is None."""
        if pii is None:
            if types is not None:
                raise OptionError('pii_types needs pii="mask" or pii="drop"; without it, nothing is masked')
            return []
        if pii not in ("mask", "drop"):
            raise OptionError(f"pii must be 'mask', 'drop' or None, got {shown(pii)}")
        about = self._query.table("transcripts", ids, ["transcript_id", "status", "entity_detection", "redact_pii"])
        check_detected(about)  # of all transcripts, before a batch of them is written
        return personal_types(types, lambda: self._query.table("entities", ids, ["entity_type"])["entity_type"])

    @staticmethod
    def _counted(parts: Iterable[dict[str, pd.DataFrame]], card: DataCard) -> Iterator[dict[str, pd.DataFrame]]:
        """Yield the parts, after adding their transcripts to a data card."""
        for part in parts:
            card.add(part["transcripts"])
            yield part

    def _about(self, ids: list[str], added: list[str], metadata: Wanted) -> tuple[pa.Table, list[str]] | None:
        """Return the metadata of all transcripts, and the names of the requested columns and of those added if any."""
        if not (metadata or added):
            return None
        about = metadata_table(self._archive, ids)
        return about, _columns(about, metadata, added)

    def _parts(
        self,
        ids: list[str],
        names: list[str],
        about: tuple[pa.Table, list[str]] | None,
        pii: Literal["mask", "drop"] | None,
        types: Collection[str],
        *,
        by_person: bool,
        corrected: bool,
        asked: bool,
    ) -> Iterator[dict[str, pd.DataFrame]]:
        """Yield the tables of a batch of transcripts at a time, or empty tables once if there are none."""
        needed = dict.fromkeys([*names, "transcripts", *(() if pii is None else ("entities", "words"))])

        def read(batch: list[str]) -> dict[str, pd.DataFrame]:
            part = {}
            for name in needed:
                person = PERSON.name if by_person and "speaker" in CORPUS_TABLES[name].names else False
                columns = None if name in names or pii else CARD_COLUMNS
                part[name] = self._query.table(name, batch, columns, metadata=person, corrected=corrected)
            if about is not None:
                part |= {name: join(part[name], apart(about[0], CORPUS_TABLES[name].names), about[1]) for name in names}
            return part if pii is None else masked_tables(part, pii, types)

        def read_steadily(batch: list[str]) -> dict[str, pd.DataFrame]:
            views = dict.fromkeys(_views(needed), batch)
            people = partial(all_people, self._archive) if by_person else dict
            return self._archive.unchanged(views, lambda: read(batch), people)

        batches = (ids[at : at + _AT_A_TIME] for at in range(0, len(ids), _AT_A_TIME))
        is_empty = True
        for part in self._query.without_deleted(read_steadily, batches, asked=asked):
            is_empty = False
            yield part
        if is_empty:
            yield read([])


def _views(tables: Iterable[str]) -> list[View]:
    """Return the kinds of responses that tables are made from, and always the transcript."""
    return ["transcript", *dict.fromkeys(view for name in tables if (view := view_of(name)) != "transcript")]


def _jobs(ledger: Ledger, ids: Collection[str]) -> list[Job]:
    selected = {*ids}
    return [job for job in ledger.jobs() if job.transcript_id in selected]


def _started_card(corpus: Path, jobs: Sequence[Job], license: str | None) -> DataCard:  # noqa: A002
    """Return a data card with the source of transcripts and the dates of their jobs."""
    job_services = {job.service for job in jobs if job.service}
    services = sorted({"the embedded service" if name == EMBEDDED else masked(name) for name in job_services})
    source = f'the corpus "{corpus.name}"' + (f"; transcribed by {', '.join(services)}" * bool(services))
    times = sorted(job.created for job in jobs if job.created is not None)
    return DataCard(source, license, dates=(times[0], times[-1]) if times else None)


def _redaction(pii: str | None, types: Collection[str] | None) -> str:
    if pii is None:
        return "written as it is"
    kinds = f" of the types {', '.join(types)}" if types else ""
    done = "replaced by labels" if pii == "mask" else "left out"
    return f"what entity detection found{kinds} was {done}"


def _recordings(
    jobs: Sequence[Job], audio: bool | Mapping[str, str | os.PathLike[str]]
) -> Callable[[str], tuple[str, bytes] | None] | None:
    """Return a function that reads the recording of a transcript: from a given path, or from the submitted file."""
    if not audio:
        return None
    paths = audio if isinstance(audio, Mapping) else {job.transcript_id: job.source for job in jobs}

    def read(transcript_id: str) -> tuple[str, bytes] | None:
        path = as_path(paths[transcript_id]) if transcript_id in paths else None
        is_held = path is not None and path.is_file() and path.stat().st_size < _MAX_RECORDING
        return (path.name, path.read_bytes()) if path is not None and is_held else None

    return read


def _columns_of(name: str, about: tuple[pa.Table, list[str]] | None, *, by_person: bool) -> list[str]:
    """Return the columns of an exported table."""
    columns = CORPUS_TABLES[name].names if name in CORPUS_TABLES else []
    return [*columns, *(about[1] if about else ()), *([PERSON.name] if by_person and "speaker" in columns else ())]


def _columns(about: pa.Table, metadata: Wanted, added: Sequence[str]) -> list[str]:
    """Return the names of the requested columns about recordings and of those added if there are any."""
    folders = [name for name in added if name in about.column_names and name != "transcript_id"]
    return list(dict.fromkeys([*chosen(about, metadata), *folders]))


def table_names(tables: str | Sequence[str] | None) -> list[str]:
    """Return the names of the tables to write. None: all that are made from transcripts."""
    names = list(TRANSCRIPT_TABLES) if tables is None else name_list(tables)
    if not names:
        raise OptionError("tables is an empty list; name tables, or leave it out for all of them")
    return names


def apply_edits(
    query: Query, corrections: Corrections, speakers: Speakers, transcript_id: str, file: str | os.PathLike[str]
) -> pd.DataFrame:
    """Apply what was edited in a file; see `Corpus.apply_edits`."""
    words, turns = (query.table(name, [transcript_id]) for name in ("words", "utterances"))
    changes = read_edits(with_turns(words, turns), file)
    applied, refused = [], []
    # Times first: `word_idx` is that of the exported words, and a corrected text can have more or fewer words.
    for change in sorted(changes.itertuples(index=False), key=lambda change: change.action != "time"):
        try:
            applied.append(_applied(change, corrections, speakers, transcript_id))
        except OptionError as error:
            applied.append(False)
            refused.append(str(error))
    changes = changes.sort_values("action", key=lambda action: action != "time", kind="stable")
    changes = changes.assign(applied=applied).sort_index()
    if not all(applied):
        unapplied = changes[~changes["applied"]]
        examples = [f"{row.action} of turn {row.utterance_idx}" for row in unapplied.head(_SHOWN).itertuples()]
        reasons = "; ".join(examples + refused[:1])
        warnings.warn(
            f"{len(unapplied)} of {len(changes)} changes in {os.fspath(file)!r} were not applied: {reasons}",
            CorpusWarning,
            stacklevel=caller(),
        )
    return changes


def _applied(change: Any, corrections: Corrections, speakers: Speakers, transcript_id: str) -> bool:
    """Apply one change, and return False if there is no correction of its kind."""
    if change.action == "time":
        corrections.set_time(transcript_id, int(change.word_idx), int(change.start_ms), int(change.end_ms))
    elif change.action == "text":
        corrections.set(transcript_id, {int(change.utterance_idx): change.text})
    elif change.action == "speaker" and pd.isna(change.word_idx):
        speakers.set(transcript_id, turns={int(change.utterance_idx): change.speaker})
    else:
        return False
    return True


def _check_outside(target: str | os.PathLike[str], corpus: Path) -> None:
    """Refuse a target that is, contains or is inside the corpus: overwriting it would delete paid transcripts."""
    if is_remote(target):
        return
    place, here = Path(target).expanduser().resolve(), corpus.resolve()
    if place == here or place in here.parents or here in place.parents:
        raise OptionError(
            f"{os.fspath(target)!r} is, contains or is inside the directory of the corpus, {str(here)!r}; "
            "choose a target outside it"
        )


@dataclass(frozen=True)
class Publication:
    """Result of `Corpus.publish`.

    Attributes:
        target: Path or URL.
        number: Number of the publication, which `voxframe.export.open_delta` opens.
        written: Number of transcripts that were new or had changed.
        removed: Number of transcripts that are no longer in the corpus.
    """

    target: str
    number: int
    written: int
    removed: int


class Publisher:
    """Writes a corpus as Delta tables."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._query = archive, Query(archive)

    def publish(
        self,
        target: str | os.PathLike[str],
        *,
        tables: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] = (),
        metadata: Wanted = False,
        storage_options: Mapping[str, str] | None = None,
        license: str | None = None,  # noqa: A002  the key of dataset cards
    ) -> Publication:
        """Write the corpus as Delta tables, or bring published ones up to date.

        Only transcripts that are new or have changed are written. A transcript whose payload cannot be read keeps its
        published rows, unless all tables are written again (other tables, or another type of a metadata column). All
        tables change at once for readers that open them with `voxframe.export.open_delta`. Older publications stay
        readable until you vacuum the tables, or for 30 days (`delta.logRetentionDuration`). The call can be interrupted
        and repeated. It needs no rename, so that an object store such as S3 is a safe target. Each publication has a
        data card, as `export` writes it: in README.md on a file system, and in the commit to `_voxframe/publications`
        under the key `voxframe.data_card`.

        Args:
            target: Path, or a URL that deltalake supports (`s3://bucket/calls`). Each table is a folder in it.
            tables: Names of tables. None (default): all except `sentences` and `paragraphs`, which have to be named.
            partition_by: Columns, including metadata, with values that become folders. It cannot be changed later.
            metadata: Metadata columns to add to every table: a name, a list of names, or True for all. New columns are
                added to published tables, where they are null in earlier rows.
            storage_options: Settings of the store, such as keys; see deltalake. None (default): from the environment.
            license: Licence of the data, for the data card, such as "cc-by-4.0".

        Returns:
            The number of the publication, and how many transcripts were written and removed.

        Raises:
            OptionError: An argument is invalid, or the target overlaps the directory of the corpus.
            ExportError: The target cannot be written or has another corpus, or another process publishes to it at the
                same time. Nothing was published.
            MissingExtraError: deltalake is not installed.

        Warns:
            CorpusWarning: Transcripts cannot be read.

        Example:
            >>> corpus.publish("s3://bucket/calls", partition_by="customer")  # doctest: +SKIP
            >>> words = voxframe.export.open_delta("s3://bucket/calls")["words"]  # doctest: +SKIP
        """
        self._archive.report_missing()
        check_target(target)
        _check_outside(target, self._archive.path)
        names = table_names(tables)
        for name in names:
            self._archive.select(name, ())  # an error if there is no such table
        columns, about_columns = name_list(partition_by), wanted_names(metadata)
        delta = DeltaTarget(target, storage_options)
        with clear_delta_errors(target):
            published: dict[str, str] | None = delta.sources()
            before = dict(published or {})
            for attempt in range(_TRIES):
                about = self._about(columns, about_columns, delta)
                schemas = {name: _schema(name, about) for name in names}
                check_partitions(columns, {name: schema.names for name, schema in schemas.items()})
                now, damaged = self._fingerprints(names, about)
                if before and not before.keys() & {*now, *damaged}:
                    reason = "has none of them" if now or damaged else "has no transcripts"
                    raise ExportError(
                        f"{os.fspath(target)} has {quantity(len(before), 'transcript')}, and the corpus "
                        f"{self._archive.path} {reason}, so that all of them would be removed; delete the target "
                        "first, or publish to another one"
                    )
                if not attempt and not all(delta.is_continued_by(n, s, columns) for n, s in schemas.items()):
                    published = None  # the first publication, another choice of tables, or a column with a new type
                retained = {i: published[i] for i in damaged if published is not None and i in published}
                now |= retained
                if retained and not attempt:
                    _report_kept(list(retained))
                if attempt and now == published:
                    break
                if now == published and delta.publication is not None and {*names} == delta.tables:
                    return Publication(os.fspath(target), delta.publication, 0, 0)
                replaced = None if published is None else {i for i in published if now.get(i) != published[i]}
                written = [i for i in now if published is None or now[i] != published.get(i)]
                for name, schema in schemas.items():
                    rows = pa.RecordBatchReader.from_batches(schema, self._batches(name, written, schema, about))
                    delta.write(name, rows, replaced=replaced, written=written, partition_by=columns)
                delta.write_sources({i: now[i] for i in written}, replaced=replaced)
                published = now
            else:
                raise changing(self._archive.path)
            number = delta.publish(names, self._card([i for i in now if i not in retained], len(retained), license))
        changed = sum(1 for i, fingerprint in now.items() if before.get(i) != fingerprint)
        return Publication(os.fspath(target), number, changed, len(before.keys() - now.keys()))

    def _card(self, ids: Sequence[str], retained: int, license: str | None) -> DataCard:  # noqa: A002
        card = _started_card(self._archive.path, _jobs(self._archive.ledger, ids), license)
        card.source += "; corrections are applied"
        if retained:
            card.source += (
                f"; {retained} more transcripts, which cannot be read, have the rows of an earlier publication"
            )
        card.redaction = "written as it is"
        batches = (list(ids[at : at + _IN_CARD]) for at in range(0, len(ids), _IN_CARD))
        read = partial(self._query.table, "transcripts", columns=CARD_COLUMNS)
        for transcripts in self._query.without_deleted(read, batches, asked=False):
            card.add(transcripts)
        return card

    def _about(self, partition_by: Sequence[str], metadata: Wanted, delta: DeltaTarget) -> pa.Table:
        """Return the metadata columns to publish, with `transcript_id`."""
        about = metadata_table(self._archive)
        reserved = {column for table in CORPUS_TABLES.values() for column in table.names} - {*RECORDING_COLUMNS}
        for name, kind in delta.partition_columns().items():
            if name in partition_by and name not in {*reserved, *about.column_names}:
                about = about.append_column(name, pa.nulls(len(about), kind))
        about = apart(about.select(["transcript_id", *_columns(about, metadata, partition_by)]), reserved)
        return about.drop_columns([f.name for f in about.schema if pa.types.is_null(f.type)])

    def _fingerprints(self, tables: Sequence[str], about: pa.Table) -> tuple[dict[str, str], list[str]]:
        """Return a fingerprint of each transcript that can be read, and the ids of those with a damaged payload."""
        rows = {row["transcript_id"]: {n: v for n, v in row.items() if v is not None} for row in about.to_pylist()}
        readable = {v: self._query.readable("transcripts" if v == "transcript" else v) for v in _views(tables)}
        complete = set.intersection(*map(set, readable.values()))
        damaged = [transcript_id for transcript_id in self._archive.ids() if transcript_id not in complete]
        return self._archive.fingerprints(readable, rows), damaged

    def _batches(self, name: str, ids: Sequence[str], schema: pa.Schema, about: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of transcripts, with their metadata."""
        here = set(self._query.readable(name))
        ids = [transcript_id for transcript_id in ids if transcript_id in here]
        batches = (ids[at : at + _AT_A_TIME] for at in range(0, len(ids), _AT_A_TIME))
        for table in self._query.without_deleted(partial(self._query.arrow, name), batches, asked=False):
            place = pc.index_in(table["transcript_id"], about["transcript_id"].combine_chunks())
            for column in (n for n in about.column_names if n not in table.column_names):
                table = table.append_column(column, about[column].take(place))
            yield from table.cast(schema).to_batches()


def _report_kept(ids: Sequence[str]) -> None:
    """Warn about transcripts that cannot be read and stay published."""
    warnings.warn(
        f"{quantity(len(ids), 'transcript')} cannot be read, such as {ids[0]!r}, so published rows were kept; repair "
        "the payloads and publish again, or remove them with Corpus.forget",
        CorpusWarning,
        stacklevel=caller(),
    )


def _schema(name: str, about: pa.Table) -> pa.Schema:
    """Return the schema of a published table. Metadata columns come last."""
    schema = CORPUS_TABLES[name].arrow.remove_metadata()
    for field in about.schema:
        schema = schema if field.name in schema.names else schema.append(field)
    return schema
