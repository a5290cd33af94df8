"""What every loader does: find out what a source is, and have its tables made or read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import orjson
import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe.corpus import Corpus
from voxframe.corpus.fetch import cached_export, cached_tables
from voxframe.corpus.reading import to_frames
from voxframe.corpus.sources import Fetcher, Remote, Sources, each, is_one, resolve
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.store import EXPORTS, View
from voxframe.errors import OptionError, PayloadError
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
_ALL = (*TRANSCRIPT_TABLES, *EXPORTS)
_STATUS = TABLES["transcripts"].names.index("status")


def load(name: str, source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool) -> pd.DataFrame:
    """One table made from transcripts."""
    return load_some((name,), source, client, corpus, refresh)[name]


def load_some(
    names: Collection[str], source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool = False
) -> dict[str, pd.DataFrame]:
    """Some tables made from transcripts, by name; exports are not among them, and not asked for."""
    if (raw := _at_hand(source, client)) is not None:
        with _named(source):
            return frames.all_to_pandas(_payload(raw, names))
    return _one_each(_made(source, client, lambda found: _transcript(found, names, corpus, refresh)), names)


def load_export(
    view: View, source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool
) -> pd.DataFrame:
    """The table of an export."""
    made = _made(source, client, lambda found: {view: _export(found, view, corpus, refresh)})
    return _one_each(made, (view,))[view]


def load_all(source: Sources, client: Fetcher | None, corpus: Corpus | None, refresh: bool) -> dict[str, pd.DataFrame]:
    """All tables of transcripts, and of their exports where those can be had."""
    if (raw := _at_hand(source, client)) is not None:
        with _named(source):
            return frames.all_to_pandas(_whole_payload(raw))
    return _one_each(_made(source, client, lambda found: _everything(found, corpus, refresh)), _ALL)


def _at_hand(source: Sources, client: Fetcher | None) -> bytes | None:
    """The payload of a source that is one payload."""
    if not is_one(source):
        return None
    found = resolve(source, client)
    return found if isinstance(found, bytes) else None


def _made(
    source: Sources, client: Fetcher | None, make: Callable[[bytes | Remote], Mapping[str, pa.Table]]
) -> list[Mapping[str, pa.Table]]:
    """What is made of each source."""
    if client is not None and not hasattr(client, "fetch"):
        raise OptionError(f"client is what voxframe.connect() gives, not of type {type(client).__name__}")
    made = []
    for n, one in enumerate(each(source)):
        with _named(one, None if one is source else n):
            made.append(make(resolve(one, client)))
    return made


@contextmanager
def _named(source: Sources, place: int | None = None) -> Iterator[None]:
    """What cannot be read is named: a file by its path, one of several payloads by its place."""
    try:
        yield
    except PayloadError as error:
        name = None if place is None else f"number {place} of the sources, counted from 0"
        if isinstance(source, str | os.PathLike):
            name = repr(str(source))
        if name is None or name in str(error):
            raise
        raise PayloadError(f"{name}: {error}") from None


def _one_each(found: Sequence[Mapping[str, pa.Table]], names: Collection[str]) -> dict[str, pd.DataFrame]:
    return to_frames({name: _together([tables[name] for tables in found], name) for name in names})


def _together(found: Sequence[pa.Table], name: str) -> pa.Table:
    """Tables of several sources as one; where one comes from a corpus, all have names of speakers."""
    if any(table.num_columns != found[0].num_columns for table in found):
        found = [with_names(table, {}) for table in found]
    return frames.concat_tables(found, name)


def _everything(found: bytes | Remote, corpus: Corpus | None, refresh: bool) -> dict[str, pa.Table]:
    if isinstance(found, bytes):
        return {name: frames.as_table(name, arrays) for name, arrays in _whole_payload(found).items()}
    corpus = _corpus(corpus)
    tables = {name: CORPUS_TABLES[name].empty for name in _ALL}
    tables |= cached_tables(corpus, found, TRANSCRIPT_TABLES, refresh=refresh)
    for view in EXPORTS:
        if found.client is not None or corpus.has_export(found.transcript_id, view):
            tables[view] = cached_export(corpus, found, view, refresh=refresh)
    return tables


def _transcript(
    found: bytes | Remote, names: Collection[str], corpus: Corpus | None, refresh: bool
) -> dict[str, pa.Table]:
    if not isinstance(found, bytes):
        return cached_tables(_corpus(corpus), found, names, refresh=refresh)
    return {name: frames.as_table(name, arrays) for name, arrays in _payload(found, names).items()}


def _whole_payload(raw: bytes) -> dict[str, frames.Arrays]:
    """Columns of all tables; the payload may be an export too."""
    nothing = {name: frames.no_rows(name) for name in _ALL}
    arrays = frames.transcript_arrays(raw)
    kind = _other(raw, arrays)
    for view in EXPORTS:
        if kind == view:
            return nothing | {view: frames.from_table(view, _export(raw, view, None, False))}
    return nothing | _checked(arrays, kind)


def _payload(raw: bytes, names: Collection[str]) -> dict[str, frames.Arrays]:
    """Columns of some tables of a transcript."""
    arrays = frames.transcript_arrays(raw, only=names)
    return _checked(arrays, _other(raw, arrays))


def _corpus(given: Corpus | None) -> Corpus:
    if given is None:
        return Corpus()
    if isinstance(given, str | os.PathLike):
        raise OptionError(f"corpus is a corpus, not a path; pass corpus=voxframe.Corpus({str(given)!r})")
    if not isinstance(given, Corpus):
        raise OptionError(f"corpus is a voxframe.Corpus, not of type {type(given).__name__}")
    return given


def _checked(arrays: dict[str, frames.Arrays], kind: str | None) -> dict[str, frames.Arrays]:
    if kind is not None:
        raise PayloadError(f"this payload is no transcript but {_OTHERS[kind]}")
    return arrays


def _says_nothing(name: str, arrays: frames.Arrays) -> bool:
    return not len(arrays[0]) or (name == "transcripts" and arrays[_STATUS].null_count > 0)


def _export(found: bytes | Remote, view: View, corpus: Corpus | None, refresh: bool) -> pa.Table:
    if not isinstance(found, bytes):
        return cached_export(_corpus(corpus), found, view, refresh=refresh)
    table = frames.sentence_table(found) if view == "sentences" else frames.paragraph_table(found)
    if table.num_rows == 0 and view not in _keys(found, {view: None}):
        raise PayloadError(
            f"this payload holds no {view}: they are an answer of their own. Pass what client.fetch(id, {view!r}) "
            "gives, or a transcript handle, or its id with client=..."
        )
    return table


def _other(raw: bytes, tables: Mapping[str, frames.Arrays]) -> str | None:
    """Key of what a payload is where its tables say nothing; None for a transcript, or what nobody can tell."""
    if not all(_says_nothing(name, arrays) for name, arrays in tables.items()):
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
