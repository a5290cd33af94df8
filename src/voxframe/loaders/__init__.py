"""Loaders: read transcripts and other responses of a service from any source into tidy DataFrames.

Every loader of transcripts takes the same `source`:

- A transcript handle, an id, or the name of a recording. It is read from the corpus (`corpus=`, or the default one). If
  the corpus does not have it, it is fetched from the service once; an id then needs `client=`. `refresh=True` fetches
  it again.
- A payload as a dict or as JSON bytes, or the path of a .json, .jsonl or .ndjson file, also with .gz or .zst. Bytes and
  files may hold several payloads, as a list or as JSON lines. Each may be in an envelope such as `{"data": {...}}`.
  Payloads are not stored in a corpus.
- A folder or a pattern such as `"calls/*.json"`: all payload files in it, sorted by path.
- A `Corpus`: all its transcripts. A DataFrame with a column `transcript_id` or `recording`: the transcripts
  it names, once each.
- An iterable of any of these, except a corpus or a DataFrame: one DataFrame for all of them, in their order.

Every DataFrame has all columns of its table and their dtypes, even without rows: `str` for text, `int64` for ordinals,
`Int64` for other integers (times are ms from the start of the media), `float64` for confidences, `boolean` for flags.
Fields that the data dictionary does not define are in `extra`, as JSON text. `voxframe.describe("words")` shows the
columns of a table with their units. A table from a corpus also has `speaker_name` after `speaker`: the name set in the
corpus for the speaker, or else the label. `recording`, after `transcript_id`, is the name of the recording: the stem of
its file, otherwise the id. In a corpus, `transcripts` has its `source`, too.
After a `text` that corrections can change there is `text_original`: the text of the service, null if it is unchanged.

A null is NaN in text and floats, NA in integers and flags, and NaT in times; `isna()` finds each.

All loaders raise `PayloadError` if a source is none of these or has no readable payload. They raise `ServiceError` if
the service does not return a transcript, and `OptionError` if an argument has a value that is not allowed. If only some
of several payloads cannot be read, the others are loaded and a `PayloadWarning` names those left out. A value that
cannot be used becomes null, with one warning per transcript; the rest of the transcript is loaded.

A transcript is loaded once. Of several payloads with the same id and rows in the same table, the first finished one is
kept, as by `Corpus.add`. One `PayloadWarning` counts payloads with the same rows, such as copies of a file. Another one
names payloads with different rows, and the payload that was kept. To compare two payloads of one transcript, load them
separately. Payloads without an id are all kept.

`load_responses`, `load_word_matches`, `load_stream` and `load_stream_words` read the objects that the client returns
for other requests, or their JSON. Nothing of these is stored in a corpus.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from textwrap import fill
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack, cast, runtime_checkable

import pandas as pd

from voxframe import frames
from voxframe._arrow import takes_frames
from voxframe.corpus.analyses import analyzed, checked_options
from voxframe.corpus.query import TablesByName
from voxframe.errors import PayloadError
from voxframe.frames.payloads import encode, payloads
from voxframe.frames.responses import Messages, Responses, response_table, stream_table, stream_word_table
from voxframe.importers import converted, from_table
from voxframe.loaders.reading import LoadOptions, RowOptions, load, load_all
from voxframe.loaders.sources import Content, Remote, Source, Sources, resolve
from voxframe.options import TranscriptOptions
from voxframe.schema import CORPUS_TABLES, TABLES, TEXT_ORIGINAL, Table
from voxframe.validators import Boolean, checked

_Loader = TypeVar("_Loader", bound=Callable[..., object])


@runtime_checkable
class WordSearchResult(Protocol):
    """Result of a word search, as `client.word_search` returns it."""

    raw: bytes
    transcript_id: str


#: One word search, as an object or as the response of the service, or an iterable of these.
WordSearches: TypeAlias = (
    "WordSearchResult | Mapping[str, Any] | bytes | Iterable[WordSearchResult | Mapping[str, Any] | bytes]"
)

_ARGUMENTS = """    Args:
        source: Transcript handle, id, payload, path, folder, pattern, corpus, DataFrame with ids, or an iterable; see
            `voxframe.loaders`.
        client: Client that fetches ids, from `voxframe.connect()`. None (default): read ids from the corpus only.
        corpus: Corpus to read from and to store fetched transcripts in. None (default): the default corpus.
        refresh: Fetch the transcript even if the corpus has it.
        limit: Maximum number of rows; the first ones are returned, and no more sources are read than needed.
        category: Return ids, speakers and labels (`voxframe.frames.CATEGORIES`) as `category`, which takes half of the
            memory of a table of words.
        timedeltas: Add `start` and `end` as timedelta64[ms] after `end_ms`.
        corrected: False shows a transcript of a corpus without the changes of `corpus.corrections`.

    Returns:
