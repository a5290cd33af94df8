"""Contents of the search index: its segments, which of them to merge, and the view that searches use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.corpus.search.segment import IndexSegment, build

#: Maximum number of words in a segment, which bounds the memory for building and merging.
MAX_WORDS = 2_000_000
#: Number of segments of similar size that are merged into one.
FAN = 8
_LEAST_TIER = 20_000  # words; smaller segments count as one size


class Segment(NamedTuple):
    """A segment: its words and documents, including replaced ones, and the stamp of its file, which changes with it."""

    words: int
    documents: int
    stamp: str


class IndexedTranscript(NamedTuple):
    """Segment and position of a transcript, and the payload it was made from."""

    segment: str
    place: int
    stamp: str
    content: str


@dataclass
class Manifest:
    """Contents of the search index: segments by name, and transcripts by the stem of their files."""

    segments: dict[str, Segment] = field(default_factory=dict)
    documents: dict[str, IndexedTranscript] = field(default_factory=dict)

    def copy(self) -> Manifest:
        """Return a copy that can be changed."""
        return Manifest({**self.segments}, {**self.documents})

    def drop_dead(self) -> None:
        """Remove segments without live documents."""
        live = {document.segment for document in self.documents.values()}
        self.segments = {name: segment for name, segment in self.segments.items() if name in live}

    def to_merge(self) -> list[str]:
        """Return segments to merge: one that is mostly dead, or many of similar size."""
        live = Counter(document.segment for document in self.documents.values())
        tiers: dict[int, list[str]] = {}
        for name, segment in sorted(self.segments.items(), key=lambda item: item[1]):
            if 2 * live[name] < segment.documents:
                return [name]
            tiers.setdefault(_tier(segment.words), []).append(name)
        for group in tiers.values():
            totals = accumulate(self.segments[name].words for name in group)
            fitting = [name for name, total in zip(group, totals, strict=True) if total <= MAX_WORDS]
            if len(group) >= FAN and len(fitting) > 1:
                return fitting
        return []

    def live(self, group: Sequence[str]) -> dict[str, list[int]]:
        """Return the positions of live documents in some segments, in order."""
        places: dict[str, list[int]] = {name: [] for name in group}
        for document in self.documents.values():
            if document.segment in places:
                places[document.segment].append(document.place)
        return {name: sorted(of_segment) for name, of_segment in places.items()}

    def replace(self, merged: Mapping[str, Sequence[int]], name: str, words: int, stamp: str = "") -> None:
        """Replace several segments by a merged one."""
        moved = [(segment, place) for segment, places in merged.items() for place in places]
        new_place = {old: place for place, old in enumerate(moved)}
        for file, document in self.documents.items():
            if document.segment in merged:
                place = new_place[document.segment, document.place]
                self.documents[file] = document._replace(segment=name, place=place)
        for segment in merged:
            del self.segments[segment]
        if moved:
            self.segments[name] = Segment(words, len(moved), stamp)


def _tier(words: int) -> int:
    tier = 0
    while words > _LEAST_TIER * FAN**tier:
        tier += 1
    return tier


@dataclass(frozen=True)
class OpenIndex:
    """The search index at one moment."""

    segments: tuple[IndexSegment, ...]
    # For each segment, the rank of every document among all transcripts; -1 if it was replaced or removed.
    ranks: tuple[npt.NDArray[np.int64], ...]
    ids: pa.Array  # ids of all transcripts, sorted

    @cached_property
    def known(self) -> frozenset[str]:
        """The ids as a set."""
        return frozenset(self.ids.to_pylist())

    def replaced(self, words: Mapping[str, pa.Table]) -> OpenIndex:
        """Return the index with other words of some of its transcripts."""
        places = pc.index_in(pa.array(words, pa.string()), self.ids).to_numpy()
        ranks = tuple(np.where(np.isin(rank, places), -1, rank) for rank in self.ranks)
        return OpenIndex((*self.segments, IndexSegment(build(words))), (*ranks, places.astype(np.int64)), self.ids)


def open_index(manifest: Manifest, opened: dict[str, IndexSegment]) -> OpenIndex:
    """Return the index of a manifest, given its open segments."""
    documents = list(manifest.documents.values())
    names = [opened[d.segment].names[d.place] for d in documents]
    ranks = {name: np.full(len(opened[name].ids), -1) for name in manifest.segments}
    order = sorted(range(len(names)), key=names.__getitem__)
    for rank, n in enumerate(order):
        ranks[documents[n].segment][documents[n].place] = rank
    ids: Any = pa.array([names[n] for n in order], pa.string())
    return OpenIndex(tuple(opened[name] for name in ranks), tuple(ranks.values()), ids)
