"""`format_text`: capitals where English writes them, and titles as they are abbreviated."""

from __future__ import annotations

from collections.abc import Sequence

from voxframe.local.names import PROPER, PROPER_PAIRS, TITLES
from voxframe.local.words import Word

_FIRST_PERSON = ("i", "i'm", "i'll", "i've", "i'd")

_DETERMINERS = frozenset("a an the my your his her our their this that every any each no another which what".split())
_NO_NAMES = frozenset(
    "a an the and or but is was are were has had have does did do can could will would shall should may might must to "
    "of in on at for from with by as if that this who which when where said says told asked came went i he she it we "
    "they you not no then there here".split()
)


def add_capitals(sentence: Sequence[Word]) -> None:
    """Capitalise a sentence, in place: its first word, "I", names, titles and the name after one, "January the first".

    A word that has a capital already, or a spelling of the client's own, is left as it is.

    Example:
        >>> said = [Word(text, 0, 0, 1.0) for text in "i met mister dashwood in new york".split()]
        >>> add_capitals(said)
        >>> " ".join(word.text for word in said)
        'I met Mr Dashwood in New York'
    """
    texts = [word.text for word in sentence]
    for at, word in enumerate(sentence):
        if word.given:
            continue
        text = texts[at]
        before, after = _at(texts, at - 1), _at(texts, at + 1)
        if _is_title(before, text, after):
            word.text = TITLES[text]
        elif (  # the last two: "mister dashwood", "mister john dashwood"
            at == 0
            or text in _FIRST_PERSON
            or text.removesuffix("'s") in PROPER
            or (before, text) in PROPER_PAIRS
            or (text, after) in PROPER_PAIRS
            or (at > 0 and _is_title(_at(texts, at - 2), before, text))
            or (
                at > 1
                and before in PROPER
                and text not in _NO_NAMES
                and _is_title(_at(texts, at - 3), texts[at - 2], before)
            )
        ):
            word.text = _capitalised(text)


def _at(texts: Sequence[str], place: int) -> str:
    return texts[place] if 0 <= place < len(texts) else ""


def _is_title(before: str, text: str, after: str) -> bool:
    """Whether the word is somebody's title: "doctor baker", but not "the doctor asked" or "is the doctor in"."""
    return text in TITLES and before not in _DETERMINERS and after.isalpha() and after not in _NO_NAMES


def _capitalised(text: str) -> str:
    return text if any(letter.isupper() for letter in text) else text[:1].upper() + text[1:]
