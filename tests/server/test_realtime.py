import base64
import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import av
import psutil
import pytest
import requests
import uvicorn
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from voxframe._files import sample
from voxframe.errors import STREAM_ERRORS
from voxframe_engine.speech.engines import EngineChoice
from voxframe_server import realtime
from voxframe_server.http.app import make_app
from voxframe_server.jobs.data_dir import DataDir
from voxframe_server.realtime import SessionRefusedError, TokenStore, decode_pool, record_of, websocket
from voxframe_server.realtime.decode_pool import DecodePool
from voxframe_server.realtime.websocket import StreamLimits
from voxframe_server.server import SOCKETS

KEY = "a-key-for-tests"
SECOND = bytes(32_000)


def open_stream(
    base_url: str, *, key: str | None = KEY, headers: dict[str, str] | None = None, **query: Any
) -> ClientConnection:
    query = {name: value for name, value in ({"sample_rate": 16_000} | query).items() if value is not None}
    return connect(
        f"{base_url.replace('http', 'ws', 1)}/v2/realtime/ws?{urlencode(query)}",
        additional_headers=({"Authorization": key} if key else {}) | (headers or {}),
        proxy=None,
    )


def speech() -> bytes:
    """Return a recording as 16 kHz samples."""
    with av.open(str(sample())) as media:
        resampler = av.AudioResampler("s16", "mono", 16_000)
        frames = [frame for decoded in media.decode(audio=0) for frame in resampler.resample(decoded)]
    return b"".join(frame.to_ndarray().tobytes() for frame in frames)


def rest(stream: ClientConnection) -> tuple[list[dict[str, Any]], int | None]:
    """Return all messages until the connection closes, and its close code."""
    messages = []
    try:
        while True:
            messages.append(json.loads(stream.recv(60)))
    except ConnectionClosed:
        return messages, stream.close_code


