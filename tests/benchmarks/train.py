"""Fit the classifiers and write their weights: `python -m tests.benchmarks train [--reader] [--to FILE]`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from tests.benchmarks import labelled, meaning
from voxframe import encoder, reader
from voxframe.server.analyses.lexicon_scoring import BIAS
from voxframe.server.analyses.sentence_sentiment import features
from voxframe.server.llm import reading
from voxframe.server.llm.bm25 import BM25Index
from voxframe.server.llm.context import Source

WEIGHTS = Path(str(files("voxframe.server.analyses"))) / "weights.npz"
READER_WEIGHTS = Path(str(files("voxframe"))) / "reader_weights.npz"
#: Texts with questions that the reader's doubt is fitted on.
READ = ("fresh", "kinds", "dev", "training")
#: Tokens whose logits the doubt depends on, of those of the vocabulary that are words.
_TOKENS = np.sort(np.random.default_rng(0).choice(150_000, 4096, replace=False))
_STEP, _MOMENTUM = 8.0, 0.9
#: Topics whose sentences are no examples of ordinary talk for content safety.
_SENSITIVE = {"NewsAndPolitics", "MedicalHealth", "HealthyLiving", "BusinessAndFinance", "FamilyAndRelationships"}


def fit(
    vectors: np.ndarray, names: Sequence[str], *, decay: float, rounds: int, balance: float
) -> dict[str, np.ndarray]:
    """Multinomial logistic regression by gradient descent. With `balance` 1, all labels have the same weight."""
    labels = sorted(set(names))
    gold = np.eye(len(labels))[[labels.index(name) for name in names]]
    share = (gold @ (1 / gold.sum(axis=0))) ** balance
    share /= share.sum()
    rows = np.c_[vectors, np.full(len(vectors), BIAS)].astype(np.float64)
    weights = np.zeros((rows.shape[1], len(labels)))
    speed = np.zeros_like(weights)
    for _ in range(rounds):
        scores = rows @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        wrong = odds / odds.sum(axis=1, keepdims=True) - gold
        speed = _MOMENTUM * speed - _STEP * (rows.T @ (wrong * share[:, None]) + decay * weights)
        weights += speed
    return {"labels": np.array(labels), "weights": weights.astype(np.float16)}


def taxonomy() -> dict[str, str]:
    """Labels of the taxonomy, and a description of each for the encoder."""
    described = {}
    for line in files("voxframe.server.analyses").joinpath("topics.txt").read_text("utf-8").splitlines():
        label, colon, listed = line.partition(": ")
        if colon and not line.startswith("#"):
            parts = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", part).replace("&", " and ") for part in label.split(">")]
            words = [word.strip(" !?") for word in listed.split(",")]
            described[label] = f"{', '.join(parts).lower()}: {', '.join(words[:14])}"
    return described


def examples(name: str) -> Iterator[tuple[str, str]]:
    """Labels and sentences of a training set."""
    for line in labelled.lines(f"{name}_training.txt"):
        if name.startswith("sentiment"):
            yield line[0], line[2:]
        else:
            label, texts = line.split(" | ")
            yield from ((label.split()[0], text) for text in texts.split(" / "))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the weights of the analyses, or those of the reader."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks train", description=__doc__)
    parser.add_argument("--to", type=Path, help="file to write")
    parser.add_argument("--reader", action="store_true", help="fit the reader's doubt (20 minutes)")
    given = parser.parse_args(arguments)
    made = fit_doubt(*first_logits()) if given.reader else classifiers()
    np.savez_compressed(given.to or (READER_WEIGHTS if given.reader else WEIGHTS), **made)


def first_logits() -> tuple[np.ndarray, list[bool]]:
    """Logits of the first token of each answer, one row per question, and whether the text has an answer."""
    model, coder = reader.load(), encoder.load()
    rows, answered = [], []
    asked = [
        (BM25Index([Source(lines)]), question, gold != ["-"])
        for name in READ
        for lines, questions in meaning.conversations(f"answers_{name}.txt")
        for question, *gold in questions
    ]
    for index, question, has_answer in tqdm(asked, unit="question"):
        places = reading.passage(index, index.closeness(question, coder))
        _, logits = model.say([index.lines[place].text for place in places], question, most=1)
        rows.append(logits[_TOKENS])
        answered.append(has_answer)
    return np.array(rows), answered


def fit_doubt(logits: np.ndarray, answered: Sequence[bool]) -> dict[str, np.ndarray]:
    """Logistic regression of whether a text answers a question. The level of all logits together has no effect."""
    relative = logits - logits.mean(axis=1, keepdims=True)
    mean, scale = relative.mean(axis=0), (relative.std(axis=0) + 1e-3) * np.sqrt(logits.shape[1])
    names = ["yes" if one else "no" for one in answered]
    made = fit((relative - mean) / scale, names, decay=7e-4, rounds=400, balance=0)["weights"].astype(np.float64)
    difference = made[:, 1] - made[:, 0]
    weights = difference[:-1] / scale
    bias = difference[-1] * BIAS - mean @ weights
    return {"tokens": _TOKENS, "weights": (weights - weights.mean()).astype(np.float32), "bias": np.float32(bias)}


def classifiers() -> dict[str, np.ndarray]:
    """Weights of the analyses, and vectors of the taxonomy."""
    described = taxonomy()
    topics = [*examples("topics"), *((label.split(">")[0], text) for label, text in described.items())]
    ordinary = [text for label, text in examples("topics") if label not in _SENSITIVE]
    ordinary += [text for _, text in examples("sentiment")]
    safety = [*examples("safety"), *(("none", text) for text in ordinary)]
    safety += [(labels.split(",")[0], text) for labels, text in labelled.halved("safety_meaning.txt", "tune")]
    signs = {"+": "POSITIVE", "-": "NEGATIVE", "0": "NEUTRAL"}
    sentiment = [(signs[sign], text) for name in ("sentiment", "sentiment_spoken") for sign, text in examples(name)]
    felt = features([text for _, text in sentiment], encoder.load())
    sets = {
        "topics": fit(*_encoded(topics), decay=1e-4, rounds=400, balance=1),
        "sentiment": fit(felt, [label for label, _ in sentiment], decay=1e-3, rounds=400, balance=1),
        "safety": fit(*_encoded(safety), decay=5e-5, rounds=600, balance=0.3),
    }
    stored = {name: made["weights"] for name, made in sets.items()}
    stored |= {f"{name}_labels": made["labels"] for name, made in sets.items()}
    stored["taxonomy_labels"] = np.array(list(described))
    stored["taxonomy"] = encoder.load().encode(list(described.values())).astype(np.float16)
    return stored


def _encoded(rows: Sequence[tuple[str, str]]) -> tuple[np.ndarray, list[str]]:
    return encoder.load().encode([text for _, text in rows]), [label for label, _ in rows]
