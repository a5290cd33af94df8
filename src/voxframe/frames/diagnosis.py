"""Errors for bytes that are not a payload: they say what the bytes seem to be, and what to do."""

from __future__ import annotations

import json
import re
from typing import Any

from voxframe.errors import PayloadError

#: First bytes of files that are not JSON, what the files are, and what to do with them.
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(beginning, re.DOTALL), kind, advice)
    for beginning, kind, advice in (
        (
            rb"ID3|\xff[\xe2\xe3\xf0-\xf5\xf8-\xfd]|R(IFF|F64)....WAVE|FORM....AIF|fLaC|OggS|....ftyp|\x1aE\xdf\xa3",
            "audio or video",
            "transcribe it with client.transcribe or `voxframe transcribe`",
        ),
        (rb"%PDF", "a PDF document", "save its text as a .txt file"),
        (
            rb"PK\x03\x04",
            "a zip archive or an Office document",
            "pass the files in the archive, or save the text of the document as a .txt file",
        ),
        (rb"\x89PNG|\xff\xd8\xff|GIF8", "an image", "pass a transcript"),
        (
            rb"\x1f\x8b|\x28\xb5\x2f\xfd",
            "compressed with gzip or zstd",
            "decompress it, or give it as a file whose name ends in .gz or .zst",
        ),
    )
)


def not_json(raw: bytes, text: str, error: ValueError) -> PayloadError:
    """Return the error for bytes that are not JSON."""
    for beginning, kind, advice in _KINDS:
        if beginning.match(raw):
            return PayloadError(f"the payload is {kind}, not a transcript; {advice}")
    return _unreadable(_reason(text, error))


def not_an_object(document: Any) -> PayloadError:
    """Return the error for JSON that is not an object."""
    return PayloadError(
        f"a payload must be a JSON object, not {kind_of(document)}; pass one transcript, or fetch it again"
    )


def too_deep() -> PayloadError:
    """Return the error for a payload nested too deeply for the Python stack."""
    return _unreadable("the payload is nested too deeply")


def kind_of(value: Any) -> str:
    """Return a description of a JSON value.

    Example:
        >>> kind_of([1, 2]), kind_of("a"), kind_of(None)
        ('a list of 2', 'a string', 'null')
    """
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _unreadable(reason: str) -> PayloadError:
    return PayloadError(f"{reason}; fetch it again, or pass the response of the service unchanged")


def _reason(text: str, error: ValueError) -> str:
    start = text.lstrip()[:500]
    if not start:
        return "the payload is empty"
    if start.startswith("<"):
        return "the payload is a web page or XML, not JSON"
    if start[0] not in "{[":
        return f"the payload is not JSON: it begins with {start[:20]!r}"
    if not isinstance(error, json.JSONDecodeError):
        return f"the payload is not JSON ({error})"
    if error.msg == "Extra data":
        return f"the payload has extra data after its end (character {error.pos} of {len(text)})"
    if not text.rstrip().endswith(("}", "]")):
        return f"the payload is truncated after {len(text)} characters"
    return f"the payload is not JSON ({error.msg} at character {error.pos} of {len(text)})"
