"""Loaders for other responses of a service: word searches, language model responses, streaming sessions.

They accept the objects that the client returns, or their JSON. Nothing is stored in a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pandas as pd

from voxframe import frames
from voxframe.errors import PayloadError
from voxframe.frames.payloads import encode
from voxframe.frames.responses import Messages, Responses, response_table, stream_table, stream_word_table


@runtime_checkable
class WordSearchResult(Protocol):
    """Result of a word search, as `client.word_search` returns it."""

    raw: bytes
    transcript_id: str


#: One word search, as an object or as the response of the service, or an iterable of these.
WordSearches: TypeAlias = (
    "WordSearchResult | Mapping[str, Any] | bytes | Iterable[WordSearchResult | Mapping[str, Any] | bytes]"
)


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
    return frames.to_pandas(stream_word_table(source, finals_only=finals_only), "stream_words")
