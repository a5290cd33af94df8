"""Speaker labels (`speaker_labels`): each word goes to who speaks in most of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.voices.diarization import Span, find
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import RATE, Samples
from voxframe_engine.speech.audio import Audio
from voxframe_engine.text import Word

SpokenSpans: TypeAlias = Sequence[Span]


def spans_of(audio: Audio, channel: int, speakers: int | None) -> list[Span]:
    """Return who speaks when on a channel, with times of the file.

    Raises:
        JobFailed: Voices cannot be told apart here, for example because the models are missing.
    """
    at = audio.start * 1000 // RATE

    def blocks() -> Iterator[Samples]:
        for block in audio.blocks():
            yield block[channel]

    try:
        spans = find()(blocks(), speakers).spans
    except (MissingExtraError, ModelError, SettingsError) as error:
        raise JobFailed(f"speaker_labels is not available: {error}") from error
    return [Span(at + span.start_ms, at + span.end_ms, span.speaker) for span in spans]


def label_speakers(words: Sequence[Word], spans: Sequence[Span]) -> None:
    """Set the `speaker` of each word in place: "A" for the first speaker of a word, then "B", and so on.

    A word that several speak in equally goes to the speaker of the word before, if that is one of them. A word outside
    all spans goes to the nearest.

    Args:
        words: Words of one channel, or of all channels mixed, in order.
        spans: Who speaks when, ordered by start. Without any, all words have one speaker.
    """
    starts = np.array([span.start_ms for span in spans], np.int64)
    ends = np.array([span.end_ms for span in spans], np.int64)
    speakers = np.array([span.speaker for span in spans], np.int64)
    count = int(speakers.max()) + 1 if len(spans) else 1
    labels: dict[int, str] = {}
    before = -1
    for word in words:
        if len(spans):
            shared = np.minimum(ends, word.end) - np.maximum(starts, word.start)  # negative: the distance
            spoken = np.bincount(speakers, np.maximum(shared, 0), count)
            best = spoken.max()
            if best <= 0:
                before = int(speakers[shared.argmax()])
            elif before < 0 or spoken[before] < best:
                before = int(spoken.argmax())
        else:
            before = 0
        word.speaker = labels.setdefault(before, chr(ord("A") + len(labels)))
