"""What may be asked of a transcription job: names, types, ranges, defaults.

The client checks strictly (`check`: an unknown or wrong option is an error before anything is uploaded or paid for).
The embedded service reads leniently (`problems`: unknown fields are ignored). Both use the one table `FIELDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

from voxframe import option_values as values
from voxframe.errors import OptionError

# Limits of the interface, each in the unit of its name.
MIN_AUDIO_MS = 160
MAX_SPEAKERS = 10
WORD_SEARCH_WORDS = 5
LIST_LIMIT = 200
TOKEN_SECONDS = (60, 360_000)
STREAM_WORD_BOOST_CHARS = 2500
STREAM_SILENCE_MS = (0, 20_000)
STREAM_ENCODINGS = ("pcm_s16le", "pcm_mulaw")
LLM_TRANSCRIPTS = 100
LLM_HOURS = 100
LLM_INPUT_DEFAULT = 100_000
LLM_OUTPUT_TOKENS = 4000
LLM_DEFAULTS: dict[str, Any] = {"final_model": "default", "max_output_size": 2000, "temperature": 0}
SUBTITLE_FORMATS = ("srt", "vtt")

# fmt: off
LanguageCode = Literal[
    "en", "en_au", "en_uk", "en_us", "es", "fr", "de", "it", "pt", "nl", "af", "sq", "am", "ar", "hy", "as", "az",
    "ba", "eu", "be", "bn", "bs", "br", "bg", "my", "ca", "zh", "hr", "cs", "da", "et", "fo", "fi", "gl", "ka",
    "el", "gu", "ht", "ha", "haw", "he", "hi", "hu", "is", "id", "ja", "jw", "kn", "kk", "km", "ko", "lo", "la",
    "lv", "ln", "lt", "lb", "mk", "mg", "ms", "ml", "mt", "mi", "mr", "mn", "ne", "no", "nn", "oc", "pa", "ps",
    "fa", "pl", "ro", "ru", "sa", "sr", "sn", "sd", "si", "sk", "sl", "so", "su", "sw", "sv", "tl", "tg", "ta",
    "tt", "te", "th", "bo", "tr", "tk", "uk", "ur", "uz", "vi", "cy", "yi", "yo",
]
PiiPolicy = Literal[
    "account_number", "banking_information", "blood_type", "credit_card_cvv", "credit_card_expiration",
    "credit_card_number", "date", "date_interval", "date_of_birth", "drivers_license", "drug", "duration",
    "email_address", "event", "filename", "gender_sexuality", "healthcare_number", "injury", "ip_address",
    "language", "location", "marital_status", "medical_condition", "medical_process", "money_amount", "nationality",
    "number_sequence", "occupation", "organization", "passport_number", "password", "person_age", "person_name",
    "phone_number", "physical_attribute", "political_affiliation", "religion", "statistics", "time", "url",
    "us_social_security_number", "username", "vehicle_id", "zodiac_sign",
]
# fmt: on
SpeechModel = Literal["best", "nano"]
BoostParam = Literal["low", "default", "high"]
RedactedAudioQuality = Literal["mp3", "wav"]
PiiSubstitution = Literal["entity_name", "hash", "entity_type"]
SummaryModel = Literal["informative", "conversational", "catchy"]
SummaryType = Literal["bullets", "bullets_verbose", "gist", "headline", "paragraph"]

LANGUAGE_CODES: tuple[str, ...] = get_args(LanguageCode)
PII_POLICIES: tuple[str, ...] = get_args(PiiPolicy)


#: `{"from": ["dicarlo"], "to": "Decarlo"}`. Spelled this way because `from` is a keyword.
CustomSpelling = TypedDict("CustomSpelling", {"from": Sequence[str], "to": str})


class TranscriptOptions(TypedDict, total=False):
    """Options of a transcription job, as keyword arguments. None means: as the service does by default."""

    language_code: LanguageCode | None
    language_detection: bool | None
    language_confidence_threshold: float | None
    speech_model: SpeechModel | None
    punctuate: bool | None
    format_text: bool | None
    disfluencies: bool | None
    multichannel: bool | None
    dual_channel: bool | None
    webhook_url: str | None
    webhook_auth_header_name: str | None
    webhook_auth_header_value: str | None
    auto_highlights: bool | None
    audio_start_from: int | None
    audio_end_at: int | None
    word_boost: Sequence[str] | None
    boost_param: BoostParam | None
    filter_profanity: bool | None
    redact_pii: bool | None
    redact_pii_audio: bool | None
    redact_pii_audio_quality: RedactedAudioQuality | None
    redact_pii_policies: Sequence[PiiPolicy] | None
    redact_pii_sub: PiiSubstitution | None
    speaker_labels: bool | None
    speakers_expected: int | None
    content_safety: bool | None
    content_safety_confidence: int | None
    iab_categories: bool | None
    custom_spelling: Sequence[CustomSpelling] | None
    sentiment_analysis: bool | None
    auto_chapters: bool | None
    entity_detection: bool | None
    speech_threshold: float | None
    summarization: bool | None
    summary_model: SummaryModel | None
    summary_type: SummaryType | None
    custom_topics: bool | None
    topics: Sequence[str] | None


@dataclass(frozen=True)
class Field:
    """One field of a transcription request.

    Attributes:
        name: Its name on the wire.
        convert: Returns the value as it goes on the wire, or raises.
        default: What the service does where the field is absent; None where it has no value then.
        choices: Values allowed, where they are a closed list.
        secret: Whether the value must not be shown.
    """

    name: str
    convert: Callable[[object], Any]
    default: Any = None
    choices: tuple[str, ...] = ()
    secret: bool = False


def _choice(name: str, kind: Any, default: str | None) -> Field:
    return Field(name, values.one_of(get_args(kind)), default, get_args(kind))


def _flag(name: str, default: bool = False) -> Field:
    return Field(name, values.boolean, default)


_UNIT = values.number(0, 1)

#: Every field that may be sent when a transcript is created, by name.
FIELDS: dict[str, Field] = {
    f.name: f
    for f in (
        Field("audio_url", values.web_address),
        _choice("language_code", LanguageCode, "en_us"),
        _flag("language_detection"),
        Field("language_confidence_threshold", _UNIT, 0),
        _choice("speech_model", SpeechModel, None),
        _flag("punctuate", default=True),
        _flag("format_text", default=True),
        _flag("disfluencies"),
        _flag("multichannel"),
        _flag("dual_channel"),
        Field("webhook_url", values.web_address),
        Field("webhook_auth_header_name", values.header_name),
        Field("webhook_auth_header_value", values.header_value, secret=True),
        _flag("auto_highlights"),
        Field("audio_start_from", values.whole(0, unit=" ms")),
        Field("audio_end_at", values.whole(MIN_AUDIO_MS, unit=" ms")),
        Field("word_boost", values.listed(values.text, "words or phrases"), ()),
        _choice("boost_param", BoostParam, "default"),
        _flag("filter_profanity"),
        _flag("redact_pii"),
        _flag("redact_pii_audio"),
        _choice("redact_pii_audio_quality", RedactedAudioQuality, "mp3"),
        Field("redact_pii_policies", values.listed(values.one_of(PII_POLICIES), "policies"), (), PII_POLICIES),
        Field(
            "redact_pii_sub",
            values.one_of(("entity_name", "hash"), {"entity_type": "entity_name"}),
            "hash",
            ("entity_name", "hash"),
        ),
        _flag("speaker_labels"),
        Field("speakers_expected", values.whole(1, MAX_SPEAKERS)),
        _flag("content_safety"),
        Field("content_safety_confidence", values.whole(25, 100), 50),
        _flag("iab_categories"),
        Field("custom_spelling", values.listed(values.spelling, 'entries {"from": [...], "to": ...}')),
        _flag("sentiment_analysis"),
        _flag("auto_chapters"),
        _flag("entity_detection"),
        Field("speech_threshold", _UNIT),
        _flag("summarization"),
        _choice("summary_model", SummaryModel, "informative"),
        _choice("summary_type", SummaryType, "bullets"),
        _flag("custom_topics"),
        Field("topics", values.listed(values.text, "topics"), ()),
    )
}

#: What the service does where a field is absent; fields that have no value then are left out.
DEFAULTS: dict[str, Any] = {f.name: f.default for f in FIELDS.values() if f.default is not None}


def _examine(options: Mapping[str, object], *, strict: bool) -> tuple[dict[str, Any], list[str]]:
    """The fields as they go on the wire, and what is wrong with them."""
    body: dict[str, Any] = {}
    wrongs: list[str] = []
    for name, value in options.items():
        field = FIELDS.get(name)
        if field is None:
            if strict:
                near = values.nearest(name, tuple(FIELDS))
                wrongs.append(f"there is no option {name!r}{near}; `sorted(voxframe.options.FIELDS)` lists them all")
        elif value is not None:
            wrongs += _more(name, value) if strict else []
            try:
                body[name] = field.convert(value)
            except values.WrongError as wrong:
                given = "" if field.secret else f", not {values.shown(value)}"
                wrongs.append(f"{name} {wrong}{given}")
    wrongs += _together(body, options)
    return body, wrongs


def _more(name: str, value: object) -> list[str]:
    """What an entry of `custom_spelling` holds besides: a client's mistake, of which a service takes no notice."""
    entries = value if name == "custom_spelling" and isinstance(value, Sequence) else ()
    known = {"from", "to"}
    more = [key for entry in entries if isinstance(entry, Mapping) for key in entry if key not in known]
    return [f"custom_spelling entries hold from and to alone, not {key!r}" for key in more]


