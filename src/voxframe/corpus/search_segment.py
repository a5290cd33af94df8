"""A segment of the search index: the words of some transcripts, and for every word where it was said.

It is an Arrow IPC file with one row, whose columns are lists; mapped into memory, a list is an array that costs nothing
to open. Words stand transcript by transcript and channel by channel, since the words of people who talk at once
alternate and a phrase is what one of them says. What is one word in the table may hold several that can be searched
for ("New York"), or none ("..."); these are called tokens here.

    ids                       identifier of each document, a transcript
    doc_word, doc_token       its first word and token; one more than there are documents
    forms                     every spelling that occurs, once
    word_form, word_start_ms, word_end_ms
    span_*                    runs of words of one turn, speaker and channel with consecutive word_idx
    run_word, run_token       first word and token of each run of one channel of one document; one more than there are
    keys                      every token that occurs, folded, sorted
    token_key, token_word     the tokens in order: position of the key, position of the word
    key_first, postings       positions of tokens by key: those of key k begin at key_first[k]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.analysis.terms import spoken
from voxframe.schema import SCHEMA_VERSION, WORDS

#: Raised when this layout or the folding of words changes.
FORMAT = f"voxframe search 2, schema {SCHEMA_VERSION}"

Ints: TypeAlias = npt.NDArray[Any]

_SPAN_CHANGES = ("doc", "channel", "speaker", "utterance_idx")


class Segment:
    """The lists of a segment, by name, as Arrow arrays and, where there are no nulls, as numpy views.

    Args:
        table: The row that `build` or `merge` makes.
    """

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
    key_first: Ints
    postings: Ints

    def __init__(self, table: pa.Table) -> None:
        kinds = type(self).__annotations__
        for name in kinds:
            values = table[name].chunk(0).values
            setattr(self, name, values.to_numpy() if kinds[name] == "Ints" else values)
        self.words = len(self.word_form)

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Map a file.

        Raises:
            FileNotFoundError: There is none.
            pa.ArrowInvalid: It is damaged, or of another format.
        """
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        if (table.schema.metadata or {}).get(b"voxframe.search") != FORMAT.encode():
            raise pa.ArrowInvalid(f"{path} is of another format")
        return cls(table)


def write(table: pa.Table, file: pa.NativeFile) -> None:
    """Write a segment."""
    with pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)


def build(transcripts: Mapping[str, pa.Table]) -> pa.Table:
    """A segment of some transcripts.

    Args:
        transcripts: Their tables `words`, by identifier.
    """
    names = ["word_idx", "utterance_idx", "text", "start_ms", "end_ms", "speaker", "channel"]
    tables = [table.select(names) for table in transcripts.values()]
    words = pa.concat_tables(tables or [WORDS.empty.select(names)]).combine_chunks()
    doc = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    channel = _codes(words["channel"])
    order = np.lexsort((channel, doc))
    words = words.take(order)
    columns = {"doc": doc, "channel": channel[order], "speaker": _codes(words["speaker"])}
    columns["utterance_idx"] = _codes(words["utterance_idx"])
    columns["word_idx"] = words["word_idx"].to_numpy()
    first = np.flatnonzero(_changes(columns, _SPAN_CHANGES) | (np.diff(columns["word_idx"], prepend=-2) != 1))
    spans = words.select(["word_idx", "utterance_idx", "speaker", "channel"]).take(first)
    spans = spans.append_column("doc", pa.array(doc[first], pa.int32()))
    spans = spans.append_column("length", pa.array(np.diff(first, append=len(doc)), pa.int32()))
    return _assemble(list(transcripts), words.select(["text", "start_ms", "end_ms"]), spans)


