"""Parts of the submit form with JavaScript: a drop zone for recordings, and a live table of jobs."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import traitlets

from voxframe._text import clock, masked
from voxframe.corpus.addresses import is_address, is_remote
from voxframe.corpus.batch.media import duration_s, has_sound
from voxframe.corpus.job import LOST, PENDING, Job
from voxframe.errors import AudioError
from voxframe.widgets.base import ScriptedWidget, escaped, show_errors


class FileDrop(ScriptedWidget):
    """Files from the browser's machine, dropped or selected.

    Args:
        folder: Folder for the files; created with the first file.

    Attributes:
        names (list[str]): Names of the uploaded files, in order.
    """

    scripts = ("file_drop",)
    styles = ("fields", "file_drop")

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    # Of each file: whether there is a problem, and its length or the problem.
    _notes: Any = traitlets.List().tag(sync=True)

    def __init__(self, folder: Path) -> None:
        super().__init__(title="Recordings")
        self._folder = folder
        self._open: dict[str, tuple[IO[bytes], Path, str, int]] = {}
        self.paths: list[Path] = []
        self.on_msg(self._on_browser_message)

    def _static_html(self) -> str:
        return f"<p>{', '.join(escaped(name) for name in self.names) or 'No files.'}</p>"

    def close(self) -> None:
        """Close the widget and discard incomplete files."""
        for key in list(self.__dict__.get("_open", ())):  # __init__ may have failed
            self._cancel(key)
        super().close()

    def _on_browser_message(self, _: Any, message: Any, buffers: Any) -> None:
        with show_errors(self):
            do, key = message.get("do"), str(message.get("key"))
            try:
                if do == "begin":
                    self._start_upload(key, str(message["name"]), int(message["size"]))
                elif do == "chunk" and key in self._open:
                    self._receive_chunk(key, int(message["at"]), bytes(buffers[0]))
                elif do == "cancel":
                    self._cancel(key)
                elif do == "remove":
                    self._remove(int(message["n"]))
            except OSError as e:
                self._cancel(key)
                self.send({"do": "failed", "key": key})
                raise AudioError(f"cannot save the file in {str(self._folder)!r}: {e.strerror or e}") from None

    def _start_upload(self, key: str, name: str, size: int) -> None:
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
            self.send({"do": "next", "key": key, "at": at})
            return
        file.close()
        del self._open[key]
        path = _unused_path(self._folder, path.name)  # another upload may have taken the name meanwhile
        Path(file.name).replace(path)
        self.paths.append(path)
        problem = damage(str(path))
        length = None if problem else duration_s(str(path))
        self._notes = [*self._notes, [bool(problem), problem or ("" if length is None else clock(length))]]
        self.names = [*self.names, name]
        self.send({"do": "done", "key": key})

    def _cancel(self, key: str) -> None:
        """Discard an incomplete file."""
        if upload := self._open.pop(key, None):
            upload[0].close()
            Path(upload[0].name).unlink(missing_ok=True)

    def _remove(self, n: int) -> None:
        """Remove a file from the list; it stays on disk, because a job may need it."""
        if 0 <= n < len(self.names):
            del self.paths[n]
            self._notes = [note for place, note in enumerate(self._notes) if place != n]
            self.names = [name for place, name in enumerate(self.names) if place != n]


def damage(source: str) -> str:
    """Return why a local file is probably no recording; empty if it looks like one, or if PyAV is not installed."""
    if is_address(source) or is_remote(source):
        return ""
    if Path(source).stat().st_size == 0:
        return "empty: there is no audio to send"
    if find_spec("av") is None or has_sound(source):
        return ""
    return "no sound was found in it; it may be damaged"


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
