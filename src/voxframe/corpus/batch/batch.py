"""Batches of recordings: submitted, followed and fetched."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.batch_result import BatchResult
from voxframe.corpus.batch.import_remote import adopt, forget
from voxframe.corpus.batch.inputs import Recordings, expand
from voxframe.corpus.batch.plan import Plan, make_plan
from voxframe.corpus.batch.submission import EMBEDDED, service_name
from voxframe.corpus.batch.submit import CONCURRENCY, retry, submit
from voxframe.corpus.batch.sync import sync
from voxframe.corpus.batch.transcribe import planned, transcribe
from voxframe.corpus.default_client import DefaultClient
from voxframe.corpus.importing import Added, Payloads, add_payloads
from voxframe.corpus.io_errors import clear_errors
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.metadata_values import jobs_frame
from voxframe.corpus.search.search import Search
from voxframe.corpus.snapshots import Snapshots
from voxframe.options import TranscriptOptions as Options
from voxframe.options import check

if TYPE_CHECKING:
    from voxframe.client import Client


class Batch:
    """Recordings on their way to a service and back.

    Args:
        archive: Stores the payloads.
        ledger: The submissions.
        search: Its index holds words that `forget` deletes.
        snapshots: Sealed versions, which `forget` does not change.
        default_client: The client to use if none is passed.
    """

    def __init__(
        self, archive: Archive, ledger: Ledger, search: Search, snapshots: Snapshots, default_client: DefaultClient
    ) -> None:
        self._archive, self._ledger, self._search, self._snapshots = archive, ledger, search, snapshots
        self._default_client = default_client

    def plan(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        progress: bool | None = None,
        **options: Unpack[Options],
    ) -> Plan:
        """Return what `submit` would do; see `Corpus.plan`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            body = check(**options)
            service = self._default_client.service_name(client)
            return make_plan(self._ledger, expand(sources), body, service, measure=True, progress=progress)

    def submit(
        self,
        sources: Recordings,
        *,
        client: Client | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
        **options: Unpack[Options],
    ) -> BatchResult:
        """Submit the recordings that are new; see `Corpus.submit`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            body = check(**options)
            recordings = expand(sources)
            return submit(
                self._ledger,
                self._default_client.use(client),
                recordings,
                body,
                concurrency=concurrency,
                progress=progress,
            )

    def sync(self, *, client: Client | None = None, wait: bool = False, progress: bool | None = None) -> BatchResult:
        """Fetch the transcripts that have finished; see `Corpus.sync`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            return sync(self._archive, self._ledger, self._default_client.use(client), wait=wait, progress=progress)

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
        """Submit what was planned, and optionally what failed; see `Corpus.retry`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            return retry(
                self._ledger,
                self._default_client.use(client),
                failed=failed,
                uncertain=uncertain,
                keys=keys,
                concurrency=concurrency,
                progress=progress,
            )

    def adopt(self, client: Client | None = None, *, progress: bool | None = None) -> BatchResult:
        """Import the transcripts that the service has; see `Corpus.adopt`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            return adopt(self._archive, self._ledger, self._default_client.use(client), progress=progress)

    def forget(self, transcript_id: str, *, remote: bool = False, client: Client | None = None) -> None:
        """Delete a transcript; see `Corpus.forget`."""
        with clear_errors(self._archive.path):
            forget(
                self._archive,
                self._ledger,
                self._search.index,
                self._snapshots,
                transcript_id,
                self._default_client.use(client) if remote else None,
            )

    def add(self, sources: Payloads, *, replace: bool = False, progress: bool | None = None) -> Added:
        """Add stored payloads; see `Corpus.add`."""
        with clear_errors(self._archive.path):
            return add_payloads(self._archive, sources, replace=replace, progress=progress)

    def jobs(self) -> pd.DataFrame:
        """Return the submissions as a DataFrame; see `Corpus.jobs`."""
        with clear_errors(self._archive.path):
            return jobs_frame(self._ledger.jobs())

    def transcribe(
        self,
        client: Client,
        audio: str | os.PathLike[str],
        *,
        force: bool = False,
        **options: Unpack[Options],
    ) -> str:
        """Transcribe one recording and wait for it; see `Corpus.transcribe`."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            job = planned(self._ledger, audio, service_name(client), **options)
            return transcribe(self._archive, self._ledger, client, job, os.fspath(audio), force=force, **options)

    def find_transcript(
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
        with clear_errors(self._archive.path):
            self._ledger.restore()
            job = self._ledger.find(planned(self._ledger, audio, service, **options).key)
        return (
            job.transcript_id
            if job and job.state == "completed" and job.transcript_id and self._archive.is_finished(job.transcript_id)
            else None
        )
