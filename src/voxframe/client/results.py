"""Results of the REST endpoints: passages, word searches and pages of transcripts, each with the bytes received."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypeAlias, TypeVar, overload

from voxframe._text import masked
from voxframe.client.response import HTTPResponse, as_dict, as_float, as_int, as_list, as_moment, as_text, is_unicode
from voxframe.errors import OptionError
from voxframe.options import LIST_LIMIT, STATUSES, WORD_SEARCH_WORDS
from voxframe.validators import Boolean, Choice, Integer, Text, ValueType, checked, shown

T = TypeVar("T")


class _Items(Sequence[T]):
    """A sequence of `items`."""

    items: tuple[T, ...]

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class TranscriptWord:
    """A word. Times are in ms from the start of the media; the confidence is from 0 to 1."""

    text: str
    start_ms: int | None
    end_ms: int | None
    confidence: float | None
    speaker: str | None
    channel: str | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence or paragraph. Times are in ms from the start of the media; the confidence is from 0 to 1."""

    text: str
    start_ms: int | None
    end_ms: int | None
    confidence: float | None
    speaker: str | None
    channel: str | None
    words: tuple[TranscriptWord, ...] = field(repr=False)


@dataclass(frozen=True)
class TranscriptPassages(_Items[Passage]):
    """Sentences or paragraphs of a transcript, in order.

    Attributes:
        transcript_id: Transcript id.
        confidence: Confidence of the transcript, 0 to 1.
        audio_duration_s: Duration of the media in seconds.
        items: The sentences or paragraphs.
        raw: The response as received.
    """

    transcript_id: str
    confidence: float | None
    audio_duration_s: float | None
    items: tuple[Passage, ...] = field(repr=False)
    raw: bytes = field(repr=False)


def passage_list(transcript_id: str, name: str, data: dict[str, Any], raw: bytes) -> TranscriptPassages:
    """Read sentences or paragraphs from the field `name` of a response."""
    return TranscriptPassages(
        as_text(data.get("id")) or transcript_id,
        as_float(data.get("confidence")),
        as_float(data.get("audio_duration")),
        tuple(
            Passage(
                *_common(item),
                words=tuple(TranscriptWord(*_common(w)) for w in as_list(item.get("words")) if isinstance(w, dict)),
            )
            for item in as_list(data.get(name))
            if isinstance(item, dict)
        ),
        raw,
    )


def _common(item: dict[str, Any]) -> tuple[str, int | None, int | None, float | None, str | None, str | None]:
    return (
        as_text(item.get("text")) or "",
        as_int(item.get("start")),
        as_int(item.get("end")),
        as_float(item.get("confidence")),
        as_text(item.get("speaker")),
        as_text(item.get("channel")),
    )


#: A word, a number, or a phrase of up to five words.
Term: TypeAlias = str | int | float


@dataclass(frozen=True)
class WordMatch:
    """Occurrences of a word or phrase.

    Attributes:
        text: The word or phrase, as returned by the service.
        count: Number of occurrences.
        spans_ms: Start and end of each occurrence in ms.
        indexes: Index of the first word of each occurrence.
    """

    text: str
    count: int
    spans_ms: tuple[tuple[int, int], ...]
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class WordSearchMatches:
    """Result of a word search.

    Attributes:
        transcript_id: Transcript id.
        total_count: Number of occurrences of all words and phrases.
        matches: One per word or phrase found.
        raw: The response as received.
    """

    transcript_id: str
    total_count: int
    matches: tuple[WordMatch, ...]
    raw: bytes = field(repr=False)


def check_terms(terms: Term | Iterable[Term]) -> list[str]:
    """Return the words, numbers and phrases to search for, without duplicates.

    A comma separates two terms, as in the request.

    Example:
        >>> check_terms(["smoke", "air  quality, haze", 42])
        ['smoke', 'air quality', 'haze', '42']
    """
    is_single = isinstance(terms, str | bytes | Mapping) or not isinstance(terms, Iterable) or hasattr(terms, "columns")
    items: Iterable[object] = [terms] if is_single else terms  # type: ignore[assignment]
    phrases: list[str] = []
    for term in items:
        usable = isinstance(term, str | int | float) and not isinstance(term, bool)
        if not usable or not is_unicode(str(term)) or (isinstance(term, float) and not math.isfinite(term)):
            raise OptionError(f"{shown(term)} cannot be searched for; give words, numbers or phrases")
        for part in str(term).split(","):
            phrase = part.split()
            if len(phrase) > WORD_SEARCH_WORDS:
                raise OptionError(
                    f"the phrase {part.strip()!r} has {len(phrase)} words; up to {WORD_SEARCH_WORDS} are allowed. "
                    "Search for fewer words"
                )
            if phrase:
                phrases.append(" ".join(phrase))
    if not phrases:
        raise OptionError("there are no search terms; give at least one word, number or phrase")
    return list(dict.fromkeys(phrases))


