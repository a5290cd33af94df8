"""Removal of incomplete files and old media from the data directory.

Results are kept, even if their recordings are removed.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from voxframe.server.data_dir import DataDir
from voxframe.server.jobs.job_store import JobStore

_log = logging.getLogger("voxframe.server")

_ABANDONED = 3600.0  # seconds since the last write after which an incomplete file is abandoned


@dataclass(frozen=True)
class RetentionPolicy:
    """Limits for stored media: uploads, downloads and redacted audio. Media of unfinished jobs is always kept.

    Attributes:
        days: Maximum age of a file in days. A file is kept for at least one hour, so that an upload can be used.
        gigabytes: Maximum total size; the oldest files are removed first.
    """

    days: float = 30.0
    gigabytes: float = 20.0


def sweep(jobs: JobStore, data_dir: DataDir, retention: RetentionPolicy | None = None) -> None:
    """Finish interrupted deletions, and remove incomplete files and media beyond the retention limits."""
    for job_id in jobs.deleted():
        shutil.rmtree(data_dir.job(job_id), ignore_errors=True)
    _drop_halves(jobs, data_dir)
    _drop_media(jobs, data_dir, retention or RetentionPolicy())


def _drop_halves(jobs: JobStore, data_dir: DataDir) -> None:
    """Remove files left by killed processes: unrecorded uploads, temporary files, folders of unrecorded jobs."""
    oldest = time.time() - _ABANDONED
    for path in data_dir.uploads.iterdir():
        if _changed(path) < oldest and not jobs.has_upload(path.name):
            path.unlink(missing_ok=True)
    for folder in data_dir.jobs.iterdir():
        if jobs.get(folder.name) is None and _changed(folder) < oldest:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        for path in (*folder.glob(".*"), *folder.glob("*.part")):
            if _changed(path) < oldest:
                path.unlink(missing_ok=True)


def _drop_media(jobs: JobStore, data_dir: DataDir, retention: RetentionPolicy) -> None:
    now = time.time()
    files = sorted((found.st_mtime, found.st_size, path) for path in _media(data_dir) if (found := path.stat()))
    total = sum(size for _, size, _ in files)
    dropped = 0
    for changed, size, path in files:
        old, much = now - changed > retention.days * 86_400, total > retention.gigabytes * 1e9
        if now - changed < _ABANDONED or not (old or much):
            break  # all following files are newer
        if jobs.drop_media(path.relative_to(data_dir.root).as_posix(), path.parent.name):
            path.unlink(missing_ok=True)
            total -= size
            dropped += 1
    if dropped:
        _log.info("removed %d media file(s); %.2f GB remain", dropped, total / 1e9)


def _media(data_dir: DataDir) -> Iterator[Path]:
    yield from data_dir.uploads.iterdir()
    yield from data_dir.jobs.glob("*/media")
    yield from data_dir.jobs.glob("*/redacted.*")


def _changed(path: Path) -> float:
    """Return the time of the last write to a file, or the current time if the file no longer exists."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
