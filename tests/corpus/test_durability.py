"""The order of system calls of writes, recorded through `os`, because a power cut cannot be caused."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.corpus.conftest import raw_file
from tests.corpus.test_workers import raw_payload

import voxframe

_Call = tuple[str, str, str]  # call, path, and new path of a rename


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_Call]]:
    """Every fsync and rename from here on, in order."""
    found: list[_Call] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def record_fsync(descriptor: int) -> None:
        fsync(descriptor)
        found.append(("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink()), ""))

    def record(name: str, call):
        def recorded(source, target, **options) -> None:
            call(source, target, **options)
            found.append(("rename", str(source), str(target)))

        monkeypatch.setattr(os, name, recorded)

    monkeypatch.setattr(os, "fsync", record_fsync)
    record("replace", replace)
    record("rename", rename)
    yield found
    monkeypatch.undo()


def _check(calls: list[_Call], corpus: Path) -> list[str]:
    """Check that every file is flushed before its rename and its folder afterwards. Return the new paths in order."""
    renames = [(n, call) for n, call in enumerate(calls) if call[0] == "rename" and str(corpus) in call[2]]
    for n, (_, source, target) in renames:
        flushed = [path for kind, path, _ in calls[:n] if kind == "fsync"]
        assert source in flushed or any(call[2] == source for _, call in renames), f"{target} was not flushed"
        folders = [path for kind, path, _ in calls[n:] if kind == "fsync"]
        assert str(Path(target).parent) in folders, f"the folder of {target} was not flushed"
    return [call[2] for _, call in renames]


@pytest.mark.parametrize("count", [1, 20])
def test_files_are_flushed_before_they_are_renamed(tmp_path: Path, calls: list[_Call], count: int) -> None:
    """A put and an import flush the payload first, and then the tables."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([raw_payload(f"t{number:02}") for number in range(20)])
    calls.clear()
    if count == 1:
        corpus.raw.put("new", raw_payload("new"))
    else:
        corpus.add([raw_payload(f"new{number:02}") for number in range(count)])
    corpus._archive.wait()
    targets = [str(Path(path).relative_to(corpus.path)) for path in _check(calls, corpus.path)]
    kinds = [target.partition("/")[0] + Path(target).suffix for target in targets]
    assert kinds == sorted(kinds, key=["raw.zst", "tables.parquet"].index)
    assert kinds.count("raw.zst") == count
    flushed = [path for kind, path, _ in calls if kind == "fsync"]
    last_raw = max(n for n, call in enumerate(calls) if call[2].endswith(".zst"))
    assert str(corpus.path / "raw") in {str(Path(path).parent) for path in flushed}
    assert any("/tables/" in call[1] for call in calls[last_raw + 1 :])


def test_a_removal_is_flushed(tmp_path: Path, calls: list[_Call]) -> None:
    """`forget` flushes the removal of the rows and of the payload, and each new file before it replaces the old one."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([raw_payload(f"t{number:02}") for number in range(20)])
    calls.clear()
    payload = raw_file(corpus, "t03.json.zst")
    corpus.forget("t03")
    assert any("/tables/words/" in path for path in _check(calls, corpus.path))
    gone = calls.index(("fsync", str(payload.parent), ""))
    assert ("fsync", str(corpus.path / "tables" / "words"), "") in calls[:gone]
