import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.benchmarks.payloads import transcript
from tests.corpus.test_corrected_tables import made, passages

import voxframe
from voxframe import frames
from voxframe.corpus import correction_files
from voxframe.errors import OptionError
from voxframe.frames.corrected import TURN_TABLES, correct_tables
from voxframe.schema import CORRECTED_TABLES

IDS = [f"t{n:02}" for n in range(12)]
EDITED = ["t03", "t07", "t09"]


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """Twelve transcripts with sentences, of which three have corrections."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in IDS:
        corpus.raw.put(name, json.dumps(made(name)).encode())
        corpus.raw.put(name, passages("sentences", made(name), [0, 6]), "sentences")
    corpus.corrections.set("t03", {0: "So we met in Zürich, finally."})
    corpus.corrections.split("t07", 2)
    corpus.corrections.set_time("t09", 1, 110, 270)
    return corpus


@pytest.fixture
def corrected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the transcripts that are corrected during the test, once for each time."""
    found: list[str] = []

    def counted(tables: Any, edits: Any) -> Any:
        found.append(tables["words"]["transcript_id"][0].as_py())
        return correct_tables(tables, edits)

    monkeypatch.setattr(correction_files, "correct_tables", counted)
    return found


def plain(corpus: voxframe.Corpus, name: str) -> pa.Table:
    """Return a table of all transcripts with corrections, made from the payloads."""
    found = []
    for transcript_id, edits in corpus.corrections._current.edits().items():
        raw = corpus.raw.get(transcript_id)
        tables = frames.transcript_tables(raw, (*TURN_TABLES, "transcripts"), transcript_id)
        for view, make in (("sentences", frames.sentence_table), ("paragraphs", frames.paragraph_table)):
            if corpus._archive.has(transcript_id, view):
                tables[view] = make(corpus.raw.get(transcript_id, view), tables["words"], transcript_id)
        found += [table for one, table in correct_tables(tables, edits).tables.items() if one == name]
    return pa.concat_tables(found).sort_by("transcript_id").replace_schema_metadata(None)


def stored(corpus: voxframe.Corpus, name: str, **options: Any) -> pa.Table:
    """Return a table of all transcripts with corrections, as the corpus reads it."""
    return corpus._query.arrow(name, sorted(corpus.corrections._current.edits()), **options)


def change(corpus: voxframe.Corpus, transcript_id: str, chance: random.Random) -> None:
    """Make a random edit, if it fits."""
    turn, word = chance.randrange(12), chance.randrange(60)
    with contextlib.suppress(OptionError):
        chance.choice(
            [
                lambda: corpus.corrections.set(transcript_id, {turn: chance.choice(["so it is", "no", None, ""])}),
                lambda: corpus.corrections.split(transcript_id, word),
                lambda: corpus.corrections.merge(transcript_id, turn),
                lambda: corpus.corrections.move_boundary(transcript_id, turn, chance.choice([-2, 1, 3])),
                lambda: corpus.corrections.set_time(transcript_id, word, 100 * word, 100 * word + 90),
                lambda: corpus.corrections.undo(transcript_id),
            ]
        )()


def test_corrected_tables_are_those_of_the_payloads(tmp_path: Path) -> None:
    """After random edits, every read gives what correcting the tables of the payloads gives; also of replaced ones."""
    chance = random.Random(0)
    corpus, payloads = voxframe.Corpus(tmp_path), [transcript(200, seed=n, speakers=3) for n in range(12)]
    for found in payloads:
        corpus.raw.put(found["id"], json.dumps(found).encode())
        corpus.raw.put(found["id"], passages("sentences", found, [0, 7, 90]), "sentences")
        corpus.raw.put(found["id"], passages("paragraphs", found, [0, 101]), "paragraphs")
    corpus.corrections.set(payloads[0]["id"], {0: "It is so."})
    for number in range(6):
        for _ in range(5):
            change(corpus, chance.choice(payloads[::3])["id"], chance)
        if number == 3:
            other = payloads[0] | {"words": payloads[0]["words"][1:], "text": "another text"}
            corpus.raw.put(other["id"], json.dumps(other).encode())
        for name in sorted(CORRECTED_TABLES):
            expected = plain(corpus, name)
            for each in (corpus, voxframe.Corpus(tmp_path)):
                assert stored(each, name).select(expected.column_names).equals(expected)
                rows = {i: count for i, (count, _) in corpus._query.rows(name).items()}
                counts = expected["transcript_id"].value_counts().to_pylist()
                assert {one["values"]: one["counts"] for one in counts}.items() <= rows.items()
                short = ["text", "text_original"]
                assert stored(each, name, columns=short).equals(expected.select(short))
                changed = stored(each, name, columns=["text"], where="text_original != None")
                assert changed.equals(expected.filter(pc.field("text_original").is_valid()).select(["text"]))
                some = stored(each, name, columns=["transcript_id"], where="text != 'no'")
                assert some.equals(expected.filter(pc.field("text") != "no").select(["transcript_id"]))


