"""Options of a transcription job: names, types, bounds, defaults and help.

`FIELDS` is the one specification. The strict check of the client (`check`) and the lenient check of the embedded server
(`problems`) are made from it. So are the form and the documentation.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, get_args

from voxframe import validators as values
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
#: States of a transcript.
STATUSES = ("queued", "processing", "completed", "error")

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
_LANGUAGES = """
    en English, en_au Australian English, en_uk British English, en_us American English, es Spanish, fr French,
    de German, it Italian, pt Portuguese, nl Dutch, af Afrikaans, sq Albanian, am Amharic, ar Arabic, hy
    Armenian, as Assamese, az Azerbaijani, ba Bashkir, eu Basque, be Belarusian, bn Bengali, bs Bosnian, br
    Breton, bg Bulgarian, my Burmese, ca Catalan, zh Chinese, hr Croatian, cs Czech, da Danish, et Estonian, fo
    Faroese, fi Finnish, gl Galician, ka Georgian, el Greek, gu Gujarati, ht Haitian Creole, ha Hausa, haw
    Hawaiian, he Hebrew, hi Hindi, hu Hungarian, is Icelandic, id Indonesian, ja Japanese, jw Javanese, kn
    Kannada, kk Kazakh, km Khmer, ko Korean, lo Lao, la Latin, lv Latvian, ln Lingala, lt Lithuanian, lb
    Luxembourgish, mk Macedonian, mg Malagasy, ms Malay, ml Malayalam, mt Maltese, mi Maori, mr Marathi, mn
    Mongolian, ne Nepali, no Norwegian, nn Norwegian Nynorsk, oc Occitan, pa Punjabi, ps Pashto, fa Persian, pl
    Polish, ro Romanian, ru Russian, sa Sanskrit, sr Serbian, sn Shona, sd Sindhi, si Sinhala, sk Slovak, sl
    Slovenian, so Somali, su Sundanese, sw Swahili, sv Swedish, tl Tagalog, tg Tajik, ta Tamil, tt Tatar, te
    Telugu, th Thai, bo Tibetan, tr Turkish, tk Turkmen, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, cy
    Welsh, yi Yiddish, yo Yoruba
"""
#: English names of languages by code.
LANGUAGES: dict[str, str] = dict(entry.split(maxsplit=1) for entry in _LANGUAGES.split(","))


#: `{"from": ["dicarlo"], "to": "Decarlo"}`. Spelled this way because `from` is a keyword.
CustomSpelling = TypedDict("CustomSpelling", {"from": Sequence[str], "to": str})


class TranscriptOptions(TypedDict, total=False):
    """Options of a transcription job, as keyword arguments. None means the default of the service.

    `voxframe.describe("options")` explains them. Fields that this version does not know go into `extra_body`.
    """

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
    extra_body: Mapping[str, Any] | None


@dataclass(frozen=True)
class Field:
    """One field of a transcription request.

    Attributes:
        default: Value that the service uses if the field is absent; None if it has none.
        secret: True if the value must never be shown.
    """

    name: str
    type: values.ValueType
    help: str
    group: str = ""
    default: Any = None
    secret: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Allowed values, or allowed items of a list, if they are a closed list; otherwise empty."""
        return self._kind.allowed if isinstance(self._kind, values.Choice) else ()

    @property
    def meanings(self) -> Mapping[str, str]:
        """Meanings of the allowed values that do not explain themselves."""
        return self._kind.meanings if isinstance(self._kind, values.Choice) else {}

    @property
    def _kind(self) -> values.ValueType:
        return self.type.item if isinstance(self.type, values.ListOf) else self.type


def _choice(name: str, kind: Any, default: str | None, help_text: str) -> Field:
    return Field(name, values.Choice(get_args(kind)), help_text, default=default)


def _flag(name: str, help_text: str, *, default: bool = False) -> Field:
    return Field(name, values.Boolean(), help_text, default=default)