def kinds(messages: list[dict[str, Any]]) -> list[str | None]:
    return [message.get("message_type") for message in messages]


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Start servers in this process with low limits, and with one decoding process as on a machine with one core."""
    monkeypatch.setattr(websocket, "cores", lambda: 1)
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(**limits: float) -> str:
        data_dir = DataDir(tmp_path / f"data{len(servers)}")
        app = make_app(data_dir, KEY, stream_limits=StreamLimits(**limits), choice=EngineChoice("parrot"))
        config = uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1, **SOCKETS)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(20)


def test_the_messages_come_in_the_interfaces_order(service: Any) -> None:
    """A session begins, reports the duration of its audio, and terminates; then the connection closes."""
    with open_stream(service.url, enable_extra_session_information="True") as stream:
        stream.send(json.dumps({"end_utterance_silence_threshold": 300.0}))  # a whole number in any spelling
        stream.send(SECOND)
        stream.send(json.dumps({"audio_data": base64.b64encode(SECOND[:16_000]).decode()}))
        stream.send(json.dumps({"terminate_session": True}))
        messages, code = rest(stream)
    assert kinds(messages) == ["SessionBegins", "SessionInformation", "SessionTerminated"]
    assert uuid.UUID(messages[0]["session_id"]).version == 4
    assert datetime.fromisoformat(messages[0]["expires_at"]).tzinfo is None
    assert messages[1]["audio_duration_seconds"] == 1.5
    assert code == 1000


def test_information_comes_only_where_it_was_asked_for(service: Any) -> None:
    """Session information is sent only if it was requested."""
    with open_stream(service.url) as stream:
        stream.send(json.dumps({"terminate_session": True}))
        messages, code = rest(stream)
    assert (kinds(messages), code) == (["SessionBegins", "SessionTerminated"], 1000)


REFUSED = {
    "no sample rate": ({"sample_rate": None}, 4000),
    "no number": ({"sample_rate": "fast"}, 4000),
    "a rate too low": ({"sample_rate": 7999}, 4000),
    "a rate too high": ({"sample_rate": 48_001}, 4000),
    "no key": ({"key": None}, 4001),
    "a wrong key": ({"key": "wrong"}, 4001),
    "a key with more behind it": ({"key": f"{KEY}s"}, 4001),
    "a wrong token": ({"key": None, "token": "wrong"}, 4001),
    "an unknown encoding": ({"encoding": "opus"}, 4101),
    "a word boost that is no JSON": ({"word_boost": "Ilse"}, 4104),
    "a word boost of numbers": ({"word_boost": "[1]"}, 4104),
    "a word boost that is no Unicode": ({"word_boost": '["\\ud800"]'}, 4104),
    "a word boost too long": ({"word_boost": json.dumps(["a" * 2500])}, 4104),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_parameter_ends_with_its_code(service: Any, case: str) -> None:
    """An invalid parameter gives an error message and its close code, and no session begins."""
    how, expected = REFUSED[case]
    with open_stream(service.url, **how) as stream:
        messages, code = rest(stream)
    assert code == expected
    assert list(messages[0]) == ["error"]
    assert len(messages) == 1


MISSENT: dict[str, tuple[Any, int]] = {
    "too short": (bytes(3198), 4032),
    "too long": (bytes(64_004), 4033),
    "half a sample": (bytes(6401), 4034),
    "no base64": (json.dumps({"audio_data": "***"}), 4034),
    "letters that base64 does not have": ('{"audio_data": "ü"}', 4034),
    "no JSON": ("{terminate", 4100),
    "no object": ("[1]", 4101),
    "nothing known": ('{"pause": true}', 4101),
    "terminate that is not true": ('{"terminate_session": "yes"}', 4101),
    "too much silence": ('{"end_utterance_silence_threshold": 20001}', 4101),
}


@pytest.mark.parametrize("case", MISSENT)
def test_a_wrong_message_ends_with_its_code(service: Any, case: str) -> None:
    """An invalid message gives an error message and its close code."""
    sent, expected = MISSENT[case]
    with open_stream(service.url) as stream:
        stream.send(sent)
        messages, code = rest(stream)
    assert code == expected
    assert kinds(messages) == ["SessionBegins", None]
    assert messages[1]["error"]


@pytest.mark.parametrize("length", [3200, 64_000])
def test_the_shortest_and_the_longest_message_are_taken(service: Any, length: int) -> None:
    """Messages of exactly 100 ms and 2000 ms are accepted."""
    with open_stream(service.url) as stream:
        stream.send(bytes(length))
        stream.send('{"terminate_session": true}')
        assert rest(stream)[1] == 1000


@pytest.mark.parametrize(("sent", "silence_ms"), [("0", b"0"), ("300.0", b"300"), ("20000", b"20000")])
def test_a_threshold_is_a_whole_number_of_milliseconds(sent: str, silence_ms: bytes) -> None:
    """Both bounds are allowed, and whole numbers may have a decimal point."""
    record = record_of(f'{{"end_utterance_silence_threshold": {sent}}}')
    assert record == (realtime.SILENCE, silence_ms)


@pytest.mark.parametrize("sent", ["-1", "20001", "0.5", "true", '"300"', "null"])
def test_no_other_threshold_is_allowed(sent: str) -> None:
    """Numbers beyond the bounds, fractions, and values of other types are refused."""
    with pytest.raises(SessionRefusedError) as caught:
        record_of(f'{{"end_utterance_silence_threshold": {sent}}}')
    assert caught.value.code == 4101


def test_messages_after_the_end_are_discarded(service: Any) -> None:
    """Nothing that a client sends after `terminate_session` is an error."""
    with open_stream(service.url) as stream:
        stream.send(SECOND)
        stream.send('{"terminate_session": true}')
        stream.send("[1]")
        messages, code = rest(stream)
    assert (kinds(messages)[-1], code) == ("SessionTerminated", 1000)


def test_a_session_that_was_told_to_end_does_not_idle(limited: Any) -> None:
    """The limit without messages does not apply while the last words are decoded."""
    with open_stream(limited(idle_s=1.5)) as stream:
        stream.recv(20)
        listener = listeners(psutil.Process())[0]
        listener.suspend()
        stream.send('{"terminate_session": true}')
        time.sleep(2.0)
        listener.resume()
        assert rest(stream)[1] == 1000


def test_a_session_that_idles_is_closed(limited: Any) -> None:
    """A session without messages for too long is closed."""
    with open_stream(limited(idle_s=0.5)) as stream:
        messages, code = rest(stream)
    assert code == 4031
    assert kinds(messages) == ["SessionBegins", None]


def test_a_client_gets_its_pings_answered_while_the_engine_hangs(limited: Any) -> None:
    """A ping behind ten seconds of audio is answered although the engine hangs."""
    url = limited()
    with open_stream(url) as stream:
        stream.recv(20)
        listener = listeners(psutil.Process())[0]
        listener.suspend()
        for _ in range(10):
            stream.send(SECOND)
        assert stream.ping().wait(20)
        listener.resume()
        stream.send('{"terminate_session": true}')
        assert rest(stream)[1] == 1000


def test_a_machine_that_cannot_keep_up_ends_the_session(limited: Any) -> None:
    """A session ends with a temporary error if recognition falls too far behind."""
    with open_stream(limited(behind_s=0.5), sample_rate=48_000) as stream:
        stream.recv(20)
        listeners(psutil.Process())[0].suspend()
        with contextlib.suppress(ConnectionClosed):
            for _ in range(200):
                stream.send(bytes(9600))  # as it would be spoken
                time.sleep(0.1)
        messages, code = rest(stream)
    assert code == 1013
    assert "too busy to keep up" in messages[-1]["error"]


def test_a_session_lasts_only_so_long(limited: Any) -> None:
    """A session expires even if audio arrives; audio in real time is never too fast, however much it is."""
    with open_stream(limited(session_s=1.0, ahead_s=0.7)) as stream, contextlib.suppress(ConnectionClosed):
        while True:
            stream.send(SECOND[:6400])
            time.sleep(0.2)
    assert stream.close_code == 4008


def test_audio_that_comes_too_fast_is_refused(limited: Any) -> None:
    """Audio may be sent faster than real time only up to a limit."""
    with open_stream(limited(ahead_s=3.0)) as stream:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(100):
                stream.send(SECOND)
        assert rest(stream)[1] == 4029  # before the client closes, which does not wait long for a busy server


def test_sessions_are_bounded(limited: Any) -> None:
    """A session beyond the limit is refused; after another has ended, it is accepted."""
    url = limited(sessions=1)
    with open_stream(url) as first:
        assert json.loads(first.recv(20))["message_type"] == "SessionBegins"
        with open_stream(url) as second:
            assert rest(second)[1] == 4102
        first.send('{"terminate_session": true}')
        rest(first)
    until = time.monotonic() + 10
    while True:
        with open_stream(url) as third:
            with contextlib.suppress(ConnectionClosed):
                third.send('{"terminate_session": true}')
            if rest(third)[1] == 1000:
                return
        assert time.monotonic() < until


def listeners(service: psutil.Process, module: str = "voxframe_server.realtime.stream_worker") -> list[psutil.Process]:
    """Return the processes of the sessions of a server, or those of another module."""
    found = []
    for child in service.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if module in child.cmdline():
                found.append(child)
    return found


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, 10)
    return not alive


def test_an_engine_that_crashes_ends_the_session_only(service: Any) -> None:
    """If the worker process crashes, the client gets a temporary error, and the server continues."""
    with open_stream(service.url) as stream:
        stream.recv(20)
        (listener,) = listeners(psutil.Process(service.process.pid))
        listener.kill()
        messages, code = rest(stream)
    assert code == 1013
    assert "engine stopped" in messages[0]["error"]
    assert gone([listener])
    assert service.get("/v2/transcript").status_code == 200


def test_all_sessions_share_the_decoding_processes(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are at most as many decoding processes as cores, however many sessions there are."""
    monkeypatch.setattr(websocket, "cores", lambda: 2)
    url = limited(sessions=5)
    module = "voxframe_server.realtime.decode_pool"
    others = set(listeners(psutil.Process(), module))
    with contextlib.ExitStack() as sessions:
        for _ in range(5):
            assert json.loads(sessions.enter_context(open_stream(url)).recv(60))["message_type"] == "SessionBegins"
        assert 1 <= len(set(listeners(psutil.Process(), module)) - others) <= 2


