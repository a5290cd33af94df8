"""Base of all widgets: scripts and styles, data for the browser, the error pane, lines of `.code`, and static HTML.

Every widget has

- `.result`, a DataFrame of what it shows, and `.code`, Python code that shows the same again;
- an error pane below it that shows `.error`;
- a static `text/html` version for exports and pages without a kernel. JupyterLab prefers the live widget; without a
  kernel it shows "model not found" unless "Save Widget State Automatically" was on in its settings;
- its state in traits, so that every view shows the same and a redrawn cell output keeps it.

A widget derives from `ScriptedWidget` and names its files in `static/`. They are joined to one ES module: there is no
build step and no network access. Requests run in a `Background` thread, so that the kernel stays free.
"""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import json
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import anywidget
import numpy as np
import numpy.typing as npt
import pandas as pd
import traitlets

from voxframe._text import PLAIN, SEARCH_RULES, clock, storable
from voxframe.client import Client
from voxframe.client.embedded import is_embedded
from voxframe.colors import GREY, PALETTE, themed
from voxframe.corpus import Corpus
from voxframe.corpus.job import is_address, is_remote
from voxframe.errors import CorpusWarning, OptionError, PayloadWarning, VoxframeError
from voxframe.plots.lanes import band_titles, joined, shown_names


def static(*names: str) -> str:
    """Return the text of files in `static/`, joined, with the rules of `analysis.find_words` in those that search."""
    folder = resources.files("voxframe.widgets") / "static"
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    return text.replace("__SEARCH_RULES__", json.dumps(SEARCH_RULES))


def escaped(text: object) -> str:
    """Escape a text for an HTML element or a quoted attribute; a null becomes "(unknown)".

    Example:
        >>> escaped("<b>"), escaped(None)
        ('&lt;b&gt;', '(unknown)')
    """
    return html.escape(text) if isinstance(text, str) else "(unknown)"


class ScriptedWidget(anywidget.AnyWidget):
    """A widget with JavaScript of its own. Subclasses define `_static_html`.

    Attributes:
        error: Error message shown below the widget; empty for none.
        title: Title of the widget.
    """

    #: Files in `static/`, without `.js` and `.css`; `base` is always included.
    scripts: ClassVar[tuple[str, ...]] = ()
    styles: ClassVar[tuple[str, ...]] = ()

    error = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "scripts" in cls.__dict__:  # not the class that traitlets derives for every instance
            cls._esm = static(*(f"{name}.js" for name in ("base", *cls.scripts)))
            cls._css = _speaker_css() + static(*(f"{name}.css" for name in ("base", *cls.styles)))
        super().__init_subclass__(**kwargs)

    @traitlets.validate("title")
    def _check_title(self, proposal: Any) -> str:
        return storable(proposal["value"])  # it may be the name of a file that is not UTF-8

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.on_msg(self._receive)

    def _receive(self, _: Any, message: Any, buffers: Any) -> None:
        """Handle a message of a page, then confirm it: without that, the page says that no kernel responds."""
        if not isinstance(message, dict):
            return
        try:
            self._on_browser_message(message, buffers)
        finally:
            if "n" in message:
                super().send({"do": "received", "n": message["n"]})

    def _on_browser_message(self, message: dict[str, Any], buffers: list[Any]) -> None:
        """Handle a message of a page. A widget that gets none need not define it."""

    def static_html(self) -> str:
        """Return the widget as HTML without scripts; all text in it is escaped."""
        return f"<div {PLAIN}>{self._static_html()}</div>"  # MathJax would render "$" as formulas

    def _static_html(self) -> str:
        """Return the content of `static_html`."""
        raise NotImplementedError

    def _code(
        self,
        variable: str,
        arguments: Sequence[str],
        define: Mapping[str, str],
        traits: Sequence[str],
        more: Sequence[str] = (),
    ) -> str:
        """Return code that shows the widget again: its call, traits that have not their defaults, and its result."""
        # Neither a subclass of the user nor the class that traitlets derives for every instance can be called so.
        own = (cls for cls in type(self).__mro__ if cls.__module__.startswith("voxframe.") and "__init__" in vars(cls))
        widget = next(own)
        title = inspect.signature(vars(widget)["__init__"]).parameters["title"].default
        titled = [f"title={self.title!r}"] if title not in (None, self.title) else []
        described = "; ".join(f"{name} = {what}" for name, what in define.items())
        lines = [f"# Define first: {described}"] if define else []
        call = f"voxframe.{widget.__name__}({', '.join([*arguments, *titled])})"
        values = {name: getattr(self, name) for name in traits}
        changed = [f"{variable}.{n} = {v!r}" for n, v in values.items() if v != self.traits()[n].default()]
        lines += ["import voxframe", "", f"{variable} = {call}", *changed, *more]
        return "\n".join([*lines, f"result = {variable}.result", variable])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self), "text/html": self.static_html()}, metadata


