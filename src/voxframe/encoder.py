"""Sentences as vectors: the closer the meaning of two texts, the greater the cosine of their vectors.

The model is all-MiniLM-L6-v2, run by CTranslate2 with 8-bit weights on one core: 3 to 4 ms per sentence, 40 MB. The
first use converts the official weights, which takes 2 s, and keeps the result beside the models in voxframe's cache.
Beside the reader of `voxframe.reader`, all-mpnet-base-v2 is used in the same way: 9 ms per sentence, 140 MB.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError, ModelError
from voxframe.models import derived

#: Number of columns of the vectors of all-MiniLM-L6-v2.
SIZE = 384
Vectors = NDArray[np.float32]

_CONVERTED_BYTES = 130_000_000  # needed for a moment
_LONGEST = 256  # tokens; the model was trained on texts up to this length
_BATCH = 32  # texts at a time; sorted by length, so that little is spent on padding
_MPNET = "mpnet"
_FIRST_POSITION = 2  # of MPNet; the first two rows are for padding
_MOST_DISTANT = 128  # tokens; MPNet does not tell greater distances apart
#: Names in the attention of a layer: queries, keys, values, output, and the normalization of the output.
_BERT_ATTENTION = ("self.query", "self.key", "self.value", "output.dense", "output.LayerNorm")
_MPNET_ATTENTION = ("attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm")


class SentenceEncoder:
    """Encodes texts. Longer texts than about 200 words are cut.

    Args:
        folder: Folder with the converted model.

    Attributes:
        size: Number of columns of the vectors.
    """

    def __init__(self, folder: Path) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self._model = ctranslate2.Encoder(str(folder), device="cpu", compute_type="int8", intra_threads=1)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        settings = json.loads((folder / "config.json").read_text("utf-8"))
        self.size: int = settings.get("hidden_size", SIZE)  # conversions made before there were two models have none
        self._is_mpnet = settings.get("model_type") == _MPNET

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts.

        Args:
            texts: Sentences or passages.

        Returns:
            Array of shape (len(texts), size), float32, each row of length 1; the dot product of two rows is the cosine.

        Example:
            >>> a, b, c = load().encode(["The bill is due.", "Please pay by Friday.", "Cats sleep a lot."])
            >>> bool(a @ b > a @ c)
            True
        """
        tokens = [one.ids for one in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        vectors = np.zeros((len(texts), self.size), np.float32)
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            ids = [tokens[at] for at in batch]
            places = [list(range(len(one))) for one in ids] if self._is_mpnet else None  # see _save
            output = np.array(self._model.forward_batch(ids, token_type_ids=places).last_hidden_state)
            for at, states in zip(batch, output, strict=True):
                mean = states[: len(tokens[at])].mean(axis=0)
                vectors[at] = mean / np.linalg.norm(mean)
        return vectors


@cache
def load() -> SentenceEncoder:
    """Return the encoder, one per process. Downloads nothing.

    Raises:
        MissingExtraError: ctranslate2 or tokenizers is not installed.
        ModelError: The model is not on this machine, or its files are damaged.
    """
    return SentenceEncoder(converted(models.SENTENCES))


@cache
def find() -> SentenceEncoder | None:
    """Return the encoder if its model is on this machine, else None after one warning per process."""
    try:
        return load()
    except (MissingExtraError, ModelError) as error:
        warnings.warn(f"{models.WITHOUT_SENTENCES}: {error}", stacklevel=2)
        return None


def converted(name: str) -> Path:
    """Return the folder with a converted model; convert the official files if that was not done before.

    Args:
        name: Name of the model, `models.SENTENCES` or `models.READER_SENTENCES`.

    Raises:
        MissingExtraError: ctranslate2 or tokenizers is not installed.
        ModelError: The model is not on this machine, or the folder cannot be written.
    """
    if find_spec("ctranslate2") is None or find_spec("tokenizers") is None:
        raise MissingExtraError("local", "The sentence encoder")
    folder = models.derived_dir(name)
    if not derived.is_sound(folder):
        _convert(name, models.find(name, download=False), folder)
    return folder


def _convert(name: str, source: Path, folder: Path) -> None:
    """Convert the official files into a folder that CTranslate2 reads."""
    derived.make(name, lambda made: _save(source, made), folder, _CONVERTED_BYTES)


def _save(source: Path, folder: Path) -> None:
    """Convert a BERT model, such as MiniLM, or an MPNet model.

    MPNet also adds a bias for the distance of two tokens to their attention. CTranslate2 then knows no positions, so
    they take the place of the types of tokens, which MPNet does not have.
    """
    from ctranslate2.specs import TransformerEncoderModelSpec, TransformerEncoderSpec, common_spec

    config = json.loads((source / "config.json").read_text("utf-8"))
    weights = _Weights(source / "model.safetensors")
    is_mpnet = config["model_type"] == _MPNET
    encoder = TransformerEncoderSpec(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
        relative_attention_bias=is_mpnet,
    )
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    positions = weights["embeddings.position_embeddings.weight"]
    if is_mpnet:
        encoder.embeddings[1].weight = positions[_FIRST_POSITION:]
    else:
        encoder.embeddings[1].weight = weights["embeddings.token_type_embeddings.weight"]
        encoder.position_encodings.encodings = positions
    weights.norm(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.layer):
        prefix = f"encoder.layer.{number}."
        attention = _MPNET_ATTENTION if is_mpnet else _BERT_ATTENTION
        *parts, whole, norm = (f"{prefix}attention.{part}" for part in attention)
        joined, out = layer.self_attention.linear
        joined.weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
        joined.bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        weights.linear(out, whole)
        weights.norm(layer.self_attention.layer_norm, norm)
        if is_mpnet:
            layer.self_attention.relative_attention_bias = weights["encoder.relative_attention_bias.weight"]
            layer.self_attention.relative_attention_max_distance = np.int32(_MOST_DISTANT)
        weights.linear(layer.ffn.linear_0, f"{prefix}intermediate.dense")
        weights.linear(layer.ffn.linear_1, f"{prefix}output.dense")
        weights.norm(layer.ffn.layer_norm, f"{prefix}output.LayerNorm")
    spec = TransformerEncoderModelSpec(encoder)
    numbers = json.loads((source / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    spec.register_vocabulary(sorted(numbers, key=numbers.__getitem__))
    spec.config.unk_token = "[UNK]"  # noqa: S105 - a token of the vocabulary
    spec.config.layer_norm_epsilon = config["layer_norm_eps"]
    for name in ("hidden_size", "model_type"):
        spec.config.add_attribute(name, config[name])
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(os.fspath(folder))
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")


class _Weights:
    """Tensors of a safetensors file: a header with their places, and their bytes."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            self._places = json.loads(file.read(size))
        self._bytes = np.memmap(path, np.uint8, "r", offset=8 + size)

    def __getitem__(self, name: str) -> Vectors:
        place = self._places[name]
        start, end = place["data_offsets"]
        return np.array(self._bytes[start:end]).view(np.float32).reshape(place["shape"])

    def linear(self, spec: Any, name: str) -> None:
        spec.weight, spec.bias = self[f"{name}.weight"], self[f"{name}.bias"]

    def norm(self, spec: Any, name: str) -> None:
        spec.gamma, spec.beta = self[f"{name}.weight"], self[f"{name}.bias"]
