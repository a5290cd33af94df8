"""Tables of sentences, paragraphs and word search matches, which the service returns in separate responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import _text
from voxframe.frames.columns import as_table, from_rows
from voxframe.frames.extra import Misfit, Rest, decoded, elements, extra_text, field, unknown, unknown_of_item
from voxframe.frames.json_schema import shape
from voxframe.frames.repair import repair_payload
from voxframe.frames.tables import read
from voxframe.frames.words import FIELDS, copies, count_or_null, runs
from voxframe.schema import DERIVED, TEXT_ORIGINAL, TIMING

# An export may round or omit confidence and speaker; text and times identify the word. Words that differ in other
# fields are kept in `extra`.
_SAME_WORD = ("text", "start_ms", "end_ms")
_TEXTS = ("text", TEXT_ORIGINAL.name)
_OCCURRENCES = ("indexes", "timestamps")


def sentence_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """Return the `sentences` table of a sentences export.

    Args:
        words: The `words` table of the same transcript. None (default): `first_word_idx`
            is null.

    Example:
        >>> export = b'{"id": "a1", "sentences": [{"text": "Hi.", "start": 0, "end": 90, "words": []}]}'
        >>> sentence_table(export).column("text").to_pylist()
        ['Hi.']
    """
    return _passages(raw, "sentences", words, transcript_id)


def paragraph_table(raw: bytes, words: pa.Table | None = None, transcript_id: str | None = None) -> pa.Table:
    """Return the `paragraphs` table of a paragraphs export; see `sentence_table`."""
    return _passages(raw, "paragraphs", words, transcript_id)


def _passages(raw: bytes, name: str, words: pa.Table | None, transcript_id: str | None) -> pa.Table:
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
        >>> from voxframe.frames import transcript_tables
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
                before = _text.join_words(
                    filter(None, (texts["text"][at] if text is None else text for text, at in pairs))
                )
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
