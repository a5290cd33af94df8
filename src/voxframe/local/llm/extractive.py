"""The answerer without a language model: it quotes the sentences that answer, and writes none of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voxframe.local.analyses.extract import choose, quoted, scores
from voxframe.local.asked import Refused
from voxframe.local.llm.actions import action_items
from voxframe.local.llm.answerer import Response
from voxframe.local.llm.asked import Asked, Question
from voxframe.local.llm.choosing import choose as choose_option
from voxframe.local.llm.form import Form, wanted
from voxframe.local.llm.material import Line, Source
from voxframe.local.llm.ranking import Found, Index, in_order, terms
from voxframe.local.llm.tokens import count, cut

#: What answers call this model.
MODEL = "voxframe-extractive"
_NAME = re.compile(r"default|basic|[\w.-]+/[\w./:-]+")
NOTHING_FITS = "No sentence of the material matches this question."
NO_ACTIONS = "No sentence of the material says that something is to be done."
_TELLING = 2  # words that carry something, under which a sentence says little alone
_BLOCK = 300  # sentences that are compared with each other
_ABOUT_SUMMARY = re.compile(
    r"\b(?:summari[sz]e|summary|summari[sz]ing|overview|tl;?dr|recap|key points|main points|gist)\b", re.IGNORECASE
)
_ABOUT_ACTIONS = re.compile(
    r"\b(?:action items?|to-?dos?|next steps?|follow[- ]ups?|commitments?|what .{0,30} to do)\b", re.IGNORECASE
)


class Extractive:
    """Answers by quoting."""

    def check(self, model: str) -> None:
        """Check that a `final_model` is a name. What answers is this, and the answer says so.

        Raises:
            Refused: It is none.
        """
        if not _NAME.fullmatch(model):
            raise Refused(
                f"final_model must be default, basic or a name with its vendor, like vendor/model, not {model[:80]!r}"
            )

    def answer(self, asked: Asked, sources: Sequence[Source]) -> Response:
        """Answer a request from its material."""
        index = Index(sources)
        read = sum(count(line.text) for line in index.lines)
        read += count(asked.context) + count(asked.prompt)
        read += sum(count(one.question) + count(one.context) for one in asked.questions)
        if asked.task == "question-answer":
            share = max(1, asked.max_output_size // len(asked.questions))
            replies = [
                {"question": one.question, "answer": cut(_reply(index, one, asked), share)} for one in asked.questions
            ]
            return Response(replies, read, sum(count(reply["answer"]) for reply in replies), MODEL)
        text = _TASKS[asked.task](asked, sources, index)
        return Response(text, read, count(text), MODEL)


def _reply(index: Index, question: Question, asked: Asked) -> str:
    context = f"{asked.context} {question.context}".strip()
    if question.answer_options:
        return choose_option(index, question.question, question.answer_options, context)
    form = wanted(question.answer_format)
    return form.write(_found(index, question.question, context, form.sentences)) or NOTHING_FITS


def _found(index: Index, question: str, context: str, most: int | None) -> list[str]:
    """The sentences that answer a question, in the order they were said."""
    best = index.best(index.evidence(question, context), most or 2)
    if most is None:  # a second sentence only where it is nearly as good, or goes on from the first
        best = [one for one in best if one.score >= 0.7 * best[0].score or one.place == best[0].place + 1]
    return [_quoted(index, one) for one in in_order(best)]


def _quoted(index: Index, found: Found) -> str:
    """A sentence; one like "Yes, it is." with the question before it, without which it says nothing."""
    text, question = quoted(found.line.text), index.question_before(found.place)
    return f"{question.text} {text}" if question and len(terms(found.line.text)) < _TELLING else text


def _summary(asked: Asked, sources: Sequence[Source], _: Index) -> str:
    form = wanted(asked.answer_format, asked.prompt)
    return _fitting(_chosen(sources, form.sentences, f"{asked.context} {asked.prompt}"), form, asked.max_output_size)


def _task(asked: Asked, sources: Sequence[Source], index: Index) -> str:
    if _ABOUT_SUMMARY.search(asked.prompt):
        return _summary(asked, sources, index)
    if _ABOUT_ACTIONS.search(asked.prompt):
        return _actions(asked, sources, index)
    form = wanted(asked.answer_format, asked.prompt)
    best = index.best(index.evidence(asked.prompt, asked.context), form.sentences or 5)
    kept = [one for one in best if form.sentences or one.score >= 0.3 * best[0].score]
    return _fitting([quoted(one.line.text) for one in in_order(kept)], form, asked.max_output_size) or cut(
        NOTHING_FITS, asked.max_output_size
    )


def _actions(asked: Asked, _: Sequence[Source], index: Index) -> str:
    form = wanted(asked.answer_format)
    places = action_items(index.lines)[: form.sentences]
    items = [_said(index.lines[place]) for place in places]
    return _fitting(items, Form(bullets=True), asked.max_output_size) or cut(NO_ACTIONS, asked.max_output_size)


def _said(line: Line) -> str:
    return line.text if line.speaker is None else f"{line.speaker}: {line.text}"


_TASKS = {"summary": _summary, "task": _task, "action-items": _actions}


def _chosen(sources: Sequence[Source], most: int | None, about: str) -> list[str]:
    """The sentences that tell most, shared out among the sources by their length, at least one of each."""
    total = sum(len(source.lines) for source in sources)
    wanted_count = most or min(8, max(3, total // 12))
    blocks = [block for source in sources for block in _blocks(source)]
    shares = [max(1, round(wanted_count * len(block) / total)) for block in blocks]
    found: list[tuple[float, int, int, str]] = []
    for at, (block, share) in enumerate(zip(blocks, shares, strict=True)):
        texts = [line.text for line in block]
        values = scores(texts)
        if about.strip():
            bias = Index([Source(block)]).matches(about)
            values = [value + float(more) / (bias.max() or 1.0) for value, more in zip(values, bias, strict=True)]
        found += [(values[place], at, place, quoted(texts[place])) for place in choose(texts, share, values)]
    # Of many blocks each gave one; where fewer are wanted, the best stay.
    keep = sorted(found, key=lambda one: -one[0])[: most or max(wanted_count, len(sources))]
    return [text for _, _, _, text in sorted(keep, key=lambda one: one[1:3])]


def _blocks(source: Source) -> list[Sequence[Line]]:
    return [source.lines[at : at + _BLOCK] for at in range(0, len(source.lines), _BLOCK)]


def _fitting(sentences: Sequence[str], form: Form, most: int) -> str:
    """As many sentences as fit; of the first a part, where not even that does."""
    kept: list[str] = []
    for sentence in sentences:
        if count(form.write([*kept, sentence])) > most:
            break
        kept.append(sentence)
    return form.write(kept) if kept else cut(form.write(list(sentences[:1])), most)
