"""Whisper models on faster-whisper (`pip install 'voxframe[whisper]'`): a hundred languages, from a model you choose.

The model is a directory that holds one in the format of CTranslate2, or a name such as "small" or
"Systran/faster-whisper-small", which is downloaded once, when the service starts. Words, their times and how sure the
model is of them come from the model; so do capitals and punctuation.

Source of the models: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from voxframe.errors import MissingExtraError, SettingsError
from voxframe.local.engines import NOTHING, Heard, Wanted
from voxframe.local.failed import JobFailed
from voxframe.options import LANGUAGE_CODES

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
#: Codes of the models that the interface writes otherwise: Cantonese is not among its languages.
_CODES = {"yue": "zh"}


class Whisper:
    """As good as its model, and as slow: "small" needs several times the work of `sphinx`, and half a gigabyte."""

    name: ClassVar[str] = "whisper"
    model: ClassVar[str] = "whisper"
    languages: ClassVar[frozenset[str]] = frozenset(LANGUAGE_CODES)
    writes: ClassVar[bool] = True
    uses_all_cores: ClassVar[bool] = True

    def __init__(self, wanted: Wanted = NOTHING) -> None:
        assert wanted.model is not None  # `check` has seen to that
        self._model = _load(wanted.model)
        self._language = (wanted.language or "en").split("_")[0]
        self._hotwords = ", ".join(wanted.boost) or None
        if self._language != "en" and not self._model.model.is_multilingual:
            raise JobFailed(
                f"The model {Path(wanted.model).name} knows English only, not {wanted.language!r}; start the service "
                "with one that knows other languages, or send language_code en."
            )

    @classmethod
    def check(cls, model: str | None) -> None:
        """See to it that a model is there: a directory that holds one, or a name to download.

        Raises:
            MissingExtraError: faster-whisper is not installed.
            SettingsError: There is no such model.
        """
        if find_spec("faster_whisper") is None:
            raise MissingExtraError("whisper", "The whisper engine")
        if model is None:
            raise SettingsError(
                "the whisper engine needs a model: give --model or VOXFRAME_MODEL a directory that holds one for "
                "CTranslate2, or a name to download, such as small or Systran/faster-whisper-small"
            )
        folder = Path(model)
        if folder.is_dir():
            _check_files(folder)
        elif folder.exists():
            raise SettingsError(f"the whisper model {model} is a file; give --model the directory that holds model.bin")
        elif _NAME.fullmatch(model) and not model.startswith("."):
            _download(model)
        else:
            raise SettingsError(f"the whisper model {model} is not there: no such directory, and no name to download")

    def transcribe(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Words of the samples."""
        segments, _ = self._model.transcribe(
            samples.astype(np.float32) / 32768,
            language=self._language,
            word_timestamps=True,
            condition_on_previous_text=False,  # a stretch knows nothing of the one before
            hotwords=self._hotwords,
        )
        last = len(samples) * 1000 // 16_000
        heard = []
        for word in (word for segment in segments for word in segment.words or ()):
            if text := "".join(word.word.split()):
                start = min(max(0, round(word.start * 1000)), last)
                end = min(max(start, round(word.end * 1000)), last)
                heard.append(Heard(text, start, end, min(1.0, max(0.0, float(word.probability)))))
        return heard

    def detect(self, samples: NDArray[np.int16]) -> tuple[str, float]:
        """The language that is spoken, and how sure the model is of it."""
        if not self._model.model.is_multilingual:
            raise JobFailed(
                "language_detection needs a model that knows several languages, and this service was started with one "
                "that knows English only; send language_code instead."
            )
        language, confidence, _ = self._model.detect_language(samples.astype(np.float32) / 32768)
        return _CODES.get(language, language), float(confidence)


def _check_files(folder: Path) -> None:
    missing = [name for name in ("model.bin", "config.json", "tokenizer.json") if not (folder / name).is_file()]
    if not any(folder.glob("vocabulary.*")):
        missing.append("vocabulary.json")
    if missing:
        raise SettingsError(
            f"the directory {folder} holds no whisper model for CTranslate2: {', '.join(missing)} not there; convert "
            "one with ct2-transformers-converter --copy_files tokenizer.json preprocessor_config.json"
        )


def _download(model: str) -> None:
    """Fetch a model into the cache of the hub, unless it is there: jobs need no network then."""
    from faster_whisper import download_model

    try:
        _check_files(Path(download_model(model)))
    except SettingsError:
        raise
    except ValueError as error:  # not a name it knows
        raise SettingsError(f"there is no directory {model} and no whisper model of that name ({error})") from None
    except Exception as error:
        # Whichever way a download fails, the way on is the same.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SettingsError(
            f"the whisper model {model} is no directory here and could not be downloaded ({reason}); see whether its "
            "name is right and there is a network, or download it elsewhere and give --model its directory"
        ) from error


@lru_cache(maxsize=1)  # of a worker process: detection and transcription share it
def _load(model: str) -> WhisperModel:
    from faster_whisper import WhisperModel

    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        return WhisperModel(model, compute_type="auto", cpu_threads=threads, local_files_only=True)
    except Exception as error:  # whatever a broken file makes the libraries say
        raise JobFailed(
            f"The whisper model {Path(model).name} could not be loaded ({type(error).__name__}: {error}). "
            "See whether its files are whole."
        ) from error
