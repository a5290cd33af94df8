"""Tables of words and utterances: the utterance and the best known time of each word, and copies of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.json_lists import (
    Columns,
    Lists,
    RawList,
    Rest,
    columns,
    elements,
    extra_text,
    field,
    read_lists,
    unknown_of_item,
)
from voxframe.frames.layout import WORD_LIST, Arrays, from_columns, from_rows, no_rows, shape
from voxframe.schema import EXTRA, INT, TIMING

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = "pa.Array | pa.ChunkedArray"

#: Names of the columns that `timed` returns.
TIMES = ("start_ms", "end_ms", TIMING.name)
_OWN, _SHARED = pa.scalar("word", pa.large_string()), pa.scalar("segment", pa.large_string())


def own_times(rows: int) -> Values:
    """Return the column `timing` of words that all have their own times."""
    return pa.repeat(_OWN, rows)


def lacks_times(start: Values, end: Values) -> bool:
    """Return True if a time is null."""
    return bool(start.null_count or end.null_count)


def given_timing(start: int | None, end: int | None) -> str | None:
    """Return `timing` of a turn with these limits and no words."""
    return None if start is None and end is None else "segment"


def timed(
    text: Values, start: Values, end: Values, owner: Ints, turn_start: Floats, turn_end: Floats
) -> tuple[Values, Values, Values]:
    """Return start, end and `timing` of each word; `owner` is its turn, -1 if none has it.

    Unknown times between two known ones share that time in proportion to the number of characters. A word begins not
    before its turn and ends not after it. A time stays null if no known time precedes it or none follows.
    """
    if not lacks_times(start, end):
        return start, end, own_times(len(start))
    times = np.empty((len(start), 2))
    times[:, 0], times[:, 1] = _floats(start), _floats(end)
    unknown = np.isnan(times)
    first = np.r_[True, owner[1:] != owner[:-1]] & (owner >= 0)
    last = np.r_[owner[1:] != owner[:-1], True] & (owner >= 0)
    for side, rows, limits in ((0, first, turn_start), (1, last, turn_end)):
        rows = rows & unknown[:, side]
        times[rows, side] = limits[owner[rows]]
    shared = _shared(times, _floats(pc.utf8_length(pc.coalesce(text, pa.scalar("", text.type)))))
    is_shared = (unknown & ~np.isnan(shared)).any(axis=1)
    columns = [
        pc.coalesce(bounds, pa.array(np.rint(shared[:, side]), INT, from_pandas=True, safe=False))
        for side, bounds in enumerate((start, end))
    ]
    has_times = pa.array(~np.isnan(shared).all(axis=1))
    timing = pc.if_else(has_times, pc.if_else(pa.array(is_shared), _SHARED, _OWN), pa.scalar(None, _OWN.type))
    return columns[0], columns[1], timing


def _shared(times: Floats, letters: Floats) -> Floats:
    """Return starts and ends in which unknown times between two known ones are in proportion to the characters."""
    line = times.ravel()  # start, end, start, end, ...
    reach = np.cumsum(np.maximum(letters, 1))
    place = np.column_stack([np.r_[0.0, reach[:-1]], reach]).ravel()
    places = np.flatnonzero(~np.isnan(line))
    if not len(places):
        return times
    after = np.searchsorted(places, np.arange(len(line)))
    inside = np.isnan(line) & (after > 0) & (after < len(places))
    low, high = places[after[inside] - 1], places[after[inside]]
    gap = place[high] - place[low]
    part = np.divide(place[inside] - place[low], gap, out=np.zeros(len(low)), where=gap > 0)
    line = line.copy()
    line[inside] = line[low] + part * np.maximum(line[high] - line[low], 0)
    return line.reshape(-1, 2)


def turn_times(
    turn_start: Floats, turn_end: Floats, owner: Ints, words: tuple[Values, Values, Values]
) -> list[tuple[int | None, int | None, str | None]]:
    """Return start, end and `timing` of each turn; an unknown time is that of its first or last word in `words`."""
    lacks = np.isnan(turn_start) | np.isnan(turn_end)
    is_shared, is_filled = np.zeros(len(lacks), bool), np.zeros(len(lacks), bool)
    limits = [turn_start, turn_end]
    if lacks.any():
        rows = np.flatnonzero(owner >= 0)
        rows = rows[lacks[owner[rows]]]
        shared = np.asarray(pc.equal(words[2], _SHARED).fill_null(False))
        for side, edge in ((0, np.fmin), (1, np.fmax)):
            result, times = np.full(len(lacks), np.nan), _floats(words[side])
            edge.at(result, owner[rows], times[rows])
            missing = np.isnan(limits[side])
            ends = rows[shared[rows] & (times[rows] == result[owner[rows]])]
            is_shared[owner[ends][missing[owner[ends]]]] = True
            is_filled |= missing & ~np.isnan(result)
            limits[side] = np.where(missing, result, limits[side])
    starts, ends = ([None if np.isnan(time) else int(time) for time in side.tolist()] for side in limits)
    return [
        (start, end, given_timing(start, end) and ("shared" if shared else "word" if filled else "segment"))
        for start, end, shared, filled in zip(starts, ends, is_shared.tolist(), is_filled.tolist(), strict=True)
    ]


def _floats(values: Values) -> Floats:
    floats: Floats = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
    return floats


Ints: TypeAlias = npt.NDArray[np.int64]

_ONLY_WORDS = frozenset({"words"})
_TURN = shape(frozenset({"utterances"}))["utterances"]["[]"]
#: All fields of a word.
FIELDS = (*(column.name for column in WORD_LIST["[]"].values()), EXTRA.name)
_EMPTY = (b"[]", b"null")


def read_words(whole: RawList, turns: Sequence[Any], extras: Rest) -> tuple[Lists, Ints | None]:
    """Read the words of a transcript, not checked yet, and the number of words per utterance if known.

    Utterances repeat their words in the payload. If these are byte for byte the words of the transcript, they are read
    only once, utterance by utterance, which also gives the counts. The same applies if only the utterances have words.
    """
    parts = [turn.words for turn in turns]
    # The tolerant path drops unknown fields from the raw words, and copies may differ in those.
    by_turn = bool(parts) and (is_null(whole) or (not extras.whole and repeated(whole, parts)))
    if not by_turn:
        parsed = read_lists([[whole]], _ONLY_WORDS, [[field(extras.values, "words")]] if extras.whole else None)
        return parsed["words",], None
    lists = read_lists([[part] for part in parts], _ONLY_WORDS, _words_of(_turns_of(extras)) if extras.whole else None)
    return lists["words",], _counts(lists["words",])


def _turns_of(extras: Rest) -> Sequence[Any]:
    return elements(field(extras.values, "utterances"))


def _words_of(items: Sequence[Any]) -> list[list[Any]]:
    return [[field(item, "words")] for item in items]


def word_tables(
    names: frozenset[str],
    transcript_id: str | None,
    words: Columns,
    turns: Sequence[Any],
    counts: Ints | None,
    extras: Rest,
) -> dict[str, Arrays]:
    """Return the columns of the requested tables among `words`, `utterances` and `utterance_words`.

    If the utterances do not repeat the words exactly (`counts` is None), the words of each are located in the
    transcript. Words of an utterance that differ in any field are kept in `utterance_words`.
    """
    if counts is not None:
        starts = np.where(counts > 0, np.cumsum(counts) - counts, -1)
        owners = pa.array(np.repeat(np.arange(len(counts)), counts))
        copied: Columns = {}
    else:
        copied, counts = copies([turn.words for turn in turns], _words_of(_turns_of(extras)) if extras.whole else None)
        starts = runs(words, copied, counts, FIELDS)
        owners = _owners(starts, counts, len(words["word_idx"]))
        is_kept = pa.array(np.repeat(starts < 0, counts))
        copied = {key: values.filter(is_kept) for key, values in copied.items()}
    times, limits = times_of(words, owners, turns)
    tables = {}
    if "words" in names:
        columns = {**words, "utterance_idx": owners, **dict(zip(TIMES, times, strict=True))}
        tables["words"] = from_columns("words", transcript_id, columns)
    if "utterances" in names:
        tables["utterances"] = from_rows("utterances", transcript_id, turn_rows(turns, limits, starts, counts, extras))
    if "utterance_words" in names:
        tables["utterance_words"] = _utterance_words(transcript_id, copied, np.where(starts < 0, counts, 0))
    return tables


def times_of(
    words: Columns, owners: pa.Array, turns: Sequence[Any]
) -> tuple[tuple[Any, Any, Any], list[tuple[int | None, int | None, str | None]]]:
    """Return the times and `timing` of words and of turns; see `voxframe.frames.words`."""
    start, end = words["start_ms"], words["end_ms"]
    limits = np.array([(turn.start, turn.end) for turn in turns], np.float64).reshape(-1, 2).T
    if not lacks_times(start, end) and not np.isnan(limits).any():
        return (start, end, own_times(len(start))), [(*limit, "segment") for limit in limits.T.astype(int).tolist()]
    owner = np.asarray(owners.fill_null(-1))
    times = timed(words["text"], start, end, owner, limits[0], limits[1])
    return times, turn_times(limits[0], limits[1], owner, times)


def _utterance_words(transcript_id: str | None, copied: Columns, counts: Ints) -> Arrays:
    if not copied:
        return no_rows("utterance_words")
    turn, position = (pa.array(values) for values in spread(counts))
    return from_columns("utterance_words", transcript_id, {**copied, "utterance_idx": turn, "word_idx": position})


def copies(lists: Sequence[RawList], whole: Sequence[Sequence[Any]] | None) -> tuple[Columns, Ints]:
    """Return the columns of the words of consecutive lists, and the length of each; `whole` as for `read_lists`."""
    lists_read = read_lists([[words] for words in lists], _ONLY_WORDS, whole)
    return columns(_ONLY_WORDS, lists_read)["words"], _counts(lists_read["words",])


def _counts(lists: Lists) -> Ints:
    counts: Ints = np.diff(lists.arrays.offsets.to_numpy()).astype(
        np.int64
    )  # the offsets of a list that is null are equal
    return counts


def count_or_null(words: RawList, count: int) -> int | None:
    """Return the number of words; None if there is no list of words, not even an empty one."""
    return None if is_null(words) else count


def is_null(words: RawList) -> bool:
    """Return True if a list of words is absent or null."""
    return words is None or memoryview(words)[0] == ord("n")


def turn_rows(
    turns: Sequence[Any],
    limits: Sequence[tuple[int | None, int | None, str | None]],
    starts: Ints,
    counts: Ints,
    extras: Rest,
) -> list[tuple[Any, ...]]:
    """Return the rows of `utterances`; `starts` has the index of the first word of each, -1 if it is unknown."""
    extra: Sequence[str | None] = [
        extra_text(unknown_of_item("utterances", other, _TURN), exact=extras.whole) for other in _turns_of(extras)
    ]
    return [
        (
            *(i, turn.speaker, turn.channel, turn.text, start_ms, end_ms, turn.confidence, timing),
            start if start >= 0 else None,
            count or count_or_null(turn.words, count),
            other,
        )
        for i, (turn, (start_ms, end_ms, timing), start, count, other) in enumerate(
            zip(turns, limits, starts.tolist(), counts.tolist(), extra or [None] * len(turns), strict=True)
        )
    ]


def _owners(starts: Ints, counts: Ints, rows: int) -> pa.Array:
    """Return the utterance index of each word; null if the word is in no utterance."""
    owners = np.full(rows, -1, np.int64)
    turn, within = spread(np.where(starts >= 0, counts, 0))
    owners[starts[turn] + within] = turn
    return pa.array(owners, mask=owners < 0)


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """Return the list index and the index within its list of each element, for consecutive lists of these lengths."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - (np.cumsum(counts) - counts)[of]


