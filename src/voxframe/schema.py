"""The data dictionary: one `Table` for every kind of row voxframe makes.

Each table has a grain (what one row stands for), a key, and columns with an Arrow type, a description, a unit and the
path of the value on the wire. Loaders, the store, the documentation in `data/dictionary.md` and the tests all read this
page.

Times are integer milliseconds from the start of the media, ordinals count from 0, confidences are the service's own
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

#: Raised when a table changes shape; cached Parquet written under another version is rebuilt from the raw payload.
SCHEMA_VERSION = 2

STRING = pa.string()
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
STRINGS = pa.list_(pa.string())
TIMESTAMP = pa.timestamp("us")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: Its name.
        type: Its Arrow type.
        description: What it holds.
        unit: Unit of the values ("ms", "s", "0-1", ...), or None.
        path: Where the value stands on the wire, or None where voxframe derives it.
        nullable: Whether nulls may occur.
        json: Whether the column holds any JSON value of the wire as JSON text.
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
        """Name of the pandas dtype, as `str(dtype)` gives it."""
        if self.type == INT and not self.nullable:
            return "int64"
        names = {STRING: "str", INT: "Int64", FLOAT: "float64", BOOL: "boolean", TIMESTAMP: "datetime64[us]"}
        return names.get(self.type) or f"{self.type}[pyarrow]"


@dataclass(frozen=True)
class Table:
    """One kind of row.

    Attributes:
        name: Name of the table, also the folder of its Parquet files.
        grain: What one row stands for.
        key: Columns that identify a row.
        source: Which answer of the service it is made from.
        columns: Its columns, in order.
    """

    name: str
    grain: str
    key: tuple[str, ...]
    source: str
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow schema, with description, unit and wire path in the field metadata."""
        return pa.schema(
            [
                pa.field(
                    c.name,
                    c.type,
                    c.nullable,
                    {k: v for k, v in (("description", c.description), ("unit", c.unit), ("path", c.path)) if v},
                )
                for c in self.columns
            ],
            {"voxframe.table": self.name, "voxframe.schema_version": str(SCHEMA_VERSION)},
        )

    @cached_property
    def empty(self) -> pa.Table:
        """The table without rows; made once, as that takes as long as reading a small payload."""
        return self.arrow.empty_table()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)


def _id(path: str = "id") -> Column:
    return Column("transcript_id", STRING, "Identifier of the transcript, as the service gave it.", None, path)


def _ordinal(name: str, of: str) -> Column:
    return Column(name, INT, f"Position of the {of}, from 0.", None, None, nullable=False)


def _span(path: str, what: str) -> tuple[Column, Column]:
    return (
        Column("start_ms", INT, f"Where the {what} begins.", "ms", f"{path}.start"),
        Column("end_ms", INT, f"Where the {what} ends.", "ms", f"{path}.end"),
    )


def _text(path: str, description: str) -> Column:
    return Column("text", STRING, description, None, f"{path}.text")


def _confidence(path: str, what: str) -> Column:
    return Column(
        "confidence", FLOAT, f"Confidence of the {what}, as the service gave it.", "0-1", f"{path}.confidence"
    )


def _speaker(path: str) -> Column:
    return Column("speaker", STRING, "Speaker label, null where speakers were not asked for.", None, f"{path}.speaker")


def _channel(path: str) -> Column:
    return Column(
        "channel", STRING, "Audio channel, null where channels were not transcribed apart.", None, f"{path}.channel"
    )


def _word_slice(path: str, null_where: str) -> tuple[Column, Column]:
    return (
        Column("word_start", INT, f"First word: its word_idx in `words`; null where {null_where}."),
        Column("word_count", INT, "Number of words; null where it has no list of words.", None, f"{path}.words"),
    )


