"""Widgets that play rows of DataFrames, in JupyterLab: passages, timeline, dispersion and groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.open_notebook import WAIT_MS, Notebook, plays, write_notebook

DATA = Path(__file__).parents[2] / "data"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"

CELLS = [
    f"""
import pandas as pd, voxframe
from pathlib import Path
data = Path({str(DATA)!r})
corpus = voxframe.Corpus("corpus")
names = ("call", "interview", "panel")
for name in names:
    corpus.raw.put(name, (data / "payloads" / f"{{name}}.json").read_bytes())
audio = {{name: data / f"{{name}}.flac" for name in names}}
found = corpus.search("the")
passages = voxframe.PassageList(found, corpus=corpus, audio=audio, columns=["term"])
passages""",
    """
spoken = corpus.table("utterances")
timeline = voxframe.Timeline(spoken, corpus=corpus, audio=audio)
timeline""",
    """
dispersion = voxframe.Dispersion(corpus.search(["the", "and"]), corpus=corpus, audio=audio)
dispersion""",
    """
groups = voxframe.GroupComparison(spoken, "confidence", "transcript_id", corpus=corpus, audio=audio)
groups""",
    f"""
rows = pd.DataFrame({{"text": {HOSTILE!r}, "speaker": {HOSTILE!r}, "start_ms": [1000], "end_ms": [2000]}})
hostile = voxframe.PassageList(rows, audio=audio["call"], columns=["speaker"], title={HOSTILE!r})
hostile""",
]

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("page_without_faults")]


class RowsNotebook(Notebook):
    """The notebook with the widgets."""

    def widget(self, title: str) -> Locator:
        return self.page.locator(f".voxframe[aria-label='{title}']").first


@pytest.fixture(scope="module")
def notebook(lab, browser) -> Iterator[RowsNotebook]:
    """The notebook of this module in JupyterLab."""
    folder = lab.folder / "rows"
    folder.mkdir()
    notebook = RowsNotebook(browser, folder / "rows.ipynb")
    write_notebook(notebook.path, CELLS)
    notebook.open_in_lab(lab.base, lab.token, lab.folder)
    notebook.page.set_default_timeout(WAIT_MS)
    yield notebook
    notebook.context.close()


def test_passages_play_by_click_and_by_key(notebook):
    """A click plays the row's recording from its time, and arrow keys and Enter the next row's."""
    passages = notebook.widget("Passages")
    starts = notebook.kernel("found['start_ms'].tolist()")
    other = notebook.kernel("int((found['transcript_id'] == 'interview').to_numpy().argmax())")
    lines = passages.locator(".vf-line")
    expect(lines).to_have_count(len(starts))
    lines.nth(other).click()
    plays(notebook, starts[other])
    expect(passages.locator(".vf-player .vf-title")).to_have_text("interview")
    passages.locator(".vf-lines").press("ArrowDown")
    passages.locator(".vf-lines").press("Enter")
    plays(notebook, starts[other + 1])


def test_hostile_rows_stay_text(notebook):
    """Texts, columns and titles with markup are shown as they are."""
    hostile = notebook.page.locator(".vf-passages").nth(1)
    assert hostile.locator(".vf-title").first.text_content() == HOSTILE
    assert hostile.locator(".vf-line strong").text_content() == HOSTILE
    assert hostile.locator(".vf-more-columns").text_content() == HOSTILE
    hostile.locator(".vf-line").click()
    plays(notebook, 1000)


@pytest.mark.parametrize("kind", ["Timeline", "Dispersion", "Groups"])
def test_a_mark_has_a_tooltip_and_plays(notebook, kind):
    """A tooltip shows the passage of the mark under the pointer; a click plays it in its own recording."""
    widget, name = notebook.widget(kind), kind.lower()
    marks = f"np.frombuffer({name}._columns['start'], '<i4').tolist()"
    starts = notebook.kernel(marks, "import numpy as np")
    first = notebook.kernel(f"np.frombuffer({name}._columns['first'], '<i4').tolist()")
    parts = notebook.kernel(f"max(1, len({name}._parts))")
    lane = len(first) - 2
    mark = first[lane]
    row = notebook.kernel(f"np.frombuffer({name}._columns['row'], '<i4').tolist()")[mark]
    wanted = notebook.kernel(f"{name}._df.iloc[{row}][['transcript_id', 'text']].tolist()")
    start = notebook.kernel(f"int({name}._df['start_ms'].iloc[{row}])")
    stage = widget.locator(".vf-stage")
    stage.scroll_into_view_if_needed()
    box, rows = stage.bounding_box(), len(first[:-1]) // parts
    x = starts[mark] / notebook.kernel(f"{name}._until") * box["width"] + 1
    y = box["height"] / rows * (lane // parts) + 3 + (box["height"] / rows - 6) * (lane % parts + 0.5) / parts
    stage.hover(position={"x": x, "y": y})
    expect(widget.locator(".vf-tip")).to_contain_text(wanted[1][:60])
    stage.click(position={"x": x, "y": y})
    plays(notebook, start)
    expect(widget.locator(".vf-player .vf-title")).to_have_text(wanted[0])
