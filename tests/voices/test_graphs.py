"""The graphs of the networks, and filter banks."""

import json

import numpy as np
import pytest
from tests.voices import torch_numbers

from voxframe.errors import MissingExtraError, ModelError
from voxframe.voices import diarization
from voxframe.voices.graphs import read_tensors

NUMBERS = json.loads(torch_numbers.OUT.read_text("utf-8"))


@pytest.fixture(scope="module")
def loaded(model_folder) -> diarization.VoiceNetworks:
    """The networks."""
    model_folder("voices")
    return diarization.load()


def test_the_segmentation_equals_that_of_torch(loaded):
    """Probabilities of a synthetic signal differ from torch's by less than 1e-3."""
    classes = np.exp(np.array(NUMBERS["classes"]))
    alone, pairs = classes[:, 1:4], classes[:, 4:]
    speaking = alone + np.stack([pairs[:, :2].sum(1), pairs[:, ::2].sum(1), pairs[:, 1:].sum(1)], axis=1)
    sound = torch_numbers.signal().astype(np.float32) / 32768
    frames = loaded.segment(sound[None])[0][:, :: torch_numbers.EVERY_FRAME]
    assert np.abs(frames - np.stack([speaking, alone])).max() < 1e-3


@pytest.mark.parametrize("frames", [37, 310])
def test_voice_vectors_equal_those_of_torch(loaded, frames):
    """Vectors of short and long input differ from torch's by less than 1e-3 of their length."""
    expected = np.array(NUMBERS["vectors"][str(frames)])
    banks = torch_numbers.banks(frames)
    vector = loaded._voice.run(None, {"banks": banks[None]})[0][0]
    assert np.abs(vector - expected).max() < 1e-3 * np.linalg.norm(expected)


def test_filter_banks_equal_those_of_kaldi():
    """Logarithms of the energy in each band differ from kaldi-native-fbank's by less than 1e-3."""
    banks = diarization.filter_banks(torch_numbers.signal(1.0))[:: torch_numbers.EVERY_BANK]
    assert np.abs(banks - np.array(NUMBERS["banks"])).max() < 1e-3


def test_too_little_sound_has_no_filter_banks():
    """Less than one frame of 25 ms."""
    assert diarization.filter_banks(np.zeros(399, np.int16)).shape == (0, 80)


def test_nothing_in_a_checkpoint_is_run(tmp_path):
    """A checkpoint that names a function to call is read without calling it."""
    import pickle
    import zipfile

    class Evil:
        def __reduce__(self):
            return (__import__("os").mkdir, (str(tmp_path / "run"),))

    content = pickle.dumps({"state_dict": {"a": Evil()}})
    with zipfile.ZipFile(tmp_path / "model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", content)
    assert "a" in read_tensors(tmp_path / "model.bin")
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_checkpoint_is_an_error(tmp_path):
    """The error names the file."""
    (tmp_path / "model.bin").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"model\.bin is not a torch checkpoint"):
        read_tensors(tmp_path / "model.bin")


def test_without_the_model_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    """The message names the command that downloads it."""
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="voxframe models get voices"):
        diarization.built()


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    """The message names the extra."""
    monkeypatch.setattr(diarization, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"voxframe\[local\]"):
        diarization.built()


def test_damaged_graphs_are_built_again(model_folder, tmp_path, monkeypatch):
    """Graphs that are empty, for example after a power cut, are built again from the official files."""
    source = model_folder("voices")
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    (tmp_path / source.name).symlink_to(source)
    folder = diarization.built()
    good = (folder / "voice.onnx").read_bytes()
    (folder / "voice.onnx").write_bytes(b"")
    assert diarization.built() == folder
    assert (folder / "voice.onnx").read_bytes() == good
    assert [path.name for path in tmp_path.glob(".*-*")] == []
