"""The second pass over what is said into a stream: slower than the first, and better. It has a process of its own.

That process, `python -P -m voxframe.local.second_pass`, reads a JSON line from standard input (engine, model, words to
listen for) and writes `true` once it has loaded the engine; then it reads `records` of samples and writes the words of
each, a JSON array a line. It ends with its standard input, so with whoever started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import orjson

from voxframe.local import engines
from voxframe.local.engines import Heard, Wanted
from voxframe.local.records import AUDIO, pack, unpack
from voxframe.local.samples import RATE, Samples


class SecondPass:
    """The process, as seen from the one that listens to the session.

    Args:
        engine: Name of the speech engine.
        wanted: What is wanted of it.
    """

    def __init__(self, engine: str, wanted: Wanted) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "voxframe.local.second_pass"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._write(orjson.dumps((engine, wanted.model, wanted.boost)) + b"\n")
        self._turns = ThreadPoolExecutor(1)  # waits for the process: one stretch at a time, in order

    def wait_until_ready(self) -> None:
        """Wait until it can hear.

        Raises:
            RuntimeError: Its engine could not be loaded.
        """
        self._answer()

    def hear(self, samples: Samples) -> Future[list[Heard]]:
        """The words of a stretch, in time. What has not begun can be cancelled."""
        return self._turns.submit(self._hear, samples)

    def _hear(self, samples: Samples) -> list[Heard]:
        self._write(pack(AUDIO, samples.tobytes()))
        return [Heard(*word) for word in orjson.loads(self._answer())]

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the second pass has ended")
        return line


def main() -> int:
    """Hear what comes by standard input.

    Returns:
        Exit status 0.
    """
    if hasattr(os, "nice"):
        os.nice(5)  # the first pass must not wait for it
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for words
    name, model, boost = orjson.loads(sys.stdin.buffer.readline())
    engine = engines.find(name)(Wanted(model, boost=tuple(boost)))
    engine.transcribe(np.zeros(RATE // 10, np.int16))  # what loads late loads now
    out.write(b"true\n")
    out.flush()
    for _, data in unpack(sys.stdin.buffer):
        words = engine.transcribe(np.frombuffer(data, np.int16))
        out.write(orjson.dumps([tuple(word) for word in words]) + b"\n")
        out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
