"""Jobs as the interface writes them: the transcript object, what is left of a deleted one, a list item."""

from __future__ import annotations

from typing import Any

from voxframe import options
from voxframe.local.jobs import Job

#: Result fields, as they are while there is no result.
RESULTS: dict[str, Any] = {
    "text": None,
    "words": None,
    "utterances": None,
    "confidence": None,
    "audio_duration": None,
    "language_model": None,
    "acoustic_model": None,
    "language_confidence": None,
    "webhook_status_code": None,
    "auto_highlights_result": None,
    "content_safety_labels": {},
    "iab_categories_result": {},
    "custom_topics_results": None,
    "chapters": None,
    "summary": None,
    "sentiment_analysis_results": None,
    "entities": None,
}
#: Settings that are null, and not their default, while what they belong to was not asked for.
_ONLY_WITH = {
    "boost_param": "word_boost",
    "redact_pii_audio_quality": "redact_pii_audio",
    "redact_pii_policies": "redact_pii",
    "redact_pii_sub": "redact_pii",
    "summary_model": "summarization",
    "summary_type": "summarization",
    "content_safety_confidence": "content_safety",
    "language_confidence_threshold": "language_detection",
}
#: What is still said of a deleted transcript.
_KEPT = ("audio_duration", "language_model", "acoustic_model")
_FALSE_WHEN_DELETED = (
    "webhook_auth",
    "auto_highlights",
    "redact_pii",
    "auto_chapters",
    "summarization",
    "disfluencies",
    "sentiment_analysis",
    "entity_detection",
)
DELETED_TEXT, DELETED_URL = "Deleted by user.", "http://deleted_by_user"


def transcript(job: Job, result: dict[str, Any] | None) -> dict[str, Any]:
    """The transcript object of a job.

    Args:
        job: The job.
        result: Its result fields, where it is completed.
    """
    if job.deleted:
        return _deleted(job)
    fields = {"id": job.id, "status": job.status, **_echo(job.asked), **RESULTS, **(result or {})}
    fields |= {"throttled": job.throttled, "speed_boost": False, "webhook_status_code": job.webhook_status_code}
    if job.status == "error":
        fields["error"] = job.error
    return fields


def _echo(asked: dict[str, Any]) -> dict[str, Any]:
    """The request settings. The value of the webhook's header is never among them."""
    echo = {}
    for name, field in options.FIELDS.items():
        if field.secret:
            continue
        value = field.default if name not in _ONLY_WITH or asked.get(_ONLY_WITH[name]) else None
        echo[name] = asked.get(name, list(value) if isinstance(value, tuple) else value)
    echo["webhook_auth"] = asked.get("webhook_auth_header_name") is not None
    return echo


def kept(result: dict[str, Any] | None) -> dict[str, Any]:
    """The part of a result that outlives the deletion of its transcript."""
    return {name: (result or {}).get(name) for name in _KEPT}


def _deleted(job: Job) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(
        (*_echo({}), *RESULTS, "throttled", "speed_boost", "speaker_count", "cluster_id")
    )
    fields |= dict.fromkeys(_FALSE_WHEN_DELETED, False)
    fields |= {"id": job.id, "status": job.status, "error": job.error, "text": DELETED_TEXT}
    fields |= {"audio_url": DELETED_URL, "webhook_url": DELETED_URL}
    return fields | job.asked


def list_item(job: Job, base_url: str) -> dict[str, Any]:
    """The entry of a job in a list."""
    return {
        "id": job.id,
        "resource_url": f"{base_url}/v2/transcript/{job.id}",
        "status": job.status,
        "created": job.created,
        "completed": job.completed,
        "audio_url": DELETED_URL if job.deleted else job.asked["audio_url"],
        "error": job.error,
    }
