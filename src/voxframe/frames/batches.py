"""Tables of several transcript payloads, made together: most steps take as long for ten payloads as for one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from voxframe.frames.columns import TEXT, Arrays, from_columns, from_rows, no_rows, uncast_table
from voxframe.frames.extra import FastPathUnsupported, Rest
from voxframe.frames.json_lists import PAYLOAD, Columns, FieldPath, Ints, Lists, columns, read_lists
from voxframe.frames.json_schema import raw_lists
from voxframe.frames.tables import ROWS, follow, levels
from voxframe.frames.words import given_timing, is_null, lacks_times, own_times, repeated, turn_rows
from voxframe.schema import TIMING, TRANSCRIPT_TABLES

_WORDS = frozenset({"words"})
_TURNS = frozenset({"utterances", "utterance_words"})
_OTHERS = frozenset(TRANSCRIPT_TABLES) - _TURNS - _WORDS
_REST = Rest(None, whole=False)


def tables_together(documents: Sequence[Any], ids: Sequence[str]) -> list[dict[str, pa.Table]] | None:
    """Return the tables of each payload as `transcript_arrays` would make them, with text as large strings.

    Returns:
        None if one of the payloads has to be read alone.
    """
    try:
        words, turns = _words(documents)
        lists = _lists(documents) | {("words",): words}
        arrays = columns(_WORDS | _OTHERS - ROWS.keys(), lists)
        rows = {name: [ROWS[name](document, _REST) for document in documents] for name in ROWS}
    except (FastPathUnsupported, RecursionError):
        return None
    owners, starts, counts = turns
    spoken = [turn for payload in documents for turn in payload.utterances or ()]
    lacking = any((turn.start is None or turn.end is None) and n for turn, n in zip(spoken, counts, strict=True))
    if lacking or lacks_times(arrays["words"]["start_ms"], arrays["words"]["end_ms"]):  # these are shared one by one
        return None
    limits = [(turn.start, turn.end, given_timing(turn.start, turn.end)) for turn in spoken]
    arrays["words"] |= {"utterance_idx": owners, TIMING.name: own_times(len(owners))}
    arrays["topics"] |= levels(arrays["topics"]["label"])
    ends = np.cumsum([len(payload.utterances or ()) for payload in documents]).tolist()
    rows["utterances"] = [
        turn_rows(
            payload.utterances or (),
            limits[start:end],
            starts[start:end],
            counts[start:end],
            _REST,
        )
        for payload, start, end in zip(documents, [0, *ends], ends, strict=False)
    ]
    names = pa.array(ids, TEXT)
    by_name = {name: _of_columns(name, names, arrays[name]) for name in arrays}
    by_name |= {name: _of_rows(name, names, rows[name]) for name in rows}
    by_name["utterance_words"] = no_rows("utterance_words"), np.zeros(len(ids), np.int64)
    tables = {name: _split(name, *by_name[name]) for name in TRANSCRIPT_TABLES}
    return [{name: tables[name][place] for name in TRANSCRIPT_TABLES} for place in range(len(ids))]


def _lists(documents: Sequence[Any]) -> dict[FieldPath, Lists]:
    """Return the lists of all tables but `words`."""
    paths = raw_lists(_OTHERS)
    by_path = read_lists([[follow(document, path) for path in paths] for document in documents], _OTHERS, None)
    return {path: lists._replace(counts=np.diff(lists.arrays.offsets.to_numpy())) for path, lists in by_path.items()}


def _words(documents: Sequence[Any]) -> tuple[Lists, tuple[pa.Array, Ints, Ints]]:
    """Return the words, the utterance of each word, and the first word and the number of words of each utterance."""
    parts: list[Any] = []
    turn: list[int] = []
    lengths = []
    for document in documents:
        in_turns = [spoken.words for spoken in document.utterances or ()]
        if in_turns and not (is_null(document.words) or repeated(document.words, in_turns)):
            raise FastPathUnsupported
        parts += in_turns or [document.words]
        turn += range(len(in_turns)) if in_turns else [-1]
        lengths.append(len(in_turns) or 1)
    words = read_lists([[part] for part in parts], _WORDS, None)["words",]
    counts: Ints = np.diff(words.arrays.offsets.to_numpy())
    before = np.cumsum(counts) - counts
    sizes: Ints = np.array(lengths)
    firsts: Ints = np.cumsum(sizes) - sizes
    of_payload = np.add.reduceat(counts, firsts)
    starts = np.where(counts > 0, before - np.repeat(before[firsts], sizes), -1)
    turns = np.array(turn)
    owners = np.repeat(turns, counts)
    of_turns = turns >= 0
    return words._replace(counts=of_payload), (pa.array(owners, mask=owners < 0), starts[of_turns], counts[of_turns])


def _of_columns(name: str, ids: pa.Array, arrays: Columns) -> tuple[Arrays, Ints]:
    of = arrays[PAYLOAD]
    return from_columns(name, ids.take(of), arrays), np.bincount(of.to_numpy(), minlength=len(ids))


def _of_rows(name: str, ids: pa.Array, rows: Sequence[Sequence[tuple[Any, ...]]]) -> tuple[Arrays, Ints]:
    counts = np.array([len(part) for part in rows])
    of = np.repeat(np.arange(len(ids)), counts)
    return from_rows(name, ids.take(pa.array(of)), [*chain.from_iterable(rows)]), counts


def _split(name: str, arrays: Arrays, counts: Ints) -> list[pa.Table]:
    table = uncast_table(name, arrays)
    starts = (np.cumsum(counts) - counts).tolist()
    return [table.slice(start, count) for start, count in zip(starts, counts.tolist(), strict=True)]
