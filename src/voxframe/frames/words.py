"""Words: the bulk of a payload, read from raw JSON into columns, and found again where turns repeat them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import arro3.core
import arro3.io
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe.frames.shape import WORD_LIST

#: Wire name -> column of the dictionary, of everything a word has.
FIELDS = {key: column for key, column in WORD_LIST["[]"].items()}
_BATCH = 4096  # rows arro3 makes room for at a time; its default is slower, and so is room for all
_EXACT = 2**53  # floats hold every integer below


class Refused(Exception):  # noqa: N818 - never leaves this package: the tolerant way takes over
    """The fast way cannot promise the right value."""


def _schemas() -> tuple[arro3.core.Schema, arro3.core.Schema]:
    # arro3 cuts 42.5 to 42 in an integer column. Reading integers as floats shows what was cut; text that was put right
    # before holds integers only, perhaps beyond 2**53.
    kinds = {key: column.type for key, column in FIELDS.items()}
    floats = {key: pa.float64() if pa.types.is_int64(kind) else kind for key, kind in kinds.items()}
    return tuple(arro3.core.Schema.from_arrow(pa.schema(list(k.items()))) for k in (floats, kinds))  # type: ignore[return-value]


_AS_FLOATS, _AS_THEY_ARE = _schemas()


def join(words: Sequence[msgspec.Raw]) -> bytes:
    """Raw words as JSON lines."""
    return b"\n".join(words)  # type: ignore[arg-type]  # Raw is a buffer


def read(lines: bytes, rows: int, *, clean: bool) -> pa.Table:
    """Columns of words.

    Args:
        lines: Words as JSON lines.
        rows: How many there are.
        clean: Whether `lines` were put right by the tolerant way.

    Returns:
        Columns text, start_ms, end_ms, confidence, speaker, channel.

    Raises:
        Refused: A value needs the tolerant way.
    """
    schema = pa.schema([(column.name, column.type) for column in FIELDS.values()])
    if not rows:
        return schema.empty_table()
    try:
        table = pa.table(
            arro3.io.read_json(io.BytesIO(lines), _AS_THEY_ARE if clean else _AS_FLOATS, batch_size=_BATCH)
        )
        if table.num_rows != rows:
            raise Refused
        return pa.table([_checked(table.column(i), f.type) for i, f in enumerate(schema)], schema=schema)
    except pa.ArrowInvalid:
        raise Refused from None


def _checked(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_float64(values.type):
        return values
    numbers = (values.drop_null() if values.null_count else values).to_numpy()
    if wanted == values.type:
        if not np.isfinite(numbers).all():
            raise Refused  # "inf" and 1e400 are taken for infinity
        return values
    if not (np.abs(numbers) < _EXACT).all():
        raise Refused
    return values.cast(wanted)  # raises ArrowInvalid for 42.5


def runs(words: pa.Table, parts: pa.Table, counts: npt.NDArray[np.int64], by: Sequence[str]) -> npt.NDArray[np.int64]:
    """Where each part of a text, given as its own copy of the words, stands in the words.

    Args:
        words: All words.
        parts: The words of all parts, one after another.
        counts: How many of them each part has.
        by: Columns in which copy and word must be equal.

    Returns:
        Index in `words` of the first word of each part; -1 where there is no such run, or where it has no words. No word is in
        two runs.
    """
    whole, copies = _codes(words, parts, by)
    found = np.full(len(counts), -1, np.int64)
    free = np.ones(len(whole), bool)
    cursor = 0
    for i, (stop, count) in enumerate(zip(np.cumsum(counts).tolist(), counts.tolist(), strict=True)):
        if not count:
            continue
        part = copies[stop - count : stop]
        for start in (cursor, *_starts(whole, part[0])):
            run = slice(start, start + count)
            if np.array_equal(whole[run], part) and free[run].all():
                found[i] = start
                free[run] = False
                cursor = start + count
                break
    return found


def _starts(whole: npt.NDArray[np.int64], first: int) -> Any:
    """Lazily, so that nothing is searched where parts follow each other."""
    yield from np.flatnonzero(whole == first).tolist()


def _codes(words: pa.Table, parts: pa.Table, by: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Two integer arrays, equal where the rows of the two tables are equal in the columns named (null equals null)."""
    codes = np.zeros(words.num_rows + parts.num_rows, np.int64)
    for name in by:
        both = pa.chunked_array([*words[name].chunks, *parts[name].chunks], words[name].type)
        column = both.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)[1]
    return codes[: words.num_rows], codes[words.num_rows :]
