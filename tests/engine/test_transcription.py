"""Transcription of real files."""

import json
import re
import wave
from itertools import pairwise
from pathlib import Path

import av
import jiwer
import numpy as np
import pytest

from voxframe_engine import JobFailed
from voxframe_engine.speech import RATE
from voxframe_engine.speech.audio import Audio
from voxframe_engine.transcription import run_job

DATA = Path(__file__).parents[2] / "data"
pytestmark = [pytest.mark.speech, pytest.mark.long]
#: The small model, for what does not depend on the model.
NANO = {"speech_model": "nano"}


def truth(name: str) -> dict:
    return json.loads((DATA / f"{name}.json").read_text())


def cut(name: str, target: Path, seconds: float) -> Path:
    """Write the beginning of a sample recording as a flac file with all its channels."""
    sound = np.concatenate(list(Audio(DATA / f"{name}.flac", separate_channels=True).blocks()), axis=1)[
        :, : int(seconds * RATE)
    ]
    with av.open(str(target), "w") as container:
        layout = "mono" if len(sound) == 1 else "stereo"
        stream = container.add_stream("flac", rate=RATE, layout=layout)
        frame = av.AudioFrame.from_ndarray(sound.T.reshape(1, -1), "s16", layout)
        frame.sample_rate = RATE
        resampler = av.AudioResampler("s16", layout, RATE, 4096)
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return target


def plain(text: str) -> str:
    return re.sub(r"[^a-z' ]", "", text.lower())


@pytest.fixture(scope="module")
def interview(tmp_path_factory) -> tuple[Path, dict]:
    """The first 30 s of the interview, and its transcript with speaker labels, decoded by two threads."""
    path = cut("interview", tmp_path_factory.mktemp("interview") / "a.flac", 30)
    told: list[float] = []
    result = run_job(path, {"speaker_labels": True, "speakers_expected": 2}, progress=told.append, workers=2)
    return path, {**result, "told": told}


def test_the_words_equal_the_script(interview):
    """At most 15 % of the words differ from the script; half of the times are within 60 ms, 90 % within 200 ms."""
    _, result = interview
    said = [word for turn in truth("interview")["turns"] for word in turn["words"] if word["end_ms"] < 30_000]
    reference = [plain(word["text"]) for word in said]
    heard = [(plain(word["text"].replace("Dr.", "doctor")), word["start"]) for word in result["words"]]
    heard = [(text, start) for text, start in heard if text]  # without numbers in digits
    compared = jiwer.process_words(" ".join(reference), " ".join(text for text, _ in heard))
    assert compared.wer <= 0.15
    off = [
        abs(heard[chunk.hyp_start_idx + n][1] - said[chunk.ref_start_idx + n]["start_ms"])
        for chunk in compared.alignments[0]
        if chunk.type == "equal"
        for n in range(chunk.ref_end_idx - chunk.ref_start_idx)
    ]
    assert np.median(off) <= 60
    assert np.percentile(off, 90) <= 200


def test_the_result_has_the_fields_of_the_api(interview, payload_folder):
    """Every field of the result and of its words is a field of the API."""
    _, result = interview
    example = json.loads((payload_folder / "Transcript.json").read_text())
    fields = {name: value for name, value in result.items() if name not in ("told", "audio_channels")}
    assert set(fields) <= set(example)
    assert set(result["words"][0]) == set(example["words"][0])
    assert set(result["utterances"][0]) == set(example["utterances"][0])
    assert result["audio_duration"] == 30
    assert result["language_code"] == "en_us"
    assert result["audio_channels"] is None


def test_text_words_and_utterances_agree(interview):
    """The text is the joined words, utterances repeat them, confidences are means, and times increase."""
    _, result = interview
    words = result["words"]
    assert result["text"] == " ".join(word["text"] for word in words)
    assert [word for utterance in result["utterances"] for word in utterance["words"]] == words
    assert all(0 <= word["confidence"] <= 1 for word in words)
    assert result["confidence"] == pytest.approx(np.mean([word["confidence"] for word in words]), abs=1e-4)
    assert all(word["start"] < word["end"] for word in words)
    assert all(before["end"] <= after["start"] for before, after in pairwise(words))


