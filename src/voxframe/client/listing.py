"""Lists of transcripts: pages, items and iteration over all pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol, overload
from urllib.parse import parse_qsl, urlsplit

from voxframe.client.coerce import as_int, as_list, as_moment, as_text, is_unicode
from voxframe.client.response import HTTPResponse
from voxframe.errors import OptionError
from voxframe.options import LIST_LIMIT

#: Empty pages in a row after which an iteration ends; a filter may leave some pages empty.
_EMPTY_PAGES = 50


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


@dataclass(frozen=True)
class TranscriptPage(Sequence[TranscriptItem]):
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

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> TranscriptItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TranscriptItem, ...]: ...
    def __getitem__(self, index: int | slice) -> TranscriptItem | tuple[TranscriptItem, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[TranscriptItem]:
        return iter(self.items)


class _Ask(Protocol):
    def __call__(self, params: Mapping[str, Any], /) -> TranscriptPage: ...


def page(response: HTTPResponse) -> TranscriptPage:
    """Return the page in a response."""
    details = response.data.get("page_details")
    details = details if isinstance(details, dict) else {}
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
    """Return the query parameters of a list request.

    Raises:
        OptionError: A filter has an invalid value.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIST_LIMIT):
        raise OptionError(f"limit is {limit!r}; it is the number of transcripts per page, from 1 to {LIST_LIMIT}")
    if isinstance(created_on, datetime):
        created_on = created_on.date()
    elif isinstance(created_on, str):
        try:
            created_on = date.fromisoformat(created_on)
        except ValueError:
            raise OptionError(f"created_on is {created_on!r}; give a date such as '2024-03-11'") from None
    elif created_on is not None and not isinstance(created_on, date):
        raise OptionError(f"created_on is {created_on!r}; give a date such as '2024-03-11'")
    for name, value in (("status", status), ("before_id", before_id), ("after_id", after_id)):
        if value is not None and (not isinstance(value, str) or not is_unicode(value)):
            raise OptionError(f"{name} is {value!r}; give a string")
    return {
        "limit": limit,
        "status": status,
        "created_on": None if created_on is None else created_on.isoformat(),
        "before_id": before_id,
        "after_id": after_id,
        "throttled_only": None if throttled_only is None else str(bool(throttled_only)).lower(),
    }


def pages(ask: _Ask, params: dict[str, Any]) -> Iterator[TranscriptPage]:
    """Iterate over pages from the newest to the oldest transcript. Pages are fetched as needed.

    Only the query of a link is used, so that the key is only sent to the configured URL. The iteration ends at a page
    without a link to older transcripts, or with a link that was followed before.
    """
    seen: set[str] = set()
    followed: set[tuple[tuple[str, str], ...]] = set()
    empty = 0
    while True:
        found = ask(params)
        yield found
        fresh = {item.id for item in found} - seen
        seen |= fresh
        empty = 0 if fresh else empty + 1
        link = _query(found.prev_url or "")
        if not link or link in followed or empty > _EMPTY_PAGES:
            return
        followed.add(link)
        params = {**params, **dict(link)}


def walk(ask: _Ask, params: dict[str, Any]) -> Iterator[TranscriptItem]:
    """Iterate over all transcripts from the newest to the oldest, without duplicates. Pages are fetched as needed."""
    seen: set[str] = set()
    for found in pages(ask, params):
        for item in found:
            if item.id not in seen:
                seen.add(item.id)
                yield item


def _query(link: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(sorted(parse_qsl(urlsplit(link).query)))
    except ValueError:  # not a valid URL
        return ()
