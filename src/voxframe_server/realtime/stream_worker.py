"""Process of one streaming session: `python -P -m voxframe_server.realtime.stream_worker`, arguments as in `main`.

It reads and writes records (see the package). It detects speech, requests decodes of it, and turns their words into
messages of the API. A stretch of speech is decoded again and again while it is spoken, for partials, and once more as a
final.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from voxframe_engine.child_process import end_with_parent, limit_this_process
from voxframe_engine.speech import RATE, RecognizedWord, Samples, engines
from voxframe_engine.speech.audio import StreamDecoder
from voxframe_engine.speech.vad import Stretch, UtteranceDetector
from voxframe_engine.text import Word
from voxframe_engine.text.formatting import (
    add_capitals,
    add_mark,
    find_sentence_ends,
    join_punctuation,
    sentences_of,
    split_punctuation,
    without_filled_pauses,
)
from voxframe_server import realtime

#: Default silence that ends an utterance, in ms.
SILENCE_MS = 700
_PARTIAL = round(0.3 * RATE)  # minimum number of samples between two partials
_SPACING = 3  # time between two partials, relative to the time that one takes
_FIRST = round(0.5 * RATE)  # samples of a stretch for its first partial, with the silence before it


@dataclass(eq=False)
class _UtterancePart:
    """A stretch of an utterance. Positions are samples from the start of the session."""

    start: int
    end: int | None = None
    words: list[Word] = field(default_factory=list)
    heard: int = 0
    requested: int = 0
    decoded: int = 0


@dataclass(eq=False)
class _Utterance:
    """An utterance that is spoken or waits for its final.

    Attributes:
        always: True if its final is sent even without words.
    """

    parts: list[_UtterancePart] = field(default_factory=list)
    ended: bool = False
    heard: int = 0
    shown: list[str] = field(default_factory=list)
    always: bool = False

    @property
    def words(self) -> list[Word]:
        """The best words so far."""
        return [word for part in self.parts for word in part.words]

    @property
    def complete(self) -> bool:
        """True when its final can be sent."""
        return self.ended and all(part.decoded == part.end for part in self.parts)


@dataclass(frozen=True)
class _RequestedDecode:
    """A decode that was requested: of a part up to `end`, when the session was at `now`."""

    utterance: _Utterance
    part: _UtterancePart
    end: int
    now: int
    is_final: bool


class StreamRecognizer:
    """Turns the audio of a session into messages.

    Args:
        decode: Requests a decode, given its number, its priority and the samples. A record `WORDS` answers it.
    """

    def __init__(
        self,
        rate: int,
        encoding: str,
        *,
        punctuates: bool,
        partials: bool,
        tell: Callable[[dict[str, Any]], None],
        decode: Callable[[int, int, Samples], None],
    ) -> None:
        self._incoming = StreamDecoder(rate, encoding)
        self._detector = UtteranceDetector(SILENCE_MS)
        self._punctuates = punctuates
        self._partials = partials
        self._tell = tell
        self._decode = decode
        self._numbers = itertools.count()
        self._requests: dict[int, _RequestedDecode] = {}
        self._utterances = deque([_Utterance()])  # the last one is spoken now or next
        self._heard = 0  # samples received
        self._partial_at = 0  # `_heard` when the latest partial was requested
        self._delay = 0  # samples received while it was decoded
        self._shown_at = 0  # `_heard` when the latest partial was sent
        self._terminating = False

    @property
    def done(self) -> bool:
        """True when all messages of the session were sent."""
        return self._terminating and len(self._utterances) == 1

    def take(self, kind: bytes, data: bytes = b"") -> None:
        """Process a record."""
        if kind == realtime.AUDIO:
            samples = self._incoming.samples(data)
            self._heard += len(samples)
            self._hear(self._detector.feed(samples))
            self._request_early()
        elif kind == realtime.SILENCE:
            self._detector.silence_ms = int(data)
        elif kind == realtime.END_UTTERANCE:
            self._hear(self._detector.end(), always=True)
        elif kind == realtime.TERMINATE:
            self._hear(self._detector.feed(self._incoming.rest()))
            self._hear(self._detector.finish())
            self._terminating = True
        elif kind == realtime.WORDS:
            number, words = orjson.loads(data)
            request = self._requests.pop(number)
            if not request.is_final:
                self._delay = self._heard - self._partial_at
            if words is not None:
                self._note(request, [RecognizedWord(*word) for word in words])
        while self._utterances[0].complete:
            self._send_final(self._utterances.popleft())
        self._show(self._utterances[0])

    def _hear(self, events: Iterator[Stretch | None], *, always: bool = False) -> None:
        """Note completed stretches and, for None, the end of the utterance."""
        for stretch in events:
            utterance = self._utterances[-1]
            if stretch is None:
                # Noise without words gives no message, unless the client has requested the end or has seen partials.
                utterance.ended, utterance.always = True, always
                self._utterances.append(_Utterance())
            else:
                part = self._part(stretch)
                part.end = stretch.end
                self._request_final(part, stretch)

    def _request_early(self) -> None:
        """Request a partial, or the final of speech that has probably ended."""
        now = self._detector.segmenter.speaking
        if now is None:
            return
        if (paused := self._detector.paused) is not None:
            self._request_final(self._part(paused), paused, now.end)
        elif (
            self._partials
            and not self._detector.segmenter.silent_frames  # otherwise a final is requested soon
            and len(now.samples) >= _FIRST
            and all(request.is_final for request in self._requests.values())
        ):
            first = not self._utterances[-1].shown
            # If decodes take long, fewer partials leave time for the first partials and finals of all sessions.
            if self._heard >= self._partial_at + (_PARTIAL if first else max(_PARTIAL, _SPACING * self._delay)):
                self._partial_at = self._heard
                self._request(self._part(now), now, realtime.FIRST_PARTIAL if first else realtime.PARTIAL)

    def _part(self, stretch: Stretch) -> _UtterancePart:
        """Return the part of the current utterance that begins with a stretch."""
        parts = self._utterances[-1].parts
        if not parts or parts[-1].start != stretch.start:
            parts.append(_UtterancePart(stretch.start))
        return parts[-1]

    def _request_final(self, part: _UtterancePart, stretch: Stretch, now: int | None = None) -> None:
        if part.requested != stretch.end:  # otherwise it was requested at a pause
            part.requested = stretch.end
            self._request(part, stretch, realtime.FINAL, now)

    def _request(self, part: _UtterancePart, stretch: Stretch, priority: int, now: int | None = None) -> None:
        number, is_final = next(self._numbers), priority == realtime.FINAL
        self._requests[number] = _RequestedDecode(self._utterances[-1], part, stretch.end, now or stretch.end, is_final)
        self._decode(number, priority, stretch.samples)

    def _note(self, request: _RequestedDecode, heard: Sequence[RecognizedWord]) -> None:
        """Note the words of a decode."""
        part = request.part
        if part.decoded == part.end:
            return
        if request.is_final:
            part.decoded = max(part.decoded, request.end)
        if request.end < part.heard and part.decoded != part.end:
            return  # words of less sound than those known
        at, part.heard = part.start * 1000 // RATE, request.end
        words = [Word(word.text, at + word.start_ms, at + word.end_ms, word.confidence) for word in heard]
        part.words = [word for word in words if part.end is None or word.start < part.end * 1000 // RATE]
        request.utterance.heard = max(request.utterance.heard, request.now)

    def _show(self, utterance: _Utterance) -> None:
        """Send the words of an utterance so far, if they have changed."""
        if any(part.end is None and part.requested > part.heard for part in utterance.parts):
            return  # the decode at a pause has better words soon
        words = utterance.words
        texts = [word.text for word in words]
        if self._partials and texts and texts != utterance.shown and self._heard >= self._shown_at + _PARTIAL:
            utterance.shown, self._shown_at = texts, self._heard
            # The mark that an engine puts after unfinished speech is left out.
            words[-1] = replace(words[-1], text=words[-1].text.rstrip(".…-") or words[-1].text)
            self._tell(_message("PartialTranscript", utterance.parts[0].start, utterance.heard, words))

    def _send_final(self, utterance: _Utterance) -> None:
        words = _formatted(utterance.words, punctuated=self._punctuates)
        if words or utterance.shown or utterance.always:
            end = utterance.parts[-1].end
            assert end is not None
            message = _message("FinalTranscript", utterance.parts[0].start, end, words)
            self._tell(message | {"punctuated": True, "text_formatted": True})


def _formatted(words: Sequence[Word], *, punctuated: bool) -> list[Word]:
    """Return the words of a final without filled pauses, with capitals and punctuation."""
    if not words:
        return []
    if punctuated:
        formatted = without_filled_pauses(split_punctuation(words))
        join_punctuation(formatted, punctuate=True, format_text=True)
        return formatted
    find_sentence_ends(words)
    formatted = without_filled_pauses(words)
    for sentence in sentences_of(formatted):
        add_capitals(sentence)
        add_mark(sentence)
    return formatted


def _message(kind: str, first: int, last: int, words: Sequence[Word]) -> dict[str, Any]:
    """Return a message of the API about the sound from sample `first` to sample `last` of the session."""
    confidences = [word.confidence for word in words]
    return {
        "message_type": kind,
        "audio_start": first * 1000 // RATE,
        "audio_end": last * 1000 // RATE,
        "confidence": round(sum(confidences) / len(confidences), 5) if confidences else 0.0,
        "text": " ".join(word.text for word in words),
        "words": [
            {"start": word.start, "end": word.end, "confidence": round(word.confidence, 5), "text": word.text}
            for word in words
        ],
        "created": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
    }


def main(argv: Sequence[str]) -> int:
    """Run a session. Arguments: sample rate, encoding, engine, "1" for partials, and the process id of the server."""
    rate, encoding, engine, partials, parent = argv
    end_with_parent(int(parent))
    limit_this_process()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not be read as records

    def write(kind: bytes, data: bytes = b"") -> None:
        out.write(realtime.pack(kind, data))
        out.flush()

    recognizer = StreamRecognizer(
        int(rate),
        encoding,
        punctuates=engines.punctuates(engine),
        partials=partials == "1",
        tell=lambda message: write(realtime.MESSAGE, orjson.dumps(message)),
        decode=lambda number, priority, samples: write(
            realtime.DECODE, realtime.pack_request(number, priority, samples.tobytes())
        ),
    )
    write(realtime.READY)
    for kind, data in realtime.unpack(sys.stdin.buffer):
        recognizer.take(kind, data)
        if recognizer.done:
            write(realtime.DONE)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
