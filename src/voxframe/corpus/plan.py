"""What a batch would do, before anything is sent: which recordings are new, which are known, and how long they are."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd

from voxframe.corpus.about_values import beside, metadata_to_json
from voxframe.corpus.crew import work_through
from voxframe.corpus.ledger import LOST, UNSENT, Job, Ledger, merged, new_job
from voxframe.corpus.media import ManyFiles, Media, identify
from voxframe.corpus.recordings import Recording
from voxframe.corpus.send import EMBEDDED
from voxframe.errors import CorpusWarning
from voxframe.service.progress import Progress

#: new: not sent before. changed: sent before, with other options. unsent: begun before and not sent. known: at the
#: service, or in the corpus. failed: sent before, and failed. uncertain: may have been sent; nobody knows.
Verdict: TypeAlias = Literal["new", "changed", "unsent", "known", "failed", "uncertain"]

#: What a batch sends.
TO_SEND: tuple[Verdict, ...] = ("new", "changed", "unsent")

_READERS = 4


@dataclass(frozen=True)
class Step:
    """What would be done with one recording.

    Attributes:
        job: Its submission, as it is in the ledger or would be.
        verdict: What is known of it.
        source: Path or address, as it was given.
    """

    job: Job
    verdict: Verdict
    source: str


@dataclass(frozen=True)
class Plan:
    """What a batch would do; `Corpus.plan` makes it.

    Attributes:
        steps: One for each recording that is different from the others, in the order given.
        duplicates: Recordings that are the same as one before them, under whatever name.
        service: Name of the service.
    """

    steps: Sequence[Step] = field(repr=False)
    duplicates: int
    service: str

    def count(self, verdict: Verdict) -> int:
        """Recordings of one verdict."""
        return sum(step.verdict == verdict for step in self.steps)

    @property
    def new(self) -> int:
        """Recordings never sent, with whatever options."""
        return self.count("new")

    @property
    def changed(self) -> int:
        """Recordings that were sent with other options: new jobs, which are paid for."""
        return self.count("changed")

    @property
    def unsent(self) -> int:
        """Recordings that an earlier batch had begun and did not send."""
        return self.count("unsent")

    @property
    def known(self) -> int:
        """Recordings that are at the service or in the corpus with these options; they are not sent again."""
        return self.count("known")

    @property
    def failed(self) -> int:
        """Recordings that failed before; `Corpus.retry(failed=True)` sends them again."""
        return self.count("failed")

    @property
    def uncertain(self) -> int:
        """Recordings that may have been sent."""
        return self.count("uncertain")

    @property
    def to_send(self) -> int:
        """Jobs that a batch would make."""
        return sum(step.verdict in TO_SEND for step in self.steps)

    @property
    def audio_s(self) -> float:
        """Seconds of audio to send, as far as they are known."""
        return sum(step.job.audio_duration_s or 0.0 for step in self.steps if step.verdict in TO_SEND)

    @property
    def unmeasured(self) -> int:
        """Recordings to send whose duration is not known: addresses, and files that PyAV would have to open."""
        return sum(step.job.audio_duration_s is None for step in self.steps if step.verdict in TO_SEND)

    @property
    def table(self) -> pd.DataFrame:
        """One row per recording: source, verdict, audio_duration_s, and its metadata."""
        rows = [(step.source, step.verdict, step.job.audio_duration_s) for step in self.steps]
        df = pd.DataFrame(rows, columns=["source", "verdict", "audio_duration_s"])
        return beside(df, [step.job.metadata for step in self.steps])

    def __repr__(self) -> str:
        counts = Counter(step.verdict for step in self.steps)
        parts = [f"{counts[verdict]} {_SAID[verdict]}" for verdict in _SAID if counts[verdict]]
        if self.duplicates:
            parts.append(f"{self.duplicates} the same as another")
        listed = "".join(f"\n  {part}" for part in parts)
        where = "the embedded service" if self.service == EMBEDDED else self.service
        return f"Plan: {self.to_send} of {len(self.steps)} recordings to send to {where}{self._hours()}{listed}"

    def _hours(self) -> str:
        if not self.to_send:
            return ""
        if self.unmeasured == self.to_send:
            return ", of unknown length"
        more = f" and {self.unmeasured} of unknown length" if self.unmeasured else ""
        length = f"{self.audio_s / 3600:.1f} hours" if self.audio_s >= 3600 else f"{self.audio_s / 60:.1f} minutes"
        return f", {length} of audio{more}"


_SAID: Mapping[Verdict, str] = {
    "new": "new",
    "changed": "sent before with other options: new jobs",
    "unsent": "begun before and not sent",
    "known": "known: not sent again",
    "failed": "failed before: retry(failed=True) sends them again",
    "uncertain": "uncertain: they may have been sent, sync() finds out",
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
    """Find out what a batch would do. Asks no service.

    Args:
        ledger: What was done before.
        recordings: The recordings.
        options: Options of the jobs, as `voxframe.options.check` returns them.
        service: Name of the service.
        measure: Whether to find the durations.
        progress: Whether to show progress; None shows it where somebody looks.

    Raises:
        AudioError: A recording cannot be read.
        OptionError: An address or a value of the metadata is wrong.

    Warns:
        CorpusWarning: A recording is there twice, with different metadata.
    """
    notes = [metadata_to_json(recording.metadata) for recording in recordings]
    found = _identify(ledger, [recording.source for recording in recordings], measure, progress)
    jobs = ledger.jobs(service)
    known = {job.key: job for job in jobs}
    sent = {job.media for job in jobs if job.state not in UNSENT}
    steps: dict[str, Step] = {}
    for recording, note in zip(recordings, notes, strict=True):
        media = found[recording.source]
        job = new_job(recording.source, media.identity, options, service, audio_duration_s=media.audio_duration_s)
        old = known.get(job.key)
        if old is not None:
            duration_s = old.audio_duration_s or job.audio_duration_s
            job = replace(old, source=job.source, audio_duration_s=duration_s)
        if note != "{}":  # columns that are not given stay, such as those of `set_metadata`
            job = replace(job, metadata=merged(job.metadata, note))
        step = steps.setdefault(job.key, Step(job, _verdict(old, changed=media.identity in sent), recording.source))
        if step.job.metadata != job.metadata:
            warnings.warn(
                f"{recording.source!r} is the same recording as {step.source!r}, whose metadata is kept; that of the "
                "other is not. Corpus.set_metadata changes it",
                CorpusWarning,
                stacklevel=4,
            )
    return Plan(list(steps.values()), len(recordings) - len(steps), service)


def _verdict(old: Job | None, *, changed: bool) -> Verdict:
    if old is None:
        return "changed" if changed else "new"
    if old.state in UNSENT:
        return "unsent"
    if old.state in LOST:
        return "uncertain"
    return "failed" if old.state == "error" else "known"


def _identify(ledger: Ledger, sources: Sequence[str], measure: bool, progress: bool | None) -> dict[str, Media]:
    found: dict[str, Media] = {}
    files = ManyFiles(ledger)

    def look(source: str) -> None:
        found[source] = identify(source, files, measure=measure)

    different = list(dict.fromkeys(sources))
    with Progress("reading recordings", jobs=len(different), show=progress) as bar:
        try:
            work_through(different, look, threads=_READERS, stop=threading.Event(), done=lambda: bar.advance(1))
        finally:
            files.write()
    return found
