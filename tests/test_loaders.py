import gzip
import json
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pytest
import zstandard

import voxframe
import voxframe.frames
from voxframe._arrow import TEXT_DTYPE
from voxframe.errors import CorpusError, OptionError, PayloadError, PayloadWarning
from voxframe.schema import TABLES, TRANSCRIPT_TABLES

_NAMES = [n for n in (*TRANSCRIPT_TABLES, "sentences", "paragraphs") if n != "utterance_words"]
_LOADERS = {name: getattr(voxframe, f"load_{name}") for name in _NAMES}
_PAYLOAD = {
    "id": "mine",
    "status": "completed",
    "words": [
        {"text": "Guten", "start": 10, "end": 200, "confidence": 0.5},
        {"text": "Tag.", "start": 210, "end": 400, "confidence": 1},
    ],
}


def _forms(folder: Path) -> list[object]:
    raw = json.dumps(_PAYLOAD).encode()
    plain, packed = folder / "a b.json", folder / "a.json.zst"
    plain.write_bytes(b"\xef\xbb\xbf" + raw)
    packed.write_bytes(zstandard.compress(raw))
    stream = zstandard.ZstdCompressor().compressobj()
    streamed = folder / "streamed.json.zst"
    streamed.write_bytes(stream.compress(raw) + stream.flush())
    return [_PAYLOAD, raw, bytearray(raw), memoryview(raw), plain, str(plain), packed, str(packed), streamed]


def test_every_form_of_a_payload_gives_the_same(tmp_path: Path) -> None:
    """A dict, bytes, and files plain or compressed load alike, and nothing is kept of them."""
    expected = voxframe.load_words(_PAYLOAD)
    assert expected["text"].to_list() == ["Guten", "Tag."]
    for form in _forms(tmp_path):
        words = voxframe.load_words(form)
        (stem,) = words.pop("recording").unique()
        assert stem == "mine" or Path(str(form)).name.startswith(stem)  # the id for no file
        pd.testing.assert_frame_equal(words, expected.drop(columns="recording"))


def test_an_iterable_is_joined_in_order(tmp_path: Path) -> None:
    """A generator of payloads in any form gives one DataFrame, index from 0."""
    path = tmp_path / "b.json"
    path.write_text(json.dumps({**_PAYLOAD, "id": "b"}))
    forms = [{**_PAYLOAD, "id": "c"}, path, json.dumps(_PAYLOAD).encode()]
    words = voxframe.load_words(form for form in forms)
    assert words["transcript_id"].to_list() == ["c", "c", "b", "b", "mine", "mine"]
    assert words.index.to_list() == list(range(6))
    assert voxframe.tables(forms)["transcripts"]["transcript_id"].to_list() == ["c", "b", "mine"]


def test_a_transcript_is_loaded_once(tmp_path: Path) -> None:
    """The same payload in nine forms, a copy in a folder, and a repeated line give its rows once, with a warning."""
    said = r"8 of 9 payloads repeat another one and are loaded once, such as source 1 .*'mine', as in source 0"
    with pytest.warns(PayloadWarning, match=said) as caught:
        assert voxframe.load_words(_forms(tmp_path))["word_idx"].to_list() == [0, 1]
    assert len(caught) == 1
    folder = tmp_path / "calls"
    for name in ("a.vtt", "copy/a.vtt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nHello there\n")
    with pytest.warns(PayloadWarning, match=r"1 of 2 payloads .*/copy/a\.vtt' \(transcript .*, as in .*calls/a\.vtt'"):
        assert voxframe.load_words(folder)["text"].to_list() == ["Hello", "there"]
    line = json.dumps(_PAYLOAD).encode()
    with pytest.warns(PayloadWarning, match=r"such as payload:2 \(transcript 'mine', as in payload:1\)"):
        assert len(voxframe.tables(line + b"\n" + line)["transcripts"]) == 1


def test_of_two_payloads_with_one_id_the_first_is_kept(tmp_path: Path) -> None:
    """A different payload with a known id is left out, and a warning names it, the id and the payload that is kept."""
    for name, text in (("a", "one"), ("b", "two")):
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": "x", "words": [{"text": text}]}))
    with pytest.warns(PayloadWarning) as caught:
        assert voxframe.load_words([tmp_path / "a.json", _PAYLOAD, tmp_path / "b.json"])["text"].to_list() == [
            "one",
            "Guten",
            "Tag.",
        ]
    (said,) = (str(warning.message) for warning in caught)
    assert said.startswith("1 of 3 payloads differ from another one with the same id and are left out: ")
    assert f"{str(tmp_path / 'b.json')!r} has the id 'x' of {str(tmp_path / 'a.json')!r}. Give them other ids" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no table has rows of both, and without an id nothing tells that they are one
        export = {"id": "mine", "sentences": [{"text": "Guten Tag."}]}
        both = voxframe.tables([_PAYLOAD, export])
        assert (len(both["words"]), len(both["sentences"])) == (2, 1)
        assert len(voxframe.load_words([{"words": [{"text": "a"}]}, {"words": [{"text": "a"}]}])) == 2


