"""Search by meaning over many sentences, on one core: time of a search, memory, and equality with brute force.

Vectors are drawn at random around the directions of 2,000 subjects, because encoding 600,000 sentences takes half an
hour. Everything else is the real way from payloads to rows. The time per encoded sentence is measured apart.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks.one_core import one_core
from voxframe import Corpus, encoder

_SUBJECTS = 2000
_PER_TRANSCRIPT = 600  # sentences, about an hour of talk


class RandomEncoder:
    """Encodes a text as its subject's direction with noise; the same text always has the same vector."""

    def __init__(self) -> None:
        self._subjects = np.random.default_rng(0).standard_normal((_SUBJECTS, encoder.SIZE)).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> encoder.Vectors:
        seeds = [zlib.crc32(text.encode()) for text in texts]
        noise = np.array([np.random.default_rng(seed).standard_normal(encoder.SIZE, np.float32) for seed in seeds])
        vectors = noise.reshape(-1, encoder.SIZE) + self._subjects[[seed % _SUBJECTS for seed in seeds]]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def fill(corpus: Corpus, sentences: int) -> None:
    """Store transcripts with this many sentences of three words."""
    payloads = []
    for n in range(0, sentences, _PER_TRANSCRIPT):
        words = [
            {"text": text, "start": 300 * at, "end": 300 * at + 250, "speaker": "AB"[at // 90 % 2]}
            for at, text in enumerate(
                word for k in range(min(_PER_TRANSCRIPT, sentences - n)) for word in ("Sentence", "number", f"{n + k}.")
            )
        ]
        payloads.append({"id": f"t{n // _PER_TRANSCRIPT:05}", "status": "completed", "words": words})
    corpus.add(payloads, progress=True)


def timed(corpus: Corpus, query: str, **options: object) -> tuple[float, list[tuple[str, int]]]:
    """Processor seconds of a search, and the sentences that it found."""
    start = time.process_time()
    found = corpus.search(query, mode="meaning", **options)
    return time.process_time() - start, [*zip(found["transcript_id"], found["sentence_idx"], strict=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks meaning_search")
    parser.add_argument("--sentences", type=int, default=600_000)
    asked = parser.parse_args(arguments)
    one_core()
    real, coder = encoder.load(), RandomEncoder()
    texts = json.loads((Path(__file__).parents[2] / "data" / "payloads" / "interview.json").read_text("utf-8"))
    parts = [part for part in texts["text"].replace("?", ".").split(".") if part.strip()]
    start = time.process_time()
    real.encode(parts)
    print(f"encoding: {1000 * (time.process_time() - start) / len(parts):.1f} ms per sentence")
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(folder)
        fill(corpus, asked.sentences)
        encoder.load = lambda: coder  # type: ignore[assignment, return-value]
        start = time.process_time()
        corpus.search("warm", mode="meaning", progress=True)
        seconds = time.process_time() - start
        print(f"deriving and storing {asked.sentences:,} sentences, without encoding: {seconds:.0f} s")
        size = sum(path.stat().st_size for path in Path(folder, "meaning").iterdir())
        print(f"on disk: {size / 1e6:.0f} MB in {len([*Path(folder, 'meaning').iterdir()])} files")
        corpus = Corpus(folder)
        first, _ = timed(corpus, "first")
        print(f"first search of a process: {first:.2f} s")
        for name, options in (
            ("", {}),
            (" of one speaker", {"speaker": "A"}),
            (" after a minute", {"where": [("start_ms", ">", 60_000)]}),
        ):
            times = [timed(corpus, f"query {n}", **options)[0] for n in range(15)]
            print(f"search{name}: median {statistics.median(times):.3f} s, slowest {max(times):.3f} s")
        print(f"memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
        view = corpus._search.meaning._index.view()
        ids, places = (view.table[name].to_pylist() for name in ("transcript_id", "sentence_idx"))
        equal = 0
        for n in range(10):
            _, found = timed(corpus, f"query {n}")
            wanted = coder.encode([f"query {n}"])[0].astype(np.float64)
            scores = np.concatenate([part.vectors.astype(np.float64) @ wanted for part, _ in view.parts])
            near = np.argsort(-scores)[:200]
            exact = {
                at: math.fsum(
                    map(math.prod, zip(view.vectors(np.array([at]))[0].tolist(), wanted.tolist(), strict=True))
                )
                for at in near.tolist()
            }
            best = sorted(exact, key=lambda at: (-exact[at], ids[at], places[at]))[:20]
            equal += found == [(ids[at], places[at]) for at in best]
        print(f"the 20 best equal brute force in float64: {equal} of 10 queries")


if __name__ == "__main__":
    main()
