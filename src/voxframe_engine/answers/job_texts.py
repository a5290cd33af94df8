"""Texts of a finished job by the local writer: headlines and summaries of chapters, and the summary of the whole.

Each text is checked against the sentences that it is about (`evidence`). If they do not support it, the field stays as
the analyses made it: noun phrases, and key sentences that are quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxframe_engine.answers.chat import ChatAnswerer
from voxframe_engine.answers.context import Source, from_transcript
from voxframe_engine.answers.evidence import CheckedAnswerer, Evidence
from voxframe_engine.answers.llm_request import QUOTING, LLMRequest
from voxframe_engine.answers.model import LanguageModel, Report, unreported
from voxframe_engine.answers.writer import WINDOW

_FORMS = {  # of `summary_type`
    "bullets": "three to seven bullets of one sentence each",
    "bullets_verbose": "three to seven bullets of two or three sentences each",
    "gist": "a title of two to five words",
    "headline": "one sentence",
    "paragraph": "one paragraph of three to six sentences",
}
_STYLES = {"conversational": ", which say who said what", "catchy": ", lively and short"}  # of `summary_model`
_TITLE = "Write a title of three to eight words for the material."
_TITLE_TOKENS = 30


def rewrite(
    result: Mapping[str, Any], options: Mapping[str, Any], writer: LanguageModel, report: Report = unreported
) -> dict[str, Any]:
    """Return `chapters`, `summary` and `summary_method` of a result, as far as the writer can write them.

    A chapter that was written has the field `method`.

    Args:
        options: `auto_chapters`, `summarization`, `summary_type` and `summary_model` of the request.
        report: Takes the completed share; it may raise `Cancelled`.

    Raises:
        ModelFailed: The writer does not work.
    """
    source = from_transcript(dict(result))
    chapters = [dict(chapter) for chapter in result.get("chapters") or ()]
    asks_summary = bool(options.get("summarization") and result.get("summary"))
    steps = len(chapters) + asks_summary
    method = f"written by {writer.name}, checked against the text"
    changed: dict[str, Any] = {}
    for done, chapter in enumerate(chapters):

        def report_step(share: float, done: int = done) -> None:
            report((done + share) / steps)

        lines = [line for line in source.lines if chapter["start"] <= (line.start or 0) < chapter["end"]]
        texts = _chapter_texts(Source(lines), writer, report_step)
        chapter |= {**texts, "method": method} if texts else {}
        changed["chapters"] = chapters
    if asks_summary:
        form = _FORMS[options.get("summary_type") or "bullets"] + _STYLES.get(options.get("summary_model") or "", "")
        text = _summary(source, form, writer, lambda share: report((len(chapters) + share) / steps))
        changed |= {"summary": text, "summary_method": method} if text else {}
    return changed


def _chapter_texts(source: Source, writer: LanguageModel, report: Report) -> dict[str, str]:
    """Return the headline and the summary of a chapter, if its sentences support them."""
    summary = _summary(source, "one or two sentences", writer, report)
    request = LLMRequest("task", prompt=_TITLE)
    answer = ChatAnswerer(writer, WINDOW, 1, _TITLE_TOKENS).answer(request, [source])  # the writer has read the text
    first = next(iter(str(answer.response).splitlines()), "").strip("#*\"'. ").removeprefix("Title: ")
    headline, _ = Evidence([source]).check(first)
    return {name: text for name, text in (("headline", headline), ("summary", summary)) if text}


def _summary(source: Source, form: str, writer: LanguageModel, report: Report) -> str:
    """Return a checked summary; empty if no sentence of it is supported."""
    answer = CheckedAnswerer(writer).answer(LLMRequest("summary", answer_format=form), [source], report)
    return "" if answer.model == QUOTING else str(answer.response)
