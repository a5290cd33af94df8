"""Answers by a model on this machine. Each sentence is checked: one that no passage supports is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voxframe_engine.answers.chat import ChatAnswerer
from voxframe_engine.answers.context import Source
from voxframe_engine.answers.evidence import Evidence, Support
from voxframe_engine.answers.extractive import NO_ACTIONS, NOTHING_FITS, ExtractiveAnswerer
from voxframe_engine.answers.llm_request import LLMAnswer, LLMRequest
from voxframe_engine.answers.model import LanguageModel, Report, unreported
from voxframe_engine.answers.task_prompts import needs_writing, task_kind
from voxframe_engine.answers.writer import WINDOW

_MOST_WRITTEN = 500  # tokens


@dataclass(frozen=True)
class CheckedAnswerer:
    """Answers with a model on this machine, checked against the sources."""

    model: LanguageModel

    def check(self, model: str) -> None:
        """Accept every `final_model`: the response has the name of the model that answered."""

    def answer(self, llm_request: LLMRequest, sources: Sequence[Source], report: Report = unreported) -> LLMAnswer:
        """Answer a request from the given transcripts or text.

        Sentences of summaries, action items and answers are checked and cited. A summary of which nothing is supported
        is quoted instead. Other texts, such as poems or JSON, are returned as they were written, without citations.
        """
        answer = ChatAnswerer(self.model, WINDOW, 1, _MOST_WRITTEN).answer(llm_request, sources, report)
        evidence = Evidence(sources, llm_request.context)
        if isinstance(answer.response, list):
            replies, citations = [], []
            for at, (question, reply) in enumerate(zip(llm_request.questions, answer.response, strict=True)):
                if question.answer_options or needs_writing(question.answer_format):
                    replies.append(reply)
                    continue
                text, cited = Evidence(sources, f"{llm_request.context} {question.context} {question.question}").check(
                    reply["answer"], question.question
                )
                replies.append({**reply, "answer": text or NOTHING_FITS})
                citations += [_as_dict(support, sources, question=at) for support in cited]
            return answer._replace(response=replies, citations=citations)
        kind = task_kind(llm_request.prompt) if llm_request.task == "task" else llm_request.task
        if kind is None or needs_writing(llm_request.answer_format):
            return answer
        text, cited = evidence.check(answer.response)
        if not text and kind == "summary":
            return ExtractiveAnswerer().answer(llm_request, sources)
        otherwise = NO_ACTIONS if kind == "action-items" else NOTHING_FITS
        return answer._replace(response=text or otherwise, citations=[_as_dict(support, sources) for support in cited])


def _as_dict(citation: Support, sources: Sequence[Source], **more: int) -> dict[str, Any]:
    """Return a citation as in responses."""
    return {
        **more,
        "sentence": citation.sentence,
        "transcript_id": sources[citation.source].transcript_id,
        "start": citation.start,
        "end": citation.end,
        "text": citation.text,
    }
