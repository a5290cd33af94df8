"""A notebook in a browser, in JupyterLab or in Voila, and access to its kernel."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Locator, Page, expect

WAIT_MS = 120_000

#: Keeps what `new Audio()` makes, so that a test can ask a sound where it stands.
KEEP_SOUNDS = """const Sound = window.Audio; window.sounds = [];
window.Audio = function () { const made = new Sound(); window.sounds.push(made); return made; };
window.soundOf = (name) => window.sounds.find((sound) => sound.src.includes(name));"""

#: What the cells of JupyterLab's open notebook ended with, other than well.
ERRORS = """() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
    .flatMap((cell) => cell.outputs ?? []).filter((output) => output.output_type === 'error')
    .map((output) => `${output.ename}: ${output.evalue}`)"""

_SET_THEME = """async (name) => {
    await window.jupyterapp.commands.execute('apputils:change-theme', { theme: `JupyterLab ${name}` });
}"""

#: The kernel is idle and its widgets have somebody to draw them: a widget that opens before that is never drawn.
KERNEL_READY = """() => {
    const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
    return kernel?.status === 'idle' && 'jupyter.widget' in kernel._targetRegistry;
}"""

#: Cell that takes questions from the page; Voila lets no page run code otherwise.
PROBE = '''
import anywidget, json, traceback

class Probe(anywidget.AnyWidget):
    _esm = """
    export default {
      initialize({ model }) {
        const waiting = new Map();
        model.on("msg:custom", ({ number, ...told }) => (waiting.get(number)?.(told), waiting.delete(number)));
        window.askKernel = (code, expression) => new Promise((told) => {
          const number = Math.random();
          waiting.set(number, told);
          model.send({ number, code, expression });
        });
      },
      render() {},
    };
    """

def answer(probe, asked, buffers):
    try:
        exec(asked["code"], globals())
        told = {"value": json.dumps(eval(asked["expression"], globals()), default=str)}
    except Exception:
        told = {"error": traceback.format_exc()}
    probe.send({"number": asked["number"], **told})

probe = Probe()
probe.on_msg(answer)
probe'''


class Notebook:
    """A notebook in a page.

    Args:
        host: The only host that the page may reach.

    Attributes:
        page: The page, which reaches its host only.
        path: The file.
        faults: Errors the page threw, and what it asked for at other hosts.
    """

    def __init__(self, browser: Browser, path: Path, host: str = "127.0.0.1") -> None:
        self._host = host
        self.context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
        self.page = page = self.context.new_page()
        self.path = path
        self.faults: list[str] = []
        page.set_default_timeout(WAIT_MS // 6)
        page.add_init_script(KEEP_SOUNDS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url: str) -> None:
        # Voila's own template asks a CDN for icons; `open_in_voila` answers that here.
        if re.match(rf"(https?|wss?)://(?!{re.escape(self._host)}[:/])", url) and "/npm/@fortawesome/" not in url:
            self.faults.append(f"asked for {url}")

    def open_in_lab(self, base: str, token: str, root: Path) -> None:
        """Open a notebook in JupyterLab and run all its cells."""
        page, path = self.page, self.path.relative_to(root).as_posix()
        page.goto(f"{base}/lab/tree/{path}?token={token}&reset", timeout=WAIT_MS)
        page.locator(".jp-Notebook").wait_for(timeout=WAIT_MS)
        page.wait_for_function(KERNEL_READY, timeout=WAIT_MS)
        page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        last = page.locator(".jp-CodeCell .jp-InputPrompt").last
        failed = page.locator(".jp-OutputArea-output").filter(has_text="Traceback (most recent call last)")
        expect(last.filter(has_text=re.compile(r"\[\d+\]:")).or_(failed).first).to_be_attached(timeout=WAIT_MS)
        assert failed.all_text_contents() == []
        page.evaluate("void window.jupyterapp.commands.execute('application:toggle-left-area')")
        page.evaluate("window.kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel; void 0")
        page.wait_for_function("window.askKernel", timeout=WAIT_MS)

    def open_in_voila(self, base: str) -> None:
        """Open a notebook with Voila, which runs it."""
        icons = re.compile("/npm/@fortawesome/")
        self.page.route(icons, lambda route: route.fulfill(status=200, content_type="text/css", body=""))
        self.page.goto(f"{base}/voila/render/{self.path.name}", wait_until="commit", timeout=WAIT_MS)
        self.page.wait_for_function("window.askKernel", timeout=WAIT_MS)

    def kernel(self, expression: str, first: str = "") -> Any:
        """Return the value of an expression in the kernel, through JSON, after running `first`."""
        told = self.page.evaluate("([code, expression]) => window.askKernel(code, expression)", [first, expression])
        assert "error" not in told, told["error"]
        return json.loads(told["value"])

    def run(self, code: str) -> None:
        """Run code in the kernel."""
        self.kernel("0", code)

    def until(self, expression: str, wanted: Callable[[Any], bool] = bool) -> Any:
        """Wait until an expression in the kernel has the wanted value."""
        for _ in range(200):
            if wanted(value := self.kernel(expression)):
                return value
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{expression} stayed {value!r}")


def write_notebook(path: Path, cells: list[str]) -> None:
    """Write a notebook with code cells, and a cell that runs code sent by a test."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    code = [nbformat.v4.new_code_cell(text.strip()) for text in (*cells, PROBE)]
    nbformat.write(nbformat.v4.new_notebook(cells=code, metadata=kernel), path)


