"""`filter_profanity`: swear words keep their first letter."""

from __future__ import annotations

import re

# Profane with any of the endings below, and profane only as they stand ("cocktail" and "assess" are not).
_STEMS = (
    "arsehole asshole bastard bitch bollock bugger bullshit cocksucker cunt dickhead dumbass fuck jackass motherfuck "
    "shit twat wank whore"
)
_WORDS = (
    "arse arses ass asses cock cocks crap crappy cum dammit damn damned dick dicks fag fags faggot faggots goddam "
    "goddamn goddamned nigga niggas nigger niggers piss pissed pisses pissing prick pricks pussies pussy shitless "
    "shitload shitty shitting slut sluts slutty tits"
)
_ENDINGS = "s|es|ed|er|ers|ing|in|y|face|head|heads|hole|holes"
_PROFANE = re.compile(
    rf"(?:(?:{'|'.join(_STEMS.split())})(?:{_ENDINGS})?|{'|'.join(_WORDS.split())})(?:'s)?", re.IGNORECASE
)
_LETTERS = re.compile(r"[A-Za-z']+")


def masked(text: str) -> str:
    """The text with all letters but the first of each swear word as asterisks.

    Example:
        >>> masked("Shit,"), masked("shiitake"), masked("class")
        ('S***,', 'shiitake', 'class')
    """
    return _LETTERS.sub(lambda found: _mask(found[0]) if _PROFANE.fullmatch(found[0]) else found[0], text)


def _mask(word: str) -> str:
    return word[0] + "*" * (len(word) - 1)
