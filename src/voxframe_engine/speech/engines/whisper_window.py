"""Decoding with a Whisper model on a window that fits the sound, instead of the 30 s that the library always encodes.

Encoding takes most of the time of a short utterance. A window that just fits makes the model repeat itself and invent
words. On 26 utterances of 1 to 9 s, the word error rate of tiny.en was 0.262 with such a window, 0.074 with at least
10 s, and 0.068 with 30 s, which takes four times as long. A doubtful result is decoded again with 30 s.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe_engine.speech import RATE
from voxframe_engine.speech.engines import RecognizedWord

if TYPE_CHECKING:
    from ctranslate2 import StorageView
    from faster_whisper import WhisperModel
    from faster_whisper.tokenizer import Tokenizer

#: Longest sound of one window, in seconds.
LONGEST_S = 30.0
#: Mean log probability below which a decode is doubtful, as in the original implementation.
UNLIKELY = -1.0
_SHORTEST_S = 10.0
_SHORTEST_QUICK_S = 8.0  # of 500 words in partials, 60 are wrong; with 10 s 57, for 1.25 times the time
_MARGIN_S = 1.0  # of the window after the end of the sound
_STEP_MS = 20  # of the alignment
_FRAME_RATE = 100  # frames of features per second
_TOKENS_PER_S = 8  # fast speech has 6
_MAX_TOKENS = 200  # of one window; the models have room for 224 after a prompt
_REPETITIVE = 2.4  # compression ratio of a text that is likely a loop, as in the original implementation
_CONTRAST = 0.25  # 10 dB; less is evenly loud, or noise
_LOUD = 0.3  # of the range of loudness in the sound, from its quiet to its loud frames
#: Languages written without spaces between words.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
#: Marks that belong to the next and to the previous word, as in the library.
_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、"  # noqa: RUF001 - Chinese marks


class Hypothesis(NamedTuple):
    """Text of one window of sound.

    Attributes:
        words: The words as written, with times from the start of the sound.
        log_probability: Mean log probability of the tokens.
        no_speech: Probability that there is no speech, 0 to 1.
        repetitive: The text repeats itself so much that it is likely a loop of the model.
    """

    words: list[RecognizedWord]
    log_probability: float
    no_speech: float
    repetitive: bool


class _Decode(NamedTuple):
    encoded: StorageView
    tokens: list[int]
    log_probability: float
    no_speech: float
    repetitive: bool
    doubtful: bool


def decode_window(
    model: WhisperModel,
    samples: NDArray[np.int16],
    language: str,
    hotwords: str | None = None,
    *,
    prompt: str | None = None,
    beam_size: int = 1,
    offset_ms: int = 0,
    quick: bool = False,
) -> Hypothesis:
    """Return what is said in up to 30 s of sound.

    Args:
        model: The model.
        samples: Mono, 16 kHz.
        language: Language code of the model, such as "en". Models that know English only ignore it.
        hotwords: Words to expect.
        prompt: Text that seems to precede the sound; the model keeps to its style.
        beam_size: Number of hypotheses to follow; 1 is fastest.
        offset_ms: Added to the times of words, for a model whose attention is early or late.
        quick: Encode at least 8 s instead of 10, and accept a doubtful result, because it is soon replaced.

    Returns:
        The text. It has no words if the model heard none.
    """
    from faster_whisper.tokenizer import Tokenizer

    tokenizer = Tokenizer(model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language)
    sound = samples.astype(np.float32) / 32768
    features = model.feature_extractor(sound)[:, : round(LONGEST_S * _FRAME_RATE)].astype(np.float32)
    length = min(len(sound) * _FRAME_RATE // RATE, features.shape[1])
    before = tokenizer.encode(prompt) if prompt else []
    start = model.get_prompt(tokenizer, before, without_timestamps=True, hotwords=hotwords)
    window_s = min(LONGEST_S, max(_SHORTEST_QUICK_S if quick else _SHORTEST_S, length / _FRAME_RATE + _MARGIN_S))
    decode = partial(_decode, model, tokenizer, start, features, length, beam_size)
    found = decode(window_s)
    if not quick and found.doubtful and window_s < LONGEST_S:
        found = decode(LONGEST_S)
    words = _words(model, tokenizer, found, length, offset_ms)
    words = _without_silence(words, features[:, :length].mean(axis=0))
    return Hypothesis(words, found.log_probability, found.no_speech, found.repetitive)


def _decode(
    model: WhisperModel,
    tokenizer: Tokenizer,
    prompt: list[int],
    features: NDArray[np.float32],
    length: int,
    beam_size: int,
    window_s: float,
) -> _Decode:
    frames = int(window_s * _FRAME_RATE) // 2 * 2  # the encoder halves their number
    padded = np.zeros((features.shape[0], frames), np.float32)
    padded[:, : features.shape[1]] = features[:, :frames]
    encoded = model.encode(padded)
    limit = min(length * _TOKENS_PER_S // _FRAME_RATE + 10, _MAX_TOKENS)
    result = model.model.generate(
        encoded,
        [prompt],
        beam_size=beam_size,
        max_length=len(prompt) + limit,
        return_scores=True,
        return_no_speech_prob=True,
    )[0]
    tokens = [token for token in result.sequences_ids[0] if token < tokenizer.eot]
    text = tokenizer.decode(tokens).encode()
    repetitive = len(text) > _REPETITIVE * len(zlib.compress(text))
    doubtful = repetitive or len(tokens) >= limit - 1 or result.scores[0] < UNLIKELY
    return _Decode(encoded, tokens, result.scores[0], result.no_speech_prob, repetitive, doubtful)


def _words(
    model: WhisperModel, tokenizer: Tokenizer, found: _Decode, length: int, offset_ms: int
) -> list[RecognizedWord]:
    """Align the tokens with the sound and join them to words."""
    from faster_whisper.transcribe import merge_punctuations

    (aligned,) = model.find_alignment(tokenizer, [found.tokens], found.encoded, length) or [[]]
    merge_punctuations(aligned, _OPENING, _CLOSING)
    spaced = tokenizer.language_code not in UNSPACED
    words: list[RecognizedWord] = []
    for part in aligned:
        if text := "".join(part["word"].split()):
            start, end = (round(part[side] * 1000) + offset_ms for side in ("start", "end"))
            confidence = min(1.0, max(0.0, float(part["probability"])))
            if words and spaced and not part["word"].startswith(" "):  # "-disposed" of "ill-disposed"
                first = words.pop()
                text, start, confidence = first.text + text, first.start_ms, min(first.confidence, confidence)
            words.append(RecognizedWord(text, start, end, confidence))
    return fit_into(words, length * 1000 // _FRAME_RATE)


def fit_into(words: list[RecognizedWord], last_ms: int) -> list[RecognizedWord]:
    """Move words into the sound, each at least one step of the alignment long.

    The alignment may give a word no step, and the correction of times moves words beyond the ends of the sound.
    """
    fitting: list[RecognizedWord] = []
    earliest = 0
    for word in words:
        start = max(word.start_ms, earliest)
        earliest = max(word.end_ms, start + _STEP_MS)
        fitting.append(word._replace(start_ms=start, end_ms=earliest))
    latest = last_ms
    for at, word in reversed(list(enumerate(fitting))):
        end = min(word.end_ms, latest)
        latest = min(word.start_ms, end - _STEP_MS)
        fitting[at] = word._replace(start_ms=max(latest, 0), end_ms=max(end, 0))
    return fitting


def _without_silence(words: list[RecognizedWord], loudness: NDArray[np.float32]) -> list[RecognizedWord]:
    """Cut quiet frames off both ends of words: the attention counts a pause to the word before or after it."""
    low, high = np.percentile(loudness, (5, 90)) if len(loudness) else (0.0, 0.0)
    if high - low < _CONTRAST:
        return words
    loud = loudness > low + _LOUD * (high - low)
    frame_ms = 1000 // _FRAME_RATE
    cut = []
    for word in words:
        first = word.start_ms // frame_ms
        frames = first + np.flatnonzero(loud[first : word.end_ms // frame_ms])
        if len(frames):
            start, end = max(word.start_ms, int(frames[0]) * frame_ms), (int(frames[-1]) + 1) * frame_ms
            word = word._replace(start_ms=start, end_ms=min(word.end_ms, end))
        cut.append(word)
    return cut
