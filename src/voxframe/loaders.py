"""Loaders: from a transcript in any form to a tidy DataFrame.

Every loader takes the same `source`:

- a transcript handle, or an identifier with `client=`: read from the corpus (the default one, or `corpus=`), fetched
  from the service the first time only. `refresh=True` fetches again. An identifier that the corpus has needs no client;
- a payload as a dict or as JSON bytes, or the path of a .json or .json.zst file; nothing is kept of these;
- an iterable of any of these: one DataFrame over all, in their order.

Every DataFrame has all columns of its table and their dtypes, also with no rows: `str` for text, `int64` for ordinals,
`Int64` for other integers (times are ms from the start of the media), `float64` for confidences, `boolean` for flags.
`voxframe.describe("words")` shows a table's columns with units. What comes from a corpus has `speaker_name` behind
`speaker`: the name that `Corpus.name_speakers` gave, else the label.

All raise `PayloadError` where a source is none of these or cannot be read at all, and `ServiceError` where the service
does not give a transcript. A value that makes no sense becomes null with one warning; it never loses the transcript.
"""

from __future__ import annotations

import pandas as pd

from voxframe.corpus import Corpus
from voxframe.corpus.sources import Fetcher, Sources
from voxframe.loading import load, load_all, load_export


def tables(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> dict[str, pd.DataFrame]:
    """Every table of a transcript.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers; `voxframe.connect()` makes one.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        DataFrames by table name, all of them always. Sentences and paragraphs are answers of their own: of a handle, or
        an id with a client, they are fetched too; of a payload they have no rows.

    Example:
        >>> tables({"id": "a", "words": [{"text": "Hello", "start": 120, "end": 480}]})["words"]["text"].to_list()
        ['Hello']
    """
    return load_all(source, client, corpus, refresh)


def load_transcripts(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per transcript: status, error, text, duration, every setting the service echoed.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `status`, `error`, `text`, `language_code` ... str; `audio_duration_s` (s), `confidence`
        (0-1) float64; settings boolean, Int64 or float64; lists of text as Arrow lists, which `pandas.read_parquet`
        takes back with `dtype_backend="pyarrow"` only.

    Example:
        >>> df = load_transcripts({"id": "a", "status": "completed", "text": "Hello there."})
        >>> df[["transcript_id", "status", "text"]].to_dict("records")
        [{'transcript_id': 'a', 'status': 'completed', 'text': 'Hello there.'}]
    """
    return load("transcripts", source, client, corpus, refresh)


def load_words(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per word, in time order.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `word_idx` int64; `utterance_idx`, `start_ms`, `end_ms` (ms) Int64; `confidence` (0-1)
        float64; `text`, `speaker`, `channel` str.

    Example:
        >>> df = load_words({"id": "a", "words": [{"text": "Hello", "start": 120, "end": 480, "confidence": 0.9}]})
        >>> df[["text", "start_ms", "end_ms"]].to_dict("records")
        [{'text': 'Hello', 'start_ms': 120, 'end_ms': 480}]
    """
    return load("words", source, client, corpus, refresh)


def load_utterances(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per turn, in time order; none where neither speakers nor channels were asked for.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `utterance_idx` int64; `start_ms`, `end_ms` (ms), `word_start`, `word_count` Int64;
        `confidence` (0-1) float64; `speaker`, `channel`, `text` str. Words `word_start` to `word_start + word_count -
        1` of `load_words` are the turn's.

    Example:
        >>> payload = {"id": "a", "utterances": [
        ...     {"speaker": "A", "text": "Hello.", "start": 120, "end": 480, "words": []}]}
        >>> df = load_utterances(payload)
        >>> df[["speaker", "text", "start_ms"]].to_dict("records")
        [{'speaker': 'A', 'text': 'Hello.', 'start_ms': 120}]
    """
    return load("utterances", source, client, corpus, refresh)


def load_sentences(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per sentence, in time order.

    Sentences are an export of their own: given a handle or an id they are asked of the service (once); a payload must
    be that export's, not the transcript's.

    Args:
        source: Handle, id, payload of the sentences export, path of one, or an iterable of these.
        client: Fetches identifiers.
        corpus: Where fetched exports are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id`, `text`, `speaker`, `channel` str; `sentence_idx` int64; `start_ms`, `end_ms` (ms),
        `word_start`, `word_count` Int64; `confidence` (0-1) float64. `word_start` is known where the transcript's
        words are: not for a payload.

    Raises:
        PayloadError: The payload holds no sentences.

    Example:
        >>> df = load_sentences({"id": "a", "sentences": [{"text": "Hello there.", "start": 120, "end": 900}]})
        >>> df["text"].to_list()
        ['Hello there.']
    """
    return load_export("sentences", source, client, corpus, refresh)


def load_paragraphs(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per paragraph, in time order.

    Paragraphs are an export of their own: given a handle or an id they are asked of the service (once); a payload
    must be that export's, not the transcript's.

    Args:
        source: Handle, id, payload of the paragraphs export, path of one, or an iterable of these.
        client: Fetches identifiers.
        corpus: Where fetched exports are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id`, `text`, `speaker`, `channel` str; `paragraph_idx` int64; `start_ms`, `end_ms` (ms),
        `word_start`, `word_count` Int64; `confidence` (0-1) float64. `word_start` is known where the transcript's
        words are: not for a payload.

    Raises:
        PayloadError: The payload holds no paragraphs.

    Example:
        >>> df = load_paragraphs({"id": "a", "paragraphs": [{"text": "Hello there.", "start": 120, "end": 900}]})
        >>> df["text"].to_list()
        ['Hello there.']
    """
    return load_export("paragraphs", source, client, corpus, refresh)


def load_entities(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per entity: a person, place, date ... that was named.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `entity_idx` int64; `entity_type`, `text` str; `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "entities": [
        ...     {"entity_type": "location", "text": "Canada", "start": 2548, "end": 3130}]}
        >>> df = load_entities(payload)
        >>> df[["entity_type", "text"]].to_dict("records")
        [{'entity_type': 'location', 'text': 'Canada'}]
    """
    return load("entities", source, client, corpus, refresh)


def load_chapters(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per chapter, in time order.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `chapter_idx` int64; `headline`, `gist`, `summary` str; `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "chapters": [
        ...     {"gist": "Smoke", "headline": "Smoke moves south", "summary": "", "start": 0, "end": 900}]}
        >>> df = load_chapters(payload)
        >>> df["headline"].to_list()
        ['Smoke moves south']
    """
    return load("chapters", source, client, corpus, refresh)


def load_highlights(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per key phrase.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `highlight_idx` int64; `text` str; `count` Int64; `rank` (0-1, higher is more relevant)
        float64.

    Example:
        >>> payload = {"id": "a", "auto_highlights_result": {"results": [
        ...     {"text": "air quality", "count": 2, "rank": 0.08}]}}
        >>> df = load_highlights(payload)
        >>> df[["text", "count"]].to_dict("records")
        [{'text': 'air quality', 'count': 2}]
    """
    return load("highlights", source, client, corpus, refresh)


def load_highlight_times(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per occurrence of a key phrase; `highlight_idx` is the phrase's row in `load_highlights`.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `highlight_idx`, `time_idx` int64; `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "auto_highlights_result": {"results": [
        ...     {"text": "air", "timestamps": [{"start": 10, "end": 20}]}]}}
        >>> df = load_highlight_times(payload)
        >>> df[["highlight_idx", "start_ms"]].to_dict("records")
        [{'highlight_idx': 0, 'start_ms': 10}]
    """
    return load("highlight_times", source, client, corpus, refresh)


def load_content_safety(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per content label on a segment.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `segment_idx`, `label_idx` int64; `text`, `label` str; `confidence`, `severity` (0-1)
        float64; `sentence_start`, `sentence_end`, `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "content_safety_labels": {"results": [
        ...     {"text": "Storm.", "labels": [{"label": "disasters", "confidence": 0.9}]}]}}
        >>> df = load_content_safety(payload)
        >>> df[["label", "confidence"]].to_dict("records")
        [{'label': 'disasters', 'confidence': 0.9}]
    """
    return load("content_safety", source, client, corpus, refresh)


def load_content_safety_summary(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per content label over the whole transcript.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `label` str; `confidence`, `low`, `medium`, `high` (0-1) float64.

    Example:
        >>> df = load_content_safety_summary({"id": "a", "content_safety_labels": {"summary": {"disasters": 0.9}}})
        >>> df[["label", "confidence"]].to_dict("records")
        [{'label': 'disasters', 'confidence': 0.9}]
    """
    return load("content_safety_summary", source, client, corpus, refresh)


def load_topics(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per topic on a segment.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `segment_idx`, `label_idx` int64; `text`, `label`, `level_1` to `level_4` str;
        `relevance` (0-1) float64; `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "iab_categories_result": {"results": [
        ...     {"text": "Rain.", "labels": [{"label": "Science>Weather", "relevance": 0.7}]}]}}
        >>> df = load_topics(payload)
        >>> df[["level_1", "level_2"]].to_dict("records")
        [{'level_1': 'Science', 'level_2': 'Weather'}]
    """
    return load("topics", source, client, corpus, refresh)


def load_topics_summary(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per topic over the whole transcript.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `label`, `level_1` to `level_4` str; `relevance` (0-1) float64.

    Example:
        >>> df = load_topics_summary({"id": "a", "iab_categories_result": {"summary": {"Science>Weather": 0.7}}})
        >>> df[["label", "relevance"]].to_dict("records")
        [{'label': 'Science>Weather', 'relevance': 0.7}]
    """
    return load("topics_summary", source, client, corpus, refresh)


def load_sentiments(
    source: Sources, *, client: Fetcher | None = None, corpus: Corpus | None = None, refresh: bool = False
) -> pd.DataFrame:
    """One row per sentence with its sentiment.

    Args:
        source: Handle, id, payload, path, or an iterable of these; see the top of this module.
        client: Fetches identifiers.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        refresh: Fetch again even what the corpus has.

    Returns:
        `transcript_id` str; `sentiment_idx` int64; `text`, `sentiment` (POSITIVE, NEUTRAL, NEGATIVE or as it came),
        `speaker`, `channel` str; `confidence` (0-1) float64; `start_ms`, `end_ms` (ms) Int64.

    Example:
        >>> payload = {"id": "a", "sentiment_analysis_results": [
        ...     {"text": "Good.", "sentiment": "POSITIVE", "start": 0, "end": 300}]}
        >>> df = load_sentiments(payload)
        >>> df["sentiment"].to_list()
        ['POSITIVE']
    """
    return load("sentiments", source, client, corpus, refresh)
