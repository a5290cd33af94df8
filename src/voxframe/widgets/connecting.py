"""How the lines of `.code` connect to a service, without its key."""

from __future__ import annotations

from voxframe.service import Client
from voxframe.service.embedded import is_embedded


def connect_call(client: Client | None) -> str:
    """The call that gives a client of the same service; its key comes from the environment or is asked for.

    Example:
        >>> import voxframe
        >>> connect_call(None), connect_call(voxframe.connect("http://127.0.0.1:9", api_key="not-shown"))
        ('voxframe.connect()', "voxframe.connect('http://127.0.0.1:9')")
    """
    return f"voxframe.connect({'' if client is None or is_embedded(client.base_url) else repr(client.base_url)})"
