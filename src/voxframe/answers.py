"""Loaders of the service's other answers: streaming sessions, language-model responses, word searches.

They take what the client returned, or the JSON itself, and keep nothing: these answers have no place in a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import orjson
import pandas as pd

from voxframe import frames
from voxframe.errors import PayloadError
from voxframe.frames.responses import Responses, response_table
from voxframe.frames.stream import Messages, stream_table, stream_word_table


@runtime_checkable
class Found(Protocol):
    """Result of a word search, as far as loading needs one."""

    raw: bytes
    transcript_id: str


#: One word search, as an object or as the service's answer, or an iterable of these.
WordSearches: TypeAlias = "Found | Mapping[str, Any] | bytes | Iterable[Found | Mapping[str, Any] | bytes]"


def load_responses(source: Responses) -> pd.DataFrame:
    """One row per answer of a language model, with the tokens it took.

    Args:
        source: What `client.summarize`, `ask`, `task`, `action_items` or `llm_response` returned, the JSON of such an
            answer, or an iterable of these.

    Returns:
        `request_id`, `task`, `prompt`, `response` str; `answer_idx` int64; `transcript_ids` Arrow lists of text;
        `input_tokens`, `output_tokens` (tokens of the whole request) Int64; `created` datetime64[us], UTC. A response
        fetched by its identifier does not say what was asked: those columns are null.

    Raises:
        PayloadError: An item is no such answer.

    Example:
        >>> df = load_responses({"request_id": "r", "response": [{"question": "Why?", "answer": "Rain."}]})
        >>> df[["prompt", "response"]].iloc[0].to_list()
        ['Why?', 'Rain.']
    """
    return frames.to_pandas(response_table(source), "responses")


def load_word_matches(source: WordSearches) -> pd.DataFrame:
    """One row per occurrence of a searched word or phrase.

    Args:
        source: What `client.word_search` returned, the JSON of such an answer, or an iterable of these.

    Returns:
        `transcript_id`, `query` str; `match_idx` int64; `word_idx`, `start_ms`, `end_ms` (ms) Int64. `word_idx` is the
        first word's row in `load_words`.

    Raises:
        PayloadError: An item cannot be read.

    Example:
        >>> df = load_word_matches({"id": "a", "matches": [{"text": "hi", "timestamps": [[0, 90]], "indexes": [4]}]})
        >>> df["word_idx"].to_list()
        [4]
    """
    items = [source] if isinstance(source, Found | Mapping | bytes) else source
    if not isinstance(items, Iterable):
        raise PayloadError(
            f"a {type(source).__name__} is no result of a word search; pass what client.word_search gave"
        )
    tables = [
        frames.word_match_table(item.raw, item.transcript_id)
        if isinstance(item, Found)
        else frames.word_match_table(item if isinstance(item, bytes) else orjson.dumps(item))
        for item in items
    ]
    return frames.to_pandas(frames.concat_tables(tables, "word_matches"), "word_matches")


def load_stream(source: Messages) -> pd.DataFrame:
    """One row per message of a streaming session: partials, finals, and what begins and ends it.

    Args:
        source: A session, also while it runs, or messages of sessions (as objects, dicts or JSON).

    Returns:
        `session_id`, `message_type`, `text` str; `message_idx` int64; `start_ms`, `end_ms` (ms of the session) Int64;
        `confidence` (0-1), `audio_duration_s` (s) float64; `punctuated`, `text_formatted` boolean; `created`
        datetime64[us].

    Raises:
        PayloadError: The source holds no messages.

    Example:
        >>> df = load_stream([{"message_type": "FinalTranscript", "text": "Hello.", "audio_end": 480}])
        >>> df["text"].to_list()
        ['Hello.']
    """
    return frames.to_pandas(stream_table(source), "stream")


def load_stream_words(source: Messages, *, finals_only: bool = False) -> pd.DataFrame:
    """One row per word of each message of a streaming session; `message_idx` is the message's row in `load_stream`.

    Args:
        source: A session, also while it runs, or messages of sessions (as objects, dicts or JSON).
        finals_only: Leave out the words of partials, which come again in the finals.

    Returns:
        `session_id`, `text` str; `message_idx`, `word_idx` int64; `start_ms`, `end_ms` (ms of the session) Int64;
        `confidence` (0-1) float64.

    Raises:
        PayloadError: The source holds no messages.

    Example:
        >>> final = {"message_type": "FinalTranscript", "words": [{"text": "Hello.", "start": 120}]}
        >>> df = load_stream_words([final])
        >>> df["start_ms"].to_list()
        [120]
    """
    return frames.to_pandas(stream_word_table(source, finals_only=finals_only), "stream_words")
