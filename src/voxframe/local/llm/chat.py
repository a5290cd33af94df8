"""The answerer with a language model: the whole material where it fits, else the model's own notes on its parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from voxframe.local.asked import Refused
from voxframe.local.llm import prompts
from voxframe.local.llm.answerer import Response
from voxframe.local.llm.asked import Asked, Question
from voxframe.local.llm.material import Source, written
from voxframe.local.llm.model import Model, Reply
from voxframe.local.llm.tokens import count, cut

_AT_ONCE = 4  # requests to the model for one of ours
_SPARE = 0.85  # of the window: the model counts its tokens otherwise than we do
_LEAST_ROOM = 150  # tokens for the material


@dataclass
class _Tally:
    """Tokens that were used, as far as the model says, else as we count."""

    input: int = 0
    output: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, reply: Reply) -> None:
        """Count one answer of the model."""
        with self._lock:
            self.input += reply.input_tokens
            self.output += reply.output_tokens


@dataclass(frozen=True)
class Chat:
    """Answers with a language model.

    Attributes:
        model: The model.
        window: Tokens it can take at once, material and answer together.
    """

    model: Model
    window: int = 16_000

    def check(self, model: str) -> None:
        """Nothing to refuse: whatever `final_model` says, it is the configured one that answers, and says so."""

    def answer(self, asked: Asked, sources: Sequence[Source]) -> Response:
        """Answer a request from its material.

        Raises:
            ModelFailed: The model could not.
            Refused: The request leaves no room for material.
        """
        tally = _Tally()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="voxframe-llm") as pool:
            if asked.task != "question-answer":
                what = prompts.instruction(asked)
                material = self._fitting(asked, sources, what, asked.max_output_size, pool, tally)
                request = prompts.request(material, asked.context, what, asked.answer_format)
                text = self._call(request, asked.max_output_size, asked.temperature, tally)
                return Response(text, tally.input, tally.output, self.model.name)
            share = max(1, asked.max_output_size // len(asked.questions))
            material = self._fitting(asked, sources, prompts.questions(asked), share, pool, tally)

            def reply(one: Question) -> dict[str, str]:
                context = "\n\n".join(filter(None, (asked.context, one.context)))
                request = prompts.request(material, context, prompts.question(one), one.answer_format)
                text = self._call(request, share, asked.temperature, tally)
                return {"question": one.question, "answer": prompts.matched(text, one.answer_options)}

            return Response(list(pool.map(reply, asked.questions)), tally.input, tally.output, self.model.name)

    def _fitting(
        self, asked: Asked, sources: Sequence[Source], what: str, output: int, pool: ThreadPoolExecutor, tally: _Tally
    ) -> str:
        """The material; where it is too long, the model's notes on its parts, and notes on these if need be."""
        longest = max((one.context for one in asked.questions), key=len, default="")
        around = count(prompts.SYSTEM) + count(asked.context) + count(longest) + 2 * count(what) + 200
        room = int(self.window * _SPARE) - output - around
        if room < _LEAST_ROOM:
            raise Refused(
                "prompt, questions, context and max_output_size leave too little room in the model's window of "
                f"{self.window} tokens; make them shorter"
            )
        pieces = [piece for source in sources for piece in (*written(source.lines), "")][:-1]
        while len(parts := list(_parts(pieces, room))) > 1:  # each round makes a third of it, or less
            ask = self._noting(asked, what, len(parts), min(1000, room // 3), tally)
            pieces = list(pool.map(ask, range(len(parts)), parts))
        return "".join(parts)

    def _noting(self, asked: Asked, what: str, parts: int, size: int, tally: _Tally) -> Callable[[int, str], str]:
        def note(at: int, part: str) -> str:
            request = prompts.request(part, asked.context, prompts.notes(at + 1, parts, what))
            taken = cut(self._call(request, size, asked.temperature, tally), size)
            return f"Notes on part {at + 1} of {parts}:\n{taken}\n"

        return note

    def _call(self, request: str, size: int, temperature: float, tally: _Tally) -> str:
        reply = self.model.ask(prompts.SYSTEM, request, size, temperature)
        tally.add(reply)
        return reply.text


def _parts(pieces: Sequence[str], room: int) -> Iterator[str]:
    """The pieces joined to parts that fit; a piece that does not fit alone is divided between words."""
    held: list[str] = []
    used = 0
    for piece in pieces:
        rest = piece
        while True:
            size = count(rest)
            if used + size <= room:
                held.append(rest)
                used += size
                break
            if held:
                yield "\n".join(held)
                held, used = [], 0
                continue
            fitting = cut(rest, room)
            yield fitting
            rest = rest[len(fitting) :].lstrip()
    if held:
        yield "\n".join(held)
