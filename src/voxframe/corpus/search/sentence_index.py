"""The sentences of a corpus with their vectors, in Parquet files that can be deleted at any time.

    <corpus>/meaning/<random>.parquet    sentences of many transcripts; the column `vector` holds 384 float16 numbers

A file never changes once it is written. Its metadata lists its transcripts, and for each the state of the payloads and
corrections that its sentences were made from. A search first encodes the sentences of new and changed transcripts and
writes them every few seconds, so that an interrupted run loses little. In a read-only directory they stay in memory.
"""

from __future__ import annotations

import secrets
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voxframe import encoder
from voxframe._files import write_atomic
from voxframe._progress import Progress
from voxframe.corpus.archive import MissingTranscriptError
from voxframe.corpus.catalog import Catalog
from voxframe.corpus.store import check_no_link, check_writable, folder
from voxframe.encoder import SIZE, Vectors
from voxframe.errors import CorpusWarning, DamagedFileError, PayloadError, PayloadWarning
from voxframe.schema import SCHEMA_VERSION

_Rows: TypeAlias = npt.NDArray[np.intp]

#: Columns of the files except the vectors.
COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("transcript_id", "text", "speaker", "channel")]
    + [
        (name, pa.int64())
        for name in ("sentence_idx", "start_ms", "end_ms", "word_idx", "last_word_idx", "utterance_idx")
    ]
)
_FORMAT = f"voxframe sentences 1, all-MiniLM-L6-v2, schema {SCHEMA_VERSION}"
_KEY = b"voxframe.sentences"
_VECTOR = pa.field("vector", pa.binary(2 * SIZE))
_WRITTEN_AT_ONCE = 4096  # sentences; about 10 s of encoding
_SMALL, _FAN = 65_536, 8  # more than _FAN files with fewer sentences than _SMALL are merged
_CONVERTED = 4096  # vectors at a time


class SentencePart:
    """The sentences of one file.

    Args:
        vectors: Their vectors as stored, of shape (sentences, 384), float16. None (default): those of `path`.
    """

    def __init__(
        self,
        table: pa.Table,
        states: Mapping[str, str],
        vectors: npt.NDArray[np.float16] | None = None,
        path: Path | None = None,
    ) -> None:
        self.table, self.states, self.path = table, states, path
        self._stored = vectors

    @classmethod
    def open(cls, path: Path) -> SentencePart | None:
        """Read a file. Return None if it is from another version."""
        file = pq.ParquetFile(path, page_checksum_verification=True)
        header = orjson.loads(file.schema_arrow.metadata[_KEY])
        if header["format"] != _FORMAT:
            return None
        part = cls(file.read(COLUMNS.names), header["states"], path=path)
        _ = part.vectors  # another process may delete the file later
        return part

    def stored(self) -> npt.NDArray[np.float16]:
        """Return the vectors as stored."""
        if self._stored is not None:
            return self._stored
        file = pq.ParquetFile(self.path, page_checksum_verification=True)
        column = file.read(["vector"])["vector"].combine_chunks()
        return np.frombuffer(column.buffers()[1], np.float16)[column.offset * SIZE :].reshape(len(column), SIZE)

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors, of shape (sentences, 384), float32, each row of length 1. Kept in memory once used."""
        stored = self.stored()
        vectors = np.empty(stored.shape, np.float32)
        for first in range(0, len(stored), _CONVERTED):
            block = vectors[first : first + _CONVERTED]
            block[:] = stored[first : first + _CONVERTED]
            block /= np.linalg.norm(block, axis=1, keepdims=True)
        return vectors

    def rows_of(self, ids: set[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of the sentences of some transcripts."""
        mask: npt.NDArray[np.bool_] = pc.is_in(
            self.table["transcript_id"], pa.array(sorted(ids), pa.string())
        ).to_numpy()
        return mask


class SentenceView:
    """All sentences of a corpus at one moment."""

    def __init__(self, parts: Sequence[tuple[SentencePart, set[str]]]) -> None:
        self.parts = parts  # each with the ids of the transcripts whose sentences count
        self._rows: list[_Rows] = [np.flatnonzero(part.rows_of(ids)) for part, ids in parts]
        self._ends = np.cumsum([0, *map(len, self._rows)])
        taken = [part.table.take(pa.array(rows)) for (part, _), rows in zip(parts, self._rows, strict=True)]
        #: The columns `COLUMNS`. The sentences of a transcript are together and in order.
        self.table = pa.concat_tables([COLUMNS.empty_table(), *taken]).combine_chunks()

    def scores(self, wanted: Vectors) -> Vectors:
        """Return the cosine of each sentence with a vector, up to rounding errors of float32."""
        scores = np.empty(len(self.table), np.float32)
        for n, (part, _) in enumerate(self.parts):
            cosines = part.vectors @ wanted
            rows = self._rows[n]
            scores[self._ends[n] : self._ends[n + 1]] = cosines if len(rows) == len(cosines) else cosines[rows]
        return scores

    def vectors(self, rows: _Rows) -> Vectors:
        """Return the vectors of some rows of `table`, of shape (len(rows), 384), float32."""
        values = np.empty((len(rows), SIZE), np.float32)
        at = np.searchsorted(self._ends, rows, "right") - 1
        for n in np.unique(at):
            here = at == n
            values[here] = self.parts[n][0].vectors[self._rows[n][rows[here] - self._ends[n]]]
        return values


