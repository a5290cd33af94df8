"""What `word_boost` does: `python -m tests.benchmarks boost [HALF]`. Needs flite's library (see data/flite.py).

Flite voices say the sentences of boost.txt; all terms of a half are boosted at once, so that each sentence has one term
that is said and many that are not. Then the recordings of data/, with names that are said in them. Without and with a
boost: share of the terms heard where they are said, times that one is heard where it is not, and the word error rate of
everything else, terms left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence

import jiwer
import numpy as np

from tests.benchmarks import labelled
from voxframe_engine.speech import EngineOptions, Samples
from voxframe_engine.speech.whisper import Whisper
from voxframe_engine.transcription import run_job

VOICES = ("slt", "rms", "awb")
NAMES = (
    "Linda,Robert Clark,Blue Mountain Books,Garden Street,Denver,Paul Baker,Susan,Green River Foundation,"
    "Hill Street Bank,Boston,Market Street,Main Street,James,Andrew,National Transport Office,swimming pool"
).split(",")


def words_of(text: str) -> str:
    """Words as they are compared."""
    return " ".join(re.sub(r"[^a-z' ]", " ", text.lower()).split())


def sentences(half: str) -> tuple[list[str], list[tuple[str, Samples]]]:
    """The terms of a half, and each sentence said by two voices."""
    sys.path.insert(0, str(labelled.DATA))
    import flite

    lines = list(labelled.halved("boost.txt", half))
    silence = np.zeros(3200, np.int16)
    said = [
        (words_of(text), np.concatenate([silence, flite.speak(text, VOICES[(at + voice) % 3]).samples, silence]))
        for at, (_, text) in enumerate(lines)
        for voice in (0, 1)
    ]
    return list(dict.fromkeys(term for term, _ in lines if term != "none")), said


def hear(said: Sequence[tuple[str, Samples]], terms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return what was said and what was recognized."""
    recognizer = Whisper(EngineOptions(boost=tuple(terms)))
    for text, samples in said:
        yield text, words_of(" ".join(word.text for word in recognizer.transcribe(samples)))


def recordings(terms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The same for the recordings of data/, channel by channel."""
    for name in ("interview", "panel", "call"):
        truth = json.loads((labelled.DATA / f"{name}.json").read_text("utf-8"))
        apart = {"multichannel": True} if truth["channels"] > 1 else {}
        result = run_job(labelled.DATA / f"{name}.flac", {**apart, "word_boost": terms})
        for channel in range(truth["channels"]):
            said = [w["text"] for turn in truth["turns"] if turn["channel"] == channel for w in turn["words"]]
            heard = [w["text"] for w in result["words"] if w.get("channel") in (None, str(channel + 1))]
            yield words_of(" ".join(said)), words_of(" ".join(heard))


def score(pairs: Sequence[tuple[str, str]], terms: Sequence[str]) -> tuple[int, int, int, float]:
    """Count boosted terms that were said, recognized and invented; also return the word error rate of the rest."""
    said = right = false = 0
    rest: list[tuple[str, str]] = []
    for text, heard in pairs:
        for term in terms:
            there, found = (len(re.findall(rf"\b{words_of(term)}\b", one)) for one in (text, heard))
            said += there
            right += min(there, found)
            false += max(0, found - there)
        anything = rf"\b(?:{'|'.join(map(words_of, terms))})\b"
        rest.append((re.sub(anything, "", text), re.sub(anything, "", heard)))
    return said, right, false, jiwer.wer([text for text, _ in rest], [heard for _, heard in rest])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks boost", description=__doc__.splitlines()[0])
    parser.add_argument("half", nargs="?", choices=labelled.HALVES, help="this half alone, without the recordings")
    asked = parser.parse_args(arguments)
    for half in [asked.half] if asked.half else labelled.HALVES:
        terms, said = sentences(half)
        print(f"\n{half}: {len(terms)} terms boosted, {len(said)} sentences")
        for boosted in ((), terms):
            report(boosted, *score(list(hear(said, boosted)), terms))
    if not asked.half:
        print(f"\nrecordings of data/: {len(NAMES)} names boosted")
        for boosted in ((), NAMES):
            report(boosted, *score(list(recordings(boosted)), NAMES))


def report(boosted: Sequence[str], said: int, right: int, false: int, rest: float) -> None:
    """A line of figures."""
    print(
        f"  {'boosted' if boosted else 'without':8} {right} of {said} heard ({right / said:.2f}), "
        f"{false} where it was not said; word error rate of the rest {rest:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