"""

_WHERE = """        where: Rows to keep, as for `Corpus.table`, such as "confidence < 0.5 and speaker == 'A'". None
            (default): all rows. Conditions on recordings, people and metadata require a `Corpus` as the source.
"""


def _documented(loader: _Loader) -> _Loader:
    """Add the shared arguments of loaders to signature and docstring, and the columns of the table to the docstring."""

    @wraps(loader)
    def with_known_options(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in signature.parameters:  # otherwise the error would name the shared function
                allowed = ", ".join(signature.parameters)
                raise TypeError(f"{loader.__name__}() has no argument {name!r}; its arguments are {allowed}")
        return loader(*args, **options)

    source = inspect.signature(loader).parameters["source"]
    shared = [p for p in inspect.signature(load_all).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if loader.__name__ == "tables":  # a condition is about the columns of one table
        shared = [parameter for parameter in shared if parameter.name != "where"]
    signature = inspect.signature(loader).replace(parameters=[source, *shared])
    vars(with_known_options)["__signature__"] = signature
    if loader.__doc__:  # None with python -OO
        table = TABLES.get(loader.__name__.removeprefix("load_"))
        start = "    Returns:\n" if table is None else "    Example:\n"
        returns = "" if table is None else f"{_columns(table)}\n\n    Example:\n"
        before = "        category:"
        arguments = _ARGUMENTS.replace(before, _WHERE + before) if "where" in signature.parameters else _ARGUMENTS
        with_known_options.__doc__ = loader.__doc__.replace(start, arguments + returns, 1)
    return cast("_Loader", with_known_options)


def _columns(table: Table) -> str:
    """Return the columns of a table by dtype, with their units: "`transcript_id` str; `start_ms` (ms) Int64."."""
    names: dict[str, list[str]] = {}
    for column in (c for c in CORPUS_TABLES[table.name].columns if c in (*table.columns, TEXT_ORIGINAL)):
        names.setdefault(column.dtype, []).append(f"`{column.name}`{f' ({column.unit})' if column.unit else ''}")
    text = "; ".join(f"{', '.join(columns)} {dtype}" for dtype, columns in names.items())
    return fill(f"{text}.", 120, initial_indent=" " * 8, subsequent_indent=" " * 8)


@_documented
def tables(source: Sources, **options: Unpack[LoadOptions]) -> dict[str, pd.DataFrame]:
    """Return all tables of transcripts.

    Returns:
        DataFrames by name of all tables. Sentences and paragraphs are separate responses of the service:
        they are fetched for a handle, or for an id with a client. For an id in a corpus they are made from the words
        if the corpus does not have them (`derived` is True); for a payload, `load_sentences` makes them.

    Example:
        >>> tables({"id": "a", "words": [{"text": "Hello", "start": 120, "end": 480}]})["words"]["text"].to_list()
        ['Hello']
    """
    return TablesByName(load_all(source, **options))


@takes_frames
def analyze(source: Source | pd.DataFrame, **analyses: Unpack[TranscriptOptions]) -> dict[str, pd.DataFrame]:
    """Analyse transcripts that are in no corpus, on this machine; `Corpus.analyze` does it for a corpus.

    Args:
        source: A DataFrame of words or turns (see `voxframe.importers.from_table`), the path of a file in any format
            that voxframe reads, a payload, or a finished transcript handle.
        **analyses: As for `Corpus.analyze`: `sentiment_analysis=True` and others. None given: the usual six.

    Returns:
        All tables by name, as `tables` returns them, with `sentiments`, `entities`, `chapters`, `topics` and so on.

    Raises:
        PayloadError: The source cannot be read, has no words, or is not in English.
        OptionError: An option is invalid, or the DataFrame has no text.
        MissingExtraError: The extra `local` is not installed.

    Example:
        >>> df = pd.DataFrame({"speaker": ["Ann", "Ben"], "text": ["I love it.", "Call 415 555 0137."]})
        >>> analyze(df, entity_detection=True)["entities"][["entity_type", "text"]].to_numpy().tolist()
        [['phone_number', '415 555 0137']]
    """
    requested = checked_options(analyses)
    if isinstance(source, pd.DataFrame):
        raws = [encode({**payload, "id": payload["id"] or "table"}) for payload in from_table(source)]
    else:
        content = resolve(source, None)
        if isinstance(content, Remote):
            if content.handle is None:
                raise PayloadError(
                    f"{content.transcript_id!r} is neither a file nor a payload; corpus.analyze analyses transcripts "
                    "of a corpus"
                )
            content = Content(content.handle.raw)
        raws = [raw for _, raw in payloads(converted(*content))]
    return tables([analyzed(raw, requested) for raw in raws])


@_documented
def load_transcripts(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per transcript: status, error, text, duration, and every setting the service echoed.

    Lists are JSON text, which `json.loads` reads.

    Example:
        >>> df = load_transcripts({"id": "a", "status": "completed", "text": "Hello there."})
        >>> df[["transcript_id", "status", "text"]].to_dict("records")
        [{'transcript_id': 'a', 'status': 'completed', 'text': 'Hello there.'}]
    """
    return load("transcripts", source, **options)


