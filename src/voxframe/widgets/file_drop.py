"""A drop zone for recordings. Files of any size go to the kernel in chunks and are not stored in the notebook."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import IO, Any

import traitlets

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

    def __init__(self, folder: Path) -> None:
        super().__init__(title="Recordings")
        self._folder = folder
        self._open: dict[str, tuple[IO[bytes], Path, str, int]] = {}
        self.paths: list[Path] = []
        self.on_msg(self._on_browser_message)

    def _static_html(self) -> str:
        return f"<p>{', '.join(escaped(name) for name in self.names) or 'No files.'}</p>"

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
        self.names = [*self.names, name]
        self.send({"do": "done", "key": key})

    def _cancel(self, key: str) -> None:
        """Discard an incomplete file."""
        if found := self._open.pop(key, None):
            found[0].close()
            Path(found[0].name).unlink(missing_ok=True)

    def _remove(self, n: int) -> None:
        """Remove a file from the list; it stays on disk, because a job may need it."""
        if 0 <= n < len(self.names):
            del self.paths[n]
            self.names = [name for place, name in enumerate(self.names) if place != n]


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
