"""Answers of a language model to the table `responses`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import orjson
import pyarrow as pa

from voxframe.errors import PayloadError
from voxframe.schema import RESPONSES


@runtime_checkable
class Asked(Protocol):
    """A response that still knows what was asked."""

    raw: bytes
    task: str | None
    prompt: str | None
    transcript_ids: tuple[str, ...]
    created: datetime


#: One response, as an object, as the service's answer (dict or JSON bytes), or an iterable of these.
Responses: TypeAlias = "Asked | Mapping[str, Any] | bytes | str | Iterable[Asked | Mapping[str, Any] | bytes | str]"


def response_table(source: Responses) -> pa.Table:
    """The `responses` table: a row per answer, which is a row per question for question-answer.

    Args:
        source: Responses. A bare answer of the service does not say what was asked: those columns are null.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: An item is no answer of a language model.

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
    answer = _answer(item.raw if isinstance(item, Asked) else item)
    asked: dict[str, Any] = {"task": None, "prompt": None, "transcript_ids": None, "created": None}
    if isinstance(item, Asked):
        asked = {"task": item.task, "prompt": item.prompt, "transcript_ids": list(item.transcript_ids)}
        asked["created"] = item.created.replace(tzinfo=None)
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    whole = {
        "request_id": _text(answer.get("request_id")),
        "input_tokens": _count(usage.get("input_tokens")),
        "output_tokens": _count(usage.get("output_tokens")),
        **asked,
    }
    given = answer["response"]
    if not isinstance(given, list):
        return [whole | {"answer_idx": 0, "response": _text(given)}]
    replies = [reply for reply in given if isinstance(reply, Mapping)]
    return [
        whole | {"answer_idx": idx, "response": _text(reply.get("answer")), "prompt": _text(reply.get("question"))}
        for idx, reply in enumerate(replies)
    ]


def _answer(item: object) -> Mapping[str, Any]:
    try:
        answer = item if isinstance(item, Mapping) else orjson.loads(item)  # type: ignore[arg-type]
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, Mapping) or "response" not in answer:
        raise PayloadError(
            f"{type(item).__name__} is no answer of a language model: it has no 'response'. Pass what "
            "client.summarize, ask, task, action_items or llm_response gave, or its JSON"
        )
    return answer


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
