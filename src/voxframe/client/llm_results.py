"""Responses of the language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from voxframe.client.coerce import as_int, as_list, as_text
from voxframe.client.response import HTTPResponse


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
    """Read a language-model response: a text, or a list of questions with their replies.

    Raises:
        UnreadableAnswerError: It has neither.
    """
    data = response.data
    given, request_id = data.get("response"), as_text(data.get("request_id"))
    if request_id is None or not isinstance(given, str | list):
        raise response.unreadable()
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    replies = [
        LlmReply(as_text(item.get("answer")) or "", as_text(item.get("question")))
        for item in as_list(given)
        if isinstance(item, dict)
    ]
    return LlmResponse(
        request_id=request_id,
        task=task,
        replies=(LlmReply(given),) if isinstance(given, str) else tuple(replies),
        usage=Usage(as_int(usage.get("input_tokens")), as_int(usage.get("output_tokens"))),
        prompt=prompt,
        transcript_ids=transcript_ids,
        raw=response.content,
    )
