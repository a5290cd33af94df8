"""The real-time session: audio in, messages out as they are spoken, from a script, a notebook cell or any loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, Unpack

from voxframe.errors import OptionError, ServiceTimeoutError
from voxframe.service.portal import PORTAL
from voxframe.service.stream_log import Cursor, MessageLog
from voxframe.service.stream_messages import Final, Gap, Message, Partial
from voxframe.service.stream_options import StreamOptions, check, make_plan, silence_ms
from voxframe.service.stream_run import Run
from voxframe.service.stream_sources import StreamSource
from voxframe.settings import Secret

_CALLBACK_SECONDS = 10.0  # how long the end of a session waits for callbacks that are still busy


class Stream:
    """A streaming session. Made by `client.stream(...)`; it begins when it is entered, iterated or started.

    Iterating gives the messages as they come: `Partial`, `Final`, `SessionBegins`, ... , and `Message` for kinds that
    voxframe does not know. It ends when the source ends and every final has come, and raises a `StreamError` where the
    session did not end well; what came before is kept. Leaving the `with` block terminates the session.

    The session runs in the background: messages are received, and `load_stream(session)` shows them, also while no cell
    runs.

    Attributes:
        on_partial, on_final: Called with each partial and final, one at a time, in a thread of the session's own.

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
        self._log = MessageLog(checked["keep_partials"])
        self._cursor = Cursor(self._log)
        self._run: Run | None = None
        self._starting = threading.Lock()
        self._caller: threading.Thread | None = None
        self._callback_error: BaseException | None = None
        self._raised = False

    @property
    def session_id(self) -> str | None:
        """The service's identifier of the session; of the latest one after a reconnection."""
        return self._run.session_id if self._run is not None else None

    @property
    def messages(self) -> list[Message]:
        """All messages so far, of the partials the newest ones (`keep_partials`)."""
        return self._log.messages

    @property
    def finals(self) -> list[Final]:
        """All finals so far."""
        return [message for message in self._log.messages if isinstance(message, Final)]

    @property
    def gaps(self) -> list[Gap]:
        """Where the connection broke and another session went on."""
        return [message for message in self._log.messages if isinstance(message, Gap)]

    @property
    def text(self) -> str:
        """The text of all finals so far."""
        return " ".join(final.text for final in self.finals if final.text)

    @property
    def ended(self) -> bool:
        """Whether the session is over."""
        return self._log.ended

    @property
    def error(self) -> BaseException | None:
        """Why it did not end well; None where it did, or goes on."""
        return self._log.error or (self._callback_error if self._log.ended else None)

    @property
    def sent_ms(self) -> int:
        """Audio sent so far, in ms."""
        return round(self._run.sent_s * 1000) if self._run is not None else 0

    def start(self) -> Self:
        """Connect and begin to send; what follows happens in the background. Once begun, it does nothing.

        Raises:
            ServiceError: The session could not begin: no connection, key or token refused, too many sessions, ...
        """
        run = self._new_run(None)
        if run is not None:
            PORTAL.run(run.open)
            self._call_back()
        return self

    def wait(self, timeout: float | None = None) -> list[Final]:
        """Wait until the source has ended and every final has come.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            All finals of the session.

        Raises:
            StreamError: The session did not end well.
            ServiceTimeoutError: It goes on after `timeout`.
        """
        run = self.start()._run
        assert run is not None
        if not self._log.ended:
            try:
                PORTAL.run(run.ended, timeout)
            except ServiceTimeoutError:
                raise ServiceTimeoutError(
                    f"the session goes on after {timeout:g} s; .wait() waits for it again, .terminate() ends it"
                ) from None
        self._finish()
        return self.finals

    def terminate(self) -> list[Final]:
        """Send no more audio, and wait until the service has transcribed all it was sent.

        Returns:
            Every final that iterating has not given yet.

        Raises:
            StreamError: The session did not end well; `finals` has those that came.
        """
        if self._run is not None and not self._log.ended:
            PORTAL.run(self._run.stop)
            PORTAL.run(self._run.ended)
        self._finish()
        return self._rest()

    def force_end_utterance(self) -> None:
        """Have the utterance under way ended now; its final follows.

        Raises:
            StreamError: The session is not open.
        """
        self._say({"force_end_utterance": True})

    def silence_threshold(self, ms: int) -> None:
        """Set how much silence ends an utterance.

        Args:
            ms: From 0 to 20000 ms.

        Raises:
            OptionError: It is no such number.
            StreamError: The session is not open.
        """
        self._say({"end_utterance_silence_threshold": silence_ms(ms)})

    def abort(self) -> None:
        """End the session at once, without waiting for what is still to come. Audio on its way is lost."""
        if self._run is not None and not self._log.ended:
            asyncio.run_coroutine_threadsafe(self._run.abort(), PORTAL.loop)

    async def start_async(self) -> Self:
        """As `start`, awaited on any loop. An asynchronous source is then read on that loop."""
        run = self._new_run(asyncio.get_running_loop())
        if run is not None:
            await PORTAL.call(run.open)
            self._call_back()
        return self

    async def wait_async(self) -> list[Final]:
        """As `wait`, awaited on any loop."""
        run = (await self.start_async())._run
        assert run is not None
        await PORTAL.call(run.ended)
        await asyncio.to_thread(self._finish)
        return self.finals

    async def terminate_async(self) -> list[Final]:
        """As `terminate`, awaited on any loop."""
        if self._run is not None and not self._log.ended:
            await PORTAL.call(self._run.stop)
            await PORTAL.call(self._run.ended)
        await asyncio.to_thread(self._finish)
        return self._rest()

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
        state = "not begun" if self._run is None else "ended" if self.ended else "running"
        return f"Stream({state}, session_id={self.session_id!r}, {len(self.finals)} finals)"

    def _new_run(self, home: asyncio.AbstractEventLoop | None) -> Run | None:
        """A run to be opened, where there is none yet."""
        with self._starting:
            if self._run is not None:
                return None
            self._run = Run(self._plan, self._log, home)
            return self._run

    def _say(self, message: dict[str, Any]) -> None:
        run = self._run
        if run is None:
            raise OptionError("the session has not begun; enter it with `with`, or call .start()")
        PORTAL.run(lambda: run.say(message))

    def _rest(self) -> list[Final]:
        rest = []
        while (message := self._cursor.wait()) is not None:
            if isinstance(message, Final):
                rest.append(message)
        return rest

    def _finish(self) -> None:
        """The session is over: wait for its callbacks, and raise what went wrong."""
        if self._caller is not None and self._caller is not threading.current_thread():
            self._caller.join(_CALLBACK_SECONDS)
        if self.error is not None:
            self._raised = True
            raise self.error

    def _call_back(self) -> None:
        if self.on_partial is None and self.on_final is None:
            return
        # With the caller's context, what a callback prints belongs to the cell that began the session.
        context = contextvars.copy_context()
        self._caller = threading.Thread(
            target=context.run, args=(self._call,), name="voxframe-stream-callbacks", daemon=True
        )
        self._caller.start()

    def _call(self) -> None:
        cursor = Cursor(self._log)
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
            except BaseException as error:  # noqa: BLE001 - raised to whoever waits for the session
                self._callback_error = error
                return
