"""The embedded service, as `voxframe.connect()` starts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import voxframe
from voxframe import settings
from voxframe.client import shared_server


@contextmanager
def embedded(data_dir: Path, **environment: str) -> Iterator[voxframe.Client]:
    """A client of an embedded service with data of its own, whatever the environment says.

    Args:
        data_dir: Directory of its data.
        **environment: Variables with which it starts; other tests of this process do not see them.
    """
    with shared_server_stopped(data_dir), pytest.MonkeyPatch.context() as patch:  # code in another process shares one
        patch.setenv("VOXFRAME_DATA_DIR", str(data_dir))
        for name in ("VOXFRAME_BASE_URL", "VOXFRAME_API_KEY"):
            patch.delenv(name, raising=False)
        with pytest.MonkeyPatch.context() as start:
            for name, value in environment.items():
                start.setenv(name, value)
            client = voxframe.connect()
        with client:
            yield client


@contextmanager
def shared_server_stopped(data_dir: Path) -> Iterator[None]:
    """Stop the server that commands shared inside the block."""
    try:
        yield
    finally:
        shared_server.stop(settings.resolve(data_dir=data_dir))
