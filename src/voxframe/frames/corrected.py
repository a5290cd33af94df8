"""Tables of a transcript with the edits of its turns applied."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe._text import join_words
from voxframe.errors import OptionError
from voxframe.frames.turn_edits import Edit, Turn, TurnEdits, TurnWord, Was
from voxframe.schema import CORRECTED_TABLES, TEXT_ORIGINAL, TIMING, WORDS

Ints: TypeAlias = npt.NDArray[np.int64]

#: Tables from which the turns of a transcript are read.
TURN_TABLES = ("words", "utterances", "utterance_words")
#: Incremented if the same edits give other tables than before: a corpus keeps the results.
VERSION = 4
_SAME_WORD = ("text", "start_ms", "end_ms", "speaker", "channel")
_CHUNK = 65_536  # rows


class Corrected(NamedTuple):
    """Result of `correct_tables`.

    Attributes:
        tables: The tables, with the column `text_original`.
        stale: Positions of the edits that do not fit the transcript, with the reason.
        word_turns: Turn of each row of the corrected table `words`, -1 if none has it.
    """

    tables: dict[str, pa.Table]
    turns: TurnEdits
    stale: dict[int, str]
    word_turns: Ints


def correct_tables(tables: Mapping[str, pa.Table], edits: Sequence[Edit]) -> Corrected:
    """Apply edits to the tables of one transcript."""
    if (last := max((n for n, edit in enumerate(edits) if edit.action == "speakers"), default=-1)) >= 0:
        return _labelled_between(tables, edits[:last], edits[last], edits[last + 1 :])
    service = _ServiceTurns(tables)
    turns = TurnEdits(service.turns(), service.words_of)
    stale: dict[int, str] = {}
    for n, edit in enumerate(edits):
        try:
            turns.apply(edit)
        except OptionError as error:
            stale[n] = str(error)
    if not any(turn.edited for turn in turns.turns.values()):
        return Corrected(
            {name: with_original(table, name) for name, table in tables.items()}, turns, stale, service.owner
        )
    words = _words(tables["words"], turns, service)
    corrected_tables = {}
    for name, table in tables.items():
        if name == "words":
            corrected_tables[name] = words.table
        elif name == "utterances":
            corrected_tables[name] = _utterances(table, turns, words)
        elif name == "utterance_words":
            corrected_tables[name] = _utterance_words(table, turns, words)
        elif name == "transcripts":
            corrected_tables[name] = _transcripts(table, turns, tables["words"], words)
        elif name == "sentiments":
            corrected_tables[name] = table  # a judgement of the text as it was
        else:
            corrected_tables[name] = _passages(table, name, words)
    return Corrected(corrected_tables, turns, stale, words.turn)


def speakers_edit(
    words: pa.Table, speakers: Sequence[str | None], turns: Sequence[int] | None = None, source: str | None = None
) -> Edit:
    """Return the edit that gives every word of a transcript a speaker.

    Args:
        turns: The turn of each row. None: runs of words of one speaker.
    """
    value = {"runs": _counted(speakers), "words": _digest(words)}
    value |= {} if turns is None else {"turns": _counted(turns)}
    return Edit("speakers", -1, None, value if source is None else value | {"source": source})


def _counted(values: Sequence[Any]) -> list[tuple[Any, int]]:
    return [(value, len([*run])) for value, run in groupby(values)]


def _repeated(runs: Sequence[tuple[Any, int]]) -> list[Any]:
    return [value for value, count in runs for _ in range(count)]


def _digest(words: pa.Table) -> str:
    return hashlib.sha256(repr(words["text"].to_pylist()).encode()).hexdigest()


def _labelled_between(
    tables: Mapping[str, pa.Table], before: Sequence[Edit], edit: Edit, after: Sequence[Edit]
) -> Corrected:
    """Apply edits, then new speakers of all words, then the edits of the turns that these give."""
    first = correct_tables(tables, before)
    stale, labelled = dict(first.stale), first.tables
    if edit.value["words"] == _digest(labelled["words"]):
        turns = edit.value.get("turns")
        labelled = _labelled(labelled, _repeated(edit.value["runs"]), None if turns is None else _repeated(turns))
    else:
        stale[len(before)] = "the words have changed since their speakers were set"
    last = correct_tables(labelled, after)
    return last._replace(stale=stale | {len(before) + 1 + n: reason for n, reason in last.stale.items()})


def _labelled(
    tables: Mapping[str, pa.Table], speakers: Sequence[str | None], turns: Sequence[int] | None
) -> dict[str, pa.Table]:
    """Return tables with other speakers of words, and the turns that these give."""
    words = _with(tables["words"], speaker=speakers)
    owner = _runs(words) if turns is None else np.array(turns, np.int64)
    apart = np.isin(owner, [idx for idx, (first, _) in _located(owner).items() if first is None])
    others = words.take(pa.array(np.flatnonzero(apart)))
    words = _with(words, utterance_idx=pa.array(owner, mask=apart))
    labelled = dict(tables) | {"words": words, "utterances": _turns_of(words, owner, tables["utterances"].schema)}
    labelled["utterance_words"] = _words_apart(others, owner[apart], tables["utterance_words"].schema)
    for name in labelled.keys() & {"sentences", "paragraphs"}:
        places = zip(*(labelled[name][column].to_pylist() for column in ("first_word_idx", "word_count")), strict=True)
        labels = [set(speakers[first : first + count] if first is not None else ()) for first, count in places]
        now = zip(labels, labelled[name]["speaker"].to_pylist(), strict=True)
        labelled[name] = _with(
            labelled[name], speaker=[(of_it.pop() if len(of_it) == 1 else None) if of_it else old for of_it, old in now]
        )
    if "sentiments" in labelled:
        labelled["sentiments"] = _sentiments(labelled["sentiments"], words)
    return labelled


def _sentiments(table: pa.Table, words: pa.Table) -> pa.Table:
    """Return sentiments with the speaker of the words at their times; null if these have several."""
    starts, ends = (words[name].cast(pa.float64()).to_numpy() for name in ("start_ms", "end_ms"))
    speakers = np.array(words["speaker"].to_pylist(), object)
    now = []
    for start, end, old in zip(*(table[name].to_pylist() for name in ("start_ms", "end_ms", "speaker")), strict=True):
        inside: Any = () if start is None or end is None else speakers[(starts >= start) & (ends <= end)]
        now.append(old if not len(inside) else inside[0] if len({*inside}) == 1 else None)
    return _with(table, speaker=now)


def _words_apart(words: pa.Table, owner: Ints, schema: pa.Schema) -> pa.Table:
    """Return the table `utterance_words` of the words of turns between whose words others speak."""
    order = np.argsort(owner, kind="stable")
    _, first, count = np.unique(owner[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, count)
    rows = words.take(pa.array(order))
    columns = {name: rows[name] for name in schema.names} | {"utterance_idx": owner[order], "word_idx": place}
    return pa.table(columns, schema)


def _turns_of(words: pa.Table, owner: Ints, schema: pa.Schema) -> pa.Table:
    """Return the table `utterances` of words whose turns are known."""
    rows = []
    for idx, (first, count) in _located(owner).items():
        values = words.take(pa.array(np.flatnonzero(owner == idx))).to_pydict()
        old = [t if o is None else o for t, o in zip(values["text"], values[TEXT_ORIGINAL.name], strict=True)]
        start, end = _extent_of(values["start_ms"], values["end_ms"])
        text = join_words(values["text"])
        row = {name: values[name][0] for name in ("transcript_id", "speaker", "channel")}
        row |= {"utterance_idx": idx, "text": text, "start_ms": start, "end_ms": end, "word_count": count}
        rows.append(
            row | {"first_word_idx": first, TEXT_ORIGINAL.name: join_words(old) if join_words(old) != text else None}
        )
    return pa.Table.from_pylist(rows, schema)


def with_original(table: pa.Table, name: str) -> pa.Table:
    """Return a table with the column `text_original` after `text` if it can be corrected; null if it lacks it."""
    if name not in CORRECTED_TABLES or "text" not in table.column_names or TEXT_ORIGINAL.name in table.column_names:
        return table
    block = pa.nulls(min(table.num_rows, _CHUNK), pa.string())  # repeated, so that it takes no memory
    blocks = [block] * (table.num_rows // _CHUNK) + [block.slice(0, table.num_rows % _CHUNK)]
    return table.add_column(table.column_names.index("text") + 1, TEXT_ORIGINAL.name, pa.chunked_array(blocks))


class _ServiceTurns:
    """The turns of a transcript as the service sent them. Without utterances, these are runs of words of one speaker.

    Attributes:
        owner: `utterance_idx` of the turn of each row of `words`, -1 if no turn has it.
        loaded: Mask of the rows of `words` that `words_of` returned.
        named: Mask of the rows that have a value in the column `utterance_idx`.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._words, self._utterances, self._others = (tables[name] for name in TURN_TABLES)
        self.owner: Ints = self._words["utterance_idx"].fill_null(-1).to_numpy().astype(np.int64)
        self.named = self.owner >= 0
        self.loaded = np.zeros(len(self.owner), bool)
        if not self._utterances.num_rows:
            self.owner = _runs(self._words)
        elif self._others.num_rows:
            self._find_others()

    def _find_others(self) -> None:
        """Find the words of turns that are not runs of `words`."""
        free: dict[tuple[Any, ...], list[int]] = {}
        rows = np.flatnonzero(self.owner < 0)
        for row, key in zip(rows.tolist(), _keys(self._words.take(pa.array(rows))), strict=True):
            free.setdefault(key, []).append(row)
        for idx, key in zip(self._others["utterance_idx"].to_pylist(), _keys(self._others), strict=True):
            if candidates := free.get(key):
                self.owner[candidates.pop(0)] = idx

    def turns(self) -> list[Turn]:
        """Return the turns without words."""
        if self._utterances.num_rows:
            names = ("utterance_idx", "start_ms", "end_ms", "text", "speaker", "channel", TEXT_ORIGINAL.name)
            table = with_original(self._utterances, "utterances")
            columns = (table[name].to_pylist() for name in names)
            return [
                Turn(idx, Was(start, end, text), speaker, channel, n, before)
                for n, (idx, start, end, text, speaker, channel, before) in enumerate(zip(*columns, strict=True))
            ]
        corrected = []
        for idx in range(self.owner.max(initial=-1) + 1):
            words = self._words.take(pa.array(np.flatnonzero(self.owner == idx)))
            starts, ends, texts = (words[name].drop_null().to_pylist() for name in ("start_ms", "end_ms", "text"))
            was = Was(min(starts, default=None), max(ends, default=None), join_words(texts))
            corrected.append(Turn(idx, was, words["speaker"][0].as_py(), words["channel"][0].as_py(), None))
        return corrected

    def words_of(self, turn: Turn) -> list[TurnWord]:
        """Return the words of a turn."""
        rows = np.flatnonzero(self.owner == turn.idx)
        if len(rows):
            self.loaded[rows] = True
            return _read(self._words.take(pa.array(rows)), rows.tolist())
        others = self._others.filter(pa.array(self._others["utterance_idx"].to_numpy() == turn.idx))
        return _read(others, [None] * others.num_rows)


