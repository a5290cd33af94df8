"""The data dictionary: one `Table` for every kind of row in voxframe.

Each table has a grain (the meaning of one row), a key, and columns. Each column has an Arrow type, a description, a
unit, and the path of its value in the service's response. The loaders, the corpus, the page `data/dictionary.md` and
the tests all read these definitions.

Times are integer milliseconds from the start of the media, indices count from 0, and confidences are those of the
service, unchanged.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

STRING = pa.string()
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
TIMESTAMP = pa.timestamp("us", tz="UTC")


def with_pandas(schema: pa.Schema) -> pa.Schema:
    """Add the metadata from which `pandas.read_parquet` derives the dtypes of this dictionary.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"start_ms": [1, None]})
        >>> table.replace_schema_metadata(with_pandas(table.schema).metadata).to_pandas().dtypes["start_ms"]
        Int64Dtype()
    """
    columns = [
        {"name": f.name, "field_name": f.name, "pandas_type": str(f.type), "numpy_type": _dtype(f), "metadata": None}
        for f in schema
    ]
    about = {"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": "3.0.0"}
    return schema.with_metadata({**(schema.metadata or {}), b"pandas": json.dumps(about).encode()})


def _dtype(field: pa.Field) -> str:
    if field.type == INT and not field.nullable:
        return "int64"
    if pa.types.is_timestamp(field.type):
        return f"datetime64[{field.type.unit}{f', {field.type.tz}' if field.type.tz else ''}]"
    return {STRING: "str", INT: "Int64", FLOAT: "float64", BOOL: "boolean"}.get(field.type, "object")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: Name of the column.
        type: Arrow type.
        description: Meaning of the values.
        unit: Unit of the values ("ms", "s", "0-1", ...), or None.
        path: Path of the value in the service's response; None if voxframe derives it.
        nullable: True if nulls may occur.
        json: True if the column holds any JSON value of the response, as JSON text.
    """

    name: str
    type: pa.DataType
    description: str
    unit: str | None = None
    path: str | None = None
    nullable: bool = True
    json: bool = False

    @property
    def dtype(self) -> str:
        """Name of the pandas dtype, as `str(dtype)` returns it; pandas 2 stores text as object instead of str."""
        return _dtype(pa.field(self.name, self.type, self.nullable))


