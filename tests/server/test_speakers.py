"""Speakers of a real meeting through the server."""

from itertools import combinations

import pytest

import voxframe

pytestmark = pytest.mark.speech


@pytest.fixture(scope="module")
def transcript(service, audio_folder, model_folder) -> dict:
    """Twenty seconds of a meeting in which two people speak at once."""
    model_folder("voices")
    url = service.upload((audio_folder / "meetings" / "trn09.flac").read_bytes())
    return service.wait(service.create(url, speaker_labels=True, speech_model="nano", audio_end_at=20_000)["id"])


def test_speech_of_two_at_once_gives_words_to_both(transcript):
    """Turns of different speakers overlap, also one inside another; each word is in one turn of its speaker."""
    assert transcript["status"] == "completed"
    turns = transcript["utterances"]
    assert [turn["start"] for turn in turns] == sorted(turn["start"] for turn in turns)
    overlapping = [(a, b) for a, b in combinations(turns, 2) if b["start"] < a["end"]]
    assert any(a["speaker"] != b["speaker"] and b["end"] < a["end"] for a, b in overlapping)
    assert all(word["speaker"] == turn["speaker"] for turn in turns for word in turn["words"])
    words = sorted((word for turn in turns for word in turn["words"]), key=lambda word: word["start"])
    assert words == transcript["words"]


def test_the_tables_show_the_overlap(transcript):
    """Words of overlapping turns keep their turn, and the interruption is counted."""
    words = voxframe.load_words(transcript)
    turns = voxframe.load_utterances(transcript)
    assert len(words) == len(transcript["words"])
    for idx, group in words.groupby("utterance_idx"):
        assert group["speaker"].unique().tolist() == [turns["speaker"][idx]]
        assert " ".join(group.sort_values("start_ms", kind="stable")["text"]) == turns["text"][idx]