_NO_SLICE = "its words are not a run of that table, equal in every field"
_NO_RUN = "`words` was not at hand, or has no run of words with the same texts and times"
_LEVELS = tuple(
    Column(f"level_{n}", STRING, f"Level {n} of the hierarchical label (parts joined by '>').") for n in range(1, 5)
)


def _echo(name: str, kind: pa.DataType, description: str, unit: str | None = None, path: str | None = None) -> Column:
    return Column(name, kind, description, unit, path or name)


TRANSCRIPTS = Table(
    "transcripts",
    "transcript",
    ("transcript_id",),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _echo("status", STRING, "queued, processing, completed, error, or whatever the service says."),
        _echo("error", STRING, "Why the transcript failed."),
        _echo("audio_url", STRING, "Address of the media."),
        _echo("text", STRING, "The whole text."),
        _echo("summary", STRING, "Generated summary."),
        _echo("confidence", FLOAT, "Confidence of the transcript, as the service gave it.", "0-1"),
        _echo("audio_duration_s", FLOAT, "Duration of the media.", "s", "audio_duration"),
        _echo("audio_channels", INT, "Number of channels, with multichannel."),
        _echo("language_code", STRING, "Language of the speech."),
        _echo("language_detection", BOOL, "Whether the language was to be detected."),
        _echo("language_confidence_threshold", FLOAT, "Least confidence asked for in the detected language.", "0-1"),
        _echo("language_confidence", FLOAT, "Confidence of the detected language.", "0-1"),
        _echo("speech_model", STRING, "Speech model asked for; null is the service's best."),
        _echo("language_model", STRING, "Name of the language model used."),
        _echo("acoustic_model", STRING, "Name of the acoustic model used."),
        _echo("punctuate", BOOL, "Automatic punctuation."),
        _echo("format_text", BOOL, "Text formatting."),
        _echo("disfluencies", BOOL, "Whether filler words are kept."),
        _echo("multichannel", BOOL, "Channels transcribed apart."),
        _echo("dual_channel", BOOL, "Two channels transcribed apart."),
        _echo("webhook_url", STRING, "Address notified at the end."),
        _echo("webhook_status_code", INT, "Status the notified server answered."),
        _echo("webhook_auth", BOOL, "Whether a header was sent with the notification."),
        _echo("webhook_auth_header_name", STRING, "Name of that header."),
        _echo("auto_highlights", BOOL, "Key phrases."),
        _echo("auto_highlights_status", STRING, "State of the key phrases.", None, "auto_highlights_result.status"),
        _echo("audio_start_from_ms", INT, "Where transcription begins.", "ms", "audio_start_from"),
        _echo("audio_end_at_ms", INT, "Where transcription stops.", "ms", "audio_end_at"),
        _echo("word_boost", STRINGS, "Boosted vocabulary."),
        _echo("boost_param", STRING, "How much it is boosted: low, default, high."),
        _echo("filter_profanity", BOOL, "Profanity filtered from the text."),
        _echo("redact_pii", BOOL, "Personal data redacted from the text."),
        _echo("redact_pii_audio", BOOL, "Personal data beeped out in a copy of the media."),
        _echo("redact_pii_audio_quality", STRING, "File type of that copy: mp3, wav."),
        _echo("redact_pii_policies", STRINGS, "Kinds of personal data redacted."),
        _echo("redact_pii_sub", STRING, "What replaces it: entity_name, hash."),
        _echo("speaker_labels", BOOL, "Speaker diarization."),
        _echo("speakers_expected", INT, "Number of speakers to look for."),
        _echo("speaker_count", INT, "Number of speakers found, where the service says it."),
        _echo("content_safety", BOOL, "Content moderation."),
        _echo(
            "content_safety_status", STRING, "State of the content moderation.", None, "content_safety_labels.status"
        ),
        _echo("content_safety_confidence", INT, "Least confidence of a content label.", "percent"),
        _echo("iab_categories", BOOL, "Topic detection."),
        _echo("iab_categories_status", STRING, "State of the topic detection.", None, "iab_categories_result.status"),
        Column(
            "custom_spelling",
            STRING,
            'JSON array of {"from": [...], "to": ...}.',
            None,
            "custom_spelling",
            json=True,
        ),
        _echo("custom_topics", BOOL, "Custom topics."),
        _echo("topics", STRINGS, "The custom topics."),
        _echo("sentiment_analysis", BOOL, "Sentiment analysis."),
        _echo("auto_chapters", BOOL, "Chapters."),
        _echo("entity_detection", BOOL, "Entity detection."),
        _echo("summarization", BOOL, "Summarization."),
        _echo("summary_model", STRING, "informative, conversational, catchy."),
        _echo("summary_type", STRING, "bullets, bullets_verbose, gist, headline, paragraph."),
        _echo("speech_threshold", FLOAT, "Least fraction of speech asked for.", "0-1"),
        _echo("speed_boost", BOOL, "Speed boost."),
        _echo("throttled", BOOL, "Whether the job was being throttled."),
        _echo("cluster_id", STRING, "Seen on some services; not documented."),
    ),
)

