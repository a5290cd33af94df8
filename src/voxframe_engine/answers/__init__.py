"""Language-model operations: summaries, questions, tasks and action items over transcripts or a text.

This module has requests and their validation, their input, and the interface of answerers.

With a model on this machine (`voxframe models get writer`, or `--writer`, environment: VOXFRAME_WRITER), summaries,
answers and action items are written by it (`writer`). Each sentence is checked against the text (`evidence`): the
response has the passages behind it as `citations`, and a sentence without one is left out. Long recordings are read in
parts, of which the model takes notes. It is a small model: who did what to whom may be wrong. It also writes the
headlines and summaries of jobs.

Without any model, an extractive answerer selects the sentences that answer and quotes them; its responses say
`"model": "voxframe-extractive"`, and in the header X-Answer-Method "key sentences, quoted". With `--llm-url` and
`--llm-model` (environment: VOXFRAME_LLM_URL, VOXFRAME_LLM_MODEL, VOXFRAME_LLM_KEY, VOXFRAME_LLM_WINDOW), the configured
model answers, and responses have its name.

| operation | extractive method |
|---|---|
| question-answer | the sentence that the answer model finds, and up to two others if they are almost as good |
| ... without the model of the sentence encoder | sentences with most words of the question, and those beside them |
| ... with answer_options | the option best supported by the sentences found; yes if they confirm, no if they deny |
| task | a summary, action items, or sentences that answer; what needs writing is refused (78 of 90 prompts) |
| summary | the most representative sentences (`analyses.chapters`), proportionally from each transcript |
| action-items | sentences with a commitment or a request |

Of `answer_format`, it follows bullets, a number of sentences, and "brief". `temperature` has no effect.

The answer model (`ranking`) compares a question with every sentence. If no sentence fits, the question is refused.
The table shows questions with the right sentence, of those that the text answers, and refused ones, of the others. Most
are paraphrased. The texts were not used for training, but were looked at when the threshold was chosen.

| texts | right | refused |
|---|---|---|
| a family talk, a job interview, a lecture and a call, with questions as users would ask them | 70 of 80 | 32 of 40 |
| a talk | 19 of 20 | 9 of 10 |
| 5 short conversations | 40 of 47 | 15 of 16 |
| 8 short conversations; most questions share few words with their answer | 74 of 89 | 28 of 28 |
| 4 long conversations | 35 of 40 | 16 of 20 |
| an interview; most questions share no word with their answer | 13 of 20 | 9 of 10 |
| a meeting | 17 of 20 | 5 of 10 |
| 3 conversations; 3 of 60 questions share a word with their answer | 46 of 60 | 20 of 30 |

An hour of speech takes 4 s of one core, and each further question of a request 30 ms. On two other conversations
(`test_llm_quality.py`), 11 of 12 options are right, 9 of 9 action items found and 1 wrong one. English only.

Responses are stored in `llm.sqlite` until they are purged. Context, prompt and input text are never written to disk.
Deleting a transcript does not delete the responses made from it: purge these too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, get_args

import orjson

from voxframe import _text
from voxframe.options import LLM_DEFAULTS, LLM_INPUT_DEFAULT, LLM_OUTPUT_TOKENS, LLM_TRANSCRIPTS
from voxframe.validators import Integer, InvalidValueError, Number, ValueType, shown
from voxframe_engine import RequestRefused


class ModelFailed(Exception):  # noqa: N818 - becomes the answer to a request
    """The model did not answer."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Cancelled(Exception):  # noqa: N818 - not an error
    """Nobody waits for the answer any more. Raised by a `Report`."""


#: Called with the completed share of the work, from 0 to 1. It may raise `Cancelled`.
Report = Callable[[float], None]


def unreported(_: float) -> None:
    """Ignore progress."""


_SPEAKER = re.compile(r"\s*(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?\s*)?((?:Speaker )?[^\W\d_][\w .'-]{0,39}):\s+(?=\S)")
#: The boundary between two turns of a dialogue on one line.
_TURN = re.compile(r"(?<=[.?!])\s+(?=(?:Speaker )?[^\W\d_a-z]\w{0,19}(?: [^\W\d_a-z]\w{0,19})?:\s)")
#: A line about the text, such as the number of a passage.
_NOTE = re.compile(r"\s*\[.*\]\s*")
_PIECE = 20  # maximum number of sentences per piece
_LONGEST = 60  # sentences without punctuation are cut after this number of words


class Line(NamedTuple):
    """A sentence."""

    text: str
    speaker: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Source:
    """One transcript or text.

    Attributes:
        breaks: Indexes of sentences that do not follow the one before, such as the first one after a note.
    """

    lines: Sequence[Line] = field(repr=False)
    seconds: float = 0.0
    breaks: Sequence[int] = ()
    transcript_id: str | None = None


