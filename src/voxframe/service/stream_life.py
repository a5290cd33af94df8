"""Whether the other side of a streaming connection still lives."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed


class Connection(ClientConnection):
    """A connection that knows when anything arrived last.

    Everything that arrives is a sign of life, not the answer to a ping alone: a service that is behind with the audio
    reads a ping only after what was sent before it, and tells what it hears, or asks for a sign itself, meanwhile.

    Attributes:
        heard_at: The loop's time of the last byte.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard_at = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take what arrived."""
        self.heard_at = self.loop.time()
        super().data_received(data)


class Life:
    """Asks a connection for signs of life, and cuts it where none comes.

    Args:
        connection: The connection.
        every_s: Seconds between two pings.
        silent_s: Seconds without anything after which the connection is cut.

    Attributes:
        gone: Whether it was cut for that.
    """

    def __init__(self, connection: Connection, every_s: float, silent_s: float) -> None:
        self._connection, self._every_s, self._silent_s = connection, every_s, silent_s
        self._loop = asyncio.get_running_loop()
        self.gone = False

    async def watch(self) -> None:
        """Ask again and again, until nothing comes any more or the connection is closed."""
        while True:
            pinged_at = self._loop.time()
            # A ping waits behind what is not sent yet; that it cannot leave is no sign of life either.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    try:
                        await self._connection.ping()
                    except ConnectionClosed:
                        return
            await asyncio.sleep(pinged_at + self._every_s - self._loop.time())
            if self._loop.time() - self._connection.heard_at > self._silent_s:
                self.gone = True
                self._connection.transport.abort()
                return
