"""Bodies of responses: transcripts, items of a list, sentences, paragraphs and word search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from voxframe import _text, options
from voxframe.options import WORD_SEARCH_WORDS
from voxframe.validators import shown
from voxframe_engine.text import passage
from voxframe_server.jobs.job_store import JobRecord

#: Result fields and their values before a job is completed.
RESULTS: dict[str, Any] = dict.fromkeys(
    "text words utterances confidence audio_duration language_model acoustic_model language_confidence "
    "webhook_status_code auto_highlights_result content_safety_labels iab_categories_result custom_topics_results "
    "chapters summary sentiment_analysis_results entities".split()
) | {"content_safety_labels": {}, "iab_categories_result": {}}
#: Settings that are null, instead of their default, unless the other setting was requested.
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
#: Result fields that are kept after deletion.
_KEPT = ("audio_duration", "language_model", "acoustic_model")
_FALSE_WHEN_DELETED = (
    "webhook_auth auto_highlights redact_pii auto_chapters summarization disfluencies sentiment_analysis "
    "entity_detection".split()
)
DELETED_TEXT, DELETED_URL = "Deleted by user.", "http://deleted_by_user"


def transcript(job: JobRecord, result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the transcript object of a job."""
    if job.deleted:
        return _deleted(job)
    fields = {"id": job.id, "status": job.status, **_echo(job.request), **RESULTS, **(result or {})}
    fields |= {"throttled": job.throttled, "speed_boost": False, "webhook_status_code": job.webhook_status_code}
    if job.status == "error":
        fields["error"] = job.error
    return fields


def _echo(request: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the request. The value of the webhook header is never among them."""
    echo = {}
    for name, field in options.FIELDS.items():
        if field.secret:
            continue
        value = field.default if name not in _ONLY_WITH or request.get(_ONLY_WITH[name]) else None
        echo[name] = request.get(name, list(value) if isinstance(value, tuple) else value)
    echo["webhook_auth"] = request.get("webhook_auth_header_name") is not None
    return echo


def kept(result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the result fields that are kept after a transcript is deleted."""
    return {name: (result or {}).get(name) for name in _KEPT}


def _deleted(job: JobRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(
        (*_echo({}), *RESULTS, "throttled", "speed_boost", "speaker_count", "cluster_id")
    )
    fields |= dict.fromkeys(_FALSE_WHEN_DELETED, False)
    fields |= {"id": job.id, "status": job.status, "error": job.error, "text": DELETED_TEXT}
    fields |= {"audio_url": DELETED_URL, "webhook_url": DELETED_URL}
    return fields | job.request


def list_item(job: JobRecord, base_url: str) -> dict[str, Any]:
    """Return the list entry of a job."""
    return {
        "id": job.id,
        "resource_url": f"{base_url}/v2/transcript/{job.id}",
        "status": job.status,
        "created": job.created,
        "completed": job.completed,
        "audio_url": DELETED_URL if job.deleted else job.request["audio_url"],
        "error": job.error,
    }


def sentences(transcript: dict[str, Any]) -> dict[str, Any]:
    """Return the sentences response of a transcript object."""
    return _passages(transcript, "sentences", _text.sentences(transcript["words"] or []))


def paragraphs(transcript: dict[str, Any]) -> dict[str, Any]:
    """Return the paragraphs response of a transcript object."""
    return _passages(transcript, "paragraphs", _text.paragraphs(transcript["words"] or []))


def _passages(transcript: dict[str, Any], name: str, groups: list[list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        name: [
            {**passage(words), "confidence": sum(word["confidence"] for word in words) / len(words)} for words in groups
        ],
        "id": transcript["id"],
        "confidence": transcript["confidence"],
        "audio_duration": transcript["audio_duration"],
    }


def search_terms(values: Iterable[str]) -> list[str]:
    """Return the search terms in the values of `words=`, which may be comma-separated or repeated."""
    terms: dict[str, str] = {}
    for value in values:
        for term in value.split(","):
            key = " ".join(_tokens(term))
            if key.count(" ") >= WORD_SEARCH_WORDS:
                raise ValueError(f"a phrase may have at most {WORD_SEARCH_WORDS} words; {shown(term.strip())} has more")
            if key:
                terms.setdefault(key, " ".join(term.split()))
    if not terms:
        raise ValueError("words is required: words, numbers or phrases of up to five words, separated by commas")
    return list(terms.values())


def _tokens(text: str) -> list[str]:
    return [token for token in map(_text.search_form, text.split()) if token]


def search_words(words: Sequence[dict[str, Any]], terms: Iterable[str]) -> list[dict[str, Any]]:
    """Return the matches of each term of `search_terms`. A term without a match is left out.

    Example:
        >>> search_words([{"text": "Smoke.", "start": 250, "end": 650}], ["smoke"])
        [{'text': 'smoke', 'count': 1, 'timestamps': [[250, 650]], 'indexes': [0]}]
    """
    # Channel by channel, because the words of simultaneous speakers alternate.
    channels: dict[Any, list[tuple[str, int]]] = {}
    for index, word in enumerate(words):
        channels.setdefault(word.get("channel"), []).extend((token, index) for token in _tokens(word["text"]))
    spoken = [token for channel in channels.values() for token in (*channel, ("", -1))]  # no term contains ""
    positions: dict[str, list[int]] = {}
    for position, (token, _) in enumerate(spoken):
        positions.setdefault(token, []).append(position)
    matches = []
    for term in terms:
        tokens = _tokens(term)
        spans = [
            (spoken[position][1], spoken[position + len(tokens) - 1][1])
            for position in positions.get(tokens[0], ())
            if [token for token, _ in spoken[position : position + len(tokens)]] == tokens
        ]
        spans.sort()
        if spans:
            matches.append(
                {
                    "text": term,
                    "count": len(spans),
                    "timestamps": [[words[first]["start"], words[last]["end"]] for first, last in spans],
                    "indexes": [first for first, _ in spans],
                }
            )
    return matches
