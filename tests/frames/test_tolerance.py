"""Reading is lenient: each oddity that real payloads have, in a payload of real shape."""

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.benchmarks.payloads import transcript

import voxframe
from voxframe.errors import OptionError, PayloadError, PayloadWarning
from voxframe.frames import to_pandas, transcript_tables
from voxframe.schema import TABLES, TRANSCRIPT_TABLES

ANALYSES = ("custom_topics_results", "auto_highlights_result", "content_safety_labels", "iab_categories_result")
LISTS = ("words", "utterances", "chapters", "entities", "sentiment_analysis_results")


def base() -> dict[str, Any]:
    """A finished transcript with every analysis; turns repeat its words: a change to one changes both."""
    return transcript(60, seed=5)


def load(payload: Any) -> dict[str, pa.Table]:
    """Return the tables of a payload; a warning is an error."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return transcript_tables(raw)


def load_warned(payload: Any) -> tuple[dict[str, pa.Table], str]:
    """Its tables, and the one warning it gives."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with pytest.warns(PayloadWarning) as caught:
        tables = transcript_tables(raw)
    assert len(caught) == 1
    assert Path(caught[0].filename) == Path(__file__)
    return tables, str(caught[0].message)


def row(tables: dict[str, pa.Table], name: str = "transcripts", i: int = 0) -> dict[str, Any]:
    """One row of a table."""
    return tables[name].slice(i, 1).to_pylist()[0]


def test_nothing_odd() -> None:
    """A payload as it should be gives rows in every table but the one for words that only turns have."""
    tables = load(base())
    assert [name for name, table in tables.items() if table.num_rows == 0] == ["utterance_words"]
    assert all(table["extra"].null_count == table.num_rows for table in tables.values())
    assert list(tables) == list(TRANSCRIPT_TABLES)


@pytest.mark.parametrize("absent", ["missing", "null", "empty"])
def test_arrays_and_analyses_that_are_not_there(absent: str) -> None:
    """Missing, null and empty lists and analyses give tables without rows, with all their columns."""
    payload = base()
    for key in (*LISTS, *ANALYSES):
        if absent == "missing":
            del payload[key]
        else:
            payload[key] = None if absent == "null" else [] if key in LISTS else {}
    tables = load(payload)
    for name, table in tables.items():
        assert table.num_rows == (1 if name == "transcripts" else 0), name
        assert table.schema.equals(TABLES[name].arrow, check_metadata=True)
        assert list(to_pandas(table, name).columns) == list(TABLES[name].names)


@pytest.mark.parametrize("off", [None, {}, {"status": "unavailable", "results": [], "summary": {}}])
def test_an_analysis_that_is_off_in_its_three_spellings(off: Any) -> None:
    """No rows; of the third spelling the status stays."""
    tables = load(base() | dict.fromkeys(ANALYSES, off))
    for name in (
        "highlights",
        "highlight_times",
        "content_safety",
        "content_safety_summary",
        "topics",
        "topics_summary",
    ):
        assert tables[name].num_rows == 0
    statuses = {row(tables)[f"{name}_status"] for name in ("auto_highlights", "content_safety", "iab_categories")}
    assert statuses == {off["status"] if off else None}


@pytest.mark.parametrize("empty", ["[]", '""'])
def test_other_spellings_of_nothing(empty: str) -> None:
    """An empty list or text instead of an object, and an empty object instead of a list, mean no value."""
    raw = f'{{"id": "a", "iab_categories_result": {empty}, "words": {{}}, "text": "Hi."}}'.encode()
    tables = load(raw)
    assert tables["words"].num_rows == tables["topics"].num_rows == 0
    assert row(tables)["text"] == "Hi."


