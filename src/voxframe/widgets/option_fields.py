"""Form fields for the options of a job, and presets of these options without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from voxframe import settings
from voxframe._files import write_atomic
from voxframe.errors import CorpusError, OptionError, SettingsError
from voxframe.options import FIELDS, Field, check
from voxframe.settings import Secret
from voxframe.validators import Boolean, Choice, Integer, ListOf, Number, shown
from voxframe.widgets.base import ScriptedWidget, escaped

_KINDS: Mapping[type, str] = {Boolean: "flag", Choice: "choice", Integer: "whole", Number: "part"}
_HELP = 'style="opacity:0.75;line-height:1.4;display:block"'
_WIDE = {"description_width": "190px"}  # the longest label
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
        return tuple(value or ())
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


class SecretField(ScriptedWidget):
    """A password field. Its text goes to the kernel in one message and is in no trait, so in no saved notebook.

    Attributes:
        given (bool): True if the field has text.
    """

    scripts = ("secret_field",)
    styles = ("fields",)

    help = traitlets.Unicode("").tag(sync=True)
    given = traitlets.Bool(False).tag(sync=True)

    def __init__(self, title: str, help: str = "") -> None:  # noqa: A002  as the trait
        super().__init__(title=title, help=help)
        self._secret: Secret | None = None
        self.on_msg(self._on_input)

    @property
    def secret(self) -> Secret | None:
        """The text of the field; None if it is empty."""
        return self._secret

    def _static_html(self) -> str:
        return f"<p>{escaped(self.title)}</p>"

    def _on_input(self, _: Any, message: Any, __: Any) -> None:
        text = message.get("text") if isinstance(message, dict) else None
        self.error, self._secret = "", None
        try:
            self._secret = Secret(text) if isinstance(text, str) and text.strip() else None
        except SettingsError as e:
            self.error = str(e)
        self.given = self._secret is not None


class OptionFields(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A field with help for every option of a job."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.fields: dict[str, ipywidgets.Widget] = {}
        field_layout = ipywidgets.Layout(width="auto")
        help_layout = ipywidgets.Layout(width="auto", margin="2px 0 2px 4px")
        grid = ipywidgets.Layout(grid_template_columns="minmax(320px, 500px) minmax(150px, 1fr)", grid_gap="0 8px")
        pages = {}
        for group in dict.fromkeys(field.group for field in FIELDS.values() if field.group):
            children = []
            for option in (field for field in FIELDS.values() if field.group == group):
                field = self.fields[option.name] = _input_widget(option, field_layout)
                field.observe(lambda _: on_change(), "given" if option.secret else "value")
                text = f"<span {_HELP}>{escaped(_help(option))} <small><code>{option.name}</code></small></span>"
                children += [field, ipywidgets.HTML(text, layout=help_layout)]
            pages[group] = ipywidgets.GridBox(children, layout=grid)
        self._groups = ipywidgets.ToggleButtons(
            options=list(pages), tooltips=[f"Options: {group}" for group in pages], style={"button_width": "auto"}
        )
        self._page = ipywidgets.Box([pages[self._groups.value]], layout=ipywidgets.Layout(display="block"))
        self._groups.observe(lambda change: setattr(self._page, "children", [pages[change["new"]]]), "value")
        super().__init__([self._groups, self._page])

    @property
    def options(self) -> dict[str, Any]:
        """The checked options, including the secret one."""
        inputs = {name: field.value for name, field in self.fields.items() if not isinstance(field, SecretField)}
        if (secret := self.secret) is not None:
            inputs["webhook_auth_header_value"] = secret.reveal()
        return parse_form(inputs)

    @property
    def secret(self) -> Secret | None:
        """The value of the authentication header of webhooks; None if the field is empty."""
        field = self.fields["webhook_auth_header_value"]
        assert isinstance(field, SecretField)
        return field.secret

    def fill(self, options: Mapping[str, Any]) -> None:
        """Set every field that a preset can hold; options that are not given get their defaults."""
        for name, field in self.fields.items():
            if name not in NOT_SAVED:
                field.value = format_input(name, options.get(name))


def _input_widget(field: Field, layout: Any) -> ipywidgets.Widget:
    kind = kind_of(field)
    common = {"description": LABELS[field.name], "tooltip": _help(field), "style": _WIDE, "layout": layout}
    if kind == "flag":
        return ipywidgets.Checkbox(value=field.default, indent=True, **common)
    if kind == "choice":
        default = f"default{f' ({field.default})' if field.default else ''}"
        return ipywidgets.Dropdown(options=[(default, ""), *((c, c) for c in field.choices)], value="", **common)
    if kind == "choices":
        return ipywidgets.SelectMultiple(options=field.choices, rows=6, **common)
    if kind == "list":
        return ipywidgets.Textarea(rows=3, **common)
    if kind == "secret":
        widget = SecretField(LABELS[field.name], help=_help(field))
        widget.add_class("vf-option")
        return widget
    default = f"default: {field.default}" if field.default not in (None, "") else ""
    return ipywidgets.Text(placeholder=default, **common)


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
