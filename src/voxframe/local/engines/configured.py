"""Which speech engine a service works with, and its models."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from voxframe.errors import SettingsError
from voxframe.local import engines


class Choice(NamedTuple):
    """An engine and its models.

    Attributes:
        engine: Name of the engine.
        best: Model for `speech_model` best, and where none is asked for: a directory or a name; None: the engine's own.
        nano: Model for `speech_model` nano; None: the same.
    """

    engine: str = engines.DEFAULT
    best: str | None = None
    nano: str | None = None

    def model(self, speech_model: str | None) -> str | None:
        """The model for a value of `speech_model`.

        Example:
            >>> Choice("whisper", "medium").model("nano"), Choice("whisper", "medium", "tiny").model("nano")
            ('medium', 'tiny')
        """
        return self.nano or self.best if speech_model == "nano" else self.best


#: Of a service that was not told another.
DEFAULT = Choice()


def chosen(engine: str | None = None, model: str | None = None, nano_model: str | None = None) -> Choice:
    """The engine that arguments or the environment name, once it is known that it can be used.

    Args:
        engine: Name of the engine; default: `VOXFRAME_ENGINE`, else sphinx.
        model: Its model; default: `VOXFRAME_MODEL`.
        nano_model: Its model for `speech_model` nano; default: `VOXFRAME_MODEL_NANO`, else the same.

    Raises:
        SettingsError: There is no such engine, or no such model.
        MissingExtraError: The extra of the engine is not installed.
    """
    choice = Choice(
        engine or _environment("VOXFRAME_ENGINE") or engines.DEFAULT,
        model or _environment("VOXFRAME_MODEL"),
        nano_model or _environment("VOXFRAME_MODEL_NANO"),
    )
    try:
        found: Any = engines.find(choice.engine)
    except LookupError as error:
        raise SettingsError(f"{error.args[0]}; choose one with --engine or VOXFRAME_ENGINE") from None
    if hasattr(found, "check"):
        for each in dict.fromkeys((choice.best, choice.nano or choice.best)):
            found.check(each)
    elif choice.best or choice.nano:
        raise SettingsError(f"the {choice.engine} engine has a model of its own; leave --model and --nano-model off")
    return choice


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