@pytest.mark.parametrize("number", ["42.0", '"42"', '"42.0"', "4.2e1", '" 42 "', '"+42"'])
def test_integers_in_other_spellings(number: str) -> None:
    """42.0, "42" and the like are 42, in a list, in the transcript and in an analysis."""
    payload = base()
    payload["words"][3]["start"] = payload["speakers_expected"] = "@"
    payload["content_safety_labels"]["results"][0]["sentences_idx_start"] = "@"
    tables = load(json.dumps(payload).replace('"@"', number).encode())
    assert row(tables, "words", 3)["start_ms"] == 42
    assert row(tables)["speakers_expected"] == 42
    assert row(tables, "content_safety")["first_sentence_idx"] == 42
    assert tables["words"].drop_columns("start_ms").equals(load(base())["words"].drop_columns("start_ms"))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("42.5", "42.5 is not an integer"),
        ('"42.5"', "'42.5' is not an integer"),
        ("9223372036854775808", "9223372036854775808 is not an integer of 64 bits"),
        ("1e300", "1e+300 is not an integer of 64 bits"),
        ("true", "true is not an integer"),
        ('"soon"', "'soon' is not an integer"),
        ("[42]", "a list of 1 is not an integer"),
        ("9" * 5000, "is not an integer"),
    ],
)
def test_what_is_no_integer_is_null(number: str, reason: str) -> None:
    """The start is where the word before ends, everything else stays; one warning names the place and the value."""
    payload = base()
    payload["words"][3]["start"] = "@"
    tables, warning = load_warned(json.dumps(payload).replace('"@"', number).encode())
    assert "; words[3].start: " in f"; {warning.partition(': ')[2]}"
    assert f"{reason} and was read as null" in warning
    assert len(warning) < 400
    plain = load(base())
    original = json.loads(row(tables, "words", 3)["extra"])["start"]
    assert original == (number if len(number) > 4300 else json.loads(number))
    shared = {"start_ms": row(plain, "words", 2)["end_ms"], "timing": "segment"}
    assert {**row(tables, "words", 3), "extra": None} == row(plain, "words", 3) | shared
    assert tables["sentiments"].equals(plain["sentiments"])


def test_integers_of_64_bits_are_exact() -> None:
    """No float comes between: 2**53 + 1 and the largest integer stay what they are."""
    payload = base()
    payload["words"][0]["start"] = 2**53 + 1
    payload["words"][1]["start"] = payload["webhook_status_code"] = 2**63 - 1
    tables = load(payload)
    assert tables["words"]["start_ms"].to_pylist()[:2] == [2**53 + 1, 2**63 - 1]
    assert row(tables)["webhook_status_code"] == 2**63 - 1


def test_one_warning_for_many_places() -> None:
    """The first places are named, the others counted."""
    payload = base()
    for word in payload["words"]:
        word["end"] = 0.5
    _, warning = load_warned(payload | {"utterances": []})
    assert "words[0].end" in warning
    assert warning.endswith("and 55 more")


@pytest.mark.parametrize(("invalid", "more"), [(5, ""), (6, "; and 1 more")])
def test_five_invalid_values_are_listed_and_the_others_counted(invalid: int, more: str) -> None:
    """The warning lists the first five invalid values; only if there are others, it has their number."""
    payload = {"id": "t", "words": [{"text": "a", "start": "soon", "end": 9} for _ in range(invalid)]}
    _, warning = load_warned(payload)
    assert warning.endswith(f"words[4].start: 'soon' is not an integer and was read as null{more}")


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "1e400", '"inf"', '"nan"'])
def test_numbers_that_are_none(bad: str) -> None:
    """NaN is null; infinity is null with a warning; the rest of the payload is as without them."""
    payload = base()
    payload["words"][3]["confidence"] = payload["confidence"] = "@"
    raw = json.dumps(payload).replace('"@"', bad).encode()
    tables = load(raw) if bad == "NaN" else load_warned(raw)[0]
    assert row(tables, "words", 3)["confidence"] is None
    assert row(tables)["confidence"] is None
    kept = None if bad == "NaN" else {"confidence": bad.strip('"')}
    assert [json.loads(row(tables, *which)["extra"] or "null") for which in (("transcripts", 0), ("words", 3))] == [
        kept,
        kept,
    ]
    assert tables["entities"].equals(load(base())["entities"])


def test_numbers_as_text_where_a_confidence_belongs() -> None:
    """The text "0.5" is 0.5."""
    payload = base()
    payload["words"][0]["confidence"] = payload["language_confidence"] = "0.5"
    tables = load(payload)
    assert (row(tables, "words")["confidence"], row(tables)["language_confidence"]) == (0.5, 0.5)


