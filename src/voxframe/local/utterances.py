"""Utterances of a live stream: stretches of speech that end after as much silence as the client wants, or on demand."""

from __future__ import annotations

from collections.abc import Iterator

from voxframe.local.samples import RATE
from voxframe.local.segments import FRAME, Segmenter, Stretch


class Utterances(Segmenter):
    """Finds utterances as their samples come.

    Args:
        silence_ms: Silence that ends an utterance. May be changed at any time.
    """

    def __init__(self, silence_ms: int) -> None:
        super().__init__()
        self.silence_ms = silence_ms

    @property
    def under_way(self) -> Stretch | None:
        """The utterance that is being spoken, as far as it has come."""
        if self._begun is None:
            return None
        return Stretch(self._begun * FRAME, self._samples[(self._begun - self._first) * FRAME :])

    def end(self) -> Iterator[Stretch]:
        """End the utterance that is being spoken, if one is."""
        if self._begun is not None:
            yield self._cut(self.frames)

    def _pause(self, length: int) -> int:  # noqa: ARG002 - the same for every length
        return max(1, -(-self.silence_ms * RATE // (1000 * FRAME)))
