"""Speaker labels (`speaker_labels`): each word goes to who speaks in most of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.voices.diarization import Diarization, find, labels_of, spans_of
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import RATE, Samples
from voxframe_engine.speech.audio import Audio
from voxframe_engine.speech.audio_child import ChildAudio
from voxframe_engine.text import Word


def voices_of(audio: Audio | ChildAudio, channel: int, speakers: int | None) -> Diarization:
    """Return who speaks when on a channel, with times of the file.

    Raises:
        JobFailed: Voices cannot be told apart here, for example because the models are missing.
    """
    at = audio.start * 1000 // RATE

    def blocks() -> Iterator[Samples]:
        for block in audio.blocks():
            yield block[channel]

    try:
        voices = find()(blocks(), speakers)
    except (MissingExtraError, ModelError, SettingsError) as error:
        raise JobFailed(f"speaker_labels is not available: {error}") from error
    spans, front = (
        [span._replace(start_ms=at + span.start_ms, end_ms=at + span.end_ms) for span in part]
        for part in (voices.spans, voices.front)
    )
    return voices._replace(spans=spans, front=front)


def label_speakers(words: Sequence[Word], voices: Diarization) -> None:
    """Set the `speaker` and `span` of each word in place.

    Args:
        words: Words of one channel, or of all channels mixed, in order.
        voices: Who speaks when; see `voxframe.voices.diarization.spans_of`.
    """
    spans = spans_of([(word.start, word.end) for word in words], voices)
    for word, span, label in zip(words, spans, labels_of(spans, voices.spans), strict=True):
        word.speaker, word.span = label, span
