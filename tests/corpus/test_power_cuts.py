"""Power cuts during a write, as prefixes of its recorded system calls.

What was not flushed to the disk is lost, in two ways: the names of files, or the content of files that have their name
already. SQLite writes by itself, so its catalog is the one before the write, or as far as it was written.
"""

import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.corpus.test_failing_operations import WRITES, base, state  # noqa: F401  a fixture here, too

import voxframe

_IMAGES = 4  # of each write


@dataclass
class _Disk:
    """What is on the disk: the flushed content of files, by inode, and the flushed names in folders."""

    root: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)

    def flush(self, path: Path) -> None:
        """Note that a file or a folder was flushed."""
        if path.is_dir():
            self.names[str(path.relative_to(self.root))] = {
                child.name: child.lstat().st_ino for child in path.iterdir()
            }
        elif path.exists():
            self.contents[path.stat().st_ino] = path.read_bytes()

    def copy(self, target: Path, names: dict[str, dict[str, int]]) -> None:
        """Write the files with some names. A file that was not flushed is empty."""
        for folder, children in sorted(names.items()):
            if folder == "." or (target / folder).is_dir():
                (target / folder).mkdir(exist_ok=True, parents=True)
                for name, inode in children.items():
                    if str(Path(folder) / name) in names:
                        (target / folder / name).mkdir()
                    elif not name.startswith("catalog.sqlite"):
                        (target / folder / name).write_bytes(self.contents.get(inode, b""))


def _names(root: Path) -> dict[str, dict[str, int]]:
    """Return the names in all folders of a directory."""
    return {
        str(Path(folder).relative_to(root)): {name: os.lstat(f"{folder}/{name}").st_ino for name in [*folders, *files]}
        for folder, folders, files in os.walk(root)
    }


@contextmanager
def _recorded(root: Path, images: Path) -> Iterator[list[tuple[Path, str]]]:
    """Make two images of the disk after every system call that changes or flushes something."""
    before = images / "catalog"
    before.mkdir(parents=True)
    for path in root.glob("catalog.sqlite*"):
        shutil.copy(path, before)
    disk, found, mutex = _Disk(root), list[tuple[Path, str]](), threading.Lock()
    for folder, _, files in os.walk(root):
        for path in (*(Path(folder) / name for name in files), Path(folder)):
            disk.flush(path)
    disk.names = _names(root)

    def image(kind: str, name: str, names: dict[str, dict[str, int]], catalog: Path) -> None:
        target = images / f"{len(found)}"
        disk.copy(target, names)
        for path in catalog.glob("catalog.sqlite*"):
            shutil.copy(path, target)
        found.append((target, f"{kind} after {name}"))

    def wrapped(call: Callable[..., object]) -> Callable[..., object]:
        def operation(target: object, *args: object, **options: object) -> object:
            path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(str(target))
            result = call(target, *args, **options)
            if path.is_relative_to(root):
                if call.__name__ == "fsync":
                    disk.flush(path)
                name = f"{call.__name__} {path.relative_to(root)}"
                with mutex:
                    image("names lost", name, disk.names, before)
                    image("content lost", name, _names(root), root)
            return result

        return operation

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "rename", "unlink", "mkdir"):
            patch.setattr(os, name, wrapped(getattr(os, name)))
        yield found


@pytest.mark.parametrize("write", ["put", "edit", "metadata"])
def test_a_power_cut_loses_nothing(base: Path, tmp_path: Path, write: str) -> None:  # noqa: F811
    """The transcript is as before or as written, as written if the write had returned, and the others are unchanged."""
    before = state(base)
    path = shutil.copytree(base, tmp_path / "corpus")
    with _recorded(path, tmp_path / "images") as images:
        WRITES[write](voxframe.Corpus(path))
    after = state(path)
    assert after != before
    chosen = {*range(0, len(images), max(1, len(images) // _IMAGES)), len(images) - 2, len(images) - 1}
    for n in sorted(chosen):
        place, name = images[n]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = state(place)
        for transcript_id in before.keys() | after.keys():
            possible = (
                [after.get(transcript_id)] if n >= len(images) - 2 else [d.get(transcript_id) for d in (before, after)]
            )
            assert now.get(transcript_id) in possible, (name, transcript_id)
        assert voxframe.Corpus(place).raw.verify() == [], name
        said = {i for i, rows in now.items() if any(text == "smoke" for text, *_ in rows)}
        assert {*voxframe.Corpus(place).search("smoke")["transcript_id"]} == said, name
