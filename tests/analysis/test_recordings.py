"""The column `recording` of DataFrames from files and corpora, in plots, measures and exports."""

import json
import pickle

import matplotlib as mpl
import pandas as pd
import pytest

import voxframe
from voxframe import analysis, compare, export, plots
from voxframe.analysis.grouping import with_keys

mpl.use("agg")

#: Ids by name of the file.
IDS = {"ada": "5b1f0c1e-0000-4000-8000-000000000001", "bob": "5b1f0c1e-0000-4000-8000-000000000002"}


@pytest.fixture
def folder(tmp_path):
    """Folder with the payloads of two recordings."""
    for name, id_ in IDS.items():
        words = [
            {"text": text, "start": 1000 * n, "end": 1000 * n + 900, "confidence": 0.9, "speaker": "AB"[n % 2]}
            for n, text in enumerate(["yes", "no", "yes"])
        ]
        path = tmp_path / "files" / f"{name}.mp3.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"id": id_, "status": "completed", "audio_duration": 3, "words": words}))
    return tmp_path / "files"


@pytest.fixture
def corpus(folder, tmp_path):
    """Corpus with both recordings."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(folder)
    return corpus


def lanes(df, **options):
    """Return the names of the lanes of a timeline with one lane per transcript."""
    return [label.get_text() for label in plots.timeline(df, by="transcript_id", **options).get_yticklabels()]


def test_rows_from_anywhere_know_their_recordings(folder, corpus):
    """Lanes of transcripts have the names of recordings, wherever the rows were read."""
    snapshot = corpus.snapshots.create()
    for rows in (
        voxframe.load_words(folder),
        voxframe.tables(folder)["words"],
        voxframe.load_words(corpus),
        voxframe.load_words(["ada", "bob"], corpus=corpus),
        voxframe.load_words([IDS["ada"], str(folder / "bob.mp3.json")], corpus=corpus),
        corpus.words(),
        corpus.table("words", where="confidence > 0.5", metadata="person"),
        corpus.table("words", category=True),
        corpus.sql("select * from words order by transcript_id"),
        corpus.search("yes"),
        snapshot.table("words"),
    ):
        assert lanes(rows) == ["ada", "bob"]
        assert rows.columns.get_loc("recording") == 1
        assert rows["recording"].value_counts().to_dict() == {"ada": len(rows) // 2, "bob": len(rows) // 2}
    assert lanes(corpus["bob"]["words"]) == ["bob"]


def test_names_stay_with_rows(corpus, tmp_path):
    """Names are a column, which operations of pandas, pickling and Parquet files keep."""
    words = corpus.words()
    for rows in (
        words[words["speaker"] == "A"],
        words.assign(x=1).sort_values("start_ms").reset_index(drop=True),
        words.merge(corpus.metadata.get(), on=["transcript_id", "recording"]),
        pd.concat([corpus["ada"]["words"], voxframe.Corpus(corpus.path)["bob"]["words"]]),
        pickle.loads(pickle.dumps(words)),
        words.vox.turns(),
        analysis.split_spans(words, window_s=1),
    ):
        assert lanes(rows) == ["ada", "bob"]
    words.to_parquet(tmp_path / "words.parquet")
    assert lanes(pd.read_parquet(tmp_path / "words.parquet")) == ["ada", "bob"]
    assert words.attrs == {}


def test_measures_group_by_recording_and_name_strangers(corpus):
    """`by="recording"` needs no column, and a label without a person is shown with its recording."""
    people = {"transcript_id": list(IDS.values()), "speaker": ["A", "B"], "person": ["Ada", "Bob"]}
    corpus.speakers.assign(pd.DataFrame(people))
    words = corpus.table("words", metadata="person")
    assert analysis.talk_time(words, by="recording")["recording"].tolist() == ["ada", "bob"]
    assert analysis.talk_time(words, by="person")["person"].tolist() == ["Ada", "Bob", "ada · B", "bob · A"]
    assert (
        plots.rates(analysis.rates(analysis.talk_time(words), "words", "talk_s", "transcript_id"))
        .get_yticklabels()[0]
        .get_text()
        == "ada"
    )
    with pytest.raises(ValueError, match="cannot group by 'recording'"):
        with_keys(words.drop(columns=["transcript_id", "recording"]), "recording")


def test_transcripts_of_one_recording_stay_apart(folder):
    """Two transcripts with the same name of their recording have lanes, speakers and files of their own."""
    (folder / "more").mkdir()
    payload = json.loads((folder / "ada.mp3.json").read_bytes()) | {"id": "77777777-0000"}
    (folder / "more" / "ada.json").write_text(json.dumps(payload))
    words = voxframe.load_words([folder / "ada.mp3.json", folder / "more" / "ada.json"])
    assert lanes(words) == ["ada-5b1f0c1e", "ada-77777777"]
    assert analysis.talk_time(words, by="recording")["words"].tolist() == [6]
    strangers = analysis.talk_time(words.assign(person=None), by="person")["person"]
    assert strangers.tolist() == [f"ada-{id_} · {label}" for id_ in ("5b1f0c1e", "77777777") for label in "AB"]
    written = export.write(words, folder / "captions", "vtt")
    assert sorted(written) == [f"ada-{id_}.vtt" for id_ in (IDS["ada"], "77777777-0000")]


def test_exports_and_comparisons_use_names(corpus, tmp_path):
    """Files of `export.write` and lanes of disagreements are named by recording."""
    words = corpus.words()
    assert sorted(export.write(words, tmp_path / "captions", "srt")) == ["ada.srt", "bob.srt"]
    edits = compare.align("yes no no", words[words["transcript_id"] == IDS["bob"]])
    assert edits["recording"].unique().tolist() == ["bob"]
    assert [label.get_text() for label in plots.disagreements(edits).get_yticklabels()] == ["bob"]
    assert corpus.search("yes").vox.plot_dispersion().get_yticklabels()[1].get_text() == "bob"
