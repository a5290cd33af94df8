"""Language-model operations: generate, fetch and delete responses, within the rate limit of the service."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from voxframe.client import failures, llm_requests
from voxframe.client.api import path_segment
from voxframe.client.http import Transport
from voxframe.client.llm_requests import LlmOptions, Transcripts
from voxframe.client.progress import Progress
from voxframe.client.response import HTTPResponse, as_bool, as_float, as_int, as_list, as_text
from voxframe.errors import UnreadableAnswerError

#: Name that the local server gives instead of a language model if it has none.
QUOTING_MODEL = "voxframe-extractive"


@dataclass(frozen=True)
class Usage:
    """Tokens used by a request; None if the service does not report them."""

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class LlmReply:
    """One reply; `question` is None except for question-answer."""

    answer: str
    question: str | None = None


@dataclass(frozen=True)
class LlmResponse:
    """A response of the language model.

    Attributes:
        request_id: Id of the request; `Client.llm_response` fetches the response again, `Client.purge` deletes it.
        task: summary, question-answer, task or action-items; None if it was fetched by id.
        replies: One reply, or one per question.
        usage: Tokens used.
        prompt: The prompt of a task.
        transcript_ids: Ids of the transcripts it is about.
        created: Time when it was received, UTC.
        raw: The response as received.
    """

    request_id: str
    task: str | None
    replies: tuple[LlmReply, ...]
    usage: Usage
    prompt: str | None = None
    transcript_ids: tuple[str, ...] = ()
    created: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)
    raw: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        """The response as one text; each question precedes its reply."""
        return "\n\n".join(f"{r.question}\n{r.answer}" if r.question else r.answer for r in self.replies)

    @property
    def model(self) -> str | None:
        """Name of the model that answered, if the service reports it."""
        try:
            data = json.loads(self.raw)
        except ValueError:
            return None
        return as_text(data.get("model")) if isinstance(data, dict) else None

    @property
    def quotes_key_sentences(self) -> bool:
        """True if no language model wrote it: the local server without one quotes key sentences of the transcripts."""
        return self.model == QUOTING_MODEL


@dataclass(frozen=True)
class Purge:
    """Result of deleting a response.

    Attributes:
        request_id: Id of this request.
        request_id_to_purge: Id of the response to delete.
        deleted: True if it was deleted.
        raw: The response as received.
    """

    request_id: str | None
    request_id_to_purge: str
    deleted: bool
    raw: bytes = field(repr=False)


def read_response(
    response: HTTPResponse, task: str | None, prompt: str | None = None, transcript_ids: tuple[str, ...] = ()
) -> LlmResponse:
    """Read a language-model response: a text, or a list of questions with their replies."""
    data = response.data
    answer, request_id = data.get("response"), as_text(data.get("request_id"))
    if request_id is None or not isinstance(answer, str | list):
        raise response.unreadable()
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    replies = [
        LlmReply(as_text(item.get("answer")) or "", as_text(item.get("question")))
        if isinstance(item, dict)
        else LlmReply(as_text(item) or "")
        for item in as_list(answer)
    ]
    return LlmResponse(
        request_id=request_id,
        task=task,
        replies=(LlmReply(answer),) if isinstance(answer, str) else tuple(replies),
        usage=Usage(as_int(usage.get("input_tokens")), as_int(usage.get("output_tokens"))),
        prompt=prompt,
        transcript_ids=transcript_ids,
        raw=response.content,
    )


log = logging.getLogger(__name__)

#: A language model needs minutes for a long recording.
_READ_TIMEOUT_S = 600.0
#: Length of the rate-limit window in seconds.
_WINDOW_S = 60.0
#: Longest wait for a new window in seconds, whatever the service announces.
_LONGEST_WAIT_S = 90.0

Task = Literal["summary", "question-answer", "task", "action-items"]


class LanguageModelApi:
    """The language-model endpoints.

    A request that generates something is sent once: it costs money, and the service may have processed it even if no
    response arrived. All requests wait for the rate limit that the service announces.
    """

    def __init__(self, http: Transport, prefix: str) -> None:
        self._http = http
        self._prefix = prefix
        self._rate_limiter = RateLimiter(http.sleep)

    @property
    def rate_limit(self) -> RateLimitStatus | None:
        """Requests left, as the service last reported it; None if it did not."""
        return self._rate_limiter.state

    def generate(
        self, task: Task, transcripts: Transcripts | None, options: LlmOptions, fields: dict[str, Any]
    ) -> LlmResponse:
        """Generate a response."""
        body = llm_requests.body(transcripts, options) | fields
        path = f"/{self._prefix}/v3/generate/{task}"
        with self._rate_limiter.turn():
            response = self._http.request(
                "POST", path, json=body, read_timeout_s=_READ_TIMEOUT_S, observe=self._rate_limiter.note
            )
        try:
            return read_response(response, task, fields.get("prompt"), tuple(body.get("transcript_ids", ())))
        except UnreadableAnswerError as error:
            raise failures.advised(error, path, repeatable=False) from None

    def get(self, request_id: str) -> LlmResponse:
        """Fetch an earlier response."""
        with self._rate_limiter.turn():
            response = self._http.request("GET", self._path(request_id), observe=self._rate_limiter.note)
        return read_response(response, None)

    def purge(self, request_id: str) -> Purge:
        """Delete a response and the context that was sent for it."""
        with self._rate_limiter.turn():
            response = self._http.request("DELETE", self._path(request_id), observe=self._rate_limiter.note)
        return Purge(
            as_text(response.data.get("request_id")),
            as_text(response.data.get("request_id_to_purge")) or request_id,
            as_bool(response.data.get("deleted")) is True,
            response.content,
        )

    def _path(self, request_id: str) -> str:
        return f"/{self._prefix}/v3/{path_segment(request_id, 'a response', 'LlmResponse.request_id')}"


def format_field(answer_format: str | None) -> dict[str, Any]:
    """Return the `answer_format` field of a request, checked; empty if it is None."""
    return {} if answer_format is None else {"answer_format": llm_requests.text("answer_format", answer_format)}


@dataclass(frozen=True)
class RateLimitStatus:
    """The rate limit as the service last reported it.

    Attributes:
        limit: Requests allowed per window of 60 s.
        remaining: Requests left in the current window.
        reset_s: Seconds until the next window.
    """

    limit: int | None
    remaining: int
    reset_s: float


class RateLimiter:
    """Requests left in the current window, shared by all threads of a client."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._lock = threading.Lock()
        self._limit: int | None = None
        self._remaining: int | None = None
        self._reset_at = 0.0
        self._under_way = 0

    @property
    def state(self) -> RateLimitStatus | None:
        """The current status; None if the service has not reported a limit."""
        with self._lock:
            if self._remaining is None:
                return None
            reset_s = max(0.0, self._reset_at - time.monotonic())
            remaining = self._remaining if reset_s or self._limit is None else self._limit
            return RateLimitStatus(self._limit, remaining, reset_s)

    @contextmanager
    def turn(self, *, show: bool | None = None) -> Iterator[None]:
        """Wait until a request is allowed, and count it inside the block."""
        self._wait(show)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _wait(self, show: bool | None) -> None:
        with Progress("waiting for the service's rate limit", show=show) as progress:
            while True:
                with self._lock:
                    left_s = self._reset_at - time.monotonic()
                    if self._remaining is None or left_s <= 0 or self._remaining > self._under_way:
                        if self._remaining is not None and left_s <= 0:  # a new window
                            self._remaining, self._reset_at = self._limit, time.monotonic() + _WINDOW_S
                        self._under_way += 1
                        return
                log.info("rate limit of the language model reached; waiting %.0f s", left_s)
                progress.say(f"{left_s:.0f} s left")
                self._sleep(min(left_s + 0.05, 1.0))

    def note(self, response: HTTPResponse) -> None:
        """Read the rate limit from the headers of a response, if it has them."""
        remaining = as_int(response.headers.get("x-ratelimit-remaining"))
        reset_s = as_float(response.headers.get("x-ratelimit-reset"))
        if response.status == 429:
            remaining, reset_s = 0, response.retry_after_s
        if remaining is None or reset_s is None:
            return
        with self._lock:
            self._limit = as_int(response.headers.get("x-ratelimit-limit")) or self._limit
            self._remaining = max(0, remaining)
            self._reset_at = time.monotonic() + min(max(0.0, reset_s), _LONGEST_WAIT_S)