def _runs(words: pa.Table) -> Ints:
    """Number the runs of words of one speaker, in time order."""
    start = words["start_ms"].to_pandas().ffill().fillna(0).to_numpy()
    order = np.argsort(start, kind="stable")
    speech = list(zip(words["speaker"].to_pylist(), words["channel"].to_pylist(), strict=True))
    labels = [speaker if speaker is not None else (channel,) for speaker, channel in speech]
    owner = np.zeros(len(order), np.int64)
    changes = [n > 0 and labels[row] != labels[order[n - 1]] for n, row in enumerate(order)]
    owner[order] = np.cumsum(changes)
    return owner


def _keys(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in _SAME_WORD), strict=True))


def _read(rows: pa.Table, places: Sequence[int | None]) -> list[TurnWord]:
    names = ("text", "start_ms", "end_ms", TEXT_ORIGINAL.name, "confidence", "extra")
    rows = with_original(rows, "words")
    columns = (rows[name].to_pylist() for name in names)
    return [
        TurnWord(text, start, end, n if place is None else place, place, *more)
        for n, (place, text, start, end, *more) in enumerate(zip(places, *columns, strict=True))
    ]


class _Words(NamedTuple):
    """The corrected table `words`.

    Attributes:
        turn: Turn of each word, -1 if none has it.
        old_texts: Texts of the service's words.
        touched: Mask of the service's rows in turns that were edited.
    """

    table: pa.Table
    row: Ints
    turn: Ints
    old_texts: list[str | None]
    touched: npt.NDArray[np.bool_]


