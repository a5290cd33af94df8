"""Speech engines behind one protocol, the one that a server uses, and decoding with it: 16 kHz samples in, words out.

An engine is one class. `whisper` is built in. Another package adds an engine by naming its class in the entry point
group `voxframe.engines`:

    [project.entry-points."voxframe.engines"]
    parrot = "my_package:Parrot"

    voxframe serve --engine parrot
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, cast

from voxframe.errors import SettingsError
from voxframe.models import WITHOUT_SPEECH
from voxframe.settings import plugin, plugins
from voxframe_engine import JobFailed
from voxframe_engine.speech import DEFAULT_OPTIONS, EngineOptions, RecognizedWord

if TYPE_CHECKING:  # the server process handles no samples, and starts faster without numpy
    import numpy as np
    from numpy.typing import NDArray

    from voxframe_engine.speech import Samples

#: Engine of a server that was started without `--engine`.
DEFAULT = "whisper"
_log = logging.getLogger("voxframe_engine")


class Engine(Protocol):
    """Interface of an engine class. One instance serves one job in one thread.

    An engine may also have:

    - a method `transcribe_partial(samples) -> words`, for speech that is still spoken: faster than `transcribe`, which
      streaming uses without it;
    - a method `detect(samples) -> (language code, confidence)`, for up to 30 s of speech: without it,
      `language_detection` is refused;
    - `punctuates = True`: its words have capitals and punctuation, which are kept;
    - a class method `uses_all_cores(model) -> bool`: if True, one instance uses all cores and one job runs at a time.
      Otherwise there is one instance per core, and each must use one thread of its own;
    - a class method `default_model(speech_model, language) -> str`: model for a job if the server was started without
      one. `language` is None if it is to be detected;
    - a class method `ignored(options) -> list[str]`: names of the options in a request that it cannot honour, such as
      boost_param. The response names them in the header `X-Ignored-Options`;
    - a class method `check(model, download)`, called when the server starts. It raises a `SettingsError` if the model
      (a directory, a name, or None) cannot be used. An engine without this method has a fixed model.

    Attributes:
        name: Name of the engine, as in `engines.find`.
        model: Name of its acoustic model, shown in the transcript if no other model was given.
        languages: Language codes of the interface that it transcribes.
    """

    name: ClassVar[str]
    model: ClassVar[str]
    languages: ClassVar[frozenset[str]]

    def __init__(self, options: EngineOptions = DEFAULT_OPTIONS, /) -> None: ...

    def transcribe(self, samples: NDArray[np.int16]) -> list[RecognizedWord]:
        """Return the words of one stretch of speech (mono, 16 kHz, at most 30 s). No state may remain after it."""
        ...


def names() -> list[str]:
    """Return the names of the installed engines, sorted."""
    return plugins("engine", DEFAULT)


def find(name: str = DEFAULT) -> type[Engine]:
    """Return the engine class with this name.

    Raises:
        SettingsError: No engine with this name is installed.

    Example:
        >>> find("whisper").name
        'whisper'
    """
    if (found := plugin("engine", name, DEFAULT)) is not None:
        return cast("type[Engine]", found)
    from voxframe_engine.speech.whisper import Whisper

    return Whisper


def model_name(engine: str, model: str | None) -> str:
    """Return the name of a model for the transcript, without its directory: "whisper:faster-whisper-small"."""
    return find(engine).model if model is None else f"{engine}:{Path(model).name}"


def supports(language_code: str | None, engine: str = DEFAULT) -> bool:
    """Return True if the engine transcribes the language. None is the default of the interface, `en_us`."""
    return (language_code or "en_us") in find(engine).languages


def refusal(language_code: str, engine: str = DEFAULT) -> str:
    """Return the error message for a language that the engine does not transcribe."""
    instead = "no installed engine supports it; install one that does, or set base_url to a service with that language"
    able = [name for name in names() if supports(language_code, name)]
    return (
        f"language_code {language_code!r} is not available: the {engine} engine transcribes "
        f"{', '.join(sorted(find(engine).languages))} only; {_restart(able) or instead}"
    )


def _restart(able: list[str]) -> str:
    """Return the advice to start the server with another engine; empty if none is able."""
    return f"restart the server with --engine and one of: {', '.join(able)}" if able else ""


def punctuates(engine: str) -> bool:
    """Return True if the engine's words have capitals and punctuation."""
    return bool(getattr(find(engine), "punctuates", False))


