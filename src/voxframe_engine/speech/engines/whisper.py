"""Whisper models on faster-whisper: about 100 languages. The default engine.

By default, base and tiny.en come from `voxframe.models`. Another model is a directory in CTranslate2 format, or a name
such as "small" or "Systran/faster-whisper-small", which is downloaded once when the server starts. Words, times,
confidences, capitals and punctuation are the model's.

A model with up to 200 MB is loaded once per core and uses one thread. A larger one uses all cores for one job.

Terms of `word_boost` are given to the model as words to expect. Of 70 synthetic terms of `python -m tests.benchmarks
boost` that are held out, base recognizes 28 without a boost and 63 with it; of the other words, 18 and 8 percent are
wrong. Terms that are not said may still change a capital or a full stop.

Source of the models: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.options import LANGUAGE_CODES
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import RATE
from voxframe_engine.speech.engines import DEFAULT_OPTIONS, EngineOptions, RecognizedWord, StretchLimits
from voxframe_engine.speech.engines.whisper_window import UNLIKELY, Hypothesis, decode_window

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

_BEST, _NANO = models.SPEECH  # the first knows all languages, the second English only
_LARGE_BYTES = 200_000_000  # of model.bin; a worker with a smaller model needs less than 450 MB
_SHORT = 2 * RATE  # samples
_BEAM = 5  # of 638 synthetic words, base gets 3.9 % wrong with it and 6.0 % with 1, for 1.25 times the time
_LONG, _SLOWEST = 10 * RATE, 0.1  # samples, and words per second: speech has two or three
_SHORT_PARTIAL = round(1.2 * RATE)
_NO_SPEECH = 0.6  # probability, as in the original implementation
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
#: Language codes of the models that differ in the interface, which has no Cantonese.
_CODES = {"yue": "zh"}

#: Correction of the times of words, measured against the true times of `data/`: medians of 1,500 starts and ends.
_OFFSETS_MS = {"base": 60, "tiny.en": -95}
_PROMPT_CHARS = 800  # of boosted words; the prompt has 223 tokens of about 4 characters
#: Text before each stretch, by language. Without it, Mandarin is written in traditional or simplified characters.
_PROMPTS = {"zh": "\u4ee5\u4e0b\u662f\u666e\u901a\u8bdd\u7684\u53e5\u5b50\u3002"}  # "These are sentences in Mandarin."
#: Text before a stretch that the model wrote without punctuation and capitals, by language, to decode it once more.
_MARKED = {"en": "Good morning. How are you? I am fine, thank you."}
_UNMARKED_WORDS = 12  # without a mark; one of 32 stretches cut at random from `data/` was written so
_log = logging.getLogger("voxframe_engine")


class Whisper:
    """Recognizes speech with a Whisper model, which determines its accuracy and speed."""

    name: ClassVar[str] = "whisper"
    model: ClassVar[str] = "whisper"
    languages: ClassVar[frozenset[str]] = frozenset(LANGUAGE_CODES)
    punctuates: ClassVar[bool] = True
    # Each window costs at least 10 s of encoding. But the model often ends its text at a pause of a second.
    stretches: ClassVar[StretchLimits] = StretchLimits(enough_s=20.0, longest_s=28.0, pause_s=0.7)

    def __init__(self, options: EngineOptions = DEFAULT_OPTIONS) -> None:
        model = options.model or self.default_model(None, options.language)
        self._model = _load(model)
        self._language = (options.language or "en").split("_")[0]
        self._offset_ms = _OFFSETS_MS.get(Path(model).name, 0)
        self._hotwords = ", ".join(options.boost) or None
        if self._language != "en" and not self._model.model.is_multilingual:
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
        """Return True for a model that is too large to be loaded once per core."""
        return model is not None and _is_large(_folder(model))

    @classmethod
    def check(cls, model: str | None, download: bool = True) -> None:
        """Check that a model is usable: a directory that contains one, or a name to download. None: the default models.

        One of the default models is enough; without the other, this logs a warning.

        Args:
            model: The model.
            download: Download a model of `voxframe.models` that is not on this machine.

        Raises:
            MissingExtraError: faster-whisper is not installed.
            SettingsError: There is no such model, or it cannot be downloaded.
        """
        if find_spec("faster_whisper") is None:
            raise MissingExtraError("local", "The whisper engine")
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
        heard = self._decode(samples, _PROMPTS.get(self._language))
        if self._language in _MARKED and len(heard.words) >= _UNMARKED_WORDS and not _has_marks(heard):
            again = self._decode(samples, _MARKED[self._language])
            heard = again if _has_marks(again) else heard
        # A model may be sure of words that it invents in silence, so their probability does not count. In short speech
        # it does, as in the original implementation: the threshold alone would remove words such as "yes".
        if heard.no_speech > _NO_SPEECH and (len(samples) >= _SHORT or heard.log_probability < UNLIKELY):
            return []
        if len(samples) >= _LONG and len(heard.words) < _SLOWEST * len(samples) / RATE:
            return []  # a "Thank you." that the model writes for music
        return _without_loops(heard.words) if heard.repetitive else heard.words

    def _decode(self, samples: NDArray[np.int16], prompt: str | None) -> Hypothesis:
        return decode_window(
            self._model,
            samples,
            self._language,
            self._hotwords,
            prompt=prompt,
            beam_size=_BEAM,
            offset_ms=self._offset_ms,
        )

    def transcribe_partial(self, samples: NDArray[np.int16]) -> list[RecognizedWord]:
        """Return the words of unfinished speech. A doubtful result is not decoded again: it is soon replaced."""
        heard = decode_window(
            self._model,
            samples,
            self._language,
            self._hotwords,
            prompt=_PROMPTS.get(self._language),
            offset_ms=self._offset_ms,
            quick=True,
        )
        sound = len(samples) < _SHORT_PARTIAL or heard.no_speech <= _NO_SPEECH
        return heard.words if sound and not heard.repetitive else []

    def detect(self, samples: NDArray[np.int16]) -> tuple[str, float]:
        """Return the language of the samples, and the model's confidence in it."""
        if not self._model.model.is_multilingual:
            raise JobFailed(
                "language_detection needs a model that knows several languages, and this service was started with one "
                "that knows English only; send language_code instead."
            )
        language, confidence, _ = self._model.detect_language(samples.astype(np.float32) / 32768)
        return _CODES.get(language, language), float(confidence)


def _has_marks(heard: Hypothesis) -> bool:
    return any(word.text[-1] in ".,?!" for word in heard.words)


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


_loaded: dict[str, WhisperModel] = {}  # one, shared by detection and transcription in a worker process


def _load(model: str) -> WhisperModel:
    from faster_whisper import WhisperModel

    if model in _loaded:
        return _loaded[model]
    _loaded.clear()  # before the next one is loaded: two would not fit the memory of a worker

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        folder = _folder(model)
        threads = cores if _is_large(folder) else 1
        _loaded[model] = WhisperModel(str(folder), compute_type="int8", cpu_threads=threads, local_files_only=True)
    except ModelError as error:
        raise JobFailed(f"The speech model cannot be used: {error}.") from error
    except Exception as error:  # whatever a broken file makes the libraries say
        raise JobFailed(
            f"The whisper model {Path(model).name} could not be loaded ({type(error).__name__}: {error}). "
            "Check that its files are complete."
        ) from error
    return _loaded[model]
