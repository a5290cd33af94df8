"""A streaming session in this process, with decodes by an engine in the order in which they are requested."""

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from voxframe_server import realtime
from voxframe_server.realtime.stream_worker import StreamRecognizer

RATE = 16_000


class LocalStream:
    """A session whose audio is given in pieces.

    Args:
        transcribe: Returns the words of samples, as an engine does.
        punctuates: True if its words have capitals and punctuation.
        partials: Send partials.

    Attributes:
        messages: The messages of the session so far.
        decoded: Priority and length in samples of each decode.
    """

    def __init__(self, transcribe: Callable[..., Any], *, punctuates: bool = True, partials: bool = True) -> None:
        self.messages: list[dict[str, Any]] = []
        self.decoded: list[tuple[int, int]] = []
        self._transcribe = transcribe
        self._requests: list[tuple[int, int, np.ndarray]] = []
        self.recognizer = StreamRecognizer(
            RATE,
            "pcm_s16le",
            punctuates=punctuates,
            partials=partials,
            tell=self.messages.append,
            decode=lambda *request: self._requests.append(request),
        )

    def send(self, samples: np.ndarray, chunk: int = RATE // 10) -> None:
        """Send audio in messages of `chunk` samples, each followed by its decodes."""
        for at in range(0, len(samples), chunk):
            self.recognizer.take(realtime.AUDIO, samples[at : at + chunk].tobytes())
            self.answer()

    def answer(self) -> None:
        """Decode what was requested."""
        while self._requests:
            number, priority, samples = self._requests.pop(0)
            self.decoded.append((priority, len(samples)))
            words = [tuple(word) for word in self._transcribe(samples)]
            self.recognizer.take(realtime.WORDS, orjson.dumps([number, words]))

    def end(self) -> list[dict[str, Any]]:
        """End the session and return its messages."""
        self.recognizer.take(realtime.TERMINATE)
        self.answer()
        assert self.recognizer.done
        return self.messages

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of a kind: "Partial" or "Final"."""
        return [message for message in self.messages if message["message_type"] == f"{kind}Transcript"]
