"""Language-model operations over many transcripts, split into as many requests as the service's limits require.

The moments of recordings that an answer rests on are found by the numbers of passages in it, such as [3], then by
sentences and quotations that occur word for word in a transcript, then by passages that are close in meaning to one of
its sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa

from voxframe import encoder, frames
from voxframe._arrow import TEXT
from voxframe._progress import Progress
from voxframe._text import clock
from voxframe.analysis.search_terms import spoken
from voxframe.client import llm
from voxframe.client.http import NOTHING_UNDER_WAY
from voxframe.client.llm import LlmOptions, LlmReply, LlmResponse, Usage, read_response
from voxframe.client.response import HTTPResponse
from voxframe.corpus.archive import Archive, MissingTranscriptError
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.ledger import EMBEDDED, CachedAnswer, DefaultClient, cache_key
from voxframe.corpus.people import valid_names
from voxframe.corpus.query import Query
from voxframe.corpus.search import RowFilter, Search
from voxframe.corpus.search.concordance import SearchQuery
from voxframe.errors import BadRequestError, LostAnswerError, NotFoundError, OptionError, ServiceError
from voxframe.frames.responses import response_table
from voxframe.options import LLM_HOURS, LLM_INPUT_DEFAULT, LLM_TRANSCRIPTS
from voxframe.validators import Integer, checked

if TYPE_CHECKING:
    from voxframe.client import Client


#: Minimum number of words: shorter matches may be chance. Quotations need fewer.
_MIN_WORDS, _MIN_QUOTED = 5, 3
#: Maximum number of passages to look for.
_MAX_PASSAGES = 60
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\d)[^.!?\n]*)*[.!?]*[\"\u201d\u2019)]*")
_QUOTED = re.compile(r"[\"\u201c\u00ab\u201e]([^\"\u201c\u201d\u00ab\u00bb\u201e\n]+)[\"\u201d\u00bb\u201c]")
_MARK = re.compile(r"\s*(?:[-*\u2022\u00b7\u2013]+\s+|\d+[.)]\s+)?(?:[\w ]{1,30}:\s+)?")


@dataclass(frozen=True)
class Citation:
    """A moment of a recording that a part of an answer rests on.

    Attributes:
        begin: Start in the answer, in characters.
        end: End in the answer, in characters.
        transcript_id: The transcript.
        start_ms: Start in the recording in ms; None if unknown.
        end_ms: End in the recording in ms; None if unknown.
        speaker: Speaker of the first word, by name or label.
        text: The words of the transcript.
    """

    begin: int
    end: int
    transcript_id: str
    start_ms: int | None
    end_ms: int | None
    speaker: str | None
    text: str


def citations(answer: str, search: Callable[..., pd.DataFrame], ids: Sequence[str]) -> list[Citation]:
    """Find sentences and quotations of an answer that occur in transcripts, in the order of the answer."""
    cited: list[Citation] = []
    for begin, end in _passages(answer):
        if cited and begin < cited[-1].end:
            continue  # a quotation inside a sentence already found
        query = " ".join(spoken(answer[begin:end].replace("*", " ")))
        try:
            rows = search(query, ids=list(ids), context=0, limit=1)
        except OptionError:  # no words in it
            continue
        if len(rows):
            cited.append(_citation(begin, end, rows.iloc[0]))
    return cited


def _passages(answer: str) -> Iterator[tuple[int, int]]:
    """Return spans to look for: sentences, without bullets and speaker names, and text in quotation marks."""
    spans = []
    for sentence in _SENTENCE.finditer(answer):
        mark = _MARK.match(answer, sentence.start(), sentence.end())
        begins = (sentence.start(), mark.end() if mark else sentence.start())
        spans += [(begin, sentence.end(), _MIN_WORDS) for begin in begins]
    spans += [(*quoted.span(1), _MIN_QUOTED) for quoted in _QUOTED.finditer(answer)]
    long_spans = {(begin, end) for begin, end, least in spans if len(spoken(answer[begin:end])) >= least}
    return iter(sorted(long_spans, key=lambda span: (span[0], -span[1]))[:_MAX_PASSAGES])


def _citation(begin: int, end: int, row: pd.Series) -> Citation:
    start, stop = (None if pd.isna(row[name]) else int(row[name]) for name in ("start_ms", "end_ms"))
    who = next((row[name] for name in ("speaker_name", "speaker") if not pd.isna(row[name])), None)
    return Citation(begin, end, str(row["transcript_id"]), start, stop, who, str(row["match"]))


class NumberedPassage(NamedTuple):
    """Consecutive sentences of a transcript."""

    number: int  # number in the text of a request, from 1 on
    sentences: pa.Table  # rows of the table `sentence_matches`

    @property
    def transcript_id(self) -> str:
        """The transcript."""
        return str(self.sentences["transcript_id"][0])

    def written(self) -> str:
        """Return the passage as dialogue, after a line with its number and place."""
        start = self.sentences["start_ms"][0].as_py()
        lines, before = (
            [f"[{self.number}: {self.transcript_id}{'' if start is None else f', {clock(start / 1000)}'}]"],
            None,
        )
        names = self.sentences["speaker_name"].to_pylist()
        for who, text in zip(names, self.sentences["match"].to_pylist(), strict=True):
            if who == before and len(lines) > 1:
                lines[-1] += f" {text}"
            else:
                lines.append(text if who is None else f"{who}: {text}")
            before = who
        return "\n".join(lines)


#: Precedes the passages in a request. The extractive answerer takes a line in brackets for a note.
PREAMBLE = (
    "[Passages of transcripts, each after its number. Name the numbers of the passages behind the answer, such as [3].]"
)
_NUMBERED = re.compile(r"\[(\d{1,4}(?:\s*(?:[,;\u2013-]|and)\s*\d{1,4})*)[^\]\n]*\]?")
_RANGE = re.compile(r"(\d+)(?:\s*[\u2013-]\s*(\d+))?")
_LEAST_CLOSENESS = 0.5
_COLUMNS: dict[str, Any] = {
    "question_idx": "int64",
    "transcript_id": TEXT,
    "start_ms": "Int64",
    "end_ms": "Int64",
    "speaker_name": TEXT,
    "text": TEXT,
    "begin": "int64",
    "end": "int64",
}


def cite(
    answers: Sequence[str], passages: Sequence[NumberedPassage], search: Callable[..., pd.DataFrame], ids: Sequence[str]
) -> pd.DataFrame:
    """Return the citations of answers, one row each; see `Answers.citations`."""
    rows = []
    for n, answer in enumerate(answers):
        of_answer = _named(answer, passages) or citations(answer, search, ids)
        if not of_answer and passages:
            of_answer = _closest(answer, passages)
        places: dict[tuple[Any, ...], tuple[int, int]] = {}
        for citation in of_answer:
            moment = (citation.transcript_id, citation.start_ms, citation.end_ms, citation.speaker, citation.text)
            places.setdefault(moment, (citation.begin, citation.end))
        rows += [(n, *moment, *place) for moment, place in places.items()]
    return pd.DataFrame(rows, columns=[*_COLUMNS]).astype(_COLUMNS)


def _named(answer: str, passages: Sequence[NumberedPassage]) -> list[Citation]:
    """Return the passages that an answer names by number, in the order of the answer."""
    by_number = {passage.number: passage for passage in passages}
    cited = []
    for mark in _NUMBERED.finditer(answer):
        ranges = [(int(first), int(last or first)) for first, last in _RANGE.findall(mark[1])]
        for number in (number for first, last in ranges for number in range(first, last + 1)):
            if (passage := by_number.get(number)) is not None:
                table = passage.sentences
                ends = [end for end in table["end_ms"].to_pylist() if end is not None]
                start, speaker = (table[name][0].as_py() for name in ("start_ms", "speaker_name"))
                text = " ".join(table["match"].to_pylist())
                cited.append(
                    Citation(*mark.span(), passage.transcript_id, start, max(ends, default=None), speaker, text)
                )
    return cited


def _closest(answer: str, passages: Sequence[NumberedPassage]) -> list[Citation]:
    """Return for each sentence of an answer the closest sentence of the passages, if it is close."""
    sentences = [match for match in _SENTENCE.finditer(answer) if len(spoken(match[0])) >= _MIN_QUOTED]
    table = pa.concat_tables([passage.sentences for passage in passages])
    coder = encoder.load()
    cosines = coder.encode([match[0].strip() for match in sentences]) @ coder.encode(table["match"].to_pylist()).T
    names = ("transcript_id", "start_ms", "end_ms", "speaker_name", "match")
    best = [
        (match.span(), int(row.argmax()))
        for match, row in zip(sentences, cosines, strict=True)
        if row.max() >= _LEAST_CLOSENESS
    ]
    return [Citation(*span, *(table[name][at].as_py() for name in names)) for span, at in best]


#: A transcript id, an iterable of ids, or a table with a column `transcript_id`. None: every completed transcript.
Selection = str | Iterable[str] | pd.DataFrame | None
#: Send a request again: never, always, or only if its response was lost.
Refresh: TypeAlias = bool | Literal["lost"]
#: Number of sentences per question that are sent instead of many transcripts, each with the sentences beside it.
PASSAGES = 20
#: Maximum number of characters of a text. In any language, a token rarely has fewer than two characters.
MAX_CHARS = 2 * LLM_INPUT_DEFAULT


@dataclass(frozen=True)
class Answers:
    """Result of a language-model operation on transcripts of a corpus.

    Attributes:
        text: The result as one text. Each question precedes its answer.
        replies: One reply, or one per question.
        transcript_ids: Transcripts that the result is about.
        responses: Responses to all requests behind it, new or cached. If a final request combined partial results, its
            response is last.
        citations: For `ask`, the moments of recordings that the answers rest on: `question_idx` int64 (index of the
            reply), `transcript_id` str, `start_ms` and `end_ms` Int64, `speaker_name` str, `text` str, and `begin` and
            `end` int64 (place in the answer, in characters). They are the passages that an answer names by number, else
            those that it quotes word for word, else, if passages were sent, the sentences closest to it in meaning.
            Otherwise None.
    """

    text: str
    replies: tuple[LlmReply, ...] = field(repr=False)
    transcript_ids: tuple[str, ...] = field(repr=False)
    responses: tuple[LlmResponse, ...] = field(repr=False)
    citations: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    @property
    def usage(self) -> Usage:
        """Tokens used by all requests. A count is None if the service does not report it."""
        counts = [(r.usage.input_tokens, r.usage.output_tokens) for r in self.responses]
        return Usage(*(None if None in column else sum(filter(None, column)) for column in zip(*counts, strict=True)))

    @property
    def quotes_key_sentences(self) -> bool:
        """True if a part of the result was quoted from the transcripts, because there is no language model."""
        return any(response.quotes_key_sentences for response in self.responses)


class Llm:
    """Language-model operations on the transcripts of a corpus.

    A selection that exceeds the limits of one request is split, and a final request combines the partial results. Every
    response is cached, so the same request about the same transcripts is not sent or charged twice. A request with a
    lost response is only sent again with `refresh`, because services have no list of responses to look it up.

    Transcripts are sent by id. They are sent as text if they have speaker names or corrections, or if the service did
    not create them.
    """

    def __init__(self, archive: Archive, search: Search, default_client: DefaultClient) -> None:
        self._archive, self._search, self._ledger = archive, search, archive.ledger
        self._default_client = default_client

    def run(
        self,
        task: str,
        task_fields: Mapping[str, Any],
        transcripts: Selection,
        options: LlmOptions,
        client: Client | None,
        refresh: Refresh,
        progress: bool | None,
        passages: int | None = 0,
    ) -> Answers:
        """Run a task on transcripts; `Corpus` describes the tasks."""
        if passages is not None:
            passages = checked("passages", passages, Integer(0))
        if options.get("input_text") is not None:
            raise OptionError("input_text cannot be used with a corpus; pass it to Client.summarize, ask or task")
        if refresh not in (True, False, "lost"):
            raise OptionError(f"refresh must be True, False or 'lost', got {refresh!r}")
        llm.request_body("any", options)  # validates the options before anything is sent
        fields = {name: value for name, value in {**task_fields, **options}.items() if value is not None}
        with clear_errors(self._archive.path):
            batches = make_batches(self._archive, transcripts)
            ids = tuple(dict.fromkeys(i for batch in batches for i in batch.ids))
            sent: list[NumberedPassage] = []
            if passages is None:
                passages = PASSAGES if len(batches) > 1 and encoder.find() is not None else 0
            if passages:
                questions = [f"{item['question']} {item.get('context') or ''}" for item in fields["questions"]]
                tables = self._search.meaning.passages(questions, ids, passages, progress)
                sent = [NumberedPassage(n, table) for n, table in enumerate(tables, 1)]
                texts = texts_together(passage.written() for passage in sent)
                batches = [LlmBatch(ids, f"{PREAMBLE}\n\n{text}") for text in texts]
            requests = _Requests(self._archive, self._default_client, task, fields, client, refresh)
            with Progress(f"requesting {task}", jobs=len(batches), show=progress) as bar:
                for batch in batches:
                    requests.send(batch)
                    bar.advance(1)
                answers = _combined(requests, ids)
            if task != "question-answer":
                return answers
            replies = [reply.answer for reply in answers.replies]
            return replace(answers, citations=cite(replies, sent, self._words, ids))

    def _words(self, query: str, *, ids: Sequence[str], context: int, limit: int) -> pd.DataFrame:
        """Search words, for verbatim citations."""
        return self._search.find(SearchQuery.check(query, None), context, RowFilter(ids=ids, limit=limit))

    def responses(self) -> pd.DataFrame:
        """Return the cached responses as the table `responses`, oldest first."""
        answers: list[Any] = [_restored(answer) for answer in self._ledger.llm_responses()]
        return frames.to_pandas(response_table(answers), "responses")

    def unanswered(self) -> pd.DataFrame:
        """Return the requests with a lost response, oldest first."""
        rows = [{**question.request, "asked": question.created} for question in self._ledger.pending_requests()]
        table = pd.DataFrame(rows, columns=["task", "prompt", "transcript_ids", "asked"])
        dtypes = {"task": TEXT, "prompt": TEXT, "transcript_ids": object, "asked": "datetime64[us, UTC]"}
        return table.astype(dtypes)


class _Requests:
    """Sends the same request for one batch after another, and collects the responses."""

    def __init__(
        self,
        archive: Archive,
        default_client: DefaultClient,
        task: str,
        arguments: Mapping[str, Any],
        client: Client | None,
        refresh: Refresh,
    ) -> None:
        self.task = task
        self.answers: list[LlmResponse] = []
        self._archive, self._ledger, self._default_client = archive, archive.ledger, default_client
        self._arguments, self._client, self._refresh = arguments, client, refresh
        self._service = default_client.service_name(client)

    def send(self, batch: LlmBatch) -> None:
        """Request a response for a batch. If the service refuses it, send the transcripts it did not create as text."""
        parts = None if self._is_cached(batch) else self._split(batch)
        if parts is None or not all(map(self._is_cached, parts)):  # otherwise it was refused before
            try:
                self.ask(batch)
            except (BadRequestError, NotFoundError):
                if parts is None:
                    raise
            else:
                return
        for part in parts:
            self.ask(part)

    def ask(self, batch: LlmBatch) -> LlmResponse:
        """Return the response for a batch, from the cache if possible."""
        key = self._key(batch)
        with self._ledger.lock(key):
            cached = self._known(key)
            answer = _restored(cached) if cached else self._new(key, batch)
        self.answers.append(answer)
        return answer

    def _key(self, batch: LlmBatch) -> str:
        about = {"input_text": batch.text} if batch.text is not None else {"transcript_ids": list(batch.ids)}
        return cache_key({"service": self._service, "task": self.task, **self._arguments, **about})

    def _known(self, key: str) -> CachedAnswer | None:
        return None if self._refresh is True else self._ledger.answer(key)

    def _is_cached(self, batch: LlmBatch) -> bool:
        return self._known(self._key(batch)) is not None

    def _split(self, batch: LlmBatch) -> list[LlmBatch] | None:
        """Split a batch into the transcripts that the service created, sent by id, and the others, sent as text."""
        if batch.text is not None:
            return None
        created = {job.transcript_id for job in self._ledger.jobs(self._service)}
        as_text = [transcript_id for transcript_id in batch.ids if transcript_id not in created]
        if not as_text:
            return None
        by_id = tuple(transcript_id for transcript_id in batch.ids if transcript_id in created)
        return [*([LlmBatch(by_id)] if by_id else []), *_as_texts(self._archive, as_text)]

    def _new(self, key: str, batch: LlmBatch) -> LlmResponse:
        client = self._default_client.use(self._client)
        arguments = dict(self._arguments)
        source: dict[str, Any] = {"transcripts": list(batch.ids)}
        if batch.text is not None:
            source = {"input_text": batch.text}
        calls: dict[str, Callable[..., LlmResponse]] = {
            "summary": client.summarize,
            "question-answer": client.ask,
            "task": client.task,
            "action-items": client.action_items,
        }
        with self._pending(key, batch.ids):
            answer = replace(calls[self.task](**arguments, **source), transcript_ids=batch.ids)
        note = {"task": answer.task, "prompt": answer.prompt, "transcript_ids": batch.ids}
        with suppress(MissingTranscriptError), self._archive.kept(*batch.ids):  # one may have been deleted meanwhile
            about = {"service": self._service, "request_id": answer.request_id}
            self._ledger.keep_answer(key, note, answer.raw, **about)
            self._ledger.note_request(answer.request_id, self._service, batch.ids)
        return answer

    @contextmanager
    def _pending(self, key: str, ids: Sequence[str]) -> Iterator[None]:
        """Mark a request as pending in the ledger until its outcome is known: the service may charge for it."""
        ledger = self._ledger
        if self._service == EMBEDDED:  # charges nothing
            yield
            return
        if not self._refresh and (lost := ledger.pending_requests(key)):
            raise LostAnswerError(
                f"this {self.task} was requested at {lost[0].created:%Y-%m-%d %H:%M} UTC and the response was lost. "
                "The service may have charged for it, and has no list to find it in. refresh='lost' (--lost) "
                "sends the request again"
            )
        request = {"task": self.task, "prompt": self._arguments.get("prompt"), "transcript_ids": ids}
        ledger.mark_pending(key, self._service, request)
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            if not _may_be_answered(error):
                ledger.clear_pending(key)
            raise


def _may_be_answered(error: Exception | KeyboardInterrupt) -> bool:
    """Return True if the service may have answered a request that ended with this error."""
    if isinstance(error, KeyboardInterrupt):
        return NOTHING_UNDER_WAY not in getattr(error, "__notes__", ())
    return isinstance(error, ServiceError) and error.possibly_delivered


def _combined(requests: _Requests, ids: tuple[str, ...]) -> Answers:
    """Combine the responses for all batches into one result."""
    parts = list(requests.answers)
    if not parts:  # the transcripts have words, but none has text
        raise OptionError("the selected transcripts contain no text; select others")
    if requests.task == "action-items" and len(parts) > 1:
        text = "\n".join(part.text for part in parts)
        return Answers(text, (LlmReply(text),), ids, tuple(parts))
    level = parts
    while len(level) > 1:
        groups = texts_together([part.text for part in level])
        if len(groups) == len(level):  # no two texts fit into one request
            text = "\n\n".join(part.text for part in level)
            return Answers(text, (LlmReply(text),), ids, tuple(requests.answers))
        level = [requests.ask(LlmBatch(ids, text)) for text in groups]
    return Answers(level[0].text, level[0].replies, ids, tuple(requests.answers))


def _restored(answer: CachedAnswer) -> LlmResponse:
    """Return a cached response as a response object."""
    note: Mapping[str, Any] = answer.request
    ids: Sequence[str] = note["transcript_ids"]
    response = read_response(HTTPResponse(200, {}, answer.content, "GET", ""), note["task"], note["prompt"], tuple(ids))
    return replace(response, created=answer.created)


@dataclass(frozen=True)
class LlmBatch:
    """Transcripts of one request."""

    ids: tuple[str, ...]
    text: str | None = None  # their text, if it is sent; None: the service looks up the transcripts by id


def make_batches(archive: Archive, transcripts: Any) -> list[LlmBatch]:
    """Split a selection of transcripts into batches that fit into one request."""
    ids = None if transcripts is None else archive.recordings.ids(transcripts)
    table = Query(archive).table("transcripts", ids, columns=["transcript_id", "status", "audio_duration_s"])
    if ids is not None and (undone := table[table["status"] != "completed"]["transcript_id"].to_list()):
        raise OptionError(f"transcript {undone[0]!r} is not completed, so it has no text; leave it out")
    table = table[table["status"] == "completed"]
    if table.empty:
        raise OptionError(f"the selection contains no completed transcript of the corpus {archive.path}")
    completed = table["transcript_id"].tolist()
    spoken = archive.with_rows("words", completed) | archive.with_rows("utterances", completed)
    table = table[table["transcript_id"].isin(spoken)]
    if table.empty:
        raise OptionError(f"the selected transcripts of the corpus {archive.path} contain no speech")
    named = {i for i, names in valid_names(archive).items() if names} | archive.edits.hashes().keys()
    lengths = (table["audio_duration_s"].fillna(0) / 3600).tolist()
    hours: dict[str, float] = dict(zip(table["transcript_id"].tolist(), lengths, strict=True))
    groups = split_by_limits({i: h for i, h in hours.items() if i not in named})
    return [*(LlmBatch(tuple(group)) for group in groups), *_as_texts(archive, [i for i in hours if i in named])]


def _as_texts(archive: Archive, ids: Sequence[str]) -> Iterator[LlmBatch]:
    """Yield batches with the text of transcripts and the names of their speakers, as many per batch as fit."""
    batch_ids: list[str] = []
    text = ""
    for transcript_id in ids:
        for piece in texts_together(_lines(archive, transcript_id), "\n"):
            if batch_ids and len(text) + 2 + len(piece) > MAX_CHARS:
                yield LlmBatch(tuple(batch_ids), text)
                batch_ids, text = [], ""
            text = f"{text}\n\n{piece}" if text else piece
            if transcript_id not in batch_ids:
                batch_ids.append(transcript_id)
    if batch_ids:
        yield LlmBatch(tuple(batch_ids), text)


def _lines(archive: Archive, transcript_id: str) -> Iterator[str]:
    """Yield one line per turn with the name of its speaker and its corrected text; one too long is split."""
    turns = Query(archive).table("utterances", transcript_id)
    if turns.empty:
        from voxframe.analysis import turns as grouped

        turns = grouped(Query(archive).table("words", transcript_id))
    from voxframe.analysis.rows import row_speakers

    for who, text in zip(row_speakers(turns), turns["text"], strict=True):
        if isinstance(text, str) and text.strip():
            line = f"{who}: {text}" if isinstance(who, str) else text
            yield from (line[at : at + MAX_CHARS] for at in range(0, len(line), MAX_CHARS))


def texts_together(texts: Iterable[str], separator: str = "\n\n") -> list[str]:
    """Join texts into as few as possible that each fit into one request."""
    joined: list[str] = []
    for text in texts:
        if joined and len(joined[-1]) + len(separator) + len(text) <= MAX_CHARS:
            joined[-1] += separator + text
        else:
            joined.append(text)
    return joined


def split_by_limits(hours: dict[str, float]) -> Iterator[list[str]]:
    """Yield groups of transcript ids that each fit into one request, by number and total duration."""
    group: list[str] = []
    total = 0.0
    for transcript_id, length in hours.items():
        if group and (len(group) == LLM_TRANSCRIPTS or total + length > LLM_HOURS):
            yield group
            group, total = [], 0.0
        group.append(transcript_id)
        total += length
    if group:
        yield group
