"""A live table of jobs with their state, and buttons to cancel or retry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from voxframe._text import clock, masked
from voxframe.corpus.job import LOST, PENDING, Job
from voxframe.widgets.base import ScriptedWidget, escaped

#: Maximum number of rows; unfinished and recent jobs come first.
MAX_ROWS = 100
_STATE_TEXTS = {
    "planned": "waiting to be sent",
    "uploading": "uploading",
    "submitting": "sending",
    "submitted": "transcribing",
    "completed": "done",
    "error": "failed",
    "uncertain": "uncertain",
}
FINISHED = ("completed", "error", "uncertain")


class JobTable(ScriptedWidget):
    """A table of submissions.

    Args:
        on_action: Called with an action ("cancel", "retry" or "retry all") and the key of a job.

    Attributes:
        busy (str): Description of the current activity; empty for none.
    """

    scripts = ("job_table",)
    styles = ("fields", "job_table")

    busy = traitlets.Unicode("").tag(sync=True)
    _rows: Any = traitlets.List().tag(sync=True)
    _counts = traitlets.Dict().tag(sync=True)

    def __init__(self, on_action: Callable[[str, str], None]) -> None:
        super().__init__(title="Jobs")
        self._on_action = on_action
        self.on_msg(self._clicked)

    def show(self, jobs: Sequence[Job], progress: Mapping[str, float] | None = None) -> None:
        """Show submissions.

        Args:
            jobs: The submissions.
            progress: Progress from 0 to 1 by transcript id, if the service reports it.
        """
        progress = progress or {}
        order = sorted(jobs, key=lambda job: job.updated.timestamp() if job.updated else 0.0, reverse=True)
        order.sort(key=lambda job: job.state in FINISHED)
        counts = {state: sum(job.state == state for job in jobs) for state in _STATE_TEXTS}
        self._counts = {"all": len(jobs), "finished": sum(counts[state] for state in FINISHED)} | counts
        self._rows = [_row(job, progress.get(job.transcript_id or "")) for job in order[:MAX_ROWS]]

    def _static_html(self) -> str:
        cell = 'style="text-align:left;padding:1px 8px"'
        head = "".join(f"<th {cell}>{name}</th>" for name in ("Recording", "State", "Length"))
        rows = "".join(
            f"<tr><td {cell}>{escaped(row['name'])}</td><td {cell}>{escaped(row['state_text'])}</td>"
            f"<td {cell}>{row['length']}</td></tr>"
            for row in self._rows
        )
        return f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>No jobs.</p>"

    def _clicked(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("do") in ("cancel", "retry", "retry all"):
            self._on_action(message["do"], str(message.get("key", "")))


def _row(job: Job, progress: float | None) -> dict[str, Any]:
    """Return the browser's row of a submission."""
    state = job.state
    source = masked(job.source)
    progress = progress if state == "submitted" else None
    since = job.sent or job.created
    return {
        "key": job.key,
        "name": source.rstrip("/").rpartition("/")[2] or source,
        "source": source,
        "state": state,
        "state_text": "queued at the service" if progress == 0 else _STATE_TEXTS[state],
        "progress": progress or 0.0,
        "length": "" if job.audio_duration_s is None else clock(job.audio_duration_s),
        "error": masked(job.error or ""),
        # Unix time in ms: the browser updates the elapsed time without messages.
        "since": None if since is None else round(since.timestamp() * 1000),
        "cancel": state in PENDING or (state == "submitted" and job.transcript_id is not None),
        "retry": state == "error" or state in LOST,
    }
