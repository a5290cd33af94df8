"""Sentences in which somebody takes on something to do, or is asked to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voxframe.local.llm.material import Line

_LEAST = 1.0
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
        # Somebody takes it on.
        (rf"\b(?:i|we)(?:'ll| will| shall) {_ADVERB}{_IDLE}\w+ \w", 1.0),
        (rf"\b(?:i am|i'm|we are|we're) going to {_IDLE}\w+ \w", 1.0),
        (rf"\b(?:i|we) (?:can|could) {_ADVERB}(?:{_TASK_WORDS})\b", 0.6),
        (rf"\b(?:i|we) (?:promise|plan|intend|want) to (?:{_TASK_WORDS})\b", 1.0),
        # Somebody is meant to do it.
        (rf"\b{_SOMEBODY} (?:need|needs|has|have|'ve got|ought) to {_ADVERB}{_IDLE}\w", 1.0),
        (rf"{_THEN}{_THIRD} (?:needs|has|ought) to {_IDLE}\w", 1.0),
        (rf"{_THEN}{_THIRD} (?:will|should|must) (?:{_TASK_WORDS})\b", 1.0),
        (rf"\b{_SOMEBODY} (?:should|must) {_ADVERB}(?!have\b){_IDLE}\w", 1.0),
        (r"\b(?:needs?|has|have) to be (?:\w+ed|done|sent|made|written|bought|paid)\b", 1.0),
        # Somebody is asked to.
        (rf"\b(?:can|could|would|will) you (?:please )?(?:{_TASK_WORDS})\b(?! (?:you|say))", 1.0),
        (r"\bplease (?!note\b|forgive\b|excuse\b|welcome\b|be\b|tell\b)\w", 1.0),
        (r"\b(?:don't|do not) forget\b|\bremember to\b|\bmake sure\b|\bbe sure to\b", 1.0),
        (rf"{_THEN}(?:{_IMPERATIVES}) {_OBJECT}\b", 1.0),
        (rf"\b(?:let's|let us) (?:{_TASK_WORDS})\b(?! (?:about|with))", 1.0),
        # It is called what it is.
        (r"\b(?:action items?|to-?do|follow[- ]up|next steps?|deadline|assigned to)\b", 1.0),
        # By when.
        (rf"\b(?:by|before|until|on|this|next) {_TIME}\b", 0.5),
        (r"\b(?:today|tomorrow|tonight|as soon as possible|right away)\b", 0.5),
    )
]
_REQUEST = re.compile(r"\b(?:can|could|would|will) you\b|\bplease\b", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:if (?:i|we|they|you) (?:had|were)|would have|should have|could have|used to)\b", re.IGNORECASE
)


def action_items(lines: Sequence[Line]) -> list[int]:
    """Places of the sentences that hold something to do, in order.

    Example:
        >>> said = [Line("The server was down."), Line("I will call them tomorrow."), Line("Can you write it down?")]
        >>> action_items(said)
        [1, 2]
    """
    return [place for place, line in enumerate(lines) if _weight(line.text) >= _LEAST]


def _weight(text: str) -> float:
    if len(text.split()) < _SHORTEST or _UNREAL.search(text):
        return 0.0
    if text.rstrip("\"')] ").endswith("?") and not _REQUEST.search(text):
        return 0.0
    return sum(weight for cue, weight in _CUES if cue.search(text))
