"""`custom_spelling`: what the client wants written differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from voxframe.local.words import Word, merged


def respell(words: Sequence[Word], rules: Sequence[Mapping[str, Any]]) -> list[Word]:
    """Replace words and phrases.

    Args:
        words: The words, in order.
        rules: Entries of the interface, `{"from": ["dee carlo", "dicarlo"], "to": "Decarlo"}`. A phrase matches in any
            case, within one speaker and channel; of several that match at a place, the longest wins.

    Returns:
        New words; one that replaces several spans their time and has their mean confidence. Their spelling stays as
        it is given, at the beginning of a sentence too.

    Example:
        >>> heard = [Word("dee", 0, 200, 0.4), Word("carlo", 200, 600, 0.6)]
        >>> [(w.text, w.start, w.end, w.confidence) for w in respell(heard, [{"from": ["Dee Carlo"], "to": "Decarlo"}])]
        [('Decarlo', 0, 600, 0.5)]
    """
    spellings = {
        tuple(phrase.lower().split()): rule["to"].split()
        for rule in rules
        for phrase in rule["from"]
        if phrase.split() and rule["to"].split()
    }
    longest = max(map(len, spellings), default=0)
    respelled: list[Word] = []
    at = 0
    while at < len(words):
        for length in range(min(longest, len(words) - at), 0, -1):
            span = words[at : at + length]
            texts = spellings.get(tuple(word.text.lower() for word in span))
            if texts and len({(word.speaker, word.channel) for word in span}) == 1:
                respelled += [replace(word, given=True) for word in merged(span, texts)]
                at += length
                break
        else:
            respelled.append(words[at])
            at += 1
    return respelled
