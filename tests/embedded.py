"""The embedded service, as `voxframe.connect()` starts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import voxframe


@contextmanager
def embedded(data_dir: Path) -> Iterator[voxframe.Client]:
    """A client of an embedded service with data of its own, whatever the environment says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOXFRAME_DATA_DIR", str(data_dir))
        for name in ("VOXFRAME_BASE_URL", "VOXFRAME_API_KEY"):
            patch.delenv(name, raising=False)
        with voxframe.connect() as client:
            yield client
