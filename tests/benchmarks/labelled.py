"""The labelled sets of tests/engine/analyses/labelled, read; and what scores have in common."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from voxframe_engine.text import Sentence, sentences_of

LABELLED = Path(__file__).parents[1] / "engine" / "analyses" / "labelled"
DATA = Path(__file__).parents[2] / "data"
HALVES = ("dev", "held")
#: A third part, of another hand, written after the methods were done.
FRESH = "fresh"
_MARK = re.compile(r"\{([^|{}]*)\|(\w+)\}")


@dataclass
class Score:
    """Numbers of correct, superfluous and missed results, by kind if there are kinds."""

    right: Counter[str] = field(default_factory=Counter)
    extra: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    @property
    def precision(self) -> float:
        return self.right.total() / max(1, self.right.total() + self.extra.total())

    @property
    def recall(self) -> float:
        return self.right.total() / max(1, self.right.total() + self.missed.total())

    @property
    def f1(self) -> float:
        return self.of_kind(None)

    def of_kind(self, kind: str | None) -> float:
        """F1 of one kind, or of all together."""
        right, extra, missed = (c.total() if kind is None else c[kind] for c in (self.right, self.extra, self.missed))
        return 2 * right / max(1, 2 * right + extra + missed)

    def __str__(self) -> str:
        return f"precision {self.precision:.2f}, recall {self.recall:.2f}, F1 {self.f1:.2f}"


def lines(name: str) -> Iterator[str]:
    """Lines of a labelled set without its comments."""
    for line in (LABELLED / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def words(text: str, speaker: str | None = None) -> list[dict[str, Any]]:
    """Words of the wire for a text, 0.4 s each."""
    return [
        {"text": word, "start": at * 400, "end": at * 400 + 350, "confidence": 1.0, "speaker": speaker}
        for at, word in enumerate(text.split())
    ]


def sentences(text: str) -> list[Sentence]:
    """Sentences of a text, as the analyses take them."""
    return sentences_of(words(text))


def marked(name: str) -> Iterator[tuple[str, str, list[tuple[str, set[int]]]]]:
    """Lines of a set of marked entities: style ("w" or "s"), text, and kind and places of words of each entity."""
    for line in lines(name):
        text, gold = "", []
        body, end = line[3:], 0
        for mark in _MARK.finditer(body):
            text += body[end : mark.start()]
            first = len(text[: text.rfind(" ") + 1].split())
            text += mark[1]
            gold.append((mark[2], set(range(first, len(text.split())))))
            end = mark.end()
        yield line[0], text + body[end:], gold


def halved(name: str, half: str) -> Iterator[tuple[str, str]]:
    for line in lines(name):
        labels, text = line.split(" | ")
        if labels.startswith(f"{half} "):
            yield labels.removeprefix(f"{half} "), text


@dataclass
class Section:
    """A part of a talk about one subject."""

    topics: list[str]
    keys: list[str]
    sentences: list[str] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)


class Talk(NamedTuple):
    """A talk in sections."""

    title: str
    sections: list[Section]


def talks(half: str) -> list[Talk]:
    """The labelled talks of a half."""
    made: list[Talk] = []
    for line in lines("talks.txt"):
        if line.startswith("= "):
            title, _, which = line[2:].partition(" [")
            talk = Talk(title, [])
            made += [talk] if which == f"{half}]" else []
        elif line.startswith("- "):
            labels, keys = line[2:].split(" | ")
            talk.sections.append(Section(labels.split(", "), keys.split(", ")))
        else:
            talk.sections[-1].sentences.append(line.removeprefix("* "))
            talk.sections[-1].told.append(line.startswith("* "))
    return made


def mixtures(half: str, count: int = 30) -> Iterator[tuple[list[str], list[int]]]:
    """Return texts of three to five sections from different talks, and the position at which each section begins."""
    sections = [part.sentences for talk in talks(half) for part in talk.sections]
    for seed in range(count):
        chance = random.Random(seed)
        texts: list[str] = []
        begins = []
        for part in chance.sample(sections, chance.randint(3, 5)):
            begins.append(len(texts))
            texts += part[: chance.randint(4, len(part))]
        yield texts, begins[1:]


def pk(gold: Sequence[int], found: Sequence[int], length: int) -> float:
    """Share of pairs half a chapter apart that are wrongly in one chapter or in two (Beeferman and others, 1999)."""
    apart = max(1, round(length / (len(gold) + 1) / 2))
    pairs = range(length - apart)
    wrong = sum(
        any(at < cut <= at + apart for cut in gold) != any(at < cut <= at + apart for cut in found) for at in pairs
    )
    return wrong / max(1, len(pairs))
