import asyncio
import json
import logging
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from voxframe import errors
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
from voxframe.service import stream_run
from voxframe.service.stream import Stream
from voxframe.service.stream_messages import Final, Gap, SessionBegins
from voxframe.settings import Secret

Make = Callable[..., Stream]
SECOND = bytes(32_000)

#: Close codes of the interface, and what a user must be told of each: what happened, and what to do.
CODES = {
    4000: ("BadSampleRateError", "does not take this sample rate", "sample_rate"),
    4001: ("StreamAuthenticationError", "did not accept the key or token", "client.token()"),
    4004: ("SessionNotFoundError", "knows no such session", "start another session"),
    4008: ("SessionExpiredError", "has expired", "start another session"),
    4010: ("SessionClosedError", "closed before", "start another session"),
    4029: ("AudioTooFastError", "faster than the service takes it", "realtime=True"),
    4031: ("SessionIdleError", "no audio was sent for too long", "silence"),
    4032: ("AudioTooShortError", "too little audio", "sample_rate and encoding"),
    4033: ("AudioTooLongError", "too much audio", "sample_rate and encoding"),
    4034: ("AudioUnreadableError", "could not be decoded", "raw mono samples"),
    4100: ("InvalidJSONError", "could not read a message as JSON", ".finals"),
    4101: ("InvalidMessageError", "does not take such a message", ".finals"),
    4102: ("TooManyStreamsError", "too many sessions", "Terminate one"),
    4104: ("BadWordBoostError", "could not read word_boost", "2500 characters"),
    1013: ("StreamUnavailableError", "at the moment", "reconnect=True"),
}


def endless() -> Iterator[bytes]:
    while True:
        yield SECOND[:6400]


def follow(session: Stream, received: list[Any], at_final: Callable[[], object] = lambda: None) -> None:
    """Iterate to the end, and do something at each final."""
    for message in session:
        received.append(message)
        if isinstance(message, Final):
            at_final()


def after_one_second(then: Callable[..., Any]) -> Callable[..., Any]:
    """A script: one final, then something."""

    async def script(session: Any) -> None:
        await session.begin()
        await session.final(1000)
        await then(session)

    return script


@pytest.mark.parametrize("code", CODES)
def test_a_close_code_becomes_its_error(stream: Make, peer: Any, code: int) -> None:
    """Each close code is an error of its own, which says what happened and what to do, after the finals."""
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
    """The table of errors has exactly the codes of the interface."""
    assert set(errors.STREAM_ERRORS) == set(CODES)


def test_a_close_code_before_the_session_begins(stream: Make, peer: Any) -> None:
    """A session that is refused raises when it is entered."""
    peer.script = lambda session: session.refuse("Too many", 4102)
    with pytest.raises(errors.TooManyStreamsError):
        stream(SECOND).start()


def test_a_wrong_key_is_an_authentication_error(stream: Make) -> None:
    """A wrong key raises on entry, and again where iterating goes on; it is never shown."""
    session = stream(SECOND, key=Secret("not-the-key"))
    with pytest.raises(StreamAuthenticationError) as caught, session:
        pass
    assert "not-the-key" not in str(caught.value)
    with pytest.raises(StreamAuthenticationError):
        list(session)


def test_a_token_opens_one_session(stream: Make, peer: Any) -> None:
    """A token that was used is refused, and not shown where the service repeats it."""
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
    """Where the connection breaks before the close code comes, the words decide."""

    async def say_and_vanish(session: Any) -> None:
        await session.say(error=said)
        await asyncio.sleep(0.1)  # a reset that overtakes the reader takes the words along
        session.connection.transport.abort()

    peer.script = after_one_second(say_and_vanish)
    with pytest.raises(StreamError) as caught:
        stream(endless(), realtime=True).wait()
    assert type(caught.value) is kind
    assert said in str(caught.value)


def test_an_unknown_close_code_is_shown(stream: Make, peer: Any) -> None:
    """A code outside the interface is a StreamError with the code and the reason, on one line."""
    peer.script = after_one_second(lambda session: session.connection.close(4999, "odd\nreason"))
    with pytest.raises(StreamError, match=r"odd reason \(close code 4999") as caught:
        stream(endless(), realtime=True).wait()
    assert type(caught.value) is StreamError


