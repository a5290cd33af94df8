"""Transcription of a media file: from the file and the options of a job to the result fields of the API."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voxframe._text import join_words
from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.voices.diarization import Diarization, find, labels_of, spans_of
from voxframe_engine import JobFailed, analyses
from voxframe_engine.speech import RATE, EngineOptions, RecognizedWord, Samples, engines
from voxframe_engine.speech.audio import Audio, ChildAudio
from voxframe_engine.speech.engines import Engine, detect_language
from voxframe_engine.speech.vad import Segmenter, Stretch, Window, WindowPacker
from voxframe_engine.text import Word, turns, utterance
from voxframe_engine.text.formatting import (
    add_capitals,
    add_mark,
    find_sentence_ends,
    join_punctuation,
    masked,
    respell,
    sentences_of,
    split_punctuation,
    without_filled_pauses,
)

_AHEAD = 2  # windows in progress per thread; bounds memory and keeps all cores busy
_DETECTED = 30 * RATE  # samples of speech for the detection of a language


def run_job(
    media: Path,
    options: Mapping[str, Any],
    *,
    progress: Callable[[float], None] = lambda _: None,
    workers: int = 1,
    isolated: bool = False,
    engine: str = engines.DEFAULT,
    model: str | None = None,
) -> dict[str, Any]:
    """Transcribe a file.

    Args:
        media: The file, in any common container and codec.
        options: Fields of the request; None and missing fields have their defaults.
        progress: Called with the completed share, from 0 to 1, after each window of speech.
        workers: Number of threads that decode speech. The models of an engine are loaded once for all of them.
        isolated: Decode the file in a child process, which a malicious file may crash or take over.
        model: Directory or name of its model. None (default): the engine's own.

    Returns:
        Result fields of the API: text, words, utterances (or None), confidence, audio_duration (whole seconds),
        audio_channels (with multichannel), language_code, language_confidence (with language_detection),
        language_model, acoustic_model, and the results of requested analyses (see `analyses.apply`).

    Raises:
        JobFailed: The job cannot be completed; its reason is the text for `error`.
    """
    language, confidence = options.get("language_code") or "en_us", None
    if not engines.supports(language, engine):
        raise JobFailed(engines.refusal(language, engine))
    apart = bool(options.get("multichannel") or options.get("dual_channel"))
    open_audio = partial(
        ChildAudio if isolated else Audio,
        media,
        separate_channels=apart,
        start_ms=options.get("audio_start_from") or 0,
        end_ms=options.get("audio_end_at"),
    )
    if model is None:
        detected = bool(options.get("language_detection"))
        model = engines.default_model(engine, options.get("speech_model"), None if detected else language)
    least = options.get("speech_threshold")
    if least:
        fraction = _speech_fraction(open_audio())
        if fraction < least:
            raise JobFailed(
                f"Speech makes up {fraction:.3f} of the audio, less than the speech_threshold of {least:g}."
            )

    if options.get("language_detection"):
        threshold = options.get("language_confidence_threshold") or 0
        language, confidence = _detected(open_audio(), engine, model, threshold)

    audio = open_audio()
    boost, boost_param = tuple(options.get("word_boost") or ()), options.get("boost_param") or "default"
    engine_options = EngineOptions(model, language, boost, boost_param)
    channels: list[list[Word]] = [[] for _ in range(audio.channels)]
    speakers = _speakers(open_audio, options) if options.get("speaker_labels") else None
    for channel, window, heard in _recognize(audio, engine, engine_options, workers=workers):
        at = audio.start * 1000 // RATE
        for word in heard:
            start, end = window.span_ms(word.start_ms, word.end_ms)
            channels[channel].append(Word(word.text, at + start, at + end, word.confidence))
        progress(audio.fraction_before(window.stretches[-1].end))

    _name_speakers(channels, speakers, apart=apart)
    written, english = engines.punctuates(engine), language in analyses.LANGUAGES
    channels = [_shaped(words, options, written=written, english=english) for words in channels]
    words = sorted((word for channel in channels for word in channel), key=lambda word: word.start)
    named = engines.model_name(engine, model)
    result = {
        "text": join_words(word.text for word in words),
        "words": [word.to_dict() for word in words],
        "utterances": [utterance(turn) for turn in turns(channels)] if apart or options.get("speaker_labels") else None,
        "confidence": sum(word.confidence for word in words) / len(words) if words else 0.0,
        "audio_duration": round(audio.seconds),
        "audio_channels": audio.channels if options.get("multichannel") else None,
        "language_code": language,
        "language_confidence": confidence,
        "language_model": named,
        "acoustic_model": named,
    }
    result = analyses.apply(result, options)
    progress(1.0)
    return result


def _detected(audio: Audio | ChildAudio, engine: str, model: str | None, least: float) -> tuple[str, float]:
    """Return the language of a recording and the engine's confidence in it."""
    samples = _first_speech(audio)
    if not len(samples):
        raise JobFailed("No speech was found, so its language cannot be detected; send language_code instead.")
    language, confidence = detect_language(engine, model, samples)
    if confidence < least:
        raise JobFailed(
            f"The detected language {language!r} has a confidence of {confidence:.3f}, less than the "
            f"language_confidence_threshold of {least:g}."
        )
    return language, round(confidence, 5)


