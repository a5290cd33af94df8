"""Reading of GGUF files: their settings, and their tensors with 4- and 6-bit weights as floating-point numbers.

The layouts are those of llama.cpp's `Q4_K_M` files: blocks of 256 weights with scales of their own.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[np.float32]

_BLOCK = 256  # weights
_ALIGNMENT = 32  # bytes; of the data
_ROWS = 4096
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


class GGUFFile:
    """A GGUF file.

    Args:
        path: Path of the file.

    Attributes:
        settings: Its settings, such as "qwen2.block_count" and "tokenizer.ggml.tokens".
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, np.uint8, "r")
        self._at = 8  # after the magic and the version
        tensors, settings = self._scalar("Q"), self._scalar("Q")
        self.settings = {self._text(): self._value(self._scalar("I")) for _ in range(settings)}
        self._tensors = {}
        for _ in range(tensors):
            name = self._text()
            shape = [self._scalar("Q") for _ in range(self._scalar("I"))][::-1]
            self._tensors[name] = (shape, self._scalar("I"), self._scalar("Q"))
        self._data = -(-self._at // _ALIGNMENT) * _ALIGNMENT

    def __getitem__(self, name: str) -> Tensor:
        """Return a tensor."""
        return np.concatenate(list(self.parts(name)))

    def parts(self, name: str) -> Iterator[Tensor]:
        """Yield a tensor in parts of its first dimension, so that little of it is in memory at a time."""
        shape, kind, offset = self._tensors[name]
        block, size, weights = _KINDS[kind]
        per_row = math.prod(shape[1:]) // block * size if len(shape) > 1 else size
        data = self._bytes[self._data + offset :][: shape[0] * per_row].reshape(shape[0], per_row)
        for first in range(0, shape[0], _ROWS):
            rows = data[first : first + _ROWS]
            yield weights(rows.reshape(-1, size)).reshape(len(rows), *shape[1:])

    def _scalar(self, form: str) -> Any:
        start, self._at = self._at, self._at + struct.calcsize(f"<{form}")
        (value,) = struct.unpack(f"<{form}", self._bytes[start : self._at].tobytes())
        return value

    def _text(self) -> str:
        size = self._scalar("Q")
        start, self._at = self._at, self._at + size
        return self._bytes[start : self._at].tobytes().decode()

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind == _LIST:
            kind, size = self._scalar("I"), self._scalar("Q")
            return [self._value(kind) for _ in range(size)]
        return self._scalar(_SCALARS[kind])


def _f32(blocks: NDArray[np.uint8]) -> Tensor:
    return np.ascontiguousarray(blocks).view(np.float32)


def _q4_k(blocks: NDArray[np.uint8]) -> Tensor:
    """Blocks of 8 parts: two scales of the block, 8 scales and minima of 6 bits, then 256 weights of 4 bits."""
    scale, least = np.ascontiguousarray(blocks[:, :4]).view(np.float16).astype(np.float32).T[..., None]
    packed = blocks[:, 4:16]
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1) * scale
    minima = np.concatenate([middle & 63, (high >> 4) | ((middle >> 6) << 4)], axis=1) * least
    halves = blocks[:, 16:].reshape(-1, 4, 1, 32) >> np.array([0, 4], np.uint8)[:, None]
    weights: Tensor = (halves & 15).reshape(-1, 8, 32) * scales[..., None] - minima[..., None]
    return weights


def _q6_k(blocks: NDArray[np.uint8]) -> Tensor:
    """Blocks of 16 parts: 256 weights of 4 and 2 bits, 16 scales, and the scale of the block."""
    low = blocks[:, :128].reshape(-1, 2, 1, 64) >> np.array([0, 4], np.uint8)[:, None]
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None]
    weights = (low & 15).reshape(-1, 8, 32) | ((high & 3).reshape(-1, 8, 32) << 4)
    scale = np.ascontiguousarray(blocks[:, 208:]).view(np.float16).astype(np.float32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8) * scale
    signed: Tensor = (weights.reshape(-1, 16, 16).astype(np.float32) - 32) * scales[..., None]
    return signed


#: Number of weights in a block, its size in bytes, and the function that reads blocks, by the number of the layout.
_KINDS = {0: (1, 4, _f32), 12: (_BLOCK, 144, _q4_k), 14: (_BLOCK, 210, _q6_k)}
