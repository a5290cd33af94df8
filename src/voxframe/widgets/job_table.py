"""The jobs of a form as a live table: where each is, how far all are, and a button to cancel it or to try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

import traitlets

from voxframe.corpus.ledger import LOST, UNSENT, Job
from voxframe.plots.style import clock
from voxframe.widgets.base import ScriptedWidget, escaped

#: Jobs that are listed; those that are not over, and the latest, come first.
MOST_ROWS = 100
_SAID = {
    "planned": "waits to be sent",
    "uploading": "is being uploaded",
    "submitting": "is being sent",
    "submitted": "is being transcribed",
    "completed": "done",
    "error": "failed",
    "uncertain": "uncertain",
}
OVER = ("completed", "error", "uncertain")


class JobTable(ScriptedWidget):
    """A table of submissions.

    Attributes:
        busy (str): What is being done at the moment, in words; empty for nothing.
    """

    scripts = ("job_table",)
    styles = ("fields", "job_table")

    busy = traitlets.Unicode("").tag(sync=True)
    _rows: Any = traitlets.List().tag(sync=True)
    _counts = traitlets.Dict().tag(sync=True)

    def __init__(self, act: Callable[[str, str], None]) -> None:
        super().__init__(title="Jobs")
        self._act = act
        self.on_msg(self._clicked)

    def show(self, jobs: Sequence[Job], shares: Mapping[str, float] | None = None) -> None:
        """Show submissions.

        Args:
            jobs: The submissions.
            shares: How much is done, 0 to 1, by transcript, of those whose service says so.
        """
        shares = shares or {}
        order = sorted(jobs, key=lambda job: job.updated.timestamp() if job.updated else 0.0, reverse=True)
        order.sort(key=lambda job: job.state in OVER)
        counts = {state: sum(job.state == state for job in jobs) for state in _SAID}
        self._counts = {"all": len(jobs), "over": sum(counts[state] for state in OVER)} | counts
        self._rows = [_row(job, shares.get(job.transcript_id or "")) for job in order[:MOST_ROWS]]

    def _still_html(self) -> str:
        """The table as it is now."""
        cell = 'style="text-align:left;padding:1px 8px"'
        head = "".join(f"<th {cell}>{name}</th>" for name in ("Recording", "State", "Length"))
        rows = "".join(
            f"<tr><td {cell}>{escaped(row['name'])}</td><td {cell}>{escaped(row['said'])}</td>"
            f"<td {cell}>{row['length']}</td></tr>"
            for row in self._rows
        )
        return f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>No jobs.</p>"

    def _clicked(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("do") in ("cancel", "retry", "retry all"):
            self._act(message["do"], str(message.get("key", "")))


def _row(job: Job, share: float | None) -> dict[str, Any]:
    """What is shown of a submission."""
    state = job.state
    share = share if state == "submitted" else None
    since = job.sent or job.created
    return {
        "key": job.key,
        "name": job.source.rstrip("/").rpartition("/")[2] or job.source,
        "source": job.source,
        "state": state,
        "said": "waits for its turn at the service" if share == 0 else _SAID[state],
        "share": share or 0.0,
        "length": "" if job.audio_duration_s is None else clock(job.audio_duration_s),
        "error": job.error or "",
        # Moments as the browser counts them, so that time goes on without a message.
        "since": None if since is None else round(since.replace(tzinfo=UTC).timestamp() * 1000),
        "cancel": state in UNSENT or (state == "submitted" and job.transcript_id is not None),
        "retry": state == "error" or state in LOST,
    }
