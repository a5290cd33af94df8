"""Data of a player: the tables of one transcript, its words in passages, and stored annotations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT
from voxframe._text import SENTENCE_ENDS, is_spaced, join_words
from voxframe.analysis.rows import label_names, require, speaker_labels
from voxframe.client.stream.audio import open_source
from voxframe.corpus import Corpus
from voxframe.corpus.edits import redoable
from voxframe.errors import AudioError, MissingExtraError, OptionError
from voxframe.frames.turn_edits import TurnWord, realign
from voxframe.loaders.reading import load_some
from voxframe.loaders.sources import Fetcher, Remote, Source, is_handle, resolve
from voxframe.schema import TEXT_ORIGINAL
from voxframe.widgets.base import (
    absolute_path,
    pack_bands,
    pack_floats,
    pack_ints,
    pack_texts,
    require_times,
    row_times,
)

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
        channel = self.words["channel"].iloc[rows[0]] if "channel" in self.words.columns and len(rows) else None
        return None if pd.isna(channel) else channel

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
        """Return start and end of spans of words that begin at `first`; infinity and -1 if no word has a time."""
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
        packed = {name: pack_ints(getattr(self, name)) for name in ("start", "end", *_INDEXES)}
        packed["text"], packed["offsets"] = pack_texts(self.words["text"])
        packed["spaced"] = pack_ints(is_spaced(self.words["text"].fillna("").astype(str).tolist()))
        if "confidence" in self.words.columns and self.words["confidence"].notna().any():
            confidence = self.words["confidence"].to_numpy(np.float64, na_value=np.nan)
            packed["confidence"] = pack_floats(confidence)
        present = ["confidence"] if "confidence" in packed else []
        for layer, table, prefix, text in _LAYERS:
            if (rows := tables.get(table)) is not None and len(rows):
                present.append(layer)
                packed |= pack_bands(rows, text, prefix)
        return packed, present


def split_passages(words: pd.DataFrame, turns: npt.NDArray[np.int64] | None = None) -> PlayerPassages:
    """Split words into passages: by turn (given, `utterance_idx`, or a change of speaker), and long turns into parts.

    Example:
        >>> words = pd.DataFrame({"speaker": ["A", "A", "B"], "text": ["Is", "it?", "Yes."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> split_passages(words).first.tolist()
        [0, 2, 3]
    """
    require(words, ("text", "start_ms", "end_ms"), "TranscriptPlayer")
    require_times(words)
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
    start, end, timed = row_times(words)
    start, end = np.where(timed, start, -1), np.where(timed, end, -1)
    return PlayerPassages(words, first, number, speaker, speakers, start, end)


def corrected_passages(passages: PlayerPassages, corrections: Mapping[str, str]) -> PlayerPassages:
    """Return passages of a transcript that is in no corpus, with corrected texts by turn."""
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


#: One transcript: what `voxframe.tables` takes, the tables it gives, or a DataFrame of words.
Given: TypeAlias = "Source | pd.DataFrame | Mapping[str, pd.DataFrame]"

#: Tables that a player needs. Loading only these works without a service for transcripts in a corpus.
_NEEDED = ("words", "utterances", "utterance_words", "chapters", "entities", "content_safety")

#: Names by label; speakers of single turns and corrected texts of turns, both by `utterance_idx` as text.
Annotations: TypeAlias = tuple[dict[str, str], dict[str, str], dict[str, str]]


def load_tables(source: Any, client: Fetcher | None, corpus: Corpus | None) -> Mapping[str, pd.DataFrame]:
    """Return the tables of one transcript. If only turns are known, they serve as words."""
    if isinstance(source, pd.DataFrame):
        return {"words": source}
    tables = source if _is_tables(source) else load_some(_NEEDED, source, client, corpus)
    if "words" not in tables:
        raise ValueError(f"TranscriptPlayer needs the table 'words', got {', '.join(tables)}")
    if tables["words"].empty and (turns := tables.get("utterances")) is not None and len(turns):
        return {**tables, "words": turns}  # a turn without words is shown and played as one word
    return {**tables, "words": _in_turns(tables["words"], tables.get("utterance_words"))}


@dataclass(frozen=True)
class Origin:
    """Origin of a transcript.

    Attributes:
        code: Python literal of a path or transcript id. None for data in memory.
        remote: True if it comes from a service, so that a corpus keeps it.
        is_payload: True if `Corpus.add` takes it.
    """

    code: str | None
    remote: bool
    kind: str
    is_payload: bool = False


def origin(source: Any, client: Fetcher | None) -> Origin:
    """Return the origin of a source.

    Example:
        >>> origin({"id": "a", "words": []}, None)
        Origin(code=None, remote=False, kind='the payload', is_payload=True)
    """
    if isinstance(source, pd.DataFrame):
        return Origin(None, False, "the DataFrame of words")
    if _is_tables(source):
        return Origin(None, False, "the dict of tables")
    if is_handle(source):
        return Origin(repr(source.id), True, "the transcript id")
    if isinstance(source, str) and isinstance(resolve(source, client), Remote):
        return Origin(repr(source), True, "the transcript id")
    if isinstance(source, str | os.PathLike):
        return Origin(repr(absolute_path(source)), False, "the path", is_payload=True)
    return Origin(None, False, "the payload", is_payload=True)


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
    named = pd.DataFrame({"label": speaker_labels(words), "name": words["speaker_name"]}).dropna()
    turns: dict[str, str] = {}
    if "utterance_idx" in words.columns:
        other = named[named["name"] != named["label"].map(names)]
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
    """The annotations of one transcript of a corpus."""

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
        rows = self.corpus.corrections.get(self.transcript_id)
        texts = {str(turn): text for turn, text in zip(rows["utterance_idx"], rows["text"], strict=True)}
        return names, {str(turn): labels.get(name, name) for turn, name in turns}, texts

    def passages(self) -> PlayerPassages:
        """Return the words of the transcript as corrected. If only turns are known, they serve as words."""
        turn = self.corpus.corrections.word_turns(self.transcript_id)
        if not len(turn):
            return split_passages(self.corpus.table("utterances", self.transcript_id))
        free = np.cumsum((turn < 0) & (np.r_[0, turn[:-1]] >= 0))  # runs of words of no turn
        return split_passages(self.corpus.table("words", self.transcript_id), np.where(turn < 0, -free, turn))

    def save(self, before: Annotations, now: Annotations, shown: PlayerPassages) -> None:
        """Store the differences between two states."""
        names, turns, texts = (_changed(a, b) for a, b in zip(before, now, strict=True))
        if names or turns:
            self.corpus.speakers.set(self.transcript_id, names, turns=_by_index(turns))
        if texts:
            self._check_shown(shown, list(_by_index(texts)))
            self.corpus.corrections.set(self.transcript_id, _by_index(texts))

    def edit(self, message: Mapping[str, Any], shown: PlayerPassages) -> None:
        """Apply an edit of turns from a page.

        Args:
            message: `action`: "split", "merge", "move", "time", "undo", "redo", or "return" to the state after
                `change`; `turn`, its `utterance_idx`; `word`, the position of a word in the turn; `by`, the number of
                words; `start_ms` and `end_ms`.
        """
        corrections, action = self.corpus.corrections, message["action"]
        if action in ("undo", "redo"):
            (corrections.undo if action == "undo" else corrections.redo)(self.transcript_id)
            return
        if action == "return":
            changes, target = self.changes(), int(message["change"])
            for change in changes:
                if change["change"] > target and not change["redo"]:
                    corrections.undo(self.transcript_id)
                elif change["change"] <= target and change["redo"]:
                    corrections.redo(self.transcript_id)
            return
        turn = int(message["turn"])
        here = self._check_shown(shown, [turn, *([int(message["next"])] if "next" in message else [])])
        if action == "merge":
            corrections.merge(self.transcript_id, turn)
        elif action == "move":
            if "next" in message and here.channel_of(turn) != here.channel_of(int(message["next"])):
                raise OptionError(
                    f"turns {turn} and {message['next']} are on different channels, so no word moves between them"
                )
            corrections.move_boundary(self.transcript_id, turn, int(message["by"]))
        else:
            has_words = "word_idx" in here.words.columns  # otherwise the turns serve as words
            words = here.words["word_idx"][here.word_turns == turn].tolist() if has_words else []
            if not 0 <= int(message["word"]) < len(words):
                raise OptionError(f"turn {turn} has no word {message['word']}; it has {len(words)}")
            place = int(words[int(message["word"])])
            if action == "split":
                corrections.split(self.transcript_id, place)
            elif action == "time":
                corrections.set_time(self.transcript_id, place, int(message["start_ms"]), int(message["end_ms"]))

    def changes(self) -> list[dict[str, Any]]:
        """Return the changes of text and turns that are active or can be redone, oldest first."""
        history = self.corpus.corrections.history(self.transcript_id)
        made = history[["change", "made", "undone"]].astype(object)
        again = redoable(made.where(made.notna(), None).itertuples(index=False, name=None))
        rows = []
        for edit in history.drop_duplicates("change").astype(object).to_dict("records"):
            redo = bool(history.loc[history["change"] == edit["change"], "undone"].notna().all())
            if redo and edit["change"] not in again:
                continue  # a later change replaced it
            rows.append(
                {
                    "change": int(edit["change"]),
                    "action": edit["action"],
                    "turn": int(edit["utterance_idx"]),
                    "text": "" if pd.isna(edit["text"]) else edit["text"],
                    "author": "" if pd.isna(edit["author"]) else edit["author"],
                    "made": "" if pd.isna(edit["made"]) else edit["made"].isoformat(),
                    "redo": redo,
                }
            )
        return rows

    def _check_shown(self, shown: PlayerPassages, turns: Sequence[int]) -> PlayerPassages:
        """Return the current passages, after checking that turns are as shown, for example not changed elsewhere."""
        here = self.passages()
        for turn in turns:
            if shown.words_of(turn) != here.words_of(turn):
                raise OptionError(f"turn {turn} was changed elsewhere; it is shown as it is now, so edit it again")
        return here


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Return the entries that differ; None marks a removed one."""
    return {key: now.get(key) for key in {**before, **now} if before.get(key) != now.get(key)}


def _by_index(changed: Mapping[str, str | None]) -> dict[int, str | None]:
    return {int(turn): to for turn, to in changed.items()}


#: Length in ms of the sound that a peak is of.
PEAK_MS = 20
_RATE = 4000  # Hz, enough for the loudness of speech


def peaks(path: Path) -> bytes:
    """Return the loudest sample of each 20 ms of a recording as a byte, relative to the loudest of all.

    Empty if the recording cannot be decoded: a browser may play it nevertheless.
    """
    size = _RATE * PEAK_MS // 1000
    loudest, pending = [], np.zeros(0, np.int16)
    try:
        for chunk in cast("Iterable[bytes]", open_source(path, _RATE, "pcm_s16le").chunks):
            pending = np.concatenate([pending, np.frombuffer(chunk, "<i2")])
            complete = len(pending) // size * size
            loudest.append(np.abs(pending[:complete].reshape(-1, size).astype(np.int32)).max(axis=1, initial=0))
            pending = pending[complete:]
    except (AudioError, MissingExtraError):
        return b""
    levels = np.concatenate([*loudest, np.zeros(0, np.int32)])
    return bytes((255 * levels // max(1, levels.max(initial=0))).astype(np.uint8))
