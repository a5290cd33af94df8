"""The search index at one moment, as searches use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe.corpus.search_catalogue import Catalogue
from voxframe.corpus.search_segment import Segment


@dataclass(frozen=True)
class View:
    """The index at one moment.

    Attributes:
        segments: Its segments.
        ranks: For each, of every document its place in the order of all transcripts; -1 where it was replaced or
            removed since.
        ids: Identifiers of all transcripts, sorted.
    """

    segments: tuple[Segment, ...]
    ranks: tuple[npt.NDArray[np.int64], ...]
    ids: pa.Array

    @cached_property
    def known(self) -> frozenset[str]:
        """The same identifiers, to ask whether one is among them."""
        return frozenset(self.ids.to_pylist())


def view_of(catalogue: Catalogue, opened: dict[str, Segment]) -> View:
    """What a catalogue says, with the segments that it names."""
    documents = list(catalogue.documents.values())
    names = [opened[d.segment].names[d.place] for d in documents]
    ranks = {name: np.full(len(opened[name].ids), -1) for name in catalogue.segments}
    order = sorted(range(len(names)), key=names.__getitem__)
    for rank, n in enumerate(order):
        ranks[documents[n].segment][documents[n].place] = rank
    ids: Any = pa.array([names[n] for n in order], pa.string())
    return View(tuple(opened[name] for name in ranks), tuple(ranks.values()), ids)
