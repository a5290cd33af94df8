"""Tokens of a text and their features, as spaCy's English models take them.

A word is a token, but "don't" is two, and punctuation at its ends is apart. The rules come with the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

_TEXT, _NORM = 65, 67  # numbers of attributes in the stored rules
_WORD = re.compile(r"\S+")
_CACHED = 20_000  # different words
#: Norms of marks that are written in several ways.
_NORMS = (
    dict.fromkeys("\u2019\u2018\u00b4`", "'")
    | dict.fromkeys("\u201d\u201c\u201e\u00bb\u00ab", '"')
    | dict.fromkeys("\u2014\u2013", "-")
    | dict.fromkeys("\u20ac\u00a3\u00a5\u20b9", "$")
    | {"'S": "'s", "\u2019s": "'s", "\u2019S": "'s", "''": '"', "``": '"', "--": "-", "---": "-", "\u2026": "..."}
)
#: Numbers of strings that spaCy does not hash: names of its labels that are also words, endings or shapes.
_SYMBOLS = {
    "X": 101, "agent": 401, "attr": 404, "aux": 405, "cc": 407, "cop": 411, "dep": 414, "det": 415, "mark": 423,
    "meta": 424, "neg": 425, "nn": 427, "num": 431, "number": 432, "obj": 434, "obl": 435, "poss": 440,
    "possessive": 441, "prep": 443, "prt": 444, "root": 449, "acl": 451,
}  # fmt: skip
_MASK = (1 << 64) - 1
_FACTOR = 0xC6A4A7935BD1E995


class Token(NamedTuple):
    """A token.

    Attributes:
        text: Its text.
        start: Index of its first character.
        end: Index after its last character.
        features: Hashes of its norm, first letter, last three letters, and shape.
    """

    text: str
    start: int
    end: int
    features: tuple[int, int, int, int]


class Tokenizer:
    """Splits texts into tokens.

    Args:
        path: File with the rules of a model.
    """

    def __init__(self, path: Path) -> None:
        rules = msgspec.msgpack.decode(path.read_bytes(), strict=False)
        self._prefix = re.compile(rules["prefix_search"])
        self._suffix = re.compile(rules["suffix_search"])
        self._infix = re.compile(rules["infix_finditer"])
        self._url = re.compile(rules["url_match"])
        self._special = {
            word: [(part[_TEXT], part.get(_NORM)) for part in parts] for word, parts in rules["exceptions"].items()
        }
        self._split = lru_cache(_CACHED)(self._parts)

    def tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text, in order."""
        for word in _WORD.finditer(text):
            at = word.start()
            for part, norm in self._split(word[0]):
                yield Token(part, at, at + len(part), features(part, norm))
                at += len(part)

    def _parts(self, word: str) -> list[tuple[str, str | None]]:
        """Return the tokens of a word with the norms that differ from the usual one."""
        opening: list[str] = []
        closing: list[str] = []
        size = 0
        while word and len(word) != size and word not in self._special:
            size = len(word)
            before = self._prefix.search(word)
            opens = before.end() if before else 0
            if opens and word[opens:] in self._special:
                opening.append(word[:opens])
                word = word[opens:]
                break
            after = self._suffix.search(word[opens:])
            closes = after.end() - after.start() if after else 0
            if closes and word[:-closes] in self._special:
                closing.append(word[-closes:])
                word = word[:-closes]
                break
            if opens:
                opening.append(word[:opens])
            if closes:
                closing.append(word[len(word) - closes :])
            word = word[opens : len(word) - closes]
        middle = self._special.get(word) or [(part, None) for part in self._inner(word)]
        return [*((one, None) for one in opening), *middle, *((one, None) for one in reversed(closing))]

    def _inner(self, word: str) -> Iterator[str]:
        start = 0
        for mark in () if self._url.match(word) else self._infix.finditer(word):
            if mark.start() != start:
                yield word[start : mark.start()]
                if mark[0]:
                    yield mark[0]
                start = mark.end()
        if word[start:]:
            yield word[start:]


@lru_cache(_CACHED)
def features(text: str, norm: str | None = None) -> tuple[int, int, int, int]:
    """Return the hashes of norm, first letter, last three letters, and shape of a token."""
    norm = norm or _NORMS.get(text) or text.lower()
    return string_hash(norm), string_hash(text[0]), string_hash(text[-3:]), string_hash(shape(text))


def shape(text: str) -> str:
    """Return the shape of a token; of more than four letters or digits of a kind in a row, four are kept.

    Example:
        >>> shape("McDonald"), shape("2021"), shape("B-52s")
        ('XxXxxxx', 'dddd', 'X-ddx')
    """
    if len(text) >= 100:
        return "LONG"
    made: list[str] = []
    for letter in text:
        kind = ("X" if letter.isupper() else "x") if letter.isalpha() else "d" if letter.isdigit() else letter
        if made[-4:] != [kind] * 4:
            made.append(kind)
    return "".join(made)


@lru_cache(_CACHED)
def string_hash(text: str) -> int:
    """Return the number by which spaCy knows a string: MurmurHash2, 64 bits, seed 1.

    Example:
        >>> string_hash("coffee")
        3197928453018144401
    """
    if text in _SYMBOLS:
        return _SYMBOLS[text]
    data = text.encode()
    value = 1 ^ (len(data) * _FACTOR & _MASK)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        part = int.from_bytes(data[at : at + 8], "little") * _FACTOR & _MASK
        part = (part ^ part >> 47) * _FACTOR & _MASK
        value = (value ^ part) * _FACTOR & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 47) * _FACTOR & _MASK
    return value ^ value >> 47


class Dictionary:
    """English words with their forms: nouns, verbs, adjectives and adverbs of WordNet.

    Args:
        path: File with the lemmas of a model.

    Attributes:
        openers: Verbs and adverbs, with which many sentences begin.
    """

    def __init__(self, path: Path) -> None:
        tables = msgspec.msgpack.decode(path.read_bytes(), strict=False)
        lists = [words for table in ("lemma_index", "lemma_exc") for words in tables[table].values()]
        self._words = frozenset(word for words in lists for word in words)
        self.openers = frozenset(word for kind in ("verb", "adv") for word in tables["lemma_index"][string_hash(kind)])
        self._endings = {(old, new) for rules in tables["lemma_rules"].values() for old, new in rules if old.isalpha()}

    def __contains__(self, word: str) -> bool:
        if word in self._words:
            return True
        return any(word.endswith(old) and word[: -len(old)] + new in self._words for old, new in self._endings)