def repeated(whole: RawList, parts: Sequence[RawList]) -> bool:
    """Return True if the concatenated parts are byte for byte the whole, and are not empty.

    This costs a small part of decoding the copies. Equal bytes mean equal fields.
    """
    views = [memoryview(raw) for raw in parts if raw]
    lists = [view for view in views if len(view) > len(b"null") or bytes(view) not in _EMPTY]
    inner = [view[1:-1] for view in lists]
    if any(view[0] != ord("[") for view in lists):
        return False
    if any(bytes(item[:8]).isspace() and bytes(item).isspace() for item in inner):  # a copy of all would take longer
        return False
    if whole is None or not inner:
        return False
    words = memoryview(whole)
    if words[0] != ord("["):
        return False
    words = words[1:-1]
    size = len(inner[0])
    copy = (b", " if bytes(words[size : size + 2]) == b", " else b",").join(inner)
    return len(words) == len(copy) and copy.startswith(words)  # a comparison of memoryviews takes ten times as long


def runs(words: Columns, copies: Columns, counts: Ints, by: Sequence[str]) -> Ints:
    """Find the words of each part of a transcript, given as a copy of its words, among all words.

    Returns:
        Index in `words` of the first word of each part; -1 if there is no match or the part has no words. No word
        belongs to two parts.
    """
    part, within = spread(counts)
    first_rows = np.full(len(counts), -1, np.int64)
    total = len(words["start_ms"])
    for guess in _guesses(words, copies, counts):
        looked = (first_rows < 0) & (counts > 0) & (guess >= 0) & (guess + counts <= total)
        if looked.any():
            rows = looked[part]
            at, of = pa.array((guess[part] + within)[rows]), pa.array(rows)
            unequal = ~np.logical_and.reduce([_equal(words[key].take(at), copies[key].filter(of)) for key in by])
            first_rows = np.where(looked & (np.bincount(part[rows], unequal, len(counts)) == 0), guess, first_rows)
        if (first_rows[counts > 0] >= 0).all():
            break
    return _apart(first_rows, counts, total)


