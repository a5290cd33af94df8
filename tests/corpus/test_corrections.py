import getpass
import json
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.errors import CorpusError, OptionError


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """A transcript of two turns."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps(payload("t1")).encode())
    return corpus


def shown(corpus: voxframe.Corpus) -> list:
    """Return every correction."""
    return corpus.corrections.get("t1")[["transcript_id", "utterance_idx", "text"]].values.tolist()


def test_corrections_are_stored_by_turn(corpus: voxframe.Corpus) -> None:
    """None restores the text of the service, and `forget` removes the corrections of a transcript."""
    assert shown(corpus) == []
    corpus.corrections.set("t1", {1: "  Not\nthis.  ", 0: "That."})
    assert shown(voxframe.Corpus(corpus.path)) == [["t1", 0, "That."], ["t1", 1, "Not this."]]
    corpus.corrections.set("t1", {0: None})
    assert shown(corpus) == [["t1", 1, "Not this."]]
    assert corpus.raw.get("t1") == json.dumps(payload("t1")).encode()
    corpus.forget("t1")
    assert corpus.corrections.get().empty
    assert not list(corpus.path.glob("current/words/*"))


def test_invalid_corrections_are_refused(corpus: voxframe.Corpus) -> None:
    """An unknown turn or transcript, empty text and a number are errors."""
    with pytest.raises(OptionError, match="'t1' has no turn 2; it has 0 to 1"):
        corpus.corrections.set("t1", {0: "x", 2: "y"})
    with pytest.raises(CorpusError, match="t2"):
        corpus.corrections.set("t2", {0: "x"})
    for text in (" ", 5, "\ud800"):
        with pytest.raises(OptionError, match="or None to remove it"):
            corpus.corrections.set("t1", {0: text})
    author: Any
    for author in (5, "", [5], "caf\udce9"):
        with pytest.raises(OptionError, match="author is a name, or None for the user of this machine, got"):
            corpus.corrections.set("t1", {0: "x"}, author=author)
    number: Any
    for number in (1.5, float("nan"), float("inf"), True, "1", None):
        with pytest.raises(OptionError, match="words must be a whole number from -1000000 to 1000000, got"):
            corpus.corrections.move_boundary("t1", 0, number)
        with pytest.raises(OptionError, match="end_ms must be a whole number of at least 0, got"):
            corpus.corrections.set_time("t1", 0, 0, number)
    assert shown(corpus) == []
    corpus.corrections.set("t1", {0: "x"})


def test_corrections_of_changed_turns_become_stale(corpus: voxframe.Corpus) -> None:
    """If a transcript is replaced, unchanged turns keep their text and speaker; the others are listed as stale."""
    corpus.corrections.set("t1", {0: "First.", 1: "Second."})
    corpus.speakers.set("t1", {"A": "Ada"}, turns={0: "Zoe", 1: "Bea"})
    before = payload("t1")
    changed = json.loads(json.dumps(before))
    changed["utterances"][1]["text"] = "Something else."
    corpus.raw.put("t1", json.dumps(changed | {"confidence": 0.5}).encode())
    for each in (corpus, voxframe.Corpus(corpus.path)):
        assert shown(each) == [["t1", 0, "First."]]
        assert each.table("utterances")["speaker_name"].to_list() == ["Zoe", "B"]
        assert each.search("hello")["speaker_name"].to_list() == ["B"]
        assert each.speakers.get("t1")["speaker_name"].to_list() == ["Ada", "Zoe"]
        stale = each.corrections.stale()
        assert stale[["utterance_idx", "was"]].values.tolist() == [[1, before["utterances"][1]["text"]]] * 2
        assert stale["text"].dropna().to_list() == ["Second."]
        assert stale["speaker_name"].dropna().to_list() == ["Bea"]
    corpus.raw.put("t1", json.dumps(before).encode())
    assert len(shown(corpus)) == 2
    assert corpus.table("utterances")["speaker_name"].to_list() == ["Zoe", "Bea"]
    assert corpus.corrections.stale().empty
    corpus.raw.put("t1", json.dumps(before | {"utterances": before["utterances"][:1]}).encode())
    assert len(corpus.corrections.stale()) == 2
    corpus.corrections.set("t1", {1: None})
    corpus.speakers.set("t1", turns={1: None})
    assert corpus.corrections.stale().empty
    assert corpus.table("utterances")["speaker_name"].to_list() == ["Zoe"]


def test_a_turn_without_an_end_is_found_at_another_index(corpus: voxframe.Corpus) -> None:
    """A correction follows its turn to another index, also if the service gave the turn no end or no length."""

    def turn(text: str, start: int, end: int | None) -> dict:
        word = {"text": text, "start": start, "end": end, "speaker": "A"}
        return {"text": text, "start": start, "end": end, "speaker": "A", "words": [word]}

    turns = [turn("Yes.", 500, None), turn("No.", 900, 900)]
    for before in ([], [turn("Hello.", 0, 400)]):
        both = [*before, *turns]
        words = [word for one in both for word in one["words"]]
        corpus.raw.put("t1", json.dumps({"id": "t1", "words": words, "utterances": both}).encode())
        if not before:
            corpus.corrections.set("t1", {0: "Yeah.", 1: "Nope."})
    assert shown(corpus) == [["t1", 1, "Yeah."], ["t1", 2, "Nope."]]


def test_nothing_is_left_of_a_transcript_that_is_deleted_meanwhile(corpus: voxframe.Corpus, monkeypatch) -> None:
    """A correction of a transcript that another process deletes at the same time is an error, and leaves no file."""

    def user() -> str:  # asked for after the turns were read, before the correction is stored
        voxframe.Corpus(corpus.path).forget("t1")
        return "ada"

    monkeypatch.setattr(getpass, "getuser", user)
    with pytest.raises(CorpusError, match="there is no transcript 't1'"):
        corpus.corrections.set("t1", {0: "x"})
    assert not any(b"t1" in path.read_bytes() for path in corpus.path.glob("records/*"))


def test_new_speakers_of_all_words_are_one_change(corpus: voxframe.Corpus) -> None:
    """`relabel` makes turns of the runs of speakers, later corrections apply to them, and `undo` reverts it."""
    corpus.corrections.set("t1", {1: "Hello there!"})
    turns = corpus.corrections.relabel("t1", ["X", "Y", "Y", "Y"])
    assert turns[["utterance_idx", "speaker", "text", "word_count"]].values.tolist() == [
        [0, "X", "Good", 1],
        [1, "Y", "morning. Hello there!", 3],
    ]
    assert turns["text_original"].fillna("-").tolist() == ["-", "morning. Hello!"]
    words = corpus.words("t1")
    assert words["speaker"].tolist() == ["X", "Y", "Y", "Y"]
    assert words["utterance_idx"].tolist() == [0, 1, 1, 1]
    corpus.corrections.set("t1", {0: "God"})
    assert corpus.table("utterances")["text"].tolist() == ["God", "morning. Hello there!"]
    corpus.corrections.undo("t1")
    corpus.corrections.undo("t1")
    assert corpus.table("utterances")["speaker"].tolist() == ["A", "B"]
    assert corpus.table("utterances")["text"].tolist() == ["Good morning.", "Hello there!"]
    assert corpus.corrections.history("t1")["action"].tolist() == ["text", "speakers", "text"]
    with pytest.raises(OptionError, match="'t1' has 4 words, got 1 labels of speakers"):
        corpus.corrections.relabel("t1", ["A"])


def test_turns_of_new_speakers_may_overlap(corpus: voxframe.Corpus) -> None:
    """With `turns`, a turn goes on after a word of another speaker: its words are in `utterance_words`."""
    corpus.corrections.set("t1", {1: "Hello there!"})  # Good morning. | Hello there!
    turns = corpus.corrections.relabel("t1", ["X", "Y", "X", "X"], turns=[0, 1, 0, 0])
    assert turns[["utterance_idx", "speaker", "text", "word_count"]].values.tolist() == [
        [0, "X", "Good Hello there!", 3],
        [1, "Y", "morning.", 1],
    ]
    assert corpus.words("t1")["utterance_idx"].fillna(-1).tolist() == [-1, 1, -1, -1]
    apart = corpus.table("utterance_words")
    assert apart[["utterance_idx", "word_idx", "text"]].values.tolist() == [
        [0, 0, "Good"],
        [0, 1, "Hello"],
        [0, 2, "there!"],
    ]
    corpus.corrections.set("t1", {0: "Good hello there!"})
    assert corpus.table("utterances")["text"].tolist() == ["Good hello there!", "morning."]
    assert corpus.table("utterance_words")["text"].tolist() == ["Good", "hello", "there!"]
    assert corpus.words("t1")["text"].tolist() == ["Good", "morning.", "hello", "there!"]
    again = len(corpus.corrections.history("t1"))
    corpus.corrections.undo("t1")
    corpus.corrections.relabel("t1", ["X", "Y", "X", "X"], turns=[0, 1, 0, 0])
    assert len(corpus.corrections.history("t1")) == again  # the same speakers and turns as before are no change
    with pytest.raises(OptionError, match="a turn has words of two speakers"):
        corpus.corrections.relabel("t1", ["X", "Y", "X", "X"], turns=[0, 0, 0, 0])
    with pytest.raises(OptionError, match="'t1' has 4 words, got 2 numbers of turns"):
        corpus.corrections.relabel("t1", ["X", "Y", "X", "X"], turns=[0, 1])


def test_new_speakers_of_other_words_are_stale(corpus: voxframe.Corpus) -> None:
    """Labels of words do not apply to a replaced payload with other words, and `stale` lists them."""
    corpus.corrections.relabel("t1", ["X", "X", "X"])
    corpus.raw.put("t1", json.dumps(payload("t1")).replace("Good", "Fine").encode())
    assert corpus.words("t1")["speaker"].tolist() == ["A", "A", "B"]
    assert corpus.corrections.stale()["action"].tolist() == ["speakers"]


def test_an_undone_change_is_redone_until_there_is_a_new_one(corpus: voxframe.Corpus) -> None:
    """`redo` applies undone changes again, the first one first; after a new change there is nothing to redo."""
    with pytest.raises(OptionError, match="none to redo"):
        corpus.corrections.redo("t1")
    for text in ("One.", "Two."):
        corpus.corrections.set("t1", {0: text})
    corpus.corrections.undo("t1")
    corpus.corrections.undo("t1")
    assert corpus.corrections.redo("t1")["text"].tolist() == ["One."]
    assert corpus.corrections.redo("t1")["text"].tolist() == ["Two."]
    corpus.corrections.undo("t1")
    corpus.corrections.set("t1", {0: "Three."})
    with pytest.raises(OptionError, match="none to redo"):
        corpus.corrections.redo("t1")
    corpus.corrections.undo("t1")
    assert corpus.corrections.get("t1")["text"].tolist() == ["One."]
    assert corpus.corrections.redo("t1")["text"].tolist() == ["Three."]  # "Two." was replaced


def test_sentiments_have_the_new_speakers_of_their_words(tmp_path: Path) -> None:
    """After `relabel`, a sentiment has the speaker of the words at its times, null if they have several."""
    times = [(0, 90), (100, 190), (200, 290), (300, 390)]
    words = [{"text": f"w{n}", "start": s, "end": e, "speaker": "A"} for n, (s, e) in enumerate(times)]
    judged = [{"text": "w", "start": s, "end": e, "sentiment": "NEUTRAL", "speaker": "A"} for s, e in times[::3]]
    judged.append({"text": "w1 w2", "start": 100, "end": 290, "sentiment": "NEUTRAL", "speaker": "A"})
    sent = {"id": "t1", "status": "completed", "words": words, "sentiment_analysis_results": judged}
    corpus = voxframe.Corpus(tmp_path / "c")
    corpus.raw.put("t1", json.dumps(sent).encode())
    corpus.corrections.relabel("t1", ["X", "X", "Y", "Y"])
    assert corpus.table("sentiments")["speaker"].fillna("-").tolist() == ["X", "Y", "-"]
    corpus.corrections.undo("t1")
    assert corpus.table("sentiments")["speaker"].tolist() == ["A", "A", "A"]
