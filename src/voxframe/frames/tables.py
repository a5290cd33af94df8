"""Conversion of responses to tables of the data dictionary: transcripts, and sentences, paragraphs and word searches.

Most steps take as long for ten payloads as for one, so the tables of several short transcripts are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import _text
from voxframe.frames.json_lists import (
    PAYLOAD,
    Columns,
    FastPathUnsupported,
    FieldPath,
    Ints,
    Lists,
    Misfit,
    Rest,
    columns,
    decoded,
    elements,
    extra_text,
    field,
    json_text,
    read_lists,
    unknown,
    unknown_of_item,
    without_lists,
)
from voxframe.frames.layout import (
    TEXT,
    Arrays,
    as_table,
    chosen,
    decoder,
    from_columns,
    from_rows,
    known_fields,
    no_rows,
    raw_lists,
    shape,
    skipped,
    uncast_table,
)
from voxframe.frames.payloads import repair_payload, too_deep
from voxframe.frames.words import (
    FIELDS,
    copies,
    count_or_null,
    given_timing,
    is_null,
    lacks_times,
    own_times,
    read_words,
    repeated,
    runs,
    turn_rows,
    word_tables,
)
from voxframe.schema import DERIVED, TEXT_ORIGINAL, TIMING, TRANSCRIPT_TABLES, TRANSCRIPTS

Rows: TypeAlias = list[tuple[Any, ...]]

_PATHS = [((column.path or "").split("."), column.json) for column in TRANSCRIPTS.columns[1:-1]]
_PLAIN = attrgetter(*(path[0] for path, _ in _PATHS))
_OTHER = [(i, path, is_json) for i, (path, is_json) in enumerate(_PATHS) if is_json or len(path) > 1]
_KNOWN: Any = known_fields(frozenset({"transcripts"}))
_LEVELS = [f"level_{n}" for n in range(1, 5)]
_LEVELS_TYPE = pa.struct([pa.field(level, TEXT) for level in _LEVELS])
_LOW_MEDIUM_HIGH = attrgetter("low", "medium", "high")
T = TypeVar("T")

#: Errors of the fast path for a payload that needs the tolerant path.
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, FastPathUnsupported)
_TURNS = frozenset({"utterances", "utterance_words"})
_WORDY = _TURNS | {"words"}
_ALL = frozenset(TRANSCRIPT_TABLES)


def decode_transcript(raw: bytes) -> Any:
    """Decode a payload once, to look at its fields and for `transcript_tables`.

    Returns:
        An object with an attribute for each field; the longest lists are raw JSON. None unless the payload is a
        transcript with an id, a status and content, and has only fields that the data dictionary knows.
    """
    try:
        document = decoder(_ALL, strict=True).decode(raw)
    except _REFUSALS:
        return None
    content = (document.words, document.utterances, document.text, document.audio_url)
    return document if document.id and document.status and any(value is not None for value in content) else None


def transcript_tables(
    raw: bytes, only: Collection[str] | None = None, transcript_id: str | None = None
) -> dict[str, pa.Table]:
    """Return all tables of one transcript payload.

    Missing parts give tables without rows, and readable values are never refused: see `voxframe.frames.payloads`. Error
    objects and single analyses can be loaded too.

    Args:
        only: Names of the tables to build; the rest of the payload is skipped. None (default): all tables.

    Example:
        >>> tables = transcript_tables(b'{"id": "a1", "words": [{"text": "Hi", "start": 0, "end": 90}]}')
        >>> tables["words"].column("text").to_pylist()
        ['Hi']
        >>> tables["chapters"].num_rows
        0
    """
    return {name: as_table(name, arrays) for name, arrays in transcript_arrays(raw, only, transcript_id).items()}


def transcript_arrays(
    raw: bytes, only: Collection[str] | None = None, transcript_id: str | None = None, document: Any = None
) -> dict[str, Arrays]:
    """Like `transcript_tables`, but return column arrays. Pass the result of `decode_transcript`, if it is known."""
    names = chosen(only, TRANSCRIPT_TABLES)
    # Words refer to their utterance and utterances to their words: each table needs the other.
    wordy = names & _WORDY
    needed = names | _WORDY if wordy else names
    small = names - _WORDY

    def make(doc: Any, extras: Rest) -> dict[str, Arrays]:
        lists = {}
        if small:
            paths = raw_lists(small)
            decoded = [[reduce(field, path, extras.values) for path in paths]] if extras.whole else None
            lists = read_lists([[follow(doc, path) for path in paths]], small, decoded)
        turns, counts = (), None
        if wordy:
            turns = doc.utterances or ()
            lists["words",], counts = read_words(doc.words, turns, extras)
        key = doc.id if transcript_id is None else transcript_id
        tables = {name: from_rows(name, key, ROWS[name](doc, extras)) for name in needed & ROWS.keys()}
        arrays = columns(needed - ROWS.keys() - _TURNS, lists)
        if words := arrays.pop("words", None):
            tables |= word_tables(names, key, words, turns, counts, extras)
        for name, part in arrays.items():
            tables[name] = from_columns(name, key, part | levels(part["label"]) if name == "topics" else part)
        return {name: tables[name] for name in TRANSCRIPT_TABLES if name in names}

    return read(raw, needed, make, document if needed == _ALL else None)


def read(raw: bytes, names: frozenset[str], make: Callable[[Any, Rest], T], document: Any = None) -> T:
    """Decode a payload by the fast path, or by the tolerant path if that refuses, and pass it and its rest to `make`.

    `document` is the payload decoded for all tables, without unknown fields. None (default): decode it.
    """
    try:
        return _fast(raw, names, make) if document is None else make(document, Rest(None, whole=False))
    except _REFUSALS:
        pass
    try:
        return _tolerant(raw, names, make)
    except RecursionError:  # any step may need more stack than the one before
        raise too_deep() from None


def _fast(raw: bytes, names: frozenset[str], make: Callable[[Any, Rest], T]) -> T:
    try:
        doc, values = decoder(names, strict=True).decode(raw), None
    except msgspec.ValidationError:
        doc = decoder(names).decode(raw)  # this one also refuses a wrong type
        values = without_lists(raw, doc)
    for path, brackets in skipped(names):
        part = follow(doc, path)
        if part is not None and memoryview(part)[:1] not in brackets:
            raise FastPathUnsupported
    return make(doc, Rest(values, whole=False))


def _tolerant(raw: bytes, names: frozenset[str], make: Callable[[Any, Rest], T]) -> T:
    clean, values = repair_payload(raw, shape(names))
    return make(decoder(names).decode(clean), Rest(values, whole=True))


def follow(doc: Any, path: Sequence[str]) -> Any:
    """Return the value at the end of a path through decoded objects; None if any step is absent."""
    for step in path:
        doc = None if doc is None else getattr(doc, step)
    return doc


def _transcripts(doc: Any, extras: Rest) -> Rows:
    row = [*_PLAIN(doc)]
    for i, path, is_json in _OTHER:
        row[i] = _json_text(follow(doc, path), extras) if is_json else follow(doc, path)
    return [(*row, extra_text(unknown(extras.values, _KNOWN), exact=extras.whole))]


def _json_text(raw: msgspec.Raw | None, extras: Rest) -> str | None:
    if raw is None:
        return None
    text = (
        bytes(raw).decode() if extras.whole else json_text(decoded(raw), exact=False)
    )  # the repair already rewrote it
    return None if text == "null" else text


def _content_safety_summary(doc: Any, extras: Rest) -> Rows:
    summary = follow(doc, ("content_safety_labels", "summary")) or {}
    severities = follow(doc, ("content_safety_labels", "severity_score_summary")) or {}
    rated = {label: _LOW_MEDIUM_HIGH(severity) for label, severity in severities.items()}
    by_label = [_of_label(extras, "content_safety_labels", name) for name in ("summary", "severity_score_summary")]
    return [
        (
            *(label, summary.get(label), *rated.get(label, (None, None, None))),
            extra_text(by_label[0](label) | by_label[1](label), exact=extras.whole),
        )
        for label in summary | severities
    ]


def _topics_summary(doc: Any, extras: Rest) -> Rows:
    summary = follow(doc, ("iab_categories_result", "summary")) or {}
    other = _of_label(extras, "iab_categories_result", "summary")
    return [(label, *_levels(label), relevance, extra_text(other(label))) for label, relevance in summary.items()]


def _custom_topics_summary(doc: Any, extras: Rest) -> Rows:
    summary = follow(doc, ("custom_topics_results", "summary")) or {}
    other = _of_label(extras, "custom_topics_results", "summary")
    return [(label, relevance, extra_text(other(label))) for label, relevance in summary.items()]


def _of_label(extras: Rest, analysis: str, name: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that returns the values of a label that no column has, from one map of an analysis."""
    values = field(field(extras.values, analysis), name)
    columns_of_label = _KNOWN[analysis][name]["*"]
    return lambda label: unknown_of_item(name, field(values, label), columns_of_label)