WORDS = Table(
    "words",
    "word",
    ("transcript_id", "word_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("word_idx", "word in the transcript"),
        Column("utterance_idx", INT, "Turn the word belongs to; null where no turn has it (see `utterance_words`)."),
        _text("words[]", "The word, with its punctuation."),
        *_span("words[]", "word"),
        _confidence("words[]", "word"),
        _speaker("words[]"),
        _channel("words[]"),
    ),
)

UTTERANCES = Table(
    "utterances",
    "turn",
    ("transcript_id", "utterance_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("utterance_idx", "turn"),
        _speaker("utterances[]"),
        _channel("utterances[]"),
        _text("utterances[]", "Words of the turn."),
        *_span("utterances[]", "turn"),
        _confidence("utterances[]", "turn"),
        *_word_slice("utterances[]", _NO_SLICE),
    ),
)

UTTERANCE_WORDS = Table(
    "utterance_words",
    "word of a turn that is not a run of `words`",
    ("transcript_id", "utterance_idx", "word_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("utterance_idx", "turn"),
        _ordinal("word_idx", "word in the turn"),
        _text("utterances[].words[]", "The word, with its punctuation."),
        *_span("utterances[].words[]", "word"),
        _confidence("utterances[].words[]", "word"),
        _speaker("utterances[].words[]"),
        _channel("utterances[].words[]"),
    ),
)

SENTENCES = Table(
    "sentences",
    "sentence",
    ("transcript_id", "sentence_idx"),
    "GET /v2/transcript/{id}/sentences",
    (
        _id(),
        _ordinal("sentence_idx", "sentence"),
        _text("sentences[]", "The sentence."),
        *_span("sentences[]", "sentence"),
        _confidence("sentences[]", "sentence"),
        _speaker("sentences[]"),
        _channel("sentences[]"),
        *_word_slice("sentences[]", _NO_RUN),
    ),
)

PARAGRAPHS = Table(
    "paragraphs",
    "paragraph",
    ("transcript_id", "paragraph_idx"),
    "GET /v2/transcript/{id}/paragraphs",
    (
        _id(),
        _ordinal("paragraph_idx", "paragraph"),
        _text("paragraphs[]", "The paragraph."),
        *_span("paragraphs[]", "paragraph"),
        _confidence("paragraphs[]", "paragraph"),
        _speaker("paragraphs[]"),
        _channel("paragraphs[]"),
        *_word_slice("paragraphs[]", _NO_RUN),
    ),
)

ENTITIES = Table(
    "entities",
    "entity",
    ("transcript_id", "entity_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("entity_idx", "entity"),
        Column("entity_type", STRING, "Kind of entity; any value may come.", None, "entities[].entity_type"),
        _text("entities[]", "The words that name it."),
        *_span("entities[]", "entity"),
    ),
)

