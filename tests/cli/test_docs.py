"""`voxframe docs`: the reference page."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

import voxframe
from voxframe.cli import COMMANDS, docs, main
from voxframe.errors import VoxframeError
from voxframe.options import option_rows
from voxframe.schema import TABLES


class Page(HTMLParser):
    """The ids, links, tags and text of a page; an element that is not closed is an error."""

    VOID = frozenset({"meta", "br", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.sources, self.texts = [], [], [], []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name == "href"]
        self.sources += [value for name, value in attrs if name == "src"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    """The page that the command writes."""
    path = tmp_path_factory.mktemp("docs") / "reference.html"
    assert main(["docs", "--out", str(path)]) == 0
    return Page(path.read_text("utf-8"))


def test_the_page_has_everything(page: Page) -> None:
    """Every command, public name, table, job option and error has a place."""
    text = set(page.texts)
    assert {f"voxframe {name}" for name in COMMANDS} <= text
    assert set(voxframe.__all__) <= text
    assert set(TABLES) <= text
    assert {row[0] for row in option_rows()} <= text
    errors = {n for n, e in vars(voxframe.errors).items() if isinstance(e, type) and issubclass(e, VoxframeError)}
    assert errors <= text
    assert "Return one row per word, in time order." in text


def test_the_page_works_offline(page: Page) -> None:
    """All links lead to a place in the page, ids are unique, and nothing is loaded."""
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} == set(page.ids)
    assert page.sources == []
    assert not page.tags & {"link", "img", "iframe"}


def test_docstrings_and_signatures_are_escaped() -> None:
    """Markup in a docstring, an item, an example or a default is shown as text."""

    def hostile(a: "<b>" = "<i>'") -> "<u>":  # noqa: F722
        """Return <script>alert(1)</script> and `<code>`.

        Args:
            a: A <b>bold</b> one.

        Example:
            >>> hostile("<p>")
        """

    shown = docs.docstring(hostile) + docs._signature("hostile", hostile)
    found = Page(shown)
    assert found.tags == {"p", "code", "h5", "dl", "dt", "dd", "pre"}
    assert 'hostile(a: <b> = "<i>\'") -> <u>' in "".join(found.texts)


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path, capsys) -> None:
    """The error names the file and the option."""
    (tmp_path / "file").touch()
    assert main(["docs", "--out", str(tmp_path / "file" / "x.html")]) == 2
    assert "--out" in capsys.readouterr().err
