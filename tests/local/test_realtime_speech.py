"""Real speech through the socket, with the client: what is heard, when, and that nothing else has to wait for it."""

import contextlib
import json
import re
import statistics
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import jiwer
import numpy as np
import psutil
import pytest

import voxframe
from voxframe.errors import StreamUnavailableError
from voxframe.service.stream import Stream
from voxframe.service.stream_messages import Final, Partial
from voxframe.settings import Secret

pytestmark = pytest.mark.speech

RATE = 16_000


def decoded(path: Path, rate: int = RATE) -> np.ndarray:
    """Mono samples of a recording."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    with av.open(str(path)) as file:
        frames = [out for frame in file.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in [*frames, *resampler.resample(None)]])


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    """What is said in the interview, and when."""
    return json.loads(voxframe.sample("interview").with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def interview() -> np.ndarray:
    return decoded(voxframe.sample("interview"))


@pytest.fixture
def stream(service: Any) -> Callable[..., Stream]:
    def make(source: Any, **how: Any) -> Stream:
        how = {"url": service.url.replace("http", "ws", 1), "key": Secret("a-key-for-tests"), "realtime": False} | how
        return Stream(source, **how)

    return make


def plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def said(truth: dict[str, Any], until_ms: int) -> str:
    return plain(" ".join(w["text"] for turn in truth["turns"] for w in turn["words"] if w["end_ms"] <= until_ms))


def turn_end(truth: dict[str, Any], after_ms: int) -> int:
    """End of the first turn that ends after that, with a little silence."""
    return next(turn["end_ms"] for turn in truth["turns"] if turn["end_ms"] > after_ms) + 200


def test_what_is_said_is_heard_with_its_times(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """Finals hold what was said, in order, with the times at which it was said; partials came before them."""
    end = turn_end(truth, 15_000)
    session = stream(interview[: end * RATE // 1000].tobytes(), sample_rate=RATE)
    messages = list(session)
    finals = session.finals
    assert jiwer.wer(said(truth, end), plain(session.text)) < 0.3
    assert all(final.raw["punctuated"] and final.raw["text_formatted"] for final in finals)
    assert all(final.text[0].isupper() and final.text[-1] in ".?!" for final in finals if final.text)
    spans = [(final.start_ms, final.end_ms) for final in finals]
    assert spans == sorted(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    kinds = [type(message) for message in messages]
    assert Partial in kinds[: kinds.index(Final)]

    words = voxframe.load_stream_words(session, finals_only=True)
    assert words["confidence"].between(0, 1).all()
    assert (words["end_ms"] > words["start_ms"]).all()
    true_starts = {w["text"].lower(): w["start_ms"] for turn in truth["turns"] for w in turn["words"]}
    unique = {plain(w["text"]) for turn in truth["turns"] for w in turn["words"] if w["end_ms"] <= end}
    counts = [plain(w["text"]) for turn in truth["turns"] for w in turn["words"]]
    off = [
        abs(int(start) - true_starts[text])
        for text, start in zip(words["text"].map(plain), words["start_ms"], strict=True)
        if text in unique and counts.count(text) == 1 and text in true_starts
    ]
    assert len(off) > 5
    assert statistics.median(off) < 100


@pytest.mark.parametrize(("rate", "encoding", "most"), [(44_100, "pcm_s16le", 0.3), (8000, "pcm_mulaw", 0.9)])
def test_rates_and_encodings(stream: Any, truth: dict[str, Any], rate: int, encoding: str, most: float) -> None:
    """Other sample rates are heard as well; telephone quality far worse, as the engine says of itself."""
    end = turn_end(truth, 8000)
    source = decoded(voxframe.sample("interview"), rate)[: end * rate // 1000]
    if encoding == "pcm_mulaw":
        from voxframe.service.mulaw import encode

        data = encode(source)
    else:
        data = source.tobytes()
    session = stream(data, sample_rate=rate, encoding=encoding, partials=False, extra_session_information=True)
    messages = list(session)
    assert not any(isinstance(message, Partial) for message in messages)
    assert abs(messages[-2].audio_duration_s - end / 1000) < 0.2
    assert jiwer.wer(said(truth, end), plain(session.text)) < most


def two_phrases(interview: np.ndarray, truth: dict[str, Any]) -> np.ndarray:
    """Two turns with a second of silence between them."""
    first, second = (
        interview[turn["start_ms"] * RATE // 1000 : turn["end_ms"] * RATE // 1000] for turn in truth["turns"][:2]
    )
    quiet = np.zeros(RATE, np.int16)
    return np.concatenate([quiet, first[-3 * RATE :], quiet, second[: 3 * RATE], quiet, quiet])


def test_silence_ends_an_utterance(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """A second of silence ends an utterance, unless the client wants more of it."""
    audio = two_phrases(interview, truth).tobytes()
    usual = stream(audio, sample_rate=RATE, partials=False).wait()
    patient = stream(audio, sample_rate=RATE, partials=False, end_utterance_silence_threshold=3000).wait()
    assert len(usual) == 2
    assert len(patient) == 1
    assert patient[0].start_ms == usual[0].start_ms
    assert 4000 <= usual[1].start_ms <= 5200


def test_an_utterance_can_be_ended_by_the_client(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """Asked to, the service gives the final of what has been said so far, in the middle of speech."""
    start = truth["turns"][0]["start_ms"] * RATE // 1000
    speech = interview[start : start + 4 * RATE].tobytes()
    go_on = threading.Event()

    def source() -> Any:
        yield speech[: 2 * 2 * RATE]
        assert go_on.wait(60)
        yield speech[2 * 2 * RATE :]

    with stream(source(), sample_rate=RATE) as session:
        next(message for message in session if isinstance(message, Partial))
        session.force_end_utterance()
        final = next(message for message in session if isinstance(message, Final))
        go_on.set()
        rest = session.wait()[1:]
    assert final.end_ms <= 2100
    assert final.text
    assert rest
    assert rest[0].start_ms >= final.end_ms


def test_long_speech_is_cut(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """Who never pauses is not waited for: after 20 s of an utterance its final comes at the next short pause."""
    audio = interview[: 30 * RATE].tobytes()
    finals = stream(audio, sample_rate=RATE, end_utterance_silence_threshold=20_000, partials=False).wait()
    assert len(finals) >= 2
    assert all(final.end_ms - final.start_ms <= 40_000 for final in finals)


def test_the_socket_does_not_wait_for_speech(service: Any, stream: Any, interview: np.ndarray) -> None:
    """While two sessions are decoded as fast as can be, other requests are answered at once."""
    sessions = [stream(interview[: 10 * RATE].tobytes(), sample_rate=RATE).start() for _ in range(2)]
    for session in sessions:
        next(message for message in session if isinstance(message, Partial))
    taken = []
    while not all(session.ended for session in sessions):
        begun = time.monotonic()
        assert service.get("/v2/transcript").status_code == 200
        taken.append(time.monotonic() - begun)
        time.sleep(0.02)
    for session in sessions:
        session.wait()
    assert len(taken) > 20
    assert statistics.median(taken) < 0.1


def second_pass(service: Any) -> psutil.Process:
    """The process of the only session's second pass."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for child in psutil.Process(service.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it may just have ended
                if "voxframe.local.second_pass" in child.cmdline():
                    return child
        time.sleep(0.02)
    raise AssertionError("the service started no second pass for the session")


