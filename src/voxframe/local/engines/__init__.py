"""Speech engines behind one small protocol: 16 kHz samples in, words with times and confidences out.

An engine is one class. Built in is `sphinx`; another package adds one by naming its class in the entry point group
`voxframe.engines`:

    [project.entry-points."voxframe.engines"]
    whisper = "my_package:Whisper"
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import ClassVar, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

#: Engine of a service that was not told another.
DEFAULT = "sphinx"
_BUILT_IN = {"sphinx": "voxframe.local.engines.sphinx:Sphinx"}
_GROUP = "voxframe.engines"


class Heard(NamedTuple):
    """A word as an engine heard it.

    Attributes:
        text: The word as spoken, lower case but for abbreviations, without punctuation.
        start_ms: Where it begins, in milliseconds of the samples.
        end_ms: Where it ends.
        confidence: 0 to 1.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float


class Live(Protocol):
    """Follows speech while it is spoken, utterance by utterance. One instance serves one session."""

    def hear(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Take more of the utterance under way: mono samples at 16 kHz. The words so far, timed from its beginning."""
        ...

    def end(self) -> None:
        """The utterance is over."""
        ...


class Engine(Protocol):
    """What an engine class offers. One instance serves one job, in one process, and is then thrown away.

    It may have a method `live() -> Live` too; streaming gives partials only with an engine that has one. One that can
    tell which language is spoken says so by `detects_language = True`.

    Attributes:
        name: Its name, as in `engines.find`.
        model: Name of its acoustic model, for the transcript.
        languages: Language codes of the interface it transcribes.
    """

    name: ClassVar[str]
    model: ClassVar[str]
    languages: ClassVar[frozenset[str]]

    def transcribe(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Words of one stretch of speech: mono samples at 16 kHz, up to half a minute. No state may stay behind."""
        ...


def names() -> list[str]:
    """Names of the engines that are installed, sorted."""
    return sorted({*_BUILT_IN, *(entry.name for entry in entry_points(group=_GROUP))})


def find(name: str = DEFAULT) -> type[Engine]:
    """The engine class of that name.

    Raises:
        LookupError: No engine of that name is installed.

    Example:
        >>> find("sphinx").name
        'sphinx'
    """
    from importlib.metadata import EntryPoint

    for entry in entry_points(group=_GROUP, name=name):
        return cast("type[Engine]", entry.load())
    if name not in _BUILT_IN:
        raise LookupError(f"no speech engine is called {name!r}; installed are {', '.join(names())}")
    return cast("type[Engine]", EntryPoint(name, _BUILT_IN[name], _GROUP).load())


def supports(language_code: str | None, engine: str = DEFAULT) -> bool:
    """Whether the engine transcribes the language. None is the interface's default, `en_us`."""
    return (language_code or "en_us") in find(engine).languages


def refusal(language_code: str, engine: str = DEFAULT) -> str:
    """What to tell someone who asked the engine for a language it does not know."""
    able = [name for name in names() if supports(language_code, name)]
    instead = (
        f"start the service with an engine that knows it: {', '.join(able)}"
        if able
        else "no installed engine knows it; install one that does, such as one built on a multilingual whisper model, "
        "or point base_url at a service with that language"
    )
    return (
        f"language_code {language_code!r} is not available: the {engine} engine transcribes "
        f"{', '.join(sorted(find(engine).languages))} only; {instead}"
    )


def detects_language(engine: str = DEFAULT) -> bool:
    """Whether the engine can tell which language is spoken."""
    return bool(getattr(find(engine), "detects_language", False))


def no_detection(engine: str = DEFAULT) -> str:
    """What to tell someone who asked an engine for a language detection that it has not."""
    able = [name for name in names() if detects_language(name)]
    instead = (
        f"start the service with an engine that does: {', '.join(able)}"
        if able
        else "install an engine that does, such as one built on a multilingual whisper model, or point base_url at a "
        "service that can"
    )
    return (
        f"language_detection is not available: the {engine} engine takes all speech for the language it is told, so "
        "what it hears does not tell which one is spoken. Send language_code instead "
        f"({', '.join(sorted(find(engine).languages))}); or {instead}"
    )