def from_transcript(transcript: dict[str, Any]) -> Source:
    """Return the sentences of a transcript."""
    lines = [
        Line(
            _text.join_words(word["text"] for word in words),
            words[0].get("speaker"),
            words[0]["start"],
            words[-1]["end"],
        )
        for words in _text.sentences(transcript["words"] or [])
    ]
    return Source(lines, transcript["audio_duration"] or 0.0, transcript_id=transcript.get("id"))


def from_text(text: str) -> Source:
    r"""Return the sentences of a text. A name and a colon at the start of a line name the speaker.

    A line in square brackets is a note and no sentence.
    """
    lines, breaks, speaker = list[Line](), list[int](), None
    rows = (part for row in text.splitlines() for part in (_TURN.split(row) if _SPEAKER.match(row) else [row]))
    for row in rows:
        if _NOTE.fullmatch(row):
            speaker = None
            breaks.append(len(lines))
            continue
        if match := _SPEAKER.match(row):
            speaker, row = match[1], row[match.end() :]
        elif not row.strip():
            speaker = None
        lines += [Line(sentence, speaker) for sentence in _sentences(row)]
    return Source(lines, breaks=[at for at in breaks if at < len(lines)])


def _sentences(row: str) -> Iterator[str]:
    # All times are 0, so that only punctuation ends a sentence.
    words = [{"text": word, "start": 0, "end": 0} for word in row.split()]
    for sentence in _text.sentences(words):
        for at in range(0, len(sentence), _LONGEST):
            yield _text.join_words(word["text"] for word in sentence[at : at + _LONGEST])


def is_question(text: str) -> bool:
    """Return True if a sentence is a question."""
    return text.rstrip("\"')] ").endswith("?")


