"""Run notebooks in fresh kernels and save their outputs: `python tests/notebooks/save.py [PATH ...]`.

Nothing about this machine is saved: neither the data directory of voxframe nor progress bars.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Folders that a notebook makes to work in; `tests/sanitize.cfg` has the same, so that a run compares equal.
MADE_FOLDER = re.compile(r"(/private)?/(var/folders|tmp)/[^\s'\"]+")
#: What a reader sees in place of the folder used here: the default one on Linux.
SHOWN_FOLDER = "~/.local/share/voxframe"


def still(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """Return an output without its live view; None if it has no other form, like a progress bar."""
    data = output.get("data", {})
    live = [kind for kind in data if "widget-view" in kind]
    for kind in live:
        del data[kind]
    return None if live and "text/html" not in data else output


def save(path: Path) -> None:
    """Run one notebook from top to bottom in a fresh kernel and write it back with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VOXFRAME_DATA_DIR"] = folder
        resources = {"metadata": {"path": str(path.parent)}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in map(still, cell.outputs) if output]
        for output in cell.outputs:
            if output.output_type == "stream":
                output.text = MADE_FOLDER.sub("TMP", output.text.replace(folder, SHOWN_FOLDER))
            elif "text/plain" in output.get("data", {}):
                output.data["text/plain"] = MADE_FOLDER.sub("TMP", output.data["text/plain"])
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}  # not the version that happened to run it
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for given in sys.argv[1:] or sorted(map(str, NOTEBOOKS.glob("*.ipynb"))):
        save(Path(given))
