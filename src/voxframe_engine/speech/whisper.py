"""Whisper models on faster-whisper: about 100 languages. The default engine.

By default, base and tiny.en come from `voxframe.models`. Another model is a directory in CTranslate2 format, or a name
such as "small" or "Systran/faster-whisper-small", which is downloaded once when the server starts. Words, times,
confidences, capitals and punctuation are the model's.

A model with up to 200 MB is loaded once per core and uses one thread. A larger one uses all cores for one job, and so
does every model on a graphics card. `check` decodes a second of silence on the card if there is one (`VOXFRAME_DEVICE`:
auto, cpu or cuda), and falls back to the processor. No card was at hand to try it. `VOXFRAME_COMPUTE_TYPE` is that of
CTranslate2, by default int8 on the processor.

Windows are decoded one by one on a card, too. BatchedInferencePipeline of faster-whisper always encodes 30 s and has no
second decode, so the windows that this engine decodes in shorter or other ways would cost or lose more than on a
processor. Its gain cannot be measured without a card.

Terms of `word_boost` are given to the model as words to expect. Of 70 synthetic terms of `python -m tests.benchmarks
boost` that are held out, base recognizes 28 without a boost and 63 with it; of the other words, 18 and 8 percent are
wrong. Terms that are not said may still change a capital or a full stop.

Source of the models: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.options import LANGUAGE_CODES
from voxframe.settings import cores
from voxframe_engine import JobFailed
from voxframe_engine.speech import DEFAULT_OPTIONS, RATE, EngineOptions, RecognizedWord

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from faster_whisper.transcribe import Segment

_BEST, _NANO = models.SPEECH  # the first knows all languages, the second English only
_LARGE_BYTES = 200_000_000  # of model.bin; a worker with a smaller model needs less than 450 MB
_SHORT = 2 * RATE  # samples
_UNLIKELY = -1.0  # mean log probability, as in the original implementation
_REPETITIVE = 2.4  # compression ratio of a text that is likely a loop, as in the original implementation
_MANY_TOKENS = 200  # in one segment: decoding ended at the limit, 224 less a long prompt, or the text is a loop
_WINDOW = 28 * RATE  # samples; a longer sound has a window of 30 s anyway
_REST = 2 * RATE  # samples after the end of the text that are decoded again
_SPOKEN = 1.0  # words per second that no model invents in silence
_REMAINDER = 50  # frames of 10 ms; text of a shorter rest of the sound is left out
_TOKENS_PER_S, _TOKENS = 8, 10  # fast speech has 6 a second
_HALVED = 4 * RATE  # samples; longer sound with such a segment is decoded in two halves
_FRAMES_PER_S = 100
_MARGIN_S = 2.0  # silence of a window after the sound; with less, the model repeats itself more often
_SHORTEST_S = 10.0  # window
_QUICK_S = 8.0  # window of a partial; of 500 words, 60 are wrong; with 10 s 57, for 1.25 times the time
_BEAM = 5  # of 638 synthetic words, base gets 3.9 % wrong with it and 6.0 % with 1, for 1.25 times the time
_LONG, _SLOWEST = 10 * RATE, 0.2  # samples, and words per second: speech has two or three
_SHORT_PARTIAL = round(1.2 * RATE)
_STEP_MS = 20  # of the alignment
_CONTRAST = 1.0  # log10 of power, 10 dB; sound with less is evenly loud, or noise
_LOUD = 0.3  # of the range of loudness in the sound, from its quiet to its loud frames
_FRAME_MS = 10
#: Languages written without spaces between words.
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_NO_SPEECH = 0.6  # probability, as in the original implementation
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
#: Language codes of the models that differ in the interface, which has no Cantonese.
_CODES = {"yue": "zh"}

#: Correction of the times of words, measured against the true times of `data/`: medians of 1,500 starts and ends.
_OFFSETS_MS = {"base": 60, "tiny.en": -95}
_PROMPT_CHARS = 800  # of boosted words; the prompt has 223 tokens of about 4 characters
#: Text before each window, by language. Without it, Mandarin is written in traditional or simplified characters.
_PROMPTS = {"zh": "\u4ee5\u4e0b\u662f\u666e\u901a\u8bdd\u7684\u53e5\u5b50\u3002"}  # "These are sentences in Mandarin."
#: Text before a window that the model wrote without punctuation and capitals, by language, to decode it once more.
_MARKED = {"en": "Good morning. How are you? I am fine, thank you."}
_UNMARKED_WORDS = 12  # without a mark; one of 32 cut at random from `data/` was written so
#: Environment variables for the device and the compute type. `check` sets the first to cpu or cuda, for all workers.
_DEVICE, _COMPUTE_TYPE = "VOXFRAME_DEVICE", "VOXFRAME_COMPUTE_TYPE"
#: One decode on a graphics card, in a process of its own: a missing library may end it.
_TRIAL = """import sys, numpy, faster_whisper
model = faster_whisper.WhisperModel(sys.argv[1], device="cuda", compute_type=sys.argv[2], local_files_only=True)
list(model.transcribe(numpy.zeros(16_000, numpy.float32), language="en")[0])"""
_TRIAL_S = 120.0
_log = logging.getLogger("voxframe_engine")


class Whisper:
    """Recognizes speech with a Whisper model, which determines its accuracy and speed."""

    name: ClassVar[str] = "whisper"
    model: ClassVar[str] = "whisper"
    languages: ClassVar[frozenset[str]] = frozenset(LANGUAGE_CODES)
    punctuates: ClassVar[bool] = True

    def __init__(self, options: EngineOptions = DEFAULT_OPTIONS) -> None:
        model = options.model or self.default_model(None, options.language)
        self._full = _load(model)
        self._model, self._quick = (_with_window(self._full, seconds) for seconds in (_SHORTEST_S, _QUICK_S))
        self._language = (options.language or "en").split("_")[0]
        self._offset_ms = _OFFSETS_MS.get(Path(model).name, 0)
        self._hotwords = ", ".join(options.boost) or None
        if self._language != "en" and not self._full.model.is_multilingual:
            raise JobFailed(
                f"The model {Path(model).name} knows English only, not {options.language!r}; start the service "
                "with one that knows other languages, or send language_code en."
            )

    @staticmethod
    def default_model(speech_model: str | None, language: str | None) -> str:
        """Return the model for a job if none was given: the fast one for English with nano, else the accurate one.

        For English, the other one is used if a model is not on this machine.
        """
        if (language or "").split("_")[0] != "en":
            return _BEST
        wanted, other = (_NANO, _BEST) if speech_model == "nano" else (_BEST, _NANO)
        return wanted if models.is_present(wanted) or not models.is_present(other) else other

    @staticmethod
    def ignored(options: Mapping[str, Any]) -> list[str]:
        """Return the options that the models cannot honour, or not in full."""
        ignored = ["disfluencies that the model leaves out"] if options.get("disfluencies") else []
        ignored += ["boost_param"] if options.get("boost_param") else []
        if len(", ".join(options.get("word_boost") or ())) > _PROMPT_CHARS:
            ignored.append(f"word_boost beyond {_PROMPT_CHARS} characters")
        return ignored

    @staticmethod
    def uses_all_cores(model: str | None) -> bool:
        """Return True on a graphics card, and for a model that is too large to be loaded once per core."""
        return _on_card() or (model is not None and _is_large(_folder(model)))

    @classmethod
    def check(cls, model: str | None, download: bool = True) -> None:
        """Check that a model is usable: a directory that contains one, or a name to download. None: the default models.

        One of the default models is enough; without the other, this logs a warning.

        Raises:
            MissingExtraError: faster-whisper is not installed.
            SettingsError: There is no such model or device, or the model cannot be downloaded.
        """
        if find_spec("faster_whisper") is None:
            raise MissingExtraError("local", "The whisper engine")
        cls._check_model(model, download)
        _choose_device(model)

    @classmethod
    def _check_model(cls, model: str | None, download: bool) -> None:
        if model is None or model in models.SPEECH:
            wanted = models.SPEECH if model is None else (model,)
            try:
                models.ensure(*wanted, download=download)
            except ModelError as error:
                there = [name for name in wanted if models.is_present(name)]
                if not there:
                    raise SettingsError(f"the whisper engine cannot start: {error}") from error
                _log.warning("%s. Until then, only %s can be used.", error, " and ".join(there))
            return
        folder = Path(model)
        if folder.is_dir():
            _check_files(folder)
        elif folder.exists():
            raise SettingsError(f"the whisper model {model} is a file; give --model the directory that holds model.bin")
        elif _NAME.fullmatch(model) and not model.startswith("."):
            _download(model)
        else:
            raise SettingsError(
                f"the whisper model {model} is neither a directory nor the name of a model that can be downloaded"
            )

    def transcribe(self, samples: NDArray[np.int16]) -> list[RecognizedWord]:
        """Return the words of the samples."""
        words = self._decode(samples, _PROMPTS.get(self._language))
        if self._language in _MARKED and len(words) >= _UNMARKED_WORDS and not _has_marks(words):
            again = self._decode(samples, _MARKED[self._language])
            words = again if _has_marks(again) else words
        if len(samples) >= _LONG and len(words) < _SLOWEST * len(samples) / RATE:
            return []  # a "Thank you." that the model writes for music
        return words

    def _decode(self, samples: NDArray[np.int16], prompt: str | None) -> list[RecognizedWord]:
        segments = self._segments(self._model, samples, prompt, beam_size=_BEAM)
        if len(samples) < _WINDOW and _is_doubtful(segments, samples):
            segments = self._segments(self._full, samples, prompt, beam_size=_BEAM)
        cut = any(len(segment.tokens) >= _MANY_TOKENS for segment in segments)
        loops = [segment.compression_ratio > _REPETITIVE for segment in segments]
        if (cut or any(loops)) and len(samples) > _HALVED:
            middle = _quietest(samples, len(samples) // 4, len(samples) * 3 // 4)
            words = self._decode(samples[:middle], prompt) + _later(self._decode(samples[middle:], prompt), middle)
        else:
            words = self._words(segments, samples)
            end = round(segments[-1].end * RATE) if segments else len(samples)
            if len(samples) - end >= _REST:  # the model ended its text at a pause
                words += _later(self._decode(samples[end:], prompt), end)
        return _without_loops(words) if any(loops) else words

    def _segments(
        self, model: WhisperModel, samples: NDArray[np.int16], prompt: str | None, *, beam_size: int, **how: Any
    ) -> list[Segment]:
        segments, _ = model.transcribe(
            samples.astype(np.float32) / 32768,
            language=self._language,
            beam_size=beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            initial_prompt=prompt,
            hotwords=self._hotwords,
            word_timestamps=True,
            no_speech_threshold=_NO_SPEECH,
            log_prob_threshold=_UNLIKELY,
            **how,
        )
        # What the model hears in the last few frames after its own end of the text is invented. The library decodes
        # them if it is asked for the next segment.
        last = len(samples) * 100 // RATE - _REMAINDER
        heard: list[Segment] = []
        for segment in segments:
            if segment.seek and segment.seek >= last:
                break
            heard.append(segment)
            if segment.end * 100 >= last:
                break
        # A model may be sure of words that it invents in silence, so their probability does not count, but their number
        # does. In short speech, the probability alone decides: otherwise words such as "yes" would be lost.
        if len(samples) >= _SHORT and any(segment.no_speech_prob > _NO_SPEECH for segment in heard):
            words = sum(len(segment.words or ()) for segment in heard)
            return heard if words >= _SPOKEN * len(samples) / RATE else []
        return heard

    def _words(self, segments: Sequence[Segment], samples: NDArray[np.int16]) -> list[RecognizedWord]:
        words: list[RecognizedWord] = []
        for part in (word for segment in segments for word in segment.words or ()):
            if text := "".join(part.word.split()):
                start, end = (round(seconds * 1000) + self._offset_ms for seconds in (part.start, part.end))
                confidence = min(1.0, max(0.0, float(part.probability)))
                if words and self._language not in _UNSPACED and not part.word.startswith(" "):
                    first = words.pop()  # "ill" of "ill-disposed"
                    text, start, confidence = first.text + text, first.start_ms, min(first.confidence, confidence)
                words.append(RecognizedWord(text, start, end, confidence))
        return _without_silence(fit_into(words, len(samples) * 1000 // RATE), _loudness(samples))

    def transcribe_partial(self, samples: NDArray[np.int16]) -> list[RecognizedWord]:
        """Return the words of unfinished speech, fast. A doubtful result is not decoded again: it is soon replaced."""
        prompt = _PROMPTS.get(self._language)
        segments = self._segments(self._quick, samples, prompt, beam_size=1, without_timestamps=True)
        sound = len(samples) < _SHORT_PARTIAL or all(segment.no_speech_prob <= _NO_SPEECH for segment in segments)
        if not sound or any(segment.compression_ratio > _REPETITIVE for segment in segments):
            return []
        return self._words(segments, samples)

    def detect(self, samples: NDArray[np.int16]) -> tuple[str, float]:
        """Return the language of the samples, and the model's confidence in it."""
        if not self._full.model.is_multilingual:
            raise JobFailed(
                "language_detection needs a model that knows several languages, and this service was started with one "
                "that knows English only; send language_code instead."
            )
        language, confidence, _ = self._full.detect_language(samples.astype(np.float32) / 32768)
        return _CODES.get(language, language), float(confidence)


