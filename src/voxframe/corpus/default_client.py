"""The client that a corpus uses if none is passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxframe.corpus.batch.submission import service_name

if TYPE_CHECKING:
    from voxframe.client import Client


class DefaultClient:
    """The client that was used last with a corpus."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def use(self, client: Client | None) -> Client:
        """Return `client` and remember it. None: the one used last, otherwise that of `voxframe.connect()`."""
        from voxframe.client import connect

        self._client = client or self._client or connect()
        return self._client

    def service_name(self, client: Client | None) -> str:
        """Return the name of the service that `use(client)` would talk to, without connecting to it."""
        return service_name(client or self._client)
