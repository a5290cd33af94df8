"""What is in the segments of a search index, and which of them should become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any, TypeAlias

#: Most words of a segment; it bounds the memory that building and merging take.
MAX_WORDS = 2_000_000
#: So many segments of about one size become one.
FAN = 8
_LEAST_TIER = 20_000  # words; segments below are all of one size

#: What `Store.listing` gives.
Listing: TypeAlias = dict[str, str]


@dataclass
class Document:
    """Where a transcript is, and the raw payload that it was made of."""

    segment: str
    place: int
    stamp: str
    content: str


@dataclass
class Catalogue:
    """What there is.

    Attributes:
        segments: Words and documents of each segment, with those that were replaced since.
        documents: Transcripts, by file name.
        files: Of each segment what changes when its file does.
    """

    segments: dict[str, list[int]] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Catalogue:
        """A catalogue as `as_json` gives it.

        Raises:
            KeyError, TypeError, ValueError: It is none.
        """
        columns = (found["documents"][f.name] for f in fields(Document))
        documents = [Document(*row) for row in zip(*columns, strict=True)]
        return cls(found["segments"], dict(zip(found["names"], documents, strict=True)), found["files"])

    def as_json(self) -> dict[str, Any]:
        """Columns of the documents, and the rest."""
        columns = {f.name: [getattr(d, f.name) for d in self.documents.values()] for f in fields(Document)}
        return {"segments": self.segments, "files": self.files, "names": [*self.documents], "documents": columns}

    def stamps(self) -> Listing:
        """The listing that this was made from."""
        return {name: document.stamp for name, document in self.documents.items()}

    def drop_dead(self) -> None:
        """Forget segments that hold nothing any more."""
        live = {document.segment for document in self.documents.values()}
        self.segments = {name: size for name, size in self.segments.items() if name in live}

    def to_merge(self) -> list[str]:
        """Segments that should become one: one that is dead for the most part, or many of about one size."""
        live = Counter(document.segment for document in self.documents.values())
        tiers: dict[int, list[str]] = {}
        for name, (words, documents) in sorted(self.segments.items(), key=lambda item: item[1]):
            if 2 * live[name] < documents:
                return [name]
            tiers.setdefault(_tier(words), []).append(name)
        for group in tiers.values():
            totals = accumulate(self.segments[name][0] for name in group)
            fitting = [name for name, total in zip(group, totals, strict=True) if total <= MAX_WORDS]
            if len(group) >= FAN and len(fitting) > 1:
                return fitting
        return []

    def live(self, group: Sequence[str]) -> dict[str, list[int]]:
        """Places of the documents of some segments that are not replaced, in order."""
        places: dict[str, list[int]] = {name: [] for name in group}
        for document in self.documents.values():
            if document.segment in places:
                places[document.segment].append(document.place)
        return {name: sorted(of_segment) for name, of_segment in places.items()}

    def replace(self, merged: Mapping[str, Sequence[int]], name: str, words: int) -> None:
        """Put one segment in the place of others.

        Args:
            merged: Places of the documents of each that are in the new one, in its order; whatever was replaced since
                is dead there, too.
            name: The new segment.
            words: Its words.
        """
        moved = [(segment, place) for segment, places in merged.items() for place in places]
        new_place = {old: place for place, old in enumerate(moved)}
        for document in self.documents.values():
            if document.segment in merged:
                document.segment, document.place = name, new_place[document.segment, document.place]
        for segment in merged:
            del self.segments[segment]
        if moved:
            self.segments[name] = [words, len(moved)]


def _tier(words: int) -> int:
    tier = 0
    while words > _LEAST_TIER * FAN**tier:
        tier += 1
    return tier
