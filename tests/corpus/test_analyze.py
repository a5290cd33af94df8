"""`corpus.analyze` and `voxframe.analyze`: the analyses of the service on stored text."""

import csv
import json
import random

import pandas as pd
import pytest

import voxframe
from voxframe.errors import CorpusWarning, OptionError, PayloadError
from voxframe_engine import analyses

CUES = (
    ("Anna", "My name is Anna Smith and I live in Boston."),
    ("Ben", "That is wonderful, I really love it there."),
    ("Anna", "Call me at 617 555 0143, please, when you have heard from them."),
    ("Ben", "That was a terrible idea, and I hated all of it."),
)
GERMAN = "Wir haben das gestern schon gesehen und es war nicht gut, weil niemand wusste, wer das machen sollte. Danke."


def srt(cues=CUES):
    """A subtitle file with names, five seconds per cue."""
    return "\n".join(
        f"{n}\n00:00:{5 * n:02},000 --> 00:00:{5 * n + 4:02},000\n{who}: {text}\n" for n, (who, text) in enumerate(cues)
    )


@pytest.fixture
def corpus(tmp_path, model_folder):
    """A corpus with a subtitle file, a text without times, and a German text."""
    model_folder("en_core_web_sm")
    model_folder("all-MiniLM-L6-v2")
    (tmp_path / "call.srt").write_text(srt())
    (tmp_path / "note.txt").write_text("Anna Smith told me that the food in Boston is great. I would love to go there.")
    (tmp_path / "brief.txt").write_text(GERMAN)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([str(path) for path in tmp_path.glob("*.*")])
    return corpus


def test_stored_text_has_the_results_of_the_engine(corpus):
    """Sentiments and entities of a subtitle file are those of the engine on the same words, with the shared times."""
    with pytest.warns(CorpusWarning, match=r"1 transcript of 3 .*not stated, and is not English"):
        done = corpus.analyze().set_index("transcript_id")["status"]
    assert sorted(done) == ["analyzed", "analyzed", "skipped"]
    call = corpus.tables("call")
    words = [
        {"text": text, "start": start, "end": end, "speaker": speaker}
        for text, start, end, speaker in call["words"][["text", "start_ms", "end_ms", "speaker"]].itertuples(
            index=False
        )
    ]
    direct = analyses.apply({"words": words}, {"sentiment_analysis": True, "entity_detection": True})
    columns = ["text", "sentiment", "speaker", "start_ms", "end_ms"]
    expected = [
        [row["text"], row["sentiment"], row["speaker"], row["start"], row["end"]]
        for row in direct["sentiment_analysis_results"]
    ]
    assert call["sentiments"][columns].to_numpy().tolist() == expected
    assert call["entities"]["text"].to_list() == [row["text"] for row in direct["entities"]]
    assert {"Anna Smith", "Boston"} <= set(call["entities"]["text"])
    assert call["transcripts"]["local_analyses"][0].startswith("voxframe ")


def test_text_without_times_has_results_without_times(corpus):
    """Nothing invents a time for a text that has none."""
    corpus.analyze("note")
    note = corpus.tables("note")
    assert "Anna Smith" in set(note["entities"]["text"])
    for name in ("entities", "sentiments", "chapters", "topics", "highlight_times"):
        assert note[name]["start_ms"].isna().all(), name
        assert len(note[name]), name


def test_results_are_kept_and_undone(corpus):
    """The payload stays byte for byte, a second call has nothing to do, later ones add, and undo removes all."""
    raw = corpus.raw.get("call")
    assert corpus.analyze("call", entity_detection=True)["status"].to_list() == ["analyzed"]
    assert corpus.analyze("call", entity_detection=True)["status"].to_list() == ["unchanged"]
    assert corpus.analyze("call", sentiment_analysis=True)["status"].to_list() == ["analyzed"]
    tables = voxframe.Corpus(corpus.path).tables("call")
    assert len(tables["entities"])
    assert len(tables["sentiments"])
    assert corpus.raw.get("call") == raw
    assert corpus.raw.verify() == []
    assert corpus.analyses.undo() == corpus.ids()[1:2]
    with pytest.warns(CorpusWarning, match=r"corpus.analyze\(entity_detection=True\)"):
        assert corpus.table("entities").empty
    assert corpus.table("transcripts")["local_analyses"].isna().all()


