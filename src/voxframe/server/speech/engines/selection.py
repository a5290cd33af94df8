"""The speech engine of a server and its models."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

from voxframe.errors import MissingExtraError, SettingsError
from voxframe.models import WITHOUT_SPEECH
from voxframe.server.speech import engines

_log = logging.getLogger("voxframe.server")


class EngineChoice(NamedTuple):
    """An engine and its models.

    Attributes:
        engine: Name of the engine.
        best: Model for `speech_model` best, and if none is requested: a directory or a name. None: see
            `engines.default_model`.
        nano: Model for `speech_model` nano. None: the same.
    """

    engine: str = engines.DEFAULT
    best: str | None = None
    nano: str | None = None

    def model(self, speech_model: str | None) -> str | None:
        """Return the model for a value of `speech_model`.

        Example:
            >>> choice = EngineChoice("whisper", "medium", "tiny")
            >>> choice.model("nano"), choice.model("best"), choice.model(None)
            ('tiny', 'medium', 'medium')
        """
        return self.nano or self.best if speech_model == "nano" else self.best

    @property
    def uses_all_cores(self) -> bool:
        """True if one instance of the engine uses all cores, with any of the models."""
        return any(engines.uses_all_cores(self.engine, model) for model in {self.best, self.nano or self.best})


#: Choice of a server that was started without engine and model.
DEFAULT = EngineChoice()


def select_engine(
    engine: str | None = None, model: str | None = None, nano_model: str | None = None, *, download: bool = True
) -> EngineChoice:
    """Return the engine given by arguments or the environment, after checking that it can be used.

    If neither an engine nor a model is given, and the default engine has no model on this machine and cannot download
    one, this logs a warning and returns pocketsphinx.

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
        named or engines.DEFAULT,
        model or _environment("VOXFRAME_MODEL"),
        nano_model or _environment("VOXFRAME_MODEL_NANO"),
    )
    try:
        _check(choice, download=download)
    except (SettingsError, MissingExtraError) as error:
        if named or choice.best or choice.nano:
            raise
        _log.warning("%s. %s.", error, WITHOUT_SPEECH)
        return EngineChoice(engines.FALLBACK)
    return choice


def _check(choice: EngineChoice, *, download: bool) -> None:
    """Raise an error if there is no such engine, or if it cannot use its models."""
    try:
        found: Any = engines.find(choice.engine)
    except LookupError as error:
        raise SettingsError(f"{error.args[0]}; choose one with --engine or VOXFRAME_ENGINE") from None
    if hasattr(found, "check"):
        for each in dict.fromkeys((choice.best, choice.nano or choice.best)):
            found.check(each, download)
    elif choice.best or choice.nano:
        raise SettingsError(f"the {choice.engine} engine has a fixed model; omit --model and --nano-model")


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
