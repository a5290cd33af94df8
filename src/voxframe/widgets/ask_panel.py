"""AskPanel: a language model asked about transcripts, with answers that lead back to what was said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pandas as pd
import traitlets

from voxframe import answers
from voxframe.corpus import Corpus
from voxframe.corpus.asking import Answers
from voxframe.corpus.send import service_name
from voxframe.errors import LostAnswerError, NotFoundError, OptionError
from voxframe.options import LLM_DEFAULTS, LLM_OUTPUT_TOKENS
from voxframe.plots.style import clock
from voxframe.service import Client, connect
from voxframe.service.llm_results import LlmResponse
from voxframe.widgets.background import Background
from voxframe.widgets.base import escaped
from voxframe.widgets.citations import citations
from voxframe.widgets.connecting import connect_call
from voxframe.widgets.moments import Moments, Recordings
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.telling import telling

#: What can be asked for, by the name the service has for it.
TASKS = ("question-answer", "summary", "task", "action-items")
#: Prompts that are offered again.
_MOST_EARLIER = 50
#: Transcripts that are listed.
_MOST_LISTED = 500


class AskPanel(Moments):
    """A summary, answers, a task or action items from a language model, over transcripts that are ticked.

    Where a sentence of the answer stands word for word in a transcript, a number leads to that moment. These citations
    are found here, by comparing words; the language model does not give them, and what it says in words of its own has
    none. Requests run in the background, one after the other, and keep to the service's rate limit. They are those of
    `Corpus.ask`: what was asked before is not asked, nor paid for, again until it is purged.

    Args:
        corpus: The transcripts; None is the default corpus.
        client: The service that has them; None is that of `voxframe.connect()`.
        transcripts: Identifiers to choose from; None is all that are complete.
        player: A player that plays moments of its own transcript; others are played in one below the answers.
        audio: Path or address of the recording by transcript, for those the corpus was not told of.
        title: What stands above it.

    Attributes:
        task (str): "question-answer", "summary", "task" or "action-items".
        prompt (str): Questions, one a line; what the task is; how a summary or the items should look.
        context (str): What the model should know beforehand.
        chosen (list[str]): Identifiers of the transcripts that are asked about.
        max_output_size (int): The most tokens of the answer.
        temperature (float): 0 (conservative) to 1 (creative).

    Example:
        >>> import tempfile, voxframe
        >>> panel = AskPanel(voxframe.Corpus(tempfile.mkdtemp()), voxframe.connect())  # doctest: +SKIP
        >>> panel.prompt = "Who is interviewed?"  # doctest: +SKIP
        >>> panel.ask()  # doctest: +SKIP
    """

    scripts = ("embed", "ask_panel")
    styles = ("fields", "ask_panel")

    task = traitlets.Enum(TASKS, "question-answer").tag(sync=True)
    prompt = traitlets.Unicode("").tag(sync=True)
    context = traitlets.Unicode("").tag(sync=True)
    chosen = traitlets.List(traitlets.Unicode()).tag(sync=True)
    max_output_size = traitlets.Int(LLM_DEFAULTS["max_output_size"], min=1, max=LLM_OUTPUT_TOKENS).tag(sync=True)
    temperature = traitlets.Float(LLM_DEFAULTS["temperature"], min=0, max=1).tag(sync=True)
    busy = traitlets.Unicode("").tag(sync=True)
    _listed: Any = traitlets.List().tag(sync=True)
    _answers: Any = traitlets.List().tag(sync=True)
    _earlier: Any = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _limit = traitlets.Dict().tag(sync=True)
    _lost = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        corpus: Corpus | None = None,
        client: Client | None = None,
        *,
        transcripts: Iterable[str] | None = None,
        player: TranscriptPlayer | None = None,
        audio: Mapping[str, str | os.PathLike[str]] | None = None,
        title: str = "Ask",
    ) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._client = client
        self._recordings = Recordings(self._corpus, audio)
        self._linked = player
        self._given: dict[str, tuple[LlmResponse, ...]] = {}
        ids = list(transcripts) if transcripts is not None else _completed(self._corpus)
        listed = [{"id": i, "name": self._recordings.name(i)} for i in ids[:_MOST_LISTED]]
        self._background = Background(self._show_busy, self._show_error)
        super().__init__(title=title, _listed=listed, chosen=ids if len(ids) <= 1 or transcripts is not None else [])
        self._read_earlier()
        self.on_msg(self._asked)

    def __repr__(self) -> str:
        return f"AskPanel({self._corpus!r}, {len(self._answers)} answers)"

    @property
    def result(self) -> pd.DataFrame:
        """The answers that are shown, as the table `responses`."""
        each: list[Any] = [response for responses in self._given.values() for response in responses]
        return answers.load_responses({response.request_id: response for response in each}.values())

    @property
    def citations(self) -> pd.DataFrame:
        """Where answers quote transcripts, one row a passage.

        Returns:
            `request_id`, `transcript_id`, `speaker`, `text` str; `answer_idx`, `begin`, `end` int64 (the last two
            characters of the answer); `start_ms`, `end_ms` Int64.
        """
        rows = [
            {"request_id": answer["request_id"], "answer_idx": n} | {name: found[name] for name in _CITED}
            for answer in self._answers
            for n, reply in enumerate(answer["replies"])
            for found in reply["citations"]
        ]
        types = {"begin": "int64", "end": "int64", "answer_idx": "int64", "start_ms": "Int64", "end_ms": "Int64"}
        return pd.DataFrame(rows, columns=["request_id", "answer_idx", *_CITED]).astype(types)

    @property
    def code(self) -> str:
        """Lines that ask the same as the form does now."""
        lines = ["import voxframe", "", f"corpus = voxframe.Corpus({str(self._corpus.path)!r})"]
        lines += [f"client = {connect_call(self._client)}", f"transcripts = {self.chosen!r}"]
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        first, called = self._call()
        given = f"{first!r}, transcripts" if first is not None else "transcripts"
        lines += [f"answers = corpus.{called}({given}, client=client{options})"]
        return "\n".join([*lines, "result = voxframe.load_responses(answers.responses)", "print(answers.text)"])

    def _still_html(self) -> str:
        """Questions and answers, the last first, with the passages they quote and the tokens they took."""
        parts = [f"<p><strong>{escaped(self.title)}</strong></p>"]
        for answer in self._answers:
            for reply in answer["replies"]:
                asked, said = escaped(reply["question"] or answer["prompt"] or answer["task"]), escaped(reply["answer"])
                parts.append(f'<p><strong>{asked}</strong></p><p style="white-space:pre-wrap">{said}</p>')
                parts += map(_still, reply["citations"])
            used = (answer["usage"][name] for name in ("input_tokens", "output_tokens"))
            parts.append(f"<p><small>{' + '.join('?' if n is None else f'{n:,}' for n in used)} tokens</small></p>")
        return "".join(parts) if self._answers else parts[0] + "<p>Nothing was asked yet.</p>"

    def ask(self, *, again: bool = False) -> None:
        """Ask, in the background, what the form says about the transcripts that are ticked.

        Args:
            again: Ask even where this was asked before and the answer was lost; it may be paid for twice.
        """
        task, prompt, ids, options = self.task, self.prompt.strip(), list(self.chosen), self._options()
        if again:
            options["refresh"] = "uncertain"
        first, called = self._call()
        self._background.do("asking", lambda: self._ask(task, prompt, ids, first, called, options))

    def purge(self, request_id: str) -> None:
        """Delete an answer, in the background, at the service and here."""
        self._background.do("deleting", lambda: self._purge(request_id))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all that was asked is answered.

        Raises:
            TimeoutError: It is not after `timeout` seconds.
        """
        self._background.wait(timeout)

    def close(self) -> None:
        """Close the panel."""
        if "_background" in self.__dict__:  # one that was never whole is closed, too, when it goes
            self._background.close()
        super().close()

    def _call(self) -> tuple[Any, str]:
        """First argument and name of the method that does the task."""
        prompt = self.prompt.strip()
        lines = [line.strip() for line in prompt.splitlines() if line.strip()]
        if self.task == "question-answer":
            return (lines[0] if len(lines) == 1 else lines), "ask"
        return (
            (prompt, "task")
            if self.task == "task"
            else (None, self.task.replace("summary", "summarize").replace("-", "_"))
        )

    def _options(self) -> dict[str, Any]:
        """What is not as it is by default."""
        options: dict[str, Any] = {"context": self.context.strip()} if self.context.strip() else {}
        for name in ("max_output_size", "temperature"):
            if getattr(self, name) != LLM_DEFAULTS[name]:
                options[name] = getattr(self, name)
        if self.task in ("summary", "action-items") and self.prompt.strip():
            options["answer_format"] = self.prompt.strip()
        return options

    # In the background

    def _ask(self, task: str, prompt: str, ids: list[str], first: Any, called: str, options: dict[str, Any]) -> None:
        self._lost = False
        if not ids:
            raise OptionError("no transcript is ticked; tick those that it is about")
        if not prompt and task in ("question-answer", "task"):
            raise OptionError(
                "nothing is asked yet; write a question" if task != "task" else "write what is to be done"
            )
        client = self._service()
        try:
            given = {"transcripts": ids, "client": client, "progress": False, **options}
            answered: Answers = getattr(self._corpus, called)(*([] if first is None else [first]), **given)
        except LostAnswerError:
            self._lost = True
            raise
        finally:
            self._show_limit(client)
        replies = [
            {
                "question": reply.question,
                "answer": reply.answer,
                "citations": [
                    asdict(found) | {"name": self._recordings.name(found.transcript_id)}
                    for found in citations(reply.answer, self._corpus, ids)
                ],
            }
            for reply in answered.replies
        ]
        key = answered.responses[-1].request_id
        self._given[key] = answered.responses
        answer = {
            "request_id": key,
            "task": task,
            "prompt": prompt,
            "about": [self._recordings.name(i) for i in ids],
            "requests": len(answered.responses),
            "usage": asdict(answered.usage),
            "replies": replies,
        }
        self._answers = [answer, *(old for old in self._answers if old["request_id"] != key)]
        self._read_earlier()

    def _purge(self, request_id: str) -> None:
        client = self._service()
        try:
            for response in self._given.get(request_id, ()):
                with suppress(NotFoundError):  # it is gone already
                    if not client.purge(response.request_id).deleted:
                        raise OptionError(f"the service did not delete the answer {request_id!r}; try again later")
                self._corpus.ledger.drop_request(response.request_id, service_name(client))
        finally:
            self._show_limit(client)
        self._given.pop(request_id, None)
        self._answers = [answer for answer in self._answers if answer["request_id"] != request_id]
        self._read_earlier()

    def _read_earlier(self) -> None:
        """What was asked before, here and in earlier sessions, the newest first; what was purged is not among it."""
        kept = self._corpus.responses().sort_values("created", kind="stable")["prompt"].dropna()
        self._earlier = list(dict.fromkeys(reversed(kept.to_list())))[:_MOST_EARLIER]

    def _service(self) -> Client:
        self._client = self._client or connect()
        return self._client

    def _show_limit(self, client: Client) -> None:
        limit = client.rate_limit
        self._limit = {} if limit is None else {"limit": limit.limit, "remaining": limit.remaining}

    def _show_busy(self, what: str) -> None:
        self.busy = what

    def _show_error(self, text: str) -> None:
        self.error = text

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        """A click in the browser."""
        do = message.get("do")
        if do == "ask":
            given = message.get("form") or {}
            for name in given.keys() & {"task", "prompt", "context", "chosen"}:
                self.set_trait(name, given[name])
            self.ask(again=message.get("again") is True)
        elif do == "purge":
            self.purge(str(message["request_id"]))
        elif do == "cite":
            with telling(self):
                if message.get("start_ms") is None:
                    raise OptionError("nobody knows when this was said: its words have no times")
                end = message.get("end_ms")
                self.play(str(message["transcript_id"]), int(message["start_ms"]), None if end is None else int(end))


_CITED = ("begin", "end", "transcript_id", "start_ms", "end_ms", "speaker", "text")


def _still(found: Mapping[str, Any]) -> str:
    """A passage that was quoted, in a saved notebook."""
    when = "" if found["start_ms"] is None else clock(found["start_ms"] / 1000)
    where = " ".join(filter(None, (found["name"], when, found["speaker"])))
    return f"<p><small>{escaped(where)}: \u201c{escaped(found['text'])}\u201d</small></p>"


def _completed(corpus: Corpus) -> list[str]:
    """Identifiers of the transcripts that can be asked about."""
    ids = corpus.ids()
    if not ids:
        return ids
    status = corpus.table("transcripts", columns=["transcript_id", "status"])
    return status.loc[status["status"] == "completed", "transcript_id"].tolist()
