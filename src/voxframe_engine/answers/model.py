"""Requests to a language model with the OpenAI-compatible chat-completions protocol.

The answer is requested as a stream, so that progress can be reported and a request can be cancelled. A model that
answers with one JSON object is understood too. A model that repeats itself is stopped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from voxframe.settings import Secret, is_loopback
from voxframe_engine.answers.context import count

if TYPE_CHECKING:
    import requests

_CONNECT, _READ = 10.0, 300.0  # seconds
_LARGEST = 4_000_000  # maximum size of a response in bytes
_READING = 0.8  # share of the time for an answer in which the request is read
_TRIES, _LONGEST_PAUSE = 3, 20.0
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


class ModelFailed(Exception):  # noqa: N818 - becomes the answer to a request
    """The model did not answer."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Cancelled(Exception):  # noqa: N818 - not an error
    """Nobody waits for the answer any more. Raised by a `Report`."""


#: Called with the completed share of the work, from 0 to 1. It may raise `Cancelled`.
Report = Callable[[float], None]


def unreported(_: float) -> None:
    """Ignore progress."""


class ModelReply(NamedTuple):
    """A reply of a model, with the numbers of tokens it reported, or counted here if it reported none."""

    text: str
    input_tokens: int
    output_tokens: int


class LanguageModel(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """Name of the model in responses."""

    def ask(self, system: str, request: str, size: int, temperature: float, report: Report = unreported) -> ModelReply:
        """Request one answer of at most `size` tokens."""


@dataclass(frozen=True)
class ChatModel:
    """A language model at a URL.

    Attributes:
        url: URL to which `/chat/completions` is appended, such as "http://127.0.0.1:11434/v1".
        fields: Further fields of each request.
    """

    url: str
    name: str
    key: Secret | None = field(default=None, repr=False)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def ask(self, system: str, request: str, size: int, temperature: float, report: Report = unreported) -> ModelReply:
        """Request one answer of at most `size` tokens."""
        body = {
            "model": self.name,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": request}],
            "max_tokens": size,
            "temperature": temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.fields,
        }
        data = self._send(orjson.dumps(body), size, report)
        try:
            text = data["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise ModelFailed(500, "the configured language model answered without a text")
        text = without_repetition(_THOUGHTS.sub("", text)).strip()
        usage = data.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return ModelReply(
            text,
            _number(usage.get("prompt_tokens"), count(system) + count(request)),
            _number(usage.get("completion_tokens"), count(text)),
        )

    def _send(self, body: bytes, size: int, report: Report) -> dict[str, Any]:
        import requests

        for tries_left in reversed(range(_TRIES)):
            try:
                with requests.Session() as session:
                    status, headers, content = self._post(session, body, size, report)
            except requests.Timeout:
                raise ModelFailed(504, "the configured language model did not answer in time") from None
            except (requests.RequestException, OSError) as error:
                raise ModelFailed(
                    503, f"the configured language model could not be reached ({type(error).__name__})"
                ) from None
            if status not in (429, 503) or not tries_left:
                break
            time.sleep(_pause(headers.get("Retry-After"), _TRIES - tries_left))
        if isinstance(content, dict):
            return content
        if 200 <= status < 300:
            return _object(content)
        raise _failed(status, content, headers.get("Retry-After"))

    def _post(
        self, session: requests.Session, body: bytes, size: int, report: Report
    ) -> tuple[int, Any, bytes | dict[str, Any]]:
        """Return status, headers and content of a response; of a stream, the response that it adds up to."""
        session.trust_env = not is_loopback(self.url)  # no proxy for requests to this machine
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "voxframe"}
        with session.post(
            f"{self.url}/chat/completions",
            data=body,
            headers=headers,
            auth=self._sign,  # not a header: requests would replace it by credentials from .netrc
            timeout=(_CONNECT, _READ),
            allow_redirects=False,  # the key must not be sent elsewhere
            stream=True,
        ) as answer:
            if answer.status_code == 200 and answer.headers.get("Content-Type", "").startswith("text/event-stream"):
                lines = _limited(answer.iter_lines(chunk_size=None))  # as they arrive
                return 200, answer.headers, _collected(lines, size, report)
            return answer.status_code, answer.headers, b"".join(_limited(answer.iter_content(1 << 16)))

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.key is not None:
            request.headers["Authorization"] = f"Bearer {self.key.reveal()}"
        return request


def _limited(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of a response up to the maximum size."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > _LARGEST:
            raise ModelFailed(500, "the response of the configured language model is too large")
        yield chunk


def _collected(lines: Iterable[bytes], size: int, report: Report) -> dict[str, Any]:
    """Return the response that a stream of events adds up to. A repetition ends it."""
    text, tokens, usage = "", 0, None
    for line in lines:
        content = line.removeprefix(b"data:").strip()
        if content == line or content == b"[DONE]":  # not data, such as a comment that keeps the connection open
            report(0.0)
            continue
        event = _object(content)
        if "error" in event:
            raise _failed(500, content, None)
        usage = event.get("usage") or usage
        reading = event.get("prompt_progress")  # llama.cpp
        if isinstance(reading, dict):
            report(_READING * _number(reading.get("processed"), 0) / max(1, _number(reading.get("total"), 1)))
        for choice in event.get("choices") or ():
            part = (choice.get("delta") or {}).get("content")
            if isinstance(part, str) and part:
                text, tokens = text + part, tokens + 1
                report(_READING + (1 - _READING) * min(1.0, tokens / size))
        if _ENDED.search(text[-2:]) and len(without_repetition(text)) < len(text):
            break
    return {"choices": [{"message": {"content": text}}], "usage": usage}


_ENDED = re.compile(r"[.!?:;,\n]\s?$|\s$")
_PASSAGE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\S)[^.!?\n]*)*[.!?\n]*")
_LEAST_REPEATED = 4  # words of a sentence that may not be repeated; shorter ones may be answers or headings
_LOOP = re.compile(r"(\S.{2,119}?\s*)\1{4,}", re.DOTALL)
_LOOKED_AT = 2000  # characters at the end of a text in which a loop without sentences is looked for


