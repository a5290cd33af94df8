"""What the language model gave back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from voxframe.service.answer import Answer
from voxframe.service.lenient import as_int, as_list, as_text


@dataclass(frozen=True)
class Usage:
    """Tokens a request took; None where the service does not say."""

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class Reply:
    """One answer; `question` is None except for question-answer."""

    answer: str
    question: str | None = None


@dataclass(frozen=True)
class LlmResponse:
    """A response of the language model.

    Attributes:
        request_id: Its identifier; `Client.llm_response` fetches it again, `Client.purge` deletes it.
        task: summary, question-answer, task or action-items; None where it was fetched by its identifier.
        replies: The answers: one, or one for each question.
        usage: Tokens it took.
        prompt: The prompt of a task.
        transcript_ids: Transcripts it is about.
        created: When it was received, UTC.
        raw: The service's answer as it came.
    """

    request_id: str
    task: str | None
    replies: tuple[Reply, ...]
    usage: Usage
    prompt: str | None = None
    transcript_ids: tuple[str, ...] = ()
    created: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)
    raw: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        """The response as one text; questions stand before their answers."""
        return "\n\n".join(f"{r.question}\n{r.answer}" if r.question else r.answer for r in self.replies)


@dataclass(frozen=True)
class Purge:
    """Result of deleting a response.

    Attributes:
        request_id: Identifier of this request.
        request_id_to_purge: Identifier of the response that was to be deleted.
        deleted: Whether it is deleted.
        raw: The service's answer as it came.
    """

    request_id: str | None
    request_id_to_purge: str
    deleted: bool
    raw: bytes = field(repr=False)


def response(
    answer: Answer, task: str | None, prompt: str | None = None, transcript_ids: tuple[str, ...] = ()
) -> LlmResponse:
    """A response from an answer: a text, or a list of questions with their answers.

    Raises:
        UnreadableAnswerError: It has neither.
    """
    data = answer.data
    given, request_id = data.get("response"), as_text(data.get("request_id"))
    if request_id is None or not isinstance(given, str | list):
        raise answer.unreadable()
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    replies = [
        Reply(as_text(item.get("answer")) or "", as_text(item.get("question")))
        for item in as_list(given)
        if isinstance(item, dict)
    ]
    return LlmResponse(
        request_id=request_id,
        task=task,
        replies=(Reply(given),) if isinstance(given, str) else tuple(replies),
        usage=Usage(as_int(usage.get("input_tokens")), as_int(usage.get("output_tokens"))),
        prompt=prompt,
        transcript_ids=transcript_ids,
        raw=answer.content,
    )
