"""The notebook of the tests of player and timeline, opened once in JupyterLab and once in Voila."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import WAIT_MS, Notebook, write_notebook
from tests.hostile import HOSTILE

DATA = Path(__file__).parents[2] / "data"
#: A key in two halves, so that a notebook that holds it whole got it from a widget.
CANARY = ("canary-7c1e", "5f0b9d2a")
PLAYER = f"""
import json, os, wave
import numpy as np, pandas as pd
import voxframe
from pathlib import Path
from IPython.display import display

payload = json.loads(Path({str(DATA / "payloads" / "interview.json")!r}).read_text())
payload["chapters"] = [{{"headline": "How many trees", "gist": "", "summary": "", "start": 0, "end": 60000}},
                       {{"headline": "What comes next", "gist": "", "summary": "", "start": 60000, "end": 125000}}]
payload["entities"] = [{{"entity_type": "number_sequence", "text": "x", "start": 18000, "end": 19000}}]
payload["content_safety_labels"] = {{"status": "success", "results": [{{"text": "x", "timestamp": {{"start": 44000,
    "end": 54000}}, "labels": [{{"label": "disasters", "confidence": 0.8, "severity": 0.3}}]}}]}}
os.environ["VOXFRAME_API_KEY"] = {CANARY[0]!r} + {CANARY[1]!r}
client = voxframe.connect(base_url="http://127.0.0.1:9", api_key=os.environ["VOXFRAME_API_KEY"])
corpus = voxframe.Corpus("corpus")
_ = corpus.raw.put("interview", json.dumps(payload).encode())
player = voxframe.TranscriptPlayer(
    "interview", "interview.flac", client=client, corpus=corpus, names={{"A": "Ada"}}, title="Interview")
player"""
TIMELINE = """
turns = voxframe.load_utterances(payload)
timeline = voxframe.Timeline(turns, bands=voxframe.load_chapters(payload))
player.link(timeline)
timeline"""
HOSTILE_WIDGETS = f"""
bad = {HOSTILE!r}
start = np.arange(len(bad)) * 500
words = pd.DataFrame({{"text": bad, "speaker": bad, "start_ms": start, "end_ms": start + 400, "confidence": 0.1}})
bands = pd.DataFrame(
    {{"headline": bad, "entity_type": bad, "label": bad, "start_ms": start, "end_ms": start + 400}})
hostile = voxframe.TranscriptPlayer({{"words": words, "chapters": bands, "entities": bands, "content_safety": bands}},
                                    names={{name: name + "!" for name in bad[::2]}}, title=bad[0])
display(hostile, voxframe.Timeline(words, bands=bands, title=bad[6]))"""
BROKEN = """
Path("broken.mp3").write_bytes(b"this is no sound")
broken = voxframe.TranscriptPlayer(words, "broken.mp3", title="Broken")
broken"""
MILLION = """
start = np.arange(1_000_000) * 40
million = voxframe.Timeline(pd.DataFrame(
    {"speaker": np.where(start % 8000 < 4000, "A", "B"), "start_ms": start, "end_ms": start + 30}), title="Million")
million"""
THREE_HOURS = """
with wave.open("../three hours.wav", "wb") as file:  # beside the folder that Jupyter serves
    file.setparams((1, 1, 8000, 0, "NONE", ""))
    file.writeframes(b"\\x80" * 8000 * 3600 * 3)
start = np.arange(30_000) * 360
long = pd.DataFrame({"transcript_id": "long", "text": [f"word{n}" for n in range(30_000)], "start_ms": start,
                     "end_ms": start + 300, "confidence": 0.5 + (start % 700) / 1400,
                     "speaker": np.where(start % 9000 < 4500, "A", "B")})
