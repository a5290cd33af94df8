"""The process that listens to one streaming session: `python -P -m voxframe.local.live`, then its `main`'s arguments.

It reads `records` from standard input and writes messages of the interface to
standard output, one JSON object a line: `{"ready": true}`, partials and finals, and last `{"done": true}`. Speech
recognition holds Python's lock, so it has no place in the process that serves the socket; nor has the second pass over
an utterance in the one that follows the next. When the service is gone, standard input ends, and this process with it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from voxframe.local import engines
from voxframe.local.engines import NOTHING, Live, Wanted
from voxframe.local.finals import Finals, Part
from voxframe.local.incoming import Incoming
from voxframe.local.limits import limit_this_process
from voxframe.local.live_messages import partial, timed
from voxframe.local.records import AUDIO, END_UTTERANCE, SILENCE, TERMINATE, unpack
from voxframe.local.samples import RATE
from voxframe.local.segments import Stretch
from voxframe.local.utterances import Utterances
from voxframe.local.words import Word

#: Silence that ends an utterance where the client names none, in ms.
SILENCE_MS = 700
_PARTIAL_MS = 200  # audio between two partials, at least
# How long a final waits for the second pass, in seconds: while the session goes on, and when its client waits for it.
_WAIT_S, _LAST_WAIT_S = 5.0, 1.2


class Listener:
    """Turns the audio of one session into messages.

    Args:
        rate: Samples a second of the audio.
        encoding: Its encoding.
        engine: Name of the speech engine.
        wanted: What is wanted of it.
        partials: Whether partials are wanted.
        tell: Takes the messages, from two threads.
    """

    def __init__(
        self,
        rate: int,
        encoding: str,
        engine: str,
        wanted: Wanted = NOTHING,
        *,
        partials: bool,
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._incoming = Incoming(rate, encoding)
        self._rate = rate * (1 if encoding == "pcm_mulaw" else 2)  # bytes a second
        self._tell = tell
        self._finals = Finals(engine, wanted, tell)
        found: Any = engines.find(engine)
        self._live: Live | None = found(wanted).live() if partials and hasattr(found, "live") else None
        self._utterances = Utterances(SILENCE_MS)
        self._played = time.monotonic()  # when what came so far would have been spoken, had it been from when it came
        self._parts: list[Part] = []  # of the utterance under way
        self._following: int | None = None  # first sample of the stretch that `_live` follows
        self._followed = 0  # its samples that `_live` has heard
        self._shown: list[str] = []  # words of the last partial of this utterance
        self._shown_at = 0  # where it ended
        self._finals.wait_until_ready()

    def take(self, kind: bytes, data: bytes = b"") -> None:
        """Do what a record says. After `TERMINATE`, all has been told."""
        if kind == AUDIO:
            self._played = max(self._played, time.monotonic()) + len(data) / self._rate
            self._hear(self._utterances.feed(self._incoming.samples(data)))
            self._show()
        elif kind == SILENCE:
            self._utterances.silence_ms = int(data)
        elif kind == END_UTTERANCE:
            self._hear(self._utterances.end(), asked_for=True)
        elif kind == TERMINATE:
            self._hear(self._utterances.feed(self._incoming.rest()))
            self._hear(self._utterances.finish())
            # What is late already waits no longer.
            self._finals.finish((float(data) if data else self._played) + _LAST_WAIT_S)

    def _hear(self, stretches: Iterator[Stretch | None], *, asked_for: bool = False) -> None:
        for stretch in stretches:
            if stretch is not None:
                self._parts.append(self._finals.part(stretch, self._first_pass(stretch)))
                continue
            # Noise that no word was found in is not worth a message, unless somebody waits for one.
            until = max(self._played, time.monotonic()) + _WAIT_S
            self._finals.end(self._parts, until, always=asked_for or bool(self._shown))
            self._parts, self._shown, self._shown_at = [], [], 0

    def _first_pass(self, stretch: Stretch) -> list[Word] | None:
        """All words of a stretch that is over. What was followed may have gone on beyond it."""
        if self._live is None:
            return None
        if self._following != stretch.start:
            self._leave()
        if self._followed < len(stretch.samples):
            self._live.hear(stretch.samples[self._followed :])
        self._following, self._followed = None, 0
        end_ms = len(stretch.samples) * 1000 // RATE
        return timed(stretch, [word for word in self._live.end() if word.start_ms < end_ms])

    def _show(self) -> None:
        """The words of the utterance so far: of the stretches that are over, and what is followed of the next."""
        stretch = self._utterances.speaking if self._live is not None else None
        if stretch is None:
            return
        assert self._live is not None
        if self._following != stretch.start:
            self._leave()
            self._following = stretch.start
        words = [word for part in self._parts for word in part.known]
        words += timed(stretch, self._live.hear(stretch.samples[self._followed :]))
        self._followed = len(stretch.samples)
        texts = [word.text for word in words]
        if texts and texts != self._shown and stretch.end - self._shown_at >= _PARTIAL_MS * RATE // 1000:
            self._shown, self._shown_at = texts, stretch.end
            first = self._parts[0].stretch.start if self._parts else stretch.start
            self._tell(partial(first, stretch.end, words))

    def _leave(self) -> None:
        """What was followed turned out to be nothing."""
        if self._live is not None and self._following is not None:
            self._live.end()
        self._following, self._followed = None, 0


def main(argv: Sequence[str]) -> int:
    """Listen to the session on standard input.

    Args:
        argv: Sample rate, encoding, engine, its model or nothing, the words to listen for as a JSON array, and "1"
            where partials are wanted.

    Returns:
        Exit status: 0 where the session was heard to its end.
    """
    rate, encoding, engine, model, boost, partials = argv
    limit_this_process(whole_machine=engines.uses_all_cores(engine))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for a message
    lock = threading.Lock()

    def tell(message: dict[str, Any]) -> None:
        with lock:
            out.write(orjson.dumps(message) + b"\n")
            out.flush()

    wanted = Wanted(model or None, boost=tuple(json.loads(boost)))
    listener = Listener(int(rate), encoding, engine, wanted, partials=partials == "1", tell=tell)
    tell({"ready": True})
    for kind, data in unpack(sys.stdin.buffer):
        listener.take(kind, data)
        if kind == TERMINATE:
            tell({"done": True})
            return 0
    return 1


if __name__ == "__main__":
    # Not sys.exit: the end of the interpreter would wait for the second pass of what nobody waits for any more.
    try:
        status = main(sys.argv[1:])
    except Exception:  # noqa: BLE001 - it is reported as any other
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stderr.flush()
    os._exit(status)
