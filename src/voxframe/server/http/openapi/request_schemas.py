"""JSON Schemas of request bodies. Those of transcription options come from `voxframe.options.FIELDS`."""

from __future__ import annotations

from typing import Any

from voxframe import options
from voxframe.server.http.request_validation import BOOSTED, BOOSTED_CHARS
from voxframe.validators import Number, Text, WebAddress

Schema = dict[str, Any]

TEXT: Schema = Text().schema
ADDRESS: Schema = WebAddress().schema
SHARE: Schema = Number(0, 1).schema


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null.

    Example:
        >>> or_null({"type": "integer"})
        {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    return {"anyOf": [schema, {"type": "null"}]}


def option_schemas() -> dict[str, Schema]:
    """Return the schema of each option of a transcription request by name. Null means absent."""
    fields = [field for field in options.FIELDS.values() if field.name != "audio_url"]
    schemas = {field.name: field.type.schema | {"description": field.help} for field in fields}
    schemas["word_boost"] |= {"maxItems": BOOSTED, "description": f"At most {BOOSTED_CHARS} characters each."}
    return schemas


def _with_default(name: str, schema: Schema) -> Schema:
    default = options.FIELDS[name].default
    if default is None:
        return or_null(schema)
    return or_null(schema) | {"default": list(default) if isinstance(default, tuple) else default}


def transcript_request() -> Schema:
    """Return the schema of a request for a transcript."""
    return {
        "type": "object",
        "required": ["audio_url"],
        "properties": {"audio_url": ADDRESS}
        | {name: _with_default(name, schema) for name, schema in option_schemas().items()},
    }


def token_request() -> Schema:
    """Return the schema of a request for a temporary token."""
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
            "context": {"description": "Text, or any JSON."},
            "answer_format": or_null({"type": "string"}),
            "answer_options": or_null({"type": "array", "items": {"type": "string", "pattern": r"\S"}}),
        },
    },
}
#: Operation ids of the language-model tasks.
TASK_NAMES = {
    "summary": "summarize",
    "task": "doTask",
    "question-answer": "answerQuestions",
    "action-items": "listActions",
}
#: Additional fields of each task, and which of them are required.
_TASKS: dict[str, tuple[dict[str, Schema], tuple[str, ...]]] = {
    "summary": ({}, ()),
    "task": ({"prompt": {"type": "string", "pattern": r"\S"}}, ("prompt",)),
    "question-answer": ({"questions": _QUESTIONS}, ("questions",)),
    "action-items": ({}, ()),
}


def llm_request(task: str) -> Schema:
    """Return the schema of a language-model request: transcripts, as ids or as sources, or `input_text`."""
    more, required = _TASKS[task]
    size = {"type": "integer", "minimum": 1, "maximum": options.LLM_OUTPUT_TOKENS, "description": "tokens"}
    fields = {
        "transcript_ids": or_null(_IDS),
        "sources": or_null(_SOURCES),
        "input_text": or_null({"type": "string", "description": f"at most {options.LLM_INPUT_DEFAULT} tokens"}),
        "context": {"description": "Text, or any JSON."},
        "final_model": or_null({"type": "string", "pattern": r"\S"}),
        "max_output_size": or_null(size),
        "temperature": or_null(SHARE),
        "answer_format": or_null({"type": "string"}),
    }
    for name, default in options.LLM_DEFAULTS.items():
        fields[name] = fields[name] | {"default": default}
    return {"type": "object", "required": list(required), "properties": fields | more}
