"""Models from the Hugging Face hub: its cache on this machine, and downloads."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from voxframe.models.catalog import Model, ModelFile
from voxframe.models.delivery import SourceError, progress_bar, save

_DEFAULT_ENDPOINT = "https://huggingface.co"
#: The hub is given up if it does not begin to answer within this time, name lookup and redirects included.
_ANSWER_S = 5.0
#: A download that stands still for this long is broken off and resumed.
_STALL_S = 10.0
_CHUNK_BYTES = 1 << 16


def cached(model: Model) -> list[Path]:
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


def download(model: Model, staging: Path) -> Path:
    """Download the files of a model from the hub that `HF_ENDPOINT` names, by default huggingface.co.

    Args:
        model: The model.
        staging: Empty folder for what is downloaded.

    Returns:
        Folder with the verified files.

    Raises:
        SourceError: The hub cannot be reached, or does not have the official files.
        OSError: A file cannot be written.
    """
    endpoint = (os.environ.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT).rstrip("/")
    folder = staging / "files"
    folder.mkdir()
    with requests.Session() as session, progress_bar(f"{model.name} from the hub", model.size) as bar:
        for file in sorted(model.files, key=lambda file: file.size):  # a small one shows first if the hub is there
            url = f"{endpoint}/{model.repository}/resolve/main/{file.name}"
            save(file, _content(session, url, file, bar), folder)
    return folder


def _content(session: requests.Session, url: str, file: ModelFile, bar: Any) -> Iterator[bytes]:
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
        raise SourceError(f"{_host(url)} did not answer within {_ANSWER_S:.0f} s") from None
    if isinstance(answer, Exception):
        raise SourceError(f"{_host(url)} cannot be reached ({type(answer).__name__})") from answer
    return answer


def _host(url: str) -> str:
    """Return the host of a URL, without user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2] or "the address in HF_ENDPOINT"
