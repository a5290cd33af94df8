"""Who speaks when."""

import numpy as np
import pandas as pd
import pytest
from tests.benchmarks import mixes

import voxframe
from voxframe.compare import diarization_error_rate
from voxframe.errors import AudioError, AudioNotFoundError, OptionError, SettingsError
from voxframe.voices import diarization
from voxframe.voices.diarization import LocalSpeaker, Span

FRAMES, STEP_S = 589, 2.5


def recording(script: str, spread: float = 0.05, seed: int = 0):
    """Local speakers of windows of 10 s, one per letter, with vectors near those of the letter; "-" is silence."""
    rng = np.random.default_rng(seed)
    voices = {name: rng.normal(size=192) for name in sorted(set(script))}
    active, local = [], []
    for window, name in enumerate(script):
        speech = np.zeros((2, FRAMES, 3), np.float32)
        if name != "-":
            vector = voices[name] + rng.normal(size=192) * spread * 10
            speech[:, :, 0] = 1
            local.append(LocalSpeaker(window, 0, 9.9, True, (vector / np.linalg.norm(vector)).astype(np.float32)))
        active.append(speech)
    return active, local


def speakers_of(spans: list[Span]) -> list[int]:
    return [span.speaker for span in spans]


def test_speakers_are_numbered_in_order_of_first_speech():
    """The first one is 0, for any lengths of speech."""
    result = diarization.assemble(*recording("yyyy----xxxxxxxxxxxx----zzzzzz----yyyy"), None)
    assert speakers_of(result.spans) == [0, 1, 2, 0]
    assert result.vectors.shape == (3, 192)


def test_a_speaker_who_is_silent_for_an_hour_keeps_the_label():
    """The same voice before and after an hour of somebody else is one speaker, also if vectors are joined first."""
    hour = "y" * 1440
    result = diarization.assemble(*recording(f"xxxxxxxx----{hour}----{hour}----xxxxxxxx"), None)
    assert speakers_of(result.spans) == [0, 1, 1, 0]


def test_the_given_number_of_speakers_is_used():
    """Three different voices are three speakers, or two if the number says so."""
    script = "xxxxxx----yyyyyy----zzzzzz----xxxxxx"
    assert len(diarization.assemble(*recording(script), 2).vectors) == 2
    assert len(diarization.assemble(*recording(script), 3).vectors) == 3


def test_more_speakers_than_vectors():
    """Ten speakers in one window: one is found."""
    assert len(diarization.assemble(*recording("x"), 10).vectors) == 1


def test_two_who_speak_at_once_have_spans_that_overlap():
    """Each local speaker of a window is another speaker."""
    active, local = recording("xxxxxxyyyyyy")
    other = local[-1].vector
    active[2][0, 200:300, 1] = 1
    local.append(LocalSpeaker(2, 1, 1.7, False, other))
    for window in (0, 1, 3, 4):  # the same time in the windows that overlap it
        first = 200 - round((window - 2) * STEP_S / 0.016875)
        active[window][0, max(0, first) : max(0, min(first + 100, FRAMES)), 1] = 1
        local.append(LocalSpeaker(window, 1, 1.7, False, other))
    local.sort(key=lambda speaker: speaker.window)
    result = diarization.assemble(active, local, None)
    overlap = next(span for span in result.spans if span.speaker == 1)
    assert overlap.end_ms - overlap.start_ms == pytest.approx(1690, abs=20)
    assert overlap.start_ms == pytest.approx(5000 + 200 * 16.875, abs=20)
    assert [span.speaker for span in result.front] == [0, 1]  # the other is never likely to speak alone meanwhile


def test_who_is_in_front_is_most_likely_to_speak_alone():
    """While two speak at once, the one in front changes with the probabilities; the spans in front never overlap."""
    active, local = recording("xxxxxx")
    other = recording("y", seed=9)[1][0].vector
    for window, speech in enumerate(active):
        speech[0, :, 1] = 1
        speech[1] = 0.2
        speech[1, :, 1] = 0.1 if window < 3 else 0.3
        local.append(LocalSpeaker(window, 1, 9.9, True, other))
    local.sort(key=lambda speaker: speaker.window)
    result = diarization.assemble(active, local, None)
    assert [(span.start_ms, span.end_ms) for span in result.spans] == [(0, result.spans[0].end_ms)] * 2
    assert sorted(speakers_of(result.front)) == [0, 1]
    assert result.front[0].end_ms == result.front[1].start_ms
    assert result.front[0].end_ms == pytest.approx(12_500, abs=2500)


