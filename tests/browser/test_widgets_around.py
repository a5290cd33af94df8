"""Player and timeline with several views, themes, hostile texts, saved notebooks and exported pages."""

import json
import os
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import KEEP_SOUNDS, WAIT_MS, dark_theme, pixel, rgb, wait_in_page
from tests.browser.player_notebook import CANARY
from tests.hostile import HOSTILE
from voxframe import analysis
from voxframe.colors import COLORS, themed

pytestmark = pytest.mark.browser

_SHOW = """(code) => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[1];
    cell.outputArea.future = window.kernel.requestExecute({ code, store_history: false });
}"""
_CLEAR = "window.jupyterapp.shell.currentWidget.content.widgets[1].outputArea.model.clear()"


def test_hostile_text_stays_text(notebook):
    """Words, names, chapters, entities, labels and titles with markup run no script and make no element."""
    page = notebook.page
    player = page.locator(".vf-player").nth(-2)
    player.scroll_into_view_if_needed()
    assert player.locator(".vf-title").text_content() == HOSTILE[0]
    assert player.locator(".vf-chapter strong").all_text_contents() == HOSTILE
    assert player.locator(".vf-w").all_text_contents() == HOSTILE[: player.locator(".vf-w").count()]
    assert player.locator(".vf-name").first.text_content() == HOSTILE[0] + "!"
    rows = pd.DataFrame({"text": HOSTILE, "start_ms": 0, "end_ms": 1})
    count = len(analysis.find_words(rows, "*script*"))
    player.locator(".vf-search").fill("*script*")
    expect(player.locator(".vf-found")).to_have_text(f"1 of {count}")
    player.locator(".vf-edit").first.click(force=True)
    player.get_by_role("textbox", name="Corrected text").fill(HOSTILE[6])
    page.keyboard.press("Enter")
    expect(player.locator(".vf-w").first).to_have_text(HOSTILE[6].split()[0])
    timeline = page.locator(".vf-timeline").last
    assert timeline.locator(".vf-label").all_text_contents() == HOSTILE
    box = timeline.locator(".vf-stage").bounding_box()
    timeline.locator(".vf-stage").hover(position={"x": box["width"] / 100, "y": 6})
    expect(timeline.locator(".vf-tip")).to_contain_text(HOSTILE[0])
    page.wait_for_timeout(200)
    assert page.locator(".voxframe").locator("img, script, iframe, video, math, style, svg[onload]").count() == 0
    assert page.evaluate("window.hurt === undefined")


def test_two_views_and_a_view_drawn_again_show_the_same(in_lab):
    """Two views share state and sound, and closing one leaves the other playing."""
    page = in_lab.page
    in_lab.run("player.seek(20_000); player.query = 'trees'")
    sounds = page.evaluate("window.sounds.length")
    page.evaluate(_SHOW, "display(player, timeline)")
    second = page.locator(".jp-Cell").nth(1).locator(".vf-player[data-ready]")
    expect(second.locator(".vf-clock")).to_have_text(re.compile(r"^0:20 "))
    expect(second.locator(".vf-found")).to_have_text(re.compile(r"of \d+"))
    assert page.evaluate("window.sounds.length") == sounds
    second.get_by_role("button", name="Play").click()
    expect(in_lab.player.get_by_role("button", name="Pause")).to_be_visible()
    expect(in_lab.player.locator(".vf-clock")).to_have_text(re.compile(r"^0:21 "))
    page.evaluate(_CLEAR)
    expect(second).to_have_count(0)
    in_lab.wait_heard("!sound.paused && sound.currentTime > 21.5")
    page.evaluate(_SHOW, "display(timeline)")
    expect(in_lab.timeline).to_be_visible()


def test_the_theme_is_followed_and_600_pixels_are_enough(in_lab, tmp_path):
    """Colours follow JupyterLab's dark theme, and nothing is cut off in a narrow page."""
    page, shots = in_lab.page, Path(os.environ.get("BROWSER_SHOTS", tmp_path))
    in_lab.player.scroll_into_view_if_needed()
    light = in_lab.player.evaluate("root => getComputedStyle(root).color")
    with dark_theme(page):
        expect(in_lab.player).not_to_have_css("color", light)
        ink = [int(n) for n in re.findall(r"\d+", in_lab.player.evaluate("root => getComputedStyle(root).color"))[:3]]
        assert min(ink) > 200
        for strip in (in_lab.player.locator(".vf-strip"), in_lab.timeline.locator(".vf-lanes")):
            strip.scroll_into_view_if_needed()
            shown = "canvas => canvas.width === Math.round(canvas.clientWidth * devicePixelRatio)"
            assert strip.evaluate(shown), "drawn while JupyterLab hid its page"
        turn = sum(in_lab.kernel("turns[['start_ms', 'end_ms']].iloc[0].to_list()")) / 2
        lane = pixel(in_lab.timeline.locator(".vf-lanes"), turn / in_lab.kernel("timeline._until"), 6)
        assert lane == rgb(themed(COLORS[0], dark=True))
        page.set_viewport_size({"width": 600, "height": 900})
        page.wait_for_function("document.querySelector('.vf-player').clientWidth < 600")
        page.screenshot(path=shots / "lab_600_dark.png")
        for widget in (in_lab.player, in_lab.timeline):
            cut = widget.evaluate("""root => {
                const right = root.getBoundingClientRect().right + 1;
                return Array.from(root.querySelectorAll('button, input, select, .vf-title, canvas'))
                    .filter((part) => part.offsetParent && part.getBoundingClientRect().right > right)
                    .map((part) => part.className);
            }""")
            assert cut == []
    page.set_viewport_size({"width": 1280, "height": 1000})


