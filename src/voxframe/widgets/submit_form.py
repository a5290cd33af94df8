"""SubmitForm: a form to plan, send and follow transcription jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import traitlets

from voxframe.client import Client, connect
from voxframe.corpus import Corpus
from voxframe.corpus.batch.submit import TO_SEND, Plan
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.job import PENDING
from voxframe.corpus.ledger import check_client
from voxframe.errors import AudioNotFoundError, OptionError, ServiceError, SettingsError
from voxframe.options import FIELDS, check
from voxframe.settings import Secret, resolve
from voxframe.widgets.base import (
    Background,
    ScriptedWidget,
    absolute_path,
    connect_call,
    corpus_call,
    escaped,
    show_errors,
)
from voxframe.widgets.submit_parts import (
    MAX_ROWS,
    NOT_SAVED,
    FormField,
    Presets,
    Uploads,
    existing,
    format_input,
    groups,
    job_rows,
    parse_form,
    plan_rows,
    probed_row,
)

#: Recordings submitted per call: up to this many are still sent after "Stop sending".
_BATCH_SIZE = 4
#: Seconds between two polls of a remote service, and between two updates of the table.
_POLL_S, _DRAW_S = 2.0, 0.5
_SECRET = "webhook_auth_header_value"  # noqa: S105  a name


class SubmitForm(ScriptedWidget):
    """A form to transcribe recordings: add files or URLs, set options, check the plan, send, and follow the jobs.

    Nothing is sent before the plan was shown, and no recording is sent twice. Jobs run in the background: the kernel
    stays free, and a new form finds the jobs in the corpus. API keys are never stored in the notebook, in presets or in
    `.code`.

    Args:
        corpus: Corpus for the transcripts. None (default): the default corpus.
        client: Client of the service. None (default): the form has fields for URL and key; if they are empty, it uses
            `voxframe.connect()`.
        presets: File for presets. None (default): `presets.json` in voxframe's data directory.

    Attributes:
        error (str): Error message shown in the error pane.
        inputs: Field for paths and URLs; its `value` can be set.
        fields: Fields of the options by name; their `value` can be set.

    Raises:
        OptionError: An argument has the wrong type.

    Example:
        >>> import tempfile, voxframe
        >>> form = SubmitForm(voxframe.Corpus(tempfile.mkdtemp()))
        >>> form.inputs.value = "https://example.org/talk.mp3"
        >>> form.fields["speaker_labels"].value = True
        >>> form.sources, form.options
        (['https://example.org/talk.mp3'], {'speaker_labels': True})
    """

    scripts = ("submit_form",)
    styles = ("fields", "submit_form")

    busy = traitlets.Unicode("").tag(sync=True)
    # Inputs by the name of their field, without the secret ones.
    _values = traitlets.Dict().tag(sync=True)
    _secrets_set: Any = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _groups: Any = traitlets.List().tag(sync=True)
    # The service if the fields are empty; empty itself if a client was given.
    _default_service = traitlets.Unicode("").tag(sync=True)
    _preset_names: Any = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _preset = traitlets.Unicode("").tag(sync=True)
    _recordings: Any = traitlets.List().tag(sync=True)
    _summary = traitlets.Unicode("").tag(sync=True)
    # Number of recordings to send; None before a plan.
    _to_send = traitlets.Int(None, allow_none=True).tag(sync=True)
    _sending = traitlets.Bool(False).tag(sync=True)
    _jobs: Any = traitlets.List().tag(sync=True)
    _counts = traitlets.Dict().tag(sync=True)

    def __init__(
        self, corpus: Corpus | None = None, client: Client | None = None, *, presets: str | Path | None = None
    ) -> None:
        self._corpus = chosen_corpus(corpus)
        check_client(client)
        self._client = client
        self._presets = Presets(presets)
        self._plan: Plan | None = None
        self._changes = 0  # number of changes of the fields
        self._secrets: dict[str, Secret] = {}
        self._shares: dict[str, float] = {}
        self._stop = threading.Event()
        self._background = Background(self, self._show_busy)
        self._uploads = Uploads(self._corpus.path / "dropped", super().send)
        self.inputs = FormField(self, "recordings")
        self.fields = {name: FormField(self, name) for name, field in FIELDS.items() if field.group and name != _SECRET}
        service = "" if client is not None else resolve().base_url or "the embedded server on this machine"
        super().__init__(title="Transcribe", _groups=groups(), _default_service=service)
        self._background.run_now(self._list_presets)
        self._draw()
        if any(job.state == "submitted" for job in self._corpus.parts.ledger.jobs()):
            self._background.submit("fetching", self._follow, keep_error=True)

    def __repr__(self) -> str:
        return f"SubmitForm({self._corpus!r})"

    @property
    def sources(self) -> list[str]:
        """Recordings: uploaded files, then the lines of the field."""
        lines = (line.strip() for line in self.inputs.value.splitlines())
        return [*self._uploads.names, *filter(None, lines)]

    @property
    def options(self) -> dict[str, Any]:
        """The checked options of the jobs, without the secret one.

        Raises:
            OptionError: Options are invalid; the message lists all of them.
        """
        return {name: value for name, value in self._all_options().items() if name != _SECRET}

    @property
    def result(self) -> pd.DataFrame:
        """The jobs of the corpus: see `Corpus.jobs`."""
        return self._corpus.jobs()

    @property
    def code(self) -> str:
        """Python code that sends the same recordings and waits for them; a secret is prompted for."""
        lines = ["import voxframe", "", f"corpus = {corpus_call(self._corpus)}"]
        sources = [absolute_path(source) for source in self.sources]
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        if _SECRET in self._secrets:
            lines.insert(1, "from getpass import getpass")
            options.append(f'{_SECRET}=getpass("{_SECRET}: ")')
        if sources or options:
            typed = self._typed_service()
            lines.append(f"client = voxframe.connect({typed!r})" if typed else f"client = {connect_call(self._client)}")
            lines += [f"sources = {sources!r}", f"options = dict({', '.join(options)})"]
            lines += ["print(corpus.plan(sources, client=client, **options))"]
            lines += ["corpus.submit(sources, client=client, **options)", "corpus.sync(client=client, wait=True)"]
        return "\n".join([*lines, "result = corpus.jobs()", "result"])

    def _static_html(self) -> str:
        """Return the jobs."""
        cell = 'style="text-align:left;padding:1px 8px"'
        head = "".join(f"<th {cell}>{name}</th>" for name in ("Recording", "State", "Length"))
        rows = "".join(
            f"<tr><td {cell}>{escaped(row['name'])}</td><td {cell}>{escaped(row['state_text'])}</td>"
            f"<td {cell}>{row['length']}</td></tr>"
            for row in self._jobs
        )
        folder = escaped(Path(str(self._corpus.path)).name)
        table = f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>No jobs.</p>"
        return f"<p><strong>Transcribe</strong> into the corpus {folder}</p>{table}"

    def plan(self) -> None:
        """Plan in the background which recordings to send, and show the plan. After that they can be sent."""
        self._background.submit("reading recordings", self._make_plan)

    def send(self) -> None:
        """Send the planned recordings and fetch their transcripts, in the background."""
        self._stop.clear()
        self._background.submit("sending", self._send_planned)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the background tasks are done; after `timeout` seconds, raise a TimeoutError."""
        self._background.wait(timeout)

    def save_preset(self, name: str) -> None:
        """Save the options under a name, without those of webhooks.

        Raises:
            OptionError: The name is empty, or an option is invalid.
            CorpusError: The presets cannot be written.
        """
        self._presets.save(name, self.options)
        self._list_presets()
        self._preset = name.strip()

    def load_preset(self, name: str) -> None:
        """Set the options to those of a preset.

        Raises:
            OptionError: There is no such preset, or its options are invalid, for example from another version.
            CorpusError: The presets cannot be read.
        """
        preset = self._presets.get(name)
        self._preset = name
        try:
            check(**preset)
        except OptionError as e:
            raise OptionError(f"cannot use the preset {name!r}: {e}\nDelete it or save it again") from None
        self._values = self._values | {
            option: format_input(option, preset.get(option)) for option in self.fields if option not in NOT_SAVED
        }

    def close(self) -> None:
        """Close the form; jobs at the service continue."""
        if "_background" in self.__dict__:  # __init__ may have failed
            self._stop.set()
            self._background.close()
            self._uploads.close()
        super().close()

    def _remove_preset(self, name: str) -> None:
        self._presets.remove(name.strip())
        self._list_presets()

    def _list_presets(self) -> None:
        self._preset_names = list(self._presets.all())
        if self._preset not in self._preset_names:
            self._preset = ""

    def _all_options(self) -> dict[str, Any]:
        """Return the checked options, including the secret one."""
        inputs = {name: field.value for name, field in self.fields.items()}
        if (secret := self._secrets.get(_SECRET)) is not None:
            inputs[_SECRET] = secret.reveal()
        return parse_form(inputs)

    def _typed_service(self) -> str:
        return str(self._values.get("service", "")).strip()

    # Messages of the browser

    def _on_browser_message(self, message: dict[str, Any], buffers: list[Any]) -> None:
        do = message.get("do")
        if isinstance(values := message.get("values"), dict):  # traits may arrive after the message
            self._values = values
        name = str(message.get("name", ""))
        match do:
            case "plan":
                self.plan()
            case "send":
                self.send()
            case "stop":
                self._stop.set()
            case "look":
                self._look_later()
            case "secret":
                self._keep_secret(name, message.get("text"))
            case "save preset":
                self._background.run_now(lambda: self.save_preset(name))
            case "load preset":
                self._background.run_now(lambda: self.load_preset(name))
            case "delete preset":
                self._background.run_now(lambda: self._remove_preset(name))
            case "cancel" | "retry" | "retry all":
                self._act(do, str(message.get("key", "")))
            case "begin" | "chunk" | "discard" | "remove":
                with show_errors(self):
                    if self._uploads.receive(message, buffers):
                        self._discard_plan()
                        self._look_later()

    def _keep_secret(self, name: str, text: Any) -> None:
        """Keep the text of a password field outside of all traits."""
        self._secrets.pop(name, None)
        with show_errors(self):
            if isinstance(text, str) and text.strip():
                self._secrets[name] = Secret(text)
        self._secrets_set = list(self._secrets)
        self._discard_plan()

    @traitlets.observe("_values")
    def _discard_plan(self, _: Any = None) -> None:
        """Discard the plan, because the inputs have changed."""
        self._changes += 1
        if self._plan is not None:
            self._recordings = [row | {"plan": ""} for row in self._recordings]
        self._plan, self._to_send, self._summary = None, None, ""

    # Background tasks

    def _look_later(self) -> None:
        self._background.submit("reading recordings", self._look)

    def _look(self) -> None:
        """Show the recordings that were chosen, with their lengths and problems, unless a plan shows them."""
        _, recordings, missing = existing(self.sources)
        if self._plan is None:
            self._show_recordings([*missing, *map(probed_row, recordings[:MAX_ROWS])], len(missing) + len(recordings))

    def _show_recordings(self, rows: list[dict[str, Any]], count: int) -> None:
        """Show rows of recordings, those with problems first if there are too many."""
        if count > MAX_ROWS:
            rows = sorted(rows, key=lambda row: not row["problem"])[:MAX_ROWS]
            self._summary = "\n".join(filter(None, [self._summary, f"{MAX_ROWS} of {count:,} recordings are shown."]))
        names = self._uploads.names
        self._recordings = [
            row | {"name": names.get(row["source"], row["name"]), "upload": row["source"] in names} for row in rows
        ]

    def _make_plan(self) -> None:
        self._discard_plan()
        if not self.sources:
            raise OptionError("there are no recordings yet; drop files, or enter paths or URLs")
        changes = self._changes
        sources, _, missing = existing(self.sources)
        if not sources:
            self._show_recordings(missing, len(missing))
            raise AudioNotFoundError("\n".join(row["problem"] for row in missing))
        plan = self._corpus.plan(sources, client=self._service(), progress=False, **self.options)
        if changes != self._changes:  # it would be sent with options that were not planned
            raise OptionError("the form was changed while the recordings were read; press Plan again")
        self._plan, self._to_send, self._summary = plan, plan.to_send, repr(plan).partition("\n")[0]
        rows = [*missing, *plan_rows(plan)]
        self._show_recordings(rows, len(rows))

    def _send_planned(self) -> None:
        if self._plan is None:
            raise OptionError("there is no plan to send; press Plan first")
        sources = [step.source for step in self._plan.steps if step.verdict in TO_SEND]
        options, client = self._all_options(), self._service()
        self._discard_plan()
        self._sending, self._recordings = True, []
        try:
            with _repeated(self._draw, _DRAW_S):
                for n in range(0, len(sources), _BATCH_SIZE):
                    if self._stop.is_set():
                        left = f"{len(sources) - n} of {len(sources)} were not sent"
                        self._summary = f"Stopped: {left}. Press Plan to continue."
                        break
                    self.busy = f"sending {n + 1} of {len(sources)}"
                    self._corpus.submit(sources[n : n + _BATCH_SIZE], client=client, progress=False, **options)
        finally:
            self._sending = False
            self._background.submit("fetching", self._follow, keep_error=True)  # also of jobs sent before an error

    def _follow(self) -> None:
        client = self._service()
        while self._corpus.sync(client=client, progress=False).waiting and self.comm is not None:
            with suppress(ServiceError):  # progress is optional
                self._shares = client.progress()
            self._draw()
            if self._background.waiting:  # let the other task run first
                self._background.submit("fetching", self._follow, keep_error=True)
                return
            time.sleep(_DRAW_S if client.is_local else _POLL_S)

    def _act(self, what: str, key: str) -> None:
        """Handle a button of the table."""
        if what == "cancel":
            self._background.submit("cancelling", lambda: self._cancel(key))
        else:
            self._background.submit("retrying", lambda: self._retry(None if what == "retry all" else [key]))
            self._background.submit("fetching", self._follow, keep_error=True)

    def _cancel(self, key: str) -> None:
        job = self._corpus.parts.ledger.find(key)
        if job is not None and job.state in PENDING:
            self._corpus.parts.ledger.drop_pending(key)
        elif job is not None and job.state == "submitted" and job.transcript_id is not None:
            self._corpus.forget(job.transcript_id, remote=True, client=self._service())

    def _retry(self, keys: list[str] | None) -> None:
        job = self._corpus.parts.ledger.find(keys[0]) if keys else None
        lost = job is not None and job.state != "error"
        with _repeated(self._draw, _DRAW_S):
            self._corpus.retry(failed=not lost, uncertain=lost, keys=keys, client=self._service(), progress=False)

    def _show_busy(self, what: str) -> None:
        self.busy = what
        self._draw()

    def _draw(self) -> None:
        self._jobs, self._counts = job_rows(self._corpus.parts.ledger.jobs(), self._shares)

    def _service(self) -> Client:
        """Return the given client, or one for the URL and key in the form, or the default one."""
        if self._client is not None:
            return self._client
        address, key = self._typed_service() or None, self._secrets.get("api_key")
        settings = resolve(address, api_key=key)
        if settings.base_url is not None and settings.api_key is None:
            raise SettingsError(f"there is no API key for {settings.base_url}; enter it in the field 'API key'")
        return connect(address, api_key=key)


@contextmanager
def _repeated(function: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call a function every `every_s` seconds, from a thread, while the block runs."""
    stopped = threading.Event()

    def repeat() -> None:
        while not stopped.wait(every_s):
            function()

    thread = threading.Thread(target=repeat, name="voxframe-tick", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
