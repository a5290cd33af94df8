"""The part of a corpus that writes it to files for others."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from voxframe.corpus.metadata import Wanted
from voxframe.corpus.metadata import chosen as columns
from voxframe.corpus.reading import identifiers
from voxframe.errors import OptionError
from voxframe.export.files import folder, is_remote
from voxframe.export.personal import mask
from voxframe.export.tables import TABLE_FORMATS, TableWriter
from voxframe.export.writing import FORMATS, check_format, names, write, write_transcripts
from voxframe.schema import TRANSCRIPT_TABLES

_AT_A_TIME = 64  # transcripts in memory


class Exports(ABC):
    """Exports of a corpus; `Corpus` is one of these."""

    path: Path

    @abstractmethod
    def ids(self) -> list[str]:
        """Identifiers of all transcripts here, sorted."""

    @abstractmethod
    def table(self, name: str, ids: str | Iterable[str] | None = None, *, metadata: Wanted = False) -> pd.DataFrame:
        """One table over many transcripts."""

    @abstractmethod
    def about(self, ids: str | Iterable[str] | None = None) -> pa.Table:
        """Columns about recordings as Arrow."""

    def export(
        self,
        target: str | os.PathLike[str],
        format: str = "parquet",  # noqa: A002  what pandas and its readers call it
        *,
        tables: str | Sequence[str] | None = None,
        ids: str | Iterable[str] | None = None,
        partition_by: str | Sequence[str] = (),
        metadata: Wanted = False,
        pii: Literal["mask", "drop"] | None = None,
        pii_types: Collection[str] | None = None,
        overwrite: bool = False,
    ) -> list[str]:
        """Write the corpus, or a part of it, to files that other tools read.

        A data set (parquet, csv, jsonl, huggingface) is a directory with a file or folder a table, read from the corpus
        part by part. Captions and annotations (srt, vtt, textgrid, eaf, rttm, ctm, stm, audacity) are a directory with
        a file a transcript, but for those in which nothing is said; a target with the ending of the format
        (`calls.rttm`) is one file. It appears when all is written.

        Args:
            target: Path, or an address that fsspec knows (`s3://bucket/calls`; extra `remote`).
            format: One of `voxframe.export.FORMATS`.
            tables: Tables of a data set; None are all that are made from a transcript.
            ids: Only these transcripts.
            partition_by: Columns whose values become folders (`speaker=A/`), also of the metadata; parquet only. Rows
                without a value are in `__HIVE_DEFAULT_PARTITION__`, a null for DuckDB, Polars and Spark, and for
                `pyarrow.dataset.dataset(path, partitioning="hive")`, which pandas takes it from.
            metadata: Columns about the recordings to add to every table of a data set: names, or True for all. They go
                out as they are, whatever `pii` says.
            pii: "mask" writes `[PERSON_NAME]` and the like for personal data that entity detection found, "drop" leaves
                those words out; see `voxframe.export.mask`.
            pii_types: Types of entities that are personal; None are those of `voxframe.options.PII_POLICIES`.
            overwrite: Whether to replace what is there.

        Returns:
            The files that were written: their names in the directory, or the target itself.

        Raises:
            OptionError: An argument is wrong, the target is where the corpus is, or personal data is to be left out of
                a transcript that was made without entity detection. Nothing was written.
            CorpusError: A transcript or table is not here.
            ExportError: The target is there already or cannot be written.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> _ = corpus.put("a1", b'{"id": "a1", "words": [{"text": "Hi", "start": 0, "end": 90, "speaker": "A"}]}')
            >>> corpus.export(f"{tempfile.mkdtemp()}/captions", "vtt")
            ['a1.vtt']
        """
        check_format(format, partition_by)
        self._check_outside(target)
        wanted = self.ids() if ids is None else identifiers(ids)
        single = FORMATS[format] != "" and os.fspath(target).lower().endswith(FORMATS[format].lower())
        if format not in TABLE_FORMATS:
            if tables is not None:
                raise OptionError(f"{format} is made of words; tables are for {', '.join(TABLE_FORMATS)}")
            if metadata:
                raise OptionError(f"{format} has no place for metadata; it is for {', '.join(TABLE_FORMATS)}")
            chosen = ["words"]
        else:
            chosen = list(TRANSCRIPT_TABLES) if tables is None else names(tables)
        about = self._about(wanted, names(partition_by), metadata)
        parts = self._parts(wanted, chosen, about, pii, pii_types)
        if single and not partition_by:
            if len(chosen) > 1:
                raise OptionError(
                    "one file holds one table: name one with tables= (--table), or a directory, not "
                    f"{os.fspath(target)!r}"
                )
            whole = pd.concat([part[chosen[0]] for part in parts], ignore_index=True)
            return write(whole, target, format, overwrite=overwrite)
        with folder(target, overwrite=overwrite) as into, ExitStack() as open_files:
            if format not in TABLE_FORMATS:
                for part in parts:
                    write_transcripts(part["words"], into, format)
                return into.files
            writers = {
                name: open_files.enter_context(TableWriter(into, name, format, names(partition_by))) for name in chosen
            }
            for part in parts:
                for name, writer in writers.items():
                    writer.add(part[name])
        return into.files

    def _check_outside(self, target: str | os.PathLike[str]) -> None:
        """Refuse a target that is the corpus, in it or around it: overwriting would take what was paid for."""
        if is_remote(target):
            return
        place, here = Path(target).expanduser().resolve(), self.path.resolve()
        if place == here or place in here.parents or here in place.parents:
            raise OptionError(f"{os.fspath(target)!r} is where the corpus {here} is; name a place beside it")

    def _about(self, ids: list[str], partition_by: list[str], metadata: Wanted) -> list[str]:
        """Columns of metadata that are asked for, also by what to partition by."""
        about = self.about(ids) if metadata or partition_by else None
        if about is None:
            return []
        more = [name for name in partition_by if name in about.column_names and name != "transcript_id"]
        return list(dict.fromkeys([*columns(about, metadata), *more]))

    def _parts(
        self,
        ids: list[str],
        chosen: list[str],
        about: list[str],
        pii: Literal["mask", "drop"] | None,
        types: Collection[str] | None,
    ) -> Iterator[dict[str, pd.DataFrame]]:
        """The tables of some transcripts at a time; of none, where there are none."""
        needed = chosen if pii is None else dict.fromkeys([*chosen, "transcripts", "entities", "words"])
        for at in range(0, max(1, len(ids)), _AT_A_TIME):
            some = ids[at : at + _AT_A_TIME]
            part = {name: self.table(name, some, metadata=about) for name in needed}
            yield part if pii is None else mask(part, pii, types)
