"""The search, submit, ask and live widgets in Voila, without a notebook around them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import WAIT_MS, Notebook, write_notebook
from tests.browser.test_forms_in_lab import CELLS, plays

pytestmark = pytest.mark.browser


def test_all_four_work_in_voila(voila, browser, tmp_path):
    """A match plays, a recording is planned, a citation plays, the microphone is transcribed, and no text runs."""
    notebook = Notebook(browser, voila.folder / "forms.ipynb")
    notebook.context.grant_permissions(["microphone"])
    write_notebook(notebook.path, CELLS[:4])
    notebook.open_in_voila(voila.base)
    page = notebook.page
    page.set_default_timeout(WAIT_MS)
    search, form, panel, live = (
        page.locator(f".{kind}").first for kind in ("vf-word-search", "vf-submit-form", "vf-ask", "vf-live")
    )
    search.get_by_role("searchbox").first.click()
    page.keyboard.type("trees")
    found = notebook.kernel("corpus.search('trees')['start_ms'].to_list()")
    expect(search.locator(".vf-line")).to_have_count(len(found), timeout=WAIT_MS)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    plays(notebook, found[0])

    (tmp_path / "broken.mp3").write_bytes(b"this is no sound")
    form.locator("input[type=file]").set_input_files(tmp_path / "broken.mp3")
    expect(form.locator(".vf-recordings button")).to_have_count(1, timeout=WAIT_MS)
    form.get_by_role("button", name="Plan").click()
    expect(form.get_by_role("button", name="Send 1")).to_be_enabled(timeout=WAIT_MS)

    panel.get_by_label("interview").first.check()
    panel.get_by_role("textbox").first.fill("How many trees?")
    page.keyboard.press("Control+Enter")
    panel.locator(".vf-cite").first.click()
    plays(notebook, notebook.kernel("int(panel.citations['start_ms'].iloc[0])"))

    live.get_by_role("button", name="Microphone").click()
    expect(live.locator(".vf-partial, .vf-finals p").filter(has_text=re.compile(r"\w")).first).to_be_attached(
        timeout=WAIT_MS
    )
    live.get_by_role("button", name="Stop").click()
    assert page.evaluate("window.hurt") is None
    assert not notebook.faults
    notebook.context.close()
