"""Words, the bulk of a payload: from raw JSON arrays to columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TypeAlias

import arro3.core
import arro3.io
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe.frames.shape import WORD_LIST
from voxframe.schema import Column

#: Raw JSON of a list of words, or None where there is none.
WordList: TypeAlias = msgspec.Raw | None
Ints: TypeAlias = npt.NDArray[np.int64]

#: Everything a word has, by its name on the wire.
FIELDS: dict[str, Column] = WORD_LIST["[]"]
SCHEMA = pa.schema([(column.name, column.type) for column in FIELDS.values()])
_BATCH = 64  # lists arro3 makes room for at a time; with its default it spends longer on that than on reading
_EXACT = 2**53  # floats hold every integer below


class Refused(Exception):  # noqa: N818 - never leaves this package: the tolerant way takes over
    """The fast way cannot promise the right value."""


def _wire(*, ints_as_floats: bool) -> arro3.core.Schema:
    kinds = [
        (key, pa.float64() if ints_as_floats and pa.types.is_int64(column.type) else column.type)
        for key, column in FIELDS.items()
    ]
    return arro3.core.Schema.from_arrow(pa.schema([("words", pa.list_(pa.struct(kinds)))]))


# In an integer column arro3 cuts 42.5 to 42; read as a float, the fraction shows. What the tolerant way wrote has
# integers only, and they may be beyond what floats hold.
_AS_THEY_CAME = _wire(ints_as_floats=True)
_PUT_RIGHT = _wire(ints_as_floats=False)


def is_null(words: WordList) -> bool:
    """Whether there is no list of words, not even an empty one."""
    return words is None or memoryview(words)[0] == ord("n")


def read(lists: Sequence[WordList], *, clean: bool) -> tuple[pa.Table, Ints]:
    """Columns of all words of some lists.

    Args:
        lists: Raw JSON arrays of words.
        clean: Whether they come from the tolerant way.

    Returns:
        Columns text, start_ms, end_ms, confidence, speaker and channel of the words of all lists, one list after
        another, and how many words each list has (0 where it is null).

    Raises:
        Refused: A value needs the tolerant way.
    """
    if not lists:
        return SCHEMA.empty_table(), np.zeros(0, np.int64)
    lines = b"".join(piece for words in lists for piece in (b'{"words":', b"null" if words is None else words, b"}\n"))
    try:
        reader = arro3.io.read_json(io.BytesIO(lines), _PUT_RIGHT if clean else _AS_THEY_CAME, batch_size=_BATCH)
        found = pa.table(reader).column(0).combine_chunks()
        counts = found.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        words = found.flatten()
        if words.null_count:
            raise Refused  # a null among the words; the tolerant way keeps its place with a word without fields
        columns = [_checked(words.field(i), field.type) for i, field in enumerate(SCHEMA)]
    except pa.ArrowInvalid:
        raise Refused from None
    return pa.Table.from_arrays(columns, schema=SCHEMA), counts


def _checked(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not pa.types.is_float64(values.type):
        return values
    numbers = (values.drop_null() if values.null_count else values).to_numpy()
    if wanted == values.type:
        if not np.isfinite(numbers).all():  # "inf", "nan" and 1e400 were taken
            raise Refused
        return values
    if len(numbers) and not (numbers.min() > -_EXACT and numbers.max() < _EXACT):  # NaN is not below either
        raise Refused
    return values.cast(wanted)  # ArrowInvalid where a fraction would be cut