@_documented
def load_words(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per word, in time order.

    Example:
        >>> df = load_words({"id": "a", "words": [{"text": "Hello", "start": 120, "end": 480, "confidence": 0.9}]})
        >>> df[["text", "start_ms", "end_ms"]].to_dict("records")
        [{'text': 'Hello', 'start_ms': 120, 'end_ms': 480}]
    """
    return load("words", source, **options)


@_documented
def load_utterances(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per utterance, in time order; no rows unless speakers or channels were requested.

    The utterance has `word_count` words of `load_words`, starting at `first_word_idx`.

    Example:
        >>> payload = {"id": "a", "utterances": [
        ...     {"speaker": "A", "text": "Hello.", "start": 120, "end": 480, "words": []}]}
        >>> df = load_utterances(payload)
        >>> df[["speaker", "text", "start_ms"]].to_dict("records")
        [{'speaker': 'A', 'text': 'Hello.', 'start_ms': 120}]
    """
    return load("utterances", source, **options)


@_documented
def load_sentences(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per sentence, in time order.

    Sentences are a separate response of the service, fetched once for a handle or an id. Without that response they are
    made from the words of the transcript, and the column `derived` is True; a payload of the response alone does not
    contain these words, so `first_word_idx` is null.

    Example:
        >>> df = load_sentences({"id": "a", "sentences": [{"text": "Hello there.", "start": 120, "end": 900}]})
        >>> df["text"].to_list()
        ['Hello there.']
    """
    return load("sentences", source, **options)


@_documented
def load_paragraphs(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per paragraph, in time order.

    Paragraphs are a separate response of the service, fetched once for a handle or an id. Without that response they
    are made from the words of the transcript, and the column `derived` is True; a payload of the response alone does
    not contain these words, so `first_word_idx` is null.

    Example:
        >>> df = load_paragraphs({"id": "a", "paragraphs": [{"text": "Hello there.", "start": 120, "end": 900}]})
        >>> df["text"].to_list()
        ['Hello there.']
    """
    return load("paragraphs", source, **options)


@_documented
def load_entities(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per entity: a person, place, date or other name.

    Example:
        >>> payload = {"id": "a", "entities": [
        ...     {"entity_type": "location", "text": "Canada", "start": 2548, "end": 3130}]}
        >>> df = load_entities(payload)
        >>> df[["entity_type", "text"]].to_dict("records")
        [{'entity_type': 'location', 'text': 'Canada'}]
    """
    return load("entities", source, **options)


@_documented
def load_chapters(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per chapter, in time order.

    Example:
        >>> payload = {"id": "a", "chapters": [
        ...     {"gist": "Smoke", "headline": "Smoke moves south", "summary": "", "start": 0, "end": 900}]}
        >>> df = load_chapters(payload)
        >>> df["headline"].to_list()
        ['Smoke moves south']
    """
    return load("chapters", source, **options)


@_documented
def load_highlights(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per key phrase.

    A higher `relevance` is more relevant.

    Example:
        >>> payload = {"id": "a", "auto_highlights_result": {"results": [
        ...     {"text": "air quality", "count": 2, "rank": 0.08}]}}
        >>> df = load_highlights(payload)
        >>> df[["text", "occurrences"]].to_dict("records")
        [{'text': 'air quality', 'occurrences': 2}]
    """
    return load("highlights", source, **options)


@_documented
def load_highlight_times(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per occurrence of a key phrase; `highlight_idx` is the phrase's row in `load_highlights`.

    Example:
        >>> payload = {"id": "a", "auto_highlights_result": {"results": [
        ...     {"text": "air", "timestamps": [{"start": 10, "end": 20}]}]}}
        >>> df = load_highlight_times(payload)
        >>> df[["highlight_idx", "start_ms"]].to_dict("records")
        [{'highlight_idx': 0, 'start_ms': 10}]
    """
    return load("highlight_times", source, **options)


@_documented
def load_content_safety(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per content label on a segment.

    Example:
        >>> payload = {"id": "a", "content_safety_labels": {"results": [
        ...     {"text": "Storm.", "labels": [{"label": "disasters", "confidence": 0.9}]}]}}
        >>> df = load_content_safety(payload)
        >>> df[["label", "confidence"]].to_dict("records")
        [{'label': 'disasters', 'confidence': 0.9}]
    """
    return load("content_safety", source, **options)


@_documented
def load_content_safety_summary(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per content label over the whole transcript.

    Example:
        >>> df = load_content_safety_summary({"id": "a", "content_safety_labels": {"summary": {"disasters": 0.9}}})
        >>> df[["label", "confidence"]].to_dict("records")
        [{'label': 'disasters', 'confidence': 0.9}]
    """
    return load("content_safety_summary", source, **options)


@_documented
def load_topics(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per topic on a segment.

    `level_1` to `level_4` are the parts of `label`.

    Example:
        >>> payload = {"id": "a", "iab_categories_result": {"results": [
        ...     {"text": "Rain.", "labels": [{"label": "Science>Weather", "relevance": 0.7}]}]}}
        >>> df = load_topics(payload)
        >>> df[["level_1", "level_2"]].to_dict("records")
        [{'level_1': 'Science', 'level_2': 'Weather'}]
    """
    return load("topics", source, **options)


@_documented
def load_topics_summary(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per topic over the whole transcript.

    Example:
        >>> df = load_topics_summary({"id": "a", "iab_categories_result": {"summary": {"Science>Weather": 0.7}}})
        >>> df[["label", "relevance"]].to_dict("records")
        [{'label': 'Science>Weather', 'relevance': 0.7}]
    """
    return load("topics_summary", source, **options)


@_documented
def load_custom_topics(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per custom topic on a segment.

    Example:
        >>> payload = {"id": "a", "custom_topics_results": {"results": [
        ...     {"text": "Rain.", "labels": [{"label": "weather", "relevance": 0.7}]}]}}
        >>> df = load_custom_topics(payload)
        >>> df[["label", "relevance"]].to_dict("records")
        [{'label': 'weather', 'relevance': 0.7}]
    """
    return load("custom_topics", source, **options)


@_documented
def load_custom_topics_summary(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per custom topic over the whole transcript.

    Example:
        >>> df = load_custom_topics_summary({"id": "a", "custom_topics_results": {"summary": {"weather": 0.7}}})
        >>> df[["label", "relevance"]].to_dict("records")
        [{'label': 'weather', 'relevance': 0.7}]
    """
    return load("custom_topics_summary", source, **options)


@_documented
def load_sentiments(source: Sources, **options: Unpack[RowOptions]) -> pd.DataFrame:
    """Return one row per sentence with its sentiment.

    `sentiment` is POSITIVE, NEUTRAL, NEGATIVE or another label.

    Example:
        >>> payload = {"id": "a", "sentiment_analysis_results": [
        ...     {"text": "Good.", "sentiment": "POSITIVE", "start": 0, "end": 300}]}
        >>> df = load_sentiments(payload)
        >>> df["sentiment"].to_list()
        ['POSITIVE']
    """
    return load("sentiments", source, **options)


def load_responses(source: Responses) -> pd.DataFrame:
    """Return one row per response of a language model, or per question of `ask`, with token counts.

    Args:
        source: Return value of `client.summarize`, `ask`, `task`, `action_items` or `llm_response`, its JSON, or an
            iterable of these.

    Returns:
        `request_id`, `task`, `prompt`, `response` str; `answer_idx` int64; `transcript_ids` str (a JSON array);
        `input_tokens`, `output_tokens` (tokens of the whole request) Int64; `created` datetime64[us, UTC]. The columns
        about the request are null for a response fetched by its id.

    Raises:
        PayloadError: An item is not a response of a language model.

    Example:
        >>> df = load_responses({"request_id": "r", "response": [{"question": "Why?", "answer": "Rain."}]})
        >>> df[["prompt", "response"]].iloc[0].to_list()
        ['Why?', 'Rain.']
    """
    return frames.to_pandas(response_table(source), "responses")


def load_word_matches(source: WordSearches) -> pd.DataFrame:
    """Return one row per occurrence of a searched word or phrase.

    Args:
        source: Return value of `client.word_search`, its JSON, or an iterable of these.

    Returns:
        `transcript_id`, `term` str; `match_idx` int64; `word_idx`, `start_ms`, `end_ms` (ms) Int64. `word_idx` is the
        row of the first word in `load_words`.

    Raises:
        PayloadError: An item cannot be read.

    Example:
        >>> df = load_word_matches({"id": "a", "matches": [{"text": "hi", "timestamps": [[0, 90]], "indexes": [4]}]})
        >>> df["word_idx"].to_list()
        [4]
    """
    items = [source] if isinstance(source, WordSearchResult | Mapping | bytes) else source
    if not isinstance(items, Iterable):
        raise PayloadError(
            f"cannot load a word search from {type(source).__name__}; pass what client.word_search returns, or its JSON"
        )
    tables = [
        frames.word_match_table(item.raw, item.transcript_id)
        if isinstance(item, WordSearchResult)
        else frames.word_match_table(item if isinstance(item, bytes) else encode(item))
        for item in items
    ]
    return frames.to_pandas(frames.concat_tables(tables, "word_matches"), "word_matches")


def load_stream(source: Messages) -> pd.DataFrame:
    """Return one row per message of a streaming session: partials, finals, and session messages.

    Args:
        source: A session, open or closed, or messages of sessions (objects, dicts or JSON).

    Returns:
        `session_id`, `message_type`, `text` str; `message_idx` int64; `start_ms`, `end_ms` (ms of the session) Int64;
        `confidence` (0-1), `audio_duration_s` (s) float64; `punctuated`, `text_formatted` boolean; `created`
        datetime64[us, UTC].

    Raises:
        PayloadError: The source holds no messages.

    Example:
        >>> df = load_stream([{"message_type": "FinalTranscript", "text": "Hello.", "audio_end": 480}])
        >>> df["text"].to_list()
        ['Hello.']
    """
    return frames.to_pandas(stream_table(source), "stream")


def load_stream_words(source: Messages, *, finals_only: bool = False) -> pd.DataFrame:
    """Return one row per word of each message of a streaming session.

    Args:
        source: A session, open or closed, or messages of sessions (objects, dicts or JSON).
        finals_only: Leave out the words of partials, which the finals repeat.

    Returns:
        `session_id`, `text` str; `message_idx`, `word_idx` int64; `start_ms`, `end_ms` (ms of the session) Int64;
        `confidence` (0-1) float64. `message_idx` is the row of the message in `load_stream`.

    Raises:
        PayloadError: The source holds no messages.

    Example:
        >>> final = {"message_type": "FinalTranscript", "words": [{"text": "Hello.", "start": 120}]}
        >>> df = load_stream_words([final])
        >>> df["start_ms"].to_list()
        [120]
    """
    checked("finals_only", finals_only, Boolean())
    return frames.to_pandas(stream_word_table(source, finals_only=finals_only), "stream_words")
