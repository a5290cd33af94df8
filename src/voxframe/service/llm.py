"""Language-model operations: summary, questions, tasks, action items; fetching and deleting their responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Unpack

from voxframe.service import llm_requests as ask
from voxframe.service.endpoints import Endpoints, segment
from voxframe.service.http import Transport
from voxframe.service.lenient import as_text
from voxframe.service.llm_requests import LlmOptions, Question, Transcripts
from voxframe.service.llm_results import LlmResponse, Purge, response
from voxframe.service.quota import Quota, RateLimit
from voxframe.settings import Settings

#: A long recording takes a model minutes.
_READ_TIMEOUT_S = 600.0


class LanguageModel(Endpoints):
    """Endpoints of the language model.

    Each request that makes something is sent once: it costs, and may have been acted on where no answer came. All keep
    to the rate limit the service tells, by waiting.
    """

    def __init__(self, settings: Settings, *, transport: Transport | None = None) -> None:
        super().__init__(settings, transport=transport)
        self._quota = Quota(self._http.sleep)

    @property
    def rate_limit(self) -> RateLimit | None:
        """Language-model requests left, as the service last told it; None where it told nothing."""
        return self._quota.state

    def summarize(
        self,
        transcripts: Transcripts | None = None,
        *,
        answer_format: str | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """Summarize transcripts or a text.

        Args:
            transcripts: Up to 100 completed transcripts of up to 100 hours: an id, a handle, several of these, or a
                table with a column `transcript_id`, such as a part of a table of a corpus.
            answer_format: How the summary should look, in words, such as "bullet points".
            **options: See `LlmOptions`: input_text, context, final_model, max_output_size, temperature.

        Raises:
            OptionError: An argument is wrong; nothing was sent.
            ServiceError: The service, or the way to it, failed.

        Example:
            >>> client.summarize(transcript, answer_format="one sentence").text  # doctest: +SKIP
            'Two neighbours talk about trees.'
        """
        return self._generate("summary", transcripts, options, _format(answer_format))

    def ask(
        self,
        questions: str | Question | Iterable[str | Question],
        transcripts: Transcripts | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """Ask questions about transcripts or a text.

        Args:
            questions: A question as text, or a dict with `question` and, where wanted, `context`, `answer_format` and
                `answer_options`; or several of these.
            transcripts: As for `summarize`.
            **options: As for `summarize`.

        Returns:
            One reply per question.

        Raises:
            OptionError: An argument is wrong; nothing was sent.
            ServiceError: The service, or the way to it, failed.

        Example:
            >>> client.ask("Who is interviewed?", transcript).replies[0].answer  # doctest: +SKIP
            'Dr. Paul.'
        """
        return self._generate("question-answer", transcripts, options, {"questions": ask.questions(questions)})

    def task(self, prompt: str, transcripts: Transcripts | None = None, **options: Unpack[LlmOptions]) -> LlmResponse:
        """Have something done with transcripts or a text.

        Args:
            prompt: What to do, in words.
            transcripts: As for `summarize`.
            **options: As for `summarize`.

        Raises:
            OptionError: An argument is wrong; nothing was sent.
            ServiceError: The service, or the way to it, failed.
        """
        return self._generate("task", transcripts, options, {"prompt": ask.text("prompt", prompt)})

    def action_items(
        self,
        transcripts: Transcripts | None = None,
        *,
        answer_format: str | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """What transcripts or a text say is to be done.

        Args:
            transcripts: As for `summarize`.
            answer_format: How the items should look, in words.
            **options: As for `summarize`.

        Raises:
            OptionError: An argument is wrong; nothing was sent.
            ServiceError: The service, or the way to it, failed.
        """
        return self._generate("action-items", transcripts, options, _format(answer_format))

    def llm_response(self, request_id: str) -> LlmResponse:
        """A response of an earlier request.

        Raises:
            NotFoundError: There is none of that id, or it was deleted.
            ServiceError: The service, or the way to it, failed.
        """
        with self._quota.turn():
            answer = self._http.request("GET", self._response_path(request_id), observe=self._quota.note)
        return response(answer, None)

    def purge(self, request_id: str) -> Purge:
        """Delete a response and the context that was sent for it.

        Raises:
            NotFoundError: There is none of that id, or it was deleted.
            ServiceError: The service, or the way to it, failed.
        """
        with self._quota.turn():
            answer = self._http.request("DELETE", self._response_path(request_id), observe=self._quota.note)
        return Purge(
            as_text(answer.data.get("request_id")),
            as_text(answer.data.get("request_id_to_purge")) or request_id,
            answer.data.get("deleted") is True,
            answer.content,
        )

    def _generate(
        self,
        task: Literal["summary", "question-answer", "task", "action-items"],
        transcripts: Transcripts | None,
        options: LlmOptions,
        own: dict[str, Any],
    ) -> LlmResponse:
        body = ask.body(transcripts, options) | own
        with self._quota.turn():
            answer = self._http.request(
                "POST",
                f"/{self.settings.llm_prefix}/v3/generate/{task}",
                json=body,
                read_timeout_s=_READ_TIMEOUT_S,
                observe=self._quota.note,
            )
        return response(answer, task, own.get("prompt"), tuple(body.get("transcript_ids", ())))

    def _response_path(self, request_id: str) -> str:
        return f"/{self.settings.llm_prefix}/v3/{segment(request_id, 'a response', 'LlmResponse.request_id')}"


def _format(answer_format: str | None) -> dict[str, Any]:
    return {} if answer_format is None else {"answer_format": ask.text("answer_format", answer_format)}
