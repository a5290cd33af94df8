"""The first notebook in JupyterLab, run with Run All."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import ERRORS, KERNEL_READY

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"

#: Longest wait for the notebook: it transcribes speech, on a slow, shared machine.
RUN_MS = 240_000


@pytest.mark.browser
@pytest.mark.speech
def test_quickstart_runs_in_jupyterlab_and_shows_its_timeline(lab, page):
    """Every cell of a fresh copy runs without an error in a browser, and the timeline picture is on the page.

    The copy transcribes 40 s; other tests run the notebook with the whole recording.
    """
    full = NOTEBOOK.read_text("utf-8")
    short = full.replace("speakers_expected=2)", "speakers_expected=2, audio_end_at=40_000)")
    assert short != full
    (lab.folder / NOTEBOOK.name).write_text(short, "utf-8")
    page.set_default_timeout(90_000)
    page.goto(f"{lab.base}/lab/tree/{NOTEBOOK.name}?token={lab.token}&reset")
    page.locator(".jp-Notebook").wait_for()
    page.wait_for_function(KERNEL_READY)
    page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    expect(page.locator(".jp-OutputArea-output")).to_have_count(0)

    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    codes = page.locator(".jp-CodeCell .jp-InputPrompt")
    expect(codes.last).to_have_text(re.compile(r"\[\d+\]:"), timeout=RUN_MS)
    page.wait_for_function(KERNEL_READY)

    assert page.evaluate(ERRORS) == []
    said = page.locator("[data-mime-type='application/vnd.jupyter.stderr']").all_text_contents()
    assert all(text.startswith("voxframe: no service is configured") for text in said), said
    assert [text for text in codes.all_text_contents() if not re.fullmatch(r"\[\d+\]:", text)] == []
    picture = page.locator(".jp-OutputArea img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    width, height = picture.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert width > 400
    assert height > 80