_SHARE = values.Number(0, 1)
_URL = values.WebAddress()

#: The options by the heading under which a form shows them.
_GROUPS: dict[str, tuple[Field, ...]] = {
    "Language": (
        Field(
            "language_code",
            values.Choice(LANGUAGE_CODES, meanings=LANGUAGES),
            "Language spoken. The embedded server analyses English only.",
            default="en_us",
        ),
        _flag("language_detection", "Detect the language."),
        Field(
            "language_confidence_threshold", _SHARE, "Fail if the detected language is less certain; 0 to 1.", default=0
        ),
        _choice("speech_model", SpeechModel, None, "Model: best is more accurate, nano is cheaper."),
        Field("speech_threshold", _SHARE, "Fail if less than this share of the recording is speech; 0 to 1."),
    ),
    "Text": (
        _flag("punctuate", "Add punctuation.", default=True),
        _flag("format_text", "Write capital letters and numbers as in edited text.", default=True),
        _flag("disfluencies", "Keep filler words such as um and uh."),
        _flag("filter_profanity", "Replace swear words with asterisks."),
        Field(
            "word_boost",
            values.ListOf(values.Text(), "words or phrases"),
            "Words and names to expect.",
            default=(),
        ),
        _choice("boost_param", BoostParam, "default", "How strongly to expect the words of word_boost."),
        Field(
            "custom_spelling",
            values.ListOf(values.Spelling(), 'entries {"from": [...], "to": ...}'),
            "How to write recognized words.",
        ),
    ),
    "Who speaks": (
        _flag("speaker_labels", "Label the speaker of each word."),
        Field(
            "speakers_expected", values.Integer(1, MAX_SPEAKERS), f"Number of speakers, if known; 1 to {MAX_SPEAKERS}."
        ),
        _flag("multichannel", "Transcribe each channel separately: one speaker per channel."),
        _flag("dual_channel", "The same for two channels; the older name of multichannel."),
    ),
    "What is it about": (
        _flag("auto_chapters", "Chapters with headlines."),
        _flag("entity_detection", "Names, dates, places and other entities."),
        _flag("sentiment_analysis", "Sentiment of each sentence: positive, neutral or negative."),
        _flag("auto_highlights", "Key phrases."),
        _flag("iab_categories", "Topics."),
        _flag("content_safety", "Passages about sensitive subjects."),
        Field(
            "content_safety_confidence",
            values.Integer(25, 100),
            "Report only passages that are sensitive with at least this certainty; 25 to 100.",
            default=50,
        ),
        _flag("summarization", "A summary."),
        _choice("summary_model", SummaryModel, "informative", "Style of the summary."),
        _choice("summary_type", SummaryType, "bullets", "Form of the summary."),
        _flag("custom_topics", "Look for your own topics."),
        Field("topics", values.ListOf(values.Text(), "topics"), "Topics to look for with custom_topics.", default=()),
    ),
    "Hide personal data": (
        _flag("redact_pii", "Remove personal information from the text."),
        Field(
            "redact_pii_policies",
            values.ListOf(values.Choice(PII_POLICIES), "policies"),
            "Kinds of personal information to remove; none selected means the default set of the service.",
            default=(),
        ),
        Field(
            "redact_pii_sub",
            values.Choice(("entity_name", "hash"), {"entity_type": "entity_name"}),
            "Replace personal information with the name of its kind, or with # for each letter.",
            default="hash",
        ),
        _flag("redact_pii_audio", "Also make a copy of the recording in which personal information is beeped out."),
        _choice("redact_pii_audio_quality", RedactedAudioQuality, "mp3", "File format of the copy with beeps."),
    ),
    "Part and webhook": (
        Field("audio_start_from", values.Integer(0, unit="ms"), "Start at this position, in milliseconds."),
        Field(
            "audio_end_at",
            values.Integer(MIN_AUDIO_MS, unit="ms"),
            f"Stop at this position, in milliseconds; at least {MIN_AUDIO_MS} after the start.",
        ),
        Field("webhook_url", _URL, "URL that is called when the job has finished."),
        Field(
            "webhook_auth_header_name",
            values.HeaderName(),
            "Name of a header that is sent with the call of webhook_url, for authentication.",
        ),
        Field(
            "webhook_auth_header_value",
            values.HeaderValue(),
            "Value of that header. It is sent to the service and stored nowhere.",
            secret=True,
        ),
    ),
}