def _speaker_css() -> str:
    """Return CSS variables of the palette in both themes: `--vf-speaker-N`, and `--vf-on-speaker-N` for text on it."""
    rules = []
    for n, light in enumerate(PALETTE):
        dark = themed(light, dark=True)
        rules.append(f"--vf-speaker-{n}: light-dark({light}, {dark});")
        rules.append(f"--vf-on-speaker-{n}: light-dark({_text_color(light)}, {_text_color(dark)});")
    return ".voxframe { " + " ".join(rules) + " }\n"


def _text_color(background: str) -> str:
    """Return black or white, whichever has more contrast by WCAG 2's relative luminance."""
    luminance = 0.0
    for weight, index in ((0.2126, 1), (0.7152, 3), (0.0722, 5)):
        channel = int(background[index : index + 2], 16) / 255
        luminance += weight * (channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4)
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"


def connect_call(client: Client | None) -> str:
    """Return the call that connects to the same service; the API key is read from the environment or prompted for.

    Example:
        >>> import voxframe
        >>> connect_call(None), connect_call(voxframe.connect("http://127.0.0.1:9", api_key="not-shown"))
        ('voxframe.connect()', "voxframe.connect('http://127.0.0.1:9')")
    """
    return f"voxframe.connect({'' if client is None or is_embedded(client.base_url) else repr(client.base_url)})"


def corpus_call(corpus: Corpus) -> str:
    """Return the call that opens a corpus by its absolute path."""
    return f"voxframe.Corpus({absolute_path(corpus.path)!r})"


def absolute_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a local file; URLs and remote stores stay unchanged.

    Example:
        >>> absolute_path("https://example.org/talk.mp3")
        'https://example.org/talk.mp3'
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise OptionError(
            f"a recording must be a path or a URL, got {type(path).__name__}; "
            "pass other arguments by name, such as corpus="
        )
    return text if is_address(text) or is_remote(text) else str(Path(text).expanduser().absolute())


def check_range(proposal: Any) -> list[int]:
    """Return the proposed value of a trait that holds a time range; the validator of such traits."""
    value = proposal["value"]
    if value and (len(value) != 2 or value[0] > value[1]):
        raise traitlets.TraitError(
            f"{proposal['trait'].name} must be [start, end] in ms with start <= end, or [] for none, got {value}"
        )
    return list(value)


def text_map() -> traitlets.Dict[str, str]:
    """Return a synchronised trait that maps texts to texts, such as names by label."""
    return traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)


def error_text(error: Exception) -> str:
    """Return the message for an error, with its notes; a bug in voxframe is named as such."""
    if isinstance(error, VoxframeError | OSError):
        return "\n".join([str(error), *getattr(error, "__notes__", [])])
    return f"internal error ({type(error).__name__}); this is a bug in voxframe, please report it"


