"""Latency and accuracy of streaming, with several sessions at the same time.

    python -m tests.benchmarks streaming [--sessions N] [--seconds S] [--engine NAME] [--audio DIR]

Each session streams phrases in real time, 100 ms at a time, with 1.2 s of silence after each, in an order of its own.
"First partial" is the time from the start of speech in a phrase to the first partial of it; "final" the time from the
end of speech to its last final, which includes the 0.7 s of silence that end an utterance. Start and end are those of
sound above 5 % of the loud parts. "Words wrong" compares finals, the last partial before each final, and a batch
transcript of the same sound with the reference. On a busy machine, it measures that.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import tempfile
import threading
import time
import wave
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import voxframe
from tests.benchmarks.speech import edits, of_folder, words_of
from tests.server.conftest import KEY, Service

RATE = 16_000
CHUNK = RATE // 10
_QUIET = np.zeros(round(1.2 * RATE), np.int16)


class Phrase(NamedTuple):
    """Sound and the words spoken in it."""

    samples: np.ndarray
    reference: str


class Spoken(NamedTuple):
    """A phrase in a session: start and end of its speech in s of audio, and its words."""

    start: float
    end: float
    reference: str


class Timed(NamedTuple):
    """A message with the time at which it came, in s after the first audio."""

    came: float
    message: dict[str, Any]


def decoded(path: Path) -> np.ndarray:
    """Return the mono samples of a recording."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    with av.open(str(path)) as file:
        frames = [out for frame in file.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in [*frames, *resampler.resample(None)]])


