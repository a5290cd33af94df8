"""Names of services in the ledger, and the client that a corpus uses if none is passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from voxframe.client.embedded import is_embedded
from voxframe.corpus.addresses import canonical
from voxframe.errors import OptionError
from voxframe.settings import resolve

if TYPE_CHECKING:
    from voxframe.client import Client
    from voxframe.corpus.ledger import Ledger

#: Name of the embedded server in the ledger, whatever its port.
EMBEDDED = "embedded"


def check_client(client: object, needed: str = "base_url") -> None:
    """Check that a client, or None, was given."""
    if client is not None and not hasattr(client, needed):
        raise OptionError(f"client must be the result of voxframe.connect(), not of type {type(client).__name__}")


def service_name(client: Client | None) -> str:
    """Return the name of a client's service in the ledger. None: the service that `voxframe.connect()` would use."""
    check_client(client)
    address = resolve().base_url if client is None else client.base_url
    return EMBEDDED if address is None or (client is not None and is_embedded(address)) else canonical(address)


@runtime_checkable
class ReadsElsewhere(Protocol):
    """A client that reads recordings in other processes, for example on other machines."""

    def hash_recordings(self, sources: Sequence[str], ledger: Ledger) -> None:
        """Add the hashes of files to a ledger."""

    def upload_recording(self, source: str) -> str:
        """Upload a file or an object of a store. Return its URL at the service."""


class DefaultClient:
    """The client that was used last with a corpus."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def use(self, client: Client | None) -> Client:
        """Return `client` and remember it. None: the one used last, otherwise that of `voxframe.connect()`."""
        from voxframe.client import connect

        check_client(client)
        self._client = client or self._client or connect()
        return self._client

    def service_name(self, client: Client | None) -> str:
        """Return the name of the service that `use(client)` would talk to, without connecting to it."""
        return service_name(client or self._client)
