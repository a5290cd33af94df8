"""Sentences, paragraphs and word search: the answers that a finished transcript is asked for apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from voxframe.frames import words as word_columns
from voxframe.frames.tables import fields, read, table

#: A word of an export and a word of the transcript are the same where these agree; confidence and speaker may be rounded or
#: left out in an export.
_SAME = ("text", "start_ms", "end_ms")


def sentence_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """The `sentences` table of a sentences export.

    Args:
        raw: The export as the service answered it.
        words: The `words` table of the same transcript. With it, `word_start` says where each sentence begins among the
            words; without it, that is not known and stays null.
        transcript_id: Identifier to put in the table instead of the export's own.

    Returns:
        A table with the dictionary's Arrow schema.

    Raises:
        PayloadError: It is no JSON object.

    Example:
        >>> export = b'{"id": "a1", "sentences": [{"text": "Hi.", "start": 0, "end": 90, "words": []}]}'
        >>> sentence_table(export).column("text").to_pylist()
        ['Hi.']
    """
    return read(raw, frozenset({"sentences"}), _passages, words, transcript_id)


def paragraph_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """The `paragraphs` table of a paragraphs export; see `sentence_table`."""
    return read(raw, frozenset({"paragraphs"}), _passages, words, transcript_id)


def _passages(
    doc: Any, names: frozenset[str], words: pa.Table | None, transcript_id: str | None, clean: bool
) -> pa.Table:
    (name,) = names
    items = getattr(doc, name) or []
    counts = np.fromiter((len(item.words or ()) for item in items), np.int64, len(items))
    starts = np.full(len(items), -1)
    if words is not None:
        lines = word_columns.join([word for item in items for word in item.words or ()])
        parts = word_columns.read(lines, int(counts.sum()), clean=clean)
        starts = word_columns.runs(words, parts, counts, _SAME)
    columns = {
        f"{name[:-1]}_idx": range(len(items)),
        **fields(items, text="text", start_ms="start", end_ms="end", confidence="confidence"),
        **fields(items, speaker="speaker", channel="channel"),
        "word_start": pa.array(starts, pa.int64(), mask=starts < 0),
        "word_count": [None if item.words is None else len(item.words) for item in items],
    }
    return table(name, doc.id if transcript_id is None else transcript_id, columns)


def word_match_table(raw: bytes, transcript_id: str | None = None) -> pa.Table:
    """The `word_matches` table of a word search.

    Args:
        raw: The answer of the service.
        transcript_id: Identifier to put in the table instead of the answer's own.

    Returns:
        A row per occurrence; a word that was not found has none.

    Raises:
        PayloadError: It is no JSON object.

    Example:
        >>> answer = b'{"id": "a1", "matches": [{"text": "hi", "timestamps": [[0, 90]], "indexes": [0]}]}'
        >>> word_match_table(answer).select(["query", "word_idx", "start_ms", "end_ms"]).to_pylist()
        [{'query': 'hi', 'word_idx': 0, 'start_ms': 0, 'end_ms': 90}]
    """
    return read(raw, frozenset({"word_matches"}), _matches, transcript_id)


def _matches(doc: Any, names: frozenset[str], transcript_id: str | None, clean: bool) -> pa.Table:  # noqa: ARG001
    rows = [
        (match.text, i, word, *[*time, None, None][:2])
        for match in doc.matches or []
        for i, (word, time) in enumerate(_longest(match.indexes or [], match.timestamps or []))
    ]
    query, match_idx, word_idx, start, end = zip(*rows, strict=True) if rows else [()] * 5
    columns = {"query": query, "match_idx": match_idx, "word_idx": word_idx, "start_ms": start, "end_ms": end}
    return table("word_matches", doc.id if transcript_id is None else transcript_id, columns)


def _longest(indexes: list[Any], times: list[Any]) -> list[tuple[Any, Any]]:
    rows = max(len(indexes), len(times))
    return list(zip([*indexes, *[None] * (rows - len(indexes))], [*times, *[[]] * (rows - len(times))], strict=True))