def turns() -> list[Phrase]:
    """Return the turns of the interview in `data/`."""
    interview = voxframe.sample("interview")
    samples = decoded(interview)
    return [
        Phrase(
            samples[turn["start_ms"] * RATE // 1000 : turn["end_ms"] * RATE // 1000],
            words_of(" ".join(word["text"] for word in turn["words"])),
        )
        for turn in json.loads(interview.with_suffix(".json").read_text())["turns"]
    ]


def script(phrases: list[Phrase], seconds: float, first: int) -> tuple[np.ndarray, list[Spoken]]:
    """Return the sound of a session, which begins with phrase `first`, and its phrases."""
    pieces, spoken, length = [_QUIET], [], len(_QUIET)
    for phrase in (phrases[first % len(phrases) :] + phrases[: first % len(phrases)]) * 10:
        if length >= seconds * RATE:
            break
        start, end = loud(phrase.samples)
        spoken.append(Spoken(length / RATE + start, length / RATE + end, phrase.reference))
        pieces += [phrase.samples, _QUIET]
        length += len(phrase.samples) + len(_QUIET)
    joined = np.concatenate(pieces)
    return joined[: len(joined) // CHUNK * CHUNK], spoken


def loud(samples: np.ndarray) -> tuple[float, float]:
    """Return the start and end of the sound that is loud enough to be speech, in s."""
    frames = samples[: len(samples) // 320 * 320].astype(float).reshape(-1, 320)
    level = np.sqrt(np.mean(frames**2, axis=1))
    above = np.flatnonzero(level > 0.05 * np.percentile(level, 95))
    return above[0] * 0.02, (above[-1] + 1) * 0.02


def open_session(url: str) -> ClientConnection:
    """Open a session. The first message says whether it begins."""
    return connect(
        f"{url.replace('http', 'ws', 1)}/v2/realtime/ws?sample_rate={RATE}",
        additional_headers={"Authorization": KEY},
        open_timeout=60,
    )


def session(url: str, samples: np.ndarray, begin: threading.Barrier) -> list[Timed]:
    """Stream samples in real time, beginning with the other sessions, and return the transcripts."""
    messages: list[Timed] = []
    with open_session(url) as stream:
        first = json.loads(stream.recv(60))
        assert "error" not in first, first
        begin.wait(120)
        begun = time.monotonic()

        def listen() -> None:
            messages.extend(Timed(time.monotonic() - begun, json.loads(text)) for text in stream)

        listener = threading.Thread(target=listen)
        listener.start()
        for at in range(0, len(samples), CHUNK):
            time.sleep(max(0.0, begun + (at + CHUNK) / RATE - time.monotonic()))
            stream.send(samples[at : at + CHUNK].tobytes())
        stream.send(json.dumps({"terminate_session": True}))
        listener.join(120)
    assert messages[-1].message["message_type"] == "SessionTerminated", messages[-1]
    return messages


class Results:
    """Latencies in s, and edits of words, over sessions."""

    def __init__(self) -> None:
        self.partials: list[float] = []
        self.finals: list[float] = []
        self.edits = {"finals": 0, "last partials": 0, "batch": 0}
        self.words = 0
        self.missed = 0

    def add(self, messages: list[Timed], spoken: list[Spoken]) -> None:
        """Add the messages of a session."""
        for phrase in spoken:
            within = [
                timed
                for timed in messages
                if phrase.start - 0.8 <= timed.message.get("audio_start", -1e9) / 1000 <= phrase.end
            ]
            partials = [timed for timed in within if timed.message["message_type"] == "PartialTranscript"]
            finals = [timed for timed in within if timed.message["message_type"] == "FinalTranscript"]
            self.partials += [timed.came - phrase.start for timed in partials[:1]]
            self.finals += [timed.came - phrase.end for timed in finals[-1:]]
            self.missed += not partials
            last = {timed.message["audio_start"]: timed.message["text"] for timed in partials}
            self.words += len(phrase.reference.split())
            self.edits["finals"] += edits(phrase.reference, joined(timed.message["text"] for timed in finals))
            self.edits["last partials"] += edits(phrase.reference, joined(last.values()))

    def add_batch(self, service: Service, samples: np.ndarray, spoken: list[Spoken]) -> None:
        """Add the batch transcript of the sound of a session, with the model of streaming."""
        held = io.BytesIO()
        with wave.open(held, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(samples.tobytes())
        job = service.create(service.upload(held.getvalue()), speech_model="nano")
        text = service.wait(job["id"])["text"]
        self.edits["batch"] += edits(joined(phrase.reference for phrase in spoken), words_of(text))

    def print(self) -> None:
        """Print the figures."""
        for name, values in (
            ("first partial after speech starts", self.partials),
            ("final after speech ends", self.finals),
        ):
            print(f"{name}: median {statistics.median(values):.2f} s, 95 % {np.percentile(values, 95):.2f} s")
        print(
            f"words wrong, of {self.words}: "
            + ", ".join(f"{name} {count / self.words:.1%}" for name, count in self.edits.items())
        )
        if self.missed:
            print(f"{self.missed} phrases without a partial")


def joined(texts: Any) -> str:
    """Return texts as words to compare."""
    return words_of(" ".join(texts))


def refusal(url: str) -> int | None:
    """Return the close code of a session that the server does not take, or None if it begins."""
    with open_session(url) as stream:
        try:
            while json.loads(stream.recv(60)).get("message_type") != "SessionBegins":
                pass
        except ConnectionClosed:
            return stream.close_code
    return None


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks streaming", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=4, help="sessions at the same time (default: 4)")
    parser.add_argument("--seconds", type=float, default=60, help="length of a session (default: 60)")
    parser.add_argument("--engine", help="speech engine (default: the server's)")
    parser.add_argument(
        "--audio",
        type=Path,
        default=os.environ.get("VOXFRAME_TEST_AUDIO"),
        help="folder of real recordings with a README.md that lists them (default: VOXFRAME_TEST_AUDIO, else data/)",
    )
    asked = parser.parse_args(arguments)
    if asked.audio:
        phrases = [Phrase(decoded(each.path), each.channels[0]) for each in of_folder(Path(asked.audio))]
    else:
        phrases = turns()
    step = max(1, len(phrases) // asked.sessions)
    scripts = [script(phrases, asked.seconds, number * step) for number in range(asked.sessions)]
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", *(("--engine", asked.engine) if asked.engine else ()))
        try:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
            begin = threading.Barrier(asked.sessions + 1)
            heard: dict[int, list[Timed]] = {}

            def run(number: int) -> None:
                heard[number] = session(service.url, scripts[number][0], begin)

            threads = [threading.Thread(target=run, args=(number,)) for number in range(asked.sessions)]
            for thread in threads:
                thread.start()
            begin.wait(120)
            before = processor_s(service)
            code = refusal(service.url)
            print(f"{asked.sessions} sessions begin; another one " + (f"is refused with {code}" if code else "begins"))
            for thread in threads:
                thread.join()
            spent = processor_s(service) - before
            results = Results()
            for number, (samples, spoken) in enumerate(scripts):
                results.add(heard[number], spoken)
                results.add_batch(service, samples, spoken)
            results.print()
            seconds = sum(len(samples) for samples, _ in scripts) / RATE
            print(f"processor time per second of audio: {spent / seconds:.2f} s")
        finally:
            service.stop()
    return 0


def processor_s(service: Service) -> float:
    """Return the processor time of a server and of its decoding processes, in s."""
    server = psutil.Process(service.process.pid)
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    return sum(each.user + each.system for each in times)
