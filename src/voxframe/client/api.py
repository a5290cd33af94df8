"""The REST endpoints as functions: a transport and arguments in, a checked response out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit

from voxframe.client import failures, results
from voxframe.client.http import Transport
from voxframe.client.response import HTTPResponse, as_dict, as_float, as_path, as_text, clean, is_unicode
from voxframe.errors import NotFoundError, OptionError, UnreadableAnswerError
from voxframe.options import SUBTITLE_FORMATS, TOKEN_SECONDS
from voxframe.validators import Integer, checked

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
        raise failures.advised(error, "/v2/transcript", repeatable=False) from None
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


def list_transcripts(http: Transport, params: Mapping[str, Any]) -> results.TranscriptPage:
    """Fetch one page of the list of transcripts; `params` come from `results.filters`."""
    return results.transcript_page(http.request("GET", "/v2/transcript", params=params))


def iter_pages(http: Transport, params: Mapping[str, Any]) -> Iterator[results.TranscriptPage]:
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


def iter_transcripts(http: Transport, params: Mapping[str, Any]) -> Iterator[results.TranscriptItem]:
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


def get_passages(
    http: Transport, transcript_id: str, view: Literal["sentences", "paragraphs"]
) -> results.TranscriptPassages:
    """Fetch the sentences or paragraphs of a completed transcript."""
    response = get_transcript(http, transcript_id, view)
    return results.passage_list(transcript_id, view, response.data, response.content)


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


def search_words(
    http: Transport, transcript_id: str, terms: results.Term | Iterable[results.Term]
) -> results.WordSearchMatches:
    """Search a completed transcript for words and phrases."""
    params = {"words": ",".join(results.check_terms(terms))}
    response = http.request("GET", f"{transcript_path(transcript_id)}/word-search", params=params)
    return results.word_search_result(transcript_id, response.data, response.content)


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
