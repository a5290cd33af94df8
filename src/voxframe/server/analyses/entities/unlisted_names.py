"""Names of people and organizations that are in no list: words with capitals in their context.

The name model takes many rare names for a name of another kind, and overlooks some, above all at the start of a
sentence. So a word that no dictionary has counts as a name too, and the words around it decide its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from voxframe.server.analyses.english_lexicon import STOPWORDS
from voxframe.server.analyses.entities.listed_terms import known, names
from voxframe.server.analyses.entities.name_model import NameModel
from voxframe.server.analyses.entities.people import STOP
from voxframe.server.analyses.entities.text import EntityMatch, WordRun

_CAPITAL = r"(?!I\b)(?:[A-Z]\.|(?=[^\W\d_a-z])[^\W\d_]+(?:['\u2019-][^\W\d_]+)*)"
_PARTICLES = r"(?:van|von|der|den|de|di|da|dos|del|della|la|bin|ibn|al|el|ter|ten|zu)"
#: Words with capitals that belong together: "Hendrikje van der Molen", "Fir & Sons".
_AND = r"(?:& |and (?=(?:Sons|Daughters|Brothers|Co|Company|Partners|Associates)\b))"
_TOGETHER = re.compile(rf"(?<![\w&]){_CAPITAL}(?: (?:(?:{_PARTICLES} ){{1,2}}(?=[^\W\d_a-z])|{_AND})?{_CAPITAL})*")
_VOWEL = re.compile(r"[aeiouyà-ɏ]")
_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_ARTICLE = re.compile(r"\b(?:the|an?|this|that|every|each|no|some|my|your|his|her|our|their) $")
_BEFORE_BODY = re.compile(
    r"\b(?:at|for|from|with|between|of|to|by|left|join(?:ed)?|start(?:ed)?|called|bought|sold|sued|in|than|into|via) $"
)
_AT_BODY = re.compile(r"\b(?:at|with|from|joined|left|called|work(?:s|ed|ing)? for) $")
_PERSON, _ORGANIZATION = ("person_name", 59), ("organization", 61)


class _Word(NamedTuple):
    start: int
    end: int
    low: str
    ordinary: bool  # in a dictionary, or a place, a people, a month ...
    listed: bool  # as a first or family name


def unlisted_names(run: WordRun, model: NameModel) -> Iterator[EntityMatch]:
    """Yield person_name and organization."""
    if run.text == run.low:
        return
    labels = {at: span.label for span in model.find(run.text) for at in range(span.start, span.end)}
    for match in _TOGETHER.finditer(run.text):
        words = [_word(run, match.start() + found.start(), found[0], model) for found in _TOKEN.finditer(match[0])]
        words = _without_opening(run, words)
        if words and (kind := _kind(run, words, labels)):
            yield EntityMatch(kind[0], words[0].start, words[-1].end, kind[1])


def _without_opening(run: WordRun, words: list[_Word]) -> list[_Word]:
    """Remove ordinary words at the start of a sentence: "Did Saoirse", but not "Rose Achebe"."""
    while words and words[0].ordinary and run.opens_sentence(words[0].start):
        if words[0].listed and len(words) > 1:
            break
        words = words[1:]
    return words


def _word(run: WordRun, start: int, text: str, model: NameModel) -> _Word:
    text = re.sub(r"['\u2019]s$", "", text)
    low = run.low[start : start + len(text)]
    ordinary = low in STOP or low in STOPWORDS or low in known() or all(map(model.knows, low.split("-")))
    ordinary = ordinary or not _VOWEL.search(low.split("-")[-1])  # "Mm-hmm"
    return _Word(start, start + len(text), low, ordinary, low in names().first or low in names().family)


def _kind(run: WordRun, words: list[_Word], labels: Mapping[int, str]) -> tuple[str, int] | None:
    """Return kind and weight of a name; None if the words are none, or of another kind."""
    found = (labels.get(word.start) for word in words)
    label = next((label for label in found if label in ("PERSON", "ORG")), None)
    if all(word.ordinary for word in words):
        return _kind_of_ordinary(run, words, label)
    first, last, before = words[0], words[-1], run.low[: words[0].start]
    if last is first:
        if _ARTICLE.search(before) or run.text[first.start : first.end].isupper():
            return _ORGANIZATION if label == "ORG" else None
        at_body = _BEFORE_BODY.search(before) if label == "ORG" else before.endswith(" at ")
        return _ORGANIZATION if at_body and not first.listed else _PERSON
    if last.ordinary and not last.listed:
        return _ORGANIZATION  # "Pinewood Analytics"
    return _ORGANIZATION if label == "ORG" and any(word.ordinary and not word.listed for word in words) else _PERSON


def _kind_of_ordinary(run: WordRun, words: list[_Word], label: str | None) -> tuple[str, int] | None:
    """Return kind and weight of a name whose words are all in the dictionary."""
    first, several, before = words[0], len(words) > 1, run.low[: words[0].start]
    if label is None:  # "from Polar Freight"
        is_body = several and words[-1].low not in STOP and not run.opens_sentence(first.start)
        return _ORGANIZATION if is_body and _AT_BODY.search(before) else None
    if first.low in known() or (not several and _ARTICLE.search(before)):
        return None
    if label == "PERSON":
        return _PERSON if any(word.listed for word in words) else None
    return _ORGANIZATION if several else None


def is_common_noun(run: WordRun, found: EntityMatch, model: NameModel) -> bool:
    """Return True if a listed name is an ordinary word after an article: "a Roman coin"."""
    low = run.low[found.start : found.end]
    return found.kind == "person_name" and model.knows(low) and bool(_ARTICLE.search(run.low[: found.start]))
