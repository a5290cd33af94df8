"""A job, start to finish: a media file and options in, the result fields of the wire out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from voxframe.local import analyses, engines
from voxframe.local.analyses.speakers import Voices, label_speakers
from voxframe.local.audio import Audio
from voxframe.local.capitals import add_capitals
from voxframe.local.custom_spelling import respell
from voxframe.local.disfluencies import without_filled_pauses
from voxframe.local.engines import Wanted
from voxframe.local.failed import JobCancelled, JobFailed
from voxframe.local.listening import first_speech, listen, new_pool, speech_fraction
from voxframe.local.profanity import masked
from voxframe.local.punctuation import add_mark, find_sentence_ends, sentences_of
from voxframe.local.samples import RATE
from voxframe.local.turns import turns, utterance
from voxframe.local.words import Word
from voxframe.local.written import finish, take_marks

__all__ = ["JobCancelled", "JobFailed", "new_pool", "run_job"]


def run_job(
    media: Path,
    options: Mapping[str, Any],
    *,
    progress: Callable[[float], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    pool: Executor | None = None,
    engine: str = engines.DEFAULT,
    model: str | None = None,
) -> dict[str, Any]:
    """Transcribe a file.

    Args:
        media: The file; any common container and codec that carries audio.
        options: Create fields of the interface; those that are missing or None take their defaults.
        progress: Told how much is done, from 0 to 1, as stretches of speech finish.
        cancelled: Asked now and then; when it says True the job stops.
        pool: Where speech is decoded (see `new_pool`); without one, in this process.
        engine: Name of the speech engine.
        model: Its model: a directory or a name; None for its own.

    Returns:
        Result fields of the wire: text, words, utterances (or None), confidence, audio_duration (whole seconds),
        audio_channels (with multichannel), language_code, language_confidence (with language_detection),
        language_model, acoustic_model, and those of the analyses that were asked for (see `analyses.apply`).

    Raises:
        JobFailed: The job cannot be done; its reason is the text for `error`.
        JobCancelled: `cancelled` said so.
    """
    language, confidence = options.get("language_code") or "en_us", None
    if not engines.supports(language, engine):
        raise JobFailed(engines.refusal(language, engine))
    apart = bool(options.get("multichannel") or options.get("dual_channel"))
    open_audio = partial(
        Audio, media, apart=apart, start_ms=options.get("audio_start_from") or 0, end_ms=options.get("audio_end_at")
    )
    least = options.get("speech_threshold")
    if least:
        fraction = speech_fraction(open_audio())
        if fraction < least:
            raise JobFailed(
                f"Speech makes up {fraction:.3f} of the audio, less than the speech_threshold of {least:g}."
            )

    if options.get("language_detection"):
        language, confidence = _detected(open_audio(), engine, model, options.get("language_confidence_threshold") or 0)

    audio = open_audio()
    boost, boost_param = tuple(options.get("word_boost") or ()), options.get("boost_param") or "default"
    wanted = Wanted(model, language, boost, boost_param)
    channels: list[list[Word]] = [[] for _ in range(audio.channels)]
    voices: list[list[Voices]] = [[] for _ in range(audio.channels)]
    voiced = bool(options.get("speaker_labels"))
    for part in listen(audio, engine, wanted, voices=voiced, pool=pool, cancelled=cancelled):
        at = (audio.start + part.stretch.start) * 1000 // RATE
        channels[part.channel] += [
            Word(word.text, at + word.start_ms, at + word.end_ms, word.confidence) for word in part.heard.words
        ]
        if part.heard.voice is not None:
            voices[part.channel].append(Voices(at, part.heard.voice))
        progress(audio.share_before(part.stretch.start + len(part.stretch.samples)))

    _name_speakers(channels, voices, options, apart=apart)
    channels = [_shaped(words, options, written=engines.writes(engine)) for words in channels]
    words = sorted((word for channel in channels for word in channel), key=lambda word: word.start)
    named = engines.model_name(engine, model)
    result = {
        "text": " ".join(word.text for word in words),
        "words": [word.wire() for word in words],
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


def _detected(audio: Audio, engine: str, model: str | None, least: float) -> tuple[str, float]:
    """The language of a recording and the engine's confidence in it."""
    samples = first_speech(audio)
    if not len(samples):
        raise JobFailed("No speech was found, so its language cannot be detected; send language_code instead.")
    found: Any = engines.find(engine)(Wanted(model))
    language, confidence = found.detect(samples)
    if confidence < least:
        raise JobFailed(
            f"The detected language {language!r} has a confidence of {confidence:.3f}, less than the "
            f"language_confidence_threshold of {least:g}."
        )
    return language, round(confidence, 5)


def _name_speakers(
    channels: Sequence[Sequence[Word]], voices: Sequence[Sequence[Voices]], options: Mapping[str, Any], *, apart: bool
) -> None:
    """Set channel and speaker of the words, in place: without speaker labels, a channel is a speaker."""
    expected = options.get("speakers_expected")
    if options.get("speaker_labels"):
        for words, heard in zip(channels, voices, strict=True):
            alone = expected is not None and expected <= len(channels)
            label_speakers(words, heard, 1 if alone else expected if len(channels) == 1 else None)
    for number, words in enumerate(channels, 1):
        for word in words:
            if apart:
                word.channel = str(number)
                word.speaker = str(number) if word.speaker is None else f"{number}{word.speaker}"


def _shaped(words: Sequence[Word], options: Mapping[str, Any], *, written: bool) -> list[Word]:
    """Words of a channel, written as the options want them; `written`: the engine has done so already."""
    if written:
        words = take_marks(words)
    else:
        find_sentence_ends(words)
    if not options.get("disfluencies"):
        words = without_filled_pauses(words)
    words = respell(words, options.get("custom_spelling") or ())
    format_text, punctuate = options.get("format_text") is not False, options.get("punctuate") is not False
    if written:
        finish(words, punctuate=punctuate, format_text=format_text)
    else:
        for sentence in sentences_of(words):
            if format_text:
                add_capitals(sentence)
            if punctuate:
                add_mark(sentence)
    if options.get("filter_profanity"):
        for word in words:
            word.text = masked(word.text)
    return list(words)
