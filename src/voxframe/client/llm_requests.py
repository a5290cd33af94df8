"""Requests to the language model, checked before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Protocol, TypeAlias, TypedDict, cast

from voxframe import options as opt
from voxframe.client.response import as_float
from voxframe.client.transcript import Transcript
from voxframe.errors import OptionError
from voxframe.validators import Integer, Number, ValueType, checked, nearest, shown


class Selection(Protocol):
    """A table with a column `transcript_id`, such as rows of a table of a corpus."""

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""


#: Transcripts: an id, a handle, a list of these, or a table with a column `transcript_id`.
Transcripts: TypeAlias = "str | Transcript | Iterable[str | Transcript] | Selection"


class LlmOptions(TypedDict, total=False):
    """Options of a language-model request, as keyword arguments. None uses the default of the service.

    Attributes:
        input_text: Text to process, instead of transcripts.
        context: Background for the model: text, or any JSON value.
        final_model: Model that writes the response; "default", "basic", or another one of the service.
        max_output_size: Maximum number of tokens of the response, up to 4000.
        temperature: 0 (conservative) to 1 (creative).
    """

    input_text: str | None
    context: Any
    final_model: str | None
    max_output_size: int | None
    temperature: float | None


class LlmQuestion(TypedDict, total=False):
    """A question; the field `question` is required."""

    question: str
    context: Any
    answer_format: str
    answer_options: Sequence[str]


_NUMBERS: dict[str, ValueType] = {
    "max_output_size": Integer(1, opt.LLM_OUTPUT_TOKENS, "tokens"),
    "temperature": Number(0, 1),
}


def body(transcripts: Transcripts | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request."""
    unknown = sorted(set(options) - set(LlmOptions.__annotations__))
    if unknown:
        allowed = ", ".join(LlmOptions.__annotations__)
        near = (
            " (did you mean 'transcripts'?)"
            if unknown[0] == "ids"
            else nearest(unknown[0], [*LlmOptions.__annotations__])
        )
        raise OptionError(
            f"there is no option {unknown[0]!r}{near}; the options of a language-model request are {allowed}"
        )
    values = {name: value for name, value in options.items() if value is not None}
    if (transcripts is None) == ("input_text" not in values):
        problem = "neither" if transcripts is None else "both"
        raise OptionError(f"a request needs either transcripts or input_text, got {problem}")
    if "input_text" in values:
        values["input_text"] = text("input_text", values["input_text"])
    else:
        values["transcript_ids"] = transcript_ids(transcripts)
    if "final_model" in values:
        values["final_model"] = text("final_model", values["final_model"])
    for name, kind in _NUMBERS.items():
        if name in values:
            values[name] = checked(name, values[name], kind)
    if "context" in values:
        jsonable("context", values["context"])
    return values


def transcript_ids(transcripts: Any) -> list[str]:
    """Return transcript ids in order, without duplicates.

    Args:
        transcripts: An id, a handle, an iterable of these, or a table with a column `transcript_id`. A column
            `audio_duration_s` of the table is used to check the total duration.
    """
    hours_by_id: dict[str, float] = {}
    for transcript, hours in _given(transcripts):
        identifier = transcript if isinstance(transcript, str) else getattr(transcript, "id", None)
        if not isinstance(identifier, str) or not identifier:
            raise OptionError(f"{shown(transcript)} is not a transcript; give its id or a handle")
        length = _hours(transcript) if isinstance(transcript, Transcript) else hours
        hours_by_id[identifier] = max(length, hours_by_id.get(identifier, 0.0))
        if len(hours_by_id) > opt.LLM_TRANSCRIPTS:
            raise OptionError(
                f"more than {opt.LLM_TRANSCRIPTS} transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. "
                "Split them into several requests"
            )
    if not hours_by_id:
        raise OptionError(f"no transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. Check the selection")
    hours = sum(hours_by_id.values())
    if hours > opt.LLM_HOURS:
        raise OptionError(
            f"the transcripts are {hours:.1f} hours long; a request takes up to {opt.LLM_HOURS} hours. "
            "Split them into several requests"
        )
    return list(hours_by_id)


def _given(transcripts: Any) -> Iterator[tuple[Any, float]]:
    """Yield each transcript with its duration in hours, or 0 if unknown."""
    columns = getattr(transcripts, "column_names", None)  # Arrow tables; their `columns` are the values
    columns = getattr(transcripts, "columns", None) if columns is None else columns
    if isinstance(transcripts, str | Transcript):
        yield transcripts, 0.0
    elif columns is not None and "transcript_id" in columns:
        seconds = transcripts["audio_duration_s"] if "audio_duration_s" in columns else repeat(None)
        for identifier, duration in zip(_values(transcripts["transcript_id"]), _values(seconds), strict=False):
            yield identifier, (as_float(duration) or 0.0) / 3600
    elif columns is not None or isinstance(transcripts, Mapping | bytes) or not isinstance(transcripts, Iterable):
        raise OptionError(
            "transcripts must be an id, a handle, a list of these, or a table with a column transcript_id, "
            f"got {type(transcripts).__name__}"
        )
    else:
        for item in transcripts:
            yield item, 0.0


def _values(column: Any) -> Iterable[Any]:
    """Return a column of any table library as plain values."""
    as_list = getattr(column, "to_pylist", None) or getattr(column, "to_list", None)
    return column if as_list is None else cast("Iterable[Any]", as_list())


def _hours(transcript: Transcript) -> float:
    """Return the duration in hours, or 0 if it is unknown without a request."""
    if not transcript._has_state:
        return 0.0
    if transcript.status != "completed":
        raise OptionError(
            f"transcript {transcript.id} is {transcript.status!r}; only completed ones have text. "
            "Wait for it, or leave it out"
        )
    return (transcript.audio_duration_s or 0.0) / 3600 if transcript._has_result else 0.0


def questions(asked: str | LlmQuestion | Iterable[str | LlmQuestion]) -> list[dict[str, Any]]:
    """Return questions as fields of a request."""
    listed = [asked] if isinstance(asked, str | Mapping) else asked
    if not isinstance(listed, Iterable):
        raise OptionError(f"questions must be a string, a dict with 'question', or a list, got {type(listed).__name__}")
    fields = []
    for item in listed:
        if not isinstance(item, str | Mapping):
            raise OptionError(f"{shown(item)} is not a question; give a string, or a dict with 'question'")
        filled = {"question": item} if isinstance(item, str) else item
        question: dict[str, Any] = {name: value for name, value in filled.items() if value is not None}
        unknown = [name for name in question if name not in LlmQuestion.__annotations__]
        if unknown:
            raise OptionError(
                f"a question has no field {unknown[0]!r}; its fields are {', '.join(LlmQuestion.__annotations__)}"
            )
        question["question"] = text("question", question.get("question"))
        if "answer_format" in question:
            question["answer_format"] = text("answer_format", question["answer_format"])
        if "answer_options" in question:
            question["answer_options"] = _texts("answer_options", question["answer_options"])
        if "context" in question:
            jsonable("context", question["context"])
        fields.append(question)
    if not fields:
        raise OptionError("there are no questions; give at least one")
    return fields


def text(name: str, value: object) -> str:
    """Return a string after checking that it is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{name} is {shown(value)}; give a string that is not empty")
    return value


def jsonable(name: str, value: object) -> None:
    """Check that a value can be written as JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{name} cannot be written as JSON ({error}); use strings, numbers, lists and dicts"
        ) from None


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise OptionError(f"{name} is {shown(value)}; give a list of strings")
    return [text(f"an entry of {name}", entry) for entry in value]
