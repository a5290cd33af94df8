"""JSON Schemas of what is answered. Fields beyond these may come."""

from __future__ import annotations

from voxframe import options
from voxframe.local.openapi.requests import ADDRESS, UNIT, Schema, or_null, settings

MS: Schema = {"type": "integer", "minimum": 0, "description": "ms"}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_ID: Schema = {"type": "string"}
_STATUS: Schema = {"type": "string", "enum": ["queued", "processing", "completed", "error"]}
_SPAN = {"start": MS, "end": MS}
_SCORES: Schema = {"type": "object", "additionalProperties": _NUMBER}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "required": list(required), "properties": required | (optional or {})}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_WORDS = _list(_ref("Word"))
_VOICE = {"speaker": or_null(_TEXT), "channel": or_null({"type": ["string", "integer"]})}
_WINDOW = _object(_SPAN)


def _result(labels: dict[str, Schema], more: dict[str, Schema]) -> Schema:
    """An analysis that labels stretches; an empty object, or one with status unavailable, where there is none."""
    item = _object({"text": _TEXT, "labels": _list(_object(labels)), "timestamp": _WINDOW})
    return {"type": "object", "properties": {"status": _TEXT, "results": _list(item), "summary": _SCORES, **more}}


def _transcript() -> Schema:
    echoed = {name: or_null(schema) for name, schema in settings().items() if not options.FIELDS[name].secret}
    highlight = _object({"text": _TEXT, "count": _COUNT, "rank": _NUMBER, "timestamps": _list(_WINDOW)})
    chapter = _object({"summary": _TEXT, "gist": _TEXT, "headline": _TEXT, **_SPAN})
    sentiment = _object({"text": _TEXT, **_SPAN, "sentiment": _TEXT, "confidence": UNIT}, _VOICE)
    levels = _object({"low": _NUMBER, "medium": _NUMBER, "high": _NUMBER})
    severity = {"severity_score_summary": {"type": "object", "additionalProperties": levels}}
    label = {"label": _TEXT, "confidence": UNIT, "severity": or_null(UNIT)}
    results = {
        "error": or_null(_TEXT),
        "words": or_null(_WORDS),
        "utterances": or_null(_list(_ref("Utterance"))),
        "confidence": or_null(UNIT),
        "audio_duration": or_null({"type": "number", "description": "seconds"}),
        "audio_channels": or_null(_COUNT),
        "language_model": or_null(_TEXT),
        "acoustic_model": or_null(_TEXT),
        "language_confidence": or_null(UNIT),
        "webhook_status_code": or_null({"type": "integer"}),
        "webhook_auth": {"type": "boolean"},
        "throttled": or_null({"type": "boolean"}),
        "speed_boost": or_null({"type": "boolean"}),
        "auto_highlights_result": or_null(
            {"type": "object", "properties": {"status": _TEXT, "results": _list(highlight)}}
        ),
        "content_safety_labels": or_null(_result(label, severity)),
        "iab_categories_result": or_null(_result({"relevance": _NUMBER, "label": _TEXT}, {})),
        "chapters": or_null(_list(chapter)),
        "summary": or_null(_TEXT),
        "sentiment_analysis_results": or_null(_list(sentiment)),
        "entities": or_null(_list(_object({"entity_type": _TEXT, "text": _TEXT, **_SPAN}))),
    }
    return _object(
        {"id": _ID, "status": _STATUS, "audio_url": _TEXT, "text": or_null(_TEXT)},
        echoed | {"webhook_url": or_null(_TEXT)} | results,
    )


def _export(name: str) -> Schema:
    piece = _object({"text": _TEXT, **_SPAN, "confidence": UNIT, "words": _WORDS}, _VOICE)
    return _object({"id": _ID, name: _list(piece), "confidence": UNIT, "audio_duration": _NUMBER})


def _listing() -> Schema:
    item = {
        "id": _ID,
        "resource_url": ADDRESS,
        "status": _STATUS,
        "created": _TEXT,
        "completed": or_null(_TEXT),
        "audio_url": _TEXT,
        "error": or_null(_TEXT),
    }
    page = {
        "limit": _COUNT,
        "result_count": _COUNT,
        "current_url": ADDRESS,
        "prev_url": or_null(ADDRESS),
        "next_url": or_null(ADDRESS),
    }
    return _object({"page_details": _object(page), "transcripts": _list(_object(item))})


def _word_search() -> Schema:
    span = {"type": "array", "items": MS, "minItems": 2, "maxItems": 2}
    match = {"text": _TEXT, "count": _COUNT, "timestamps": _list(span), "indexes": _list(_COUNT)}
    return _object({"id": _ID, "total_count": _COUNT, "matches": _list(_object(match))})


def _language_model() -> Schema:
    answer = _object({"question": _TEXT, "answer": _TEXT})
    usage = _object({"input_tokens": _COUNT, "output_tokens": _COUNT})
    return _object({"request_id": _ID, "response": {"anyOf": [_TEXT, _list(answer)]}, "usage": usage, "model": _TEXT})


def schemas() -> dict[str, Schema]:
    """The answers by name, and what is used in more than one of them."""
    word = {"text": _TEXT, **_SPAN, "confidence": UNIT}
    return {
        "Error": _object({"error": _TEXT}),
        "Word": _object(word, _VOICE),
        "Utterance": _object({**word, "words": _WORDS}, _VOICE),
        "Transcript": _transcript(),
        "TranscriptList": _listing(),
        "Sentences": _export("sentences"),
        "Paragraphs": _export("paragraphs"),
        "WordSearch": _word_search(),
        "RedactedAudio": _object({"redacted_audio_url": ADDRESS, "status": _TEXT}),
        "Upload": _object({"upload_url": ADDRESS}),
        "Token": _object({"token": _TEXT}),
        "LanguageModelAnswer": _language_model(),
        "Purged": _object({"request_id": _ID, "request_id_to_purge": _ID, "deleted": {"type": "boolean"}}),
    }
