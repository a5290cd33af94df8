"""Sentences as vectors: the closer the meaning of two texts, the greater the cosine of their vectors.

The model is all-MiniLM-L6-v2, run by CTranslate2 with 8-bit weights on one core: 3 to 4 ms per sentence, 40 MB. The
first use converts the official weights, which takes 2 s, and keeps the result beside the models in voxframe's cache.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError, ModelError

#: Number of columns of the vectors of all-MiniLM-L6-v2.
SIZE = 384
Vectors = NDArray[np.float32]

_CONVERTED_BYTES = 130_000_000  # needed for a moment
_LONGEST = 256  # tokens; the model was trained on texts up to this length
_BATCH, _BATCH_TOKENS = 32, 4096  # texts at a time, and tokens; sorted by length, so that little is spent on padding


class SentenceEncoder:
    """Encodes texts. Longer texts than about 200 words are cut.

    Args:
        folder: Folder with the converted model.
    """

    def __init__(self, folder: Path) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self._model = ctranslate2.Encoder(str(folder), device="cpu", compute_type="int8", intra_threads=1)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts.

        Args:
            texts: Sentences or passages.

        Returns:
            Array of shape (len(texts), 384), float32, each row of length 1; the dot product of two rows is the cosine.

        Example:
            >>> a, b, c = load().encode(["The bill is due.", "Please pay by Friday.", "Cats sleep a lot."])
            >>> bool(a @ b > a @ c)
            True
        """
        vectors = np.zeros((len(texts), SIZE), np.float32)
        for at, states in self.states([encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]):
            mean = states.mean(axis=0)
            vectors[at] = mean / np.linalg.norm(mean)
        return vectors

    def words(self, sentences: Sequence[Sequence[str]]) -> list[Vectors]:
        """Return a vector for each word in its sentence: the mean of its tokens. Words that were cut off have zeros.

        Args:
            sentences: The words of each sentence.

        Returns:
            One array per sentence, of shape (words, 384), float32.
        """
        encodings = self._tokenizer.encode_batch([list(words) for words in sentences], is_pretokenized=True)
        vectors = [np.zeros((len(words), SIZE), np.float32) for words in sentences]
        for at, states in self.states([encoding.ids for encoding in encodings]):
            counts = np.zeros((len(vectors[at]), 1), np.float32)
            for state, word in zip(states, encodings[at].word_ids, strict=True):
                if word is not None:
                    vectors[at][word] += state
                    counts[word] += 1
            vectors[at] /= np.maximum(counts, 1)
        return vectors

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the tokens of texts, up to 254 each, without those that mark the ends of a text."""
        encodings = self._tokenizer.encode_batch(list(texts))
        return [[i for i, mark in zip(e.ids, e.special_tokens_mask, strict=True) if not mark] for e in encodings]

    def states(self, tokens: Sequence[Sequence[int]]) -> Iterator[tuple[int, Vectors]]:
        """Yield the position of each sequence of tokens, and a vector for each of its tokens; the shortest first."""
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        while order:
            longest = len(tokens[order[min(_BATCH, len(order)) - 1]])
            count = max(1, min(_BATCH, _BATCH_TOKENS // max(1, longest)))
            batch, order = order[:count], order[count:]
            ids = [[*tokens[at]] for at in batch]
            output = np.array(self._model.forward_batch(ids).last_hidden_state)
            for at, states in zip(batch, output, strict=True):
                yield at, states[: len(tokens[at])]


@cache
def load() -> SentenceEncoder:
    """Return the encoder, one per process. Downloads nothing."""
    return SentenceEncoder(converted())


@cache
def find() -> SentenceEncoder | None:
    """Return the encoder if its model is on this machine, else None after one warning per process."""
    try:
        return load()
    except (MissingExtraError, ModelError) as error:
        warnings.warn(f"{models.WITHOUT_SENTENCES}: {error}", stacklevel=2)
        return None


def converted(changes: Path | None = None) -> Path:
    """Return the folder with the converted model; convert the official files if that was not done before.

    Args:
        changes: NPZ file with changes of the weights. Each array is added to the tensor of its name. `NAME.up` and
            `NAME.down` are two factors whose product is added. Other arrays have no effect. None (default): the
            official weights.

    Raises:
        MissingExtraError: ctranslate2 or tokenizers is not installed.
        ModelError: The model is not on this machine, or the folder cannot be written.
    """
    if find_spec("ctranslate2") is None or find_spec("tokenizers") is None:
        raise MissingExtraError("local", "The sentence encoder")
    added = {} if changes is None else dict(np.load(changes))
    variant = None if changes is None else zlib.crc32(changes.read_bytes())
    folder = models.derived(
        models.SENTENCES, variant, lambda source, files: _save(source, files, added), size=_CONVERTED_BYTES
    )
    if changes is not None:  # those of other versions
        for other in {*folder.parent.glob(f"{models.derived_dir(models.SENTENCES).name}.*")} - {folder}:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _save(source: Path, folder: Path, changes: Mapping[str, Vectors]) -> None:
    """Convert a BERT model, such as MiniLM."""
    from ctranslate2.specs import TransformerEncoderModelSpec, TransformerEncoderSpec, common_spec

    config = json.loads((source / "config.json").read_text("utf-8"))
    weights = _Weights(source / "model.safetensors", changes)
    encoder = TransformerEncoderSpec(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = weights["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = weights["embeddings.position_embeddings.weight"]
    weights.norm(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.layer):
        prefix = f"encoder.layer.{number}."
        parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
        joined, out = layer.self_attention.linear
        joined.weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
        joined.bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        weights.linear(out, f"{prefix}attention.output.dense")
        weights.norm(layer.self_attention.layer_norm, f"{prefix}attention.output.LayerNorm")
        weights.linear(layer.ffn.linear_0, f"{prefix}intermediate.dense")
        weights.linear(layer.ffn.linear_1, f"{prefix}output.dense")
        weights.norm(layer.ffn.layer_norm, f"{prefix}output.LayerNorm")
    spec = TransformerEncoderModelSpec(encoder)
    numbers = json.loads((source / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    spec.register_vocabulary(sorted(numbers, key=numbers.__getitem__))
    spec.config.unk_token = "[UNK]"  # noqa: S105 - a token of the vocabulary
    spec.config.layer_norm_epsilon = config["layer_norm_eps"]
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(os.fspath(folder))
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")


class _Weights:
    """Tensors of a safetensors file: a header with their places, and their bytes. Changes are added to them."""

    def __init__(self, path: Path, changes: Mapping[str, Vectors]) -> None:
        self._changes = changes
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            self._places = json.loads(file.read(size))
        self._bytes = np.memmap(path, np.uint8, "r", offset=8 + size)

    def __getitem__(self, name: str) -> Vectors:
        place = self._places[name]
        start, end = place["data_offsets"]
        tensor: Vectors = np.array(self._bytes[start:end]).view(np.float32).reshape(place["shape"])
        if name in self._changes:
            tensor += self._changes[name]
        elif f"{name}.up" in self._changes:
            up, down = (self._changes[f"{name}.{factor}"].astype(np.float32) for factor in ("up", "down"))
            tensor += up @ down
        return tensor

    def linear(self, spec: Any, name: str) -> None:
        spec.weight, spec.bias = self[f"{name}.weight"], self[f"{name}.bias"]

    def norm(self, spec: Any, name: str) -> None:
        spec.gamma, spec.beta = self[f"{name}.weight"], self[f"{name}.bias"]
