"""How well and how fast the embedded engine hears: `python -m tests.benchmarks speech [--audio DIR]`.

Word error rate: edits / words of the reference, lower case, without punctuation. Real-time factor: processor seconds of
a whole job on one core (decoding the file, finding speech, loading the models, recognition, speakers) / seconds of
audio, of each channel where they are apart. Memory: the most a worker process ever held. Speaker confusion: share of
the time in which both the truth and the transcript have a speaker, and it is the wrong one, labels matched as well as
they can be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
from scipy.optimize import linear_sum_assignment

from voxframe.local.worker import new_pool, run_job

DATA = Path(__file__).parents[2] / "data"
PLAIN = {"punctuate": False, "format_text": False}
STEP_MS = 10


@dataclass
class Recording:
    """A recording, who says what in it when (nothing is known of times in real ones), and how it is transcribed."""

    path: Path
    channels: list[str]
    speech: list[tuple[str, int, int]]
    options: dict[str, Any]


def words_of(text: str) -> str:
    """Words as they are compared."""
    return " ".join(re.sub(r"[^\w' ]", " ", text.lower()).split())


def of_project() -> Iterator[Recording]:
    """The samples in `data/`."""
    for path in sorted(DATA.glob("*.flac")):
        truth = json.loads(path.with_suffix(".json").read_text())
        words = sorted(
            ((turn["channel"], turn["speaker"], word) for turn in truth["turns"] for word in turn["words"]),
            key=lambda each: each[2]["start_ms"],
        )
        apart = truth["channels"] > 1
        texts = [
            words_of(" ".join(word["text"] for at, _, word in words if at == channel or not apart))
            for channel in range(truth["channels"])
        ]
        how = {"multichannel": True} if apart else {"speaker_labels": True, "speakers_expected": len(truth["voices"])}
        yield Recording(path, texts, [(who, word["start_ms"], word["end_ms"]) for _, who, word in words], how)


def of_folder(folder: Path) -> Iterator[Recording]:
    """Real recordings, listed with their references in the table of the folder's README.md."""
    for line in (folder / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and (folder / cells[1]).is_file():
            yield Recording(folder / cells[1], [words_of(cells[3])], [], {})


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
    right = np.zeros(steps, bool)
    for row, column in zip(*linear_sum_assignment(-shared), strict=True):
        right |= list(true.values())[row] & list(given.values())[column]
    both = np.any(list(true.values()), axis=0) & np.any(list(given.values()), axis=0)
    return float(np.sum(both & ~right) / np.sum(both))


def edits(reference: str, heard: str) -> int:
    """Words to change, add or take away."""
    found = jiwer.process_words(reference, heard or "-")
    return found.substitutions + found.deletions + found.insertions


def measure(group: str, recordings: list[Recording]) -> None:
    """Transcribe each on one core and print a line for it, and one for all."""
    print(f"\n{group}\n{'recording':16}{'audio s':>9}{'words':>7}{'WER':>7}{'real-time factor':>18}  speakers")
    sums = np.zeros(4)
    for recording in recordings:
        begun = time.process_time()
        result = run_job(recording.path, {**PLAIN, **recording.options})
        spent = time.process_time() - begun
        heard = [
            words_of(" ".join(word["text"] for word in result["words"] if word.get("channel") in (None, str(number))))
            for number in range(1, len(recording.channels) + 1)
        ]
        wrong = sum(map(edits, recording.channels, heard))
        count = sum(len(text.split()) for text in recording.channels)
        seconds = result["audio_duration"] * len(heard)
        sums += (seconds, count, wrong, spent)
        print(
            f"{recording.path.name:16}{seconds:9.0f}{count:7}{wrong / count:7.3f}{spent / seconds:18.2f}  "
            + (speakers(recording, result) if recording.speech else "")
        )
    seconds, count, wrong, spent = sums
    print(f"{'all':16}{seconds:9.0f}{count:7.0f}{wrong / count:7.3f}{spent / seconds:18.2f}")


def speakers(recording: Recording, result: dict[str, Any]) -> str:
    """How well the speakers were told apart, with their number known, and how many are found without."""
    known = f"confusion {confusion(recording.speech, result['words']):.3f}"
    if recording.options.get("multichannel"):
        return f"{known}, by channel"
    free = run_job(recording.path, {**PLAIN, "speaker_labels": True})
    found = len({word["speaker"] for word in free["words"]})
    return (
        f"{known}, {recording.options['speakers_expected']} known; "
        f"{confusion(recording.speech, free['words']):.3f}, {found} found"
    )


def measure_memory(recordings: list[Recording]) -> None:
    """Print the most memory a worker process holds while it decodes one recording after the other."""
    with new_pool(1) as pool:
        for recording in recordings:
            run_job(recording.path, recording.options, pool=pool)
        # A function of the standard library: one of this module would bring all that it imports to the worker.
        peak = pool.submit(resource.getrusage, resource.RUSAGE_SELF).result().ru_maxrss
    print(f"most memory of a worker: {peak / (1024**2 if sys.platform == 'darwin' else 1024):.0f} MB")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks speech", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--audio",
        type=Path,
        default=os.environ.get("VOXFRAME_TEST_AUDIO"),
        help="folder of real recordings with a README.md that lists them (default: VOXFRAME_TEST_AUDIO)",
    )
    asked = parser.parse_args(arguments)
    made = list(of_project())
    real = list(of_folder(asked.audio)) if asked.audio else []
    measure_memory([*made, *real])  # first: Linux counts what this process held as the worker's, as that began in it
    measure("made for the project (data/)", made)
    if real:
        measure("real recordings", real)
    else:
        print("\nreal recordings: not measured; name their folder with --audio")


if __name__ == "__main__":
    main()