def rgb(color: str) -> list[int]:
    """Return a colour such as "#0072B2" as numbers."""
    return [int(color[n : n + 2], 16) for n in (1, 3, 5)]


def pixel(canvas: Locator, x: float, y: float) -> list[int]:
    """Return the colour of a canvas at a fraction of its width and a height in CSS pixels."""
    return canvas.evaluate(
        """(canvas, [x, y]) => {
            const ratio = canvas.width / canvas.clientWidth;
            const context = canvas.getContext('2d');
            const { data } = context.getImageData(Math.round(x * canvas.width), Math.round(y * ratio), 1, 1);
            return Array.from(data).slice(0, 3);
        }""",
        [x, y],
    )


#: Roles of what a person acts on.
_ACTED_ON = "button checkbox combobox listbox option radio searchbox slider spinbutton textbox application".split()


def controls(widget: Locator) -> list[tuple[str, str]]:
    """Return role and name of every control of a widget, and of all other elements that take the focus."""
    page = widget.page
    widget.evaluate("root => root.setAttribute('data-asked', '')")
    session = page.context.new_cdp_session(page)
    root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": "[data-asked]"})["nodeId"]
    nodes = session.send("Accessibility.queryAXTree", {"nodeId": node})["nodes"]
    session.detach()
    widget.evaluate("root => root.removeAttribute('data-asked')")

    def is_control(node: dict[str, Any]) -> bool:
        focusable = any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", ()))
        return not node["ignored"] and (focusable or node["role"]["value"] in _ACTED_ON)

    return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in filter(is_control, nodes)]


def drag(page: Page, target: Locator, begin: float, end: float) -> None:
    """Drag between two fractions of an element's width."""
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + begin * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (begin + end) / 2 * box["width"], y, steps=3)
    page.mouse.move(box["x"] + end * box["width"], y, steps=3)
    page.mouse.up()


def wait_in_page(page: Page, condition: str) -> None:
    """Wait for a condition; `wait_for_function` needs `eval`, which a page written by `to_html` does not allow."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never came true: {condition}")


@contextmanager
def dark_theme(page: Page) -> Iterator[None]:
    """Switch JupyterLab to its dark theme and back, because the setting also applies to later tests."""
    page.evaluate(_SET_THEME, "Dark")
    page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    try:
        yield
    finally:
        page.evaluate(_SET_THEME, "Light")
        page.wait_for_function("document.body.dataset.jpThemeLight === 'true'")


def plays(notebook: Notebook, start_ms: int) -> None:
    """Wait until the latest player plays from a time."""
    notebook.page.wait_for_function(
        "start => { const sound = window.sounds.at(-1);"
        "const now = sound ? sound.currentTime * 1000 : -1;"
        "return sound && !sound.paused && now >= start && now < start + 8000 }",
        arg=start_ms,
    )
    notebook.page.evaluate("for (const sound of window.sounds) sound.pause()")
