"""A place to drop recordings: they come to the kernel in pieces, however large, and stay out of the notebook."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import IO, Any

import traitlets

from voxframe.errors import AudioError
from voxframe.widgets.base import ScriptedWidget, escaped
from voxframe.widgets.telling import telling


class FileDrop(ScriptedWidget):
    """Files from the machine that the browser runs on, by dropping or choosing them.

    Args:
        folder: Where they are put; made when the first comes.

    Attributes:
        names (list[str]): Names of the files that are here, in their order.
    """

    scripts = ("file_drop",)
    styles = ("fields", "file_drop")

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, folder: Path) -> None:
        super().__init__(title="Recordings")
        self._folder = folder
        self._open: dict[str, tuple[IO[bytes], Path, str, int]] = {}
        self.paths: list[Path] = []
        self.on_msg(self._said)

    def _still_html(self) -> str:
        """The names of the files."""
        return f"<p>{', '.join(escaped(name) for name in self.names) or 'No files.'}</p>"

    def _said(self, _: Any, message: Any, buffers: Any) -> None:
        with telling(self):
            do, key = message.get("do"), str(message.get("key"))
            try:
                if do == "begin":
                    self._begin(key, str(message["name"]), int(message["size"]))
                elif do == "piece" and key in self._open:
                    self._piece(key, int(message["at"]), bytes(buffers[0]))
                elif do == "stop":
                    self._stop(key)
                elif do == "leave":
                    self._leave(int(message["n"]))
            except OSError as e:
                self._stop(key)
                self.send({"do": "failed", "key": key})
                raise AudioError(f"the file cannot be kept in {str(self._folder)!r}: {e.strerror or e}") from None

    def _begin(self, key: str, name: str, size: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = _free(self._folder, safe_name(name))
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        self._open[key] = (part.open("wb"), path, name, size)
        self._go_on(key, 0)

    def _piece(self, key: str, at: int, data: bytes) -> None:
        file, *_ = self._open[key]
        if file.tell() == at:  # else it came twice
            file.write(data)
        self._go_on(key, file.tell())

    def _go_on(self, key: str, at: int) -> None:
        """Ask for the next piece, or be done."""
        file, path, name, size = self._open[key]
        if at < size:
            self.send({"do": "next", "key": key, "at": at})
            return
        file.close()
        del self._open[key]
        path = _free(self._folder, path.name)  # another of that name may have come meanwhile
        Path(file.name).replace(path)
        self.paths.append(path)
        self.names = [*self.names, name]
        self.send({"do": "done", "key": key})

    def _stop(self, key: str) -> None:
        """Forget a file that was not whole."""
        if found := self._open.pop(key, None):
            found[0].close()
            Path(found[0].name).unlink(missing_ok=True)

    def _leave(self, n: int) -> None:
        """Take a file out of the list; it stays on the disk, where a job may need it."""
        if 0 <= n < len(self.names):
            del self.paths[n]
            self.names = [name for place, name in enumerate(self.names) if place != n]


def safe_name(name: str) -> str:
    """A file name that a browser gave, without anything that is a path, hidden or a device.

    Example:
        >>> safe_name("../../x/Ärger: 1?.mp3"), safe_name(".profile"), safe_name("con.mp3")
        ('Ärger_ 1_.mp3', 'profile', '_con.mp3')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r'[\x00-\x1f\x7f<>:"|?*]', "_", last).strip(" .") or "recording"
    stem, extension = os.path.splitext(plain)  # noqa: PTH122  it is no path yet
    if re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", stem, re.IGNORECASE):
        stem = f"_{stem}"
    return stem.encode("utf-8", "replace")[:150].decode("utf-8", "ignore") + extension[:20]


def _free(folder: Path, name: str) -> Path:
    """A path in the folder that is not taken."""
    path, n = folder / name, 1
    while path.exists():
        n += 1
        path = folder / f"{Path(name).stem} ({n}){Path(name).suffix}"
    return path
