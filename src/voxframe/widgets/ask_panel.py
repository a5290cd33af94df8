"""AskPanel: questions to a language model about transcripts, with citations that play the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pandas as pd
import traitlets

from voxframe._text import quantity
from voxframe.client import Client, connect
from voxframe.client.llm import LlmResponse
from voxframe.corpus import Corpus
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.ledger import check_client, service_name
from voxframe.corpus.llm import Answers, citations
from voxframe.errors import LostAnswerError, NotFoundError, OptionError
from voxframe.loaders import load_responses
from voxframe.options import LLM_DEFAULTS, LLM_OUTPUT_TOKENS
from voxframe.widgets.base import Background, clock_text, connect_call, corpus_call, escaped, show_errors
from voxframe.widgets.embedded_player import CorpusPlayerWidget
from voxframe.widgets.player import TranscriptPlayer

#: Tasks, by the service's names.
TASKS = ("question-answer", "summary", "task", "action-items")
#: Maximum number of earlier prompts in the list.
_MAX_EARLIER = 50
#: Maximum number of transcripts in the list.
_MAX_LISTED = 500


class AskPanel(CorpusPlayerWidget):
    """A form for summaries, answers, tasks and action items from a language model over selected transcripts.

    The numbers in an answer play the passages behind it. For questions, these are the citations of `Corpus.ask`; for
    the other tasks, the quotations that occur word for word in a transcript. Requests run in the background, one at a
    time, within the service's rate limit. They use `Corpus.ask`, `summarize`, `task` and `action_items`, so an earlier
    answer is returned without a new request until it is deleted.

    Args:
        corpus: The transcripts. None (default): the default corpus.
        client: Client of the service that has them. None (default): `voxframe.connect()`.
        transcripts: Transcript ids to choose from. None (default): all completed ones.
        player: A player that plays its own transcript; other transcripts use a player below the answers.
        audio: Path or URL of recordings by transcript id, if the corpus does not know them.
        title: Title of the widget.

    Attributes:
        task (str): "question-answer", "summary", "task" or "action-items".
        prompts (dict[str, str]): Text by task: questions (one per line), the task, or the format of a summary or of
            items.
        prompt (str): Text of the selected task.
        context (str): Background information for the model.
        chosen (list[str]): Ids of the selected transcripts, at first all; setting it also takes names of recordings.
        max_output_size (int): Maximum number of tokens of the answer.
        temperature (float): 0 (conservative) to 1 (creative).

    Raises:
        OptionError: An argument has the wrong type.
        CorpusError: The corpus has none of the transcripts with an id or name in `transcripts`.

    Example:
        >>> import tempfile, voxframe
        >>> panel = AskPanel(voxframe.Corpus(tempfile.mkdtemp()), voxframe.connect())  # doctest: +SKIP
        >>> panel.prompt = "Who is interviewed?"  # doctest: +SKIP
        >>> panel.ask()  # doctest: +SKIP
    """

    scripts = ("embed", "ask_panel")
    styles = ("fields", "ask_panel")

    task = traitlets.Enum(TASKS, "question-answer").tag(sync=True)
    prompts = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Enum(TASKS)).tag(sync=True)
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
        corpus = chosen_corpus(corpus)
        check_client(client)
        self._client = client
        self._responses: dict[str, tuple[LlmResponse, ...]] = {}
        self._calls: dict[str, str] = {}  # code that returns these responses
        self._ids_of = corpus.parts.archive.recordings.ids
        ids = self._ids_of(transcripts) if transcripts is not None else _completed(corpus)
        if transcripts is not None and (unknown := set(ids) - set(corpus.ids())):
            raise corpus.parts.archive.missing(min(unknown))
        self._background = Background(self, lambda text: self.set_trait("busy", text))
        super().__init__(
            corpus, audio, player, title=title, chosen=ids if transcripts is not None or len(ids) <= _MAX_LISTED else []
        )
        self._listed = [{"id": i, "name": self._recordings.name(i)} for i in ids[:_MAX_LISTED]]
        self._read_earlier()

    @traitlets.validate("chosen")
    def _check_chosen(self, proposal: Any) -> list[str]:
        ids = list(self._ids_of(proposal["value"]))
        self._corpus.parts.archive.known([i for i in ids if i not in {row["id"] for row in self._listed}])
        return ids

    def __repr__(self) -> str:
        return f"AskPanel({self._corpus!r}, {quantity(len(self._answers), 'answer')})"

    @property
    def prompt(self) -> str:
        """Text of the selected task."""
        return str(self.prompts.get(self.task, ""))

    @prompt.setter
    def prompt(self, text: str) -> None:
        self.prompts = self.prompts | {self.task: text}

    @property
    def result(self) -> pd.DataFrame:
        """The answers shown, as the table `responses`."""
        each: list[Any] = [response for responses in self._responses.values() for response in responses]
        return load_responses({response.request_id: response for response in each}.values())

    @property
    def citations(self) -> pd.DataFrame:
        """The citations of the answers, one row per passage.

        Returns:
            `request_id`, `transcript_id`, `speaker`, `text` str; `answer_idx`, `begin`, `end` int64 (`begin` and `end`
            are character offsets in the answer); `start_ms`, `end_ms` Int64.
        """
        rows = [
            {"request_id": answer["request_id"], "answer_idx": n} | {name: citation[name] for name in _CITED}
            for answer in self._answers
            for n, reply in enumerate(answer["replies"])
            for citation in reply["citations"]
        ]
        types = {"begin": "int64", "end": "int64", "answer_idx": "int64", "start_ms": "Int64", "end_ms": "Int64"}
        return pd.DataFrame(rows, columns=["request_id", "answer_idx", *_CITED]).astype(types)

    @property
    def code(self) -> str:
        """Python code that returns the answers shown; a request that was not sent yet is a comment."""
        lines = ["import voxframe", "", f"corpus = {corpus_call(self._corpus)}"]
        lines += [f"client = {connect_call(self._client)}", "responses = []"]
        for call in self._calls.values():
            lines += [f"answers = {call}", "responses += answers.responses", "print(answers.text)"]
        now = _call_code(*self._call(), self.chosen, self._options())
        if now not in self._calls.values():
            lines += ["# Not asked yet:", *(f"# {line}" for line in f"answers = {now}".splitlines())]
        unique = "{response.request_id: response for response in responses}.values()"
        return "\n".join([*lines, f"result = voxframe.load_responses({unique})", "result"])

    def _static_html(self) -> str:
        """Return questions and answers, newest first, with citations and token counts."""
        parts = [f"<p><strong>{escaped(self.title)}</strong></p>"]
        for answer in self._answers:
            for reply in answer["replies"]:
                question = escaped(reply["question"] or answer["prompt"] or answer["task"])
                parts.append(
                    f'<p><strong>{question}</strong></p><p style="white-space:pre-wrap">{escaped(reply["answer"])}</p>'
                )
                parts += map(_static_citation, reply["citations"])
            if answer["quoted"]:
                parts.append("<p><small>Quotes from the transcripts, no language model</small></p>")
            used = (answer["usage"][name] for name in ("input_tokens", "output_tokens"))
            parts.append(f"<p><small>{' + '.join('?' if n is None else f'{n:,}' for n in used)} tokens</small></p>")
        return "".join(parts) if self._answers else parts[0] + "<p>No answers yet.</p>"

    def ask(self, *, again: bool = False) -> None:
        """Send the request of the form, in the background.

        Args:
            again: Repeat a request even if its response was lost; the service may charge twice.
        """
        task, prompt, ids, options = self.task, self.prompt.strip(), list(self.chosen), self._options()
        if again:
            options["refresh"] = "lost"
        argument, method = self._call()
        self._background.submit("asking", lambda: self._ask(task, prompt, ids, argument, method, options))

    def purge(self, request_id: str) -> None:
        """Delete an answer at the service and in the corpus, in the background."""
        self._background.submit("deleting", lambda: self._purge(request_id))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all requests are done; after `timeout` seconds, raise a TimeoutError."""
        self._background.wait(timeout)

    def close(self) -> None:
        """Close the panel."""
        if "_background" in self.__dict__:  # __init__ may have failed
            self._background.close()
        super().close()

    def _call(self) -> tuple[Any, str]:
        """Return the first argument and the name of the `Corpus` method for the task."""
        prompt = self.prompt.strip()
        lines = [line.strip() for line in prompt.splitlines() if line.strip()]
        if self.task == "question-answer":
            return (lines[0] if len(lines) == 1 else lines), "ask"
        if self.task == "task":
            return prompt, "task"
        return None, {"summary": "summarize", "action-items": "action_items"}[self.task]

    def _options(self) -> dict[str, Any]:
        """Return the options that differ from the defaults."""
        options: dict[str, Any] = {"context": self.context.strip()} if self.context.strip() else {}
        for name in ("max_output_size", "temperature"):
            if getattr(self, name) != LLM_DEFAULTS[name]:
                options[name] = getattr(self, name)
        if self.task in ("summary", "action-items") and self.prompt.strip():
            options["answer_format"] = self.prompt.strip()
        return options

    # Background tasks

    def _ask(self, task: str, prompt: str, ids: list[str], argument: Any, method: str, options: dict[str, Any]) -> None:
        self._lost = False
        if not ids:
            raise OptionError("no transcripts are selected; select at least one")
        if not prompt and task in ("question-answer", "task"):
            raise OptionError("there is no question; enter one" if task != "task" else "there is no task; enter one")
        client = self._service()
        try:
            arguments = {"transcripts": ids, "client": client, "progress": False, **options}
            answered: Answers = getattr(self._corpus, method)(*([] if argument is None else [argument]), **arguments)
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
                    citation | {"name": self._recordings.name(citation["transcript_id"])}
                    for citation in self._citations(answered, n, ids)
                ],
            }
            for n, reply in enumerate(answered.replies)
        ]
        key = answered.responses[-1].request_id
        self._responses[key] = answered.responses
        self._calls[key] = _call_code(argument, method, ids, options)
        answer = {
            "request_id": key,
            "task": task,
            "prompt": prompt,
            "about": [self._recordings.name(i) for i in ids],
            "requests": len(answered.responses),
            "usage": asdict(answered.usage),
            "quoted": answered.quotes_key_sentences,
            "model": next((response.model for response in answered.responses if response.model), None),
            "replies": replies,
        }
        self._answers = [answer, *(old for old in self._answers if old["request_id"] != key)]
        self._read_earlier()

    def _citations(self, answered: Answers, reply_idx: int, ids: list[str]) -> list[dict[str, Any]]:
        """Return the citations of a reply, by their place in the answer."""
        if answered.citations is None:
            return [asdict(cited) for cited in citations(answered.replies[reply_idx].answer, self._corpus.search, ids)]
        rows = answered.citations[answered.citations["question_idx"] == reply_idx].sort_values(["begin", "end"])
        rows = rows.rename(columns={"speaker_name": "speaker"})[[*_CITED]].astype(object)
        cited: list[dict[str, Any]] = rows.where(rows.notna(), None).to_dict("records")  # type: ignore[assignment]
        return cited

    def _purge(self, request_id: str) -> None:
        client = self._service()
        try:
            for response in self._responses.get(request_id, ()):
                with suppress(NotFoundError):  # already deleted
                    if not client.purge(response.request_id).deleted:
                        raise OptionError(f"the service did not delete the response {request_id!r}; try again later")
                self._corpus.parts.ledger.drop_request(response.request_id, service_name(client))
        finally:
            self._show_limit(client)
        self._responses.pop(request_id, None)
        self._calls.pop(request_id, None)
        self._answers = [answer for answer in self._answers if answer["request_id"] != request_id]
        self._read_earlier()

    def _read_earlier(self) -> None:
        """Read earlier prompts, newest first; those of deleted answers are not included."""
        prompts = self._corpus.raw.responses().sort_values("created", kind="stable")["prompt"].dropna()
        self._earlier = list(dict.fromkeys(reversed(prompts.to_list())))[:_MAX_EARLIER]

    def _service(self) -> Client:
        self._client = self._client or connect()
        return self._client

    def _show_limit(self, client: Client) -> None:
        limit = client.rate_limit
        self._limit = {} if limit is None else {"limit": limit.limit, "remaining": limit.remaining}

    def _on_browser_message(self, message: dict[str, Any], _: list[Any]) -> None:
        """Handle a click in the browser."""
        do = message.get("do")
        if do == "ask":
            form = message.get("form") or {}
            for name in ("task", "prompts", "prompt", "context", "chosen"):  # the prompt belongs to the task
                if name in form:
                    setattr(self, name, form[name])
            self.ask(again=message.get("again") is True)
        elif do == "purge":
            self.purge(str(message["request_id"]))
        elif do == "cite":
            with show_errors(self):
                if message.get("start_ms") is None:
                    raise OptionError("cannot play this passage: its words have no times")
                end = message.get("end_ms")
                self.play(str(message["transcript_id"]), int(message["start_ms"]), None if end is None else int(end))


def _call_code(argument: Any, method: str, ids: list[str], options: Mapping[str, Any]) -> str:
    """Return Python code of a call."""
    arguments = [] if argument is None else [repr(argument)]
    arguments += [repr(ids), "client=client"]
    arguments += [f"{name}={value!r}" for name, value in options.items() if name != "refresh"]
    return f"corpus.{method}({', '.join(arguments)})"


_CITED = ("begin", "end", "transcript_id", "start_ms", "end_ms", "speaker", "text")


def _static_citation(citation: Mapping[str, Any]) -> str:
    """Return a citation as static HTML."""
    when = clock_text(citation["start_ms"])
    where = " ".join(filter(None, (citation["name"], when, citation["speaker"])))
    return f"<p><small>{escaped(where)}: \u201c{escaped(citation['text'])}\u201d</small></p>"


def _completed(corpus: Corpus) -> list[str]:
    """Return the ids of completed transcripts."""
    ids = corpus.ids()
    if not ids:
        return ids
    status = corpus.table("transcripts", columns=["transcript_id", "status"])
    return status.loc[status["status"] == "completed", "transcript_id"].tolist()
