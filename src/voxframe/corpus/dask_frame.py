"""Tables of a corpus as Dask DataFrames. A partition holds whole transcripts, in the order of the stored files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from voxframe.corpus.archive import Archive
from voxframe.corpus.metadata import Metadata, Wanted, wanted_names
from voxframe.corpus.people import People
from voxframe.corpus.query import Query
from voxframe.corpus.speakers import CurrentNames
from voxframe.errors import CorpusError, MissingExtraError

if TYPE_CHECKING:
    import dask.dataframe as dd

#: Rows of a partition: about 65 MB of words, and so few transcripts that their files are looked up one by one.
_ROWS = 500_000


def dask_frame(
    name: str, rows: dict[str, tuple[int, str | None]], path: Path, metadata: Wanted = False
) -> dd.DataFrame:
    """Return one table as a Dask DataFrame; see `Corpus.to_dask`."""
    try:
        import dask
        import dask.dataframe as dd
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "Corpus.to_dask") from None
    more = wanted_names(metadata)
    groups: list[list[str]] = [[]]
    sizes = [0]
    for transcript_id, (count, _) in rows.items():
        if sizes[-1] and sizes[-1] + count > _ROWS:
            groups.append([])
            sizes.append(0)
        groups[-1].append(transcript_id)
        sizes[-1] += count
    starts = [0, *accumulate(sizes)]
    with dask.config.set({"dataframe.convert-string": False}):  # it would replace the dtypes of the dictionary
        frame: dd.DataFrame = dd.from_map(
            _partition,
            groups,
            sizes,
            starts[:-1],
            [[rows[transcript_id][1] for transcript_id in group] for group in groups],
            path=path,
            name=name,
            metadata=more,
            frame=secrets.token_hex(8),  # Dask takes equal arguments for equal results, and the corpus may have changed
            meta=_query(path).table(name, groups[0][:1], metadata=more).iloc[:0],
            divisions=(*starts[:-1], max(0, starts[-1] - 1)),
            label=name,
        )
    return frame


def _partition(
    ids: Sequence[str],
    rows: int,
    first: int,
    sources: Sequence[str | None],
    *,
    path: Path,
    name: str,
    metadata: Wanted,
    frame: str,  # noqa: ARG001  tells frames apart
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the rows of some transcripts. This runs in a worker."""
    query = _query(path)
    found = query.table(name, ids, columns, metadata=metadata if columns is None else False)
    if len(found) != rows or [query.source(name, transcript_id) for transcript_id in ids] != [*sources]:
        raise CorpusError(f"transcripts of {path} were replaced since Corpus.to_dask was called; call it again")
    found.index = pd.RangeIndex(first, first + rows)
    return found


@lru_cache(maxsize=8)
def _query(path: Path) -> Query:
    """Return the reader of a corpus, one per process: it keeps the manifests that it has read."""
    archive = Archive(path)
    metadata, names = Metadata(archive), CurrentNames(archive)
    return Query(archive, metadata, names, People(archive, metadata, names.all))
