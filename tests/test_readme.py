"""The examples of README.md, run as a reader runs them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from tests.embedded import embedded
from tests.engine.test_transcription import cut, truth

ROOT = Path(__file__).parents[1]
#: Length of the recordings: enough for a fourth turn, which an example corrects.
SECONDS = 30


@pytest.mark.long
@pytest.mark.speech
@pytest.mark.filterwarnings("ignore::UserWarning")  # what a format cannot hold, and no match of a word
def test_every_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audio_folder: Path, model_folder: Callable[[str], Path]
) -> None:
    """The Python examples run one after the other, on the beginnings of the recordings of data/ and transcripts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXFRAME_MODEL", str(model_folder("tiny.en")))  # it is three times as fast
    Path("recordings").mkdir()
    for name in ("call", "interview", "panel"):
        cut(name, Path(f"recordings/{name}.flac"), SECONDS)
    shutil.copytree(ROOT / "data/payloads", "old", ignore=shutil.ignore_patterns("nano"))
    shutil.copy("recordings/interview.flac", ".")
    shutil.copy("old/interview.json", "a.json")
    files = '["a.json", "whisper.json", "b.srt", "c.eaf"]'
    readme = (ROOT / "README.md").read_text("utf-8").replace(files, '"a.json"').replace(".mp3", ".flac")
    df = pd.DataFrame({"recording": ["call", "interview", "panel"], "customer": ["Ash", "Birch", "Birch"]})
    with embedded(tmp_path / "data") as client:
        monkeypatch.setattr(voxframe, "connect", lambda: client)
        monkeypatch.setattr(voxframe, "microphone", lambda: audio_folder / "ss-0880.wav")
        names = {"df": df}
        for example in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            exec(example, names)
    said = [word for turn in truth("interview")["turns"] for word in turn["words"]]
    assert len(names["words"]) > 0.8 * sum(word["end_ms"] < SECONDS * 1000 for word in said)
    assert names["message"].message_type == "SessionTerminated"
    assert {path.name for path in Path("captions").glob("*.vtt")} == {"call.vtt", "interview.vtt", "panel.vtt"}
