"""A transcript payload to the tidy tables of the data dictionary."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from voxframe.frames import words as word_columns
from voxframe.frames.shape import collection, decoder, shape
from voxframe.frames.tolerant import put_right
from voxframe.frames.words import FIELDS, Refused
from voxframe.schema import TABLES, TRANSCRIPT_TABLES, TRANSCRIPTS

#: What the fast way raises for a payload that needs the tolerant way.
REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Refused)
_WORDY = frozenset({"words", "utterances", "utterance_words"})


def transcript_tables(
    raw: bytes, only: Collection[str] | None = None, transcript_id: str | None = None
) -> dict[str, pa.Table]:
    """Every table of one transcript payload.

    Missing parts give tables without rows, and nothing that can be read is refused: see `voxframe.frames.tolerant`. An error
    object, or a single analysis, loads too.

    Args:
        raw: The payload as the service answered it: one JSON object.
        only: Names of the tables wanted; the rest of the payload is skipped. None makes all of them.
        transcript_id: Identifier to put in the tables instead of the payload's own.

    Returns:
        Tables by name, in the order of `voxframe.schema.TRANSCRIPT_TABLES`, each with exactly the dictionary's Arrow schema.

    Raises:
        PayloadError: It is no JSON object.
        ValueError: `only` names a table that is not made from a transcript.

    Example:
        >>> tables = transcript_tables(b'{"id": "a1", "words": [{"text": "Hi", "start": 0, "end": 90}]}')
        >>> tables["words"].column("text").to_pylist()
        ['Hi']
        >>> tables["chapters"].num_rows
        0
    """
    names = collection(only, TRANSCRIPT_TABLES)
    needed = names | _WORDY if names & {"words", "utterances"} else names  # turns and words point at each other
    return {name: table for name, table in read(raw, needed, _make, transcript_id).items() if name in names}


def read(
    raw: bytes, names: frozenset[str], make: Callable[[Any, frozenset[str], str | None, bool], Any], *args: Any
) -> Any:
    """Decode a payload the fast way, or the tolerant way where that refuses, and make tables of it."""
    try:
        return make(decoder(names).decode(raw), names, *args, clean=False)
    except REFUSALS:
        return make(decoder(names).decode(put_right(bytes(raw), shape(names))), names, *args, clean=True)


def _make(doc: Any, names: frozenset[str], transcript_id: str | None, clean: bool) -> dict[str, pa.Table]:
    identifier = doc.id if transcript_id is None else transcript_id
    wordy = _wordy(doc, clean) if names & _WORDY else {}
    return {
        name: table(name, identifier, wordy[name] if name in wordy else _COLUMNS[name](doc))
        for name in TRANSCRIPT_TABLES
        if name in names
    }


def table(name: str, transcript_id: str | None, columns: Mapping[str, Any]) -> pa.Table:
    """A table of the dictionary from its columns (lists, NumPy or Arrow arrays); ordinals and nulls may be left out.

    Args:
        name: Its name.
        transcript_id: Identifier for every row.
        columns: The others by name, all of one length. A column that is absent is null.
    """
    kind = TABLES[name]
    rows = len(next(iter(columns.values())))
    arrays = []
    for column in kind.columns:
        if column.name in columns:
            values = columns[column.name]
            arrays.append(values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, column.type))
        elif column.name == "transcript_id" and transcript_id is not None:
            arrays.append(pa.repeat(pa.scalar(transcript_id, column.type), rows))
        else:
            arrays.append(pa.nulls(rows, column.type))
    return pa.Table.from_arrays(arrays, schema=kind.arrow)


def fields(items: Sequence[Any], **columns: str) -> dict[str, list[Any]]:
    """Columns of structs: column name to the name of the field."""
    return {column: [getattr(item, key) for item in items] for column, key in columns.items()}


_SPAN = {"start_ms": "start", "end_ms": "end"}
_SPOKEN = {key: key for key in ("text", "confidence", "speaker", "channel")}


def _transcripts(doc: Any) -> dict[str, Any]:
    row = {}
    for column in TRANSCRIPTS.columns[1:]:
        value = doc
        for key in (column.path or "").split("."):
            value = getattr(value, key) if value is not None else None
        row[column.name] = [_json_text(value) if column.json else value]
    return row


def _json_text(value: msgspec.Raw | None) -> str | None:
    if value is None or bytes(value) == b"null":
        return None
    try:
        return json.dumps(json.loads(bytes(value)), ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise Refused from None


def _wordy(doc: Any, clean: bool) -> dict[str, dict[str, Any]]:
    """Columns of words, utterances and utterance_words, which are made together.

    Turns repeat their words. Where the copies are byte for byte the words, one comparison says so; else both are read, and
    each turn is looked for among the words, all fields equal.
    """
    turns = doc.utterances or []
    counts = np.fromiter((len(t.words or ()) for t in turns), np.int64, len(turns))
    lines, rows = word_columns.join(doc.words or []), len(doc.words or [])
    copies = word_columns.join([word for t in turns for word in t.words or ()])
    words = word_columns.read(lines, rows, clean=clean)
    if lines == copies:
        parts = words
        starts = np.where(counts > 0, np.cumsum(counts) - counts, -1)
    else:
        parts = word_columns.read(copies, int(counts.sum()), clean=clean)
        starts = word_columns.runs(words, parts, counts, [c.name for c in FIELDS.values()])
    found = starts >= 0
    return {
        "words": {
            "word_idx": np.arange(rows),
            "utterance_idx": _owners(starts[found], counts[found], np.flatnonzero(found), rows),
            **_columns(words),
        },
        "utterances": {
            "utterance_idx": np.arange(len(turns)),
            **fields(turns, **_SPOKEN, **_SPAN),
            "word_start": pa.array(starts, pa.int64(), mask=~found),
            "word_count": pa.array(counts, pa.int64(), mask=np.array([t.words is None for t in turns], bool)),
        },
        "utterance_words": _own_words(parts, counts, found),
    }


def _columns(words: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(words.column_names, words.columns, strict=True))


def _owners(starts: Any, counts: Any, turns: Any, rows: int) -> pa.Array:
    """Turn of each word, from the runs of words that turns are."""
    owners = np.full(rows, -1, np.int64)
    order = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    owners[order] = np.repeat(turns, counts)
    return pa.array(owners, mask=owners < 0)


def _own_words(parts: pa.Table, counts: Any, found: Any) -> dict[str, Any]:
    """Words of turns that are no run of the words."""
    kept = parts.filter(pa.array(np.repeat(~found, counts))) if not found.all() else parts.slice(0, 0)
    counts = np.where(found, 0, counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return {
        "utterance_idx": np.repeat(np.arange(len(counts)), counts),
        "word_idx": within,
        **_columns(kept),
    }


def _entities(doc: Any) -> dict[str, Any]:
    items = doc.entities or []
    return {"entity_idx": range(len(items)), **fields(items, entity_type="entity_type", text="text", **_SPAN)}


def _chapters(doc: Any) -> dict[str, Any]:
    items = doc.chapters or []
    return {
        "chapter_idx": range(len(items)),
        **fields(items, headline="headline", gist="gist", summary="summary", **_SPAN),
    }


def _sentiments(doc: Any) -> dict[str, Any]:
    items = doc.sentiment_analysis_results or []
    return {"sentiment_idx": range(len(items)), **fields(items, sentiment="sentiment", **_SPOKEN, **_SPAN)}


def _results(analysis: Any) -> list[Any]:
    return analysis.results or [] if analysis is not None else []


def _highlights(doc: Any) -> dict[str, Any]:
    items = _results(doc.auto_highlights_result)
    return {"highlight_idx": range(len(items)), **fields(items, text="text", count="count", rank="rank")}


def _highlight_times(doc: Any) -> dict[str, Any]:
    times = [
        (i, j, time)
        for i, phrase in enumerate(_results(doc.auto_highlights_result))
        for j, time in enumerate(phrase.timestamps or ())
    ]
    return {
        "highlight_idx": [i for i, _, _ in times],
        "time_idx": [j for _, j, _ in times],
        **fields([time for _, _, time in times], **_SPAN),
    }


def _labels(segments: list[Any]) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """Columns that a label has from its segment, and segment and label of each row."""
    rows = [(i, j, s, label) for i, s in enumerate(segments) for j, label in enumerate(s.labels or ())]
    stamps = [s.timestamp for _, _, s, _ in rows]
    columns = {
        "segment_idx": [i for i, _, _, _ in rows],
        "label_idx": [j for _, j, _, _ in rows],
        "text": [s.text for _, _, s, _ in rows],
        "start_ms": [t.start if t is not None else None for t in stamps],
        "end_ms": [t.end if t is not None else None for t in stamps],
    }
    return columns, [s for _, _, s, _ in rows], [label for _, _, _, label in rows]


def _content_safety(doc: Any) -> dict[str, Any]:
    columns, segments, labels = _labels(_results(doc.content_safety_labels))
    return {
        **columns,
        **fields(labels, label="label", confidence="confidence", severity="severity"),
        **fields(segments, sentence_start="sentences_idx_start", sentence_end="sentences_idx_end"),
    }


def _content_safety_summary(doc: Any) -> dict[str, Any]:
    found = doc.content_safety_labels
    summary = found.summary or {} if found is not None else {}
    severities = found.severity_score_summary or {} if found is not None else {}
    labels = list(summary | severities)
    levels = [severities.get(label) for label in labels]
    return {
        "label": labels,
        "confidence": [summary.get(label) for label in labels],
        **{k: [getattr(v, k) if v is not None else None for v in levels] for k in ("low", "medium", "high")},
    }


def _topics(doc: Any) -> dict[str, Any]:
    columns, _, labels = _labels(_results(doc.iab_categories_result))
    return {
        **columns,
        **fields(labels, label="label", relevance="relevance"),
        **_levels([label.label for label in labels]),
    }


def _topics_summary(doc: Any) -> dict[str, Any]:
    found = doc.iab_categories_result
    summary = found.summary or {} if found is not None else {}
    labels = list(summary)
    return {"label": labels, "relevance": list(summary.values()), **_levels(labels)}


def _levels(labels: list[str | None]) -> dict[str, list[str | None]]:
    split = {label: [*label.split(">"), *[None] * 4] for label in set(labels) if label is not None}
    split[None] = [None] * 4  # type: ignore[index]
    parts = [split[label] for label in labels]  # type: ignore[index]
    return {f"level_{n + 1}": [p[n] for p in parts] for n in range(4)}


_COLUMNS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "transcripts": _transcripts,
    "entities": _entities,
    "chapters": _chapters,
    "highlights": _highlights,
    "highlight_times": _highlight_times,
    "content_safety": _content_safety,
    "content_safety_summary": _content_safety_summary,
    "topics": _topics,
    "topics_summary": _topics_summary,
    "sentiments": _sentiments,
}
