"""How much a word looks like a first name: naive Bayes over its letters.

The names are those of every Faker locale in Latin script, the other words those of WordNet. It tells "Ingvild" from
"Buildkite", which a recognizer by context takes for the same thing.
"""

from __future__ import annotations

import math
import pkgutil
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module

_PRIOR = 0.3  # occurrences that every group of letters has beforehand
_EVERY = 4  # of this many dictionary words, one is enough to count its letters
_FIELDS = ("first_names", "first_names_male", "first_names_female")


def plain(word: str) -> str:
    """Return a word in lower case without accents."""
    letters = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@cache
def first_names() -> frozenset[str]:
    """Return the first names of every locale that is written in Latin script, in lower case without accents."""
    package = import_module("faker.providers.person")
    providers = [import_module(f"{package.__name__}.{m.name}").Provider for m in pkgutil.iter_modules(package.__path__)]
    lists = [getattr(provider, field, ()) for provider in providers for field in _FIELDS]
    every = (plain(name) for names in lists if isinstance(names, Collection) for name in names)
    return frozenset(name for name in every if len(name) > 2 and name.isascii() and name.isalpha())


class Likeness:
    """Compares words with first names."""

    def __init__(self, words: Collection[str]) -> None:
        names = first_names()
        others = [word for word in sorted(words)[::_EVERY] if word.isascii() and word.isalpha() and word not in names]
        self._names = Counter(part for name in names for part in _parts(name))
        self._others = Counter(part for word in others for part in _parts(word))
        self._scale = math.log(self._others.total() / self._names.total())

    def of(self, word: str) -> float:
        """Return the mean logarithm of the odds of three and four letters in a row; above 0, a name is likelier."""
        odds = [math.log((self._names[p] + _PRIOR) / (self._others[p] + _PRIOR)) for p in _parts(plain(word))]
        return sum(odds) / len(odds) + self._scale


def _parts(word: str) -> Iterator[str]:
    framed = f"^{word}$"
    return (framed[at : at + size] for size in (3, 4) for at in range(max(1, len(framed) - size + 1)))