@pytest.mark.parametrize(("speaker", "label"), [(1, "1"), (0, "0"), (2.5, "2.5"), (True, "true")])
def test_a_number_as_speaker_is_its_text(speaker: Any, label: str) -> None:
    """Speakers and channels are labels, whatever they look like."""
    payload = base()
    for item in (*payload["words"], *payload["utterances"], *payload["sentiment_analysis_results"]):
        item["speaker"] = item["channel"] = speaker
    tables = load(payload)
    for name in ("words", "utterances", "sentiments"):
        assert set(tables[name]["speaker"].to_pylist()) == set(tables[name]["channel"].to_pylist()) == {label}


def test_settings_as_text() -> None:
    """The texts "true" and "False" and 1 and 0 are what they say; anything else becomes null and is named."""
    payload = base() | {"punctuate": "true", "format_text": "False", "disfluencies": 0, "multichannel": 1}
    found = row(load(payload))
    assert [found[k] for k in ("punctuate", "format_text", "disfluencies", "multichannel")] == [
        True,
        False,
        False,
        True,
    ]
    tables, warning = load_warned(base() | {"punctuate": "maybe"})
    assert (row(tables)["punctuate"], row(tables)["extra"]) == (None, '{"punctuate":"maybe"}')
    assert "punctuate: 'maybe' is not true or false" in warning


def test_what_nobody_has_heard_of() -> None:
    """Unknown fields are ignored; unknown statuses, labels, sentiments and entity types are kept as they came."""
    payload = base() | {"status": "dreaming", "quantum": {"words": [1]}}
    payload["words"][0]["phonemes"] = [{"start": 1}]
    payload["entities"][0]["entity_type"] = "starship"
    payload["sentiment_analysis_results"][0]["sentiment"] = "MIXED"
    payload["iab_categories_result"]["results"][0]["labels"][0]["label"] = "A>B>C>D>E"
    payload["content_safety_labels"]["results"] = [{"labels": [{"label": "ufo"}]}]
    tables = load(payload)
    assert row(tables)["status"] == "dreaming"
    assert row(tables, "entities")["entity_type"] == "starship"
    assert row(tables, "sentiments")["sentiment"] == "MIXED"
    assert [row(tables, "topics")[f"level_{n}"] for n in range(1, 5)] == ["A", "B", "C", "D"]
    assert row(tables, "topics")["label"] == "A>B>C>D>E"
    assert row(tables, "content_safety")["label"] == "ufo"


def test_a_highlight_without_rank() -> None:
    """The rank is null, the phrase stays."""
    payload = base()
    del payload["auto_highlights_result"]["results"][0]["rank"]
    plain = load(base())["highlights"].to_pylist()
    assert load(payload)["highlights"].to_pylist() == [plain[0] | {"relevance": None}, *plain[1:]]


def test_of_duplicate_keys_the_last_counts() -> None:
    """The last of duplicate keys is used at every depth, as in Python's json, even if only that one is valid."""
    raw = json.dumps(base()).replace('"text": "', '"text": "no", "text": "')
    assert load(raw.encode())["words"].equals(load(base())["words"])
    tables = load(b'{"id": 5, "id": "a", "words": 7, "words": [{"text": [], "text": "Hi", "start": 1, "start": 2}]}')
    assert (row(tables, "words")["text"], row(tables, "words")["start_ms"]) == ("Hi", 2)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark(encoding: str) -> None:
    """A mark at the beginning is not part of the payload."""
    text = json.dumps(base(), ensure_ascii=False)
    plain = load(text.encode())
    marked = load(text.encode(encoding))
    assert all(marked[name].equals(plain[name]) for name in plain)


