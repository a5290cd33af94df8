import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.errors import CorpusWarning, OptionError, PayloadWarning

TEXTS = [("A", "so we met in zurich"), ("B", "yes"), ("A", "on monday"), ("B", "no tuesday")]


def made(
    transcript_id: str = "t1", texts: list[tuple[str, str]] = TEXTS, channels: bool = False, late: int = 0
) -> dict:
    """Return a transcript of turns; words last 100 ms with pauses of 50 ms. Channels alternate word by word."""
    turns, at = [], late
    for n, (speaker, text) in enumerate(texts):
        words = []
        for token in text.split():
            words.append({"text": token, "start": at, "end": at + 100, "confidence": 0.9, "speaker": speaker})
            at += 150
        words = [word | {"channel": str(n % 2 + 1)} for word in words] if channels else words
        turns.append({"text": text, "start": words[0]["start"], "end": words[-1]["end"], "words": words})
        turns[-1] |= {"speaker": speaker, "confidence": 0.9}
        turns[-1] |= {"channel": str(n % 2 + 1)} if channels else {}
        at = turns[-1]["start"] if channels and n % 2 == 0 else at  # two turns at the same time
    words = sorted((word for turn in turns for word in turn["words"]), key=lambda word: word["start"])
    text = " ".join(word["text"] for word in words)
    return {"id": transcript_id, "status": "completed", "text": text, "words": words, "utterances": turns}


def passages(kind: str, payload: dict, cuts: list[int]) -> bytes:
    """Return an export with passages that begin at some words."""
    words = payload["words"]
    parts = [words[a:b] for a, b in zip(cuts, [*cuts[1:], len(words)], strict=True)]
    rows = [
        {"text": " ".join(w["text"] for w in part), "start": part[0]["start"], "end": part[-1]["end"], "words": part}
        | {"confidence": 0.9, "speaker": None}
        for part in parts
    ]
    return json.dumps({"id": payload["id"], kind: rows}).encode()


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """Two transcripts with sentences and paragraphs, of which the tests correct the first one."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for transcript_id in ("t1", "t2"):
        found = made(transcript_id)
        corpus.raw.put(transcript_id, json.dumps(found).encode())
        corpus.raw.put(transcript_id, passages("sentences", found, [0, 6]), "sentences")
        corpus.raw.put(transcript_id, passages("paragraphs", found, [0]), "paragraphs")
    return corpus


def texts(frame: pd.DataFrame) -> list[list]:
    return frame[["text", "text_original"]].astype(object).where(lambda f: f.notna(), None).values.tolist()


def test_every_table_has_the_corrected_text(corpus: voxframe.Corpus) -> None:
    """Words, turns, sentences, paragraphs and transcripts show the corrected text beside that of the service."""
    before = {name: corpus.table(name, "t2") for name in ("words", "utterances", "sentences")}
    corpus.corrections.set("t1", {0: "So we met in Zürich, finally.", 2: "Monday"})
    whole = ["So we met in Zürich, finally. yes Monday no tuesday", "so we met in zurich yes on monday no tuesday"]
    assert texts(corpus.table("transcripts")) == [whole, [whole[1], None]]
    assert texts(corpus.table("paragraphs", "t1")) == [whole]
    sentences = corpus.table("sentences", "t1")
    assert texts(sentences) == [
        ["So we met in Zürich, finally. yes", "so we met in zurich yes"],
        ["Monday no tuesday", "on monday no tuesday"],
    ]
    assert sentences[["first_word_idx", "word_count", "start_ms", "end_ms"]].values.tolist() == [
        [0, 7, 0, 850],
        [7, 3, 1050, 1450],
    ]
    turns = corpus.table("utterances", "t1")
    assert texts(turns) == [
        ["So we met in Zürich, finally.", "so we met in zurich"],
        ["yes", None],
        ["Monday", "on monday"],
        ["no tuesday", None],
    ]
    assert turns[["first_word_idx", "word_count"]].values.tolist() == [[0, 6], [6, 1], [7, 1], [8, 2]]
    words = corpus.words("t1")
    assert texts(words) == [
        ["So", "so"],
        *([text, None] for text in ("we", "met", "in")),
        *(["Zürich,", "zurich"], ["finally.", ""], ["yes", None], ["Monday", "monday"]),
        *([text, None] for text in ("no", "tuesday")),
    ]
    assert words["word_idx"].to_list() == list(range(10))
    assert words["utterance_idx"].to_list() == [0] * 6 + [1, 2, 3, 3]
    assert words["confidence"].isna().to_list() == [w is not None for _, w in texts(words)]
    assert words["start_ms"].is_monotonic_increasing
    for name, frame in before.items():
        pd.testing.assert_frame_equal(corpus.table(name, "t2"), frame)
        assert frame["text_original"].isna().all()


def test_reads_of_all_kinds_agree(corpus: voxframe.Corpus) -> None:
    """Tables, conditions, SQL, Polars, snapshots, loaders and Dask's row counts agree on the corrected rows."""
    corpus.corrections.set("t1", {0: "We met", 3: "nein Dienstag"})
    words = corpus.words()
    pd.testing.assert_frame_equal(corpus["t1"]["words"], words[words["transcript_id"] == "t1"].reset_index(drop=True))
    pd.testing.assert_frame_equal(voxframe.load_words(["t1", "t2"], corpus=corpus), words)
    pd.testing.assert_frame_equal(corpus.snapshots.create(progress=False).table("words"), words)
    pd.testing.assert_frame_equal(corpus.words(["t2", "t1"]), corpus.words(["t2", "t1"], columns=list(words.columns)))
    assert corpus.words(where="text == 'We'")["text_original"].to_list() == ["we"]
    assert corpus.words(where="text_original != None", columns=["text"])["text"].to_list() == ["We", "nein", "Dienstag"]
    names = list(words.columns)
    query = f"select {', '.join(names)} from words order by transcript_id, word_idx"
    pd.testing.assert_frame_equal(corpus.sql(query), words, check_dtype=False)
    lazy = corpus.to_polars("words").collect().sort(["transcript_id", "word_idx"])
    assert lazy.columns == names
    assert lazy["text"].to_list() == words["text"].to_list()
    assert {i: count for i, (count, _) in corpus._query.rows("words").items()} == {"t2": 10, "t1": 7}


