"""How soon a stream's partials come, and whether several sessions at once keep up with real time.

    python -m tests.benchmarks streaming [SESSIONS] [SECONDS]

A recording is streamed as it is spoken, 100 ms at a time, with a second of silence after each turn, so that each is an
utterance. "After onset" is the time from the beginning of its first word, by the script, to the first partial of it;
finals wait at least for the 0.7 s of silence that end an utterance; "behind" is the time from the last audio to the end
of the session; "other requests" how long a list of transcripts takes meanwhile. On a busy machine it measures that.
"""

import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
from websockets.sync.client import connect

import voxframe
from tests.local.conftest import KEY, Service

RATE = 16_000
CHUNK = RATE // 10


def decoded(path: Path) -> np.ndarray:
    """Mono samples of a recording."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    with av.open(str(path)) as file:
        frames = [out for frame in file.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in [*frames, *resampler.resample(None)]])


def turns(seconds: float) -> tuple[np.ndarray, list[float]]:
    """The turns of a recording, each followed by a second of silence, and the second in which each begins."""
    interview = voxframe.sample("interview")
    samples, quiet = decoded(interview), np.zeros(RATE, np.int16)
    pieces, starts, length = [quiet], [], RATE
    for turn in json.loads(interview.with_suffix(".json").read_text())["turns"]:
        if length >= seconds * RATE:
            break
        said = samples[turn["start_ms"] * RATE // 1000 : turn["end_ms"] * RATE // 1000]
        starts.append(length / RATE)
        pieces += [said, quiet]
        length += len(said) + RATE
    joined = np.concatenate(pieces)
    return joined[: len(joined) // CHUNK * CHUNK], starts


def session(url: str, samples: np.ndarray) -> dict[str, Any] | None:
    """Stream samples as they are spoken; messages with the time they came, from the first audio. None: refused."""
    address = f"{url.replace('http', 'ws', 1)}/v2/realtime/ws?sample_rate={RATE}"
    messages: list[tuple[float, dict[str, Any]]] = []
    opened = time.monotonic()
    with connect(address, additional_headers={"Authorization": KEY}, open_timeout=30) as stream:
        first = json.loads(stream.recv(60))
        if "error" in first:
            print(f"refused: {first['error']}")
            return None
        begun = time.monotonic()

        def listen() -> None:
            messages.extend((time.monotonic() - begun, json.loads(text)) for text in stream)

        listener = threading.Thread(target=listen)
        listener.start()
        for at in range(0, len(samples), CHUNK):
            time.sleep(max(0.0, begun + (at + CHUNK) / RATE - time.monotonic()))
            stream.send(samples[at : at + CHUNK].tobytes())
        sent = time.monotonic() - begun
        stream.send(json.dumps({"terminate_session": True}))
        listener.join(120)
    return {"opened": begun - opened, "messages": messages, "behind": messages[-1][0] - sent}


def onsets(messages: list[tuple[float, dict[str, Any]]], starts: list[float]) -> list[float]:
    """Seconds from the onset of each utterance to its first partial; all its partials begin with it."""
    firsts = {}
    for came, message in messages:
        if message["message_type"] == "PartialTranscript":
            firsts.setdefault(message["audio_start"], (came, message))
    found = []
    for came, message in firsts.values():
        found += [came - at for at in starts if message["audio_start"] <= at * 1000 <= message["audio_end"]]
    return found


def waits(messages: list[tuple[float, dict[str, Any]]]) -> list[float]:
    """Seconds from the end of each utterance, as its final has it, to the final."""
    return [
        came - message["audio_end"] / 1000 for came, message in messages if message["message_type"] == "FinalTranscript"
    ]


def main(arguments: list[str]) -> int:
    """Print the figures."""
    several, seconds = (int(text) for text in (*arguments, *("4", "40")[len(arguments) :]))
    samples, starts = turns(seconds)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data")
        try:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
            alone = session(service.url, samples)
            assert alone is not None
            time.sleep(2)  # until the service has seen its end
            delays = onsets(alone["messages"], starts)
            print(f"one session: opened in {alone['opened']:.2f} s, behind {alone['behind']:.2f} s")
            print(f"first partial after onset: {', '.join(f'{delay * 1000:.0f}' for delay in delays)} ms")
            print(f"finals after the end of speech: {', '.join(f'{wait:.2f}' for wait in waits(alone['messages']))} s")
            ended: list[dict[str, Any] | None] = []
            threads = [
                threading.Thread(target=lambda: ended.append(session(service.url, samples))) for _ in range(several)
            ]
            for thread in threads:
                thread.start()
            taken = []
            while any(thread.is_alive() for thread in threads):
                begun = time.monotonic()
                assert service.get("/v2/transcript").status_code == 200
                taken.append(time.monotonic() - begun)
                time.sleep(0.05)
            results = [result for result in ended if result is not None]
            every = [delay for result in results for delay in onsets(result["messages"], starts)]
            behind = ", ".join(f"{result['behind']:.2f}" for result in results)
            print(f"{len(results)} of {several} sessions taken: behind {behind} s")
            print(
                f"first partial after onset: median {statistics.median(every) * 1000:.0f} ms, most {max(every):.2f} s"
            )
            finals = [wait for result in results for wait in waits(result["messages"])]
            print(f"finals after the end of speech: median {statistics.median(finals):.2f} s, most {max(finals):.2f} s")
            print(f"other requests: median {statistics.median(taken) * 1000:.0f} ms, most {max(taken) * 1000:.0f} ms")
        finally:
            service.stop()
    return 0