def merge(segments: Sequence[tuple[Segment, npt.NDArray[np.bool_]]]) -> pa.Table:
    """A segment of what is in several, in that order.

    Args:
        segments: Segments, each with which of its documents are wanted.
    """
    ids, words, spans, docs = [], [], [], 0
    for segment, wanted in segments:
        ids += segment.ids.filter(pa.array(wanted)).to_pylist()
        lengths = np.diff(segment.span_word, append=segment.words)
        kept = wanted[segment.span_doc]
        of_words = pa.array(np.repeat(kept, lengths))
        renumbered = docs + np.cumsum(wanted) - 1
        docs = len(ids)
        text = pa.DictionaryArray.from_arrays(pa.array(segment.word_form), segment.forms)
        row = {"text": text, "start_ms": segment.word_start_ms, "end_ms": segment.word_end_ms}
        words.append(pa.table(row).filter(of_words))
        span = {
            "word_idx": pa.array(segment.span_word_idx),
            "utterance_idx": segment.span_utterance_idx,
            "speaker": segment.span_speaker,
            "channel": segment.span_channel,
            "doc": pa.array(renumbered[segment.span_doc], pa.int32()),
            "length": pa.array(lengths, pa.int32()),
        }
        spans.append(pa.table(span).filter(pa.array(kept)))
    return _assemble(ids, pa.concat_tables(words).unify_dictionaries(), pa.concat_tables(spans))


def _assemble(ids: list[str], words: pa.Table, spans: pa.Table) -> pa.Table:
    """The lists of a segment, from its words and spans in order."""
    forms, word_form = _forms(words["text"])
    lengths, doc = spans["length"].to_numpy(), spans["doc"].to_numpy()
    span_word = np.cumsum(lengths) - lengths
    keys, token_key, token_word = _tokens(forms, word_form)
    # Sorting position and key as one number is several times faster than a stable argsort.
    by_key = np.sort(token_key.astype(np.int64) << 32 | np.arange(len(token_key)))
    starts = _changes({"doc": doc, "channel": _codes(spans["channel"])}, ("doc", "channel"))
    run_word = np.append(span_word[starts], len(word_form))
    words_of_doc = np.bincount(doc, lengths, minlength=len(ids)).astype(np.int64)
    doc_word = np.concatenate([[0], np.cumsum(words_of_doc)])
    lists = {
        "ids": pa.array(ids, pa.string()),
        "doc_word": doc_word,
        "doc_token": np.searchsorted(token_word, doc_word),
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
        "run_token": np.searchsorted(token_word, run_word),
        "keys": keys,
        "token_key": token_key,
        "token_word": token_word,
        "key_first": np.concatenate([[0], np.cumsum(np.bincount(token_key, minlength=len(keys)))]),
        "postings": (by_key & 0xFFFFFFFF).astype(np.int32),
    }
    columns = {name: _as_list(values) for name, values in lists.items()}
    return pa.table(columns).replace_schema_metadata({"voxframe.search": FORMAT})


def _forms(text: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """Spellings that occur, and of each word which it is; a word without text is one of no letters."""
    if not pa.types.is_dictionary(text.type):
        text = pc.fill_null(text, "").dictionary_encode()
    whole = pa.chunked_array([text]) if isinstance(text, pa.Array) else text
    whole = whole.unify_dictionaries().combine_chunks()
    encoded = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    used, word_form = np.unique(encoded.indices.to_numpy(), return_inverse=True)
    return encoded.dictionary.take(pa.array(used)), word_form.astype(np.int32)


def _tokens(forms: pa.Array, word_form: Ints) -> tuple[pa.Array, Ints, Ints]:
    """Keys, sorted; of each token its key and its word."""
    of_forms = [spoken(form) for form in forms.to_pylist()]
    counts = np.fromiter(map(len, of_forms), np.int64, len(of_forms))
    encoded = pa.array(chain.from_iterable(of_forms), pa.string()).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    key = rank[encoded.indices.to_numpy()]
    of_words = counts[word_form]
    token_word = np.repeat(np.arange(len(word_form), dtype=np.int32), of_words)
    nth = np.arange(len(token_word)) - np.repeat(np.cumsum(of_words) - of_words, of_words)
    begin = np.cumsum(counts) - counts
    return encoded.dictionary.take(pa.array(order)), key[begin[word_form[token_word]] + nth], token_word


def _codes(column: pa.ChunkedArray) -> Ints:
    """Small numbers that are equal where the values are; null is a value."""
    codes = column.combine_chunks().dictionary_encode("encode")
    codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    indices: Ints = codes.indices.to_numpy()
    return indices


def _changes(columns: Mapping[str, Ints], names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Where any of the columns differs from the row before; the first row does."""
    changed = np.zeros(len(columns[names[0]]), bool)
    changed[:1] = True
    for name in names:
        changed[1:] |= columns[name][1:] != columns[name][:-1]
    return changed


def _as_list(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    values = pa.array(values)
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
