"""Vectors of sentences."""

import json
import math
import shutil
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

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


def mpnet_vectors(folder: Path, texts: list[str]) -> np.ndarray:
    """Compute the vectors of texts from the official weights of MPNet, as its paper and its first program do."""
    data = np.memmap(folder / "model.safetensors", np.uint8, "r")
    start = 8 + int.from_bytes(data[:8], "little")
    places = json.loads(bytes(data[8:start]))

    @cache
    def weights(name):
        place = places[name]
        first, end = place["data_offsets"]
        return np.array(data[start + first : start + end]).view(np.float32).reshape(place["shape"])

    def linear(states, name):
        return states @ weights(f"{name}.weight").T + weights(f"{name}.bias")

    def norm(states, name):
        states = (states - states.mean(1, keepdims=True)) / np.sqrt(states.var(1, keepdims=True) + 1e-5)
        return states * weights(f"{name}.weight") + weights(f"{name}.bias")

    def bucket(distance):
        """Return the number of the row of biases for a token at a distance."""
        side, distance = (16, distance) if distance > 0 else (0, -distance)
        return side + (distance if distance < 8 else min(15, 8 + int(np.log(distance / 8) / np.log(128 / 8) * 8)))

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vectors = []
    for text in texts:
        ids = tokenizer.encode(text).ids
        count = len(ids)
        states = weights("embeddings.word_embeddings.weight")[ids]
        states = norm(states + weights("embeddings.position_embeddings.weight")[2 : count + 2], "embeddings.LayerNorm")
        buckets = [[bucket(to - at) for to in range(count)] for at in range(count)]
        bias = weights("encoder.relative_attention_bias.weight")[buckets].transpose(2, 0, 1)
        for number in range(12):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                linear(states, f"{layer}.attention.attn.{part}").reshape(count, 12, 64).transpose(1, 0, 2)
                for part in "qkv"
            )
            scores = np.exp(query @ key.transpose(0, 2, 1) / 8 + bias)
            mixed = (scores / scores.sum(2, keepdims=True) @ value).transpose(1, 0, 2).reshape(count, 768)
            states = norm(states + linear(mixed, f"{layer}.attention.attn.o"), f"{layer}.attention.LayerNorm")
            inner = linear(states, f"{layer}.intermediate.dense")
            inner *= (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            states = norm(states + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        vectors.append(states.mean(0) / np.linalg.norm(states.mean(0)))
    return np.array(vectors)


@pytest.mark.long
@pytest.mark.timeout(900)  # it may download the model first
def test_the_encoder_of_the_reader_has_the_vectors_of_its_weights(model_folder):
    """Texts of different lengths in a batch have those of the official weights, within the error of 8-bit weights."""
    folder = model_folder(models.READER_SENTENCES)
    texts = ["Who?", SENTENCES[3], " ".join(SENTENCES * 4)]  # great distances of tokens have biases, too
    model = encoder.SentenceEncoder(encoder.converted(models.READER_SENTENCES))
    cosines = (model.encode(texts) * mpnet_vectors(folder, texts)).sum(axis=1)
    assert cosines.min() > 0.98
    assert model.encode([]).shape == (0, 768)


@pytest.mark.long
def test_a_damaged_conversion_is_made_again(no_models, monkeypatch):
    """Converted files are checked before use, and encode as published; removing the model removes them."""
    monkeypatch.delenv("VOXFRAME_MODEL_CACHE")
    official = models.find(models.SENTENCES)
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(no_models))
    shutil.copytree(official, no_models / models.SENTENCES)
    encoder.load()
    encoder.load.cache_clear()
    weights = models.derived_dir(models.SENTENCES) / "model.bin"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1])
    check_similarities(encoder.load())
    assert weights.read_bytes() == good
    written = weights.stat().st_mtime_ns
    encoder._convert(models.SENTENCES, official, weights.parent)  # another process has made it in the meantime
    assert weights.stat().st_mtime_ns == written
    assert [path.name for path in weights.parent.parent.glob(".*-*")] == []
    encoder._convert(models.SENTENCES, official, no_models / "no" / "folder" / "yet")
    assert (no_models / "no/folder/yet/model.bin").read_bytes() == good
    assert models.remove(models.SENTENCES)
    assert not models.derived_dir(models.SENTENCES).exists()
    with pytest.raises(ModelError, match="not on this machine"):
        models.find(models.SENTENCES)