big = voxframe.TranscriptPlayer(long, "../three hours.wav", title="Three hours")
"""
#: Brings all that a test changes back to how the notebook was opened.
_RESET = """
player.time = 0; player.interval = []; player.loop = False; player.speed = 1; player.query = ''
player.names = {'A': 'Ada'}; player.turn_names = {}; player.corrections = {}
timeline.view = []; timeline.interval = []; timeline.time = 0
player.layers = ['confidence', 'chapters', 'entities', 'safety']"""


class PlayerNotebook(Notebook):
    """The notebook with a player of the interview and a timeline linked to it."""

    @property
    def player(self):
        return self.page.locator(".vf-player[aria-label='Interview']").first

    @property
    def timeline(self):
        return self.page.locator(".vf-timeline[aria-label='Timeline']").first

    def reset(self) -> None:
        """Restore the initial state of the notebook."""
        self.faults.clear()
        self.page.evaluate("window.sounds.forEach((sound) => sound.pause())")
        self.page.wait_for_timeout(50)  # the last report of a sound that played
        self.run(_RESET)
        expect(self.player.locator(".vf-clock")).to_have_text(re.compile(r"^0:00 "))

    def heard(self) -> float:
        """Return the playback position of the interview in seconds."""
        return self.page.evaluate("soundOf('interview').currentTime")

    def wait_heard(self, condition: str) -> None:
        """Wait until a condition on `sound`, that of the interview, is true."""
        self.page.wait_for_function(f"(() => {{ const sound = soundOf('interview'); return {condition}; }})()")


@pytest.fixture(scope="package")
def lab_notebook(lab, browser) -> Iterator[PlayerNotebook]:
    """The notebook in JupyterLab with all cells run."""
    folder = lab.folder / "widgets"
    folder.mkdir()
    shutil.copy(DATA / "interview.flac", folder)
    notebook = PlayerNotebook(browser, folder / "widgets.ipynb")
    write_notebook(notebook.path, [PLAYER, TIMELINE, THREE_HOURS, MILLION, HOSTILE_WIDGETS, BROKEN])
    notebook.open_in_lab(lab.base, lab.token, lab.folder)
    expect(notebook.page.locator(".vf-player[data-ready]")).to_have_count(3, timeout=WAIT_MS)
    yield notebook
    notebook.context.close()


@pytest.fixture(scope="package")
def voila_notebook(voila, browser) -> Iterator[PlayerNotebook]:
    """The notebook in Voila."""
    shutil.copy(DATA / "interview.flac", voila.folder)
    notebook = PlayerNotebook(browser, voila.folder / "widgets.ipynb")
    write_notebook(notebook.path, [PLAYER, TIMELINE, HOSTILE_WIDGETS, BROKEN])
    notebook.open_in_voila(voila.base)
    expect(notebook.page.locator(".vf-player[data-ready]")).to_have_count(3, timeout=WAIT_MS)
    yield notebook
    notebook.context.close()


def _lent(notebook: PlayerNotebook, name: str) -> Iterator[PlayerNotebook]:
    notebook.reset()
    yield notebook
    if shots := os.environ.get("BROWSER_SHOTS"):
        notebook.page.screenshot(path=Path(shots) / f"{name}.png")
    assert not notebook.faults


@pytest.fixture
def in_lab(lab_notebook: PlayerNotebook, request: pytest.FixtureRequest) -> Iterator[PlayerNotebook]:
    """The notebook in JupyterLab in its initial state. The test fails if the page raised an error or left loopback."""
    yield from _lent(lab_notebook, request.node.name)


@pytest.fixture(params=["lab", "voila"])
def notebook(request: pytest.FixtureRequest) -> Iterator[PlayerNotebook]:
    """The notebook in its initial state, in JupyterLab, then in Voila."""
    yield from _lent(request.getfixturevalue(f"{request.param}_notebook"), request.node.name)


@pytest.fixture
def page_without_faults(notebook: Notebook, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Take a screenshot, and fail the test if the page raised an error, left loopback, or ran text as a script."""
    notebook.faults.clear()
    yield
    notebook.page.screenshot(path=Path(os.environ.get("BROWSER_SHOTS", tmp_path)) / f"{request.node.name}.png")
    assert not notebook.faults
    assert notebook.page.evaluate("window.hurt") is None