def test_a_finished_payload_takes_the_place_of_an_unfinished_one() -> None:
    """Of responses that were saved while a job was running, the finished one is loaded, in any order."""
    begun, other = {"id": "x", "status": "processing"}, {"id": "y", "status": "completed", "words": [{"text": "a"}]}
    done = {"id": "x", "status": "completed", "words": [{"text": "Hi"}]}
    for source, said in (
        ([begun, other, done], r"source 0 .*, which is not finished, has the id 'x' of source 2"),
        ([done, other, begun], "source 2 .* has the id 'x' of source 0"),
    ):
        with pytest.warns(PayloadWarning, match=rf"^1 of 3 payloads differ .* left out: {said}"):
            found = voxframe.tables(source)
        assert found["transcripts"][["transcript_id", "status"]].to_numpy().tolist() == [
            ["x", "completed"],
            ["y", "completed"],
        ]
        assert found["words"]["text"].to_list() == ["Hi", "a"]
    with pytest.warns(PayloadWarning, match="1 of 2 payloads differ"):
        statuses = voxframe.load_transcripts([begun, {"id": "x", "status": "queued"}])["status"]
    assert statuses.to_list() == ["processing"]


def test_a_transcript_of_a_corpus_is_loaded_once(tmp_path: Path) -> None:
    """Repeated ids, the name of a recording beside its id, and a payload that is also in the corpus are read once."""
    file = tmp_path / "call.json"
    file.write_text(json.dumps(_PAYLOAD))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(file)
    for source, said in (
        (["mine", "mine", "call"], "2 of 3 payloads repeat another one .* such as 'mine'"),
        ([file, "mine"], r"1 of 2 payloads .*'mine' \(transcript 'mine', as in .*call\.json'\)"),
        (["mine", file], r"1 of 2 payloads .*call\.json' \(transcript 'mine', as in 'mine'\)"),
    ):
        with pytest.warns(PayloadWarning, match=said):
            assert voxframe.load_words(source, corpus=corpus)["text"].to_list() == ["Guten", "Tag."]
    corpus.corrections.set("mine", {0: "Schönen Tag."})
    with pytest.warns(PayloadWarning, match="1 of 2 payloads differ from another one"):
        assert voxframe.load_words(["mine", file], corpus=corpus)["text"].to_list() == ["Schönen", "Tag."]


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")  # why a table is empty
@pytest.mark.parametrize("name", _LOADERS)
def test_no_rows_have_every_column_and_dtype(name: str) -> None:
    """Nothing at all, and a payload with nothing in it, have the dictionary's columns and, after text, the original."""
    load = _LOADERS[name]
    nothing = load([])
    assert tuple(nothing.columns.drop(["recording", "text_original"], errors="ignore")) == TABLES[name].names
    assert nothing.columns[1] == "recording"
    if name in ("transcripts", "words", "utterances", "sentences", "paragraphs"):
        assert nothing.columns.to_list().index("text_original") == nothing.columns.to_list().index("text") + 1
    empty = load({"id": "x", "status": "completed", "sentences": [], "paragraphs": []})
    assert empty.dtypes.equals(nothing.dtypes)


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")  # why a table is empty
@pytest.mark.parametrize("name", sorted(set(_LOADERS) - {"sentences", "paragraphs"}))
def test_a_loader_gives_what_tables_gives(name: str, payload_folder: Path) -> None:
    """Each loader equals its table of `tables`, on every transcript of the examples."""
    for path in sorted(payload_folder.glob("transcripts/*.json")) + sorted(payload_folder.glob("analyses/*.json")):
        pd.testing.assert_frame_equal(_LOADERS[name](path), voxframe.tables(path)[name])


@pytest.mark.parametrize("view", ["sentences", "paragraphs"])
def test_an_export_is_loaded_from_its_payload(view: str, payload_folder: Path) -> None:
    """Every sentence or paragraph of the example export is a row with its text and times."""
    path = payload_folder / f"{view.capitalize()}Response.json"
    items = orjson.loads(path.read_bytes())[view]
    frame = _LOADERS[view](path)
    assert frame["text"].to_list() == [item["text"] for item in items]
    assert frame["start_ms"].to_list() == [item["start"] for item in items]
    assert frame["word_count"].to_list() == [len(item["words"]) for item in items]


