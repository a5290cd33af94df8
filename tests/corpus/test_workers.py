import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import table_files

import voxframe
from voxframe.corpus import workers
from voxframe.corpus.archive import Archive
from voxframe.corpus.workers import StoringProcesses, Task
from voxframe.errors import CorpusError, PayloadError

_COUNT = 80  # more than are added without other processes


def raw_payload(name: str, text: str = "word", **more: object) -> bytes:
    """Return a payload of one word."""
    words = [{"text": text, "start": 0, "end": 1, "confidence": 0.5, "speaker": "A"}]
    return json.dumps({"id": name, "status": "completed", "words": words} | more).encode()


def _globbed(path: Path) -> list[str]:
    return [i for file in path.glob("tables/words/*.parquet") for i in pq.read_table(file)["transcript_id"].to_pylist()]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, also on one core."""
    monkeypatch.setattr("voxframe.corpus.workers.cores", lambda: 2)


@pytest.mark.usefixtures("two")
def test_many_payloads_are_added_by_several_processes(tmp_path: Path) -> None:
    """The result is that of one process: counts, the order of what was left out, and one version of each id."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    names = [f"t{number:03}" for number in range(_COUNT)]
    sources = [raw_payload(name) for name in names]
    sources[40:40] = [b"{}", raw_payload("t020"), raw_payload("t021", "other")]
    sources += [
        raw_payload("t079", "other"),
        json.dumps({"id": "t079", "sentences": []}).encode(),
        raw_payload(names[0]),
    ]
    added = corpus.add(sources)
    assert (added.added, added.known) == (_COUNT + 1, 2)
    assert [name.split()[1] for name, _ in added.left_out] == ["40", "42", str(_COUNT + 3)]
    assert corpus.table("words")["text"].to_list() == ["word"] * _COUNT
    assert sorted(_globbed(corpus.path)) == names
    assert len(table_files(corpus, "words")) <= 2  # one if the other process began too late
    assert corpus.raw.stale() == []
    assert corpus.add(sources, replace=True).added == 2
    assert corpus.table("words", ["t021", "t079", "t001"])["text"].to_list() == ["other", "other", "word"]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("several", [False, True])
def test_payloads_that_go_on_otherwise_than_they_begin(tmp_path: Path, several: bool) -> None:
    """The id before the words is not trusted: unknown fields, another id, damage and further payloads are found."""

    def text(name: str, more: str = "") -> str:
        first = f'{{"id": "{name}", "status": "completed", "audio_url": "https://a.example/{name}.mp3"'
        return f'{first}, "words": [{{"text": "{name}", "start": 0, "end": 1}}]{more}}}'

    plain = [text(f"p{number:03}") for number in range(_COUNT if several else 4)]
    odd = [
        text("first", ', "id": "second"'),
        text("new", ', "mood": "calm"'),
        text("gone", ', "utterances": [{]'),
        f"{text('line1')}\r{text('line2')}",
        text("queued", ', "status": "queued"'),
        text("late", ', "status": "completed"').replace("completed", "queued", 1),
    ]
    sources = [*plain[:2], *odd, *plain[2:], plain[0], text("p001", ', "punctuate": true')]
    file = tmp_path / "file.json"
    file.write_text(text("in_file", ', "mood": "calm"'))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    added = corpus.add([file, *(source.encode() for source in sources)])
    assert (added.added, added.transcripts, added.known) == (len(plain) + 6, len(plain) + 6, 1)
    reasons = {int(name.split()[1]): reason for name, reason in added.left_out}
    assert [*reasons] == [5, 7, len(sources)]
    assert "finished" in reasons[7]
    assert "another payload of 'p001'" in reasons[len(sources)]
    words = corpus.table("words").set_index("transcript_id")["text"].to_dict()
    assert words == {f"p{n:03}": f"p{n:03}" for n in range(len(plain))} | {
        "in_file": "in_file", "second": "first", "new": "new", "line1": "line1", "line2": "line2", "late": "late"
    }  # fmt: skip
    assert json.loads(corpus.table("transcripts", "new")["extra"].iloc[0]) == {"mood": "calm"}


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("apart", [0, 50])
@pytest.mark.parametrize("replace", [False, True])
def test_several_payloads_of_an_id_are_added_in_their_order(tmp_path: Path, replace: bool, apart: int) -> None:
    """The first one is kept, or the last one with replace=True, also if the first has unknown fields at its end."""
    text = '{"id": "%s", "status": "completed", "audio_url": null, "words": [{"text": "%s", "start": 0, "end": 1}]%s}'
    between = [text % (f"t{number:03}", "word", "") for number in range(apart)]
    sources = [text % ("t", "first", ', "mood": "calm"'), *between, text % ("t", "second", "")]
    corpus = voxframe.Corpus(tmp_path)
    added = corpus.add([source.encode() for source in sources], replace=replace)
    assert corpus.words("t")["text"].to_list() == ["second" if replace else "first"]
    assert added.added == apart + 1 + replace
    assert [name.split()[1] for name, _ in added.left_out] == ([] if replace else [str(apart + 1)])


