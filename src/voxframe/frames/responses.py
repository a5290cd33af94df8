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
_ANSWER = {"request_id": _COLUMNS["request_id"], "response": _COLUMNS["response"], "usage": _USAGE}
_REPLY = {"question": _COLUMNS["prompt"], "answer": _COLUMNS["response"]}


@runtime_checkable
class Asked(Protocol):
    """A response that also holds its request."""

    raw: bytes
    task: str | None
    prompt: str | None
    transcript_ids: tuple[str, ...]
    created: datetime


#: One response as an object, a dict or JSON, or an iterable of these.
Responses: TypeAlias = "Asked | Mapping[str, Any] | bytes | str | Iterable[Asked | Mapping[str, Any] | bytes | str]"


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
    if isinstance(source, Iterable) and not isinstance(source, Asked | Mapping | bytes | str):
        items = source
    return pa.Table.from_pylist([row for item in items for row in _rows(item)], RESPONSES.arrow)


def _rows(item: object) -> list[dict[str, Any]]:
    answer = dict(_answer(item.raw if isinstance(item, Asked) else item))
    asked: dict[str, Any] = {"task": None, "prompt": None, "transcript_ids": None, "created": None}
    if isinstance(item, Asked):
        asked = {"task": item.task, "prompt": item.prompt, "transcript_ids": json_text(list(item.transcript_ids))}
        asked["created"] = item.created
    usage = dict(answer["usage"]) if isinstance(answer.get("usage"), Mapping) else {}
    counts = {name: _count(usage.get(name)) for name in _USAGE}
    if usage:
        odd = {name: Misfit(usage[name]) for name in _USAGE if counts[name] is None and usage.get(name) is not None}
        answer["usage"] = usage | odd
    whole = {"request_id": _text(answer.get("request_id")), **counts, **asked}
    given = (
        None if answer["response"] == [] else answer["response"]
    )  # an empty list of answers gets a row too, for the fields of the response
    of_answer = unknown(answer, _ANSWER)
    if not isinstance(given, list):
        return [whole | {"answer_idx": 0, "response": _text(given), "extra": extra_text(of_answer)}]
    return [
        whole | _reply(idx, reply) | {"extra": extra_text((of_answer if idx == 0 else {}) | unknown(reply, _REPLY))}
        for idx, reply in enumerate(given)
    ]


def _reply(idx: int, reply: Any) -> dict[str, Any]:
    if isinstance(reply, Mapping):
        return {"answer_idx": idx, "response": _text(reply.get("answer")), "prompt": _text(reply.get("question"))}
    warnings.warn(
        f"response[{idx}] of a language model's answer is {_text(reply)}, not an object with question and answer; "
        "it is kept as the answer",
        PayloadWarning,
        stacklevel=caller(),
    )
    return {"answer_idx": idx, "response": _text(reply)}


def _answer(item: object) -> Mapping[str, Any]:
    answer: Any = item
    if isinstance(item, bytes | str):
        with suppress(PayloadError):
            answer = parse(item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item)
    if not isinstance(answer, Mapping) or "response" not in answer:
        raise PayloadError(
            f"{type(item).__name__} is no answer of a language model: it has no 'response'. Pass what "
            "client.summarize, ask, task, action_items or llm_response gave, or its JSON"
        )
    return answer


def _text(value: object) -> str | None:
    return value if value is None else whole_pairs(value if isinstance(value, str) else json_text(value))


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_count else None  # type: ignore[return-value]
