"""Chooses among given answers: the one that the sentences about the question speak for most."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voxframe.local.analyses.english import words_of
from voxframe.local.llm.ranking import Found, Index, terms

_LOOKED_AT = 6  # sentences
_YES, _NO = frozenset({"yes", "true", "correct"}), frozenset({"no", "false", "incorrect"})
_OTHERWISE = re.compile(
    r"(?i)\W*(?:n/?a|none|neither|other|unknown|unclear|unsure|not (?:mentioned|stated|known|sure|applicable))\b"
)
_OPENING = r"(?i)\W*(?:(?:oh|well|mostly|i think),? )*"
_SAYS_YES = re.compile(
    _OPENING
    + r"(?:yes|yeah|yep|sure|certainly|absolutely|of course|indeed|exactly|definitely|correct|that(?: i|')s right)\b"
)
_SAYS_NO = re.compile(_OPENING + r"(?:no|nope|not really|not at all|never|i don't think so)\b(?! doubt)")
_NEGATED = re.compile(r"(?i)\b(?:not|no|never|nobody|none|nothing|cannot|without|hardly|unable|neither|nor)\b|n't\b")
NO_EVIDENCE = "No sentence of the material speaks for any of the options."


def choose(index: Index, question: str, options: Sequence[str], context: str = "") -> str:
    """The option with the most evidence.

    Returns:
        It as it was given. Where nothing speaks for any of them: an option that says so, such as "not mentioned" or
        "other", else `NO_EVIDENCE`; none is made up.
    """
    fallback = next((option for option in options if _OTHERWISE.match(option)), NO_EVIDENCE)
    found = index.best(index.evidence(question, context), _LOOKED_AT)
    yes = next((option for option in options if option.strip(" .").lower() in _YES), None)
    no = next((option for option in options if option.strip(" .").lower() in _NO), None)
    if yes is not None and no is not None:
        return (yes if _is_so(index, found, question) else no) if found else fallback
    scores = {option: _score(index, found, option) for option in options if option is not fallback}
    best = max(scores, key=scores.__getitem__, default=fallback)
    return best if scores.get(best, 0.0) > 0 else fallback


def _is_so(index: Index, found: Sequence[Found], question: str) -> bool:
    """Whether the sentence that answers a question best says yes to it."""
    asked_negative = bool(_NEGATED.search(question))
    for one in found:
        if _SAYS_YES.match(one.line.text):
            return True
        if _SAYS_NO.match(one.line.text):
            return False
        if index.question_before(one.place):
            break
    return bool(_NEGATED.search(found[0].line.text)) == asked_negative


def _score(index: Index, found: Sequence[Found], option: str) -> float:
    """What the sentences about a question say of an option, and a little of what all others do."""
    wanted = set(terms(option)) or set(words_of(option))
    whole = sum(map(index.weight, wanted)) or 1.0

    def part(text: str) -> float:
        held = {*terms(text), *words_of(text)}
        return sum(index.weight(term) for term in wanted & held) / whole

    near = sum(one.score * part(one.line.text) for one in found)
    anywhere = float(index.matches(option).max(initial=0.0))
    return near + 0.05 * anywhere
