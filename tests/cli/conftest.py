from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import KEY, Service, engine_of

from voxframe.cli import main


def run(capsys, *arguments: str) -> tuple[int, str]:
    """Run a command and return its exit status and standard output."""
    status = main(arguments)
    return status, capsys.readouterr().out


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Service]:
    """The embedded server, configured by environment variables."""
    running = Service(tmp_path / "data", *engine_of(request.node))
    monkeypatch.setenv("VOXFRAME_BASE_URL", running.url)
    monkeypatch.setenv("VOXFRAME_API_KEY", KEY)
    yield running
    running.stop()
