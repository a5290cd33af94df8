"""Removes what a service process that was killed half-way has left on disk."""

from __future__ import annotations

import shutil
import time

from voxframe.local.jobs import Jobs
from voxframe.local.places import Places

_ABANDONED = 3600.0  # seconds without a byte after which an upload under way is one no longer


def sweep(jobs: Jobs, places: Places) -> None:
    """Finish deletions that were cut off, and drop uploads that never became whole."""
    for job_id in jobs.deleted():
        shutil.rmtree(places.job(job_id), ignore_errors=True)
    oldest = time.time() - _ABANDONED
    for path in places.uploads.iterdir():
        if path.stat().st_mtime < oldest and not jobs.has_upload(path.name):
            path.unlink(missing_ok=True)
