"""What is no list on the wire: the transcript itself, summaries by label, and the levels of topic labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from voxframe.frames.arrays import TEXT
from voxframe.frames.lists import Refused
from voxframe.schema import TRANSCRIPTS

Rows: TypeAlias = list[tuple[Any, ...]]

_WAYS = [((column.path or "").split("."), column.json) for column in TRANSCRIPTS.columns[1:]]
_PLAIN = attrgetter(*(way[0] for way, _ in _WAYS))
_OTHER = [(i, way, is_json) for i, (way, is_json) in enumerate(_WAYS) if is_json or len(way) > 1]
_LEVELS = [f"level_{n}" for n in range(1, 5)]
_LEVELS_TYPE = pa.struct([pa.field(level, TEXT) for level in _LEVELS])
_LOW_MEDIUM_HIGH = attrgetter("low", "medium", "high")


def follow(doc: Any, way: Sequence[str]) -> Any:
    """The value at the end of a way through decoded objects; None where there is none."""
    for step in way:
        doc = None if doc is None else getattr(doc, step)
    return doc


def _transcripts(doc: Any) -> Rows:
    row = [*_PLAIN(doc)]
    for i, way, is_json in _OTHER:
        row[i] = _json_text(follow(doc, way)) if is_json else follow(doc, way)
    return [tuple(row)]


def _json_text(raw: msgspec.Raw | None) -> str | None:
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return json.dumps(json.loads(bytes(raw)), ensure_ascii=False, allow_nan=False)
    except ValueError:  # 1e400 is JSON, but no JSON can be made from it
        raise Refused from None


def _content_safety_summary(doc: Any) -> Rows:
    summary = follow(doc, ("content_safety_labels", "summary")) or {}
    severities = follow(doc, ("content_safety_labels", "severity_score_summary")) or {}
    rated = {label: _LOW_MEDIUM_HIGH(severity) for label, severity in severities.items()}
    return [(label, summary.get(label), *rated.get(label, (None, None, None))) for label in summary | severities]


def _topics_summary(doc: Any) -> Rows:
    summary = follow(doc, ("iab_categories_result", "summary")) or {}
    return [(label, *_levels(label), relevance) for label, relevance in summary.items()]


@lru_cache(maxsize=4096)
def _levels(label: str) -> tuple[str | None, ...]:
    parts = label.split(">")[:4]
    return (*parts, *[None] * (4 - len(parts)))


def levels(labels: pa.Array) -> dict[str, pa.Array]:
    """Columns `level_1` to `level_4` of hierarchical labels."""
    encoded = labels.dictionary_encode()
    kinds = pa.array([*map(_levels, encoded.dictionary.to_pylist())], _LEVELS_TYPE)
    return dict(zip(_LEVELS, kinds.take(encoded.indices).flatten(), strict=True))


#: Rows of each table that is made from no list: all columns but `transcript_id`, in the order of the dictionary.
ROWS: dict[str, Callable[[Any], Rows]] = {
    "transcripts": _transcripts,
    "content_safety_summary": _content_safety_summary,
    "topics_summary": _topics_summary,
}
