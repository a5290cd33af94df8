"""Keeps an event loop waking while something long is awaited on it.

A Jupyter kernel answers an interrupt by cancelling the awaited task from a signal handler, and that does not wake a
loop that sleeps in its selector: the cell would end only with the next timer, or never. One timer a loop is enough for
any number of waits.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_BEAT_S = 0.1

_waits: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()


@contextmanager
def beating() -> Iterator[None]:
    """Wake the running loop ten times a second meanwhile."""
    loop = asyncio.get_running_loop()
    if loop not in _waits:  # there until the beat that finds nobody waiting
        _waits[loop] = 0
        loop.call_later(_BEAT_S, _beat, loop)
    _waits[loop] += 1
    try:
        yield
    finally:
        _waits[loop] -= 1


def _beat(loop: asyncio.AbstractEventLoop) -> None:
    if _waits.get(loop, 0) > 0:
        loop.call_later(_BEAT_S, _beat, loop)
    else:
        _waits.pop(loop, None)
