"""SubmitForm: a form to plan, send and follow transcription jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import ipywidgets
import pandas as pd
import traitlets

from voxframe._text import PLAIN, clock, masked
from voxframe.client import Client, connect
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address, is_remote
from voxframe.corpus.batch.media import expand, signature
from voxframe.corpus.batch.plan import TO_SEND, Plan
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.job import PENDING
from voxframe.corpus.services import check_client
from voxframe.errors import AudioError, AudioNotFoundError, OptionError, ServiceError, SettingsError
from voxframe.options import check
from voxframe.settings import resolve
from voxframe.widgets.base import (
    Background,
    RepeatedCall,
    absolute_path,
    connect_call,
    corpus_call,
    escaped,
    plain_html,
    with_static_html,
)
from voxframe.widgets.option_fields import OptionFields, Presets, SecretField
from voxframe.widgets.submit_parts import MAX_ROWS, FileDrop, JobTable, damage

#: Recordings submitted per call: up to this many are still sent after "Stop sending".
_BATCH_SIZE = 4
#: Seconds between two polls of a remote service, and between two updates of the table.
_POLL_S, _DRAW_S = 2.0, 0.5


class SubmitForm(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
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
        inputs: Field for paths and URLs.
        fields: Fields of the options by name.

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

    error = traitlets.Unicode("")

    def __init__(
        self, corpus: Corpus | None = None, client: Client | None = None, *, presets: str | Path | None = None
    ) -> None:
        self._corpus = chosen_corpus(corpus)
        check_client(client)
        self._client = client
        self._presets = Presets(presets)
        self._plan: Plan | None = None
        self._changes = 0  # number of changes of the fields
        self._shares: dict[str, float] = {}
        self._stop = threading.Event()
        self._background = Background(self, self._show_busy)
        wide = ipywidgets.Layout(width="auto")
        self.drop = FileDrop(self._corpus.path / "dropped")
        self.inputs = ipywidgets.Textarea(
            placeholder="or paths, folders, patterns (calls/**/*.mp3) and URLs (https://...), one per line",
            description="Recordings", rows=3, layout=wide, style=_LABELLED,
        )  # fmt: skip
        self._options = OptionFields(self._discard_plan)
        self.fields = self._options.fields
        self._service_url = ipywidgets.Text(
            description="Service",
            placeholder=resolve().base_url or "the embedded server on this machine",
            layout=wide,
            style=_LABELLED,
        )
        self._key = SecretField("API key")
        self._choice = ipywidgets.Dropdown(description="Preset", style=_LABELLED, options=[("Select a preset", "")])
        self._name = ipywidgets.Text(
            description="Name", placeholder="Preset name", layout=ipywidgets.Layout(width="230px"),
            style={"description_width": "60px"},
        )  # fmt: skip
        self._name.description_allow_html = False
        save, remove = (
            ipywidgets.Button(description=text, layout=_NARROW) for text in ("Save preset", "Delete preset")
        )
        self._plan_button = ipywidgets.Button(description="Plan", button_style="primary", layout=_NARROW)
        self._send_button = ipywidgets.Button(description="Send", disabled=True, layout=_NARROW)
        self._stop_button = ipywidgets.Button(
            description="Stop sending", tooltip=f"Up to {_BATCH_SIZE} recordings in progress are still sent",
            disabled=True, layout=_NARROW,
        )  # fmt: skip
        self._planned, self._pane = ipywidgets.HTML(), ipywidgets.HTML()
        self.table = JobTable(self._act)
        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        service = [] if client is not None else [self._service_url, self._key]
        super().__init__([
            self.drop, self.inputs, *service,
            ipywidgets.Box([self._choice, self._name, save, remove], layout=row),
            self._options,
            ipywidgets.Box([self._plan_button, self._send_button, self._stop_button], layout=row),
            self._planned, self._pane, self.table,
        ])  # fmt: skip
        self.add_class("vf-submit-form")
        changes = ((self.drop, "names"), (self.inputs, "value"), (self._service_url, "value"), (self._key, "given"))
        for field, trait in changes:
            field.observe(lambda _: self._discard_plan(), trait)
        self._plan_button.on_click(lambda _: self.plan())
        self._send_button.on_click(lambda _: self.send())
        self._stop_button.on_click(lambda _: self._stop.set())
        save.on_click(lambda _: self._background.run_now(lambda: self.save_preset(self._name.value)))
        remove.on_click(lambda _: self._background.run_now(self._remove_preset))
        self._choice.observe(self._chosen, "value")
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
        return [*map(str, self.drop.paths), *filter(None, lines)]

    @property
    def options(self) -> dict[str, Any]:
        """The checked options of the jobs, without the secret one.

        Raises:
            OptionError: Options are invalid; the message lists all of them.
        """
        return {name: value for name, value in self._options.options.items() if name != _SECRET}

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
        if self._options.secret is not None:
            lines.insert(1, "from getpass import getpass")
            options.append(f'{_SECRET}=getpass("{_SECRET}: ")')
        if sources or options:
            typed = self._service_url.value.strip()
            lines.append(f"client = voxframe.connect({typed!r})" if typed else f"client = {connect_call(self._client)}")
            lines += [f"sources = {sources!r}", f"options = dict({', '.join(options)})"]
            lines += ["print(corpus.plan(sources, client=client, **options))"]
            lines += ["corpus.submit(sources, client=client, **options)", "corpus.sync(client=client, wait=True)"]
        return "\n".join([*lines, "result = corpus.jobs()", "result"])

    def static_html(self) -> str:
        """Return the jobs as HTML without scripts."""
        folder = escaped(Path(str(self._corpus.path)).name)
        return plain_html(f"<p><strong>Transcribe</strong> into the corpus {folder}</p>{self.table._static_html()}")

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return with_static_html(super()._repr_mimebundle_(**kwargs), repr(self), self.static_html())

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
        self._choice.value = name.strip()

    def load_preset(self, name: str) -> None:
        """Set the options to those of a preset.

        Raises:
            OptionError: There is no such preset, or its options are invalid, for example from another version.
            CorpusError: The presets cannot be read.
        """
        preset = self._presets.get(name)
        self._name.value = name
        try:
            check(**preset)
        except OptionError as e:
            raise OptionError(f"cannot use the preset {name!r}: {e}\nDelete it or save it again") from None
        self._options.fill(preset)

    def close(self) -> None:
        """Close the form; jobs at the service continue."""
        if "_background" in self.__dict__:  # __init__ may have failed
            self._stop.set()
            self._background.close()
            self.drop.close()
        super().close()

    def _chosen(self, change: Any) -> None:
        if change["new"]:
            self._background.run_now(lambda: self.load_preset(change["new"]))

    def _remove_preset(self) -> None:
        self._presets.remove(self._name.value.strip())
        self._list_presets()

    def _list_presets(self) -> None:
        self._choice.options = [("Select a preset", ""), *((name, name) for name in self._presets.all())]

    def _discard_plan(self) -> None:
        """Discard the plan, because the inputs have changed."""
        self._changes += 1
        if self._plan is not None:
            self._plan = None
            self._planned.value = ""
        self._send_button.disabled, self._send_button.description = True, "Send"

    # Background tasks

    def _make_plan(self) -> None:
        self._plan, self._send_button.disabled, self._planned.value = None, True, ""
        if not self.sources:
            raise OptionError("there are no recordings yet; drop files, or enter paths or URLs")
        changes = self._changes
        sources, missing = _existing(self.sources)
        if not sources:
            raise AudioNotFoundError("\n".join(missing.values()))
        self._plan = plan = self._corpus.plan(sources, client=self._service(), progress=False, **self.options)
        if changes != self._changes:  # it would be sent with options that were not planned
            self._plan = None
            raise OptionError("the form was changed while the recordings were read; press Plan again")
        self._planned.value = _plan_table(plan, missing)
        self._send_button.description = f"Send {plan.to_send}" if plan.to_send else "Nothing to send"
        self._send_button.disabled = not plan.to_send

    def _send_planned(self) -> None:
        if self._plan is None:
            raise OptionError("there is no plan to send; press Plan first")
        sources = [step.source for step in self._plan.steps if step.verdict in TO_SEND]
        options, client = self._options.options, self._service()
        self._discard_plan()
        self._stop_button.disabled = False
        try:
            with RepeatedCall(self._draw, _DRAW_S):
                for n in range(0, len(sources), _BATCH_SIZE):
                    if self._stop.is_set():
                        self._show_plan(
                            f"Stopped: {len(sources) - n} of {len(sources)} were not sent. Press Plan to continue."
                        )
                        break
                    self.table.busy = f"sending {n + 1} of {len(sources)}"
                    self._corpus.submit(sources[n : n + _BATCH_SIZE], client=client, progress=False, **options)
        finally:
            self._stop_button.disabled = True
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
        with RepeatedCall(self._draw, _DRAW_S):
            self._corpus.retry(failed=not lost, uncertain=lost, keys=keys, client=self._service(), progress=False)

    def _show_busy(self, what: str) -> None:
        self.table.busy = what
        self._draw()

    def _show_plan(self, text: str) -> None:
        self._planned.value = f'<pre style="white-space:pre-wrap;margin:4px 8px">{escaped(text)}</pre>'

    def _draw(self) -> None:
        self.table.show(self._corpus.parts.ledger.jobs(), self._shares)

    def _service(self) -> Client:
        """Return the given client, or one for the URL and key in the form, or the default one."""
        if self._client is not None:
            return self._client
        address, key = self._service_url.value.strip() or None, self._key.secret
        settings = resolve(address, api_key=key)
        if settings.base_url is not None and settings.api_key is None:
            raise SettingsError(f"there is no API key for {settings.base_url}; enter it in the field 'API key'")
        return connect(address, api_key=key)

    @traitlets.observe("error")
    def _show_pane(self, change: Any) -> None:
        text = escaped(change["new"])
        self._pane.value = f'<div role="alert" {PLAIN} style="{_ALERT}">{text}</div>' if text else ""


#: What happens to a recording, by its verdict.
_VERDICTS = {
    "new": "will be sent",
    "new_options": "will be sent again, with other options (a new job)",
    "pending": "will be sent (planned before)",
    "known": "not sent again: it was sent with these options",
    "failed": "failed before: press Retry below",
    "uncertain": "may have been sent: see below",
}


def _existing(sources: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the sources that exist, and the messages of the others by source."""
    existing, missing = list[str](), dict[str, str]()
    for source in sources:
        try:
            for recording in expand(source):
                if not is_address(recording.source) and not is_remote(recording.source):
                    signature(recording.source)
            existing.append(source)
        except AudioError as e:
            missing[source] = str(e)
    return existing, missing


