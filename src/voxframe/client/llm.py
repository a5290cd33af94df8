"""Language-model operations: requests, checked before they are sent, and responses, within the rate limit."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, cast

from voxframe import options as opt
from voxframe._progress import Progress
from voxframe.client.api import path_segment
from voxframe.client.async_bridge import LONGEST_WAIT_S
from voxframe.client.http import Transport, advised
from voxframe.client.response import HTTPResponse, as_bool, as_float, as_int, as_list, as_text
from voxframe.client.transcript import Transcript
from voxframe.errors import OptionError, UnreadableAnswerError
from voxframe.validators import Integer, Number, ValueType, checked, nearest, shown


class Selection(Protocol):
    """A table with a column `transcript_id`, such as rows of a table of a corpus."""

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""


#: Transcripts: an id, a handle, a list of these, or a table with a column `transcript_id`.
Transcripts: TypeAlias = "str | Transcript | Iterable[str | Transcript] | Selection"


class LlmOptions(TypedDict, total=False):
    """Options of a language-model request, as keyword arguments. None uses the default of the service.

    Attributes:
        input_text: Text to process, instead of transcripts.
        context: Background for the model: text, or any JSON value.
        final_model: Model that writes the response; "default", "basic", or another one of the service.
        max_output_size: Maximum number of tokens of the response, up to 4000.
        temperature: 0 (conservative) to 1 (creative).
    """

    input_text: str | None
    context: Any
    final_model: str | None
    max_output_size: int | None
    temperature: float | None


class LlmQuestion(TypedDict, total=False):
    """A question; the field `question` is required."""

    question: str
    context: Any
    answer_format: str
    answer_options: Sequence[str]


_NUMBERS: dict[str, ValueType] = {
    "max_output_size": Integer(1, opt.LLM_OUTPUT_TOKENS, "tokens"),
    "temperature": Number(0, 1),
}


def request_body(transcripts: Transcripts | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request."""
    unknown = sorted(set(options) - set(LlmOptions.__annotations__))
    if unknown:
        allowed = ", ".join(LlmOptions.__annotations__)
        near = (
            " (did you mean 'transcripts'?)"
            if unknown[0] == "ids"
            else nearest(unknown[0], [*LlmOptions.__annotations__])
        )
        raise OptionError(
            f"there is no option {unknown[0]!r}{near}; the options of a language-model request are {allowed}"
        )
    values = {name: value for name, value in options.items() if value is not None}
    if (transcripts is None) == ("input_text" not in values):
        problem = "neither" if transcripts is None else "both"
        raise OptionError(f"a request needs either transcripts or input_text, got {problem}")
    if "input_text" in values:
        values["input_text"] = checked_text("input_text", values["input_text"])
    else:
        values["transcript_ids"] = transcript_ids(transcripts)
    if "final_model" in values:
        values["final_model"] = checked_text("final_model", values["final_model"])
    for name, kind in _NUMBERS.items():
        if name in values:
            values[name] = checked(name, values[name], kind)
    if "context" in values:
        jsonable("context", values["context"])
    return values


def transcript_ids(transcripts: Any) -> list[str]:
    """Return transcript ids in order, without duplicates; a column `audio_duration_s` of a table limits the total."""
    hours_by_id: dict[str, float] = {}
    for transcript, hours in _given(transcripts):
        identifier = transcript if isinstance(transcript, str) else getattr(transcript, "id", None)
        if not isinstance(identifier, str) or not identifier:
            raise OptionError(f"{shown(transcript)} is not a transcript; give its id or a handle")
        length = _hours(transcript) if isinstance(transcript, Transcript) else hours
        hours_by_id[identifier] = max(length, hours_by_id.get(identifier, 0.0))
        if len(hours_by_id) > opt.LLM_TRANSCRIPTS:
            raise OptionError(
                f"more than {opt.LLM_TRANSCRIPTS} transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. "
                "Split them into several requests"
            )
    if not hours_by_id:
        raise OptionError(f"no transcripts were given; a request takes 1 to {opt.LLM_TRANSCRIPTS}. Check the selection")
    hours = sum(hours_by_id.values())
    if hours > opt.LLM_HOURS:
        raise OptionError(
            f"the transcripts are {hours:.1f} hours long; a request takes up to {opt.LLM_HOURS} hours. "
            "Split them into several requests"
        )
    return list(hours_by_id)


