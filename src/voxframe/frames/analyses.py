"""Rows of the tables about a whole transcript and its analyses, from the decoded payload.

Each function gives the values of all columns but `transcript_id`, in the order of the data dictionary. An analysis that
is off may come as null, `{}` or an object without results: no rows either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from voxframe.frames.words import Refused
from voxframe.schema import TRANSCRIPTS

Rows: TypeAlias = list[tuple[Any, ...]]

_WAYS = [((column.path or "").split("."), column.json) for column in TRANSCRIPTS.columns[1:]]


def _transcripts(doc: Any) -> Rows:
    return [tuple(_json_text(_follow(doc, way)) if is_json else _follow(doc, way) for way, is_json in _WAYS)]


def _follow(value: Any, way: list[str]) -> Any:
    for key in way:
        value = None if value is None else getattr(value, key)
    return value


def _json_text(raw: msgspec.Raw | None) -> str | None:
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return json.dumps(json.loads(bytes(raw)), ensure_ascii=False, allow_nan=False)
    except ValueError:  # 1e400 is JSON, but no JSON can be made from it
        raise Refused from None


def _entities(doc: Any) -> Rows:
    return [(i, e.entity_type, e.text, e.start, e.end) for i, e in enumerate(doc.entities or ())]


def _chapters(doc: Any) -> Rows:
    return [(i, c.headline, c.gist, c.summary, c.start, c.end) for i, c in enumerate(doc.chapters or ())]


def _sentiments(doc: Any) -> Rows:
    return [
        (i, s.text, s.sentiment, s.confidence, s.speaker, s.channel, s.start, s.end)
        for i, s in enumerate(doc.sentiment_analysis_results or ())
    ]


def _highlights(doc: Any) -> Rows:
    return [(i, h.text, h.count, h.rank) for i, h in enumerate(_results(doc.auto_highlights_result))]


def _highlight_times(doc: Any) -> Rows:
    phrases = enumerate(_results(doc.auto_highlights_result))
    return [(i, j, time.start, time.end) for i, h in phrases for j, time in enumerate(h.timestamps or ())]


def _content_safety(doc: Any) -> Rows:
    return [
        (i, j, s.text, x.label, x.confidence, x.severity, s.sentences_idx_start, s.sentences_idx_end, start, end)
        for i, s, start, end in _segments(doc.content_safety_labels)
        for j, x in enumerate(s.labels or ())
    ]


def _topics(doc: Any) -> Rows:
    return [
        (i, j, s.text, x.label, *_levels(x.label), x.relevance, start, end)
        for i, s, start, end in _segments(doc.iab_categories_result)
        for j, x in enumerate(s.labels or ())
    ]


def _segments(analysis: Any) -> Iterator[tuple[int, Any, int | None, int | None]]:
    for i, segment in enumerate(_results(analysis)):
        time = segment.timestamp
        yield (i, segment, None, None) if time is None else (i, segment, time.start, time.end)


def _results(analysis: Any) -> Any:
    return () if analysis is None else analysis.results or ()


@lru_cache(maxsize=4096)
def _levels(label: str | None) -> tuple[str | None, ...]:
    parts = () if label is None else label.split(">")[:4]
    return (*parts, *[None] * (4 - len(parts)))


def _content_safety_summary(doc: Any) -> Rows:
    found = doc.content_safety_labels
    summary = (found and found.summary) or {}
    severities = (found and found.severity_score_summary) or {}
    rated = {label: _LOW_MEDIUM_HIGH(severity) for label, severity in severities.items()}
    return [(label, summary.get(label), *rated.get(label, (None, None, None))) for label in summary | severities]


_LOW_MEDIUM_HIGH = attrgetter("low", "medium", "high")


def _topics_summary(doc: Any) -> Rows:
    found = doc.iab_categories_result
    summary = (found and found.summary) or {}
    return [(label, *_levels(label), relevance) for label, relevance in summary.items()]


#: Maker of the rows of each table.
ROWS: dict[str, Callable[[Any], Rows]] = {
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
