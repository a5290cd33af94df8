"""Submit many recordings: plan all of them in the ledger, then send them in a few threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from voxframe.client.progress import Progress
from voxframe.corpus.batch.batch_result import BatchResult
from voxframe.corpus.batch.inputs import Recording
from voxframe.corpus.batch.media import UNREADABLE
from voxframe.corpus.batch.plan import TO_SEND, Plan, make_plan
from voxframe.corpus.batch.reconcile import reconcile
from voxframe.corpus.batch.submission import EMBEDDED, Sender, is_final, service_name
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, run_in_threads
from voxframe.corpus.job import LOST, PENDING, Job, State
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.metadata_values import metadata_from_json
from voxframe.errors import AudioError, OptionError, ServiceError

if TYPE_CHECKING:
    from voxframe.client import Client

#: A job, the path or URL of its recording, and its options as sent.
Item: TypeAlias = "tuple[Job, str, Mapping[str, Any]]"

#: Default number of concurrent submissions.
CONCURRENCY = 4
#: Consecutive lost responses that stop a batch, because each may leave a job to search for.
_LOST_IN_A_ROW = 8


def submit(
    ledger: Ledger,
    client: Client,
    recordings: Sequence[Recording],
    body: Mapping[str, Any],
    *,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> BatchResult:
    """Send recordings that were not sent before, and add all of them to the ledger.

    Args:
        ledger: The ledger.
        client: The service.
        recordings: The recordings.
        body: Options as returned by `voxframe.options.check`.
        concurrency: Maximum number of concurrent submissions.
        progress: Show a progress bar. None (default): only in an interactive session, after one second.

    Raises:
        OptionError: `concurrency` is invalid. Nothing was sent.
        AudioNotFoundError: A file does not exist. Nothing was sent.
        ServiceError: The service is unavailable. The remaining recordings are planned.
        KeyboardInterrupt: Ctrl-C was pressed. The remaining recordings are planned.
    """
    _check(concurrency)
    plan = make_plan(ledger, recordings, body, service_name(client), measure=False, progress=progress)
    adopted = reconcile(ledger, client)
    if adopted:
        plan = make_plan(ledger, recordings, body, plan.service, measure=False, progress=False)
    _note(ledger, plan)
    verdicts, states = TO_SEND, PENDING
    if plan.service == EMBEDDED:  # charges nothing
        verdicts, states = (*TO_SEND, "uncertain"), (*PENDING, *LOST)
    wanted = [(step.job, step.source, body) for step in plan.steps if step.verdict in verdicts]
    sent = send_all(ledger, client, wanted, concurrency=concurrency, progress=progress, states=states)
    keys = {step.job.key for step in plan.steps}
    counts = count(job for job in ledger.jobs(plan.service) if job.key in keys)
    return replace(counts, sent=sent, known=plan.known, adopted=adopted)


def retry(
    ledger: Ledger,
    client: Client,
    *,
    failed: bool,
    uncertain: bool,
    keys: Collection[str] | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> BatchResult:
    """Send recordings of the ledger that were not sent yet, and on request those that failed or are uncertain.

    Args:
        ledger: The ledger.
        client: The service.
        failed: Send failed jobs again.
        uncertain: Send jobs again that the service may have but does not list.
        keys: Keys of the jobs to send. None (default): all.
        concurrency: Maximum number of concurrent submissions.
        progress: Show a progress bar. None (default): only in an interactive session, after one second.

    Raises:
        OptionError: A key is unknown.
        ServiceError: The service is unavailable.
        KeyboardInterrupt: Ctrl-C was pressed. The remaining recordings are planned.
    """
    _check(concurrency)
    wanted_keys = None if keys is None else {keys} if isinstance(keys, str) else set(keys)
    if unknown := sorted(wanted_keys - {job.key for job in ledger.jobs()} if wanted_keys else ()):
        raise OptionError(f"there is no submission with the key {unknown[0]!r}; Corpus.jobs() has a column of them")
    adopted = reconcile(ledger, client)
    states: tuple[State, ...] = PENDING
    if failed:
        states += ("error",)
    if uncertain:
        states += ("uncertain",)
    service = service_name(client)
    jobs = [job for job in ledger.jobs(service, states) if wanted_keys is None or job.key in wanted_keys]
    wanted = []
    for job in jobs:
        if job.media.startswith(UNREADABLE):
            wanted += _read_again(ledger, job)
        else:
            wanted.append((job, job.source, json.loads(job.options)))
    sent = send_all(ledger, client, wanted, concurrency=concurrency, progress=progress, states=states)
    return replace(count(ledger.jobs(service)), sent=sent, adopted=adopted)


def _note(ledger: Ledger, plan: Plan) -> None:
    """Write a plan into the ledger: unreadable recordings as failed, without those that can be read again."""
    ledger.plan([step.job for step in plan.steps if step.verdict != "unreadable"])
    ledger.save_all([step.job for step in plan.steps if step.verdict == "unreadable"])
    if plan.recovered:
        ledger.drop_unreadable(plan.recovered)


def _read_again(ledger: Ledger, job: Job) -> list[Item]:
    """Return the work for a recording that could not be read before, if it can be read now."""
    options = json.loads(job.options)
    recording = Recording(job.source, metadata_from_json(job.metadata))
    try:
        plan = make_plan(ledger, [recording], options, job.service, measure=False, progress=False)
    except AudioError as error:  # it is gone
        ledger.save(job, error=str(error))
        return []
    _note(ledger, plan)
    return [(step.job, step.source, options) for step in plan.steps if step.verdict in TO_SEND]


def send_all(
    ledger: Ledger,
    client: Client,
    wanted: Sequence[Item],
    *,
    concurrency: int,
    progress: bool | None,
    states: Collection[State] = PENDING,
) -> int:
    """Send several submissions concurrently.

    A recording that cannot be read or is refused does not stop the others.

    Args:
        ledger: Records each step.
        client: The service.
        wanted: The submissions.
        concurrency: Maximum number of concurrent submissions.
        progress: Show a progress bar. None: only in an interactive session, after one second.
        states: Jobs are sent only if they are in one of these states.

    Returns:
        Number of jobs that were created.
    """
    batch = _Batch(ledger, client, concurrency, states)
    try:
        with Progress("submitting", jobs=len(wanted), show=progress) as bar:
            run_in_threads(wanted, batch.send, threads=concurrency, stop=batch.stop, done=lambda: bar.advance(1))
    except (KeyboardInterrupt, ServiceError) as stopped:
        stopped.add_note("Recordings that were not sent are in the ledger: submit(...) again, or retry(), sends them.")
        raise
    if batch.lost:
        with suppress(ServiceError):  # then they stay uncertain, which the result shows
            reconcile(ledger, client)
    return batch.sent


def _check(concurrency: object) -> None:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise OptionError(f"concurrency must be a whole number of at least 1, got {concurrency!r}")


class _Batch:
    """State shared by the threads of a batch."""

    def __init__(self, ledger: Ledger, client: Client, concurrency: int, states: Collection[State]) -> None:
        self.stop = threading.Event()
        self.sent = self.lost = 0
        self._in_a_row = 0
        self._ledger, self._states = ledger, states
        self._sender = Sender(ledger, client, AdaptiveThrottle(concurrency, self.stop), self.stop)
        self._lock = threading.Lock()

    def send(self, item: Item) -> None:
        job, source, body = item
        try:
            job = self._sender.send(job, source, body, self._states)
        except Exception as error:
            if not self._goes_on(job.key, error):
                raise
        else:
            with self._lock:
                self._in_a_row = 0
                self.sent += job.key in self._sender.asked

    def _goes_on(self, key: str, error: Exception) -> bool:
        """Return True if the batch continues after an error of one submission."""
        if isinstance(error, ServiceError) and error.possibly_delivered:
            job = self._ledger.find(key)
            if job is not None and job.state == "uncertain":
                with self._lock:
                    self.lost += 1
                    self._in_a_row += 1
                    return self._in_a_row < _LOST_IN_A_ROW
        return is_final(error)


def count(jobs: Iterable[Job]) -> BatchResult:
    """Count jobs by state."""
    states = [job.state for job in jobs]
    return BatchResult(
        failed=states.count("error"),
        waiting=states.count("submitted"),
        pending=states.count("planned") + states.count("uploading"),
        uncertain=states.count("uncertain") + states.count("submitting"),
    )
