"""Words and turns: which word belongs to which turn, and the words that only a turn has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from voxframe.frames.arrays import from_columns, from_rows
from voxframe.frames.runs import repeated, runs, spread
from voxframe.frames.words import SCHEMA, Ints, WordList, is_null, read


def word_tables(
    transcript_id: str | None, words: WordList, turns: Sequence[Any], *, clean: bool
) -> dict[str, pa.Table]:
    """The tables `words`, `utterances` and `utterance_words`.

    Turns repeat their words on the wire. Where these are byte for byte the words of the transcript, nothing is read
    twice; else each turn is looked for among the words, and kept in `utterance_words` where it differs in any field.

    Args:
        transcript_id: Identifier for every row.
        words: The words of the transcript, raw.
        turns: The decoded utterances, each with its words raw.
        clean: Whether they come from the tolerant way.

    Raises:
        Refused: A value needs the tolerant way.
    """
    lists = [turn.words for turn in turns]
    columns, _ = read([words], clean=clean)
    rows = columns.num_rows
    counts = repeated(words, rows, lists)
    if counts is not None:
        starts = np.where(counts > 0, np.cumsum(counts) - counts, -1)
        own = columns.slice(0, 0)
    else:
        own, counts = read(lists, clean=clean)
        starts = runs(columns, own, counts, SCHEMA.names)
        own = own.filter(pa.array(np.repeat(starts < 0, counts)))
    found = starts >= 0
    own_turn, own_position = spread(np.where(found, 0, counts))
    places = zip(
        [start if start >= 0 else None for start in starts.tolist()],
        [None if is_null(part) else count for part, count in zip(lists, counts.tolist(), strict=True)],
        strict=True,
    )
    turn_rows = [
        (i, t.speaker, t.channel, t.text, t.start, t.end, t.confidence, *place)
        for i, (t, place) in enumerate(zip(turns, places, strict=True))
    ]
    positions = {"word_idx": pa.array(np.arange(rows)), "utterance_idx": _owners(starts, counts, rows)}
    own_positions = {"utterance_idx": pa.array(own_turn), "word_idx": pa.array(own_position)}
    return {
        "words": from_columns("words", transcript_id, positions | _by_name(columns)),
        "utterances": from_rows("utterances", transcript_id, turn_rows),
        "utterance_words": from_columns("utterance_words", transcript_id, own_positions | _by_name(own)),
    }


def _by_name(words: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(words.column_names, words.columns, strict=True))


def _owners(starts: Ints, counts: Ints, rows: int) -> pa.Array:
    """The turn of each word; null where it is in no turn."""
    owners = np.full(rows, -1, np.int64)
    turn, within = spread(np.where(starts >= 0, counts, 0))
    owners[starts[turn] + within] = turn
    return pa.array(owners, mask=owners < 0)
