"""The finals of a streaming session: in order, of the second pass where it is done in time, else of the first."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

from voxframe.local import engines
from voxframe.local.engines import Heard, Wanted
from voxframe.local.live_messages import final, timed
from voxframe.local.samples import RATE
from voxframe.local.second_pass import SecondPass
from voxframe.local.segments import Stretch
from voxframe.local.words import Word

_LOOK_UP_S = 0.1  # how often a wait looks whether the session has come to its end
_MOST_WAITING = 30 * RATE  # samples that wait for the second pass before the session has to


@dataclass(frozen=True)
class Part:
    """A stretch of an utterance.

    Attributes:
        stretch: Where it is.
        first: Its words as the first pass heard them; None where there is no first pass.
        second: As the second does.
    """

    stretch: Stretch
    first: list[Word] | None
    second: Future[list[Heard]]

    @property
    def known(self) -> list[Word]:
        """The best that is known of it by now."""
        return timed(self.stretch, self.second.result()) if self.second.done() else self.first or []


class _Ended(NamedTuple):
    """An utterance that is over: its parts, until when its final can wait, and whether one without words is sent."""

    parts: Sequence[Part]
    until: float
    always: bool


class Finals:
    """Has stretches heard again, and sends the finals of utterances from a thread of its own.

    So the session is listened to while finals are worked on, and partials of an utterance may come before the final of
    the one before it.

    Args:
        engine: Name of the speech engine.
        wanted: What is wanted of it.
        tell: Takes each message. A failure in it, or of the second pass, ends the process.
    """

    def __init__(self, engine: str, wanted: Wanted, tell: Callable[[dict[str, Any]], None]) -> None:
        self._written = engines.writes(engine)
        self._tell = tell
        self._second = SecondPass(engine, wanted)
        self._waiting: deque[Part] = deque()
        self._last = math.inf  # until when all finals can wait
        self._ended: SimpleQueue[_Ended | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="voxframe-finals", daemon=True)
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the second pass can begin."""
        self._second.wait_until_ready()

    def part(self, stretch: Stretch, first: list[Word] | None) -> Part:
        """Have a stretch heard again. Waits where much is waiting: who sends faster than people speak is held back."""
        part = Part(stretch, first, self._second.hear(stretch.samples))
        self._waiting.append(part)
        while self._waiting and self._waiting[0].second.done():
            self._waiting.popleft()
        while sum(len(one.stretch.samples) for one in self._waiting) > _MOST_WAITING:
            wait([self._waiting.popleft().second])
        return part

    def end(self, parts: Sequence[Part], until: float, *, always: bool) -> None:
        """An utterance is over. Its final is sent after those before it, at `until` at the latest.

        Args:
            parts: Its stretches.
            until: In seconds of `time.monotonic`; without a first pass it is not kept to.
            always: Send it without words too.
        """
        self._ended.put(_Ended(parts, until, always))

    def finish(self, until: float) -> None:
        """Wait until all finals are sent, which are to be by then."""
        self._last = until
        self._ended.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (ended := self._ended.get()) is not None:
                words = [word for part in ended.parts for word in self._words(part, ended.until)]
                first, last = ended.parts[0].stretch, ended.parts[-1].stretch
                message = final(first.start, last.end, words, written=self._written)
                if message["words"] or ended.always:
                    self._tell(message)
        except Exception as error:  # noqa: BLE001 - the session cannot go on
            # The message of an exception may quote what was said; where it happened does not.
            sys.stderr.write(f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}\n")
            sys.stderr.flush()
            os._exit(1)

    def _words(self, part: Part, until: float) -> list[Word]:
        while not part.second.done():
            left = min(until, self._last) - time.monotonic()
            if part.first is not None and left <= 0:
                part.second.cancel()
                return part.first
            wait([part.second], _LOOK_UP_S if part.first is None else min(left, _LOOK_UP_S))
        return part.known
