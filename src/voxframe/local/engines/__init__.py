"""Speech engines behind one small protocol: 16 kHz samples in, words with times and confidences out.

An engine is one class. Built in are `sphinx`, and `whisper` where its extra is installed; another package adds one by
naming its class in the entry point group `voxframe.engines`:

    [project.entry-points."voxframe.engines"]
    parrot = "my_package:Parrot"

    voxframe serve --engine parrot
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, cast

if TYPE_CHECKING:  # the service itself holds no samples, and starts sooner without it
    import numpy as np
    from numpy.typing import NDArray

#: Engine of a service that was not told another.
DEFAULT = "sphinx"
_BUILT_IN = {"sphinx": "voxframe.local.engines.sphinx:Sphinx", "whisper": "voxframe.local.engines.whisper:Whisper"}
_GROUP = "voxframe.engines"


class Heard(NamedTuple):
    """A word as an engine heard it.

    Attributes:
        text: The word as spoken, lower case but for abbreviations, without punctuation; or, from an engine that
            `writes`, as people write it, with its punctuation.
        start_ms: Where it begins, in milliseconds of the samples.
        end_ms: Where it ends.
        confidence: 0 to 1.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float


class Wanted(NamedTuple):
    """What a job wants of its engine.

    Attributes:
        model: Directory or name of the model to use; None for the engine's own.
        language: Code of the language that is spoken; None where that is to be found out (see `detect`).
        boost: Words and phrases to listen for.
        boost_param: How much: "low", "default" or "high".
    """

    model: str | None = None
    language: str | None = None
    boost: tuple[str, ...] = ()
    boost_param: str = "default"


#: Of a job that wants nothing in particular.
NOTHING = Wanted()


class Live(Protocol):
    """Follows speech while it is spoken, utterance by utterance. One instance serves one session."""

    def hear(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Take more of the utterance under way: mono samples at 16 kHz. The words so far, timed from its beginning."""
        ...

    def end(self) -> list[Heard]:
        """The utterance is over. Its words, which make the final where there is no time for `Engine.transcribe`."""
        ...


class Engine(Protocol):
    """What an engine class offers. One instance serves one job, in one process, and is then thrown away.

    It may offer more:

    - a method `live() -> Live`: streaming gives partials only with an engine that has one;
    - a method `detect(samples) -> (language code, confidence)`, which tells from up to half a minute which language is
      spoken: `language_detection` is refused where there is none;
    - `writes = True`: its words come with capitals and punctuation, which are then left as they are;
    - `uses_all_cores = True`: one instance keeps the whole machine busy, so that one job is done at a time;
    - a class method `check(model)`, called when the service starts, that raises a `SettingsError` where a model (a
      directory or a name, None where none was given) cannot be used; an engine without it has a model of its own.

    Attributes:
        name: Its name, as in `engines.find`.
        model: Name of its acoustic model, for the transcript, where no other was given.
        languages: Language codes of the interface it transcribes.
    """

    name: ClassVar[str]
    model: ClassVar[str]
    languages: ClassVar[frozenset[str]]

    def __init__(self, wanted: Wanted = ..., /) -> None: ...

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


def model_name(engine: str, model: str | None) -> str:
    """What a transcript says of the model it was made with: its name, without where it lies.

    Example:
        >>> model_name("sphinx", None), model_name("whisper", "/models/faster-whisper-small")
        ('sphinx_en_us', 'whisper:faster-whisper-small')
    """
    return find(engine).model if model is None else f"{engine}:{Path(model).name}"


def supports(language_code: str | None, engine: str = DEFAULT) -> bool:
    """Whether the engine transcribes the language. None is the interface's default, `en_us`."""
    return (language_code or "en_us") in find(engine).languages


def refusal(language_code: str, engine: str = DEFAULT) -> str:
    """What to tell someone who asked the engine for a language it does not know."""
    able = [name for name in names() if supports(language_code, name)]
    instead = (
        f"start the service with an engine that knows it, by --engine: {', '.join(able)}"
        if able
        else "no installed engine knows it; install one that does, or point base_url at a service with that language"
    )
    return (
        f"language_code {language_code!r} is not available: the {engine} engine transcribes "
        f"{', '.join(sorted(find(engine).languages))} only; {instead}"
    )


def writes(engine: str) -> bool:
    """Whether the engine's words come with capitals and punctuation."""
    return bool(getattr(find(engine), "writes", False))


def uses_all_cores(engine: str) -> bool:
    """Whether one instance of the engine keeps the whole machine busy."""
    return bool(getattr(find(engine), "uses_all_cores", False))


def detects_language(engine: str = DEFAULT) -> bool:
    """Whether the engine can tell which language is spoken."""
    return hasattr(find(engine), "detect")


def no_detection(engine: str = DEFAULT) -> str:
    """What to tell someone who asked an engine for a language detection that it has not."""
    able = [name for name in names() if detects_language(name)]
    instead = (
        f"start the service with an engine that does, by --engine: {', '.join(able)}"
        if able
        else "install an engine that does, or point base_url at a service that can"
    )
    return (
        f"language_detection is not available: the {engine} engine takes all speech for the language it is told, so "
        "what it hears does not tell which one is spoken. Send language_code instead "
        f"({', '.join(sorted(find(engine).languages))}); or {instead}"
    )
