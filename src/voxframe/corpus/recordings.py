"""Names and sources of the recordings of a corpus: read from the ledger, joined to tables, and accepted as ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from voxframe._text import masked, storable
from voxframe.corpus.catalog import Catalog
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.store import Store
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES, RECORDING_COLUMNS
from voxframe.validators import shown

if TYPE_CHECKING:
    from voxframe.corpus.reading import Ids

_ID = "transcript_id"
_FEW = 500  # transcripts that are looked up one by one


class RecordingNames:
    """Names and sources of recordings. Those of the same corpus are equal, and a copy reads the files itself.

    A transcript without a name, such as one from `corpus.raw.put`, has its id as the name of its recording.
    """

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordingNames) and self._store.root == other._store.root

    def __hash__(self) -> int:
        return hash(self._store.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_corpus, (self._store.root,)

    def table(self, ids: Sequence[str]) -> pa.Table:
        """Return `transcript_id`, `recording` and `source` of transcripts. Passwords in URLs are masked."""
        names, sources = self._ledger.recordings(ids if len(ids) < _FEW else None)
        masked_sources = [source and masked(source) for source in map(sources.get, ids)]
        columns = [ids, [names.get(transcript_id, transcript_id) for transcript_id in ids], masked_sources]
        return pa.table([pa.array(values, pa.string()) for values in columns], names=[_ID, *RECORDING_COLUMNS])

    def names(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the names of the recordings of transcripts, by id."""
        return dict(zip(ids, self.table(ids)["recording"].to_pylist(), strict=True))

    def add_to(self, table: pa.Table, name: str) -> pa.Table:
        """Return a table with those of the columns `recording` and `source` that it has in a corpus."""
        missing = [n for n in RECORDING_COLUMNS if n in CORPUS_TABLES[name].names and n not in table.column_names]
        if not missing or _ID not in table.column_names:
            return table
        ids = table[_ID].unique().to_pylist()
        about = self.table(ids)
        rows = pc.index_in(table[_ID], about[_ID].combine_chunks())
        place = table.column_names.index(_ID) + 1
        for column in reversed(missing):
            unnamed = column == RECORDING_COLUMNS[0] and about[column].equals(about[_ID])
            table = table.add_column(place, column, table[_ID] if unnamed else about[column].take(rows))
        return table

    def ids(self, items: Ids) -> list[str]:
        """Return transcript ids, in their order and without duplicates, of ids or names of recordings."""
        from voxframe.corpus.reading import identifiers  # imports pandas

        texts = identifiers(items)
        here = set(self._store.ids()) if len(texts) > _FEW else ()  # one listing instead of a look for each file
        return list(dict.fromkeys(text if text in here else self.id(text) for text in texts))

    def id(self, text: str) -> str:
        """Return the id of a transcript, given the id or the name of its recording; an unknown text as it is."""
        return one_id(text, lambda text: self._store.has(text, "transcript"), self.with_name)

    def with_name(self, name: str) -> list[str]:
        """Return the ids of the transcripts of the recordings with a name, of jobs that are not finished, too."""
        return self._ledger.with_recording(storable(name))


def _of_corpus(root: Path) -> RecordingNames:
    store = Store(root)
    return RecordingNames(store, Ledger(Catalog(root, store)))


def one_id(text: str, is_id: Callable[[str], bool], with_name: Callable[[str], list[str]]) -> str:
    """Return the id of a transcript, given the id or the name of its recording. An unknown text is returned as is."""
    if not isinstance(text, str):
        raise CorpusError(
            "a transcript is named by one text, its id or the name of its recording, not by "
            f"{shown(text)}; Corpus.ids() lists the ids, and Corpus.table reads several transcripts"
        )
    text = storable(text)  # SQLite and Arrow cannot hold a lone surrogate, and no id or name has one
    if not text or is_id(text):
        return text
    ids = with_name(text)
    if len(ids) > 1 and text not in ids:
        raise CorpusError(
            f"the recording {text!r} has {len(ids)} transcripts: {', '.join(ids)}. Pass one of these ids; "
            "Corpus.jobs() shows the options of each"
        )
    return ids[0] if len(ids) == 1 else text
