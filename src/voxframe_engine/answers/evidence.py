"""Check of a written text against its sources: each sentence is supported by a passage, which is cited, or left out.

A passage of three sentences supports a sentence if it is close to it in meaning, or has most of its content words. The
numbers and names of the sentence must occur in it, or in one other passage, which is cited too. Numbers are compared by
value, so "35" is supported by "thirty-five". What this does not see: who did what to whom, and negations.

Answers of the local writer are checked so, and its texts for a finished job: headlines and summaries of chapters, and
the summary of the whole. What is not supported there stays as the analyses made it: noun phrases, and key sentences.

Of 10 sentences of summaries of the three recordings in `data/`, 9 are supported by their own recording; of the 20 pairs
of a sentence and another recording, none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from voxframe import encoder
from voxframe.encoder import Vectors
from voxframe_engine.analyses.lexicon import content, stem, words_of
from voxframe_engine.answers import QUOTING, LLMAnswer, LLMRequest, Report, Source, from_transcript, unreported
from voxframe_engine.answers.chat import ChatAnswerer, LanguageModel
from voxframe_engine.answers.extractive import NO_ACTIONS, NOTHING_FITS, ExtractiveAnswerer, needs_writing, task_kind
from voxframe_engine.answers.ranking import unit
from voxframe_engine.answers.writer import WINDOW

_PASSAGE = 3  # sentences
_CLOSE = 0.45  # cosine of a sentence and the passage that supports it
_SHARED = 0.6  # share of content words; enough without a close meaning
_SECOND = 0.5  # closeness of a second passage, relative to that of the first one
_SENTENCE = re.compile(r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|vs|e\.g|i\.e)\.(?=\s)|\.(?=\S)|[^.!?])+[.!?]*[\"')\]]*\s*")
_BULLET = re.compile(r"\s*(?:[-*\u2022]|\d{1,2}[.)])\s+|\s*#+\s+")
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'\u2019-]{2,}")
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_ONES)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_ORDINALS = {"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"}
_ORDINALS |= {"twelfth": "twelve", "twentieth": "twenty", "thirtieth": "thirty"}
_SMALL = 10  # numbers in words up to this need no support in a summary: "two speakers", "one of them"


class _Window(NamedTuple):
    source: int
    first: int
    last: int


class Evidence:
    """The passages of the sources of a request.

    Args:
        given: Further text that may be used: the context of the request, and questions.
    """

    def __init__(self, sources: Sequence[Source], given: str = "") -> None:
        self._sources = sources
        texts = [[line.text for line in source.lines] for source in sources]
        self._windows = [
            _Window(at, first, min(first + _PASSAGE, len(lines)))
            for at, lines in enumerate(texts)
            for first in range(max(1, len(lines) - _PASSAGE + 1))
            if lines
        ]
        speakers = {str(line.speaker) for source in sources for line in source.lines if line.speaker}
        self._given = _facts(f"{given} {' '.join(speakers)}", names=False)
        self._facts = [_facts(self._text(window), names=False) for window in self._windows]
        self._stems = [{stem(word) for word in content(self._text(window))} for window in self._windows]
        self._encoder = encoder.find()
        self._vectors: Vectors | None = None
        if self._encoder is not None and self._windows:
            lines = [unit(self._encoder.encode(texts_)) if texts_ else np.empty((0, encoder.SIZE)) for texts_ in texts]
            self._vectors = unit(
                np.stack([lines[item.source][item.first : item.last].mean(axis=0) for item in self._windows])
            )

    def check(self, text: str, question: str = "") -> tuple[str, list[dict[str, Any]]]:
        """Return a written text without the sentences that nothing supports, and the citations of the others."""
        rows, citations = [], []
        for row in text.splitlines():
            bullet = _BULLET.match(row)
            mark, content = (bullet[0], row[bullet.end() :]) if bullet else ("", row)
            supported = []
            for sentence in _SENTENCE.findall(content):
                if passages := self._support(sentence.strip(), question):
                    supported.append(sentence)
                    citations += passages
            if supported or not row.strip():
                rows.append(mark + "".join(supported).rstrip())
        return re.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip(), citations

    def _support(self, sentence: str, question: str) -> list[dict[str, Any]]:
        """Return the passage that supports a sentence, with a second one if that has a name or number of it."""
        if not self._windows or not words_of(sentence):
            return []
        stems = {stem(word) for word in content(sentence)}
        values = np.array([len(stems & words) for words in self._stems]) / max(1, len(stems)) / _SHARED
        if self._encoder is not None and self._vectors is not None:
            (vector,) = unit(self._encoder.encode([f"{question} {sentence}".strip()]))
            values = np.maximum(values, self._vectors @ vector / _CLOSE)
        needed = _facts(sentence, least=-1 if question else _SMALL) - self._given
        # Of passages that are close enough, one with all names and numbers, if there is one; then the closest.
        best = max(range(len(values)), key=lambda at: (values[at] >= 1 and needed <= self._facts[at], values[at]))
        if values[best] < 1:
            return []
        missing = needed - self._facts[best]
        cited = [best]
        if missing:
            candidates = [at for at, facts in enumerate(self._facts) if missing <= facts and values[at] >= _SECOND]
            if not candidates:
                return []
            cited.append(max(candidates, key=lambda at: values[at]))
        return [self._citation(sentence, self._windows[at]) for at in cited]

    def _citation(self, sentence: str, window: _Window) -> dict[str, Any]:
        """Return a citation as in responses."""
        source = self._sources[window.source]
        return {
            "sentence": sentence,
            "transcript_id": source.transcript_id,
            "start": source.lines[window.first].start,
            "end": source.lines[window.last - 1].end,
            "text": self._text(window),
        }

    def _text(self, window: _Window) -> str:
        return " ".join(line.text for line in self._sources[window.source].lines[window.first : window.last])


def _facts(text: str, *, names: bool = True, least: int = -1) -> set[str | float]:
    """Return the stems of the names in a text, or of all its words, and the values of its numbers."""
    words = [word for name in _NAME.findall(text) for word in words_of(name)] if names else words_of(text)
    return {stem(word) for word in words} | {*_numbers(text, least=least)}


def _numbers(text: str, least: int = -1) -> Iterator[float]:
    """Yield the values of the numbers in a text, in digits or words; of words, only those above `least`.

    Parts of a number in words are yielded too: "twenty twenty three" is 20, 23 and 2023.
    """
    for digits in _DIGITS.findall(text):
        yield float(digits.replace(",", ""))
    words = [_ORDINALS.get(word, word.removesuffix("th")) for word in re.findall(r"[a-z]+", text.lower())]
    run: list[float] = []
    for word in [*words, "."]:
        if word in _VALUES:
            value = _VALUES[word]
            if run and 20 <= run[-1] < 100 and run[-1] % 10 == 0 and 0 < value < 10:
                run[-1] += value
            else:
                run.append(value)
        elif word in _SCALES and run:
            run[-1] *= _SCALES[word]
        elif word != "and" and run:
            joined = float("".join(f"{value:.0f}" for value in run))
            yield from (value for value in {*run, sum(run), joined} if value > least)
            run = []


_MOST_WRITTEN = 500  # tokens


@dataclass(frozen=True)
class CheckedAnswerer:
    """Answers with a model on this machine. Each sentence is checked: one that no passage supports is left out."""

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
                citations += [{"question": at, **citation} for citation in cited]
            return answer._replace(response=replies, citations=citations)
        kind = task_kind(llm_request.prompt) if llm_request.task == "task" else llm_request.task
        if kind is None or needs_writing(llm_request.answer_format):
            return answer
        text, cited = evidence.check(answer.response)
        if not text and kind == "summary":
            return ExtractiveAnswerer().answer(llm_request, sources)
        otherwise = NO_ACTIONS if kind == "action-items" else NOTHING_FITS
        return answer._replace(response=text or otherwise, citations=cited)


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
