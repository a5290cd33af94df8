"""Which sentences of a stretch to quote for it, and how to quote them. Nothing is ever put into other words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voxframe.local.analyses.english import content, words_of
from voxframe.local.analyses.features import rows, term_weights
from voxframe.local.analyses.key_phrases import key_phrases
from voxframe.local.analyses.passages import Sentence, joined

_EARLY = 0.6  # what being first is worth, beside up to 1 for the words
_LEADS_NOWHERE = re.compile(r"(?:it|they|he|she|this|that|these|those|yes|no|which|there)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:and|so|but|well|now|yeah|yes|no|okay|ok|right|um|uh|oh|you know|i mean|i think|of course|finally|again)\b"
    r",? )+",
    re.IGNORECASE,
)
_MANNERS = re.compile(
    r"(?:good (?:morning|evening|afternoon|night)|hello|hi|thanks?|welcome|goodbye|bye)\b", re.IGNORECASE
)
_SAME = 0.6  # cosine of two sentences from which on one of them is enough
_HEADLINE = 110  # characters


def scores(texts: Sequence[str]) -> list[float]:
    """How much each sentence tells of all of them together: its words, less what makes it hard to quote."""
    whole = term_weights(joined([{"text": text} for text in texts]))
    values = []
    for text in texts:
        length = max(1, len(words_of(text)))
        value = sum(whole.get(term, 0.0) ** 0.5 for term in term_weights(text)) / length**0.5
        value *= 0.5 if text.rstrip().endswith("?") else 1.0
        value *= 0.85 if _LEADS_NOWHERE.match(text) else 1.0
        value *= 0.5 if length < 5 or _MANNERS.match(text) else 1.0
        values.append(value)
    greatest = max(values, default=0.0) or 1.0
    return [value / greatest + _EARLY * (1 - at / len(values)) for at, value in enumerate(values)]


def choose(texts: Sequence[str], count: int, values: Sequence[float] | None = None) -> list[int]:
    """Places of the sentences to quote, in order; of two that say the same only one."""
    ranking = scores(texts) if values is None else values
    alike = rows(texts, labels=False)
    alike = alike @ alike.T
    chosen: list[int] = []
    for at in sorted(range(len(texts)), key=lambda at: -ranking[at]):
        if len(chosen) < count and all(alike[at, other] < _SAME for other in chosen):
            chosen.append(at)
    return sorted(chosen)


def quoted(text: str) -> str:
    """A sentence without the small words that open it.

    Example:
        >>> quoted("And so, well, the roots were broken.")
        'The roots were broken.'
    """
    rest = _OPENING.sub("", text.replace("so, well,", "so well,"))
    rest = rest or text
    return rest[:1].upper() + rest[1:]


def headline(texts: Sequence[str]) -> str:
    """The sentence that tells most in little space, without its full stop."""
    if not texts:
        return ""
    values = [
        value * (1.0 if len(text) <= _HEADLINE else 0.6) for value, text in zip(scores(texts), texts, strict=True)
    ]
    best = quoted(texts[max(range(len(texts)), key=values.__getitem__)])
    if len(best) > _HEADLINE:
        best = best[:_HEADLINE].rpartition(" ")[0].rstrip(",;:") + "..."
    return best.rstrip(".")


def gist(sentences: Sequence[Sentence]) -> str:
    """A few words: the two best key phrases, or the beginning of the headline where there are none."""
    phrases = [result["text"] for result in key_phrases(sentences)["results"]]
    if not phrases:
        return " ".join(headline([sentence["text"] for sentence in sentences]).split()[:6])
    other = next((phrase for phrase in phrases[1:] if set(content(phrase)).isdisjoint(content(phrases[0]))), None)
    text = phrases[0] if other is None else f"{phrases[0]} and {other}"
    return text[:1].upper() + text[1:]