@pytest.mark.parametrize("view", ["sentences", "paragraphs"])
def test_passages_of_a_transcript_are_made_from_its_words(view: str) -> None:
    """The transcript's own payload has no sentences, so they are made and marked; without words it is an error."""
    found = _LOADERS[view](_PAYLOAD)
    words = voxframe.load_words(_PAYLOAD)
    assert found["derived"].all()
    assert found.columns.get_loc("derived") == found.columns.get_loc("word_count") + 1
    assert " ".join(found["text"]).split() == " ".join(words["text"]).split()
    assert found["word_count"].sum() == len(words)
    with pytest.raises(PayloadError, match=rf"has no {view} and no words.*client\.fetch\(id, '{view}'\)"):
        _LOADERS[view]({"id": "x", "status": "completed", "text": "Hi."})


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"id": "x", "sentences": [{"text": "Hi."}]}, "load it with load_sentences"),
        ({"id": "x", "paragraphs": []}, "load it with load_paragraphs"),
        ({"id": "x", "total_count": 0, "matches": []}, "read it with load_word_matches"),
        ({"page_details": {}, "transcripts": []}, "pass the ids in it"),
        ({"request_id": "r", "response": "Yes."}, "read it with load_responses"),
    ],
)
def test_an_answer_of_another_kind_is_no_empty_transcript(payload: dict, said: str) -> None:
    """A response of another kind raises an error that names its loader, instead of giving an empty table."""
    for load in (voxframe.load_words, voxframe.load_transcripts):
        with pytest.raises(PayloadError, match=said):
            load(payload)


def test_tables_are_all_tables() -> None:
    """`tables` returns the same names for a transcript and for an export, with all rows in the right table."""
    of_transcript = voxframe.tables(_PAYLOAD)
    of_export = voxframe.tables({"id": "x", "sentences": [{"text": "Hi."}]})
    assert list(of_transcript) == list(of_export) == [*TRANSCRIPT_TABLES, "sentences", "paragraphs"]
    assert of_export["sentences"]["text"].to_list() == ["Hi."]
    assert of_export["transcripts"].empty
    assert of_transcript["sentences"].empty


@pytest.mark.parametrize("load", [voxframe.load_words, voxframe.tables, voxframe.load_sentences])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("missing.json", "cannot read the payload file 'missing.json': no such file"),
        (Path("nowhere/x"), "cannot read the payload file 'nowhere/x': no such file"),
        ('{"id": "x"}', "JSON text must not be a str; pass it as bytes"),
        (7, "cannot load from int; pass a transcript handle"),
        (None, "cannot load from NoneType"),
        ([{"id": "x", "status": "completed", "sentences": []}, 7], "cannot load from int"),
        ({"id": {1, 2}}, "cannot be encoded as JSON"),
        (b"<html>", ""),
        (b"", ""),
        (b"[]", "the list of payloads is empty"),
        ({}, "no"),
        ({"id": "x"}, "no"),
        ({"id": "x", "name": "y", "items": [1]}, "no"),
        ({"id": "x", "type": "event", "transcript": None}, "no"),
        (b'[{"name": "y"}, {}]', "no"),
    ],
)
def test_what_is_no_source_is_answered_with_what_is(load: Callable, wrong: object, said: str) -> None:
    """Every wrong source is a PayloadError that names it and what to pass instead."""
    with pytest.raises(PayloadError) as caught:
        load(wrong)
    assert said in str(caught.value)


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_text_is_no_id(empty: str) -> None:
    """An empty text, as a missing cell of a table gives, is no id: not taken for the working directory."""
    with pytest.raises(PayloadError, match="the transcript id is empty"):
        voxframe.load_words(empty)


def test_a_directory_and_a_broken_file_are_named(tmp_path: Path) -> None:
    """A folder without payloads, and a compressed file that is not, are errors with the path."""
    with pytest.raises(PayloadError, match="has no payload files, which have endings such as"):
        voxframe.load_words(tmp_path)
    broken = tmp_path / "x.json.zst"
    for data in (b"not zstd", zstandard.compress(b"{}" * 99)[:-3]):
        broken.write_bytes(data)
        with pytest.raises(PayloadError, match=r"x\.json\.zst' is not a complete zstd file"):
            voxframe.load_words(broken)


def test_folders_patterns_corpora_and_frames_are_sources(tmp_path: Path) -> None:
    """A folder, a pattern, a corpus and a DataFrame of ids load the transcripts that they name, each once."""
    for name in ("b", "a", "sub/c"):
        path = tmp_path / f"calls/{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**_PAYLOAD, "id": Path(name).name}))
    (tmp_path / "calls/notes.md").write_text("no payload")

    def ids(source: object, **options: object) -> list[str]:
        return voxframe.load_words(source, **options)["transcript_id"].drop_duplicates().to_list()

    assert ids(tmp_path / "calls") == ids(str(tmp_path / "calls")) == ["a", "b", "c"]
    assert ids(str(tmp_path / "calls/*.json")) == ["a", "b"]
    assert ids(str(tmp_path / "calls/**/*.json")) == ["a", "b", "c"]
    assert ids([str(tmp_path / "calls/[b-z].json"), _PAYLOAD]) == ["b", "mine"]
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(tmp_path / "calls")
    words = corpus.table("words")
    pd.testing.assert_frame_equal(voxframe.load_words(corpus), words)
    pd.testing.assert_frame_equal(voxframe.tables(corpus)["words"], words)
    assert len(words) == 6
    assert ids(words[words["transcript_id"] != "b"], corpus=corpus) == ["a", "c"]
    named = voxframe.Corpus(tmp_path / "named")
    named.add([{**_PAYLOAD, "id": f"id-{n}", "audio_url": f"https://a.example/{n}.mp3"} for n in "ab"])
    assert ids(pd.DataFrame({"recording": ["b.mp3", "a.mp3", "b.mp3"]}), corpus=named) == ["id-b", "id-a"]
    with pytest.raises(PayloadError, match="a DataFrame must have a column transcript_id or recording"):
        ids(words[["text"]], corpus=corpus)
    with pytest.raises(OptionError, match="the source is already a corpus"):
        ids(corpus, corpus=voxframe.Corpus(tmp_path / "other"))
    corpus.add({"id": "bad", "status": "error", "error": "no audio"})
    with pytest.warns(PayloadWarning, match=r"no words in .* not completed: 'bad' \(error\)"):
        assert ids(corpus) == ["a", "b", "c"]


