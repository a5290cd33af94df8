"""The streaming session: audio in, messages out, for scripts, notebook cells and any event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, Unpack

from voxframe._text import join_words, quantity
from voxframe.client.async_bridge import PORTAL
from voxframe.client.stream.audio import StreamSource
from voxframe.client.stream.connection import StreamConnection
from voxframe.client.stream.messages import Cursor, Final, Gap, Message, MessageBuffer, Partial
from voxframe.client.stream.stream_options import StreamOptions, check, make_plan, silence_ms
from voxframe.errors import OptionError, ServiceTimeoutError
from voxframe.settings import Secret
from voxframe.validators import checked_timeout

_CALLBACK_SECONDS = 10.0  # maximum wait for running callbacks at the end of a session


class Stream:
    """A streaming session. Created by `client.stream(...)`; it begins when it is entered, iterated or started.

    Iteration yields messages as they arrive: `Partial`, `Final`, `SessionBegins`, ..., and `Message` for unknown types.
    It ends when the source has ended and all finals have arrived. It raises a `StreamError` if the session failed;
    messages received before are kept. Leaving the `with` block terminates the session.

    The session runs in the background. Messages are also received while no cell runs, and `load_stream(session)`
    returns them as a table.

    Example:
        >>> with client.stream("talk.wav") as session:                  # doctest: +SKIP
        ...     for message in session:
        ...         print(message.text if isinstance(message, Final) else ".")
    """

    def __init__(self, source: StreamSource, *, url: str, key: Secret | None, **options: Unpack[StreamOptions]) -> None:
        checked = check(options)
        self._plan = make_plan(source, url, key, checked)
        self.on_partial = checked["on_partial"]
        self.on_final = checked["on_final"]
        self._buffer = MessageBuffer(checked["keep_partials"])
        self._cursor = Cursor(self._buffer)
        self._connection: StreamConnection | None = None
        self._starting = threading.Lock()
        self._callback_thread: threading.Thread | None = None
        self._callback_error: BaseException | None = None
        self._raised = False

    @property
    def session_id(self) -> str | None:
        """Session id, or that of the latest session after a reconnection; None before it began."""
        return self._connection.session_id if self._connection is not None else None

    @property
    def messages(self) -> list[Message]:
        """All messages so far, with at most `keep_partials` partials."""
        return self._buffer.messages

    @property
    def finals(self) -> list[Final]:
        """All finals so far."""
        return [message for message in self._buffer.messages if isinstance(message, Final)]

    @property
    def gaps(self) -> list[Gap]:
        """Gaps left by reconnections."""
        return [message for message in self._buffer.messages if isinstance(message, Gap)]

    @property
    def text(self) -> str:
        """The text of all finals so far."""
        return join_words(final.text for final in self.finals)

    @property
    def ended(self) -> bool:
        """True if the session is over."""
        return self._buffer.ended

    @property
    def error(self) -> BaseException | None:
        """Error that ended the session, or None."""
        return self._buffer.error or (self._callback_error if self._buffer.ended else None)

    @property
    def sent_ms(self) -> int:
        """Audio sent so far, in ms."""
        return round(self._connection.sent_s * 1000) if self._connection is not None else 0

    def start(self) -> Self:
        """Connect and begin to send audio in the background. Does nothing if the session has begun.

        Raises:
            ServiceError: The session could not begin: no connection, invalid key or token, too many sessions, ...
        """
        connection = self._new_connection(None)
        if connection is not None:
            PORTAL.run(connection.open)
            self._start_callbacks()
        return self

    async def start_async(self) -> Self:
        """Async version of `start`, for any event loop. An async source is then read on that loop."""
        connection = self._new_connection(asyncio.get_running_loop())
        if connection is not None:
            await PORTAL.call(connection.open)
            self._start_callbacks()
        return self

    def wait(self, timeout: float | None = None) -> list[Final]:
        """Wait until the source has ended and all finals have arrived.

        Args:
            timeout: Maximum seconds to wait; None has no limit.

        Returns:
            All finals of the session.

        Raises:
            OptionError: The timeout is not a number of at least 0.
            StreamError: The session failed.
            ServiceTimeoutError: The session was not over in time; it continues.
        """
        checked_timeout(timeout)
        connection = self.start()._connection
        assert connection is not None
        if not self._buffer.ended:
            try:
                PORTAL.run(connection.ended, timeout)
            except ServiceTimeoutError:
                raise ServiceTimeoutError(
                    f"the session continues after {timeout:g} s; .wait() waits for it again, .terminate() ends it"
                ) from None
        self._finish()
        return self.finals

    async def wait_async(self) -> list[Final]:
        """Async version of `wait`, for any event loop."""
        connection = (await self.start_async())._connection
        assert connection is not None
        await PORTAL.call(connection.ended)
        await asyncio.to_thread(self._finish)
        return self.finals

    def terminate(self) -> list[Final]:
        """Stop sending audio and wait until the service has transcribed the audio received.

        Returns:
            The finals that iteration has not yielded yet.

        Raises:
            StreamError: The session failed; `finals` has the finals received.
        """
        if self._connection is not None and not self._buffer.ended:
            PORTAL.run(self._connection.stop)
            PORTAL.run(self._connection.ended)
        self._finish()
        return self._rest()

    async def terminate_async(self) -> list[Final]:
        """Async version of `terminate`, for any event loop."""
        if self._connection is not None and not self._buffer.ended:
            await PORTAL.call(self._connection.stop)
            await PORTAL.call(self._connection.ended)
        await asyncio.to_thread(self._finish)
        return self._rest()

    def force_end_utterance(self) -> None:
        """End the current utterance now; its final follows.

        Raises:
            StreamError: The session is not open.
        """
        self._send({"force_end_utterance": True})

    def silence_threshold(self, ms: int) -> None:
        """Set the silence that ends an utterance.

        Args:
            ms: Silence in ms, from 0 to 20000.

        Raises:
            OptionError: The value is out of range.
            StreamError: The session is not open.
        """
        self._send({"end_utterance_silence_threshold": silence_ms(ms)})

    def abort(self) -> None:
        """End the session immediately, without waiting for further messages. Audio in transit is lost."""
        if self._connection is not None and not self._buffer.ended:
            asyncio.run_coroutine_threadsafe(self._connection.abort(), PORTAL.loop)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        self.start()
        message = self._cursor.wait()
        if message is None:
            self._finish()
            raise StopIteration
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        await self.start_async()
        message = await self._cursor.wait_async()
        if message is None:
            await asyncio.to_thread(self._finish)
            raise StopAsyncIteration
        return message

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        elif not self._raised:
            self.terminate()

    async def __aenter__(self) -> Self:
        return await self.start_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        elif not self._raised:
            await self.terminate_async()

    def __repr__(self) -> str:
        state = "not begun" if self._connection is None else "ended" if self.ended else "running"
        return f"Stream({state}, session_id={self.session_id!r}, {quantity(len(self.finals), 'final')})"

    def _new_connection(self, home: asyncio.AbstractEventLoop | None) -> StreamConnection | None:
        """Return a connection to open, or None if there is one already."""
        with self._starting:
            if self._connection is not None:
                return None
            self._connection = StreamConnection(self._plan, self._buffer, home)
            return self._connection

    def _send(self, message: dict[str, Any]) -> None:
        connection = self._connection
        if connection is None:
            raise OptionError("the session has not begun; use it in a `with` statement, or call .start()")
        PORTAL.run(lambda: connection.send_json(message))

    def _rest(self) -> list[Final]:
        messages = []
        while (message := self._cursor.wait()) is not None:
            if isinstance(message, Final):
                messages.append(message)
        return messages

    def _finish(self) -> None:
        """Wait for callbacks and raise the error that ended the session, if any."""
        if self._callback_thread is not None and self._callback_thread is not threading.current_thread():
            self._callback_thread.join(_CALLBACK_SECONDS)
        if self.error is not None:
            self._raised = True
            raise self.error

    def _start_callbacks(self) -> None:
        if self.on_partial is None and self.on_final is None:
            return
        # In the caller's context, output of a callback appears below the cell that started the session.
        context = contextvars.copy_context()
        self._callback_thread = threading.Thread(
            target=context.run, args=(self._run_callbacks,), name="voxframe-stream-callbacks", daemon=True
        )
        self._callback_thread.start()

    def _run_callbacks(self) -> None:
        cursor = Cursor(self._buffer)
        while (message := cursor.wait()) is not None:
            call: Callable[[Any], object] | None = None
            if isinstance(message, Partial):
                call = self.on_partial
            elif isinstance(message, Final):
                call = self.on_final
            if call is None:
                continue
            try:
                call(message)
            except BaseException as error:  # noqa: BLE001 - raised to the reader of the session
                self._callback_error = error
                return
