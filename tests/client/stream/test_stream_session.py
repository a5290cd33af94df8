import asyncio
import json
import subprocess
import sys
import textwrap
import threading
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from voxframe.client.client import Client
from voxframe.client.stream import Stream
from voxframe.client.stream.messages import (
    Final,
    Message,
    MessageBuffer,
    Partial,
    SessionBegins,
    SessionInformation,
    SessionTerminated,
    read,
)
from voxframe.errors import OptionError, ServiceError
from voxframe.settings import Secret, Settings

Make = Callable[..., Stream]
SECOND = bytes(32_000)


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Final)]


def test_iterating_gives_every_message_in_order(stream: Make, speech: Path) -> None:
    """Iteration yields all messages of a session in order."""
    messages = list(stream(speech, extra_session_information=True))
    assert isinstance(messages[0], SessionBegins)
    assert texts(messages) == ["second 1", "second 2", "second 3"]
    assert sum(isinstance(message, Partial) for message in messages) > 2
    assert isinstance(messages[-2], SessionInformation)
    assert messages[-2].audio_duration_s == 2.5
    assert isinstance(messages[-1], SessionTerminated)
    assert [message.idx for message in messages] == list(range(len(messages)))


def test_the_documented_final_is_read(payload_folder: Path) -> None:
    """A final has the fields of the documented message; those that it lacks are None."""
    data = (payload_folder / "realtime-FinalTranscript.json").read_bytes()
    expected = json.loads(data)
    final = read(data, session_id="s", idx=1)
    assert isinstance(final, Final)
    assert (final.text, final.start_ms, final.end_ms) == (expected["text"], 5310, 25_580)
    assert (final.punctuated, final.text_formatted) == (expected["punctuated"], expected["text_formatted"])
    assert [word.text for word in final.words] == [word["text"] for word in expected["words"]]
    bare = read('{"message_type": "FinalTranscript", "punctuated": "yes"}', session_id="s", idx=2)
    assert isinstance(bare, Final)
    assert (bare.text, bare.punctuated, bare.text_formatted) == ("", None, None)


def test_async_for_gives_the_same(stream: Make, speech: Path) -> None:
    """`async with` and `async for` yield the same messages on the caller's loop."""

    async def collect() -> list[Message]:
        async with stream(speech) as session:
            return [message async for message in session]

    assert texts(asyncio.run(collect())) == ["second 1", "second 2", "second 3"]


def test_the_audio_arrives_byte_for_byte(stream: Make, speech: Path, peer: "Peer") -> None:  # noqa: F821
    """The samples of a plain wav file arrive unchanged, in messages of 100 to 2000 ms."""
    stream(speech).wait()
    with wave.open(str(speech)) as file:
        samples = file.readframes(file.getnframes())
    session = peer.sessions[0]
    assert b"".join(session.frames) == samples
    assert all(3200 <= len(frame) <= 64_000 for frame in session.frames)


def test_words_have_times(stream: Make) -> None:
    """A final has words with times and confidences."""
    final = stream(SECOND).wait()[0]
    assert [(w.text, w.start_ms, w.end_ms, w.confidence) for w in final.words] == [
        ("second", 0, 90, 0.5),
        ("1", 100, 190, 0.5),
    ]
    assert (final.start_ms, final.end_ms, final.created.isoformat()) == (0, 1000, "2026-01-02T03:04:05.678901+00:00")


def test_terminate_returns_the_finals_not_seen_yet(stream: Make) -> None:
    """`terminate` stops the source and returns the finals that were not iterated."""
    endless = iter(lambda: SECOND[:6400], b"")
    with stream(endless, realtime=True) as session:
        for message in session:
            if isinstance(message, Final):
                break
        rest = session.terminate()
    assert message.text == "second 1"
    assert texts(rest)[-1:] != ["second 1"]
    assert texts([message, *rest]) == texts(session.finals)
    assert isinstance(session.messages[-1], SessionTerminated)


def test_leaving_the_block_ends_the_session(stream: Make) -> None:
    """Leaving the `with` block waits for the remaining finals."""
    with stream(SECOND) as session:
        pass
    assert session.ended
    assert isinstance(session.messages[-1], SessionTerminated)


def test_an_error_in_the_block_does_not_wait(stream: Make) -> None:
    """An exception in the `with` block is raised at once, and the connection is closed."""
    session = stream(iter(lambda: SECOND, b""), realtime=True)
    with pytest.raises(KeyboardInterrupt), session:
        raise KeyboardInterrupt
    until = time.monotonic() + 5
    while not session.ended and time.monotonic() < until:
        time.sleep(0.01)
    assert session.ended


def test_callbacks_get_partials_and_finals_in_order(stream: Make, speech: Path) -> None:
    """Callbacks receive each message once and in order, and may call the session."""
    seen: list[str] = []
    threads: set[str] = set()

    def note(message: Message) -> None:
        seen.append(type(message).__name__)
        threads.add(threading.current_thread().name)

    finals = stream(speech, on_partial=note, on_final=note).wait()
    assert seen.count("Final") == len(finals) == 3
    assert seen.count("Partial") > 2
    assert threads == {"voxframe-stream-callbacks"}


