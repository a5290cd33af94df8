"""OpenAPI 3.1 description of the REST endpoints, served at `/openapi.json`.

Request schemas are generated from the option specification, response schemas from msgspec structs. The description
needs no key because it is the same for every server and reveals no stored data.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from voxframe import options
from voxframe_server.http import request_bodies
from voxframe_server.http.openapi import response_schemas
from voxframe_server.http.request_bodies import Schema

_ERRORS = {
    "400": "The request is invalid; the error gives the reason.",
    "401": "The API key is missing or wrong.",
    "403": "The URL was not signed by this server, or it has expired.",
    "404": "Not found.",
    "408": "The body of the request stalled.",
    "413": "The body is too large.",
    "429": "Too many requests.",
    "500": "The server failed.",
    "503": "A resource of the server is not available.",
    "504": "The language model did not respond in time.",
    "507": "The disk of the server is full.",
}
_SAFE = ("400", "401", "500", "503", "507")


def document(llm_prefix: str = "llm") -> dict[str, Any]:
    """Return the description. `llm_prefix` is the first path segment of the language-model endpoints."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "voxframe embedded speech service",
            "version": version("voxframe"),
            "description": "Transcripts of audio and video, resources derived from them, and language-model tasks. "
            "Streaming uses a WebSocket at /v2/realtime/ws, which is not part of this description.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": _transcripts() | _media() | _language_model(llm_prefix),
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "Authorization"}},
            "schemas": response_schemas.response_schemas(),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: Schema, media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": schema}}


