import json
from pathlib import Path

import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.errors import CorpusError, OptionError


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """A transcript of two turns."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.put("t1", json.dumps(payload("t1")).encode())
    return corpus


def shown(corpus: voxframe.Corpus) -> list:
    """Every correction."""
    return corpus.corrections("t1")[["transcript_id", "utterance_idx", "text"]].values.tolist()


def test_corrections_stand_beside_the_words_as_they_came(corpus: voxframe.Corpus) -> None:
    """They are on the disk and join by turn; tables stay; None takes one away, and removing the transcript all."""
    before = corpus.table("utterances")
    assert shown(corpus) == []
    corpus.correct_turns("t1", {1: "  Not\nthis.  ", 0: "That."})
    assert shown(voxframe.Corpus(corpus.path)) == [["t1", 0, "That."], ["t1", 1, "Not this."]]
    assert corpus.table("utterances").equals(before)
    joined = before.merge(corpus.corrections("t1"), on=["transcript_id", "utterance_idx"], suffixes=("", "_corrected"))
    assert joined["text_corrected"].to_list() == ["That.", "Not this."]
    corpus.correct_turns("t1", {0: None})
    assert shown(corpus) == [["t1", 1, "Not this."]]
    corpus.remove("t1")
    assert shown(corpus) == []
    assert not list(corpus.path.glob("corrections/*"))


def test_what_is_no_correction_is_refused(corpus: voxframe.Corpus) -> None:
    """A turn or transcript that is not there, an empty text, a number, a damaged file."""
    with pytest.raises(OptionError, match="'t1' has no turn 2; it has 0 to 1"):
        corpus.correct_turns("t1", {0: "x", 2: "y"})
    with pytest.raises(CorpusError, match="t2"):
        corpus.correct_turns("t2", {0: "x"})
    for text in (" ", 5, "\ud800"):
        with pytest.raises(OptionError, match="None takes it back"):
            corpus.correct_turns("t1", {0: text})
    assert shown(corpus) == []
    corpus.correct_turns("t1", {0: "x"})
    path = next(corpus.path.glob("corrections/*.json"))
    path.write_text("{")
    with pytest.raises(CorpusError, match="delete the file"):
        corpus.corrections("t1")
