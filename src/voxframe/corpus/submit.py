"""A batch on its way to the service: planned in the ledger as a whole, then sent by a few threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from voxframe.corpus.crew import work_through
from voxframe.corpus.ledger import LOST, UNSENT, Job, Ledger, State
from voxframe.corpus.outcome import Outcome
from voxframe.corpus.pace import Pace
from voxframe.corpus.plan import TO_SEND, make_plan
from voxframe.corpus.reconcile import reconcile
from voxframe.corpus.recordings import Recording
from voxframe.corpus.send import EMBEDDED, Sender, is_final, service_name
from voxframe.errors import OptionError, ServiceError
from voxframe.service.progress import Progress

if TYPE_CHECKING:
    from voxframe.service import Client

#: A submission, the path or address it is read from, and its options as they go on the wire.
Item: TypeAlias = "tuple[Job, str, Mapping[str, Any]]"

#: Submissions under way at once.
CONCURRENCY = 4
#: So many lost answers in a row, and a batch stops: each may leave a job that has to be looked for.
_LOST_IN_A_ROW = 8


def submit(
    ledger: Ledger,
    client: Client,
    recordings: Sequence[Recording],
    body: Mapping[str, Any],
    *,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> Outcome:
    """Send what was not sent before, and write down the rest.

    Args:
        ledger: What was done before.
        client: The service.
        recordings: The recordings.
        body: Options of the jobs, as `voxframe.options.check` returns them.
        concurrency: Submissions under way at once, at most.
        progress: Whether to show progress.

    Raises:
        OptionError: `concurrency` is no number of submissions; nothing was sent.
        AudioError: A recording cannot be read; nothing was sent.
        ServiceError: The service cannot be used at the moment; what was not sent is planned.
        KeyboardInterrupt: What was not sent is planned.
    """
    _check(concurrency)
    plan = make_plan(ledger, recordings, body, service_name(client), measure=False, progress=progress)
    adopted = reconcile(ledger, client)
    if adopted:
        plan = make_plan(ledger, recordings, body, plan.service, measure=False, progress=False)
    ledger.plan([step.job for step in plan.steps])
    verdicts, states = TO_SEND, UNSENT
    if plan.service == EMBEDDED:  # charges nothing
        verdicts, states = (*TO_SEND, "uncertain"), (*UNSENT, *LOST)
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
) -> Outcome:
    """Send again what is in the ledger and was not sent, and what is asked for besides.

    Args:
        ledger: What was done before.
        client: The service.
        failed: Whether to send again what failed.
        uncertain: Whether to send again what may be at the service and was not found there.
        keys: Only these submissions; None for all.
        concurrency: Submissions under way at once, at most.
        progress: Whether to show progress.

    Raises:
        OptionError: There is no such submission.
        ServiceError: The service cannot be used at the moment.
        KeyboardInterrupt: What was not sent is planned.
    """
    _check(concurrency)
    wanted_keys = None if keys is None else {keys} if isinstance(keys, str) else set(keys)
    if unknown := sorted(wanted_keys - {job.key for job in ledger.jobs()} if wanted_keys else ()):
        raise OptionError(f"there is no submission with the key {unknown[0]!r}; Corpus.jobs() has a column of them")
    adopted = reconcile(ledger, client)
    states: tuple[State, ...] = UNSENT
    if failed:
        states += ("error",)
    if uncertain:
        states += ("uncertain",)
    service = service_name(client)
    jobs = [job for job in ledger.jobs(service, states) if wanted_keys is None or job.key in wanted_keys]
    wanted = [(job, job.source, json.loads(job.options)) for job in jobs]
    sent = send_all(ledger, client, wanted, concurrency=concurrency, progress=progress, states=states)
    return replace(count(ledger.jobs(service)), sent=sent, adopted=adopted)


def send_all(
    ledger: Ledger,
    client: Client,
    wanted: Sequence[Item],
    *,
    concurrency: int,
    progress: bool | None,
    states: Collection[State] = UNSENT,
) -> int:
    """Send submissions, several at once.

    A recording that cannot be read, or that the service refuses, does not keep the others from being sent.

    Args:
        ledger: Where each step is written down.
        client: The service.
        wanted: What to send.
        concurrency: Submissions under way at once, at most.
        progress: Whether to show progress.
        states: Submissions are sent only in one of these states.

    Returns:
        How many jobs were made.
    """
    batch = _Batch(ledger, client, concurrency, states)
    try:
        with Progress("submitting", jobs=len(wanted), show=progress) as bar:
            work_through(wanted, batch.send, threads=concurrency, stop=batch.stop, done=lambda: bar.advance(1))
    except (KeyboardInterrupt, ServiceError) as stopped:
        stopped.add_note("What was not sent is in the ledger: submit(...) again, or retry(), goes on with it.")
        raise
    if batch.lost:
        with suppress(ServiceError):  # they are uncertain then, which is said
            reconcile(ledger, client)
    return batch.sent


def _check(concurrency: object) -> None:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise OptionError(f"concurrency is {concurrency!r}; give the submissions under way at once, at least 1")


class _Batch:
    """The work of one thread on one submission, and what all of them count."""

    def __init__(self, ledger: Ledger, client: Client, concurrency: int, states: Collection[State]) -> None:
        self.stop = threading.Event()
        self.sent = self.lost = 0
        self._in_a_row = 0
        self._ledger, self._states = ledger, states
        self._sender = Sender(ledger, client, Pace(concurrency, self.stop), self.stop)
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
        """Whether the others may go on after an error of one."""
        if isinstance(error, ServiceError) and error.may_have_arrived:
            job = self._ledger.find(key)
            if job is not None and job.state == "uncertain":
                with self._lock:
                    self.lost += 1
                    self._in_a_row += 1
                    return self._in_a_row < _LOST_IN_A_ROW
        return is_final(error)


def count(jobs: Iterable[Job]) -> Outcome:
    """How many submissions are in which state."""
    states = [job.state for job in jobs]
    return Outcome(
        failed=states.count("error"),
        waiting=states.count("submitted"),
        unsent=states.count("planned") + states.count("uploading"),
        uncertain=states.count("uncertain") + states.count("submitting"),
    )
