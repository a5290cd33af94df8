"""Corpus: a directory of transcripts that is read back without asking the service again."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa

from voxframe import frames, settings
from voxframe.corpus.asking import Asking
from voxframe.corpus.batches import Batches
from voxframe.corpus.corrections import Corrections
from voxframe.corpus.disk import clear_errors
from voxframe.corpus.exports import Exports
from voxframe.corpus.metadata import Metadata
from voxframe.corpus.name_files import NameFiles
from voxframe.corpus.reading import Part
from voxframe.corpus.reads import Reads
from voxframe.corpus.searches import Searches
from voxframe.corpus.speaker_names import SpeakerNames, with_names
from voxframe.corpus.store import EXPORTS, FINAL, Store, View, content_hash
from voxframe.corpus.views import Views, forget_redacted
from voxframe.errors import CorpusError
from voxframe.file_names import file_name
from voxframe.html_table import html_table
from voxframe.schema import TRANSCRIPT_TABLES

_LEADING = "transcripts"


class Corpus(Batches, Reads, Views, Asking, Metadata, SpeakerNames, Searches, Corrections, Exports):
    """Transcripts on disk: each payload as it came, and its tables as Parquet that any tool reads with a glob.

    The directory is created at the first write. Several processes and threads may use it at once. Tables are derived:
    where a Parquet file is missing, damaged or from another version it is made again from the raw payload.

    Args:
        path: The directory; a plain name is one below the working directory. None is the default corpus, in voxframe's
            data directory (`VOXFRAME_DATA_DIR`).

    Attributes:
        path: The directory.
        ledger: What was asked for, sent and finished.

    Example:
        >>> import tempfile
        >>> corpus = Corpus(tempfile.mkdtemp())
        >>> payload = b'{"id": "a1", "status": "completed", "words": [{"text": "Hi", "start": 0, "end": 90}]}'
        >>> _ = corpus.put("a1", payload)
        >>> corpus.table("words")["text"].to_list()
        ['Hi']
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        chosen = settings.resolve().data_dir / "corpus" if path is None else Path(path).expanduser()
        # Absolute: the same after a change of directory, and Arrow and SQLite take "a:b" for an address.
        super().__init__(chosen.absolute())
        self._store = Store(self.path)
        self._names = NameFiles(self.path)

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """A small table for a notebook: where it is, and what is in it and in its ledger."""
        with contextlib.suppress(OSError, CorpusError, sqlite3.Error):  # what cannot be read is not shown
            jobs = self.ledger.jobs()
            states = Counter(job.state for job in jobs)
            hours = sum(job.audio_duration_s or 0 for job in jobs if job.state == "completed") / 3600
            return html_table(
                {
                    "corpus": str(self.path),
                    "transcripts": f"{len(self.ids()):,}",
                    "jobs": ", ".join(f"{count:,} {state}" for state, count in states.most_common()),
                    "completed": f"{hours:.2g} hours of audio" if hours else "",
                }
            )
        return html_table({"corpus": str(self.path)})

    def __contains__(self, transcript_id: object) -> bool:
        """Whether the transcript is here in a final status (completed or error)."""
        if not isinstance(transcript_id, str) or self._store.content(transcript_id, "transcript") is None:
            return False
        return self.status(transcript_id) in FINAL

    def put(self, transcript_id: str, raw: bytes, view: View = "transcript") -> dict[str, pa.Table]:
        """Keep a payload and its tables, replacing older ones. The payload reaches the disk first.

        Args:
            transcript_id: Identifier of the transcript; any text, it is never used as a path as it is.
            raw: The answer of the service, byte for byte.
            view: What it is: "transcript", "sentences" or "paragraphs".

        Returns:
            Its tables as Arrow, by name.

        Raises:
            CorpusError: The directory cannot be written.
            PayloadError: The payload was kept but cannot be read.
        """
        self._check_view(view)
        if not isinstance(transcript_id, str) or not transcript_id:
            raise CorpusError(f"a transcript id is a text that is not empty, not {transcript_id!r}")
        if any("\ud800" <= c <= "\udfff" for c in transcript_id):  # Parquet could not hold it, nor could any table then
            raise CorpusError(f"a transcript id is Unicode text; {transcript_id!r} holds half of a surrogate pair")
        with clear_errors(self.path):
            self._store.put_raw(transcript_id, view, raw)
            tables, content = self._make(transcript_id, view, raw)
            self._store.put_tables(transcript_id, tables, content)
        return tables

    def remove(self, transcript_id: str) -> None:
        """Delete the files of a transcript. `forget` also deletes it at the service and in the ledger."""
        with clear_errors(self.path):
            self._names.keep(transcript_id, [])
            self._forget_corrections(transcript_id)
            forget_redacted(self.path, transcript_id)
            self._store.remove(transcript_id)
            self._index.purge(file_name(transcript_id))

    def raw(self, transcript_id: str, view: View = "transcript") -> bytes:
        """The payload byte for byte as it came.

        Args:
            transcript_id: Identifier of the transcript.
            view: "transcript", "sentences" or "paragraphs".

        Raises:
            CorpusError: It is not here, or its file is damaged.
        """
        self._check_view(view)
        raw = self._store.raw(transcript_id, view)
        if raw is None:
            raise self._absent(transcript_id, view)
        return raw

    def status(self, transcript_id: str) -> str | None:
        """Status of a transcript here: "completed", "error" or whatever the service said when it was kept.

        Raises:
            CorpusError: The transcript is not here.
        """
        status: str | None = self.arrow(_LEADING, transcript_id)["status"][0].as_py()
        return status

    def ids(self) -> list[str]:
        """Identifiers of all transcripts here, sorted."""
        return self._store.ids()

    def has_export(self, transcript_id: str, view: View) -> bool:
        """Whether the export ("sentences", "paragraphs") of a transcript is here."""
        return self._store.content(transcript_id, view) is not None

    def arrow(self, name: str, transcript_id: str) -> pa.Table:
        """One table of one transcript as Arrow, made again from the raw payload where its file cannot be used.

        Raises:
            CorpusError: The transcript, or the export that the table is made from, is not here.
        """
        view = _view_of(name)
        content = self.content(transcript_id, view)
        if content is None:
            raise self._absent(transcript_id, view)
        table = self._store.table(transcript_id, name, content, _LEADING if view == "transcript" else view)
        if table is not None:
            return table
        tables, content = self._make(transcript_id, view, self.raw(transcript_id, view))
        with contextlib.suppress(OSError, CorpusError):  # a corpus on a read-only or full disk can still be read
            self._store.put_tables(transcript_id, tables, content)
        return tables[name]

    def put_again(self, transcript_id: str, view: View = "transcript") -> None:
        """Make the tables of a payload that is here again, whether or not they can be used.

        Raises:
            CorpusError: The payload is not here or damaged, or the directory cannot be written.
            PayloadError: The payload cannot be read.
        """
        tables, content = self._make(transcript_id, view, self.raw(transcript_id, view))
        with clear_errors(self.path):
            self._store.put_tables(transcript_id, tables, content)

    def stale(self, view: View = "transcript", *, verify: bool = False) -> list[str]:
        """Identifiers of the transcripts of which some table has to be made again before it can be read.

        Args:
            view: Which answer the tables are made from.
            verify: Whether to read files to their end, not their footers alone.
        """
        names = TRANSCRIPT_TABLES if view == "transcript" else (view,)
        leading = _LEADING if view == "transcript" else view
        ids = (i for i in self.ids() if view == "transcript" or self.has_export(i, view))
        found = []
        for transcript_id in ids:
            content = self.content(transcript_id, view) or ""
            if any(self._is_stale(transcript_id, name, content, leading, verify=verify) for name in names):
                found.append(transcript_id)
        return found

    def _is_stale(self, transcript_id: str, name: str, content: str, leading: str, *, verify: bool) -> bool:
        if self._store.state(transcript_id, name, content, leading) == "stale":
            return True
        return verify and self._store.table(transcript_id, name, content, leading) is None

    def part(self, name: str, transcript_id: str) -> Part:
        """Where the rows of one transcript are."""
        view = _view_of(name)
        content = self.content(transcript_id, view)
        if content is None:
            raise self._absent(transcript_id, view)
        leading = _LEADING if view == "transcript" else view
        state = self._store.state(transcript_id, name, content, leading)
        if state == "stale":
            table = self.arrow(name, transcript_id)
            state = self._store.state(transcript_id, name, self.content(transcript_id, view) or "", leading)
            if state == "stale":  # the disk cannot be written
                return table
        return self._store.table_path(transcript_id, name) if state == "filled" else None

    def _make(self, transcript_id: str, view: View, raw: bytes) -> tuple[dict[str, pa.Table], str]:
        """Tables of a payload under the identifier it is kept by, and the hash of what they were made from.

        The hash is that of these very bytes: another process may have replaced the file meanwhile.
        """
        content = content_hash(raw)
        names, mark = self._names.of(transcript_id)
        given = {transcript_id: names} if names else {}
        if view == "transcript":
            tables = frames.transcript_tables(raw, transcript_id=transcript_id)
            turns = tables["utterances"]
            given = {i: of_turns.holding(turns) for i, of_turns in given.items()}
            return {name: with_names(table, given, turns) for name, table in tables.items()}, _with(content, mark)
        make = frames.sentence_table if view == "sentences" else frames.paragraph_table
        transcript = self.content(transcript_id, "transcript")
        words = None if transcript is None else self.arrow("words", transcript_id)
        turns = self.arrow("utterances", transcript_id) if names.turns and transcript is not None else None
        given = given if turns is None else {i: of_turns.holding(turns) for i, of_turns in given.items()}
        table = with_names(make(raw, words, transcript_id), given, turns)
        return {view: table}, _with(content, mark, transcript)

    def content(self, transcript_id: str, view: View) -> str | None:
        """Hash of all that the tables of an answer are made from, as it is on the disk."""
        content = self._store.content(transcript_id, view)
        if content is None:
            return None
        mark = self._names.of(transcript_id)[1]
        if view == "transcript":
            return _with(content, mark)
        return _with(content, mark, self.content(transcript_id, "transcript"))

    def _check_view(self, view: View) -> None:
        if view != "transcript" and view not in EXPORTS:
            raise CorpusError(f"a corpus keeps transcript, {', '.join(EXPORTS)}, not {view!r}")

    def _absent(self, transcript_id: str, view: View) -> CorpusError:
        what = "transcript" if view == "transcript" else f"{view} export of"
        call = "tables" if view == "transcript" else f"load_{view}"
        return CorpusError(
            f"there is no {what} {transcript_id!r} in {self!r}; Corpus.ids() lists what is there, and "
            f"voxframe.{call}({transcript_id!r}, client=client, corpus=corpus) fetches it"
        )


def _with(content: str, names: str, transcript: str | None = None) -> str:
    """Hash of all that tables are made from: the payload, names of speakers, and of an export the transcript."""
    return " ".join(filter(None, (content, names, transcript)))


def _view_of(name: str) -> View:
    """The answer that a table is made from."""
    return "sentences" if name == "sentences" else "paragraphs" if name == "paragraphs" else "transcript"