def test_an_error_in_a_callback_is_raised_at_the_end(stream: Make, speech: Path) -> None:
    """An exception in a callback is raised at the end of the session."""

    def fail(_: Final) -> None:
        raise ZeroDivisionError("in the callback")

    session = stream(speech, on_final=fail)
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        session.wait()
    assert len(session.finals) == 3


def test_options_reach_the_service(stream: Make, peer: "Peer") -> None:  # noqa: F821
    """Options are sent as the documented query parameters."""
    stream(
        bytes(8000),
        sample_rate=8000,
        encoding="pcm_mulaw",
        word_boost=(word for word in ("Ilse", "tree survey", "größe")),
        partials=False,
        extra_session_information=True,
        end_utterance_silence_threshold=300,
    ).wait()
    session = peer.sessions[0]
    assert session.query == {
        "sample_rate": "8000",
        "encoding": "pcm_mulaw",
        "word_boost": '["Ilse","tree survey","größe"]',
        "disable_partial_transcripts": "true",
        "enable_extra_session_information": "true",
    }
    assert session.headers["Authorization"] == "a-key-for-the-peer"
    assert session.heard == [{"end_utterance_silence_threshold": 300}, {"terminate_session": True}]
    assert session.ms == 1000


def test_commands_reach_the_service(stream: Make, peer: "Peer") -> None:  # noqa: F821
    """Commands end the current utterance and change the silence threshold."""
    go_on = threading.Event()

    def source() -> Iterator[bytes]:
        yield SECOND[:9600]
        go_on.wait(10)

    with stream(source()) as session:
        next(message for message in session if isinstance(message, Partial))
        session.silence_threshold(1200)
        session.force_end_utterance()
        final = next(message for message in session if isinstance(message, Final))
        go_on.set()
    assert final.end_ms == 200
    assert peer.sessions[0].heard[:2] == [{"end_utterance_silence_threshold": 1200}, {"force_end_utterance": True}]


def test_a_temporary_token_is_sent_instead_of_the_key(stream: Make, peer: "Peer") -> None:  # noqa: F821
    """With a token, the key is not sent, and the token opens one session."""
    peer.tokens.add("token-1")
    assert stream(SECOND, token="token-1").wait()
    assert "Authorization" not in peer.sessions[0].headers
    assert peer.sessions[0].query["token"] == "token-1"


def test_unknown_and_invalid_messages_are_kept(stream: Make, peer: "Peer") -> None:  # noqa: F821
    """Messages of unknown types and frames that are not JSON are kept as messages."""

    async def odd(session: "Session") -> None:  # noqa: F821
        await session.begin()
        await session.say(message_type="SpeakerChanged", speaker="B")
        await session.connection.send("no json {")
        await session.say(
            message_type="FinalTranscript", text=7, words=[None, {"start": "12", "text": "x"}], audio_end=5.0
        )
        await session.connection.recv()
        await session.say(message_type="SessionTerminated")

    peer.script = odd
    session = stream(iter(()))
    messages = list(session)
    assert [type(message) for message in messages] == [SessionBegins, Message, Message, Final, SessionTerminated]
    assert messages[1].raw["speaker"] == "B"
    assert messages[2].message_type is None
    assert (messages[3].text, messages[3].words[0].start_ms, messages[3].end_ms) == ("7", 12, 5)


def test_old_partials_are_dropped(stream: Make) -> None:
    """Without a reader, a session keeps all finals but only the newest partials."""
    session = stream(SECOND * 20, message_ms=100, keep_partials=5)
    assert len(session.wait()) == 20
    assert sum(isinstance(message, Partial) for message in session.messages) == 5


def test_audio_is_paced(stream: Make) -> None:
    """With realtime=True, two seconds of audio are not sent in less than their length."""
    begun = time.monotonic()
    stream(SECOND * 2, realtime=True).wait()
    assert time.monotonic() - begun >= 1.7  # the last message of 100 ms needs no pause


def test_a_slow_service_slows_the_source(stream: Make, peer: "Peer") -> None:  # noqa: F821
    """The source is read only as fast as the service accepts audio."""
    taken = 0
    go_on = asyncio.Event()

    def source() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(600):
            taken += 1
            yield SECOND

    async def stuck(session: "Session") -> None:  # noqa: F821
        await session.begin()
        session.connection.transport.pause_reading()
        await go_on.wait()
        session.connection.transport.resume_reading()
        async for data in session.connection:
            if isinstance(data, str) and "terminate" in data:
                await session.say(message_type="SessionTerminated")

    peer.script = stuck
    session = stream(source(), keepalive_s=30.0).start()
    time.sleep(1.5)
    held_back = taken
    assert not session.ended
    peer.loop.call_soon_threadsafe(go_on.set)
    session.wait(30)
    assert held_back < 30
    assert taken == 600


