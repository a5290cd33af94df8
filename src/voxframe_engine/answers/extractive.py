"""Answers without a language model: the sentences that answer, or that contain an action item, are quoted.

What a prompt asks for decides if quoting can answer it (`task_kind`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from voxframe_engine import RequestRefused
from voxframe_engine.analyses.chapters import choose, quoted, scores
from voxframe_engine.answers import (
    QUOTING,
    Line,
    LLMAnswer,
    LLMQuestion,
    LLMRequest,
    Report,
    Source,
    count,
    cut,
    unreported,
)
from voxframe_engine.answers.ranking import (
    BM25Index,
    EncodedText,
    Match,
    Scores,
    choose_option,
    find_model,
    in_order,
    terms,
    wants_yes_or_no,
)

#: What quoting can do.
TaskKind: TypeAlias = Literal["summary", "action-items", "question"]


def _any_of(*patterns: str) -> str:
    """Return a pattern for one of several patterns."""
    return f"(?:{'|'.join(patterns)})"


_RECORDING = r"(?:transcript|call|recording|talk|conversation|meeting|interview|text|discussion)s?"
_WISH = r"(?:i|we)(?: want| need|'d like| would like|'d love)"
#: What may come before the request itself.
_OPENING = _any_of(
    r"ok(?:ay)?|hi|hello|please|pls|now|then|so|and|just|kindly|quickly|briefly|help me(?: to)?|try to|let's",
    r"(?:can|could|would|will) you",
    rf"{_WISH}(?: you)? to",
    r"(?:read|go|look)(?: through| over)? (?:the|this) \w+ and",
    rf"(?:from|in|based on|according to|using|for|after reading|looking at) \w+ (?:\w+ )?{_RECORDING}",
)
_START = rf"^\W*(?:{_OPENING}[,:]? )*"
_SUMMARY = _any_of(
    r"summar(?:y|ies)|overviews?|recaps?|synopsis|outline|abstract|gist|essence|tl;?dr|highlights?|takeaways?",
    r"(?:key|main|important|central|essential) (?:points?|messages?|ideas?|takeaways?|topics|statements|arguments)",
    r"bullets?(?: points)?|summari[sz](?:e|ing)|sum (?:it |this |that |\w+ \w+ )?up|recapitulate|condense|boil",
)
_ACTIONS = _any_of(
    r"action (?:items?|points?|list)|to-?do(?: list|s)?|next steps?|follow[- ]?ups?|commitments?|promises|assignments?",
    r"(?:open|outstanding|remaining) (?:tasks?|items?)|tasks? (?:that|which|for|to)|deliverables",
)
_GIVE = _any_of(
    r"write(?: up| down)?|give|provide|create|make|prepare|generate|produce|draft|compile|do|get|return|show|list|send",
    r"extract|pull(?: out)?|collect|gather|need|want|find|note|pick out|tell|have|identify|name|read out|output|see",
    _WISH,
    r"i'm (?:looking for|after)|looking for|what i need is",
)
_DETERMINER = _any_of(
    r"an?|the|all|any|every|each|of|our|my|their|his|her|this|these|those|me|us|top|most|single|lists?|\d+",
    r"one|two|three|four|five|six|seven|eight|nine|ten|\w+-(?:sentence|line|point|bullet|paragraph)|sentence|line",
    r"short|brief|concise|quick|tight|compact|rough|good|complete|full|detailed|executive|general|high-?level|plain",
    r"simple|neutral|factual|bulleted|bullets?|important|agreed|open|remaining|outstanding|meeting|call|conversation",
)
#: Texts that would have to be written.
_TEXT = _any_of(
    r"e-?mails?|letters?|memos?|tweets?|posts?|articles?|poems?|haikus?|songs?|lyrics|limericks?|raps?|jokes?",
    r"stor(?:y|ies)|fairy tales?|essays?|press releases?|newsletters?|slides?|presentations?|scripts?|sketch(?:es)?",
    r"json|csv|xml|ya?ml|html|latex|markdown|tables?|spreadsheets?|diagrams?|charts?|graphs?|mind ?maps?|code|sql",
    r"python|quiz(?:zes)?|flash ?cards?|speech|slogans?|taglines?|captions?|titles?|headlines?|repl(?:y|ies)|response",
    r"advice|recommendations?|ideas for|alternatives?|translations?|versions?|paraphrases?|scores?|ratings?|grades?",
    r"sentiment|persona|pitch|ad|advert(?:isement)?s?|faqs?|agenda",
)
_LANGUAGE = _any_of(
    r"arabic|bengali|bulgarian|cantonese|catalan|chinese|croatian|czech|danish|dutch|estonian|farsi|finnish|french",
    r"gaelic|german|greek|hebrew|hindi|hungarian|icelandic|indonesian|irish|italian|japanese|korean|latin|latvian",
    r"lithuanian|malay|mandarin|norwegian|persian|polish|portuguese|romanian|russian|serbian|slovak|slovenian|spanish",
    r"swahili|swedish|tagalog|tamil|thai|turkish|ukrainian|urdu|vietnamese|welsh|yiddish",
)
_DEFINITE = r"(?:the|this|that|his|her|its|their|our|your|my|last|first) "
#: Forms that no quotation has.
_OTHER_FORM = re.compile(
    _any_of(
        rf"\b(?:in|into|to) (?:\w+ )?{_LANGUAGE}\b(?! (?:class|lesson|school|course|department|market|team|office))",
        rf"\b(?:as|into|in the (?:form|format) of|like|in) (?:an? |some |valid |plain )*"
        rf"(?:(?!{_DEFINITE})[\w-]+ )?{_TEXT}\b",
        r"\b(?:json|csv|xml|ya?ml|html|latex|markdown)\b",
        r"\b(?:in|with|using) (?:an? )?(?:\w+ )?(?:style|voice|tone|manner|rhymes?|verse|emojis?|slang|own words)\b",
        r"\b(?:in the style|as if|as though|like i'm|simpler (?:words|terms|language))\b",
        r"\w[- ]year[- ]old|\bfor a (?:child|layman|beginner)\b",
        r"\bon a scale\b|\b(?:from|between) (?:1|one|0|zero) (?:to|and) \w+|\bout of (?:5|10|ten|five)\b",
    ),
    re.IGNORECASE,
)
#: "Give me a headline", "Email to the team"; but not "the e-mail that was mentioned", which asks for a sentence.
_WRITES = re.compile(
    _any_of(
        rf"{_START}(?:{_GIVE}|suggest)(?: me| us)? (?:(?:some|{_DETERMINER}) )*(?:[\w-]+ )?{_TEXT}\b"
        r"(?! (?:address(?:es)?|numbers?|that (?:was|were|is|are)|(?:(?:was|were) )?mentioned))",
        rf"^\W*(?:[\w-]+ ){{0,4}}{_TEXT} (?:to|for) \w+",
    ),
    re.IGNORECASE,
)
_ABOUT_SUMMARY, _ABOUT_ACTIONS = (
    re.compile(rf"{_START}(?:{_GIVE} )?(?:{_DETERMINER} )*{noun}\b(?! {_TEXT}\b)", re.IGNORECASE)
    for noun in (_SUMMARY, _ACTIONS)
)
_WHAT_TO_DO = re.compile(
    r"\b(?:what|who|which)\b.{0,40}\b(?:to do|next steps?|follow[- ]?ups?|action items?|committed to|agreed to do)\b"
    r"(?! (?:with|about))",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    _START
    + _any_of(
        r"(?:(?:at|in|on|by|for|from|to|with|of|about|until|since|under) )?(?:what|which|whom?|whose|when|where)\b",
        r"(?:why|how)\b",
        r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|shall|may|might)(?:n't)? (?!you\b)\w",
        r"(?:(?:any|every|some)(?:thing|one|body)?|all)\b",
        r"(?:find|locate|search|look (?:for|up)|(?:i'm |i am )?looking for|note|list|show|quote|cite|name|identify)\b",
        r"(?:point (?:out|to)|tell|mention|extract|pull (?:out|up)|pick out|highlight|collect|gather|check|see|know)\b",
        r"(?:hear|read out|describe|explain|give|get|provide|return|remind|state|specify|enumerate|count)\b",
    ),
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"\?\W*$")


def task_kind(prompt: str) -> TaskKind | None:
    """Return what quoting can do for a prompt; None if only a language model can do what it asks for.

    Example:
        >>> task_kind("Why was it late?"), task_kind("Next steps, please"), task_kind("Recap as a poem")
        ('question', 'action-items', None)
    """
    if needs_writing(prompt) or _WRITES.match(prompt):
        return None
    if _ABOUT_SUMMARY.match(prompt):
        return "summary"
    if _ABOUT_ACTIONS.match(prompt) or _WHAT_TO_DO.search(prompt):
        return "action-items"
    return "question" if _QUESTION.match(prompt) or _QUESTION_MARK.search(prompt) else None


def needs_writing(form: str) -> bool:
    """Return True for the description of an answer that no quotation has: another language, a poem, JSON.

    Example:
        >>> needs_writing("three bullets"), needs_writing("one sentence in German")
        (False, True)
    """
    return bool(_OTHER_FORM.search(form))


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
    """Return the indexes of the sentences that contain an action item, in order."""
    return [place for place, line in enumerate(lines) if _weight(line.text) >= _LEAST_WEIGHT]


def _weight(text: str) -> float:
    if len(text.split()) < _SHORTEST or _UNREAL.search(text):
        return 0.0
    if text.rstrip("\"')] ").endswith("?") and not _REQUEST.search(text):
        return 0.0
    return sum(weight for cue, weight in _CUES if cue.search(text))


_NAME = re.compile(r"default|basic|[\w.-]+/[\w./:-]+")
NOTHING_FITS = "No sentence of the text matches this question."
NO_ACTIONS = "No sentence of the text contains an action item."
CANNOT = (
    "Without a language model, this server can only quote sentences: those that answer a question, a summary, or "
    "action items. {asked!r} needs a model. Start the server with --llm-url and --llm-model (or VOXFRAME_LLM_URL and "
    "VOXFRAME_LLM_MODEL) to use a language model."
)
_LEAST_LOG_ODDS = -1.5  # of the best sentence; below it, a question is refused
_MOST_BEHIND = 4.0  # further sentences are quoted if their log-odds are at most this much lower
_AFTER_QUESTION = 1.0  # added to the log-odds of a question of the text, for the sentence after it
_BY_CONTEXT = 2.0  # added to the log-odds of the sentence with most words of the context, to order sentences
_MOST_OF_QUESTION, _MOST_OF_TASK = 3, 5  # sentences
_ALMOST = 0.9  # without the model: score of a second sentence for a question, relative to the first
_ENOUGH = 0.7  # without the model: score of further sentences for a task, relative to the first
_TELLING = 2  # a sentence with fewer content words is quoted with its question
_BLOCK = 300  # number of sentences compared with each other
_BULLETS = re.compile(r"\b(?:bullets?|bulleted|list|items|points)\b", re.IGNORECASE)
_NUMBERS = "one two three four five six seven eight nine ten".split()
_PIECES = "sentence|bullet|point|item|line|paragraph|thing|highlight|takeaway|action item"
_WHICH = "short|brief|key|main|bullet|bulleted|important|top"
_COUNT = re.compile(
    rf"(?i)\b(\d{{1,2}}|{'|'.join(_NUMBERS)}|a single)[- ](?:(?:{_WHICH}) )*(?:{_PIECES})s?\b",
)
_SHORT = re.compile(r"\b(?:brief(?:ly)?|tl;?dr|headline|title|gist|in short)\b", re.IGNORECASE)


class AnswerForm(NamedTuple):
    """The form of an answer."""

    bullets: bool = False
    sentences: int | None = None

    def write(self, sentences: list[str]) -> str:
        """Return the sentences in this form."""
        return "\n".join(f"- {sentence}" for sentence in sentences) if self.bullets else " ".join(sentences)


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


class RequestText:
    """The sentences of a request."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.index = BM25Index(sources)

    @cached_property
    def encoded(self) -> EncodedText | None:
        """The sentences, to be compared with questions; None without the model."""
        model = find_model()
        texts = [line.text for line in self.index.lines]
        return None if model is None else EncodedText(model, texts, self.index.is_first, self.index.is_question)

    def log_odds(self, question: str) -> Scores:
        """Return the log-odds that each sentence answers a question, rather than that the text does not answer it.

        The sentence after a question of the text is at least as good as that question, which itself is no answer: -inf.
        """
        assert self.encoded is not None
        scores, nothing = self.encoded.compare(question, self.index.shared(question))
        odds, asks = scores - nothing, self.index.is_question
        follows = np.roll(asks, 1) & ~self.index.is_first
        odds = np.where(follows, np.maximum(odds, np.roll(odds, 1) + _AFTER_QUESTION), odds)
        odds[asks] = -np.inf
        if not wants_yes_or_no(question):  # "Yes, it is." answers only a question that can be answered with yes
            odds[self.index.is_bare] = -np.inf
        return odds


