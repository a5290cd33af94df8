"""Preview a batch: which recordings are new, known or failed, and how long they are."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd

from voxframe._text import html_table, masked, quantity
from voxframe.client.progress import Progress
from voxframe.corpus.batch.media import UNREADABLE, ManyFiles, Media, Recording, identify, unreadable
from voxframe.corpus.batch.worker_pool import run_in_threads
from voxframe.corpus.job import LOST, PENDING, Job, is_address, merged, new_job
from voxframe.corpus.ledger import EMBEDDED, Ledger
from voxframe.corpus.metadata import beside, metadata_to_json
from voxframe.errors import AudioError, AudioNotFoundError, CorpusWarning

#: new: never sent. new_options: sent before with other options. pending: planned before and not sent. known: at the
#: service or in the corpus. failed: sent before and failed. uncertain: may have been sent. unreadable: the file is
#: empty or cannot be read.
Verdict: TypeAlias = Literal["new", "new_options", "pending", "known", "failed", "uncertain", "unreadable"]

#: Verdicts of recordings that a batch sends.
TO_SEND: tuple[Verdict, ...] = ("new", "new_options", "pending")

_READERS = 4


@dataclass(frozen=True)
class Step:
    """Plan for one recording."""

    job: Job  # its job, as in the ledger or as it would be added
    verdict: Verdict  # what would happen to it
    source: str  # path or URL, as given


@dataclass(frozen=True)
class Plan:
    """Preview of a batch, returned by `Corpus.plan`.

    Attributes:
        steps: One step per distinct recording, in the order given.
        duplicates: Number of recordings that equal an earlier one, under any name.
        service: Name of the service.
        recovered: Keys of jobs in the ledger whose recording could not be read before and can be read now.
    """

    steps: Sequence[Step] = field(repr=False)
    duplicates: int
    service: str
    recovered: Collection[str] = ()

    def count(self, verdict: Verdict) -> int:
        """Return the number of recordings with a verdict."""
        return sum(step.verdict == verdict for step in self.steps)

    @property
    def new(self) -> int:
        """Recordings that were never sent."""
        return self.count("new")

    @property
    def new_options(self) -> int:
        """Recordings that were sent with other options. They are new jobs, which are charged for."""
        return self.count("new_options")

    @property
    def pending(self) -> int:
        """Recordings that an earlier batch planned and did not send."""
        return self.count("pending")

    @property
    def known(self) -> int:
        """Recordings at the service or in the corpus with these options. They are not sent again."""
        return self.count("known")

    @property
    def failed(self) -> int:
        """Recordings that failed before. `Corpus.retry(failed=True)` sends them again."""
        return self.count("failed")

    @property
    def uncertain(self) -> int:
        """Recordings that may have been sent."""
        return self.count("uncertain")

    @property
    def unreadable(self) -> int:
        """Recordings that are empty or cannot be read. The `error` column of `Corpus.jobs` gives the reason."""
        return self.count("unreadable")

    @property
    def to_send(self) -> int:
        """Number of jobs that the batch would create."""
        return sum(step.verdict in TO_SEND for step in self.steps)

    @property
    def audio_s(self) -> float:
        """Seconds of audio to send, as far as known."""
        return sum(step.job.audio_duration_s or 0.0 for step in self.steps if step.verdict in TO_SEND)

    @property
    def unmeasured(self) -> int:
        """Recordings to send of unknown duration, such as URLs."""
        return sum(step.job.audio_duration_s is None for step in self.steps if step.verdict in TO_SEND)

    @property
    def table(self) -> pd.DataFrame:
        """DataFrame with one row per recording: source, verdict, audio_duration_s, and its metadata."""
        rows = [(masked(step.source), step.verdict, step.job.audio_duration_s) for step in self.steps]
        df = pd.DataFrame(rows, columns=["source", "verdict", "audio_duration_s"])
        return beside(df, [step.job.metadata for step in self.steps])

    def __repr__(self) -> str:
        listed = "".join(f"\n  {count} {label}" for label, count in self._counts().items())
        return f"Plan: {self._summary()}{listed}"

    def _repr_html_(self) -> str:
        counts = {label: f"{count:,}" for label, count in self._counts().items()}
        return html_table({"plan": self._summary(), **counts})

    def _summary(self) -> str:
        service = "the embedded service" if self.service == EMBEDDED else self.service
        return f"{self.to_send} of {quantity(len(self.steps), 'recording')} to send to {service}{self._hours()}"

    def _counts(self) -> dict[str, int]:
        """Return the numbers of recordings by label, without those that are 0."""
        counts = {label: self.count(verdict) for verdict, label in _LABELS.items()}
        counts["identical to another"] = self.duplicates
        return {label: count for label, count in counts.items() if count}

    def _hours(self) -> str:
        if not self.to_send:
            return ""
        if self.unmeasured == self.to_send:
            return ", of unknown length"
        unknown = f" and {self.unmeasured} of unknown length" if self.unmeasured else ""
        length = f"{self.audio_s / 3600:.1f} hours" if self.audio_s >= 3600 else f"{self.audio_s / 60:.1f} minutes"
        return f", {length} of audio{unknown}"


_LABELS: Mapping[Verdict, str] = {
    "new": "new",
    "new_options": "sent before with other options: new jobs",
    "pending": "planned before and not sent",
    "known": "known: not sent again",
    "failed": "failed before: retry(failed=True) sends them again",
    "unreadable": "empty or unreadable: jobs() shows the reason after submit(...)",
    "uncertain": "uncertain: they may have been sent; sync() looks for them",
}


def make_plan(
    ledger: Ledger,
    recordings: Sequence[Recording],
    options: Mapping[str, Any],
    service: str,
    *,
    measure: bool,
    progress: bool | None = None,
) -> Plan:
    """Return the plan of a batch, without a request to a service."""
    notes = [metadata_to_json(recording.metadata) for recording in recordings]
    identified = _identify(ledger, [recording.source for recording in recordings], measure, progress)
    jobs = ledger.jobs(service)
    by_key = {job.key: job for job in jobs}
    sent = {job.media for job in jobs if job.state not in PENDING}
    has_unreadable = any(job.media.startswith(UNREADABLE) for job in jobs)
    recovered: set[str] = set()
    steps: dict[str, Step] = {}
    for recording, note in zip(recordings, notes, strict=True):
        media = identified[recording.source]
        if isinstance(media, AudioError):
            job = new_job(
                recording.source, unreadable(recording.source), options, service, state="error", error=str(media)
            )
            job = replace(by_key.get(job.key, job), error=job.error, metadata=note)
            job = replace(job, recording=recording.name or job.recording)
            steps.setdefault(job.key, Step(job, "unreadable", recording.source))
            continue
        if has_unreadable and not is_address(recording.source):
            before = new_job(recording.source, unreadable(recording.source), options, service)
            recovered |= {before.key} & by_key.keys()
        job = new_job(recording.source, media.identity, options, service, audio_duration_s=media.audio_duration_s)
        old = by_key.get(job.key)
        if old is not None:
            duration_s = old.audio_duration_s or job.audio_duration_s
            job = replace(old, source=job.source, audio_duration_s=duration_s)
        if recording.name is not None:
            job = replace(job, recording=recording.name)
        if note != "{}":  # other columns, such as those of `set_metadata`, stay
            job = replace(job, metadata=merged(job.metadata, note))
        step = steps.setdefault(job.key, Step(job, _verdict(old, sent_before=media.identity in sent), recording.source))
        if step.job.metadata != job.metadata:
            warnings.warn(
                f"{masked(recording.source)!r} is the same recording as {masked(step.source)!r} with different "
                "metadata. The metadata of the latter is kept",
                CorpusWarning,
                stacklevel=4,
            )
    return Plan(list(steps.values()), len(recordings) - len(steps), service, recovered)


def _verdict(old: Job | None, *, sent_before: bool) -> Verdict:
    if old is None:
        return "new_options" if sent_before else "new"
    if old.state in PENDING:
        return "pending"
    if old.state in LOST:
        return "uncertain"
    return "failed" if old.state == "error" else "known"


def _identify(
    ledger: Ledger, sources: Sequence[str], measure: bool, progress: bool | None
) -> dict[str, Media | AudioError]:
    identified: dict[str, Media | AudioError] = {}
    files = ManyFiles(ledger)

    def look(source: str) -> None:
        try:
            identified[source] = identify(source, files, measure=measure)
        except AudioNotFoundError:
            raise
        except AudioError as error:  # does not stop the others
            identified[source] = error

    different = list(dict.fromkeys(sources))
    with Progress("reading recordings", jobs=len(different), show=progress) as bar:
        try:
            run_in_threads(different, look, threads=_READERS, stop=threading.Event(), done=lambda: bar.advance(1))
        finally:
            files.write()
    return identified