@contextmanager
def show_errors(widget: ScriptedWidget) -> Iterator[None]:
    """Show errors and warnings of a block in the error pane of a widget; clear the pane if there are none.

    Errors caused by input are shown and suppressed. Any other error is shown as a bug and raised.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for category in (PayloadWarning, CorpusWarning):
            warnings.simplefilter("always", category)
        message = ""
        try:
            yield
        except (VoxframeError, ValueError) as e:
            message = str(e)
        except Exception as e:
            widget.error = error_text(e)
            raise
    widget.error = "\n".join(filter(None, dict.fromkeys([message, *(str(warning.message) for warning in caught)])))


Task = Callable[[], object]


class Background:
    """A daemon thread that runs tasks one after another; the pane of the widget shows their errors."""

    def __init__(self, widget: ScriptedWidget, on_busy: Callable[[str], None]) -> None:
        self._widget, self._on_busy = widget, on_busy
        self._tasks: queue.Queue[tuple[str, Task, bool] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> bool:
        """True if tasks are queued behind the running one."""
        return self._tasks.qsize() > 0

    def submit(self, description: str, task: Task, *, keep_error: bool = False) -> None:
        """Queue a task, with a description to show while it runs."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="voxframe-widget", daemon=True)
            self._thread.start()
        self._tasks.put((description, task, keep_error))

    def run_now(self, task: Task, *, keep_error: bool = False) -> None:
        """Run a task in the calling thread and report its error instead of raising it."""
        if not keep_error:
            self._widget.error = ""
        try:
            task()
        except Exception as e:  # noqa: BLE001  in a thread, or after a click, it would be lost
            self._widget.error = error_text(e)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all tasks are done; after `timeout` seconds, raise a TimeoutError."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._tasks.unfinished_tasks:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"tasks are still running after {timeout} s; wait longer or pass timeout=None")
            time.sleep(0.02)

    def close(self) -> None:
        """End the thread after the queued tasks."""
        if self._thread is not None and self._thread.is_alive():
            self._tasks.put(None)

    def _run(self) -> None:
        while (queued := self._tasks.get()) is not None:
            description, task, keep_error = queued
            self._on_busy(description)
            try:
                self.run_now(task, keep_error=keep_error)
            finally:
                if not self.waiting:
                    self._on_busy("")
                self._tasks.task_done()
        self._tasks.task_done()


#: Maximum time in ms (24 days).
LAST_MS = 2**31 - 1
#: Maximum number of lines in static HTML.
STATIC_ROWS = 12


def row_times(df: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return start and end in ms (float64, shape (rows,)), and True for rows with valid times."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    end = df["end_ms"].to_numpy(np.float64, na_value=np.nan)
    return start, end, (start >= 0) & (end >= start) & (end <= LAST_MS)  # False for NaN


def require_times(df: pd.DataFrame) -> None:
    """Check that `start_ms` and `end_ms` are numbers; columns without values may have any dtype."""
    for name in ("start_ms", "end_ms"):
        times = df[name].convert_dtypes() if df[name].dtype == object else df[name]
        if not pd.api.types.is_numeric_dtype(times) and times.notna().any():
            raise ValueError(
                f"{name} must be a column of numbers (ms), but its dtype is {df[name].dtype}; convert it to ms"
            )


def clock_text(ms: Any) -> str:
    """Return a time in ms as m:ss; an unknown one is empty."""
    return "" if pd.isna(ms) else clock(ms / 1000)


def pack_ints(values: npt.ArrayLike) -> bytes:
    r"""Return whole numbers as the bytes of an Int32Array.

    Example:
        >>> pack_ints([1, 256])
        b'\x01\x00\x00\x00\x00\x01\x00\x00'
    """
    return np.asarray(values).astype("<i4").tobytes()


def pack_floats(values: npt.ArrayLike) -> bytes:
    """Return numbers as the bytes of a Float32Array; missing numbers are NaN."""
    return np.asarray(values, np.float64).astype("<f4").tobytes()


def pack_texts(values: Iterable[object]) -> tuple[bytes, bytes]:
    r"""Return concatenated UTF-8 bytes of texts, and their offsets as the bytes of an Int32Array.

    Nulls become empty texts; characters that UTF-8 cannot encode become "?".

    Example:
        >>> data, offsets = pack_texts(["Hi", None, "é"])
        >>> data, np.frombuffer(offsets, "<i4").tolist()
        (b'Hi\xc3\xa9', [0, 2, 2, 4])
    """
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else b"" for value in values]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return b"".join(encoded), pack_ints(np.r_[0, np.cumsum(lengths)])