def _plan_table(plan: Plan, missing: Mapping[str, str]) -> str:
    """Return a plan as HTML: a summary, and a row per recording."""
    rows = [(source, "left out", "", message) for source, message in missing.items()]
    for step in plan.steps:
        seconds = step.job.audio_duration_s
        length = "" if seconds is None else clock(seconds)
        problem = (step.job.error or "") if step.verdict == "unreadable" else ""
        if step.verdict in TO_SEND and seconds is None:
            problem = damage(step.source)
        rows.append((masked(step.source), _VERDICTS.get(step.verdict, "left out"), length, problem))
    more = f"<p>and {len(rows) - MAX_ROWS:,} more</p>" if len(rows) > MAX_ROWS else ""
    body = "".join(
        f'<tr><td {_CELL} title="{escaped(source)}">{escaped(Path(source).name or source)}</td>'
        f"<td {_CELL}>{escaped(verdict)}{f'<br><span style={_BAD!r}>{escaped(why)}</span>' if why else ''}</td>"
        f"<td {_CELL}>{length}</td></tr>"
        for source, verdict, length, why in rows[:MAX_ROWS]
    )
    head = "".join(f'<th scope="col" {_CELL}>{name}</th>' for name in ("Recording", "What happens", "Length"))
    summary = escaped(repr(plan).partition("\n")[0])
    return f'<div {PLAIN} style="margin:4px 8px"><p>{summary}</p><table><tr>{head}</tr>{body}</table>{more}</div>'


_BAD = "color:light-dark(#a51d2d,#ff9aa2)"
_CELL = 'style="text-align:start;vertical-align:top;padding:1px 12px 1px 0;overflow-wrap:anywhere"'
_SECRET = "webhook_auth_header_value"  # noqa: S105  a name
_NARROW = ipywidgets.Layout(width="auto")
_LABELLED = {"description_width": "90px"}
_ALERT = (
    "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4;padding:8px 10px;margin:4px 8px;border-radius:4px;"
    "color:light-dark(#a51d2d,#ff9aa2);border-inline-start:3px solid light-dark(#a51d2d,#ff9aa2)"
)
