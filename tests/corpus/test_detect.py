"""`corpus.speakers.detect`: speakers of stored transcripts by voice."""

import json
import wave
from pathlib import Path

import pytest
from tests.benchmarks import mixes

import voxframe
from voxframe.errors import AudioError, AudioNotFoundError, CorpusError, CorpusWarning, OptionError

DATA = Path(__file__).parents[2] / "data"


TURNS = json.loads((DATA / "interview.json").read_text())["turns"]
TRUE = [turn["speaker"] for turn in TURNS for _ in turn["words"]]


def _corpus(path, seconds=1000):
    """A corpus with the first seconds of the interview as a transcript without speakers."""
    words = [
        {"text": word["text"], "start": word["start_ms"], "end": word["end_ms"], "confidence": 1.0}
        for turn in TURNS
        for word in turn["words"]
        if word["end_ms"] <= seconds * 1000
    ]
    corpus = voxframe.Corpus(path)
    corpus.raw.put("t1", json.dumps({"id": "t1", "status": "completed", "words": words}).encode())
    return corpus


@pytest.fixture
def beginning(tmp_path):
    """A corpus with the first 20 seconds of the interview, in which both people speak, and their sound."""
    mixes.write(tmp_path / "beginning.wav", mixes.sound_of(DATA / "interview.flac")[: 20 * mixes.RATE])
    return _corpus(tmp_path / "corpus", 20), tmp_path / "beginning.wav"


def test_a_transcript_without_speakers_gets_them(tmp_path, model_folder):
    """Every read shows the speakers of the words and turns of them; the payload stays, and undo takes them back."""
    model_folder("voices")
    corpus = _corpus(tmp_path / "corpus")
    before = corpus.raw.get("t1")
    speakers = corpus.speakers.detect("t1", audio=DATA / "interview.flac")
    assert sorted(speakers["speaker"]) == ["A", "B"]
    labels = corpus.table("words")["speaker"].tolist()
    assert mixes.wrong_labels([{speaker} for speaker in TRUE], labels) <= 0.08
    assert set(corpus.table("utterances")["speaker"]) == {"A", "B"}
    assert corpus.raw.get("t1") == before
    corpus.corrections.undo("t1")
    assert corpus.table("words")["speaker"].isna().all()


def test_audio_that_is_not_there_is_an_error(beginning):
    """The message says how to give it; nothing is changed."""
    corpus, sound = beginning
    with pytest.raises(AudioNotFoundError, match=r"the audio of 't1' is not on this machine.*give audio="):
        corpus.speakers.detect("t1")
    corpus.raw.put("t2", corpus.raw.get("t1"))
    with pytest.raises(OptionError, match="one file for 2 recordings"):
        corpus.speakers.detect(["t1", "t2"], audio=sound)
    with pytest.raises(OptionError, match="speakers"):
        corpus.speakers.detect("t1", speakers=11)


def test_a_sound_that_does_not_fit_changes_nothing(beginning, model_folder, tmp_path):
    """Silence is refused for one transcript, and left out of several with a warning."""
    model_folder("voices")
    corpus, sound = beginning
    corpus.raw.put("t2", corpus.raw.get("t1").replace(b'"t1"', b'"t2"'))
    silent = tmp_path / "silent.wav"
    with wave.open(str(silent), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(16_000)
        file.writeframes(bytes(2 * 16_000 * 30))
    with pytest.raises(AudioError, match=r"silent\.wav has a voice at 0% of the words of 't1'"):
        corpus.speakers.detect("t1", audio=silent)
    assert corpus.corrections.history().empty
    with pytest.warns(CorpusWarning, match=r"silent\.wav has a voice at 0% .*its speakers are left as they are"):
        speakers = corpus.speakers.detect(["t1", "t2"], audio={"t1": silent, "t2": sound})
    assert set(speakers["transcript_id"]) == {"t2"}


def test_recordings_that_are_done_are_not_heard_again(beginning, model_folder, monkeypatch):
    """The same call again changes nothing and reads no sound; after `undo` it does."""
    model_folder("voices")
    corpus, audio = beginning
    first = corpus.speakers.detect("t1", audio=audio)
    heard = []
    read = voxframe.voices.read_audio
    monkeypatch.setattr(voxframe.voices, "read_audio", lambda path: heard.append(path) or read(path))
    assert corpus.speakers.detect("t1", audio=audio).equals(first)
    assert (heard, len(corpus.corrections.history())) == ([], 1)
    corpus.corrections.undo("t1")
    corpus.speakers.detect("t1", audio=audio)
    assert heard == [audio]


def test_what_has_no_sound_is_named(tmp_path):
    """An unknown recording is no missing file, and a file of captions is no sound."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    (tmp_path / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nGood day.\n")
    corpus.add(tmp_path / "talk.srt")
    with pytest.raises(CorpusError, match="nosuch"):
        corpus.speakers.detect("nosuch")
    with pytest.raises(AudioNotFoundError, match=r"is not on this machine .*talk\.srt.*give audio="):
        corpus.speakers.detect("talk")