def _with_window(model: WhisperModel, shortest_s: float) -> WhisperModel:
    """Return the model with windows that fit the sound, of at least `shortest_s`, instead of always 30 s.

    Encoding takes most of the time of a short utterance. A window that just fits makes the model repeat itself and
    invent words. A window of 10 s does not, if the model also predicts times, as it was trained to.
    """

    def encode(features: NDArray[np.float32]) -> Any:
        """Encode features of shape (bands, frames) without most of the frames of zeros that the library appended."""
        sound = np.flatnonzero(features.any(axis=0))
        frames = (int(sound[-1]) + 1 if len(sound) else 0) + round(_MARGIN_S * _FRAMES_PER_S)
        frames = min(max(frames, round(shortest_s * _FRAMES_PER_S)), features.shape[-1]) // 2 * 2
        return model.encode(np.ascontiguousarray(features[:, :frames]))  # the encoder halves their number

    fitting = copy.copy(model)
    fitting.encode = encode
    return fitting


def _later(words: Sequence[RecognizedWord], sample: int) -> list[RecognizedWord]:
    """Return words of sound that begins at a sample, with times from the first sample."""
    at = sample * 1000 // RATE
    return [word._replace(start_ms=word.start_ms + at, end_ms=word.end_ms + at) for word in words]


