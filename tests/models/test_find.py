"""Which copy of a model is found, verified and kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models.standin import CONTENT, Hub, write_model

from voxframe import models
from voxframe.errors import ModelError, OptionError

#: From the lists of official files; not read from the code.
OFFICIAL = {
    "tiny.en": {
        "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
    "base": {
        "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    },
    "all-MiniLM-L6-v2": {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
    "voices": {
        "pytorch_model.bin": "da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298",
        "campplus_cn_en_common.pt": "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
    },
    "en_core_web_sm": {
        "ner/model": "6f47ca062eb419c8ffb7d3023e6fbc4b2eb21dab14c5d49aa5e5586228b87405",
        "ner/moves": "d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4",
        "tokenizer": "b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467",
        "lemmatizer/lookups/lookups.bin": "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737",
    },
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_real_model_has_the_official_files(name: str, model_folder: Callable[[str], Path]) -> None:
    """The real files, from wherever they came, have the published SHA-256."""
    folder = model_folder(name)
    for file, expected in OFFICIAL[name].items():
        with (folder / file).open("rb") as content:
            assert hashlib.file_digest(content, "sha256").hexdigest() == expected


@pytest.mark.speech
@pytest.mark.parametrize(("name", "multilingual"), [("tiny.en", False), ("base", True)])
def test_a_speech_model_loads(name: str, multilingual: bool, model_folder: Callable[[str], Path]) -> None:
    """faster-whisper needs no other files than those of the folder."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(model_folder(name)), compute_type="int8", local_files_only=True)
    assert model.model.is_multilingual is multilingual


def test_places_are_searched_in_order(hub: Hub, wheels: Path, cache: Path) -> None:
    """A given path, our cache, the hub's cache, the hub, a data package: the first that has the model is used."""
    snapshot = cache.parent / "hub" / "models--voxframe-tests--small" / "snapshots" / ("0" * 40)
    given = write_model(cache.parent / "given")
    write_model(cache / "small")
    write_model(snapshot)
    assert models.find("small", given) == given
    assert models.find("small") == cache / "small"
    assert models.remove("small")
    assert models.find("small") == snapshot
    assert hub.requests == []
    (snapshot / "config.json").unlink()
    assert models.find("small") == cache / "small"
    # huggingface_hub may ask for a list of assistants, too.
    assert {path.rpartition("/")[2] for _, path, _ in hub.requests} - {"agent-harnesses"} == {"", *CONTENT}
    assert models.remove("small")
    hub.content.clear()
    assert models.find("small") == cache / "small"
    assert (cache / "small" / "model.bin").read_bytes() == CONTENT["model.bin"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (CONTENT["model.bin"][:-1] + b"!", "model.bin has the SHA-256 "),
        (b"short", "model.bin has 5 bytes, expected 400,000"),
        (None, "model.bin is missing"),
    ],
)
def test_a_given_folder_is_verified(content: bytes | None, says: str, hub: Hub, cache: Path) -> None:
    """A given folder with other files is refused, and no other place is looked at."""
    given = write_model(cache.parent / "given", model=content or b"")
    if content is None:
        (given / "model.bin").unlink()
    with pytest.raises(ModelError, match="Give the folder with its official files") as caught:
        models.find("small", given)
    assert says in str(caught.value)
    assert str(given) in str(caught.value)
    assert hub.requests == []
    with pytest.raises(ModelError, match="there is no such folder"):
        models.find("small", "nowhere")


def test_a_damaged_copy_is_replaced(hub: Hub, cache: Path) -> None:
    """A copy in our cache with a changed byte does not count as present, and is downloaded again."""
    write_model(cache / "small", model=b"?" + CONTENT["model.bin"][1:])
    with pytest.raises(ModelError, match=r"cannot be used: model.bin has the SHA-256 .* `voxframe models get small`"):
        models.find("small", download=False)
    with pytest.raises(ModelError, match="cannot be used"):
        models.verify("small")
    assert not models.is_present("small")
    assert hub.requests == []
    models.ensure("small")
    assert models.verify("small") == cache / "small"
    (cache / "small" / "config.json").write_bytes(CONTENT["config.json"].upper())  # a file is read again if it changed
    assert not models.is_present("small")
    assert models.find("small") == cache / "small"
    assert [path.name for path in cache.iterdir()] == ["small"]


def test_a_damaged_copy_is_told_apart_from_a_good_one_elsewhere(cache: Path) -> None:
    """`find` uses the hub's copy if ours is damaged; `verify` and `list_models` say what is wrong with ours."""
    snapshot = write_model(cache.parent / "hub" / "models--voxframe-tests--small" / "snapshots" / "1")
    write_model(cache / "small", config=b"{}")
    assert models.find("small") == snapshot
    with pytest.raises(ModelError, match=r"config.json has 2 bytes, expected 15"):
        models.verify("small")
    status = {model.name: model for model in models.list_models()}["small"]
    assert (status.path, status.problem) == (snapshot, "config.json has 2 bytes, expected 15")


def test_offline_downloads_nothing(hub: Hub, wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With VOXFRAME_OFFLINE=1 a model that is here is found; otherwise the error says what to do."""
    monkeypatch.setenv("VOXFRAME_OFFLINE", "1")
    with pytest.raises(
        ModelError, match=r"VOXFRAME_OFFLINE forbids downloads; unset it .* or copy its files"
    ) as caught:
        models.find("small")
    assert str(cache / "small") in str(caught.value)
    assert hub.requests == []
    assert not cache.exists()
    write_model(cache / "small")
    assert models.find("small") == cache / "small"


def test_a_name_that_is_not_known_is_refused() -> None:
    """The message names the models there are."""
    names = ", ".join([*OFFICIAL, models.WRITER])
    for function in (models.find, models.verify, models.remove):
        with pytest.raises(OptionError, match=rf"no model '\.\./large'; there is {names}"):
            function("../large")


def test_removing_leaves_the_hub_cache(cache: Path) -> None:
    """A model goes from our cache only, and removing it twice is no error."""
    snapshot = write_model(cache.parent / "hub" / "models--voxframe-tests--small" / "snapshots" / "1")
    write_model(cache / "small")
    assert models.remove("small") is True
    assert models.remove("small") is False
    assert models.find("small") == snapshot


def test_the_cache_is_not_in_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A temporary data directory does not throw models away; VOXFRAME_MODEL_CACHE moves them."""
    monkeypatch.delenv("VOXFRAME_MODEL_CACHE", raising=False)
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path))
    assert not models.cache_dir().is_relative_to(tmp_path)
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path / "models"))
    assert models.cache_dir() == tmp_path / "models"