def test_categories_and_timedeltas_on_request() -> None:
    """Ids, speakers and labels become categories in order; start and end are timedeltas beside the milliseconds."""
    words = [{"text": t, "start": s, "end": 900, "speaker": v} for t, s, v in (("a", 10, "B"), ("b", None, "A"))]
    payload = {"id": "x", "words": [*words, {"text": "c"}]}
    plain = voxframe.load_words(payload)
    frame = voxframe.load_words(payload, category=True, timedeltas=True)
    assert frame["speaker"].cat.categories.to_list() == ["A", "B"]
    assert [name for name in frame if frame[name].dtype == "category"] == [
        "transcript_id",
        "recording",
        "text_original",
        "speaker",
        "channel",
        "timing",
        "extra",
    ]
    pd.testing.assert_frame_equal(frame.astype(plain.dtypes)[[*plain]], plain)
    assert frame.columns.to_list()[8:10] == ["start", "end"]
    assert str(frame["start"].dtype) == "timedelta64[ms]"
    assert frame["start"].to_list() == [pd.Timedelta("10ms"), pd.Timedelta("900ms"), pd.NaT]
    assert voxframe.tables(payload, category=True)["words"]["speaker"].dtype == "category"
    with pytest.raises(TypeError, match="categories"):
        voxframe.load_words(payload, categories=True)


def test_categories_change_no_result() -> None:
    """Measures, comparisons and exports of a table with categories equal those of the plain table."""
    words = [{"text": f"w{n}.", "start": 100 * n, "end": 100 * n + 80, "speaker": v} for n, v in enumerate("BBAAB", 1)]
    payloads = [{"id": name, "status": "completed", "words": words} for name in ("y", "x")]
    plain, frame = (voxframe.load_words(payloads, category=category) for category in (False, True))
    some = (plain["transcript_id"] != "x") | (plain["speaker"] != "A")  # a part, so that some categories have no rows
    plain, frame = plain[some], frame[some]
    for measure in (
        voxframe.analysis.talk_time,
        voxframe.analysis.turns,
        lambda df: voxframe.analysis.find_words(df, ["w1 w2", "w5"]),
        lambda df: voxframe.compare.error_rates(voxframe.compare.align(plain, df, on="transcript_id"), by="speaker"),
    ):
        expected, found = measure(plain), measure(frame)
        pd.testing.assert_frame_equal(found.astype(expected.dtypes), expected)
    for form in (voxframe.export.rttm, voxframe.export.ctm, voxframe.export.stm):
        assert form(frame) == form(plain)
    one = [rows[rows["transcript_id"] == "x"] for rows in (plain, frame)]
    for form in (voxframe.export.srt, voxframe.export.textgrid, voxframe.export.eaf):
        assert form(one[1]) == form(one[0])


@pytest.mark.parametrize("name", TABLES)
def test_a_frame_has_two_kinds_of_null(name: str) -> None:
    """A null is NaN in text and floats, and NA in integers and flags, which have no NaN; NaT only in times.

    With pandas 2, a null is None in text.
    """
    table = TABLES[name]
    text = None if str(TEXT_DTYPE) == "object" else float
    blank = {"str": "", "int64": 0, "float64": 0.0}
    row = {c.name: None if c.nullable else blank[c.dtype] for c in table.columns}
    frame = voxframe.frames.to_pandas(pa.Table.from_pylist([row], table.arrow), name)
    nulls = frame.iloc[0].dropna().index.symmetric_difference(frame.columns)
    assert set(nulls) == {c.name for c in table.columns if c.nullable}
    for column in table.columns:
        value = frame[column.name].iloc[0]
        if column.nullable:
            null = {"Int64": pd.NA, "boolean": pd.NA, "str": text, "float64": float}
            kind = null.get(column.dtype, pd.NaT)
            assert isinstance(value, float) if kind is float else value is kind, column.name


def test_numbers_past_64_bits_lose_nothing_else() -> None:
    """A dict that the fast encoder refuses still loads."""
    with pytest.warns(UserWarning, match="start"):
        words = voxframe.load_words({"id": "x", "words": [{"text": "a\ud800", "start": 2**70, "end": 5}]})
    assert words["end_ms"].to_list() == [5]


