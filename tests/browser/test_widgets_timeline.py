"""The timeline in JupyterLab and in Voila."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import drag, pixel, rgb
from voxframe.colors import COLORS

pytestmark = pytest.mark.browser


def test_a_drag_selects_rows_and_a_click_moves_the_player(notebook):
    """The rows below a drag are the selection, also in the player; a click sets the time of both."""
    page, timeline = notebook.page, notebook.timeline
    stage = timeline.locator(".vf-stage")
    drag(page, stage, 0.3, 0.5)
    low, high = notebook.until("timeline.interval")
    rows = notebook.kernel("timeline.selection['utterance_idx'].to_list()")
    wanted = notebook.kernel(
        f"[int(i) for i, a, b in zip(turns.utterance_idx, turns.start_ms, turns.end_ms) if a < {high} and b > {low}]"
    )
    assert rows == wanted
    assert len(rows) > 2
    expect(timeline.locator(".vf-status")).to_have_text(re.compile(rf"· {len(rows)} rows$"))
    assert notebook.until("player.interval") == [low, high]
    box = stage.bounding_box()
    stage.click(position={"x": box["width"] * 0.75, "y": 10})
    time = notebook.until("player.time")
    assert time == pytest.approx(0.75 * notebook.kernel("timeline._until"), abs=400)
    notebook.wait_heard(f"Math.abs(sound.currentTime * 1000 - {time}) < 60")


def test_the_wheel_zooms_and_the_canvas_shows_what_is_there(notebook):
    """Ctrl + wheel halves the view around the pointer; a bar of the zoomed view has its speaker's colour."""
    page, timeline = notebook.page, notebook.timeline
    stage = timeline.locator(".vf-stage")
    stage.scroll_into_view_if_needed()
    until, box = notebook.kernel("timeline._until"), stage.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 10)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    view = notebook.until("timeline.view")
    assert view[0] < 0.75 * until < view[1]
    assert view[1] - view[0] == pytest.approx(until / 2, rel=0.02)
    turn = notebook.kernel(
        "turns.query('speaker == \"B\" and start_ms > @timeline.view[0]')[['start_ms', 'end_ms']].iloc[0].to_list()"
    )
    part = (turn[1] - 300 - view[0]) / (view[1] - view[0])
    assert pixel(timeline.locator("canvas.vf-lanes"), part, 28 + 6) == rgb(COLORS[1])
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    notebook.until("timeline.view[0]", lambda begin: begin < view[0])


def test_keys_zoom_pan_select_and_say_who_speaks(notebook):
    """Keys zoom, pan and select; the speakers at the cursor are described for screen readers."""
    page, plot = notebook.page, notebook.timeline.locator(".vf-plot")
    plot.focus()
    page.keyboard.press("+")
    zoomed = notebook.until("timeline.view")
    page.keyboard.press("PageDown")
    notebook.until("timeline.view", lambda view: view[0] == zoomed[1])
    page.keyboard.press("0")
    notebook.until("timeline.view", lambda view: view == [])
    page.keyboard.press("ArrowRight")
    time = notebook.until("timeline.time")
    expect(plot).to_have_attribute("aria-description", re.compile(r"^0:02\.\d: Ada$"))
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    notebook.until("timeline.interval", lambda interval: interval == [time, pytest.approx(3 * time, abs=3)])
    page.keyboard.press("Escape")
    notebook.until("timeline.interval", lambda interval: interval == [])
    page.keyboard.press("End")
    assert notebook.until("timeline.time", lambda now: now > 100_000) == notebook.kernel("timeline._until")


def test_a_million_spans_are_drawn(in_lab):
    """Of a million spans, the overview has both lanes, and a view of 16 seconds has the colours of its bars."""
    million = in_lab.page.locator(".vf-timeline[aria-label='Million']")
    million.scroll_into_view_if_needed()
    lanes = million.locator("canvas.vf-lanes")
    assert pixel(lanes, 0.5, 14) != [0, 0, 0]
    in_lab.run("million.view = [20_000_000, 20_016_000]")
    in_lab.page.wait_for_timeout(100)
    # A bar covers three quarters of its 40 ms, so one of two places in it half a period apart is on a bar.
    assert rgb(COLORS[0]) in [pixel(lanes, x, 14) for x in (0.12, 0.12 + 20 / 16_000)]
    assert rgb(COLORS[1]) in [pixel(lanes, x, 28 + 14) for x in (0.37, 0.37 + 20 / 16_000)]
