import asyncio
import itertools
import json
import logging
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from voxframe import errors
from voxframe.client.http import SHORTEST_WAIT_S
from voxframe.client.stream import Stream, stream_options
from voxframe.client.stream.messages import Final, Gap, SessionBegins
from voxframe.errors import (
    AudioTooFastError,
    AuthenticationError,
    OptionError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    SettingsError,
    StreamAuthenticationError,
    StreamCutError,
    StreamError,
)
from voxframe.settings import Secret

Make = Callable[..., Stream]
SECOND = bytes(32_000)

#: Close codes of the interface, and what a user must be told of each: what happened, and what to do.
CODES = {
    4000: ("BadSampleRateError", "does not accept this sample rate", "sample_rate"),
    4001: ("StreamAuthenticationError", "did not accept the key or token", "client.token()"),
    4004: ("SessionNotFoundError", "does not know this session", "start another session"),
    4008: ("SessionExpiredError", "has expired", "start another session"),
    4010: ("SessionClosedError", "already closed", "start another session"),
    4029: ("AudioTooFastError", "faster than the service accepts it", "realtime=True"),
    4031: ("SessionIdleError", "no audio was sent for too long", "silence"),
    4032: ("AudioTooShortError", "too little audio", "sample_rate and encoding"),
    4033: ("AudioTooLongError", "too much audio", "sample_rate and encoding"),
    4034: ("AudioUnreadableError", "could not be decoded", "raw mono samples"),
    4100: ("InvalidJSONError", "could not read a message as JSON", ".finals"),
    4101: ("InvalidMessageError", "does not accept this message", ".finals"),
    4102: ("TooManyStreamsError", "too many sessions", "Terminate one"),
    4104: ("BadWordBoostError", "could not read word_boost", "2500 characters"),
    1013: ("StreamUnavailableError", "at the moment", "reconnect=True"),
}


def endless() -> Iterator[bytes]:
    while True:
        yield SECOND[:6400]


def follow(session: Stream, received: list[Any], at_final: Callable[[], object] = lambda: None) -> None:
    """Iterate to the end, and call a function at each final."""
    for message in session:
        received.append(message)
        if isinstance(message, Final):
            at_final()


def after_one_second(then: Callable[..., Any]) -> Callable[..., Any]:
    """Return a script that sends one final and then calls a function."""

    async def script(session: Any) -> None:
        await session.begin()
        await session.final(1000)
        await then(session)

    return script


@pytest.mark.parametrize("code", CODES)
def test_a_close_code_becomes_its_error(stream: Make, peer: Any, code: int) -> None:
    """Each close code has its own error with a next step, raised after the finals."""
    name, happened, advice = CODES[code]
    peer.script = after_one_second(lambda session: session.refuse("Words of the service", code))
    session = stream(endless(), realtime=True)
    received: list[Any] = []
    with pytest.raises(StreamError) as caught:
        follow(session, received)
    error = caught.value
    assert type(error) is getattr(errors, name)
    assert error.code == code
    assert error.session_id == peer.sessions[0].id
    assert happened in str(error)
    assert advice in str(error)
    assert "Words of the service" in str(error)
    assert [message.text for message in received if isinstance(message, Final)] == ["second 1"]
    assert session.finals == received[1:]


def test_every_documented_code_is_in_the_table() -> None:
    """The table of errors has exactly the documented codes."""
    assert set(errors.STREAM_ERRORS) == set(CODES)


def test_a_close_code_before_the_session_begins(stream: Make, peer: Any) -> None:
    """A refused session raises its error when it is entered."""
    peer.script = lambda session: session.refuse("Too many", 4102)
    with pytest.raises(errors.TooManyStreamsError):
        stream(SECOND).start()


def test_a_wrong_key_is_an_authentication_error(stream: Make) -> None:
    """A wrong key raises an AuthenticationError that does not show the key."""
    session = stream(SECOND, key=Secret("not-the-key"))
    with pytest.raises(StreamAuthenticationError) as caught, session:
        pass
    assert "not-the-key" not in str(caught.value)
    with pytest.raises(StreamAuthenticationError):
        list(session)


