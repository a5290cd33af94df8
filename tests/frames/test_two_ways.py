"""The fast way and the tolerant way give the same tables for everything that both accept."""

import contextlib
import json
import warnings

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.benchmarks.payloads import payload
from tests.frames.two_ways import check

from voxframe.errors import PayloadError
from voxframe.frames import as_table, decode_transcript, tables_together, transcript_arrays, transcript_tables
from voxframe.frames.layout import Shape, shape
from voxframe.schema import TRANSCRIPT_TABLES, Column

SHAPE = shape(frozenset(TRANSCRIPT_TABLES))

NUMBERS = """0 1 42 -7 42.0 42.5 -0 -0.0 0.1 0.97465 1e3 1E3 4.2e1 1e-7 5e-324 1.7976931348623157e308 1e400 -1e400
    2147483648 4294967296.0 9007199254740992 9007199254740993 9007199254740993.0 9223372036854775807
    -9223372036854775808 9223372036854775808 18446744073709551616 123456789012345678901234567890""".split()
TEXTS = [
    "", "a", "Smoke", "é", "\\u00e9", "\\ud83d\\ude00", "😀", "\\ud800", "\\ud800x", "{", "},{", "a\\\\",
    '\\"start\\":', "\\u0000", "NaN", "nan", "inf", "-Infinity", "1e400", " 42", "42 ", "+42", "4_2", "0x10", "42",
    "42.0", "42.5", ".5", "5.", "1e3", "true", "False", "null", "A", "A>B>C>D>E", "\u0661", "9007199254740993",
    "9223372036854775808",
]  # fmt: skip
OTHERS = ["null", "true", "false", "[]", "{}", "[null]", "[1]", '{"a":1}', "NaN", "Infinity", "-Infinity"]

numbers = st.sampled_from(NUMBERS) | st.integers().map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda s: json.dumps(s, ensure_ascii=False))
texts = st.sampled_from(TEXTS).map(lambda s: f'"{s}"') | plain
odd = st.sampled_from(OTHERS) | numbers | texts


