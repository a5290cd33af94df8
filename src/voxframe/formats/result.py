"""The result of an export: the files written, and the number of values that the format could not hold."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from voxframe.errors import ExportWarning, caller

#: Number of affected values by description of the change.
Losses: TypeAlias = Counter[str]
LENGTHENED = "captions shown longer than they are spoken, so that they can be read"
PARTS = "captions after the first of a turn, read as turns of their own"
#: Changes that are wanted in captions, so that no warning reports them.
WANTED = frozenset({LENGTHENED, PARTS})


@dataclass(frozen=True)
class ExportResult:
    """The files that an export wrote, and the number of values that the format could not hold.

    Iterating gives the file names; `len` is their number.

    Attributes:
        files: File names relative to the directory, or the target itself. With one file per transcript, the data card
            and the hashes are not listed.
        losses: Number of changed or omitted values, by description of the change. Empty if every value was written
            exactly. An `ExportWarning` reports the same, but for how turns are shown as captions.
        omitted: Number of values in columns that the format has no field for, by column, such as `confidence` in
            captions. No warning reports these.

    Example:
        >>> ExportResult(["a.srt"], {"rows without times, left out": 2}).losses
        {'rows without times, left out': 2}
    """

    files: list[str]
    losses: dict[str, int] = field(default_factory=dict)
    omitted: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)


@contextmanager
def counted(losses: Losses | None, what: str) -> Iterator[Losses]:
    """Count losses in the given counter, or in a new one that is reported as a warning at the end.

    Args:
        losses: Counter of a caller that warns itself. None: use a new counter and warn.
    """
    if losses is not None:
        yield losses
        return
    counter: Losses = Counter()
    yield counter
    warn(counter, what)


def warn(losses: Losses, what: str) -> None:
    """Warn about losses, if there are any."""
    if lost := {reason: count for reason, count in losses.items() if count and reason not in WANTED}:
        reasons = "; ".join(f"{count} {reason}" for reason, count in lost.items())
        warnings.warn(f"{what} cannot hold every value exactly: {reasons}", ExportWarning, stacklevel=caller())