CHAPTERS = Table(
    "chapters",
    "chapter",
    ("transcript_id", "chapter_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("chapter_idx", "chapter"),
        Column("headline", STRING, "One line.", None, "chapters[].headline"),
        Column("gist", STRING, "A few words.", None, "chapters[].gist"),
        Column("summary", STRING, "A paragraph.", None, "chapters[].summary"),
        *_span("chapters[]", "chapter"),
    ),
)

_HIGHLIGHT = "auto_highlights_result.results[]"
HIGHLIGHTS = Table(
    "highlights",
    "key phrase",
    ("transcript_id", "highlight_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("highlight_idx", "key phrase"),
        _text(_HIGHLIGHT, "The phrase."),
        Column("count", INT, "How often it occurs.", None, f"{_HIGHLIGHT}.count"),
        Column("rank", FLOAT, "Relevance; higher is more relevant.", "0-1", f"{_HIGHLIGHT}.rank"),
    ),
)

HIGHLIGHT_TIMES = Table(
    "highlight_times",
    "occurrence of a key phrase",
    ("transcript_id", "highlight_idx", "time_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("highlight_idx", "key phrase"),
        _ordinal("time_idx", "occurrence of the phrase"),
        *_span(f"{_HIGHLIGHT}.timestamps[]", "occurrence"),
    ),
)

_SAFETY = "content_safety_labels.results[]"
CONTENT_SAFETY = Table(
    "content_safety",
    "label on a segment",
    ("transcript_id", "segment_idx", "label_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("segment_idx", "segment"),
        _ordinal("label_idx", "label on the segment"),
        _text(_SAFETY, "Text of the segment."),
        Column("label", STRING, "Content label; any value may come.", None, f"{_SAFETY}.labels[].label"),
        Column("confidence", FLOAT, "Confidence of the label.", "0-1", f"{_SAFETY}.labels[].confidence"),
        Column("severity", FLOAT, "Severity of what was said.", "0-1", f"{_SAFETY}.labels[].severity"),
        Column("sentence_start", INT, "First sentence of the segment.", None, f"{_SAFETY}.sentences_idx_start"),
        Column("sentence_end", INT, "Last sentence of the segment.", None, f"{_SAFETY}.sentences_idx_end"),
        *_span(f"{_SAFETY}.timestamp", "segment"),
    ),
)

CONTENT_SAFETY_SUMMARY = Table(
    "content_safety_summary",
    "content label over the whole transcript",
    ("transcript_id", "label"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        Column("label", STRING, "Content label.", None, "content_safety_labels.summary", nullable=False),
        Column("confidence", FLOAT, "Confidence over the transcript.", "0-1", "content_safety_labels.summary.*"),
        *(
            Column(
                level,
                FLOAT,
                f"Share of the label at {level} severity.",
                "0-1",
                f"content_safety_labels.severity_score_summary.*.{level}",
            )
            for level in ("low", "medium", "high")
        ),
    ),
)

_TOPIC = "iab_categories_result.results[]"
TOPICS = Table(
    "topics",
    "label on a segment",
    ("transcript_id", "segment_idx", "label_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("segment_idx", "segment"),
        _ordinal("label_idx", "label on the segment"),
        _text(_TOPIC, "Text of the segment."),
        Column("label", STRING, "Topic, its levels joined by '>'.", None, f"{_TOPIC}.labels[].label"),
        *_LEVELS,
        Column("relevance", FLOAT, "Relevance of the topic.", "0-1", f"{_TOPIC}.labels[].relevance"),
        *_span(f"{_TOPIC}.timestamp", "segment"),
    ),
)

TOPICS_SUMMARY = Table(
    "topics_summary",
    "topic over the whole transcript",
    ("transcript_id", "label"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        Column(
            "label", STRING, "Topic, its levels joined by '>'.", None, "iab_categories_result.summary", nullable=False
        ),
        *_LEVELS,
        Column("relevance", FLOAT, "Relevance over the transcript.", "0-1", "iab_categories_result.summary.*"),
    ),
)

