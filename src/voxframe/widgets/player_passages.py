"""Passages of a transcript: its turns in reading order, with long turns split."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.speaker_columns import require, speaker_labels
from voxframe.widgets import binary_columns

#: Longer turns are split, after the last sentence in the second half of a part if there is one.
MAX_PASSAGE_WORDS = 80
#: Columns of indexes for the browser.
_INDEXES = ("first", "turn", "speaker")
_SENTENCE_END = (".", "?", "!", "…", "\u3002", "\uff1f", "\uff01")


@dataclass(frozen=True)
class PlayerPassages:
    """Words of one transcript in reading order, split into passages.

    Attributes:
        words: The words in reading order.
        first: Index of the first word of each passage, and one past the last word: shape (passages + 1,).
        turn: Number of each passage's turn, shape (passages,): `utterance_idx`, or counted in reading order.
        speaker: Index in `speakers` of each passage, shape (passages,).
        speakers: Speaker labels in order of first word; None for words without one.
        numbered: True if turns are numbered by `utterance_idx`.
        start: Start of each word in ms, -1 if its times are unknown or invalid.
        end: End of each word in ms, -1 in the same case.
    """

    words: pd.DataFrame
    first: npt.NDArray[np.int64]
    turn: npt.NDArray[np.int64]
    speaker: npt.NDArray[np.int64]
    speakers: list[str | None]
    numbered: bool
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]

    def extent(self, first: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return start and end of spans of words; infinity and -1 if no word has a time.

        Args:
            first: Index of the first word of each span.
        """
        begin = np.where(self.start < 0, np.inf, self.start)
        if not len(first):
            return begin, self.end
        return np.minimum.reduceat(begin, first), np.maximum.reduceat(self.end, first)

    def passage_end(self, start_ms: int, end_ms: int) -> int:
        """Return the end in ms of the passage at `start_ms`, at least `end_ms`."""
        begun = np.flatnonzero((self.start >= 0) & (self.start <= start_ms))
        if not len(begun):
            return end_ms
        word = begun[np.argmax(self.start[begun])]
        passage = int(np.searchsorted(self.first, word, side="right")) - 1
        return max(end_ms, int(self.end[self.first[passage] : self.first[passage + 1]].max()))

    def packed(self) -> dict[str, bytes]:
        """Return the columns for the browser; `confidence` only if it is known for a word."""
        packed = {name: binary_columns.int32(getattr(self, name)) for name in ("start", "end", *_INDEXES)}
        packed["text"], packed["offsets"] = binary_columns.texts(self.words["text"])
        if "confidence" in self.words.columns and self.words["confidence"].notna().any():
            confidence = self.words["confidence"].to_numpy(np.float64, na_value=np.nan)
            packed["confidence"] = binary_columns.float32(confidence)
        return packed


def split_passages(words: pd.DataFrame) -> PlayerPassages:
    """Split words into passages: by `utterance_idx` if every word has one, otherwise at changes of speaker.

    Args:
        words: Words of one transcript from `voxframe.load_words`. A word without a time stays after the previous word.

    Raises:
        ValueError: A column is missing, or the words belong to several transcripts.

    Example:
        >>> words = pd.DataFrame({"speaker": ["A", "A", "B"], "text": ["Is", "it?", "Yes."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> split_passages(words).first.tolist()
        [0, 2, 3]
    """
    require(words, ("text", "start_ms", "end_ms"), "TranscriptPlayer")
    if "transcript_id" in words.columns and (count := words["transcript_id"].nunique()) > 1:
        raise ValueError(f"the words belong to {count} transcripts; select one: words[words['transcript_id'] == id]")
    time = words["start_ms"].astype("Float64").ffill().fillna(0).to_numpy(np.float64)
    label, names = pd.factorize(speaker_labels(words), use_na_sentinel=False)
    numbered = "utterance_idx" in words.columns and bool(words["utterance_idx"].notna().all()) and len(words) > 0
    if numbered:
        turn, _ = pd.factorize(words["utterance_idx"])
        begins = np.full(turn.max() + 1, np.inf)
        np.minimum.at(begins, turn, time)
        order = np.lexsort((time, turn, begins[turn]))  # an interruption follows the interrupted turn
        changes = np.diff(turn[order]) != 0
    else:
        order = np.argsort(time, kind="stable")
        changes = np.diff(label[order]) != 0
    words, label = words.iloc[order].reset_index(drop=True), label[order]
    edges = np.r_[0, np.flatnonzero(changes) + 1, len(words)] if len(words) else np.zeros(1, np.int64)
    spoken = words["text"].fillna("").astype(object).to_numpy()
    cuts = [cut for a, b in pairwise(edges.tolist()) for cut in _parts(spoken, a, b)]
    first = np.array([*cuts, len(words)], np.int64)
    # Speakers by first word, so that lanes and legends start with the first speaker.
    heard, place = np.unique(label, return_index=True)
    rank = np.argsort(np.argsort(place))
    speaker = rank[np.searchsorted(heard, label[first[:-1]])] if len(words) else np.empty(0, np.int64)
    found = [names[heard[n]] for n in np.argsort(place)]
    if numbered:
        number = words["utterance_idx"].to_numpy(np.int64)[first[:-1]]
    else:
        number = np.searchsorted(edges, first[:-1], side="right") - 1
    speakers = [None if pd.isna(n) else str(n) for n in found]
    start, end, known = binary_columns.times(words)
    start, end = np.where(known, start, -1), np.where(known, end, -1)
    return PlayerPassages(words, first, number, speaker, speakers, numbered, start, end)


def _parts(spoken: npt.NDArray[np.object_], begin: int, end: int) -> list[int]:
    """Return the first word of each part of a turn."""
    parts = [begin]
    while end - parts[-1] > MAX_PASSAGE_WORDS:
        low, high = parts[-1] + MAX_PASSAGE_WORDS // 2, parts[-1] + MAX_PASSAGE_WORDS
        ends = (n + 1 for n in range(high - 1, low, -1) if spoken[n].endswith(_SENTENCE_END))
        parts.append(next(ends, high))
    return parts