def _guesses(words: Columns, copies: Columns, counts: Ints) -> Iterator[Ints]:
    """Yield candidate start indices of each part.

    First directly after the previous part, then the first and the last word with the same start time.
    """
    firsts = np.cumsum(counts) - counts
    yield firsts
    starts, copied = _numbers(words["start_ms"]), _numbers(copies["start_ms"])
    if len(starts) and len(copied):
        order = np.argsort(starts, kind="stable")
        targets = copied[np.minimum(firsts, len(copied) - 1)]
        lows = np.searchsorted(starts, targets, "left", order)
        yield order[np.minimum(lows, len(order) - 1)]
        yield order[np.searchsorted(starts, targets, "right", order) - 1]


def _numbers(values: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(values.fill_null(-1))


def _equal(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Compare values; null equals null."""
    both_null = np.asarray(left.is_null()) & np.asarray(right.is_null())
    equal: npt.NDArray[np.bool_] = both_null | np.asarray(pc.equal(left, right).fill_null(False))
    return equal


def _apart(places: Ints, counts: Ints, rows: int) -> Ints:
    """Drop matches that share words with an earlier match."""
    free = np.ones(rows, bool)
    for i, (start, count) in enumerate(zip(places.tolist(), counts.tolist(), strict=True)):
        if start >= 0 and not free[start : start + count].all():
            places[i] = -1
        elif start >= 0:
            free[start : start + count] = False
    return places
