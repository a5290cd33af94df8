"""The part of a corpus that asks a language model about many transcripts, in as many requests as its limits take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast

import numpy as np
import pandas as pd

from voxframe import frames
from voxframe.corpus import kept
from voxframe.corpus.disk import clear_errors
from voxframe.corpus.portions import Portion, as_texts, portions, texts_together
from voxframe.corpus.send import EMBEDDED, service_name
from voxframe.errors import BadRequestError, LostAnswerError, NotFoundError, OptionError, ServiceError
from voxframe.frames.responses import response_table
from voxframe.service import llm_requests
from voxframe.service.answer import Answer
from voxframe.service.http import NOTHING_UNDER_WAY
from voxframe.service.llm_requests import LlmOptions, Question
from voxframe.service.llm_results import LlmResponse, Reply, Usage, response
from voxframe.service.progress import Progress

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client

#: Transcripts: an id, several, or a table with a column `transcript_id`; None is every completed one.
Selection = str | Iterable[str] | pd.DataFrame | None
#: Whether to ask again: never, always, or where the answer was lost.
Refresh: TypeAlias = bool | Literal["uncertain"]
_TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)


@dataclass(frozen=True)
class Answers:
    """What a language model says about transcripts of a corpus.

    Attributes:
        text: The answer as one text; questions stand before their answers.
        replies: One reply, or one for each question.
        transcript_ids: Transcripts it is about.
        responses: The answer to every request that was made for it, now or before; the last one puts them together
            where there were several.
    """

    text: str
    replies: tuple[Reply, ...] = field(repr=False)
    transcript_ids: tuple[str, ...] = field(repr=False)
    responses: tuple[LlmResponse, ...] = field(repr=False)

    @property
    def usage(self) -> Usage:
        """Tokens that all requests took; None where the service does not say."""
        given = [(r.usage.input_tokens, r.usage.output_tokens) for r in self.responses]
        return Usage(*(None if None in column else sum(filter(None, column)) for column in zip(*given, strict=True)))


class Asking:
    """Language-model operations over transcripts of a corpus; `Corpus` is one of these.

    A selection that is larger than a request may be is asked about in several, and what they bring is put together by
    one more. Every answer is kept: the same question about the same transcripts is not asked, nor paid for, twice, nor
    is it where the answer was lost, before somebody says so: a service has no list of answers to find it in.
    Transcripts whose speakers were given names, or whose turns were corrected, are sent as text with these, others by
    their identifiers; those that the service does not have, such as added files, as text, too.
    """

    def summarize(
        self,
        transcripts: Selection = None,
        *,
        answer_format: str | None = None,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Summarize transcripts, however many.

        Args:
            transcripts: An identifier, several, or a table with a column `transcript_id`, such as a part of one of this
                corpus; None is every completed one.
            answer_format: How the summary should look, in words, such as "bullet points".
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            refresh: True asks even what was asked before; "uncertain" asks again where an answer was lost.
            progress: Whether to show progress; None shows it where somebody looks, past a second.
            **options: context, final_model, max_output_size, temperature; see `Client.summarize`.

        Raises:
            OptionError: An argument is wrong, or there is nothing to summarize; nothing was sent.
            CorpusError: A transcript is not here, or the corpus cannot be written.
            LostAnswerError: This was asked before and the answer was lost, see `unanswered`.
            ServiceError: The service, or the way to it, failed; what was answered is kept.

        Example:
            >>> corpus.summarize(answer_format="one sentence").text  # doctest: +SKIP
            'Two neighbours talk about trees.'
        """
        own = {} if answer_format is None else {"answer_format": answer_format}
        return self._asked("summary", own, transcripts, options, client, refresh, progress)

    def ask(
        self,
        questions: str | Question | Iterable[str | Question],
        transcripts: Selection = None,
        *,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Ask questions about transcripts, however many; as `summarize`, with a reply per question."""
        own = {"questions": llm_requests.questions(questions)}
        return self._asked("question-answer", own, transcripts, options, client, refresh, progress)

    def task(
        self,
        prompt: str,
        transcripts: Selection = None,
        *,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """Have something done with transcripts, however many; as `summarize`, with the prompt saying what."""
        own = {"prompt": llm_requests.text("prompt", prompt)}
        return self._asked("task", own, transcripts, options, client, refresh, progress)

    def action_items(
        self,
        transcripts: Selection = None,
        *,
        answer_format: str | None = None,
        client: Client | None = None,
        refresh: Refresh = False,
        progress: bool | None = None,
        **options: Unpack[LlmOptions],
    ) -> Answers:
        """What transcripts say is to be done; as `summarize`, but the items of several requests stand side by side."""
        own = {} if answer_format is None else {"answer_format": answer_format}
        return self._asked("action-items", own, transcripts, options, client, refresh, progress)

    def responses(self) -> pd.DataFrame:
        """Every answer of a language model that is kept, as the table `responses`, oldest first."""
        with clear_errors(self._corpus.path):
            found: list[Any] = [_restored(answer) for answer in kept.of_models(self._corpus.ledger)]
        return frames.to_pandas(response_table(found), "responses")

    def unanswered(self) -> pd.DataFrame:
        """What a language model was asked, and nobody knows whether it was answered and paid for, oldest first.

        The process ended before the answer came, or the answer was lost on the way. `refresh="uncertain"` asks again.

        Returns:
            One row a request: `task`, `prompt` str, `transcript_ids` list of str, `asked` datetime64[us, UTC].
        """
        with clear_errors(self._corpus.path):
            rows = [{**question.request, "asked": question.created} for question in kept.asked(self._corpus.ledger)]
        found = pd.DataFrame(rows, columns=["task", "prompt", "transcript_ids", "asked"])
        dtypes = {"task": _TEXT, "prompt": _TEXT, "transcript_ids": object, "asked": "datetime64[us]"}
        return found.astype(dtypes).assign(asked=lambda df: df["asked"].dt.tz_localize("UTC"))

    def _asked(
        self,
        task: str,
        own: Mapping[str, Any],
        transcripts: Selection,
        options: LlmOptions,
        client: Client | None,
        refresh: Refresh,
        progress: bool | None,
    ) -> Answers:
        if options.get("input_text") is not None:
            raise OptionError("a corpus is asked about its transcripts; Client.summarize and the like take input_text")
        if refresh not in (True, False, "uncertain"):
            raise OptionError(f"refresh is True, False or 'uncertain', not {refresh!r}")
        llm_requests.body("any", options)  # says what is wrong with the options before anything is sent
        with clear_errors(self._corpus.path):
            wanted = portions(self._corpus, transcripts)
            whole = tuple(dict.fromkeys(i for portion in wanted for i in portion.ids))
            asker = _Asker(self._corpus, task, {**own, **_given(options)}, client, refresh=refresh)
            with Progress(f"asking for {task}", jobs=len(wanted), show=progress) as bar:
                for portion in wanted:
                    asker.ask_about(portion)
                    bar.advance(1)
                return _together(asker, whole)

    @property
    def _corpus(self) -> Corpus:
        return cast("Corpus", self)


class _Asker:
    """Asks the same about one portion after another, and remembers the answers."""

    def __init__(
        self, corpus: Corpus, task: str, arguments: Mapping[str, Any], client: Client | None, *, refresh: Refresh
    ) -> None:
        self.task = task
        self.answers: list[LlmResponse] = []
        self._corpus, self._arguments, self._client, self._refresh = corpus, arguments, client, refresh
        self._service = service_name(client or corpus._client)

    def ask_about(self, portion: Portion) -> None:
        """Ask about a portion; where the service refuses it, with what it did not transcribe as text."""
        parts = None if self._is_kept(portion) else self._apart(portion)
        if parts is None or not all(map(self._is_kept, parts)):  # else it was refused before, and all is here
            try:
                self.ask(portion)
            except (BadRequestError, NotFoundError):
                if parts is None:
                    raise
            else:
                return
        for part in parts:
            self.ask(part)

    def ask(self, portion: Portion) -> LlmResponse:
        """The answer about a portion, from the corpus where it was asked before."""
        key = self._key(portion)
        with self._corpus.ledger.turn(key):
            known = self._known(key)
            answer = _restored(known) if known else self._new(key, portion)
        self.answers.append(answer)
        return answer

    def _key(self, portion: Portion) -> str:
        about = {"input_text": portion.text} if portion.text is not None else {"transcript_ids": list(portion.ids)}
        return kept.key_of({"service": self._service, "task": self.task, **self._arguments, **about})

    def _known(self, key: str) -> kept.Kept | None:
        return None if self._refresh is True else kept.find(self._corpus.ledger, key)

    def _is_kept(self, portion: Portion) -> bool:
        return self._known(self._key(portion)) is not None

    def _apart(self, portion: Portion) -> list[Portion] | None:
        """What the service transcribed by identifiers, the rest as texts; None where there is nothing to part."""
        if portion.text is not None:
            return None
        made = {job.transcript_id for job in self._corpus.ledger.jobs(self._service)}
        others = [one for one in portion.ids if one not in made]
        if not others:
            return None
        own = tuple(one for one in portion.ids if one in made)
        return [*([Portion(own)] if own else []), *as_texts(self._corpus, others)]

    def _new(self, key: str, portion: Portion) -> LlmResponse:
        client = self._corpus._service(self._client)
        arguments = dict(self._arguments)
        source: dict[str, Any] = {"transcripts": list(portion.ids)}
        if portion.text is not None:
            source = {"input_text": portion.text}
        calls: dict[str, Callable[..., LlmResponse]] = {
            "summary": client.summarize,
            "question-answer": client.ask,
            "task": client.task,
            "action-items": client.action_items,
        }
        with self._noted(key, portion.ids):
            answer = replace(calls[self.task](**arguments, **source), transcript_ids=portion.ids)
        note = {"task": answer.task, "prompt": answer.prompt, "transcript_ids": portion.ids}
        kept.keep_answer(self._corpus.ledger, key, self._service, answer.request_id, portion.ids, note, answer.raw)
        return answer

    @contextmanager
    def _noted(self, key: str, ids: Sequence[str]) -> Iterator[None]:
        """Have the ledger say that the service is being asked, as long as it may be charging for an unknown answer."""
        ledger = self._corpus.ledger
        if self._service == EMBEDDED:  # charges nothing
            yield
            return
        if not self._refresh and (lost := kept.asked(ledger, key)):
            raise LostAnswerError(
                f"this {self.task} was asked for at {lost[0].created:%Y-%m-%d %H:%M} UTC and the answer was lost; it "
                "may have been paid for, and the service has no list of answers to find it in. Ask again with "
                "refresh='uncertain', on the command line with --uncertain"
            )
        kept.note_asked(
            ledger,
            key,
            self._service,
            {"task": self.task, "prompt": self._arguments.get("prompt"), "transcript_ids": ids},
        )
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            if not _may_be_answered(error):
                kept.forget_asked(ledger, key)
            raise


def _may_be_answered(error: Exception | KeyboardInterrupt) -> bool:
    """Whether the service may have answered a request that ended so."""
    if isinstance(error, KeyboardInterrupt):
        return NOTHING_UNDER_WAY not in getattr(error, "__notes__", ())
    return isinstance(error, ServiceError) and error.may_have_arrived


def _together(asker: _Asker, ids: tuple[str, ...]) -> Answers:
    """One answer from those about all portions."""
    parts = list(asker.answers)
    if not parts:  # words without text
        raise OptionError("nothing is said in the transcripts that were asked for")
    if asker.task == "action-items" and len(parts) > 1:
        text = "\n".join(part.text for part in parts)
        return Answers(text, (Reply(text),), ids, tuple(parts))
    level = parts
    while len(level) > 1:
        groups = texts_together([part.text for part in level])
        if len(groups) == len(level):  # each is as long as a request may be: nothing more can be put together
            text = "\n\n".join(part.text for part in level)
            return Answers(text, (Reply(text),), ids, tuple(asker.answers))
        level = [asker.ask(Portion(ids, text)) for text in groups]
    return Answers(level[0].text, level[0].replies, ids, tuple(asker.answers))


def _given(options: LlmOptions) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _restored(answer: kept.Kept) -> LlmResponse:
    """A response as it was when it came."""
    note: Mapping[str, Any] = answer.request
    ids: Sequence[str] = note["transcript_ids"]
    found = response(Answer(200, {}, answer.content, "GET", ""), note["task"], note["prompt"], tuple(ids))
    return replace(found, created=answer.created.replace(tzinfo=UTC))
