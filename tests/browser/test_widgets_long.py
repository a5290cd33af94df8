"""A recording of three hours in the player."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

_CLEAR = "window.jupyterapp.shell.currentWidget.content.widgets[2].outputArea.model.clear()"
_OPEN = """async () => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[2];
    cell.outputArea.future = window.kernel.requestExecute({ code: "display(big)", store_history: false });
    while (cell.node.querySelectorAll('.vf-player[data-ready] .vf-w').length < 100)
        await new Promise(requestAnimationFrame);
}"""


def test_three_hours_have_few_elements_and_scroll(in_lab):
    """A player of 30,000 words has few elements, shows text while it scrolls, and finds the word being played."""
    page = in_lab.page
    page.evaluate(_CLEAR)
    page.evaluate(_OPEN)
    big = page.locator(".vf-player[aria-label='Three hours']")
    big.scroll_into_view_if_needed()
    seen = big.evaluate("""async (root) => {
        const list = root.querySelector('.vf-reader');
        root.scrollIntoView({ block: 'center' });
        let blank = 0;
        for (let n = 0; n < 120; n++) {
            list.scrollTop += 400;
            await new Promise(requestAnimationFrame);
            const box = list.getBoundingClientRect();
            const middle = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            blank += !middle?.closest('.vf-row')?.childElementCount;
        }
        return { blank, words: root.querySelectorAll('.vf-w').length };
    }""")
    assert seen["blank"] <= 6
    assert seen["words"] < 3000
    in_lab.run("big.seek(10_700_000)")
    expect(big.locator(".vf-w.vf-on")).to_have_text(f"word{10_700_000 // 360}")
    expect(big.locator(".vf-w.vf-on")).to_be_in_viewport()
    page.wait_for_function("Math.abs(soundOf('three%20hours').currentTime - 10700) < 0.1")
    page.evaluate(_CLEAR)
