"""What answers requests, and what an answer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from voxframe.local.llm.asked import Asked
from voxframe.local.llm.material import Source


class Response(NamedTuple):
    """An answer.

    Attributes:
        response: A text, or for question-answer a list of `{"question", "answer"}`.
        input_tokens: Tokens that were read.
        output_tokens: Tokens of the answer.
        model: What answered.
    """

    response: str | list[dict[str, str]]
    input_tokens: int
    output_tokens: int
    model: str


class Answerer(Protocol):
    """What answers requests."""

    def check(self, model: str) -> None:
        """Raise `Refused` where a `final_model` cannot be had."""

    def answer(self, asked: Asked, sources: Sequence[Source]) -> Response:
        """Answer a request from its material."""
