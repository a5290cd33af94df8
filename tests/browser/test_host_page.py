"""The player on a page that has neither the styles nor the globals of JupyterLab, at three widths and in two themes."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import voxframe
from voxframe import analysis

DATA = Path(__file__).parents[2] / "data"
WORDS = DATA / "payloads" / "panel.json"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a player of a panel of four people, one with a long name."""
    path = tmp_path_factory.mktemp("host") / "player.html"
    names = {"A": "Ada Lovelace", "B": "Bartholomew Featherstonehaugh of Cholmondeley"}
    voxframe.TranscriptPlayer(WORDS, DATA / "panel.flac", names=names).to_html(path, audio="embed")
    return path


@pytest.fixture(params=[(width, theme) for width in (360, 800, 1400) for theme in ("light", "dark")], ids=str)
def page(request: pytest.FixtureRequest, browser: Browser, written: Path) -> Iterator[Page]:
    """The page in a window of a width and in a theme."""
    width, theme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    faults: list[object] = []
    page.on("pageerror", lambda fault: faults.append(fault))  # noqa: PLW0108  playwright takes no builtin
    page.goto(written.as_uri())
    page.wait_for_selector("[data-ready]")
    yield page
    assert not faults
    page.close()


def test_rows_are_even_and_nothing_overlaps(page: Page) -> None:
    """A row is as high as its text, a name is nearest to its text, and what is cut off ends in an ellipsis."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll('.vf-row')].filter((row) => row.children.length).map((row) => {
            const box = (part) => [part.getBoundingClientRect().top, part.getBoundingClientRect().bottom];
            const [text, who] = [row.querySelector('.vf-text'), row.querySelector('.vf-tools')];
            return { row: box(row), text: box(text), who: box(who) };
        })"""
    )
    assert len(rows) > 5
    for row, after in pairwise(rows):
        assert row["row"][1] <= after["row"][0] + 0.5
        assert row["text"][1] <= row["row"][1]
        narrow = row["who"][1] <= row["text"][0] + 0.5
        extra = row["who"][1] - row["who"][0] if narrow else 0
        assert row["row"][1] - row["row"][0] <= max(row["text"][1] - row["text"][0], 25) + extra + 14
        assert abs(row["text"][0] - row["who"][0]) < abs(after["text"][0] - row["who"][0])
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.voxframe :is(button, span, p, strong)')].filter((part) =>
            part.clientWidth && part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow === 'hidden'
            && getComputedStyle(part).textOverflow !== 'ellipsis' && !part.classList.contains('vf-hidden'))
            .map((part) => part.outerHTML)"""
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_search_finds_what_the_analysis_finds(page: Page) -> None:
    """The search of a player has the hits of `find_words`: whole words, with wildcards and phrases."""
    words = voxframe.load_words(WORDS)
    for query in ("tree", "street", "the *", "stre*", "Main Street", "main-street", "mainstreet", "cars"):
        page.fill(".vf-search", query)
        count = len(analysis.find_words(words, query))
        shown = page.inner_text(".vf-found")
        assert shown == "No matches" if not count else shown.endswith(f" of {count}"), query


def test_the_waveform_zooms_and_a_word_plays(page: Page) -> None:
    """The waveform is drawn, "+" shows a part and the map of the whole, and a click on a word plays from it."""
    inked = """() => { const strip = document.querySelector('.vf-strip'), ink = strip.getContext('2d');
        const wave = ink.getImageData(0, 20 * devicePixelRatio, strip.width, 50 * devicePixelRatio).data;
        return wave.filter((value, n) => n % 4 === 3 && value).length; }"""
    page.wait_for_function(f"({inked})() > 1000")
    assert page.locator(".vf-map").is_hidden()
    page.press(".vf-stage", "+")
    page.locator(".vf-map").wait_for(state="visible")
    word = page.locator(".vf-row:nth-of-type(2) .vf-w").first
    word.click()
    page.wait_for_selector(".vf-play[aria-label=Pause]")
    page.press(".vf-stage", " ")
    page.press(".vf-stage", "0")
    page.locator(".vf-map").wait_for(state="hidden")
