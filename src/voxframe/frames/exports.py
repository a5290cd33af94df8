"""Sentences, paragraphs and word search: the answers that a finished transcript is asked for apart."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from voxframe.frames.arrays import as_table, from_rows
from voxframe.frames.runs import runs
from voxframe.frames.shape import shape
from voxframe.frames.tables import read
from voxframe.frames.tolerant import put_right
from voxframe.frames.words import copies, count_or_null

# Confidence and speaker may be rounded or left out in an export; text and times say which word it is.
_SAME_WORD = ("text", "start_ms", "end_ms")


def sentence_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """The `sentences` table of a sentences export.

    Args:
        raw: The export as the service answered it.
        words: The `words` table of the same transcript. With it, `word_start` says where each sentence begins among the
            words; without it that is not known, and null.
        transcript_id: Identifier to put in the table instead of the export's own.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: It is no JSON object.

    Example:
        >>> export = b'{"id": "a1", "sentences": [{"text": "Hi.", "start": 0, "end": 90, "words": []}]}'
        >>> sentence_table(export).column("text").to_pylist()
        ['Hi.']
    """
    return _passages(raw, "sentences", words, transcript_id)


def paragraph_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """The `paragraphs` table of a paragraphs export; see `sentence_table`."""
    return _passages(raw, "paragraphs", words, transcript_id)


def _passages(raw: bytes, name: str, words: pa.Table | None, transcript_id: str | None) -> pa.Table:
    def make(doc: Any, clean: bool) -> pa.Table:
        items = getattr(doc, name) or ()
        lists = [item.words for item in items]
        words_of, counts = copies(lists, clean=clean)
        starts = np.full(len(items), -1)
        if words is not None:
            starts = runs(words, words_of, counts, _SAME_WORD)
        rows = [
            (
                *(i, item.text, item.start, item.end, item.confidence, item.speaker, item.channel),
                None if start < 0 else start,
                count_or_null(item.words, count),
            )
            for i, (item, start, count) in enumerate(zip(items, starts.tolist(), counts.tolist(), strict=True))
        ]
        return as_table(name, from_rows(name, doc.id if transcript_id is None else transcript_id, rows))

    return read(raw, frozenset({name}), make)


def word_match_table(raw: bytes, transcript_id: str | None = None) -> pa.Table:
    """The `word_matches` table of a word search.

    Args:
        raw: The answer of the service.
        transcript_id: Identifier to put in the table instead of the answer's own.

    Returns:
        A row per occurrence, with exactly the Arrow schema of the data dictionary; a word that was not found has none.

    Raises:
        PayloadError: It is no JSON object.

    Example:
        >>> answer = b'{"id": "a1", "matches": [{"text": "hi", "timestamps": [[0, 90]], "indexes": [0]}]}'
        >>> word_match_table(answer).select(["query", "word_idx", "start_ms", "end_ms"]).to_pylist()
        [{'query': 'hi', 'word_idx': 0, 'start_ms': 0, 'end_ms': 90}]
    """
    # A small answer: the tolerant way is fast enough.
    doc = orjson.loads(put_right(raw, shape(frozenset({"word_matches"}))))
    rows = [
        (match.get("text"), i, index, *[*(time or ()), None, None][:2])
        for match in doc.get("matches") or ()
        for i, (index, time) in enumerate(zip_longest(match.get("indexes") or (), match.get("timestamps") or ()))
    ]
    key = doc.get("id") if transcript_id is None else transcript_id
    return as_table("word_matches", from_rows("word_matches", key, rows))
