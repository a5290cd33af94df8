"""A key from the environment or typed in is in no file afterwards; `with_canary` checks the same for every notebook."""

import base64
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from tests.notebooks.canary import CANARY, traces
from tests.server.conftest import Service, silence

pytestmark = pytest.mark.long

#: Whatever shows, keeps, sends or exports anything, also where it fails, with the log as talkative as it can be.
EVERYTHING = [
    """import logging, os
logging.basicConfig(level=logging.DEBUG, filename="debug.log")
import voxframe
client = voxframe.connect()
print(client, client.settings, vars(client))
client""",
    """corpus = voxframe.Corpus("corpus")
silent = corpus.transcribe("silence.wav", client=client)
corpus.add(payload)
handle = client.transcript(silent)
print(handle, handle.json(), client.list())
handle""",
    """print(client.summarize(input_text="It rains."))
corpus.jobs()""",
    """corpus.search("tree")
for kind, path in ((None, "set"), ("csv", "csv"), ("jsonl", "jsonl"), ("vtt", "captions"), ("rttm", "rttm")):
    corpus.export(path, **({} if kind is None else {"format": kind}))
corpus.snapshots.create(progress=False)
corpus""",
    """transcript = [name for name in corpus.ids() if name != silent][0]
turns = corpus.table("utterances", transcript)
turns.vox.plot_timeline();""",
    """shown = [
    voxframe.TranscriptPlayer(transcript, corpus=corpus, audio="silence.wav"),
    voxframe.Timeline(turns),
    voxframe.WordSearch(corpus, query="tree"),
    voxframe.AskPanel(corpus, client, transcripts=[silent]),
    voxframe.LiveTranscript(client),
    voxframe.SubmitForm(corpus, client),
    voxframe.SubmitForm(corpus),
]
typed = {"do": "secret", "name": "api_key", "text": os.environ["VOXFRAME_API_KEY"]}
shown[-1]._on_browser_message(typed, [])
for widget in shown:
    display(widget)
    print(widget.code, widget.result)
shown[0].to_html("player.html")
panel = shown[3]
panel.prompt = "Does it rain?"
panel.ask()
panel.wait(60)
print(panel.error, panel.result)""",
    "client.transcript('there-is-none').text",
    "voxframe.connect(base_url='http://127.0.0.1:1').list()",
    "voxframe.connect(llm_prefix='elsewhere').summarize(input_text='It rains.')",
]


def test_a_trace_would_be_found(tmp_path):
    """The search that the other tests rely on finds the canary in every kind of file."""
    (tmp_path / "a.log").write_text(f"Authorization: {CANARY}")
    (tmp_path / "b.ipynb").write_text(base64.b64encode(f"user:{CANARY}".encode()).decode())
    (tmp_path / "c.json.zst").write_bytes(zstandard.compress(f"{CANARY}\n".encode() * 100))
    pq.write_table(pa.table({"text": [CANARY] * 1000}), tmp_path / "d.parquet", compression="zstd")
    with sqlite3.connect(tmp_path / "e.sqlite") as db:
        db.execute("create table t as select ? as x", [CANARY])
    (tmp_path / "f.txt").write_text(quote(f"key={CANARY}", safe=""))
    (tmp_path / "g.txt").write_text("canary")
    assert traces(tmp_path) == ["a.log", "b.ipynb", "c.json.zst", "d.parquet", "e.sqlite", "f.txt"]


ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """Run a notebook against a service that requires the canary, and save it with the state of its widgets."""
    service = Service(tmp_path / "service", key=CANARY)
    (tmp_path / "work" / "tmp").mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("VOXFRAME_")} | {
        "VOXFRAME_BASE_URL": service.url,
        "VOXFRAME_API_KEY": CANARY,
        "VOXFRAME_DATA_DIR": str(tmp_path / "data"),
        "TMPDIR": str(tmp_path / "work" / "tmp"),  # where notebooks make their folders
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }

    def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
        client = NotebookClient(notebook, timeout=280, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute(env=env)
        from nbconvert import HTMLExporter  # in the extra `long`, as everything that only long tests need

        nbformat.write(notebook, tmp_path / "work" / "saved.ipynb")
        (tmp_path / "work" / "saved.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
        return notebook

    yield execute
    service.stop()


def failures(notebook: nbformat.NotebookNode) -> list[str]:
    return [o.ename for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]


def test_no_use_leaves_a_trace_of_the_key(run, tmp_path):
    """A key that is shown, logged, exported, displayed and part of errors is in no file, although it was used."""
    (tmp_path / "work" / "silence.wav").write_bytes(silence())
    payload = ROOT / "data" / "payloads" / "interview.json"
    cells = [new_code_cell(source.replace("payload)", f"{str(payload)!r})")) for source in EVERYTHING]
    for cell in cells[-3:]:
        cell.metadata["tags"] = ["raises-exception"]
    notebook = run(new_notebook(cells=cells), tmp_path / "work")
    assert failures(notebook) == ["NotFoundError", "ServiceUnreachableError", "NotFoundError"]
    models = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert len(models) > 20
    kept = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert {".log", ".ipynb", ".html", ".parquet", ".sqlite", ".zst", ".csv", ".jsonl", ".vtt", ".rttm"} <= kept
    assert traces(tmp_path) == []


def test_a_notebook_that_shows_the_key_fails(tmp_path):
    """The run of the notebooks fails if one of them shows the key."""
    shows = new_code_cell("import os\nprint(os.environ['VOXFRAME_API_KEY'])")
    nbformat.write(new_notebook(cells=[shows]), tmp_path / "shown.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "tests.notebooks.with_canary", "-p", "no:cacheprovider"]
    command += ["--nbval-lax", str(tmp_path)]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # in one process
    ran = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1, ran.stdout
    assert "1 passed" in ran.stdout
    assert "the key: messages.json" in ran.stdout
