"""Every kind of write to a corpus while file operations fail: one of them, or all from one on, as after a kill."""

import errno
import io
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.errors import VoxframeError

_IDS = ["a", "b", "c"]


def _payload(name: str, *words: str) -> bytes:
    said = [{"text": word, "start": n, "end": n + 1, "speaker": "A"} for n, word in enumerate(words)]
    turn = {"text": " ".join(words), "start": 0, "end": len(words), "speaker": "A", "words": said}
    return json.dumps({"id": name, "status": "completed", "words": said, "utterances": [turn]}).encode()


def _about(customer: str) -> pd.DataFrame:
    return pd.DataFrame({"transcript_id": ["a"], "customer": [customer]})


WRITES: dict[str, Callable[[voxframe.Corpus], object]] = {
    "put": lambda corpus: corpus.raw.put("new", _payload("new", "hello")),
    "replace": lambda corpus: corpus.raw.put("a", _payload("a", "other", "words")),
    "add": lambda corpus: corpus.add([_payload(f"new{n}", "hello") for n in range(3)], progress=False),
    "edit": lambda corpus: corpus.corrections.set("a", {0: "corrected words"}),
    "name": lambda corpus: corpus.speakers.set("a", {"A": "Ada"}),
    "metadata": lambda corpus: corpus.metadata.set(_about("Acme")),
    "forget": lambda corpus: corpus.forget("a"),
    "search": lambda corpus: corpus.search("smoke"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of three transcripts, of which one has a name, an edit and metadata."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("base") / "corpus")
    corpus.add([_payload(name, "smoke", name) for name in _IDS], progress=False)
    corpus.speakers.set("b", {"A": "Ben"})
    corpus.corrections.set("b", {0: "smoke and fire"})
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["b"], "customer": ["Beta"]}))
    corpus._archive.wait()
    return corpus.path


@contextmanager
def _failing(corpus: Path, first: int, *, all_later: bool) -> Iterator[list[str]]:
    """Let the file operation with a number fail, or all from it on. Yield the operations."""
    operations: list[str] = []

    def wrapped(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def operation(target: object, *args: object, **options: object) -> object:
            is_write = name != "io.open" or any(mode in str([*args, *options.values()]) for mode in ("w", "x", "+"))
            path = f"/proc/self/fd/{target}" if isinstance(target, int) else str(target)
            if is_write and str(corpus) in os.path.realpath(path):
                operations.append(f"{name} {target}")
                if len(operations) - 1 == first or (all_later and len(operations) - 1 > first):
                    raise OSError(errno.EIO, "Input/output error", str(target))
            return call(target, *args, **options)

        return operation

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "rename", "unlink", "mkdir"):
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        patch.setattr(io, "open", wrapped("io.open", io.open))
        yield operations


def state(path: Path) -> dict[str, object]:
    """Return what a new process reads of the transcripts that are not written, and of the one that is."""
    corpus = voxframe.Corpus(path)
    table = corpus.table("words", metadata=True).astype(object)
    if "customer" not in table:
        table["customer"] = None
    columns = ["text", "speaker_name", "customer"]
    return {
        i: rows[columns].where(rows[columns].notna(), None).to_numpy().tolist()
        for i, rows in table.groupby("transcript_id")
    }


@pytest.mark.parametrize("write", WRITES)
def test_a_failed_operation_loses_nothing(base: Path, tmp_path: Path, write: str) -> None:
    """The transcript is as before or as written, the others are unchanged, and the write can be repeated.

    Either one operation fails, or it and all later ones.
    """
    call = WRITES[write]
    before = state(base)
    with _failing(shutil.copytree(base, tmp_path / "whole"), -1, all_later=False) as operations:
        call(voxframe.Corpus(tmp_path / "whole"))
    after = state(tmp_path / "whole")
    assert operations
    places = range(0, len(operations), max(1, len(operations) // 4))
    for first, all_later in [(first, all_later) for first in places for all_later in (False, True)]:
        path = shutil.copytree(base, tmp_path / f"{first} {all_later}")
        with warnings.catch_warnings(), _failing(path, first, all_later=all_later) as failed:
            warnings.simplefilter("ignore")
            try:
                call(corpus := voxframe.Corpus(path))
                corpus._archive.wait()
            except VoxframeError:
                pass
        assert len(failed) > first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = state(path)
        for name in before.keys() | after.keys():
            assert now.get(name) in (before.get(name), after.get(name)), (failed[first], name)
        assert voxframe.Corpus(path).raw.verify() == [], failed[first]
        if write != "forget" or "a" in now:
            call(voxframe.Corpus(path))
        assert state(path) == after, failed[first]
