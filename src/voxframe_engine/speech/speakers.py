"""Speaker labels (`speaker_labels`): each word goes to who speaks in most of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.voices.diarization import Span, find, labels_of
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import RATE, Samples
from voxframe_engine.speech.audio import Audio
from voxframe_engine.speech.audio_child import ChildAudio
from voxframe_engine.text import Word

SpokenSpans: TypeAlias = Sequence[Span]


def spans_of(audio: Audio | ChildAudio, channel: int, speakers: int | None) -> list[Span]:
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
    """Set the `speaker` of each word in place.

    Args:
        words: Words of one channel, or of all channels mixed, in order.
        spans: Who speaks when, ordered by start; see `voxframe.voices.diarization.labels_of`.
    """
    for word, label in zip(words, labels_of([(word.start, word.end) for word in words], spans), strict=True):
        word.speaker = label
