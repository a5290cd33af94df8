"""Jobs of the embedded server: queue, worker processes, retention and webhooks."""

from __future__ import annotations

from voxframe.errors import VoxframeError


class JobFailed(VoxframeError):  # noqa: N818  # an outcome of a job ("status": "error"), not a fault of the service
    """A job that cannot be completed.

    Args:
        reason: Text for the `error` field of the transcript, as defined by the API if possible.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
