"""Named entities and personal information in a transcript.

Method: patterns over numbers as spoken and as written, cue words before numbers, checksums and formats (Luhn, IBAN,
phone numbers), and lists of terms, places, nationalities and personal names. No language model is used. Every redaction
policy of the interface has a detector, but some cover only a short list of words.

Quality on 125 held-out lines of the project (`python -m tests.benchmarks analyses`): precision 0.97, recall 0.96; on
written lines alone 0.95 and 0.95, on lines as the default engine writes them 0.99 and 0.98. On three recordings
recognized by that engine, errors included, 79 to 91 percent of the personal time was found. Of 33 entities that a
hosted service detected in a real recording, 25 were found, and 7 others. The author of the lines also wrote the
detectors; on 55 lines by another author, precision was 0.96 and recall 0.94. Real conversations are harder.

Detection is never complete. It misses names that are in no list (nearly all of them in text without capitals), uncommon
terms, addresses without a number, and misrecognized words. Do not rely on it alone if a leak would harm a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from voxframe.server.analyses.entities.contacts import contacts
from voxframe.server.analyses.entities.dates import amounts, dates
from voxframe.server.analyses.entities.identifiers import identifiers
from voxframe.server.analyses.entities.listed_terms import terms
from voxframe.server.analyses.entities.people import organisations, people
from voxframe.server.analyses.entities.text import EntityMatch, WordDict, WordRun, runs


class Entity(NamedTuple):
    """A detected entity.

    Attributes:
        kind: One of the redaction policies of the interface.
        text: Its text.
        indexes: Indexes of its words in the list of words.
    """

    kind: str
    text: str
    indexes: tuple[int, ...]


def find(words: Sequence[WordDict], language_code: str | None = None) -> list[Entity]:
    """Return all detected entities, ordered by position. They do not overlap, but one written word may contain two.

    Args:
        words: Words of a transcript.
        language_code: Language of the transcript; British English has other phone numbers.

    Example:
        >>> [e[:2] for e in find([{"text": t, "start": 0, "end": 9} for t in "she paid forty two dollars".split()])]
        [('money_amount', 'forty two dollars')]
    """
    region = "GB" if language_code == "en_uk" else "US"
    found = [entity for run in runs(words) for entity in _in_run(run, region)]
    return sorted(found, key=lambda entity: entity.indexes)


def _in_run(run: WordRun, region: str) -> Iterator[Entity]:
    found = [f for detect in (contacts, dates, amounts, organisations, people, terms) for f in detect(run)]
    for f in _strongest([*found, *identifiers(run, region)]):
        yield Entity(f.kind, _clean(run.text[f.start : f.end]), run.indexes_of(f.start, f.end))


def _strongest(found: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Return the best matches that do not overlap, in order. A title before a name is not an occupation."""
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


def entities(words: Sequence[WordDict], options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the field `entities`.

    Args:
        words: Words of a transcript.
        options: Options of the request; `language_code` is used.
    """
    return [to_dict(entity, words) for entity in find(words, (options or {}).get("language_code"))]


def to_dict(entity: Entity, words: Sequence[WordDict]) -> dict[str, Any]:
    """Return an entity as it appears in a transcript."""
    said = [words[index] for index in entity.indexes]
    return {
        "entity_type": entity.kind,
        "text": entity.text,
        "start": said[0]["start"],
        "end": max(word["end"] for word in said),
    }