class SentenceIndex:
    """The sentences of a corpus, encoded on use. Threads and processes may share it."""

    def __init__(
        self, catalog: Catalog, states: Callable[[], dict[str, str]], sentences: Callable[[str], pa.Table]
    ) -> None:
        self._catalog, self._states, self._sentences = catalog, states, sentences
        self._folder = catalog.root / "meaning"
        self._mutex = threading.Lock()
        self._parts: dict[str, SentencePart] = {}
        self._unread: dict[str, tuple[str, str]] = {}  # state and reason of transcripts that cannot be read
        self._view: tuple[dict[str, str], frozenset[str], SentenceView] | None = None

    def view(self, progress: bool | None = None) -> SentenceView:
        """Encode what is missing and return all sentences."""
        with self._mutex:
            states = self._states()
            chosen = self._read(states)
            if missing := self._missing(states, chosen):
                self._update(missing, states, progress)
                chosen = self._read(states)
            for _, reason in (self._unread[i] for i in self._unread.keys() & states.keys()):
                warnings.warn(f"not searched: {reason}", PayloadWarning, stacklevel=4)
            names = frozenset(self._parts)
            if self._view is None or self._view[:2] != (states, names):
                of_part: dict[str, set[str]] = {}
                for transcript_id, name in chosen.items():
                    of_part.setdefault(name, set()).add(transcript_id)
                parts = [(self._parts[name], of_part[name]) for name in sorted(of_part)]
                self._view = states, names, SentenceView(parts)
            return self._view[2]

    def has(self, transcript_id: str) -> bool:
        """Return True if a file holds sentences of a transcript."""
        check_no_link(self._folder)
        with self._mutex:
            self._read({})
            return any(transcript_id in part.states for part in self._parts.values())

    def purge(self, transcript_id: str) -> None:
        """Rewrite the files that hold sentences of a deleted transcript."""
        check_no_link(self._folder)
        if not self._folder.is_dir():
            return
        with self._mutex, self._catalog.lock("meaning"):
            self._read({})
            self._view = None
            for name, part in [*self._parts.items()]:
                if transcript_id in part.states:
                    self._merge([name], {i: name for i in part.states if i != transcript_id})

    def _read(self, states: Mapping[str, str]) -> dict[str, str]:
        """Open the files on disk. Return the part of each transcript whose sentences are current."""
        there = {path.name: path for path in self._folder.glob("*.parquet")}
        in_memory = {name: part for name, part in self._parts.items() if part.path is None}
        opened = {name: part for name, part in self._parts.items() if name in there}
        for name in sorted(there.keys() - opened.keys()):
            try:
                part = SentencePart.open(there[name])
            except FileNotFoundError:  # merged by another process
                continue
            except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as e:
                warnings.warn(f"{there[name]} is damaged ({e}); its sentences are encoded again", CorpusWarning, 5)
                continue
            if part is not None:
                opened[name] = part
        self._parts = {**in_memory, **opened}
        names = sorted(self._parts)
        return {i: name for name in names for i, at in self._parts[name].states.items() if states.get(i) == at}

    def _missing(self, states: Mapping[str, str], chosen: Mapping[str, str]) -> list[str]:
        unread = {i for i, (at, _) in self._unread.items() if states.get(i) == at}
        return sorted(states.keys() - chosen.keys() - unread)

    def _update(self, missing: list[str], states: Mapping[str, str], progress: bool | None) -> None:
        coder = encoder.load()
        try:
            check_writable(self._folder.parent)
            folder(self._folder)
            with self._catalog.lock("meaning"):
                missing = self._missing(states, self._read(states))  # another process may have encoded some
                with Progress("encoding sentences of transcripts", jobs=len(missing), show=progress) as bar:
                    for table, vectors, of_part in self._encoded(missing, states, coder, bar):
                        self._save(table, vectors, of_part)
                self._tidy(states)
        except OSError:  # a read-only or full disk
            missing = self._missing(states, self._read(states))
            with Progress("encoding sentences of transcripts", jobs=len(missing), show=progress) as bar:
                for table, vectors, of_part in self._encoded(missing, states, coder, bar):
                    self._parts[f"memory {secrets.token_hex(8)}"] = SentencePart(table, of_part, vectors)

    def _encoded(
        self, ids: Sequence[str], states: Mapping[str, str], coder: encoder.SentenceEncoder, bar: Progress
    ) -> Iterator[tuple[pa.Table, npt.NDArray[np.float16], dict[str, str]]]:
        """Yield the sentences of transcripts with their vectors, many at a time. Unchanged texts are not encoded."""
        tables: list[pa.Table] = []
        of_part: dict[str, str] = {}
        for n, transcript_id in enumerate(ids, 1):
            try:
                table = self._sentences(transcript_id).select(COLUMNS.names).cast(COLUMNS)
                tables.append(table.filter(pc.fill_null(pc.match_substring_regex(table["text"], r"\S"), False)))
                of_part[transcript_id] = states[transcript_id]
            except (DamagedFileError, MissingTranscriptError, PayloadError) as e:
                self._unread[transcript_id] = states[transcript_id], str(e)
            if of_part and (n == len(ids) or sum(map(len, tables)) >= _WRITTEN_AT_ONCE):
                whole = pa.concat_tables(tables).combine_chunks()
                texts = whole["text"].to_pylist()
                known = self._known(set(of_part))
                new = [text for text in dict.fromkeys(texts) if text not in known]
                known |= zip(new, coder.encode(new).astype(np.float16), strict=True)
                vectors = np.array([known[text] for text in texts], np.float16).reshape(len(texts), SIZE)
                yield whole, vectors, of_part
                bar.advance(n - bar.count)
                tables, of_part = [], {}

    def _known(self, ids: set[str]) -> dict[str, npt.NDArray[np.float16]]:
        """Return the vectors of texts in earlier versions of some transcripts."""
        vectors: dict[str, npt.NDArray[np.float16]] = {}
        for part in self._parts.values():
            if ids & part.states.keys():
                rows = np.flatnonzero(part.rows_of(ids))
                vectors |= zip(part.table["text"].take(pa.array(rows)).to_pylist(), part.stored()[rows], strict=True)
        return vectors

    def _save(self, table: pa.Table, vectors: npt.NDArray[np.float16], states: Mapping[str, str]) -> None:
        """Write a part."""
        buffer = pa.py_buffer(np.ascontiguousarray(vectors))
        column = pa.FixedSizeBinaryArray.from_buffers(_VECTOR.type, len(table), [None, buffer])
        note = orjson.dumps({"format": _FORMAT, "states": states})
        whole = table.append_column(_VECTOR, column).replace_schema_metadata({_KEY: note})
        path = self._folder / f"{secrets.token_hex(8)}.parquet"
        options: dict[str, Any] = {"compression": "zstd", "write_statistics": False, "write_page_checksum": True}
        options["compression"] = dict.fromkeys(COLUMNS.names, "zstd") | {"vector": "none"}
        options["use_dictionary"] = ["transcript_id", "speaker", "channel"]
        write_atomic(path, lambda file: pq.write_table(whole, file, **options), durable=False)
        self._parts[path.name] = SentencePart(table, states, path=path)

    def _tidy(self, states: Mapping[str, str]) -> None:
        """Merge small files, and rewrite files whose sentences are mostly replaced."""
        chosen = self._read(states)
        for path in self._folder.glob("*.parquet"):
            if path.name not in self._parts:  # damaged, or from another version
                path.unlink(missing_ok=True)
        live = dict.fromkeys(self._parts, 0)
        for name in chosen.values():
            live[name] += 1
        for name in [name for name, part in self._parts.items() if 2 * live[name] < len(part.states) or not live[name]]:
            self._merge([name], chosen)
        small = [name for name, part in self._parts.items() if part.path and len(part.table) < _SMALL]
        if len(small) > _FAN:
            self._merge(small, self._read(states))

    def _merge(self, names: Sequence[str], chosen: Mapping[str, str]) -> None:
        """Replace parts by one with the transcripts that `chosen` assigns to them."""
        parts = [(self._parts[name], {i for i, at in chosen.items() if at == name}) for name in names]
        masks = [part.rows_of(ids) for part, ids in parts]
        states = {i: part.states[i] for part, ids in parts for i in sorted(ids)}
        if states:
            table = pa.concat_tables([part.table.filter(mask) for (part, _), mask in zip(parts, masks, strict=True)])
            vectors = [part.stored()[mask] for (part, _), mask in zip(parts, masks, strict=True)]
            self._save(table.combine_chunks(), np.concatenate(vectors), states)
        for name in names:
            if (path := self._parts.pop(name).path) is not None:
                path.unlink(missing_ok=True)
