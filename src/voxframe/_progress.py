"""Progress bars in terminals and notebooks; nothing in log files."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

#: True for a command with `--quiet`: no bars and no notices.
quiet = False
#: Seconds before a bar appears.
DELAY_S = 1.0


class Progress:
    """A progress bar that appears after one second.

    Args:
        shares: Jobs advance by shares of a job, see `move`.
    """

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        jobs: int | None = None,
        shares: bool = False,
        show: bool | None = None,
    ) -> None:
        self.count = 0
        self._bar: Any = None
        self._moved = False
        if is_interactive() if show is None else show:
            from tqdm.auto import tqdm

            kind: dict[str, Any] = {"bar_format": "{desc}{postfix} {elapsed}"}
            if jobs is not None:
                kind = {"total": jobs}
                if shares:
                    kind["bar_format"] = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
            elif total is not None:
                kind = {"unit": "B", "unit_scale": True, "unit_divisor": 1024, "total": total or None}
            self._bar = tqdm(desc=label, delay=DELAY_S, leave=False, mininterval=0.2, **kind)

    def advance(self, count: int) -> None:
        """Add `count` bytes or jobs. A negative number repeats a part."""
        self.count += count
        if self._bar is not None:
            self._bar.update(count)

    def move(self, done: float, state: str | None = None) -> None:
        """Show the number of jobs that are done, with the shares of those in progress, and a new state.

        The bar never goes back, for example when only the jobs that are done are known. The time left is computed from
        the work since the first state.
        """
        if self._bar is not None:
            if state is not None and not self._moved:
                self._moved, self._bar.initial = True, done
            self._bar.n = min(max(done, self._bar.n), self._bar.total)
            self.say(self._bar.postfix or "" if state is None else state)

    @property
    def shown(self) -> bool:
        """True if there is a bar."""
        return self._bar is not None

    def say(self, state: str) -> None:
        """Show a state beside the elapsed time."""
        if self._bar is not None:
            self._bar.set_postfix_str(state, refresh=False)
            if time.time() - self._bar.start_t >= DELAY_S:
                self._bar.refresh()
                self._bar.last_print_t = time.time()  # otherwise tqdm takes it for not shown and never clears it

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def in_notebook() -> bool:
    """Return True in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def is_interactive() -> bool:
    """Return True in a terminal or notebook, unless the command is `quiet`."""
    if quiet:
        return False
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