def _together(body: Mapping[str, Any], options: Mapping[str, object]) -> list[str]:
    """What is wrong between fields that are right alone."""
    wrongs = []
    name, value = (options.get(f"webhook_auth_header_{part}") is not None for part in ("name", "value"))
    if name != value:
        given, other = ("name", "value") if name else ("value", "name")
        wrongs.append(f"webhook_auth_header_{given} was given alone; give webhook_auth_header_{other} too, or neither")
    start, end = body.get("audio_start_from", 0), body.get("audio_end_at")
    if end is not None and end - start < MIN_AUDIO_MS:
        wrongs.append(
            f"audio_start_from={start} and audio_end_at={end} leave {max(end - start, 0)} ms; "
            f"audio shorter than {MIN_AUDIO_MS} ms fails, so move one of them"
        )
    return wrongs


def check(**options: Unpack[TranscriptOptions]) -> dict[str, Any]:
    """Check the options of a job and return them as they go on the wire.

    Options that are None are left out: the service's own default holds.

    Args:
        **options: Any field of `TranscriptOptions`.

    Returns:
        The JSON body, without `audio_url`.

    Raises:
        OptionError: An option is unknown or has a value that is not allowed. All that is wrong is named at once.

    Example:
        >>> check(speaker_labels=True, speakers_expected=2)
        {'speaker_labels': True, 'speakers_expected': 2}
    """
    body, wrongs = _examine(cast("Mapping[str, object]", options), strict=True)
    if wrongs:
        raise OptionError("\n".join(wrongs))
    return body


def check_address(audio_url: str) -> str:
    """Return the address of a recording where it is one the service can fetch from.

    Raises:
        OptionError: It is no http or https address.
    """
    try:
        return values.web_address(audio_url)
    except values.WrongError as wrong:
        raise OptionError(f"audio {wrong}, not {values.shown(audio_url)}") from None


def problems(options: Mapping[str, object]) -> list[str]:
    """What a service should refuse in a request body. Unknown fields and nulls are none of it.

    Example:
        >>> problems({"punctuate": "yes", "from_the_future": 1})
        ["punctuate must be True or False, not 'yes'"]
    """
    return _examine(options, strict=False)[1]


def normalise(options: Mapping[str, object]) -> dict[str, Any]:
    """The known fields of a request body with one spelling each, nulls and wrong values left out.

    Example:
        >>> normalise({"redact_pii_sub": "entity_type", "punctuate": None})
        {'redact_pii_sub': 'entity_name'}
    """
    return _examine(options, strict=False)[0]