@lru_cache(maxsize=4096)
def _levels(label: str) -> tuple[str | None, ...]:
    parts = label.split(">")[:4]
    return (*parts, *[None] * (4 - len(parts)))


def levels(labels: pa.Array) -> dict[str, pa.Array]:
    """Return the columns `level_1` to `level_4` of hierarchical topic labels."""
    encoded = labels.dictionary_encode()
    kinds = pa.array([*map(_levels, encoded.dictionary.to_pylist())], _LEVELS_TYPE)
    return dict(zip(_LEVELS, kinds.take(encoded.indices).flatten(), strict=True))


#: Row builders of the tables that no list holds. Rows have all columns but `transcript_id`, in the dictionary's order.
ROWS: dict[str, Callable[[Any, Rest], Rows]] = {
    "transcripts": _transcripts,
    "content_safety_summary": _content_safety_summary,
    "topics_summary": _topics_summary,
    "custom_topics_summary": _custom_topics_summary,
}


_WORDS = frozenset({"words"})
_OTHERS = frozenset(TRANSCRIPT_TABLES) - _TURNS - _WORDS
_REST = Rest(None, whole=False)


def tables_together(documents: Sequence[Any], ids: Sequence[str]) -> list[dict[str, pa.Table]] | None:
    """Return the tables of each payload as `transcript_arrays` would make them, with text as large strings.

    Returns:
        None if one of the payloads has to be read alone.
    """
    try:
        words, turns = _words(documents)
        lists = _lists(documents) | {("words",): words}
        arrays = columns(_WORDS | _OTHERS - ROWS.keys(), lists)
        rows = {name: [ROWS[name](document, _REST) for document in documents] for name in ROWS}
    except (FastPathUnsupported, RecursionError):
        return None
    owners, starts, counts = turns
    spoken = [turn for payload in documents for turn in payload.utterances or ()]
    lacking = any((turn.start is None or turn.end is None) and n for turn, n in zip(spoken, counts, strict=True))
    if lacking or lacks_times(arrays["words"]["start_ms"], arrays["words"]["end_ms"]):  # these are shared one by one
        return None
    limits = [(turn.start, turn.end, given_timing(turn.start, turn.end)) for turn in spoken]
    arrays["words"] |= {"utterance_idx": owners, TIMING.name: own_times(len(owners))}
    arrays["topics"] |= levels(arrays["topics"]["label"])
    ends = np.cumsum([len(payload.utterances or ()) for payload in documents]).tolist()
    rows["utterances"] = [
        turn_rows(
            payload.utterances or (),
            limits[start:end],
            starts[start:end],
            counts[start:end],
            _REST,
        )
        for payload, start, end in zip(documents, [0, *ends], ends, strict=False)
    ]
    names = pa.array(ids, TEXT)
    by_name = {name: _of_columns(name, names, arrays[name]) for name in arrays}
    by_name |= {name: _of_rows(name, names, rows[name]) for name in rows}
    by_name["utterance_words"] = no_rows("utterance_words"), np.zeros(len(ids), np.int64)
    tables = {name: _split(name, *by_name[name]) for name in TRANSCRIPT_TABLES}
    return [{name: tables[name][place] for name in TRANSCRIPT_TABLES} for place in range(len(ids))]


