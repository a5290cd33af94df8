"""Sentence embeddings, where the `semantic` extra is installed and a model was named, in place of lists of words.

The environment variable VOXFRAME_SEMANTIC_MODEL names the model: a directory, or an id of the Hugging Face hub.
Without it the analyses go by words alone. The scale below is a guess at the cosines of `all-MiniLM-L6-v2`; neither it
nor the topics that come of it were measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

VARIABLE = "VOXFRAME_SEMANTIC_MODEL"
#: Texts in, one row of unit length each out.
Encode = Callable[[Sequence[str]], NDArray[np.float32]]

_STRANGERS, _SAME = 0.15, 0.55  # cosines of texts about different things, and about one


def encoder() -> Encode | None:
    """The encoder that was set up, or None."""
    name = os.environ.get(VARIABLE)
    return _load(name) if name else None


@cache
def _load(name: str) -> Encode:
    from voxframe.errors import MissingExtraError

    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError("semantic", f"{VARIABLE}={name}") from None
    model = SentenceTransformer(name)
    return lambda texts: np.asarray(model.encode(list(texts), normalize_embeddings=True), np.float32)


def likeness(texts: Sequence[str], labels: Mapping[str, str], encode: Encode) -> list[dict[str, float]]:
    """How much each text is about each label, 0 to 1.

    Args:
        texts: Passages.
        labels: Labels, and what each stands for in words.
        encode: The encoder.
    """
    if not texts or not labels:
        return [{} for _ in texts]
    cosines = encode(texts) @ encode(list(labels.values())).T
    share = np.clip((cosines - _STRANGERS) / (_SAME - _STRANGERS), 0, 1)
    return [dict(zip(labels, (round(float(value), 5) for value in row), strict=True)) for row in share]
