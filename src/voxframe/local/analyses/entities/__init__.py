"""Entities and PII: what is named in a transcript, and where its words are.

Method: patterns over numbers as they are spoken and written, words that announce a number, checks of form (Luhn, IBAN,
telephone numbers), and lists: common terms by kind, places, peoples, names of people. There is no language model in it.
Every policy of the interface has a detector, though some know only a short list of words.

Quality, on 125 held-out lines of the project's own (`tests.benchmarks analyses`): precision 0.97, recall 0.96; of
written lines alone 0.95 and 0.95, of lines as the default engine writes them 0.99 and 0.98. On three recordings heard
by that engine, whose mishearings count, 79 to 91 percent of the personal time was found. Of 33 entities that a hosted
service saw in a real recording it found 25, with 7 of its own. The lines were written by the hand that wrote the
detectors; on 55 of another hand precision was 0.96, recall 0.94. Real talk is harder.

It is never complete. It misses names that are in no list (in text without capitals nearly all of them), terms beyond
the common ones, addresses without a number, and whatever the engine misheard. Do not rely on it alone where somebody
is harmed by what it leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from voxframe.local.analyses.entities.amounts import amounts
from voxframe.local.analyses.entities.contacts import contacts
from voxframe.local.analyses.entities.dates import dates
from voxframe.local.analyses.entities.identifiers import identifiers
from voxframe.local.analyses.entities.organisations import organisations
from voxframe.local.analyses.entities.people import people
from voxframe.local.analyses.entities.terms import terms
from voxframe.local.analyses.entities.text import Found, Run, WireWord, runs


class Entity(NamedTuple):
    """Something named.

    Attributes:
        kind: One of the interface's policies.
        text: How it was said.
        places: Where its words are in the transcript's list of words.
    """

    kind: str
    text: str
    places: tuple[int, ...]


def find(words: Sequence[WireWord], language_code: str | None = None) -> list[Entity]:
    """Everything the detectors see, in the order of the words. None overlap, but one written word may hold two.

    Args:
        words: Words of the wire.
        language_code: Of the transcript; British English has other telephone numbers.

    Example:
        >>> [e[:2] for e in find([{"text": t, "start": 0, "end": 9} for t in "she paid forty two dollars".split()])]
        [('money_amount', 'forty two dollars')]
    """
    region = "GB" if language_code == "en_uk" else "US"
    found = [entity for run in runs(words) for entity in _in_run(run, region)]
    return sorted(found, key=lambda entity: entity.places)


def _in_run(run: Run, region: str) -> Iterator[Entity]:
    found = [f for detect in (contacts, dates, amounts, organisations, people, terms) for f in detect(run)]
    for f in _strongest([*found, *identifiers(run, region)]):
        yield Entity(f.kind, _clean(run.text[f.start : f.end]), run.places_of(f.start, f.end))


def _strongest(found: Iterable[Found]) -> list[Found]:
    """Those of greatest weight that do not overlap, in order; a title before a name is no occupation."""
    taken: set[int] = set()
    kept = []
    for f in sorted(found, key=lambda f: (-f.weight, f.start - f.end)):
        if taken.isdisjoint(range(f.start, f.end)):
            taken.update(range(f.start, f.end))
            kept.append(f)
    named = {f.start for f in kept if f.kind == "person_name"}
    return sorted((f for f in kept if f.kind != "occupation" or f.end + 1 not in named), key=lambda f: f.start)


def _clean(text: str) -> str:
    text = text.strip(' ,;:!?"')
    return text.rstrip(".") if text.count(".") == 1 else text


def entities(words: Sequence[WireWord], options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """`entities` of the wire.

    Args:
        words: Words of the wire.
        options: The request's options; `language_code` is read.
    """
    return [wire(entity, words) for entity in find(words, (options or {}).get("language_code"))]


def wire(entity: Entity, words: Sequence[WireWord]) -> dict[str, Any]:
    """The entity as the interface writes it."""
    said = [words[place] for place in entity.places]
    return {
        "entity_type": entity.kind,
        "text": entity.text,
        "start": said[0]["start"],
        "end": max(word["end"] for word in said),
    }