def _is_doubtful(segments: Sequence[Segment], samples: NDArray[np.int16]) -> bool:
    """Return True for more text than anyone can say in the time, for a loop, and for text that is unlikely."""
    tokens = sum(len(segment.tokens) for segment in segments)
    return tokens > _TOKENS_PER_S * len(samples) / RATE + _TOKENS or any(
        segment.compression_ratio > _REPETITIVE or segment.avg_logprob < _UNLIKELY for segment in segments
    )


def _has_marks(words: Sequence[RecognizedWord]) -> bool:
    return any(word.text[-1] in ".,?!" for word in words)


def _loudness(samples: NDArray[np.int16]) -> NDArray[np.float64]:
    """Return the log10 of the power of each 10 ms, down to 80 dB below the loudest."""
    frame = _FRAME_MS * RATE // 1000
    power = np.square(samples[: len(samples) // frame * frame].reshape(-1, frame), dtype=np.float64).mean(axis=1)
    loudness: NDArray[np.float64] = np.log10(np.maximum(power, max(power.max(initial=0.0) * 1e-8, 1e-3)))
    return loudness


def _quietest(samples: NDArray[np.int16], low: int, high: int) -> int:
    """Return the middle of the quietest 200 ms between two samples."""
    smooth = np.convolve(_loudness(samples[low:high]), np.ones(20), mode="valid")
    return low + (int(np.argmin(smooth)) + 10) * _FRAME_MS * RATE // 1000


def _without_loops(words: Sequence[RecognizedWord]) -> list[RecognizedWord]:
    """Shorten phrases that are repeated three times or more to two occurrences.

    Example:
        >>> words = [RecognizedWord(text, 0, 0, 1.0) for text in "so I went, I went, I went, I went, home".split()]
        >>> " ".join(word.text for word in _without_loops(words))
        'so I went, I went, home'
    """
    kept: list[RecognizedWord] = []
    plain: list[str] = []  # what is compared
    end, phrase = 0, 0  # of the last cut: words kept then, and length of the phrase
    for word in words:
        kept.append(word)
        plain.append(re.sub(r"\W", "", word.text).lower())
        for size in range(1, len(kept) // 3 + 1):
            last = plain[-3 * size :]
            if last[:size] == last[size : 2 * size] == last[2 * size :]:
                del kept[-size:], plain[-size:]
                end, phrase = len(kept), size
                break
    rest = plain[end:]
    unfinished = phrase and rest == plain[end - phrase : end][: len(rest)]  # the limit of tokens ended the loop
    return kept[:end] if unfinished else kept


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


def _without_silence(words: list[RecognizedWord], loudness: NDArray[np.float64]) -> list[RecognizedWord]:
    """Cut quiet frames off both ends of words: the attention counts a pause to the word before or after it."""
    low, high = np.percentile(loudness, (5, 90)) if len(loudness) else (0.0, 0.0)
    if high - low < _CONTRAST:
        return words
    loud = loudness > low + _LOUD * (high - low)
    cut = []
    for word in words:
        first = word.start_ms // _FRAME_MS
        frames = first + np.flatnonzero(loud[first : word.end_ms // _FRAME_MS])
        if len(frames):
            start, end = max(word.start_ms, int(frames[0]) * _FRAME_MS), (int(frames[-1]) + 1) * _FRAME_MS
            word = word._replace(start_ms=start, end_ms=min(word.end_ms, end))
        cut.append(word)
    return cut


def _folder(model: str) -> Path:
    """Return the directory of a model. It was downloaded before the server started."""
    if Path(model).is_dir():
        return Path(model)
    if model in models.SPEECH:
        return models.find(model, download=False)
    from faster_whisper import download_model

    return Path(download_model(model, local_files_only=True))


def _is_large(folder: Path) -> bool:
    return (folder / "model.bin").stat().st_size > _LARGE_BYTES


def _check_files(folder: Path) -> None:
    missing = [name for name in ("model.bin", "config.json", "tokenizer.json") if not (folder / name).is_file()]
    if not any(folder.glob("vocabulary.*")):
        missing.append("vocabulary.json")
    if missing:
        raise SettingsError(
            f"the directory {folder} has no whisper model for CTranslate2; missing: {', '.join(missing)}; convert a "
            "model with ct2-transformers-converter --copy_files tokenizer.json preprocessor_config.json"
        )


def _download(model: str) -> None:
    """Download a model into the cache of the hub, unless it is there, so that jobs need no network."""
    from faster_whisper import available_models, download_model

    if "/" not in model and model not in available_models():
        known = ", ".join(available_models())
        raise SettingsError(f"there is no directory {model} and no whisper model of that name; known names are {known}")
    try:
        folder = Path(download_model(model, local_files_only=True))
    except (OSError, ValueError):  # it is not in the cache
        if reason := models.hub_problem():
            raise _no_download(model, reason) from None
        try:
            folder = Path(download_model(model))
        except Exception as error:  # whichever way a download fails, the way on is the same
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise _no_download(model, reason) from error
    _check_files(folder)


def _no_download(model: str, reason: str) -> SettingsError:
    return SettingsError(
        f"the whisper model {model} is not a directory and could not be downloaded ({reason}); check its name and the "
        "network connection, or download it on another machine and pass its directory to --model"
    )


def _on_card() -> bool:
    return os.environ.get(_DEVICE, "").strip() == "cuda"


def _compute_type(usual: str) -> str:
    return os.environ.get(_COMPUTE_TYPE, "").strip() or usual


def device_for(model: str | None = None) -> tuple[str, str | None]:
    """Return the device of jobs, cpu or cuda, and why the graphics card cannot be used, if it was asked for or found.

    Args:
        model: The model to try on the card. None: the first that is on this machine.

    Raises:
        SettingsError: The setting names another device.
    """
    device = os.environ.get(_DEVICE, "").strip() or "auto"
    if device not in {"auto", "cpu", "cuda"}:
        raise SettingsError(f"{_DEVICE} is {device!r}; it must be auto, cpu or cuda")
    if device == "cpu":
        return "cpu", None
    if not _has_card():
        return "cpu", "there is no driver of NVIDIA on this machine" if device == "cuda" else None
    named = model or next(filter(models.is_present, models.SPEECH), None)
    problem = _card_problem(_folder(named)) if named else "there is no speech model to try it with"
    return "cpu" if problem else "cuda", problem


def _choose_device(model: str | None) -> None:
    """Set the device of all workers: the graphics card if it can decode, else the processor."""
    device, problem = device_for(model)
    if problem:
        _log.warning("The graphics card cannot be used (%s); the processor is used instead.", problem)
    os.environ[_DEVICE] = device


def _has_card() -> bool:
    return shutil.which("nvidia-smi") is not None or Path("/dev/nvidiactl").exists()


def _card_problem(folder: Path) -> str | None:
    """Return why the graphics card cannot decode, or None."""
    try:
        done = subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-P", "-c", _TRIAL, str(folder), _compute_type("default")],
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"one decode took more than {_TRIAL_S:.0f} s"
    lines = done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"]
    return lines[-1] if done.returncode else None


_loaded: dict[str, WhisperModel] = {}  # one, shared by all engines of a process
_loading = threading.Lock()


def _load(model: str) -> WhisperModel:
    from faster_whisper import WhisperModel

    with _loading:
        if model in _loaded:
            return _loaded[model]
        _loaded.clear()  # before the next one is loaded: two would not fit the memory of a worker
        try:
            folder = _folder(model)
            alone = Whisper.uses_all_cores(model)
            _loaded[model] = WhisperModel(
                str(folder),
                device="cuda" if _on_card() else "cpu",
                compute_type=_compute_type("default" if _on_card() else "int8"),
                cpu_threads=cores() if alone else 1,
                num_workers=1 if alone else cores(),  # windows decoded at once, by threads that share the model
                local_files_only=True,
            )
        except ModelError as error:
            raise JobFailed(f"The speech model cannot be used: {error}.") from error
        except Exception as error:  # whatever a broken file makes the libraries say
            raise JobFailed(
                f"The whisper model {Path(model).name} could not be loaded ({type(error).__name__}: {error}). "
                "Check that its files are complete."
            ) from error
        return _loaded[model]