def test_a_transcript_is_corrected_once(corpus: voxframe.Corpus, corrected: list[str]) -> None:
    """Later reads use what the first one has kept, also in other processes; each edit concerns its transcript only."""
    before = corpus.table("transcripts")
    assert sorted(corrected) == EDITED
    other = voxframe.Corpus(corpus.path)
    assert other.table("transcripts").equals(before)
    assert other.table("transcripts", where="text != 'no'").equals(before)
    assert [count for count, _ in other._query.rows("transcripts").values()] == [1] * len(IDS)
    assert sorted(corrected) == EDITED
    corpus.corrections.set("t07", {0: "nothing"})
    corrected.clear()
    for each in (corpus, other):
        assert each.table("transcripts", "t07")["text"].to_list()[0].startswith("nothing")
    assert corrected == ["t07"]


def test_reads_without_corrected_columns_correct_nothing(corpus: voxframe.Corpus, corrected: list[str]) -> None:
    """Corrections change only the text of the table `transcripts`, so its other columns are read as stored."""
    assert corpus.table("transcripts", columns=["transcript_id", "status"])["transcript_id"].to_list() == IDS
    assert [count for count, _ in corpus._query.rows("transcripts").values()] == [1] * len(IDS)
    assert corrected == []


def test_tables_of_replaced_payloads_are_corrected_again(corpus: voxframe.Corpus, corrected: list[str]) -> None:
    """Another payload, or another export, of a corrected transcript gives other tables."""
    assert corpus.table("sentences", "t03")["text"].to_list()[0] == "So we met in Zürich, finally. yes"
    corpus.raw.put("t03", passages("sentences", made("t03"), [0, 3]), "sentences")
    assert corpus.table("sentences", "t03")["text"].to_list()[0] == "So we met"
    assert corpus.words("t03")["start_ms"].iloc[0] == 0
    later = made("t03", late=20)  # overlaps, so the corrections apply
    corpus.raw.put("t03", json.dumps(later).encode())
    assert corpus.words("t03")[["text", "start_ms"]].iloc[0].to_list() == ["So", 20]
    assert corrected == ["t03"] * 4


@pytest.mark.parametrize("damage", [lambda old: b"", lambda old: old[:-9], lambda old: old[:200] + b"#" + old[201:]])
def test_damaged_tables_are_corrected_again(corpus: voxframe.Corpus, corrected: list[str], damage: Any) -> None:
    """A file that was cut or changed, for example by a power cut, is replaced without an error."""
    before = corpus.words()
    for path in (corpus.path / "corrections" / "tables").iterdir():
        path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert voxframe.Corpus(corpus.path).words().equals(before)
    assert sorted(corrected) == sorted(EDITED * 2)


def test_corrected_tables_are_forgotten(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file contains the id of a forgotten transcript, also if another process reads it meanwhile."""
    corpus.table("words")
    corpus.forget("t03")
    reader, read = voxframe.Corpus(corpus.path), correct_tables

    def forgotten_meanwhile(tables: Any, edits: Any) -> Any:
        if "t07" in corpus.ids():
            corpus.forget("t07")
        return read(tables, edits)

    monkeypatch.setattr(correction_files, "correct_tables", forgotten_meanwhile)
    assert "t07" in reader.table("utterances")["transcript_id"].to_list()
    kept = [path for path in corpus.path.rglob("*") if path.is_file()]
    assert [path for path in kept if any(name in f"{path} {path.read_bytes()!r}" for name in ("t03", "t07"))] == []
    assert any("t09" in path.name for path in kept)


def test_versions_of_a_payload_are_not_mixed(
    corpus: voxframe.Corpus, corrected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a payload is replaced while its tables are read, those of the new one are corrected."""
    reader = voxframe.Corpus(corpus.path)
    read = reader._archive.read

    def replaced_meanwhile(name: str, *args: Any) -> Any:
        if name == "utterances":
            monkeypatch.setattr(reader._archive, "read", read)
            later = made("t03", [("A", "so we met in zurich"), ("B", "yes we did")])
            corpus.raw.put("t03", json.dumps(later).encode())
        return read(name, *args)

    monkeypatch.setattr(reader._archive, "read", replaced_meanwhile)
    expected = "So we met in Zürich, finally. yes we did".split()
    assert reader.words("t03")["text"].to_list() == expected
    assert voxframe.Corpus(corpus.path).words("t03")["text"].to_list() == expected
    assert corrected == ["t03"]


def test_corrected_tables_are_not_written_through_a_link(corpus: voxframe.Corpus) -> None:
    """If their folder is a symbolic link, nothing is kept and reads work."""
    elsewhere = corpus.path.parent / "elsewhere"
    elsewhere.mkdir()
    (corpus.path / "corrections" / "tables").symlink_to(elsewhere)
    assert corpus.words("t03")["text"].to_list()[4] == "Zürich,"
    assert [*elsewhere.iterdir()] == []
