"""`corpus.speakers.detect`: speakers of stored transcripts by voice."""

import json
from pathlib import Path

import pytest
from tests.benchmarks import mixes

import voxframe
from voxframe.errors import AudioNotFoundError, OptionError

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def corpus(tmp_path):
    """A corpus with a transcript without speakers, and the true speaker of each word."""
    turns = json.loads((DATA / "interview.json").read_text())["turns"]
    words = [
        {"text": word["text"], "start": word["start_ms"], "end": word["end_ms"], "confidence": 1.0}
        for turn in turns
        for word in turn["words"]
    ]
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps({"id": "t1", "status": "completed", "words": words}).encode())
    return corpus, [turn["speaker"] for turn in turns for _ in turn["words"]]


def test_a_transcript_without_speakers_gets_them(corpus, model_folder):
    """Every read shows the speakers of the words and turns of them; the payload stays, and undo takes them back."""
    model_folder("voices")
    corpus, true = corpus
    before = corpus.raw.get("t1")
    speakers = corpus.speakers.detect("t1", audio=DATA / "interview.flac")
    assert sorted(speakers["speaker"]) == ["A", "B"]
    labels = corpus.table("words")["speaker"].tolist()
    assert mixes.wrong_labels([{speaker} for speaker in true], labels) <= 0.08
    assert set(corpus.table("utterances")["speaker"]) == {"A", "B"}
    assert corpus.raw.get("t1") == before
    corpus.corrections.undo("t1")
    assert corpus.table("words")["speaker"].isna().all()


def test_audio_that_is_not_there_is_an_error(corpus):
    """The message says how to give it; nothing is changed."""
    corpus, _ = corpus
    with pytest.raises(AudioNotFoundError, match=r"the audio of 't1' is not on this machine.*give audio="):
        corpus.speakers.detect("t1")
    corpus.raw.put("t2", corpus.raw.get("t1"))
    with pytest.raises(OptionError, match="one file for 2 recordings"):
        corpus.speakers.detect(["t1", "t2"], audio=DATA / "interview.flac")
    with pytest.raises(OptionError, match="speakers"):
        corpus.speakers.detect("t1", speakers=11)
