"""JSON Schemas of what may be sent, those of a transcript's settings made from `voxframe.options`."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from voxframe import option_values, options
from voxframe.local.asked import BOOSTED, BOOSTED_CHARS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
#: Whatever has a scheme and something where the host belongs; what of that is a host, the service says.
ADDRESS: Schema = {"type": "string", "format": "uri", "pattern": r"^[hH][tT][tT][pP][sS]?://[^\s/?#]+\S*$"}
UNIT: Schema = {"type": "number", "minimum": 0, "maximum": 1}

_SPELLING: Schema = {
    "type": "object",
    "required": ["from", "to"],
    "properties": {"from": {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}, "to": TEXT},
}
#: What the Python types do not say.
_MORE: dict[str, Schema] = {
    "language_confidence_threshold": UNIT,
    "speech_threshold": UNIT,
    "audio_start_from": {"minimum": 0, "maximum": option_values.LARGEST_INTEGER, "description": "ms"},
    "audio_end_at": {
        "minimum": options.MIN_AUDIO_MS,
        "maximum": option_values.LARGEST_INTEGER,
        "description": f"ms, at least {options.MIN_AUDIO_MS} after audio_start_from",
    },
    "speakers_expected": {"minimum": 1, "maximum": options.MAX_SPEAKERS},
    "content_safety_confidence": {"minimum": 25, "maximum": 100},
    "word_boost": {"maxItems": BOOSTED, "description": f"each of at most {BOOSTED_CHARS} characters"},
    "webhook_url": ADDRESS,
    "webhook_auth_header_name": {"pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
    "webhook_auth_header_value": {"pattern": r"^[ -~]+$", "writeOnly": True},
}
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def or_null(schema: Schema) -> Schema:
    """The schema of a value that may be null.

    Example:
        >>> or_null({"type": "integer"})
        {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    return {"anyOf": [schema, {"type": "null"}]}


def settings() -> dict[str, Schema]:
    """The schema of each field of a request for a transcript but `audio_url`, by name. Null is the same as absent."""
    hints = get_type_hints(options.TranscriptOptions)
    return {name: _MORE.get(name, {}) | _of(hints[name]) for name in options.FIELDS if name in hints}


def _of(hint: Any) -> Schema:
    """The schema of a type as `TranscriptOptions` writes it."""
    if get_origin(hint) in (types.UnionType, Union):  # Python 3.11 to 3.13 make the latter of a Literal and None
        return _of(next(kind for kind in get_args(hint) if kind is not types.NoneType))
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if get_origin(hint) is Sequence:
        (item,) = get_args(hint)
        return {"type": "array", "items": TEXT if item is str else _of(item)}
    return _SPELLING if hint is options.CustomSpelling else {"type": _TYPES[hint]}


def _with_default(name: str, schema: Schema) -> Schema:
    default = options.FIELDS[name].default
    if default is None:
        return or_null(schema)
    return or_null(schema) | {"default": list(default) if isinstance(default, tuple) else default}


def transcript() -> Schema:
    """The body of a request for a transcript."""
    return {
        "type": "object",
        "required": ["audio_url"],
        "properties": {"audio_url": ADDRESS}
        | {name: _with_default(name, schema) for name, schema in settings().items()},
    }


def token() -> Schema:
    """The body of a request for a temporary token."""
    low, high = options.TOKEN_SECONDS
    seconds = {"type": "number", "minimum": low, "maximum": high, "description": "seconds"}
    return {"type": "object", "required": ["expires_in"], "properties": {"expires_in": seconds}}


_IDS: Schema = {"type": "array", "items": {"type": "string", "pattern": r"\S"}, "maxItems": options.LLM_TRANSCRIPTS}
_SOURCES: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": TEXT, "type": {"const": "transcript"}},
    },
}
_QUESTIONS: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["question"],
        "properties": {
            "question": {"type": "string", "pattern": r"\S"},
            "context": {"description": "text, or any JSON"},
            "answer_format": or_null({"type": "string"}),
            "answer_options": or_null({"type": "array", "items": {"type": "string", "pattern": r"\S"}}),
        },
    },
}
#: The language-model tasks, and what their operations are called.
TASK_NAMES = {
    "summary": "summarize",
    "task": "doTask",
    "question-answer": "answerQuestions",
    "action-items": "listActions",
}
#: What each takes besides; the named ones are required.
_TASKS: dict[str, tuple[dict[str, Schema], tuple[str, ...]]] = {
    "summary": ({}, ()),
    "task": ({"prompt": {"type": "string", "pattern": r"\S"}}, ("prompt",)),
    "question-answer": ({"questions": _QUESTIONS}, ("questions",)),
    "action-items": ({}, ()),
}


def language_model(task: str) -> Schema:
    """The body of a language-model request. It takes either transcripts, as ids or as sources, or `input_text`."""
    more, required = _TASKS[task]
    size = {"type": "integer", "minimum": 1, "maximum": options.LLM_OUTPUT_TOKENS, "description": "tokens"}
    fields = {
        "transcript_ids": or_null(_IDS),
        "sources": or_null(_SOURCES),
        "input_text": or_null({"type": "string", "description": f"at most {options.LLM_INPUT_DEFAULT} tokens"}),
        "context": {"description": "text, or any JSON"},
        "final_model": or_null({"type": "string", "pattern": r"\S"}),
        "max_output_size": or_null(size),
        "temperature": or_null(UNIT),
        "answer_format": or_null({"type": "string"}),
    }
    for name, default in options.LLM_DEFAULTS.items():
        fields[name] = fields[name] | {"default": default}
    return {"type": "object", "required": list(required), "properties": fields | more}
