"""The options of a job as a form shows them: in groups that people think in, each with what it does and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voxframe.errors import OptionError
from voxframe.options import DEFAULTS, FIELDS, MAX_SPEAKERS, MIN_AUDIO_MS, check

#: What each option does, by group. Limits are those of `voxframe.options.FIELDS`.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Language": {
        "language_code": "Language that is spoken. The embedded engine knows English only.",
        "language_detection": "Find out which language is spoken.",
        "language_confidence_threshold": "Fail where the language is less certain than this; 0 to 1.",
        "speech_model": "Model: best hears more, nano costs less.",
        "speech_threshold": "Fail where less of the recording than this is speech; 0 to 1.",
    },
    "Text": {
        "punctuate": "Put in punctuation.",
        "format_text": "Write capitals and numbers as people do.",
        "disfluencies": "Keep um, uh and the like.",
        "filter_profanity": "Write swear words with asterisks.",
        "word_boost": "Words and names to listen for, one a line.",
        "boost_param": "How strongly to listen for them.",
        "custom_spelling": "How to write what is heard, one a line: Decarlo = dicarlo, di carlo",
    },
    "Speakers": {
        "speaker_labels": "Tell who speaks.",
        "speakers_expected": f"How many people speak, where that is known; 1 to {MAX_SPEAKERS}.",
        "multichannel": "One person on each channel of the recording.",
        "dual_channel": "The same, by the older name, for two channels.",
    },
    "Analyses": {
        "auto_chapters": "Chapters with a headline each.",
        "entity_detection": "Names, dates, places and other entities.",
        "sentiment_analysis": "Whether each sentence is positive, neutral or negative.",
        "auto_highlights": "Key phrases.",
        "iab_categories": "Topics.",
        "content_safety": "Where sensitive subjects are talked about.",
        "content_safety_confidence": "Only those at least this certain; 25 to 100.",
        "summarization": "A summary.",
        "summary_model": "Style of the summary.",
        "summary_type": "Form of the summary.",
        "custom_topics": "Look for topics of your own.",
        "topics": "Those topics, one a line.",
    },
    "Privacy": {
        "redact_pii": "Take personal information out of the text.",
        "redact_pii_policies": "Which kinds; none chosen is all that the service takes out by itself.",
        "redact_pii_sub": "What stands in its place: the kind, or # for each letter.",
        "redact_pii_audio": "Make a copy of the recording with it silenced.",
        "redact_pii_audio_quality": "Format of that copy.",
    },
    "Part and notice": {
        "audio_start_from": "Begin at this moment, in milliseconds.",
        "audio_end_at": f"End at this moment, in milliseconds; at least {MIN_AUDIO_MS} after the beginning.",
        "webhook_url": "Address that is told when the job is over.",
        "webhook_auth_header_name": "Header that shows the address who calls.",
        "webhook_auth_header_value": "What that header says. It is sent to the service and kept nowhere.",
    },
}
HELP = {name: text for options in GROUPS.values() for name, text in options.items()}
#: Their values are lists that are typed, one entry a line.
LISTS = ("word_boost", "topics", "custom_spelling")
#: Their values are numbers.
WHOLE = ("speakers_expected", "content_safety_confidence", "audio_start_from", "audio_end_at")
PARTS = ("language_confidence_threshold", "speech_threshold")


@dataclass(frozen=True)
class Shown:
    """An option in a form.

    Attributes:
        name: Its name.
        help: What it does and what is allowed.
        kind: "flag", "choice", "choices", "list", "whole", "part", "secret" or "text".
        default: What the service does without it; None for nothing.
        choices: Values that are allowed, where they are a closed list.
    """

    name: str
    help: str
    kind: str
    default: Any
    choices: tuple[str, ...]


def shown(name: str) -> Shown:
    """How a form shows an option.

    Example:
        >>> shown("speaker_labels").kind, shown("boost_param").choices
        ('flag', ('low', 'default', 'high'))
    """
    field = FIELDS[name]
    default = DEFAULTS.get(name)
    if isinstance(default, bool):
        kind = "flag"
    elif name in LISTS:
        kind = "list"
    elif field.choices:
        kind = "choices" if default == () else "choice"
    elif name in WHOLE or name in PARTS:
        kind = "whole" if name in WHOLE else "part"
    else:
        kind = "secret" if field.secret else "text"
    return Shown(name, HELP[name], kind, default, field.choices)


def read(name: str, value: Any) -> Any:
    """What is typed or chosen, as an option; None where it says nothing that the service does not do anyway.

    Raises:
        OptionError: A number was wanted, or an entry of `custom_spelling` is none.

    Example:
        >>> read("word_boost", "Voxframe, Parquet  "), read("punctuate", True), read("speakers_expected", " 2 ")
        (['Voxframe, Parquet'], None, 2)
    """
    option = shown(name)
    if option.kind == "flag":
        return None if value == option.default else value
    if option.kind == "choices":
        return list(value) or None
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    if option.kind == "list":
        entries = [line.strip() for line in text.splitlines() if line.strip()]
        return [_spelling(entry) for entry in entries] if name == "custom_spelling" else entries
    if option.kind in ("whole", "part"):
        try:
            return int(text) if option.kind == "whole" else float(text)
        except ValueError:
            raise OptionError(f"{name} is a number, not {text!r}") from None
    return text


def written(name: str, value: Any) -> Any:
    """An option as it is typed or chosen: the other way round."""
    option = shown(name)
    if option.kind == "flag":
        return option.default if value is None else bool(value)
    if option.kind == "choices":
        return tuple(value or ())
    if value is None:
        return ""
    if name == "custom_spelling":
        return "\n".join(f"{entry['to']} = {', '.join(entry['from'])}" for entry in value)
    return "\n".join(value) if option.kind == "list" else str(value)


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of what is typed and chosen, checked; those left as they are are left out.

    Raises:
        OptionError: Something cannot be sent; all of it is named.
    """
    options, wrongs = {}, []
    for name, value in given.items():
        try:
            option = read(name, value)
        except OptionError as e:
            wrongs.append(str(e))
        else:
            if option is not None:
                options[name] = option
    try:
        check(**options)
    except OptionError as e:
        wrongs.insert(0, str(e))
    if wrongs:
        raise OptionError("\n".join(wrongs))
    return options


def _spelling(line: str) -> dict[str, Any]:
    to, equals, heard = line.partition("=")
    spellings = [part.strip() for part in heard.split(",") if part.strip()]
    if not equals or not to.strip() or not spellings:
        raise OptionError(f"custom_spelling has lines such as 'Decarlo = dicarlo, di carlo', not {line!r}")
    return {"from": spellings, "to": to.strip()}