def word_search_result(transcript_id: str, data: dict[str, Any], raw: bytes) -> WordSearchMatches:
    """Read the result of a word search from a response."""
    matches = tuple(_match(item) for item in as_list(data.get("matches")) if isinstance(item, dict))
    total = as_int(data.get("total_count"))
    return WordSearchMatches(
        as_text(data.get("id")) or transcript_id,
        sum(m.count for m in matches) if total is None else total,
        matches,
        raw,
    )


def _match(item: dict[str, Any]) -> WordMatch:
    spans = [
        (start, end)
        for span in as_list(item.get("timestamps"))
        if isinstance(span, list) and len(span) == 2
        if (start := as_int(span[0])) is not None and (end := as_int(span[1])) is not None
    ]
    indexes = [i for i in map(as_int, as_list(item.get("indexes"))) if i is not None]
    count = as_int(item.get("count"))
    return WordMatch(
        as_text(item.get("text")) or "", len(spans) if count is None else count, tuple(spans), tuple(indexes)
    )


@dataclass(frozen=True)
class TranscriptItem:
    """A transcript in a list.

    Attributes:
        id: Transcript id.
        status: queued, processing, completed, error, or another value of the service.
        created: Time of creation, UTC.
        completed: Time of completion, UTC.
        audio_url: URL of the media.
        error: Reason of a failure.
        resource_url: URL of the transcript.
    """

    id: str
    status: str | None
    created: datetime | None
    completed: datetime | None
    audio_url: str | None
    error: str | None
    resource_url: str | None = field(repr=False)

    def __repr__(self) -> str:
        values = {"id": self.id, "status": self.status, "created": self.created, "completed": self.completed}
        texts = {"audio_url": self.audio_url, "error": self.error}
        values |= {name: text and masked(text) for name, text in texts.items()}
        return f"TranscriptItem({', '.join(f'{name}={value!r}' for name, value in values.items())})"


@dataclass(frozen=True)
class TranscriptPage(_Items[TranscriptItem]):
    """A page of a list, newest first.

    Attributes:
        items: The transcripts.
        limit: Maximum number of transcripts per page.
        result_count: Number of transcripts as counted by the service.
        prev_url: Link to OLDER transcripts; None if there are none.
        next_url: Link to NEWER transcripts; None if there are none.
        raw: The response as received.
    """

    items: tuple[TranscriptItem, ...]
    limit: int | None
    result_count: int | None
    prev_url: str | None = field(repr=False)
    next_url: str | None = field(repr=False)
    raw: bytes = field(repr=False)


def transcript_page(response: HTTPResponse) -> TranscriptPage:
    """Read a page of transcripts from a response."""
    details = as_dict(response.data.get("page_details"))
    return TranscriptPage(
        tuple(
            TranscriptItem(
                id=identifier,
                status=as_text(item.get("status")),
                created=as_moment(item.get("created")),
                completed=as_moment(item.get("completed")),
                audio_url=as_text(item.get("audio_url")),
                error=as_text(item.get("error")),
                resource_url=as_text(item.get("resource_url")),
            )
            for item in as_list(response.data.get("transcripts"))
            if isinstance(item, dict) and (identifier := as_text(item.get("id")))
        ),
        as_int(details.get("limit")),
        as_int(details.get("result_count")),
        as_text(details.get("prev_url")) or None,
        as_text(details.get("next_url")) or None,
        response.content,
    )


def filters(
    limit: int | None,
    status: str | None,
    created_on: date | str | None,
    before_id: str | None,
    after_id: str | None,
    throttled_only: bool | None,
) -> dict[str, Any]:
    """Return the query parameters of a list request."""
    kinds: dict[str, tuple[object, ValueType]] = {
        "limit": (limit, Integer(1, LIST_LIMIT, "transcripts per page")),
        "status": (status, Choice(STATUSES)),
        "before_id": (before_id, Text()),
        "after_id": (after_id, Text()),
        "throttled_only": (throttled_only, Boolean()),
    }
    query = {name: checked(name, value, kind) for name, (value, kind) in kinds.items() if value is not None}
    if created_on is not None:
        query["created_on"] = _day(created_on)
    if throttled_only is not None:
        query["throttled_only"] = str(query["throttled_only"]).lower()
    return query


def _day(day: date | str) -> str:
    text = day.isoformat()[:10] if isinstance(day, date) else day  # a datetime is a date too
    try:
        return date.fromisoformat(text).isoformat()
    except (TypeError, ValueError):
        raise OptionError(f"created_on must be a date such as '2024-03-11', got {shown(day)}") from None
