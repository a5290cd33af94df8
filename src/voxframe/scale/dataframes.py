"""Dask DataFrames: tables straight from raw payloads, and measures, counts and search with the results of one machine.

Every partition must hold whole transcripts, as those of `Corpus.to_dask` and `read_payloads` do. Each partition is
processed on its own; only the results are combined.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from voxframe import analysis, frames
from voxframe._files import write_atomic
from voxframe.analysis.grouping import PERIODS, By, Calendar, periods
from voxframe.analysis.vocabulary import sorted_counts
from voxframe.corpus.export import table_names
from voxframe.corpus.importing import contents, is_payload_file
from voxframe.corpus.search.concordance import (
    GROUPS,
    SearchQuery,
    find_in_context,
    group_columns,
    labelled,
    speaker_list,
)
from voxframe.corpus.search.concordance import counts as count_words
from voxframe.corpus.search.index import OpenIndex
from voxframe.corpus.search.segment import IndexSegment, build
from voxframe.corpus.store import EXPORTS, is_corpus, note_in
from voxframe.corpus.tables import parquet_options, stored_schema
from voxframe.errors import MissingExtraError, OptionError, PayloadError
from voxframe.export.targets import check_target, store_settings
from voxframe.frames.corrected import with_original
from voxframe.frames.payloads import payloads
from voxframe.schema import CONCORDANCE, SPEAKER_NAME, TABLES, TRANSCRIPT_TABLES, WORDS
from voxframe.validators import listed, nearest, shown

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

    _check_tables([table])
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
    _check_tables(tables)
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
    rows = [(table, *map(sum, zip(*(counts_of[table] for counts_of in counted), strict=True))) for table in tables]
    return pd.DataFrame(rows, columns=["table", "files", "rows"])


def _dask() -> Any:
    try:
        import dask
        import fsspec  # noqa: F401  Dask needs it
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "voxframe.scale") from None
    return dask


def _check_tables(tables: Sequence[str]) -> None:
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
    parts = [TABLES[table].empty, *(tables[table] for tables in _decoded(paths, source, [table], options))]
    return frames.to_pandas(with_original(pa.concat_tables(parts), table), table)


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


_INDEXED = ["transcript_id", "word_idx", "utterance_idx", "text", "start_ms", "end_ms", "speaker", "channel"]
#: Columns of a word that determine the name of its speaker.
_WHO = ["transcript_id", "speaker", "channel", "utterance_idx"]


def talk_time(spoken: dd.DataFrame) -> pd.DataFrame:
    """Return the talk time of each speaker per transcript, like `voxframe.analysis.talk_time`.

    Args:
        spoken: Turns or words, such as `corpus.to_dask("utterances")`.

    Returns:
        The columns of `voxframe.analysis.talk_time`, sorted by transcript.
    """
    return each(spoken, analysis.talk_time)


def each(frame: dd.DataFrame, measure: Callable[..., pd.DataFrame], **options: Any) -> pd.DataFrame:
    """Compute a measure of `voxframe.analysis` that has one or more rows per transcript, such as `turn_statistics`.

    A partition holds whole transcripts, so the result is exact. To sum up over groups of transcripts, pass it to
    `voxframe.analysis.rates` or `compare_groups`.

    Args:
        frame: Words, turns or another table, such as `corpus.to_dask("words")`.
        measure: Function of a DataFrame whose result has the column `transcript_id`.
        **options: Options of the function.

    Returns:
        The rows of all transcripts, sorted by transcript.

    Raises:
        OptionError: `frame` is not a Dask DataFrame, or `measure` is not such a function.
    """
    _check_frame(frame)
    if not callable(measure):
        raise OptionError(f"each needs a function such as voxframe.analysis.turn_statistics, got {shown(measure)}")
    meta = measure(frame._meta, **options)
    if "transcript_id" not in getattr(meta, "columns", ()):
        raise OptionError("each needs a measure by transcript_id, whose rows belong to one transcript each")
    result = _map(frame, lambda part: measure(part, **options), meta)
    return result.sort_values("transcript_id", kind="stable", ignore_index=True)


def ngrams(words: dd.DataFrame, n: int = 1, by: By = None) -> pd.DataFrame:
    """Count words, or sequences of n words, by group, like `voxframe.analysis.ngrams`.

    Args:
        words: Words, such as `corpus.to_dask("words")`, with metadata merged into them.
        n: Number of words in a sequence.
        by: Names of columns to group by.

    Returns:
        The table of `voxframe.analysis.ngrams`: counts of partitions are added, so it is exact.

    Raises:
        OptionError: A group is unknown.
    """
    _check_frame(words)
    meta = analysis.ngrams(words._meta, n, by)
    result = _map(words, lambda part: analysis.ngrams(part, n, by), meta)
    names = list(meta.columns[:-2])
    sums = result.groupby(names, dropna=False, sort=True, observed=True)[["count", "transcripts"]].sum().reset_index()
    return sorted_counts(sums.astype(meta.dtypes.to_dict()), names[:-1])


def search(
    words: dd.DataFrame,
    query: str | Iterable[str],
    *,
    context: int = 8,
    slop: int | None = None,
    speaker: str | Iterable[str] | None = None,
) -> pd.DataFrame:
    """Find every occurrence of words or phrases, like `Corpus.search`, without a search index.

    Args:
        words: Words, such as `corpus.to_dask("words")`.
        query: Word or phrase, or a list of them; see `Corpus.search`.
        context: Number of words to show on each side.
        slop: Maximum span of a match in words, in any order; see `Corpus.search`.
        speaker: Only matches with a first word by this speaker: a label, a name, or a list of them.

    Returns:
        The table `concordance`, sorted by query, transcript and word. Unlike the result of `Corpus.search`, it has no
        names of recordings.

    Raises:
        OptionError: An argument is invalid.
    """
    search_query = SearchQuery.check(query, slop)
    speaker = speaker_list(speaker)

    def find(part: pd.DataFrame) -> pd.DataFrame:
        hits = find_in_context(_index(part), search_query, context=context, named=_namer(part), speaker=speaker)
        return frames.to_pandas(hits, "concordance")

    hits = _map(_needed(words), find, frames.to_pandas(CONCORDANCE.empty, "concordance"))
    return _ordered(hits, search_query.texts, ["transcript_id", "word_idx", "last_word_idx"])


def counts(
    words: dd.DataFrame,
    query: str | Iterable[str],
    *,
    by: str | Sequence[str] = "transcript_id",
    slop: int | None = None,
    speaker: str | Iterable[str] | None = None,
    about: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Count occurrences of words or phrases, like `Corpus.counts`, without a search index.

    Args:
        words: Words, such as `corpus.to_dask("words")`. Transcripts without words are not counted.
        query: Word or phrase, or a list of them; see `Corpus.search`.
        by: Columns to group by; see `Corpus.counts`. Any column of `words` is allowed; a phrase lies within one group.
            An empty sequence returns one total.
        slop: Maximum span of a match in words, in any order; see `Corpus.search`.
        speaker: Count only words by this speaker: a label, a name, or a list of them.
        about: DataFrame with `transcript_id` and columns to group by, such as `corpus.metadata.get()`.

    Returns:
        The columns of `Corpus.counts` without `recording`, sorted by query and group.

    Raises:
        OptionError: An argument is invalid.
    """
    search_query = SearchQuery.check(query, slop)
    groups = group_columns(by)
    speaker = speaker_list(speaker)

    columns = list(getattr(words, "columns", ()))
    about_columns = [] if about is None else list(about.columns)
    for name in groups:
        is_period = about is None and name in PERIODS and name not in columns  # else of a date in `about`
        if is_period or (isinstance(name, Calendar) and name in columns and name not in about_columns):
            dates = words.map_partitions(periods, name, meta=periods(words._meta, name))
            words, columns = words.assign(**{str(name): dates}), [*columns, str(name)]
    periods_of_about = () if about is None else PERIODS
    if unknown := [name for name in groups if name not in {*GROUPS, *columns, *about_columns, *periods_of_about}]:
        allowed = ", ".join(dict.fromkeys([*columns, *about_columns]))
        raise OptionError(f"by must name columns among {allowed}, got {unknown[0]!r}; about= gives more columns")
    apart = [name for name in groups if name not in GROUPS and (about is None or name not in about)]
    apart = [name for name in apart if name in getattr(words, "columns", ())]  # columns of the words themselves
    others_by = [name for name in groups if name not in apart]

    def count_all(part: pd.DataFrame) -> pd.DataFrame:
        return count_words(_index(part), search_query, named=_namer(part), by=others_by, speaker=speaker, about=about)

    def count(part: pd.DataFrame) -> pd.DataFrame:
        if not apart:
            return count_all(part)
        parts = [
            count_all(rows).assign(**{name: rows[name].iloc[0] for name in apart})
            for _, rows in part.groupby(apart, dropna=False, observed=True)
        ]
        empty = count_all(part[:0])
        empty = pd.concat([empty, part[apart][:0]], axis=1)
        return pd.concat(parts)[empty.columns].astype(empty.dtypes.to_dict()) if parts else empty

    needed = _needed(words, apart)
    result = _map(needed, count, count(needed._meta))
    sums = result.groupby(["term", *groups], dropna=False, observed=True, sort=True)[["occurrences", "words"]].sum()
    sums = _ordered(sums.reset_index(), search_query.texts, [])
    return sums.assign(per_1000=1000 * sums["occurrences"] / sums["words"].where(sums["words"] > 0))


