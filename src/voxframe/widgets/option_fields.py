"""Form fields for the options of a job, and presets of these options without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxframe import settings
from voxframe._files import write_atomic
from voxframe.errors import CorpusError, OptionError
from voxframe.options import FIELDS, Field, check
from voxframe.validators import Boolean, Choice, Integer, ListOf, Number, shown

_KINDS: Mapping[type, str] = {Boolean: "flag", Choice: "choice", Integer: "whole", Number: "part"}
#: What an option is called in the form; its name is small print.
LABELS: Mapping[str, str] = {
    "language_code": "Language",
    "language_detection": "Detect the language",
    "language_confidence_threshold": "Least certainty of it",
    "speech_model": "Model",
    "speech_threshold": "Least share of speech",
    "punctuate": "Punctuation",
    "format_text": "Capitals and numbers",
    "disfluencies": "Keep um and uh",
    "filter_profanity": "Hide swear words",
    "word_boost": "Words to expect",
    "boost_param": "How strongly",
    "custom_spelling": "Spellings",
    "speaker_labels": "Tell speakers apart",
    "speakers_expected": "Number of speakers",
    "multichannel": "One speaker per channel",
    "dual_channel": "Two channels (older name)",
    "auto_chapters": "Chapters",
    "entity_detection": "Names, places, dates",
    "sentiment_analysis": "Mood of each sentence",
    "auto_highlights": "Key phrases",
    "iab_categories": "Topics",
    "content_safety": "Sensitive subjects",
    "content_safety_confidence": "Least certainty of them",
    "summarization": "Summary",
    "summary_model": "Style of the summary",
    "summary_type": "Form of the summary",
    "custom_topics": "Topics of your own",
    "topics": "Your topics",
    "redact_pii": "Hide it in the text",
    "redact_pii_policies": "Kinds to hide",
    "redact_pii_sub": "What replaces it",
    "redact_pii_audio": "Beep it out, too",
    "redact_pii_audio_quality": "Format of that file",
    "audio_start_from": "Start (ms)",
    "audio_end_at": "End (ms)",
    "webhook_url": "URL to call at the end",
    "webhook_auth_header_name": "Name of its header",
    "webhook_auth_header_value": "Value of its header",
}


#: Options that presets leave out: one is a secret, and the others are useless without it.
NOT_SAVED = tuple(name for name in FIELDS if name.startswith("webhook_"))


def kind_of(field: Field) -> str:
    """Return the kind of input for an option: flag, choice, choices, list, whole, part, secret or text.

    Example:
        >>> kind_of(FIELDS["speaker_labels"]), kind_of(FIELDS["boost_param"])
        ('flag', 'choice')
    """
    if isinstance(field.type, ListOf):
        return "choices" if field.choices else "list"
    return "secret" if field.secret else _KINDS.get(type(field.type), "text")


def _help(field: Field) -> str:
    """Return what an option does, and how to enter it."""
    example = ": Decarlo = dicarlo, di carlo" if field.name == "custom_spelling" else "."
    return f"{field.help} One per line{example}" if kind_of(field) == "list" else field.help


def parse_input(name: str, value: Any) -> Any:
    """Convert the input of a field to an option; None if it is empty or the default.

    Example:
        >>> parse_input("word_boost", "Voxframe, Parquet  "), parse_input("punctuate", True)
        (['Voxframe, Parquet'], None)
        >>> parse_input("speakers_expected", " 2 ")
        2
    """
    kind = kind_of(FIELDS[name])
    if kind == "flag":
        return None if value == FIELDS[name].default else value
    if kind == "choices":
        return list(value) or None
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    if kind == "list":
        entries = [line.strip() for line in text.splitlines() if line.strip()]
        return [_spelling(entry) for entry in entries] if name == "custom_spelling" else entries
    if kind in ("whole", "part"):
        try:
            return int(text) if kind == "whole" else float(text)
        except ValueError:
            raise OptionError(f"{name} must be a number, got {text!r}") from None
    return text


def format_input(name: str, value: Any) -> Any:
    """Convert an option to the input of its field; the inverse of `parse_input`."""
    kind = kind_of(FIELDS[name])
    if kind == "flag":
        return FIELDS[name].default if value is None else bool(value)
    if kind == "choices":
        return list(value or ())
    if value is None:
        return ""
    if name == "custom_spelling":
        return "\n".join(f"{entry['to']} = {', '.join(entry['from'])}" for entry in value)
    return "\n".join(value) if kind == "list" else str(value)


def parse_form(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the inputs of a form to checked options; empty inputs and defaults are left out."""
    options, problems = {}, []
    for name, value in inputs.items():
        try:
            option = parse_input(name, value)
        except OptionError as e:
            problems.append(str(e))
        else:
            if option is not None:
                options[name] = option
    try:
        check(**options)
    except OptionError as e:
        problems.insert(0, str(e))
    if problems:
        raise OptionError("\n".join(problems))
    return options