def test_a_token_opens_one_session(stream: Make, peer: Any) -> None:
    """A used token is refused, and masked if the service repeats it."""
    peer.tokens.add("token-once")
    stream(SECOND, token="token-once").wait()
    with pytest.raises(StreamAuthenticationError):
        stream(SECOND, token="token-once").wait()
    peer.script = lambda session: session.refuse("token-once is no good", 4001)
    with pytest.raises(StreamAuthenticationError) as caught:
        stream(SECOND, token="token-once").wait()
    assert "token-once" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Client sent audio too fast", AudioTooFastError),
        ("Not authorized", StreamAuthenticationError),
        ("Session idle for too long", errors.SessionIdleError),
        ("Something nobody has heard of", StreamError),
    ],
)
def test_an_error_message_without_a_code_is_understood(stream: Make, peer: Any, said: str, kind: type) -> None:
    """If the connection breaks before the close code arrives, the error message decides the error type."""

    async def say_and_vanish(session: Any) -> None:
        await session.say(error=said)
        await (await session.connection.ping())  # a reset that overtakes the reader takes the words along
        session.connection.transport.abort()

    peer.script = after_one_second(say_and_vanish)
    with pytest.raises(StreamError) as caught:
        stream(endless(), realtime=True).wait()
    assert type(caught.value) is kind
    assert said in str(caught.value)


def test_an_unknown_close_code_is_shown(stream: Make, peer: Any) -> None:
    """An undocumented code raises a StreamError with the code and the reason on one line."""
    peer.script = after_one_second(lambda session: session.connection.close(4999, "odd\nreason"))
    with pytest.raises(StreamError, match=r"odd reason \(close code 4999") as caught:
        stream(endless(), realtime=True).wait()
    assert type(caught.value) is StreamError


def test_a_session_ended_by_the_service_is_an_error(stream: Make, peer: Any) -> None:
    """A session that the service ends on its own raises an error and keeps its finals."""

    async def end(session: Any) -> None:
        await session.say(message_type="SessionTerminated")
        await session.connection.close()

    peer.script = after_one_second(end)
    session = stream(endless(), realtime=True)
    with pytest.raises(StreamError, match=r"^the service ended the session \(session "):
        session.wait()
    assert session.text == "second 1"


def test_a_cut_connection_keeps_the_finals(stream: Make, wire: Any) -> None:
    """A broken connection raises an error at the end of the iteration; all messages before it are kept."""
    session = stream(endless(), realtime=True, url=wire.url)
    with pytest.raises(StreamCutError, match=r"\.finals"):
        follow(session, [], wire.cut)
    assert session.text == "second 1"
    assert isinstance(session.error, ConnectionError)


def test_a_silent_connection_is_noticed(stream: Make, wire: Any) -> None:
    """A session on a silent connection ends within three keepalive intervals."""
    session = stream(endless(), realtime=True, url=wire.url, keepalive_s=0.3)
    with pytest.raises(StreamCutError, match="no longer responds"):
        follow(session, [], wire.go_silent)
    assert session.text == "second 1"


@pytest.mark.parametrize("sign", ["finals", "pings"])
def test_late_pongs_of_a_slow_service_are_tolerated(stream: Make, peer: Any, sign: str) -> None:
    """Late pongs are tolerated as long as other bytes arrive."""

    async def slow(session: Any) -> None:
        await session.begin()
        session.connection.transport.pause_reading()  # pings are not read, nor answered
        for second in range(1, 11):  # together longer than the three intervals without any bytes
            await asyncio.sleep(0.2)
            await (session.final(second * 1000) if sign == "finals" else session.connection.ping())
        session.connection.transport.resume_reading()
        async for data in session.connection:
            if isinstance(data, str) and "terminate" in data:
                await session.say(message_type="SessionTerminated")

    peer.script = slow
    assert len(stream(SECOND * 60, keepalive_s=0.4).wait(20)) == (10 if sign == "finals" else 0)


def test_reconnecting_reports_the_gap(stream: Make, peer: Any, wire: Any) -> None:
    """With reconnect=True, a new session continues with the next audio, and the gap is reported in ms."""
    session = stream(endless(), realtime=True, url=wire.url, reconnect=True)
    received = []
    with session:
        for message in session:
            received.append(message)
            finals = [one for one in received if isinstance(one, Final)]
            if len(finals) == 1 and not session.gaps and len(received) > 8:
                wire.cut()
            if len(finals) == 2:
                break
    gap = next(message for message in received if isinstance(message, Gap))
    first, second = peer.sessions
    assert [type(one) for one in received[received.index(gap) :][:2]] == [Gap, SessionBegins]
    assert gap.start_ms == 1000
    assert gap.end_ms == finals[1].offset_ms
    assert 200 <= gap.ms == gap.end_ms - 1000 <= 2000
    assert [final.session_id for final in finals] == [first.id, second.id]
    assert session.gaps == [gap]
    assert session.error is None


