"""Schemathesis hooks: URLs stay on this machine, and half of the ids exist."""

import json
import os
import re
from urllib.parse import urlsplit

import schemathesis
from schemathesis import GenerationMode

#: JSON: lists of ids of transcripts and of language-model answers, by the name of their parameter.
KNOWN = json.loads(os.environ.get("OPENAPI_KNOWN_IDS", "{}"))
#: Where media is said to be and notifications are said to go. Nobody listens there.
NOBODY = "http://127.0.0.1:9/"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _leads_somewhere(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(urlsplit(value).hostname)
    except ValueError:
        return False


@schemathesis.hook
def before_call(context, case, kwargs):
    """Replace URLs that would leave this machine, and some of the ids that cannot exist."""
    if isinstance(case.body, dict):
        for name in ("audio_url", "webhook_url"):
            if _leads_somewhere(case.body.get(name)) and "/upload/" not in case.body[name]:
                case.body[name] = NOBODY
    parameters = case.path_parameters or {}
    if case.method != "DELETE" and case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE:
        for name in KNOWN.keys() & parameters.keys():
            number = sum(map(ord, str(parameters[name])))
            if not _UUID.fullmatch(str(parameters[name])) and number % 4:
                parameters[name] = KNOWN[name][number % len(KNOWN[name])]
    if isinstance(case.body, dict) and case.body.get("transcript_ids") and KNOWN:
        case.body["transcript_ids"] = KNOWN["transcript_id"][:1]
