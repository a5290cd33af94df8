"""A recording of three hours in the player, measured in the page."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

_CLEAR = "window.jupyterapp.shell.currentWidget.content.widgets[2].outputArea.model.clear()"
_OPEN = """async () => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[2];
    const begin = performance.now();
    cell.outputArea.future = window.kernel.requestExecute({ code: "display(big)", store_history: false });
    while (cell.node.querySelectorAll('.vf-player[data-ready] .vf-w').length < 100)
        await new Promise(requestAnimationFrame);
    return performance.now() - begin;
}"""


def test_three_hours_open_in_under_a_second_and_scroll_smoothly(in_lab):
    """A player of 30,000 words opens within a second, has few elements, and scrolls as fast as plain text."""
    page = in_lab.page
    opened = []
    while not opened or (min(opened) >= 1000 and len(opened) < 5):  # another process may have had the processor
        page.evaluate(_CLEAR)
        opened.append(page.evaluate(_OPEN))
    print(f"30,000 words on the page after {min(opened):.0f} ms")
    assert min(opened) < 1000
    big = page.locator(".vf-player[aria-label='Three hours']")
    big.scroll_into_view_if_needed()
    measured = big.evaluate("""async (root) => {
        const list = root.querySelector('.vf-reader');
        const plain = document.createElement('div');
        plain.style.cssText = `height: ${list.clientHeight}px; overflow: auto`;
        for (let n = 0; n < 2400; n++) plain.append(Object.assign(document.createElement('p'), {
            textContent: Array.from({ length: 13 }, (_, m) => `word${13 * n + m}`).join(' ') }));
        root.after(plain);
        let blank = 0;
        const median = async (scrolled, check) => {
            const gaps = [];
            for (let n = 0, last = performance.now(); n < 60; n++) {
                scrolled.scrollTop += 400;
                await new Promise(requestAnimationFrame);
                gaps.push(performance.now() - last);
                last = performance.now();
                check();
            }
            return gaps.sort((a, b) => a - b)[30];
        };
        const middle = () => {
            const box = list.getBoundingClientRect();
            return document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        };
        plain.scrollIntoView({ block: 'center' });
        const peer = await median(plain, () => {});
        plain.remove();
        root.scrollIntoView({ block: 'center' });
        const check = () => (blank += !middle()?.closest('.vf-row')?.childElementCount);
        const player = Math.min(await median(list, check), await median(list, check));
        return { player, peer, blank, words: root.querySelectorAll('.vf-w').length };
    }""")
    print(f"scrolling: {measured}, ms a frame (median), the peer 2,400 plain paragraphs")
    assert measured["player"] < 4 * measured["peer"] + 50
    assert measured["blank"] <= 6
    assert measured["words"] < 3000
    in_lab.run("big.seek(10_700_000)")
    expect(big.locator(".vf-w.vf-on")).to_have_text(f"word{10_700_000 // 360}")
    expect(big.locator(".vf-w.vf-on")).to_be_in_viewport()
    page.wait_for_function("Math.abs(soundOf('three%20hours').currentTime - 10700) < 0.1")
    page.evaluate(_CLEAR)
