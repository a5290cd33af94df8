"""`voxframe models` with an empty cache and without downloads."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

NAMES = [
    "tiny.en",
    "base",
    "all-MiniLM-L6-v2",
    "voices",
    "en_core_web_sm",
    "writer",
]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command with an empty cache and no downloads."""
    environment = {"VOXFRAME_MODEL_CACHE": str(tmp_path / "cache"), "HF_HUB_CACHE": str(tmp_path / "hub")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "voxframe", "models", *arguments]
        settings = os.environ | environment | {"VOXFRAME_OFFLINE": "1"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=settings)

    return run


def test_every_model_is_listed(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """`models list` prints name, size, licence, purpose and folder; --json prints one object per model."""
    done = run("list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["model", *NAMES]
    assert "78 MB" in done.stdout
    models = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    licenses = ["MIT", "MIT", "Apache-2.0", "MIT AND Apache-2.0", "MIT", "Apache-2.0"]
    assert [model["license"] for model in models] == licenses
    assert [model["path"] for model in models] == [None] * 6


def test_a_damaged_model_is_reported(
    run: Callable[..., subprocess.CompletedProcess[str]], model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """`verify` finds a damaged file, `get` offline prints the next step, and `remove` deletes the model."""
    folder = tmp_path / "cache" / "tiny.en"
    folder.mkdir(parents=True)
    for file in model_folder("tiny.en").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    good = run("verify")
    assert (good.returncode, good.stdout) == (0, f"ok  tiny.en  {folder}\n")
    assert json.loads(run("get", "tiny.en", "--json").stdout) == {"name": "tiny.en", "path": str(folder)}
    with (folder / "model.bin").open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    bad = run("verify", "--json")
    report = json.loads(bad.stdout)
    assert (bad.returncode, report["ok"], report["path"]) == (1, False, None)
    assert "model.bin has the SHA-256" in report["problem"]
    got = run("get", "tiny.en")
    assert got.returncode == 1
    assert "VOXFRAME_OFFLINE forbids downloads; unset it and run `voxframe models get tiny.en`" in got.stderr
    assert json.loads(run("remove", "tiny.en", "--json").stdout) == {"name": "tiny.en", "removed": True}
    assert run("remove", "tiny.en").stdout == f"tiny.en  was not in {folder.parent}\n"
    assert not folder.exists()
    assert run("verify").stdout.startswith("there are no models on this machine")


@pytest.mark.parametrize("action", ["get", "verify", "remove"])
def test_an_unknown_model_is_one_line(action: str, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """An unknown name gives exit status 2 and one line with the known names."""
    done = run(action, "large")
    assert done.returncode == 2
    assert done.stderr == f"voxframe models: there is no model 'large'; there is {', '.join(NAMES)}\n"
