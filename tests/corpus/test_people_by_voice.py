"""`corpus.speakers.assign(by="voice")`: which speakers of different recordings are one person."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from tests.benchmarks import mixes

import voxframe
from voxframe._arrow import TEXT
from voxframe.corpus.speakers import people_by_voice
from voxframe.errors import AudioNotFoundError, CorpusWarning, OptionError


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, audio_folder):
    """The folder of a corpus of three conversations of readers, and of their media files."""
    folder = tmp_path_factory.mktemp("mixed")
    halves = {}
    for name in ("austen", "libri", "kennedy"):
        sound = mixes.pieces(np.concatenate([mixes.sound_of(audio_folder / file) for file in mixes.READERS[name]]))
        halves[name] = [np.concatenate(sound[part::2]) for part in (0, 1)]
    corpus = voxframe.Corpus(folder / "corpus")
    for name, part, readers in (
        ("one", 0, ["austen", "kennedy"]),
        ("two", 1, ["libri", "austen"]),
        ("three", 0, ["libri"]),
    ):
        order = readers * 3
        sounds = [np.array_split(halves[reader][part], 3)[n // len(readers)] for n, reader in enumerate(order)]
        ends = np.cumsum([len(sound) for sound in sounds]) * 1000 // mixes.RATE
        starts = [0, *ends[:-1]]
        words = [
            {"text": reader, "start": int(start), "end": int(end), "speaker": "AB"[readers.index(reader)]}
            for reader, start, end in zip(order, starts, ends, strict=True)
        ]
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "words": words}).encode())
        mixes.write(folder / f"{name}.wav", np.concatenate(sounds))
    return folder


@pytest.fixture
def recordings(tmp_path, mixed):
    """A corpus of three conversations of readers with word times and labels from the mix, and their media files."""
    folder = shutil.copytree(mixed, tmp_path / "mixed")
    return voxframe.Corpus(folder / "corpus"), {name: folder / f"{name}.wav" for name in ("one", "two", "three")}


def _people(corpus):
    table = corpus.speakers.table()
    return {(row.transcript_id, row.speaker): row.person for row in table.dropna(subset="person").itertuples()}


def test_one_reader_of_two_recordings_is_one_person(recordings, model_folder):
    """Speakers above the threshold become one person with the name of one of them; pairs have scores; undo reverts."""
    model_folder("voices")
    corpus, files = recordings
    corpus.speakers.set("two", {"B": "Jane"})
    pairs = corpus.speakers.assign(by="voice", audio=files)
    assert _people(corpus) == {
        ("one", "A"): "Jane",
        ("two", "B"): "Jane",
        ("two", "A"): "Person 1",
        ("three", "A"): "Person 1",
    }
    assert len(pairs) == 8  # 2 * 2 + 2 * 1 + 2 * 1
    assert pairs["score"].is_monotonic_decreasing
    assert pairs["person"].notna().tolist() == [True] * 2 + [False] * 6
    assert pairs["score"][1] > 0.5 > pairs["score"][2]
    corpus.speakers.undo()
    assert _people(corpus) == {}


def test_nothing_is_assigned_below_the_threshold(recordings, model_folder):
    """With a threshold above all scores, nobody gets a person."""
    model_folder("voices")
    corpus, files = recordings
    pairs = corpus.speakers.assign(by="voice", audio=files, threshold=0.99)
    assert pairs["score"].max() < 0.99
    assert pairs["person"].isna().all()
    assert _people(corpus) == {}


def test_a_recording_without_sound_is_left_out(recordings, model_folder, tmp_path):
    """A file that is missing and one that is no media file are warnings; the others are compared."""
    model_folder("voices")
    corpus, files = recordings
    with pytest.warns(CorpusWarning, match="audio of 'three' is not on this machine.*its voices are not compared"):
        pairs = corpus.speakers.assign(by="voice", audio={**files, "three": tmp_path / "none.wav"})
    assert set(pairs["transcript_id"]) | set(pairs["other_transcript_id"]) == {"one", "two"}
    assert _people(corpus) == {("one", "A"): "Person 1", ("two", "B"): "Person 1"}
    files["three"].write_text("no sound")
    with pytest.warns(CorpusWarning, match=r"three\.wav.*its voices are not compared"):
        assert len(corpus.speakers.assign(by="voice", audio=files)) == 4


def test_voice_vectors_are_stored_on_request_and_forgotten(recordings, model_folder, tmp_path):
    """Stored vectors replace the sound until the spans change; no export has them; both ways to forget work."""
    model_folder("voices")
    corpus, files = recordings

    def stored():
        return {i for (i,) in corpus._archive.catalog.rows("SELECT DISTINCT transcript_id FROM voices")}

    first = corpus.speakers.assign(by="voice", audio=files)
    assert stored() == set()
    corpus.speakers.assign(by="voice", audio=files, keep_vectors=True)
    assert stored() == {"one", "two", "three"}
    again = corpus.speakers.assign(by="voice")  # without any sound
    pd.testing.assert_series_equal(again["score"], first["score"])
    vector = corpus._archive.catalog.rows("SELECT vector FROM voices")[0][0]
    corpus.export(tmp_path / "exported")
    files = [path for path in (tmp_path / "exported").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if vector in path.read_bytes()]
    corpus.forget("two")
    assert stored() == {"one", "three"}
    corpus.corrections.relabel("one", ["B", "A"] * 3)
    with pytest.warns(CorpusWarning, match="audio of 'one' is not on this machine"):
        assert corpus.speakers.assign(by="voice").empty
    assert corpus.speakers.forget_vectors("one") == 2
    assert stored() == {"three"}


def test_stored_vectors_are_those_of_the_sound(recordings, model_folder):
    """With another file, the vectors are computed again, and kept in the place of the earlier ones."""
    model_folder("voices")
    corpus, files = recordings
    right = corpus.speakers.assign(by="voice", audio=files, threshold=1)
    wrong = files | {"two": files["one"]}
    other = corpus.speakers.assign(by="voice", audio=wrong, threshold=1, keep_vectors=True)
    assert (other["score"] - right["score"]).abs().max() > 0.1
    again = corpus.speakers.assign(by="voice", audio=files, threshold=1, keep_vectors=True)
    pd.testing.assert_frame_equal(again, right)
    pd.testing.assert_frame_equal(corpus.speakers.assign(by="voice", threshold=1), right)  # without any sound


def _speakers(*rows):
    return pd.DataFrame(rows, columns=["transcript_id", "person", "speaker_name"]).astype(TEXT)


def _directions(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_speakers_of_one_recording_are_never_one_person():
    """Of two alike in a recording, the one who is more alike joins the speaker of the other recording."""
    speakers = _speakers(("t1", None, None), ("t1", None, None), ("t2", None, None))
    people = people_by_voice(speakers, _directions(0, 4, 10), 0.5)
    assert people.isna().tolist() == [True, False, False]


def test_people_are_kept_and_joined():
    """A new speaker joins a person; two people stay two; a new person gets no name that is taken."""
    speakers = _speakers(
        ("t1", "Ada", None), ("t2", "Ben", None), ("t3", None, None), ("t4", None, "Ada"), ("t5", None, None)
    )
    people = people_by_voice(speakers, _directions(0, 10, 9, 90, 92), 0.9, {"Person 1"})
    assert people.fillna("").tolist() == ["", "Ben", "Ben", "Person 2", "Person 2"]


def test_all_pairs_of_a_person_reach_the_threshold():
    """Of a chain, the ends are not one person: the cosines of 30 and 60 degrees are 0.87 and 0.5."""
    people = people_by_voice(_speakers(*[(f"t{n}", None, None) for n in range(3)]), _directions(0, 30, 60), 0.8)
    assert people.notna().sum() == 2


def test_wrong_arguments(recordings):
    """Each error says what is wrong; nothing is assigned."""
    corpus, files = recordings
    with pytest.raises(AudioNotFoundError, match="the audio of 'one' is not on this machine"):
        corpus.speakers.assign(by="voice")
    with pytest.raises(OptionError, match="threshold must be a number from -1 to 1"):
        corpus.speakers.assign(by="voice", audio=files, threshold=2)
    with pytest.raises(OptionError, match='for by="voice"'):
        corpus.speakers.assign(by="name", threshold=0.5)
    with pytest.raises(OptionError, match="takes no people"):
        corpus.speakers.assign({"Ada": "Ada"}, by="voice", audio=files)
    assert _people(corpus) == {}