def test_the_original_can_be_read(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """`corrected=False` gives the rows of the service in every read, search and export."""
    own = {name: corpus.table(name) for name in ("words", "utterances", "sentences", "transcripts")}
    corpus.corrections.set("t1", {0: "We met in Genf."})
    for name, frame in own.items():
        pd.testing.assert_frame_equal(corpus.table(name, corrected=False), frame)
    pd.testing.assert_frame_equal(corpus.words(corrected=False), own["words"])
    pd.testing.assert_frame_equal(corpus.tables("t2", corrected=False)["words"], corpus["t2"]["words"])
    pd.testing.assert_frame_equal(voxframe.load_words(["t1", "t2"], corpus=corpus, corrected=False), own["words"])
    pd.testing.assert_frame_equal(voxframe.load_sentences("t1", corpus=corpus, corrected=False), own["sentences"][:2])
    corpus.export(tmp_path / "out", "srt", corrected=False)
    assert "zurich" in "".join(path.read_text() for path in tmp_path.glob("out/*1.srt"))


def test_search_counts_and_captions_use_corrected_words(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """The index follows each correction, also in another process with the same index."""
    assert len(corpus.search("zurich")) == 2
    corpus.corrections.set("t1", {0: "So we met in Genf today"})
    for each in (corpus, voxframe.Corpus(corpus.path)):
        assert each.search("zurich")["transcript_id"].to_list() == ["t2"]
        (hit,) = each.search("genf today", context=1).itertuples()
        assert (hit.left, hit.match, hit.right, hit.word_idx, hit.last_word_idx) == ("in", "Genf today", "yes", 4, 5)
        assert each.search("zurich", corrected=False)["transcript_id"].to_list() == ["t1", "t2"]
        assert each.counts("genf")["occurrences"].to_list() == [1, 0]
        assert each.counts("genf", by="speaker")["words"].to_list() == [7 + 1, 3, 7, 3]
        assert each.counts("genf", corrected=False)["words"].to_list() == [10, 10]
    corpus.export(tmp_path / "out", "vtt", ids="t1")
    assert "Genf today" in next(tmp_path.glob("out/*.vtt")).read_text()
    corpus.corrections.undo("t1")
    assert len(corpus.search("zurich")) == 2


def test_masked_exports_leave_out_the_original(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """The text before a correction may name a person, so an export without personal data has no such text."""
    found = made("t3") | {"entity_detection": True, "entities": []}
    corpus.raw.put("t3", json.dumps(found).encode())
    corpus.corrections.set("t3", {0: "So we met in Genf"})
    corpus.export(tmp_path / "out", "csv", ids="t3", pii="mask")
    assert "Genf" in (tmp_path / "out/words.csv").read_text()
    assert "zurich" not in "".join(path.read_text() for path in tmp_path.glob("out/*.csv"))


def test_turns_are_split_and_merged(corpus: voxframe.Corpus) -> None:
    """A split turn gets the next free index; words, turns and sentences follow; merging undoes the split."""
    before = corpus.table("utterances", "t1")
    found = corpus.corrections.split("t1", 2, speaker="B")
    assert found[["utterance_idx", "speaker", "text", "first_word_idx", "word_count"]].values.tolist() == [
        [0, "A", "so we", 0, 2],
        [4, "B", "met in zurich", 2, 3],
        [1, "B", "yes", 5, 1],
        [2, "A", "on monday", 6, 2],
        [3, "B", "no tuesday", 8, 2],
    ]
    turns = corpus.table("utterances", "t1")
    assert turns[["start_ms", "end_ms"]].values.tolist()[:2] == [[0, 250], [300, 700]]
    assert turns["text_original"].isna().all()
    words = corpus.words("t1")
    assert words["speaker"].to_list() == list("AABBBBAABB")
    assert words["utterance_idx"].to_list() == [0, 0, 4, 4, 4, 1, 2, 2, 3, 3]
    assert words["confidence"].notna().all()
    corpus.corrections.set("t1", {4: "met at zurich"})
    corpus.corrections.merge("t1", 0)
    turns = corpus.table("utterances", "t1")
    assert texts(turns)[0] == ["so we met at zurich", "so we met in zurich"]
    assert turns["utterance_idx"].to_list() == [0, 1, 2, 3]
    assert texts(corpus.table("transcripts", "t1"))[0][0] == "so we met at zurich yes on monday no tuesday"
    for _ in range(3):
        corpus.corrections.undo("t1")
    pd.testing.assert_frame_equal(corpus.table("utterances", "t1"), before)
    with pytest.raises(OptionError, match="no change to undo"):
        corpus.corrections.undo("t1")


def test_boundaries_and_times_are_moved(corpus: voxframe.Corpus) -> None:
    """A boundary moves by words to either side; a word's time moves between its neighbours."""
    corpus.corrections.move_boundary("t1", 0, -2)
    corpus.corrections.move_boundary("t1", 2, 1)
    assert corpus.table("utterances", "t1")["text"].to_list() == [
        "so we met",
        "in zurich yes",
        "on monday no",
        "tuesday",
    ]
    assert corpus.words("t1")["speaker"].to_list() == list("AAABBBAAAB")
    corpus.corrections.set_time("t1", 1, 110, 270)
    assert corpus.words("t1")[["start_ms", "end_ms"]].values.tolist()[:3] == [[0, 100], [110, 270], [300, 400]]
    assert corpus.words("t1")["confidence"].iloc[1] == 0.9
    with pytest.raises(OptionError, match="nor start before"):
        corpus.corrections.set_time("t1", 1, 310, 320)
    with pytest.raises(OptionError, match="the word 'we' of turn 0 cannot be at"):
        corpus.corrections.set_time("t1", 1, 310, 320)
    with pytest.raises(OptionError, match="turn 3 has 1 word, so none of them can be divided off, got 1"):
        corpus.corrections.move_boundary("t1", 2, 1)
    with pytest.raises(OptionError, match="turn 0 has 3 words, so 1 to 2 of them can be divided off, got 3"):
        corpus.corrections.move_boundary("t1", 0, -3)
    with pytest.raises(OptionError, match="word 3 is the first one of turn 1; split it before one of 4 to 5"):
        corpus.corrections.split("t1", 3)
    with pytest.raises(OptionError, match="word 9 is the first one of turn 3; it has no other word"):
        corpus.corrections.split("t1", 9)
    with pytest.raises(OptionError, match="words must be above 0 to take words"):
        corpus.corrections.move_boundary("t1", 0, 0)
    with pytest.raises(OptionError, match="no turn after turn 3"):
        corpus.corrections.merge("t1", 3)
    with pytest.raises(OptionError, match="no turn with word 10; it has 0 to 9"):
        corpus.corrections.split("t1", 10)
    assert corpus.corrections.history("t1")["action"].to_list() == ["move", "move", "time"]


def test_history_names_who_and_when(corpus: voxframe.Corpus) -> None:
    """Every edit is listed with its author, also after it was undone; edits of one call are undone together."""
    corpus.corrections.set("t1", {0: "One.", 1: "Two."}, author="ada")
    corpus.corrections.set("t1", {0: "Three."}, author="ben")
    corpus.corrections.undo("t1")
    assert corpus.corrections.get()["text"].to_list() == ["One.", "Two."]
    corpus.corrections.undo("t1")
    history = corpus.corrections.history()
    assert history[["change", "utterance_idx", "text", "was", "author"]].values.tolist() == [
        [1, 0, "One.", "so we met in zurich", "ada"],
        [1, 1, "Two.", "yes", "ada"],
        [2, 0, "Three.", "so we met in zurich", "ben"],
    ]
    assert (history["undone"] >= history["made"]).all()
    assert corpus.corrections.get().empty
    assert corpus.corrections.history("t2").dtypes.equals(history.dtypes)


def test_corrections_follow_their_turns(corpus: voxframe.Corpus) -> None:
    """In another payload a correction applies to the turn with the same text at the same time; others are stale."""
    corpus.corrections.set("t1", {1: "Yes!", 2: "On Friday."})
    corpus.corrections.split("t1", 9)
    before = made("t1")
    turns = [*before["utterances"][1:2], *before["utterances"][3:]]  # the first and third turn are gone
    words = [word for turn in turns for word in turn["words"]]
    corpus.raw.put("t1", json.dumps(before | {"words": words, "utterances": turns}).encode())
    found = corpus.table("utterances", "t1")
    assert found["text"].to_list() == ["Yes!", "no", "tuesday"]
    assert found["utterance_idx"].to_list() == [0, 1, 2]
    stale = corpus.corrections.stale()
    assert stale[["utterance_idx", "text", "was", "action"]].values.tolist() == [[2, "On Friday.", "on monday", "text"]]
    elsewhere = made("t1", late=60_000)  # the same texts a minute later are other turns
    corpus.raw.put("t1", json.dumps(elsewhere).encode())
    assert corpus.corrections.get("t1").empty
    assert len(corpus.corrections.stale()) == 3


def test_a_turn_that_has_moved_and_the_turn_at_its_old_index_are_different(tmp_path: Path) -> None:
    """In a replaced payload, edits of turns at their new indexes never reach turns that were edited before."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t1", json.dumps(made("t1", TEXTS[:2])).encode())
    corpus.corrections.set("t1", {1: "yes sir"})
    corpus.corrections.split("t1", 3)
    assert corpus.corrections.turns("t1")["utterance_idx"].to_list() == [0, 2, 1]
    longer = made("t1", [*TEXTS[:2], ("A", "well well"), ("B", "indeed")])
    inserted = {"speaker": "B", "text": "mm", "start": 610, "end": 620, "words": []}
    longer["utterances"].insert(1, inserted)
    corpus.raw.put("t1", json.dumps(longer).encode())
    assert corpus.corrections.turns("t1")[["utterance_idx", "text"]].values.tolist() == [
        [0, "so we met"],
        [5, "in zurich"],
        [1, "mm"],
        [2, "yes sir"],
        [3, "well well"],
        [4, "indeed"],
    ]
    corpus.corrections.set("t1", {1: "hm", 2: "yes madam", 3: "well", 5: "in geneva"})
    assert corpus.corrections.get("t1")[["utterance_idx", "text"]].values.tolist() == [
        [1, "hm"],
        [2, "yes madam"],
        [3, "well"],
        [5, "in geneva"],
    ]
    later = made("t1", [*TEXTS[:2], ("A", "well well"), ("B", "indeed"), ("A", "good"), ("B", "bye")])
    corpus.raw.put("t1", json.dumps(later).encode())
    assert corpus.corrections.get("t1")[["utterance_idx", "text"]].values.tolist() == [
        [1, "yes madam"],
        [2, "well"],
        [6, "in geneva"],
    ]
    assert corpus.corrections.stale()["text"].to_list() == ["hm"]
    assert corpus.corrections.split("t1", 6)["utterance_idx"].max() == 7


def test_a_turn_with_a_stale_correction_is_corrected_again(tmp_path: Path) -> None:
    """The new text replaces the stale one, which is no longer listed."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t1", json.dumps(made("t1", TEXTS[:2])).encode())
    corpus.corrections.set("t1", {1: "yes sir"})
    corpus.raw.put("t1", json.dumps(made("t1", [TEXTS[0], ("B", "perhaps")])).encode())
    assert len(corpus.corrections.stale()) == 1
    assert corpus.corrections.set("t1", {1: "perhaps not"})["text"].to_list() == ["perhaps not"]
    assert corpus.corrections.stale().empty


def test_edits_of_a_split_that_is_stale_are_stale(tmp_path: Path) -> None:
    """They do not apply to a turn of the service that now has the index of the part that was split off."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t1", json.dumps(made("t1", TEXTS[:2])).encode())
    corpus.corrections.split("t1", 3)
    corpus.corrections.set("t1", {2: "in geneva"})
    corpus.raw.put("t1", json.dumps(made("t1", TEXTS[1:])).encode())
    assert corpus.corrections.turns("t1")["text"].to_list() == ["yes", "on monday", "no tuesday"]
    assert corpus.corrections.stale()["action"].to_list() == ["split", "text"]


def test_the_time_of_a_word_that_shares_anothers_is_forgotten_with_it(tmp_path: Path) -> None:
    """A restored text has the times of the service, and no word starts before the recording."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t1", json.dumps(made("t1", TEXTS[:1])).encode())
    corpus.corrections.set_time("t1", 0, 20, 90)
    corpus.corrections.set("t1", {0: "so they all met in zurich"})
    assert corpus.words()[["text", "start_ms", "end_ms"]].values.tolist()[1] == ["they", 150, 207]  # 4 of 7 letters
    corpus.corrections.set_time("t1", 1, 150, 160)
    corpus.corrections.set("t1", {0: None})
    assert corpus.words()[["text", "start_ms", "end_ms"]].values.tolist()[:2] == [["so", 20, 90], ["we", 150, 250]]
    with pytest.raises(OptionError, match="start_ms must be a whole number of at least 0, got -10"):
        corpus.corrections.set_time("t1", 0, -10, 90)


def test_turns_without_words_are_not_merged(tmp_path: Path) -> None:
    """The text of a merged turn is that of its words, so a text without words would be lost."""
    corpus = voxframe.Corpus(tmp_path)
    turns = [{"speaker": "A", "text": text, "start": 0, "end": 90} for text in ("Hi.", "Bye.")]
    corpus.raw.put("t1", json.dumps(payload("t1") | {"words": [], "utterances": turns}).encode())
    with pytest.raises(OptionError, match="turn 0 has no words"):
        corpus.corrections.merge("t1", 0)


def test_a_merged_turn_that_overlapped_is_split_at_its_word(tmp_path: Path) -> None:
    """Words of overlapping turns alternate in `words`; a merged turn has those of its first part first."""
    corpus = voxframe.Corpus(tmp_path)
    found = made("t1", [("A", "a b c"), ("B", "x y z")], channels=True)
    for item in [*found["utterances"], *found["words"]]:  # turns have the same words
        del item["channel"]
    corpus.raw.put("t1", json.dumps(found).encode())
    assert corpus.words()["text"].to_list() == ["a", "x", "b", "y", "c", "z"]
    assert corpus.corrections.merge("t1", 0)["text"].to_list() == ["a b c x y z"]
    assert corpus.corrections.split("t1", 2)["text"].to_list() == ["a", "b c x y z"]


def test_words_of_scripts_without_spaces_are_joined_without(tmp_path: Path) -> None:
    """The text of a merged turn is written as the service writes that of a turn."""
    corpus = voxframe.Corpus(tmp_path)
    found = made("t1", [("A", "你 好 吗"), ("A", "我 好")])
    corpus.raw.put("t1", json.dumps(found).encode())
    assert corpus.corrections.merge("t1", 0)["text"].to_list() == ["你好吗我好"]


def test_overlapping_turns_are_corrected(tmp_path: Path) -> None:
    """Words of two channels that alternate are found by time and channel, and stay in their order."""
    corpus = voxframe.Corpus(tmp_path)
    found = made("t1", [("A", "a b c"), ("B", "x y z")], channels=True)
    corpus.raw.put("t1", json.dumps(found).encode())
    assert corpus.words()["utterance_idx"].isna().all()
    assert corpus.words()["text"].to_list() == ["a", "x", "b", "y", "c", "z"]
    corpus.corrections.set("t1", {1: "x new Y z"})
    assert corpus.words()["text"].to_list() == ["a", "x", "new", "b", "Y", "c", "z"]
    spoken = corpus.table("utterance_words")
    assert spoken[spoken["utterance_idx"] == 1]["text"].to_list() == ["x", "new", "Y", "z"]
    assert spoken[spoken["utterance_idx"] == 0]["text"].to_list() == ["a", "b", "c"]
    assert corpus.table("utterances")["text"].to_list() == ["a b c", "x new Y z"]
    assert corpus.search("new y", context=0)["channel"].to_list() == ["2"]
    with pytest.raises(OptionError, match="no turn of the same channel after turn 0"):
        corpus.corrections.merge("t1", 0)


def test_a_transcript_without_turns_is_corrected(tmp_path: Path) -> None:
    """Without utterances, turns are counted at changes of speaker."""
    corpus = voxframe.Corpus(tmp_path)
    found = made("t1") | {"utterances": None}
    corpus.raw.put("t1", json.dumps(found).encode())
    assert corpus.corrections.turns("t1")["text"].to_list() == [text for _, text in TEXTS]
    corpus.corrections.set("t1", {2: "on friday"})
    assert corpus.words()["text"].to_list() == "so we met in zurich yes on friday no tuesday".split()
    with pytest.warns(CorpusWarning, match="no utterances: .* without speaker_labels"):
        assert corpus.table("utterances").empty
    corpus.raw.put("t2", json.dumps(payload("t2") | {"words": [], "utterances": []}).encode())
    with pytest.raises(OptionError, match="no turn 0; it has no turns"):
        corpus.corrections.set("t2", {0: "x"})


def test_missing_passages_are_made_from_the_corrected_words(tmp_path: Path) -> None:
    """A transcript without the service's sentences gives those of its words, marked, in every kind of read."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    first = made("t1", [("A", "good morning. we met"), ("B", "yes")])
    corpus.raw.put("t1", json.dumps(first).encode())
    second = made("t2")
    corpus.raw.put("t2", json.dumps(second).encode())
    corpus.raw.put("t2", passages("sentences", second, [0, 6]), "sentences")
    corpus.raw.put("t3", json.dumps(payload("t3", "error") | {"words": None, "utterances": None}).encode())
    corpus.corrections.set("t1", {0: "Good morning. We met. Twice"})
    found = corpus.table("sentences")
    own = [["t2", "so we met in zurich yes", False], ["t2", "on monday no tuesday", False]]
    derived = [["t1", text, True] for text in ("Good morning.", "We met.", "Twice", "yes")]
    assert found[["transcript_id", "text", "derived"]].values.tolist() == [*derived, *own]
    assert found["text_original"].to_list()[:2] == ["good morning.", "we met"]
    assert found["confidence"].isna().to_list() == [True] * 4 + [False] * 2
    assert found[["first_word_idx", "word_count", "speaker"]].values.tolist()[2:4] == [[4, 1, "A"], [5, 1, "B"]]
    assert corpus.table("paragraphs", "t1")["text"].to_list() == ["Good morning. We met. Twice", "yes"]
    assert corpus.table("sentences", "t1", corrected=False)["text"].to_list() == ["good morning.", "we met", "yes"]
    assert corpus.table("sentences", where="derived == True")["text"].to_list() == [text for _, text, _ in derived]
    pd.testing.assert_frame_equal(corpus["t1"]["sentences"], found[:4])
    pd.testing.assert_frame_equal(voxframe.load_sentences(["t1", "t2"], corpus=corpus), found)
    with pytest.warns(PayloadWarning, match=r"no sentences in .* not completed: 't3' \(error\)"):
        pd.testing.assert_frame_equal(voxframe.load_sentences(corpus), found)
    pd.testing.assert_frame_equal(corpus.snapshots.create(progress=False).table("sentences"), found)
    with warnings.catch_warnings():  # no sentences are missing
        warnings.simplefilter("error", CorpusWarning)
        rows = corpus.sql("select transcript_id, text, derived from sentences order by transcript_id, sentence_idx")
        lazy = corpus.to_polars("sentences").select("transcript_id", "text", "derived").collect()
    assert rows.values.tolist() == [*derived, *own]
    assert sorted(map(list, lazy.rows())) == sorted([*derived, *own])
    assert {i: count for i, (count, _) in corpus._query.rows("sentences").items()} == {"t1": 4, "t2": 2}
