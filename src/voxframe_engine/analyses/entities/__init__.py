"""Named entities and personal information in a transcript.

Method: patterns over numbers as spoken and as written, series of digits and letters that are read out, cue words before
numbers (also in a question), checksums and formats (Luhn, IBAN, phone numbers), grammars of addresses and ages, lists
of terms, places, nationalities and personal names, and a small neural network for names that are in no list (see
`recognizer`). Every redaction policy of the interface has a detector, but some cover only a short list of words.

Quality on 125 held-out lines of the project (`python -m tests.benchmarks analyses`): precision 0.97, recall 0.96. On 55
lines by another author they were 0.96 and 0.94. Of rare names in 60 held-out lines, 40 of 42 people and 18 of 23
organizations were found. In 24 held-out lines about products, 10 of 12 names of people and organizations were right; in
60 passages of podcasts about software, 23 of 30 people and 14 of 22 organizations, of 27 and 28. Of 21 places in 15
held-out lines, most of them in no list, 10 were found. Of 480 pieces of personal data in calls by three authors who had
not seen the code, 466 were covered by redaction, which also covers doubtful names. Of the other words, 7 % were covered
too, most of them amounts, dates and places.

Detection is never complete. It misses most rare names in text without capitals, uncommon terms, addresses without a
number, and misrecognized words. Do not rely on it alone if a leak would harm a person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from voxframe_engine.analyses.entities.contacts import addresses, contacts
from voxframe_engine.analyses.entities.dates import ages, amounts, dates
from voxframe_engine.analyses.entities.identifiers import identifiers
from voxframe_engine.analyses.entities.people import organisations, people, terms
from voxframe_engine.analyses.entities.recognizer import Recognizer, first_names, is_no_person, plain, unlisted_names
from voxframe_engine.analyses.entities.text import EntityMatch, WordDict, WordRun, runs


class Entity(NamedTuple):
    """A detected entity."""

    kind: str
    text: str
    indexes: tuple[int, ...]


def find(
    words: Sequence[WordDict],
    language_code: str | None = None,
    names: Recognizer | None = None,
    *,
    doubtful: bool = False,
) -> list[Entity]:
    """Return all detected entities, ordered by position. They do not overlap, but one written word may contain two.

    Args:
        names: Recognizer of names. None: names are only found by lists and by the words around them.
        doubtful: Also return unknown words with capitals that are more likely products than persons, for redaction.

    Example:
        >>> [e[:2] for e in find([{"text": t, "start": 0, "end": 9} for t in "she paid forty two dollars".split()])]
        [('money_amount', 'forty two dollars')]
    """
    region = "GB" if language_code == "en_uk" else "US"
    detected = [entity for run in runs(words) for entity in _in_run(run, region, names, doubtful)]
    if names:
        again = list(_named_again(words, detected, names))
        things = set() if doubtful else _things(detected, again)
        detected = [e for e in [*detected, *again] if e.kind != "person_name" or e.text.lower() not in things]
    return sorted(detected, key=lambda entity: entity.indexes)


def _things(detected: Sequence[Entity], again: Sequence[Entity]) -> set[str]:
    """Return words, in lower case, that are taken for a person in less than half of their places: "Kubernetes"."""
    persons = Counter(word for e in detected if e.kind == "person_name" for word in e.text.lower().split())
    others = Counter(entity.text.lower() for entity in again)
    return {text for text, count in others.items() if count > persons[text] and plain(text) not in first_names()}


_VERB_AFTER = frozenset(
    "is was will has had said says can could would does did and rang called isn't wasn't won't".split()
)


def _named_again(words: Sequence[WordDict], detected: Sequence[Entity], names: Recognizer) -> Iterator[Entity]:
    """Yield words with capitals that are part of a person's name elsewhere in the transcript.

    Words of the dictionary count where they are used as names: "Will will be back".
    """
    used = {index for entity in detected for index in entity.indexes}
    parts = {part for entity in detected if entity.kind == "person_name" for part in entity.text.lower().split()}
    for index, word in enumerate(words):
        text = re.sub(r"['\u2019]s$", "", _clean(word["text"]))
        if index in used or not text[:1].isupper() or text.lower() not in parts:
            continue
        if not names.knows(text.lower()) or _is_used_as_name(words, index):
            yield Entity("person_name", text, (index,))


def _is_used_as_name(words: Sequence[WordDict], index: int) -> bool:
    """Return True for a word within a sentence, before a comma, or before a verb."""
    before = words[index - 1]["text"] if index else "."
    after = words[index + 1]["text"].lower() if index + 1 < len(words) else ""
    return before[-1:] not in ".?!:" or words[index]["text"].endswith(",") or after in _VERB_AFTER


_WORD_AFTER = re.compile(r" [a-z]{3,}(?![\w'.-]\w)")
_SETTLED = ("person_age", "date_interval")  # not joined with a number after a comma: "I'm 42, 415 555 0137"


def _in_run(run: WordRun, region: str, names: Recognizer | None, doubtful: bool) -> Iterator[Entity]:
    matches = [
        f for detect in (contacts, dates, ages, amounts, addresses, organisations, people, terms) for f in detect(run)
    ]
    if names:
        matches = [f for f in matches if not is_no_person(run, f, names, doubtful=doubtful)] + list(
            unlisted_names(run, names, doubtful=doubtful)
        )
        if run.text == run.low:
            matches = [_with_rare_family(run, f, names) for f in matches]
    settled = [f for f in matches if f.kind in _SETTLED]
    for f in _strongest([*_whole_names(matches), *identifiers(run, region, settled)]):
        yield Entity(f.kind, _clean(run.text[f.start : f.end]), run.indexes_of(f.start, f.end))


def _whole_names(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Return the matches with overlapping names of persons joined: "Annelise von" and "Annelise von der Heydt"."""
    people = sorted((f for f in matches if f.kind == "person_name"), key=lambda f: (f.start, f.end))
    joined: list[EntityMatch] = []
    for f in people:
        if joined and f.start < joined[-1].end:
            last = joined.pop()
            best = max(last, f, key=lambda f: f.weight)
            f = best._replace(end=max(last.end, f.end))
        joined.append(f)
    return [*(f for f in matches if f.kind != "person_name"), *joined]


def _with_rare_family(run: WordRun, match: EntityMatch, names: Recognizer) -> EntityMatch:
    """Return a name in text without capitals with the word after it, if no dictionary has that word."""
    after = _WORD_AFTER.match(run.low, match.end)
    if match.kind != "person_name" or after is None or not names.is_unknown(after[0][1:]):
        return match
    return match._replace(end=after.end())


def _strongest(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Return the best matches that do not overlap, in order. A title before a name is not an occupation."""
    used: set[int] = set()
    strongest = []
    for f in sorted(matches, key=lambda f: (-f.weight, f.start - f.end)):
        if used.isdisjoint(range(f.start, f.end)):
            used.update(range(f.start, f.end))
            strongest.append(f)
    named = {f.start for f in strongest if f.kind == "person_name"}
    return sorted((f for f in strongest if f.kind != "occupation" or f.end + 1 not in named), key=lambda f: f.start)


def _clean(text: str) -> str:
    text = text.strip(' ,;:!?"')
    return text.rstrip(".") if text.count(".") == 1 else text


def to_dict(entity: Entity, words: Sequence[WordDict]) -> dict[str, Any]:
    """Return an entity as it appears in a transcript."""
    spoken = [words[index] for index in entity.indexes]
    return {
        "entity_type": entity.kind,
        "text": entity.text,
        "start": spoken[0]["start"],
        "end": max(word["end"] for word in spoken),
    }
