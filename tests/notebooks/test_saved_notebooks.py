"""The saved notebooks, as a reader sees them without running them."""

import json
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_notebooks_are_numbered():
    """The names of the notebooks give their order: they begin with 00, 01, 02, ... without a gap."""
    numbers = [re.match(r"(\d\d)_", path.name)[1] for path in NOTEBOOKS]
    assert numbers == [f"{n:02}" for n in range(len(NOTEBOOKS))]


@each_notebook
def test_a_notebook_was_saved_after_one_run_from_top_to_bottom(path):
    """Cells are numbered 1, 2, 3, ... and none of them failed."""
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "error"]


def shown_kinds(path: Path) -> set[str]:
    return {kind for cell in code_cells(path) for o in cell.outputs for kind in o.get("data", {})}


@each_notebook
def test_a_saved_notebook_shows_tables_and_no_widgets(path):
    """Saved notebooks contain tables, and no widgets, which need a kernel."""
    kinds = shown_kinds(path)
    assert "text/html" in kinds
    assert not any("widget" in kind for kind in kinds)


def test_the_saved_quickstart_shows_its_timeline():
    """The saved quickstart contains its plot."""
    (quickstart,) = (path for path in NOTEBOOKS if path.stem == "01_quickstart")
    assert "image/png" in shown_kinds(quickstart)


def test_the_questions_are_short():
    """Each of the thirty questions is numbered and followed by one cell of three to eight lines with its result."""
    cells = nbformat.read(NOTEBOOKS[0], as_version=4).cells
    asked = [n for n, cell in enumerate(cells) if cell.source.startswith("### ")]
    assert [int(re.match(r"### (\d+)\. .*\?$", cells[n].source)[1]) for n in asked] == list(range(1, 31))
    assert all(3 <= len(cells[n + 1].source.splitlines()) <= 8 for n in asked)
    assert all(cells[n + 1].cell_type == "code" and cells[n + 1].outputs for n in asked)


@each_notebook
def test_a_saved_notebook_has_no_path_address_or_key(path):
    """Outputs have no path of the machine, no address but loopback, and nothing as long as a key."""
    for cell in code_cells(path):
        shown = json.dumps([{k: v for k, v in o.get("data", o).items() if k != "image/png"} for o in cell.outputs])
        assert not re.search(r"/(home|root|tmp|Users|var|work)/", shown)
        assert not re.search(r"https?://(?!127\.0\.0\.1|\.\.\.|www\.w3\.org/2000/svg)", shown)  # the name of SVG
        assert not re.search(r"(?<![\w-])\w[\w-]{39,}", shown)
