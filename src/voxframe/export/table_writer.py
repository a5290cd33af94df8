"""Write tables to files that other tools read: Parquet data sets, also for Hugging Face datasets, CSV, JSON lines."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import IO, Any, Self
from uuid import UUID

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from voxframe.errors import OptionError
from voxframe.export.targets import CARD_KEY, NULL_PARTITION, Folder, partition_folder
from voxframe.formats.writing import Losses
from voxframe.schema import CORPUS_TABLES, with_pandas

_EMPTY_FOLDER = "empty texts in a partition column, which are read as nulls"
_AS_NUMBERS = (
    "texts in a partition column that readers take for numbers, such as 1 for 001; pd.read_parquet(path, "
    "partitioning=pyarrow.dataset.partitioning(pyarrow.schema([({0!r}, pyarrow.string())]), flavor='hive')) keeps them"
)
_ZONE = "times in a partition column, in the time zone {0}, which names of folders do not have"
_AS_TEXT = "values of a column with several types, written as text"
_SURROGATES = "texts with lone surrogates, written as \N{REPLACEMENT CHARACTER}"
_NO_AUDIO = "recordings that are not at hand, null in the column audio"
_AUDIO = pa.field("audio", pa.struct({"bytes": pa.binary(), "path": pa.string()}))
#: Features of a Hugging Face dataset that Arrow types do not tell.
_FEATURES = {"info": {"features": {"audio": {"_type": "Audio"}}}}
_INDEX = "values of a named index, left out (reset_index makes a column of it)"


class TableWriter:
    """Write one table in parts, so that it does not need to fit into memory.

    Args:
        name: Name of the table and of its folder. None: write the files directly into `folder`.
        audio: Returns file name and content of the recording of a transcript, for a column `audio` in the form of
            `datasets.Audio`; None if it is not at hand. Default: no such column.
        card: Returns the data card of a table with this schema and number of rows, for the metadata of its Parquet
            files. Default: none.
    """

    def __init__(
        self,
        folder: Folder,
        name: str | None,
        form: str,
        losses: Losses,
        partition_by: Sequence[str] = (),
        *,
        escape_formulas: bool,
        audio: Callable[[str], tuple[str, bytes] | None] | None = None,
        card: Callable[[pa.Schema, int], str] | None = None,
    ) -> None:
        self._folder = folder
        self._name = name
        self._form = form
        self._losses = losses
        self._partition_by = list(partition_by)
        self._escape_formulas = escape_formulas
        self._below = f"{name}/" if name else ""
        self._parts = 0
        self._audio = audio
        self._card = card
        self.rows = 0
        self.schema: pa.Schema | None = None
        self._files: dict[str, IO[bytes]] = {}
        self._outs: dict[str | None, Any] = {}  # by split

    def add(self, df: pd.DataFrame) -> None:
        """Write the rows of a DataFrame. The first DataFrame sets the columns and types."""
        table = arrow(df, self._losses, self._name, self.schema)
        self.schema = table.schema
        self._partition_by = [column for column in self._partition_by if column in table.column_names]
        self.rows += table.num_rows
        if self._card is not None:
            table = with_card(table, self._card)
        if self._form in ("csv", "jsonl"):
            file = self._bytes(f"{self._name or 'data'}.{self._form}")
            file.write(
                text_of(table, self._form, self._losses, header=self._parts == 0, escape_formulas=self._escape_formulas)
            )
        elif self._partition_by:
            self._add_partitioned(table)
        elif self._form == "huggingface" and "split" in table.column_names:
            self._add_splits(table)  # a batch without rows is in no split
        else:
            self._add_arrow(table)
        self._parts += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as opened:  # the second is closed even if the disk is full
            for file in (*self._files.values(), *self._outs.values()):
                opened.callback(file.close)

    @property
    def patterns(self) -> dict[str, str]:
        """Pattern of the files of each split of the table, relative to the directory."""
        if self._form in ("csv", "jsonl"):
            return {"train": f"{self._name or 'data'}.{self._form}"}
        if splits := [split for split in self._outs if split is not None]:
            return {split: f"{self._below}{split}-*.parquet" for split in splits}
        return {"train": f"{self._below}{'*/' * len(self._partition_by)}*.parquet"}

    def _add_splits(self, table: pa.Table) -> None:
        """Write the rows of each value of the column `split` into files of its own; nulls into the split "other"."""
        names = pc.fill_null(table["split"].cast(pa.string()), "other")
        names = pc.replace_substring_regex(names, r"\W+", "_")
        for name in pc.unique(names).to_pylist():
            self._add_arrow(table.filter(pc.equal(names, name)), name or "other")

    def _add_arrow(self, table: pa.Table, split: str | None = None) -> None:
        if self._audio is None:
            out = self._open(table.schema, split)
            if table.num_rows:  # `datasets` cannot read a row group without rows
                out.write_table(table)
            return
        schema = table.schema.append(_AUDIO)
        schema = schema.with_metadata({**schema.metadata, b"huggingface": json.dumps(_FEATURES)})
        out = self._open(schema, split)
        for place, transcript_id in enumerate(table["transcript_id"].to_pylist()):  # one recording in memory
            recording = self._audio(transcript_id)
            if recording is None:
                self._losses[_NO_AUDIO] += 1
            values = pa.array([recording and {"bytes": recording[1], "path": recording[0]}], _AUDIO.type)
            out.write_table(pa.table([*table.slice(place, 1).columns, values], schema))

    def _open(self, schema: pa.Schema, split: str | None) -> Any:
        if split not in self._outs:
            file = self._bytes(f"{self._below}{split or 'part'}-0.parquet")
            self._outs[split] = pq.ParquetWriter(file, schema, compression="zstd", compression_level=1)
        return self._outs[split]

    def _add_partitioned(self, table: pa.Table) -> None:
        fields = [field for field in table.schema if field.name not in self._partition_by]  # folders are columns
        if not fields:
            raise OptionError("every column is a column to partition by; leave one out of partition_by")
        folders = [_folders(name, table[name], self._losses) for name in self._partition_by]
        paths = pc.binary_join_element_wise(*folders, "/").dictionary_encode()
        places = paths.indices.to_numpy()
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=len(paths.dictionary))).tolist()
        metadata = with_pandas(pa.schema(fields, table.schema.metadata)).metadata
        rows = table.select([field.name for field in fields]).take(pa.array(order)).replace_schema_metadata(metadata)
        for path, start, end in zip(paths.dictionary.to_pylist(), [0, *ends], ends, strict=False):
            with self._folder.open(f"{self._below}{path}/part-{self._parts}.parquet") as file:
                pq.write_table(rows.slice(start, end - start), file, compression="zstd", compression_level=1)

    def _bytes(self, name: str) -> IO[bytes]:
        if name not in self._files:
            self._files[name] = self._folder.open(name)
        return self._files[name]


def with_card(table: pa.Table, card: Callable[[pa.Schema, int], str]) -> pa.Table:
    """Return a table with its data card in the metadata of its schema."""
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), CARD_KEY: card(table.schema, table.num_rows).encode("utf-8", "replace")}
    )


def text_of(table: pa.Table, form: str, losses: Losses, *, header: bool = True, escape_formulas: bool = False) -> bytes:
    """Return a table as CSV or JSON lines. Values of types that neither has become text."""
    table = pa.table([_readable(column, losses) for column in table.columns], table.column_names)
    if form == "csv":
        return csv(table, losses, header=header, escape_formulas=escape_formulas)
    return json_lines(table, losses)


def arrow(df: pd.DataFrame, losses: Losses, name: str | None = None, schema: pa.Schema | None = None) -> pa.Table:
    """Convert a DataFrame to Arrow: columns of the data dictionary with its types, other columns with their own types.

    Args:
        name: Name of the table. None (default), or a name that is not in the data dictionary: keep the types of `df`.
        schema: Schema of an earlier part of the table.
    """
    names = [str(column) for column in df.columns]
    if len(set(names)) < len(names):
        raise OptionError(f"an export needs unique column names, got {', '.join(names)}; rename the columns")
    if schema is not None and names != schema.names:
        raise OptionError(
            f"this part of the table does not fit the first one: it has {', '.join(names)}, not "
            f"{', '.join(schema.names)}"
        )
    if named := [index for index in df.index.names if index is not None]:
        losses[_INDEX] += len(df) * len(named)
    fixed = schema or (CORPUS_TABLES[name].arrow if name in CORPUS_TABLES else pa.schema([]))
    fields, columns = [], []
    for place, column in enumerate(names):
        field = fixed.field(column) if column in fixed.names else None
        try:
            values = _values(df.iloc[:, place], None if field is None else field.type, losses)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
            expected = f"{name or 'the table'} needs {field.type if field else 'one type'}"
            raise OptionError(f"column {column!r} does not fit: {expected}; {str(e).splitlines()[0]}") from None
        is_plain = isinstance(df.dtypes.iloc[place], np.dtype) and df.dtypes.iloc[place].kind == "i"  # has no nulls
        fields.append(field or pa.field(column, values.type, not is_plain))
        columns.append(values)
    return pa.table(columns, with_pandas(pa.schema(fields)))


def _values(column: pd.Series[Any], kind: pa.DataType | None, losses: Losses) -> pa.Array | pa.ChunkedArray:
    """Convert a column to Arrow. Values of mixed types, and text with lone surrogates, are converted to valid text."""
    try:
        values = pa.array(column, type=kind, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if kind is not None and not pa.types.is_string(kind):
            raise
        values = pa.array([_text(value, losses) for value in column.astype(object)], pa.string())
    return values.cast(_settled(values.type))


def _settled(kind: pa.DataType) -> pa.DataType:
    """Return a type that is the same in all parts of a table; an all-null column is text."""
    return pa.string() if pa.types.is_null(kind) or pa.types.is_large_string(kind) else kind


def _text(value: object, losses: Losses) -> str | None:
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):  # type: ignore[call-overload]
        return None
    if not isinstance(value, str | UUID):  # pyarrow before 25 does not know the type of UUIDs
        losses[_AS_TEXT] += 1
    text = str(value)
    repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if repaired != text:
        losses[_SURROGATES] += 1
    return repaired


def _folders(name: str, column: pa.ChunkedArray, losses: Losses) -> pa.Array:
    """Return the name of the folder of each row, such as `speaker=A`.

    Timestamps are in their time zone, and dates have no time. An empty text is a null: Spark rejects a data set with a
    folder `speaker=`, and Hive uses one folder for both.
    """
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if pa.types.is_timestamp(column.type):
        if column.type.tz:
            losses[_ZONE.format(column.type.tz)] += len(column) - column.null_count
        local = pc.local_timestamp(column) if column.type.tz else column
        column = pc.replace_substring_regex(local.cast(pa.string()), r"( 00:00:00)?(\.0*)?$", "")
    column = _readable(column, losses)
    try:
        encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    except pa.ArrowException:
        raise OptionError(
            f"cannot partition by {name!r}, because its values are of the type {column.type}; convert them to text"
        ) from None
    values = encoded.dictionary.to_pylist()
    empty = pa.array([value in ("", NULL_PARTITION) for value in values], pa.bool_()).take(encoded.indices)
    if is_text and values and all(value.isdecimal() for value in values if value not in ("", NULL_PARTITION)):
        losses[_AS_NUMBERS.format(name)] += len(column) - column.null_count
    losses[_EMPTY_FOLDER] += pc.sum(empty).as_py() or 0
    folders = pa.array([partition_folder(name, value) for value in values], pa.string())
    return folders.take(encoded.indices).fill_null(partition_folder(name, None))


_AT_A_TIME = 10_000  # rows converted to Python objects at once
# Characters that start a formula in Excel, LibreOffice or Google Sheets, or that these strip before checking; see
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # the last four are the full-width forms of the first four

_ESCAPED = "texts that a spreadsheet would take for a formula, with an apostrophe before them (escape_formulas)"
_ONLY_COLUMN = "nulls of an only column, written as empty text because readers skip an empty line"
_NOT_FINITE = "numbers that are not finite, written as null"
_BYTES = "values of bytes, written as text in base64"


def csv(table: pa.Table, losses: Losses, *, header: bool = True, escape_formulas: bool = False) -> bytes:
    r"""Return a table as CSV (RFC 4180, UTF-8, lines end with a line feed).

    A null is an empty field; an empty text is `""`. All texts are quoted. Lists are written as JSON.

    Example:
        >>> csv(pa.table({"text": ["a", "", None], "n": [0.1, None, 3]}), Losses())
        b'text,n\n"a",0.1\n"",\n,3\n'
    """
    names = [_escaped_name(name) if escape_formulas else name for name in table.column_names]
    columns = [_plain(column, losses) for column in table.columns]
    for n, column in enumerate(columns):
        if escape_formulas and pa.types.is_string(column.type):
            columns[n] = _escaped(column, losses)
        if len(columns) == 1 and column.null_count:
            losses[_ONLY_COLUMN] += column.null_count
            columns[n] = columns[n].cast(pa.string()).fill_null("")
    out = io.BytesIO()
    if header:
        out.write((",".join(map(_quoted, names)) + "\n").encode())
    options = pa.csv.WriteOptions(include_header=False, quoting_style="needed")
    pa.csv.write_csv(pa.table(columns, [str(n) for n in range(len(columns))]), out, options)
    return out.getvalue()


def json_lines(table: pa.Table, losses: Losses) -> bytes:
    r"""Return a table as JSON lines: one object per row, numbers with all their digits, times as ISO 8601.

    Example:
        >>> json_lines(pa.table({"text": ["a", None], "n": [0.1, 1e-12]}), Losses())
        b'{"text":"a","n":0.1}\n{"text":null,"n":1e-12}\n'
    """
    losses[_NOT_FINITE] += sum(map(_not_finite, table.columns))
    batches = table.to_batches(max_chunksize=_AT_A_TIME)
    return b"".join(_json(row) + b"\n" for batch in batches for row in batch.to_pylist())


def _readable(column: pa.ChunkedArray, losses: Losses) -> pa.ChunkedArray:
    """Return a column without dictionary encoding, as text if JSON and CSV have no such type.

    Durations are written as ISO 8601, types of pandas such as periods as pandas shows them, and bytes as base64.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    losses[_BYTES] += sum(len(leaf) - leaf.null_count for leaf in _leaves(column) if _is_binary(leaf.type))
    kind = column.type
    if not (_is_binary(kind) or pa.types.is_duration(kind) or isinstance(kind, pa.BaseExtensionType)):
        return column
    texts = [None if pd.isna(value) else _encodable(value) for value in column.to_pandas()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _leaves(column: pa.ChunkedArray | pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of a column that hold no other values: of lists those of their items, of structs each field."""
    for chunk in getattr(column, "chunks", [column]):
        if not pa.types.is_nested(chunk.type):
            yield chunk
        elif pa.types.is_struct(chunk.type):
            for field in chunk.flatten():
                yield from _leaves(field)
        else:
            yield from _leaves(chunk.flatten())


def _plain(column: pa.ChunkedArray, losses: Losses) -> pa.ChunkedArray:
    """Return a column with lists and structs as JSON text."""
    kind = column.type
    if pa.types.is_nested(kind):
        losses[_NOT_FINITE] += _not_finite(column)
        texts = [None if value is None else _json(value).decode() for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    return column.cast(pa.string()) if text else column


def _escaped(column: pa.ChunkedArray, losses: Losses) -> pa.ChunkedArray:
    risky = pc.fill_null(pc.match_substring_regex(column, _FORMULA), False)
    if not (count := pc.sum(risky).as_py()):
        return column
    losses[_ESCAPED] += count
    return pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)


def _escaped_name(name: str) -> str:
    return f"'{name}" if pc.match_substring_regex(pa.scalar(name), _FORMULA).as_py() else name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


def _not_finite(column: pa.ChunkedArray) -> int:
    floats = (leaf for leaf in _leaves(column) if pa.types.is_floating(leaf.type))
    return sum(pc.sum(pc.invert(pc.is_finite(leaf))).as_py() or 0 for leaf in floats)


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=_encodable, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS)


def _encodable(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    value = pd.Timedelta(value) if isinstance(value, timedelta) else value
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