def _words(words: pa.Table, turns: TurnEdits, service: _ServiceTurns) -> _Words:
    kept = np.flatnonzero(~service.loaded)
    new = [
        (turn, word)
        for turn in turns.turns.values()
        if turn.idx in turns.loaded
        for word in turn.words
        if word.row is not None
    ]
    first = words["transcript_id"][0].as_py() if words.num_rows else None
    before = list(zip(*(words[name].to_pylist() for name in ("start_ms", "end_ms", TIMING.name)), strict=True))
    rows = [
        {
            "transcript_id": first,
            "word_idx": 0,
            "utterance_idx": turn.idx if service.named[word.row or 0] else None,
            **_of_word(turn, word),
            TIMING.name: _timing(word, *before[word.row or 0]) if word.row is not None else None,
        }
        for turn, word in new
    ]
    schema = with_original(WORDS.empty, "words").schema
    joined = pa.concat_tables(
        [
            with_original(words.take(pa.array(kept)), "words").cast(schema),
            pa.Table.from_pylist(rows, schema),
        ]
    )
    order = np.argsort(np.concatenate([kept, [word.place for _, word in new]]), kind="stable")
    row = np.concatenate([kept, np.array([word.row for _, word in new], np.int64)])[order]
    turn = np.concatenate([service.owner[kept], np.array([turn.idx for turn, _ in new], np.int64)])[order]
    table = joined.take(pa.array(order))
    table = _with(table, word_idx=np.arange(len(order)))
    return _Words(table, row, turn, words["text"].to_pylist(), service.loaded)


