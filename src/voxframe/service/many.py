"""Waiting for many jobs: by the pages of a list, not by a question about each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from voxframe.service.listing import Item
from voxframe.service.progress import Progress
from voxframe.service.transcript import Transcript
from voxframe.service.waiting import Patience, Steps, interval

#: So few jobs are asked about one by one.
FEW = 3
#: Jobs the list does not show are asked about one by one, so many a round.
_UNLISTED_A_ROUND = 10


def steps(
    handles: Sequence[Transcript],
    history: Callable[[], Iterator[Item]],
    *,
    timeout_s: float | None,
    local: bool,
    show: bool | None,
) -> Steps:
    """Ask about jobs until all are finished.

    Args:
        handles: The jobs.
        history: Walks through the list of transcripts, newest first, page by page as they are wanted.
        timeout_s: Seconds to wait at most; None waits as long as it takes.
        local: Whether the service is on this machine.
        show: Whether to show progress; None where somebody looks.

    Raises:
        ServiceTimeoutError: Not all were finished in time.
        ServiceError: The service could not be asked for too long, or refused.
    """
    patience = Patience(timeout_s, local=local)
    pending = {handle.id: handle for handle in handles if not (handle.known and handle.done)}
    unlisted: list[str] = []  # not in the list: asked about in turn
    total = len({handle.id for handle in handles})

    def look() -> None:
        """One walk through the list, as far as there is somebody to find."""
        wanted = set(pending) - set(unlisted)
        if wanted:
            for item in history():
                if item.id in wanted:
                    wanted.discard(item.id)
                    pending[item.id].note(item)
                    if not wanted:
                        return
        unlisted.extend(sorted(wanted))

    with Progress("transcribing", jobs=total, show=show) as progress:
        while True:
            if len(pending) > FEW:
                yield patience.tolerate(look)
            few = list(pending) if len(pending) <= FEW else [unlisted.pop(0) for _ in unlisted[:_UNLISTED_A_ROUND]]
            for identifier in few:
                yield patience.tolerate(lambda handle=pending[identifier]: handle.refresh(attempts=1))  # type: ignore[misc]
            unlisted += [i for i in few if len(pending) > FEW]
            for identifier in [i for i, handle in pending.items() if handle.known and handle.done]:
                del pending[identifier]
            unlisted[:] = [i for i in unlisted if i in pending]
            progress.advance(total - len(pending) - progress.count)
            if not pending:
                return
            progress.say(_states(pending.values()))
            # A round of several requests makes up for it with a longer pause.
            wanted_s = max(interval(patience.waited_s, local=local), 0.3 * len(few))
            yield patience.pause(wanted_s, f"{len(pending)} of {total} transcripts are not finished")


def _states(handles: Iterable[Transcript]) -> str:
    """How many are in which state, such as "3 queued, 1 processing"."""
    counts = Counter(handle.status for handle in handles if handle.known)
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=str, reverse=True))
