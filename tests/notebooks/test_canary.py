"""A key given by environment is used, and is nowhere afterwards: a canary that would be seen wherever it went."""

import base64
import gzip
import os
import sqlite3
import zipfile
from pathlib import Path
from urllib.parse import quote

import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook
from tests.local.conftest import Service, silence

CANARY = "canary+7f3c9e51/b2d84a06"
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Notebooks that are run with the canary. VOXFRAME_CANARY_ALL=1 takes all, which is minutes of speech, but 02: it is
#: notified at a port of its own, which a service that was started before it does not allow.
ALL = os.environ.get("VOXFRAME_CANARY_ALL") == "1"
RUN = sorted(path for path in NOTEBOOKS.glob("*.ipynb" if ALL else "05_*.ipynb") if not path.name.startswith("02_"))

#: Whatever shows, keeps, sends or exports anything, also where it fails, with the log as talkative as it can be.
EVERYTHING = [
    """import logging, os
logging.basicConfig(level=logging.DEBUG, filename="debug.log")
import voxframe
client = voxframe.connect()
print(client, client.settings, vars(client))
client""",
    """corpus = voxframe.Corpus("corpus")
silent = corpus.transcribe(client, "silence.wav")
corpus.add(payload)
handle = client.transcript(silent)
print(handle, handle.json(), client.list())
handle""",
    """print(client.summarize(input_text="It rains."))
corpus.jobs()""",
    """corpus.search("tree")
for kind, path in ((None, "set"), ("csv", "csv"), ("jsonl", "jsonl"), ("vtt", "captions"), ("rttm", "rttm")):
    corpus.export(path, **({} if kind is None else {"format": kind}))
corpus.snapshot(progress=False)
corpus""",
    """transcript = [name for name in corpus.ids() if name != silent][0]
turns = corpus.table("utterances", transcript)
turns.vox.timeline();""",
    """shown = [
    voxframe.TranscriptPlayer(transcript, corpus=corpus, audio="silence.wav"),
    voxframe.Timeline(turns),
    voxframe.WordSearch(corpus, query="tree"),
    voxframe.AskPanel(corpus, client, transcripts=[silent]),
    voxframe.LiveTranscript(client),
    voxframe.SubmitForm(corpus, client),
    voxframe.SubmitForm(corpus),
]
shown[-1]._key._typed(None, {"text": os.environ["VOXFRAME_API_KEY"]}, [])
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


def traces(folder: Path) -> list[str]:
    """Files below a folder that hold the canary, plain or encoded, looked into where they are compressed."""
    plain = CANARY.encode()
    forms = {plain, plain[::-1], quote(CANARY, safe="").encode(), CANARY.encode("utf-16-le"), plain.hex().encode()}
    forms |= {base64.b64encode(b"x" * n + plain)[4:-4] for n in range(3)}
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in content for content in contents(path) for form in forms)
    ]


def contents(path: Path) -> list[bytes]:
    """The bytes of a file, and what they stand for."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        table = pq.read_table(path, partitioning=None)
        return [data, repr(table.to_pydict()).encode(), repr(table.schema.metadata).encode()]
    if data[:4] == zstandard.FRAME_HEADER or path.suffix == ".zst":
        return [data, zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 26)]
    if data[:2] == b"\x1f\x8b":
        return [data, gzip.decompress(data)]
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(path) as archive:
            return [data, *(archive.read(name) for name in archive.namelist())]
    if data[:15] == b"SQLite format 3":
        with sqlite3.connect(path) as db:
            return [data, "\n".join(db.iterdump()).encode()]
    return [data]


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


@pytest.fixture
def run(tmp_path):
    """Runs a notebook against a service that wants the canary, and saves it with the state of its widgets."""
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
        nbformat.write(notebook, tmp_path / "work" / "saved.ipynb")
        (tmp_path / "work" / "saved.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
        return notebook

    yield execute
    service.stop()


def failures(notebook: nbformat.NotebookNode) -> list[str]:
    return [o.ename for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]


def test_everything_leaves_no_trace_of_the_key(run, tmp_path):
    """Shown, logged, kept, exported, displayed and failed with: the key is in no file, and it was used."""
    (tmp_path / "work" / "silence.wav").write_bytes(silence())
    payload = Path(__file__).parents[2] / "data" / "payloads" / "interview.json"
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


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_a_notebook_leaves_no_trace_of_the_key(path, run, tmp_path):
    """A notebook of the project, run with a key in the environment and saved with widget state, holds none of it."""
    notebook = run(nbformat.read(path, as_version=4), tmp_path / "work")
    assert failures(notebook) == []
    assert notebook.metadata["widgets"]
    assert traces(tmp_path) == []
