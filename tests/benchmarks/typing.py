"""Time that the WordSearch widget takes per typed letter, over nine million words.

Queries are drawn from the running text, so frequent words are queried as often as people say them. They are typed
letter by letter. After each letter the widget counts, finds the first matches with their context and positions, and
packs all of it for the browser. Everything runs on one core and is measured in processor time, without sending and
drawing.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import voxframe
from tests.benchmarks.one_core import one_core
from tests.benchmarks.search import Corpus, _show, _timed, _vocabulary, _zipf
from voxframe.widgets import WordSearch

#: Milliseconds: the 99th percentile.
LIMIT = 100.0


def main(arguments: list[str] | None = None) -> int:
    """Measure and print.

    Returns:
        1 if the figure is above its limit, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks typing", description=__doc__.partition("\n")[0])
    parser.add_argument("--transcripts", type=int, default=1000, help="of an hour each (default 1000)")
    parser.add_argument("--words", type=int, default=9000, help="words of each (default 9000)")
    parser.add_argument("--queries", type=int, default=40, help="words typed (default 40)")
    asked = parser.parse_args(arguments)
    one_core()
    rng = np.random.default_rng(1)
    tokens, forms = _vocabulary(rng)
    said = _zipf(rng, asked.transcripts * asked.words).reshape(-1, asked.words)
    with tempfile.TemporaryDirectory() as folder:
        in_memory = Corpus(Path(folder, "corpus"), forms, 4 * said + rng.integers(0, 4, said.shape))
        for number in range(asked.transcripts):
            in_memory.put(number)
        corpus = voxframe.Corpus(in_memory.path)
        corpus._search.index = in_memory.index
        search = WordSearch(corpus)
        words = [tokens[word] for word in rng.choice(said.ravel(), asked.queries)]
        letters = [word[:n] for word in words for n in range(1, len(word) + 1)]
        print(f"{asked.transcripts * asked.words:,} words, ms for a letter{'median':>20}{'99%':>9}{'most':>9}")
        over = False
        for by in ("transcript_id", "speaker"):
            search.by = by
            times, _ = _timed(lambda query: setattr(search, "query", query), letters)
            over |= _show(f"counted by {by}", times, LIMIT)
    return int(over)