def test_invalid_utf8() -> None:
    """Invalid bytes become U+FFFD, with a warning; the rest is unchanged."""
    raw = json.dumps(base() | {"summary": "caf@"}).encode().replace(b"caf@", b"caf\xe9")
    tables, warning = load_warned(raw)
    assert row(tables)["summary"] == "caf\ufffd"
    assert "not valid UTF-8" in warning
    assert tables["words"].equals(load(base())["words"])


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\\ud83d\\u0041"])
def test_half_a_surrogate_pair(half: str) -> None:
    """It becomes the replacement character, with a warning; whole pairs stay."""
    payload = base()
    payload["words"][0]["text"] = "@ \U0001f600"
    tables, warning = load_warned(json.dumps(payload | {"utterances": []}).replace("@", half).encode())
    assert row(tables, "words")["text"] == "\ufffd" + ("A" if half.endswith("41") else "") + " \U0001f600"
    assert "words[0].text" in warning


def test_objects_where_lists_belong() -> None:
    """An object with something in it is named and read as no list."""
    tables, warning = load_warned(base() | {"chapters": {"0": {"gist": "x"}}})
    assert tables["chapters"].num_rows == 0
    assert "chapters: an object of 1 is not a list" in warning
    assert json.loads(row(tables)["extra"]) == {"chapters": {"0": {"gist": "x"}}}


def test_elements_that_are_no_objects() -> None:
    """A null or a number among the words keeps its place, so that positions still count all of them."""
    payload = base()
    payload["words"][1] = None
    assert row(load(payload), "words", 1)["text"] is None
    payload["words"][1] = 7
    tables, warning = load_warned(payload)
    assert tables["words"].num_rows == 60
    assert row(tables, "words", 2)["text"] == payload["words"][2]["text"]
    assert "words[1]: 7 is not an object" in warning
    assert [row(tables, "words", i)["extra"] for i in range(3)] == [None, '{"words":7}', None]


@pytest.mark.parametrize("identifier", ["TRANSCRIPT_ID", "../../etc/passwd", "", "ü 1", "6d0e5c2c-98bf-4b4e-9b3b"])
def test_ids_that_are_no_uuid(identifier: str) -> None:
    """An identifier is any text, in every table."""
    tables = load(base() | {"id": identifier})
    assert {i for table in tables.values() for i in table["transcript_id"].to_pylist()} == {identifier}


def test_an_id_may_be_missing_or_given() -> None:
    """Without one the column is null; one that is given takes its place in every row."""
    payload = base()
    assert row(load(payload))["transcript_id"] == payload["id"]
    del payload["id"]
    assert row(load(payload))["transcript_id"] is None
    raw = json.dumps(payload).encode()
    tables = transcript_tables(raw, transcript_id="mine")
    assert {i for table in tables.values() for i in table["transcript_id"].to_pylist()} == {"mine"}


def test_a_failed_transcript_and_an_error_object() -> None:
    """A failure is a row with its reason, not an exception."""
    failed = row(load({"status": "error", "audio_url": "https://foo.bar", "error": "Audio duration is too short."}))
    assert (failed["status"], failed["error"]) == ("error", "Audio duration is too short.")
    assert row(load({"error": "Authentication error"}))["error"] == "Authentication error"


def test_an_analysis_alone() -> None:
    """An object with nothing but one result loads as what it is."""
    tables = load({"chapters": base()["chapters"]})
    assert tables["chapters"].num_rows == len(base()["chapters"])
    assert row(tables) == dict.fromkeys(TABLES["transcripts"].names)


def test_custom_spelling_is_kept_as_json() -> None:
    """The column has every value of custom_spelling as JSON."""
    spelling = [{"from": ["di carlo", "dé"], "to": "DiCarlo"}, {"odd": [1, 2**70, 0.5, None]}]
    assert json.loads(row(load(base() | {"custom_spelling": spelling}))["custom_spelling"]) == spelling
    tables, _ = load_warned(base() | {"custom_spelling": spelling, "punctuate": "maybe"})
    assert json.loads(row(tables)["custom_spelling"]) == spelling
    assert row(load(base() | {"custom_spelling": None}))["custom_spelling"] is None


