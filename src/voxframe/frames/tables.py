"""A transcript payload to the tidy tables of the data dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from voxframe.frames.analyses import ROWS, follow, levels
from voxframe.frames.arrays import Arrays, as_table, from_columns, from_rows
from voxframe.frames.lists import Refused, columns, read_lists
from voxframe.frames.shape import chosen, decoder, raw_lists, shape
from voxframe.frames.tolerant import put_right
from voxframe.frames.words import read_words, word_tables
from voxframe.schema import TRANSCRIPT_TABLES

T = TypeVar("T")

#: What the fast way raises for a payload that needs the tolerant way.
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Refused)
_TURNS = frozenset({"utterances", "utterance_words"})
_WORDY = _TURNS | {"words"}


def transcript_tables(
    raw: bytes, only: Collection[str] | None = None, transcript_id: str | None = None
) -> dict[str, pa.Table]:
    """Every table of one transcript payload.

    Missing parts give tables without rows, and nothing that can be read is refused: see `voxframe.frames.tolerant`. An
    error object, or a single analysis, loads too.

    Args:
        raw: The payload as the service answered it: one JSON object.
        only: Names of the tables wanted; the rest of the payload is skipped. None makes all of them.
        transcript_id: Identifier to put in the tables instead of the payload's own.

    Returns:
        Tables by name, in the order of `voxframe.schema.TRANSCRIPT_TABLES`, each with exactly the Arrow schema of the
        data dictionary.

    Raises:
        PayloadError: It is no JSON object.
        OptionError: `only` names a table that is not made from a transcript.

    Example:
        >>> tables = transcript_tables(b'{"id": "a1", "words": [{"text": "Hi", "start": 0, "end": 90}]}')
        >>> tables["words"].column("text").to_pylist()
        ['Hi']
        >>> tables["chapters"].num_rows
        0
    """
    return {name: as_table(name, arrays) for name, arrays in transcript_arrays(raw, only, transcript_id).items()}


def transcript_arrays(
    raw: bytes, only: Collection[str] | None = None, transcript_id: str | None = None
) -> dict[str, Arrays]:
    """The same as columns, for who wants no Arrow tables."""
    names = chosen(only, TRANSCRIPT_TABLES)
    # Words say which turn they belong to and turns where their words are: either needs both.
    wordy = names & _WORDY
    needed = names | _WORDY if wordy else names
    others = names - _WORDY

    def make(doc: Any, clean: bool) -> dict[str, Arrays]:
        lists = read_lists([[follow(doc, way) for way in raw_lists(others)]], others, clean=clean) if others else {}
        turns, counts = (), None
        if wordy:
            turns = doc.utterances or ()
            lists["words",], counts = read_words(doc.words, turns, clean=clean)
        key = doc.id if transcript_id is None else transcript_id
        tables = {name: from_rows(name, key, ROWS[name](doc)) for name in needed & ROWS.keys()}
        made = columns(needed - ROWS.keys() - _TURNS, lists)
        if words := made.pop("words", None):
            tables |= word_tables(names, key, words, turns, counts, clean=clean)
        for name, found in made.items():
            tables[name] = from_columns(name, key, found | levels(found["label"]) if name == "topics" else found)
        return {name: tables[name] for name in TRANSCRIPT_TABLES if name in names}

    return read(raw, needed, make)


def read(raw: bytes, names: frozenset[str], make: Callable[[Any, bool], T]) -> T:
    """Decode a payload the fast way, or the tolerant way where that refuses, and make something of it.

    Args:
        raw: The payload.
        names: Tables whose part of the payload is needed.
        make: Called with the decoded payload, and whether it was put right by the tolerant way.

    Raises:
        PayloadError: It is no JSON object.
    """
    try:
        return _fast(raw, names, make)
    except _REFUSALS:
        return _tolerant(raw, names, make)


def _fast(raw: bytes, names: frozenset[str], make: Callable[[Any, bool], T]) -> T:
    return make(decoder(names).decode(raw), False)


def _tolerant(raw: bytes, names: frozenset[str], make: Callable[[Any, bool], T]) -> T:
    return make(decoder(names).decode(put_right(raw, shape(names))), True)
