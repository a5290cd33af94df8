"""Word search: what may be searched for, and where it was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from voxframe.errors import OptionError
from voxframe.options import WORD_SEARCH_WORDS
from voxframe.service.lenient import as_int, as_list, as_text, is_unicode

#: A word, a number, or a phrase of up to five words.
Term: TypeAlias = str | int | float


@dataclass(frozen=True)
class WordMatch:
    """A searched word or phrase and where it occurs.

    Attributes:
        text: The word or phrase, as the service gives it back.
        count: How often it occurs.
        spans_ms: Start and end of each occurrence, in ms.
        indexes: Position of the first word of each occurrence.
    """

    text: str
    count: int
    spans_ms: tuple[tuple[int, int], ...]
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class WordSearch:
    """Result of a word search.

    Attributes:
        transcript_id: Identifier of the transcript.
        total_count: Occurrences of all words and phrases.
        matches: One for each word or phrase found.
        raw: The service's answer as it came.
    """

    transcript_id: str
    total_count: int
    matches: tuple[WordMatch, ...]
    raw: bytes = field(repr=False)


def check(terms: Term | Iterable[Term]) -> list[str]:
    """The words, numbers and phrases to search for, each once.

    A comma stands between two of them on the wire and cannot be part of one, so that is what it does here too.

    Raises:
        OptionError: There are none, or one is too long.

    Example:
        >>> check(["smoke", "air  quality, haze", 42])
        ['smoke', 'air quality', 'haze', '42']
    """
    given = [terms] if isinstance(terms, str | int | float) or not isinstance(terms, Iterable) else terms
    found: list[str] = []
    for term in given:
        if isinstance(term, bool) or not isinstance(term, str | int | float) or not is_unicode(str(term)):
            raise OptionError(f"{term!r} cannot be searched for; give words, numbers or phrases")
        for part in str(term).split(","):
            phrase = part.split()
            if len(phrase) > WORD_SEARCH_WORDS:
                raise OptionError(
                    f"the phrase {part.strip()!r} has {len(phrase)} words; up to {WORD_SEARCH_WORDS} are allowed. "
                    "Search for a part of it"
                )
            if phrase:
                found.append(" ".join(phrase))
    if not found:
        raise OptionError("there is nothing to search for; give at least one word, number or phrase")
    return list(dict.fromkeys(found))


def matches(transcript_id: str, data: dict[str, Any], raw: bytes) -> WordSearch:
    """Matches from an answer."""
    found = tuple(_match(item) for item in as_list(data.get("matches")) if isinstance(item, dict))
    total = as_int(data.get("total_count"))
    return WordSearch(
        as_text(data.get("id")) or transcript_id, sum(m.count for m in found) if total is None else total, found, raw
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
