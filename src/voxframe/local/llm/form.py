"""How an answer should look, as far as words of the request say so."""

from __future__ import annotations

import re
from typing import NamedTuple

_BULLETS = re.compile(r"\b(?:bullets?|bulleted|list|items|points)\b", re.IGNORECASE)
_NUMBERS = "one two three four five six seven eight nine ten".split()
_PIECES = "sentence|bullet|point|item|line|paragraph|thing|highlight|takeaway|action item"
_WHICH = "short|brief|key|main|bullet|bulleted|important|top"
_COUNT = re.compile(
    rf"(?i)\b(\d{{1,2}}|{'|'.join(_NUMBERS)}|a single)[- ](?:(?:{_WHICH}) )*(?:{_PIECES})s?\b",
)
_SHORT = re.compile(r"\b(?:brief(?:ly)?|tl;?dr|headline|title|gist|in short)\b", re.IGNORECASE)


class Form(NamedTuple):
    """How an answer should look.

    Attributes:
        bullets: One sentence a line, each with a dash.
        sentences: How many, where that is said.
    """

    bullets: bool = False
    sentences: int | None = None

    def write(self, sentences: list[str]) -> str:
        """The sentences in this form."""
        return "\n".join(f"- {one}" for one in sentences) if self.bullets else " ".join(sentences)


def wanted(*texts: str) -> Form:
    """The form that an `answer_format` or a prompt asks for.

    Example:
        >>> wanted("Three bullet points"), wanted("one sentence"), wanted("a JSON object")
        (Form(bullets=True, sentences=3), Form(bullets=False, sentences=1), Form(bullets=False, sentences=None))
    """
    text = " ".join(texts)
    match = _COUNT.search(text)
    if match:
        number = match[1].lower()
        count = int(number) if number.isdigit() else 1 if number == "a single" else _NUMBERS.index(number) + 1
        return Form(bool(_BULLETS.search(text)), max(count, 1))
    return Form(bool(_BULLETS.search(text)), 1 if _SHORT.search(text) else None)