def _given(transcripts: Any) -> Iterator[tuple[Any, float]]:
    """Yield each transcript with its duration in hours, or 0 if unknown."""
    columns = getattr(transcripts, "column_names", None)  # Arrow tables; their `columns` are the values
    columns = getattr(transcripts, "columns", None) if columns is None else columns
    if isinstance(transcripts, str | Transcript):
        yield transcripts, 0.0
    elif columns is not None and "transcript_id" in columns:
        seconds = transcripts["audio_duration_s"] if "audio_duration_s" in columns else repeat(None)
        for identifier, duration in zip(_values(transcripts["transcript_id"]), _values(seconds), strict=False):
            yield identifier, (as_float(duration) or 0.0) / 3600
    elif columns is not None or isinstance(transcripts, Mapping | bytes) or not isinstance(transcripts, Iterable):
        raise OptionError(
            "transcripts must be an id, a handle, a list of these, or a table with a column transcript_id, "
            f"got {type(transcripts).__name__}"
        )
    else:
        for item in transcripts:
            yield item, 0.0


def _values(column: Any) -> Iterable[Any]:
    """Return a column of any table library as plain values."""
    as_list = getattr(column, "to_pylist", None) or getattr(column, "to_list", None)
    return column if as_list is None else cast("Iterable[Any]", as_list())


def _hours(transcript: Transcript) -> float:
    """Return the duration in hours, or 0 if it is unknown without a request."""
    if not transcript._has_state:
        return 0.0
    if transcript.status != "completed":
        raise OptionError(
            f"transcript {transcript.id} is {transcript.status!r}; only completed ones have text. "
            "Wait for it, or leave it out"
        )
    return (transcript.audio_duration_s or 0.0) / 3600 if transcript._has_result else 0.0


def questions(asked: str | LlmQuestion | Iterable[str | LlmQuestion]) -> list[dict[str, Any]]:
    """Return questions as fields of a request."""
    listed = [asked] if isinstance(asked, str | Mapping) else asked
    if not isinstance(listed, Iterable):
        raise OptionError(f"questions must be a string, a dict with 'question', or a list, got {type(listed).__name__}")
    fields = []
    for item in listed:
        if not isinstance(item, str | Mapping):
            raise OptionError(f"{shown(item)} is not a question; give a string, or a dict with 'question'")
        filled = {"question": item} if isinstance(item, str) else item
        question: dict[str, Any] = {name: value for name, value in filled.items() if value is not None}
        unknown = [name for name in question if name not in LlmQuestion.__annotations__]
        if unknown:
            raise OptionError(
                f"a question has no field {unknown[0]!r}; its fields are {', '.join(LlmQuestion.__annotations__)}"
            )
        question["question"] = checked_text("question", question.get("question"))
        if "answer_format" in question:
            question["answer_format"] = checked_text("answer_format", question["answer_format"])
        if "answer_options" in question:
            question["answer_options"] = _texts("answer_options", question["answer_options"])
        if "context" in question:
            jsonable("context", question["context"])
        fields.append(question)
    if not fields:
        raise OptionError("there are no questions; give at least one")
    return fields


def checked_text(name: str, value: object) -> str:
    """Return a string after checking that it is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{name} is {shown(value)}; give a string that is not empty")
    return value


def jsonable(name: str, value: object) -> None:
    """Check that a value can be written as JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{name} cannot be written as JSON ({error}); use strings, numbers, lists and dicts"
        ) from None


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise OptionError(f"{name} is {shown(value)}; give a list of strings")
    return [checked_text(f"an entry of {name}", entry) for entry in value]


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
        body = request_body(transcripts, options) | fields
        path = f"/{self._prefix}/v3/generate/{task}"
        with self._rate_limiter.turn():
            response = self._http.request(
                "POST", path, json=body, read_timeout_s=_READ_TIMEOUT_S, observe=self._rate_limiter.note
            )
        try:
            return read_response(response, task, fields.get("prompt"), tuple(body.get("transcript_ids", ())))
        except UnreadableAnswerError as error:
            raise advised(error, path, repeatable=False) from None

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
    return {} if answer_format is None else {"answer_format": checked_text("answer_format", answer_format)}


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
            self._reset_at = time.monotonic() + min(max(0.0, reset_s), LONGEST_WAIT_S)