def mostly(usual: st.SearchStrategy[str], rare: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One in thirty the rare kind: a document has many values, and one that is odd sends all of it the tolerant way."""
    return st.integers(0, 29).flatmap(lambda n: rare if n == 17 else usual)


def fitting(column: Column) -> st.SearchStrategy[str]:
    """JSON that fits a column."""
    kinds = {
        pa.int64(): st.integers(-5, 90000).map(str),
        pa.float64(): st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.sampled_from(["1", "0", "-0.0", "1e3"]),
        pa.bool_(): st.sampled_from(["true", "false"]),
    }
    return kinds.get(column.type, plain) | st.just("null")


def members(names: list[str], values: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """An object with some of the names, now and then twice, or spelled with an escape, or unknown."""
    member = st.sampled_from(names).flatmap(
        lambda name: st.tuples(st.sampled_from([name, name, name, f"\\u{ord(name[0]):04x}{name[1:]}"]), values[name])
    )
    unknown = st.tuples(st.sampled_from(["zz", "Text", "starts", 'x\\"start']), odd)
    spaced = st.sampled_from(["%s:%s", "%s: %s", " %s :\n%s"])
    each = st.tuples(spaced, st.one_of([member] * 6 + [unknown])).map(lambda m: m[0] % (f'"{m[1][0]}"', m[1][1]))
    return st.lists(each, max_size=8).map(lambda parts: "{" + ",".join(parts) + "}")


def document(node: Shape, depth: int = 0) -> st.SearchStrategy[str]:
    """JSON of about a shape: mostly fitting, here and there not."""
    if isinstance(node, Column):
        return mostly(fitting(node), odd)
    if "[]" in node:
        items = st.lists(document(node["[]"], depth + 1), max_size=4)
        return mostly(items.map(lambda i: f"[{','.join(i)}]"), st.sampled_from(OTHERS))
    if "*" in node:
        pairs = st.lists(st.tuples(texts, document(node["*"], depth + 1)), max_size=3)
        return mostly(pairs.map(lambda p: "{" + ",".join(f"{k}:{v}" for k, v in p) + "}"), st.sampled_from(OTHERS))
    values = {key: st.deferred(lambda child=child: document(child, depth + 1)) for key, child in node.items()}
    return mostly(members(list(node), values), st.sampled_from(OTHERS) if depth else st.just("{}"))


@st.composite
def turns(draw: st.DrawFn) -> str:
    """Words, and turns that repeat them: byte for byte, differently spelled, changed, left out, out of order."""
    words = draw(st.lists(document(SHAPE["words"]["[]"]), max_size=8))
    parts: list[list[str]] = [[]]
    for word in words:
        if draw(st.booleans()):
            parts.append([])
        change = draw(st.integers(0, 40))
        parts[-1] += {0: [], 1: [word, word], 2: [word.replace("{", "{ ", 1)], 3: ['{"text":"x"}'], 4: ["{}"]}.get(
            change, [word]
        )
    if draw(st.integers(0, 9)) == 0:
        parts = draw(st.permutations(parts))
    between = draw(st.sampled_from([",", ", ", ",\n  "]))
    lists = [f"[{between.join(part)}]" for part in parts]
    lists += draw(st.lists(st.sampled_from([*OTHERS, "[ ]", "1", '"a"']), max_size=1))
    spoken = ",".join('{"words":' + part + "}" for part in lists)
    return '{"words":[' + draw(st.sampled_from([",", between])).join(words) + '],"utterances":[' + spoken + "]}"


LISTS = {
    key: SHAPE[key] for key in ("words", "utterances", "entities", "content_safety_labels", "iab_categories_result")
}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(document(SHAPE) | document(LISTS) | turns())
@example('{"words":[{"start":42.5}]}')
@example('{"words":[{"start":9007199254740993}]}')
@example('{"words":[{"start":"NaN"}]}')
@example('{"words":[{"confidence":"inf"}]}')
@example('{"words":[{"confidence":1e400}]}')
@example('{"words":[null]}')
@example('{"words":[{"text":"},{"}],"utterances":[{"words":[{"text":"},{"}]}]}')
@example(
    '{"words":[{"text":"a"},{"text":"b"}],"utterances":[{"words":[{"text":"a"}]},{"words":[]},{"words":[{"text":"b"}]}]}'
)
@example('{"words":[{"text":"[laughs]"}],"utterances":[{"words":[{"text":"[laughs]"}]}]}')
@example('{"words":[{"text":"}]"}],"utterances":[{"words":[{"text":"}]"}]}]}')
@example('{"words":[{"text":"}],"}],"utterances":[{"words":[{"text":"}],"}]}]}')
@example('{"utterances":[{"words":[{"text":"a"}]},{"words":[{"text":"a"}]}],"words":[]}')
@example('{"words":[{"text":"a"}],"words":[{"text":"b"}],"utterances":[{"words":[{"text":"a"}]}]}')
@example('{"zz":{"words":[{"text":"a"}]},"utterances":[{"words":[{"text":"a"}]}]}')
@example('{"words":[{"text":"a"},],"utterances":[{"words":[{"text":"a"},]}]}')
@example(
    '{"words":[{"text":"a"}, ,{"text":"b"}],'
    '"utterances":[{"words":[{"text":"a"}]},{"words":[ ]},{"words":[{"text":"b"}]}]}'
)
@example('{"words":[{"text":"}],",":1":2}],"utterances":[{"words":[{"text":"}],",":1":2}]}]}')
@example('{"words":[],"utterances":[{"words":[]},{"words":{}}]}')
@example('{"words":[],"utterances":[{"words":""}]}')
@example('{"entities":[{"start":"42"}],"custom_spelling":[1e400]}')
@example(
    '{"iab_categories_result":{"results":[{"labels":[null],"timestamp":null},{"labels":null}],"summary":{"a>b":1}}}'
)
def test_two_ways_one_result(text: str) -> None:
    """Any document near the shape of a transcript: same tables, or the fast way leaves it to the tolerant way."""
    check(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "value",
    ['{"speaker":1}', '{"speaker":null,"text":{"end":1}}', '"\\u0020:"', '"\\u0022:"', '" \\u003a"', '" \\u003A"'],
)
@pytest.mark.parametrize("spoken", ['"speaker":null,', ""])
def test_unknown_fields_of_later_words_are_kept(value: str, spoken: str) -> None:
    """A field that only later words have is in `extra`, whatever another unknown field of the words before holds."""
    before, after = (
        ",".join(f'{{"text":"a","start":{n},"end":{n + 1},"confidence":0.5,{spoken}{field}}}' for n in range(200))
        for field in (f'"alternative":{value}', '"loudness":7')
    )
    raw = f'{{"id":"a","words":[{before},{after}]}}'.encode()
    check(raw)
    extra = transcript_tables(raw, ("words",))["words"]["extra"].to_pylist()
    assert extra[200:] == ['{"loudness":7}'] * 200


REAL = payload(40, seed=3)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, len(REAL) - 1), st.integers(0, 40), st.binary(max_size=6))
def test_a_damaged_payload(start: int, length: int, replacement: bytes) -> None:
    """A real-shaped payload with some bytes replaced: same tables, or an error that says the payload cannot be read."""
    check(REAL[:start] + replacement + REAL[start + length :])


@settings(max_examples=50, deadline=None)
@given(
    st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.sampled_from([b"[" * 10**5, b'{"a":' * 10**5])
)
def test_any_bytes(raw: bytes) -> None:
    """Bytes that are no payload give a PayloadError and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(PayloadError):
            assert list(transcript_tables(raw)) == list(TRANSCRIPT_TABLES)


@pytest.mark.parametrize("start", ["250", '"250"', "250.5", "null", "[]"])
@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")
def test_a_transcript_decoded_ahead_gives_the_same_tables(start: str) -> None:
    """Decoding a payload before its tables are made changes none of them, also if the tolerant way takes over."""
    raw = payload(60).replace(b'"start":250', b'"start":' + start.encode(), 1)
    document = decode_transcript(raw)
    assert document.id == json.loads(raw)["id"]
    arrays = transcript_arrays(raw, transcript_id="t1", document=document)
    expected = transcript_tables(raw, transcript_id="t1")
    assert {name: as_table(name, columns) for name, columns in arrays.items()} == expected


@pytest.mark.parametrize(
    "raw",
    [
        b'{"data": {"id": "a", "status": "completed", "words": []}}',
        b'{"id": "a", "status": "completed", "words": [], "segments": []}',
        b'{"status": "completed", "words": []}',
        b'{"id": "a", "words": []}',
        b'{"id": "a", "status": "completed"}',
        b'[{"id": "a", "status": "completed", "words": []}]',
        b'{"id": "a", "status": "completed", "words": []}\n{"id": "b", "status": "completed", "words": []}',
        '{"id": "a", "status": "completed", "words": []}'.encode("utf-16"),
        b'{"id": "a", "status": "completed", "words": [',
    ],
)
def test_only_a_plain_transcript_is_decoded_ahead(raw: bytes) -> None:
    """Envelopes, lists, other engines' files and damaged payloads are left to the code that tells them apart."""
    assert decode_transcript(raw) is None


def test_tables_made_together_are_those_made_alone() -> None:
    """Payloads with and without turns, words and analyses, in one call: each has its own rows, ids and positions."""
    whole = json.loads(payload(200))
    without_turns = {**whole, "utterances": None}
    words_only_in_turns = {**whole, "words": None}
    unknown = {**whole, "words": [{**word, "loudness": 3} for word in whole["words"]], "utterances": []}
    bare = {"id": "x", "status": "completed", "text": "Hi."}
    quiet = {**bare, "words": [], "utterances": [{"speaker": "A", "words": None}, {"speaker": "B", "words": []}]}
    documents = [whole, without_turns, bare, words_only_in_turns, unknown, {**quiet, "words": None}, whole]
    raws = [json.dumps(document, separators=(",", ":")).encode() for document in documents]
    ids = [f"t{number}" for number in range(len(raws))]
    together = tables_together([decode_transcript(raw) for raw in raws], ids)
    assert together is not None
    for raw, transcript_id, made in zip(raws, ids, together, strict=True):
        alone = transcript_tables(raw, transcript_id=transcript_id)
        assert {name: table.cast(alone[name].schema) for name, table in made.items()} == alone


def test_a_payload_whose_turns_differ_from_its_words_is_left_to_be_read_alone() -> None:
    """Turns that do not repeat the words exactly are located in the transcript, which is done for one payload."""
    odd = b'{"id":"a","status":"completed","words":[{"text":"a"}],"utterances":[{"words":[{"text":"b"}]}]}'
    assert tables_together([decode_transcript(payload(60)), decode_transcript(odd)], ["a", "b"]) is None
