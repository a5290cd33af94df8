"""The process that listens to one streaming session: `python -P -m voxframe.local.live`, then its `main`'s arguments.

It reads `records` from standard input and writes messages of the interface to
standard output, one JSON object a line: `{"ready": true}`, partials and finals, and last `{"done": true}`. Speech
recognition holds Python's lock, so it has no place in the process that serves the socket; and what cannot keep up stops
reading, which holds back whoever sends. When the service is gone, standard input ends, and this process with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from voxframe.local import engines
from voxframe.local.capitals import add_capitals
from voxframe.local.disfluencies import without_filled_pauses
from voxframe.local.engines import NOTHING, Heard, Wanted
from voxframe.local.incoming import Incoming
from voxframe.local.limits import limit_this_process
from voxframe.local.punctuation import add_mark, find_sentence_ends, sentences_of
from voxframe.local.records import AUDIO, END_UTTERANCE, SILENCE, TERMINATE, unpack
from voxframe.local.samples import RATE
from voxframe.local.segments import Stretch
from voxframe.local.utterances import Utterances
from voxframe.local.words import Word
from voxframe.local.written import finish, take_marks

#: Silence that ends an utterance where the client names none, in ms.
SILENCE_MS = 700
_PARTIAL_MS = 200  # audio between two partials, at least


class Listener:
    """Turns the audio of one session into messages.

    Args:
        rate: Samples a second of the audio.
        encoding: Its encoding.
        engine: Name of the speech engine.
        wanted: What is wanted of it.
        partials: Whether partials are wanted.
    """

    def __init__(self, rate: int, encoding: str, engine: str, wanted: Wanted = NOTHING, *, partials: bool) -> None:
        self._incoming = Incoming(rate, encoding)
        self._engine = engines.find(engine)(wanted)
        self._written = engines.writes(engine)
        live = getattr(self._engine, "live", None) if partials else None
        self._live = live() if live is not None else None
        self._utterances = Utterances(SILENCE_MS)
        self._decoded: list[tuple[Stretch, list[Word]]] = []  # of the utterance under way
        self._following: int | None = None  # first sample of the stretch that `_live` follows
        self._followed = 0  # its samples that `_live` has heard
        self._shown: list[str] = []  # words of the last partial of this utterance
        self._shown_at = 0  # where it ended

    def take(self, kind: bytes, data: bytes) -> Iterator[dict[str, Any]]:
        """Messages that a record leads to."""
        if kind == AUDIO:
            yield from self._hear(self._utterances.feed(self._incoming.samples(data)))
            yield from self._partial()
        elif kind == SILENCE:
            self._utterances.silence_ms = int(data)
        elif kind == END_UTTERANCE:
            yield from self._hear(self._utterances.end(), asked_for=True)
        elif kind == TERMINATE:
            yield from self._hear(self._utterances.feed(self._incoming.rest()))
            yield from self._hear(self._utterances.finish())

    def _hear(self, stretches: Iterator[Stretch | None], *, asked_for: bool = False) -> Iterator[dict[str, Any]]:
        for stretch in stretches:
            if stretch is not None:
                self._decoded.append((stretch, _words(stretch, self._engine.transcribe(stretch.samples))))
                self._leave()
                continue
            words = self._shaped()
            # Noise that no word was found in is not worth a message, unless somebody waits for one.
            if words or asked_for or self._shown:
                first, last = self._decoded[0][0].start, _end(self._decoded[-1][0])
                yield _message("FinalTranscript", first, last, words) | {"punctuated": True, "text_formatted": True}
            self._decoded, self._shown, self._shown_at = [], [], 0

    def _shaped(self) -> list[Word]:
        """The words of the utterance, written as people do."""
        words = [word for _, heard in self._decoded for word in heard]
        if not words:
            return []
        if self._written:
            words = without_filled_pauses(take_marks(words))
            finish(words, punctuate=True, format_text=True)
            return words
        find_sentence_ends(words)
        words = without_filled_pauses(words)
        for sentence in sentences_of(words):
            add_capitals(sentence)
            add_mark(sentence)
        return words

    def _partial(self) -> Iterator[dict[str, Any]]:
        """The words of the utterance so far: of the stretches that are decoded, and what is followed of the next."""
        stretch = self._utterances.speaking if self._live is not None else None
        if stretch is None:
            return
        assert self._live is not None
        if self._following != stretch.start:
            self._leave()
            self._following = stretch.start
        words = [word for _, heard in self._decoded for word in heard]
        words += _words(stretch, self._live.hear(stretch.samples[self._followed :]))
        self._followed = len(stretch.samples)
        texts = [word.text for word in words]
        if texts and texts != self._shown and _end(stretch) - self._shown_at >= _PARTIAL_MS * RATE // 1000:
            self._shown, self._shown_at = texts, _end(stretch)
            first = self._decoded[0][0].start if self._decoded else stretch.start
            yield _message("PartialTranscript", first, _end(stretch), words)

    def _leave(self) -> None:
        """The stretch that is followed is over."""
        if self._live is not None and self._following is not None:
            self._live.end()
        self._following, self._followed = None, 0


def _words(stretch: Stretch, heard: Sequence[Heard]) -> list[Word]:
    at = stretch.start * 1000 // RATE
    return [Word(word.text, at + word.start_ms, at + word.end_ms, word.confidence) for word in heard]


def _end(stretch: Stretch) -> int:
    return stretch.start + len(stretch.samples)


def _message(kind: str, first: int, last: int, words: Sequence[Word]) -> dict[str, Any]:
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
    wanted = Wanted(model or None, boost=tuple(json.loads(boost)))
    listener = Listener(int(rate), encoding, engine, wanted, partials=partials == "1")
    out.write(b'{"ready":true}\n')
    out.flush()
    for kind, data in unpack(sys.stdin.buffer):
        for message in listener.take(kind, data):
            out.write(orjson.dumps(message) + b"\n")
            out.flush()
        if kind == TERMINATE:
            out.write(b'{"done":true}\n')
            out.flush()
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
