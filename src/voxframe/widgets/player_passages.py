"""The words of a transcript in reading order, split into passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT
from voxframe._text import SENTENCE_ENDS, is_spaced, join_words
from voxframe.analysis.rows import require, speaker_labels
from voxframe.frames.turn_edits import TurnWord, realign
from voxframe.schema import TEXT_ORIGINAL
from voxframe.widgets import encoding

#: Longer turns are split, after the last sentence in the second half of a part if there is one.
MAX_PASSAGE_WORDS = 80
#: Layers besides confidence: name, table, prefix of the packed columns, and text column.
_LAYERS = (
    ("chapters", "chapters", "chapter", "headline"),
    ("entities", "entities", "entity", "entity_type"),
    ("safety", "content_safety", "safety", "label"),
)
#: Columns of indexes for the browser.
_INDEXES = ("first", "turn", "speaker")


@dataclass(frozen=True)
class PlayerPassages:
    """Words of one transcript in reading order, split into passages.

    Attributes:
        words: The words in reading order.
        first: Index of the first word of each passage, and one past the last word: shape (passages + 1,).
        turn: Number of each passage's turn, shape (passages,): `utterance_idx`, or counted in reading order.
        speaker: Index in `speakers` of each passage, shape (passages,).
        speakers: Speaker labels in order of first word; None for words without one.
        start: Start of each word in ms, -1 if its times are unknown or invalid.
        end: End of each word in ms, -1 in the same case.
    """

    words: pd.DataFrame
    first: npt.NDArray[np.int64]
    turn: npt.NDArray[np.int64]
    speaker: npt.NDArray[np.int64]
    speakers: list[str | None]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]

    @property
    def word_turns(self) -> npt.NDArray[np.int64]:
        """Turn of each word."""
        return np.repeat(self.turn, np.diff(self.first))

    def words_of(self, turn: int) -> list[tuple[Any, ...]]:
        """Return text and times of the words of a turn."""
        rows = np.flatnonzero(self.word_turns == turn)
        text = self.words["text"].fillna("").to_numpy(object)[rows]
        return list(zip(text, self.start[rows], self.end[rows], strict=True))

    def channel_of(self, turn: int) -> object:
        """Return the channel of a turn; None if channels are not known."""
        rows = np.flatnonzero(self.word_turns == turn)
        known = (
            "channel" in self.words.columns and len(rows) and pd.notna(channel := self.words["channel"].iloc[rows[0]])
        )
        return channel if known else None

    def text_of(self, turn: str) -> str:
        """Return the text of a turn; empty if there is none."""
        texts = self.words["text"].fillna("").to_numpy(object)[self.word_turns.astype(str) == turn]
        return join_words(filter(None, texts))

    def turn_words(self, turn: int) -> list[TurnWord]:
        """Return the words of a turn, to realign them."""
        rows = np.flatnonzero(self.word_turns == turn)
        names = [name for name in ("text", "start_ms", "end_ms", "confidence") if name in self.words.columns]
        words_of_turn = self.words.iloc[rows][names].astype(object)
        columns = words_of_turn.where(words_of_turn.notna(), None).to_dict("list")
        texts, starts, ends = (columns[name] for name in ("text", "start_ms", "end_ms"))
        sure = columns.get("confidence", [None] * len(rows))
        return [
            TurnWord(text, None if start is None else int(start), None if end is None else int(end), n, n, None, c)
            for n, text, start, end, c in zip(rows.tolist(), texts, starts, ends, sure, strict=True)
        ]

    @property
    def transcript_id(self) -> str | None:
        """Id of the transcript; None if it is unknown."""
        ids = self.words["transcript_id"].dropna().unique().tolist() if "transcript_id" in self.words.columns else []
        return str(ids[0]) if len(ids) == 1 else None

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

    def packed(self, tables: Mapping[str, pd.DataFrame]) -> tuple[dict[str, bytes], list[str]]:
        """Return the columns for the browser, and the layers with content."""
        packed = {name: encoding.int32(getattr(self, name)) for name in ("start", "end", *_INDEXES)}
        packed["text"], packed["offsets"] = encoding.texts(self.words["text"])
        packed["spaced"] = encoding.int32(is_spaced(self.words["text"].fillna("").astype(str).tolist()))
        if "confidence" in self.words.columns and self.words["confidence"].notna().any():
            confidence = self.words["confidence"].to_numpy(np.float64, na_value=np.nan)
            packed["confidence"] = encoding.float32(confidence)
        present = ["confidence"] if "confidence" in packed else []
        for layer, table, prefix, text in _LAYERS:
            if (rows := tables.get(table)) is not None and len(rows):
                present.append(layer)
                packed |= encoding.bands(rows, text, prefix)
        return packed, present


def split_passages(words: pd.DataFrame, turns: npt.NDArray[np.int64] | None = None) -> PlayerPassages:
    """Split words into passages: by turn, and long turns into parts.

    Args:
        words: Words of one transcript from `voxframe.load_words`. A word without a time stays after the previous word.
        turns: Turn of each word. None (default): `utterance_idx` if every word has one; otherwise turns are counted at
            changes of speaker.

    Example:
        >>> words = pd.DataFrame({"speaker": ["A", "A", "B"], "text": ["Is", "it?", "Yes."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> split_passages(words).first.tolist()
        [0, 2, 3]
    """
    require(words, ("text", "start_ms", "end_ms"), "TranscriptPlayer")
    encoding.require_times(words)
    if "transcript_id" in words.columns and (count := words["transcript_id"].nunique()) > 1:
        raise ValueError(f"the words belong to {count} transcripts; select one: words[words['transcript_id'] == id]")
    time = words["start_ms"].astype("Float64").ffill().fillna(0).to_numpy(np.float64)
    label, names = pd.factorize(speaker_labels(words), use_na_sentinel=False)
    if turns is None and "utterance_idx" in words.columns and words["utterance_idx"].notna().all():
        turns = words["utterance_idx"].to_numpy(np.int64)
    if turns is not None and len(words):
        turn, _ = pd.factorize(turns)
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
    ordered_names = [names[heard[n]] for n in np.argsort(place)]
    counted = np.searchsorted(edges, first[:-1], side="right") - 1
    number = counted if turns is None else turns[order][first[:-1]]
    speakers = [None if pd.isna(n) else str(n) for n in ordered_names]
    start, end, timed = encoding.times(words)
    start, end = np.where(timed, start, -1), np.where(timed, end, -1)
    return PlayerPassages(words, first, number, speaker, speakers, start, end)


def corrected_passages(passages: PlayerPassages, corrections: Mapping[str, str]) -> PlayerPassages:
    """Return passages of a transcript that is in no corpus, with the words of corrected turns.

    Args:
        passages: The passages without corrections.
        corrections: Corrected texts of turns, by `turn` as text.
    """
    if not corrections:
        return passages
    words, turn = passages.words, passages.word_turns
    rows, new = np.arange(len(words)), list[TurnWord]()
    for idx in (idx for idx in np.unique(turn).tolist() if str(idx) in corrections):
        indexes, text = np.flatnonzero(turn == idx), corrections[str(idx)]
        new += realign(passages.turn_words(idx), text)
        rows = np.setdiff1d(rows, indexes)
    order = np.argsort(np.r_[rows.astype(float), [word.place for word in new]], kind="stable")
    place = np.r_[rows, np.array([word.row for word in new], np.int64)][order]
    new_words = words.iloc[place].reset_index(drop=True)
    after = np.flatnonzero(order >= len(rows))
    changed = [new[n - len(rows)] for n in order[after]]
    if TEXT_ORIGINAL.name not in new_words.columns:
        new_words[TEXT_ORIGINAL.name] = pd.Series(index=new_words.index, dtype=TEXT)
    values = {
        "text": [word.text for word in changed],
        TEXT_ORIGINAL.name: [word.original for word in changed],
        "start_ms": [word.start for word in changed],
        "end_ms": [word.end for word in changed],
        "confidence": [word.confidence for word in changed],
    }
    for name in (name for name in values if name in new_words.columns):
        column = new_words[name].astype("Int64" if name.endswith("_ms") else new_words[name].dtype)
        column.iloc[after] = pd.array(values[name], column.dtype)
        new_words[name] = column
    return split_passages(new_words, turn[place])


def _parts(spoken: npt.NDArray[np.object_], begin: int, end: int) -> list[int]:
    """Return the first word of each part of a turn."""
    parts = [begin]
    while end - parts[-1] > MAX_PASSAGE_WORDS:
        low, high = parts[-1] + MAX_PASSAGE_WORDS // 2, parts[-1] + MAX_PASSAGE_WORDS
        ends = (n + 1 for n in range(high - 1, low, -1) if spoken[n].endswith(SENTENCE_ENDS))
        parts.append(next(ends, high))
    return parts