def test_a_client_that_vanishes_leaves_nothing_behind(service: Any) -> None:
    """The worker process ends with the connection, however that ends."""
    with open_stream(service.url) as stream:
        stream.recv(20)
        stream.send(SECOND)
        found = listeners(psutil.Process(service.process.pid))
        assert len(found) == 1
        stream.socket.shutdown(socket.SHUT_RDWR)  # no close frame
        assert gone(found)


def test_speech_of_a_session_that_has_ended_is_not_decoded(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a client has disconnected, its requests that the decoding process has not begun are cancelled."""
    requested, decode = [], DecodePool.decode

    def record(*arguments: Any, **options: Any) -> Any:
        requested.append(decode(*arguments, **options))
        return requested[-1]

    monkeypatch.setattr(DecodePool, "decode", record)
    audio = speech()
    with open_stream(limited()) as stream:
        stream.recv(60)
        decoders = listeners(psutil.Process(), "voxframe_server.realtime.decode_pool")
        for process in decoders:
            process.suspend()
        for second in range(30):
            stream.send(audio[second * 32_000 : (second + 1) * 32_000])
        assert came_true(lambda: len(requested) > 3)
        stream.socket.shutdown(socket.SHUT_RDWR)
    assert came_true(lambda: sum(not future.done() for future in requested) <= 1)
    for process in decoders:
        process.resume()


def test_a_decoding_process_that_hangs_is_replaced(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not answer in time is ended, and another one decodes what it had been sent."""
    monkeypatch.setattr(decode_pool, "_LONGEST_S", 3.0)
    audio = speech()
    others = listeners(psutil.Process(), "voxframe_server.realtime.decode_pool")  # of earlier tests
    with open_stream(limited()) as stream:
        stream.recv(60)
        (process,) = set(listeners(psutil.Process(), "voxframe_server.realtime.decode_pool")) - set(others)
        process.suspend()
        for second in range(5):
            stream.send(audio[second * 32_000 : (second + 1) * 32_000])
        stream.send('{"terminate_session": true}')
        messages, code = rest(stream)
    assert any(message["text"] for message in messages if message.get("message_type") == "FinalTranscript")
    assert code == 1000
    assert not process.is_running()


def came_true(condition: Callable[[], bool], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_token_opens_one_session(service: Any) -> None:
    """A token opens one session without the key, and no second one."""
    answer = service.request("POST", "/v2/realtime/token", json={"expires_in": 60})
    token = answer.json()["token"]
    for expected in (1000, 4001):
        with open_stream(service.url, key=None, token=token) as stream:
            with contextlib.suppress(ConnectionClosed):
                stream.send('{"terminate_session": true}')
            assert rest(stream)[1] == expected


def new_token(base_url: str) -> str:
    answer = requests.post(
        f"{base_url}/v2/realtime/token", json={"expires_in": 60}, headers={"Authorization": KEY}, timeout=20
    )
    return answer.json()["token"]


def opens_one_session(base_url: str, token: str) -> bool:
    """Return True if a token opens a session, and no second one."""
    codes = []
    for _ in range(2):
        with open_stream(base_url, key=None, token=token) as stream:
            with contextlib.suppress(ConnectionClosed):
                stream.send('{"terminate_session": true}')
            codes.append(rest(stream)[1])
    return codes == [1000, 4001]


@pytest.mark.parametrize("case", [case for case, (how, _) in REFUSED.items() if "key" not in how])
def test_a_session_refused_for_its_parameters_does_not_use_up_its_token(service: Any, case: str) -> None:
    """The same token opens a session once the parameters are valid."""
    how, expected = REFUSED[case]
    token = new_token(service.url)
    with open_stream(service.url, **{"key": None, "token": token} | how) as stream:
        assert rest(stream)[1] == expected
    assert opens_one_session(service.url, token)


def test_a_session_refused_for_lack_of_capacity_does_not_use_up_its_token(limited: Any) -> None:
    """The same token opens a session once another session has ended."""
    url = limited(sessions=1)
    token = new_token(url)
    with open_stream(url) as first:
        first.recv(20)
        for _ in range(2):
            with open_stream(url, key=None, token=token) as second:
                assert rest(second)[1] == 4102
        first.send('{"terminate_session": true}')
        rest(first)
    code, until = 4102, time.monotonic() + 10
    while code == 4102 and time.monotonic() < until:  # the first session is about to end
        with open_stream(url, key=None, token=token) as third:
            with contextlib.suppress(ConnectionClosed):
                third.send('{"terminate_session": true}')
            code = rest(third)[1]
    assert code == 1000


def test_a_session_whose_engine_does_not_start_does_not_use_up_its_token(
    limited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token stays valid if the engine does not start."""
    url = limited()
    token = new_token(url)
    with monkeypatch.context() as patch:
        patch.setattr(websocket.sys, "executable", "/bin/false")
        with open_stream(url, key=None, token=token) as stream:
            assert rest(stream)[1] == 1013
    assert opens_one_session(url, token)


def test_connections_without_a_key_take_no_capacity(limited: Any) -> None:
    """Unauthenticated clients that stay connected do not count as sessions."""
    url = limited(sessions=1)
    with contextlib.ExitStack() as strangers:
        for _ in range(5):
            strangers.enter_context(open_stream(url, key="wrong"))
        with open_stream(url) as stream:
            assert json.loads(stream.recv(20))["message_type"] == "SessionBegins"


def test_unknown_fields_of_a_token_request_are_named_if_it_is_refused(service: Any) -> None:
    """The header of a 400 names the misspelled field; that of a 200 names ignored ones."""
    refused = service.request("POST", "/v2/realtime/token", json={"expires-in": 60})
    assert (refused.status_code, refused.headers["X-Unknown-Fields"]) == (400, "expires-in")
    issued = service.request("POST", "/v2/realtime/token", json={"expires_in": 60, "extra": 1})
    assert (issued.status_code, issued.headers["X-Unknown-Fields"]) == (200, "extra")


@pytest.mark.parametrize("body", [{"expires_in": 59}, {"expires_in": 360_001}, {"expires_in": True}, {}, [60]])
def test_a_tokens_time_is_bounded(service: Any, body: Any) -> None:
    """A validity outside 60 to 360,000 s is an error."""
    answer = service.request("POST", "/v2/realtime/token", json=body)
    assert answer.status_code == 400
    assert "from 60 to 360000" in answer.json()["error"]


def test_a_token_needs_the_key(service: Any) -> None:
    """A token request without the key is refused."""
    answer = service.request("POST", "/v2/realtime/token", json={"expires_in": 60}, headers={"Authorization": "wrong"})
    assert answer.status_code == 401


def test_tokens_expire_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens expire, and expired tokens make room for new ones."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tokens = TokenStore(max_tokens=2)
    first, second = tokens.issue(60), tokens.issue(120)
    assert first is not None
    assert second is not None
    assert tokens.issue(60) is None
    now = 1059.0
    assert tokens.take(first) == 1060.0
    third = tokens.issue(60)
    assert third is not None
    now = 1120.5
    assert tokens.take(third) is None
    assert tokens.take(second) is None
    assert tokens.issue(60) is not None
    assert tokens.issue(60) is not None


def test_a_foreign_page_or_name_gets_no_connection(service: Any) -> None:
    """Connections from pages of other origins and with other host names are refused."""
    for headers, status in (
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": service.url.replace("127.0.0.1", "localhost")}, 403),
    ):
        with pytest.raises(InvalidStatus) as caught:
            open_stream(service.url, headers=headers)
        assert caught.value.response.status_code == status
    with open_stream(service.url, headers={"Origin": service.url}) as stream:
        assert json.loads(stream.recv(20))["message_type"] == "SessionBegins"


def test_every_code_the_service_sends_is_known_to_the_client() -> None:
    """Every close code of the server is a code of the API."""
    used = {code for _, code in (*REFUSED.values(), *MISSENT.values())} | {4008, 4029, 4031, 4102, 1013}
    assert used <= set(STREAM_ERRORS)


def test_the_log_shows_no_token(service: Any) -> None:
    """A token in a URL does not appear in the log."""
    token = service.request("POST", "/v2/realtime/token", json={"expires_in": 60}).json()["token"]
    with open_stream(service.url, key=None, token=token) as stream:
        stream.send('{"terminate_session": true}')
        rest(stream)
    log = service.log.read_text()
    assert "stream" in log
    assert token not in log
    assert KEY not in log


def test_pings_at_the_rate_of_clients_are_all_answered(service: Any) -> None:
    """All of 200 pings within a second are answered."""
    with open_stream(service.url) as stream:
        stream.recv(30)
        answered = [stream.ping(os.urandom(8)) for _ in range(200)]
        assert all(pong.wait(20) for pong in answered)
        stream.send('{"terminate_session": true}')
        assert rest(stream)[1] == 1000


def test_a_flood_of_messages_ends_its_session(service: Any) -> None:
    """Messages that arrive faster than they are processed end the session with code 4029."""
    with open_stream(service.url) as stream:
        stream.recv(30)
        listener = listeners(psutil.Process(service.process.pid))[0]
        listener.suspend()
        try:
            for _ in range(40_000):
                stream.send('{"force_end_utterance": true}')
        except ConnectionClosed:
            pass
        messages, code = rest(stream)
    assert code == 4029
    assert "10000 of them wait" in messages[-1]["error"]
    until = time.monotonic() + 40
    while listeners(psutil.Process(service.process.pid)):
        assert time.monotonic() < until
        time.sleep(0.1)
