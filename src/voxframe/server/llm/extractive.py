"""Answers without a language model: the sentences that answer, or that contain an action item, are quoted."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from voxframe import encoder, models, reader
from voxframe.server.analyses.extract import choose, quoted, scores
from voxframe.server.http.request_bodies import RequestRefused
from voxframe.server.llm.bm25 import BM25Index, BM25Match, Scores, choose_option, close_enough, in_order, terms
from voxframe.server.llm.context import Line, Source, count, cut
from voxframe.server.llm.llm_request import LLMAnswer, LLMQuestion, LLMRequest
from voxframe.server.llm.reading import read

_log = logging.getLogger("voxframe.server")

_LEAST_WEIGHT = 1.0
_SHORTEST = 4  # words
_ADVERB = r"(?:(?:also|then|just|definitely|really|probably|personally|quickly|first) )*"
_IDLE = r"(?!(?:be|see|know|have|never|not|always|remember|miss|say|tell you|admit|think|go on|come back)\b)"
_SOMEBODY = r"(?:i|we|you|he|she|they|somebody|someone|everybody|everyone|one of us|(?-i:(?<!^)[A-Z][a-z]+))"
_THIRD = r"(?-i:[A-Z][a-z]+)"
_TASK_WORDS = (
    "add arrange ask assign book bring buy call change check clean collect complete confirm contact copy create "
    "cut decide deliver discuss do draft email file find finish fix follow get give help hire install invite look "
    "make measure meet move open order organise organize pay plan plant prepare present print publish put read "
    "remind remove repair replace report review schedule sell send set share ship sign sort start stop submit talk "
    "test translate try update upload use visit wait wash write"
).replace(" ", "|")
_IMPERATIVES = (
    "add arrange ask assign book bring buy check collect complete confirm contact create deliver draft email finish "
    "fix follow invite order organise organize prepare print publish remind remove repair replace report review "
    "schedule send share ship submit test translate update upload write"
).replace(" ", "|")
_OBJECT = r"(?:the|a|an|all|our|your|my|it|them|him|her|this|these|to|(?-i:[A-Z]))"
_THEN = r"^(?:(?:and|so|then|also|but),? )*"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_TIME = rf"(?:the end of|{_DAY}|week|month|tomorrow|noon|tonight|morning)"

_CUES = [
    (re.compile(pattern, re.IGNORECASE), weight)
    for pattern, weight in (
        # Commitments.
        (rf"\b(?:i|we)(?:'ll| will| shall) {_ADVERB}{_IDLE}\w+ \w", 1.0),
        (rf"\b(?:i am|i'm|we are|we're) going to {_IDLE}\w+ \w", 1.0),
        (rf"\b(?:i|we) (?:can|could) {_ADVERB}(?:{_TASK_WORDS})\b", 0.6),
        (rf"\b(?:i|we) (?:promise|plan|intend|want) to (?:{_TASK_WORDS})\b", 1.0),
        # Obligations.
        (rf"\b{_SOMEBODY} (?:need|needs|has|have|'ve got|ought) to {_ADVERB}{_IDLE}\w", 1.0),
        (rf"{_THEN}{_THIRD} (?:needs|has|ought) to {_IDLE}\w", 1.0),
        (rf"{_THEN}{_THIRD} (?:will|should|must) (?:{_TASK_WORDS})\b", 1.0),
        (rf"\b{_SOMEBODY} (?:should|must) {_ADVERB}(?!have\b){_IDLE}\w", 1.0),
        (r"\b(?:needs?|has|have) to be (?:\w+ed|done|sent|made|written|bought|paid)\b", 1.0),
        # Requests.
        (rf"\b(?:can|could|would|will) you (?:please )?(?:{_TASK_WORDS})\b(?! (?:you|say))", 1.0),
        (r"\bplease (?!note\b|forgive\b|excuse\b|welcome\b|be\b|tell\b)\w", 1.0),
        (r"\b(?:don't|do not) forget\b|\bremember to\b|\bmake sure\b|\bbe sure to\b", 1.0),
        (rf"{_THEN}(?:{_IMPERATIVES}) {_OBJECT}\b", 1.0),
        (rf"\b(?:let's|let us) (?:{_TASK_WORDS})\b(?! (?:about|with))", 1.0),
        # Explicit names.
        (r"\b(?:action items?|to-?do|follow[- ]up|next steps?|deadline|assigned to)\b", 1.0),
        # Deadlines.
        (rf"\b(?:by|before|until|on|this|next) {_TIME}\b", 0.5),
        (r"\b(?:today|tomorrow|tonight|as soon as possible|right away)\b", 0.5),
    )
]
_REQUEST = re.compile(r"\b(?:can|could|would|will) you\b|\bplease\b", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:if (?:i|we|they|you) (?:had|were)|would have|should have|could have|used to)\b", re.IGNORECASE
)


def action_items(lines: Sequence[Line]) -> list[int]:
    """Return the indexes of the sentences that contain an action item, in order.

    Example:
        >>> lines = [Line("The server was down."), Line("I will call them tomorrow."), Line("Can you write it down?")]
        >>> action_items(lines)
        [1, 2]
    """
    return [place for place, line in enumerate(lines) if _weight(line.text) >= _LEAST_WEIGHT]


def _weight(text: str) -> float:
    if len(text.split()) < _SHORTEST or _UNREAL.search(text):
        return 0.0
    if text.rstrip("\"')] ").endswith("?") and not _REQUEST.search(text):
        return 0.0
    return sum(weight for cue, weight in _CUES if cue.search(text))


#: Model name in responses.
MODEL = "voxframe-extractive"
#: Model name in responses to questions if a reader found the sentences.
READING = f"{MODEL} with {models.READER}"
_NAME = re.compile(r"default|basic|[\w.-]+/[\w./:-]+")
NOTHING_FITS = "No sentence of the text matches this question."
NO_ACTIONS = "No sentence of the text contains an action item."
CANNOT = (
    "Without a language model, this server can only quote the sentences that answer, summarize or name action items; "
    "the prompt {prompt!r} needs one. Start the server with --llm-url and --llm-model (or VOXFRAME_LLM_URL and "
    "VOXFRAME_LLM_MODEL) to use a language model."
)
_ALMOST = 0.9  # closeness of a second sentence for a question, relative to the first
_ENOUGH = 0.7  # closeness of further sentences for a task, relative to the first
_TELLING = 2  # a sentence with fewer content words is quoted with its question
_BLOCK = 300  # number of sentences compared with each other
_ABOUT_SUMMARY = re.compile(
    r"\b(?:summari[sz]e|summary|summari[sz]ing|overview|tl;?dr|recap|key points|main points|gist)\b", re.IGNORECASE
)
_ABOUT_ACTIONS = re.compile(
    r"\b(?:action items?|to-?dos?|next steps?|follow[- ]ups?|commitments?|what .{0,30} to do)\b", re.IGNORECASE
)
_CREATES = re.compile(
    r"^\W*(?:(?:please|now|then|kindly|could you|can you|would you|i want you to|i'd like you to|try to) )*"
    r"(?:draft|compose|write|rewrite|rephrase|paraphrase|translate|generate|create|turn|convert|transform|rate|score|"
    r"grade|classify|categori[sz]e|label|pretend|act as|imagine|role-?play|prepare|produce|make|design|reply|respond|"
    r"invent|improve|proofread|calculate|predict|format|code|evaluate|assess)\b",
    re.IGNORECASE,
)
_QUOTABLE = re.compile(
    r"\b(?:summary|summaries|overview|recap|key points|main points|highlights?|tl;?dr|gist|action items?|to-?dos?|"
    r"list of|bullet(?: point)?s)\b",
    re.IGNORECASE,
)
_BULLETS = re.compile(r"\b(?:bullets?|bulleted|list|items|points)\b", re.IGNORECASE)
_NUMBERS = "one two three four five six seven eight nine ten".split()
_PIECES = "sentence|bullet|point|item|line|paragraph|thing|highlight|takeaway|action item"
_WHICH = "short|brief|key|main|bullet|bulleted|important|top"
_COUNT = re.compile(
    rf"(?i)\b(\d{{1,2}}|{'|'.join(_NUMBERS)}|a single)[- ](?:(?:{_WHICH}) )*(?:{_PIECES})s?\b",
)
_SHORT = re.compile(r"\b(?:brief(?:ly)?|tl;?dr|headline|title|gist|in short)\b", re.IGNORECASE)


class AnswerForm(NamedTuple):
    """The form of an answer.

    Attributes:
        bullets: One sentence per line, each with a dash.
        sentences: Number of sentences; None if it is not given.
    """

    bullets: bool = False
    sentences: int | None = None

    def write(self, sentences: list[str]) -> str:
        """Return the sentences in this form."""
        return "\n".join(f"- {one}" for one in sentences) if self.bullets else " ".join(sentences)


def form_of(*texts: str) -> AnswerForm:
    """Return the form that an `answer_format` or a prompt describes.

    Example:
        >>> form_of("Three bullet points"), form_of("a JSON object")
        (AnswerForm(bullets=True, sentences=3), AnswerForm(bullets=False, sentences=None))
    """
    text = " ".join(texts)
    match = _COUNT.search(text)
    if match:
        number = match[1].lower()
        count = int(number) if number.isdigit() else 1 if number == "a single" else _NUMBERS.index(number) + 1
        return AnswerForm(bool(_BULLETS.search(text)), max(count, 1))
    return AnswerForm(bool(_BULLETS.search(text)), 1 if _SHORT.search(text) else None)


class ExtractiveAnswerer:
    """Answers by quoting."""

    def check(self, model: str) -> None:
        """Check that a `final_model` has the form of a model name. The response has the name of this model instead.

        Raises:
            RequestRefused: It has not.
        """
        if not _NAME.fullmatch(model):
            raise RequestRefused(
                f"final_model must be default, basic or a name with its vendor, like vendor/model, not {model[:80]!r}"
            )

    def answer(self, llm_request: LLMRequest, sources: Sequence[Source]) -> LLMAnswer:
        """Answer a request from the given transcripts or text."""
        index = BM25Index(sources)
        size = sum(count(line.text) for line in index.lines)
        size += count(llm_request.context) + count(llm_request.prompt)
        size += sum(count(one.question) + count(one.context) for one in llm_request.questions)
        if llm_request.task == "question-answer":
            share = max(1, llm_request.max_output_size // len(llm_request.questions))
            replies = [
                {"question": one.question, "answer": cut(_reply(index, one, llm_request), share)}
                for one in llm_request.questions
            ]
            name = MODEL if reader.find() is None else READING
            if name == MODEL:
                _tell_about_reader()
            return LLMAnswer(replies, size, sum(count(reply["answer"]) for reply in replies), name)
        text = _TASKS[llm_request.task](llm_request, sources, index)
        return LLMAnswer(text, size, count(text), MODEL)


@cache
def _tell_about_reader() -> None:
    """Say once per process how answers get better."""
    _log.info("%s. %s.", models.WITHOUT_READER, models.GET_READER)


def _reply(index: BM25Index, question: LLMQuestion, llm_request: LLMRequest) -> str:
    context = f"{llm_request.context} {question.context}".strip()
    if question.answer_options:
        return choose_option(index, question.question, question.answer_options, context)
    form = form_of(question.answer_format)
    return form.write(_found(index, question.question, context, form.sentences)) or NOTHING_FITS


def _found(index: BM25Index, question: str, context: str, most: int | None) -> list[str]:
    """Return the sentences that answer a question, in their original order."""
    every, close = _closeness(index, question, context)
    model = reader.find()
    best = _closest(index, close, most) if model is None else read(index, model, question, every, context)[: most or 2]
    places = {one.place for one in best}
    return [quoted(one.line.text) if one.place - 1 in places else _quoted(index, one) for one in in_order(best)]


def _closest(index: BM25Index, scores: Scores, most: int | None) -> list[BM25Match]:
    """Return the sentences with the highest scores.

    Without a number, it is the best one with its better neighbour, because the answer often follows what a question
    resembles; and the second best one if it is almost as close.
    """
    best = index.best(scores, most or 2)
    if best and most is None:
        best = [one for one in best if one.score >= _ALMOST * best[0].score]
        beside = index.neighbour(best[0].place, scores)
        if beside and beside.place not in {one.place for one in best}:
            best.append(beside)
    return best


def _closeness(index: BM25Index, question: str, context: str) -> tuple[Scores, Scores]:
    """Return how close each sentence is to an answer, and the same with 0 for all of them if none is close enough."""
    coder = encoder.find()
    if coder is None:
        scores = index.evidence(question, context)
        return scores, scores
    scores = index.closeness(question, coder, context)
    return scores, close_enough(scores)


def _quoted(index: BM25Index, found: BM25Match) -> str:
    """Return a sentence, preceded by its question if it says little alone ("Yes, it is.")."""
    text, question = quoted(found.line.text), index.question_before(found.place)
    return f"{question.text} {text}" if question and len(terms(found.line.text)) < _TELLING else text


def _summary(llm_request: LLMRequest, sources: Sequence[Source], _: BM25Index) -> str:
    form = form_of(llm_request.answer_format, llm_request.prompt)
    return _fitting(
        _chosen(sources, form.sentences, f"{llm_request.context} {llm_request.prompt}"),
        form,
        llm_request.max_output_size,
    )


def _task(llm_request: LLMRequest, sources: Sequence[Source], index: BM25Index) -> str:
    if _CREATES.match(llm_request.prompt) and not _QUOTABLE.search(llm_request.prompt):
        raise RequestRefused(CANNOT.format(prompt=llm_request.prompt[:80]))
    if _ABOUT_SUMMARY.search(llm_request.prompt):
        return _summary(llm_request, sources, index)
    if _ABOUT_ACTIONS.search(llm_request.prompt):
        return _actions(llm_request, sources, index)
    form = form_of(llm_request.answer_format, llm_request.prompt)
    _, close = _closeness(index, llm_request.prompt, llm_request.context)
    best = index.best(close, form.sentences or 5)
    kept = [one for one in best if form.sentences or one.score >= _ENOUGH * best[0].score]
    return _fitting([quoted(one.line.text) for one in in_order(kept)], form, llm_request.max_output_size) or cut(
        NOTHING_FITS, llm_request.max_output_size
    )


def _actions(llm_request: LLMRequest, _: Sequence[Source], index: BM25Index) -> str:
    form = form_of(llm_request.answer_format)
    places = action_items(index.lines)[: form.sentences]
    items = [_said(index.lines[place]) for place in places]
    return _fitting(items, AnswerForm(bullets=True), llm_request.max_output_size) or cut(
        NO_ACTIONS, llm_request.max_output_size
    )


def _said(line: Line) -> str:
    return line.text if line.speaker is None else f"{line.speaker}: {line.text}"


_TASKS = {"summary": _summary, "task": _task, "action-items": _actions}


def _chosen(sources: Sequence[Source], most: int | None, about: str) -> list[str]:
    """Return the most representative sentences, distributed over the sources by length, at least one of each."""
    total = sum(len(source.lines) for source in sources)
    wanted_count = most or min(8, max(3, total // 12))
    blocks = [block for source in sources for block in _blocks(source)]
    shares = [max(1, round(wanted_count * len(block) / total)) for block in blocks]
    found: list[tuple[float, int, int, str]] = []
    for at, (block, share) in enumerate(zip(blocks, shares, strict=True)):
        texts = [line.text for line in block]
        values = scores(texts)
        if about.strip():
            bias = BM25Index([Source(block)]).matches(about)
            values = [value + float(more) / (bias.max() or 1.0) for value, more in zip(values, bias, strict=True)]
        found += [(values[place], at, place, quoted(texts[place])) for place in choose(texts, share, values)]
    # Every block contributed at least one sentence; if that is too many, keep the best.
    keep = sorted(found, key=lambda one: -one[0])[: most or max(wanted_count, len(sources))]
    return [text for _, _, _, text in sorted(keep, key=lambda one: one[1:3])]


def _blocks(source: Source) -> list[Sequence[Line]]:
    return [source.lines[at : at + _BLOCK] for at in range(0, len(source.lines), _BLOCK)]


def _fitting(sentences: Sequence[str], form: AnswerForm, most: int) -> str:
    """Return as many sentences as fit into `most` tokens; if none fits, the beginning of the first."""
    kept: list[str] = []
    for sentence in sentences:
        if count(form.write([*kept, sentence])) > most:
            break
        kept.append(sentence)
    return form.write(kept) if kept else cut(form.write(list(sentences[:1])), most)
