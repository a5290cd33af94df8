"""Media decoded in a child process, so that a malicious file breaks only this child and not a process that lives on.

Where the platform has it, a server process that has the libraries loaded forks the child in a few milliseconds. The
child sends JSON and samples, never pickled objects: it may be in the hands of the file.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from voxframe_engine import JobFailed
from voxframe_engine.child_process import end_with_parent
from voxframe_engine.speech import RATE, Samples
from voxframe_engine.speech.audio import MAX_CHANNELS, Audio, fraction_of_part


class MediaProcessError(RuntimeError):
    """The process that decodes a media file ended before it was done."""


@cache
def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["voxframe_engine.speech.audio_server"])
    return context


class ChildAudio:
    """The same as `Audio`, read in a child process. It takes the same arguments, without `keep_rate`.

    Raises:
        JobFailed: As `Audio` does.
        MediaProcessError: The child process has crashed.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._pipe, sender = _context().Pipe(duplex=False)
        self._process = _context().Process(target=_send, args=(sender, path, options), daemon=True)
        self._process.start()
        sender.close()
        head = self._message()
        self.rate, self.seconds = RATE, 0.0
        self.channels, self.start = min(int(head["channels"]), MAX_CHANNELS), int(head["start"])
        self._part_seconds = float(head["part_seconds"])

    def blocks(self) -> Iterator[Samples]:
        """Yield blocks of samples as `Audio.blocks` does."""
        try:
            while data := self._bytes():
                yield np.frombuffer(data, np.int16).reshape(self.channels, -1)
            self.seconds = float(self._message()["seconds"])
        finally:
            self._end()

    def fraction_before(self, sample: int) -> float:
        """Return the fraction of the requested part before a sample, as `Audio.fraction_before` does."""
        return fraction_of_part(sample, self._part_seconds)

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._bytes())
        return message

    def _bytes(self) -> bytes:
        try:
            data: bytes = self._pipe.recv_bytes()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self._end()
            how = f"stopped by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"
            raise MediaProcessError(f"the process that decodes the media was {how}") from None
        if data.startswith(b'{"failed":'):
            self._end()
            raise JobFailed(str(json.loads(data)["failed"]))
        return data

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _send(pipe: Connection, path: Path, options: dict[str, Any]) -> None:
    """Send the channels and the start of the audio, its blocks, an empty message, and its length."""
    end_with_parent(os.getppid())
    try:
        audio = Audio(path, **options)
        _send_json(pipe, channels=audio.channels, start=audio.start, part_seconds=audio.part_seconds)
        for block in audio.blocks():
            pipe.send_bytes(np.ascontiguousarray(block).tobytes())
        pipe.send_bytes(b"")
        _send_json(pipe, seconds=audio.seconds)
    except JobFailed as failure:
        _send_json(pipe, failed=failure.reason)


def _send_json(pipe: Connection, **message: object) -> None:
    pipe.send_bytes(json.dumps(message).encode())