def test_a_service_that_ends_by_itself_is_no_good_end(stream: Make, peer: Any) -> None:
    """A session that ends although nobody asked for it raises, and keeps its finals."""

    async def end(session: Any) -> None:
        await session.say(message_type="SessionTerminated")
        await session.connection.close()

    peer.script = after_one_second(end)
    session = stream(endless(), realtime=True)
    with pytest.raises(StreamError, match="nobody asked"):
        session.wait()
    assert session.text == "second 1"


def test_a_cut_connection_keeps_the_finals(stream: Make, wire: Any) -> None:
    """A connection that breaks raises at the end of the iteration; everything before it is there."""
    session = stream(endless(), realtime=True, url=wire.url)
    with pytest.raises(StreamCutError, match=r"\.finals"):
        follow(session, [], wire.cut)
    assert session.text == "second 1"
    assert isinstance(session.error, ConnectionError)


def test_a_silent_connection_is_noticed(stream: Make, wire: Any) -> None:
    """Where the other side falls silent without a word, the session ends within three signs of life."""
    session = stream(endless(), realtime=True, url=wire.url, keepalive_s=0.3)
    silent: list[float] = []

    def pull_the_cable() -> None:
        wire.go_silent()
        silent.append(time.monotonic())

    with pytest.raises(StreamCutError, match="no sign of life"):
        follow(session, [], pull_the_cable)
    assert 0.3 < time.monotonic() - silent[0] < 3
    assert session.text == "second 1"


@pytest.mark.parametrize("sign", ["finals", "pings"])
def test_a_service_that_is_slow_is_not_taken_for_dead(stream: Make, peer: Any, sign: str) -> None:
    """Where audio is read far slower than it is sent, a ping is answered late; all that comes meanwhile counts too."""

    async def slow(session: Any) -> None:
        await session.begin()
        session.connection.transport.pause_reading()  # pings are not read, nor answered
        for second in range(1, 7):
            await asyncio.sleep(0.2)
            await (session.final(second * 1000) if sign == "finals" else session.connection.ping())
        session.connection.transport.resume_reading()
        async for data in session.connection:
            if isinstance(data, str) and "terminate" in data:
                await session.say(message_type="SessionTerminated")

    peer.script = slow
    assert len(stream(SECOND * 60, keepalive_s=0.1).wait(20)) == (6 if sign == "finals" else 0)


def test_reconnecting_reports_the_gap(stream: Make, peer: Any, wire: Any) -> None:
    """Where it is asked for, another session goes on with the next audio, and what may be lost is said in ms."""
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


