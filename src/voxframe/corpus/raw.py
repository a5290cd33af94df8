"""Responses of the service as received: payloads, captions, word searches, redacted audio; and a check of all files."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from voxframe._files import file_name
from voxframe._text import quantity
from voxframe.client import api
from voxframe.corpus.archive import Archive, MissingTranscriptError
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.ledger import DefaultClient, cache_key
from voxframe.corpus.llm import Llm
from voxframe.corpus.records import decoded
from voxframe.corpus.snapshots import open_snapshot
from voxframe.corpus.store import View, read_file
from voxframe.corpus.store import folder as make_folder
from voxframe.corpus.tables import PartDamagedError, PartReplacedError
from voxframe.corpus.workers import rebuild
from voxframe.errors import CorpusError, CorpusWarning, OptionError, PayloadError
from voxframe.validators import Integer, checked, shown

if TYPE_CHECKING:
    from voxframe.client import Client
    from voxframe.client.llm import LlmResponse


class Raw:
    """Responses of the service as received, and the files derived from them, as `corpus.raw`."""

    def __init__(self, archive: Archive, llm: Llm, default_client: DefaultClient) -> None:
        self._archive, self._ledger, self._llm, self._default_client = archive, archive.ledger, llm, default_client

    def __repr__(self) -> str:
        return f"Raw({str(self._archive.path)!r})"

    def get(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Return a payload byte for byte as received.

        Args:
            transcript_id: Id of the transcript, or the name of its recording.
            view: "transcript", "sentences" or "paragraphs".

        Raises:
            CorpusError: The payload is not in the corpus, or its file is damaged.
        """
        return self._archive.raw(self._archive.recordings.id(transcript_id), view)

    def original(self, transcript_id: str) -> bytes | None:
        """Return the file in another format that a payload was converted from, byte for byte.

        Args:
            transcript_id: Id of the transcript, or the name of its recording.

        Returns:
            The content of the file; None if the payload was not converted.

        Raises:
            CorpusError: The file is damaged.
        """
        return self._archive.store.original(self._archive.recordings.id(transcript_id))

    def put(self, transcript_id: str, raw: bytes, view: View = "transcript") -> None:
        """Store a payload and its tables, replacing older ones. The payload is written first.

        Args:
            transcript_id: Id of the transcript; any non-empty text.
            raw: The response of the service, byte for byte.
            view: Kind of response: "transcript", "sentences" or "paragraphs".

        Raises:
            CorpusError: The id is invalid, or the directory cannot be written.
            OptionError: The payload is not bytes; nothing was stored.
            PayloadError: The payload was stored but cannot be read.
        """
        if not isinstance(raw, bytes | bytearray | memoryview):
            raise OptionError(
                f"a payload is the response of the service as bytes, not of type {type(raw).__name__}; Corpus.add also "
                "takes a dict, and text.encode() makes bytes of text"
            )
        self._archive.put(transcript_id, bytes(raw), view)

    def responses(self) -> pd.DataFrame:
        """Return every cached language-model response as the table `responses`, oldest first."""
        self._archive.report_missing()
        return self._llm.responses()

    def note_response(self, response: LlmResponse, *, client: Client | None = None) -> None:
        """Record which transcripts a language-model response is about, so that `Corpus.forget` deletes it with them.

        Args:
            response: The return value of `Client.summarize`, `ask`, `task` or `action_items`.
            client: The service it came from. None (default): the one used last, otherwise that of
                `voxframe.connect()`.

        Raises:
            CorpusError: The corpus cannot be written.
            OptionError: `response` is not such a return value.
        """
        if not hasattr(response, "request_id"):
            raise OptionError(
                "response must be the return value of Client.summarize, ask, task or action_items, got "
                f"{shown(response)}"
            )
        with clear_errors(self._archive.path):
            service = self._default_client.service_name(client)
            self._ledger.note_request(response.request_id, service, response.transcript_ids)

    def stale(self, view: View = "transcript", *, verify: bool = False) -> list[str]:
        """Return the ids of transcripts with a table that must be rebuilt, or removed because the payload is gone.

        Args:
            view: Kind of response that the tables are made from.
            verify: Read files to their end, not only their footers.
        """
        self._archive.report_missing()
        return self._archive.stale(view, verify=verify)

    def rebuild_tables(self, *, verify: bool = False, workers: int | None = None, progress: bool = True) -> int:
        """Rebuild missing, damaged and outdated tables from the payloads, on all cores and without a request.

        Reads also rebuild the tables that they need, so calling this method is optional. It also removes the rows of
        transcripts whose payload file was deleted, which other programs that read the files still see.

        Args:
            verify: Read every file to its end, which finds damage that its footer does not show.
            workers: Number of processes. None (default): one per core.
            progress: Show a progress bar.

        Returns:
            The number of payloads with rebuilt tables.

        Raises:
            CorpusError: A payload is damaged (raised after all others are done), or the disk cannot be written.
            OptionError: `workers` is not a whole number of at least 1.
        """
        self._archive.report_missing()
        processes = None if workers is None else checked("workers", workers, Integer(1))
        return rebuild(self._archive, processes, verify=verify, progress=progress)

    def rebuild_ledger(self) -> int:
        """Rebuild the ledger from the records stored with each submission and each payload.

        Every method that sends a request does this itself if the ledger is missing or damaged. A damaged ledger is kept
        beside the new one. Recordings that were planned but not submitted have no record; submit them again. Metadata
        is restored as it was at submission, unless the old ledger can be read.

        Returns:
            The number of restored jobs; 0 if the ledger was complete.

        Raises:
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self._archive.path):
            return self._ledger.rebuild()

    def verify(self) -> list[str]:
        """Read every file of the corpus: payloads, tables, records, catalog and indexes.

        Returns:
            What is missing or damaged, each with what to do about it. An empty list: every read works.

        Example:
            >>> import voxframe
            >>> problems = voxframe.Corpus().raw.verify()
        """
        with clear_errors(self._archive.path):
            return [*problems(self._archive)]

    def captions(
        self,
        transcript_id: str,
        format: Literal["srt", "vtt"] = "srt",  # noqa: A002 - the interface's word
        *,
        chars_per_caption: int | None = None,
        client: Client | None = None,
        refresh: bool = False,
    ) -> str:
        """Return the captions made by the service, cached. `Corpus.export` makes captions with speaker names.

        Args:
            transcript_id: Id of a transcript in the corpus, or the name of its recording.
            format: "srt" or "vtt".
            chars_per_caption: Maximum number of characters of a caption. None (default): the service decides.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            refresh: Send the request even if the response is cached.

        Raises:
            OptionError: The format or the number is invalid.
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            ServiceError: The service is unavailable or refused the request.
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        request = {"view": "captions", "format": format, "chars_per_caption": chars_per_caption}

        def ask(client: Client) -> bytes:
            return client.subtitles(transcript_id, format, chars_per_caption=chars_per_caption).encode()

        return self._view(transcript_id, request, ask, client, refresh).decode()

    def word_search(
        self,
        transcript_id: str,
        terms: api.Term | Iterable[api.Term],
        *,
        client: Client | None = None,
        refresh: bool = False,
    ) -> api.WordSearchMatches:
        """Return the matches of the service's word search. The response is cached. `Corpus.search` needs no service.

        Args:
            transcript_id: Id of a transcript in the corpus, or the name of its recording.
            terms: Words and phrases, as for `Client.word_search`.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            refresh: Send the request even if the response is cached.

        Raises:
            OptionError: A phrase is empty or too long; nothing was sent.
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            ServiceError: The service is unavailable or refused the request.
        """
        checked = api.check_terms(terms)
        transcript_id = self._archive.recordings.id(transcript_id)
        request = {"view": "word-search", "words": checked}
        raw = self._view(
            transcript_id, request, lambda client: client.word_search(transcript_id, checked).raw, client, refresh
        )
        return api.word_search_result(transcript_id, orjson.loads(raw), raw)

    def redacted_audio(self, transcript_id: str, *, client: Client | None = None, refresh: bool = False) -> Path:
        """Download the recording with personal data beeped out. Later calls return the stored file.

        Args:
            transcript_id: Id of a transcript made with `redact_pii=True, redact_pii_audio=True`, or the name of its
                recording.
            client: The service. None (default): the one used last, otherwise that of `voxframe.connect()`.
            refresh: Download the recording even if it is stored.

        Returns:
            Path of the file in `redacted/` in the corpus; `Corpus.forget` deletes it.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            ServiceError: Redacted audio was not requested, has expired, or cannot be downloaded.
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        self._there(transcript_id)
        folder = self._archive.path / "redacted"
        with clear_errors(self._archive.path), self._ledger.lock(f"redacted-{file_name(transcript_id)}"):
            request = {"transcript_id": transcript_id, "view": "redacted-audio"}
            key = cache_key(request)
            audio = self._archive.store.redacted_audio(transcript_id)
            if audio and not refresh:
                cached = self._ledger.answer(key)
                if cached is None or cached.content == _hash(audio[0]):
                    return audio[0]
                warnings.warn(f"{audio[0]} is damaged and is fetched again", CorpusWarning, stacklevel=2)
            copy = self._default_client.use(client).redacted_audio(transcript_id)
            beginning = self._archive.store.redacted_download(transcript_id)
            make_folder(folder)
            beginning.mkdir(exist_ok=True)
            fetched = copy.save(beginning)
            path, content = folder / f"{file_name(transcript_id)}{fetched.suffix}", _hash(fetched)
            try:
                with self._archive.kept(transcript_id):
                    self._ledger.keep_answer(key, request, content, transcript_id=transcript_id)
                    for old in audio:  # it may have another suffix, and would be taken for the new one
                        old.unlink(missing_ok=True)
                    fetched.replace(path)
            except MissingTranscriptError:
                shutil.rmtree(beginning, ignore_errors=True)
                raise
            shutil.rmtree(beginning, ignore_errors=True)
            return path

    def _view(
        self,
        transcript_id: str,
        request: dict[str, Any],
        ask: Callable[[Client], bytes],
        client: Client | None,
        refresh: bool,
    ) -> bytes:
        self._there(transcript_id)
        asked = {
            "transcript_id": transcript_id,
            "content": self._archive.store.content(transcript_id, "transcript"),
            **request,
        }
        key = cache_key(asked)
        with clear_errors(self._archive.path):
            cached = None if refresh else self._ledger.answer(key)
            if cached is not None:
                return cached.content
            content = ask(self._default_client.use(client))
            with self._archive.kept(transcript_id):
                self._ledger.keep_answer(key, asked, content, transcript_id=transcript_id)
        return content

    def _there(self, transcript_id: str) -> None:
        if not self._archive.is_finished(transcript_id):
            near = self._archive.similar(transcript_id)
            raise CorpusError(
                f"the corpus {self._archive.path} has no finished transcript {transcript_id!r}{near}; "
                "Corpus.ids() lists them"
            )


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode()


_REBUILD = "`voxframe doctor --rebuild-ledger` makes {} again from records/ and raw/"


def problems(archive: Archive) -> Iterator[str]:
    """Yield what is missing or damaged in a corpus, each with what to do about it."""
    if not archive.path.is_dir():
        return
    catalog = archive.catalog
    if not catalog.is_sound():
        yield f"{catalog.path} is missing or damaged; {_REBUILD.format('it')}"
        return
    if bad := catalog.bad_rows():
        rows = quantity(sum(map(len, bad.values())), "row")
        yield f"{rows} of {catalog.path} ({', '.join(bad)}) had a wrong checksum; {_REBUILD.format('them')}"
    yield from _records(archive)
    for view in get_args(View):
        yield from _payloads(archive, view)
        yield from _tables(archive, view)
    for part, kind, name in catalog.rows("SELECT part, parts.kind, name FROM parts JOIN layouts USING (part)"):
        if "+" in kind or kind == "edited":
            with contextlib.suppress(PartReplacedError):
                try:
                    archive.files.path(part, name)
                except PartDamagedError as error:
                    yield f"{error}; the next read makes it again"
    yield from _indexes(archive)
    for path in archive.path.glob("snapshots/v=*"):
        try:
            open_snapshot(path).verify()
        except CorpusError as error:
            yield str(error)


def _records(archive: Archive) -> Iterator[str]:
    records = archive.catalog.records
    sizes = records.sizes()
    for name, size in archive.catalog.rows("SELECT file, bytes FROM log"):
        if sizes.get(name, 0) < size:
            yield (
                f"{records.folder / name} is missing or was cut: only the catalog has what was in it; restore it "
                "from a backup"
            )
    for name in sizes:
        path = records.folder / name
        try:
            lines = read_file(path).split(b"\n")
        except CorpusError as error:
            yield str(error)
            continue
        bad = 0
        for line in filter(None, lines):
            try:
                decoded(line)
            except (ValueError, KeyError, TypeError, AttributeError):
                bad += 1
        if bad:
            yield (
                f"{path} has {quantity(bad, 'damaged record')}, which a rebuilt catalog would lack: restore it from a "
                "backup, or set what is missing again"
            )


def _payloads(archive: Archive, view: View) -> Iterator[str]:
    for stem in sorted(archive.store.listing(view)):
        transcript_id = archive.store.id_of(stem)
        try:
            archive.make(transcript_id, view)
        except (CorpusError, PayloadError, OSError) as error:
            yield f"{transcript_id!r}: {error}"


def _tables(archive: Archive, view: View) -> Iterator[str]:
    gone = archive.orphans(view)
    for transcript_id in sorted(gone):
        yield (
            f"the payload ({view}) of {transcript_id!r} is gone: restore it from a backup, get it again with "
            f"Corpus.sync() if it was submitted from here, or delete the rest with Corpus.forget({transcript_id!r})"
        )
    with warnings.catch_warnings(record=True) as caught, clear_errors(archive.path):
        warnings.simplefilter("always")
        stale = [i for i in archive.stale(view, verify=True) if i not in gone]
    yield from (str(warning.message) for warning in caught)
    if stale:
        yield (
            f"the tables of {quantity(len(stale), 'transcript')}, such as {stale[0]!r}, are missing or damaged; "
            "Corpus.raw.rebuild_tables() makes them again, and so does the next read"
        )


def _indexes(archive: Archive) -> Iterator[str]:
    for path in sorted(archive.path.glob("search/*.arrow")):
        with contextlib.suppress(FileNotFoundError):
            try:
                is_damaged = path.name[:8] != f"{zlib.crc32(read_file(path)):08x}"
            except CorpusError:
                is_damaged = True
            if is_damaged:
                yield f"{path} is damaged; the next search makes it again, or delete the folder {path.parent}"
    for path in sorted(archive.path.glob("meaning/*.parquet")):
        try:
            pq.ParquetFile(path, page_checksum_verification=True).read()
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError) as error:
            yield f"{path} is damaged ({str(error).splitlines()[0]}); delete it, the next search makes it again"
