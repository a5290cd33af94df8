"""What a request for a transcript asks for, and what this service can do of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxframe import options

#: Request fields this version cannot do, with the value that would ask for it being anything but false or empty.
NOT_YET = (
    "auto_chapters",
    "auto_highlights",
    "content_safety",
    "custom_topics",
    "entity_detection",
    "iab_categories",
    "language_detection",
    "redact_pii",
    "redact_pii_audio",
    "sentiment_analysis",
    "summarization",
    "word_boost",
)
#: Headers that say where a request goes and where it ends; nobody's to choose.
_FRAMING = frozenset(
    "connection content-encoding content-length content-type expect host keep-alive te trailer transfer-encoding "
    "upgrade".split()
)


class Refused(ValueError):  # noqa: N818 - the answer to a request, not a fault
    """A request that cannot be done; the message is for whoever sent it."""


def read(body: object) -> dict[str, Any]:
    """The known fields of a request body, each in one spelling. Unknown fields and nulls are left out.

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
    wanted = [name for name in NOT_YET if asked.get(name)]
    if wanted:
        wrongs.append(
            f"this version of the embedded service cannot do: {', '.join(wanted)}. "
            "Leave these fields out, or point base_url at a service that can"
        )
    if not wrongs and "language_code" in asked:
        from voxframe.local import engines  # brings the speech engine's own module, which takes a moment

        if not engines.supports(asked["language_code"]):
            wrongs.append(engines.refusal(asked["language_code"]))
    if wrongs:
        raise Refused("; ".join(wrongs))
    return asked
