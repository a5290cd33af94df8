"""Short names of recordings: the stem of a file, or the last segment of a URL, made unique in the ledger."""

from __future__ import annotations

import re
import sqlite3
from itertools import count
from pathlib import PurePath
from urllib.parse import unquote

from voxframe.corpus.addresses import split
from voxframe.errors import OptionError

#: Extensions of recordings.
EXTENSIONS = frozenset(
    ".3ga .3gp .8svx .aac .ac3 .aif .aifc .aiff .alac .amr .ape .au .caf .dss .flac .flv .m2ts .m4a .m4b .m4p .m4r "
    ".m4v .mkv .mov .mp2 .mp3 .mp4 .mpeg .mpga .mpg .mts .mxf .oga .ogg .ogv .opus .qcp .ts .tta .voc .wav .webm .wma "
    ".wmv .wv".split()
)

_LONGEST = 120
_SAME_AUDIO = (
    "SELECT recording FROM jobs WHERE media = ?1 AND recording IS NOT NULL AND ?1 != '' "
    "UNION ALL SELECT recording FROM recordings WHERE audio = ?1 AND ?1 != '' LIMIT 1"
)
_TAKEN = "SELECT recording FROM {} WHERE recording = ?1 OR (recording >= ?1 || '-' AND recording < ?1 || '.')"


def short_name(source: str) -> str | None:
    """Return the stem of a file name, or the last segment of a URL.

    Args:
        source: Path or URL.

    Returns:
        The name; None if the source has none.

    Example:
        >>> short_name("calls/2024/call 7.wav"), short_name("https://b.example/calls/call%207.mp3?sig=x")
        ('call 7', 'call 7.mp3')
    """
    if "://" in source:
        return tidy(unquote(split(source).path.rstrip("/").rpartition("/")[2])) or None
    return tidy(PurePath(source).stem) or None


def tidy(name: str) -> str:
    """Return a name without control characters, slashes and outer spaces, and not longer than 120 characters."""
    printable = "".join(c if c.isprintable() and c not in "/\\" else " " for c in name)
    return re.sub(r"\s+", " ", printable).strip()[:_LONGEST].rstrip()


def checked_name(value: object) -> str | None:
    """Return the name of a recording that a user gave; None for null.

    Raises:
        OptionError: It is not a text with a visible character, or is too long.
    """
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, str) or not value.strip() or tidy(value) != value.strip():
        raise OptionError(
            f"the name of a recording must be text of 1 to {_LONGEST} characters without slashes, got {value!r:.100}"
        )
    return value.strip()


class NameGiver:
    """Gives names to recordings within one transaction of the ledger.

    Recordings with the same audio share a name. Another recording with a name that is taken gets `-2`, `-3` and so on.

    Args:
        db: The ledger, in a transaction that writes.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._of_audio: dict[str, str] = {}
        self._stored: dict[str, set[str]] = {}
        self._given: set[str] = set()
        self._last: dict[str, int] = {}

    def name(self, stem: str, audio: str) -> str:
        """Return the name of a recording.

        Args:
            stem: The wanted name.
            audio: Identity of the audio: recordings with the same one share a name. Empty: unknown.
        """
        if audio in self._of_audio:
            return self._of_audio[audio]
        known = self._db.execute(_SAME_AUDIO, [audio]).fetchone()
        return self.keep(known[0] if known else self._free(stem), audio)

    def keep(self, name: str, audio: str) -> str:
        """Note the name of an audio, for later names in this transaction."""
        self._given.add(name)
        if audio:
            self._of_audio[audio] = name
        return name

    def _free(self, stem: str) -> str:
        if stem not in self._stored:
            rows = [row for table in ("jobs", "recordings") for row in self._db.execute(_TAKEN.format(table), [stem])]
            self._stored[stem] = {name for (name,) in rows}
        for n in count(self._last.get(stem, 1)):
            name = stem if n == 1 else f"{stem}-{n}"
            if name not in self._stored[stem] and name not in self._given:
                self._last[stem] = n + 1
                return name
        raise AssertionError


def name_jobs(db: sqlite3.Connection) -> None:
    """Name the recordings of jobs that have no name, such as those of an older ledger, oldest first."""
    giver = NameGiver(db)
    unnamed = "SELECT key, source, media, transcript_id FROM jobs WHERE recording IS NULL ORDER BY created, rowid"
    for key, source, media, transcript_id in db.execute(unnamed).fetchall():
        name = giver.name(job_stem(source, transcript_id, key), media or "")
        db.execute("UPDATE jobs SET recording = ? WHERE key = ?", [name, key])


def job_stem(source: str, transcript_id: str | None, key: str) -> str:
    """Return the wanted name of the recording of a job: from its source, otherwise the id."""
    if source == transcript_id:
        return source
    return short_name(source) or transcript_id or key[:12]
