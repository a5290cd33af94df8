"""Whether the other side of a streaming connection still lives."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed


class Life:
    """Asks a connection for signs of life, and cuts it where none comes.

    Everything that arrives is one, not the answer to a ping alone: a service that is behind with the audio reads a ping
    only after what was sent before it, and tells what it hears meanwhile.

    Args:
        connection: The connection.
        every_s: Seconds between two pings.
        silent_s: Seconds without anything after which the connection is cut.

    Attributes:
        gone: Whether it was cut for that.
    """

    def __init__(self, connection: ClientConnection, every_s: float, silent_s: float) -> None:
        self._connection, self._every_s, self._silent_s = connection, every_s, silent_s
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self.gone = False

    def heard(self) -> None:
        """Note that something arrived."""
        self._heard_at = self._loop.time()

    async def watch(self) -> None:
        """Ask again and again, until nothing comes any more or the connection is closed."""
        while True:
            pinged_at = self._loop.time()
            # A ping waits behind what is not sent yet; that it cannot leave is no sign of life either.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    try:
                        answer = await self._connection.ping()
                    except ConnectionClosed:
                        return
                    answer.add_done_callback(self._answered)  # type: ignore[attr-defined]
            await asyncio.sleep(pinged_at + self._every_s - self._loop.time())
            if self._loop.time() - self._heard_at > self._silent_s:
                self.gone = True
                self._connection.transport.abort()
                return

    def _answered(self, answer: asyncio.Future[float]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self.heard()
