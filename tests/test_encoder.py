"""Vectors of sentences."""

import shutil
import sys
import warnings

import numpy as np
import pytest

from voxframe import encoder, models
from voxframe.errors import MissingExtraError, ModelError

SENTENCES = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "A monkey is playing drums.",
    "Someone in a gorilla costume is playing a set of drums.",
]


def check_similarities(model: encoder.SentenceEncoder) -> None:
    """Compare the cosines of the sentences with those of the model card."""
    vectors = model.encode(SENTENCES)
    assert vectors.shape == (4, encoder.SIZE)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] == pytest.approx(0.7553, abs=0.02)
    assert cosines[2, 3] > 0.5 > 0.2 > cosines[0, 2]


@pytest.fixture
def no_models(tmp_path, monkeypatch):
    """An empty cache and no downloads."""
    for name in ("VOXFRAME_MODEL_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("VOXFRAME_OFFLINE", "1")
    encoder.find.cache_clear()
    encoder.load.cache_clear()
    yield tmp_path
    encoder.find.cache_clear()
    encoder.load.cache_clear()


@pytest.fixture
def official(no_models, monkeypatch):
    """The official model, copied to the empty cache."""
    monkeypatch.delenv("VOXFRAME_MODEL_CACHE")
    found = models.find(models.SENTENCES)
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(no_models))
    shutil.copytree(found, no_models / models.SENTENCES)
    return found


def test_similarities_are_those_that_the_model_was_published_with():
    """The cosines of the model card, within the error of 8-bit weights."""
    check_similarities(encoder.load())


def test_the_vector_of_a_text_does_not_depend_on_the_others():
    """A batch of texts of different lengths gives the vectors that each text gets alone, in the same order."""
    texts = [" ".join(SENTENCES), *SENTENCES, "", "word " * 1000]
    together = encoder.load().encode(texts)
    alone = np.concatenate([encoder.load().encode([text]) for text in texts])
    assert np.abs(together - alone).max() < 0.02
    assert encoder.load().encode([]).shape == (0, encoder.SIZE)


def test_only_what_follows_256_tokens_is_cut():
    """The model reads 256 tokens of a text, two of which mark its start and end."""
    vectors = encoder.load().encode(
        [f"{'word ' * 253}{last}" for last in ("money", "music", "word money", "word music")]
    )
    assert vectors[0] @ vectors[1] < 0.9999
    assert vectors[2] @ vectors[3] > 0.9999


def test_without_the_model_there_is_one_warning_with_the_next_step(no_models):
    """And None each time, so that the analyses use their lists of words."""
    with pytest.warns(UserWarning, match="voxframe models get all-MiniLM-L6-v2"):
        assert encoder.find() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.find() is None


@pytest.mark.parametrize("package", ["ctranslate2", "tokenizers"])
def test_a_missing_package_is_named_with_its_extra(no_models, monkeypatch, package):
    """Without either package, the error says which extra installs it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'voxframe\[local\]'"):
        encoder.load()


@pytest.mark.long
def test_a_damaged_conversion_is_made_again(no_models, official):
    """Converted files are checked before use, and encode as published; removing the model removes them."""
    encoder.load()
    encoder.load.cache_clear()
    weights = models.derived_dir(models.SENTENCES) / "model.bin"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1])
    check_similarities(encoder.load())
    assert weights.read_bytes() == good
    written = weights.stat().st_mtime_ns
    encoder.converted()  # it is there
    assert weights.stat().st_mtime_ns == written
    assert [path.name for path in weights.parent.parent.glob(".*-*")] == []
    assert models.remove(models.SENTENCES)
    assert not models.derived_dir(models.SENTENCES).exists()
    with pytest.raises(ModelError, match="not on this machine"):
        models.find(models.SENTENCES)


@pytest.mark.long
def test_changes_are_added_to_the_official_weights(no_models, official):
    """Changes of zero convert to the official model, others are added; removing the model removes all of it."""
    query = "encoder.layer.0.attention.self.query"
    zero = {f"{query}.weight.up": np.zeros((384, 2), np.float16), f"{query}.weight.down": np.ones((2, 384), np.float16)}
    np.savez(no_models / "zero.npz", **zero)
    np.savez(no_models / "some.npz", **{"embeddings.LayerNorm.bias": np.full(384, 0.5, np.float16)})
    same = encoder.converted(no_models / "zero.npz")
    assert (same / "model.bin").read_bytes() == (encoder.converted() / "model.bin").read_bytes()
    other = encoder.converted(no_models / "some.npz")
    assert not same.exists()  # of another version
    assert np.abs(encoder.SentenceEncoder(other).encode(SENTENCES) - encoder.load().encode(SENTENCES)).max() > 0.02
    weights = encoder._Weights(official / "model.safetensors", {"embeddings.LayerNorm.bias": np.full(384, 0.5)})
    plain = encoder._Weights(official / "model.safetensors", {})
    assert weights["embeddings.LayerNorm.bias"] == pytest.approx(plain["embeddings.LayerNorm.bias"] + 0.5)
    factors = {f"{query}.weight.up": np.eye(384, 1), f"{query}.weight.down": np.full((1, 384), 2.0)}
    changed = encoder._Weights(official / "model.safetensors", factors)[f"{query}.weight"]
    assert changed[0] == pytest.approx(plain[f"{query}.weight"][0] + 2, abs=1e-5)  # only the first row
    assert changed[1:] == pytest.approx(plain[f"{query}.weight"][1:])
    assert models.remove(models.SENTENCES)
    assert not other.exists()
    assert not models.derived_dir(models.SENTENCES).exists()
