"""Words and turns: which word belongs to which turn, and the words that only a turn has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from voxframe.frames.arrays import Arrays, from_columns, from_rows, no_rows
from voxframe.frames.lists import Columns, RawList, columns, read_lists
from voxframe.frames.runs import FIELDS, Ints, repeated, runs, spread

_ONLY_WORDS = frozenset({"words"})


def read_words(whole: RawList, turns: Sequence[Any], *, clean: bool) -> tuple[pa.ListArray, Ints | None]:
    """The words of a transcript, not checked yet, and how many each turn has where all turns repeat them.

    Turns repeat their words on the wire. Where these are byte for byte the words of the transcript, nothing is read
    twice: the words are read turn by turn, which tells how many each has.

    Args:
        whole: The words of the transcript, raw.
        turns: The decoded utterances, each with its words raw.
        clean: Whether all this comes from the tolerant way.

    Raises:
        Refused: A value needs the tolerant way.
    """
    parts = [turn.words for turn in turns]
    repeats = repeated(whole, parts)
    lists = read_lists([[part] for part in parts] if repeats else [[whole]], _ONLY_WORDS, clean=clean)["words",]
    return lists, _counts(lists) if repeats else None


def word_tables(
    names: frozenset[str],
    transcript_id: str | None,
    words: Columns,
    turns: Sequence[Any],
    counts: Ints | None,
    *,
    clean: bool,
) -> dict[str, Arrays]:
    """Columns of those of the tables `words`, `utterances` and `utterance_words` that are named.

    Where the turns do not repeat the words as they are, each is looked for among the words, and kept in
    `utterance_words` where it differs in any field.

    Args:
        names: Tables that are wanted.
        transcript_id: Identifier for every row.
        words: The words of the transcript.
        turns: The decoded utterances, each with its words raw.
        counts: How many words each turn has, as `read_words` said.
        clean: Whether all this comes from the tolerant way.

    Raises:
        Refused: A value needs the tolerant way.
    """
    if counts is not None:
        starts = np.where(counts > 0, np.cumsum(counts) - counts, -1)
        owners = pa.array(np.repeat(np.arange(len(counts)), counts))
        own: Columns = {}
    else:
        own, counts = copies([turn.words for turn in turns], clean=clean)
        starts = runs(words, own, counts, FIELDS)
        owners = _owners(starts, counts, len(words["word_idx"]))
        kept = pa.array(np.repeat(starts < 0, counts))
        own = {key: values.filter(kept) for key, values in own.items()}
    tables = {}
    if "words" in names:
        tables["words"] = from_columns("words", transcript_id, {**words, "utterance_idx": owners})
    if "utterances" in names:
        tables["utterances"] = from_rows("utterances", transcript_id, _turns(turns, starts, counts))
    if "utterance_words" in names:
        tables["utterance_words"] = _utterance_words(transcript_id, own, np.where(starts < 0, counts, 0))
    return tables


def _utterance_words(transcript_id: str | None, own: Columns, counts: Ints) -> Arrays:
    if not own:
        return no_rows("utterance_words")
    turn, position = (pa.array(values) for values in spread(counts))
    return from_columns("utterance_words", transcript_id, {**own, "utterance_idx": turn, "word_idx": position})


def copies(lists: Sequence[RawList], *, clean: bool) -> tuple[Columns, Ints]:
    """Columns of the words of several lists, one after another, and how many each list has.

    Raises:
        Refused: A value needs the tolerant way.
    """
    found = read_lists([[words] for words in lists], _ONLY_WORDS, clean=clean)
    return columns(_ONLY_WORDS, found)["words"], _counts(found["words",])


def _counts(lists: pa.ListArray) -> Ints:
    counts: Ints = np.diff(lists.offsets.to_numpy()).astype(np.int64)  # the offsets of a list that is null are equal
    return counts


def count_or_null(words: RawList, count: int) -> int | None:
    """The number of words; None where there is no list of words, not even an empty one."""
    return count if count or not (words is None or memoryview(words)[0] == ord("n")) else None


def _turns(turns: Sequence[Any], starts: Ints, counts: Ints) -> list[tuple[Any, ...]]:
    return [
        (
            *(i, turn.speaker, turn.channel, turn.text, turn.start, turn.end, turn.confidence),
            start if start >= 0 else None,
            count_or_null(turn.words, count),
        )
        for i, (turn, start, count) in enumerate(zip(turns, starts.tolist(), counts.tolist(), strict=True))
    ]


def _owners(starts: Ints, counts: Ints, rows: int) -> pa.Array:
    """The turn of each word; null where it is in no turn."""
    owners = np.full(rows, -1, np.int64)
    turn, within = spread(np.where(starts >= 0, counts, 0))
    owners[starts[turn] + within] = turn
    return pa.array(owners, mask=owners < 0)