def test_a_saved_notebook_shows_static_html_without_a_kernel(in_lab, page, serve):
    """In a notebook exported by nbconvert, every widget is static HTML, with hostile text escaped."""
    from nbconvert import HTMLExporter

    in_lab.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(in_lab.path, as_version=4)
    assert in_lab.path.stat().st_size < 400_000
    assert "audio/flac" not in in_lab.path.read_text()
    exported, _ = HTMLExporter(template_name="basic", embed_images=True).from_notebook_node(saved)
    page.goto(serve({"/": ("text/html; charset=utf-8", exported.encode())}))
    picture = page.locator("img[alt^='Who speaks when: Ada, B; 0:00 to 2:04']")
    expect(picture.first).to_be_visible()
    assert picture.first.evaluate("image => image.complete && image.naturalWidth > 0")
    expect(page.get_by_text("Good morning and welcome").first).to_be_visible()
    expect(page.get_by_text(HOSTILE[6]).first).to_be_visible()
    page.wait_for_timeout(200)
    assert page.evaluate("window.hurt === undefined")


_MONEY = """
from IPython.display import HTML, display
from voxframe.client.response import HTTPResponse
from voxframe.client.transcript import Transcript
paid = {"id": "m", "status": "completed", "text": "It was $5 and then $6."}
paid["words"] = [{"text": text, "start": 0, "end": 9} for text in paid["text"].split()]
handle = Transcript(client.transport, "m", HTTPResponse(200, {}, json.dumps(paid).encode(), "GET", "/"))
still = HTML(voxframe.TranscriptPlayer(paid).static_html())
display(HTML("<p id=formula>It was $5 and then $6.</p>"), handle, still)"""


def test_sums_of_money_are_no_formula(in_lab):
    """JupyterLab typesets text between dollar signs, but not in a transcript or a saved widget."""
    page = in_lab.page
    page.evaluate(_SHOW, _MONEY)
    cell = page.locator(".jp-Cell").nth(1)
    expect(cell.locator("#formula mjx-container")).to_have_count(1)
    expect(cell.get_by_text("It was $5 and then $6.")).to_have_count(2)
    expect(cell.locator("mjx-container")).to_have_count(1)
    page.evaluate(_SHOW, "display(timeline)")


def test_a_notebook_saved_with_the_state_of_its_widgets_shows_them_and_holds_no_key(in_lab, lab):
    """The saved state of a player has no key given by argument or environment, although the player used it.

    Opened again and not run, the notebook has its widgets, a name that was given among them.
    """
    toggle = "window.jupyterapp.commands.execute('@jupyter-widgets/jupyterlab-manager:saveWidgetState')"
    save = "window.jupyterapp.commands.execute('docmanager:save')"
    assert in_lab.kernel("os.environ['VOXFRAME_API_KEY']") == "".join(CANARY)
    in_lab.page.evaluate(toggle)
    in_lab.page.evaluate(save)
    saved = in_lab.path.read_text()
    in_lab.page.evaluate(toggle)
    in_lab.page.evaluate(save)
    states = nbformat.reads(saved, as_version=4)["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]
    assert "Interview" in [state["state"].get("title") for state in states["state"].values()]
    assert "".join(CANARY) not in saved
    (lab.folder / "widgets" / "again.ipynb").write_text(saved)
    again = in_lab.context.new_page()
    again.goto(f"{lab.base}/lab/tree/widgets/again.ipynb?token={lab.token}&reset")
    player = again.locator(".vf-player[aria-label='Interview']").first
    expect(player.locator(".vf-row").first).to_contain_text("Good morning and welcome", timeout=WAIT_MS)
    expect(player.locator(".vf-name").first).to_have_text("Ada")
    again.close()


@pytest.mark.parametrize("audio", ["link", "embed"])
def test_an_exported_page_plays(in_lab, page, audio):
    """A page written by `to_html` opens as a file, plays from a click on a word and highlights it, without a kernel."""
    name = in_lab.kernel(f"str(Path('page-{audio}.html').resolve())", f"player.to_html('page-{audio}.html', {audio!r})")
    page.add_init_script(KEEP_SOUNDS)
    page.goto(Path(name).as_uri())
    player = page.locator(".vf-player[data-ready]")
    wait_in_page(page, "window.sounds[0].readyState >= 1")
    player.locator(".vf-w", has_text="42").click()
    expect(player.locator(".vf-w.vf-on")).to_have_text("42")
    wait_in_page(page, "window.sounds[0].currentTime > 20.8")
    player.get_by_role("button", name="Pause").click()
    expect(player.locator(".vf-w.vf-on")).not_to_have_text("42")
    assert player.locator(".vf-edit").count() == 0
    expect(player.locator(".vf-error")).to_be_hidden()


def test_an_exported_timeline_and_hostile_player(in_lab, page):
    """An exported timeline opens and zooms, and an exported player runs no text of the data."""
    folder = in_lab.kernel(
        "str(Path().resolve())",
        "hostile.corrections = {}; timeline.to_html('timeline.html'); hostile.to_html('hostile.html')",
    )
    page.goto((Path(folder) / "timeline.html").as_uri())
    page.locator(".vf-plot").focus()
    before = page.locator("canvas.vf-axis").evaluate("canvas => canvas.toDataURL()")
    page.keyboard.press("+")
    wait_in_page(page, f"document.querySelector('canvas.vf-axis').toDataURL() !== {json.dumps(before)}")
    page.goto((Path(folder) / "hostile.html").as_uri())
    assert page.locator(".vf-chapter strong").all_text_contents() == HOSTILE
    assert page.title() == HOSTILE[0]
    page.wait_for_timeout(200)
    assert page.evaluate("window.hurt === undefined")
