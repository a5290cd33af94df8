"""Options that change words: `custom_spelling`, `disfluencies` and `filter_profanity`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from voxframe.server.text import Word, merged
from voxframe.server.text.formatting import split_punctuation


def respell(words: Sequence[Word], rules: Sequence[Mapping[str, Any]]) -> list[Word]:
    """Replace words and phrases.

    Args:
        words: The words, in order.
        rules: Entries of the request: `{"from": ["dee carlo", "dicarlo"], "to": "Decarlo"}`. A phrase matches in any
            case within one speaker and channel. If several match at one position, the longest is used. A point at its
            end is replaced with it: "dr." is written "Doctor", not "Doctor.".

    Returns:
        New words. A word that replaces several has their time span and mean confidence. Its spelling is final: no
        capital is added at the start of a sentence.

    Example:
        >>> spoken = [Word("dee", 0, 200, 0.4), Word("carlo", 200, 600, 0.6)]
        >>> [respelled] = respell(spoken, [{"from": ["Dee Carlo"], "to": "Decarlo"}])
        >>> respelled.text, respelled.start, respelled.end, respelled.confidence
        ('Decarlo', 0, 600, 0.5)
    """
    spellings: dict[tuple[str, ...], tuple[list[str], str]] = {}
    for rule in rules:
        for phrase in rule["from"]:
            words_of_it = split_punctuation([Word(text, 0, 0, 0.0) for text in phrase.lower().split()])
            if words_of_it and rule["to"].split():
                spellings[tuple(word.text for word in words_of_it)] = rule["to"].split(), words_of_it[-1].mark
    longest = max(map(len, spellings), default=0)
    respelled: list[Word] = []
    at = 0
    while at < len(words):
        for length in range(min(longest, len(words) - at), 0, -1):
            span = words[at : at + length]
            texts, mark = spellings.get(tuple(word.text.lower() for word in span), ((), ""))
            if texts and len({(word.speaker, word.channel) for word in span}) == 1:
                respelled += [replace(word, spelling_fixed=True) for word in merged(span, texts)]
                respelled[-1].mark = respelled[-1].mark.removeprefix(mark)
                at += length
                break
        else:
            respelled.append(words[at])
            at += 1
    return respelled


#: Filled pauses. "uh-huh", "mhm" and "huh" are replies, so they are not in the list.
FILLED_PAUSES = frozenset({"um", "umm", "uhm", "uh", "er", "erm", "hm", "hmm", "mm"})


def without_filled_pauses(words: Sequence[Word]) -> list[Word]:
    """Return the words without filled pauses. If one ended a sentence, the word before it does.

    Example:
        >>> spoken = [Word("well", 0, 300, 0.9), Word("um", 400, 800, 0.5), Word("yes", 900, 1200, 0.8)]
        >>> [word.text for word in without_filled_pauses(spoken)]
        ['well', 'yes']
    """
    kept: list[Word] = []
    for word in words:
        if word.text.lower() not in FILLED_PAUSES:
            kept.append(word)
        elif word.ends_sentence and kept and (kept[-1].speaker, kept[-1].channel) == (word.speaker, word.channel):
            kept[-1].ends_sentence, kept[-1].mark = True, word.mark
    return kept


# _STEMS take any of the endings below. _WORDS match only as they are ("cocktail" and "assess" are not profane).
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
    """Return the text with all letters of swear words, except the first, replaced by asterisks.

    Example:
        >>> masked("Shit,"), masked("shiitake"), masked("class")
        ('S***,', 'shiitake', 'class')
    """
    return _LETTERS.sub(lambda found: _mask(found[0]) if _PROFANE.fullmatch(found[0]) else found[0], text)


def _mask(word: str) -> str:
    return word[0] + "*" * (len(word) - 1)
