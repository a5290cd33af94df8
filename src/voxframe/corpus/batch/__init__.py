"""Batches of recordings: planned, submitted, fetched and deleted.

Every step is in the ledger before it is taken, so that a batch can be interrupted at any time and repeated.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, get_args

import pandas as pd

from voxframe._files import private_folder
from voxframe._progress import Progress
from voxframe.client.async_bridge import interval
from voxframe.client.transcript import Transcript
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.batch.submit import (
    TO_SEND,
    BatchResult,
    Plan,
    Sender,
    count,
    make_plan,
    read_again,
    send_all,
    store_plan,
)
from voxframe.corpus.batch.sync import CONCURRENCY, Adoption, Fetching, find_lost_jobs, keep
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, run_in_threads
from voxframe.corpus.catalog import FORGOTTEN, clear_errors
from voxframe.corpus.importing import Added, Payloads, add_payloads
from voxframe.corpus.job import LOST, PENDING, Job, State, new_job
from voxframe.corpus.ledger import EMBEDDED, DefaultClient, Ledger, ReadsElsewhere, service_name
from voxframe.corpus.media import UNREADABLE, Recordings, expand, identify, one_source
from voxframe.corpus.metadata import jobs_frame
from voxframe.corpus.search import Search
from voxframe.corpus.snapshots import Snapshots, snapshots_with
from voxframe.errors import CorpusError, CorpusWarning, NotFoundError, OptionError, ServiceError
from voxframe.options import TranscriptOptions, check, takes_options
from voxframe.validators import Boolean, Integer, checked, name_list, shown

if TYPE_CHECKING:
    from voxframe.client import Client


class Batch:
    """Operations on many recordings: plan, submit, fetch, add and delete."""

    def __init__(self, archive: Archive, search: Search, default_client: DefaultClient) -> None:
        self._archive, self._ledger, self._search = archive, archive.ledger, search
        self._default_client = default_client

    def overview(self) -> dict[str, str]:
        """Return the path of the corpus, and the counts of its transcripts and jobs if they can be read."""
        path = {"corpus": str(self._archive.path)}
        try:
            jobs, transcripts = self._ledger.jobs(), len(self._archive.ids())
        except (OSError, CorpusError):
            return path
        states = Counter(job.state for job in jobs)
        hours = sum(job.audio_duration_s or 0 for job in jobs if job.state == "completed") / 3600
        return path | {
            "transcripts": f"{transcripts:,}",
            "jobs": ", ".join(f"{count:,} {state}" for state, count in states.most_common()),
            "completed": f"{hours:.2g} hours of audio" if hours else "",
        }

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
        with clear_errors(self._archive.path):
            self._ledger.restore()
            service, body = self._default_client.service_name(client), check(**options)
            return make_plan(self._ledger, expand(sources), body, service, measure=True, progress=progress)

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
        with clear_errors(self._archive.path):
            self._ledger.restore()
            body, recordings = check(**options), expand(sources)
            concurrency = checked("concurrency", concurrency, Integer(1))
            ledger, client = self._ledger, self._default_client.use(client)
            if isinstance(client, ReadsElsewhere):
                private_folder(self._archive.path)  # nothing is remembered in a corpus that does not exist
                client.hash_recordings([recording.source for recording in recordings], ledger)
            plan = make_plan(ledger, recordings, body, service_name(client), measure=False, progress=progress)
            adopted = find_lost_jobs(ledger, client)
            if adopted:
                plan = make_plan(ledger, recordings, body, plan.service, measure=False, progress=False)
            store_plan(ledger, plan)
            verdicts, states = TO_SEND, PENDING
            if plan.service == EMBEDDED:  # charges nothing
                verdicts, states = (*TO_SEND, "uncertain"), (*PENDING, *LOST)
            items = [(step.job, step.source, body) for step in plan.steps if step.verdict in verdicts]
            sent = send_all(ledger, client, items, concurrency=concurrency, progress=progress, states=states)
            keys = {step.job.key for step in plan.steps}
            counts = count(job for job in ledger.jobs(plan.service) if job.key in keys)
            return replace(counts, sent=sent, known=plan.known, adopted=adopted)

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
        checked("failed", failed, Boolean())
        checked("uncertain", uncertain, Boolean())
        self._archive.report_missing()
        with clear_errors(self._archive.path):
            self._ledger.restore()
            concurrency = checked("concurrency", concurrency, Integer(1))
            ledger, client = self._ledger, self._default_client.use(client)
            if keys is not None:
                keys, job_keys = name_list(keys, "keys of jobs"), {job.key for job in ledger.jobs()}
                for key in keys:
                    if not isinstance(key, str) or key not in job_keys:
                        raise OptionError(f"there is no job with the key {shown(key)}; Corpus.jobs() lists the keys")
                keys = set(keys)
            adopted = find_lost_jobs(ledger, client)
            states: tuple[State, ...] = PENDING
            if failed:
                states += ("error",)
            if uncertain:
                states += ("uncertain",)
            service = service_name(client)
            items = []
            for job in ledger.jobs(service, states):
                if keys is not None and job.key not in keys:
                    continue
                if job.media.startswith(UNREADABLE):
                    items += read_again(ledger, job)
                else:
                    items.append((job, job.source, json.loads(job.options)))
            sent = send_all(ledger, client, items, concurrency=concurrency, progress=progress, states=states)
            return replace(count(ledger.jobs(service)), sent=sent, adopted=adopted)

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
        checked("wait", wait, Boolean())
        self._archive.report_missing()
        with clear_errors(self._archive.path):
            self._ledger.restore()
            concurrency = checked("concurrency", concurrency, Integer(1))
            client = self._default_client.use(client)
            adopted = find_lost_jobs(self._ledger, client)
            fetching = Fetching(self._archive, self._ledger, client, concurrency)
            waited_s = 0.0
            total = len(fetching.pending())
            with Progress("transcribing", jobs=total, shares=True, show=progress) as bar:
                while pending := fetching.pending():
                    with self._archive.batch() as batch:
                        run_in_threads(
                            fetching.finished(pending),
                            partial(fetching.fetch, batch),
                            threads=concurrency,
                            stop=fetching.stop,
                            done=lambda: bar.move(fetching.ended),
                        )
                    if not wait or not fetching.pending():
                        break
                    if bar.shown:
                        shares, state = _shares(client, fetching.pending())
                        bar.move(fetching.ended + shares, f"{fetching.ended} of {total} fetched{state}")
                    pause_s = interval(waited_s, local=client.is_local)
                    time.sleep(pause_s)
                    waited_s += pause_s
            counts = count(self._ledger.jobs(fetching.service))
            fetched = fetching.ended - fetching.failed
            return replace(counts, adopted=adopted, fetched=fetched, failed=fetching.failed)

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
        with clear_errors(self._archive.path):
            self._ledger.restore()
            client = self._default_client.use(client)
            lost = find_lost_jobs(self._ledger, client)
            adoption = Adoption(self._archive, self._ledger, client)
            items = list(adoption.throttle.retry(adoption.unknown))
            with Progress("adopting", jobs=len(items), show=progress) as bar, self._archive.batch() as batch:
                take = partial(adoption.take, batch)
                run_in_threads(items, take, threads=CONCURRENCY, stop=adoption.stop, done=lambda: bar.advance(1))
            refused = adoption.refused
            if refused:
                warnings.warn(
                    f"{len(refused)} of {len(items)} transcripts could not be fetched, such as {next(iter(refused))}: "
                    f"{next(iter(refused.values()))}. Call adopt() again to retry them",
                    CorpusWarning,
                    stacklevel=3,
                )
            counts = count(self._ledger.jobs(adoption.service))
            return replace(counts, adopted=lost + adoption.adopted, fetched=adoption.fetched, failed=len(refused))

    def add(self, sources: Payloads, *, replace: bool = False, progress: bool | None = None) -> Added:
        """Add transcripts from payload files or from memory.

        Args:
            sources: A path, a folder, a pattern (`"old_payloads/*.json"`), a payload as a dict or JSON bytes, a
                transcript of a client, or an iterable of these. Files end in `.json`, `.jsonl` or `.ndjson`, optionally
                followed by `.gz` or `.zst`, or in `.zip`. A file holds one payload, a list of payloads or JSON lines. A
                payload is a transcript or its sentences or paragraphs export, also in an envelope such as
                `{"data": {...}}`. Files of other engines and formats (see `voxframe.importers`) are converted and kept.
            replace: Replace a different payload that is stored under the same id.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            Counts of added and known payloads, and the name and reason of each payload that was left out. A payload is
            left out if it is damaged, is not a transcript, has no id, or has the status "queued" or "processing".

        Raises:
            PayloadError: A path or a pattern matches no file.
            CorpusError: The corpus cannot be written.
        """
        checked("replace", replace, Boolean())
        with clear_errors(self._archive.path):
            return add_payloads(self._archive, sources, replace=replace, progress=progress)

    def jobs(self) -> pd.DataFrame:
        """Return the jobs as the table `jobs` with their metadata."""
        return jobs_frame(self._ledger.jobs())

    def known_id(self, transcript_id: str) -> str:
        """Return the id of a transcript or job of which anything is left, given the id or the name of its recording."""
        with clear_errors(self._archive.path):
            transcript_id = self._archive.recordings.id(transcript_id)
            places = (self._archive.has_left, self._search.has)
            if not any([has(transcript_id) for has in places]):  # noqa: C419  each reports a symbolic link
                raise self._archive.missing(transcript_id)
        return transcript_id

    @in_session
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
        checked("remote", remote, Boolean())
        transcript_id = self.known_id(transcript_id)
        with clear_errors(self._archive.path):
            jobs = self._ledger.of_transcript(transcript_id)
            if remote:
                self._forget_remote(transcript_id, {job.service for job in jobs}, self._default_client.use(client))
            for job in jobs:
                if Path(job.source).parent == Path(self._archive.path, "live").absolute():  # of a LiveTranscript
                    Path(job.source).unlink(missing_ok=True)
            self._ledger.drop_jobs(transcript_id)
            self._archive.remove(transcript_id)
            self._search.purge(transcript_id)
            self._archive.catalog.forget(transcript_id, FORGOTTEN)
            if remaining := snapshots_with(Snapshots(self._archive), transcript_id):
                warnings.warn(
                    f"transcript {transcript_id!r} is deleted from the corpus, but snapshots still contain it: "
                    f"{', '.join(map(str, remaining))}. Delete these directories to remove it completely",
                    CorpusWarning,
                    stacklevel=3,
                )

    def _forget_remote(self, transcript_id: str, services: set[str], client: Client) -> None:
        """Delete a transcript at the service, with the language-model responses about it."""
        service = service_name(client)
        if places := services - {service}:
            raise CorpusError(
                f"transcript {transcript_id!r} is at {', '.join(sorted(places))}, not at {service}; pass a client of "
                "that service, or remote=False to delete it from the corpus only"
            )
        for request_id in self._ledger.requests(service, transcript_id):
            with suppress(NotFoundError):
                client.purge(request_id)
            self._ledger.drop_request(request_id, service)
        with suppress(NotFoundError):  # deleted at the service before
            client.delete(transcript_id)

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
        job, handle = self.begin(audio, client, options, force=force)
        return (
            job.transcript_id or ""
            if handle is None
            else self.finish(job, self._default_client.use(client).wait(handle))
        )

    def begin(
        self,
        audio: str | os.PathLike[str],
        client: Client | None,
        options: TranscriptOptions,
        *,
        force: bool = False,
        progress: bool | None = False,
    ) -> tuple[Job, Transcript | None]:
        """Submit a recording unless it was submitted before; return its job, and a handle if it is not in the corpus.

        Args:
            progress: Of the upload: as for `Client.upload`.
        """
        checked("force", force, Boolean())
        with clear_errors(self._archive.path):
            self._ledger.restore()
            source = one_source(audio)
            job = planned(self._ledger, source, self._default_client.service_name(client), **options)
            client = self._default_client.use(client)
            before = self._ledger.find(job.key)
            sent = self._send(client, job, source, force, options, progress)
            if sent.state == "completed" and self._archive.is_finished(str(sent.transcript_id)):
                return sent, None
            if before is None or before.transcript_id != sent.transcript_id:
                return sent, Transcript(client.transport, str(sent.transcript_id))
            try:
                return sent, client.transcript(str(sent.transcript_id))
            except NotFoundError:  # the service lost or deleted the job of an earlier process
                if job.service != EMBEDDED:
                    raise CorpusError(
                        f"{job.source} was sent to {job.service} before, as {sent.transcript_id}, which no longer "
                        "exists there. force=True sends it again, which a hosted service charges for"
                    ) from None
                sent = self._send(client, job, source, True, options, progress)
                return sent, Transcript(client.transport, str(sent.transcript_id))

    def finish(self, job: Job, handle: Transcript) -> str:
        """Add the transcript of a job that has ended to the corpus, and return its id."""
        with clear_errors(self._archive.path):
            keep(self._archive, self._ledger, job, handle)
        return handle.id

    def _send(
        self,
        client: Client,
        job: Job,
        source: str,
        force: bool,
        options: TranscriptOptions,
        progress: bool | None,
    ) -> Job:
        states: tuple[State, ...] = (*PENDING, "error")
        stored = self._ledger.find(job.key)
        if stored is not None and stored.state in LOST and not force:
            find_lost_jobs(self._ledger, client)
        if force:
            states = get_args(State)
        elif job.service == EMBEDDED:  # charges nothing
            states += LOST
        stop = threading.Event()
        sender = Sender(self._ledger, client, AdaptiveThrottle(1, stop), stop, progress=progress)
        sent = sender.send(job, source, check(**options), states)
        if sent.state in LOST:
            raise CorpusError(
                f"{job.source} may have been sent to {job.service} before: the process ended or the connection dropped "
                "before the service returned an id, and its list does not show the job. sync() looks again. If "
                "client.list() does not show it either, force=True sends it again; if the service has it "
                "after all, it charges twice"
            )
        return sent

    def find_transcript(
        self, audio: str | os.PathLike[str], client: Client | None = None, **options: Unpack[TranscriptOptions]
    ) -> str | None:
        """Return the id of the completed transcript of a recording, or None, without a request. No client: embedded."""
        service = EMBEDDED if client is None else service_name(client)
        with clear_errors(self._archive.path):
            self._ledger.restore()
            job = self._ledger.find(planned(self._ledger, audio, service, **options).key)
        if job is None or job.state != "completed" or not self._archive.is_finished(str(job.transcript_id)):
            return None
        return job.transcript_id


def _shares(client: Client, pending: Collection[Job]) -> tuple[float, str]:
    """Return the progress of unfinished jobs, added up (1 for a whole job), and a text with their states."""
    progress: dict[str, float] = {}
    with suppress(ServiceError):
        progress = client.progress()
    shares = [progress.get(job.transcript_id or "") for job in pending]
    queued = shares.count(0.0)
    state = f", {len(shares) - queued} in progress, {queued} queued" if progress else ""
    return sum(share or 0.0 for share in shares), state


def planned(ledger: Ledger, audio: str | os.PathLike[str], service: str, **options: Unpack[TranscriptOptions]) -> Job:
    """Return the job of a recording that is not sent yet."""
    body, source = check(**options), one_source(audio)
    return new_job(source, identify(source, ledger).identity, body, service)
