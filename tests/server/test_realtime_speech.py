"""Real speech through the streaming socket, with the client."""

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
from tests.benchmarks.speech import words_of

import voxframe
from voxframe.client.stream import Stream
from voxframe.client.stream.messages import Final, Partial
from voxframe.settings import Secret

pytestmark = [pytest.mark.speech, pytest.mark.long]

RATE = 16_000


def decoded(path: Path, rate: int = RATE) -> np.ndarray:
    """Return the mono samples of a recording."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    with av.open(str(path)) as file:
        frames = [out for frame in file.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in [*frames, *resampler.resample(None)]])


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    """Return the words of the interview and their times."""
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
    """Return the end of the first turn that ends after the given time, with a little silence."""
    return next(turn["end_ms"] for turn in truth["turns"] if turn["end_ms"] > after_ms) + 200


def test_what_is_said_is_heard_with_its_times(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """Finals contain the spoken words in order with their times, and partials come before them."""
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
    """Other sample rates work as well; telephone quality is much worse, as the engine documents."""
    end = turn_end(truth, 8000)
    source = decoded(voxframe.sample("interview"), rate)[: end * rate // 1000]
    if encoding == "pcm_mulaw":
        from voxframe.client.stream.audio import encode_mulaw

        data = encode_mulaw(source)
    else:
        data = source.tobytes()
    session = stream(data, sample_rate=rate, encoding=encoding, partials=False, extra_session_information=True)
    messages = list(session)
    assert not any(isinstance(message, Partial) for message in messages)
    assert abs(messages[-2].audio_duration_s - end / 1000) < 0.2
    assert jiwer.wer(said(truth, end), plain(session.text)) < most


def two_phrases(interview: np.ndarray, truth: dict[str, Any]) -> np.ndarray:
    """Return two turns with a second of silence between them."""
    first, second = (
        interview[turn["start_ms"] * RATE // 1000 : turn["end_ms"] * RATE // 1000] for turn in truth["turns"][:2]
    )
    quiet = np.zeros(RATE, np.int16)
    return np.concatenate([quiet, first[-3 * RATE :], quiet, second[: 3 * RATE], quiet, quiet])


def test_silence_ends_an_utterance(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """A second of silence ends an utterance, unless the client sets a longer threshold."""
    audio = two_phrases(interview, truth).tobytes()
    usual = stream(audio, sample_rate=RATE, partials=False).wait()
    patient = stream(audio, sample_rate=RATE, partials=False, end_utterance_silence_threshold=3000).wait()
    assert len(usual) == 2
    assert len(patient) == 1
    assert patient[0].start_ms == usual[0].start_ms
    assert 4000 <= usual[1].start_ms <= 5200


def test_an_utterance_can_be_ended_by_the_client(stream: Any, interview: np.ndarray, truth: dict[str, Any]) -> None:
    """Forcing the end of an utterance in the middle of speech gives its final."""
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
    """After 20 s, an utterance ends at the next short pause."""
    audio = interview[: 30 * RATE].tobytes()
    finals = stream(audio, sample_rate=RATE, end_utterance_silence_threshold=20_000, partials=False).wait()
    assert len(finals) >= 2
    assert all(final.end_ms - final.start_ms <= 40_000 for final in finals)


def test_the_socket_does_not_wait_for_speech(service: Any, stream: Any, interview: np.ndarray) -> None:
    """Other requests are answered while two sessions are decoded at full speed."""
    sessions = [stream(interview[: 20 * RATE].tobytes(), sample_rate=RATE).start() for _ in range(2)]
    answered = 0
    while not all(session.ended for session in sessions):
        assert service.get("/v2/transcript").status_code == 200
        answered += 1
        time.sleep(0.02)
    for session in sessions:
        session.wait()
    assert answered > 5


def test_a_decoding_process_that_crashes_is_replaced(service: Any, stream: Any, interview: np.ndarray) -> None:
    """If the decoding processes are killed, others take over, and the session has all of its words."""
    session = stream(interview[: 5 * RATE].tobytes(), sample_rate=RATE).start()
    messages = iter(session)
    next(message for message in messages if isinstance(message, Partial))
    for child in psutil.Process(service.process.pid).children(recursive=True):
        if "voxframe_server.realtime.decode_pool" in child.cmdline():
            child.kill()
    finals = session.wait(120)
    assert finals[-1].end_ms > 4000
    assert len(" ".join(final.text for final in finals).split()) > 5


def test_no_text_on_sound_without_speech(stream: Any) -> None:
    """Silence, noise, hum and a chord, ten seconds each, have neither partials nor finals."""
    random = np.random.default_rng(13)
    time_s = np.arange(10 * RATE) / RATE
    hum = sum(np.sin(2 * np.pi * 50 * harmonic * time_s) / harmonic for harmonic in range(1, 8))
    chord = sum(np.sin(2 * np.pi * frequency * time_s) for frequency in (262, 330, 392))
    sounds = [np.zeros(len(time_s)), random.normal(0, 1500, len(time_s)), 3000 * hum, 3000 * chord]
    for sound in sounds:
        session = stream(np.clip(sound, -32768, 32767).astype(np.int16).tobytes(), sample_rate=RATE)
        assert [message for message in session if isinstance(message, Partial | Final)] == []


def test_boosted_words_reach_the_engine(stream: Any, audio_folder: Path) -> None:
    """Names are spelled as in the words to boost."""
    path = audio_folder / "ami-es2011a.wav"
    plain_text, boosted = (
        " ".join(final.text for final in stream(path, **how).wait())
        for how in ({}, {"word_boost": ["Abigail Claflin", "Abbie"]})
    )
    assert "Abbie" not in plain_text
    assert "Abigail Claflin" in boosted
    assert "Abbie" in boosted


def test_an_engine_that_writes_no_marks_serves(start: Any, stream: Any, interview: np.ndarray) -> None:
    """The engine of another package gives finals with marks, and partials unless they are disabled."""
    url = start("--engine", "parrot").url.replace("http", "ws", 1)
    audio = interview[: 4 * RATE].tobytes()
    for partials in (True, False):
        session = stream(audio, sample_rate=RATE, url=url, partials=partials, realtime=partials)
        messages = list(session)
        assert any(isinstance(message, Partial) for message in messages) == partials
        assert all(final.text[-1] in ".?!" for final in session.finals if final.text)


def test_real_speech(stream: Any, audio_folder: Path) -> None:
    """A reading by a real person is recognized about as well as in a transcript of the file."""
    lines = dict(re.findall(r"\| (ss-\S+) \| [^|]*\| ([^|]*) \|", (audio_folder / "README.md").read_text()))
    texts = {
        name: words_of(" ".join(final.text for final in stream(audio_folder / name, partials=False).wait()))
        for name in ("ss-0870.wav", "ss-0920.wav")
    }
    assert jiwer.wer([words_of(lines[name]) for name in texts], list(texts.values())) < 0.1
