"""The wire: a client of the service, handles on its jobs, the real-time session and webhooks.

Names are imported when they are first used: a webhook receiver needs no HTTP client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe.service.client import Client
    from voxframe.service.opening import connect
    from voxframe.service.transcript import Transcript

__all__ = ["Client", "Transcript", "connect"]

_HOME = {"Client": "client", "Transcript": "transcript", "connect": "opening"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'voxframe.service' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"voxframe.service.{_HOME[name]}"), name)
    globals()[name] = value
    return value
