"""Tensors of a torch checkpoint as NumPy arrays, without torch and without running anything in the file.

A checkpoint is a zip archive: `*/data.pkl` describes the objects, and `*/data/KEY` holds the numbers of each storage
(https://docs.pytorch.org/docs/stable/notes/serialization.html). The reader knows a handful of names. Every other class
that the file mentions becomes an empty object.
"""

from __future__ import annotations

import collections
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[Any]]

_DTYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "BoolStorage": "?",
    "ByteStorage": "u1",
}


def read_tensors(path: Path) -> Tensors:
    """Return the tensors of a checkpoint by name; those of `state_dict` if it is a Lightning checkpoint.

    Raises:
        ValueError: The file is not a checkpoint.

    Example:
        >>> read_tensors(Path("pytorch_model.bin"))["lstm.weight_ih_l0"].shape  # doctest: +SKIP
        (512, 60)
    """
    try:
        with zipfile.ZipFile(path) as archive:
            described = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(described) as file:
                content = _Reader(file, archive, described.removesuffix("data.pkl")).load()
    except (zipfile.BadZipFile, StopIteration, KeyError, TypeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is not a torch checkpoint ({type(error).__name__}: {error})") from error
    return dict(content.get("state_dict", content))


class _Placeholder:
    """Stands for an object of any class that is not a tensor."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...

    def __setitem__(self, *_: object) -> None: ...

    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...


class _Reader(pickle.Unpickler):
    """Unpickler that makes tensors, dictionaries and empty objects only."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(file)
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str) -> Callable[..., Any] | type | str:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _DTYPES:
            return name
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        return type(name, (_Placeholder,), {})

    def persistent_load(self, reference: Any) -> NDArray[Any]:
        _, kind, key, _, _ = reference
        return np.frombuffer(self._archive.read(f"{self._root}data/{key}"), _DTYPES[kind])


def _tensor(storage: NDArray[Any], offset: int, size: Sequence[int], stride: Sequence[int], *_: object) -> NDArray[Any]:
    """Return a copy of the part of a storage that is a tensor."""
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if min((offset, *stride)) < 0 or last >= len(storage):
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    strides = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()