_SENTIMENT = "sentiment_analysis_results[]"
SENTIMENTS = Table(
    "sentiments",
    "sentence with its sentiment",
    ("transcript_id", "sentiment_idx"),
    "GET /v2/transcript/{id}",
    (
        _id(),
        _ordinal("sentiment_idx", "sentence"),
        _text(_SENTIMENT, "The sentence."),
        Column(
            "sentiment", STRING, "POSITIVE, NEUTRAL, NEGATIVE; any value may come.", None, f"{_SENTIMENT}.sentiment"
        ),
        _confidence(_SENTIMENT, "sentiment"),
        _speaker(_SENTIMENT),
        _channel(_SENTIMENT),
        *_span(_SENTIMENT, "sentence"),
    ),
)

WORD_MATCHES = Table(
    "word_matches",
    "occurrence of a searched word",
    ("transcript_id", "query", "match_idx"),
    "GET /v2/transcript/{id}/word-search",
    (
        _id(),
        Column("query", STRING, "The searched word or phrase, as the service gave it back.", None, "matches[].text"),
        _ordinal("match_idx", "occurrence of the query"),
        Column("word_idx", INT, "First word of the occurrence.", None, "matches[].indexes[]"),
        Column("start_ms", INT, "Where the occurrence begins.", "ms", "matches[].timestamps[][0]"),
        Column("end_ms", INT, "Where the occurrence ends.", "ms", "matches[].timestamps[][1]"),
    ),
)

#: What tables of a corpus have behind `speaker`, which stays as the service gave it.
SPEAKER_NAME = Column(
    "speaker_name",
    STRING,
    "Name that Corpus.name_speakers gave to the speaker or the turn; the label where it gave none.",
)

CONCORDANCE = Table(
    "concordance",
    "occurrence of a query in a corpus, with the words around it",
    ("query", "transcript_id", "word_idx", "last_word_idx"),
    "the search index of a corpus",
    (
        Column("transcript_id", STRING, "Identifier of the transcript."),
        Column("query", STRING, "The query as it was given."),
        Column("left", STRING, "Words before it, of the same channel."),
        Column("match", STRING, "The words that were found, as they were written."),
        Column("right", STRING, "Words after it, of the same channel."),
        Column("speaker", STRING, "Speaker label of its first word."),
        SPEAKER_NAME,
        Column("channel", STRING, "Audio channel."),
        Column("start_ms", INT, "Where its first word begins.", "ms"),
        Column("end_ms", INT, "Where its last word ends.", "ms"),
        Column("word_idx", INT, "Its first word in `words`.", nullable=False),
        Column("last_word_idx", INT, "Its last word in `words`.", nullable=False),
        Column("utterance_idx", INT, "Turn of its first word; null where no turn has it."),
    ),
)

RESPONSES = Table(
    "responses",
    "language-model answer",
    ("request_id", "answer_idx"),
    "POST /{llm}/v3/generate/*",
    (
        Column("request_id", STRING, "Identifier of the request.", None, "request_id"),
        _ordinal("answer_idx", "answer; 0 but for question-answer"),
        Column("task", STRING, "summary, question-answer, task or action-items."),
        Column("prompt", STRING, "The prompt or question.", None, "response[].question"),
        Column("transcript_ids", STRINGS, "Transcripts the request was about."),
        Column("response", STRING, "The answer.", None, "response or response[].answer"),
        Column("input_tokens", INT, "Tokens read, of the whole request.", "tokens", "usage.input_tokens"),
        Column("output_tokens", INT, "Tokens written, of the whole request.", "tokens", "usage.output_tokens"),
        Column("created", TIMESTAMP, "When the answer was received, UTC."),
    ),
)