def test_silence_has_no_speakers(model_folder):
    """Silence, no sound and a few samples give no spans and no error."""
    model_folder("voices")
    for samples in (0, 1, 500, 30_000, 200_000):
        result = diarization.diarize([np.zeros(samples, np.int16)])
        assert result.spans == []
        assert result.vectors.shape == (0, 192)


def test_blocks_of_any_length_give_the_same_spans(model_folder, audio_folder):
    """Sound that arrives in small pieces is read as if it came whole."""
    model_folder("voices")
    sound = mixes.sound_of(audio_folder / "meetings" / "dev00.flac")
    parts = np.split(sound, [1, 7000, 90_000, 250_123])
    assert diarization.diarize(parts).spans == diarization.diarize([sound]).spans


def test_readers_in_turns_are_told_apart(model_folder, audio_folder, tmp_path):
    """The number of readers in a mix with overlap is right, and the diarization error rate below 0.25."""
    model_folder("voices")
    voices = mixes.readers(audio_folder)
    sound, turns = mixes.mix(voices, ["austen", "kennedy", "libri"], 1, 40.0)
    mixes.write(tmp_path / "mix.wav", sound)
    reference = pd.DataFrame(
        [(t.reader, t.start * 1000, t.end * 1000) for t in turns], columns=["speaker", "start_ms", "end_ms"]
    )
    result = voxframe.voices.diarize(tmp_path / "mix.wav", progress=False)
    assert result["speaker"].iloc[0] == "A"
    assert result["start_ms"].is_monotonic_increasing
    assert sorted(set(result["speaker"])) == ["A", "B", "C"]
    assert diarization_error_rate(reference, result, collar_ms=250)["der"].iloc[0] < 0.25


def test_vectors_of_one_voice_are_closer(model_folder, audio_folder):
    """Vectors of two halves of a reader are closer than those of two readers; none for a speaker who is never alone."""
    model_folder("voices")
    voices = mixes.readers(audio_folder)
    sound = np.concatenate([voices["austen"][: 20 * mixes.RATE], voices["libri"][: 10 * mixes.RATE]])
    spans = [Span(0, 10_000, 0), Span(10_000, 20_000, 1), Span(20_000, 30_000, 2), Span(21_000, 22_000, 3)]
    vectors = diarization.speaker_vectors(np.array_split(sound, 7), spans)
    assert vectors[0] @ vectors[1] > 0.6
    assert max(vectors[0] @ vectors[2], vectors[1] @ vectors[2]) < 0.4
    assert np.isnan(vectors[3]).all()


def test_wrong_arguments(tmp_path):
    """Each error names the value."""
    with pytest.raises(AudioNotFoundError, match=r"there is no file .*none\.wav"):
        voxframe.voices.diarize(tmp_path / "none.wav")
    with pytest.raises(OptionError, match="speakers"):
        voxframe.voices.diarize(tmp_path / "none.wav", speakers=0)
    (tmp_path / "text.wav").write_text("text")
    with pytest.raises(AudioError, match=r"text\.wav"):
        voxframe.voices.diarize(tmp_path / "text.wav")


def test_a_diarizer_that_is_not_installed(monkeypatch):
    """The error names those that are."""
    monkeypatch.setenv("VOXFRAME_DIARIZER", "parrot")
    with pytest.raises(SettingsError, match="no diarizer 'parrot'; installed are voices"):
        diarization.find()


def test_a_turn_goes_on_while_its_span_does():
    """A word of B within a span of A does not end A's turn; a word of A in a later span begins a turn."""
    assert diarization.turns_of(list("ABABAA"), [0, 1, 0, 3, 2, 2]) == [0, 1, 0, 2, 3, 3]
    assert diarization.turns_of(["A", "A", "B", "A"], [None] * 4) == [0, 0, 1, 2]