def uses_all_cores(engine: str, model: str | None) -> bool:
    """Return True if one instance of the engine uses all cores with this model."""
    found: Any = find(engine)
    return hasattr(found, "uses_all_cores") and bool(found.uses_all_cores(model))


def default_model(engine: str, speech_model: str | None, language: str | None) -> str | None:
    """Return the model for a job if none was configured. None: the engine has only one."""
    found: Any = find(engine)
    return str(found.default_model(speech_model, language)) if hasattr(found, "default_model") else None


def ignored_options(engine: str, options: Mapping[str, Any]) -> list[str]:
    """Return the options of a request that the engine cannot honour."""
    found: Any = find(engine)
    return list(found.ignored(options)) if hasattr(found, "ignored") else []


def detects_language(engine: str = DEFAULT) -> bool:
    """Return True if the engine can detect the language."""
    return hasattr(find(engine), "detect")


def no_detection(engine: str = DEFAULT) -> str:
    """Return the error message for a request of language detection that the engine cannot do."""
    able = [name for name in names() if detects_language(name)]
    instead = _restart(able) or "install an engine that can, or set base_url to a service that can"
    return (
        f"language_detection is not available: the {engine} engine cannot detect languages. Send language_code instead "
        f"({', '.join(sorted(find(engine).languages))}); or {instead}"
    )


def detect_language(engine: str, model: str | None, samples: Samples) -> tuple[str, float]:
    """Return the language of speech and the engine's confidence in it. Raise JobFailed if it cannot."""
    if not detects_language(engine):  # the request came when the server had another engine
        raise JobFailed(no_detection(engine))
    found: Any = find(engine)(EngineOptions(model))
    language, confidence = found.detect(samples)
    return language, confidence


class EngineChoice(NamedTuple):
    """An engine and its models.

    Attributes:
        engine: Name of the engine.
        best: Model for `speech_model` best, and if none is requested: a directory or a name. None: see
            `default_model`.
        nano: Model for `speech_model` nano. None: the same.
    """

    engine: str = DEFAULT
    best: str | None = None
    nano: str | None = None

    def model(self, speech_model: str | None) -> str | None:
        """Return the model for a value of `speech_model`."""
        return self.nano or self.best if speech_model == "nano" else self.best

    @property
    def uses_all_cores(self) -> bool:
        """True if one instance of the engine uses all cores, with any of the models."""
        return any(uses_all_cores(self.engine, model) for model in {self.best, self.nano or self.best})


#: Choice of a server that was started without engine and model.
DEFAULT_CHOICE = EngineChoice()


def select_engine(
    engine: str | None = None, model: str | None = None, nano_model: str | None = None, *, download: bool = True
) -> EngineChoice:
    """Return the engine given by arguments or the environment, after checking that it can be used.

    If neither an engine nor a model is given, and no model of the default engine is on this machine or can be
    downloaded, this logs a warning. Jobs fail until a model is there.

    Args:
        engine: Name of the engine. Default: `VOXFRAME_ENGINE`, else whisper.
        model: Its model. Default: `VOXFRAME_MODEL`.
        nano_model: Its model for `speech_model` nano. Default: `VOXFRAME_MODEL_NANO`, else the same as `model`.
        download: Download models of voxframe that are not on this machine.

    Raises:
        SettingsError: There is no such engine, or no such model.
        MissingExtraError: The extra of the engine is not installed.
    """
    named = engine or _environment("VOXFRAME_ENGINE")
    choice = EngineChoice(
        named or DEFAULT, model or _environment("VOXFRAME_MODEL"), nano_model or _environment("VOXFRAME_MODEL_NANO")
    )
    try:
        _check(choice, download=download)
    except SettingsError as error:
        if named or choice.best or choice.nano:
            raise
        _log.warning("%s. %s.", error, WITHOUT_SPEECH)
    return choice


def _check(choice: EngineChoice, *, download: bool) -> None:
    """Raise an error if there is no such engine, or if it cannot use its models."""
    found: Any = find(choice.engine)
    if hasattr(found, "check"):
        for each in dict.fromkeys((choice.best, choice.nano or choice.best)):
            found.check(each, download)
    elif choice.best or choice.nano:
        raise SettingsError(f"the {choice.engine} engine has a fixed model; omit --model and --nano-model")


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
