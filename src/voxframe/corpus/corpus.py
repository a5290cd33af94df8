"""The public facade of a corpus: transcripts stored as raw payloads and Parquet tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import pandas as pd
import pyarrow.dataset as ds

from voxframe import colors, settings
from voxframe._forwarding import of_part
from voxframe._text import html_table
from voxframe.client import llm
from voxframe.client.llm import LlmOptions, LlmQuestion
from voxframe.corpus.analyses import Analyses
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch import Batch
from voxframe.corpus.conditions import Wanted, Where, wanted_names, with_ids
from voxframe.corpus.edits import Corrections
from voxframe.corpus.export import Exporter, Publisher, apply_edits
from voxframe.corpus.ledger import DefaultClient, Ledger, identifiers
from voxframe.corpus.llm import Answers, Llm, Refresh, Selection
from voxframe.corpus.metadata import Metadata
from voxframe.corpus.people import seen_together
from voxframe.corpus.query import Query, dask_frame
from voxframe.corpus.raw import Raw
from voxframe.corpus.search import Search
from voxframe.corpus.snapshots import Snapshots
from voxframe.corpus.speakers import Speakers
from voxframe.errors import CorpusError, OptionError
from voxframe.frames import suited
from voxframe.validators import checked_timeout, name_list, shown

if TYPE_CHECKING:
    import dask.dataframe as dd
    import polars as pl

    from voxframe.client import Client


class Parts(NamedTuple):
    """Objects behind the methods of a corpus, for the other packages of voxframe."""

    archive: Archive
    ledger: Ledger
    query: Query
    batch: Batch


def chosen_corpus(corpus: Corpus | None) -> Corpus:
    """Return the corpus that a user gave as an argument; the default corpus for None."""
    if corpus is None:
        return Corpus()
    if isinstance(corpus, str | os.PathLike):
        raise OptionError(f"corpus must be a Corpus, not a path; pass corpus=voxframe.Corpus({str(corpus)!r})")
    if not isinstance(corpus, Corpus):
        raise OptionError(
            f"corpus must be a voxframe.Corpus, not of type {type(corpus).__name__}; voxframe.Corpus(path) opens one, "
            "and other arguments are passed by name"
        )
    return corpus


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
        parts: Objects behind the methods, for the other packages of voxframe.

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
            place = settings.resolve().data_dir / "corpus" if text is None else Path(text).expanduser()
        except RuntimeError:
            raise OptionError(f"the home directory in {text!r} is unknown; pass the whole path") from None
        # Absolute: valid after a change of directory, and Arrow and SQLite read "a:b" as a URL.
        self.path = place.absolute()
        existing = next(filter(os.path.exists, (self.path, *self.path.parents)), self.path)
        if existing.is_file():
            raise CorpusError(f"{str(existing)!r} is a file; a corpus is a directory, so give the path of a directory")
        self._client = DefaultClient()
        self._archive = Archive(self.path)
        self._ledger = self._archive.ledger
        colors.sources[self._archive] = seen_together
        self.metadata = Metadata(self._archive)
        self.corrections = Corrections(self._archive)
        self.speakers = Speakers(self._archive)
        self.analyses = Analyses(self._archive)
        self.snapshots = Snapshots(self._archive)
        self._query = Query(self._archive)
        self._search = Search(self._archive)
        self._exporter = Exporter(self._archive)
        self._publisher = Publisher(self._archive)
        self._batch = Batch(self._archive, self._search, self._client)
        self._llm = Llm(self._archive, self._search, self._client)
        self.raw = Raw(self._archive, self._llm, self._client)
        self.parts = Parts(self._archive, self._ledger, self._query, self._batch)

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
        names, shared = self._archive.recordings.names(self._archive.ids()), self._ledger.shared_recordings()
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

    plan = of_part("_batch", Batch.plan)
    submit = of_part("_batch", Batch.submit)
    sync = of_part("_batch", Batch.sync)
    retry = of_part("_batch", Batch.retry)

    def jobs(self) -> pd.DataFrame:
        """Return the jobs of the corpus, oldest first.

        Returns:
            One row per job with the columns of the table `jobs`, such as state, attempts, error and audio duration in
            seconds; `voxframe.describe("jobs")` lists them. Columns of the metadata follow. Passwords and signatures in
            URLs are masked.
        """
        self._archive.report_missing()
        return self._batch.jobs()

    add = of_part("_batch", Batch.add)
    adopt = of_part("_batch", Batch.adopt)
    forget = of_part("_batch", Batch.forget)
    transcribe = of_part("_batch", Batch.transcribe)

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
        selected = None if ids is None else identifiers(ids)  # an iterator is read once
        frame = self._query.table(name, selected, columns, where, metadata, limit, category, corrected=corrected)
        if not len(frame) and limit != 0:
            report = self._query.report_empty if where is None else self._query.report_no_rows
            report(name, selected)
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
        names, about = None if columns is None else name_list(columns), wanted_names(metadata)
        rows = with_ids(where, self._archive.recordings.id)  # an iterator is read once
        return self._query.without_deleted(
            lambda batch: self.table(
                name,
                batch,
                columns=names,
                where=rows,
                metadata=about,
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
        timeout: float | None = None,
    ) -> pd.DataFrame:
        """Run a DuckDB SQL query over the tables of the corpus. It can read nothing else, and changes nothing.

        Args:
            query: The query. It can read `transcripts`, `words` and all other tables, `jobs`, `metadata` and
                `responses`; `show tables` lists them.
            parameters: Values of the placeholders: a sequence for `?`, a mapping for `$name`. They are never inserted
                into the text of the query.
            external: Also let the query read and write files, use the network, and load extensions. Only for queries
                that you wrote yourself.
            timeout: Seconds after which the query is stopped. None (default): no limit.

        Returns:
            A DataFrame with the columns of the query: text is str, integers are Int64, floats are float64.

        Raises:
            CorpusError: The query failed; the message includes DuckDB's. Also if it took longer than `timeout`, or if
                transcripts keep changing.
            OptionError: The query is not text, the parameters are neither a sequence nor a mapping, or `timeout` is not
                a number of seconds.

        Example:
            >>> import voxframe
            >>> corpus = voxframe.Corpus()
            >>> totals = corpus.sql("select speaker, count(*) as words from words group by speaker order by words desc")
        """
        self._archive.report_missing()
        further = {"jobs": self._batch.jobs, "responses": self._llm.responses}
        return self._query.sql(query, parameters, further, external, checked_timeout(timeout))

    search = of_part("_search", Search.search)
    similar = of_part("_search", Search.similar)
    discover_topics = of_part("_search", Search.discover_topics)
    counts = of_part("_search", Search.counts)

    analyze = of_part("analyses", Analyses.analyze)
    export = of_part("_exporter", Exporter.export)

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

    publish = of_part("_publisher", Publisher.publish)

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
        fields = {"answer_format": answer_format}
        return self._llm.run("summary", fields, transcripts, options, client, refresh, progress)

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
        fields = {"questions": llm.questions(questions)}
        return self._llm.run("question-answer", fields, transcripts, options, client, refresh, progress, passages)

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
        fields = {"prompt": llm.checked_text("prompt", prompt)}
        return self._llm.run("task", fields, transcripts, options, client, refresh, progress)

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
        fields = {"answer_format": answer_format}
        return self._llm.run("action-items", fields, transcripts, options, client, refresh, progress)

    def unanswered(self) -> pd.DataFrame:
        """Return the language-model requests with a lost response, oldest first.

        The process ended or the connection dropped before the response arrived, so the service may have charged for it.
        `refresh="lost"` sends such a request again.

        Returns:
            One row per request: `task` str, `prompt` str, `transcript_ids` list of str, `asked` datetime64[us, UTC].
        """
        self._archive.report_missing()
        return self._llm.unanswered()
