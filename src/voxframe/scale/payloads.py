"""Tables straight from raw payloads on any file system that fsspec knows, as Dask tasks."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from voxframe import frames
from voxframe._files import write_atomic
from voxframe.corpus.export import table_names
from voxframe.corpus.importing import contents, is_payload_file
from voxframe.corpus.store import EXPORTS, is_corpus, note_in
from voxframe.corpus.tables import parquet_options, stored_schema
from voxframe.errors import MissingExtraError, OptionError, PayloadError
from voxframe.export.targets import check_target, store_settings
from voxframe.frames.payloads import payloads
from voxframe.schema import TABLES, TRANSCRIPT_TABLES
from voxframe.validators import listed, nearest

if TYPE_CHECKING:
    import dask.dataframe as dd

_FILES = 64  # payloads of a partition: about 600,000 words


def read_payloads(
    source: str, table: str = "words", *, storage_options: Mapping[str, Any] | None = None
) -> dd.DataFrame:
    """Decode payloads into one table as a Dask DataFrame.

    Args:
        source: Folder, or pattern of files, as a path or URL: `"s3://bucket/calls/raw"`. Files end in `.json`,
            `.jsonl` or `.ndjson`, optionally followed by `.gz` or `.zst`.
        table: Name of a table that is made from transcripts.
        storage_options: Settings of the store; see fsspec.

    Returns:
        A frame with the dtypes of the data dictionary and a partition for every 64 files. Transcripts are in the order
        of their files. The divisions are unknown, because the files would have to be read to count their rows. There
        are no names of speakers and recordings: a corpus stores them apart from the payloads.

    Raises:
        OptionError: There is no such table, or no such file.
        MissingExtraError: Dask is not installed.
        PayloadError: When the frame is computed: a payload cannot be read. The message names the file.
    """
    dask = _dask()
    import dask.dataframe as dd

    _check([table])
    options = store_settings(storage_options)
    groups = _groups(source, options)
    with dask.config.set({"dataframe.convert-string": False}):
        frame: dd.DataFrame = dd.from_map(
            _frame,
            groups,
            source=source,
            table=table,
            options=options,
            meta=_frame([], source=source, table=table, options=options),
            label=table,
        )
    return frame


def build_tables(
    source: str,
    target: str,
    tables: str | Sequence[str] = TRANSCRIPT_TABLES,
    *,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Decode payloads into Parquet files, as `<target>/<table>/<hash>.parquet`, on the current Dask scheduler.

    Each task decodes 64 payloads once and writes a file for each table. The names of files follow from those of the
    payloads, so a call or a task that was interrupted can be repeated. Use a new folder for other payloads.

    Args:
        source: Folder, or pattern of files, as for `read_payloads`.
        target: Folder, as a path or URL.
        tables: Names of tables that are made from transcripts, or one name.
        storage_options: Settings of the store with the payloads.
        target_options: Settings of the store with the tables.

    Returns:
        One row per table: `table`, `files` and `rows`.

    Raises:
        OptionError: There is no such table, or none is named, or no such file, or the target is inside a corpus.
        MissingExtraError: Dask is not installed.
        PayloadError: A payload cannot be read. The message names the file.
    """
    dask = _dask()
    tables = table_names(tables)
    _check(tables)
    options = store_settings(storage_options), store_settings(target_options)
    filesystem, place = _opened(target, options[1])
    around = Path(place, "x").parents if "file" in filesystem.protocol else ()
    if corpora := [path for path in around if is_corpus(path)]:
        raise OptionError(
            f"{target!r} is inside the corpus {str(corpora[0])!r}, and readers of its tables would find rows twice; "
            "name a folder outside it. Corpus.raw.rebuild_tables makes the tables of a corpus"
        )
    write = dask.delayed(_write, pure=False)
    groups = [write(group, source, target, tables, *options) for group in _groups(source, options[0])]
    counted = dask.compute(*groups)
    rows = [(table, *map(sum, zip(*(one[table] for one in counted), strict=True))) for table in tables]
    return pd.DataFrame(rows, columns=["table", "files", "rows"])