def _spelling(line: str) -> dict[str, Any]:
    to, equals, heard = line.partition("=")
    spellings = [part.strip() for part in heard.split(",") if part.strip()]
    if not equals or not to.strip() or not spellings:
        raise OptionError(f"a line of custom_spelling must look like 'Decarlo = dicarlo, di carlo', got {line!r}")
    return {"from": spellings, "to": to.strip()}


class FormField:
    """A field of the form.

    Args:
        form: The widget whose trait `_values` holds the inputs by name.
    """

    def __init__(self, form: Any, name: str) -> None:
        self._form, self._name = form, name

    @property
    def value(self) -> Any:
        """The input. It can be set to a text as typed, or to the value of the option."""
        return self._form._values.get(self._name, format_input(self._name, None) if self._name in FIELDS else "")

    @value.setter
    def value(self, value: Any) -> None:
        if not isinstance(value, str):
            value = format_input(self._name, value) if self._name in FIELDS else str(value)
        self._form._values = self._form._values | {self._name: value}


def groups() -> list[dict[str, Any]]:
    """Return the groups of options as the browser shows them: each field with its label, help and choices."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for field in FIELDS.values():
        if field.group:
            shown.setdefault(field.group, []).append(_shown(field))
    return [{"name": name, "fields": fields} for name, fields in shown.items()]


def _shown(field: Field) -> dict[str, Any]:
    kind = kind_of(field)
    choices = [[value, _in_words(field, value)] for value in field.choices]
    if kind == "choice":
        choices.insert(0, ["", f"default{f' ({_in_words(field, field.default)})' if field.default else ''}"])
    plain = kind in ("whole", "part", "text") and field.default not in (None, "")
    return {
        "name": field.name, "label": LABELS[field.name], "help": _help(field), "kind": kind, "choices": choices,
        "empty": format_input(field.name, None), "hint": f"default: {field.default}" if plain else "",
    }  # fmt: skip


def _in_words(field: Field, value: str) -> str:
    """Return what a choice is called in the form."""
    return field.meanings.get(value) or value.replace("_", " ")


class Presets:
    """Presets in a JSON file.

    Args:
        path: The file. None (default): `presets.json` in the data directory (`VOXFRAME_DATA_DIR`).
    """

    def __init__(self, path: str | Path | None = None) -> None:
        if path is not None and not isinstance(path, str | Path):
            raise OptionError(f"presets must be the path of a JSON file, got {shown(path)}")
        self.path = settings.resolve().data_dir / "presets.json" if path is None else Path(path).expanduser()

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the options of all presets by name."""
        try:
            presets = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(name): dict(options) for name, options in sorted(presets.items())}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as e:
            raise CorpusError(
                f"cannot read the presets in {str(self.path)!r} ({e}); repair or remove the file"
            ) from None

    def save(self, name: str, options: Mapping[str, Any]) -> None:
        """Save options under a name; webhook options are left out."""
        if not name.strip():
            raise OptionError("a preset needs a name; type one into the field 'Name'")
        saved = {option: value for option, value in options.items() if option not in NOT_SAVED}
        self._write(self.all() | {name.strip(): saved})

    def remove(self, name: str) -> None:
        """Delete a preset."""
        self.get(name)
        self._write({preset: options for preset, options in self.all().items() if preset != name})

    def get(self, name: str) -> dict[str, Any]:
        """Return the options of a preset."""
        presets = self.all()
        if name not in presets:
            raise OptionError(f"there is no preset {name!r}; available: {', '.join(presets) or 'none'}")
        return presets[name]

    def _write(self, presets: Mapping[str, Any]) -> None:
        text = json.dumps(presets, indent=1, ensure_ascii=False).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path, text, durable=False)
        except OSError as e:
            raise CorpusError(f"cannot write the presets in {str(self.path)!r}: {e.strerror or e}") from None