def without_repetition(text: str) -> str:
    """Return a text up to the point where the model began to repeat itself: a sentence, or the same words in a loop.

    Example:
        >>> without_repetition("The bus was late again. They took a taxi. The bus was late again. They took")
        'The bus was late again. They took a taxi.'
    """
    said = set()
    for passage in _PASSAGE.finditer(text):
        words = tuple(re.findall(r"\w+", passage[0].lower()))
        if len(words) >= _LEAST_REPEATED and words in said:
            text = text[: passage.start()]
            break
        said.add(words)
    for loop in _LOOP.finditer(text, max(0, len(text) - _LOOKED_AT)):
        if any(map(str.isalnum, loop[1])):  # not a line of a table
            return text[: loop.end(1)]
    return text


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _pause(header: str | None, turn: int) -> float:
    seconds = float(header) if header and header.isdecimal() else float(turn)
    return min(seconds, _LONGEST_PAUSE)


def _object(content: bytes) -> dict[str, Any]:
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict):
        raise ModelFailed(500, "the configured language model answered with something other than a JSON object")
    return data


def _failed(status: int, content: bytes, retry_after: str | None) -> ModelFailed:
    """Map an error of the model to an error for the client of this server, whose key and URL are not at fault."""
    said = _said(content)
    if status == 429:
        wait = retry_after or ""
        seconds = int(wait) if wait.isdecimal() and len(wait) < 6 else 30  # digits without end are no wait
        return ModelFailed(429, f"the configured language model received too many requests{said}", seconds)
    if status in (401, 403):
        return ModelFailed(500, "the configured language model rejects the key; set VOXFRAME_LLM_KEY to a valid one")
    if status == 404:
        return ModelFailed(500, f"there is no such language model at the configured address{said}")
    if status in (502, 503):
        return ModelFailed(503, f"the configured language model is not available{said}")
    if status in (408, 504):
        return ModelFailed(504, "the configured language model did not answer in time")
    return ModelFailed(500, f"the configured language model answered {status}{said}")


def _said(content: bytes) -> str:
    """Return the message of an error response, shortened."""
    try:
        error = orjson.loads(content)["error"]
        message = error["message"] if isinstance(error, dict) else error
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    return f": {str(message)[:300]}" if isinstance(message, str) and message else ""
