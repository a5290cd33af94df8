"""What a search query asks for: words as they are compared, and `*` for any letters."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from voxframe.errors import OptionError

_NOT_SPOKEN = re.compile(r"(?<=\d),(?=\d)|(?!(?<=\d)\.(?=\d))[\W_]")  # "3,000" is 3000, but "3.5" is not 35
_ACCENTS = re.compile("[\u0300-\u036f]")  # not the vowel signs of Indic scripts or the voicing marks of kana


def fold(word: str) -> str:
    """A word as it is compared: without case, accents and punctuation.

    The rules of the embedded service's word search, which knows accents, and then without them.

    Example:
        >>> fold("Don't"), fold("“CAFÉ,”"), fold("3,000."), fold("3.5")
        ('dont', 'cafe', '3000', '3.5')
    """
    plain = _NOT_SPOKEN.sub("", unicodedata.normalize("NFKC", word).casefold())
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


def spoken(text: str) -> list[str]:
    """The words in a text as they are compared; those of punctuation only are none."""
    if text.isascii() and text.isalnum():  # most words
        return [text.lower()]
    return [word for word in map(fold, text.split()) if word]


@dataclass(frozen=True)
class Term:
    """One word of a query.

    Attributes:
        parts: What stands between its `*`; a single one where it has none.
    """

    parts: tuple[str, ...]

    @property
    def any_word(self) -> bool:
        """Whether every word will do: a lone `*`."""
        return len(self.parts) > 1 and not any(self.parts)


def parse(query: str) -> list[Term]:
    """The terms of a query, in order.

    Raises:
        OptionError: It is no text, or there is no word in it.

    Example:
        >>> parse("the Econom*")
        [Term(parts=('the',)), Term(parts=('econom', ''))]
    """
    if not isinstance(query, str):
        raise OptionError(f"a search query is a text, such as 'climate change', not {query!r}")
    terms = [Term(tuple(map(fold, word.split("*")))) for word in query.split()]
    terms = [term for term in terms if len(term.parts) > 1 or term.parts[0]]
    if all(term.any_word for term in terms):
        raise OptionError(f"there is no word to search for in {query!r}; give words, phrases, or words with * in them")
    return terms
