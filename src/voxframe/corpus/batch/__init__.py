"""Batches of recordings: planned, submitted, fetched and deleted.

Every step is in the ledger before it is taken, so that a batch can be interrupted at any time and repeated.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import warnings
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack, get_args

import pandas as pd

from voxframe._files import private_folder
from voxframe.client.progress import Progress
from voxframe.client.waiting import interval
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.batch.media import UNREADABLE, Recordings, expand, identify, one_source
from voxframe.corpus.batch.plan import TO_SEND, Plan, make_plan
from voxframe.corpus.batch.reconcile import find_lost_jobs
from voxframe.corpus.batch.submit import BatchResult, Sender, count, read_again, send_all, store_plan
from voxframe.corpus.batch.sync import CONCURRENCY, Adoption, Fetching, keep
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, run_in_threads
from voxframe.corpus.catalog import FORGOTTEN, clear_errors
from voxframe.corpus.importing import Added, Payloads, add_payloads
from voxframe.corpus.job import LOST, PENDING, Job, State, new_job
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.metadata import jobs_frame
from voxframe.corpus.search import Search
from voxframe.corpus.services import EMBEDDED, DefaultClient, ReadsElsewhere, service_name
from voxframe.corpus.snapshots import Snapshots, snapshots_with
from voxframe.errors import CorpusError, CorpusWarning, NotFoundError, OptionError, ServiceError
from voxframe.options import TranscriptOptions as Options
from voxframe.options import check
from voxframe.validators import Boolean, Integer, checked, name_list, shown

if TYPE_CHECKING:
    from voxframe.client import Client


class Batch:
    """Operations on many recordings: plan, submit, fetch, add and delete. `Corpus` describes the methods.

    Args:
        archive: Stores the payloads.
        ledger: The jobs.
        search: The search index, from which `forget` removes the words.
        people: The people, from which `forget` removes those of the transcript.
        snapshots: The snapshots, which `forget` does not change.
        default_client: The client to use if none is passed.
    """

    def __init__(
        self,
        archive: Archive,
        ledger: Ledger,
        search: Search,
        snapshots: Snapshots,
        default_client: DefaultClient,
    ) -> None:
        self._archive, self._ledger, self._search, self._snapshots = archive, ledger, search, snapshots
        self._default_client = default_client

    def overview(self) -> dict[str, str]:
        """Return the path of the corpus, and the counts of its transcripts and jobs if they can be read."""
        path = {"corpus": str(self._archive.path)}
        try:
            jobs, transcripts = self._ledger.jobs(), len(self._archive.ids())
        except (OSError, CorpusError, sqlite3.Error):
            return path
        states = Counter(job.state for job in jobs)
        hours = sum(job.audio_duration_s or 0 for job in jobs if job.state == "completed") / 3600
        return path | {
            "transcripts": f"{transcripts:,}",
            "jobs": ", ".join(f"{count:,} {state}" for state, count in states.most_common()),
            "completed": f"{hours:.2g} hours of audio" if hours else "",
        }

    def plan(self, sources: Recordings, client: Client | None, progress: bool | None, options: Options) -> Plan:
        """Return what `submit` would do, without sending a request."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            service, body = self._default_client.service_name(client), check(**options)
            return make_plan(self._ledger, expand(sources), body, service, measure=True, progress=progress)

    def submit(
        self, sources: Recordings, client: Client | None, concurrency: int, progress: bool | None, options: Options
    ) -> BatchResult:
        """Send the recordings that were not sent before, and add all of them to the ledger."""
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
            wanted = [(step.job, step.source, body) for step in plan.steps if step.verdict in verdicts]
            sent = send_all(ledger, client, wanted, concurrency=concurrency, progress=progress, states=states)
            keys = {step.job.key for step in plan.steps}
            counts = count(job for job in ledger.jobs(plan.service) if job.key in keys)
            return replace(counts, sent=sent, known=plan.known, adopted=adopted)

    def retry(
        self,
        failed: bool,
        uncertain: bool,
        keys: Collection[str] | None,
        client: Client | None,
        concurrency: int,
        progress: bool | None,
    ) -> BatchResult:
        """Send the jobs that were not sent yet, and on request those that failed or are uncertain."""
        checked("failed", failed, Boolean())
        checked("uncertain", uncertain, Boolean())
        self._archive.report_missing()
        with clear_errors(self._archive.path):
            self._ledger.restore()
            concurrency = checked("concurrency", concurrency, Integer(1))
            ledger, client = self._ledger, self._default_client.use(client)
            if keys is not None:
                keys, known = name_list(keys, "keys of jobs"), {job.key for job in ledger.jobs()}
                for key in keys:
                    if not isinstance(key, str) or key not in known:
                        raise OptionError(f"there is no job with the key {shown(key)}; Corpus.jobs() lists the keys")
                keys = set(keys)
            adopted = find_lost_jobs(ledger, client)
            states: tuple[State, ...] = PENDING
            if failed:
                states += ("error",)
            if uncertain:
                states += ("uncertain",)
            service = service_name(client)
            wanted = []
            for job in ledger.jobs(service, states):
                if keys is not None and job.key not in keys:
                    continue
                if job.media.startswith(UNREADABLE):
                    wanted += read_again(ledger, job)
                else:
                    wanted.append((job, job.source, json.loads(job.options)))
            sent = send_all(ledger, client, wanted, concurrency=concurrency, progress=progress, states=states)
            return replace(count(ledger.jobs(service)), sent=sent, adopted=adopted)

    def sync(self, client: Client | None, wait: bool, concurrency: int, progress: bool | None) -> BatchResult:
        """Fetch the transcripts that the service has finished."""
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

    def adopt(self, client: Client | None, progress: bool | None) -> BatchResult:
        """Fetch every transcript of the service that the corpus does not have, except failed and deleted ones."""
        with clear_errors(self._archive.path):
            self._ledger.restore()
            client = self._default_client.use(client)
            found = find_lost_jobs(self._ledger, client)
            adoption = Adoption(self._archive, self._ledger, client)
            wanted = list(adoption.throttle.retry(adoption.unknown))
            with Progress("adopting", jobs=len(wanted), show=progress) as bar, self._archive.batch() as batch:
                take = partial(adoption.take, batch)
                run_in_threads(wanted, take, threads=CONCURRENCY, stop=adoption.stop, done=lambda: bar.advance(1))
            refused = adoption.refused
            if refused:
                warnings.warn(
                    f"{len(refused)} of {len(wanted)} transcripts could not be fetched, such as {next(iter(refused))}: "
                    f"{next(iter(refused.values()))}. Call adopt() again to retry them",
                    CorpusWarning,
                    stacklevel=3,
                )
            counts = count(self._ledger.jobs(adoption.service))
            return replace(counts, adopted=found + adoption.adopted, fetched=adoption.fetched, failed=len(refused))

    def add(self, sources: Payloads, replace: bool, progress: bool | None) -> Added:
        """Add stored payloads."""
        checked("replace", replace, Boolean())
        with clear_errors(self._archive.path):
            return add_payloads(self._archive, sources, replace=replace, progress=progress)

    def jobs(self) -> pd.DataFrame:
        """Return the jobs as the table `jobs` with their metadata."""
        with clear_errors(self._archive.path):
            return jobs_frame(self._ledger.jobs())

    def known_id(self, transcript_id: str) -> str:
        """Return the id of a transcript or job of which anything is left, given the id or the name of its recording."""
        with clear_errors(self._archive.path):
            found = self._archive.recordings.id(transcript_id)
            places = (self._archive.has_left, self._search.has)
            if not any([has(found) for has in places]):  # noqa: C419  each reports a symbolic link
                raise self._archive.missing(found)
        return found

    @in_session
    def forget(self, transcript_id: str, remote: bool, client: Client | None) -> None:
        """Delete a transcript in an order in which a call that fails can be repeated."""
        checked("remote", remote, Boolean())
        transcript_id = self.known_id(transcript_id)
        with clear_errors(self._archive.path):
            jobs = self._ledger.of_transcript(transcript_id)
            if remote:
                self._forget_remote(transcript_id, {job.service for job in jobs}, self._default_client.use(client))
            self._ledger.drop_jobs(transcript_id)
            self._archive.remove(transcript_id)
            self._search.purge(transcript_id)
            self._archive.catalog.forget(transcript_id, FORGOTTEN)
            if left := snapshots_with(self._snapshots, transcript_id):
                warnings.warn(
                    f"transcript {transcript_id!r} is deleted from the corpus, but snapshots still contain it: "
                    f"{', '.join(map(str, left))}. Delete these directories to remove it completely",
                    CorpusWarning,
                    stacklevel=3,
                )

    def _forget_remote(self, transcript_id: str, services: set[str], client: Client) -> None:
        """Delete a transcript at the service, with the language-model responses about it."""
        service = service_name(client)
        if others := services - {service}:
            raise CorpusError(
                f"transcript {transcript_id!r} is at {', '.join(sorted(others))}, not at {service}; pass a client of "
                "that service, or remote=False to delete it from the corpus only"
            )
        for request_id in self._ledger.requests(service, transcript_id):
            with suppress(NotFoundError):
                client.purge(request_id)
            self._ledger.drop_request(request_id, service)
        with suppress(NotFoundError):  # deleted at the service before
            client.delete(transcript_id)

    def transcribe(self, audio: str | os.PathLike[str], client: Client | None, force: bool, options: Options) -> str:
        """Send a recording, or find its earlier job, and wait for the transcript. Return its id."""
        checked("force", force, Boolean())
        with clear_errors(self._archive.path):
            self._ledger.restore()
            ledger, source = self._ledger, one_source(audio)
            job = planned(ledger, source, self._default_client.service_name(client), **options)
            client = self._default_client.use(client)
            sent = self._send(client, job, source, force, options)
            if sent.state == "completed" and self._archive.is_finished(str(sent.transcript_id)):
                return str(sent.transcript_id)
            try:
                handle = client.wait(str(sent.transcript_id))
            except NotFoundError:  # the service lost or deleted the job of an earlier process
                if job.service != EMBEDDED:
                    raise CorpusError(
                        f"{job.source} was sent to {job.service} before, as {sent.transcript_id}, which no longer "
                        "exists there. force=True sends it again, which a hosted service charges for"
                    ) from None
                sent = self._send(client, job, source, True, options)
                handle = client.wait(str(sent.transcript_id))
            keep(self._archive, ledger, sent, handle)
            return handle.id

    def _send(self, client: Client, job: Job, source: str, force: bool, options: Options) -> Job:
        states: tuple[State, ...] = (*PENDING, "error")
        known = self._ledger.find(job.key)
        if known is not None and known.state in LOST and not force:
            find_lost_jobs(self._ledger, client)
        if force:
            states = get_args(State)
        elif job.service == EMBEDDED:  # charges nothing
            states += LOST
        stop = threading.Event()
        sender = Sender(self._ledger, client, AdaptiveThrottle(1, stop), stop)
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
        self, audio: str | os.PathLike[str], client: Client | None = None, **options: Unpack[Options]
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
    known: dict[str, float] = {}
    with suppress(ServiceError):
        known = client.progress()
    shares = [known.get(job.transcript_id or "") for job in pending]
    queued = shares.count(0.0)
    state = f", {len(shares) - queued} in progress, {queued} queued" if known else ""
    return sum(share or 0.0 for share in shares), state


def planned(ledger: Ledger, audio: str | os.PathLike[str], service: str, **options: Unpack[Options]) -> Job:
    """Return the job of a recording that is not sent yet."""
    body, source = check(**options), one_source(audio)
    return new_job(source, identify(source, ledger).identity, body, service)
