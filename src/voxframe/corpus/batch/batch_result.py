"""Counts of one step of a batch, printed as a sentence."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class BatchResult:
    """Result of `submit`, `sync`, `retry` or `adopt`: the work done and the work left.

    Attributes:
        sent: Jobs created at the service.
        known: Recordings that were already at the service or in the corpus.
        adopted: Jobs found at the service that the corpus did not know.
        fetched: Transcripts added to the corpus.
        failed: Jobs that failed or were refused, and transcripts that could not be fetched.
        waiting: Jobs that the service is still working on, or that were not fetched yet.
        pending: Recordings that are not sent yet.
        uncertain: Jobs that the service may have or not.
    """

    sent: int = 0
    known: int = 0
    adopted: int = 0
    fetched: int = 0
    failed: int = 0
    waiting: int = 0
    pending: int = 0
    uncertain: int = 0

    def __repr__(self) -> str:
        parts = [f"{count} {f.name}" for f in fields(self) if (count := getattr(self, f.name))]
        lines = [", ".join(parts) or "nothing to do"]
        lines += [f"  {name}: {advice}" for name, advice in _ADVICE.items() if getattr(self, name)]
        return "\n".join(lines)

    def after(self, other: BatchResult) -> BatchResult:
        """Return this step combined with an earlier one. Work done is added up; work left is that of this step."""
        done = ("sent", "known", "adopted", "fetched")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in done})

    @property
    def ok(self) -> bool:
        """True if nothing failed, is uncertain or is pending."""
        return not (self.failed or self.uncertain or self.pending)


_ADVICE = {
    "waiting": "sync() fetches them once they are finished",
    "failed": "jobs() says why; retry(failed=True) sends them again",
    "pending": "submit(...) or retry() sends them",
    "uncertain": (
        "the service may have them under an unknown id; a later sync() looks for them. If client.list() shows that it "
        "has none, retry(uncertain=True) sends them again; otherwise both are charged for"
    ),
}