def _speakers(open_audio: Callable[[], Audio | ChildAudio], options: Mapping[str, Any]) -> list[Diarization]:
    """Return who speaks when on each channel."""
    audio = open_audio()
    expected = options.get("speakers_expected")
    count = expected if audio.channels == 1 else 1 if expected is not None and expected <= audio.channels else None
    return [voices_of(open_audio(), channel, count) for channel in range(audio.channels)]


def _name_speakers(channels: Sequence[Sequence[Word]], speakers: Sequence[Diarization] | None, *, apart: bool) -> None:
    """Set channel and speaker of words in place. Without speaker labels, each channel is a speaker."""
    if speakers is not None:
        for words, voices in zip(channels, speakers, strict=True):
            label_speakers(words, voices)
    for number, words in enumerate(channels, 1):
        for word in words:
            if apart:
                word.channel = str(number)
                word.speaker = str(number) if word.speaker is None else f"{number}{word.speaker}"


def _shaped(words: Sequence[Word], options: Mapping[str, Any], *, written: bool, english: bool) -> list[Word]:
    """Return the words of a channel, formatted according to the options; `written`: the engine has done so.

    Lists of English words are not used for other languages, in which they mean something else: "er" is "he" in German.
    """
    if written:
        words = split_punctuation(words)
    # Whisper writes some recordings without any mark.
    by_rules = not written or (english and not any(word.mark for word in words))
    if by_rules:
        find_sentence_ends(words)
    if english and not options.get("disfluencies"):
        words = without_filled_pauses(words)
    words = respell(words, options.get("custom_spelling") or ())
    format_text, punctuate = options.get("format_text") is not False, options.get("punctuate") is not False
    if written:
        join_punctuation(words, punctuate=punctuate, format_text=format_text)
    if by_rules:
        for sentence in sentences_of(words):
            if format_text:
                add_capitals(sentence)
            if punctuate:
                add_mark(sentence)
    if english and options.get("filter_profanity"):
        for word in words:
            word.text = masked(word.text)
    return list(words)


def _recognize(
    audio: Audio | ChildAudio, engine: str, options: EngineOptions, *, workers: int
) -> Iterator[tuple[int, Window, list[RecognizedWord]]]:
    """Yield channel, window and words of all speech in a recording, ordered by the end of each window."""
    per_thread = threading.local()

    def hear(window: Window) -> list[RecognizedWord]:
        if not hasattr(per_thread, "engine"):
            per_thread.engine = engines.find(engine)(options)
        recognizer: Engine = per_thread.engine
        return recognizer.transcribe(window.samples)

    if workers == 1:
        yield from ((channel, window, hear(window)) for channel, window in _windows(audio))
        return
    pending: deque[tuple[int, Window, Future[list[RecognizedWord]]]] = deque()
    with ThreadPoolExecutor(workers, "voxframe-decode") as pool:
        try:
            for channel, window in _windows(audio):
                pending.append((channel, window, pool.submit(hear, window)))
                if len(pending) > _AHEAD * workers:
                    yield pending[0][0], pending[0][1], pending.popleft()[2].result()
            while pending:
                yield pending[0][0], pending[0][1], pending.popleft()[2].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _first_speech(audio: Audio | ChildAudio) -> Samples:
    """Return the first 30 s of speech of all channels, with silence removed."""
    blocks: list[Samples] = []
    for _, stretch in _stretches(audio):
        blocks.append(stretch.samples)
        if sum(map(len, blocks)) >= _DETECTED:
            break
    return np.concatenate(blocks)[:_DETECTED] if blocks else np.zeros(0, np.int16)


def _speech_fraction(audio: Audio | ChildAudio) -> float:
    """Return the fraction of a recording that is speech, 0 to 1. Speech on any of several channels counts."""
    segmenters = [Segmenter() for _ in range(audio.channels)]
    for block in audio.blocks():
        for segmenter, samples in zip(segmenters, block, strict=True):
            for _ in segmenter.feed(samples):
                pass
    return min(1.0, sum(segmenter.speech / max(segmenter.frames, 1) for segmenter in segmenters))


def _stretches(audio: Audio | ChildAudio) -> Iterator[tuple[int, Stretch]]:
    segmenters = [Segmenter() for _ in range(audio.channels)]
    for block in audio.blocks():
        for channel, samples in enumerate(block):
            yield from ((channel, stretch) for stretch in segmenters[channel].feed(samples))
    for channel, segmenter in enumerate(segmenters):
        yield from ((channel, stretch) for stretch in segmenter.finish())


def _windows(audio: Audio | ChildAudio) -> Iterator[tuple[int, Window]]:
    packers = [WindowPacker() for _ in range(audio.channels)]
    for channel, stretch in _stretches(audio):
        yield from ((channel, window) for window in packers[channel].feed(stretch))
    for channel, packer in enumerate(packers):
        yield from ((channel, window) for window in packer.finish())


def voices_of(audio: Audio | ChildAudio, channel: int, speakers: int | None) -> Diarization:
    """Return who speaks when on a channel, with times of the file. Raise JobFailed if that cannot be told."""
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
    """Set the `speaker` and `span` of each word in place. The words are of one channel, or of all channels mixed."""
    spans = spans_of([(word.start, word.end) for word in words], voices)
    for word, span, label in zip(words, spans, labels_of(spans, voices.spans), strict=True):
        word.speaker, word.span = label, span