def _map(frame: dd.DataFrame, function: Callable[[pd.DataFrame], pd.DataFrame], meta: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a function for all partitions."""
    mapped: Any = frame.map_partitions(function, meta=meta, enforce_metadata=False)
    result: pd.DataFrame = mapped.compute().astype(meta.dtypes.to_dict())
    return result


def _check_frame(frame: object) -> None:
    """Raise an OptionError unless the argument is a Dask DataFrame."""
    if not hasattr(frame, "map_partitions"):
        raise OptionError(
            "voxframe.scale needs a Dask DataFrame, such as corpus.to_dask('words'), not one of type "
            f"{type(frame).__name__}; "
            "for a DataFrame in memory use voxframe.analysis, or Corpus.search and Corpus.counts"
        )


def _needed(words: dd.DataFrame, more: Sequence[str] = ()) -> dd.DataFrame:
    _check_frame(words)
    if missing := [name for name in _INDEXED if name not in words.columns]:
        raise OptionError(
            f"search and counts need a frame of words, such as corpus.to_dask('words'); this one lacks "
            f"{', '.join(missing)}"
        )
    return words[[name for name in [*_INDEXED, SPEAKER_NAME.name, *more] if name in words.columns]]


def _ordered(hits: pd.DataFrame, texts: Sequence[str], by: list[str]) -> pd.DataFrame:
    """Sort rows by the position of their query, then by other columns."""
    place = hits["term"].map({text: n for n, text in enumerate(texts)})
    order = np.lexsort([*(hits[name].to_numpy() for name in reversed(by)), place.to_numpy()])
    return hits.iloc[order].reset_index(drop=True)


def _index(words: pd.DataFrame) -> OpenIndex:
    """Return a search index of some transcripts, in memory."""
    schema = pa.schema([WORDS.arrow.field(name) for name in _INDEXED])
    words = words.sort_values(["transcript_id", "word_idx"], kind="stable")
    table = pa.Table.from_pandas(words[_INDEXED], schema, preserve_index=False)
    ids, starts = np.unique(words["transcript_id"].to_numpy(), return_index=True)
    limits = zip(starts, [*starts[1:], len(words)], strict=False)
    tables = {str(i): table.slice(start, stop - start) for i, (start, stop) in zip(ids, limits, strict=False)}
    segment = IndexSegment(build(tables))
    return OpenIndex((segment,), (np.arange(len(tables)),), pa.array(list(tables), pa.string()))


def _namer(words: pd.DataFrame) -> Callable[[pa.Table], pa.Table]:
    """Return a function that adds the names of speakers in a DataFrame of words to another table."""
    if SPEAKER_NAME.name not in words.columns:
        return labelled
    names_of = words[[*_WHO, SPEAKER_NAME.name]].drop_duplicates(_WHO)

    def named(table: pa.Table) -> pa.Table:
        rows: Any = table.select(_WHO).to_pandas().astype(names_of.dtypes[_WHO].to_dict())
        names = pa.array(rows.merge(names_of, how="left", on=_WHO)[SPEAKER_NAME.name], pa.string(), from_pandas=True)
        return table.add_column(table.column_names.index("speaker") + 1, SPEAKER_NAME.name, names)

    return named
