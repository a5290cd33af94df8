"""Finds words, numbers and short phrases in the words of a transcript, whatever their case and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from voxframe.options import WORD_SEARCH_WORDS

_NOT_SPOKEN = re.compile(r"(?<=\d),(?=\d)|(?!(?<=\d)\.(?=\d))[\W_]")  # "3,000" is 3000, but "3.5" is not 35


def plain(word: str) -> str:
    """A word as it is compared.

    Example:
        >>> plain("Runner's"), plain("3,000."), plain("3.5")
        ('runners', '3000', '3.5')
    """
    return _NOT_SPOKEN.sub("", unicodedata.normalize("NFKC", word).casefold())


def terms(values: Iterable[str]) -> list[str]:
    """What to search for, from the values of `words=`: comma-joined, or given several times.

    Raises:
        ValueError: There is none, or one is longer than five words.
    """
    found: dict[str, str] = {}
    for value in values:
        for term in value.split(","):
            key = " ".join(_tokens(term))
            if key.count(" ") >= WORD_SEARCH_WORDS:
                raise ValueError(f"a phrase may have at most {WORD_SEARCH_WORDS} words; {term.strip()!r} has more")
            if key:
                found.setdefault(key, " ".join(term.split()))
    if not found:
        raise ValueError("words is required: words, numbers or phrases of up to five words, joined by commas")
    return list(found.values())


def _tokens(text: str) -> list[str]:
    return [token for token in map(plain, text.split()) if token]


def search(words: Sequence[dict[str, Any]], wanted: Iterable[str]) -> list[dict[str, Any]]:
    """Occurrences of each term, as the interface writes them. A term that does not occur is left out.

    Args:
        words: Words of a transcript.
        wanted: Terms, as `terms` returns them.

    Example:
        >>> search([{"text": "Smoke.", "start": 250, "end": 650}], ["smoke"])
        [{'text': 'smoke', 'count': 1, 'timestamps': [[250, 650]], 'indexes': [0]}]
    """
    # Channel by channel: the words of people who talk at once alternate, and a phrase is what one of them says.
    channels: dict[Any, list[tuple[str, int]]] = {}
    for index, word in enumerate(words):
        channels.setdefault(word.get("channel"), []).extend((token, index) for token in _tokens(word["text"]))
    spoken = [place for channel in channels.values() for place in (*channel, ("", -1))]  # no term holds ""
    places: dict[str, list[int]] = {}
    for place, (token, _) in enumerate(spoken):
        places.setdefault(token, []).append(place)
    matches = []
    for term in wanted:
        tokens = _tokens(term)
        spans = [
            (spoken[place][1], spoken[place + len(tokens) - 1][1])
            for place in places.get(tokens[0], ())
            if [token for token, _ in spoken[place : place + len(tokens)]] == tokens
        ]
        spans.sort()
        if spans:
            matches.append(
                {
                    "text": term,
                    "count": len(spans),
                    "timestamps": [[words[first]["start"], words[last]["end"]] for first, last in spans],
                    "indexes": [first for first, _ in spans],
                }
            )
    return matches