#: Every field that may be sent when a transcript is created, by name.
FIELDS: dict[str, Field] = {"audio_url": Field("audio_url", _URL, "URL of the audio or video file.")} | {
    field.name: replace(field, group=group) for group, fields in _GROUPS.items() for field in fields
}

#: Values that the service uses for absent fields; fields without such a value are left out.
DEFAULTS: dict[str, Any] = {f.name: f.default for f in FIELDS.values() if f.default is not None}

#: Help of the option that passes fields of a request unchecked.
_EXTRA_BODY_HELP = (
    "Further fields of the request, as a dict. They are sent unchecked, for options that the service has and this "
    "version of voxframe does not know."
)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def option_rows() -> list[tuple[str, str, str, str]]:
    """Return name, values, default of the service and meaning of every job option, as texts.

    Example:
        >>> option_rows()[1]
        ('language_detection', 'True or False', 'False', 'Detect the language.')
    """
    rows = [
        (field.name, _allowed(field), "" if field.default is None else repr(field.default), field.help)
        for fields in _GROUPS.values()
        for field in fields
    ]
    return [*rows, ("extra_body", "a dict", "", _EXTRA_BODY_HELP)]


def _allowed(field: Field) -> str:
    """Return the allowed values of an option as text."""
    if field.choices:
        few = (
            ", ".join(field.choices) if len(field.choices) <= 5 else f"{len(field.choices)} such as {field.choices[0]}"
        )
        return f"list of {few}" if isinstance(field.type, values.ListOf) else few
    match field.type:
        case values.ListOf(noun=noun):
            return f"list of {noun}"
        case values.Boolean():
            return "True or False"
        case values.Number(low, high) | values.Integer(low, high):
            return f"{low} or more" if high in (None, math.inf) else f"{low} to {high}"
        case values.WebAddress():
            return "URL"
        case _:
            return "text"


def takes_options(function: _Function) -> _Function:
    """Add every job option to the signature and docstring of a function that takes them as `**options`.

    IPython completes calls from the signature. Each option is a keyword-only parameter with its type and the default
    of the service.

    Example:
        >>> import inspect
        >>> @takes_options
        ... def send(audio, **options):
        ...     "Send it."
        >>> str(inspect.signature(send))[:60]
        "(audio, *, language_code: 'LanguageCode | None' = 'en_us', l"
    """
    signature = inspect.signature(function)
    own_parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    vars(function)["__signature__"] = signature.replace(parameters=[*own_parameters, *_parameters()])
    help_lines = [f"    {name}: {text}" for name, _, _, text in option_rows()]
    function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Options:", *help_lines])
    return function


def _parameters() -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, kind, default=DEFAULTS.get(name), annotation=getattr(type_, "__forward_arg__", type_))
        for name, type_ in TranscriptOptions.__annotations__.items()
    ]


setattr(TranscriptOptions, "__signature__", inspect.Signature(_parameters()))  # noqa: B010  for `TranscriptOptions(`


def check(**options: Unpack[TranscriptOptions]) -> dict[str, Any]:
    """Check the options of a job and return them as they are sent.

    Options that are None are left out, so that the default of the service applies.

    Args:
        **options: Any field of `TranscriptOptions`.

    Example:
        >>> check(speaker_labels=True, speakers_expected=2)
        {'speaker_labels': True, 'speakers_expected': 2}
    """
    extra_body = options.pop("extra_body", None)
    extra_body = {} if extra_body is None else extra_body
    given = cast("Mapping[str, object]", options)
    body, errors = _convert(given)
    errors = _unknown(given) + errors + _extra_problems(extra_body)
    if errors:
        raise OptionError("\n".join(errors))
    return {**body, **extra_body}


