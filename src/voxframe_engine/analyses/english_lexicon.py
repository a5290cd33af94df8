"""Rarity and part of speech of English words, from a list of 27,000 words.

The list was computed from the English language model of CMU Sphinx. Nouns and verbs are told apart by how often a word
follows "the" and "a", and how often "to" and "they". Other words count as rare nouns.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from importlib.resources import files

from snowballstemmer import stemmer

from voxframe._text import FUNCTION_WORDS

#: Function words, and common words of conversation.
STOPWORDS = FUNCTION_WORDS | frozenset(
    """
    above actually afterwards against ago almost alone along already although always among another anybody anyone
    anything anyway around aside ask asked away became become behind below beside besides best better between beyond
    big billion bit bye call called cannot couple day days definitely different dot during eight eighteen eighty
    either eleven else enough etc ever everybody everyone everything exactly example far few fewer fifteen fifty
    fine first five former forty four fourteen further gave given gives gonna goodbye great guess guy guys half
    happen happened happens hear heard hello hers herself hey hi himself hour hours however huge hundred idea
    important indeed inside instead itself keep kept knew known last lately later latter least left less lets likely
    long longer looked looking lots made mainly makes making matter means million mine minute minutes moment month
    months morning mostly mr mrs myself name near nearly need needs neither new next nice nine nineteen ninety
    nobody none nor nothing nowhere number often old once ones onto open others ours ourselves outside part
    particular past per perhaps person place plenty point pretty probably question saw saying says second seem
    seemed seems seen seven seventeen seventy several show since six sixteen sixty small somebody someone sometimes
    somewhere soon sorry stuff taken takes taking talk talked talking tell tells ten theirs themselves therefore
    thinking thirteen thirty thought thousand three throughout time times today together told tomorrow tonight took
    toward towards true try trying turn turned twelve twenty twice under until upon using usually via wanna wanted
    wants ways week weeks welcome whatever whenever whether whoever whole whom whose wish within without wonderful
    word words wow wrong year years yesterday yourself yourselves
    aren't can't couldn't didn't doesn't don't hasn't haven't he's isn't it's i'd i'll i'm i've let's she's
    shouldn't that's there's they'll they're they've wasn't weren't we'd we'll we're we've what's won't wouldn't
    you'd you'll you're you've
    """.split()
)
_UNKNOWN = 6.3  # rarity of words that are not listed; those that are have less
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_REDACTED = re.compile(r"\[[A-Z]+(?:_[A-Z]+)*\]")  # placeholder of a redacted entity
_stem = stemmer("english")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    Example:
        >>> words_of("Well-known: it's 42! Since [DATE].")
        ['well-known', "it's", '42', 'since']
    """
    return [word.replace("\u2019", "'") for word in _WORD.findall(without_redacted(text).lower())]


def without_redacted(text: str) -> str:
    """Remove the placeholders of redacted entities: a "[DATE]" is not about dates.

    Example:
        >>> without_redacted("Since [DATE_OF_BIRTH] ...")
        'Since  ...'
    """
    return _REDACTED.sub("", text)


@cache
def stem(word: str) -> str:
    """Return the stem of a word.

    Example:
        >>> stem("fires") == stem("fire"), stem("fires")
        (True, 'fire')
    """
    return str(_stem.stemWord(word.removesuffix("'s")))


def content(text: str) -> list[str]:
    """Return the stems of the content words of a text."""
    return [stem(word) for word in words_of(text) if word not in STOPWORDS and len(word) > 2]


def rarity(word: str) -> float:
    """Return -log10 of the frequency of a word in English: 1.4 for "the", 5.3 for "telescope"."""
    return _listed()[word][0] if word in _listed() else _UNKNOWN


def is_common(word: str) -> bool:
    """Return True for a word that is listed."""
    return word in _listed()


def nounness(word: str) -> float:
    """Return a positive value for words that are mostly nouns or noun modifiers, a negative one for verbs and adverbs.

    Example:
        >>> nounness("garden") > 0.5, nounness("walked") < -0.5, nounness("quickly") < -0.5
        (True, True, True)
    """
    return _listed()[word][1] if word in _listed() else -1.0 if word.endswith("ly") else 1.0


@cache
def _listed() -> dict[str, tuple[float, float]]:
    """Return rarity and nounness of the listed words."""
    text = gzip.decompress(files(__package__).joinpath("english_words.txt.gz").read_bytes()).decode()
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {word: (float(rare), float(noun)) for word, rare, noun in rows}
