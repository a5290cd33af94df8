"""Tables to files that other tools read: Parquet data sets, CSV, JSON lines, Hugging Face datasets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voxframe.errors import OptionError
from voxframe.export.files import Folder
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION

#: Formats that hold any table, and the ending of their files.
TABLE_FORMATS = {"parquet": ".parquet", "csv": ".csv", "jsonl": ".jsonl", "huggingface": ""}


class TableWriter:
    """One table, written part by part, so that it need not fit into memory.

    Args:
        folder: Where its files go.
        name: Name of the table; also of its folder, or None where the folder is all its own.
        form: One of `TABLE_FORMATS`.
        partition_by: Columns whose values become folders (`speaker=A/`); Parquet only.
    """

    def __init__(self, folder: Folder, name: str | None, form: str, partition_by: Sequence[str] = ()) -> None:
        self._folder = folder
        self._name = name
        self._form = form
        self._partition_by = list(partition_by)
        self._below = f"{name}/" if name else ""
        self._parts = 0
        self._schema: pa.Schema | None = None
        self._file: IO[bytes] | None = None
        self._out: Any = None

    def add(self, df: pd.DataFrame) -> None:
        """Write the rows of a DataFrame; the first one decides the columns and types.

        Raises:
            OptionError: A column to partition by is missing.
        """
        if self._form in ("csv", "jsonl"):
            text = text_of(df, self._form, header=self._parts == 0)
            self._bytes(f"{self._name or 'data'}.{self._form}").write(text)
        else:
            self._add_arrow(df)
        self._parts += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._out is not None:
            self._out.close()
        if self._file is not None:
            self._file.close()
        if kind is None and self._form == "huggingface" and self._schema is not None:
            self._describe()

    def _add_arrow(self, df: pd.DataFrame) -> None:
        table = arrow(df, self._name, self._schema)
        self._schema = table.schema
        if self._partition_by:
            self._add_partitioned(table)
            return
        if self._out is None and self._form == "parquet":
            file = self._bytes(f"{self._below}part-0.parquet")
            self._out = pq.ParquetWriter(file, table.schema, compression="zstd", compression_level=1)
        elif self._out is None:
            self._out = pa.ipc.new_stream(self._bytes(f"{self._below}data-00000-of-00001.arrow"), table.schema)
        self._out.write_table(table)

    def _add_partitioned(self, table: pa.Table) -> None:
        missing = [name for name in self._partition_by if name not in table.column_names]
        if missing:
            raise OptionError(
                f"cannot partition by {missing[0]!r}; {self._name or 'the table'} has {', '.join(table.column_names)}"
            )
        for name in self._partition_by:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _folder_name(table[name]))
        pq.write_to_dataset(
            table,
            f"{self._folder.root}/{self._name}" if self._name else self._folder.root,
            partition_cols=self._partition_by,
            basename_template=f"part-{self._parts}-{{i}}.parquet",
            existing_data_behavior="overwrite_or_ignore",
            filesystem=self._folder.filesystem,
            compression="zstd",
            file_visitor=lambda written: self._folder.files.append(written.path.removeprefix(f"{self._folder.root}/")),
        )

    def _bytes(self, name: str) -> IO[bytes]:
        if self._file is None:
            self._file = self._folder.open(name)
        return self._file

    def _describe(self) -> None:
        """The two small files that `datasets.load_from_disk` reads; columns and types it takes from the Arrow file."""
        state: dict[str, Any] = {
            "_data_files": [{"filename": "data-00000-of-00001.arrow"}],
            "_fingerprint": f"voxframe{SCHEMA_VERSION}",
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        }
        self._folder.write(f"{self._below}state.json", json.dumps(state))
        about = {
            "description": f"{self._name or 'data'}, written by voxframe",
            "citation": "",
            "homepage": "",
            "license": "",
        }
        self._folder.write(f"{self._below}dataset_info.json", json.dumps(about))


def text_of(df: pd.DataFrame, form: str, *, header: bool = True) -> bytes:
    """A DataFrame as CSV, or as JSON with an object a line."""
    if form == "csv":
        text = df.to_csv(index=False, header=header, lineterminator="\n")
    else:
        text = df.to_json(orient="records", lines=True, date_format="iso", force_ascii=False) if len(df) else ""
    return text.encode("utf-8", "replace")


def arrow(df: pd.DataFrame, name: str | None = None, schema: pa.Schema | None = None) -> pa.Table:
    """A DataFrame as Arrow: columns of the data dictionary with its types, others with theirs.

    Args:
        df: The DataFrame.
        name: Table of the data dictionary that it is; None or another name is none of them.
        schema: Schema of an earlier part.

    Raises:
        OptionError: A part has other columns than the first one.
    """
    if schema is None:
        table = pa.Table.from_pandas(df, preserve_index=False)
        known = CORPUS_TABLES[name].arrow if name in CORPUS_TABLES else pa.schema([])
        fields = [
            known.field(f.name) if f.name in known.names else pa.field(f.name, _settled(f.type)) for f in table.schema
        ]
        schema = pa.schema(fields)
    try:
        return pa.Table.from_pandas(df, schema=schema, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, KeyError) as e:
        raise OptionError(f"this part of the table does not fit the first one: {e}") from None


def _settled(kind: pa.DataType) -> pa.DataType:
    """A type that parts agree on: of a column with nothing in it, text."""
    return pa.string() if pa.types.is_null(kind) or pa.types.is_large_string(kind) else kind


def _folder_name(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as people write them in their time zone, days without a time; anything else as it is."""
    if not pa.types.is_timestamp(column.type):
        return column
    local = pc.local_timestamp(column) if column.type.tz else column
    return pc.replace_substring_regex(local.cast(pa.string()), r"( 00:00:00)?(\.0*)?$", "")
