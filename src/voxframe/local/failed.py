"""The failure of a job: what its `error` field will say."""

from __future__ import annotations

from voxframe.errors import VoxframeError


class JobFailed(VoxframeError):  # noqa: N818  # an outcome of a job ("status": "error"), not a fault of the service
    """A job that cannot be done.

    Args:
        reason: Text for the transcript's `error` field, in the words of the interface where it has some.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JobCancelled(VoxframeError):  # noqa: N818  # an outcome, as above
    """A job that was told to stop before it was done."""
