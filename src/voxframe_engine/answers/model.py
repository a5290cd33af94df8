"""Requests to a language model with the OpenAI-compatible chat-completions protocol."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from voxframe.settings import Secret, is_loopback
from voxframe_engine.answers.context import count

if TYPE_CHECKING:
    import requests

_CONNECT, _READ = 10.0, 300.0  # seconds
_LARGEST = 4_000_000  # maximum size of a response in bytes
_TRIES, _LONGEST_PAUSE = 3, 20.0
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


class ModelFailed(Exception):  # noqa: N818 - becomes the answer to a request
    """The model did not answer.

    Args:
        status: HTTP status of the response to the client of this server.
        message: The reason.
        retry_after: Seconds after which the client may try again.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ModelReply(NamedTuple):
    """A reply of a model, with the numbers of tokens it reported, or counted here if it reported none."""

    text: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class ChatModel:
    """A language model.

    Attributes:
        url: URL to which `/chat/completions` is appended, such as "http://127.0.0.1:11434/v1".
        name: Name of the model at that URL.
        key: API key, if it needs one.
    """

    url: str
    name: str
    key: Secret | None = field(default=None, repr=False)

    def ask(self, system: str, request: str, size: int, temperature: float) -> ModelReply:
        """Request one answer of at most `size` tokens.

        Raises:
            ModelFailed: There is no answer.
        """
        body = {
            "model": self.name,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": request}],
            "max_tokens": size,
            "temperature": temperature,
        }
        data = self._send(orjson.dumps(body))
        try:
            text = data["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise ModelFailed(500, "the configured language model answered without a text")
        text = _THOUGHTS.sub("", text).strip()
        usage = data.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return ModelReply(
            text,
            _number(usage.get("prompt_tokens"), count(system) + count(request)),
            _number(usage.get("completion_tokens"), count(text)),
        )

    def _send(self, body: bytes) -> dict[str, Any]:
        import requests

        for left in reversed(range(_TRIES)):
            try:
                with requests.Session() as session:
                    status, headers, content = self._post(session, body)
            except requests.Timeout:
                raise ModelFailed(504, "the configured language model did not answer in time") from None
            except (requests.RequestException, OSError) as error:
                raise ModelFailed(
                    503, f"the configured language model could not be reached ({type(error).__name__})"
                ) from None
            if status not in (429, 503) or not left:
                break
            time.sleep(_pause(headers.get("Retry-After"), _TRIES - left))
        if 200 <= status < 300:
            return _object(content)
        raise _failed(status, content, headers.get("Retry-After"))

    def _post(self, session: requests.Session, body: bytes) -> tuple[int, Any, bytes]:
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
            content = b""
            for chunk in answer.iter_content(1 << 16):
                content += chunk
                if len(content) > _LARGEST:
                    raise ModelFailed(500, "the response of the configured language model is too large")
            return answer.status_code, answer.headers, content

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.key is not None:
            request.headers["Authorization"] = f"Bearer {self.key.reveal()}"
        return request


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _pause(told: str | None, turn: int) -> float:
    seconds = float(told) if told and told.isdecimal() else float(turn)
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
        given = retry_after or ""
        seconds = int(given) if given.isdecimal() and len(given) < 6 else 30  # digits without end are no wait
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
