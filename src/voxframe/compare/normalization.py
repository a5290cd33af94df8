"""Rules that make two spellings of the same words equal before they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import TypeAlias

from voxframe._text import split_words
from voxframe.errors import OptionError
from voxframe.validators import name_list, shown

#: Names of rules, or a function from a text to the text that is compared.
Normalization: TypeAlias = "Collection[str] | Callable[[str], str]"

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\uff07`\u00b4]")
_ANNOTATION = re.compile(r"\[[^\]]*\]|<[^>]*>|\{[^}]*\}|\([^)]*\)")
_INSIDE = re.compile(r"(?<=\w)['.,](?=\w)")
_FILLERS = frozenset("ah eh er erm hm hmm mhm mm mmm uh uhm um umm".split())


def _without_punctuation(text: str) -> str:
    """Replace punctuation by spaces, except inside words and numbers. A hyphen separates words, as in searches."""
    kept = {
        match.start()
        for match in _INSIDE.finditer(text)
        if match[0] == "'" or (text[match.start() - 1].isdigit() and text[match.end()].isdigit())
    }
    return "".join(c if n in kept or unicodedata.category(c)[0] not in "PS" else " " for n, c in enumerate(text))


def _without_fillers(text: str) -> str:
    return " ".join(word for word in text.split() if word.strip(".,?!-…").casefold() not in _FILLERS)


def _without_accents(text: str) -> str:
    spelled = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in spelled if not unicodedata.combining(c)))


#: The rules by name, in the order in which they are applied: `(description, function)`.
RULES = MappingProxyType[str, tuple[str, Callable[[str], str]]](
    {
        "unicode": (
            "Unicode NFKC; typographic apostrophes become '.",
            lambda text: _APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text)),
        ),
        "annotations": (
            "Text in [], (), {} or <> is removed, such as [noise].",
            lambda text: _ANNOTATION.sub(" ", text),
        ),
        "fillers": (f"English filled pauses are removed: {', '.join(sorted(_FILLERS))}.", _without_fillers),
        "case": ("Unicode case folding.", str.casefold),
        "accents": ("Combining marks are removed: é becomes e.", _without_accents),
        "punctuation": (
            "Punctuation and symbols become spaces, except ' inside words, and . and , between digits.",
            _without_punctuation,
        ),
    }
)
#: The rules that apply unless others are given.
DEFAULT = ("unicode", "case", "punctuation")


def normalizer(rules: Normalization) -> Callable[[str], list[str]]:
    """Return the function from a text to its normalised words; one instance for both sides of a comparison."""
    if callable(rules):
        return lambda text: rules(text).split()
    names = name_list(rules, "the rules of normalize=")
    if unknown := [name for name in names if not isinstance(name, str) or name not in RULES]:
        raise OptionError(f"unknown rule {shown(unknown[0])}; the rules are {', '.join(RULES)}; or pass a function")
    steps = [function for name, (_, function) in RULES.items() if name in names]

    def words(text: str) -> list[str]:
        for step in steps:
            text = step(text)
        return split_words(text)

    return words


def normalized(text: str, rules: Normalization = DEFAULT) -> str:
    """Normalise a text for comparison.

    Args:
        text: The text.
        rules: Names from `RULES`, in any order; an empty list only splits at white space. Or a function from text to
            text, such as the `EnglishTextNormalizer` of Whisper.

    Raises:
        TypeError: `text` is not a str.
        OptionError: A rule is unknown.

    Example:
        >>> normalized("Well-known: it's 3.5, Zoë!")
        "well known it's 3.5 zoë"
        >>> normalized("Um, [laughs] Zoë", ["annotations", "fillers", "accents"])
        'Zoe'
        >>> {name: description for name, (description, _) in RULES.items()}["case"]
        'Unicode case folding.'
    """
    if not isinstance(text, str):
        raise TypeError(f"normalized needs a text, not {type(text).__name__}")
    return " ".join(normalizer(rules)(text))
