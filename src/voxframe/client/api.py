"""The REST endpoints as functions: a transport and arguments in, a checked response out, with the bytes received."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, overload
from urllib.parse import parse_qsl, quote, urlsplit

from voxframe._text import masked, moment_of
from voxframe.client.http import Transport, advised
from voxframe.client.response import (
    HTTPResponse,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_path,
    as_text,
    clean,
    is_unicode,
)
from voxframe.errors import NotFoundError, OptionError, UnreadableAnswerError
from voxframe.options import LIST_LIMIT, STATUSES, SUBTITLE_FORMATS, TOKEN_SECONDS, WORD_SEARCH_WORDS
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
                created=moment_of(item.get("created")),
                completed=moment_of(item.get("completed")),
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


#: Empty pages in a row after which an iteration ends; a filter may leave some pages empty.
_EMPTY_PAGES = 50

View = Literal["transcript", "sentences", "paragraphs"]


def create_transcript(
    http: Transport, audio_url: str, body: Mapping[str, Any], *, attempts: int | None = None
) -> tuple[str, HTTPResponse]:
    """Submit a job. Warn if the service ignores some of the options."""
    response = http.request("POST", "/v2/transcript", json={"audio_url": audio_url, **body}, attempts=attempts)
    if ignored := response.headers.get("x-ignored-options"):
        warnings.warn(f"the service ignores these options: {clean(ignored)}", stacklevel=2)
    try:
        if not (transcript_id := as_text(response.data.get("id"))):
            raise response.unreadable()
    except UnreadableAnswerError as error:
        raise advised(error, "/v2/transcript", repeatable=False) from None
    return transcript_id, response


def get_transcript(
    http: Transport, transcript_id: str, view: View = "transcript", *, attempts: int | None = None
) -> HTTPResponse:
    """Fetch a transcript, or its sentences or paragraphs."""
    if view not in ("transcript", "sentences", "paragraphs"):
        raise OptionError(f"the view is {view!r}; give 'transcript', 'sentences' or 'paragraphs'")
    suffix = "" if view == "transcript" else f"/{view}"
    return http.request("GET", transcript_path(transcript_id) + suffix, attempts=attempts)


def delete_transcript(http: Transport, transcript_id: str) -> HTTPResponse:
    """Delete a transcript and return what is left of it."""
    return http.request("DELETE", transcript_path(transcript_id))


def list_transcripts(http: Transport, params: Mapping[str, Any]) -> TranscriptPage:
    """Fetch one page of the list of transcripts; `params` come from `filters`."""
    return transcript_page(http.request("GET", "/v2/transcript", params=params))


def iter_pages(http: Transport, params: Mapping[str, Any]) -> Iterator[TranscriptPage]:
    """Iterate over pages from the newest to the oldest transcript. Pages are fetched as needed.

    Only the query of a link is used, so that the key is only sent to the configured URL. The iteration ends at a page
    without a link to older transcripts, or with a link that was followed before.
    """
    page_ids: set[str] = set()
    followed: set[tuple[tuple[str, str], ...]] = set()
    empty = 0
    while True:
        page = list_transcripts(http, params)
        yield page
        fresh = {item.id for item in page} - page_ids
        page_ids |= fresh
        empty = 0 if fresh else empty + 1
        link = _query(page.prev_url or "")
        if not link or link in followed or empty > _EMPTY_PAGES:
            return
        followed.add(link)
        params = {**params, **dict(link)}


def iter_transcripts(http: Transport, params: Mapping[str, Any]) -> Iterator[TranscriptItem]:
    """Iterate over all transcripts from the newest to the oldest, without duplicates. Pages are fetched as needed."""
    ids: set[str] = set()
    for page in iter_pages(http, params):
        for item in page:
            if item.id not in ids:
                ids.add(item.id)
                yield item


def _query(link: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(sorted(parse_qsl(urlsplit(link).query)))
    except ValueError:  # not a valid URL
        return ()


def get_passages(http: Transport, transcript_id: str, view: Literal["sentences", "paragraphs"]) -> TranscriptPassages:
    """Fetch the sentences or paragraphs of a completed transcript."""
    response = get_transcript(http, transcript_id, view)
    return passage_list(transcript_id, view, response.data, response.content)


def get_subtitles(
    http: Transport,
    transcript_id: str,
    subtitle_format: str | None = None,
    chars_per_caption: int | None = None,
    path: str | os.PathLike[str] | None = None,
) -> str:
    """Fetch the captions of a completed transcript and write them to `path`, if it is given.

    The format is `subtitle_format`, else the suffix of `path`, else SRT.
    """
    target = None if path is None else as_path(path)
    if subtitle_format is None:
        suffix = "" if target is None else target.suffix.lower().removeprefix(".")
        subtitle_format = suffix if suffix in SUBTITLE_FORMATS else "srt"
    if subtitle_format not in SUBTITLE_FORMATS:
        raise OptionError(f"the subtitle format is {subtitle_format!r}; give 'srt' or 'vtt'")
    chars = None if chars_per_caption is None else checked("chars_per_caption", chars_per_caption, Integer(1))
    if target is not None:
        if target.is_dir():
            raise OptionError(f"{target} is a directory; give the name of a file in it")
        check_directory(target)
    url_path = f"{transcript_path(transcript_id)}/{subtitle_format}"
    response = http.request("GET", url_path, params={"chars_per_caption": chars}, accept="text")
    text = response.content.decode("utf-8-sig", "replace")
    if target is not None:
        target.write_text(text, encoding="utf-8", newline="")
    return text


def search_words(http: Transport, transcript_id: str, terms: Term | Iterable[Term]) -> WordSearchMatches:
    """Search a completed transcript for words and phrases."""
    params = {"words": ",".join(check_terms(terms))}
    response = http.request("GET", f"{transcript_path(transcript_id)}/word-search", params=params)
    return word_search_result(transcript_id, response.data, response.content)


def get_progress(http: Transport) -> dict[str, float]:
    """Fetch the progress of unfinished jobs from an embedded server; empty if another server runs at that URL."""
    try:
        data = http.request("GET", "/queue").data
    except NotFoundError:
        return {}
    waiting, running = (as_dict(data.get(name)) for name in ("waiting", "progress"))
    shares = {name: as_float(value) for name, value in running.items()}
    return {**dict.fromkeys(waiting, 0.0), **{name: share for name, share in shares.items() if share is not None}}


def create_token(http: Transport, expires_in: int) -> str:
    """Create a temporary token for one streaming session."""
    body = {"expires_in": checked("expires_in", expires_in, Integer(*TOKEN_SECONDS, "seconds"))}
    response = http.request("POST", "/v2/realtime/token", json=body, repeatable=True)
    token = as_text(response.data.get("token"))
    if not token:
        raise response.unreadable()
    return token


def transcript_path(transcript_id: str) -> str:
    """Return the path of a transcript, with the id quoted."""
    return f"/v2/transcript/{path_segment(transcript_id, 'a transcript', 'Transcript.id')}"


def path_segment(identifier: str, of: str, attribute: str) -> str:
    """Quote an identifier as one segment of a path; `of` and `attribute` are for the error message."""
    if not isinstance(identifier, str) or identifier.strip() in ("", ".", "..") or not is_unicode(identifier):
        raise OptionError(f"{identifier!r} is not the id of {of}; give the text of {attribute}")
    return quote(identifier, safe="")


def check_directory(target: Path) -> None:
    """Check that the directory of a file to be written exists."""
    directory = target.absolute().parent
    if not directory.is_dir():
        raise OptionError(f"the directory {directory} does not exist; make it, or name another")