def test_sentences_have_capitals_and_marks(interview):
    """The text starts with a capital, has marks, and a capital after each; the recording ends within a sentence."""
    _, result = interview
    assert re.match("[A-Z]", result["text"])
    sentences = re.split(r"[.?] ", result["text"])
    assert len(sentences) >= 6  # of ten; the model joins some with a comma
    assert all(part[0].isupper() or part[0].isdigit() for part in sentences)


def test_turns_are_those_of_the_script(interview):
    """Each turn of the script is one utterance of the right speaker; the first speaker is A."""
    _, result = interview
    true = [turn["speaker"] for turn in truth("interview")["turns"] if turn["start_ms"] < 30_000]
    assert [utterance["speaker"] for utterance in result["utterances"]] == true


def test_progress_rises_to_one(interview):
    """Progress never decreases and ends at 1."""
    _, result = interview
    told = result["told"]
    assert told == sorted(told)
    assert told[0] < told[-1] == 1.0


def test_one_and_two_threads_give_the_same_words(interview):
    """One and two threads give the same words, because windows are independent."""
    path, result = interview
    again = run_job(path, {"speaker_labels": True, "speakers_expected": 2})
    assert again == {name: value for name, value in result.items() if name != "told"}


def test_a_span_keeps_the_times_of_the_file(interview):
    """Words of a part lie within it, mostly equal those of the whole, and the duration is that of the file."""
    path, whole = interview
    part = run_job(path, {"audio_start_from": 10_000, "audio_end_at": 20_000, "punctuate": False, "format_text": False})
    assert part["audio_duration"] == 30
    assert all(10_000 <= word["start"] < word["end"] <= 20_000 for word in part["words"])
    expected = {(plain(word["text"]), round(word["start"], -3)) for word in whole["words"]}
    found = {(word["text"], round(word["start"], -3)) for word in part["words"]}
    assert len(found & expected) / len(found) > 0.6


def test_text_can_be_left_plain(tmp_path):
    """Without punctuation and formatting there are no marks and no capitals; each can be disabled separately."""
    path = cut("interview", tmp_path / "a.flac", 8)
    bare = run_job(path, NANO | {"punctuate": False, "format_text": False})["text"]
    assert bare == bare.lower()
    assert not re.search("[.?]", bare)
    assert re.search("[.,?]", run_job(path, NANO | {"punctuate": True, "format_text": False})["text"])
    formatted = run_job(path, NANO | {"punctuate": False})["text"]
    assert formatted[0].isupper()
    assert not re.search("[.?]", formatted)


def test_spelling_and_profanity_reach_text_words_and_utterances(tmp_path):
    """A custom spelling and then the profanity filter apply to text, words and utterances."""
    path = cut("interview", tmp_path / "a.flac", 8)
    result = run_job(
        path,
        NANO
        | {
            "custom_spelling": [{"from": ["good morning"], "to": "damn"}],
            "filter_profanity": True,
            "speaker_labels": True,
        },
    )
    assert result["words"][0]["text"].rstrip(".,") == "d***"
    assert result["text"].startswith("d***")
    assert result["utterances"][0]["text"].startswith("d***")
    assert result["words"][0]["start"] < 700
    assert result["words"][0]["end"] > 645  # where the second word begins in the truth


@pytest.fixture(scope="module")
def call(tmp_path_factory) -> Path:
    """The first 16 s of the call: three turns and the beginning of a fourth."""
    return cut("call", tmp_path_factory.mktemp("call") / "a.flac", 16)


def _place(word: dict) -> tuple:
    return word["start"], word["channel"]


