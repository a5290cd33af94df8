"""The public facade of a corpus: transcripts stored as raw payloads and Parquet tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pandas as pd
import pyarrow.dataset as ds

from voxframe import settings
from voxframe._text import html_table
from voxframe.client import llm_requests
from voxframe.client.llm_requests import LlmOptions, LlmQuestion
from voxframe.corpus.analyses import Analyses
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch import Batch
from voxframe.corpus.batch.media import Recordings
from voxframe.corpus.batch.plan import Plan
from voxframe.corpus.batch.submit import CONCURRENCY, BatchResult
from voxframe.corpus.dask_frame import dask_frame
from voxframe.corpus.edited_files import apply_edits
from voxframe.corpus.edits import Corrections
from voxframe.corpus.export import Exporter, Publication, Publisher
from voxframe.corpus.importing import Added, Payloads
from voxframe.corpus.llm import Answers, Llm, LlmTexts, Refresh, Selection
from voxframe.corpus.metadata import Metadata, Wanted, wanted_names
from voxframe.corpus.people import People
from voxframe.corpus.query import Query
from voxframe.corpus.raw import Raw
from voxframe.corpus.reading import Ids, Where, identifiers
from voxframe.corpus.recordings import in_where
from voxframe.corpus.search import RowFilter, Search
from voxframe.corpus.search.concordance import speaker_list
from voxframe.corpus.search.meaning import DiscoveredTopics
from voxframe.corpus.services import DefaultClient
from voxframe.corpus.snapshots import Snapshots
from voxframe.corpus.speakers import CurrentNames, Speakers
from voxframe.errors import CorpusError, OptionError
from voxframe.formats.result import ExportResult
from voxframe.frames import suited
from voxframe.options import TranscriptOptions, takes_options
from voxframe.validators import name_list, shown

if TYPE_CHECKING:
    import dask.dataframe as dd
    import polars as pl

    from voxframe.client import Client


def chosen_corpus(given: Corpus | None) -> Corpus:
    """Return the corpus that a user gave as an argument; the default corpus for None."""
    if given is None:
        return Corpus()
    if isinstance(given, str | os.PathLike):
        raise OptionError(f"corpus must be a Corpus, not a path; pass corpus=voxframe.Corpus({str(given)!r})")
    if not isinstance(given, Corpus):
        raise OptionError(
            f"corpus must be a voxframe.Corpus, not of type {type(given).__name__}; voxframe.Corpus(path) opens one, "
            "and other arguments are passed by name"
        )
    return given


class Corpus:
    """A directory of transcripts: each payload as received, and Parquet files with the tables of many transcripts.

    The directory is created by the first write. Several processes and threads can use it at the same time. A Parquet
    file that is missing, damaged or written by another version is rebuilt from the payloads.

    `len(corpus)` is the number of transcripts, and iteration yields their ids. `corpus[transcript_id]` returns the
    tables of one transcript as a dict of DataFrames. `transcript_id in corpus` is True if the transcript is stored,
    readable and finished. The name of a recording stands for its transcript, here and in all methods: `corpus["call"]`.
    If the recording has several transcripts, the error lists their ids.

    Args:
        path: Directory of the corpus. None (default): the default corpus in voxframe's data directory
            (`VOXFRAME_DATA_DIR`).

    Raises:
        CorpusError: The path is a file, or inside one.
        OptionError: `path` is not a path, is empty, or begins with the home directory of an unknown user.

    Attributes:
        path: Absolute path of the directory.
        speakers: Names of speakers, and people across recordings: `set`, `get`, `assign`, `detect`, `table`,
            `undo`.
        corrections: Corrected turns: `set`, `split`, `merge`, `move_boundary`, `set_time`, `undo`, `get`, `turns`,
            `history`, `stale`.
        metadata: Columns about the recordings: `set`, `get`.
        analyses: Analyses made on this machine: `add`, which is `analyze`, and `undo`.
        snapshots: Read-only versions for fast reads of the whole corpus: `create`, `open`, `versions`.
        raw: Responses of the service as received: `get`, `put`, captions, and the rebuild of derived files.

    Example:
        >>> import tempfile
        >>> corpus = Corpus(tempfile.mkdtemp())
        >>> words = b'[{"text": "Hi", "start": 0, "end": 90}]'
        >>> corpus.raw.put("a1", b'{"id": "a1", "status": "completed", "words": %s}' % words)
        >>> corpus.table("words")["text"].to_list()
        ['Hi']
        >>> corpus["a1"]["transcripts"]["status"].to_list()
        ['completed']
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
        if text is not None and (not isinstance(text, str) or not text or "\0" in text):
            raise OptionError(f"a corpus is given by the path of its directory, such as 'calls', got {shown(path)}")
        try:
            chosen = settings.resolve().data_dir / "corpus" if text is None else Path(text).expanduser()
        except RuntimeError:
            raise OptionError(f"the home directory in {text!r} is unknown; pass the whole path") from None
        # Absolute: valid after a change of directory, and Arrow and SQLite read "a:b" as a URL.
        self.path = chosen.absolute()
        existing = next(filter(os.path.exists, (self.path, *self.path.parents)), self.path)
        if existing.is_file():
            raise CorpusError(f"{str(existing)!r} is a file; a corpus is a directory, so give the path of a directory")
        self._client = DefaultClient()
        self._archive = Archive(self.path)
        self._ledger = self._archive.ledger
        self._names = CurrentNames(self._archive)
        self.metadata = Metadata(self._archive)
        people = People(self._archive, self.metadata, self._names.all)
        self.corrections = Corrections(self._archive, self._names)
        self.speakers = Speakers(self._archive, self._names, people, self.corrections.relabel)
        self._query = Query(self._archive, self.metadata, self._names, people)
        self._search = Search(self._archive, self._query, self._names, self.metadata, people)
        self.analyses = Analyses(self._archive)
        self.snapshots = Snapshots(self._archive, self._query, self.metadata)
        self._exporter = Exporter(self._archive, self._query, self.metadata, self._ledger, people)
        self._publisher = Publisher(self._archive, self._query, self.metadata)
        self._batch = Batch(self._archive, self._ledger, self._search, self.snapshots, self._client)
        texts = LlmTexts(self._archive, self._query, self.speakers)
        self._llm = Llm(texts, self._search, self._ledger, self._client)
        self.raw = Raw(self._archive, self._ledger, self._llm, self._client)

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return a small HTML table for notebooks: the path and the counts of transcripts and jobs."""
        return html_table(self._batch.overview())

    def __reduce__(self) -> tuple[Any, ...]:
        return Corpus, (self.path,)  # a copy reads the same directory, and looks its client up again

    def __len__(self) -> int:
        return len(self.ids())

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids())

    def __contains__(self, transcript_id: object) -> bool:
        if not isinstance(transcript_id, str):
            return False
        ids = [transcript_id, *self._archive.recordings.with_name(transcript_id)]
        return any(map(self._archive.is_finished, ids))

    def __getitem__(self, transcript_id: str) -> dict[str, pd.DataFrame]:
        return self.tables(transcript_id)

    def _ipython_key_completions_(self) -> list[str]:
        """Return what can stand in `corpus[...]`: names of recordings, and ids where a name has several transcripts."""
        names, shared = self._archive.recordings.names(self._archive.ids()), self._archive.recordings.shared_names()
        return sorted(transcript_id if name in shared else name for transcript_id, name in names.items())

    def ids(self, where: Where | None = None) -> list[str]:
        """Return the ids of all transcripts, or of some, sorted.

        Methods with an argument `ids`, such as `counts` and `export`, take the result.

        Args:
            where: Conditions on columns of the table `transcripts` and on metadata, as for `table`. None (default): all
                transcripts.

        Raises:
            CorpusError: A condition is invalid.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> for name, seconds in ("a1", 30), ("b2", 600):
            ...     corpus.raw.put(name, b'{"id": "%b", "audio_duration": %d, "words": []}' % (name.encode(), seconds))
            >>> corpus.ids(where="audio_duration_s > 60")
            ['b2']
        """
        if where is not None:
            return self.table("transcripts", columns=["transcript_id"], where=where)["transcript_id"].to_list()
        self._archive.report_missing()
        return self._archive.ids()

    @takes_options
    def plan(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        progress: bool | None = None,
        **options: Unpack[TranscriptOptions],
    ) -> Plan:
        """Return what `submit` would do, without sending a request.

        Args:
            sources: Recordings, as for `submit`.
            client: The service that would be used. None (default): the one used last, otherwise that of
                `voxframe.connect()`.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.
            **options: Options of the jobs.

        Returns:
            A plan with the counts of new, known and failed recordings and their hours of audio, shown as a summary. Its
            `table` has one row per recording.

        Raises:
            OptionError: An option or a source is invalid.
            AudioNotFoundError: A file does not exist.
        """
        return self._batch.plan(sources, client, progress, options)

    @takes_options
    def submit(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
        **options: Unpack[TranscriptOptions],
    ) -> BatchResult:
        """Submit recordings for transcription without waiting for the results.

        A recording that was submitted before is skipped. The same audio is recognized under any file name; the same
        audio with other options is a new job. You can interrupt the call at any time and repeat it, even after a crash:
        nothing is submitted twice.

        A file that is empty or cannot be read becomes a failed row of `jobs` and does not stop the others. `retry`
        submits failed recordings again. If the connection drops while a job is submitted, voxframe looks for it in the
        service's job list. If that does not settle it, the job is marked "uncertain" and is only submitted again by
        `retry(uncertain=True)`.

        A recording is named by the stem of its file or the last segment of its URL, with `-2` and so on if other audio
        has that name. The name stands for the transcript id in all methods.

        Args:
            sources: Recordings: a file path, a folder, a pattern (`"calls/**/*.mp3"`), an http or https URL, a URL that
                fsspec supports (`"s3://bucket/calls"`; extra `remote`), or an iterable of these. Also a DataFrame with
                one of the columns audio, path, url, source, file or audio_url. Its column `recording` names the
                recordings; its other columns are stored as metadata.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            concurrency: Maximum number of concurrent submissions. It is reduced while the service responds with "too
                many requests".
            progress: Show a progress bar. None (default): only in an interactive session, after one second.
            **options: Options of the jobs, as for `Client.transcribe`.

        Returns:
            Counts of what was done and what is left to do.

        Raises:
            OptionError: An option or a source is invalid; nothing was sent.
            AudioNotFoundError: A file does not exist; nothing was sent.
            ServiceError: The service is unavailable; the remaining recordings are stored as planned jobs.
            CorpusError: The corpus cannot be written.

        Example:
            >>> done = corpus.submit("calls/**/*.mp3", speaker_labels=True)  # doctest: +SKIP
            >>> done = corpus.sync(wait=True)  # doctest: +SKIP
        """
        return self._batch.submit(sources, client, concurrency, progress, options)

    def sync(
        self,
        *,
        client: Client | None = None,
        wait: bool = False,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> BatchResult:
        """Fetch the transcripts that the service has finished. You can interrupt the call and repeat it.

        Args:
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            wait: Wait until every submitted job has finished.
            concurrency: Maximum number of concurrent fetches.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            Counts of what was done and what is left to do.

        Raises:
            ServiceError: The service is unavailable; transcripts fetched so far are stored.
            CorpusError: The corpus cannot be written.
        """
        return self._batch.sync(client, wait, concurrency, progress)

    def retry(
        self,
        *,
        failed: bool = False,
        uncertain: bool = False,
        keys: Collection[str] | None = None,
        client: Client | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> BatchResult:
        """Submit the jobs that were planned but not sent, and optionally those that failed or are uncertain.

        Webhook settings are not stored, because they may hold a secret. Jobs submitted by this method have none.

        Args:
            failed: Submit failed jobs again.
            uncertain: Submit uncertain jobs again: the service may have them, but they were not found there. A hosted
                service may charge for them twice.
            keys: Submit only the jobs with these keys, as shown by `jobs`. None (default): all.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            concurrency: Maximum number of concurrent submissions.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            Counts of what was done and what is left to do.

        Raises:
            ServiceError: The service is unavailable; the remaining jobs stay planned.
            CorpusError: The corpus cannot be written.
        """
        return self._batch.retry(failed, uncertain, keys, client, concurrency, progress)

    def jobs(self) -> pd.DataFrame:
        """Return the jobs of the corpus, oldest first.

        Returns:
            One row per job with the columns of the table `jobs`, such as state, attempts, error and audio duration in
            seconds; `voxframe.describe("jobs")` lists them. Columns of the metadata follow. Passwords and signatures in
            URLs are masked.
        """
        self._archive.report_missing()
        return self._batch.jobs()

    def add(self, sources: Payloads, *, replace: bool = False, progress: bool | None = None) -> Added:
        """Add transcripts from payload files or from memory.

        Args:
            sources: A path, a folder, a pattern (`"old_payloads/*.json"`), a payload as a dict or JSON bytes, or an
                iterable of these. Files end in `.json`, `.jsonl` or `.ndjson`, optionally followed by `.gz` or `.zst`,
                or in `.zip`. A file holds one payload, a list of payloads or JSON lines. A payload is a transcript or
                its sentences or paragraphs export, also in an envelope such as `{"data": {...}}`. Files of other
                engines and formats (see `voxframe.importers`) are converted and kept.
            replace: Replace a different payload that is stored under the same id.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            Counts of added and known payloads, and the name and reason of each payload that was left out. A payload is
            left out if it is damaged, is not a transcript, has no id, or has the status "queued" or "processing".

        Raises:
            PayloadError: A path or a pattern matches no file.
            CorpusError: The corpus cannot be written.
        """
        return self._batch.add(sources, replace, progress)

    def adopt(self, client: Client | None = None, *, progress: bool | None = None) -> BatchResult:
        """Fetch every transcript that the service has for this API key and the corpus does not have yet.

        Failed and deleted transcripts are skipped. `submit` later skips recordings with the URL and options of an
        adopted transcript. It cannot recognize uploaded files, because the service reports only their transcript id.

        Args:
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            Counts of what was done and what is left to do.

        Raises:
            ServiceError: The service is unavailable; transcripts fetched so far are stored.
            CorpusError: The corpus cannot be written.
        """
        return self._batch.adopt(client, progress)

    def forget(self, transcript_id: str, *, remote: bool = False, client: Client | None = None) -> None:
        """Delete a transcript: its payloads, tables, names, corrections, search index entries and job.

        Submitting the same audio again creates a new job, which may be charged. Snapshots never change: a warning lists
        those that still contain the transcript. An interrupted call can be repeated, also if the transcript is not
        listed any more: it deletes everything that is left.

        Args:
            transcript_id: Id of the transcript, or its recording.
            remote: Also delete the transcript at the service, with the language-model responses about it. This happens
                first: if it fails, the corpus is not changed.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.

        Raises:
            CorpusError: Nothing of the transcript is in the corpus, it belongs to another service, or the corpus cannot
                be written.
            ServiceError: The service did not delete the transcript.

        Warns:
            CorpusWarning: Snapshots still contain the transcript.
        """
        self._batch.forget(transcript_id, remote, client)

    @takes_options
    def transcribe(
        self,
        audio: str | os.PathLike[str],
        *,
        client: Client | None = None,
        force: bool = False,
        **options: Unpack[TranscriptOptions],
    ) -> str:
        """Transcribe a recording and wait for the result, unless it was transcribed with the same options before.

        A submission started by an earlier process is continued. If another process is transcribing the same recording,
        wait for its result.

        Args:
            audio: Path of a file, or an http or https URL.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            force: Submit the recording even if it was or may have been submitted before. A hosted service charges for
                it again.
            **options: Options of the job, as for `Client.transcribe`.

        Returns:
            Id of the transcript, which is now in the corpus; its status is "completed" or "error".

        Raises:
            OptionError: An option is invalid; nothing was sent.
            AudioError: The file cannot be read; nothing was sent.
            CorpusError: The recording may have been submitted before and this cannot be settled, or the corpus cannot
                be written.
            ServiceError: The service is unavailable or refused the request.
        """
        return self._batch.transcribe(audio, client, force, options)

    def tables(self, transcript_id: str, *, corrected: bool = True) -> dict[str, pd.DataFrame]:
        """Return every table of one transcript by name, as `corpus[transcript_id]` does.

        The tables `sentences` and `paragraphs` are included if their exports are in the corpus.

        Args:
            transcript_id: Id of the transcript, or its recording.
            corrected: False shows the text, words and turns as the service sent them.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        self._archive.report_newer()
        return self._query.tables(transcript_id, corrected=corrected)

    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
        limit: int | None = None,
        category: bool = False,
        timedeltas: bool = False,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return one table over many transcripts. Only the requested columns and rows are read into memory.

        If a table is larger than the memory, `batches` yields it in parts.

        Args:
            name: Name of the table; `voxframe.describe()` lists them.
            ids: Id or ids to read, in this order. None (default): every transcript. Sentences and paragraphs that the
                corpus does not have are made from the words, and `derived` is True; `voxframe.load_sentences(
                corpus.ids(), client=client, corpus=corpus)` and `load_paragraphs` fetch those of the service.
            columns: Columns to read, in this order; may include metadata. None (default): all columns of the table.
            where: Rows to read: text such as `"confidence < 0.5 and speaker == 'A'"`. Also conditions as for
                `pandas.read_parquet(filters=...)`: a list of (column, operator, value) triples that must all hold, or a
                list of such lists, one of which must hold. Also a pyarrow expression, which cannot use metadata. Times
                are in milliseconds. `"speaker is null"` and `("speaker", "==", None)` select nulls. Columns are those
                of the table, those of the metadata, and `person`.
            metadata: Columns about the recording to add: `recording`, `source` or those of `corpus.metadata`. A name, a
                list of names, or True for all. "person" adds the person of each row (`corpus.speakers.assign`).
            limit: Maximum number of rows; the first ones are returned.
            category: Return ids, speakers and labels as `category`, which takes half of the memory of a table of words.
            timedeltas: Add `start` and `end` as timedelta64[ms] after `end_ms`.
            corrected: False shows the text, words and turns as the service sent them.

        Returns:
            A DataFrame with the dtypes of the data dictionary, even if it has no rows. After `speaker` comes
            `speaker_name`, which `corpus.speakers.set` changes. `text` is the text with the changes of
            `corpus.corrections`, and `text_original` that of the service if it was changed. Metadata columns come last.
            Plots and groups of the rows show names of recordings, also without the column `recording`.

        Raises:
            CorpusError: A transcript is not in the corpus, a table or column does not exist, or a condition is invalid.

        Warns:
            CorpusWarning: Some transcripts cannot be read. The message names them; the others are returned. Also if the
                table has no rows because transcripts failed, or were made without an option. There is no warning if the
                table has rows and none of them match `where`.

        Example:
            >>> import voxframe
            >>> corpus = voxframe.Corpus()
            >>> first_minute = corpus.table(
            ...     "words", columns=["text", "start_ms"], where="speaker == 'A' and start_ms < 60_000"
            ... )
        """
        self._archive.report_missing()
        chosen = None if ids is None else identifiers(ids)  # an iterator is read once
        frame = self._query.table(name, chosen, columns, where, metadata, limit, category, corrected=corrected)
        if frame.empty and limit != 0:
            report = self._query.report_empty if where is None else self._query.report_no_rows
            report(name, chosen)
        return suited(frame, category=category, timedeltas=timedeltas)

    def words(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
        limit: int | None = None,
        category: bool = False,
        timedeltas: bool = False,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return the words of many transcripts, like `table("words", ...)`."""
        return self.table(
            "words",
            ids,
            columns=columns,
            where=where,
            metadata=metadata,
            limit=limit,
            category=category,
            timedeltas=timedeltas,
            corrected=corrected,
        )

    def batches(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        *,
        size: int = 500,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
        category: bool = False,
        timedeltas: bool = False,
        corrected: bool = True,
    ) -> Iterator[pd.DataFrame]:
        """Yield one table over many transcripts in parts that fit into memory.

        The transcripts come in the order of the files, so that each row is read once. Calling `table` with a few ids at
        a time would read the rows of their neighbours again and again.

        Args:
            name: Name of the table.
            ids: Id or ids to read. None (default): every transcript, except those that are deleted meanwhile.
            size: Number of transcripts in each DataFrame. The words of 500 hours take 500 MB.
            columns: See `table`.
            where: See `table`.
            metadata: See `table`.
            category: See `table`.
            timedeltas: See `table`.
            corrected: See `table`.

        Raises:
            CorpusError: See `table`.
            OptionError: `size` is not a whole number of at least 1.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> for name, text in [("a1", "Yes."), ("a2", "No.")]:
            ...     words = [{"text": text, "start": 0, "end": 9}]
            ...     corpus.raw.put(name, json.dumps({"id": name, "words": words}).encode())
            >>> [words["text"].tolist() for words in corpus.batches("words", size=1)]
            [['Yes.'], ['No.']]
        """
        self._archive.report_missing()
        names, more = None if columns is None else name_list(columns), wanted_names(metadata)
        rows = in_where(where, self._archive.recordings.id)  # an iterator is read once
        return self._query.without_deleted(
            lambda some: self.table(
                name,
                some,
                columns=names,
                where=rows,
                metadata=more,
                category=category,
                timedeltas=timedeltas,
                corrected=corrected,
            ),
            self._query.batches(name, ids, size),
            asked=ids is not None,
        )

    def scan(self, name: str, ids: str | Iterable[str] | None = None) -> ds.Dataset:
        """Return one table over many transcripts as a pyarrow dataset, without reading it.

        Args:
            name: Name of the table.
            ids: Id or ids. None (default): every transcript that has the table.

        Returns:
            A dataset of the stored files, with the schema of the data dictionary. It has no names of speakers
            (`corpus.speakers.get()` joins to it) and no corrections. The rows of a transcript are together; the
            transcripts are in no particular order. The methods `to_table(columns=..., filter=...)`, `to_batches()` and
            `scanner()` read only what is requested. They raise an error if a file is damaged, which
            `corpus.raw.rebuild_tables(verify=True)` repairs, or was replaced meanwhile; then call `scan` again.

        Raises:
            CorpusError: A transcript is not in the corpus, or the table does not exist.
        """
        self._archive.report_missing()
        return self._query.scan(name, ids)

    def to_polars(self, name: str, ids: str | Iterable[str] | None = None) -> pl.LazyFrame:
        """Return one table over many transcripts as a Polars LazyFrame, which is read when it is collected.

        Collecting raises an error if files were replaced meanwhile; then call `to_polars` again.

        Args:
            name: Name of the table.
            ids: Id or ids. None (default): every transcript that has the table.

        Raises:
            CorpusError: A transcript is not in the corpus, or the table does not exist.
            MissingExtraError: Polars is not installed.
        """
        self._archive.report_missing()
        return self._query.to_polars(name, ids)

    def to_dask(self, name: str, ids: str | Iterable[str] | None = None, *, metadata: Wanted = False) -> dd.DataFrame:
        """Return one table over many transcripts as a Dask DataFrame, which is read when it is computed.

        The directory of the corpus must have the same path on every worker. `voxframe.scale` computes talk time, counts
        and search on such frames.

        Args:
            name: Name of the table.
            ids: Id or ids. None (default): every transcript that has the table.
            metadata: Columns about the recording to add, and "person", as for `table`.

        Returns:
            A frame with the columns and dtypes of `table`, also `speaker_name`. Transcripts are in the order of the
            stored files, and a partition holds whole transcripts with about 500,000 rows. The index numbers the rows,
            and the divisions are known.

        Raises:
            CorpusError: A transcript is not in the corpus, or the table does not exist. Also when the frame is
                computed, if transcripts were replaced or deleted meanwhile.
            MissingExtraError: Dask is not installed.
        """
        self._archive.report_missing()
        return dask_frame(name, self._query.rows(name, ids), self.path, metadata)

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        *,
        external: bool = False,
    ) -> pd.DataFrame:
        """Run a DuckDB SQL query over the tables of the corpus. It can read nothing else, and changes nothing.

        Args:
            query: The query. It can read `transcripts`, `words` and all other tables, `jobs`, `metadata` and
                `responses`; `show tables` lists them.
            parameters: Values of the placeholders: a sequence for `?`, a mapping for `$name`. They are never inserted
                into the text of the query.
            external: Also let the query read and write files, use the network, and load extensions. Only for queries
                that you wrote yourself.

        Returns:
            A DataFrame with the columns of the query: text is str, integers are Int64, floats are float64.

        Raises:
            CorpusError: The query failed; the message includes DuckDB's. Also if transcripts keep changing.
            OptionError: The query is not text, or the parameters are neither a sequence nor a mapping.

        Example:
            >>> import voxframe
            >>> corpus = voxframe.Corpus()
            >>> totals = corpus.sql("select speaker, count(*) as words from words group by speaker order by words desc")
        """
        self._archive.report_missing()
        others = {"jobs": self._batch.jobs, "responses": self._llm.responses}
        return self._query.sql(query, parameters, others, external)

    def search(
        self,
        query: str | Iterable[str],
        *,
        mode: Literal["words", "meaning"] = "words",
        context: int = 8,
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
        progress: bool | None = None,
        corrected: bool = True,
        regex: bool = False,
    ) -> pd.DataFrame:
        """Find every occurrence of words or phrases, or the sentences closest in meaning, with the words around it.

        Case, accents and punctuation are ignored. An apostrophe is punctuation: `dont` and `don't` find the same
        matches, as do `bostons` and `boston's`, but `boston` finds neither. A hyphen is a space, and two words find
        their compound: `third party`, `third-party` and `thirdparty` find each other, but a space after a function word
        separates, so that `may be` does not find `maybe`. In scripts without spaces (Chinese, Japanese, Thai, Lao,
        Khmer, Burmese) each character is a word: `天气` is found in 今天天气很好. Within a word, `*` matches any
        letters (`econom*`, `*ology`); alone, it matches any word. A phrase is matched within one transcript and
        channel, and may continue from one speaker to the next.

        The search index, stored in `search/` in the corpus, is updated first.

        With `mode="meaning"`, the query is a sentence or a few words in your own words, and the best sentences are
        returned. Closeness is the cosine of sentence vectors (all-MiniLM-L6-v2, made for English; extra `local`). It is
        computed with every sentence. Sentences of new transcripts are encoded first, which takes 2 to 4 ms each and is
        stored in `meaning/` in the corpus. You can interrupt and repeat the call. The vectors stay in memory, 1.5 kB
        per sentence.

        Args:
            query: Word or phrase of any length, or a list of them.
            mode: "words" or "meaning".
            context: Number of words to show on each side.
            slop: Match the words of a query in any order within this many words; a match contains no shorter match.
                None (default): the words in order, next to each other.
            speaker: Only matches with a first word by this speaker: a label, a name, or a list of them.
            ids: Only these transcripts.
            where: Only matching rows, filtered by metadata, `person` or any column except `left`, `match` and `right`;
                as for `table`.
            limit: Maximum number of rows; with "meaning" per query, and 20 by default.
            metadata: Metadata columns to add: a name, a list of names, or True for all.
            progress: Show a progress bar while sentences are encoded. None (default): only in an interactive session,
                after one second.
            corrected: False searches the words as the service sent them; with "words" only.
            regex: Each word of the query is a regular expression (RE2, without case) that matches whole words in the
                form in which they are compared: `colou?r`, or `(climate|weather) chang(e|es|ing)`. With "words" only.

        Returns:
            A DataFrame with the columns of the table `concordance`, sorted by query, transcript and word. With
            "meaning", those of `sentence_matches`, which adds `sentence_idx` and `score` (cosine, 1 is the same
            meaning), sorted by query and score.

        Raises:
            OptionError: An argument is invalid, such as a query without words.
            CorpusError: A transcript is not in the corpus, or `where` is invalid.
            MissingExtraError: "meaning" needs the extra `local`.
            ModelError: "meaning" needs a model that is not on this machine; the message says how to get it.

        Warns:
            CorpusWarning: Nothing was found, because the transcripts have no words or none by these speakers.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "It's the Climate, change it".split()]
            >>> corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.search("climate change", context=1)[["left", "match", "right"]].to_numpy().tolist()
            [['the', 'Climate, change', 'it']]
        """
        rows = RowFilter(speaker_list(speaker), ids, where, limit, metadata)
        return self._search.search(
            query, mode, context, slop, rows, corrected=corrected, progress=progress, regex=regex
        )

    def similar(
        self,
        sentence: str | pd.Series[Any],
        *,
        context: int = 8,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Find the sentences that say about the same as another sentence.

        Args:
            sentence: The text of a sentence, or a row of `search(mode="meaning")` or of the table `sentences`, which is
                then left out of the result.
            context: As for `search`.
            speaker: As for `search`.
            ids: As for `search`.
            where: As for `search`.
            limit: Maximum number of rows. None (default): 20.
            metadata: As for `search`.
            progress: As for `search`.

        Returns:
            A DataFrame with the columns of the table `sentence_matches`, the closest sentence first.

        Raises:
            VoxframeError: As for `search` with `mode="meaning"`.

        Example:
            >>> found = corpus.search("people complain about the price", mode="meaning")  # doctest: +SKIP
            >>> more = corpus.similar(found.iloc[0])  # doctest: +SKIP
        """
        return self._search.similar(
            sentence, context, RowFilter(speaker_list(speaker), ids, where, limit, metadata), progress
        )

    def discover_topics(
        self,
        topics: int | None = None,
        *,
        ids: str | Iterable[str] | None = None,
        speaker: str | Iterable[str] | None = None,
        where: Where | None = None,
        words: int = 10,
        seed: int = 0,
        metadata: Wanted = False,
        progress: bool | None = None,
    ) -> DiscoveredTopics:
        """Group the sentences of the corpus by meaning, and name each group by its typical words.

        Sentences of at least four words are grouped by spherical k-means over their vectors; see
        `search(mode="meaning")` for how they are made. Typical words have the highest class-based TF-IDF; English
        function words are left out. Sources: I. Dhillon and D. Modha, 2001; M. Grootendorst, "BERTopic", 2022. The same
        sentences and seed give the same topics.

        Args:
            topics: Number of topics. None (default): the square root of half the number of sentences, at most 30.
            ids: Only sentences of these transcripts.
            speaker: Only sentences by this speaker: a label, a name, or a list of them.
            where: Only matching sentences, as for `search`.
            words: Number of typical words per topic.
            seed: Seed of the random numbers.
            metadata: Metadata columns to add to the sentences.
            progress: As for `search`.

        Returns:
            Two DataFrames: `topics` with `topic_idx`, `words`, `sentences`, `share` and the most central sentence; and
            `sentences` with the `topic_idx` of each sentence and its `score`, the cosine with the centre of the topic.

        Raises:
            OptionError: An argument is invalid, or there are fewer sentences than topics.
            VoxframeError: As for `search` with `mode="meaning"`.

        Example:
            >>> found = corpus.discover_topics(12, metadata="customer")  # doctest: +SKIP
            >>> pd.crosstab(found.sentences["customer"], found.sentences["topic_idx"])  # doctest: +SKIP
        """
        rows = RowFilter(speaker_list(speaker), ids, where, metadata=metadata)
        return self._search.topics(topics, rows, words, seed, progress)

    def counts(
        self,
        query: str | Iterable[str],
        *,
        by: str | Sequence[str] = "transcript_id",
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        about: pd.DataFrame | None = None,
        limit: int | None = None,
        corrected: bool = True,
        regex: bool = False,
    ) -> pd.DataFrame:
        """Count occurrences of words or phrases by transcript, speaker or any other group.

        Args:
            query: Word or phrase, or a list of them; see `search`.
            by: Columns to group by: "transcript_id", "recording", "speaker", "person", "speaker_name", "channel", and
                columns of the metadata or of `about`. An empty sequence returns one total. A match belongs to the
                speaker of its first word. "speaker" is a label within a transcript, so it adds "transcript_id".
                "person" is one in all recordings (`corpus.speakers.assign`); a label without a person is a group of its
                own, such as "A (call)".
            slop: Maximum span of a match in words, in any order; see `search`.
            speaker: Count only words by this speaker: a label, a name, or a list of them.
            ids: Count only in these transcripts. None (default): all transcripts.
            about: DataFrame with `transcript_id` and columns to group by, used instead of the metadata.
            limit: Maximum number of rows: those with the most occurrences, most first. None (default): all rows, sorted
                by query and group.
            corrected: False counts the words as the service sent them.
            regex: As for `search`.

        Returns:
            One row per query and group, including groups without matches: `term`, the columns of `by`, `occurrences`
            int64, `words` int64 (of the group, with a letter or a digit, split as for `search`) and `per_1000` float64
            (occurrences per 1,000 words; NaN if the group has no words).

        Raises:
            OptionError: An argument is invalid.
            CorpusError: A transcript is not in the corpus.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "Yes. No. Yes!".split()]
            >>> corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.counts("yes")[["transcript_id", "occurrences", "words"]].to_numpy().tolist()
            [['a1', 2, 3]]
        """
        return self._search.counts(query, slop, by, speaker, ids, about, limit, corrected=corrected, regex=regex)

    def analyze(
        self,
        ids: Ids | None = None,
        *,
        workers: int | None = None,
        progress: bool | None = None,
        **analyses: Unpack[TranscriptOptions],
    ) -> pd.DataFrame:
        """Analyse stored transcripts on this machine, with the analyses of the local service, on all cores.

        Transcripts of any service, engine or file will do, with or without times. The results appear in the tables
        `sentiments`, `entities`, `chapters`, `topics`, `highlights`, `content_safety` and so on, and replace those of
        the service. The column `local_analyses` of `transcripts` says so. The payloads stay as they are, and
        `corpus.analyses.undo` takes the results back. Afterwards, `export(..., pii="mask")` works on any transcript.

        Analyses are for English only. Transcripts in another language are skipped, with one warning that counts them;
        if the language is not stated, English is told by its function words. Each result is stored when it is ready,
        so that a call that was interrupted can be repeated. Transcripts with up-to-date results are not analysed again.
        Later calls add to the analyses. After corrections, or if the payload is replaced, call it again.

        Args:
            ids: Transcripts or recordings. None (default): all.
            workers: Number of processes. None (default): one per core.
            progress: Show a progress bar. None (default): after one second.
            **analyses: `sentiment_analysis`, `entity_detection`, `auto_chapters`, `iab_categories`, `auto_highlights`,
                `content_safety`: True for those to make. None given (default): these six. Further options are
                `redact_pii`, which replaces personal data in the words and turns (with `redact_pii_policies` and
                `redact_pii_sub`), `summarization` (with `summary_model` and `summary_type`), `custom_topics` (with
                `topics`) and `content_safety_confidence`, as for a job.

        Returns:
            One row per transcript: `transcript_id` str; `status` str: "analyzed", "unchanged" (it has these results),
            "skipped" or "failed"; `reason` str, null for the first two.

        Raises:
            OptionError: An option is invalid, or is not one of an analysis.
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.
            MissingExtraError: The extra `local` is not installed.

        Warns:
            CorpusWarning: Some transcripts could not be analysed.

        Example:
            >>> import tempfile
            >>> corpus = Corpus(tempfile.mkdtemp())
            >>> words = b'[{"text": "Wonderful!", "start": 0, "end": 90}]'
            >>> corpus.raw.put("a1", b'{"id": "a1", "status": "completed", "words": %s}' % words)
            >>> corpus.analyze(entity_detection=True)["status"].to_list()
            ['analyzed']
            >>> corpus.table("transcripts")["local_analyses"].to_list()
            ['voxframe 0.1.0: entity_detection']
        """
        return self.analyses.add(ids, workers=workers, progress=progress, **analyses)

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
        (SHA256SUMS). In parquet the names of both begin with `_`, so that pandas reads the folder. The card states
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
                `pii` does not change them. "person" is added to tables with speakers, also for `partition_by`.
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
        return self._exporter.export(
            target,
            format,
            tables,
            ids,
            partition_by,
            metadata,
            pii,
            pii_types,
            escape_formulas,
            license,
            audio,
            overwrite,
            corrected=corrected,
        )

    def apply_edits(self, transcript_id: str, file: str | os.PathLike[str]) -> pd.DataFrame:
        """Apply what was edited in an exported file with ELAN, Praat or Label Studio as corrections and speakers.

        Export the transcript with `export(target, "eaf")`, `"textgrid"` or `"labelstudio"`, and edit the file. Do not
        change the transcript in the corpus meanwhile. `corrections.undo` and `speakers.undo` take the changes back.

        Args:
            transcript_id: Id of the transcript, or the name of its recording.
            file: The edited file.

        Returns:
            The changes, as `voxframe.export.read_edits` returns them, with the column `applied` bool. New annotations,
            deleted turns, and parts of turns with another speaker are not applied.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            PayloadError: The file cannot be read.

        Warns:
            CorpusWarning: Some changes were not applied.
        """
        return apply_edits(
            self._query, self.corrections, self.speakers, self._archive.recordings.id(transcript_id), file
        )

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
        return self._publisher.publish(
            target,
            tables=tables,
            partition_by=partition_by,
            metadata=metadata,
            storage_options=storage_options,
            license=license,
        )

    def summarize(
        self,
        transcripts: Selection = None,
        *,
        answer_format: str | None = None,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Summarize any number of transcripts with a language model.

        A selection that is too large for one request is split, and a final request combines the partial summaries.
        Responses are cached: the same request about the same transcripts is not sent again.

        Args:
            transcripts: A transcript id, an iterable of ids, or a DataFrame with a column `transcript_id`. None
                (default): every completed transcript.
            answer_format: Form of the summary in words, such as "bullet points". None (default): the service decides.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            refresh: True sends the request even if its response is cached. "lost" sends it again if its response was
                lost.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.
            **options: context, final_model, max_output_size, temperature; see `Client.summarize`.

        Returns:
            The summary as `text`, with the responses and token usage behind it.

        Raises:
            OptionError: An argument is invalid, or there is nothing to summarize; nothing was sent.
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.
            LostAnswerError: The request was sent before and its response was lost; see `unanswered`.
            ServiceError: The service is unavailable or refused the request; responses received so far are cached.

        Example:
            >>> corpus.summarize(answer_format="one sentence").text  # doctest: +SKIP
            'Two neighbours talk about trees.'
        """
        own = {"answer_format": answer_format}
        return self._llm.run("summary", own, transcripts, options, client, refresh, progress)

    def ask(
        self,
        questions: str | LlmQuestion | Iterable[str | LlmQuestion],
        transcripts: Selection = None,
        *,
        passages: int | None = None,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Ask a language model questions about any number of transcripts.

        A selection that fits into one request is sent whole. Otherwise only the passages that are closest to the
        questions in meaning are sent, as found by `search(mode="meaning")`. The answers have citations with times.

        Args:
            questions: A question, as text or `LlmQuestion`, or an iterable of them.
            transcripts: As for `summarize`.
            passages: Number of sentences to send per question, each with the sentences beside it. 0 sends whole
                transcripts, in several requests if necessary. None (default): 20 for a selection that does not fit into
                one request, if the sentence encoder is installed (extra `local`).
            client: As for `summarize`.
            refresh: As for `summarize`.
            progress: As for `summarize`.
            **options: As for `summarize`.

        Returns:
            One reply per question in `replies`, and all of them as `text`. `citations` has a row per passage that an
            answer rests on: `question_idx`, `transcript_id`, `start_ms`, `end_ms`, `speaker_name`, `text`, and `begin`
            and `end` (place in the answer, in characters).

        Raises:
            VoxframeError: As for `summarize`.
            MissingExtraError: `passages` needs the extra `local`.

        Example:
            >>> answers = corpus.ask(["What was promised?", "By when?"], ["t1", "t2"])  # doctest: +SKIP
            >>> [reply.answer for reply in answers.replies]  # doctest: +SKIP
            ['A refund.', 'By Friday.']
            >>> voxframe.PassageList(answers.citations, corpus=corpus)  # doctest: +SKIP
        """
        own = {"questions": llm_requests.questions(questions)}
        return self._llm.run("question-answer", own, transcripts, options, client, refresh, progress, passages)

    def task(
        self,
        prompt: str,
        transcripts: Selection = None,
        *,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Run a prompt on any number of transcripts with a language model.

        Args:
            prompt: The instruction, such as "Write a letter to the caller".
            transcripts: As for `summarize`.
            client: As for `summarize`.
            refresh: As for `summarize`.
            progress: As for `summarize`.
            **options: As for `summarize`.

        Returns:
            The result as `text`, with the responses and token usage behind it.

        Raises:
            VoxframeError: As for `summarize`.
        """
        own = {"prompt": llm_requests.text("prompt", prompt)}
        return self._llm.run("task", own, transcripts, options, client, refresh, progress)

    def action_items(
        self,
        transcripts: Selection = None,
        *,
        answer_format: str | None = None,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """List the action items of any number of transcripts with a language model.

        If several requests are needed, their lists are joined instead of being combined by a final request.

        Args:
            answer_format: Form of the list in words, such as "one line per person". None (default): the service
                decides.
            transcripts: As for `summarize`.
            client: As for `summarize`.
            refresh: As for `summarize`.
            progress: As for `summarize`.
            **options: As for `summarize`.

        Returns:
            The action items as `text`, with the responses and token usage behind it.

        Raises:
            VoxframeError: As for `summarize`.
        """
        own = {"answer_format": answer_format}
        return self._llm.run("action-items", own, transcripts, options, client, refresh, progress)

    def unanswered(self) -> pd.DataFrame:
        """Return the language-model requests with a lost response, oldest first.

        The process ended or the connection dropped before the response arrived, so the service may have charged for it.
        `refresh="lost"` sends such a request again.

        Returns:
            One row per request: `task` str, `prompt` str, `transcript_ids` list of str, `asked` datetime64[us, UTC].
        """
        self._archive.report_missing()
        return self._llm.unanswered()