def test_partials_do_not_wait_for_the_final_before_them(
    service: Any, stream: Any, interview: np.ndarray, truth: dict[str, Any]
) -> None:
    """While the final of an utterance is worked on, the next is followed; then finals come in order, none too few."""
    session = stream(two_phrases(interview, truth).tobytes(), sample_rate=RATE).start()
    messages = iter(session)
    first = next(message for message in messages if isinstance(message, Partial))
    worker = second_pass(service)
    worker.suspend()
    try:
        following = next(
            message for message in messages if isinstance(message, Final) or message.start_ms > first.start_ms
        )
        assert isinstance(following, Partial)
    finally:
        worker.resume()
    finals = session.wait()
    assert [final.start_ms for final in finals] == [first.start_ms, following.start_ms]


def test_a_final_comes_in_time_without_a_second_pass(
    service: Any, stream: Any, interview: np.ndarray, truth: dict[str, Any]
) -> None:
    """Where the second pass is not done in time, the words of the first make the final, as sure as it is of them."""
    end = truth["turns"][0]["start_ms"] + 4000
    session = stream(interview[: end * RATE // 1000].tobytes(), sample_rate=RATE).start()
    worker = second_pass(service)
    next(message for message in session if isinstance(message, Partial))
    worker.suspend()
    finals = session.wait()
    assert len(finals) == 1
    assert jiwer.wer(said(truth, end), plain(finals[0].text)) < 0.6
    assert finals[0].text[-1] in ".?!"
    assert all(0 < word["confidence"] <= 1 for word in finals[0].raw["words"])
    assert finals[0].end_ms <= end


def test_a_second_pass_that_crashes_ends_the_session(service: Any, stream: Any, interview: np.ndarray) -> None:
    """The client hears of a passing condition, and does not wait for finals for ever."""
    session = stream(interview[: 5 * RATE].tobytes(), sample_rate=RATE).start()
    second_pass(service).kill()
    with pytest.raises(StreamUnavailableError, match="engine stopped"):
        session.wait(60)


def test_real_speech(stream: Any, audio_folder: Path) -> None:
    """A reading by a real person is understood about as well as in a transcript of the file."""
    lines = dict(re.findall(r"\| (ss-\S+) \| [^|]*\| ([^|]*) \|", (audio_folder / "README.md").read_text()))
    texts = {
        name: plain(stream(audio_folder / name, partials=False).wait()[0].text)
        for name in ("ss-0870.wav", "ss-0920.wav")
    }
    assert jiwer.wer([plain(lines[name]) for name in texts], list(texts.values())) < 0.35