@pytest.mark.parametrize("ends", [(300, 200), (9000,)], ids=["in disorder", "beyond the audio"])
def test_gaps_do_not_overlap(stream: Make, peer: Any, monkeypatch: pytest.MonkeyPatch, ends: tuple[int, ...]) -> None:
    """A gap begins at the end of the last final or, without finals, of the gap before, and is never negative."""
    monkeypatch.setattr("voxframe.client.http.backoff", lambda *_: 0.0)

    async def cut_twice(session: Any) -> None:
        if len(peer.sessions) > 2:
            await session.serve()
            return
        await session.begin()
        for end in ends if len(peer.sessions) == 1 else ():
            await session.final(end)
        async for data in session.connection:
            session.frames.append(data)
            if session.ms >= 400:
                session.connection.transport.abort()

    peer.script = cut_twice
    session = stream(SECOND * 2, realtime=True, reconnect=True)
    session.wait(60)
    first, second = session.gaps
    assert first.start_ms == max(ends)
    assert second.start_ms == max(first.end_ms, *ends)
    assert first.end_ms >= max(400, first.start_ms)
    assert second.ms >= 0


def test_reconnecting_gives_up_with_the_cause(stream: Make, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no new session can be opened, the error that ended the last one is raised."""
    monkeypatch.setattr("voxframe.client.http.backoff", lambda *_: 0.01)
    session = stream(endless(), realtime=True, url=wire.url, reconnect=True)
    with pytest.raises(StreamCutError):
        follow(session, [], wire.close)
    assert session.text == "second 1"


def test_reconnections_are_limited(stream: Make, peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnecting ends after a few sessions that are cut at once, with pauses between them."""
    monkeypatch.setattr("voxframe.client.http.backoff", lambda *_: 0.0)
    begun = []

    async def cut(session: Any) -> None:
        begun.append(time.monotonic())
        await session.begin()
        session.connection.transport.abort()

    peer.script = cut
    with pytest.raises(StreamCutError):
        stream(endless(), realtime=True, reconnect=True).wait(60)
    assert 2 <= len(begun) <= 10
    assert min(after - before for before, after in itertools.pairwise(begun)) >= SHORTEST_WAIT_S


@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_reconnecting_continues_after_a_transient_refusal(
    stream: Make, peer: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """After a transient error status, the next attempt opens the new session."""
    monkeypatch.setattr("voxframe.client.http.backoff", lambda *_: 0.0)
    left = [status]

    async def cut_once(session: Any) -> None:
        if len(peer.sessions) > 1:
            await session.serve()
            return
        await session.begin()
        peer.refuse_with = left
        session.connection.transport.abort()

    peer.script = cut_once
    session = stream(SECOND * 2, realtime=True, reconnect=True)
    session.wait(60)
    assert left == []
    assert session.error is None
    assert len(session.gaps) == 1


def test_permanent_errors_do_not_reconnect(stream: Make, peer: Any) -> None:
    """Only lost connections, expired sessions and transient errors lead to a new session."""
    peer.script = after_one_second(lambda session: session.refuse("Client sent audio too fast", 4029))
    with pytest.raises(AudioTooFastError):
        stream(endless(), realtime=True, reconnect=True).wait()
    assert len(peer.sessions) == 1


def test_the_wait_for_the_end_is_limited(stream: Make, peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that never confirms the end of a session raises a timeout error."""
    monkeypatch.setattr(stream_options, "_LAST_MESSAGE_SECONDS", 0.5)

    async def never_end(session: Any) -> None:
        async for _ in session.connection:
            pass

    peer.script = after_one_second(never_end)
    session = stream(SECOND)
    with pytest.raises(ServiceTimeoutError, match="told to end"):
        session.wait(20)
    assert session.text == "second 1"


def test_a_failure_after_terminate_is_an_error(stream: Make, peer: Any) -> None:
    """A service that breaks down while it decodes the last words gives an error."""

    async def fail(session: Any) -> None:
        async for data in session.connection:
            if isinstance(data, str) and "terminate_session" in json.loads(data):
                await session.connection.close(1011, "broken")

    peer.script = after_one_second(fail)
    session = stream(SECOND)
    with pytest.raises(StreamError, match="broken"):
        session.wait(20)
    assert session.text == "second 1"


def test_a_close_after_terminate_is_a_normal_end(stream: Make, peer: Any) -> None:
    """After `terminate`, a close without a last message is a normal end."""

    async def close(session: Any) -> None:
        async for data in session.connection:
            if isinstance(data, str) and "terminate_session" in json.loads(data):
                return

    peer.script = after_one_second(close)
    assert [final.text for final in stream(SECOND).wait()] == ["second 1"]


def test_a_refused_connection(stream: Make) -> None:
    """A refused connection names the host and what to check, and nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ServiceUnreachableError, match=f"127.0.0.1:{port}: connection refused.*stream_url") as caught:
        stream(SECOND, url=f"ws://127.0.0.1:{port}").start()
    assert not caught.value.possibly_delivered


def answering(raw: Any, answer: bytes) -> str:
    """Let a server respond with fixed bytes, and return its URL for streaming."""
    raw.script = lambda connection: connection.sendall(answer)
    return str(raw.url).replace("http", "ws")


def test_a_refused_handshake_is_the_error_of_its_status(stream: Make, raw: Any) -> None:
    """A 401 during the handshake raises the error of that status, without the key."""
    body = b'{"error": "no such key: a-key-for-the-peer"}'
    head = b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with pytest.raises(AuthenticationError, match="no such key") as caught:
        stream(SECOND, url=answering(raw, head + body)).start()
    assert caught.value.status == 401
    assert "a-key-for-the-peer" not in str(caught.value)


def test_a_redirect_is_not_followed(stream: Make, peer: Any, raw: Any) -> None:
    """Key and audio are only sent to the configured URL."""
    answer = f"HTTP/1.1 302 Go\r\nLocation: {peer.url}/x\r\nContent-Length: 0\r\n\r\n".encode()
    with pytest.raises(ServiceUnreachableError, match=r"redirects to .*Set stream_url"):
        stream(SECOND, url=answering(raw, answer)).start()
    assert peer.sessions == []


def test_a_server_without_websocket_is_named(stream: Make, raw: Any) -> None:
    """A server that does not support WebSocket is reported as such."""
    with pytest.raises(ServiceUnreachableError, match="does not support WebSocket"):
        stream(SECOND, url=answering(raw, b"SSH-2.0-OpenSSH\r\n")).start()


def test_no_log_shows_the_key(stream: Make, peer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """No log contains the key or a token, even at debug level."""
    caplog.set_level(logging.DEBUG)
    for name in ("websockets", "websockets.client", "voxframe"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    peer.tokens.add("token-unseen")
    session = stream(SECOND, token="token-unseen")
    stream(SECOND).wait()
    session.wait()
    ours = [record for record in caplog.records if not record.name.startswith("websockets.server")]
    shown = "".join(record.getMessage() for record in ours) + repr(session) + repr(session._plan) + repr(vars(session))
    assert "a-key-for-the-peer" not in shown
    assert "token-unseen" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(session)


def test_arguments_are_checked_before_anything_is_opened(stream: Make, peer: Any) -> None:
    """An invalid argument is named with the allowed values, and no connection is made."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"encoding": "opus"}, "one of pcm_s16le, pcm_mulaw, got 'opus'"),
        ({"sample_rate": 0}, "sample_rate must be a whole number of at least 1 Hz, got 0"),
        ({"sample_rate": None}, "sample_rate=16000"),
        ({"message_ms": 50}, "from 100 to 2000 ms, got 50"),
        ({"end_utterance_silence_threshold": 20_001}, "from 0 to 20000 ms, got 20001"),
        ({"word_boost": "Ilse"}, "list of words"),
        ({"word_boost": ["a" * 2500]}, "2504 characters.*2500"),
        ({"word_boost": 5}, "list of words"),
        ({"word_boost": ["\ud800"]}, "list of words"),
        ({"token": "t", "reconnect": True}, "one session"),
        ({"token": 5}, r"token must be the text returned by client.token\(\), got int"),
        ({"keepalive_s": 0}, "keepalive_s must be a number from 0.01 to 3600 seconds, got 0"),
        ({"token": ""}, "token is empty"),
        ({"partials": "no"}, "partials must be True or False, got 'no'"),
        ({"on_final": "print"}, "function of one message"),
        ({"word_bost": ["Ilse"]}, "did you mean 'word_boost'"),
    ]
    for how, message in wrong:
        with pytest.raises(OptionError, match=message):
            stream(SECOND, **how)
    with pytest.raises(SettingsError, match="api_key"):
        stream(SECOND, key=None)
    assert peer.sessions == []


def test_commands_require_an_open_session(stream: Make) -> None:
    """A command before or after the session raises an error."""
    session = stream(SECOND)
    with pytest.raises(OptionError, match="not begun"):
        session.force_end_utterance()
    session.wait()
    with pytest.raises(StreamCutError, match="no longer open"):
        session.force_end_utterance()


def test_cancelling_the_task_of_an_async_session_ends_it(stream: Make, peer: Any) -> None:
    """Cancelling the task of an async session closes the connection."""

    async def run() -> Stream:
        session = stream(endless(), realtime=True)

        async def listen() -> None:
            async with session:
                async for _ in session:
                    pass

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session

    session = asyncio.run(run())
    until = time.monotonic() + 5
    while not session.ended and time.monotonic() < until:
        time.sleep(0.01)
    assert session.ended
