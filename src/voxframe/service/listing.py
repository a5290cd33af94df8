"""Lists of transcripts: a page, its items, and the walk through all history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol, overload
from urllib.parse import parse_qsl, urlsplit

from voxframe.errors import OptionError
from voxframe.options import LIST_LIMIT
from voxframe.service.answer import Answer
from voxframe.service.lenient import as_int, as_list, as_moment, as_text, is_unicode

#: Empty pages in a row after which a walk gives up; a filter may leave some of them empty.
_EMPTY_PAGES = 50


@dataclass(frozen=True)
class Item:
    """A transcript in a list.

    Attributes:
        id: Its identifier.
        status: queued, processing, completed, error, or whatever the service says.
        created: When it was made, UTC.
        completed: When it was finished, UTC.
        audio_url: Address of the media.
        error: Why it failed.
        resource_url: Address of the transcript.
    """

    id: str
    status: str | None
    created: datetime | None
    completed: datetime | None
    audio_url: str | None
    error: str | None
    resource_url: str | None = field(repr=False)


@dataclass(frozen=True)
class Page(Sequence[Item]):
    """A page of a list, newest first.

    Attributes:
        items: The transcripts.
        limit: The most a page holds.
        result_count: Number of transcripts, as the service counts them.
        prev_url: Link to OLDER ones; None where there are none.
        next_url: Link to NEWER ones; None where there are none.
        raw: The service's answer as it came.
    """

    items: tuple[Item, ...]
    limit: int | None
    result_count: int | None
    prev_url: str | None = field(repr=False)
    next_url: str | None = field(repr=False)
    raw: bytes = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)


class _Ask(Protocol):
    def __call__(self, params: Mapping[str, Any], /) -> Page: ...


def page(answer: Answer) -> Page:
    """A page from an answer."""
    details = answer.data.get("page_details")
    details = details if isinstance(details, dict) else {}
    return Page(
        tuple(
            Item(
                id=identifier,
                status=as_text(item.get("status")),
                created=as_moment(item.get("created")),
                completed=as_moment(item.get("completed")),
                audio_url=as_text(item.get("audio_url")),
                error=as_text(item.get("error")),
                resource_url=as_text(item.get("resource_url")),
            )
            for item in as_list(answer.data.get("transcripts"))
            if isinstance(item, dict) and (identifier := as_text(item.get("id")))
        ),
        as_int(details.get("limit")),
        as_int(details.get("result_count")),
        as_text(details.get("prev_url")) or None,
        as_text(details.get("next_url")) or None,
        answer.content,
    )


def filters(
    limit: int | None,
    status: str | None,
    created_on: date | str | None,
    before_id: str | None,
    after_id: str | None,
    throttled_only: bool | None,
) -> dict[str, Any]:
    """Query of a list.

    Raises:
        OptionError: A filter has a value that is not allowed.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIST_LIMIT):
        raise OptionError(f"limit is {limit!r}; give the transcripts of a page, a whole number from 1 to {LIST_LIMIT}")
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
            raise OptionError(f"{name} is {value!r}; give a text")
    return {
        "limit": limit,
        "status": status,
        "created_on": None if created_on is None else created_on.isoformat(),
        "before_id": before_id,
        "after_id": after_id,
        "throttled_only": None if throttled_only is None else str(bool(throttled_only)).lower(),
    }


def walk(ask: _Ask, params: dict[str, Any]) -> Iterator[Item]:
    """Every transcript from the newest to the oldest, page by page as they are wanted.

    Only the query of a link is used: the key goes to the address of the settings, whatever a page says. It ends where
    there is no link to older ones, or one that was followed before.
    """
    seen: set[str] = set()
    followed: set[tuple[tuple[str, str], ...]] = set()
    empty = 0
    while True:
        found = ask(params)
        fresh = [item for item in found if item.id not in seen]
        seen.update(item.id for item in fresh)
        yield from fresh
        empty = 0 if fresh else empty + 1
        link = _query(found.prev_url or "")
        if not link or link in followed or empty > _EMPTY_PAGES:
            return
        followed.add(link)
        params = {**params, **dict(link)}


def _query(link: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(sorted(parse_qsl(urlsplit(link).query)))
    except ValueError:  # it is no link
        return ()
