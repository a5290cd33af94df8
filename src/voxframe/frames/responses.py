"""Conversion of language model responses to the table `responses`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from voxframe.errors import PayloadError, PayloadWarning
from voxframe.frames.extra import Misfit, extra_text, json_text, unknown
from voxframe.frames.repair import caller, parse, whole_pairs
from voxframe.schema import RESPONSES

_COLUMNS = {column.name: column for column in RESPONSES.columns}
_USAGE = {name: _COLUMNS[name] for name in ("input_tokens", "output_tokens")}
_RESPONSE = {"request_id": _COLUMNS["request_id"], "response": _COLUMNS["response"], "usage": _USAGE}
_REPLY = {"question": _COLUMNS["prompt"], "answer": _COLUMNS["response"]}


@runtime_checkable
class ResponseWithRequest(Protocol):
    """A response that also holds its request."""

    raw: bytes
    task: str | None
    prompt: str | None
    transcript_ids: tuple[str, ...]
    created: datetime


#: One response, as an object, a dict or JSON.
ResponseSource: TypeAlias = "ResponseWithRequest | Mapping[str, Any] | bytes | str"

#: One response or several.
Responses: TypeAlias = "ResponseSource | Iterable[ResponseSource]"


def response_table(source: Responses) -> pa.Table:
    """Return the `responses` table: one row per response, or one row per question for question-answer.

    Args:
        source: Responses. Bare JSON of the service does not include the request, so those columns are null.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: An item is not a response of a language model.

    Example:
        >>> table = response_table({"request_id": "r", "response": "Rain.", "usage": {"output_tokens": 2}})
        >>> table.select(["response", "output_tokens"]).to_pylist()
        [{'response': 'Rain.', 'output_tokens': 2}]
    """
    items: Iterable[object] = [source]
    if isinstance(source, Iterable) and not isinstance(source, ResponseWithRequest | Mapping | bytes | str):
        items = source
    return pa.Table.from_pylist([row for item in items for row in _rows(item)], RESPONSES.arrow)


def _rows(item: object) -> list[dict[str, Any]]:
    response = dict(_response(item.raw if isinstance(item, ResponseWithRequest) else item))
    request: dict[str, Any] = {"task": None, "prompt": None, "transcript_ids": None, "created": None}
    if isinstance(item, ResponseWithRequest):
        ids = json_text(list(item.transcript_ids))
        request = {"task": item.task, "prompt": item.prompt, "transcript_ids": ids, "created": item.created}
    usage = dict(response["usage"]) if isinstance(response.get("usage"), Mapping) else {}
    counts = {name: _count(usage.get(name)) for name in _USAGE}
    if usage:
        odd = {name: Misfit(usage[name]) for name in _USAGE if counts[name] is None and usage.get(name) is not None}
        response["usage"] = usage | odd
    whole = {"request_id": _text(response.get("request_id")), **counts, **request}
    answers = response["response"]
    more = unknown(response, _RESPONSE)
    if not isinstance(answers, list) or not answers:  # an empty list gets a row too, for the fields of the response
        text = None if answers == [] else _text(answers)
        return [whole | {"answer_idx": 0, "response": text, "extra": extra_text(more)}]
    return [
        whole | _reply(idx, reply) | {"extra": extra_text((more if idx == 0 else {}) | unknown(reply, _REPLY))}
        for idx, reply in enumerate(answers)
    ]


def _reply(idx: int, reply: Any) -> dict[str, Any]:
    if isinstance(reply, Mapping):
        return {"answer_idx": idx, "response": _text(reply.get("answer")), "prompt": _text(reply.get("question"))}
    warnings.warn(
        f"response[{idx}] of a language model is {_text(reply)}, not an object with question and answer; it was "
        "kept as the answer",
        PayloadWarning,
        stacklevel=caller(),
    )
    return {"answer_idx": idx, "response": _text(reply)}


def _response(item: object) -> Mapping[str, Any]:
    response: Any = item
    if isinstance(item, bytes | str):
        with suppress(PayloadError):
            response = parse(item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item)
    if not isinstance(response, Mapping) or "response" not in response:
        raise PayloadError(
            f"this {type(item).__name__} is not a language model response: it has no field 'response'. Pass the return "
            "value of client.summarize, ask, task, action_items or llm_response, or its JSON"
        )
    return response


def _text(value: object) -> str | None:
    return value if value is None else whole_pairs(value if isinstance(value, str) else json_text(value))


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_count else None  # type: ignore[return-value]
