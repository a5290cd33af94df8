"""Passages: the turns of one transcript in reading order, long ones in parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.columns import require
from voxframe.widgets.source import labels

#: A turn with more words is shown in parts, cut after a sentence where one ends in the second half of a part.
MOST_WORDS = 80
_SENTENCE_END = (".", "?", "!", "…", "\u3002", "\uff1f", "\uff01")


@dataclass(frozen=True)
class Passages:
    """Words of one transcript in reading order, cut into passages.

    Attributes:
        words: The words, passage after passage.
        first: Position of the first word of each passage, and one past the last word: shape (passages + 1,).
        turn: Number of the turn of each passage, shape (passages,): `utterance_idx`, else counted in reading order.
        voice: Number of the voice of each passage, shape (passages,).
        voices: Labels of the voices, first to speak first; null is a voice of its own.
        numbered: Whether turns are numbered by `utterance_idx`.
    """

    words: pd.DataFrame
    first: npt.NDArray[np.int64]
    turn: npt.NDArray[np.int64]
    voice: npt.NDArray[np.int64]
    voices: list[str | None]
    numbered: bool


def passages(words: pd.DataFrame) -> Passages:
    """Cut words into passages: by `utterance_idx` where every word has one, else where the voice changes.

    Args:
        words: Words of one transcript, as `voxframe.load_words` gives them. A word with no time stays behind the one
            it follows.

    Raises:
        ValueError: A column is missing, or the words are of several transcripts.

    Example:
        >>> words = pd.DataFrame({"speaker": ["A", "A", "B"], "text": ["Is", "it?", "Yes."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> passages(words).first.tolist()
        [0, 2, 3]
    """
    require(words, ("text", "start_ms", "end_ms"), "TranscriptPlayer")
    if "transcript_id" in words.columns and (count := words["transcript_id"].nunique()) > 1:
        raise ValueError(f"the words are of {count} transcripts; pick one, as in words[words['transcript_id'] == id]")
    time = words["start_ms"].astype("Float64").ffill().fillna(0).to_numpy(np.float64)
    label, names = pd.factorize(labels(words), use_na_sentinel=False)
    numbered = "utterance_idx" in words.columns and bool(words["utterance_idx"].notna().all()) and len(words) > 0
    if numbered:
        turn, _ = pd.factorize(words["utterance_idx"])
        begins = np.full(turn.max() + 1, np.inf)
        np.minimum.at(begins, turn, time)
        order = np.lexsort((time, turn, begins[turn]))  # who interrupts follows the turn that was interrupted
        changes = np.diff(turn[order]) != 0
    else:
        order = np.argsort(time, kind="stable")
        changes = np.diff(label[order]) != 0
    words, label = words.iloc[order].reset_index(drop=True), label[order]
    edges = np.r_[0, np.flatnonzero(changes) + 1, len(words)] if len(words) else np.zeros(1, np.int64)
    spoken = words["text"].fillna("").astype(object).to_numpy()
    cuts = [cut for a, b in pairwise(edges.tolist()) for cut in _parts(spoken, a, b)]
    first = np.array([*cuts, len(words)], np.int64)
    # Voices by when they are first heard, so that lanes and legends begin with who began.
    heard, place = np.unique(label, return_index=True)
    rank = np.argsort(np.argsort(place))
    voice = rank[np.searchsorted(heard, label[first[:-1]])] if len(words) else np.empty(0, np.int64)
    found = [names[heard[n]] for n in np.argsort(place)]
    if numbered:
        number = words["utterance_idx"].to_numpy(np.int64)[first[:-1]]
    else:
        number = np.searchsorted(edges, first[:-1], side="right") - 1
    return Passages(words, first, number, voice, [None if pd.isna(n) else str(n) for n in found], numbered)


def _parts(spoken: npt.NDArray[np.object_], begin: int, end: int) -> list[int]:
    """Where the parts of a turn begin."""
    parts = [begin]
    while end - parts[-1] > MOST_WORDS:
        low, high = parts[-1] + MOST_WORDS // 2, parts[-1] + MOST_WORDS
        ends = (n + 1 for n in range(high - 1, low, -1) if spoken[n].endswith(_SENTENCE_END))
        parts.append(next(ends, high))
    return parts
