"""SubmitForm: recordings and options in a form, a plan before anything is sent, and the jobs as they go on."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import ipywidgets
import pandas as pd
import traitlets

from voxframe.corpus import Corpus
from voxframe.corpus.ledger import UNSENT
from voxframe.corpus.plan import TO_SEND, Plan
from voxframe.errors import OptionError, ServiceError, SettingsError
from voxframe.html_table import PLAIN
from voxframe.options import check
from voxframe.service import Client, connect
from voxframe.settings import resolve
from voxframe.widgets.background import Background, Ticking
from voxframe.widgets.base import Described, escaped
from voxframe.widgets.connecting import connect_call
from voxframe.widgets.file_drop import FileDrop
from voxframe.widgets.job_table import JobTable
from voxframe.widgets.option_fields import OptionFields
from voxframe.widgets.presets import Presets
from voxframe.widgets.secret_field import SecretField

#: Recordings handed over at once: so many may still be sent after "Stop".
_AT_ONCE = 4
#: Seconds between two looks at the service, and between two drawings of the table.
_LOOK_S, _DRAW_S = 2.0, 0.5


class SubmitForm(Described, ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Have recordings transcribed: drop files or give addresses, choose options, see the plan, send, watch.

    Nothing is sent before the plan was shown, and nothing that was sent before is sent again. Jobs run in the
    background: the kernel stays free, and a form that is closed or run again finds its jobs in the corpus. Keys are
    typed into fields that keep nothing: they are in no saved notebook, preset or `.code`.

    Args:
        corpus: Where transcripts are kept; None is the default corpus.
        client: The service; None is asked for in the form, and is that of `voxframe.connect()` where nothing is given.
        presets: File of presets; None is `presets.json` in voxframe's data directory.

    Attributes:
        error (str): What went wrong, shown in a pane below.

    Example:
        >>> import tempfile, voxframe
        >>> form = SubmitForm(voxframe.Corpus(tempfile.mkdtemp()))
        >>> form.addresses.value = "https://example.org/talk.mp3"
        >>> form.fields["speaker_labels"].value = True
        >>> form.sources, form.options
        (['https://example.org/talk.mp3'], {'speaker_labels': True})
    """

    error = traitlets.Unicode("")

    def __init__(
        self, corpus: Corpus | None = None, client: Client | None = None, *, presets: Path | None = None
    ) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._client = client
        self._presets = Presets(presets)
        self._plan: Plan | None = None
        self._shares: dict[str, float] = {}
        self._stop = threading.Event()
        self._background = Background(self._show_busy, self._show_error)
        wide = ipywidgets.Layout(width="auto")
        self.drop = FileDrop(self._corpus.path / "dropped")
        self.addresses = ipywidgets.Textarea(
            placeholder="or paths, folders, patterns (calls/**/*.mp3) and addresses (https://...), one a line",
            description="Recordings", rows=3, layout=wide, style={"description_width": "90px"},
        )  # fmt: skip
        self._options = OptionFields(self._changed)
        self.fields = self._options.fields
        self._address = ipywidgets.Text(
            description="Service", placeholder=_usual_service(), layout=wide, style={"description_width": "90px"}
        )
        self._key = SecretField("API key")
        self._choice = ipywidgets.Dropdown(
            description="Preset", style={"description_width": "90px"}, options=[("choose one", "")]
        )
        self._name = ipywidgets.Text(
            description="Name", placeholder="name of a preset", layout=ipywidgets.Layout(width="230px"),
            style={"description_width": "60px"},
        )  # fmt: skip
        self._name.description_allow_html = False
        save, remove = (
            ipywidgets.Button(description=text, layout=_NARROW) for text in ("Save preset", "Delete preset")
        )
        self._plan_button = ipywidgets.Button(description="Plan", button_style="primary", layout=_NARROW)
        self._send_button = ipywidgets.Button(description="Send", disabled=True, layout=_NARROW)
        self._stop_button = ipywidgets.Button(
            description="Stop sending", tooltip=f"Those on their way, at most {_AT_ONCE}, still arrive", disabled=True,
            layout=_NARROW,
        )  # fmt: skip
        self._planned, self._pane = ipywidgets.HTML(), ipywidgets.HTML()
        self.table = JobTable(self._act)
        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        service = [] if client is not None else [self._address, self._key]
        super().__init__([
            self.drop, self.addresses, *service,
            ipywidgets.Box([self._choice, self._name, save, remove], layout=row),
            self._options,
            ipywidgets.Box([self._plan_button, self._send_button, self._stop_button], layout=row),
            self._planned, self._pane, self.table,
        ])  # fmt: skip
        self.add_class("vf-submit-form")
        self.drop.observe(lambda _: self._changed(), "names")
        for field in (self.addresses, self._address):
            field.observe(lambda _: self._changed(), "value")
        self._key.observe(lambda _: self._changed(), "given")
        self._plan_button.on_click(lambda _: self.plan())
        self._send_button.on_click(lambda _: self.send())
        self._stop_button.on_click(lambda _: self._stop.set())
        save.on_click(lambda _: self._background.guarded(lambda: self.save_preset(self._name.value)))
        remove.on_click(lambda _: self._background.guarded(self._remove_preset))
        self._choice.observe(self._chosen, "value")
        self._background.guarded(self._list_presets)
        self._draw()
        if any(job.state == "submitted" for job in self._corpus.ledger.jobs()):
            self._background.do("fetching", self._follow, after=True)

    def __repr__(self) -> str:
        return f"SubmitForm({self._corpus!r})"

    @property
    def sources(self) -> list[str]:
        """Recordings as they are given: dropped files, then the lines of the field."""
        lines = (line.strip() for line in self.addresses.value.splitlines())
        return [*map(str, self.drop.paths), *filter(None, lines)]

    @property
    def options(self) -> dict[str, Any]:
        """The options of the jobs, checked; without what is secret.

        Raises:
            OptionError: Something cannot be sent; all of it is named.
        """
        return {name: value for name, value in self._options.options.items() if name != _SECRET}

    @property
    def result(self) -> pd.DataFrame:
        """The jobs of the corpus: see `Corpus.jobs`."""
        return self._corpus.jobs()

    @property
    def code(self) -> str:
        """Lines that send the same; a secret is asked for."""
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        lines = ["import voxframe", "", f"corpus = voxframe.Corpus({str(self._corpus.path)!r})"]
        if self._options.secret is not None:
            lines.insert(1, "from getpass import getpass")
            options.append(f'{_SECRET}=getpass("{_SECRET}: ")')
        typed = self._address.value.strip()
        lines.append(f"client = voxframe.connect({typed!r})" if typed else f"client = {connect_call(self._client)}")
        lines += [f"sources = {self.sources!r}", f"options = dict({', '.join(options)})"]
        lines += ["print(corpus.plan(sources, client=client, **options))"]
        return "\n".join(
            [*lines, "corpus.submit(sources, client=client, **options)", "corpus.sync(wait=True)", "corpus.jobs()"]
        )

    def _still_html(self) -> str:
        """The jobs as they are now."""
        where = escaped(str(self._corpus.path))
        return f"<p><strong>Transcribe</strong> {where}</p>{self.table._still_html()}"

    def plan(self) -> None:
        """Find out, in the background, what would be sent. Shown in the form; then it can be sent."""
        self._background.do("reading recordings", self._make_plan)

    def send(self) -> None:
        """Send, in the background, what the plan says, and fetch what is finished until nothing is left."""
        self._stop.clear()
        self._background.do("sending", self._send_planned)
        self._background.do("fetching", self._follow, after=True)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the background has nothing to do.

        Args:
            timeout: Longest wait in seconds; None for no limit.

        Raises:
            TimeoutError: It has.
        """
        self._background.wait(timeout)

    def save_preset(self, name: str) -> None:
        """Keep the options under a name, without those of webhooks.

        Raises:
            OptionError: The name is empty, or an option is wrong.
            CorpusError: Presets cannot be written.
        """
        self._presets.save(name, self.options)
        self._list_presets()
        self._choice.value = name.strip()

    def load_preset(self, name: str) -> None:
        """Set the options to those of a preset.

        Raises:
            OptionError: There is none of that name, or it cannot be sent: another version wrote it, or a person.
            CorpusError: Presets cannot be read.
        """
        found = self._presets.of(name)
        self._name.value = name
        try:
            check(**found)
        except OptionError as e:
            raise OptionError(f"the preset {name!r} cannot be used: {e}\nDelete it, or save it again") from None
        self._options.fill(found)

    def close(self) -> None:
        """Close the form; what is at the service goes on there."""
        if "_background" in self.__dict__:  # one that was never whole is closed, too, when it goes
            self._stop.set()
            self._background.close()
        super().close()

    def _chosen(self, change: Any) -> None:
        if change["new"]:
            self._background.guarded(lambda: self.load_preset(change["new"]))

    def _remove_preset(self) -> None:
        self._presets.remove(self._name.value.strip())
        self._list_presets()

    def _list_presets(self) -> None:
        self._choice.options = [("choose one", ""), *((name, name) for name in self._presets.all())]

    def _changed(self) -> None:
        """What was planned is not what would be sent now."""
        if self._plan is not None:
            self._plan = None
            self._planned.value = ""
        self._send_button.disabled, self._send_button.description = True, "Send"

    # What happens in the background, one thing after the other

    def _make_plan(self) -> None:
        self._plan, self._send_button.disabled = None, True
        if not self.sources:
            raise OptionError("there is no recording yet; drop files, or give paths or addresses")
        self._plan = plan = self._corpus.plan(self.sources, client=self._service(), progress=False, **self.options)
        self._say(repr(plan))
        self._send_button.description = f"Send {plan.to_send}" if plan.to_send else "Nothing to send"
        self._send_button.disabled = not plan.to_send

    def _send_planned(self) -> None:
        if self._plan is None:
            raise OptionError("nothing is sent without a plan; press Plan first")
        sources = [step.source for step in self._plan.steps if step.verdict in TO_SEND]
        options, client = self._options.options, self._service()
        self._changed()
        self._stop_button.disabled = False
        try:
            with Ticking(self._draw, _DRAW_S):
                for n in range(0, len(sources), _AT_ONCE):
                    if self._stop.is_set():
                        self._say(f"Stopped: {len(sources) - n} of {len(sources)} were not sent. Plan again to go on.")
                        break
                    self.table.busy = f"sending {n + 1} of {len(sources)}"
                    self._corpus.submit(sources[n : n + _AT_ONCE], client=client, progress=False, **options)
        finally:
            self._stop_button.disabled = True

    def _follow(self) -> None:
        client = self._service()
        while self._corpus.sync(client=client, progress=False).waiting and self.comm is not None:
            with suppress(ServiceError):  # nice to know, no more
                self._shares = client.shares_done()
            self._draw()
            if self._background.waiting:  # somebody wants something else first
                self._background.do("fetching", self._follow, after=True)
                return
            time.sleep(_DRAW_S if client._local else _LOOK_S)

    def _act(self, what: str, key: str) -> None:
        """A button of the table."""
        if what == "cancel":
            self._background.do("cancelling", lambda: self._cancel(key))
        else:
            self._background.do("sending again", lambda: self._retry(None if what == "retry all" else [key]))
            self._background.do("fetching", self._follow, after=True)

    def _cancel(self, key: str) -> None:
        job = self._corpus.ledger.find(key)
        if job is not None and job.state in UNSENT:
            self._corpus.ledger.drop_unsent(key)
        elif job is not None and job.state == "submitted" and job.transcript_id is not None:
            self._corpus.forget(job.transcript_id, remote=True, client=self._service())

    def _retry(self, keys: list[str] | None) -> None:
        one = self._corpus.ledger.find(keys[0]) if keys else None
        lost = one is not None and one.state != "error"
        with Ticking(self._draw, _DRAW_S):
            self._corpus.retry(failed=not lost, uncertain=lost, keys=keys, client=self._service(), progress=False)

    def _show_busy(self, what: str) -> None:
        self.table.busy = what
        self._draw()

    def _say(self, text: str) -> None:
        self._planned.value = f'<pre style="white-space:pre-wrap;margin:4px 8px">{escaped(text)}</pre>'

    def _show_error(self, text: str) -> None:
        self.error = text

    def _draw(self) -> None:
        self.table.show(self._corpus.ledger.jobs(), self._shares)

    def _service(self) -> Client:
        """The service: given, typed, or the usual one."""
        if self._client is not None:
            return self._client
        address, key = self._address.value.strip() or None, self._key.secret
        settings = resolve(address, api_key=key)
        if settings.base_url is not None and settings.api_key is None:
            raise SettingsError(f"there is no key for {settings.base_url}; type it into the field 'API key'")
        return connect(address, api_key=key)

    @traitlets.observe("error")
    def _tell(self, change: Any) -> None:
        text = escaped(change["new"])
        self._pane.value = f'<div role="alert" {PLAIN} style="{_ALERT}">{text}</div>' if text else ""


_SECRET = "webhook_auth_header_value"  # noqa: S105  a name
_NARROW = ipywidgets.Layout(width="auto")
_ALERT = (
    "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4;padding:8px 10px;margin:4px 8px;border-radius:4px;"
    "color:light-dark(#a51d2d,#ff9aa2);border-inline-start:3px solid light-dark(#a51d2d,#ff9aa2)"
)


def _usual_service() -> str:
    settings = resolve()
    return settings.base_url or "the embedded service of this machine"