def test_memory_does_not_grow_with_the_audio(peer: "Peer") -> None:  # noqa: F821
    """Sending an hour of audio needs only a small part of its size in memory."""

    async def slow(session: "Session") -> None:  # noqa: F821
        await session.begin()
        async for data in session.connection:
            await asyncio.sleep(0)
            if isinstance(data, str) and "terminate" in data:
                await session.say(message_type="SessionTerminated")

    peer.script = slow
    script = f"""
        import resource, sys
        from voxframe.client.stream import Stream
        from voxframe.settings import Secret

        def hear(seconds):
            source = (bytes(32_000) for _ in range(seconds))
            how = dict(sample_rate=16_000, realtime=False, message_ms=2000)
            Stream(source, url={peer.url!r}, key=Secret("a-key-for-the-peer"), **how).wait()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

        before = hear(60)
        print(hear(3600) - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100, check=True
    )
    grown = int(done.stdout)
    assert grown < 3600 * 32_000 / 10


def test_an_error_of_the_source_is_raised_at_the_end(stream: Make) -> None:
    """A source that fails ends the session normally; its error is raised after the finals."""

    def source() -> Iterator[bytes]:
        yield SECOND
        raise LookupError("the tape is torn")

    session = stream(source())
    with pytest.raises(LookupError, match="torn"):
        list(session)
    assert texts(session.finals) == ["second 1"]
    assert isinstance(session.messages[-1], SessionTerminated)


def test_a_source_of_other_values_is_refused(stream: Make) -> None:
    """A chunk that is not bytes raises an error with its type."""
    with pytest.raises(OptionError, match="returned a float; it must return bytes"):
        stream(iter([0.5])).wait()


def test_an_async_source_is_read_on_its_own_loop(stream: Make) -> None:
    """An async source is read on the caller's loop, or on the portal's if there is none."""

    async def talk(queue: asyncio.Queue[bytes]) -> list[Final]:
        async def source():
            while chunk := await queue.get():
                yield chunk

        async with stream(source()) as session:
            for chunk in (SECOND, SECOND, b""):
                await queue.put(chunk)
            return await session.wait_async()

    async def run() -> list[Final]:
        return await talk(asyncio.Queue())

    assert texts(asyncio.run(run())) == ["second 1", "second 2"]

    async def alone():
        yield SECOND

    assert texts(stream(alone()).wait()) == ["second 1"]


def test_a_sync_call_on_the_portal_is_refused(stream: Make) -> None:
    """A synchronous call on voxframe's own loop raises an error with the alternative."""
    from voxframe.client.async_bridge import PORTAL

    async def inside() -> None:
        stream(SECOND).wait()

    with pytest.raises(ServiceError, match="await its async version"):
        PORTAL.run(inside)


def test_a_timeout_leaves_the_session_running(stream: Make) -> None:
    """A timeout ends the wait, but not the session."""
    session = stream(iter(lambda: SECOND[:6400], b""), realtime=True)
    with pytest.raises(ServiceError, match=r"continues after 0.3 s"):
        session.wait(0.3)
    assert not session.ended
    session.terminate()


@pytest.fixture
def client(peer: Any, tmp_path: Path) -> Client:
    """A client with the streaming URL of the service."""
    return Client(Settings("http://127.0.0.1:9", peer.url, "llm", Secret("a-key-for-the-peer"), tmp_path))


def test_the_client_streams_to_its_streaming_url(client: Client, speech: Path) -> None:
    """`client.stream` uses the URL and key of the client's settings."""
    with client.stream(speech, realtime=False) as session:
        finals = session.wait()
    assert [final.text for final in finals] == ["second 1", "second 2", "second 3"]


def test_a_token_replaces_the_key(client: Client, peer: Any, speech: Path) -> None:
    """With a token, the client's key is not sent."""
    peer.tokens.add("t-1")
    client.stream(speech, realtime=False, token="t-1").wait()
    assert "Authorization" not in peer.sessions[0].headers


def test_an_unknown_option_is_named(client: Client, speech: Path) -> None:
    """A misspelled option gives an error with a suggestion."""
    with pytest.raises(OptionError, match="sample_rate"):
        client.stream(speech, samplerate=8000)  # type: ignore[call-arg]


def test_a_buffer_keeps_the_newest_messages_that_may_be_lost() -> None:
    """Old partials and messages of unknown types are removed beyond a limit; all others are kept."""
    buffer = MessageBuffer(keep=2)
    for n in range(3):
        buffer.add(Final({}, idx=3 * n))
        buffer.add(Message({}, idx=3 * n + 1))
        buffer.add(Partial({}, idx=3 * n + 2))
    assert [message.idx for message in buffer.messages] == [0, 3, 6, 7, 8]


def test_the_first_error_of_a_session_is_kept() -> None:
    """A session ends once: what follows its end is no error of it."""
    buffer = MessageBuffer()
    first = ValueError("first")
    buffer.end(first)
    buffer.end()
    assert (buffer.ended, buffer.error) == (True, first)
