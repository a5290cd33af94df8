"""Edits in ELAN, Praat and Label Studio come back as changes of turns and words; pympi and praatio make them here."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pympi
import pytest
from praatio import textgrid
from praatio.data_classes.interval_tier import IntervalTier

import voxframe
from voxframe import export
from voxframe.errors import ExportWarning, OptionError, PayloadError

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"
_SAID = ["So we met in Zurick.", "When was that?", "In May, I think. Or june.", "Fine."]


@pytest.fixture
def words() -> pd.DataFrame:
    """Four turns of A and B; the third one has a long pause, so that it is two annotations."""
    rows = []
    for turn, text in enumerate(_SAID):
        for n, word in enumerate(text.split()):
            start = 10_000 * turn + 400 * n + (4000 if word in ("Or", "june.") else 0)
            rows.append(("t", len(rows), turn, word, start, start + 300, "AB"[turn % 2]))
    return pd.DataFrame(rows, columns=["transcript_id", "word_idx", "utterance_idx", "text", "start_ms", "end_ms", "speaker"])  # fmt: skip  # noqa: E501


def _changes(found: pd.DataFrame, *columns: str) -> list[list[object]]:
    return (
        found[["action", *columns]].astype(object).where(found[["action", *columns]].notna(), None).to_numpy().tolist()
    )


@pytest.mark.parametrize("form", ["eaf", "textgrid"])
@pytest.mark.parametrize("name", ["interview", "panel", "call"])
def test_a_file_that_was_not_edited_has_no_changes(tmp_path: Path, form: str, name: str) -> None:
    """The export of real transcripts with overlapping speech, pauses and channels reads as unchanged."""
    words = voxframe.load_words(PAYLOADS / f"{name}.json")
    export.write(words, tmp_path / f"a{export.FORMATS[form]}", form)
    assert export.read_edits(words, tmp_path / f"a{export.FORMATS[form]}").empty


def test_texts_edited_in_elan(words: pd.DataFrame, tmp_path: Path) -> None:
    """A changed turn has its new text, and a changed word changes its turn."""
    path = tmp_path / "t.eaf"
    path.write_text(export.eaf(words), "utf-8")
    document = pympi.Eaf(str(path))
    _retext(document, "A", "So we met in Zurick.", "So, we met in Zürich again.")
    _retext(document, "A", "In May, I think. Or june.", "In May, I think. Or June.")
    _retext(document, "B words", "that?", "this?")
    document.to_file(str(path))
    found = export.read_edits(words, path)
    assert _changes(found, "utterance_idx", "text", "was") == [
        ["text", 0, "So, we met in Zürich again.", _SAID[0]],
        ["text", 1, "When was this?", _SAID[1]],
        ["text", 2, "In May, I think. Or June.", _SAID[2]],
    ]
    assert set(found["transcript_id"]) == {"t"}
    assert found.dtypes["utterance_idx"] == "Int64"


def test_layers_below_a_tier_are_no_edits(words: pd.DataFrame, tmp_path: Path) -> None:
    """A tier that depends on another one, such as a translation in ELAN, changes neither turns nor words."""
    path = tmp_path / "t.eaf"
    path.write_text(export.eaf(words), "utf-8")
    document = pympi.Eaf(str(path))
    document.add_linguistic_type("inside")
    document.add_tier("A-de", ling="inside", parent="A")
    document.add_annotation("A-de", 0, 700, "Also")
    document.to_file(str(path))
    assert export.read_edits(words, path).empty


def _retext(document: pympi.Eaf, tier: str, old: str, new: str) -> None:
    start, end = next((a, b) for a, b, text in document.get_annotation_data_for_tier(tier) if text == old)
    document.remove_annotation(tier, (start + end) // 2)
    document.add_annotation(tier, start, end, new)


def test_boundaries_speakers_and_annotations_edited_in_elan(words: pd.DataFrame, tmp_path: Path) -> None:
    """Moved boundaries are times of words; other tiers, removed and new annotations are told apart."""
    path = tmp_path / "t.eaf"
    path.write_text(export.eaf(words), "utf-8")
    document = pympi.Eaf(str(path))
    document.remove_annotation("A", 100)  # the turn ends later
    document.add_annotation("A", 0, 2_000, _SAID[0])
    _shift(document, "B words", "was", 10_350, 10_650)
    document.remove_annotation("B", 30_100)
    document.add_annotation("A", 30_000, 30_300, "Fine.")
    document.remove_annotation("A", 25_700)
    document.add_tier("C")
    document.add_annotation("C", 50_000, 51_000, "Bye")
    document.to_file(str(path))
    assert _changes(
        export.read_edits(words, path), "utterance_idx", "word_idx", "speaker", "text", "start_ms", "end_ms"
    ) == [
        ["time", 0, 4, None, "Zurick.", 1600, 2000],
        ["time", 1, 6, None, "was", 10_350, 10_650],
        ["deleted", 2, None, None, None, None, None],
        ["speaker", 3, None, "A", None, None, None],
        ["added", None, None, "C", "Bye", 50_000, 51_000],
    ]


def _shift(document: pympi.Eaf, tier: str, text: str, start: int, end: int) -> None:
    old = next((a, b) for a, b, said in document.get_annotation_data_for_tier(tier) if said == text)
    document.remove_annotation(tier, sum(old) // 2)
    document.add_annotation(tier, start, end, text)


def test_annotations_split_and_merged_change_no_text(words: pd.DataFrame, tmp_path: Path) -> None:
    """Splitting an annotation, or merging two, changes nothing; with new text in a part, only that text changes."""
    path = tmp_path / "t.eaf"
    path.write_text(export.eaf(words), "utf-8")
    document = pympi.Eaf(str(path))
    document.remove_annotation("A", 100)
    document.add_annotation("A", 0, 700, "So we")
    document.add_annotation("A", 800, 1900, "met in Zurich.")
    document.remove_annotation("A", 20_100)
    document.remove_annotation("A", 25_900)
    document.add_annotation("A", 20_000, 26_300, "In May, I think. Or june.")
    document.to_file(str(path))
    assert _changes(export.read_edits(words, path), "utterance_idx", "text") == [["text", 0, "So we met in Zurich."]]


def test_a_file_edited_in_praat(words: pd.DataFrame, tmp_path: Path) -> None:
    """A TextGrid written again in the short format, with one label and one boundary changed."""
    path = tmp_path / "t.TextGrid"
    path.write_text(export.textgrid(words), "utf-8")
    grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
    tier = grid.getTier("B")
    entries = [(a, b, "When was it?") if label == _SAID[1] else (a, b, label) for a, b, label in tier.entries]
    grid.replaceTier("B", IntervalTier("B", entries, tier.minTimestamp, tier.maxTimestamp))
    tier = grid.getTier("A words")
    entries = [(1.5, b, label) if label == "Zurick." else (a, b, label) for a, b, label in tier.entries]
    grid.replaceTier("A words", IntervalTier("A words", entries, tier.minTimestamp, tier.maxTimestamp))
    grid.save(str(path), "short_textgrid", includeBlankSpaces=True)
    assert _changes(export.read_edits(words, path), "utterance_idx", "word_idx", "text", "start_ms", "end_ms") == [
        ["time", 0, 4, "Zurick.", 1500, 1900],
        ["text", 1, None, "When was it?", None, None],
    ]


def test_words_without_turns_and_times(words: pd.DataFrame, tmp_path: Path) -> None:
    """Without utterances, turns are counted at changes of speaker; words without times keep their place in the text."""
    plain = words.assign(utterance_idx=pd.array([None] * len(words), "Int64"))
    plain.loc[plain["text"] == "was", ["start_ms", "end_ms"]] = None
    with pytest.warns(ExportWarning, match="1 rows without times"):
        export.write(plain, tmp_path / "t.eaf", "eaf")
    text = (tmp_path / "t.eaf").read_text("utf-8")
    (tmp_path / "t.eaf").write_text(text.replace(">When was that?<", ">When exactly was that?<"))
    assert _changes(export.read_edits(plain, tmp_path / "t.eaf"), "utterance_idx", "text") == [
        ["text", 1, "When exactly was that?"]
    ]


def test_files_and_tables_that_cannot_be_compared(words: pd.DataFrame, tmp_path: Path) -> None:
    """A file of another format, a broken file, and a table without turns are errors that say so."""
    path = tmp_path / "t.eaf"
    for content in ("WEBVTT", "<ANNOTATION_DOCUMENT>", 'File type = "ooTextFile"\n"TextGrid"\n0', "<!DOCTYPE x>"):
        path.write_text(content)
        with pytest.raises(PayloadError):
            export.read_edits(words, path)
    with pytest.raises(PayloadError, match="cannot read"):
        export.read_edits(words, tmp_path / "gone.eaf")
    with pytest.raises(OptionError, match="lacks utterance_idx"):
        export.read_edits(words.drop(columns="utterance_idx"), path)


def _exported(tasks: list[dict], change: dict[str, dict] | None) -> str:
    """Tasks as Label Studio exports them: each prediction became an annotation, in which some regions were changed."""
    done = []
    for n, task in enumerate(tasks, 1):
        result = [{**one, "original_length": 31.3, "origin": "prediction"} for one in task["predictions"][0]["result"]]
        for one in result:
            changed = (change or {}).get(one["id"], {})
            one["value"] = {key: changed.get(key, value) for key, value in one["value"].items()}
        old = {"id": 1, "was_cancelled": False, "result": [], "updated_at": "2026-01-01T10:00:00Z"}
        new = {"id": 2, "was_cancelled": False, "result": result, "updated_at": "2026-01-02T10:00:00Z"}
        skipped = {"id": 3, "was_cancelled": True, "result": [], "updated_at": "2026-01-03T10:00:00Z"}
        done.append({"id": n, "annotations": [new, old, skipped], "data": task["data"], "predictions": []})
    return json.dumps(done)


def test_label_studio_and_back(words: pd.DataFrame, tmp_path: Path) -> None:
    """Turns become regions of tasks; texts, times and speakers changed there come back, for each transcript apart."""
    both = pd.concat([words, words.assign(transcript_id="u", speaker="C & D")], ignore_index=True)
    tasks = json.loads(export.label_studio(both, audio={"t": "https://b.example/t.wav"}))
    assert [task["data"] for task in tasks] == [
        {"audio": "https://b.example/t.wav", "transcript_id": "t"},
        {"audio": "", "transcript_id": "u"},
    ]
    first, second = tasks[0]["predictions"][0]["result"][:2]
    assert first["value"] == {"start": 0.0, "end": 1.9, "channel": 0, "labels": ["A"]}
    assert second["value"] == {"start": 0.0, "end": 1.9, "channel": 0, "text": [_SAID[0]]}
    assert (first["id"], first["type"], second["type"]) == (second["id"], "labels", "textarea")
    labels = [label.get("value") for label in ET.fromstring(export.label_studio_config(both)).iter("Label")]
    assert labels == ["A", "B", "C & D"]
    path = tmp_path / "project.json"
    path.write_text(_exported(tasks, None))
    assert export.read_edits(words, path).empty
    assert export.read_edits(both[both["transcript_id"] == "u"], path).empty
    change = {
        "turn-0": {"text": ["So we met", "in Zürich."], "end": 1.95},
        "turn-1": {"labels": ["A"]},
    }
    path.write_text(_exported(tasks[:1], change))
    assert _changes(export.read_edits(words, path), "utterance_idx", "text", "speaker", "end_ms") == [
        ["text", 0, "So we met in Zürich.", None, None],
        ["time", 0, "Zürich.", None, 1950],
        ["speaker", 1, None, "A", None],
    ]
    path.write_text(_exported(tasks[:1], {"turn-0": {"text": "So we met in Zürich."}}))  # as some programs write it
    assert _changes(export.read_edits(words, path), "text") == [["text", "So we met in Zürich."]]
    with_relation = json.loads(_exported(tasks[:1], {"turn-0": {"text": "So we met in Zürich."}}))
    relation = {"from_id": "turn-0", "to_id": "turn-1", "type": "relation", "direction": "right"}  # it has no value
    with_relation[0]["annotations"][0]["result"].append(relation)
    path.write_text(json.dumps(with_relation))
    assert _changes(export.read_edits(words, path), "text") == [["text", "So we met in Zürich."]]
    del with_relation[0]["annotations"][0]["result"]  # nothing was annotated
    path.write_text(json.dumps(with_relation))
    deleted = [["deleted", turn] for turn in words["utterance_idx"].unique()]  # every turn of the transcript
    assert _changes(export.read_edits(words, path), "utterance_idx") == deleted
    with pytest.raises(PayloadError, match="no task has the transcript_id 'u'"):
        export.read_edits(both[both["transcript_id"] == "u"], path)
    path.write_text(json.dumps(tasks))
    with pytest.raises(PayloadError, match="has no annotation; submit it"):
        export.read_edits(words, path)
