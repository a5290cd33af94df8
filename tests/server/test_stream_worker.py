"""Messages of a session and the decodes that it requests, with times counted in audio."""

import json
from itertools import pairwise

import numpy as np
import orjson
import pytest
from tests.benchmarks.streaming import decoded
from tests.server.local_stream import RATE, LocalStream

import voxframe
from voxframe_engine.speech import RecognizedWord
from voxframe_server import realtime

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
    assert stream.decoded[0][1] >= RATE // 2
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
    assert [word["end"] - word["start"] for word in final["words"]] == [400] * len(starts)


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


class HeldStream(LocalStream):
    """A session whose decodes wait until `reply` is called."""

    def answer(self) -> None:
        """Decode nothing."""

    @property
    def held(self) -> list[tuple[int, int, np.ndarray]]:
        """Number, priority and samples of each decode without a reply."""
        return self._requests

    def reply(self, priority: int, *words: tuple[str, int, int]) -> None:
        """Reply with words to the first decode of a priority."""
        request = next(request for request in self._requests if request[1] == priority)
        self._requests.remove(request)
        self.recognizer.take(realtime.WORDS, orjson.dumps([request[0], [[*word, 0.5] for word in words]]))


@pytest.mark.parametrize("final_first", [True, False])
def test_words_of_less_sound_replace_none_of_more(turns, final_first):
    """A partial is neither shown nor kept if the decode at the pause, which has more sound, is requested or done."""
    stream = HeldStream(tick)
    stream.send(np.concatenate([turns[0][: 2 * RATE], QUIET[: RATE // 2]]))
    assert [priority for _, priority, _ in stream.held] == [realtime.FIRST_PARTIAL, realtime.FINAL]
    early, late = (realtime.FIRST_PARTIAL, ("early", 0, 300)), (realtime.FINAL, ("late", 0, 300), ("words", 300, 600))
    for reply in (late, early) if final_first else (early, late):
        stream.reply(*reply)
    assert texts(stream.of("Partial")) == ["late words"]
    stream.send(QUIET)
    (final,) = stream.of("Final")
    assert final["text"].lower().rstrip(".") == "late words"


def test_a_word_after_the_end_of_speech_is_left_out(turns):
    """Models may put a word into the silence after the speech."""
    stream = HeldStream(tick, partials=False)
    stream.send(np.concatenate([turns[0][: 2 * RATE], QUIET]))
    stream.reply(realtime.FINAL, ("Good.", 0, 300), ("Bye.", 60_000, 60_300))
    assert texts(stream.of("Final")) == ["Good."]


def test_a_partial_is_always_followed_by_a_final(turns):
    """If the last decode has no words, the final is empty, so that clients remove the partial."""
    stream = HeldStream(tick)
    stream.send(turns[0][: 2 * RATE])
    stream.reply(realtime.FIRST_PARTIAL, ("hm", 0, 300))
    stream.send(QUIET)
    stream.reply(realtime.FINAL)
    assert [(message["message_type"], message["text"]) for message in stream.messages] == [
        ("PartialTranscript", "hm"),
        ("FinalTranscript", ""),
    ]


def test_slow_decodes_give_fewer_partials(turns):
    """A decode that took half a second is followed by the next one after one and a half, not after 0.3 s."""
    stream = HeldStream(tick)
    at = requested = 0
    speech = np.concatenate(turns)
    while not stream.held:
        stream.send(speech[at : at + RATE // 10])
        at += RATE // 10
    requested = at
    stream.send(speech[at : at + RATE // 2])
    at += RATE // 2
    stream.reply(realtime.FIRST_PARTIAL, ("hm", 0, 300))
    while not any(priority == realtime.PARTIAL for _, priority, _ in stream.held):
        stream.send(speech[at : at + RATE // 10])
        at += RATE // 10
    assert at - requested >= 1.5 * RATE
