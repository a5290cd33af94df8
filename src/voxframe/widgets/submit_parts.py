"""Parts of the submit form: fields and presets of options, uploads, and the rows of recordings and jobs."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from voxframe import settings
from voxframe._files import write_atomic
from voxframe._text import clock, masked
from voxframe.corpus.batch.submit import TO_SEND, Plan
from voxframe.corpus.job import LOST, PENDING, Job, is_address, is_remote
from voxframe.corpus.media import duration_s, expand, has_sound, signature
from voxframe.errors import AudioError, CorpusError, OptionError
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
    """A field of the form, whose input is in the trait `_values` of the widget."""

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
    """Presets in a JSON file, by default `presets.json` in the data directory."""

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


#: Maximum number of rows of a table; unfinished and recent jobs come first.
MAX_ROWS = 100


class Uploads:
    """Files from the browser's machine, received in chunks.

    Args:
        folder: Folder for the files; created with the first file.
        send: Sends a message to the browser.

    Attributes:
        names: Names in the browser by path, in order.
    """

    def __init__(self, folder: Path, send: Callable[[dict[str, Any]], None]) -> None:
        self._folder, self._send = folder, send
        self._open: dict[str, tuple[IO[bytes], Path, str, int]] = {}
        self.names: dict[str, str] = {}

    def receive(self, message: Mapping[str, Any], buffers: Sequence[Any]) -> bool:
        """Handle a message of the browser. Return True if the files have changed."""
        do, key, count = message["do"], str(message.get("key")), len(self.names)
        try:
            if do == "begin":
                self._start(key, str(message["name"]), int(message["size"]))
            elif do == "chunk" and key in self._open:
                self._receive_chunk(key, int(message["at"]), bytes(buffers[0]))
            elif do == "discard":
                self._discard(key)
            elif do == "remove":  # it stays on disk, because a job may need it
                self.names.pop(str(message["source"]), None)
        except OSError as e:
            self._discard(key)
            self._send({"do": "failed", "key": key})
            raise AudioError(f"cannot save the file in {str(self._folder)!r}: {e.strerror or e}") from None
        return len(self.names) != count

    def close(self) -> None:
        """Discard incomplete files."""
        for key in list(self._open):
            self._discard(key)

    def _start(self, key: str, name: str, size: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = _unused_path(self._folder, safe_name(name))
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        self._open[key] = (part.open("wb"), path, name, size)
        self._request_next(key, 0)

    def _receive_chunk(self, key: str, at: int, data: bytes) -> None:
        file, *_ = self._open[key]
        if file.tell() == at:  # otherwise it is a duplicate
            file.write(data)
        self._request_next(key, file.tell())

    def _request_next(self, key: str, at: int) -> None:
        """Request the next chunk, or finish the file."""
        file, path, name, size = self._open[key]
        if at < size:
            self._send({"do": "next", "key": key, "at": at})
            return
        file.close()
        del self._open[key]
        path = _unused_path(self._folder, path.name)  # another upload may have taken the name meanwhile
        Path(file.name).replace(path)
        self.names[str(path)] = name
        self._send({"do": "done", "key": key})

    def _discard(self, key: str) -> None:
        """Discard an incomplete file."""
        if upload := self._open.pop(key, None):
            upload[0].close()
            Path(upload[0].name).unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return the file name from a browser without path separators, leading dots and device names.

    Example:
        >>> safe_name("../../x/Ärger: 1?.mp3"), safe_name(".profile"), safe_name("con.mp3")
        ('Ärger_ 1_.mp3', 'profile', '_con.mp3')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r'[\x00-\x1f\x7f<>:"|?*]', "_", last).strip(" .") or "recording"
    stem, extension = os.path.splitext(plain)  # noqa: PTH122  not a path yet
    if re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", stem, re.IGNORECASE):
        stem = f"_{stem}"
    return stem.encode("utf-8", "replace")[:150].decode("utf-8", "ignore") + extension[:20]


def _unused_path(folder: Path, name: str) -> Path:
    """Return a path in the folder that does not exist yet."""
    path, n = folder / name, 1
    while path.exists():
        n += 1
        path = folder / f"{Path(name).stem} ({n}){Path(name).suffix}"
    return path


#: What happens to a recording, by its verdict.
_VERDICTS = {
    "new": "will be sent",
    "new_options": "will be sent again, with other options (a new job)",
    "pending": "will be sent (planned before)",
    "known": "not sent again: it was sent with these options",
    "failed": "failed before: press Retry below",
    "uncertain": "may have been sent: see below",
}


def recording_row(source: str, plan: str = "", length_s: float | None = None, problem: str = "") -> dict[str, Any]:
    """Return the browser's row of a recording; `plan` says what happens to it, and is empty before a plan."""
    source = masked(source)
    length = "" if length_s is None else clock(length_s)
    return {"source": source, "name": Path(source).name or source, "plan": plan, "length": length, "problem": problem}


