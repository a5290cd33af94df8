"""Short answers to questions about a passage, and whether it answers them, by a language model on this machine.

The model is Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), run by CTranslate2 with 8-bit weights on one core. It is used if
it is on this machine: `voxframe models get Qwen2.5-Coder-1.5B-Instruct` downloads it (1.1 GB) and converts it, which
takes 20 s of one core and 4 GB of memory, and keeps the result (1.6 GB) beside the models in voxframe's cache. A
process that has answered questions takes 2.6 GB of memory. `VOXFRAME_NO_READER=1` keeps it from being used.

The same command gets all-mpnet-base-v2 (0.4 GB), a larger sentence encoder than that of the analyses. It chooses the
sentences that the reader judges; without it, they are chosen by the other one.

It always continues with the most probable word, so that the same question always has the same answer. Whether the
passage has an answer at all is seen better in the probabilities of all words than in that of "None": a logistic
regression of the logits of 4,096 tokens, fitted on 593 questions about 35 other texts (`reader_weights.npz`, written by
`python -m tests.benchmarks train --reader`).
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from voxframe import encoder, models
from voxframe.encoder import SentenceEncoder
from voxframe.errors import MissingExtraError, ModelError
from voxframe.models import derived
from voxframe.settings import is_on

if TYPE_CHECKING:
    from gguf import ReaderTensor
    from numpy.typing import NDArray

#: Environment variable that keeps the reader from being used.
NO_READER_VARIABLE = "VOXFRAME_NO_READER"

_CONVERTED_BYTES = 1_600_000_000
_ROWS = 4096  # of a tensor that are floating-point numbers at a time
_LONGEST = 20  # tokens of an answer
_NONE = "None"
_WEIGHTS = "reader_weights.npz"
_TASK = (
    "You answer questions about a transcript. Answer with a few words copied from the transcript. "
    f"If the transcript does not say it, answer {_NONE}."
)
_JUDGING = "You check whether a passage of a transcript answers a question. Answer Yes or No."
_YES, _NO = "Yes", "No"
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class ShortAnswer(NamedTuple):
    """Short answer of a reader, and whether there is one.

    Attributes:
        text: A few words, or "" if the sentences do not answer the question.
        answered: How much more probable it is that the sentences answer the question than not, as a logarithm.
    """

    text: str
    answered: float


class Reader:
    """Answers questions about passages.

    Args:
        folder: Folder with the converted model.
        encoder: Sentence encoder to use beside it.

    Attributes:
        encoder: The sentence encoder; None if there is none.
    """

    def __init__(self, folder: Path, encoder: SentenceEncoder | None = None) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self.encoder = encoder
        self._model = ctranslate2.Generator(str(folder), device="cpu", compute_type="int8", intra_threads=1)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        with files("voxframe").joinpath(_WEIGHTS).open("rb") as file:
            self._weights: dict[str, NDArray[Any]] = dict(np.load(file))

    def answer(self, sentences: Sequence[str], question: str) -> ShortAnswer:
        """Return a few words that answer a question.

        Args:
            sentences: Sentences in their order, about 1,000 words at most.
            question: The question.

        Example:
            >>> load().answer(["It opened in May.", "A ticket is six euros."], "What is the fare?")  # doctest: +SKIP
            ShortAnswer(text='Six euros', answered=0.1)
        """
        tokens, logits = self.say(sentences, question)
        text: str = self._tokenizer.decode(tokens).strip()
        answered = logits[self._weights["tokens"]] @ self._weights["weights"] + self._weights["bias"]
        return ShortAnswer("" if text.rstrip(".") == _NONE else text, float(answered))

    def say(self, sentences: Sequence[str], question: str, most: int = _LONGEST) -> tuple[list[int], NDArray[Any]]:
        """Return the tokens of a short answer, and the logits of the first one for each token of the vocabulary."""
        return self._say(_TASK, "Transcript:\n", "\n".join(sentences), f"\n\nQuestion: {question}", most)

    def judge(self, passages: Sequence[str], question: str) -> list[float]:
        """Return how much more probable it is that each passage answers a question than not, as logarithms.

        Example:
            >>> load().judge(["It opened in May.", "A ticket is six euros."], "What is the fare?")  # doctest: +SKIP
            [-1.6, 2.8]
        """
        asked = f"\n\nQuestion: {question}\nDoes the passage answer the question?"
        found = []
        for passage in passages:
            _, logits = self._say(_JUDGING, "Passage:\n", passage, asked, 1)
            found.append(float(logits[self._number(_YES)] - logits[self._number(_NO)]))
        return found

    def _say(self, task: str, title: str, text: str, asked: str, most: int) -> tuple[list[int], NDArray[np.float32]]:
        """Return the tokens of an answer, and the logits of the first one.

        The parts are tokenized one by one, so that a text has the same tokens in every prompt.
        """
        prompt = [*_turn("system", self._tokens(task)), "<|im_start|>", *self._tokens(f"user\n{title}")]
        prompt += [*self._tokens(text), *self._tokens(asked), "<|im_end|>", "Ċ", "<|im_start|>"]
        # A static prompt would be faster for further questions about a passage, but the model keeps each one forever.
        (said,) = self._model.generate_batch(
            [[*prompt, *self._tokens("assistant\n")]],
            max_length=most,
            include_prompt_in_result=False,
            return_logits_vocab=True,
        )
        return said.sequences_ids[0], np.array(said.logits[0][0]).reshape(-1)

    def _number(self, word: str) -> int:
        (number,) = self._tokenizer.encode(word).ids
        return int(number)

    def _tokens(self, text: str) -> list[str]:
        # The tokenizer knows none of the marks of turns, so that no transcript can end its turn.
        tokens: list[str] = self._tokenizer.encode(text).tokens
        return tokens


def _turn(role: str, tokens: list[str]) -> list[str]:
    return ["<|im_start|>", role, "Ċ", *tokens, "<|im_end|>", "Ċ"]


_one_at_a_time = threading.Lock()


@cache
def load() -> Reader:
    """Return the reader, one per process. Downloads nothing; converts the model if that was not done before.

    Raises:
        MissingExtraError: ctranslate2, gguf or tokenizers is not installed.
        ModelError: The model is not on this machine, or its files are damaged.
    """
    return Reader(converted(), _find_encoder())


def _find_encoder() -> SentenceEncoder | None:
    try:
        return SentenceEncoder(encoder.converted(models.READER_SENTENCES))
    except ModelError as error:
        warnings.warn(f"{models.WITHOUT_READER_SENTENCES}: {error}", stacklevel=2)
        return None


def find() -> Reader | None:
    """Return the reader if its model is on this machine and `VOXFRAME_NO_READER` is not set, else None.

    A model that cannot be used gives one warning per process.
    """
    with _one_at_a_time:  # two threads that load it at once would take twice the memory
        is_here = models.derived_dir(models.READER).is_dir() or models.is_present(models.READER)
        return _usable() if is_here and not is_on(NO_READER_VARIABLE) else None


@cache
def _usable() -> Reader | None:
    try:
        return load()
    except (MissingExtraError, ModelError) as error:
        warnings.warn(f"{models.WITHOUT_READER}: {error}", stacklevel=3)
        return None


def converted() -> Path:
    """Return the folder with the converted model; convert the official file if that was not done before.

    Raises:
        MissingExtraError: ctranslate2, gguf or tokenizers is not installed.
        ModelError: The model is not on this machine, or the folder cannot be written.
    """
    folder = models.derived_dir(models.READER)
    is_sound = derived.is_sound(folder)
    needed = ("ctranslate2", "tokenizers") if is_sound else ("ctranslate2", "tokenizers", "gguf")
    if not all(find_spec(package) for package in needed):
        raise MissingExtraError("local", "The reader")
    if not is_sound:
        (file,) = models.find(models.READER, download=False).glob("*.gguf")
        derived.make(models.READER, lambda made: _save(file, made), folder, _CONVERTED_BYTES)
    return folder


def _save(path: Path, folder: Path) -> None:
    from ctranslate2.specs import TransformerDecoderModelSpec, common_spec
    from gguf import GGUFReader

    file = GGUFReader(path)
    settings = {name: field.contents() for name, field in file.fields.items()}
    tensors = {tensor.name: tensor for tensor in file.tensors}
    spec = TransformerDecoderModelSpec.from_config(
        settings["qwen2.block_count"],
        settings["qwen2.attention.head_count"],
        activation=common_spec.Activation.SWISH,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=0,
        rotary_interleave=False,
        rotary_base=settings["qwen2.rope.freq_base"],
        num_heads_kv=settings["qwen2.attention.head_count_kv"],
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    # One matrix serves both ends; the file has it twice, and this copy has more bits.
    for end in (decoder.embeddings, decoder.projection):
        _quantize(end, tensors["output.weight"])
    decoder.layer_norm.gamma = tensors["output_norm.weight"].data
    for number, layer in enumerate(decoder.layer):
        prefix = f"blk.{number}."
        joined, out = layer.self_attention.linear
        _quantize(joined, *(tensors[f"{prefix}attn_{part}.weight"] for part in "qkv"))
        joined.bias = np.concatenate([tensors[f"{prefix}attn_{part}.bias"].data for part in "qkv"])
        _quantize(out, tensors[f"{prefix}attn_output.weight"])
        layer.self_attention.layer_norm.gamma = tensors[f"{prefix}attn_norm.weight"].data
        _quantize(layer.ffn.linear_0, tensors[f"{prefix}ffn_gate.weight"])
        _quantize(layer.ffn.linear_0_noact, tensors[f"{prefix}ffn_up.weight"])
        _quantize(layer.ffn.linear_1, tensors[f"{prefix}ffn_down.weight"])
        layer.ffn.layer_norm.gamma = tensors[f"{prefix}ffn_norm.weight"].data
    words = settings["tokenizer.ggml.tokens"]
    spec.register_vocabulary(words)
    spec.config.bos_token = spec.config.unk_token = words[settings["tokenizer.ggml.bos_token_id"]]
    spec.config.eos_token = words[settings["tokenizer.ggml.eos_token_id"]]
    spec.config.layer_norm_epsilon = settings["qwen2.attention.layer_norm_rms_epsilon"]
    spec.validate()
    spec.optimize()
    spec.save(os.fspath(folder))
    _save_tokenizer(words, settings["tokenizer.ggml.merges"], folder / "tokenizer.json")


def _quantize(spec: Any, *tensors: ReaderTensor) -> None:
    """Set the 8-bit weights of a layer, with one scale per row, from the rows of tensors."""
    weights, scales = [], []
    for rows in (rows for tensor in tensors for rows in _rows(tensor)):
        greatest = np.abs(rows).max(axis=1)
        scales.append(127 / np.where(greatest == 0, 127, greatest).astype(np.float32))
        weights.append(np.rint(rows * scales[-1][:, None]).astype(np.int8))
    spec.weight, spec.weight_scale = np.concatenate(weights), np.concatenate(scales)


def _rows(tensor: ReaderTensor) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of a tensor as floating-point numbers, in parts, so that little of it is in memory at a time."""
    from gguf import dequantize

    for first in range(0, len(tensor.data), _ROWS):
        yield dequantize(tensor.data[first : first + _ROWS], tensor.tensor_type)


def _save_tokenizer(words: Sequence[str], merges: Sequence[str], path: Path) -> None:
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import BPE

    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(BPE(vocab={word: number for number, word in enumerate(words)}, merges=pairs))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(os.fspath(path))
