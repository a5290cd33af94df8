"""A segment of the search index: the words of some transcripts, and postings for every word.

A segment is an Arrow IPC file with one row, whose columns are lists. The file is mapped into
memory, so opening it takes no time. Words are ordered by transcript and channel, because the words of simultaneous
speakers alternate, and a phrase belongs to one speaker. One word of the table may contain several searchable words
("New York"), or none ("..."). The searchable words are called tokens here.

    ids                       id of each document, a transcript
    doc_word, doc_token       its first word and token, plus a final entry for the end
    forms                     every spelling, once
    word_form, word_start_ms, word_end_ms
    span_*                    spans of words of one utterance, speaker and channel with consecutive word_idx
    run_word, run_token       first word and token of each channel of a document, plus a final entry for the end
    keys                      every folded token, once, sorted
    token_key, token_word     tokens in order: index of the key, index of the word
    inner                     tokens that continue the word of the token before, in scripts without spaces
    key_first, postings       positions of tokens by key: those of key k begin at key_first[k]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._text import is_unspaced
from voxframe.analysis.search_terms import SEGMENTATION, continued, spoken
from voxframe.schema import SCHEMA_VERSION, WORDS

#: Changed when this layout, the folding or the segmentation of words changes.
FORMAT = f"voxframe search 5, words by {SEGMENTATION}, schema {SCHEMA_VERSION}"

Ints: TypeAlias = npt.NDArray[Any]

#: Columns of the table `words` that are in the index.
WORD_COLUMNS = ("word_idx", "utterance_idx", "text", "start_ms", "end_ms", "speaker", "channel")
_SPAN_CHANGES = ("doc", "channel", "speaker", "utterance_idx")


@dataclass(frozen=True)
class Voices:
    """The combinations of speaker and channel in each document of a segment."""

    values: tuple[pa.Array, ...]  # distinct values of each column, such as the speaker labels
    doc: Ints  # document of each combination, in order
    code: Ints  # index of its values among all combinations of values; see `numpy.unravel_index`
    words: Ints  # number of its searchable words
    first: Ints  # first combination of each document
    of_token: Ints  # for each token, the index of its combination in its document


class IndexSegment:
    """The lists of a segment, of one row of `build` or `merge`: Arrow arrays, or NumPy views if they hold no nulls."""

    ids: pa.Array
    forms: pa.Array
    keys: pa.Array
    doc_word: Ints
    doc_token: Ints
    word_form: Ints
    word_start_ms: pa.Array
    word_end_ms: pa.Array
    span_word: Ints
    span_doc: Ints
    span_word_idx: Ints
    span_utterance_idx: pa.Array
    span_speaker: pa.Array
    span_channel: pa.Array
    run_word: Ints
    run_token: Ints
    token_key: Ints
    token_word: Ints
    inner: Ints
    key_first: Ints
    postings: Ints

    def __init__(self, table: pa.Table) -> None:
        kinds = type(self).__annotations__
        for name in kinds:
            values = table[name].chunk(0).values
            setattr(self, name, values.to_numpy() if kinds[name] == "Ints" else values)
        self.words = len(self.word_form)
        self._voices: dict[tuple[str, ...], Voices] = {}
        _, offsets, texts = self.keys.buffers()
        self._key_ends = memoryview(offsets or b"").cast("i")[self.keys.offset :]
        self._key_texts = memoryview(texts or b"")

    def words_in(self, edges: Ints) -> Ints:
        """Return the number of words between tokens; those that continue a word do not count."""
        counts: Ints = np.diff(edges) - np.diff(np.searchsorted(self.inner, edges))
        return counts

    def voices(self, names: tuple[str, ...]) -> Voices:
        """Return the combinations of columns such as `speaker`. Cached: segments never change."""
        if names not in self._voices:
            encoded = [getattr(self, f"span_{name}").dictionary_encode("encode") for name in names]
            values = tuple(column.dictionary for column in encoded)
            sizes = [max(1, len(column)) for column in values]  # of no words at all, one
            code = np.ravel_multi_index([column.indices.to_numpy() for column in encoded], sizes)
            every = int(np.prod(sizes))
            pairs, of_span = np.unique(self.span_doc * np.int64(every) + code, return_inverse=True)
            doc = pairs // every
            first = np.searchsorted(doc, np.arange(len(self.ids)))
            local = of_span - first[self.span_doc]
            local = local.astype(np.min_scalar_type(local.max(initial=0)))
            tokens = np.searchsorted(self.token_word, np.append(self.span_word, self.words).astype(np.int32))
            words = np.bincount(of_span, self.words_in(tokens), len(pairs))
            of_token = np.repeat(local, np.diff(tokens))
            self._voices[names] = Voices(values, doc, pairs % every, words.astype(np.int64), first, of_token)
        return self._voices[names]

    def around(self, first: Ints, last: Ints, context: int) -> tuple[Ints, Ints]:
        """Return the rows from `context` words before the rows `first` to as many words after the rows `last`."""
        if not (context and len(self.inner)):
            return first - context, last + 1 + context
        starts = self._word_starts
        begin = np.searchsorted(starts, first) - context
        end = np.searchsorted(starts, last + 1, "right") + context - 1
        return starts[np.maximum(begin, 0)], starts[np.minimum(end, len(starts) - 1)]

    @cached_property
    def _word_starts(self) -> Ints:
        """The rows that begin a word, and the end of all rows."""
        row, before = self.token_word[self.inner], self.token_word[self.inner - 1]
        return np.delete(np.arange(self.words + 1), row[row != before])

    @cached_property
    def names(self) -> list[str]:
        """The ids as Python strings."""
        names: list[str] = self.ids.to_pylist()
        return names

    def key_from(self, text: str) -> int:
        """Return the index of the first key that is `text` or sorts after it."""
        ends, texts = self._key_ends, self._key_texts
        # UTF-8 bytes sort like code points; converting each key to a string takes ten times as long.
        return bisect_left(range(len(self.keys)), text.encode(), key=lambda n: bytes(texts[ends[n] : ends[n + 1]]))

    @classmethod
    def open(cls, path: Path) -> IndexSegment:
        """Map a file."""
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        if (table.schema.metadata or {}).get(b"voxframe.search") != FORMAT.encode():
            raise pa.ArrowInvalid(f"{path} has another format")
        return cls(table)


def write(table: pa.Table, file: pa.NativeFile) -> None:
    """Write a segment."""
    with pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)


def words_of(table: pa.Table) -> int:
    """Return the number of words in a table that `build` or `merge` returned."""
    return len(table["word_form"].chunk(0).values)


def build(transcripts: Mapping[str, pa.Table]) -> pa.Table:
    """Return the segment of some transcripts."""
    tables = [table.select(WORD_COLUMNS) for table in transcripts.values()]
    words = pa.concat_tables(tables or [WORDS.empty.select(WORD_COLUMNS)]).combine_chunks()
    doc = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    channel = _codes(words["channel"])
    if channel.any():  # otherwise they are in order already
        order = np.lexsort((channel, doc))
        words, channel = words.take(order), channel[order]
    columns = {"doc": doc, "channel": channel, "speaker": _codes(words["speaker"])}
    columns["utterance_idx"] = _codes(words["utterance_idx"])
    columns["word_idx"] = words["word_idx"].to_numpy()
    first = np.flatnonzero(_changes(columns, _SPAN_CHANGES) | (np.diff(columns["word_idx"], prepend=-2) != 1))
    spans = words.select(["word_idx", "utterance_idx", "speaker", "channel"]).take(first)
    spans = spans.append_column("doc", pa.array(doc[first], pa.int32()))
    spans = spans.append_column("length", pa.array(np.diff(first, append=len(doc)), pa.int32()))
    forms, word_form = _forms(pc.fill_null(words["text"], "").combine_chunks().dictionary_encode())
    tokens = _tokens(forms, word_form)
    inner = _inner(forms, word_form, tokens[1], _changes(columns, ("doc", "channel", "speaker")))
    return _assemble(list(transcripts), words, spans, (forms, word_form), tokens, inner)


def _inner(forms: pa.Array, word_form: Ints, token_word: Ints, begins: npt.NDArray[np.bool_]) -> Ints:
    """Return the tokens that continue the word of the token before."""
    unspaced = np.fromiter(map(is_unspaced, forms.to_pylist()), bool, len(forms))[word_form]
    if not unspaced.any():
        return np.empty(0, np.int32)
    row = np.flatnonzero(unspaced)
    texts = forms.take(pa.array(word_form[row])).to_pylist()
    runs = np.cumsum(begins[row] | (np.diff(row, prepend=-2) != 1)).tolist()
    tokens = np.flatnonzero(unspaced[token_word])
    return tokens[continued(texts, runs)].astype(np.int32)


def merge(segments: Sequence[tuple[IndexSegment, npt.NDArray[np.bool_]]]) -> pa.Table:
    """Merge segments in the given order."""
    ids: list[str] = []
    words, spans, keys, token_word, inner, size = [], [], [], [], [], 0
    for segment, mask in segments:
        lengths = np.diff(segment.span_word, append=segment.words)
        span_mask = mask[segment.span_doc]
        of_words = np.repeat(mask, np.diff(segment.doc_word))
        of_tokens = np.repeat(mask, np.diff(segment.doc_token))
        row = {
            "text": pa.DictionaryArray.from_arrays(pa.array(segment.word_form), segment.forms),
            "start_ms": segment.word_start_ms,
            "end_ms": segment.word_end_ms,
        }
        span = {
            "word_idx": pa.array(segment.span_word_idx),
            "utterance_idx": segment.span_utterance_idx,
            "speaker": segment.span_speaker,
            "channel": segment.span_channel,
            "doc": pa.array((len(ids) + np.cumsum(mask) - 1)[segment.span_doc], pa.int32()),
            "length": pa.array(lengths, pa.int32()),
        }
        words.append(_filtered(pa.table(row), of_words))
        spans.append(_filtered(pa.table(span), span_mask))
        keys.append(pa.DictionaryArray.from_arrays(pa.array(segment.token_key[of_tokens]), segment.keys))
        place = (size + np.cumsum(of_words) - 1).astype(np.int32)
        token_word.append(place[segment.token_word[of_tokens]])
        inner.append(np.isin(np.flatnonzero(of_tokens), segment.inner))
        ids += segment.ids.filter(pa.array(mask)).to_pylist()
        size += len(words[-1])
    all_words = pa.concat_tables(words)
    forms = _forms(_as_one(all_words["text"]))
    tokens = _as_one(pa.chunked_array(keys)), np.concatenate(token_word)
    continuing = np.flatnonzero(np.concatenate(inner)).astype(np.int32)
    return _assemble(ids, all_words, pa.concat_tables(spans), forms, tokens, continuing)


def _assemble(
    ids: list[str],
    words: pa.Table,
    spans: pa.Table,
    texts: tuple[pa.Array, Ints],
    tokens: tuple[pa.Array, Ints],
    inner: Ints,
) -> pa.Table:
    """Build the lists of a segment."""
    forms, word_form = texts
    keys, token_key = _sorted(tokens[0])
    token_word = tokens[1]
    lengths, doc = spans["length"].to_numpy(), spans["doc"].to_numpy()
    span_word = np.cumsum(lengths) - lengths
    # Sorting position and key as one number is several times faster than a stable argsort.
    by_key = np.sort(token_key.astype(np.int64) << 32 | np.arange(len(token_key)))
    starts = _changes({"doc": doc, "channel": _codes(spans["channel"])}, ("doc", "channel"))
    run_word = np.append(span_word[starts], len(word_form))
    words_of_doc = np.bincount(doc, lengths, minlength=len(ids)).astype(np.int64)
    doc_word = np.concatenate([[0], np.cumsum(words_of_doc)])
    lists = {
        "ids": pa.array(ids, pa.string()),
        "doc_word": doc_word,
        "doc_token": np.searchsorted(token_word, doc_word.astype(np.int32)).astype(np.int32),
        "forms": forms,
        "word_form": word_form,
        "word_start_ms": words["start_ms"],
        "word_end_ms": words["end_ms"],
        "span_word": span_word,
        "span_doc": doc,
        "span_word_idx": spans["word_idx"],
        "span_utterance_idx": spans["utterance_idx"],
        "span_speaker": spans["speaker"],
        "span_channel": spans["channel"],
        "run_word": run_word,
        "run_token": np.searchsorted(token_word, run_word.astype(np.int32)).astype(np.int32),
        "keys": keys,
        "token_key": token_key,
        "token_word": token_word,
        "inner": inner,
        "key_first": np.concatenate([[0], np.cumsum(np.bincount(token_key, minlength=len(keys)))]),
        "postings": (by_key & 0xFFFFFFFF).astype(np.int32),
    }
    columns = {name: _as_list(values) for name, values in lists.items()}
    return pa.table(columns).replace_schema_metadata({"voxframe.search": FORMAT})


def _as_one(encoded: pa.ChunkedArray) -> pa.DictionaryArray:
    """Combine chunks under one dictionary."""
    unified = encoded.unify_dictionaries().combine_chunks()
    return unified.chunk(0) if isinstance(unified, pa.ChunkedArray) else unified


def _forms(encoded: pa.DictionaryArray) -> tuple[pa.Array, Ints]:
    """Return the values that occur, and the index of the value of each row."""
    codes = encoded.indices.to_numpy()
    used = np.bincount(codes, minlength=len(encoded.dictionary)) > 0
    if used.all():
        return encoded.dictionary, codes.astype(np.int32)
    return encoded.dictionary.filter(pa.array(used)), (np.cumsum(used, dtype=np.int32) - 1)[codes]


def _sorted(encoded: pa.DictionaryArray) -> tuple[pa.Array, Ints]:
    """Return the sorted values that occur, and the index of the value of each row."""
    values, codes = _forms(encoded)
    order = pc.array_sort_indices(values)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return values.take(order), rank[codes]


def _tokens(forms: pa.Array, word_form: Ints) -> tuple[pa.DictionaryArray, Ints]:
    """Return the encoded key of each token, and its word."""
    keys, form = spoken_of_all(forms)
    encoded = keys.dictionary_encode()
    counts = np.bincount(form, minlength=len(forms))
    of_words = counts[word_form]
    token_word = np.repeat(np.arange(len(word_form), dtype=np.int32), of_words)
    nth = np.arange(len(token_word)) - np.repeat(np.cumsum(of_words) - of_words, of_words)
    begin = np.cumsum(counts) - counts
    key = encoded.indices.take(pa.array(begin[word_form[token_word]] + nth))
    return pa.DictionaryArray.from_arrays(key, encoded.dictionary), token_word


def spoken_of_all(texts: pa.Array) -> tuple[pa.Array, Ints]:
    """Apply `spoken` to many texts, most of them plain. Return the words, and the index of the text of each."""
    plain = pc.and_not(pc.string_is_ascii(texts), pc.match_substring_regex(texts, r"[\x00-\x20-]|[0-9]\.[0-9]"))
    words = pc.replace_substring_regex(pc.ascii_lower(texts), "[^a-z0-9]+", "")
    is_plain = plain.to_numpy(zero_copy_only=False)
    text = np.flatnonzero(is_plain)
    if not is_plain.all():
        others = [spoken(text) for text in texts.filter(pc.invert(plain)).to_pylist()]
        words = pa.concat_arrays([words.filter(plain), pa.array(chain.from_iterable(others), pa.string())])
        text = np.concatenate([text, np.repeat(np.flatnonzero(~is_plain), list(map(len, others)))])
        order = np.argsort(text, kind="stable")
        words, text = words.take(pa.array(order)), text[order]
    filled = pc.not_equal(words, "")
    return words.filter(filled), text[filled.to_numpy(zero_copy_only=False)]


def _codes(column: pa.ChunkedArray) -> Ints:
    """Encode values as small integers. Null is a value."""
    codes = column.combine_chunks().dictionary_encode("encode")
    codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    indices: Ints = codes.indices.to_numpy()
    return indices


def _changes(columns: Mapping[str, Ints], names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that differ from the row before in any column. The first row always does."""
    changed = np.zeros(len(columns[names[0]]), bool)
    changed[:1] = True
    for name in names:
        changed[1:] |= columns[name][1:] != columns[name][:-1]
    return changed


def _filtered(table: pa.Table, mask: npt.NDArray[np.bool_]) -> pa.Table:
    return table if mask.all() else table.filter(pa.array(mask))


def _as_list(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    values = pa.array(values)
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
