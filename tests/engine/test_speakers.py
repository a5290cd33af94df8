"""Speaker labels of words."""

import json
from pathlib import Path

import pytest
from tests.benchmarks import mixes

from voxframe.voices.diarization import Diarization, Span
from voxframe_engine import JobFailed
from voxframe_engine.speech.audio import Audio
from voxframe_engine.text import Word
from voxframe_engine.transcription import label_speakers, voices_of

DATA = Path(__file__).parents[2] / "data"


def labels(times: list[tuple[int, int]], spans: list[tuple[int, int, int]], front=()) -> str:
    words = [Word("word", start, end, 0.9) for start, end in times]
    label_speakers(words, Diarization([Span(*span) for span in spans], None, [Span(*span) for span in front]))
    return "".join(word.speaker for word in words)


def test_labels_follow_the_order_of_words():
    """The speaker of the first word is A, whatever the number of the voice."""
    assert labels([(0, 300), (1000, 1300), (2000, 2300)], [(0, 500, 4), (900, 1500, 0), (1900, 2500, 4)]) == "ABA"


def test_a_word_across_a_change_goes_to_who_speaks_in_most_of_it():
    """A third of the word is spoken by the first speaker, the rest by the second."""
    assert labels([(0, 300), (400, 700), (800, 900)], [(0, 500, 0), (500, 1000, 1)]) == "ABB"


def test_a_backchannel_is_a_turn_of_its_own():
    """A word that is spoken by another speaker alone, between two spans of a speaker."""
    assert labels([(0, 400), (600, 800), (900, 1300)], [(0, 500, 0), (550, 850, 1), (850, 1400, 0)]) == "ABA"


def test_in_overlap_a_word_goes_to_who_is_in_front():
    """Both get words: each the one in which they are heard best for most of the time."""
    spans = [(0, 1000, 0), (500, 2000, 1)]
    front = [(0, 600, 0), (600, 800, 1), (800, 1000, 0), (1000, 2000, 1)]
    assert labels([(0, 400), (510, 580), (580, 780), (820, 990), (1100, 1500)], spans, front) == "AABAB"


def test_in_overlap_the_speaker_goes_on_if_it_is_not_known_who_is_in_front():
    """A word that two speak in throughout goes to the speaker of the word before."""
    spans = [(0, 1000, 0), (500, 2000, 1)]
    assert labels([(0, 400), (600, 900), (1100, 1500)], spans) == "AAB"
    assert labels([(1100, 1500), (1600, 1900)], spans) == "AA"


def test_a_word_outside_all_spans_goes_to_the_nearest():
    """Speech that the segmentation has missed."""
    assert labels([(0, 100), (560, 600), (900, 990)], [(0, 200, 0), (700, 1000, 1)]) == "ABB"


def test_words_without_spans_have_one_speaker():
    """No voice was heard: all words are by A. No words are no error."""
    assert labels([(0, 100), (200, 300)], []) == "AA"
    assert labels([], [(0, 100, 0)]) == ""


def test_times_are_those_of_the_file(model_folder, audio_folder):
    """Spans of a part that starts later have the times of the whole file, and nothing before the part."""
    model_folder("voices")
    path = audio_folder / "meetings" / "dev00.flac"
    part = voices_of(Audio(path, start_ms=12_500, end_ms=22_000), 0, None)
    for spans in (part.spans, part.front):
        assert spans
        assert all(12_500 <= span.start_ms < span.end_ms <= 22_100 for span in spans)


def test_without_the_models_the_job_says_what_to_do(monkeypatch, tmp_path):
    """The error of the job names the command."""
    from voxframe.voices import diarization

    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    diarization.load.cache_clear()
    with pytest.raises(JobFailed, match=r"speaker_labels is not available.*voxframe models get voices"):
        voices_of(Audio(DATA / "panel.flac"), 0, None)


def test_the_sample_speakers_are_told_apart(model_folder):
    """With the true words and number of speakers, at most 8% of the words of a panel go to the wrong speaker."""
    model_folder("voices")
    turns = json.loads((DATA / "panel.json").read_text())["turns"]
    true = [turn["speaker"] for turn in turns for _ in turn["words"]]
    words = [Word(word["text"], word["start_ms"], word["end_ms"], 1.0) for turn in turns for word in turn["words"]]
    label_speakers(words, voices_of(Audio(DATA / "panel.flac"), 0, len(set(true))))
    assert mixes.wrong_labels([{speaker} for speaker in true], [word.speaker for word in words]) <= 0.08