def test_the_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file by its path, alone or among others; a payload among others by its place; a warning by its identifier."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(_PAYLOAD))
    bad.write_text('{"id": "a", "words"')
    for source in (bad, str(bad), [bad, str(bad)]):
        with pytest.raises(PayloadError, match=r"bad\.json': the payload is truncated"):
            voxframe.load_words(source)
    bad.write_text('{"sentences": []}')
    with pytest.raises(PayloadError, match=r"bad\.json': this payload is an export of sentences"):
        voxframe.load_words(bad)
    with pytest.raises(PayloadError, match=r"source 0 \(counted from 0\): the payload is a web page"):
        voxframe.tables([b"<html>"])
    with pytest.raises(PayloadError, match=r"^the payload is a web page"):
        voxframe.tables(b"<html>")
    with pytest.warns(PayloadWarning, match=r"the payload of 'mine' has invalid values: words\[0\]\.start"):
        voxframe.load_words([{**_PAYLOAD, "words": [{"start": 1.5}]}])


def test_one_bad_payload_never_stops_the_others(tmp_path: Path) -> None:
    """Payloads that cannot be read are left out and named in one warning; the others load."""
    good, bad, cut = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "cut.json.zst"
    good.write_text(json.dumps(_PAYLOAD))
    bad.write_text('{"id": "a", "words"')
    cut.write_bytes(zstandard.compress(json.dumps(_PAYLOAD).encode())[:-3])
    deep = b'{"words":' + b"[" * 200_000
    with pytest.warns(PayloadWarning) as caught:
        words = voxframe.load_words([bad, good, cut, deep, {"name": "y"}, {**_PAYLOAD, "id": "other"}])
    assert words["text"].to_list() == ["Guten", "Tag."] * 2
    assert len(caught) == 1
    said = str(caught[0].message)
    assert said.startswith("4 of 6 payloads cannot be read and are left out: ")
    for name in (
        "bad.json': the payload is truncated",
        "cut.json.zst' is not a complete zstd file",
        "source 3",
        "source 4",
    ):
        assert name in said
    assert Path(caught[0].filename) == Path(__file__)


@pytest.mark.parametrize(("bad", "more"), [(5, ""), (6, "; and 1 more")])
def test_five_bad_payloads_are_named_and_the_others_counted(bad: int, more: str) -> None:
    """The warning names the first five payloads that cannot be read; only if there are others, it has their number."""
    with pytest.warns(PayloadWarning) as caught:
        voxframe.load_words([_PAYLOAD, *[b"<html>"] * bad])
    (said,) = (str(warning.message) for warning in caught)
    assert said.startswith(f"{bad} of {bad + 1} payloads cannot be read")
    assert said.count("the payload is a web page") == 5
    assert said.partition("; and ")[1:] == ((more[:6], more[6:]) if more else ("", ""))


@pytest.mark.parametrize("first", [0, 1])
def test_a_payload_beside_a_transcript_of_a_corpus_has_the_same_columns(first: int, tmp_path: Path) -> None:
    """If one of the sources comes from a corpus, all rows have the columns that a corpus adds, in the given order."""
    (tmp_path / "call.json").write_text(json.dumps({**_PAYLOAD, "id": "stored"}))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(tmp_path / "call.json")
    sources = ["stored", {**_PAYLOAD, "id": "other"}]
    found = voxframe.load_transcripts([sources[first], sources[1 - first]], corpus=corpus)
    assert list(found.columns) == list(corpus.table("transcripts").columns)
    assert found["transcript_id"].to_list() == [["stored", "other"][first], ["other", "stored"][first]]
    names = found.set_index("transcript_id")["recording"]
    assert names["stored"] == "call"
    assert names["other"] == "other"


def _wrapped() -> dict[str, bytes]:
    """The same two transcripts in every form that is read, by the name of a file of it."""
    one, two = _PAYLOAD, {**_PAYLOAD, "id": "other", "status": "dreaming"}
    plain = json.dumps([one, two], ensure_ascii=False).encode()
    lines = b"".join(json.dumps(p).encode() + b"\r\n" for p in (one, two))
    return {
        "list.json": plain,
        "indented.json": json.dumps([one, two], indent=2).encode(),
        "lines.jsonl": lines,
        "lines.json": b"\n" + lines,
        "list.json.gz": gzip.compress(plain),
        "lines.ndjson.gz": gzip.compress(lines[:99]) + gzip.compress(lines[99:]),
        "frames.json.zst": zstandard.compress(plain[:50]) + zstandard.compress(plain[50:]),
        "utf16.json": plain.decode().encode("utf-16"),
        "unmarked.json": plain.decode().encode("utf-16-le"),
        "big.json": plain.decode().encode("utf-16-be"),
        "bom.jsonl": b"\xef\xbb\xbf" + lines,
        "envelopes.json": json.dumps([{"id": "e1", "type": "done", "transcript": one}, {"data": two}]).encode(),
        "nested.jsonl": json.dumps({"data": {"transcript": one}}).encode() + b"\n" + json.dumps(two).encode(),
        "nan.json": plain.replace(b"0.5", b"NaN"),
    }