def test_reconnecting_gives_up_with_the_cause(stream: Make, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no other session can be had, the error is what ended the last one."""
    monkeypatch.setattr(stream_run, "backoff", lambda attempt: 0.01)
    session = stream(endless(), realtime=True, url=wire.url, reconnect=True)
    with pytest.raises(StreamCutError):
        follow(session, [], wire.close)
    assert session.text == "second 1"


def test_reconnecting_does_not_repeat_what_the_user_got_wrong(stream: Make, peer: Any) -> None:
    """Only a cut, an expired session and a passing condition are worth another session."""
    peer.script = after_one_second(lambda session: session.refuse("Client sent audio too fast", 4029))
    with pytest.raises(AudioTooFastError):
        stream(endless(), realtime=True, reconnect=True).wait()
    assert len(peer.sessions) == 1


def test_a_service_that_does_not_end_is_not_waited_for_for_ever(
    stream: Make, peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that never says the session is over costs a bounded wait."""
    monkeypatch.setattr(stream_run, "_LAST_MESSAGE_SECONDS", 0.5)

    async def never_end(session: Any) -> None:
        async for _ in session.connection:
            pass

    peer.script = after_one_second(never_end)
    session = stream(SECOND)
    with pytest.raises(ServiceTimeoutError, match="told to end"):
        session.wait(20)
    assert session.text == "second 1"


def test_a_close_without_a_last_message_is_a_good_end_once_asked_for(stream: Make, peer: Any) -> None:
    """Some services just close when they were told to terminate."""

    async def close(session: Any) -> None:
        async for data in session.connection:
            if isinstance(data, str) and "terminate_session" in json.loads(data):
                return

    peer.script = after_one_second(close)
    assert [final.text for final in stream(SECOND).wait()] == ["second 1"]


def test_nobody_at_the_address(stream: Make) -> None:
    """A refused connection names the host and what to check, and nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ServiceUnreachableError, match=f"127.0.0.1:{port}: connection refused.*stream_url") as caught:
        stream(SECOND, url=f"ws://127.0.0.1:{port}").start()
    assert not caught.value.may_have_arrived


class Http:
    """Answers every connection with fixed bytes."""

    def __init__(self, answer: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.asked: list[bytes] = []
        self.answer = answer
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(65536))
                connection.sendall(self.answer)


@pytest.fixture
def http() -> Iterator[Callable[[bytes], Http]]:
    """Makes servers that speak no WebSocket."""
    made: list[Http] = []

    def make(answer: bytes) -> Http:
        made.append(Http(answer))
        return made[-1]

    yield make
    for one in made:
        one.listener.close()


def test_a_refused_handshake_is_the_error_of_its_status(stream: Make, http: Any) -> None:
    """A 401 before the connection is the same error as on any other endpoint; the key is not repeated."""
    body = b'{"error": "no such key: a-key-for-the-peer"}'
    server = http(
        b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    with pytest.raises(AuthenticationError, match="no such key") as caught:
        stream(SECOND, url=server.url).start()
    assert caught.value.status == 401
    assert "a-key-for-the-peer" not in str(caught.value)


def test_a_redirect_is_not_followed(stream: Make, peer: Any, http: Any) -> None:
    """Key and audio go nowhere but to the address that was configured."""
    server = http(f"HTTP/1.1 302 Go\r\nLocation: {peer.url}/x\r\nContent-Length: 0\r\n\r\n".encode())
    with pytest.raises(ServiceUnreachableError, match=r"redirects to .*Set stream_url"):
        stream(SECOND, url=server.url).start()
    assert peer.sessions == []


def test_what_speaks_no_websocket_is_named(stream: Make, http: Any) -> None:
    """Another kind of server at the address is told apart from none."""
    server = http(b"SSH-2.0-OpenSSH\r\n")
    with pytest.raises(ServiceUnreachableError, match="no WebSocket"):
        stream(SECOND, url=server.url).start()


def test_no_log_shows_the_key(stream: Make, peer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Not even with debugging on does the key or a token reach a log."""
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
    """A wrong argument names its value and what is allowed; no connection is made."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"encoding": "opus"}, r"'opus'.*pcm_s16le, pcm_mulaw"),
        ({"sample_rate": 0}, "sample_rate is 0.*at least 1"),
        ({"sample_rate": None}, "sample_rate=16000"),
        ({"message_ms": 50}, "50.*100 to 2000"),
        ({"end_utterance_silence_threshold": 20_001}, "20001.*0 to 20000"),
        ({"word_boost": "Ilse"}, "list of words"),
        ({"word_boost": ["a" * 2500]}, "2504 characters.*2500"),
        ({"word_boost": 5}, "list of words"),
        ({"word_boost": ["\ud800"]}, "list of words"),
        ({"token": "t", "reconnect": True}, "one session"),
        ({"token": 5}, "token is a int; give the text that client.token"),
        ({"keepalive_s": 0}, "above 0"),
        ({"partials": "no"}, "'no'.*True or False"),
        ({"on_final": "print"}, "function of one message"),
        ({"word_bost": ["Ilse"]}, "did you mean 'word_boost'"),
    ]
    for how, message in wrong:
        with pytest.raises(OptionError, match=message):
            stream(SECOND, **how)
    with pytest.raises(SettingsError, match="api_key"):
        stream(SECOND, key=None)
    assert peer.sessions == []


def test_a_command_before_the_session_or_after_it(stream: Make) -> None:
    """Commands need an open session, and say so."""
    session = stream(SECOND)
    with pytest.raises(OptionError, match="not begun"):
        session.force_end_utterance()
    session.wait()
    with pytest.raises(StreamCutError, match="no longer open"):
        session.force_end_utterance()


def test_cancelling_the_task_of_an_async_session_ends_it(stream: Make, peer: Any) -> None:
    """A cancelled task leaves no session open behind it."""

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
