"""Progress shown to a person: a bar in a terminal or notebook, nothing in a log file."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

#: Nothing is shown for what takes less.
PATIENCE_S = 1.0


class Progress:
    """A progress bar that appears when something takes longer than a second.

    Args:
        label: What is going on.
        total: Bytes in all, 0 where nobody knows; None where time is all there is to show.
        jobs: Jobs in all, instead of bytes.
        show: True or False; None shows it where somebody is looking (a terminal or a notebook).

    Attributes:
        count: Bytes or jobs so far.
    """

    def __init__(
        self, label: str, total: int | None = None, *, jobs: int | None = None, show: bool | None = None
    ) -> None:
        self.count = 0
        self._bar: Any = None
        if somebody_looks() if show is None else show:
            from tqdm.auto import tqdm

            kind: dict[str, Any] = {"bar_format": "{desc}{postfix} {elapsed}"}
            if jobs is not None:
                kind = {"total": jobs}
            elif total is not None:
                kind = {"unit": "B", "unit_scale": True, "unit_divisor": 1024, "total": total or None}
            self._bar = tqdm(desc=label, delay=PATIENCE_S, leave=False, mininterval=0.2, **kind)

    def advance(self, count: int) -> None:
        """Note `count` more bytes or jobs; less than none where a part is done again."""
        self.count += count
        if self._bar is not None:
            self._bar.update(count)

    @property
    def shown(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def say(self, state: str) -> None:
        """Show a state beside the time."""
        if self._bar is not None:
            self._bar.set_postfix_str(state, refresh=False)
            if time.time() - self._bar.start_t >= PATIENCE_S:
                self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def somebody_looks() -> bool:
    """Whether progress would be seen by a person."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
