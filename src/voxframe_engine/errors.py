"""Errors of the engine: a recording that cannot be transcribed, and a request that cannot be answered."""

from __future__ import annotations

from voxframe.errors import VoxframeError


class JobFailed(VoxframeError):  # noqa: N818  # an outcome of a job ("status": "error"), not a fault of the service
    """A recording that cannot be transcribed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestRefused(ValueError):  # noqa: N818 - the result of a request, not a fault
    """A request that cannot be fulfilled; the message says why."""
