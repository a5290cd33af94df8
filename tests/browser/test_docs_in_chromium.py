"""The reference of `voxframe docs` in a browser."""

import pytest

from voxframe.cli.docs import page as reference

pytestmark = pytest.mark.browser


@pytest.fixture
def docs(page, serve):
    """The reference, opened."""
    page.goto(serve({"/": ("text/html; charset=utf-8", reference().encode())}))
    return page


def shown(docs) -> set[str]:
    """Return the headings of the entries that can be seen."""
    visible = "entries => entries.filter((entry) => entry.checkVisibility()).map((entry) => entry.textContent)"
    return set(docs.locator("article > section > h3").evaluate_all(visible))


def test_it_shows_a_subject_at_a_time(docs):
    """It starts with the contents; a link shows the entries of its subject and scrolls to its own."""
    assert shown(docs) == set()
    docs.get_by_text("Tables", exact=True).first.click()
    assert {"words", "utterances"} <= shown(docs)
    assert "load_words" not in shown(docs)
    docs.locator("summary", has_text="Python").click(position={"x": 3, "y": 5})
    docs.locator("nav a", has_text="load_words").click()
    assert "load_words" in shown(docs)
    assert "utterances" not in shown(docs)
    assert docs.locator("#python-load_words").evaluate("e => Math.abs(e.getBoundingClientRect().top) < innerHeight")


def test_the_search_finds_all_words_in_all_subjects(docs):
    """Entries that have all words are shown, in any case; a search without a result says so."""
    docs.get_by_label("Search").fill("SpeakersExpected speakers_expected")
    assert "Nothing has all these words." in docs.inner_text("body")
    docs.get_by_label("Search").fill("speakers_EXPECTED")
    assert "options" in shown(docs)
    assert "Nothing has all these words." not in docs.inner_text("body")
    docs.get_by_label("Search").fill("")
    assert shown(docs) == set()