def _lists(documents: Sequence[Any]) -> dict[FieldPath, Lists]:
    """Return the lists of all tables but `words`."""
    paths = raw_lists(_OTHERS)
    by_path = read_lists([[follow(document, path) for path in paths] for document in documents], _OTHERS, None)
    return {path: lists._replace(counts=np.diff(lists.arrays.offsets.to_numpy())) for path, lists in by_path.items()}


def _words(documents: Sequence[Any]) -> tuple[Lists, tuple[pa.Array, Ints, Ints]]:
    """Return the words, the utterance of each word, and the first word and the number of words of each utterance."""
    parts: list[Any] = []
    turn: list[int] = []
    lengths = []
    for document in documents:
        in_turns = [spoken.words for spoken in document.utterances or ()]
        if in_turns and not (is_null(document.words) or repeated(document.words, in_turns)):
            raise FastPathUnsupported
        parts += in_turns or [document.words]
        turn += range(len(in_turns)) if in_turns else [-1]
        lengths.append(len(in_turns) or 1)
    words = read_lists([[part] for part in parts], _WORDS, None)["words",]
    counts: Ints = np.diff(words.arrays.offsets.to_numpy())
    before = np.cumsum(counts) - counts
    sizes: Ints = np.array(lengths)
    firsts: Ints = np.cumsum(sizes) - sizes
    of_payload = np.add.reduceat(counts, firsts)
    starts = np.where(counts > 0, before - np.repeat(before[firsts], sizes), -1)
    turns = np.array(turn)
    owners = np.repeat(turns, counts)
    of_turns = turns >= 0
    return words._replace(counts=of_payload), (pa.array(owners, mask=owners < 0), starts[of_turns], counts[of_turns])