def test_channels_are_transcribed_apart(call):
    """Each channel has its words in order of time, and each turn of the script is a turn."""
    result = run_job(call, NANO | {"multichannel": True})
    words = result["words"]
    assert result["audio_channels"] == 2
    assert words == sorted(words, key=_place)
    assert {(word["channel"], word["speaker"]) for word in words} == {("1", "1"), ("2", "2")}
    turns = [turn for turn in truth("call")["turns"] if turn["start_ms"] < 16_000]
    assert [utterance["channel"] for utterance in result["utterances"]] == [str(turn["channel"] + 1) for turn in turns]
    assert result["utterances"][0]["text"].startswith("Thank you for calling")
    copies = [word for utterance in result["utterances"] for word in utterance["words"]]
    assert sorted(copies, key=_place) == words


def test_speakers_are_labelled_within_each_channel(call):
    """With speaker labels, a label has the channel and the voice; audio_channels is set for multichannel only."""
    result = run_job(
        call,
        NANO | {"dual_channel": True, "speaker_labels": True, "speakers_expected": 2, "audio_end_at": 9000},
    )
    assert {word["speaker"] for word in result["words"]} == {"1A", "2A"}
    assert {utterance["speaker"] for utterance in result["utterances"]} == {"1A", "2A"}
    assert result["audio_channels"] is None


def test_too_little_speech_is_an_error(tmp_path):
    """A recording that is half speech passes a threshold of 0.3 and fails one of 0.8."""
    path = cut("interview", tmp_path / "a.flac", 8)
    sound = np.concatenate(list(Audio(path).blocks()), axis=1)
    silent = tmp_path / "b.wav"
    with wave.open(str(silent), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(np.concatenate([sound[0], np.zeros_like(sound[0])]).tobytes())
    assert run_job(silent, NANO | {"speech_threshold": 0.3})["words"]
    with pytest.raises(JobFailed, match=r"Speech makes up 0\.\d+ of the audio, less than the speech_threshold of 0\.8"):
        run_job(silent, NANO | {"speech_threshold": 0.8})


def test_silence_is_an_empty_transcript(tmp_path):
    """A recording without speech gives an empty text, no words and a confidence of 0."""
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(bytes(4 * RATE))
    result = run_job(path, {"speaker_labels": True})
    assert (result["text"], result["words"], result["utterances"], result["confidence"]) == ("", [], [], 0.0)
    assert result["audio_duration"] == 2


def test_an_unsupported_language_is_an_error(tmp_path):
    """An unsupported language is an error before anything is decoded."""
    with pytest.raises(JobFailed, match="'fr' is not available: the parrot engine transcribes en_us, es"):
        run_job(tmp_path / "never-read.wav", {"language_code": "fr"}, engine="parrot")


def test_real_speech_is_recognized(audio_folder):
    """Most words of a clean sentence by a real reader are right."""
    result = run_job(audio_folder / "ss-0870.wav", {"punctuate": False, "format_text": False})
    reference = re.search(r"ss-0870.wav \|[^|]*\| ([a-z ]+) \|", (audio_folder / "README.md").read_text())[1]
    assert jiwer.wer(reference, plain(result["text"])) <= 0.3


def test_speech_after_a_pause_is_in_the_transcript(tmp_path: Path, audio_folder: Path) -> None:
    """Readings with pauses of 1.2 s between them are all in the transcript of one file."""
    names, quiet = ("jfk.mp3", "ss-0870.wav", "ss-0880.wav"), np.zeros(round(1.2 * RATE), np.int16)
    readings = [np.concatenate(list(Audio(audio_folder / name).blocks()), axis=1)[0] for name in names]
    with wave.open(str(tmp_path / "readings.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(np.concatenate([part for reading in readings for part in (quiet, reading)]).tobytes())
    text = run_job(tmp_path / "readings.wav", NANO)["text"].lower()
    assert all(word in text for word in ("country", "dashwood", "young man"))