STREAM = Table(
    "stream",
    "real-time message",
    ("session_id", "message_idx"),
    "GET {stream_url}/v2/realtime/ws",
    (
        Column("session_id", STRING, "Identifier of the session.", None, "session_id"),
        _ordinal("message_idx", "message in the session"),
        Column("message_type", STRING, "Kind of message; any value may come.", None, "message_type"),
        Column("text", STRING, "Text of a partial or final transcript.", None, "text"),
        Column("confidence", FLOAT, "Confidence of that text.", "0-1", "confidence"),
        Column("start_ms", INT, "Where the text begins.", "ms", "audio_start"),
        Column("end_ms", INT, "Where the text ends.", "ms", "audio_end"),
        Column("punctuated", BOOL, "Whether the text is punctuated.", None, "punctuated"),
        Column("text_formatted", BOOL, "Whether the text is formatted.", None, "text_formatted"),
        Column("audio_duration_s", FLOAT, "Audio received in the session.", "s", "audio_duration_seconds"),
        Column("created", TIMESTAMP, "When the service made the message, as it says.", None, "created"),
    ),
)

STREAM_WORDS = Table(
    "stream_words",
    "word of a real-time message",
    ("session_id", "message_idx", "word_idx"),
    "GET {stream_url}/v2/realtime/ws",
    (
        Column("session_id", STRING, "Identifier of the session.", None, "session_id"),
        _ordinal("message_idx", "message in the session"),
        _ordinal("word_idx", "word in the message"),
        _text("words[]", "The word."),
        *_span("words[]", "word"),
        _confidence("words[]", "word"),
    ),
)

JOBS = Table(
    "jobs",
    "submission",
    ("key",),
    "the ledger of a corpus",
    (
        Column("key", STRING, "Hash of the media, the options and the service.", nullable=False),
        Column("transcript_id", STRING, "Identifier of the transcript, once the service gave one.", None, "id"),
        Column("source", STRING, "File or address that was submitted."),
        Column(
            "state", STRING, "planned, uploading, submitting, submitted, completed, error or uncertain.", nullable=False
        ),
        Column("attempts", INT, "How often the service was asked for the job.", nullable=False),
        Column("error", STRING, "Why it failed, or what stopped it the last time."),
        Column("audio_duration_s", FLOAT, "Duration of the media, where it is known.", "s", "audio_duration"),
        Column("service", STRING, "Address of the service."),
        Column("options", STRING, "Options of the job, as JSON."),
        Column("created", TIMESTAMP, "When it was asked for, UTC."),
        Column("sent", TIMESTAMP, "When the service was last asked for the job, UTC."),
        Column("updated", TIMESTAMP, "When its state last changed, UTC."),
    ),
)

#: Every table, by name.
TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        TRANSCRIPTS,
        WORDS,
        UTTERANCES,
        UTTERANCE_WORDS,
        SENTENCES,
        PARAGRAPHS,
        ENTITIES,
        CHAPTERS,
        HIGHLIGHTS,
        HIGHLIGHT_TIMES,
        CONTENT_SAFETY,
        CONTENT_SAFETY_SUMMARY,
        TOPICS,
        TOPICS_SUMMARY,
        SENTIMENTS,
        WORD_MATCHES,
        CONCORDANCE,
        RESPONSES,
        STREAM,
        STREAM_WORDS,
        JOBS,
    )
}


def _named(table: Table) -> Table:
    if "speaker" not in table.names or SPEAKER_NAME in table.columns:
        return table
    place = table.names.index("speaker") + 1
    return replace(table, columns=(*table.columns[:place], SPEAKER_NAME, *table.columns[place:]))


#: Every table as a corpus keeps and shows it: those with `speaker` have `speaker_name`, too.
CORPUS_TABLES: dict[str, Table] = {name: _named(table) for name, table in TABLES.items()}

#: Tables made from a transcript payload alone, in reading order.
TRANSCRIPT_TABLES: tuple[str, ...] = tuple(t.name for t in TABLES.values() if t.source == "GET /v2/transcript/{id}")
