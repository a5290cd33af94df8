"""Messages of a session and the decodes that it requests, with times counted in audio."""

import json
from itertools import pairwise

import numpy as np
import orjson
import pytest
from tests.benchmarks.streaming import decoded
from tests.server.local_stream import RATE, LocalStream

import voxframe
from voxframe.server import realtime
from voxframe.server.speech.engines import RecognizedWord

QUIET = np.zeros(RATE, np.int16)


def tick(samples):
    """Recognize one word per half second, named by its position."""
    return [RecognizedWord(f"w{n}", n * 500, n * 500 + 400, 0.5) for n in range(len(samples) * 2 // RATE)]


@pytest.fixture(scope="module")
def turns() -> list[np.ndarray]:
    """Return three seconds of each of the first turns of the interview."""
    path = voxframe.sample("interview")
    samples = decoded(path)
    starts = [turn["start_ms"] * 16 for turn in json.loads(path.with_suffix(".json").read_text())["turns"][:3]]
    return [samples[start : start + 3 * RATE] for start in starts]


def texts(messages):
    return [message["text"] for message in messages]


def test_partials_come_while_speech_goes_on_at_least_300_ms_apart(turns):
    """The first partial needs less than 0.8 s of speech, and each later one 300 ms more."""
    stream = LocalStream(tick)
    stream.send(np.concatenate([QUIET, turns[0], QUIET]))
    partials = stream.of("Partial")
    ends = [message["audio_end"] for message in partials]
    assert 1000 < ends[0] < 1800
    assert all(later - earlier >= 300 for earlier, later in pairwise(ends))
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts(partials)))
    assert {message["audio_start"] for message in stream.messages} == {partials[0]["audio_start"]}
    assert stream.messages[-1]["message_type"] == "FinalTranscript"


def test_a_final_is_decoded_at_a_pause_and_sent_at_the_end_of_the_utterance(turns):
    """The decode starts before the silence that ends the utterance is over, and is not repeated."""
    stream = LocalStream(tick, partials=False)
    stream.send(np.concatenate([turns[0][: 2 * RATE], QUIET[: RATE // 2]]))
    assert [priority for priority, _ in stream.decoded] == [realtime.FINAL]
    assert stream.messages == []
    stream.send(QUIET)
    assert len(stream.decoded) == 1
    assert len(stream.of("Final")) == len(stream.messages) == 1


def test_speech_after_a_short_pause_belongs_to_the_utterance(turns):
    """If speech goes on after a pause, it is decoded again, and one final has all of it."""
    stream = LocalStream(tick)
    stream.send(np.concatenate([turns[0][: 2 * RATE], QUIET[: RATE // 2], turns[1][: 2 * RATE], QUIET]))
    (final,) = stream.of("Final")
    assert len(final["words"]) >= 8
    lengths = [length for priority, length in stream.decoded if priority == realtime.FINAL]
    assert len(lengths) > 1
    assert lengths == sorted(lengths)


def test_the_last_partial_has_the_words_of_the_final(turns):
    """The result of the decode at a pause is sent as a partial before the utterance ends."""
    stream = LocalStream(tick)
    stream.send(np.concatenate([QUIET, turns[0], QUIET]))
    (final,) = stream.of("Final")
    assert stream.of("Partial")[-1]["text"].lower() == final["text"].lower().rstrip(".")


def test_long_speech_is_decoded_in_stretches(turns):
    """No decode is longer than 12 s, and the final has each word once, in order."""
    stream = LocalStream(tick)
    stream.recognizer.take(realtime.SILENCE, b"20000")
    stream.send(np.concatenate([part[: RATE * 2] for part in turns * 3]))
    stream.end()
    (final,) = stream.of("Final")
    assert max(length for _, length in stream.decoded) <= 12 * RATE
    starts = [word["start"] for word in final["words"]]
    assert starts == sorted(set(starts))
    assert len(starts) >= 30


def test_without_partials_only_finals_are_decoded(turns):
    """A session with partials disabled requests no decodes for them."""
    stream = LocalStream(tick, partials=False)
    stream.send(np.concatenate([turns[0], QUIET]))
    assert {priority for priority, _ in stream.decoded} == {realtime.FINAL}
    assert stream.of("Partial") == []


def test_finals_are_sent_in_the_order_of_speech(turns):
    """The final of an utterance waits for the decode of the one before it."""
    stream = LocalStream(tick, partials=False)
    requests = []
    stream.recognizer._decode = lambda *request: requests.append(request)
    stream.send(np.concatenate([turns[0], QUIET, turns[1], QUIET]))
    assert len(requests) >= 2
    for number, _, samples in reversed(requests):
        assert stream.messages == []
        stream.recognizer.take(realtime.WORDS, orjson.dumps([number, [tuple(word) for word in tick(samples)]]))
    first, second = stream.of("Final")
    assert first["audio_end"] <= second["audio_start"]


def test_a_cancelled_partial_is_followed_by_others(turns):
    """A partial whose decode the server has cancelled changes nothing."""
    stream = LocalStream(tick)
    requests = []
    stream.recognizer._decode = lambda *request: requests.append(request)
    stream.send(turns[0][: 2 * RATE])
    assert [priority for _, priority, _ in requests] == [realtime.FIRST_PARTIAL]  # one at a time
    stream.recognizer.take(realtime.WORDS, b"[%d,null]" % requests[0][0])
    stream.send(turns[0][2 * RATE :])
    assert len(requests) == 2
    assert stream.messages == []


def test_noise_without_words_gives_no_message(turns):
    """An utterance without words has a final only if the client has requested its end."""
    stream = LocalStream(lambda samples: [])
    stream.send(np.concatenate([turns[0], QUIET]))
    assert stream.messages == []
    stream.send(turns[1])
    stream.recognizer.take(realtime.END_UTTERANCE)
    stream.answer()
    assert texts(stream.messages) == [""]


def test_the_mark_of_unfinished_speech_is_not_shown(turns):
    """Models end unfinished speech with dots, which partials leave out."""
    stream = LocalStream(
        lambda samples: [RecognizedWord("Good", 0, 300, 0.9), RecognizedWord("morning...", 300, 600, 0.9)]
    )
    stream.send(np.concatenate([turns[0], QUIET]))
    assert set(texts(stream.of("Partial"))) == {"Good morning"}
