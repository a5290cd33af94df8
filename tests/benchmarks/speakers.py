"""Who speaks when: `python -m tests.benchmarks speakers AUDIO [--words] [--mixes N] [--hours N] [--own FOLDER]`.

AUDIO is the folder of VOXFRAME_TEST_AUDIO. With --own, media files of a folder are measured, too, each beside an RTTM
file with its name. Error rates of `voxframe.voices` on its meetings, and on mixes of readers
(see `tests.benchmarks.mixes`), with and without the number of speakers. DER: diarization error rate with a collar of
0.25 s. Exact, within one: recordings with that number of speakers. Wrong words (with --words): share of the words that
Whisper hears that go to a reader who does not speak in the middle of the word. Processor time: of this process, per
second of sound. People: pairs of speakers of two mixes, told to be one person by the cosine similarity of their voices.
With --hours: peak memory of this process, and the time of clustering.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks import mixes
from tests.benchmarks.mixes import RATE, Samples, Turn
from voxframe.compare import diarization_error_rate
from voxframe.corpus.speakers import THRESHOLD
from voxframe.voices import diarization
from voxframe.voices.diarization import Span


def meetings(folder: Path) -> Iterator[tuple[str, Samples, list[Turn]]]:
    """Yield name, sound and turns of each meeting."""
    turns: dict[str, list[Turn]] = {}
    for name, turn in _spoken(folder / "meetings" / "reference.rttm"):
        turns.setdefault(name, []).append(turn)
    for name, spoken in turns.items():
        yield name, mixes.sound_of(folder / "meetings" / f"{name}.flac"), spoken


def own(folder: Path) -> Iterator[tuple[str, Samples, list[Turn]]]:
    """Yield name, sound and turns of each media file of a folder that has an RTTM file beside it."""
    for file in sorted(folder.rglob("*")):
        rttm = file.with_suffix(".rttm")
        if file != rttm and rttm.is_file():
            yield file.stem, mixes.sound_of(file), [turn for _, turn in _spoken(rttm)]


def _spoken(rttm: Path) -> Iterator[tuple[str, Turn]]:
    """Yield the recording and the turn of each line of an RTTM file."""
    for line in rttm.read_text().splitlines():
        _, name, _, start, length, _, _, speaker, *_ = line.split()
        yield name, Turn(float(start), float(start) + float(length), speaker)


def readers(folder: Path) -> dict[str, Samples]:
    """Return the speech of people with at least 3 s of it: readers, and members of meetings while they speak alone."""
    voices = mixes.readers(folder)
    for _, sound, turns in meetings(folder):
        for name in {turn.reader for turn in turns}:
            own, others = np.zeros(len(sound), bool), np.zeros(len(sound), bool)
            for turn in turns:
                mask = own if turn.reader == name else others
                mask[int(turn.start * RATE) : int(turn.end * RATE)] = True
            parts = mixes.pieces(sound[own & ~others])
            voices[name] = np.concatenate([voices.get(name, np.zeros(0, np.int16)), *parts])
    return {name: voice for name, voice in voices.items() if len(voice) >= 3 * RATE}


def table(rows: list[tuple[str, int, int]]) -> pd.DataFrame:
    """Return rows of speaker, start and end in ms."""
    return pd.DataFrame(rows, columns=["speaker", "start_ms", "end_ms"])


def measure(kind: str, recordings: list[tuple[str, Samples, list[Turn]]], given: bool) -> None:
    """Print the error rates of a kind of recordings."""
    seconds, processor, parts, counts = 0.0, 0.0, [], []
    for _, sound, turns in recordings:
        count = len({turn.reader for turn in turns})
        started = time.process_time()
        result = diarization.diarize([sound], count if given else None)
        processor += time.process_time() - started
        seconds += len(sound) / RATE
        reference = table([(turn.reader, int(turn.start * 1000), int(turn.end * 1000)) for turn in turns])
        spans = table([(str(span.speaker), span.start_ms, span.end_ms) for span in result.spans])
        parts.append(diarization_error_rate(reference, spans, collar_ms=250))
        counts.append(len(result.vectors) - count)
    total = pd.concat(parts)
    errors = {
        name: total[f"{name}_s"].sum() / total["reference_s"].sum() for name in ("missed", "false_alarm", "confusion")
    }
    away = np.abs(counts)
    print(
        f"{kind:9} {'given' if given else 'free':6} DER {sum(errors.values()):.3f} "
        + " ".join(f"{name} {value:.3f}" for name, value in errors.items())
        + f"  exact {(away == 0).sum()} and within one {(away <= 1).sum()} of {len(away)}"
        + f"  processor {processor / seconds:.3f} s/s",
        flush=True,
    )


def words(recordings: list[tuple[str, Samples, list[Turn]]]) -> None:
    """Print the share of words with a wrong speaker."""
    from voxframe_engine.transcription import run_job

    wrong, heard = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, sound, turns in recordings:
            path = Path(folder) / f"{name}.wav"
            mixes.write(path, sound)
            true, labels = [], []
            for word in run_job(path, {"speaker_labels": True, "speech_model": "nano"})["words"]:
                middle = (word["start"] + word["end"]) / 2000
                if speaking := {turn.reader for turn in turns if turn.start <= middle <= turn.end}:
                    true.append(speaking)
                    labels.append(word["speaker"])
            wrong += mixes.wrong_labels(true, labels) * len(labels)
            heard += len(labels)
    print(f"mixes     words with a wrong speaker {wrong / heard:.3f} of {heard}")


def people(voices: dict[str, Samples]) -> None:
    """Print the equal error rate of telling whether speakers of two mixes are one person, and the errors at 0.5.

    Each reader's speech is cut into parts, and a part is in one mix only. Spans are those of the readers.
    """
    parts = {name: np.array_split(voice, max(1, min(6, len(voice) // (4 * RATE)))) for name, voice in voices.items()}
    vectors, names, numbers = [], [], []
    for number in range(6):
        here = {name: cut[number] for name, cut in parts.items() if number < len(cut)}
        if len(here) < 2:
            break
        groups = np.array_split(np.random.default_rng(number).permutation(sorted(here)), -(-len(here) // 5))
        for group in groups:
            sound, turns = mixes.mix(here, [str(name) for name in group], number, 15.0 * len(group))
            readers = sorted({turn.reader for turn in turns})
            spans = [Span(int(t.start * 1000), int(t.end * 1000), readers.index(t.reader)) for t in turns]
            vectors += [*diarization.speaker_vectors([sound], spans)]
            names += readers
            numbers += [len(set(numbers))] * len(readers)
    matrix, name, of = np.stack(vectors), np.array(names), np.array(numbers)
    first, second = np.triu_indices(len(name), 1)
    apart = of[first] != of[second]
    scores, same = (matrix @ matrix.T)[first, second][apart], (name[first] == name[second])[apart]
    missed, wrong = np.array(
        [((scores[same] < at).mean(), (scores[~same] >= at).mean()) for at in (*np.sort(scores), THRESHOLD)]
    ).T
    equal = np.abs(missed - wrong)[:-1].argmin()
    print(
        f"people    {same.sum()} pairs of one reader, {(~same).sum()} of two: equal error rate "
        f"{(missed[equal] + wrong[equal]) / 2:.3f} at {np.sort(scores)[equal]:.2f}; at {THRESHOLD} missed "
        f"{missed[-1]:.3f}, wrong {wrong[-1]:.3f}",
        flush=True,
    )


def long(voices: dict[str, Samples], hours: float) -> None:
    """Print memory, and the time of clustering, for some hours."""
    sound, _ = mixes.mix(voices, sorted(voices)[:4], 0, 600.0)
    assembled: list[float] = []
    assemble = diarization.assemble

    def timed(*arguments: object) -> object:
        started = time.process_time()
        result = assemble(*arguments)  # type: ignore[arg-type]
        assembled.append(time.process_time() - started)
        return result

    diarization.assemble = timed  # type: ignore[assignment]
    result = diarization.diarize(sound for _ in range(round(hours * 6)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{hours:g} hours: {len(result.vectors)} speakers, clustering {assembled[0]:.1f} s, peak {peak:.0f} MB")


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks speakers")
    parser.add_argument("audio", type=Path)
    parser.add_argument("--mixes", type=int, default=10)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--hours", type=float)
    parser.add_argument("--own", type=Path)
    parsed = parser.parse_args(arguments)
    voices = readers(parsed.audio)
    rng = np.random.default_rng(0)
    made = []
    for number in range(parsed.mixes):
        names = [str(name) for name in rng.choice(sorted(voices), 2 + number % 5, replace=False)]
        made.append((f"mix{number}", *mixes.mix(voices, names, number, 60.0)))
    people(voices)
    if parsed.hours:
        long(voices, parsed.hours)
    for given in (False, True):
        measure("meetings", list(meetings(parsed.audio)), given)
        if made:
            measure("mixes", made, given)
        if parsed.own:
            measure("own", list(own(parsed.own)), given)
    if parsed.words:
        words(made)
    return 0
