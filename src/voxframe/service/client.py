"""The client: everything the service does, as methods."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from voxframe import options as opt
from voxframe.errors import OptionError
from voxframe.service.derived import DerivedViews
from voxframe.service.lenient import as_text
from voxframe.service.twins import AsyncTwins

if TYPE_CHECKING:  # a client that streams nothing does without the streaming half
    from voxframe.service.stream import Stream
    from voxframe.service.stream_options import StreamOptions
    from voxframe.service.stream_sources import StreamSource


class Client(AsyncTwins, DerivedViews):
    """A client of a transcription service. May be used from several threads; `connect` makes one.

    Args:
        settings: With an address and a key.
        transport: How requests are made; default: a `Transport` of its own.

    Attributes:
        base_url: Address of the service.
        settings: The settings it was made with.
    """

    def stream(self, source: StreamSource, **options: Unpack[StreamOptions]) -> Stream:
        """Transcribe audio as it is spoken.

        Nothing is opened until the session is entered (`with`, `async with`), iterated (`for`, `async for`) or started.
        A session from a file:

            with client.stream("talk.wav") as session:
                for message in session:
                    if isinstance(message, Final):
                        print(message.text)

        Args:
            source: Path, bytes or binary file of a recording or of raw samples; an iterator or asynchronous iterator of
                raw samples; or `voxframe.microphone()`.
            **options: See `voxframe.service.stream_options.StreamOptions`: sample_rate, encoding, word_boost, partials,
                extra_session_information, token, end_utterance_silence_threshold, realtime, reconnect, on_partial,
                on_final, message_ms, keepalive_s, keep_partials.

        Raises:
            OptionError: An option or the source is wrong.
            AudioError: The source cannot be read.
        """
        from voxframe.service.stream import Stream

        assert self.settings.stream_url is not None
        return Stream(source, url=self.settings.stream_url, key=self.settings.api_key, **options)

    def token(self, expires_in: int = 480) -> str:
        """A temporary token: it opens one streaming session, so that the key need not leave this machine.

        Args:
            expires_in: Seconds it is good for, from 60 to 360000.

        Raises:
            OptionError: `expires_in` is out of range.
            ServiceError: The service, or the way to it, failed.
        """
        low, high = opt.TOKEN_SECONDS
        if isinstance(expires_in, bool) or not isinstance(expires_in, int) or not low <= expires_in <= high:
            raise OptionError(f"expires_in is {expires_in!r}; it must be a whole number from {low} to {high} seconds")
        answer = self._http.request("POST", "/v2/realtime/token", json={"expires_in": expires_in}, repeatable=True)
        token = as_text(answer.data.get("token"))
        if not token:
            raise answer.unreadable()
        return token

    def close(self) -> None:
        """Close connections; waits in other threads end with an error."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"