def check_address(audio_url: str) -> str:
    """Return the URL of a recording if it is an http or https URL."""
    try:
        return _URL.convert(audio_url)
    except values.InvalidValueError as e:
        raise OptionError(f"audio {e}, not {values.shown(audio_url)}") from None


def problems(options: Mapping[str, object]) -> list[str]:
    """List the values in a request body that a server should refuse. Unknown fields and nulls are ignored.

    Example:
        >>> problems({"punctuate": "yes", "from_the_future": 1})
        ["punctuate must be True or False, not 'yes'"]
    """
    return _convert(options)[1]


def normalise(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the known fields of a request body, with aliases resolved and nulls and invalid values left out.

    Example:
        >>> normalise({"redact_pii_sub": "entity_type", "punctuate": None})
        {'redact_pii_sub': 'entity_name'}
    """
    return _convert(options)[0]


def _convert(options: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Return the valid known fields as they are sent, and one message for each invalid one."""
    body: dict[str, Any] = {}
    errors: list[str] = []
    for name, value in options.items():
        field = FIELDS.get(name)
        if field is None or value is None:
            continue
        try:
            body[name] = field.type.convert(value)
        except values.InvalidValueError as e:
            given = "" if field.secret else f", not {values.shown(value)}"
            where = f"; voxframe.describe({name!r}) lists them" if len(field.choices) > values.MOST_LISTED else ""
            errors.append(f"{name} {e}{given}{where}")
    return body, errors + _contradictions(body, options)


def _unknown(options: Mapping[str, object]) -> list[str]:
    """Return one message for each unknown option and each unknown key of a `custom_spelling` entry."""
    errors = [
        f"there is no option {name!r}{values.nearest(name, tuple(FIELDS))}; "
        "`voxframe.describe('options')` lists them all, and `extra_body={...}` sends fields that it does not list"
        for name in options.keys() - FIELDS.keys()
    ]
    entries = options.get("custom_spelling")
    entries = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, Sequence) else []
    extra = [key for entry in entries for key in entry if key not in {"from", "to"}]
    return sorted(errors) + [f"custom_spelling entries have the keys from and to only, not {key!r}" for key in extra]


def _extra_problems(extra_body: object) -> list[str]:
    """Return one message if `extra_body` is no JSON object, and one for each of its fields that is an option."""
    try:
        json.dumps(extra_body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return [f"extra_body must be a dict that can be written as JSON: {error}"]
    if not isinstance(extra_body, dict) or not all(isinstance(name, str) for name in extra_body):
        return [f"extra_body must be a dict with names of fields as keys, not {values.shown(extra_body)}"]
    return [
        f"extra_body has {name!r}, which voxframe knows; give it as "
        + ("the recording" if name == "audio_url" else f"the option {name}")
        for name in extra_body
        if name in FIELDS
    ]


def _contradictions(body: Mapping[str, Any], options: Mapping[str, object]) -> list[str]:
    """Return one message for each pair of fields that are valid alone but not together."""
    errors = []
    name, value = (options.get(f"webhook_auth_header_{part}") is not None for part in ("name", "value"))
    if name != value:
        given, other = ("name", "value") if name else ("value", "name")
        errors.append(
            f"webhook_auth_header_{given} was given without webhook_auth_header_{other}; give both or neither"
        )
    start, end = body.get("audio_start_from", 0), body.get("audio_end_at")
    if end is not None and end - start < MIN_AUDIO_MS:
        errors.append(
            f"audio_start_from={start} and audio_end_at={end} leave {max(end - start, 0)} ms; "
            f"audio must last at least {MIN_AUDIO_MS} ms, so change one of them"
        )
    return errors
