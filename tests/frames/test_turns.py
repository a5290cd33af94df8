import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxframe.frames import transcript_tables
from voxframe.frames.words import repeated

FIELDS = {"text": "text", "start_ms": "start", "end_ms": "end", "confidence": "confidence", "speaker": "speaker"}
WORDS = [
    {"text": "Good", "start": 27850, "end": 28262, "confidence": 0.99667, "speaker": "A"},
    {"text": "morning.", "start": 28316, "end": 28840, "confidence": 0.99742, "speaker": "A"},
    {"text": "So", "start": 29290, "end": 29582, "confidence": 0.94736, "speaker": "B"},
    {"text": "what", "start": 29636, "end": 29774, "confidence": 0.99974, "speaker": "B"},
    {"text": "is", "start": 29812, "end": 29998, "confidence": 0.98, "speaker": "B"},
]


def turn(words: list[dict[str, Any]] | None, **fields: Any) -> dict[str, Any]:
    """An utterance of some words."""
    return {"text": " ".join(w["text"] for w in words or []), "speaker": "A", **fields, "words": words}


def tables_of(words: Any, turns: Any, **how: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of the three tables about words."""
    raw = json.dumps({"id": "t", "words": words, "utterances": turns}, **how).encode()
    return {
        name: t.to_pylist() for name, t in transcript_tables(raw, ("words", "utterances", "utterance_words")).items()
    }


STYLES = [{"separators": (",", ":")}, {}, {"indent": 1}, {"indent": 4, "sort_keys": True}]


@pytest.mark.parametrize("style", STYLES, ids=["compact", "spaced", "indented", "sorted"])
def test_turns_that_repeat_the_words_are_slices_of_them(style: dict[str, Any]) -> None:
    """However the JSON is written, repeated words are kept once and both tables point at each other."""
    found = tables_of(WORDS, [turn(WORDS[:2]), turn(WORDS[2:])], **style)
    assert [(u["first_word_idx"], u["word_count"]) for u in found["utterances"]] == [(0, 2), (2, 3)]
    assert [w["utterance_idx"] for w in found["words"]] == [0, 0, 1, 1, 1]
    assert found["utterance_words"] == []


@pytest.mark.parametrize("style", STYLES, ids=["compact", "spaced", "indented", "sorted"])
def test_many_turns_of_any_length_are_slices_of_the_words(style: dict[str, Any]) -> None:
    """Two hundred turns, some with no words, null or no list at all: each has its own count and place."""
    lengths = [n % 7 if n % 10 else None for n in range(200)]
    words, turns, expected = [], [], []
    for n, length in enumerate(lengths):
        mine = [{"text": f"w{len(words) + i}", "start": 10 * (len(words) + i), "end": 5} for i in range(length or 0)]
        expected.append((len(words) if mine else None, length))
        turns.append(turn(mine if length is not None else None))
        if n == 50:
            del turns[-1]["words"]
        words += mine
    found = tables_of(words, turns, **style)
    assert [(u["first_word_idx"], u["word_count"]) for u in found["utterances"]] == expected
    assert [w["text"] for w in found["words"]] == [w["text"] for w in words]
    assert [w["word_idx"] for w in found["words"]] == list(range(len(words)))
    assert [w["utterance_idx"] for w in found["words"]] == [
        n for n, length in enumerate(lengths) for _ in range(length or 0)
    ]
    assert found["utterance_words"] == []


@pytest.mark.parametrize("field", ["text", "start", "end", "confidence", "speaker", "channel"])
def test_a_turn_that_differs_in_any_field_keeps_its_words(field: str) -> None:
    """One other value in one word: the words of that turn are in utterance_words, and nothing points at `words`."""
    other = {**WORDS[3], field: 29700 if field in {"start", "end"} else 0.5 if field == "confidence" else "C"}
    found = tables_of(WORDS, [turn(WORDS[:2]), turn([WORDS[2], other, WORDS[4]])])
    assert [(u["first_word_idx"], u["word_count"]) for u in found["utterances"]] == [(0, 2), (None, 3)]
    assert [w["utterance_idx"] for w in found["words"]] == [0, 0, None, None, None]
    own = found["utterance_words"]
    assert [(w["utterance_idx"], w["word_idx"], w["text"]) for w in own] == [
        (1, 0, "So"),
        (1, 1, other["text"]),
        (1, 2, "is"),
    ]
    assert own[1][{"start": "start_ms", "end": "end_ms"}.get(field, field)] == other[field]


def test_words_without_speakers_do_not_stand_for_turns_with_them() -> None:
    """A null is not the label: the labelled copies are kept."""
    found = tables_of([{**w, "speaker": None} for w in WORDS], [turn(WORDS[:2]), turn(WORDS[2:])])
    assert [u["first_word_idx"] for u in found["utterances"]] == [None, None]
    assert [w["speaker"] for w in found["utterance_words"]] == ["A", "A", "B", "B", "B"]
    assert [w["speaker"] for w in found["words"]] == [None] * 5


def test_channels_transcribed_apart() -> None:
    """Words of two channels alternate in `words`, so turns are no slices of it and keep their own."""
    words = [{**w, "channel": "12121"[i], "speaker": "12121"[i]} for i, w in enumerate(WORDS)]
    found = tables_of(words, [turn(words[0::2], channel="1"), turn(words[1::2], channel="2")])
    assert [u["first_word_idx"] for u in found["utterances"]] == [None, None]
    assert [(w["channel"], w["text"]) for w in found["utterance_words"]] == [
        ("1", "Good"),
        ("1", "So"),
        ("1", "is"),
        ("2", "morning."),
        ("2", "what"),
    ]
    assert [u["channel"] for u in found["utterances"]] == ["1", "2"]


def test_turns_may_leave_words_out_and_come_in_any_order() -> None:
    """A turn is located wherever its words are; a word in no turn has no turn."""
    found = tables_of(WORDS, [turn(WORDS[3:]), turn(WORDS[:2])])
    assert [u["first_word_idx"] for u in found["utterances"]] == [3, 0]
    assert [w["utterance_idx"] for w in found["words"]] == [1, 1, None, 0, 0]


def test_a_word_is_in_one_turn_only() -> None:
    """The second of two turns with the same words keeps its own copy."""
    found = tables_of(WORDS, [turn(WORDS[:2]), turn(WORDS[:2]), turn(WORDS[1:3])])
    assert [u["first_word_idx"] for u in found["utterances"]] == [0, None, None]
    assert [(w["utterance_idx"], w["text"]) for w in found["utterance_words"]] == [
        (1, "Good"),
        (1, "morning."),
        (2, "morning."),
        (2, "So"),
    ]


@pytest.mark.parametrize(
    ("words", "count"), [(None, None), ([], 0), ({}, None)], ids=["null", "empty list", "empty object"]
)
def test_a_turn_without_words(words: Any, count: int | None) -> None:
    """A turn without words has no first word, and a number of words only if it has a list."""
    found = tables_of(WORDS, [turn(WORDS), {**turn([]), "words": words}])
    assert [(u["first_word_idx"], u["word_count"]) for u in found["utterances"]] == [(0, 5), (None, count)]


def test_text_that_looks_like_json() -> None:
    """Braces and quotes inside words do not change the boundaries of words."""
    words = [{**w, "text": text} for w, text in zip(WORDS, ['},{"', "{", '"start":', "\\", "]"], strict=True)]
    found = tables_of(words, [turn(words[:3]), turn(words[3:])], separators=(",", ":"))
    assert [w["text"] for w in found["words"]] == ['},{"', "{", '"start":', "\\", "]"]
    assert [(u["first_word_idx"], u["word_count"]) for u in found["utterances"]] == [(0, 3), (3, 2)]


word = st.fixed_dictionaries(
    {"start": st.integers(0, 3), "end": st.integers(0, 3)},
    optional={
        "text": st.sampled_from(["a", "b", "{", None]),
        "speaker": st.sampled_from(["A", None]),
        "confidence": st.sampled_from([0, 0.5, None]),
    },
)


@st.composite
def spoken(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Words, many of them alike, and turns that are mostly runs of them."""
    words = draw(st.lists(word, max_size=10))
    cuts = sorted(draw(st.lists(st.integers(0, len(words)), max_size=4)))
    parts = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    parts = draw(st.permutations(parts)) if draw(st.booleans()) else parts
    return words, [*parts, *draw(st.lists(st.lists(word, max_size=3), max_size=1))]


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(spoken(), st.sampled_from(STYLES))
def test_no_word_is_lost(said: tuple[list[Any], list[Any]], style: dict[str, Any]) -> None:
    """The three tables together have the words of every turn unchanged."""
    words, parts = said
    found = tables_of(words, [{"words": part} for part in parts], **style)

    def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{wire: row[name] for name, wire in FIELDS.items()} for row in rows]

    assert plain(found["words"]) == [{wire: w.get(wire) for wire in FIELDS.values()} for w in words]
    for i, (part, row) in enumerate(zip(parts, found["utterances"], strict=True)):
        expected = [{wire: w.get(wire) for wire in FIELDS.values()} for w in part]
        own = [w for w in found["utterance_words"] if w["utterance_idx"] == i]
        assert row["word_count"] == len(part)
        if row["first_word_idx"] is None:
            assert plain(own) == expected
            assert [w["word_idx"] for w in own] == list(range(len(part)))
        else:
            run = found["words"][row["first_word_idx"] : row["first_word_idx"] + row["word_count"]]
            assert plain(run) == expected
            assert own == []
            assert {w["utterance_idx"] for w in run} == {i}


@pytest.mark.parametrize(
    ("whole", "parts", "expected"),
    [
        (b'[{"a":1},{"a":2}]', [b'[{"a":1}]', b"[]", None, b'[{"a":2}]'], True),
        (b'[{"a":1}, {"a":2}]', [b'[{"a":1}]', b'[{"a":2}]'], True),
        (b'[{"a":1},{"a":2}]', [b'[{"a":2}]', b'[{"a":1}]'], False),
        (b'[{"a":1},{"a":2}]', [b'[{"a":1}]'], False),
        (b'[{"a":1},\n,{"a":2}]', [b'[{"a":1}]', b"[\n]", b'[{"a":2}]'], False),
        (b"[]", [b"[]"], False),
        (None, [b'[{"a":1}]'], False),
    ],
)
def test_copies_of_words_are_recognised_by_their_bytes(
    whole: bytes | None, parts: list[bytes | None], expected: bool
) -> None:
    """The words of turns need not be decoded if they are, one after the other, the bytes of all words."""
    assert repeated(whole, parts) is expected