@pytest.mark.parametrize("name", _wrapped())
def test_every_wrapping_is_read_by_loaders_and_by_add(name: str, tmp_path: Path) -> None:
    """A list, JSON lines, envelopes, compressed files and UTF-16 give the same rows from a loader and from a corpus."""
    path = tmp_path / name
    path.write_bytes(_wrapped()[name])
    words, transcripts = voxframe.load_words(path), voxframe.load_transcripts(str(path))
    assert words["transcript_id"].to_list() == ["mine"] * 2 + ["other"] * 2
    assert words["text"].to_list() == ["Guten", "Tag."] * 2
    assert transcripts["status"].to_list() == ["completed", "dreaming"]
    corpus = voxframe.Corpus(tmp_path / "corpus")
    done = corpus.add(path)
    assert (done.added, done.left_out) == (2, [])
    assert corpus.table("words")["text"].to_list() == words["text"].to_list()
    assert voxframe.load_words(["mine", "other"], corpus=corpus)["text"].to_list() == words["text"].to_list()
    if not name.endswith((".gz", ".zst")):
        assert voxframe.tables(path.read_bytes())["words"].equals(words)


@pytest.mark.parametrize(
    "envelope",
    [
        {"id": "e", "type": "transcript.completed", "transcript": _PAYLOAD},
        {"data": _PAYLOAD},
        {"status": "ok", "data": _PAYLOAD, "meta": {"text_length": 2}},
    ],
)
def test_an_envelope_around_one_transcript_is_opened(envelope: dict, tmp_path: Path) -> None:
    """The transcript in an envelope loads as if it came alone, also into a corpus, byte for byte."""
    plain = voxframe.tables(_PAYLOAD)
    for name, frame in voxframe.tables(envelope).items():
        pd.testing.assert_frame_equal(frame, plain[name])
    corpus = voxframe.Corpus(tmp_path)
    assert corpus.add(envelope).added == 1
    assert json.loads(corpus.raw.get("mine")) == _PAYLOAD


def test_numpy_and_decimal_values_of_a_dict(tmp_path: Path) -> None:
    """Values of NumPy, pandas and decimal in a dict are read as the numbers they are, also by `add`."""
    words = [
        {"text": "Guten", "start": np.int64(10), "end": Decimal(200), "confidence": np.float32(0.5)},
        {"text": "Tag.", "start": np.float64(210), "end": 400, "confidence": Decimal(1)},
        {"text": pd.NA, "start": pd.NaT, "end": np.int32(2), "confidence": Decimal("NaN")},
    ]
    payload = MappingProxyType({"id": "mine", "status": np.str_("completed"), "words": words})
    expected = voxframe.load_words({**_PAYLOAD, "words": [*_PAYLOAD["words"], {"end": 2}]})
    pd.testing.assert_frame_equal(voxframe.load_words(payload), expected)
    pd.testing.assert_frame_equal(voxframe.load_words({**payload, "words": np.array(words, object)}), expected)
    big = {**payload, "words": [*words, {"end": 2**70}]}
    with pytest.warns(PayloadWarning, match=r"words\[3\]\.end"):
        assert voxframe.load_words(big)["start_ms"].to_list()[:2] == [10, 210]
    corpus = voxframe.Corpus(tmp_path)
    assert corpus.add([payload, json.dumps({**_PAYLOAD, "id": "b"}).encode()]).added == 2
    assert corpus.ids() == ["b", "mine"]
    assert corpus.table("words", "mine")["start_ms"].to_list()[:2] == [10, 210]


