"""Parts of the submit form: uploads, and the rows of recordings and jobs."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from voxframe._text import clock, masked
from voxframe.corpus.batch.media import duration_s, expand, has_sound, signature
from voxframe.corpus.batch.plan import TO_SEND, Plan
from voxframe.corpus.job import LOST, PENDING, Job, is_address, is_remote
from voxframe.errors import AudioError

#: Maximum number of rows of a table; unfinished and recent jobs come first.
MAX_ROWS = 100


class Uploads:
    """Files from the browser's machine, received in chunks.

    Args:
        folder: Folder for the files; created with the first file.
        send: Sends a message to the browser.

    Attributes:
        names: Names in the browser by path, in order.
    """

    def __init__(self, folder: Path, send: Callable[[dict[str, Any]], None]) -> None:
        self._folder, self._send = folder, send
        self._open: dict[str, tuple[IO[bytes], Path, str, int]] = {}
        self.names: dict[str, str] = {}

    def receive(self, message: Mapping[str, Any], buffers: Sequence[Any]) -> bool:
        """Handle a message of the browser. Return True if the files have changed."""
        do, key, count = message["do"], str(message.get("key")), len(self.names)
        try:
            if do == "begin":
                self._start(key, str(message["name"]), int(message["size"]))
            elif do == "chunk" and key in self._open:
                self._receive_chunk(key, int(message["at"]), bytes(buffers[0]))
            elif do == "discard":
                self._discard(key)
            elif do == "remove":  # it stays on disk, because a job may need it
                self.names.pop(str(message["source"]), None)
        except OSError as e:
            self._discard(key)
            self._send({"do": "failed", "key": key})
            raise AudioError(f"cannot save the file in {str(self._folder)!r}: {e.strerror or e}") from None
        return len(self.names) != count

    def close(self) -> None:
        """Discard incomplete files."""
        for key in list(self._open):
            self._discard(key)

    def _start(self, key: str, name: str, size: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = _unused_path(self._folder, safe_name(name))
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        self._open[key] = (part.open("wb"), path, name, size)
        self._request_next(key, 0)

    def _receive_chunk(self, key: str, at: int, data: bytes) -> None:
        file, *_ = self._open[key]
        if file.tell() == at:  # otherwise it is a duplicate
            file.write(data)
        self._request_next(key, file.tell())

    def _request_next(self, key: str, at: int) -> None:
        """Request the next chunk, or finish the file."""
        file, path, name, size = self._open[key]
        if at < size:
            self._send({"do": "next", "key": key, "at": at})
            return
        file.close()
        del self._open[key]
        path = _unused_path(self._folder, path.name)  # another upload may have taken the name meanwhile
        Path(file.name).replace(path)
        self.names[str(path)] = name
        self._send({"do": "done", "key": key})

    def _discard(self, key: str) -> None:
        """Discard an incomplete file."""
        if upload := self._open.pop(key, None):
            upload[0].close()
            Path(upload[0].name).unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return the file name from a browser without path separators, leading dots and device names.

    Example:
        >>> safe_name("../../x/Ärger: 1?.mp3"), safe_name(".profile"), safe_name("con.mp3")
        ('Ärger_ 1_.mp3', 'profile', '_con.mp3')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r'[\x00-\x1f\x7f<>:"|?*]', "_", last).strip(" .") or "recording"
    stem, extension = os.path.splitext(plain)  # noqa: PTH122  not a path yet
    if re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", stem, re.IGNORECASE):
        stem = f"_{stem}"
    return stem.encode("utf-8", "replace")[:150].decode("utf-8", "ignore") + extension[:20]


def _unused_path(folder: Path, name: str) -> Path:
    """Return a path in the folder that does not exist yet."""
    path, n = folder / name, 1
    while path.exists():
        n += 1
        path = folder / f"{Path(name).stem} ({n}){Path(name).suffix}"
    return path


#: What happens to a recording, by its verdict.
_VERDICTS = {
    "new": "will be sent",
    "new_options": "will be sent again, with other options (a new job)",
    "pending": "will be sent (planned before)",
    "known": "not sent again: it was sent with these options",
    "failed": "failed before: press Retry below",
    "uncertain": "may have been sent: see below",
}


def recording_row(source: str, plan: str = "", length_s: float | None = None, problem: str = "") -> dict[str, Any]:
    """Return the browser's row of a recording.

    Args:
        plan: What happens to it; empty before a plan.
    """
    source = masked(source)
    length = "" if length_s is None else clock(length_s)
    return {"source": source, "name": Path(source).name or source, "plan": plan, "length": length, "problem": problem}


def existing(sources: Sequence[str]) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """Return the sources that exist, their recordings, and the rows of the other sources."""
    usable, recordings, missing = list[str](), list[str](), list[dict[str, Any]]()
    for source in sources:
        try:
            expanded = [recording.source for recording in expand(source)]
            for recording in expanded:
                if not is_address(recording) and not is_remote(recording):
                    signature(recording)
        except AudioError as e:
            missing.append(recording_row(source, "left out", problem=str(e)))
        else:
            usable.append(source)
            recordings += expanded
    return usable, recordings, missing


def probed_row(source: str) -> dict[str, Any]:
    """Return the row of a recording that was chosen, with its length or the reason why it is probably none."""
    problem = _damage(source)
    return recording_row(
        source, length_s=None if problem or is_address(source) else duration_s(source), problem=problem
    )


def plan_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return a row per recording of a plan; a file without sound is named."""
    rows = []
    for step in plan.steps:
        problem = (step.job.error or "") if step.verdict == "unreadable" else ""
        if step.verdict in TO_SEND and step.job.audio_duration_s is None:
            problem = _damage(step.source)
        verdict = _VERDICTS.get(step.verdict, "left out")
        rows.append(recording_row(step.source, verdict, step.job.audio_duration_s, problem))
    return rows


def _damage(source: str) -> str:
    """Return why a local file is probably no recording; empty if it looks like one, or if PyAV is not installed."""
    if is_address(source) or is_remote(source):
        return ""
    if find_spec("av") is None or has_sound(source):
        return ""
    return "no sound was found in it; it may be damaged"


_STATE_TEXTS = {
    "planned": "waiting to be sent",
    "uploading": "uploading",
    "submitting": "sending",
    "submitted": "transcribing",
    "completed": "done",
    "error": "failed",
    "uncertain": "uncertain",
}
_FINISHED = ("completed", "error", "uncertain")


def job_rows(jobs: Sequence[Job], progress: Mapping[str, float]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the rows of jobs, and the number of jobs by state.

    Args:
        progress: Progress from 0 to 1 by transcript id, if the service reports it.
    """
    order = sorted(jobs, key=lambda job: job.updated.timestamp() if job.updated else 0.0, reverse=True)
    order.sort(key=lambda job: job.state in _FINISHED)
    counts = {state: sum(job.state == state for job in jobs) for state in _STATE_TEXTS}
    counts |= {"all": len(jobs), "finished": sum(counts[state] for state in _FINISHED)}
    return [_job_row(job, progress.get(job.transcript_id or "")) for job in order[:MAX_ROWS]], counts


def _job_row(job: Job, progress: float | None) -> dict[str, Any]:
    """Return the browser's row of a submission."""
    state = job.state
    source = masked(job.source)
    progress = progress if state == "submitted" else None
    since = job.sent or job.created
    return {
        "key": job.key,
        "name": job.recording or source,
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
