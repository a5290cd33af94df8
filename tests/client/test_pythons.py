"""The client under every Python at hand: a script and a notebook, with the embedded service of the running one.

Give others, each with voxframe, ipykernel, nbclient and uvloop installed, in VOXFRAME_TEST_PYTHONS (a list as in PATH).
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import av
import nbformat
import pytest

from voxframe.client import Client, connect
from voxframe.settings import ENVIRONMENT

pytestmark = [pytest.mark.speech, pytest.mark.long]

PYTHONS = [sys.executable, *filter(None, os.environ.get("VOXFRAME_TEST_PYTHONS", "").split(os.pathsep))]
INTERVIEW = Path(__file__).parents[2] / "data" / "interview.flac"
SECONDS = 3
PROMISED = ([3, 11], [3, 12], [3, 13])

#: Every way to wait, in a script. It prints what each of them heard.
SCRIPT = """
import asyncio, json, sys, threading
import voxframe
before = asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete
client, wav = voxframe.connect(), sys.argv[1]
job = client.submit(wav)
heard, streamed = {}, {}

async def wait():
    return (await client.wait_async(job.id)).text

async def listen():
    async with client.stream(wav, realtime=False) as session:
        return [m.text async for m in session if m.message_type == "FinalTranscript"]

async def both():
    return await asyncio.gather(wait(), listen())

heard["script"] = client.wait(job.id).text
with client.stream(wav, realtime=False) as session:
    streamed["script"] = [m.text for m in session if m.message_type == "FinalTranscript"]

def in_thread():
    heard["thread"] = client.wait(job.id).text
    streamed["thread"] = [final.text for final in client.stream(wav, realtime=False).wait()]

thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
heard["asyncio"], streamed["asyncio"] = asyncio.run(both())
if sys.platform != "win32":
    import uvloop
    heard["uvloop"], streamed["uvloop"] = uvloop.run(both())
assert before == (asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete)
words = voxframe.load_words(job)
print(json.dumps({"version": sys.version_info[:2], "heard": heard, "streamed": streamed, "words": len(words)}))
"""

#: The same in cells, where a loop runs already.
CELLS = [
    "import asyncio, json, sys\nimport voxframe\nclient, wav = voxframe.connect(), WAV",
    "job = client.transcribe(wav)",
    "awaited = await client.transcribe_async(wav)",
    "finals = [m.text for m in client.stream(wav, realtime=False) if m.message_type == 'FinalTranscript']",
    "again = [m.text async for m in client.stream(wav, realtime=False) if m.message_type == 'FinalTranscript']",
    "voxframe.allow_nested_loops()\nnested = asyncio.run(client.wait_async(job.id))",
    "with client.stream(wav, realtime=False) as session:\n    rest = session.wait()",
    (
        "print(json.dumps({'version': sys.version_info[:2], 'heard': [job.text, awaited.text, nested.text], "
        "'streamed': [finals, again, [final.text for final in rest]]}))"
    ),
]
NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
assert not [o for c in notebook.cells for o in c.outputs if o.output_type == "error" or o.get("name") == "stderr"]
print(notebook.cells[-1].outputs[0]["text"])
"""


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ENVIRONMENT.values():
            patch.delenv(name, raising=False)
        with connect(data_dir=tmp_path_factory.mktemp("embedded")) as client:
            yield client


@pytest.fixture(scope="module")
def wav(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a few seconds of the interview as a plain wav file, which needs no decoder."""
    path = tmp_path_factory.mktemp("audio") / "talk.wav"
    with av.open(str(INTERVIEW)) as given, av.open(str(path), "w") as made:
        stream = made.add_stream("pcm_s16le", rate=16_000, layout="mono")
        resampler = av.AudioResampler("s16", "mono", 16_000)
        for frame in given.decode(audio=0):
            if frame.time > SECONDS:
                break
            for out in resampler.resample(frame):
                made.mux(stream.encode(out))
    return path


@pytest.fixture(scope="module")
def expected(embedded: Client, wav: Path) -> str:
    """Return the transcript made with the running Python."""
    text = embedded.transcribe(wav, timeout=60).text
    assert text
    return text


def run(python: str, code: str, argument: Path, client: Client, folder: Path) -> dict:
    """Run a program in another Python and return its output."""
    assert client.settings.api_key is not None
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VOXFRAME_", "JUPYTER"))}
    environment |= {
        ENVIRONMENT["base_url"]: client.base_url,
        ENVIRONMENT["api_key"]: client.settings.api_key.reveal(),
        ENVIRONMENT["data_dir"]: str(folder),
        "PATH": os.pathsep.join([str(Path(python).parent), environment["PATH"]]),
        "MPLBACKEND": "agg",
    }
    command = [python, "-W", "error::RuntimeWarning", "-c", code, str(argument)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("python", PYTHONS)
def test_scripts_of_other_pythons(python: str, embedded: Client, wav: Path, expected: str, tmp_path: Path) -> None:
    """A job and a stream give the same text in a script, in a thread, on asyncio and on uvloop."""
    said = run(python, SCRIPT, wav, embedded, tmp_path)
    ways = ["script", "thread", "asyncio"] + ["uvloop"] * (sys.platform != "win32")
    assert said["version"] in PROMISED
    assert said["heard"] == dict.fromkeys(ways, expected)
    assert list(said["streamed"]) == ways
    assert all(finals and finals == said["streamed"]["script"] for finals in said["streamed"].values())
    assert said["words"] == len(expected.split())


@pytest.mark.parametrize("python", PYTHONS)
def test_notebooks_of_other_pythons(python: str, embedded: Client, wav: Path, expected: str, tmp_path: Path) -> None:
    """Notebook cells that call, await and nest the client print the same text and nothing on stderr."""
    cells = [nbformat.v4.new_code_cell(code.replace("WAV", repr(str(wav)))) for code in CELLS]
    path = tmp_path / "notebook.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    said = run(python, textwrap.dedent(NOTEBOOK), path, embedded, tmp_path)
    assert said["version"] in PROMISED
    assert said["heard"] == [expected] * 3
    assert said["streamed"][0]
    assert said["streamed"] == [said["streamed"][0]] * 3