def pack_starts(df: pd.DataFrame) -> bytes:
    """Return the starts of rows in ms as the bytes of an Int32Array; -1 if a start is unknown."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    return pack_ints(np.clip(np.where(start >= 0, start, -1), -1, LAST_MS))


def lines_table(lines: Iterable[tuple[str, str, str, str]]) -> str:
    """Return passages as an HTML table: place, words before, passage and words after."""
    cell = 'style="padding:1px 6px;text-align:'
    rows = (
        f'<tr><td {cell}left">{escaped(where)}</td><td {cell}right">{escaped(before)}</td>'
        f'<td {cell}center"><strong>{escaped(match)}</strong></td><td {cell}left">{escaped(right)}</td></tr>'
        for where, before, match, right in lines
    )
    return f"<table>{''.join(rows)}</table>"


def pack_bands(table: pd.DataFrame | None, text: str, prefix: str) -> dict[str, bytes]:
    """Return columns of titled spans in time order: `<prefix>_start`, `_end`, `_text` and `_offsets`."""
    if table is None:
        return {}
    start, end, timed = row_times(table)
    order = np.flatnonzero(timed)[np.argsort(start[timed], kind="stable")]
    data, offsets = pack_texts(band_titles(table, text).iloc[order])
    packed = {"start": pack_ints(start[order]), "end": pack_ints(end[order]), "text": data, "offsets": offsets}
    return {f"{prefix}_{name}": value for name, value in packed.items()}


_STYLE = """body { margin: 24px auto; max-width: 1100px; padding: 0 12px; background: light-dark(#ffffff, #16181c); }
:root { color-scheme: light dark; }
"""


_WIDTH, _LEFT, _LANE = 720, 130, 24
#: Bars closer than this fraction of the total are joined, so that the SVG stays small with a million spans.
_RESOLUTION = 1 / 500


def write_page(widget: ScriptedWidget, path: str | os.PathLike[str], **changes: Any) -> None:
    """Write a widget as an HTML page, whose content security policy allows only its own script, by its hash."""
    state = {
        name: getattr(widget, name)
        for name in widget.keys
        if name not in {"layout", "tabbable", "tooltip", "comm", "player"}
        and not name.startswith(("_dom", "_esm", "_css"))
        and not name.startswith(("_model", "_view", "_anywidget"))
    } | changes
    # "<" in the data could close the script element, so it is written as an escape.
    data = json.dumps(state, default=_plain).replace("<", "\\u003c")
    names = [f"{name}.js" for name in ("base", *widget.scripts, "page")]
    script = static(*names).replace("export default ", "const makeWidget = ", 1) + "\nstartPage(makeWidget());\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; media-src * data: blob: file:"
    )
    Path(path).write_text(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escaped(widget.title)}</title>
<style>
{_STYLE}{widget._css}</style>
</head>
<body>
<main id="widget"></main>
<script type="application/json" id="state">{data}</script>
<script type="module">{script}</script>
</body>
</html>
""",
        encoding="utf-8",
    )


def _plain(value: object) -> object:
    """Encode bytes as JSON."""
    if isinstance(value, bytes | memoryview):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot be written to a page")


def lanes_svg(
    lanes: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]],
    names: Sequence[object],
    color_indexes: Sequence[int],
    until: float,
    *,
    what: str = "Who speaks when",
    tick: Callable[[float], str] = lambda ms: clock(ms / 1000),
) -> str:
    """Return an `<img>` of lanes with spans (start and end in ms, or in another unit, sorted by start)."""
    labels, until = shown_names(names, 18), max(until, 1.0)
    scale = (_WIDTH - _LEFT) / until
    height = _LANE * len(labels) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"']
    parts[0] += f' font-size="12" fill="{GREY}">'
    for n, ((start, end), name, color_index) in enumerate(zip(lanes, labels, color_indexes, strict=True)):
        top = n * _LANE
        parts.append(f'<text x="0" y="{top + 16}">{escaped(name)}</text>')
        begin, right = joined(start, end, until * _RESOLUTION)
        bars = "".join(
            f"M{_LEFT + a * scale:.1f} {top + 4}h{(b - a) * scale:.1f}v{_LANE - 8}h-{(b - a) * scale:.1f}z"
            for a, b in zip(begin, right, strict=True)
        )
        color = PALETTE[color_index].replace("#000000", GREY)  # also readable on a dark page
        parts.append(f'<path fill="{color}" d="{bars}"/>')
    for part in (0, 0.5, 1):
        anchor = {0: "start", 0.5: "middle", 1: "end"}[part]
        x = _LEFT + part * (_WIDTH - _LEFT)
        parts.append(f'<text x="{x}" y="{height - 4}" text-anchor="{anchor}">{escaped(tick(part * until))}</text>')
    parts.append("</svg>")
    alt = f"{what}: {', '.join(labels)}; {tick(0)} to {tick(until)}"
    source = "data:image/svg+xml," + quote("".join(parts), safe=" /:=.,;")
    return f'<img style="width:100%;max-width:{_WIDTH}px" alt="{escaped(alt)}" src="{source}">'
