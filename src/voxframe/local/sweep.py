"""Removes what is no longer needed from the data directory: what was cut off half-way, and media that is old.

Results stay, whatever becomes of the recordings they were made from.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from voxframe.local.jobs import Jobs
from voxframe.local.places import Places

_log = logging.getLogger("voxframe.local")

_ABANDONED = 3600.0  # seconds without a byte after which a file under way is one no longer


@dataclass(frozen=True)
class Keep:
    """How much media is kept: uploads, downloads and redacted audio. What a job still needs is kept whatever it is.

    Attributes:
        days: Days after which a file goes. It stays for an hour in any case, so that an upload can be used.
        gigabytes: Of all together; the oldest go first.
    """

    days: float = 30.0
    gigabytes: float = 20.0


def sweep(jobs: Jobs, places: Places, keep: Keep | None = None) -> None:
    """Finish deletions that were cut off, drop what never became whole, and media that is too old or too much."""
    for job_id in jobs.deleted():
        shutil.rmtree(places.job(job_id), ignore_errors=True)
    _drop_halves(jobs, places)
    _drop_media(jobs, places, keep or Keep())


def _drop_halves(jobs: Jobs, places: Places) -> None:
    """What processes that were killed have left: uploads, temporary files, folders of jobs that were never noted."""
    oldest = time.time() - _ABANDONED
    for path in places.uploads.iterdir():
        if _changed(path) < oldest and not jobs.has_upload(path.name):
            path.unlink(missing_ok=True)
    for folder in places.jobs.iterdir():
        if jobs.get(folder.name) is None and _changed(folder) < oldest:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        for path in (*folder.glob(".*"), *folder.glob("*.part")):
            if _changed(path) < oldest:
                path.unlink(missing_ok=True)


def _drop_media(jobs: Jobs, places: Places, keep: Keep) -> None:
    now = time.time()
    files = sorted((found.st_mtime, found.st_size, path) for path in _media(places) if (found := path.stat()))
    total = sum(size for _, size, _ in files)
    dropped = 0
    for changed, size, path in files:
        old, much = now - changed > keep.days * 86_400, total > keep.gigabytes * 1e9
        if now - changed < _ABANDONED or not (old or much):
            break  # those that follow are younger
        if jobs.drop_media(path.relative_to(places.root).as_posix(), path.parent.name):
            path.unlink(missing_ok=True)
            total -= size
            dropped += 1
    if dropped:
        _log.info("%d media file(s) were removed; %.2f GB are kept", dropped, total / 1e9)


def _media(places: Places) -> Iterator[Path]:
    yield from places.uploads.iterdir()
    yield from places.jobs.glob("*/media")
    yield from places.jobs.glob("*/redacted.*")


def _changed(path: Path) -> float:
    """When a file was last written to; now, where it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