@pytest.mark.parametrize("together", [True, False])
def test_a_damaged_payload_names_no_recording(tmp_path: Path, together: bool) -> None:
    """A recording has the name of the file that was added, not that of an earlier file that only begins like it."""
    whole = b'{"id": "t", "status": "completed", "audio_url": null, "words": [], "text": "whole"}'
    for name, content in {"1": whole.replace(b'"text":', b'"text"'), "2": whole}.items():
        (tmp_path / f"{name}.json").write_bytes(content)
    files, corpus = [tmp_path / "1.json", tmp_path / "2.json"], voxframe.Corpus(tmp_path / "corpus")
    for some in [files] if together else [files[:1], files[1:]]:
        corpus.add(some)
    assert corpus.table("transcripts")["recording"].to_list() == ["2"]


@pytest.mark.usefixtures("two")
def test_warnings_of_other_processes_are_shown(tmp_path: Path) -> None:
    """A payload with a value that fits no column warns as it does in one process."""
    sources = [raw_payload(f"t{number:03}", audio_duration="long") for number in range(_COUNT)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        voxframe.Corpus(tmp_path / "corpus").add(sources)
    assert len(found) == _COUNT
    assert {one.filename for one in found} == {__file__}


@pytest.mark.usefixtures("two")
def test_a_process_that_dies_ends_the_call(tmp_path: Path) -> None:
    """If another process dies, the call says so."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t", raw_payload("t"))

    def add() -> None:
        with StoringProcesses(corpus._archive, expected=_COUNT) as pool:
            for name in "abb":
                pool.do([Task(name, "transcript", raw_payload(name))], lambda place, result: None)
                pool._children[0].kill()

    with pytest.raises(CorpusError, match="ended early"):
        add()


@pytest.mark.usefixtures("two")
def test_an_error_while_sending_ends_the_call(tmp_path: Path) -> None:
    """If a task cannot be sent to another process, the call raises the error instead of waiting for the result."""
    archive = voxframe.Corpus(tmp_path / "corpus")._archive
    task = Task("a", "transcript", raw_payload("a"), recording={"source": b"not text"})
    with (
        pytest.raises(TypeError, match="not JSON serializable"),
        StoringProcesses(archive, expected=_COUNT) as pool,
    ):
        pool.do([task], lambda place, result: None)


@pytest.mark.usefixtures("two")
def test_a_few_large_payloads_are_worth_another_process(tmp_path: Path) -> None:
    """Another process is started for many payloads, or for few that are large together."""
    archive = voxframe.Corpus(tmp_path / "corpus")._archive
    with StoringProcesses(archive) as pool:
        pool.do([Task("a", "transcript", raw_payload("a"))], lambda place, result: None)
        assert len(pool._children) == 0
        pool.do([Task("b", "transcript", raw_payload("b", text=" " * (17 << 20)))], lambda place, result: None)
        assert len(pool._children) == 1


@pytest.mark.usefixtures("two")
def test_a_slow_process_is_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import waits until the other process has written its last payloads, however slow the disk is."""
    slow = "import os, time; sync = os.fsync; os.fsync = lambda file: (time.sleep(0.1), sync(file)); main()"
    monkeypatch.setattr(workers, "_PROGRAM", workers._PROGRAM.replace("main()", slow))
    monkeypatch.setattr(workers, "_PATIENCE_S", 0.0)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert corpus.add([raw_payload(f"t{number:03}") for number in range(_COUNT)]).added == _COUNT
    assert (len(corpus.ids()), corpus.raw.stale()) == (_COUNT, [])


_PROGRAM = """
import signal, sys, voxframe
from voxframe.corpus import workers
from tests.corpus.test_workers import raw_payload
workers.cores = lambda: 2
def payloads():
    for number in range(100_000):
        if number == 200:
            print("at work", flush=True)
            signal.pause()
        yield raw_payload(f"t{number:06}")
try:
    voxframe.Corpus(sys.argv[1]).add(payloads(), progress=False)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_import_leaves_whole_tables(tmp_path: Path, kind: signal.Signals) -> None:
    """After Ctrl-C no process is left and all payloads have tables; after a kill, all tables can be read."""
    command, output = [sys.executable, "-c", _PROGRAM, str(tmp_path / "corpus")], subprocess.PIPE
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True, cwd=root) as process:
        assert process.stdout.readline() == "at work\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(kind)
        said = process.stdout.read()  # to the end of the last process, which after a kill stores what it was sent
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert len(children) == 1
    if kind == signal.SIGINT:
        assert said == "interrupted\n"
        assert not Path(f"/proc/{children[0]}").exists()
        assert corpus.raw.stale() == []
    seen = _globbed(corpus.path)
    assert len(seen) == len(set(seen))
    assert len(corpus.ids()) > 90
    assert corpus.ids() == sorted(corpus.table("words")["transcript_id"])


@pytest.mark.usefixtures("two")
def test_other_processes_do_not_load_pandas(tmp_path: Path) -> None:
    """Writing tables needs no pandas, which would make the start of a process three times as long."""
    archive = voxframe.Corpus(tmp_path / "corpus")._archive
    with StoringProcesses(archive, expected=_COUNT) as pool:
        pool.do([Task("a", "transcript", raw_payload("a", audio_duration="5"))], lambda place, result: None)
        pool.settle("a")
        maps = Path(f"/proc/{pool._children[0].process.pid}/maps").read_text()
    assert "/pyarrow/" in maps
    assert "/pandas/" not in maps


def test_other_processes_do_not_load_progress_bars() -> None:
    """The module that the other processes import leaves out what only the main one uses."""
    command = "import sys, voxframe.corpus.workers; print('tqdm' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", command], text=True).strip() == "False"


def test_one_payload_that_cannot_be_read_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made for several payloads at a time; of these only the one that fails is left out, with the reason."""
    made = Archive.made

    def refuse(archive: Archive, transcript_id: str, *others: Any) -> Any:
        if transcript_id == "t002":
            raise PayloadError("it is odd")
        return made(archive, transcript_id, *others)

    monkeypatch.setattr(Archive, "made", refuse)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    turns = [{"speaker": "A", "words": [{"text": "other"}]}]  # not among the words, so that each is read alone
    added = corpus.add([*(raw_payload(f"t{number:03}") for number in range(4)), raw_payload("turns", utterances=turns)])
    assert (added.added, len(corpus.ids())) == (4, 5)
    assert added.left_out == [("source 2 (counted from 0)", "it was stored, but cannot be read: it is odd")]
    monkeypatch.undo()
    assert len(corpus.table("words")) == 5
    assert corpus.table("utterance_words")["text"].to_list() == ["other"]


def test_another_process_ends_if_the_main_one_dies_while_it_sends_a_task(tmp_path: Path) -> None:
    """A line of which only the beginning arrives ends the process, as the end of the pipe does."""
    command = [sys.executable, "-P", "-c", workers._PROGRAM, str(tmp_path / "corpus")]
    done = subprocess.run(command, input=b'[1, [["a", "tran', capture_output=True, timeout=60, check=False)
    assert done.stdout == b""


def test_parts_of_other_processes_are_merged_at_the_end(tmp_path: Path) -> None:
    """Parts that other processes have written, which leave merging to this one, are merged, too."""
    here, other = voxframe.Corpus(tmp_path / "c"), voxframe.Corpus(tmp_path / "c")
    here.raw.put("first", raw_payload("first"))
    other._archive.merges = False
    with StoringProcesses(here._archive, 2) as storing:
        for number in range(8):
            other.add([raw_payload(f"{number}-{n}") for n in range(20)], progress=False)
        storing._children.append(workers._StoringChild(here.path))
        storing._free.put(storing._children[-1])
    here._archive.wait()
    assert len(table_files(here, "words")) == 2
    assert sorted(_globbed(tmp_path / "c")) == here.ids()