@dataclass(frozen=True)
class Table:
    """One kind of row.

    Attributes:
        name: Name of the table, and of the folder of its Parquet files.
        grain: Meaning of one row.
        key: Columns that identify a row.
        source: The response of the service that it is built from.
        columns: The columns, in order.
    """

    name: str
    grain: str
    key: tuple[str, ...]
    source: str
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow schema, with description, unit and path in the field metadata, and dtypes for pandas."""
        schema = pa.schema(
            [
                pa.field(
                    c.name,
                    c.type,
                    c.nullable,
                    {k: v for k, v in (("description", c.description), ("unit", c.unit), ("path", c.path)) if v},
                )
                for c in self.columns
            ],
            {"voxframe.table": self.name, "voxframe.schema_version": SCHEMA_VERSION},
        )
        return with_pandas(schema)

    @cached_property
    def empty(self) -> pa.Table:
        """Arrow table without rows; cached, because building it takes as long as reading a small payload."""
        return self.arrow.empty_table()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)


#: The last column of every table that is built from a response of a service.
EXTRA = Column(
    "extra",
    STRING,
    "Fields that this dictionary does not define, and values that do not fit their column, as a JSON object; or null.",
    json=True,
)

#: The column that tables of a corpus have after `speaker`, which keeps the label of the service.
SPEAKER_NAME = Column(
    "speaker_name", STRING, "Name set with `corpus.speakers` for the speaker or the turn; otherwise the label."
)

#: Columns about the recording of a transcript of a corpus: of `transcripts`, and of any table on request.
RECORDING = Column(
    "recording",
    STRING,
    "Short name of the audio, which transcripts of the same audio share: the stem of its file, or the last segment of "
    "its URL; otherwise the id.",
)
SOURCE = Column("source", STRING, "Path or URL of the recording or of the added payload, as given; null if unknown.")
RECORDING_COLUMNS: tuple[str, ...] = (RECORDING.name, SOURCE.name)

#: The column that these tables of a corpus have after `text`, which holds the corrected text.
TEXT_ORIGINAL = Column(
    "text_original",
    STRING,
    "Text of the service before `corpus.corrections` changed it, empty for an added word; null if it is unchanged.",
)
#: Columns that tell how the times of a word or turn are known.
TIMING = Column(
    "timing",
    STRING,
    "word: the times are those of the word. segment: a time is unknown, so the word has its share of the time of its "
    "turn, in proportion to its number of characters. Null if there is no time.",
)
TURN_TIMING = replace(
    TIMING,
    description="segment: the times are those of the turn. word: a missing time is that of its first or last word. "
    "shared: that word has only a share of the time. Null if there is no time.",
)
#: The column that `sentences` and `paragraphs` of a corpus have after `word_count`.
DERIVED = Column(
    "derived", BOOL, "True if voxframe made the row from the words, because the service's own are missing."
)
CORRECTED_TABLES = frozenset(("transcripts", "words", "utterances", "utterance_words", "sentences", "paragraphs"))

#: Options of a job by the tables that are empty without them. One is enough; the first is the usual one.
REQUESTED_BY: dict[str, tuple[str, ...]] = {
    "utterances": ("speaker_labels", "dual_channel", "multichannel"),
    "entities": ("entity_detection",),
    "chapters": ("auto_chapters",),
    "highlights": ("auto_highlights",),
    "highlight_times": ("auto_highlights",),
    "content_safety": ("content_safety",),
    "content_safety_summary": ("content_safety",),
    "topics": ("iab_categories",),
    "topics_summary": ("iab_categories",),
    "custom_topics": ("custom_topics",),
    "custom_topics_summary": ("custom_topics",),
    "sentiments": ("sentiment_analysis",),
}

_ID = Column("transcript_id", STRING, "Id of the transcript, as the service sent it.", None, "id")
_SESSION = Column("session_id", STRING, "Id of the session.", None, "session_id")
_SPEAKER = Column("speaker", STRING, "Speaker label; null if speaker labels were not requested.", None, "speaker")
_CHANNEL = Column("channel", STRING, "Channel; null if channels were not transcribed separately.", None, "channel")
_LEVELS = tuple(
    Column(f"level_{n}", STRING, f"Level {n} of the hierarchical label, whose parts are joined by '>'.")
    for n in range(1, 5)
)


def _table(
    name: str,
    grain: str,
    *columns: Column,
    root: str = "",
    source: str = "GET /v2/transcript/{id}",
    first: Column = _ID,
    key: tuple[str, ...] = (),
) -> Table:
    """Return a table built from a response; paths of its columns are relative to the object `root` of a row."""
    inside = (replace(c, path=f"{root}.{c.path}") if root and c.path else c for c in columns)
    key = key or (first.name, *(c.name for c in columns if not c.nullable))
    return Table(name, grain, key, source, (first, *inside, EXTRA))


def _index(name: str, of: str) -> Column:
    return Column(name, INT, f"Position of the {of}, from 0.", nullable=False)


def _value(name: str, kind: pa.DataType, description: str, unit: str | None = None, path: str | None = None) -> Column:
    """Return a column whose path is its name, unless another path is given."""
    return Column(name, kind, description, unit, path or name)


def _json(name: str, description: str) -> Column:
    return Column(name, STRING, description, None, name, json=True)


def _label(description: str, path: str) -> Column:
    return Column("label", STRING, description, None, path, nullable=False)


def _text(description: str) -> Column:
    return _value("text", STRING, description)


def _confidence(of: str) -> Column:
    return _value("confidence", FLOAT, f"Confidence of the {of}, as the service sent it.", "0-1")


def _span(of: str, start: str = "start", end: str = "end") -> tuple[Column, Column]:
    return (
        Column("start_ms", INT, f"Start of the {of}.", "ms", start),
        Column("end_ms", INT, f"End of the {of}.", "ms", end),
    )


def _words(condition: str) -> tuple[Column, Column]:
    return (
        Column("first_word_idx", INT, f"Index in `words` of its first word; null if {condition}."),
        _value("word_count", INT, "Number of words; null if it has no list of words.", None, "words"),
    )


_WORD = (_text("The word, with its punctuation."), *_span("word"), _confidence("word"), _SPEAKER, _CHANNEL)
_SAME_WORDS = "its words are not consecutive rows of `words`, equal in every field"
_SAME_TIMES = "`words` is not available, or has no consecutive rows with the same texts and times"


def _passages(name: str, grain: str) -> Table:
    return _table(
        name,
        grain,
        _index(f"{grain}_idx", grain),
        _text(f"The {grain}."),
        *_span(grain),
        _confidence(grain),
        _SPEAKER,
        _CHANNEL,
        *_words(_SAME_TIMES),
        root=f"{name}[]",
        source=f"GET /v2/transcript/{{id}}/{name}",
    )


def _labels(name: str, grain: str, root: str, label: str, *columns: Column) -> Table:
    return _table(
        name,
        grain,
        _index("segment_idx", "segment"),
        _index("label_idx", f"{grain.split(' on ', maxsplit=1)[0].rsplit(maxsplit=1)[-1]} on the segment"),
        _text("Text of the segment."),
        _value("label", STRING, label, None, "labels[].label"),
        *columns,
        *_span("segment", "timestamp.start", "timestamp.end"),
        root=f"{root}.results[]",
    )


_RELEVANCE = _value("relevance", FLOAT, "Relevance of the topic.", "0-1", "labels[].relevance")
_RELEVANCE_OF_ALL = _value("relevance", FLOAT, "Relevance over the whole transcript.", "0-1", "summary.*")
_TOPIC = "Topic, its levels joined by '>'."
_REALTIME = "GET {stream_url}/v2/realtime/ws"

TRANSCRIPTS = _table(
    "transcripts",
    "transcript",
    _value("status", STRING, "queued, processing, completed, error, or another status of the service."),
    _value("error", STRING, "Reason for the failure."),
    _value("audio_url", STRING, "URL of the media."),
    _value("text", STRING, "The whole text."),
    _value("summary", STRING, "Generated summary."),
    _confidence("transcript"),
    _value("audio_duration_s", FLOAT, "Duration of the media.", "s", "audio_duration"),
    _value("audio_channels", INT, "Number of channels, with multichannel."),
    _value("language_code", STRING, "Language of the speech."),
    _value("language_detection", BOOL, "True if language detection was requested."),
    _value("language_confidence_threshold", FLOAT, "Minimum confidence of the detected language.", "0-1"),
    _value("language_confidence", FLOAT, "Confidence of the detected language.", "0-1"),
    _value("speech_model", STRING, "Requested speech model; null means the best model of the service."),
    _value("language_model", STRING, "Name of the language model used."),
    _value("acoustic_model", STRING, "Name of the acoustic model used."),
    _value("punctuate", BOOL, "Automatic punctuation."),
    _value("format_text", BOOL, "Text formatting."),
    _value("disfluencies", BOOL, "True if filler words are kept."),
    _value("multichannel", BOOL, "True if each channel is transcribed separately."),
    _value("dual_channel", BOOL, "True if two channels are transcribed separately."),
    _value("webhook_url", STRING, "URL that is notified when the transcript is finished."),
    _value("webhook_status_code", INT, "HTTP status with which the notified server responded."),
    _value("webhook_auth", BOOL, "True if a header was sent with the notification."),
    _value("webhook_auth_header_name", STRING, "Name of that header."),
    _value("auto_highlights", BOOL, "Key phrases."),
    _value("auto_highlights_status", STRING, "Status of the key phrases.", None, "auto_highlights_result.status"),
    _value("audio_start_from_ms", INT, "Position at which transcription starts.", "ms", "audio_start_from"),
    _value("audio_end_at_ms", INT, "Position at which transcription stops.", "ms", "audio_end_at"),
    _json("word_boost", "Words and phrases to expect: a JSON array of text."),
    _value("boost_param", STRING, "Strength of the boost: low, default or high."),
    _value("filter_profanity", BOOL, "True if profanity is filtered from the text."),
    _value("redact_pii", BOOL, "True if personal data is redacted from the text."),
    _value("redact_pii_audio", BOOL, "True if personal data is beeped out in a copy of the media."),
    _value("redact_pii_audio_quality", STRING, "File format of that copy: mp3 or wav."),
    _json("redact_pii_policies", "Kinds of personal data to redact: a JSON array of text."),
    _value("redact_pii_sub", STRING, "Replacement for personal data: entity_name or hash."),
    _value("speaker_labels", BOOL, "Speaker diarization."),
    _value("speakers_expected", INT, "Expected number of speakers."),
    _value("speaker_count", INT, "Number of speakers found, if the service reports it."),
    _value("content_safety", BOOL, "Content moderation."),
    _value("content_safety_status", STRING, "Status of the content moderation.", None, "content_safety_labels.status"),
    _value("content_safety_confidence", INT, "Minimum confidence of a reported content label.", "percent"),
    _value("iab_categories", BOOL, "Topic detection."),
    _value("iab_categories_status", STRING, "Status of the topic detection.", None, "iab_categories_result.status"),
    _json("custom_spelling", 'JSON array of {"from": [...], "to": ...}.'),
    _value("custom_topics", BOOL, "Custom topics."),
    _value("custom_topics_status", STRING, "Status of the custom topics.", None, "custom_topics_results.status"),
    _json("topics", "The custom topics: a JSON array of text."),
    _value("sentiment_analysis", BOOL, "Sentiment analysis."),
    _value("auto_chapters", BOOL, "Chapters."),
    _value("entity_detection", BOOL, "Entity detection."),
    _value("summarization", BOOL, "Summarization."),
    _value("summary_model", STRING, "informative, conversational or catchy."),
    _value("summary_type", STRING, "bullets, bullets_verbose, gist, headline or paragraph."),
    _value("speech_threshold", FLOAT, "Minimum share of speech in the media.", "0-1"),
    _value("speed_boost", BOOL, "Speed boost."),
    _value("throttled", BOOL, "True if the job was throttled."),
    _value("cluster_id", STRING, "Not documented; some services send it."),
    _value(
        "local_analyses",
        STRING,
        "Analyses that `corpus.analyze` or `voxframe.analyze` made on this machine, after the version of voxframe: "
        "`voxframe 0.1.0: entity_detection, sentiment_analysis`; null if there are none.",
        None,
        "voxframe_analyses",
    ),
)

WORDS = _table(
    "words",
    "word",
    _index("word_idx", "word in the transcript"),
    Column("utterance_idx", INT, "Turn of the word; null if no turn has it (see `utterance_words`)."),
    *_WORD,
    TIMING,
    root="words[]",
)

CONCORDANCE = Table(
    "concordance",
    "occurrence of a query in a corpus, with the words around it",
    ("term", "transcript_id", "word_idx", "last_word_idx"),
    "the search index of a corpus",
    (
        Column("transcript_id", STRING, "Id of the transcript."),
        Column("term", STRING, "The searched word or phrase, as given."),
        Column("left", STRING, "Words before the match, of the same channel."),
        Column("match", STRING, "The matching words, as written in the transcript."),
        Column("right", STRING, "Words after the match, of the same channel."),
        Column("speaker", STRING, "Speaker label of the first matching word."),
        SPEAKER_NAME,
        Column("channel", STRING, "Audio channel."),
        Column("start_ms", INT, "Start of the first matching word.", "ms"),
        Column("end_ms", INT, "End of the last matching word.", "ms"),
        Column("word_idx", INT, "First matching word in `words`.", nullable=False),
        Column("last_word_idx", INT, "Last matching word in `words`.", nullable=False),
        Column("utterance_idx", INT, "Turn of the first matching word; null if no turn has it."),
    ),
)

SENTENCE_MATCHES = Table(
    "sentence_matches",
    "sentence of a corpus that is close to a query in meaning, with the words around it",
    ("term", "transcript_id", "sentence_idx"),
    "the sentence vectors of a corpus",
    (
        Column("transcript_id", STRING, "Id of the transcript."),
        Column("term", STRING, "The query, as given."),
        Column("left", STRING, "Words before the sentence, of the same channel."),
        Column("match", STRING, "The sentence."),
        Column("right", STRING, "Words after the sentence, of the same channel."),
        Column("speaker", STRING, "Speaker label of the sentence."),
        SPEAKER_NAME,
        Column("channel", STRING, "Audio channel."),
        Column("start_ms", INT, "Start of the sentence.", "ms"),
        Column("end_ms", INT, "End of the sentence.", "ms"),
        Column("word_idx", INT, "First word of the sentence in `words`; null if unknown."),
        Column("last_word_idx", INT, "Last word of the sentence in `words`; null if unknown."),
        Column("utterance_idx", INT, "Turn of the first word; null if no turn has it."),
        Column("sentence_idx", INT, "Position of the sentence in the transcript.", nullable=False),
        Column("score", FLOAT, "Cosine of the vectors of query and sentence; 1 means the same meaning.", "-1-1"),
    ),
)

RESPONSES = _table(
    "responses",
    "language-model answer",
    _index("answer_idx", "answer; 0 except for question-answer"),
    Column("task", STRING, "summary, question-answer, task or action-items."),
    Column("prompt", STRING, "The prompt or question.", None, "response[].question"),
    Column("transcript_ids", STRING, "Transcripts of the request: a JSON array of ids.", json=True),
    Column("response", STRING, "The answer.", None, "response or response[].answer"),
    Column("input_tokens", INT, "Tokens read, for the whole request.", "tokens", "usage.input_tokens"),
    Column("output_tokens", INT, "Tokens written, for the whole request.", "tokens", "usage.output_tokens"),
    Column("created", TIMESTAMP, "Time at which the answer was received, UTC."),
    source="POST /{llm}/v3/generate/*",
    first=Column("request_id", STRING, "Id of the request.", None, "request_id"),
)

STREAM = _table(
    "stream",
    "real-time message",
    _index("message_idx", "message in the session"),
    _value("message_type", STRING, "Kind of message; any value is possible."),
    _text("Text of a partial or final transcript."),
    _value("confidence", FLOAT, "Confidence of that text.", "0-1"),
    *_span("text", "audio_start", "audio_end"),
    _value("punctuated", BOOL, "True if the text is punctuated."),
    _value("text_formatted", BOOL, "True if the text is formatted."),
    _value("audio_duration_s", FLOAT, "Audio received in the session.", "s", "audio_duration_seconds"),
    _value("created", TIMESTAMP, "Time of the message, as the service sent it."),
    source=_REALTIME,
    first=_SESSION,
)

STREAM_WORDS = _table(
    "stream_words",
    "word of a real-time message",
    _index("message_idx", "message in the session"),
    _index("word_idx", "word in the message"),
    _text("The word."),
    *_span("word"),
    _confidence("word"),
    root="words[]",
    source=_REALTIME,
    first=_SESSION,
)

JOBS = Table(
    "jobs",
    "submission",
    ("key",),
    "the ledger of a corpus",
    (
        RECORDING,
        Column(
            "state", STRING, "planned, uploading, submitting, submitted, completed, error or uncertain.", nullable=False
        ),
        Column("error", STRING, "Reason for the failure, or for the last interruption."),
        Column("audio_duration_s", FLOAT, "Duration of the media, if known.", "s", "audio_duration"),
        Column("source", STRING, "Submitted file or URL."),
        Column("attempts", INT, "Number of requests to create the job.", nullable=False),
        Column("options", STRING, "Options of the job, as JSON."),
        Column("transcript_id", STRING, "Id of the transcript; null until the service sends one.", None, "id"),
        Column("service", STRING, "URL of the service."),
        Column("created", TIMESTAMP, "Time of the submission, UTC."),
        Column("sent", TIMESTAMP, "Time of the last request to create the job, UTC."),
        Column("updated", TIMESTAMP, "Time of the last change of state, UTC."),
        Column("key", STRING, "Hash of the media, the options and the service.", nullable=False),
    ),
)

#: All tables by name.
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        TRANSCRIPTS,
        WORDS,
        _table(
            "utterances",
            "turn",
            _index("utterance_idx", "turn"),
            _SPEAKER,
            _CHANNEL,
            _text("Words of the turn."),
            *_span("turn"),
            _confidence("turn"),
            TURN_TIMING,
            *_words(_SAME_WORDS),
            root="utterances[]",
        ),
        _table(
            "utterance_words",
            "word of a turn that is not a run of `words`",
            _index("utterance_idx", "turn"),
            _index("word_idx", "word in the turn"),
            *_WORD,
            root="utterances[].words[]",
        ),
        _passages("sentences", "sentence"),
        _passages("paragraphs", "paragraph"),
        _table(
            "entities",
            "entity",
            _index("entity_idx", "entity"),
            _value("entity_type", STRING, "Kind of entity; any value is possible."),
            _text("The words that name it."),
            *_span("entity"),
            root="entities[]",
        ),
        _table(
            "chapters",
            "chapter",
            _index("chapter_idx", "chapter"),
            _value("headline", STRING, "One line."),
            _value("gist", STRING, "A few words."),
            _value("summary", STRING, "A paragraph."),
            *_span("chapter"),
            root="chapters[]",
        ),
        _table(
            "highlights",
            "key phrase",
            _index("highlight_idx", "key phrase"),
            _text("The phrase."),
            _value("occurrences", INT, "Number of occurrences.", None, "count"),
            _value("relevance", FLOAT, "Relevance; higher is more relevant.", "0-1", "rank"),
            root="auto_highlights_result.results[]",
        ),
        _table(
            "highlight_times",
            "occurrence of a key phrase",
            _index("highlight_idx", "key phrase"),
            _index("time_idx", "occurrence of the phrase"),
            *_span("occurrence"),
            root="auto_highlights_result.results[].timestamps[]",
        ),
        _labels(
            "content_safety",
            "label on a segment",
            "content_safety_labels",
            "Content label; any value is possible.",
            _value("confidence", FLOAT, "Confidence of the label.", "0-1", "labels[].confidence"),
            _value("severity", FLOAT, "Severity of the content.", "0-1", "labels[].severity"),
            _value("first_sentence_idx", INT, "First sentence of the segment.", None, "sentences_idx_start"),
            _value("last_sentence_idx", INT, "Last sentence of the segment.", None, "sentences_idx_end"),
        ),
        _table(
            "content_safety_summary",
            "content label over the whole transcript",
            _label("Content label.", "summary"),
            _value("confidence", FLOAT, "Confidence over the whole transcript.", "0-1", "summary.*"),
            *(
                _value(n, FLOAT, f"Share of the label at {n} severity.", "0-1", f"severity_score_summary.*.{n}")
                for n in ("low", "medium", "high")
            ),
            root="content_safety_labels",
        ),
        _labels("topics", "label on a segment", "iab_categories_result", _TOPIC, *_LEVELS, _RELEVANCE),
        _table(
            "topics_summary",
            "topic over the whole transcript",
            _label(_TOPIC, "summary"),
            *_LEVELS,
            _RELEVANCE_OF_ALL,
            root="iab_categories_result",
        ),
        _labels("custom_topics", "custom topic on a segment", "custom_topics_results", "The custom topic.", _RELEVANCE),
        _table(
            "custom_topics_summary",
            "custom topic over the whole transcript",
            _label("The custom topic.", "summary"),
            _RELEVANCE_OF_ALL,
            root="custom_topics_results",
        ),
        _table(
            "sentiments",
            "sentence with its sentiment",
            _index("sentiment_idx", "sentence"),
            _text("The sentence."),
            _value("sentiment", STRING, "POSITIVE, NEUTRAL or NEGATIVE; any value is possible."),
            _confidence("sentiment"),
            _SPEAKER,
            _CHANNEL,
            *_span("sentence"),
            root="sentiment_analysis_results[]",
        ),
        _table(
            "word_matches",
            "occurrence of a searched word",
            _value("term", STRING, "The searched word or phrase, as the service sent it.", None, "matches[].text"),
            _index("match_idx", "occurrence of the term"),
            _value("word_idx", INT, "First word of the occurrence.", None, "matches[].indexes[]"),
            *_span("occurrence", "matches[].timestamps[][0]", "matches[].timestamps[][1]"),
            _value("occurrences", INT, "Number of occurrences of the term.", None, "matches[].count"),
            _value("total_count", INT, "Number of occurrences of all terms of the search."),
            source="GET /v2/transcript/{id}/word-search",
            key=("transcript_id", "term", "match_idx"),
        ),
        CONCORDANCE,
        SENTENCE_MATCHES,
        RESPONSES,
        STREAM,
        STREAM_WORDS,
        JOBS,
    )
}


def _of_corpus(table: Table) -> Table:
    """Return a table with the columns that a corpus adds."""
    of_recording = () if RECORDING in table.columns else (RECORDING, SOURCE) if table is TRANSCRIPTS else (RECORDING,)
    added: dict[str, tuple[Column, ...]] = {"transcript_id": of_recording}
    added["speaker"] = () if SPEAKER_NAME in table.columns else (SPEAKER_NAME,)
    added["text"] = (TEXT_ORIGINAL,) if table.name in CORRECTED_TABLES else ()
    added["word_count"] = (DERIVED,) if table.name in ("sentences", "paragraphs") else ()
    columns = [column for own in table.columns for column in (own, *added.get(own.name, ()))]
    return replace(table, columns=tuple(columns))


#: All tables as a corpus returns them: with `speaker_name` after `speaker`, `text_original` after a corrected text, and
#: the name of the recording in `transcripts` and `concordance`.
CORPUS_TABLES: dict[str, Table] = {name: _of_corpus(table) for name, table in TABLES.items()}

#: Names of the tables built from the transcript payload alone, in reading order.
TRANSCRIPT_TABLES: tuple[str, ...] = tuple(t.name for t in TABLES.values() if t.source == "GET /v2/transcript/{id}")

#: Hash of the columns of all tables. Parquet files of another version are rebuilt from the raw payload.
SCHEMA_VERSION: str = hashlib.sha256(
    repr(
        [(table.name, [(c.name, str(c.type), c.nullable) for c in table.columns]) for table in TABLES.values()]
    ).encode()
).hexdigest()[:8]