def _of_columns(name: str, ids: pa.Array, arrays: Columns) -> tuple[Arrays, Ints]:
    of = arrays[PAYLOAD]
    return from_columns(name, ids.take(of), arrays), np.bincount(of.to_numpy(), minlength=len(ids))


def _of_rows(name: str, ids: pa.Array, rows: Sequence[Sequence[tuple[Any, ...]]]) -> tuple[Arrays, Ints]:
    counts = np.array([len(part) for part in rows])
    of = np.repeat(np.arange(len(ids)), counts)
    return from_rows(name, ids.take(pa.array(of)), [*chain.from_iterable(rows)]), counts


def _split(name: str, arrays: Arrays, counts: Ints) -> list[pa.Table]:
    table = uncast_table(name, arrays)
    starts = (np.cumsum(counts) - counts).tolist()
    return [table.slice(start, count) for start, count in zip(starts, counts.tolist(), strict=True)]


# An export may round or omit confidence and speaker; text and times identify the word. Words that differ in other
# fields are kept in `extra`.
_SAME_WORD = ("text", "start_ms", "end_ms")
_TEXTS = ("text", TEXT_ORIGINAL.name)
_OCCURRENCES = ("indexes", "timestamps")


def passage_table(raw: bytes, name: str, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """Return the table `sentences` or `paragraphs` of such an export.

    `words` is the table of the same transcript. Without it, `first_word_idx` is null.

    Example:
        >>> export = b'{"id": "a1", "sentences": [{"text": "Hi.", "start": 0, "end": 90, "words": []}]}'
        >>> passage_table(export, "sentences").column("text").to_pylist()
        ['Hi.']
    """

    def make(doc: Any, extras: Rest) -> pa.Table:
        items = getattr(doc, name) or ()
        lists = [item.words for item in items]
        full = elements(field(extras.values, name)) or [None] * len(items)
        wholes = [[field(other, "words")] for other in full] if extras.whole else None
        words_of, counts = copies(lists, wholes)
        starts = equal = np.full(len(items), -1)
        if words is not None:
            sent = _as_sent(words)
            starts = runs(sent, words_of, counts, _SAME_WORD)
            equal = runs(sent, words_of, counts, FIELDS)
        extra = _extra(
            name,
            extras,
            full,
            {
                i: wholes[i][0] if wholes else decoded(lists[i])
                for i in np.flatnonzero((counts > 0) & ((starts < 0) | (starts != equal))).tolist()
            },
        )
        rows = [
            (
                *(i, item.text, item.start, item.end, item.confidence, item.speaker, item.channel),
                None if start < 0 else start,
                count_or_null(item.words, count),
                extra[i],
            )
            for i, (item, start, count) in enumerate(zip(items, starts.tolist(), counts.tolist(), strict=True))
        ]
        return as_table(name, from_rows(name, doc.id if transcript_id is None else transcript_id, rows))

    return read(raw, frozenset({name}), make)


def _as_sent(words: pa.Table) -> pa.Table:
    """Return words without the times that they share with others."""
    if TIMING.name not in words.column_names:
        return words
    shared = pc.equal(words[TIMING.name], "segment").fill_null(False)
    if not pc.any(shared).as_py():
        return words
    for name in ("start_ms", "end_ms"):
        place = words.column_names.index(name)
        words = words.set_column(place, words.schema.field(place), pc.if_else(shared, None, words[name]))
    return words


def derived_passages(words: pa.Table, name: str) -> pa.Table:
    """Return sentences or paragraphs made from words, by the rule of the embedded server.

    Example:
        >>> words = [{"text": text, "start": 0, "end": 90} for text in "Good morning. So what?".split()]
        >>> found = transcript_tables(orjson.dumps({"id": "a1", "words": words}))["words"]
        >>> derived_passages(found, "sentences").column("text").to_pylist()
        ['Good morning.', 'So what?']
    """
    columns = {name: words[name].to_pylist() for name in ("start_ms", "end_ms", "speaker", "channel")}
    texts = {column: words[column].to_pylist() for column in words.column_names if column in _TEXTS}
    starts, ends, speakers, channels = columns.values()
    rows, originals = [], list[str | None]()
    for n, places in enumerate(passage_rows(words, name)):
        joined, before = (_text.join_words(texts["text"][place] for place in places), None)
        if TEXT_ORIGINAL.name in texts:
            changed = [texts[TEXT_ORIGINAL.name][place] for place in places]
            if any(text is not None for text in changed):
                pairs = zip(changed, places, strict=True)
                before = _text.join_words(texts["text"][at] if text is None else text for text, at in pairs)
        originals.append(before)
        voices = {speakers[place] for place in places}
        rows.append(
            (
                *(n, joined),
                min((starts[place] for place in places if starts[place] is not None), default=None),
                max((ends[place] for place in places if ends[place] is not None), default=None),
                *(None, voices.pop() if len(voices) == 1 else None, channels[places[0]]),
                places[0] if places[-1] - places[0] + 1 == len(places) else None,
                *(len(places), None),
            )
        )
    transcript_id = words["transcript_id"][0].as_py() if words.num_rows else None
    table = with_derived(as_table(name, from_rows(name, transcript_id, rows)), derived=True)
    if TEXT_ORIGINAL.name not in texts:
        return table
    place = table.column_names.index("text") + 1
    return table.add_column(place, TEXT_ORIGINAL.name, pa.array(originals, pa.string()))


def passage_rows(words: pa.Table, name: str) -> list[list[int]]:
    """Return the rows of the words of each sentence or paragraph by time, by the rule of the embedded server."""
    columns = (words[column].to_pylist() for column in ("text", "start_ms", "end_ms", "speaker", "channel"))
    spoken: list[dict[str, Any]] = []
    last = 0
    for row, (text, start, end, speaker, channel) in enumerate(zip(*columns, strict=True)):
        begin = last if start is None else start  # a word without a time follows the word before
        last = begin if end is None else end
        if text:
            word = {"text": text, "start": begin, "end": last, "speaker": speaker, "channel": channel, "row": row}
            spoken.append(word)
    groups = (_text.sentences if name == "sentences" else _text.paragraphs)(spoken)
    return [[word["row"] for word in group] for group in groups]


def with_derived(table: pa.Table, *, derived: bool) -> pa.Table:
    """Return sentences or paragraphs with the column `derived` after `word_count`, unless they have it."""
    if DERIVED.name in table.column_names or "word_count" not in table.column_names:
        return table
    values = pa.repeat(pa.scalar(derived), table.num_rows)
    return table.add_column(table.column_names.index("word_count") + 1, DERIVED.name, values)


def _extra(name: str, extras: Rest, decoded: Sequence[Any], words: Mapping[int, Any]) -> list[str | None]:
    """Return the unknown fields of each passage, with its words if no other table has them.

    The first passage also gets the unknown fields of the response.
    """
    fields = shape(frozenset({name}))
    texts = [unknown_of_item(name, other, fields[name]["[]"]) for other in decoded]
    for i, own in words.items():
        texts[i] = {"words": own, **texts[i]}
    if texts:
        texts[0] = unknown(extras.values, fields) | texts[0]
    return [extra_text(fields_left, exact=extras.whole) for fields_left in texts]


def word_match_table(raw: bytes, transcript_id: str | None = None) -> pa.Table:
    """Return the `word_matches` table of a word search.

    Example:
        >>> answer = b'{"id": "a1", "matches": [{"text": "hi", "timestamps": [[0, 90]], "indexes": [0]}]}'
        >>> word_match_table(answer).select(["term", "word_idx", "start_ms", "end_ms"]).to_pylist()
        [{'term': 'hi', 'word_idx': 0, 'start_ms': 0, 'end_ms': 90}]
    """
    # The response is small, so the tolerant path is fast enough.
    fields = shape(frozenset({"word_matches"}))
    clean, decoded = repair_payload(raw, fields)
    doc = orjson.loads(clean)
    of_answer = unknown(decoded, fields)
    rows: list[tuple[Any, ...]] = []
    for match, other in zip(doc.get("matches") or (), elements(decoded.get("matches")), strict=True):
        extra = unknown_of_item("matches", other, fields["matches"]["[]"])
        occurrences = [*zip_longest(match.get("indexes") or (), match.get("timestamps") or ())]
        for i, (index, time) in enumerate(occurrences or [(None, None)] * bool(extra)):
            extras = {key: values[i] for key in _OCCURRENCES if _is_odd(values := elements(field(other, key)), i)}
            times = [*(time or ()), None, None][:2]
            other_fields = extra_text(({} if rows else of_answer) | extra | extras)
            rows.append((match.get("text"), i, index, *times, match.get("count"), doc.get("total_count"), other_fields))
    key = doc.get("id") if transcript_id is None else transcript_id
    return as_table("word_matches", from_rows("word_matches", key, rows))


def _is_odd(values: Sequence[Any], i: int) -> bool:
    """Return True if an index or a pair of times has a part that no column has."""
    if i >= len(values):
        return False
    parts = values[i] if isinstance(values[i], list) else [values[i]]
    return len(parts) > 2 or any(isinstance(part, Misfit) for part in parts)
