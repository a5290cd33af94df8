"""What every loader does: find out what a source is, and have its tables made or read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import orjson
import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe.corpus import Corpus
from voxframe.corpus.fetch import cached_export, cached_tables
from voxframe.corpus.reading import to_frames
from voxframe.corpus.sources import Fetcher, Remote, Sources, each, resolve
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.store import EXPORTS, View
from voxframe.errors import PayloadError
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES

#: What is told apart from a transcript by a key of its own, and who reads it.
_OTHERS = {
    "sentences": "an export of sentences, which load_sentences reads",
    "paragraphs": "an export of paragraphs, which load_paragraphs reads",
    "matches": "an answer of the word search, which load_word_matches reads",
    "transcripts": "a page of the list of transcripts; pass their ids, with client=...",
    "response": "an answer of a language model, which load_responses reads",
}
#: Keys of which a transcript has at least one.
_OWN = frozenset({"status", "words", "text", "utterances", "audio_url"})


def load(name: str, source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool) -> pd.DataFrame:
    """One table made from transcripts."""
    found = [_transcript(resolve(s, client), (name,), corpus, refresh)[name] for s in each(source)]
    return _one(found, name)


def load_some(
    names: Collection[str], source: Sources, client: Fetcher | None, corpus: Corpus | None
) -> dict[str, pd.DataFrame]:
    """Some tables made from transcripts, by name; exports are not among them, and not asked for."""
    found = [_transcript(resolve(s, client), names, corpus, False) for s in each(source)]
    return to_frames({name: _together([tables[name] for tables in found], name) for name in names})


def load_export(
    view: View, source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool
) -> pd.DataFrame:
    """The table of an export."""
    found = [_export(resolve(s, client), view, corpus, refresh) for s in each(source)]
    return _one(found, view)


def load_all(source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool) -> dict[str, pd.DataFrame]:
    """All tables of transcripts, and of their exports where those can be had."""
    found = [_everything(resolve(s, client), corpus, refresh) for s in each(source)]
    names = (*TRANSCRIPT_TABLES, *EXPORTS)
    return to_frames({name: _together([tables[name] for tables in found], name) for name in names})


def _one(found: Sequence[pa.Table], name: str) -> pd.DataFrame:
    return to_frames({name: _together(found, name)})[name]


def _together(found: Sequence[pa.Table], name: str) -> pa.Table:
    """Tables of several sources as one; where one comes from a corpus, all have names of speakers."""
    if any(table.num_columns != found[0].num_columns for table in found):
        found = [with_names(table, {}) for table in found]
    return frames.concat_tables(found, name)


def _everything(found: bytes | Remote, corpus: Corpus | None, refresh: bool) -> dict[str, pa.Table]:
    nothing: dict[str, pa.Table] = {name: TABLES[name].empty for name in (*TRANSCRIPT_TABLES, *EXPORTS)}
    if isinstance(found, bytes):
        tables = frames.transcript_tables(found)
        kind = _other(found, tables)
        for view in EXPORTS:
            if kind == view:
                return nothing | {view: _export(found, view, corpus, False)}
        return nothing | _checked(tables, kind)
    corpus = Corpus() if corpus is None else corpus
    nothing = {name: CORPUS_TABLES[name].empty for name in nothing}
    tables = nothing | cached_tables(corpus, found, TRANSCRIPT_TABLES, refresh=refresh)
    for view in EXPORTS:
        if found.client is not None or corpus.has_export(found.transcript_id, view):
            tables[view] = cached_export(corpus, found, view, refresh=refresh)
    return tables


def _transcript(
    found: bytes | Remote, names: Collection[str], corpus: Corpus | None, refresh: bool
) -> dict[str, pa.Table]:
    if not isinstance(found, bytes):
        return cached_tables(Corpus() if corpus is None else corpus, found, names, refresh=refresh)
    tables = frames.transcript_tables(found, only=names)
    return _checked(tables, _other(found, tables))


def _checked(tables: dict[str, pa.Table], kind: str | None) -> dict[str, pa.Table]:
    if kind is not None:
        raise PayloadError(f"this payload is no transcript but {_OTHERS[kind]}")
    return tables


def _says_nothing(name: str, table: pa.Table) -> bool:
    return table.num_rows == 0 or (name == "transcripts" and table["status"].null_count > 0)


def _export(found: bytes | Remote, view: View, corpus: Corpus | None, refresh: bool) -> pa.Table:
    if not isinstance(found, bytes):
        return cached_export(Corpus() if corpus is None else corpus, found, view, refresh=refresh)
    table = frames.sentence_table(found) if view == "sentences" else frames.paragraph_table(found)
    if table.num_rows == 0 and view not in _keys(found, {view: None}):
        raise PayloadError(
            f"this payload holds no {view}: they are an answer of their own. Pass what client.fetch(id, {view!r}) "
            "gives, or a transcript handle, or its id with client=..."
        )
    return table


def _other(raw: bytes, tables: Mapping[str, pa.Table]) -> str | None:
    """Key of what a payload is where its tables say nothing; None for a transcript, or what nobody can tell."""
    if not all(_says_nothing(name, table) for name, table in tables.items()):
        return None
    keys = _keys(raw, {})
    return None if _OWN & keys.keys() else next((key for key in _OTHERS if key in keys), None)


def _keys(raw: bytes, unreadable: Mapping[str, object]) -> Mapping[str, object]:
    """A payload as an object; `unreadable` where only the tolerant reader can read it."""
    try:
        payload = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return unreadable
    return payload if isinstance(payload, dict) else unreadable