@pytest.mark.parametrize("known", [True, False])
def test_nesting_that_json_allows_is_kept(known: bool) -> None:
    """A word with 300 levels of nesting in a known or unknown field is read; `extra` has the value."""
    deep = "[" * 300 + "]" * 300
    name = "start" if known else "new"
    raw = f'{{"id":"a","words":[{{"text":"Hi","end":5,"{name}":{deep}}}]}}'.encode()
    with warnings.catch_warnings(action="ignore"):
        words = voxframe.load_words(raw)
    assert words["text"].to_list() == ["Hi"]
    assert words["extra"].to_list() == [f'{{"{name}":{deep}}}']


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"<!DOCTYPE html><p>502", "web page"),
        (json.dumps(base()).encode()[:-5000], "truncated after"),
        (b'{"id": "a"', "truncated after 10 characters"),
        (json.dumps(base()).encode() + b'{"id": 1}', "extra data after its end"),
        (b"{'id': 1}", "not JSON"),
        (b'{"id": 1,}', "not JSON"),
        (b"[" * 200000, "nested too deeply"),
        (b'{"x":' + b"[" * 200000 + b"]" * 200000 + b"}", "nested too deeply"),
        (b"[]", "not a list of 0"),
        (b'[{"id": "a"}]', "not a list of 1"),
        (b"null", "not null"),
        (b"42", "not a number"),
        (b'"text"', "not a string"),
        (b"Hello there", "not JSON: it begins with 'Hello there'"),
        (b"1\n2", "not JSON: it begins with"),
        (b" " * 600 + b"Hello", "not JSON: it begins with 'Hello'"),
        (b"\n" * 600 + b'{"id":', "truncated after 606 characters"),
    ],
)
def test_what_cannot_be_read(raw: bytes, reason: str) -> None:
    """The error says what is wrong and what to do."""
    with pytest.raises(PayloadError, match=reason) as e:
        transcript_tables(raw)
    assert "fetch it again" in str(e.value)
    assert isinstance(e.value, ValueError)
    assert len(str(e.value)) < 300


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"ID3\x04\0\0", "audio or video, not a transcript; transcribe it with client.transcribe"),
        (b"\xff\xfb\x90\x44", "audio or video"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio or video"),
        (b"\0\0\0\x20ftypM4A ", "audio or video"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document, not a transcript; save its text as a .txt file"),
        (b"PK\x03\x04\x14\0", "a zip archive or an Office document"),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (gzip.compress(b'{"id": "a"}', mtime=0), "compressed with gzip or zstd"),
    ],
)
def test_other_files_are_named(raw: bytes, said: str, tmp_path: Path) -> None:
    """Audio, documents, archives and images are named with what to do, by tables, loaders and `Corpus.add` alike."""
    file = tmp_path / "talk"
    file.write_bytes(raw)
    left_out = voxframe.Corpus(tmp_path / "corpus").add(file).left_out
    for read in (transcript_tables, voxframe.load_words):
        with pytest.raises(PayloadError, match=said) as caught:
            read(raw)
        assert left_out == [(str(file), str(caught.value))]


def test_only_what_is_asked_for() -> None:
    """`only` gives the same tables as all, and those alone; an unknown name is an error that lists the known."""
    raw = json.dumps(base()).encode()
    everything = transcript_tables(raw)
    for name in TRANSCRIPT_TABLES:
        found = transcript_tables(raw, (name,))
        assert list(found) == [name]
        assert found[name].equals(everything[name])
    assert list(transcript_tables(raw, {"topics", "words"})) == ["words", "topics"]
    with pytest.raises(OptionError, match=r"no table wrods.*words"):
        transcript_tables(raw, ("wrods",))


def test_a_part_that_is_not_asked_for_is_not_judged() -> None:
    """A bad value in another table gives no warning."""
    payload = base() | {"speakers_expected": "many"}
    raw = json.dumps(payload).encode()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert transcript_tables(raw, ("words",))["words"].num_rows == 60


def test_an_integer_larger_than_any_float_is_kept_in_place_of_text() -> None:
    """An integer of 401 digits in place of a text keeps its digits; other values of the payload stay."""
    tables = load(b'{"id": "a", "text": 1' + b"0" * 400 + b', "status": "completed"}')
    assert tables["transcripts"]["text"].to_pylist() == ["1" + "0" * 400]
    assert tables["transcripts"]["status"].to_pylist() == ["completed"]
