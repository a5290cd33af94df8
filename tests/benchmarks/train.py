"""Fit the classifiers and write their weights: `python -m tests.benchmarks train [--to FILE]`."""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from tests.benchmarks import labelled
from voxframe import encoder
from voxframe_engine.analyses.entities import first_names
from voxframe_engine.analyses.entities.people import names as known_names
from voxframe_engine.analyses.lexicon import BIAS, WORD_SCALE, features

WEIGHTS = Path(str(files("voxframe_engine.analyses"))) / "weights.npz"
_STEP, _MOMENTUM = 8.0, 0.9
_FILLED, _RENAMED = 10, 4  # rows per sentence with a gap, and per sentence of the training texts
_LISTED = 400  # first names of Faker
_AS = {"interjection": "thing"}
_NO_NAMES = frozenset("will may august june april grace hope rose".split())
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
    for line in files("voxframe_engine.analyses").joinpath("topics.txt").read_text("utf-8").splitlines():
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


def parts() -> tuple[np.ndarray, list[str]]:
    """Vectors of the words of the training sentences, and the part of speech of each."""
    names = {"n": "noun", "a": "adjective", "": "other"}
    marked = [[word.partition("/")[::2] for word in line.split()] for line in labelled.lines("parts_training.txt")]
    vectors = encoder.load().words([[word for word, _ in line] for line in marked])
    return np.concatenate(vectors) / WORD_SCALE, [names[mark] for line in marked for _, mark in line]


def names() -> tuple[np.ndarray, list[str]]:
    """Vectors of names in sentences, and whether each is a person, an organization or a thing.

    Sentences about people are those of the training texts with one listed first name, which is replaced by others. An
    interjection is a thing: a capital at the start of a sentence makes neither a name.
    """
    draw = random.Random(4)
    lists: dict[str, list[str]] = defaultdict(list)
    rows: list[tuple[list[str], int, str]] = []

    def put(sentence: list[str], at: int, label: str, name: str) -> None:
        rows.append(([word.replace("{}", name) for word in sentence], at, label))

    listed = [name.title() for name in sorted(first_names()) if len(name) > 3]
    templates = []
    for line in labelled.lines("names_training.txt"):
        label, mark, rest = line.split(" ", 2)
        if mark == ">":
            lists[label] += rest.split()
        else:
            templates.append((label, rest.split()))
    lists["person"] += draw.sample(listed, _LISTED)
    for label, sentence in templates:
        places = [at for at, word in enumerate(sentence) if "{}" in word]
        for _ in range(_FILLED):
            put(sentence, draw.choice(places), _AS.get(label, label), draw.choice(lists[label]))
    about = [line.split() for line in _training_sentences()]
    for sentence in about:
        places = [at for at, word in enumerate(sentence) if _is_first_name(word)]
        if len(places) != 1:
            continue
        rest = re.sub(r"^[A-Z][a-z]+", "{}", sentence[places[0]])
        one = [*sentence[: places[0]], rest, *sentence[places[0] + 1 :]]
        for _ in range(_RENAMED):
            put(one, places[0], "person", draw.choice(lists["person"]))
    vectors = encoder.load().words([sentence for sentence, _, _ in rows])
    columns = np.array([words[at] for words, (_, at, _) in zip(vectors, rows, strict=True)])
    return columns / WORD_SCALE, [label for *_, label in rows]


def _training_sentences() -> Iterator[str]:
    for path in sorted((labelled.LABELLED / "answers_training").glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            if line and line[0] not in "=?#->" and "|" not in line and 3 <= len(line.split()) <= 22:
                yield line


def _is_first_name(word: str) -> bool:
    name = re.sub(r"('s)?[,.?!]?$", "", word)
    return name.istitle() and name.isalpha() and name.lower() in known_names().common and name.lower() not in _NO_NAMES


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the weights of the analyses."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks train", description=__doc__)
    parser.add_argument("--to", type=Path, default=WEIGHTS, help="file to write")
    given = parser.parse_args(arguments)
    np.savez_compressed(given.to, **classifiers())


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
        "sentiment": fit(felt, [label for label, _ in sentiment], decay=3e-4, rounds=400, balance=0.8),
        "names": fit(*names(), decay=3e-4, rounds=300, balance=1),
        "parts": fit(*parts(), decay=1e-5, rounds=150, balance=0.5),
        "safety": fit(*_encoded(safety), decay=5e-5, rounds=600, balance=0.3),
    }
    stored = {name: made["weights"] for name, made in sets.items()}
    stored |= {f"{name}_labels": made["labels"] for name, made in sets.items()}
    stored["taxonomy_labels"] = np.array(list(described))
    stored["taxonomy"] = encoder.load().encode(list(described.values())).astype(np.float16)
    return stored


def _encoded(rows: Sequence[tuple[str, str]]) -> tuple[np.ndarray, list[str]]:
    return encoder.load().encode([text for _, text in rows]), [label for label, _ in rows]