def test_a_correction_is_analysed(corpus):
    """After a correction, the same call analyses the corrected text."""
    corpus.analyze("call", entity_detection=True)
    corpus.corrections.set("call", {0: "My name is Clara Jones and I live in Boston."})
    assert corpus.analyze("call", entity_detection=True)["status"].to_list() == ["analyzed"]
    assert "Clara Jones" in set(corpus.table("entities")["text"])


def test_masking_works_on_any_transcript(corpus, tmp_path):
    """An export with masking has neither the names in the text nor those that label speakers."""
    with pytest.raises(OptionError, match=r"in 2 transcripts without entity_detection.*corpus\.analyze"):
        corpus.export(tmp_path / "out", "csv", tables=["words", "utterances"], ids=["call", "note"], pii="mask")
    corpus.analyze(["call", "note"], entity_detection=True)
    corpus.export(tmp_path / "out", "csv", tables=["words", "utterances"], ids=["call", "note"], pii="mask")
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.csv"))
    assert not [name for name in ("Anna", "Smith", "Boston", "0143", "Ben") if name in text]
    with (tmp_path / "out" / "utterances.csv").open() as file:
        turns = list(csv.DictReader(file))
    assert [turn["speaker"] for turn in turns][:2] == ["Speaker 1", "Speaker 2"]


def test_who_speaks_when_has_nothing_to_analyse_but_names_to_mask(tmp_path, model_folder):
    """Turns without text are analysed to no results, so that masking works; Russian is skipped."""
    model_folder("en_core_web_sm")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    files = {
        "who.rttm": "SPEAKER who 1 0 1 <NA> <NA> Karen <NA> <NA>\n",
        "ru.txt": "\u041f\u0440\u0438\u0432\u0435\u0442!",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        corpus.add(tmp_path / name)
    with pytest.warns(CorpusWarning, match=r"1 transcript of 2 could not be analysed \(1 not English\)"):
        status = corpus.analyze(entity_detection=True)["status"]
    assert sorted(status) == ["analyzed", "skipped"]
    corpus.export(tmp_path / "out", "csv", tables=["utterances"], ids="who", pii="mask")
    assert "Karen" not in (tmp_path / "out" / "utterances.csv").read_text()


def test_redaction_replaces_words(corpus):
    """redact_pii replaces personal data in words and turns, keeps how times are known, and drops other fields."""
    corpus.analyze("call", redact_pii=True, redact_pii_sub="entity_name")
    words = corpus.words("call")
    assert "[PERSON_NAME]" in set(words["text"])
    assert "Smith" not in " ".join(corpus.table("utterances", "call")["text"])
    assert (words["timing"] == "segment").all()
    corpus.analyses.undo("call")
    assert "Smith" in " ".join(corpus.words("call")["text"])


def test_many_transcripts_are_analysed_by_several_processes(tmp_path, model_folder):
    """Two processes give the results of one."""
    model_folder("en_core_web_sm")
    corpora = [voxframe.Corpus(tmp_path / name) for name in ("one", "two")]
    shuffle = random.Random(1).sample
    for n in range(8):
        document = voxframe.importers.converted(srt(shuffle(CUES, len(CUES))).encode(), f"call{n}.srt")
        for corpus in corpora:
            corpus.raw.put(f"t{n}", document)
    for corpus, workers in zip(corpora, (1, 2), strict=True):
        assert set(corpus.analyze(entity_detection=True, workers=workers)["status"]) == {"analyzed"}
    pd.testing.assert_frame_equal(*(corpus.table("entities") for corpus in corpora))


def test_options_are_checked(corpus):
    """An option that is not of an analysis, and a call without any, are refused."""
    with pytest.raises(OptionError, match="no option 'speaker_labels'"):
        corpus.analyze(speaker_labels=True)
    with pytest.raises(OptionError, match="no analysis is requested"):
        corpus.analyze(entity_detection=False)


def test_a_table_or_file_is_analysed_without_a_corpus(tmp_path, model_folder):
    """`voxframe.analyze` takes a DataFrame of turns, a path and a payload; German is refused."""
    model_folder("en_core_web_sm")
    turns = pd.DataFrame(CUES, columns=["speaker", "text"])
    (tmp_path / "call.srt").write_text(srt())
    for source in (turns, tmp_path / "call.srt", json.loads(voxframe.importers.converted(srt().encode(), "a.srt"))):
        assert "Anna Smith" in set(voxframe.analyze(source, entity_detection=True)["entities"]["text"])
    with pytest.raises(PayloadError, match="not English"):
        voxframe.analyze(pd.DataFrame({"text": [GERMAN]}))
