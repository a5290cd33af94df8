"""Response bodies as msgspec structs, and the JSON Schemas that msgspec generates from them.

The structs describe responses; they are never instantiated. Responses may contain more fields.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType

from voxframe import options
from voxframe.validators import WebAddress
from voxframe_server.http.request_bodies import Schema, option_schemas, or_null

Ms = Annotated[int, Meta(ge=0, description="ms")]
Seconds = Annotated[float, Meta(description="seconds")]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
URL = Annotated[str, Meta(extra_json_schema=WebAddress().schema)]
TimeSpan = Annotated[list[Ms], Meta(min_length=2, max_length=2)]
Status = Literal["queued", "processing", "completed", "error"]


class ErrorSchema(Struct):
    """An error."""

    error: str


class WordSchema(Struct):
    """A word."""

    text: str
    start: Ms
    end: Ms
    confidence: Share
    speaker: str | UnsetType | None = UNSET
    channel: str | int | UnsetType | None = UNSET


class PassageSchema(WordSchema, kw_only=True):
    """A sentence or a paragraph."""

    words: list[WordSchema]


class UtteranceSchema(PassageSchema):
    """A turn of one speaker."""


class SpanSchema(Struct):
    """A span of the audio."""

    start: Ms
    end: Ms


class HighlightSchema(Struct):
    """A key phrase."""

    text: str
    count: Count
    rank: float
    timestamps: list[SpanSchema]


class HighlightsSchema(Struct):
    """The key phrases."""

    status: str | UnsetType = UNSET
    results: list[HighlightSchema] | UnsetType = UNSET


class SafetyLabelSchema(Struct):
    """A content-safety label of a segment."""

    label: str
    confidence: Share
    severity: Share | None


class SafetySegmentSchema(Struct):
    """A segment with content-safety labels."""

    text: str
    labels: list[SafetyLabelSchema]
    timestamp: SpanSchema


class SeverityLevelsSchema(Struct):
    """Shares of the severity levels of a label."""

    low: float
    medium: float
    high: float


class ContentSafetySchema(Struct):
    """Content-safety labels; an empty object if they were not requested."""

    status: str | UnsetType = UNSET
    results: list[SafetySegmentSchema] | UnsetType = UNSET
    summary_method: str | UnsetType = UNSET
    summary: dict[str, float] | UnsetType = UNSET
    severity_score_summary: dict[str, SeverityLevelsSchema] | UnsetType = UNSET


class TopicLabelSchema(Struct):
    """A topic of a segment."""

    relevance: float
    label: str


class TopicSegmentSchema(Struct):
    """A segment with topics."""

    text: str
    labels: list[TopicLabelSchema]
    timestamp: SpanSchema


class TopicsSchema(Struct):
    """Topics; an empty object if they were not requested."""

    status: str | UnsetType = UNSET
    results: list[TopicSegmentSchema] | UnsetType = UNSET
    summary: dict[str, float] | UnsetType = UNSET


class ChapterSchema(Struct):
    """A chapter."""

    summary: str
    gist: str
    headline: str
    start: Ms
    end: Ms


class SentimentSchema(WordSchema, kw_only=True):
    """The sentiment of a sentence."""

    sentiment: str


class EntitySchema(Struct):
    """An entity."""

    entity_type: str
    text: str
    start: Ms
    end: Ms


class TranscriptSchema(Struct):
    """A transcript: its status, its results, and all settings of the request except secrets."""

    id: str
    status: Status
    audio_url: str
    text: str | None
    webhook_url: str | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    words: list[WordSchema] | UnsetType | None = UNSET
    utterances: list[UtteranceSchema] | UnsetType | None = UNSET
    confidence: Share | UnsetType | None = UNSET
    audio_duration: Seconds | UnsetType | None = UNSET
    audio_channels: Count | UnsetType | None = UNSET
    language_model: str | UnsetType | None = UNSET
    acoustic_model: str | UnsetType | None = UNSET
    language_confidence: Share | UnsetType | None = UNSET
    webhook_status_code: int | UnsetType | None = UNSET
    webhook_auth: bool | UnsetType = UNSET
    throttled: bool | UnsetType | None = UNSET
    speed_boost: bool | UnsetType | None = UNSET
    auto_highlights_result: HighlightsSchema | UnsetType | None = UNSET
    content_safety_labels: ContentSafetySchema | UnsetType | None = UNSET
    iab_categories_result: TopicsSchema | UnsetType | None = UNSET
    custom_topics_results: TopicsSchema | UnsetType | None = UNSET
    chapters: list[ChapterSchema] | UnsetType | None = UNSET
    summary: str | UnsetType | None = UNSET
    sentiment_analysis_results: list[SentimentSchema] | UnsetType | None = UNSET
    entities: list[EntitySchema] | UnsetType | None = UNSET


class TranscriptItemSchema(Struct):
    """A transcript in a list."""

    id: str
    resource_url: URL
    status: Status
    created: str
    completed: str | None
    audio_url: str
    error: str | None


class PageDetailsSchema(Struct):
    """URLs and size of a page of a list."""

    limit: Count
    result_count: Count
    current_url: URL
    prev_url: URL | None
    next_url: URL | None


class TranscriptListSchema(Struct):
    """A page of transcripts."""

    page_details: PageDetailsSchema
    transcripts: list[TranscriptItemSchema]


class SentencesSchema(Struct):
    """The sentences of a transcript."""

    id: str
    sentences: list[PassageSchema]
    confidence: Share
    audio_duration: float


class ParagraphsSchema(Struct):
    """The paragraphs of a transcript."""

    id: str
    paragraphs: list[PassageSchema]
    confidence: Share
    audio_duration: float


class WordMatchSchema(Struct):
    """A matched term."""

    text: str
    count: Count
    timestamps: list[TimeSpan]
    indexes: list[Count]


class WordSearchSchema(Struct):
    """The matches of a word search."""

    id: str
    total_count: Count
    matches: list[WordMatchSchema]


class RedactedAudioSchema(Struct):
    """The URL of redacted audio."""

    redacted_audio_url: URL
    status: str


class UploadSchema(Struct):
    """An uploaded file."""

    upload_url: URL


class TokenSchema(Struct):
    """A temporary token."""

    token: str


class QuestionAnswerSchema(Struct):
    """A question and its answer."""

    question: str
    answer: str


class TokenUsageSchema(Struct):
    """Number of tokens used."""

    input_tokens: Count
    output_tokens: Count


class SentenceSourceSchema(Struct):
    """A sentence of a response by the local writer, and the passage that supports it."""

    sentence: str
    transcript_id: str | None
    start: Count | None
    end: Count | None
    text: str
    question: Count | UnsetType = UNSET


class LanguageModelAnswerSchema(Struct):
    """A response of the language model."""

    request_id: str
    response: str | list[QuestionAnswerSchema]
    usage: TokenUsageSchema
    model: str
    citations: list[SentenceSourceSchema] | UnsetType = UNSET


class PurgedSchema(Struct):
    """Confirmation that a response was deleted."""

    request_id: str
    request_id_to_purge: str
    deleted: bool


_RESPONSES = (
    ErrorSchema,
    TranscriptSchema,
    TranscriptListSchema,
    SentencesSchema,
    ParagraphsSchema,
    WordSearchSchema,
    RedactedAudioSchema,
    UploadSchema,
    TokenSchema,
    LanguageModelAnswerSchema,
    PurgedSchema,
)


def response_schemas() -> dict[str, Schema]:
    """Return the schemas of all responses and of the objects in them, by name."""
    _, generated = msgspec.json.schema_components(_RESPONSES, ref_template="#/components/schemas/{name}")
    # The components have the names of the structs without their suffix.
    components: dict[str, Schema] = orjson.loads(orjson.dumps(generated).replace(b'Schema"', b'"'))
    echoed = {name: or_null(schema) for name, schema in option_schemas().items() if not options.FIELDS[name].secret}
    transcript = components["Transcript"]
    transcript["properties"] = echoed | transcript["properties"]
    return components