def _timing(word: TurnWord, start: int | None, end: int | None, timing: str | None) -> str | None:
    """Return how the time of a word is known: as before if it is unchanged; set by a person, or shared for new text."""
    if (word.start, word.end) == (start, end):
        return timing
    return None if word.start is None and word.end is None else "word" if word.original is None else "segment"


def _of_word(turn: Turn, word: TurnWord) -> dict[str, Any]:
    return {
        "text": word.text,
        TEXT_ORIGINAL.name: word.original,
        "start_ms": word.start,
        "end_ms": word.end,
        "confidence": word.confidence,
        "speaker": turn.speaker,
        "channel": turn.channel,
        "extra": word.extra,
    }


def _located(owner: Ints) -> dict[int, tuple[int | None, int]]:
    """Return the first row and the number of rows of each owner; the first row is None if they are not consecutive."""
    values, first, count = np.unique(owner, return_index=True, return_counts=True)
    last = len(owner) - 1 - np.unique(owner[::-1], return_index=True)[1]
    return {
        value: (start if end - start + 1 == number else None, number)
        for value, start, end, number in zip(*(part.tolist() for part in (values, first, last, count)), strict=True)
    }


def _utterances(table: pa.Table, turns: TurnEdits, words: _Words) -> pa.Table:
    if not table.num_rows:
        return with_original(table, "utterances")
    all_turns = list(turns.turns.values())
    table = with_original(table.take(pa.array([turn.source for turn in all_turns], pa.int64())), "utterances")
    columns = table.to_pydict()
    places = _located(words.turn)
    for n, turn in enumerate(all_turns):
        place, _ = places.get(turn.idx, (None, 0))
        if turn.idx in turns.loaded or columns["first_word_idx"][n] is not None:
            columns["first_word_idx"][n] = place
        if not turn.edited:
            continue
        columns["utterance_idx"][n], columns["speaker"][n] = turn.idx, turn.speaker
        columns["text"][n], columns[TEXT_ORIGINAL.name][n] = turn.content(), turn.original()
        columns["word_count"][n] = len(turn.words) if turn.words else columns["word_count"][n]
        if turn.reshaped or turn.retimed:
            columns["start_ms"][n], columns["end_ms"][n] = _extent(turn.words)
        if turn.reshaped or turn.original() is not None:
            columns["confidence"][n] = None
        if turn.was is None:
            columns["extra"][n] = None
    return pa.table(columns, table.schema)


def _extent(words: Sequence[TurnWord]) -> tuple[int | None, int | None]:
    return _extent_of([word.start for word in words], [word.end for word in words])


