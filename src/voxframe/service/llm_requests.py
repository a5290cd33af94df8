"""What may be asked of the language model, checked before anything is sent or paid for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Protocol, TypeAlias, TypedDict, cast

from voxframe import options as opt
from voxframe.errors import OptionError
from voxframe.service.lenient import as_float
from voxframe.service.transcript import Transcript


class Selection(Protocol):
    """A table with a column `transcript_id`, such as a part of a table of a corpus."""

    def __getitem__(self, name: Any, /) -> Any:
        """A column."""


#: Transcripts: an id, a handle, several of these, or a table with a column `transcript_id`.
Transcripts: TypeAlias = "str | Transcript | Iterable[str | Transcript] | Selection"


class LlmOptions(TypedDict, total=False):
    """Options of a language-model request, as keyword arguments. None means: as the service does by default.

    Attributes:
        input_text: Text to work on, instead of transcripts.
        context: What the model should know beforehand: text, or anything JSON can hold.
        final_model: Model that writes the answer; "default", "basic", or what the service offers.
        max_output_size: The most tokens of the answer, up to 4000.
        temperature: 0 (conservative) to 1 (creative).
    """

    input_text: str | None
    context: Any
    final_model: str | None
    max_output_size: int | None
    temperature: float | None


class Question(TypedDict, total=False):
    """A question; `question` itself is required."""

    question: str
    context: Any
    answer_format: str
    answer_options: Sequence[str]


def body(transcripts: Transcripts | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request.

    Raises:
        OptionError: Neither or both of transcripts and text, too many of them, or a value out of range.
    """
    unknown = sorted(set(options) - set(LlmOptions.__annotations__))
    if unknown:
        allowed = ", ".join(LlmOptions.__annotations__)
        raise OptionError(f"there is no option {unknown[0]!r}; the options of a language-model request are {allowed}")
    given = {name: value for name, value in options.items() if value is not None}
    if (transcripts is None) == ("input_text" not in given):
        raise OptionError("give either transcripts or input_text: one of them, not both")
    if "input_text" in given:
        given["input_text"] = text("input_text", given["input_text"])
    else:
        given["transcript_ids"] = transcript_ids(transcripts)
    if "final_model" in given:
        given["final_model"] = text("final_model", given["final_model"])
    _whole(given, "max_output_size", opt.LLM_OUTPUT_TOKENS)
    _unit(given, "temperature")
    if "context" in given:
        jsonable("context", given["context"])
    return given


def transcript_ids(transcripts: Any) -> list[str]:
    """Identifiers of transcripts, each once, in order.

    Args:
        transcripts: An id, a handle, an iterable of these, or anything with a column `transcript_id`, such as a part of
            a table of a corpus. A column `audio_duration_s` beside it is taken into account.

    Raises:
        OptionError: There are none, too many, too long ones, or one that cannot be asked about.
    """
    found: dict[str, float] = {}
    for one, hours in _given(transcripts):
        identifier = one if isinstance(one, str) else getattr(one, "id", None)
        if not isinstance(identifier, str) or not identifier:
            raise OptionError(f"{one!r} is no transcript; give its id or a handle")
        known = _hours(one) if isinstance(one, Transcript) else hours
        found[identifier] = max(known, found.get(identifier, 0.0))
        if len(found) > opt.LLM_TRANSCRIPTS:
            raise OptionError(
                f"more than {opt.LLM_TRANSCRIPTS} transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. "
                "Ask in several requests"
            )
    if not found:
        raise OptionError(
            f"no transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. Check what selected them"
        )
    hours = sum(found.values())
    if hours > opt.LLM_HOURS:
        raise OptionError(
            f"the transcripts are {hours:.1f} hours long; a request takes up to {opt.LLM_HOURS} hours. "
            "Ask in several requests"
        )
    return list(found)


def _given(transcripts: Any) -> Iterator[tuple[Any, float]]:
    """Each transcript with its length in hours, 0 where it is not known."""
    columns = getattr(transcripts, "column_names", None)  # Arrow's word; its `columns` are the values
    columns = getattr(transcripts, "columns", None) if columns is None else columns
    if isinstance(transcripts, str | Transcript):
        yield transcripts, 0.0
    elif columns is not None and "transcript_id" in columns:
        seconds = transcripts["audio_duration_s"] if "audio_duration_s" in columns else repeat(None)
        for identifier, duration in zip(_values(transcripts["transcript_id"]), _values(seconds), strict=False):
            yield identifier, (as_float(duration) or 0.0) / 3600
    elif columns is not None or isinstance(transcripts, Mapping | bytes) or not isinstance(transcripts, Iterable):
        raise OptionError(
            f"transcripts is a {type(transcripts).__name__}; give an id, a handle, several of these, or a table with "
            "a column transcript_id"
        )
    else:
        for one in transcripts:
            yield one, 0.0


def _values(column: Any) -> Iterable[Any]:
    """Plain values of a column, whatever kind of table it is of."""
    as_list = getattr(column, "to_pylist", None) or getattr(column, "to_list", None)
    return column if as_list is None else cast("Iterable[Any]", as_list())


def _hours(transcript: Transcript) -> float:
    """Its length as far as it is known without asking the service."""
    if not transcript.known:
        return 0.0
    if transcript.status != "completed":
        raise OptionError(
            f"transcript {transcript.id} is {transcript.status!r}; only completed ones have text. "
            "Wait for it, or leave it out"
        )
    return (transcript.audio_duration_s or 0.0) / 3600 if transcript.fetched else 0.0


def questions(asked: str | Question | Iterable[str | Question]) -> list[dict[str, Any]]:
    """Questions as they go on the wire.

    Raises:
        OptionError: There are none, or one is not a question.
    """
    several = [asked] if isinstance(asked, str | Mapping) else asked
    if not isinstance(several, Iterable):
        raise OptionError(f"questions is a {type(several).__name__}; give a text, a dict with 'question', or several")
    wire = []
    for one in several:
        if not isinstance(one, str | Mapping):
            raise OptionError(f"{one!r} is no question; give a text, or a dict with 'question'")
        question: dict[str, Any] = {"question": one} if isinstance(one, str) else dict(one)
        unknown = sorted(set(question) - set(Question.__annotations__))
        if unknown:
            raise OptionError(
                f"a question has no field {unknown[0]!r}; its fields are {', '.join(Question.__annotations__)}"
            )
        question["question"] = text("question", question.get("question"))
        if "answer_format" in question:
            question["answer_format"] = text("answer_format", question["answer_format"])
        if "answer_options" in question:
            question["answer_options"] = _texts("answer_options", question["answer_options"])
        if "context" in question:
            jsonable("context", question["context"])
        wire.append(question)
    if not wire:
        raise OptionError("there is no question; give at least one")
    return wire


def text(name: str, value: object) -> str:
    """A text that is not empty.

    Raises:
        OptionError: It is none.
    """
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{name} is {value!r}; give a text that is not empty")
    return value


def jsonable(name: str, value: object) -> None:
    """Check that JSON can hold a value.

    Raises:
        OptionError: It cannot.
    """
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{name} cannot be written as JSON ({error}); give a text, numbers, lists and dicts"
        ) from None


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise OptionError(f"{name} is {value!r}; give a list of texts")
    return [text(f"an entry of {name}", entry) for entry in value]


def _whole(given: dict[str, Any], name: str, high: int) -> None:
    value = given.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
        raise OptionError(f"{name} is {value!r}; give a whole number from 1 to {high} tokens")


def _unit(given: dict[str, Any], name: str) -> None:
    value = given.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise OptionError(f"{name} is {value!r}; give a number from 0 to 1")