def written(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the lines as dialogue: the speaker, then consecutive sentences, in pieces of limited length."""
    turn: list[Line] = []
    for line in lines:
        if turn and (line.speaker != turn[-1].speaker or len(turn) == _PIECE):
            yield _turn(turn)
            turn = []
        turn.append(line)
    if turn:
        yield _turn(turn)


def _turn(lines: Sequence[Line]) -> str:
    text = " ".join(line.text for line in lines)
    return f"Speaker {lines[0].speaker}: {text}" if _is_label(lines[0].speaker) else _named(lines[0].speaker, text)


def _is_label(speaker: str | None) -> bool:
    return speaker is not None and len(speaker) <= 2


def _named(speaker: str | None, text: str) -> str:
    return text if speaker is None else f"{speaker}: {text}"


#: One token of the extractive answerer: a punctuation mark, or up to eight letters of a word.
_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")


def count(text: str) -> int:
    """Return the number of tokens in a text."""
    return sum(1 for _ in _TOKEN.finditer(text))


def cut(text: str, most: int) -> str:
    """Return the beginning of a text with at most `most` tokens, ending at the end of a word."""
    ends = [match.end() for match, _ in zip(_TOKEN.finditer(text), range(most + 1), strict=False)]
    if len(ends) <= most:
        return text
    end = start = ends[most - 1] if most else 0
    if text[end : end + 1].isalnum():
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1  # to the start of the word that is cut
    return text[: start or end].rstrip()


Task = Literal["summary", "task", "question-answer", "action-items"]
TASKS: tuple[str, ...] = get_args(Task)
#: Model name in responses that quote, because there is no language model.
QUOTING = "voxframe-extractive"


@dataclass(frozen=True)
class LLMQuestion:
    """One question."""

    question: str
    context: str = ""
    answer_format: str = ""
    answer_options: tuple[str, ...] = ()


#: Known fields of the objects in lists.
NESTED = {"sources": ("id", "type"), "questions": tuple(LLMQuestion.__dataclass_fields__)}


@dataclass(frozen=True)
class LLMRequest:
    """A validated request."""

    task: Task
    transcript_ids: tuple[str, ...] = ()
    input_text: str = field(default="", repr=False)
    context: str = ""
    final_model: str = "default"
    max_output_size: int = 2000
    temperature: float = 0.0
    answer_format: str = ""
    prompt: str = ""
    questions: tuple[LLMQuestion, ...] = ()


#: The field that only one task has, by task.
_TASK_FIELDS = {"task": "prompt", "question-answer": "questions"}


def field_names(task: Task) -> set[str]:
    """Return the names of the fields that the body of a request for a task may have."""
    names = LLMRequest.__dataclass_fields__.keys() - {"task", *_TASK_FIELDS.values()}
    return names | {"sources"} | ({_TASK_FIELDS[task]} if task in _TASK_FIELDS else set())


def read_request(task: Task, body: object) -> LLMRequest:
    """Validate the body of a request. Unknown fields and nulls are ignored."""
    if not isinstance(body, Mapping):
        raise RequestRefused("the body must be a JSON object")
    fields = {name: value for name, value in body.items() if value is not None}
    wrongs: list[str] = []

    def take(name: str, convert: Callable[[str, Any], Any], default: Any) -> Any:
        if name not in fields:
            return default
        try:
            return convert(name, fields[name])
        except RequestRefused as wrong:
            wrongs.append(str(wrong))
            return default

    ids = take("transcript_ids", _ids, ())
    sources = take("sources", _sources, ())
    if ids and sources and set(ids) != set(sources):
        wrongs.append("transcript_ids and sources name different transcripts; give one of them")
    llm_request = LLMRequest(
        task=task,
        transcript_ids=ids or sources,
        input_text=take("input_text", _as_text, ""),
        context=take("context", _context, ""),
        final_model=take("final_model", _filled, LLM_DEFAULTS["final_model"]),
        max_output_size=take("max_output_size", _output_size, LLM_DEFAULTS["max_output_size"]),
        temperature=take("temperature", _temperature, LLM_DEFAULTS["temperature"]),
        answer_format=take("answer_format", _as_text, ""),
        prompt=take("prompt", _filled, "") if task == "task" else "",
        questions=take("questions", _questions, ()) if task == "question-answer" else (),
    )
    if not wrongs:
        wrongs += _missing(llm_request)
    if wrongs:
        raise RequestRefused("; ".join(wrongs))
    return llm_request


def _missing(llm_request: LLMRequest) -> list[str]:
    """Return problems with the combination of fields that are valid alone."""
    wrongs = []
    if bool(llm_request.transcript_ids) == bool(llm_request.input_text.strip()):
        state = "both" if llm_request.transcript_ids else "neither"
        wrongs.append(f"either transcript_ids (or sources) or input_text is required, got {state}")
    if len(llm_request.transcript_ids) > LLM_TRANSCRIPTS:
        wrongs.append(
            f"at most {LLM_TRANSCRIPTS} transcripts per request are allowed, got {len(llm_request.transcript_ids)}"
        )
    if (tokens := count(llm_request.input_text)) > LLM_INPUT_DEFAULT:
        wrongs.append(f"input_text may have at most {LLM_INPUT_DEFAULT} tokens, not {tokens}; send it in parts")
    if llm_request.task == "task" and not llm_request.prompt:
        wrongs.append("prompt is required: what to do with the transcripts, in words")
    if llm_request.task == "question-answer" and not llm_request.questions:
        wrongs.append('questions is required: a list such as [{"question": "Who is speaking?"}]')
    return wrongs


def _as_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise RequestRefused(f"{name} must be a text")
    return value


def _filled(name: str, value: object) -> str:
    text = _as_text(name, value)
    if not text.strip():
        raise RequestRefused(f"{name} must be a text that is not empty")
    return text


def _context(_: str, value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _output_size(name: str, value: object) -> Any:
    return _converted(name, value, Integer(1, LLM_OUTPUT_TOKENS, unit="tokens"))


def _temperature(name: str, value: object) -> Any:
    return _converted(name, value, Number(0, 1))


def _converted(name: str, value: object, kind: ValueType) -> Any:
    try:
        return kind.convert(value)
    except InvalidValueError as error:
        raise RequestRefused(f"{name} {error}, not {shown(value)}") from None


def _listed(name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise RequestRefused(f"{name} must be a list")
    return value


def _ids(name: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_filled(f"each of {name}", item) for item in _listed(name, value)))


def _sources(name: str, value: object) -> tuple[str, ...]:
    sources = []
    for item in _listed(name, value):
        entry = item if isinstance(item, Mapping) else {}
        if entry.get("type", "transcript") != "transcript" or not isinstance(entry.get("id"), str) or not entry["id"]:
            raise RequestRefused(f'each of {name} must be {{"id": "...", "type": "transcript"}}')
        sources.append(entry["id"])
    return tuple(dict.fromkeys(sources))


def _questions(name: str, value: object) -> tuple[LLMQuestion, ...]:
    questions = []
    for item in _listed(name, value):
        if not isinstance(item, Mapping):
            raise RequestRefused(f'each of {name} must be an object such as {{"question": "Who is speaking?"}}')
        entry = {key: part for key, part in item.items() if part is not None}
        options = _listed("answer_options", entry.get("answer_options", []))
        questions.append(
            LLMQuestion(
                _filled("question", entry.get("question")),
                _context("context", entry.get("context", "")),
                _as_text("answer_format", entry.get("answer_format", "")),
                tuple(_filled("each of answer_options", option) for option in options),
            )
        )
    return tuple(questions)


class LLMAnswer(NamedTuple):
    """A response.

    Attributes:
        response: A text, or for question-answer a list of `{"question", "answer"}`.
        citations: Passages that support sentences of the response; None if they were not looked for.
    """

    response: str | list[dict[str, str]]
    input_tokens: int
    output_tokens: int
    model: str
    citations: list[dict[str, Any]] | None = None


class Answerer(Protocol):
    """An implementation of the language-model operations."""

    def check(self, model: str) -> None:
        """Raise `RequestRefused` if a `final_model` is not available."""

    def answer(self, llm_request: LLMRequest, sources: Sequence[Source], report: Report = unreported) -> LLMAnswer:
        """Answer a request from the given transcripts or text. `report` takes the progress, and may raise Cancelled."""
