"""`Corpus.apply_edits`: files edited in ELAN become corrections."""

import json
from pathlib import Path

import pympi
import pytest

import voxframe
from voxframe.errors import CorpusWarning


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """One transcript with three turns, whose first speaker has a name."""
    said = [("A", "So we met in Zurick."), ("B", "When was that?"), ("A", "In May.")]
    turns, start = [], 0
    for speaker, text in said:
        words = []
        for word in text.split():
            words.append({"text": word, "start": start, "end": start + 300, "confidence": 0.9, "speaker": speaker})
            start += 400
        turns.append(
            {"speaker": speaker, "text": text, "start": words[0]["start"], "end": words[-1]["end"], "words": words}
        )
        start += 3000
    words = [word for turn in turns for word in turn["words"]]
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(
        {"id": "t", "status": "completed", "text": " ".join(t for _, t in said), "words": words, "utterances": turns}
    )
    corpus.speakers.set("t", {"A": "Ada"})
    return corpus


def _edited(corpus: voxframe.Corpus, folder: Path) -> tuple[Path, pympi.Eaf]:
    corpus.export(folder, "eaf")
    path = next(folder.glob("*.eaf"))
    return path, pympi.Eaf(str(path))


def _replace(document: pympi.Eaf, tier: str, old: str, new: str, end: int = 0, to: str = "") -> None:
    start, stop = next((a, b) for a, b, text in document.get_annotation_data_for_tier(tier) if text == old)
    document.remove_annotation(tier, (start + stop) // 2)
    document.add_annotation(to or tier, start, end or stop, new)


def test_edits_become_corrections_and_can_be_undone(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """Texts, times and speakers change in the tables, and a new export of them has no changes."""
    before = corpus.table("words")
    path, document = _edited(corpus, tmp_path / "out")
    _replace(document, "Ada", "So we met in Zurick.", "So we all met in Zürich.")
    _replace(document, "B words", "was", "was", end=5750)
    _replace(document, "Ada", "In May.", "In May.", to="B")
    document.to_file(str(path))
    found = corpus.apply_edits("t", path)
    assert found[["action", "utterance_idx", "applied"]].to_numpy().tolist() == [
        ["text", 0, True],
        ["time", 1, True],
        ["speaker", 2, True],
    ]
    turns = corpus.table("utterances")
    assert turns["text"].to_list() == ["So we all met in Zürich.", "When was that?", "In May."]
    assert turns["speaker_name"].to_list() == ["Ada", "B", "B"]
    words = corpus.table("words").set_index("text")
    assert words.loc["was", "end_ms"] == 5750
    assert words.loc[["So", "met", "May."], "start_ms"].to_list() == [0, 800, before["start_ms"].iloc[-1]]
    assert json.loads(corpus.raw.get("t"))["words"][4]["text"] == "Zurick."
    again, _ = _edited(corpus, tmp_path / "again")
    assert corpus.apply_edits("t", again).empty
    corpus.corrections.undo("t")
    corpus.corrections.undo("t")
    corpus.speakers.undo("t")
    assert corpus.table("words").equals(before)


def test_changes_without_a_correction_are_named(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """A deleted turn, a new annotation and an impossible time are reported, and the others are applied."""
    path, document = _edited(corpus, tmp_path / "out")
    document.remove_annotation("B", 5200)
    document.add_annotation("Ada", 50_000, 51_000, "Bye")
    _replace(document, "Ada", "In May.", "In June.")
    document.to_file(str(path))
    with pytest.warns(CorpusWarning, match=r"2 of 3 changes in .* were not applied: deleted of turn 1; added of turn"):
        found = corpus.apply_edits("t", path)
    assert found.set_index("action")["applied"].to_dict() == {"deleted": False, "text": True, "added": False}
    assert corpus.table("utterances")["text"].to_list()[1:] == ["When was that?", "In June."]