def _operation(
    name: str, summary: str, answer: dict[str, Any], errors: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """Return the description of an operation, with more of its fields: parameters, body and links.

    `answer` is the 200 response without its description, or responses by status. `errors` are statuses beyond those of
    all operations.
    """
    links = more.pop("links", None)
    answered = {"200": answer} if "content" in answer else answer
    responses = {status: {"description": "Success.", **response} for status, response in answered.items()}
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
    """Return links to the operations that take the id in a response."""
    return {name: {"operationId": name, "parameters": {parameter: f"$response.body#/{pointer}"}} for name in operations}


_VIEWS = {"paragraphs": "Paragraphs", "sentences": "Sentences"}
_DERIVED = ("getSubtitles", "getParagraphs", "getSentences", "searchWords", "getRedactedAudio")


def _transcripts() -> dict[str, Any]:
    path = "/v2/transcript/{transcript_id}"
    link = _links("transcript_id", "id", "getTranscript", "deleteTranscript", *_DERIVED)
    transcript = {"content": _content(_ref("Transcript"))}
    paths = {
        "/v2/transcript": {
            "post": _operation(
                "createTranscript",
                "Submit a transcription job.",
                transcript,
                ("408", "413"),
                requestBody=_body(request_bodies.transcript_request()),
                links=link,
            ),
            "get": _operation(
                "listTranscripts",
                "List transcripts, newest first.",
                {"content": _content(_ref("TranscriptList"))},
                parameters=_filters(),
            ),
        },
        path: {
            "parameters": [_path_id("transcript_id")],
            "get": _operation("getTranscript", "Get a transcript in any status.", transcript, ("404",)),
            "delete": _operation("deleteTranscript", "Delete the contents of a transcript.", transcript, ("404",)),
        },
        f"{path}/{{subtitle_format}}": {"get": _subtitles()},
        f"{path}/word-search": {"get": _word_search()},
        f"{path}/redacted-audio": {"get": _redacted_audio()},
    }
    for view, schema in _VIEWS.items():
        operation = _operation(
            f"get{schema}", f"Get the {view} of a transcript.", {"content": _content(_ref(schema))}, ("404",)
        )
        paths[f"{path}/{view}"] = {"get": operation | {"parameters": [_path_id("transcript_id")]}}
    return paths


_EMPTY: Schema = {"type": "string", "maxLength": 0, "description": "Same as absent."}


def _filters() -> list[dict[str, Any]]:
    limit = {"type": "integer", "minimum": 1, "maximum": options.LIST_LIMIT, "default": 10}
    return [
        _query("limit", {"anyOf": [limit, _EMPTY]}, "Maximum number of transcripts per page."),
        _query(
            "status",
            {"type": "string", "enum": [*options.STATUSES, ""]},
            "Only transcripts with this status.",
        ),
        _query(
            "created_on",
            {"anyOf": [{"type": "string", "format": "date"}, _EMPTY]},
            "Only transcripts created on this day (UTC).",
        ),
        _query("before_id", {"type": "string"}, "Only transcripts older than this one."),
        _query("after_id", {"type": "string"}, "Only transcripts newer than this one."),
        _query(
            "throttled_only", {"anyOf": [{"type": "boolean", "default": False}, _EMPTY]}, "Only throttled transcripts."
        ),
    ]


def _subtitles() -> dict[str, Any]:
    kinds = {"type": "string", "enum": list(options.SUBTITLE_FORMATS)}
    chars = {"type": "integer", "minimum": 1}
    return _operation(
        "getSubtitles",
        "Get the transcript as subtitles.",
        {"content": _content({"type": "string"}, "text/plain")},
        ("404",),
        parameters=[
            _path_id("transcript_id"),
            {"name": "subtitle_format", "in": "path", "required": True, "schema": kinds},
            _query("chars_per_caption", chars, "Maximum number of characters per caption."),
        ],
    )


def _word_search() -> dict[str, Any]:
    words = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    description = f"Words, numbers or phrases of up to {options.WORD_SEARCH_WORDS} words, separated by commas."
    parameter = _query("words", words, description) | {"required": True, "style": "form", "explode": False}
    return _operation(
        "searchWords",
        "Search for words.",
        {"content": _content(_ref("WordSearch"))},
        ("404",),
        parameters=[_path_id("transcript_id"), parameter],
    )


def _redacted_audio() -> dict[str, Any]:
    ready = {"content": _content(_ref("RedactedAudio"))}
    waiting = {"description": "Not ready yet.", "content": _content({"type": "object", "maxProperties": 0})}
    return _operation(
        "getRedactedAudio",
        "Get a URL of the redacted audio that is valid for an hour.",
        {"200": ready, "202": waiting},
        ("404",),
        parameters=[_path_id("transcript_id")],
    )


def _media() -> dict[str, Any]:
    body = {"audio_url": "$response.body#/upload_url"}
    to_create = {"createTranscript": {"operationId": "createTranscript", "requestBody": body}}
    upload = _operation(
        "upload",
        "Upload the bytes of a media file, with any content type or none.",
        {"content": _content(_ref("Upload"))},
        ("408", "413"),
        requestBody=_body({"type": "string", "format": "binary", "minLength": 1}, "application/octet-stream"),
        links=to_create,
    )
    token = _operation(
        "createToken",
        "Create a token for one streaming session.",
        {"content": _content(_ref("Token"))},
        ("408", "413", "429"),
        requestBody=_body(request_bodies.token_request()),
    )
    return {"/v2/upload": {"post": upload}, "/v2/realtime/token": {"post": token}}


def _language_model(prefix: str) -> dict[str, Any]:
    answer = {"content": _content(_ref("LanguageModelAnswer"))}
    paths: dict[str, Any] = {
        f"/{prefix}/v3/generate/{task}": {
            "post": _operation(
                name,
                "Run a task on transcripts or on a text.",
                answer,
                ("408", "413", "429", "503", "504"),
                requestBody=_body(request_bodies.llm_request(task)),
                links=_links("request_id", "request_id", "getAnswer", "purgeAnswer"),
            )
        }
        for task, name in request_bodies.TASK_NAMES.items()
    }
    purged = {"content": _content(_ref("Purged"))}
    paths[f"/{prefix}/v3/{{request_id}}"] = {
        "parameters": [_path_id("request_id")],
        "get": _operation("getAnswer", "Get an earlier response.", answer, ("404", "429")),
        "delete": _operation("purgeAnswer", "Delete an earlier response.", purged, ("404", "429")),
    }
    return paths
