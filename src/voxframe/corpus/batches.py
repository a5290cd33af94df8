"""The half of a corpus that has to do with a service: recordings sent, jobs followed, transcripts fetched."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import pandas as pd

from voxframe.corpus.about_values import jobs_frame
from voxframe.corpus.adopt import adopt, forget
from voxframe.corpus.disk import clear_errors
from voxframe.corpus.importing import Added, Payloads, add
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.outcome import Outcome
from voxframe.corpus.plan import Plan, make_plan
from voxframe.corpus.recordings import Recordings, expand
from voxframe.corpus.send import EMBEDDED, service_name
from voxframe.corpus.submit import CONCURRENCY, retry, submit
from voxframe.corpus.sync import sync
from voxframe.corpus.transcribe import planned, transcribe
from voxframe.options import TranscriptOptions as Options
from voxframe.options import check

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client
    from voxframe.service.llm_results import LlmResponse


class Batches:
    """Recordings on their way to a service and back, with a ledger of every step.

    Args:
        path: Directory of the corpus.

    Attributes:
        path: Directory of the corpus.
        ledger: What was asked for, sent and finished.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = Ledger(path / "ledger.sqlite")
        self._client: Client | None = None

    def plan(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        progress: bool | None = None,
        **options: Unpack[Options],
    ) -> Plan:
        """What `submit` would do, without asking any service: how many are new, known or failed, hours of audio.

        Args:
            sources: As for `submit`.
            client: The service it would be sent to; None is the one that `voxframe.connect()` would use.
            progress: Whether to show progress; None shows it where somebody looks, past a second.
            **options: Options of the jobs.

        Returns:
            Counts that print as a summary; its `table` has a row for each recording.

        Raises:
            OptionError: An option or a source is wrong.
            AudioError: A recording cannot be read.
        """
        with clear_errors(self.path):
            body = check(**options)
            service = service_name(client or self._client)
            return make_plan(self.ledger, expand(sources), body, service, measure=True, progress=progress)

    def submit(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Have many recordings transcribed, without waiting: those that were not sent before with these options.

        It can be stopped anywhere, by Ctrl-C, a crash or a power cut, and called again: nothing is sent twice. The same
        audio is known whatever its file is called; the same audio with other options is a new job. What failed is not
        sent again; `retry` does that. Where an answer is lost, the job is looked for in the service's list; where that
        decides nothing it is "uncertain", and sent again only by `retry(uncertain=True)`.

        Args:
            sources: A path, a folder, a pattern (`"calls/**/*.mp3"`), an http or https address, an address in a store
                that fsspec knows (`"s3://bucket/calls"`; extra `remote`, read once to know it again), an iterable of
                these, or a DataFrame with a column of them named audio, path, url, source, file or audio_url. Its other
                columns are kept as metadata, which `jobs` shows.
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            concurrency: Submissions under way at once, at most; fewer while the service says "too many requests".
            progress: Whether to show progress; None shows it where somebody looks, past a second.
            **options: Options of the jobs, as `Client.transcribe` takes them.

        Returns:
            What was done and what is left to do.

        Raises:
            OptionError: An option or a source is wrong; nothing was sent.
            AudioError: A recording cannot be read; nothing was sent.
            ServiceError: The service cannot be used at the moment; the rest is planned.
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            body = check(**options)
            recordings = expand(sources)
            return submit(
                self.ledger, self._service(client), recordings, body, concurrency=concurrency, progress=progress
            )

    def sync(self, *, client: Client | None = None, wait: bool = False, progress: bool | None = None) -> Outcome:
        """Bring into the corpus what has finished at the service. It can be stopped anywhere and called again.

        Args:
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            wait: Whether to go on until nothing is left at the service.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            What was done and what is left to do.

        Raises:
            ServiceError: The service cannot be used at the moment; what was fetched is kept.
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            return sync(self._corpus, self._service(client), wait=wait, progress=progress)

    def retry(
        self,
        *,
        failed: bool = False,
        uncertain: bool = False,
        keys: Collection[str] | None = None,
        client: Client | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> Outcome:
        """Go on with what was planned and not sent; where told to, send again what failed or is uncertain.

        Webhook settings are not kept, since they may hold a secret: jobs sent from here have none.

        Args:
            failed: Whether to send again what failed.
            uncertain: Whether to send again what may be at the service and was not found there, which a hosted service
                may charge for twice.
            keys: Only the submissions with these keys, as in `jobs`; None for all.
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            concurrency: Submissions under way at once, at most.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            What was done and what is left to do.

        Raises:
            ServiceError: The service cannot be used at the moment; the rest is planned.
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            return retry(
                self.ledger,
                self._service(client),
                failed=failed,
                uncertain=uncertain,
                keys=keys,
                concurrency=concurrency,
                progress=progress,
            )

    def adopt(self, client: Client | None = None, *, progress: bool | None = None) -> Outcome:
        """Bring in what the service already has: every transcript of this key that the corpus does not know of.

        Failed and deleted ones are left. What was made of a web address is then known to `submit` by that address and
        the options the service repeats; what was uploaded is known by its identifier only, since nothing tells what
        file it was.

        Args:
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            What was done and what is left to do.

        Raises:
            ServiceError: The service cannot be used at the moment; what was fetched is kept.
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            return adopt(self._corpus, self._service(client), progress=progress)

    def note_response(self, response: LlmResponse, *, client: Client | None = None) -> None:
        """Remember which transcripts a language-model answer is about, so that `forget` deletes it with them.

        Args:
            response: What `Client.summarize`, `ask`, `task` or `action_items` returned.
            client: The service it came from; None is the one used last, else that of `voxframe.connect()`.

        Raises:
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            service = service_name(client or self._client)
            self.ledger.note_request(response.request_id, service, response.transcript_ids)

    def forget(self, transcript_id: str, *, remote: bool = False, client: Client | None = None) -> None:
        """Delete a transcript: its payloads, its tables, its words in the search index, what the ledger knows.

        Submitting the same audio again makes a new job, which is paid for. Sealed versions are never changed: those
        that have it are named.

        Args:
            transcript_id: Its identifier.
            remote: Whether to delete it at the service, too, with the language-model answers about it that
                `note_response` was told of. That is done first: where it fails nothing is deleted here.
            client: The service; None is the one used last, else that of `voxframe.connect()`.

        Raises:
            CorpusError: It is not here, it is at another service, or the corpus cannot be written.
            ServiceError: The service did not delete it.

        Warns:
            CorpusWarning: Snapshots have it still.
        """
        with clear_errors(self.path):
            forget(self._corpus, transcript_id, self._service(client) if remote else None)

    def add(self, sources: Payloads, *, replace: bool = False, progress: bool | None = None) -> Added:
        """Bring in payloads that were kept elsewhere.

        Args:
            sources: `.json`, `.json.zst` and `.zip` files: a path, a pattern (`"old_payloads/*.json"`), a folder, or an
                iterable of these. A file holds a transcript, a list of transcripts, or a sentences or paragraphs export
                as the service answers it. Names in a zip are only shown, never used as paths.
            replace: Whether a payload replaces a different one that is here under the same identifier.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            How many were added, how many were here, and what was left out, with the reason.

        Raises:
            PayloadError: A path or a pattern leads to no file.
            CorpusError: The corpus cannot be written.
        """
        with clear_errors(self.path):
            return add(self._corpus, sources, replace=replace, progress=progress)

    def jobs(self) -> pd.DataFrame:
        """What was asked for, one row a submission, oldest first.

        Returns:
            A DataFrame with the columns of the table `jobs` (`voxframe.describe("jobs")`: state, attempts, error,
            seconds of audio, identifiers ...), and after them those of the metadata.
        """
        with clear_errors(self.path):
            return jobs_frame(self.ledger.jobs())

    def transcribe(
        self,
        client: Client,
        audio: str | os.PathLike[str],
        *,
        resend: bool = False,
        **options: Unpack[Options],
    ) -> str:
        """Have a recording transcribed, or find that it was: the same audio and options are not sent twice.

        What was begun and not finished, here or by a process that ended, is gone on with. Another process that is at
        the same recording is waited for.

        Args:
            client: The service; `voxframe.connect()` makes one.
            audio: Path of a file, or an http or https address.
            resend: Send it even where it was or may have been sent; a hosted service charges again.
            **options: Options of the job, as `Client.transcribe` takes them.

        Returns:
            Identifier of the transcript, which is in the corpus then; its status is "completed" or "error".

        Raises:
            OptionError: An option is wrong; nothing was sent.
            AudioError: The file cannot be read; nothing was sent.
            CorpusError: It may have been sent before and nobody knows, or the corpus cannot be written.
            ServiceError: The service, or the way to it, failed.
        """
        with clear_errors(self.path):
            job = planned(self.ledger, audio, service_name(client), **options)
            return transcribe(self._corpus, client, job, os.fspath(audio), resend=resend, **options)

    def known(
        self, audio: str | os.PathLike[str], client: Client | None = None, **options: Unpack[Options]
    ) -> str | None:
        """Identifier of the completed transcript of a recording with these options, or None where there is none here.

        Asks no service.

        Args:
            audio: Path of a file, or an http or https address.
            client: The service it would be sent to; None is the embedded one.
            **options: Options of the job.

        Raises:
            OptionError: An option is wrong.
            AudioError: The file cannot be read.
        """
        service = EMBEDDED if client is None else service_name(client)
        with clear_errors(self.path):
            job = self.ledger.find(planned(self.ledger, audio, service, **options).key)
        return job.transcript_id if job and job.state == "completed" and job.transcript_id in self._corpus else None

    @property
    def _corpus(self) -> Corpus:
        return cast("Corpus", self)

    def _service(self, client: Client | None) -> Client:
        """The client given, the one used last, or a new one."""
        from voxframe.service import connect

        self._client = client or self._client or connect()
        return self._client
