"""What a request for a transcript asks for, and what this service can do of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxframe import options
from voxframe.local import analyses, engines

#: Request fields that are for English alone.
_ENGLISH = (*analyses.OPTIONS, "filter_profanity")
#: Words and phrases that a recogniser can listen for at once, and how long one may be, in characters.
BOOSTED, BOOSTED_CHARS = 1000, 100
#: Headers that say where a request goes and where it ends; nobody's to choose.
_FRAMING = frozenset(
    "connection content-encoding content-length content-type expect host keep-alive te trailer transfer-encoding "
    "upgrade".split()
)


class Refused(ValueError):  # noqa: N818 - the answer to a request, not a fault
    """A request that cannot be done; the message is for whoever sent it."""


def read(body: object, engine: str = engines.DEFAULT) -> dict[str, Any]:
    """The known fields of a request body, each in one spelling. Unknown fields and nulls are left out.

    Args:
        body: What was sent.
        engine: Name of the speech engine that is to do it.

    Raises:
        Refused: A value is not allowed, `audio_url` is missing, or something is asked for that this service cannot do.
    """
    if not isinstance(body, Mapping):
        raise Refused("the body must be a JSON object with at least audio_url")
    wrongs = options.problems(body)
    if body.get("audio_url") is None:
        wrongs.insert(
            0, "audio_url is required: the http or https address of the media, or an upload_url of this service"
        )
    asked = options.normalise(body)
    if asked.get("webhook_auth_header_name", "").lower() in _FRAMING:
        wrongs.append(
            f"webhook_auth_header_name may not be {asked['webhook_auth_header_name']}, which frames a request"
        )
    if asked.get("redact_pii_audio") and not asked.get("redact_pii"):
        wrongs.append("redact_pii_audio takes redact_pii too: without it nothing is looked for that could be covered")
    boost = asked.get("word_boost", ())
    if len(boost) > BOOSTED or any(len(term) > BOOSTED_CHARS for term in boost):
        wrongs.append(
            f"word_boost may have at most {BOOSTED} words or phrases of at most {BOOSTED_CHARS} characters each"
        )
    wrongs += _language(asked, engine)
    if wrongs:
        raise Refused("; ".join(wrongs))
    return asked


def _language(asked: Mapping[str, Any], engine: str) -> list[str]:
    """What is wrong with the language, or cannot be done in it."""
    if asked.get("language_detection"):
        # Which language it is will be known too late to refuse: analyses that do not know it say so in their result.
        return [] if engines.detects_language(engine) else [engines.no_detection(engine)]
    language = asked.get("language_code")
    if language is None or language in analyses.LANGUAGES:
        return []
    if not engines.supports(language, engine):
        return [engines.refusal(language, engine)]
    wanted = [name for name in _ENGLISH if asked.get(name)]
    return [f"The following models are not available in this language: {', '.join(wanted)}"] if wanted else []
