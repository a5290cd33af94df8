"""Shares of sentences above a score of search by meaning: of those that a query is about, and of others.

`voxframe.corpus.search.meaning.CLOSE` was chosen with these figures. `python -m tests.benchmarks.meaning_cutoff`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tests.benchmarks import labelled, meaning
from voxframe import encoder

_SCORES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
Scores = npt.NDArray[np.float32]


def topics(half: str, coder: encoder.SentenceEncoder) -> tuple[Scores, Scores]:
    """Scores of passages for the topic that they are about, and for the topics of other passages."""
    rows = [line.split(" | ") for line in labelled.lines("custom_topics_meaning.txt") if line.startswith(f"{half} ")]
    names = sorted({name for name, _, _ in rows})
    scores = coder.encode([name.removeprefix(f"{half} ") for name in names]) @ coder.encode([r[2] for r in rows]).T
    same = np.array([[name == row[0] for row in rows] for name in names])
    about = np.array([row[1] == "yes" for row in rows])
    return scores[same & about], scores[~same]


def questions(name: str, coder: encoder.SentenceEncoder) -> tuple[Scores, Scores]:
    """Scores of the best sentence that answers a question, and of the sentences that do not."""
    right, others = list[float](), list[float]()
    for lines, asked in meaning.conversations(f"answers_{name}.txt"):
        sentences = coder.encode([line.text for line in lines])
        for question, *words in asked:
            scores = sentences @ coder.encode([question])[0]
            answers = [all(word in line.text.lower() for word in words[0].lower().split(",")) for line in lines]
            if words != ["-"] and any(answers):
                right.append(scores[answers].max())
                others += scores[~np.array(answers)].tolist()
    return np.array(right, np.float32), np.array(others, np.float32)


def figures() -> Iterator[tuple[str, Scores, Scores]]:
    """Name, scores of the right ones and of others, per set of labelled texts."""
    coder = encoder.load()
    for half in ("tune", "held"):
        yield f"topics, {half}", *topics(half, coder)
    for name in ("dev", "fresh", "held"):
        yield f"questions, {name}", *questions(name, coder)


if __name__ == "__main__":
    for name, right, others in figures():
        print(f"{name}: {len(right)} right, {len(others)} others")
        for score in _SCORES:
            print(f"  from {score:.2f}: {np.mean(right >= score):.0%} right, {np.mean(others >= score):.1%} others")
