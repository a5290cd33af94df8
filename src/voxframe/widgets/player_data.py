"""Data of a player: the tables of one transcript, their origin and passages, and stored annotations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.speaker_turns import label_names, require, speaker_labels
from voxframe.corpus import Corpus
from voxframe.loaders.reading import load_some
from voxframe.loaders.sources import Fetcher, Handle, Source, resolve
from voxframe.widgets import encoding
from voxframe.widgets.base import absolute_path

#: One transcript: what `voxframe.tables` takes, the tables it gives, or a DataFrame of words.
Given: TypeAlias = "Source | pd.DataFrame | Mapping[str, pd.DataFrame]"

#: Tables that a player needs. Loading only these works without a service for transcripts in a corpus.
_NEEDED = ("words", "utterances", "utterance_words", "chapters", "entities", "content_safety")


#: Names by label; speakers of single turns and corrected texts of turns, both by `utterance_idx` as text.
Annotations: TypeAlias = tuple[dict[str, str], dict[str, str], dict[str, str]]


def load_tables(source: Any, client: Fetcher | None, corpus: Corpus | None) -> Mapping[str, pd.DataFrame]:
    """Return the tables of one transcript. If only turns are known, they serve as words.

    Raises:
        ValueError: There is no table `words`.
    """
    if isinstance(source, pd.DataFrame):
        return {"words": source}
    if _is_tables(source):
        found = source
    else:  # the player shows corrected texts in place of the words of the service
        found = load_some(_NEEDED, source, client, corpus, corrected=False)
        if "speaker_name" in found["words"] and _is_reshaped(found["words"]["transcript_id"], corpus or Corpus()):
            found = load_some(_NEEDED, source, client, corpus)
    if "words" not in found:
        raise ValueError(f"TranscriptPlayer needs the table 'words', got {', '.join(found)}")
    if found["words"].empty and (turns := found.get("utterances")) is not None and len(turns):
        return {**found, "words": turns}  # a turn without words is shown and played as one word
    return {**found, "words": _in_turns(found["words"], found.get("utterance_words"))}


def _is_reshaped(ids: pd.Series[Any], corpus: Corpus) -> bool:
    """Return True if corrections changed the turns of transcripts, or the times of words."""
    edits = corpus.corrections.history(ids.dropna().unique().tolist())
    return bool((edits["undone"].isna() & (edits["action"] != "text")).any())


@dataclass(frozen=True)
class Origin:
    """Origin of a transcript.

    Attributes:
        code: Python literal of a path or transcript id. None for data in memory.
        remote: True if it comes from a service, so that a corpus keeps it.
        kind: Description for a comment in code.
    """

    code: str | None
    remote: bool
    kind: str


def origin(source: Any, client: Fetcher | None) -> Origin:
    """Return the origin of a source.

    Example:
        >>> origin({"id": "a", "words": []}, None)
        Origin(code=None, remote=False, kind='the payload')
    """
    if isinstance(source, pd.DataFrame):
        return Origin(None, False, "the DataFrame of words")
    if _is_tables(source):
        return Origin(None, False, "the dict of tables")
    if isinstance(source, Handle):
        return Origin(repr(source.id), True, "the transcript id")
    if isinstance(source, str) and not isinstance(resolve(source, client), bytes):
        return Origin(repr(source), True, "the transcript id")
    if isinstance(source, str | os.PathLike):
        return Origin(repr(absolute_path(source)), False, "the path")
    return Origin(None, False, "the payload")


def speaker_names(words: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names in the column `speaker_name`: by label, and by `utterance_idx` (as text) for turns that differ.

    Example:
        >>> speaker_names(pd.DataFrame({"speaker": ["A", "A", "A"], "speaker_name": ["Ada", "Bo", "Ada"],
        ...                             "utterance_idx": [0, 1, 2]}))
        ({'A': 'Ada'}, {'1': 'Bo'})
    """
    names = label_names(words)
    if names is None:
        return {}, {}
    known = pd.DataFrame({"label": speaker_labels(words), "name": words["speaker_name"]}).dropna()
    turns: dict[str, str] = {}
    if "utterance_idx" in words.columns:
        other = known[known["name"] != known["label"].map(names)]
        turns = {str(turn): name for turn, name in zip(words["utterance_idx"][other.index], other["name"], strict=True)}
    return {label: name for label, name in names.items() if label is not None and name != label}, turns


def _is_tables(source: Any) -> bool:
    return isinstance(source, Mapping) and len(source) > 0 and all(isinstance(t, pd.DataFrame) for t in source.values())


