"""Accuracy, speed and memory: `python -m tests.benchmarks speech [--audio DIR] [--model NAME] [--peers] [--jobs]`.

Last, per kind of recording, voxframe against faster-whisper called directly with the same model on one core: as it
is, with its detection of speech, and batched. Kinds are read sentences, other languages (by characters if they are
written without spaces), the same sentences 1.7 times as fast, all of them in one recording with pauses of 0.5 to 6 s,
and the samples of `data/`. A ratio is voxframe's processor time by that of the other. With `--peers`, only this.

Word error rate: edits / words of the reference, lower case, without punctuation, with numbers and titles as words.
Real-time factor: processor seconds of a whole job on one core / seconds of audio, per channel if they are separate. A
job decodes the file, finds speech, recognizes it and labels speakers. Another job loads the models before.
With `--jobs`, only the time of jobs of the local server, in a new worker process that loads the model, and in the one
that is kept after it.

Memory: peak of a worker process. Word times: distance of the starts and ends of correct words from those of the truth.
Confidence: share of correct words per band of confidence. Speaker confusion: share of the time with a wrong speaker, of
the time in which both the truth and the transcript have one, for the best assignment of labels.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import statistics
import sys
import tempfile
import time
import wave
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import av
import jiwer
import numpy as np
import psutil
from threadpoolctl import threadpool_limits

from tests.server.conftest import Service
from voxframe import models
from voxframe_engine.speech import RATE
from voxframe_engine.speech.audio import Audio
from voxframe_engine.transcription import run_job

DATA = Path(__file__).parents[2] / "data"
PLAIN = {"punctuate": False, "format_text": False}
#: Options of each line of the report, by model.
MODELS = {"tiny.en": {"speech_model": "nano"}, "base": {"speech_model": "best"}}
_OTHER_LANGUAGES = {"French": "fr", "Mandarin": "zh"}
FAST = 1.7
_TITLES = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "prof": "professor"}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
STEP_MS = 10
#: Limits of the bands of confidence.
BANDS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.01)


@dataclass
class Recording:
    """A recording, who says what in it when (nothing is known of times in real ones), and how it is transcribed.

    `spoken` has the words of each channel with start and end in ms.
    """

    path: Path
    channels: list[str]
    speech: list[tuple[str, int, int]]
    options: dict[str, Any]
    spoken: list[list[tuple[str, int, int]]]


def words_of(text: str) -> str:
    """Return the words in the form in which they are compared."""
    text = re.sub(r"[^\w' ]", " ", re.sub(r"(?<=\d),(?=\d{3})", "", text.lower().replace("\u2019", "'")))
    spoken = (number(int(word)) if word.isdecimal() and len(word) < 7 else word for word in text.split())
    return " ".join(_TITLES.get(word, word) for word in spoken)


def number(value: int) -> str:
    """Return a number up to 999,999 in words, without "and"."""
    if value < 20:
        return _ONES[value]
    for unit, name in ((1000, "thousand"), (100, "hundred")):
        if value >= unit:
            rest = f" {number(value % unit)}" if value % unit else ""
            return f"{number(value // unit)} {name}{rest}"
    return _TENS[value // 10] + (f" {_ONES[value % 10]}" if value % 10 else "")


def of_project() -> Iterator[Recording]:
    """The samples in `data/`."""
    for path in sorted(DATA.glob("*.flac")):
        truth = json.loads(path.with_suffix(".json").read_text())
        words = sorted(
            ((turn["channel"], turn["speaker"], word) for turn in truth["turns"] for word in turn["words"]),
            key=lambda each: each[2]["start_ms"],
        )
        apart = truth["channels"] > 1
        spoken = [
            [(word["text"], word["start_ms"], word["end_ms"]) for at, _, word in words if at == channel or not apart]
            for channel in range(truth["channels"])
        ]
        texts = [words_of(" ".join(text for text, *_ in channel)) for channel in spoken]
        how = {"multichannel": True} if apart else {"speaker_labels": True, "speakers_expected": len(truth["voices"])}
        yield Recording(path, texts, [(who, word["start_ms"], word["end_ms"]) for _, who, word in words], how, spoken)


def of_folder(folder: Path) -> Iterator[Recording]:
    """Yield the English recordings of the table in the folder's README.md, with their references."""
    for line in (folder / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and (folder / cells[1]).is_file() and not cells[2].startswith(tuple(_OTHER_LANGUAGES)):
            yield Recording(folder / cells[1], [words_of(cells[3])], [], {}, [])


def other_languages(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield path, language and reference of the recordings of the folder in other languages."""
    for line in (folder / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        for name, code in _OTHER_LANGUAGES.items():
            if len(cells) == 5 and cells[2].startswith(name):
                yield folder / cells[1], code, cells[3]


def samples_of(path: Path) -> np.ndarray:
    """Return the mono samples of a recording at 16 kHz."""
    return np.concatenate(list(Audio(path).blocks()), axis=1)[0]


def faster(samples: np.ndarray) -> np.ndarray:
    """Return speech `FAST` times as fast, at the same pitch."""
    graph = av.filter.Graph()
    source = graph.add_abuffer(format="s16", sample_rate=RATE, layout="mono", time_base=Fraction(1, RATE))
    graph.link_nodes(source, graph.add("atempo", str(FAST)), graph.add("abuffersink")).configure()
    frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
    frame.sample_rate, frame.pts = RATE, 0
    graph.push(frame)
    graph.push(None)
    pieces = []
    while True:
        try:
            pieces.append(graph.pull().to_ndarray()[0])
        except (EOFError, av.EOFError):
            return np.concatenate(pieces)


def kinds(folder: Path | None, scratch: Path) -> Iterator[tuple[str, list[tuple[Path, str, str]]]]:
    """Yield kinds of recordings; each is a list of path, language and reference."""
    made = [(each.path, "en", each.channels[0]) for each in of_project() if len(each.channels) == 1]
    yield "made for the project", made
    if folder is None:
        return
    read = [(each.path, "en", each.channels[0]) for each in of_folder(folder)]
    yield "read sentences", read
    yield "other languages", list(other_languages(folder))
    sounds = [samples_of(path) for path, *_ in read]
    reference = " ".join(text for *_, text in read)
    pauses = [np.zeros(round(seconds * RATE), np.int16) for seconds in (0.5, 1.5, 6.0)]
    paused = np.concatenate([part for n, sound in enumerate(sounds) for part in (sound, pauses[n % 3])])
    for name, sound in (("fast speech", faster(np.concatenate(sounds))), ("with pauses", paused)):
        path = scratch / f"{name}.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(sound.astype("<i2").tobytes())
        yield name, [(path, "en", reference)]


def against_faster_whisper(folder: Path | None) -> None:
    """Print word error rates and processor times of voxframe and of faster-whisper with the same model, per kind."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    model = WhisperModel(str(models.find("base")), compute_type="int8", cpu_threads=1)
    batched = BatchedInferencePipeline(model)

    def text(heard: Any) -> str:
        return "".join(segment.text for segment in heard[0])

    ways = {
        "voxframe": lambda path, code: str(run_job(path, {"language_code": code, "disfluencies": True})["text"]),
        "direct": lambda path, code: text(model.transcribe(str(path), language=code, word_timestamps=True)),
        "with VAD": lambda path, code: text(
            model.transcribe(str(path), language=code, word_timestamps=True, vad_filter=True)
        ),
        "batched": lambda path, code: text(batched.transcribe(str(path), language=code, word_timestamps=True)),
    }
    print(f"{'kind':22}{'words':>6}" + "".join(f"{name:>18}" for name in ways))
    totals = {name: np.zeros(3) for name in ways}
    run_job(DATA / "call.flac", {"audio_end_at": 2000})  # loads the model
    with tempfile.TemporaryDirectory() as scratch:
        for kind, recordings in kinds(folder, Path(scratch)):
            sums = {name: np.zeros(3) for name in ways}
            for path, code, reference in recordings:
                expected = " ".join(words_of(reference).replace(" ", "")) if code == "zh" else words_of(reference)
                for name, way in ways.items():
                    begun = time.process_time()
                    heard = words_of(way(path, code))
                    spent = time.process_time() - begun
                    heard = " ".join(heard.replace(" ", "")) if code == "zh" else heard
                    sums[name] += (edits(expected, heard), len(expected.split()), spent)
            line(kind, sums)
            totals = {name: totals[name] + sums[name] for name in ways}
        line("all", totals)


def line(kind: str, sums: dict[str, Any]) -> None:
    """Print a line of word error rates and ratios of processor time."""
    ours = sums["voxframe"]
    cells = [f"{wrong / count:.3f} ({ours[2] / spent:.2f})" for wrong, count, spent in sums.values()]
    print(f"{kind:22}{ours[1]:6.0f}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def confusion(speech: list[tuple[str, int, int]], words: list[dict[str, Any]]) -> float:
    """Share of the time spoken in both truth and transcript that goes to the wrong speaker."""
    ends = [end for *_, end in speech] + [word["end"] for word in words]
    steps = max(ends) // STEP_MS + 1
    true = {who: np.zeros(steps, bool) for who, *_ in speech}
    given = {word["speaker"]: np.zeros(steps, bool) for word in words}
    for who, start, end in speech:
        true[who][start // STEP_MS : end // STEP_MS] = True
    for word in words:
        given[word["speaker"]][word["start"] // STEP_MS : word["end"] // STEP_MS] = True
    shared = np.array([[np.sum(a & b) for b in given.values()] for a in true.values()])
    if len(given) < len(true):
        shared = np.pad(shared, ((0, 0), (0, len(true) - len(given))))
    ways = permutations(range(shared.shape[1]), len(true))
    best = max(ways, key=lambda way: sum(shared[row, column] for row, column in enumerate(way)))
    right = np.zeros(steps, bool)
    for row, column in enumerate(best):
        if column < len(given):
            right |= list(true.values())[row] & list(given.values())[column]
    both = np.any(list(true.values()), axis=0) & np.any(list(given.values()), axis=0)
    return float(np.sum(both & ~right) / np.sum(both))


def edits(reference: str, heard: str) -> int:
    """Words to change, add or take away."""
    found = jiwer.process_words(reference, heard or "-")
    return found.substitutions + found.deletions + found.insertions


def measure(group: str, recordings: list[Recording], name: str) -> None:
    """Transcribe each recording on one core and print its figures, and those of all."""
    options = MODELS[name]
    run_job(recordings[0].path, options)  # loads the models
    print(f"\n{name}: {group}\n{'recording':16}{'audio s':>9}{'words':>7}{'WER':>7}{'real-time factor':>18}  speakers")
    sums = np.zeros(4)
    distances: list[int] = []
    sure: list[tuple[float, bool]] = []
    for recording in recordings:
        begun = time.process_time()
        result = run_job(recording.path, {**PLAIN, **options, **recording.options})
        spent = time.process_time() - begun
        found = [
            [word for word in result["words"] if word.get("channel") in (None, str(number))]
            for number in range(1, len(recording.channels) + 1)
        ]
        heard = [words_of(" ".join(word["text"] for word in words)) for words in found]
        for number, words in enumerate(found):
            spoken = recording.spoken[number] if recording.spoken else []
            compare_words(recording.channels[number], spoken, words, distances, sure)
        wrong = sum(map(edits, recording.channels, heard))
        count = sum(len(text.split()) for text in recording.channels)
        seconds = result["audio_duration"] * len(heard)
        sums += (seconds, count, wrong, spent)
        print(
            f"{recording.path.name:16}{seconds:9.0f}{count:7}{wrong / count:7.3f}{spent / seconds:18.2f}  "
            + (speakers(recording, result, name) if recording.speech else "")
        )
    seconds, count, wrong, spent = sums
    print(f"{'all':16}{seconds:9.0f}{count:7.0f}{wrong / count:7.3f}{spent / seconds:18.2f}")
    if distances:
        away = np.abs(distances)
        print(f"word times: median error {np.median(away):.0f} ms, {np.mean(away <= 200):.1%} within 200 ms")
    bands = [(low, [right for value, right in sure if low <= value < high]) for low, high in pairwise(BANDS)]
    print("confidence: " + ", ".join(f"from {low:g}: {np.mean(b):.1%} of {len(b)} right" for low, b in bands if b))


def compare_words(
    reference: str,
    spoken: list[tuple[str, int, int]],
    words: list[dict[str, Any]],
    distances: list[int],
    sure: list[tuple[float, bool]],
) -> None:
    """Append the errors of the times of correct words, and whether each word is correct, with its confidence."""
    heard = [(text, word) for word in words for text in words_of(word["text"]).split()]
    times = [(start, end) for text, start, end in spoken for _ in words_of(text).split()]
    pieces = jiwer.process_words(reference, " ".join(text for text, _ in heard) or "-").alignments[0]
    right = set()
    for piece in (piece for piece in pieces if piece.type == "equal"):
        right.update(range(piece.hyp_start_idx, piece.hyp_end_idx))
        for n in range(piece.ref_end_idx - piece.ref_start_idx) if times else ():
            start, end = times[piece.ref_start_idx + n]
            word = heard[piece.hyp_start_idx + n][1]
            if len(words_of(word["text"]).split()) == 1:  # not 2019, which is three words of the truth
                distances += (word["start"] - start, word["end"] - end)
    sure += [(word["confidence"], n in right) for n, (_, word) in enumerate(heard)]


def speakers(recording: Recording, result: dict[str, Any], name: str) -> str:
    """Return the speaker confusion with their number known and unknown, and the number found."""
    known = f"confusion {confusion(recording.speech, result['words']):.3f}"
    if recording.options.get("multichannel"):
        return f"{known}, by channel"
    options = MODELS[name]
    free = run_job(recording.path, {**PLAIN, **options, "speaker_labels": True})
    found = len({word["speaker"] for word in free["words"]})
    return (
        f"{known}, {recording.options['speakers_expected']} known; "
        f"{confusion(recording.speech, free['words']):.3f}, {found} found"
    )


def measure_memory(recordings: list[Recording], name: str) -> None:
    """Print the peak memory of a worker process that decodes one recording after the other."""
    options = MODELS[name]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for recording in recordings:
            pool.submit(run_job, recording.path, {**options, **recording.options}).result()
        # A function of the standard library: one of this module would bring all that it imports to the worker.
        peak = pool.submit(resource.getrusage, resource.RUSAGE_SELF).result().ru_maxrss
    print(f"{name}: peak memory of a worker {peak / (1024**2 if sys.platform == 'darwin' else 1024):.0f} MB")


def measure_jobs(recordings: list[Recording], rounds: int = 3) -> None:
    """Print the time of jobs in a new worker process and in one that has the model loaded."""
    times: dict[str, list[float]] = {"new": [], "kept": []}
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data")
        try:
            uploads = [service.upload(recording.path.read_bytes()) for recording in recordings]
            for upload in uploads * rounds:
                for worker in psutil.Process(service.process.pid).children(recursive=True):
                    worker.kill()
                for taken in times.values():
                    begun = time.monotonic()
                    assert service.wait(service.create(upload)["id"])["status"] == "completed"
                    taken.append(time.monotonic() - begun)
        finally:
            service.stop()
    new, kept = (statistics.median(taken) for taken in times.values())
    share = statistics.median(b / a for a, b in zip(*times.values(), strict=True))
    print(f"jobs, median: {new:.2f} s with a new process, {kept:.2f} s with a kept one; {share:.2f} of the time")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks speech", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--audio",
        type=Path,
        default=os.environ.get("VOXFRAME_TEST_AUDIO"),
        help="folder of real recordings with a README.md that lists them (default: VOXFRAME_TEST_AUDIO)",
    )
    parser.add_argument(
        "--model", choices=MODELS, action="append", help="model to measure; may be repeated (default: all)"
    )
    parser.add_argument("--peers", action="store_true", help="compare with faster-whisper, and nothing else")
    parser.add_argument("--jobs", action="store_true", help="time short jobs of the local server, and nothing else")
    asked = parser.parse_args(arguments)
    if asked.jobs:
        measure_jobs(list(of_folder(asked.audio)) if asked.audio else list(of_project()))
        return
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # of the worker
    threadpool_limits(1)  # of this process
    if asked.peers:
        against_faster_whisper(asked.audio)
        return
    made = list(of_project())
    real = list(of_folder(asked.audio)) if asked.audio else []
    names = asked.model or list(MODELS)
    for name in names:  # first: Linux counts the memory of this process before the start of the worker as the worker's
        measure_memory([*made, *real], name)
    for name in names:
        measure("made for the project (data/)", made, name)
        if real:
            measure("real recordings", real, name)
    print("\nvoxframe and faster-whisper, base: word error rate (processor time of voxframe by its own)")
    against_faster_whisper(asked.audio)
    if not real:
        print("\nreal recordings: not measured; give their folder with --audio")


if __name__ == "__main__":
    main()