def _extent_of(starts: Sequence[int | None], ends: Sequence[int | None]) -> tuple[int | None, int | None]:
    filled = ([time for time in times if time is not None] for times in (starts, ends))
    return min(next(filled), default=None), max(next(filled), default=None)


def _utterance_words(table: pa.Table, turns: TurnEdits, words: _Words) -> pa.Table:
    """Return the words of turns that are not runs of `words`."""
    table, places = with_original(table, "utterance_words"), _located(words.turn)
    idx = table["utterance_idx"].to_numpy()
    gone = [*turns.loaded, *(set(np.unique(idx).tolist()) - turns.turns.keys())]
    remaining = table.filter(pa.array(~np.isin(idx, gone)))
    rows = [
        {"utterance_idx": turn.idx, "word_idx": n, **_of_word(turn, word)}
        for turn in turns.turns.values()
        if turn.idx in turns.loaded and turn.source is not None and places.get(turn.idx, (None, 0))[0] is None
        for n, word in enumerate(turn.words)
    ]
    if rows:
        first = (words.table if words.table.num_rows else table)["transcript_id"][0].as_py()
        new = pa.Table.from_pylist([{"transcript_id": first, **row} for row in rows], table.schema)
        remaining = pa.concat_tables([remaining, new]).sort_by(
            [("utterance_idx", "ascending"), ("word_idx", "ascending")]
        )
    return remaining


def _transcripts(table: pa.Table, turns: TurnEdits, before: pa.Table, words: _Words) -> pa.Table:
    table = with_original(table, "transcripts")
    old = table["text"][0].as_py()
    texts = (join_words(words.old_texts), join_words(words.table["text"].to_pylist()))
    new = texts[1] if before.num_rows and old == texts[0] else old and _with_turns(old, turns)
    if new is None:
        new = texts[1]
    if old is None or new == old or (before.num_rows and texts[0] == texts[1]):
        return table
    return _with(table, text=[new], text_original=[table[TEXT_ORIGINAL.name][0].as_py() or old])


def _with_turns(text: str, turns: TurnEdits) -> str | None:
    """Replace the text of each corrected turn in a text; None if one cannot be found."""
    new_text, at = "", 0
    for turn in turns.turns.values():
        old, new = (turn.was.text if turn.was else None), turn.content() or ""
        if turn.reshaped and turn.original() is not None:
            return None
        if not turn.edited or turn.reshaped or old == new:
            continue
        place = text.find(old, at) if old else -1
        if place < 0:
            return None
        new_text, at = f"{new_text}{text[at:place]}{new}", place + len(old or "")
    return new_text + text[at:]


def _passages(table: pa.Table, name: str, words: _Words) -> pa.Table:
    """Return sentences or paragraphs with the corrected words. One without words is left out."""
    table = with_original(table, name)
    columns = table.to_pydict()
    owner = np.full(len(words.old_texts), -1, np.int64)
    for n, (first, count) in enumerate(zip(columns["first_word_idx"], columns["word_count"], strict=True)):
        if first is not None:
            owner[first : first + count] = n
    now = owner[words.row]
    places = _located(now)
    touched = set(np.unique(owner[words.touched]).tolist())
    kept = []
    for n, first in enumerate(columns["first_word_idx"]):
        if first is not None and n not in places:
            continue
        kept.append(n)
        if first is None:
            continue
        old = join_words(words.old_texts[first : first + columns["word_count"][n]])
        columns["first_word_idx"][n], columns["word_count"][n] = places[n]
        if n not in touched:
            continue
        values = words.table.take(pa.array(np.flatnonzero(now == n))).to_pydict()
        if (text := join_words(values["text"])) != old:
            columns[TEXT_ORIGINAL.name][n] = columns[TEXT_ORIGINAL.name][n] or columns["text"][n]
            columns["text"][n] = text
            columns["confidence"][n] = None
        columns["start_ms"][n] = min((t for t in values["start_ms"] if t is not None), default=None)
        columns["end_ms"][n] = max((t for t in values["end_ms"] if t is not None), default=None)
        speakers = set(values["speaker"])
        columns["speaker"][n] = speakers.pop() if len(speakers) == 1 else None
    passages = pa.table(columns, table.schema).take(pa.array(kept, pa.int64()))
    return _with(passages, **{f"{name[:-1]}_idx": np.arange(len(kept))})


def _with(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return table