class ExtractiveAnswerer:
    """Answers by quoting."""

    def check(self, model: str) -> None:
        """Check that a `final_model` has the form of a model name. The response has the name of this model instead."""
        if not _NAME.fullmatch(model):
            raise RequestRefused(
                f"final_model must be default, basic or a name with its vendor, like vendor/model, not {model[:80]!r}"
            )

    def answer(
        self,
        llm_request: LLMRequest,
        sources: Sequence[Source],
        report: Report = unreported,  # noqa: ARG002 - quoting is quick
    ) -> LLMAnswer:
        """Answer a request from the given transcripts or text."""
        for form in (llm_request.answer_format, *(asked.answer_format for asked in llm_request.questions)):
            if needs_writing(form):
                raise RequestRefused(CANNOT.format(asked=form[:80]))
        text = RequestText(sources)
        size = sum(count(line.text) for line in text.index.lines)
        size += count(llm_request.context) + count(llm_request.prompt)
        size += sum(count(asked.question) + count(asked.context) for asked in llm_request.questions)
        if llm_request.task == "question-answer":
            share = max(1, llm_request.max_output_size // len(llm_request.questions))
            replies = [
                {"question": asked.question, "answer": cut(_reply(text, asked, llm_request), share)}
                for asked in llm_request.questions
            ]
            return LLMAnswer(replies, size, sum(count(reply["answer"]) for reply in replies), QUOTING)
        answer = _TASKS[llm_request.task](llm_request, sources, text)
        return LLMAnswer(answer, size, count(answer), QUOTING)


def _reply(text: RequestText, question: LLMQuestion, llm_request: LLMRequest) -> str:
    context = f"{llm_request.context} {question.context}".strip()
    if question.answer_options:
        return choose_option(text.index, question.question, question.answer_options, context)
    form = form_of(question.answer_format)
    if text.encoded is None:
        best = _closest(text.index, text.index.evidence(question.question, context), form.sentences)
    else:
        best = _answers(text, question.question, context, form.sentences or _MOST_OF_QUESTION, form.sentences)
    places = {match.place for match in best}
    sentences = [
        quoted(match.line.text) if match.place - 1 in places else _quoted(text.index, match) for match in in_order(best)
    ]
    return form.write(sentences) or NOTHING_FITS


def _answers(text: RequestText, question: str, context: str, most: int, wanted: int | None) -> list[Match]:
    """Return the sentences that answer a question, the best one first; an empty list if the text does not answer it.

    Args:
        context: Its context. Of sentences that are about as good, those with its words come first.
        wanted: Number of sentences that the user wants. None: the best one, and others that are almost as good.
    """
    odds = text.log_odds(question)
    if odds.max(initial=-np.inf) < _LEAST_LOG_ODDS:
        return []
    about = text.index.matches(context)
    odds += _BY_CONTEXT * about / (about.max() or 1.0)
    order = np.argsort(-odds, kind="stable")[:most].tolist()
    least = _LEAST_LOG_ODDS if wanted else odds[order[0]] - _MOST_BEHIND
    return [Match(at, text.index.lines[at], float(odds[at])) for at in order if odds[at] >= least]


def _closest(index: BM25Index, scores: Scores, most: int | None) -> list[Match]:
    """Return the sentences with the highest scores.

    Without a number, it is the best one with its better neighbour, because the answer often follows what a question
    resembles; and the second best one if it is almost as close.
    """
    best = index.best(scores, most or 2)
    if best and most is None:
        best = [match for match in best if match.score >= _ALMOST * best[0].score]
        beside = index.neighbour(best[0].place, scores)
        if beside and beside.place not in {match.place for match in best}:
            best.append(beside)
    return best


def _quoted(index: BM25Index, match: Match) -> str:
    """Return a sentence, preceded by its question if it says little alone ("Yes, it is.")."""
    text, question = quoted(match.line.text), index.question_before(match.place)
    return f"{question.text} {text}" if question and len(terms(match.line.text)) < _TELLING else text


def _summary(llm_request: LLMRequest, sources: Sequence[Source], _: RequestText) -> str:
    form = form_of(llm_request.answer_format, llm_request.prompt)
    return _fitting(
        _chosen(sources, form.sentences, f"{llm_request.context} {llm_request.prompt}"),
        form,
        llm_request.max_output_size,
    )


def _task(llm_request: LLMRequest, sources: Sequence[Source], text: RequestText) -> str:
    kind = task_kind(llm_request.prompt)
    if kind is None:
        raise RequestRefused(CANNOT.format(asked=llm_request.prompt[:80]))
    if kind != "question":
        return _TASKS[kind](llm_request, sources, text)
    form = form_of(llm_request.answer_format, llm_request.prompt)
    prompt, context = llm_request.prompt, llm_request.context
    most = form.sentences or _MOST_OF_TASK
    if text.encoded is None:
        best = text.index.best(text.index.evidence(prompt, context), most)
        matches = [match for match in best if form.sentences or match.score >= _ENOUGH * best[0].score]
    else:
        matches = _answers(text, prompt, context, most, form.sentences)
    return _fitting([quoted(match.line.text) for match in in_order(matches)], form, llm_request.max_output_size) or cut(
        NOTHING_FITS, llm_request.max_output_size
    )


def _actions(llm_request: LLMRequest, _: Sequence[Source], text: RequestText) -> str:
    form = form_of(llm_request.answer_format)
    places = action_items(text.index.lines)[: form.sentences]
    items = [_said(text.index.lines[place]) for place in places]
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
    candidates: list[tuple[float, int, int, str]] = []
    for at, (block, share) in enumerate(zip(blocks, shares, strict=True)):
        texts = [line.text for line in block]
        values = scores(texts)
        if about.strip():
            bias = BM25Index([Source(block)]).matches(about)
            values = [value + float(bonus) / (bias.max() or 1.0) for value, bonus in zip(values, bias, strict=True)]
        candidates += [(values[place], at, place, quoted(texts[place])) for place in choose(texts, share, values)]
    # Every block contributed at least one sentence; if that is too many, keep the best.
    keep = sorted(candidates, key=lambda candidate: -candidate[0])[: most or max(wanted_count, len(sources))]
    if not keep:  # no sentence stands alone
        texts = [line.text for source in sources for line in source.lines]
        return [quoted(max(zip(scores(texts), texts, strict=True))[1])] if texts else []
    return [text for _, _, _, text in sorted(keep, key=lambda candidate: candidate[1:3])]


def _blocks(source: Source) -> list[Sequence[Line]]:
    return [source.lines[at : at + _BLOCK] for at in range(0, len(source.lines), _BLOCK)]


def _fitting(sentences: Sequence[str], form: AnswerForm, most: int) -> str:
    """Return as many sentences as fit into `most` tokens; if none fits, the beginning of the first."""
    texts: list[str] = []
    for sentence in sentences:
        if count(form.write([*texts, sentence])) > most:
            break
        texts.append(sentence)
    return form.write(texts) if texts else cut(form.write(list(sentences[:1])), most)