def _dask() -> Any:
    try:
        import dask
        import fsspec  # noqa: F401  Dask needs it
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "voxframe.scale") from None
    return dask


def _check(tables: Sequence[str]) -> None:
    for table in tables:
        if table not in TRANSCRIPT_TABLES:
            near = nearest(table, TRANSCRIPT_TABLES)
            raise OptionError(
                f"payloads of transcripts make no table {table!r}{near}; choose from {listed(TRANSCRIPT_TABLES)}"
            )


def _opened(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it."""
    import fsspec

    check_target(url)
    try:
        opened: tuple[Any, str] = fsspec.core.url_to_fs(url, **options)
    except (ImportError, ValueError, OSError) as error:
        raise OptionError(f"{url!r} cannot be opened: {error}") from None
    return opened


def _groups(source: str, options: Mapping[str, Any]) -> list[list[str]]:
    """Return the paths of payload files, sorted, in groups."""
    filesystem, path = _opened(source, options)
    fixed, *pattern = [path] if filesystem.exists(path) else re.split(r"[*?\[]", path, maxsplit=1)
    paths_found = filesystem.glob(path) if pattern else filesystem.find(path)
    above = len(fixed.rpartition("/")[0] if pattern else path)  # the source may be in a hidden folder
    exports = tuple(f".{view}.json.zst" for view in EXPORTS)
    paths = sorted(p for p in paths_found if is_payload_file(p) and not p.endswith(exports) and "/." not in p[above:])
    if not paths:
        raise OptionError(f"{source!r} matches no payload file, such as .json or .json.zst; check the path")
    return [paths[at : at + _FILES] for at in range(0, len(paths), _FILES)]


def _decoded(
    paths: Sequence[str], source: str, tables: Sequence[str], options: Mapping[str, Any]
) -> Iterator[dict[str, pa.Table]]:
    """Yield the tables of each payload. This runs in a worker."""
    filesystem, _ = _opened(source, options)
    for path in paths:
        try:
            data = filesystem.cat_file(path)
            transcript_id = (note_in(io.BytesIO(data)) or {}).get("transcript_id")  # files of a corpus
            for _, payload in payloads(contents(io.BytesIO(data), path)):
                if isinstance(payload, PayloadError):
                    raise payload
                yield frames.transcript_tables(payload, tables, transcript_id)
        except PayloadError as error:
            raise PayloadError(f"{path}: {error}") from None


def _frame(paths: Sequence[str], *, source: str, table: str, options: Mapping[str, Any]) -> pd.DataFrame:
    parts = [TABLES[table].empty, *(one[table] for one in _decoded(paths, source, [table], options))]
    return frames.with_text_original(frames.to_pandas(pa.concat_tables(parts), table), table)


def _write(
    paths: Sequence[str],
    source: str,
    target: str,
    tables: Sequence[str],
    options: Mapping[str, Any],
    target_options: Mapping[str, Any],
) -> dict[str, tuple[int, int]]:
    """Write the tables of some payloads. Return the number of files and rows of each."""
    filesystem, root = _opened(target, target_options)
    decoded = list(_decoded(paths, source, tables, options))
    stem = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:32]
    counted = {}
    for name in tables:
        rows = pa.concat_tables([TABLES[name].empty, *(part[name] for part in decoded)])
        counted[name] = (int(rows.num_rows > 0), rows.num_rows)
        if rows.num_rows:
            buffer = io.BytesIO()
            pq.write_table(rows.cast(stored_schema(name)), buffer, **parquet_options(stored_schema(name)))
            _put(filesystem, f"{root}/{name}", f"{stem}.parquet", buffer.getvalue())
    return counted


def _put(filesystem: Any, folder: str, name: str, content: bytes) -> None:
    """Write a file that is complete or absent, also if two workers write it at the same time."""
    filesystem.makedirs(folder, exist_ok=True)
    if "file" in filesystem.protocol:
        write_atomic(Path(folder, name), content)
    else:  # a store puts whole objects
        filesystem.pipe_file(f"{folder}/{name}", content)
