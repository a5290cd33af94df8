"""What a language-model request asks for, and whether it is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import orjson

from voxframe.local.asked import Refused
from voxframe.local.llm.tokens import count
from voxframe.options import LLM_DEFAULTS, LLM_INPUT_DEFAULT, LLM_OUTPUT_TOKENS, LLM_TRANSCRIPTS

Task = Literal["summary", "task", "question-answer", "action-items"]
TASKS: tuple[str, ...] = get_args(Task)


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        question: Its text.
        context: What is known besides, as text.
        answer_format: How the answer should look, in words.
        answer_options: The answers to choose from; empty where it is open.
    """

    question: str
    context: str = ""
    answer_format: str = ""
    answer_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A request, each field in one spelling.

    Attributes:
        task: Which operation.
        transcript_ids: What it is about; empty where `input_text` is given.
        input_text: What it is about, as text.
        context: What is known besides, as text; JSON where it was no text.
        final_model: The model that should do it.
        max_output_size: Tokens the answer may have.
        temperature: From 0 to 1.
        answer_format: How the answer should look, in words.
        prompt: What a task wants.
        questions: The questions of a question-answer.
    """

    task: Task
    transcript_ids: tuple[str, ...] = ()
    input_text: str = field(default="", repr=False)
    context: str = ""
    final_model: str = "default"
    max_output_size: int = 2000
    temperature: float = 0.0
    answer_format: str = ""
    prompt: str = ""
    questions: tuple[Question, ...] = ()


def read(task: Task, body: object) -> Asked:
    """The request in a body. Unknown fields and nulls are left out.

    Raises:
        Refused: It is none; the message says everything that is wrong with it.
    """
    if not isinstance(body, Mapping):
        raise Refused("the body must be a JSON object")
    given = {name: value for name, value in body.items() if value is not None}
    wrongs: list[str] = []

    def take(name: str, convert: Callable[[str, Any], Any], default: Any) -> Any:
        if name not in given:
            return default
        try:
            return convert(name, given[name])
        except Refused as wrong:
            wrongs.append(str(wrong))
            return default

    ids = take("transcript_ids", _ids, ())
    sources = take("sources", _sources, ())
    if ids and sources and set(ids) != set(sources):
        wrongs.append("transcript_ids and sources name different transcripts; give one of them")
    asked = Asked(
        task=task,
        transcript_ids=ids or sources,
        input_text=take("input_text", _text, ""),
        context=take("context", _context, ""),
        final_model=take("final_model", _filled, LLM_DEFAULTS["final_model"]),
        max_output_size=take("max_output_size", _output, LLM_DEFAULTS["max_output_size"]),
        temperature=take("temperature", _unit, LLM_DEFAULTS["temperature"]),
        answer_format=take("answer_format", _text, ""),
        prompt=take("prompt", _filled, "") if task == "task" else "",
        questions=take("questions", _questions, ()) if task == "question-answer" else (),
    )
    if not wrongs:
        wrongs += _missing(asked)
    if wrongs:
        raise Refused("; ".join(wrongs))
    return asked


def _missing(asked: Asked) -> list[str]:
    """What is wrong with the whole, where each field is right."""
    wrongs = []
    if bool(asked.transcript_ids) == bool(asked.input_text.strip()):
        both = "not both" if asked.transcript_ids else "one of them is needed"
        wrongs.append(f"give either transcript_ids (or sources) or input_text: {both}")
    if len(asked.transcript_ids) > LLM_TRANSCRIPTS:
        wrongs.append(
            f"a request may name at most {LLM_TRANSCRIPTS} transcripts, not {len(asked.transcript_ids)}; send several"
        )
    if (tokens := count(asked.input_text)) > LLM_INPUT_DEFAULT:
        wrongs.append(f"input_text may have at most {LLM_INPUT_DEFAULT} tokens, not {tokens}; send it in parts")
    if asked.task == "task" and not asked.prompt:
        wrongs.append("prompt is required: what to do with the transcripts, in words")
    if asked.task == "question-answer" and not asked.questions:
        wrongs.append('questions is required: a list such as [{"question": "Who is speaking?"}]')
    return wrongs


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise Refused(f"{name} must be a text")
    return value


def _filled(name: str, value: object) -> str:
    text = _text(name, value)
    if not text.strip():
        raise Refused(f"{name} must be a text that is not empty")
    return text


def _context(_: str, value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _output(name: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LLM_OUTPUT_TOKENS:
        raise Refused(f"{name} must be a whole number from 1 to {LLM_OUTPUT_TOKENS} tokens, not {value!r}")
    return value


def _unit(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Refused(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


def _listed(name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise Refused(f"{name} must be a list")
    return value


def _ids(name: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_filled(f"each of {name}", one) for one in _listed(name, value)))


def _sources(name: str, value: object) -> tuple[str, ...]:
    found = []
    for one in _listed(name, value):
        entry = one if isinstance(one, Mapping) else {}
        if entry.get("type", "transcript") != "transcript" or not isinstance(entry.get("id"), str) or not entry["id"]:
            raise Refused(f'each of {name} must be {{"id": "...", "type": "transcript"}}')
        found.append(entry["id"])
    return tuple(dict.fromkeys(found))


def _questions(name: str, value: object) -> tuple[Question, ...]:
    made = []
    for one in _listed(name, value):
        if not isinstance(one, Mapping):
            raise Refused(f'each of {name} must be an object such as {{"question": "Who is speaking?"}}')
        entry = {key: part for key, part in one.items() if part is not None}
        options = _listed("answer_options", entry.get("answer_options", []))
        made.append(
            Question(
                _filled("question", entry.get("question")),
                _context("context", entry.get("context", "")),
                _text("answer_format", entry.get("answer_format", "")),
                tuple(_filled("each of answer_options", option) for option in options),
            )
        )
    return tuple(made)
