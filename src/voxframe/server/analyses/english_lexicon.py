"""Rarity and part of speech of English words, from the trigram model that pocketsphinx includes.

Nouns and verbs are told apart by how often a word follows "the" and "a", and how often "to" and "they". Words that the
model does not contain count as rare nouns.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from snowballstemmer import stemmer

#: Function words, and common words of conversation.
STOPWORDS = frozenset(
    """
    a about above actually after afterwards again against ago all almost alone along already also although always am
    among an and another any anybody anyone anything anyway are around as aside ask asked at away back be became
    because become been before behind being below beside besides best better between beyond big bit both but by bye
    call called came can cannot could couple day days definitely did didn't different do does doesn't doing don't
    done dot down during each either else enough etc even ever every everybody everyone everything exactly example
    far few fewer fine first for former from further gave get gets getting give given gives go goes going gone gonna
    good goodbye got great guess guy guys had half happen happened happens has have having he hear heard hello her
    here hers herself hey hi him himself his hour hours how however huge i idea if important in indeed inside
    instead into is isn't it its itself just keep kept kind knew know known last lately later latter least left less
    let lets like likely little long longer look looked looking lot lots made mainly make makes making many matter
    may maybe me mean means might mine minute minutes moment month months more morning most mostly mr mrs much must
    my myself name near nearly need needs neither never new next nice no nobody none nor not nothing now nowhere
    number of off often oh ok okay old on once one ones only onto open or other others our ours ourselves out
    outside over own part particular past people per perhaps person place plenty point pretty probably put question
    quite rather really right said same saw say saying says second see seem seemed seems seen several shall she
    should show since small so some somebody someone something sometimes somewhere soon sorry sort still stuff such
    sure take taken takes taking talk talked talking tell tells than thank thanks that the their theirs them
    themselves then there therefore these they thing things think thinking this those though thought through
    throughout time times to today together told tomorrow tonight too took toward towards true try trying turn
    turned two twice under until up upon us use used using usually very via wanna want wanted wants was way ways we
    week weeks welcome well went were what whatever when whenever where whether which while who whoever whole whom
    whose why will wish with within without wonderful word words would wow wrong yeah year years yes yesterday yet
    you your yours yourself yourselves one two three four five six seven eight nine ten eleven twelve thirteen
    fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred thousand million billion i'm i've i'll i'd you're you've you'll you'd he's she's it's we're we've we'll
    we'd they're they've they'll that's there's what's let's can't won't wouldn't couldn't shouldn't wasn't weren't
    haven't hasn't isn't aren't
    """.split()
)
_UNKNOWN = 6.3  # rarity of unknown words, equal to that of the rarest known ones
_NEVER = -100.0  # log10, below any probability in the model
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


@cache
def rarity(word: str) -> float:
    """Return -log10 of the frequency of a word in English: 1.4 for "the", 5.3 for "telescope"."""
    share = _log_share(word)
    return _UNKNOWN if share is None else -share


@cache
def nounness(word: str) -> float:
    """Return a positive value for words that are mostly nouns or noun modifiers, a negative one for verbs and adverbs.

    Example:
        >>> nounness("garden") > 0.5, nounness("walked") < -0.5, nounness("quickly") < -0.5
        (True, True, True)
    """
    alone = _log_share(word)
    if alone is None:
        return -1.0 if word.endswith("ly") else 1.0
    as_noun = max(_log_share(word, before) or alone for before in ("the", "a", "of", "my"))
    as_verb = max(_log_share(word, before) or alone for before in ("to", "he", "she", "they"))
    return as_noun - max(as_verb, (_log_share(word, "very") or alone) - 0.6)


def _log_share(word: str, before: str | None = None) -> float | None:
    """Return log10 of the probability of a word, optionally after another word; None for unknown words."""
    model, ten = _model()
    chance = model.prob([word, before] if before else [word])
    return None if chance < _NEVER * ten else float(chance / ten)


@cache
def _model() -> tuple[Any, int]:
    """Return the trigram model, and 10 on its logarithmic scale."""
    from pocketsphinx import Config, LogMath, NGramModel, get_model_path

    scale = LogMath()
    model = NGramModel(Config(), scale, str(Path(get_model_path()) / "en-us" / "en-us.lm.bin"))
    return model, scale.log10_to_log(1.0)
