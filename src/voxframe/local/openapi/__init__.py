"""The REST endpoints as an OpenAPI 3.1 description, which is served at `/openapi.json`.

It is made from the same tables as the checks of requests. It needs no key: it says what the service takes and gives,
the same for everyone, and nothing of what it holds.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from voxframe import options
from voxframe.local.openapi import answers, requests
from voxframe.local.openapi.requests import Schema

_OPEN: dict[str, Any] = {"security": []}
_ERRORS = {
    "400": "The request is wrong; the error says what is.",
    "401": "The key is missing or wrong.",
    "403": "The address is not signed by this service, or no longer good.",
    "404": "There is no such thing.",
    "408": "No more of the body came.",
    "413": "The body is too large.",
    "429": "Too many requests.",
    "500": "The service failed.",
    "503": "What the service needs is not available.",
    "504": "What the service needs did not answer in time.",
}
_SAFE = ("400", "401", "500")


def document(llm_prefix: str = "llm") -> dict[str, Any]:
    """The description.

    Args:
        llm_prefix: First path segment of the language-model endpoints.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "voxframe embedded speech service",
            "version": version("voxframe"),
            "description": "Transcripts of audio and video, what is derived from them, and language-model operations. "
            "Streaming is a WebSocket at /v2/realtime/ws and no part of this description.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": _transcripts() | _media() | _language_model(llm_prefix),
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "Authorization"}},
            "schemas": answers.schemas(),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: Schema, media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": schema}}


