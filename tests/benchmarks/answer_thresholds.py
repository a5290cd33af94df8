"""Scores of the answerer with other thresholds, on the texts that were written to choose them.

`_LEAST_LOG_ODDS` and `_MOST_BEHIND` of `voxframe_engine.answers.extractive` were chosen with answers_tuning.txt, of
the values that find at least 17 of 20 answers there. The sets that are scored were looked at before: with -1, 69 of 80
answers of answers_unseen.txt are right and 33 of 40 others refused; with -1.5, 70 and 32.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.benchmarks import meaning
from voxframe_engine.answers import Source, extractive


class Asked(NamedTuple):
    """A question that was asked.

    Attributes:
        is_answered: True if the text answers it.
        log_odds: Log-odds of the best three sentences.
        right: For each of these, True if it answers the question.
    """

    is_answered: bool
    log_odds: list[float]
    right: list[bool]

    def quoted(self, least: float, behind: float) -> list[bool]:
        """Return, for each sentence that would be quoted, whether it answers the question."""
        if self.log_odds[0] < least:
            return []
        return [
            is_right
            for found, is_right in zip(self.log_odds, self.right, strict=True)
            if self.log_odds[0] - found <= behind
        ]


def ask(name: str) -> list[Asked]:
    """Ask the questions of a set of conversations."""
    found = []
    for lines, questions in meaning.conversations(name):
        text = extractive.RequestText([Source(lines)])
        for question, *gold in questions:
            scores = text.log_odds(question)
            best = [int(at) for at in np.argsort(-scores)[:3]]
            right = [any(words.lower() in lines[at].text.lower() for words in gold) for at in best]
            found.append(Asked(gold != ["-"], scores[best].tolist(), right))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks answer_thresholds", description=__doc__)
    parser.add_argument("names", nargs="*", default=["tuning"], help="sets of conversations (default: tuning)")
    given = parser.parse_args(arguments)
    asked = [one for name in given.names for one in ask(f"answers_{name}.txt")]
    answered, others = ([one for one in asked if one.is_answered is wanted] for wanted in (True, False))
    print("least log-odds, most behind: share right, share refused, sentences quoted")
    for least in (-3, -2.5, -2, -1.5, -1, 0):
        for behind in (2, 3, 4):
            right = [any(one.quoted(least, behind)) for one in answered]
            refused = [not one.quoted(least, behind) for one in others]
            counts = [len(quoted) for one in asked if (quoted := one.quoted(least, behind))]
            figures = ", ".join(f"{np.mean(values):.3f}" for values in (right, refused, counts))
            print(f"{least:5} {behind}: {figures}")
