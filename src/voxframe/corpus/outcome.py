"""What came of a step of a batch, in numbers that print as a sentence."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Outcome:
    """What `submit`, `sync`, `retry` or `adopt` did, and what there is left to do.

    Attributes:
        sent: Jobs that were made at the service.
        known: Recordings that were at the service or in the corpus already.
        adopted: Jobs found at the service that the corpus did not know of.
        fetched: Transcripts that were brought into the corpus.
        failed: Jobs that failed, or that the service refused.
        waiting: Jobs that are still at the service.
        unsent: Recordings that are still to be sent.
        uncertain: Jobs of which nobody knows whether the service has them.
    """

    sent: int = 0
    known: int = 0
    adopted: int = 0
    fetched: int = 0
    failed: int = 0
    waiting: int = 0
    unsent: int = 0
    uncertain: int = 0

    def __repr__(self) -> str:
        parts = [f"{count} {f.name}" for f in fields(self) if (count := getattr(self, f.name))]
        lines = [", ".join(parts) or "nothing to do"]
        lines += [f"  {name}: {advice}" for name, advice in _ADVICE.items() if getattr(self, name)]
        return "\n".join(lines)

    def after(self, other: Outcome) -> Outcome:
        """This and an earlier step together: what was done is added up, what is left is as this step found it."""
        done = ("sent", "known", "adopted", "fetched")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in done})

    @property
    def good(self) -> bool:
        """Whether nothing failed, is uncertain or was left unsent."""
        return not (self.failed or self.uncertain or self.unsent)


_ADVICE = {
    "waiting": "sync() fetches them when they are finished",
    "failed": "jobs() says why; retry(failed=True) sends them again",
    "unsent": "submit(...) or retry() goes on with them",
    "uncertain": (
        "the service may have them, under no identifier that is known; a later sync() finds out where it can, and "
        "retry(uncertain=True) sends them again, which a hosted service charges for"
    ),
}