def _operation(
    name: str, summary: str, answer: dict[str, Any], errors: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """An operation.

    Args:
        name: Its operationId.
        summary: What it does.
        answer: The 200, without its description; or several answers by their status.
        errors: The statuses it may fail with besides those that all may.
        more: Parameters, body and links.
    """
    links = more.pop("links", None)
    answered = {"200": answer} if "content" in answer else answer
    responses = {status: {"description": "Success.", **one} for status, one in answered.items()}
    if links:
        responses["200"]["links"] = links
    for status in sorted({*_SAFE, *errors}):
        responses[status] = {"description": _ERRORS[status], "content": _content(_ref("Error"))}
    return {"operationId": name, "summary": summary, "responses": responses, **more}


def _path_id(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query(name: str, schema: Schema, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _body(schema: Schema, media_type: str = "application/json") -> dict[str, Any]:
    return {"required": True, "content": _content(schema, media_type)}


def _links(parameter: str, pointer: str, *operations: str) -> dict[str, Any]:
    """The operations that take on the identifier of an answer."""
    return {name: {"operationId": name, "parameters": {parameter: f"$response.body#/{pointer}"}} for name in operations}


_VIEWS = {"paragraphs": "Paragraphs", "sentences": "Sentences"}
_DERIVED = ("getSubtitles", "getParagraphs", "getSentences", "searchWords", "getRedactedAudio")


def _transcripts() -> dict[str, Any]:
    one = "/v2/transcript/{transcript_id}"
    link = _links("transcript_id", "id", "getTranscript", "deleteTranscript", *_DERIVED)
    transcript = {"content": _content(_ref("Transcript"))}
    paths = {
        "/v2/transcript": {
            "post": _operation(
                "createTranscript",
                "Ask for a transcript.",
                transcript,
                ("408", "413"),
                requestBody=_body(requests.transcript()),
                links=link,
            ),
            "get": _operation(
                "listTranscripts",
                "List transcripts, newest first.",
                {"content": _content(_ref("TranscriptList"))},
                parameters=_filters(),
            ),
        },
        one: {
            "parameters": [_path_id("transcript_id")],
            "get": _operation("getTranscript", "A transcript, however far it is.", transcript, ("404",)),
            "delete": _operation("deleteTranscript", "Empty a transcript.", transcript, ("404",)),
        },
        f"{one}/{{subtitle_format}}": {"get": _subtitles()},
        f"{one}/word-search": {"get": _word_search()},
        f"{one}/redacted-audio": {"get": _redacted_audio()},
    }
    for view, schema in _VIEWS.items():
        operation = _operation(
            f"get{schema}", f"The transcript in {view}.", {"content": _content(_ref(schema))}, ("404",)
        )
        paths[f"{one}/{view}"] = {"get": operation | {"parameters": [_path_id("transcript_id")]}}
    return paths


_EMPTY: Schema = {"type": "string", "maxLength": 0, "description": "as if it were not there"}


def _filters() -> list[dict[str, Any]]:
    whole = {"type": "integer", "minimum": 1, "maximum": options.LIST_LIMIT, "default": 10}
    return [
        _query("limit", {"anyOf": [whole, _EMPTY]}, "Most of a page."),
        _query("status", {"type": "string", "enum": ["queued", "processing", "completed", "error", ""]}, "Only these."),
        _query("created_on", {"anyOf": [{"type": "string", "format": "date"}, _EMPTY]}, "Only those of this day, UTC."),
        _query("before_id", {"type": "string"}, "Only those older than this one."),
        _query("after_id", {"type": "string"}, "Only those newer than this one."),
        _query(
            "throttled_only",
            {"anyOf": [{"type": "boolean", "default": False}, _EMPTY]},
            "Only those that wait for others.",
        ),
    ]


def _subtitles() -> dict[str, Any]:
    kinds = {"type": "string", "enum": list(options.SUBTITLE_FORMATS)}
    chars = {"type": "integer", "minimum": 1}
    return _operation(
        "getSubtitles",
        "The transcript as subtitles.",
        {"content": _content({"type": "string"}, "text/plain")},
        ("404",),
        parameters=[
            _path_id("transcript_id"),
            {"name": "subtitle_format", "in": "path", "required": True, "schema": kinds},
            _query("chars_per_caption", chars, "Most characters of a caption."),
        ],
    )


def _word_search() -> dict[str, Any]:
    words = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    description = f"Words, numbers, or phrases of up to {options.WORD_SEARCH_WORDS} of them, joined by commas."
    parameter = _query("words", words, description) | {"required": True, "style": "form", "explode": False}
    return _operation(
        "searchWords",
        "Where words were said.",
        {"content": _content(_ref("WordSearch"))},
        ("404",),
        parameters=[_path_id("transcript_id"), parameter],
    )


def _redacted_audio() -> dict[str, Any]:
    ready = {"content": _content(_ref("RedactedAudio"))}
    waiting = {"description": "Not ready yet.", "content": _content({"type": "object", "maxProperties": 0})}
    return _operation(
        "getRedactedAudio",
        "The address of the redacted audio, good for an hour.",
        {"200": ready, "202": waiting},
        ("404",),
        parameters=[_path_id("transcript_id")],
    )


def _media() -> dict[str, Any]:
    body = {"audio_url": "$response.body#/upload_url"}
    to_create = {"createTranscript": {"operationId": "createTranscript", "requestBody": body}}
    upload = _operation(
        "upload",
        "Send the bytes of a media file, under any content type or none.",
        {"content": _content(_ref("Upload"))},
        ("408", "413"),
        requestBody=_body({"type": "string", "format": "binary", "minLength": 1}, "application/octet-stream"),
        links=to_create,
    )
    token = _operation(
        "createToken",
        "A token that opens one streaming session.",
        {"content": _content(_ref("Token"))},
        ("408", "413", "429"),
        requestBody=_body(requests.token()),
    )
    return {"/v2/upload": {"post": upload}, "/v2/realtime/token": {"post": token}}


def _language_model(prefix: str) -> dict[str, Any]:
    answer = {"content": _content(_ref("LanguageModelAnswer"))}
    paths: dict[str, Any] = {
        f"/{prefix}/v3/generate/{task}": {
            "post": _operation(
                name,
                "Ask about transcripts, or about a text.",
                answer,
                ("408", "413", "429", "503", "504"),
                requestBody=_body(requests.language_model(task)),
                links=_links("request_id", "request_id", "getAnswer", "purgeAnswer"),
            )
        }
        for task, name in requests.TASK_NAMES.items()
    }
    purged = {"content": _content(_ref("Purged"))}
    paths[f"/{prefix}/v3/{{request_id}}"] = {
        "parameters": [_path_id("request_id")],
        "get": _operation("getAnswer", "An earlier answer.", answer, ("404", "429")),
        "delete": _operation("purgeAnswer", "Delete an earlier answer.", purged, ("404", "429")),
    }
    return paths
