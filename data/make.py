# ruff: noqa: INP001 a script, not a package
"""Make the sample recordings with their true words and times, and their payloads.

`python data/make.py` makes recordings and truth from the scripts. `python data/make.py payloads` transcribes the
recordings with the embedded server.

A script (`scripts/<name>.txt`) has the flite voice of each speaker, and the turns. Pauses are drawn from a random
generator that is seeded with the name of the recording, so the same script always gives the same samples. The times of
turns and words come from the voices and the assembly, not from a recognizer.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from flite import RATE, Spoken, speak

HERE = Path(__file__).parent
#: Recordings; True if each speaker has a channel.
STEREO = {"interview": False, "panel": False, "call": True, "meeting": False}

#: Options of the job for each payload.
OPTIONS: dict[str, dict] = {
    "interview": {"speaker_labels": True, "speakers_expected": 2},
    "panel": {"speaker_labels": True, "speakers_expected": 4},
    "call": {"multichannel": True},
    "meeting": {"speaker_labels": True, "speakers_expected": 3},
}
COMPARED = ("interview", "panel", "call")  # also transcribed with speech_model="nano"

LEAD_S, TAIL_S = 0.5, 0.7  # silence before the first and after the last word
TURN_PAUSE_S = (0.2, 0.8)  # shortest and longest pause between turns
SENTENCE_PAUSE_S = (0.25, 0.5)  # between sentences of a turn
OVERLAP_S = (0.3, 0.9)  # how much earlier a turn marked ~ begins
MARGIN_S = 0.06  # silence of the voice that is kept around a sentence, and faded
LOUDNESS = 1500.0  # root mean square of a sentence, of 32768


@dataclass(frozen=True)
class Line:
    """A turn of a script; it overlaps if it begins before the previous turn has ended."""

    speaker: str
    text: str
    overlaps: bool


def read_script(path: Path) -> tuple[dict[str, str], list[Line]]:
    """Return the voices of a script by speaker, and its turns."""
    voices: dict[str, str] = {}
    lines: list[Line] = []
    for number, row in enumerate(path.read_text().splitlines(), 1):
        if not row or row.startswith("#"):
            continue
        if voice := re.fullmatch(r"(\w+) = (\w+)", row):
            voices[voice[1]] = voice[2]
        elif turn := re.fullmatch(r"(\w+)(~?): (.+)", row):
            lines.append(Line(turn[1], turn[3], bool(turn[2])))
        else:
            raise SystemExit(f"{path.name}:{number}: neither 'A = voice', 'A: text' nor 'A~: text': {row!r}")
    return voices, lines


def _cut(spoken: Spoken) -> tuple[np.ndarray, float]:
    """Return a sentence at the same loudness as all others, and the start of its first word in s.

    The silence at both ends is cut to the margins.
    """
    first, last = spoken.words[0][1], spoken.words[-1][2]
    begin = max(0, round((first - MARGIN_S) * RATE))
    samples = spoken.samples[begin : round((last + MARGIN_S) * RATE)].astype(np.float64)
    samples *= LOUDNESS / np.sqrt(np.mean(samples**2))
    fade = np.linspace(0, 1, round(MARGIN_S / 2 * RATE))
    samples[: len(fade)] *= fade
    samples[-len(fade) :] *= fade[::-1]
    return samples, first - begin / RATE


def assemble(name: str, voices: dict[str, str], lines: list[Line], *, stereo: bool) -> tuple[np.ndarray, dict]:
    """Put the turns one after the other.

    Returns:
        int16 samples of shape (channels, n), and the truth with times in ms.
    """
    draw = random.Random(name)  # noqa: S311 pauses, not secrets
    speakers = list(voices)
    pieces: list[tuple[int, int, np.ndarray]] = []
    turns: list[dict] = []
    clock = finished = LEAD_S
    for index, line in enumerate(lines):
        if index:
            clock += -draw.uniform(*OVERLAP_S) if line.overlaps else draw.uniform(*TURN_PAUSE_S)
        channel = speakers.index(line.speaker) if stereo else 0
        words: list[dict] = []
        for sentence in re.findall(r"[^.?!]+[.?!]", line.text):
            if words:
                clock += draw.uniform(*SENTENCE_PAUSE_S)
            spoken = speak(sentence.strip(), voices[line.speaker])
            samples, lead = _cut(spoken)
            pieces.append((channel, round((clock - lead) * RATE), samples))
            shift = clock - spoken.words[0][1]
            words += [
                {"text": text, "start_ms": round((start + shift) * 1000), "end_ms": round((end + shift) * 1000)}
                for text, start, end in spoken.words
            ]
            clock = shift + spoken.words[-1][2]
        finished = clock = max(finished, clock)
        turns.append(
            {
                "speaker": line.speaker,
                "channel": channel,
                "text": line.text,
                "start_ms": words[0]["start_ms"],
                "end_ms": words[-1]["end_ms"],
                "words": words,
            }
        )
    duration_ms = round((clock + TAIL_S) * 1000)
    track = np.zeros((len(speakers) if stereo else 1, duration_ms * RATE // 1000))
    for channel, start, samples in pieces:
        track[channel, start : start + len(samples)] += samples
    audio = np.clip(np.round(track), -32768, 32767).astype(np.int16)
    truth = {
        "recording": f"{name}.flac",
        "duration_ms": duration_ms,
        "sample_rate": RATE,
        "channels": audio.shape[0],
        "voices": voices,
        "turns": turns,
    }
    return audio, truth


def write_flac(path: Path, audio: np.ndarray) -> None:
    """Write int16 samples of shape (channels, n) as FLAC."""
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        layout = "stereo" if len(audio) == 2 else "mono"
        stream = container.add_stream("flac", rate=RATE, layout=layout, options={"compression_level": "12"})
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(audio.T).reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate = RATE
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def make(name: str, folder: Path) -> None:
    """Write `<name>.flac` and `<name>.json` into the folder."""
    voices, lines = read_script(HERE / "scripts" / f"{name}.txt")
    audio, truth = assemble(name, voices, lines, stereo=STEREO[name])
    write_flac(folder / f"{name}.flac", audio)
    (folder / f"{name}.json").write_text(_tidy(truth))


def _tidy(truth: dict) -> str:
    """Return JSON with one word per line, so that a diff shows single words."""
    text = json.dumps(truth, indent=1)
    return (
        re.sub(r"\{\s+(\"text\": \".*\"),\s+(\"start_ms\": \d+),\s+(\"end_ms\": \d+)\s+\}", r"{\1, \2, \3}", text)
        + "\n"
    )


def make_payloads(folder: Path) -> None:
    """Write the responses of the embedded server to the folder, and those of its fast model to `nano`."""
    import voxframe

    (folder / "nano").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work, voxframe.connect(data_dir=work) as client:
        for name, options in OPTIONS.items():
            done = client.transcribe(HERE / f"{name}.flac", **options).raise_for_status()
            for view in ("transcript", "sentences", "paragraphs"):
                suffix = "" if view == "transcript" else f".{view}"
                (folder / f"{name}{suffix}.json").write_bytes(_stable(client.fetch(done.id, view), name, done.id))
        for name in COMPARED:
            done = client.transcribe(HERE / f"{name}.flac", **OPTIONS[name], speech_model="nano").raise_for_status()
            (folder / "nano" / f"{name}.json").write_bytes(_stable(client.fetch(done.id, "transcript"), name, done.id))


def _stable(payload: bytes, name: str, transcript_id: str) -> bytes:
    """Return the payload with an id, an upload name and a port that are the same each time."""
    stable_id = uuid.uuid5(uuid.NAMESPACE_URL, f"https://voxframe.example/{name}")
    payload = payload.replace(transcript_id.encode(), str(stable_id).encode())
    return re.sub(rb"http://127\.0\.0\.1:\d+/[^\s\"]*", b"http://127.0.0.1:8000/upload/" + name.encode(), payload)


def main() -> None:
    """Parse the command line, and write recordings or payloads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["recordings", "payloads"], default="recordings")
    parser.add_argument("--to", type=Path, help="folder to write into (default: data/ or data/payloads/)")
    given = parser.parse_args()
    folder = given.to or (HERE if given.what == "recordings" else HERE / "payloads")
    folder.mkdir(parents=True, exist_ok=True)
    if given.what == "payloads":
        make_payloads(folder)
        return
    for name in STEREO:
        make(name, folder)


if __name__ == "__main__":
    main()