def existing(sources: Sequence[str]) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """Return the sources that exist, their recordings, and the rows of the other sources."""
    usable, recordings, missing = list[str](), list[str](), list[dict[str, Any]]()
    for source in sources:
        try:
            expanded = [recording.source for recording in expand(source)]
            for recording in expanded:
                if not is_address(recording) and not is_remote(recording):
                    signature(recording)
        except AudioError as e:
            missing.append(recording_row(source, "left out", problem=str(e)))
        else:
            usable.append(source)
            recordings += expanded
    return usable, recordings, missing


def probed_row(source: str) -> dict[str, Any]:
    """Return the row of a recording that was chosen, with its length or the reason why it is probably none."""
    problem = _damage(source)
    return recording_row(
        source, length_s=None if problem or is_address(source) else duration_s(source), problem=problem
    )


def plan_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return a row per recording of a plan; a file without sound is named."""
    rows = []
    for step in plan.steps:
        problem = (step.job.error or "") if step.verdict == "unreadable" else ""
        if step.verdict in TO_SEND and step.job.audio_duration_s is None:
            problem = _damage(step.source)
        verdict = _VERDICTS.get(step.verdict, "left out")
        rows.append(recording_row(step.source, verdict, step.job.audio_duration_s, problem))
    return rows


def _damage(source: str) -> str:
    """Return why a local file is probably no recording; empty if it looks like one, or if PyAV is not installed."""
    if is_address(source) or is_remote(source):
        return ""
    if find_spec("av") is None or has_sound(source):
        return ""
    return "no sound was found in it; it may be damaged"


_STATE_TEXTS = {
    "planned": "waiting to be sent",
    "uploading": "uploading",
    "submitting": "sending",
    "submitted": "transcribing",
    "completed": "done",
    "error": "failed",
    "uncertain": "uncertain",
}
_FINISHED = ("completed", "error", "uncertain")


def job_rows(jobs: Sequence[Job], progress: Mapping[str, float]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the rows of jobs, with progress (0 to 1) by transcript id, and the number of jobs by state."""
    order = sorted(jobs, key=lambda job: job.updated.timestamp() if job.updated else 0.0, reverse=True)
    order.sort(key=lambda job: job.state in _FINISHED)
    counts = {state: sum(job.state == state for job in jobs) for state in _STATE_TEXTS}
    counts |= {"all": len(jobs), "finished": sum(counts[state] for state in _FINISHED)}
    return [_job_row(job, progress.get(job.transcript_id or "")) for job in order[:MAX_ROWS]], counts


def _job_row(job: Job, progress: float | None) -> dict[str, Any]:
    """Return the browser's row of a submission."""
    state = job.state
    source = masked(job.source)
    progress = progress if state == "submitted" else None
    since = job.sent or job.created
    return {
        "key": job.key,
        "name": job.recording or source,
        "source": source,
        "state": state,
        "state_text": "queued at the service" if progress == 0 else _STATE_TEXTS[state],
        "progress": progress or 0.0,
        "length": "" if job.audio_duration_s is None else clock(job.audio_duration_s),
        "error": masked(job.error or ""),
        # Unix time in ms: the browser updates the elapsed time without messages.
        "since": None if since is None else round(since.timestamp() * 1000),
        "cancel": state in PENDING or (state == "submitted" and job.transcript_id is not None),
        "retry": state == "error" or state in LOST,
    }
