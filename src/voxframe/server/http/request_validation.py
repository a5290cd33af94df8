"""Validation of requests for a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxframe import options
from voxframe.server import analyses
from voxframe.server.speech import engines

#: Request fields that are for English alone.
_ENGLISH = (*analyses.OPTIONS, "filter_profanity")
#: Maximum number of boosted words and phrases, and maximum length of one in characters.
BOOSTED, BOOSTED_CHARS = 1000, 100
#: Headers that control the framing of a request, which a client may not set.
_FRAMING = frozenset(
    "connection content-encoding content-length content-type expect host keep-alive te trailer transfer-encoding "
    "upgrade".split()
)


class RequestRefused(ValueError):  # noqa: N818 - the result of a request, not a fault
    """A request that is invalid or not supported; the message is for the client."""


def read(body: object, engine: str = engines.DEFAULT) -> dict[str, Any]:
    """Return the known fields of a request body in a normalized form, without nulls.

    Args:
        body: The decoded body.
        engine: Name of the speech engine for the job.

    Raises:
        RequestRefused: A value is invalid, `audio_url` is missing, or an option is not supported by this server. The
            message lists all problems.
    """
    if not isinstance(body, Mapping):
        raise RequestRefused("the body must be a JSON object with at least audio_url")
    problems = options.problems(body)
    if body.get("audio_url") is None:
        problems.insert(0, "audio_url is required: an http or https URL of the media, or an upload_url of this server")
    given = options.normalise(body)
    if given.get("webhook_auth_header_name", "").lower() in _FRAMING:
        problems.append(
            f"webhook_auth_header_name may not be {given['webhook_auth_header_name']}, which frames a request"
        )
    if given.get("redact_pii_audio") and not given.get("redact_pii"):
        problems.append("redact_pii_audio requires redact_pii, which finds the personal data to cover")
    boost = given.get("word_boost", ())
    if len(boost) > BOOSTED or any(len(term) > BOOSTED_CHARS for term in boost):
        problems.append(
            f"word_boost may have at most {BOOSTED} words or phrases of at most {BOOSTED_CHARS} characters each"
        )
    problems += _language(given, engine)
    if problems:
        raise RequestRefused("; ".join(problems))
    return given


def _language(given: Mapping[str, Any], engine: str) -> list[str]:
    """Return the problems with the language options."""
    if given.get("language_detection"):
        # The language is known only later; results of analyses that do not support it have the status unavailable.
        return [] if engines.detects_language(engine) else [engines.no_detection(engine)]
    language = given.get("language_code")
    if language is None or language in analyses.LANGUAGES:
        return []
    if not engines.supports(language, engine):
        return [engines.refusal(language, engine)]
    wanted = [name for name in _ENGLISH if given.get(name)]
    return [f"The following models are not available in this language: {', '.join(wanted)}"] if wanted else []
