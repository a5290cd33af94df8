"""File names for identifiers that came from a service, and are therefore never trusted as paths."""

from __future__ import annotations

import hashlib
import re

# Lower case only: on a case-insensitive file system `a1` and `A1` would be one file. A leading underscore or dash is
# left out because data set readers skip `_x` as hidden and shells read `-x` as an option.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")  # Windows opens a device whatever the extension


def file_name(transcript_id: str) -> str:
    """Stem of the files of a transcript.

    A plain identifier (lower-case letters, digits, `_`, `-`, at most 128) is its own name. Any other gets a readable
    beginning, `~` and a hash; the identifier itself is kept inside the files.

    Args:
        transcript_id: Identifier of the transcript, any text.

    Returns:
        A name of at most 128 characters that is safe on every file system, different for different identifiers.

    Example:
        >>> file_name("7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0")
        '7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0'
        >>> file_name("../../etc/passwd")
        'etc_passwd~3754d6cb3a38e1185e5b'
    """
    if _PLAIN.fullmatch(transcript_id) and not _DEVICES.fullmatch(transcript_id):
        return transcript_id
    digest = hashlib.sha256(transcript_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    readable = re.sub(r"[^A-Za-z0-9-]+", "_", transcript_id)[:40].strip("_-") or "id"
    return f"{readable}~{digest}"


def is_plain(name: str) -> bool:
    """Whether a file name is the identifier itself."""
    return "~" not in name
