"""The embedded service: the interface on one's own machine, with no key to sign up for and no network.

It runs as a process of its own: `voxframe serve`, `python -m voxframe.local`, or started by `voxframe.connect()`. It is
made for one person's machine; for production point `base_url` at a hosted service.

    start                starts it                 jobs, instances     queue and state
    app, routes          endpoints                 runner, child       work on jobs, a process each
    gate, addresses      who may come in,          worker, engines     speech
                         and where it may go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe.local.start import serve

__all__ = ["serve"]


def __getattr__(name: str) -> Any:
    # A worker process imports this package for one job; it has no use for the server.
    if name == "serve":
        from voxframe.local.start import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