def test_transcripts_without_a_result_are_named() -> None:
    """A failed or unfinished transcript has no words: a warning names it, and the others are returned."""
    good = {"id": "good", "status": "completed", "words": [{"text": "Hi", "start": 0, "end": 9}]}
    others = [{"id": "bad", "status": "error", "error": "no audio"}, {"id": "new", "status": "queued"}]
    with pytest.warns(PayloadWarning, match=r"no words in .* not completed: 'bad' \(error\), 'new' \(queued\); "):
        assert voxframe.load_words([good, *others])["transcript_id"].to_list() == ["good"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # here their rows show status and error
        assert voxframe.load_transcripts([good, *others])["status"].to_list() == ["completed", "error", "queued"]


def test_a_saved_error_response_is_not_an_empty_transcript() -> None:
    """A response with only an error has no words: a warning has what the service answered, also among others."""
    answer = {"error": "Unauthorized"}
    said = r"no words in .*not completed: one without an id \(the service answered 'Unauthorized'\); "
    for source, texts in ((answer, []), ([answer, _PAYLOAD], ["Guten", "Tag."])):
        with pytest.warns(PayloadWarning, match=said):
            assert voxframe.load_words(source)["text"].to_list() == texts
    assert voxframe.load_transcripts(answer)["error"].to_list() == ["Unauthorized"]


def test_a_text_without_words_is_named(tmp_path: Path) -> None:
    """A transcript with a text but without words gives a warning, also from a corpus; one without speech does not."""
    said = "no words in transcripts with a text but no list of words: 'x'; voxframe.load_transcripts has the text"
    payload = {"id": "x", "status": "completed", "text": "hi"}
    corpus = voxframe.Corpus(tmp_path)
    corpus.add(payload)
    for read in (
        lambda: voxframe.load_words(payload),
        lambda: voxframe.load_words("x", corpus=corpus),
        lambda: corpus.table("words"),
    ):
        with pytest.warns(match=said):
            assert read().empty
    with pytest.warns(PayloadWarning, match="list of words: one without an id; "):
        assert voxframe.load_words([_PAYLOAD, {"text": "hi"}])["text"].to_list() == ["Guten", "Tag."]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert voxframe.load_words({"id": "y", "status": "completed", "text": "", "words": []}).empty


@pytest.mark.parametrize(("failed", "end"), [(5, "'4' (error); "), (6, "'4' (error) and 1 more; ")])
def test_five_transcripts_without_a_result_are_named_and_the_others_counted(failed: int, end: str) -> None:
    """The warning names the first five transcripts without words; only if there are others, it has their number."""
    with pytest.warns(PayloadWarning, match=re.escape(end)):
        voxframe.load_words([_PAYLOAD, *({"id": str(n), "status": "error"} for n in range(failed))])


def test_a_failed_transcript_of_a_corpus_is_named(tmp_path: Path) -> None:
    """A failed transcript is named as well if it is read from a corpus."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.add({"id": "bad", "status": "error", "error": "no audio"})
    with pytest.warns(PayloadWarning, match=r"no utterances in .*: 'bad' \(error\)"):
        assert voxframe.load_utterances("bad", corpus=corpus).empty


def test_the_first_rows_of_many_sources(tmp_path: Path) -> None:
    """`limit` returns the first rows, of files, a corpus and its ids; files after them are not opened."""
    folder = tmp_path / "payloads"
    folder.mkdir()
    words = [{"text": text, "start": 0, "end": 9} for text in ("a", "b", "c")]
    for name in ("t1", "t2"):
        (folder / f"{name}.json").write_bytes(orjson.dumps({"id": name, "status": "completed", "words": words}))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(folder)
    (folder / "t3.json").write_text("damaged")
    for source in (folder, corpus, corpus.ids()):
        found = voxframe.load_words(source, corpus=None if source is corpus else corpus, limit=4)
        assert (found["transcript_id"] + found["text"]).to_list() == ["t1a", "t1b", "t1c", "t2a"]
    assert voxframe.load_words(corpus, limit=np.int64(0)).empty
    with pytest.raises(OptionError, match="limit must be a whole number of at least 0, got -1"):
        voxframe.load_words(corpus, limit=-1)


@pytest.mark.parametrize("kind", ["file", "corpus", "id"])
def test_where_keeps_the_rows_that_pandas_keeps(tmp_path: Path, kind: str) -> None:
    """Loaders take the conditions of `Corpus.table`, from every source; `limit` counts the rows that are kept."""
    path = Path(__file__).parents[1] / "data/payloads/interview.json"
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([path])
    source = {"file": path, "corpus": corpus, "id": "interview"}[kind]
    load = partial(voxframe.load_words, source, corpus=None if kind == "file" else corpus)
    expected = load().query("confidence < 0.9 and speaker == 'A'").reset_index(drop=True)
    assert len(expected) > 5
    pd.testing.assert_frame_equal(load(where="confidence < 0.9 and speaker == 'A'"), expected)
    pd.testing.assert_frame_equal(load(where=[("confidence", "<", 0.9), ("speaker", "==", "A")], limit=5), expected[:5])
    assert len(load(where="text_original is null")) == len(load())
    assert voxframe.load_sentences(path, where="derived")["derived"].all()
    with pytest.raises(CorpusError, match="no column 'sureness'"):
        load(where="sureness < 0.5")
    with pytest.raises(TypeError, match=r"tables\(\) has no argument 'where'"):
        voxframe.tables(path, where="confidence < 0.5")


def test_no_way_to_read_is_silent_about_emptiness(tmp_path: Path) -> None:
    """SQL, scans, Polars, search and counts give the reason, too, if a table of a corpus has no rows at all."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    payload = {"id": "a", "status": "error", "error": "no speech", "words": None}
    corpus.add([payload])
    no_words = r"no words in transcripts that are not completed: 'a' \(error\)"
    for read in (
        lambda: corpus.sql("select count(*) from words"),
        lambda: corpus.scan("words"),
        lambda: corpus.to_polars("words"),
        lambda: corpus.search("hello"),
        lambda: corpus.counts("hello"),
        lambda: corpus.counts("hello", ids=["a"]),
    ):
        with pytest.warns(match=no_words):
            read()
    corpus.add([{"id": "b", "status": "completed", "words": [{"text": "Hi", "start": 0, "end": 9}]}])
    with pytest.warns(match="no entities"):
        corpus.sql("select * from entities join words using (transcript_id)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corpus.sql("select * from words where text = 'x'").empty
        assert corpus.search("hello").empty
        assert corpus.counts("hello")["occurrences"].sum() == 0
        assert corpus.to_polars("words").collect().height == 1


def test_a_table_without_rows_has_a_reason(tmp_path: Path) -> None:
    """A failed transcript and an option that was not set give a warning with the next step; no result does not."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    words = [{"text": "Hi", "start": 0, "end": 9}]
    plain = {"id": "a", "status": "completed", "audio_url": "https://example.com/a.mp3", "words": words}
    corpus.add([plain, {**plain, "id": "b", "status": "error", "words": None}])
    for load in (corpus.table, lambda name, one: _LOADERS[name](one, corpus=corpus)):
        for name in ("words", "sentences"):
            with pytest.warns(match=rf"no {name} in transcripts that are not completed: 'b' \(error\)"):
                assert load(name, ["b"]).empty
        with pytest.warns(match="no entities: .* transcribe them with entity_detection=True"):
            assert load("entities", ["a"]).empty
    with pytest.warns(match="no entities: .* transcribe them with entity_detection=True") as given:
        assert corpus.table("entities", ["a"], where="start_ms > 3").empty
    assert len(given) == 1
    with pytest.warns(match=r"no sentences in transcripts that are not completed: 'b' \(error\)"):
        assert corpus.table("sentences", ["b"], where="start_ms > 3").empty
    with pytest.warns(match="made without speaker_labels"):
        voxframe.load_utterances(plain)
    (tmp_path / "a.txt").write_text("Hello there.")
    with pytest.warns(match="made without entity_detection; add it with corpus.analyze"):
        voxframe.load_entities(tmp_path / "a.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert voxframe.load_entities({**plain, "entity_detection": True, "entities": []}).empty
        assert corpus.table("words", where="start_ms > 3").empty
        assert corpus.table("sentences", where="start_ms > 3").empty


def test_no_transcripts_give_a_reason(tmp_path: Path) -> None:
    """Loaders and `table` say so if an empty list of transcripts, or an empty corpus, is why there are no rows."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([{"id": "a", "status": "completed", "words": [{"text": "Hi", "start": 0, "end": 9}]}])
    nothing = pd.DataFrame({"transcript_id": []})
    for read in (
        lambda: voxframe.load_words([]),
        lambda: voxframe.load_words(nothing),
        lambda: voxframe.load_words(nothing, corpus=corpus),
        lambda: voxframe.load_sentences(iter(())),
        lambda: voxframe.tables([]),
        lambda: corpus.table("words", []),
        lambda: corpus.search("hi", ids=[]),
    ):
        with pytest.warns(match="no transcripts were given, .* pass at least one") as given:
            read()
        assert len(given) == 1
    (tmp_path / "empty").mkdir()
    for load in (voxframe.load_words, voxframe.tables, lambda empty: voxframe.load_words(empty, refresh=True)):
        with pytest.warns(match="the corpus has no transcripts yet; Corpus.sync fetches") as given:
            load(voxframe.Corpus(tmp_path / "empty"))
        assert len(given) == 1


@pytest.mark.parametrize("name", ["tables", "load_words"])
def test_an_unknown_argument_is_named_with_the_loader(name: str) -> None:
    """The error names the loader that was called, the argument, and the arguments that it has."""
    said = rf"{name}\(\) has no argument 'limits'; its arguments are source, client, corpus, refresh, limit"
    with pytest.raises(TypeError, match=said):
        getattr(voxframe, name)({"id": "a", "words": []}, limits=3)


def test_an_unknown_table_is_answered_with_the_tables(tmp_path: Path) -> None:
    """A misspelled name of a table is an error with the closest name and all tables, of a loader and of a corpus."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.add(_PAYLOAD)
    close = r"there is no table 'utterance' \(did you mean 'utterances'\?\); the tables are transcripts, words, "
    for found in (voxframe.tables(_PAYLOAD), corpus["mine"], corpus.tables("mine")):
        with pytest.raises(KeyError, match=close):
            found["utterance"]
        assert found.get("utterance") is None
    with pytest.raises(CorpusError, match=r"no table 'utterance' \(did you mean 'utterances'\?\); it has transcripts"):
        corpus.table("utterance")


class _Unread:
    """A job handle whose properties must not be read."""

    id = "mine"

    @property
    def done(self) -> bool:
        raise AssertionError("the property was read")

    raw = done

    def fetch(self, view: str = "transcript") -> bytes:
        raise AssertionError("a request was sent")


def test_a_stored_transcript_is_not_fetched_for_a_handle(tmp_path: Path) -> None:
    """A handle of a transcript in the corpus is not read, because its properties may send requests."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.add(_PAYLOAD)
    assert voxframe.load_words(_Unread(), corpus=corpus)["text"].to_list() == ["Guten", "Tag."]


@pytest.mark.parametrize("flag", ["refresh", "category", "timedeltas", "corrected"])
def test_a_text_is_not_a_flag(flag: str) -> None:
    """A text such as "no", which would count as true, is an error."""
    with pytest.raises(OptionError, match=f"{flag} must be True or False, got 'no'"):
        voxframe.load_words(_PAYLOAD, **{flag: "no"})
    with pytest.raises(OptionError, match="finals_only must be True or False, got 'no'"):
        voxframe.load_stream_words([], finals_only="no")  # type: ignore[arg-type]
