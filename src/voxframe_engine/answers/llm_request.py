"""Language-model requests and their validation, the interface of answerers, and the response type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, get_args

import orjson

from voxframe.options import LLM_DEFAULTS, LLM_INPUT_DEFAULT, LLM_OUTPUT_TOKENS, LLM_TRANSCRIPTS
from voxframe.validators import Integer, InvalidValueError, Number, ValueType, shown
from voxframe_engine import RequestRefused
from voxframe_engine.answers.context import Source, count
from voxframe_engine.answers.model import Report, unreported

Task = Literal["summary", "task", "question-answer", "action-items"]
TASKS: tuple[str, ...] = get_args(Task)
#: Model name in responses that quote, because there is no language model.
QUOTING = "voxframe-extractive"


@dataclass(frozen=True)
class LLMQuestion:
    """One question."""

    question: str
    context: str = ""
    answer_format: str = ""
    answer_options: tuple[str, ...] = ()


#: Known fields of the objects in lists.
NESTED = {"sources": ("id", "type"), "questions": tuple(LLMQuestion.__dataclass_fields__)}


@dataclass(frozen=True)
class LLMRequest:
    """A validated request."""

    task: Task
    transcript_ids: tuple[str, ...] = ()
    input_text: str = field(default="", repr=False)
    context: str = ""
    final_model: str = "default"
    max_output_size: int = 2000
    temperature: float = 0.0
    answer_format: str = ""
    prompt: str = ""
    questions: tuple[LLMQuestion, ...] = ()


#: The field that only one task has, by task.
_TASK_FIELDS = {"task": "prompt", "question-answer": "questions"}


def field_names(task: Task) -> set[str]:
    """Return the names of the fields that the body of a request for a task may have."""
    names = LLMRequest.__dataclass_fields__.keys() - {"task", *_TASK_FIELDS.values()}
    return names | {"sources"} | ({_TASK_FIELDS[task]} if task in _TASK_FIELDS else set())


def read(task: Task, body: object) -> LLMRequest:
    """Validate the body of a request. Unknown fields and nulls are ignored."""
    if not isinstance(body, Mapping):
        raise RequestRefused("the body must be a JSON object")
    fields = {name: value for name, value in body.items() if value is not None}
    wrongs: list[str] = []

    def take(name: str, convert: Callable[[str, Any], Any], default: Any) -> Any:
        if name not in fields:
            return default
        try:
            return convert(name, fields[name])
        except RequestRefused as wrong:
            wrongs.append(str(wrong))
            return default

    ids = take("transcript_ids", _ids, ())
    sources = take("sources", _sources, ())
    if ids and sources and set(ids) != set(sources):
        wrongs.append("transcript_ids and sources name different transcripts; give one of them")
    llm_request = LLMRequest(
        task=task,
        transcript_ids=ids or sources,
        input_text=take("input_text", _text, ""),
        context=take("context", _context, ""),
        final_model=take("final_model", _filled, LLM_DEFAULTS["final_model"]),
        max_output_size=take("max_output_size", _output_size, LLM_DEFAULTS["max_output_size"]),
        temperature=take("temperature", _temperature, LLM_DEFAULTS["temperature"]),
        answer_format=take("answer_format", _text, ""),
        prompt=take("prompt", _filled, "") if task == "task" else "",
        questions=take("questions", _questions, ()) if task == "question-answer" else (),
    )
    if not wrongs:
        wrongs += _missing(llm_request)
    if wrongs:
        raise RequestRefused("; ".join(wrongs))
    return llm_request


def _missing(llm_request: LLMRequest) -> list[str]:
    """Return problems with the combination of fields that are valid alone."""
    wrongs = []
    if bool(llm_request.transcript_ids) == bool(llm_request.input_text.strip()):
        state = "both" if llm_request.transcript_ids else "neither"
        wrongs.append(f"either transcript_ids (or sources) or input_text is required, got {state}")
    if len(llm_request.transcript_ids) > LLM_TRANSCRIPTS:
        wrongs.append(
            f"at most {LLM_TRANSCRIPTS} transcripts per request are allowed, got {len(llm_request.transcript_ids)}"
        )
    if (tokens := count(llm_request.input_text)) > LLM_INPUT_DEFAULT:
        wrongs.append(f"input_text may have at most {LLM_INPUT_DEFAULT} tokens, not {tokens}; send it in parts")
    if llm_request.task == "task" and not llm_request.prompt:
        wrongs.append("prompt is required: what to do with the transcripts, in words")
    if llm_request.task == "question-answer" and not llm_request.questions:
        wrongs.append('questions is required: a list such as [{"question": "Who is speaking?"}]')
    return wrongs


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise RequestRefused(f"{name} must be a text")
    return value


def _filled(name: str, value: object) -> str:
    text = _text(name, value)
    if not text.strip():
        raise RequestRefused(f"{name} must be a text that is not empty")
    return text


def _context(_: str, value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _output_size(name: str, value: object) -> Any:
    return _converted(name, value, Integer(1, LLM_OUTPUT_TOKENS, unit="tokens"))


def _temperature(name: str, value: object) -> Any:
    return _converted(name, value, Number(0, 1))


def _converted(name: str, value: object, kind: ValueType) -> Any:
    try:
        return kind.convert(value)
    except InvalidValueError as error:
        raise RequestRefused(f"{name} {error}, not {shown(value)}") from None


def _listed(name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise RequestRefused(f"{name} must be a list")
    return value


def _ids(name: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_filled(f"each of {name}", item) for item in _listed(name, value)))


def _sources(name: str, value: object) -> tuple[str, ...]:
    sources = []
    for item in _listed(name, value):
        entry = item if isinstance(item, Mapping) else {}
        if entry.get("type", "transcript") != "transcript" or not isinstance(entry.get("id"), str) or not entry["id"]:
            raise RequestRefused(f'each of {name} must be {{"id": "...", "type": "transcript"}}')
        sources.append(entry["id"])
    return tuple(dict.fromkeys(sources))


def _questions(name: str, value: object) -> tuple[LLMQuestion, ...]:
    questions = []
    for item in _listed(name, value):
        if not isinstance(item, Mapping):
            raise RequestRefused(f'each of {name} must be an object such as {{"question": "Who is speaking?"}}')
        entry = {key: part for key, part in item.items() if part is not None}
        options = _listed("answer_options", entry.get("answer_options", []))
        questions.append(
            LLMQuestion(
                _filled("question", entry.get("question")),
                _context("context", entry.get("context", "")),
                _text("answer_format", entry.get("answer_format", "")),
                tuple(_filled("each of answer_options", option) for option in options),
            )
        )
    return tuple(questions)


class LLMAnswer(NamedTuple):
    """A response.

    Attributes:
        response: A text, or for question-answer a list of `{"question", "answer"}`.
        citations: Passages that support sentences of the response; None if they were not looked for.
    """

    response: str | list[dict[str, str]]
    input_tokens: int
    output_tokens: int
    model: str
    citations: list[dict[str, Any]] | None = None


class Answerer(Protocol):
    """An implementation of the language-model operations."""

    def check(self, model: str) -> None:
        """Raise `RequestRefused` if a `final_model` is not available."""

    def answer(self, llm_request: LLMRequest, sources: Sequence[Source], report: Report = unreported) -> LLMAnswer:
        """Answer a request from the given transcripts or text. `report` takes the progress, and may raise Cancelled."""