def _in_turns(words: pd.DataFrame, spoken: pd.DataFrame | None) -> pd.DataFrame:
    """Add the turn of each word. For overlapping turns (two channels) it is looked up in `utterance_words`."""
    if spoken is None or spoken.empty or "utterance_idx" not in words.columns:
        return words
    same = ["text", "start_ms", "end_ms", "speaker", "channel"]
    looked_up = words[same].merge(spoken.drop_duplicates(same)[[*same, "utterance_idx"]], how="left", on=same)
    return words.assign(utterance_idx=words["utterance_idx"].fillna(looked_up["utterance_idx"].set_axis(words.index)))


@dataclass(frozen=True)
class AnnotationStore:
    """The annotations of one transcript of a corpus.

    Attributes:
        corpus: The corpus.
        transcript_id: The transcript.
    """

    corpus: Corpus
    transcript_id: str

    def load(self) -> Annotations:
        """Return the stored annotations."""
        rows = self.corpus.speakers.get(self.transcript_id)
        by_label = rows[rows["utterance_idx"].isna()]
        by_turn = rows[rows["utterance_idx"].notna()]
        names = dict(zip(by_label["speaker"], by_label["speaker_name"], strict=True))
        labels = {name: label for label, name in names.items()}  # a turn stores a label if the name is that label's
        turns = zip(by_turn["utterance_idx"], by_turn["speaker_name"], strict=True)
        return names, {str(turn): labels.get(name, name) for turn, name in turns}, self._corrections()

    def save(self, before: Annotations, now: Annotations) -> Annotations:
        """Store the differences between two states, and return the stored annotations.

        Raises:
            VoxframeError: The corpus cannot store them.
        """
        names, turns, texts = (_changed(a, b) for a, b in zip(before, now, strict=True))
        if names or turns:
            self.corpus.speakers.set(self.transcript_id, names, turns=_by_index(turns))
        if texts:
            self.corpus.corrections.set(self.transcript_id, _by_index(texts))
        return self.load()

    def is_reshaped(self) -> bool:
        """Return True if corrections changed the turns, or the times of words."""
        return _is_reshaped(pd.Series([self.transcript_id]), self.corpus)

    def edit(self, message: Mapping[str, Any]) -> None:
        """Apply an edit of turns from a page.

        Args:
            message: `action`: "split", "merge", "move", "time" or "undo"; `turn`, its `utterance_idx`; `word`, the
                position of a word in the turn; `by`, -1 or 1; `start_ms` and `end_ms`.

        Raises:
            VoxframeError: The corpus cannot store it, or it does not fit.
        """
        made, action = self.corpus.corrections, message["action"]
        if action == "undo":
            made.undo(self.transcript_id)
        elif action == "merge":
            made.merge(self.transcript_id, int(message["turn"]))
        elif action == "move":
            made.move_boundary(self.transcript_id, int(message["turn"]), int(message["by"]))
        else:
            words = self.corpus.words(self.transcript_id, columns=["word_idx", "utterance_idx"])
            of_turn = words.loc[words["utterance_idx"] == int(message["turn"]), "word_idx"]
            place = int(of_turn.iloc[int(message["word"])])
            if action == "split":
                made.split(self.transcript_id, place)
            elif action == "time":
                made.set_time(self.transcript_id, place, int(message["start_ms"]), int(message["end_ms"]))

    def _corrections(self) -> dict[str, str]:
        rows = self.corpus.corrections.get(self.transcript_id)
        return {str(turn): text for turn, text in zip(rows["utterance_idx"], rows["text"], strict=True)}


def find_store(corpus: Corpus | None, transcript_id: str | None) -> AnnotationStore | None:
    """Return the store for the annotations of a transcript; None if no corpus has that transcript."""
    if corpus is None or transcript_id is None or transcript_id not in corpus:
        return None
    return AnnotationStore(corpus, transcript_id)


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Return the entries that differ; None marks a removed one."""
    return {key: now.get(key) for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def _by_index(changed: Mapping[str, str | None]) -> dict[int, str | None]:
    return {int(turn): to for turn, to in changed.items()}


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
        """Return the columns for the browser, and the layers with content.

        Args:
            tables: The other tables of the transcript, some of which are layers.
        """
        packed = {name: encoding.int32(getattr(self, name)) for name in ("start", "end", *_INDEXES)}
        packed["text"], packed["offsets"] = encoding.texts(self.words["text"])
        if "confidence" in self.words.columns and self.words["confidence"].notna().any():
            confidence = self.words["confidence"].to_numpy(np.float64, na_value=np.nan)
            packed["confidence"] = encoding.float32(confidence)
        present = ["confidence"] if "confidence" in packed else []
        for layer, table, prefix, text in _LAYERS:
            if (rows := tables.get(table)) is not None and len(rows):
                present.append(layer)
                packed |= encoding.bands(rows, text, prefix)
        return packed, present


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
    start, end, known = encoding.times(words)
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
