"""Captions, annotation files and plain text: by the formats' documentation, by other libraries, and our own export."""

import gzip
import re
import warnings
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import praatio.textgrid
import pytest
import srt
import webvtt
from praatio.data_classes.interval_tier import IntervalTier
from pympi import Elan

import voxframe
from voxframe.errors import PayloadError, PayloadWarning
from voxframe.formats import text_readers
from voxframe.importers import converted, with_speakers

_NO_TIMES = [None, None]


def _load(folder: Path, name: str, text: str | bytes) -> dict[str, pd.DataFrame]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return voxframe.tables(path)


def _rows(df: pd.DataFrame, *columns: str) -> list[list[Any]]:
    found = df[[*(columns or ("speaker", "text", "start_ms", "end_ms"))]].astype(object)
    return found.where(found.notna(), None).values.tolist()


def test_srt_has_turns_and_words_share_their_times(tmp_path: Path) -> None:
    """Cues are turns; their words share the time by their number of characters, and have no confidence."""
    first = "1\r\n00:00:00,500 --> 00:00:01,250\r\nAnn: <i>Hi</i>\r\nthere.\r\n\r\n"
    text = first + "2\r\n01:00:02,000 --> 01:00:02,500\r\nBye\r\n\r\n3\r\n01:00:08,000 --> 01:00:09,000\r\nAnn: So\r\n"
    with pytest.warns(PayloadWarning, match="1 caption or line of 3 without a speaker got the speaker before"):
        tables = _load(tmp_path, "a.srt", b"\xef\xbb\xbf" + text.encode())
    assert _rows(tables["utterances"]) == [
        ["Ann", "Hi there.", 500, 1250],
        ["Ann", "Bye", 3_602_000, 3_602_500],
        ["Ann", "So", 3_608_000, 3_609_000],
    ]
    assert _rows(tables["words"]) == [
        ["Ann", "Hi", 500, 688],  # 750 ms for 2 and 6 characters
        ["Ann", "there.", 688, 1250],
        ["Ann", "Bye", 3_602_000, 3_602_500],
        ["Ann", "So", 3_608_000, 3_609_000],
    ]
    assert tables["words"]["confidence"].isna().all()
    assert tables["words"]["utterance_idx"].to_list() == [0, 0, 1, 2]


def test_srt_of_the_library_srt_is_read(tmp_path: Path) -> None:
    """The output of the library srt is read, also gzipped and as bytes without a name."""
    import datetime as dt
    import gzip

    cues = [
        srt.Subtitle(1, dt.timedelta(milliseconds=500), dt.timedelta(seconds=2), "Hi\nthere."),
        srt.Subtitle(2, dt.timedelta(seconds=3), dt.timedelta(seconds=4), "Bye."),
    ]
    data = srt.compose(cues).encode()
    expected = [[None, "Hi there.", 500, 2000], [None, "Bye.", 3000, 4000]]
    assert _rows(_load(tmp_path, "a.srt", data)["utterances"]) == expected
    assert _rows(_load(tmp_path, "a.srt.gz", gzip.compress(data))["utterances"]) == expected
    assert _rows(voxframe.load_utterances(data)) == expected


def test_webvtt_has_voices(tmp_path: Path) -> None:
    """Voice tags are speakers, entities are characters; notes, styles, settings and tags are not text."""
    text = (
        "WEBVTT - a title\n\nNOTE a --> b\nnothing\n\nSTYLE\n::cue { color: red }\n\nintro\n"
        "00:00.500 --> 00:01.250 align:start position:0%\n<v.loud Ann Lee>Hi &amp; <b>hello</b></v>\n\n"
        "01:00:02.000 --> 01:00:02.500\n<v Ann>Yes.</v> <v Bob>No <00:00:02.200>way.\n\n00:05.000 --> 00:06.000\nBye\n"
    )
    with pytest.warns(PayloadWarning, match="impossible times|got the speaker before"):
        turns = _load(tmp_path, "a.vtt", text)["utterances"]
    assert _rows(turns) == [
        ["Ann Lee", "Hi & hello", 500, 1250],
        ["Ann", "Yes.", 3_602_000, 3_602_500],
        ["Bob", "No way.", 3_602_000, 3_602_500],
        ["Bob", "Bye", 5000, 6000],
    ]


def test_webvtt_of_the_library_webvtt_is_read(tmp_path: Path) -> None:
    """The output of webvtt-py is read."""
    file = webvtt.WebVTT()
    file.captions.append(webvtt.Caption("00:00:00.500", "00:00:01.250", ["<v Ann>Hi", "there."]))
    file.save(str(tmp_path / "a.vtt"))
    assert _rows(voxframe.load_utterances(tmp_path / "a.vtt")) == [["Ann", "Hi there.", 500, 1250]]


@pytest.mark.parametrize("layout", ["long_textgrid", "short_textgrid"])
def test_textgrid_of_praatio_is_read(tmp_path: Path, layout: Any) -> None:
    """Both text layouts are read, with quotes in labels and words of a tier named after the speaker."""
    grid = praatio.textgrid.Textgrid()
    grid.addTier(IntervalTier("Ann", [(0.5, 1.25, 'Hi "you".'), (2, 3, "= 5")], 0, 4))
    grid.addTier(IntervalTier("Ann words", [(0.5, 0.75, "Hi"), (0.75, 1.25, '"you".')], 0, 4))
    grid.addTier(IntervalTier("Bob", [(1, 2, "Yes.")], 0, 4))
    grid.save(str(tmp_path / "a.TextGrid"), format=layout, includeBlankSpaces=True)
    tables = voxframe.tables(tmp_path / "a.TextGrid")
    assert _rows(tables["utterances"]) == [
        ["Ann", 'Hi "you".', 500, 1250],
        ["Bob", "Yes.", 1000, 2000],
        ["Ann", "= 5", 2000, 3000],
    ]
    assert _rows(tables["words"])[:3] == [
        ["Ann", "Hi", 500, 750],
        ["Ann", '"you".', 750, 1250],
        ["Bob", "Yes.", 1000, 2000],
    ]
    utf16 = (tmp_path / "a.TextGrid").read_text("utf-8").encode("utf-16")
    assert _rows(_load(tmp_path, "b.TextGrid", utf16)["utterances"]) == _rows(tables["utterances"])


def test_eaf_of_pympi_is_read(tmp_path: Path) -> None:
    """The participant of a tier is the speaker; a tier below it has its words."""
    eaf = Elan.Eaf()
    eaf.remove_tier("default")
    eaf.add_linguistic_type("words", constraints="Included_In")
    eaf.add_tier("A-text", part="Ann")
    eaf.add_annotation("A-text", 500, 1250, "Hi there.")
    eaf.add_tier("A-words", ling="words", parent="A-text", part="Ann")
    eaf.add_annotation("A-words", 500, 750, "Hi")
    eaf.add_annotation("A-words", 750, 1250, "there.")
    eaf.add_tier("Bob")
    eaf.add_annotation("Bob", 2000, 3000, "Bye.")
    eaf.to_file(str(tmp_path / "a.eaf"))
    tables = voxframe.tables(tmp_path / "a.eaf")
    assert _rows(tables["utterances"]) == [["Ann", "Hi there.", 500, 1250], ["Bob", "Bye.", 2000, 3000]]
    assert _rows(tables["words"])[:2] == [["Ann", "Hi", 500, 750], ["Ann", "there.", 750, 1250]]


def test_an_eaf_with_entities_is_refused(tmp_path: Path) -> None:
    """A document type that defines entities is an error."""
    with pytest.raises(PayloadError, match="entities of its own"):
        _load(tmp_path, "a.eaf", '<!DOCTYPE x [<!ENTITY a "b">]><ANNOTATION_DOCUMENT/>')


def test_ctm_has_words_by_recording(tmp_path: Path) -> None:
    """Each recording is a transcript; comments are skipped, and a missing confidence is null."""
    text = ";; comment\nrec1 A 0.50 0.25 Hi 0.9\nrec1 A 0.75 0.50 there. NA\nrec2 1 1.0 0.5 Bye\n"
    words = _load(tmp_path, "a.ctm", text)["words"]
    assert _rows(words, "text", "start_ms", "end_ms", "confidence") == [
        ["Hi", 500, 750, 0.9],
        ["there.", 750, 1250, None],
        ["Bye", 1000, 1500, None],
    ]
    assert [name.rsplit("-", 1)[0] for name in words["transcript_id"]] == ["rec1", "rec1", "rec2"]


def test_stm_has_turns(tmp_path: Path) -> None:
    """Labels and segments without speech are not text."""
    ignored = "rec 1 Bob 2.0 3.0 ignore_time_segment_in_scoring\n"
    text = f";; comment\nrec 1 Ann 0.500 1.250 <o,f0,female> Hi there.\n{ignored}rec 1 Bob 3.0 4.0 Bye\n"
    turns = _load(tmp_path, "a.stm", text)["utterances"]
    assert _rows(turns) == [["Ann", "Hi there.", 500, 1250], ["Bob", "Bye", 3000, 4000]]


def test_rttm_gives_words_their_speakers(tmp_path: Path) -> None:
    """A word gets the speaker who overlaps it longest; RTTM alone is an error that names the function."""
    rttm = "SPEAKER rec 1 0.0 0.6 <NA> <NA> Ann <NA> <NA>\nSPEAKER rec 1 0.6 1.0 <NA> <NA> Bob <NA> <NA>\n"
    words = [
        {"text": "Hi", "start": 100, "end": 400, "confidence": 0.5},
        {"text": "well", "start": 500, "end": 800},
        {"text": "late", "start": 5000, "end": 5100},
        {"text": "when"},
    ]
    found = voxframe.tables(with_speakers({"id": "a", "words": words, "language_code": "en"}, rttm))
    assert _rows(found["words"], "speaker", "confidence") == [["Ann", 0.5], ["Bob", None], _NO_TIMES, _NO_TIMES]
    assert found["transcripts"]["language_code"].to_list() == ["en"]
    kept = with_speakers({"words": [words[0] | {"text": " Hi", "cluster_id": 3}, words[3] | {"text": None}]}, rttm)
    assert kept["words"] == [
        {"text": " Hi", "start": 100, "end": 400, "confidence": 0.5, "speaker": "Ann", "cluster_id": 3},
        {"text": None, "start": None, "end": None, "confidence": None, "speaker": None},
    ]
    assert [turn["words"] for turn in kept["utterances"]] == [[word] for word in kept["words"]]
    with pytest.raises(PayloadError, match="no recording 'x'; it has rec"):
        with_speakers({"words": words}, rttm, "x")
    alone = _load(tmp_path, "a.rttm", rttm)["utterances"]
    assert _rows(alone) == [["Ann", None, 0, 600], ["Bob", None, 600, 1600]]


@pytest.mark.parametrize(
    ("payload", "text", "said"),
    [
        ({"words": [], "id": "a"}, "talk.rttm", "no line that begins with SPEAKER; pass the content of an RTTM file"),
        ({"words": []}, b"SPEAKER", "no line that begins with SPEAKER"),
        ({"words": []}, "SPEAKER rec 1 0.0", "the speaker, but is 'SPEAKER rec 1 0.0'"),
        ({"words": []}, "SPEAKER rec 1 soon 0.6 <NA> <NA> Ann", "but is 'SPEAKER rec 1 soon 0.6"),
        ({"id": "a"}, "SPEAKER rec 1 0.0 0.6 <NA> <NA> Ann", "must be a dict with the list words, got a dict without"),
        (b"{}", "SPEAKER rec 1 0.0 0.6 <NA> <NA> Ann", "must be a dict with the list words, got bytes"),
    ],
)
def test_what_cannot_be_joined_to_speakers_is_named(payload: Any, text: Any, said: str) -> None:
    """A payload without words, a text that is no RTTM, and a line that is not complete are errors."""
    with pytest.raises(PayloadError, match=re.escape(said)):
        with_speakers(payload, text)


def test_audacity_labels_have_turns(tmp_path: Path) -> None:
    """Labels with a name and a colon have a speaker; lines with frequencies are skipped."""
    text = "0.500000\t1.250000\tAnn: Hi there.\n\\\t100.0\t200.0\n2.0\t2.5\tapplause\n3\t4\tAnn: Bye.\n"
    turns = _load(tmp_path, "labels.txt", text)["utterances"]
    assert _rows(turns) == [
        ["Ann", "Hi there.", 500, 1250],
        [None, "applause", 2000, 2500],
        ["Ann", "Bye.", 3000, 4000],
    ]
    assert _rows(_load(tmp_path, "b.txt", "-0.5\t1.25\tHi\n")["utterances"]) == [[None, "Hi", -500, 1250]]
    with pytest.raises(PayloadError, match="line 2 must be start, end and label, between tabs, but is 'Bye'"):
        _load(tmp_path, "labels.txt", "0.5\t1.25\tHi\nBye\n")


def test_plain_text_has_turns_by_name(tmp_path: Path) -> None:
    """A name and a colon begin a turn, other lines continue it; times are unknown."""
    text = "Interview, 3 May\n\nANN: Hi there.\nHow are you?\nDr. Bob Lee:\nfine: at 10:30.\nSpeaker 2: Bye.\n"
    turns = _load(tmp_path, "a.txt", text)["utterances"]
    assert _rows(turns) == [
        [None, "Interview, 3 May", None, None],
        ["ANN", "Hi there. How are you?", None, None],
        ["Dr. Bob Lee", "fine: at 10:30.", None, None],
        ["Speaker 2", "Bye.", None, None],
    ]


@pytest.mark.parametrize("form", ["srt", "vtt", "textgrid", "eaf", "stm", "ctm", "audacity"])
def test_our_own_export_is_read(tmp_path: Path, form: str) -> None:
    """What `voxframe.export` writes is read with the same text, speakers and times, as far as the format has them."""
    words = voxframe.load_words(Path(__file__).parents[2] / "data/payloads/interview.json")
    text = getattr(voxframe.export, form)(words)
    suffix = {"textgrid": "TextGrid", "audacity": "txt"}.get(form, form)
    with warnings.catch_warnings(action="ignore"):
        tables = _load(tmp_path, f"a.{suffix}", text)
    assert tables["words"]["text"].to_list() == words["text"].to_list()
    if form != "ctm":
        assert tables["words"]["speaker"].dropna().to_list() != []
        assert set(tables["words"]["speaker"].dropna()) == set(words["speaker"])
    if form in ("textgrid", "eaf", "ctm"):
        assert _rows(tables["words"], "start_ms", "end_ms") == _rows(words, "start_ms", "end_ms")
    if form == "ctm":
        assert tables["words"]["confidence"].to_list() == words["confidence"].to_list()


@pytest.mark.parametrize("form", ["textgrid", "eaf"])
def test_words_of_a_script_without_spaces_keep_their_times(form: str) -> None:
    """The words of a Chinese turn, whose text has no spaces between them, are read with their times."""
    said = [("你好", 0, 400), ("世界", 500, 900), ("pandas", 900, 1300), ("吧。", 1300, 1500)]
    words = [{"text": text, "start": start, "end": end, "speaker": "A"} for text, start, end in said]
    exported = getattr(voxframe.export, form)(voxframe.load_words({"id": "a", "words": words})).encode()
    read = voxframe.load_words(converted(exported))
    assert _rows(read, "text", "start_ms", "end_ms") == [list(word) for word in said]


def test_a_folder_of_files_is_added(tmp_path: Path) -> None:
    """`Corpus.add` takes a folder of such files, also of texts, and keeps the originals."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.srt").write_text("1\n00:00:00,500 --> 00:00:01,250\nHi\n")
    (folder / "b.ctm").write_text("x 1 0.0 0.5 one\ny 1 0.0 0.5 two\n")
    (folder / "notes.txt").write_text("ANN: no\nANN: yes\n")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert corpus.add(folder).added == 4
    assert sorted(corpus.words()["text"]) == ["Hi", "no", "one", "two", "yes"]
    originals = {corpus.raw.original(transcript_id) for transcript_id in corpus}
    assert originals == {(folder / name).read_bytes() for name in ("a.srt", "b.ctm", "notes.txt")}


def test_other_encodings_are_named(tmp_path: Path) -> None:
    """A text that is neither UTF-8 nor UTF-16 is an error with its path and what to do, and is left out of several."""
    data = "1\n00:00:00,500 --> 00:00:01,250\nZoë\n".encode("latin-1")
    with pytest.raises(PayloadError, match=r"/a\.srt': the text is neither UTF-8 .*; save it as UTF-8, or convert it"):
        _load(tmp_path, "a.srt", data)
    good = {"id": "good", "words": [{"text": "Hi"}]}
    with pytest.warns(PayloadWarning, match=r"1 of 2 payloads .* left out: .*/a\.srt': the text is neither UTF-8"):
        assert voxframe.load_words([tmp_path / "a.srt", good])["text"].to_list() == ["Hi"]
    with pytest.raises(PayloadError, match=r"^the text is neither UTF-8"):
        voxframe.load_words(data)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.srt",
            "1\n00:00:01 -> 00:00:02\nHello\n",
            "not a valid SRT file: line 2 should be the times of the first cue",
        ),
        ("a.srt", "\nHello there\n", "but is 'Hello there'"),
        ("a.vtt", "1\n00:01.000 --> x\nHi\n", "not a valid WebVTT file: line 1 should be WEBVTT, but is '1'"),
        ("a.TextGrid", "hello", 'not a valid TextGrid file: line 1 should be File type = "ooTextFile", but is'),
        ("a.eaf", "<html>", "not a valid EAF file: line 1 should be <ANNOTATION_DOCUMENT ...>, but is '<html>'"),
        ("a.ctm", "x 1 0.0 0.5 Hi\nx 1 0.6\n", "line 2 must begin with recording, channel, start, duration, word, but"),
        ("a.ctm", ";; no words\n", "the file has the form of ctm, but no words; check that it is complete"),
        ("a.stm", "x\n", "line 1 must begin with recording, channel, speaker, start, end, but is 'x'"),
        ("a.srt", " \n", "the file is empty; export or fetch the transcript again"),
        ("a.srt", "\ufeff", "the file is empty"),
        ("a.vtt", "\ufeff\u00a0\n", "the file is empty"),
        ("a.txt", "\ufeff\n", "the file is empty"),
        ("a.txt", "", "the file is empty"),
        ("a.json.gz", "", "the file is empty"),
    ],
)
def test_a_file_that_is_not_of_its_format_is_named(name: str, text: str, said: str, tmp_path: Path) -> None:
    """A file whose content does not fit its suffix, or that is empty, is the same error for loaders and `add`."""
    file = tmp_path / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    with pytest.raises(PayloadError, match=re.escape(said)) as caught:
        voxframe.load_words(file)
    ((path, reason),) = voxframe.Corpus(tmp_path / "corpus").add(file).left_out
    assert str(caught.value) == f"{path!r}: {reason}"


def test_an_incomplete_textgrid_says_so(tmp_path: Path) -> None:
    """A TextGrid that announces two intervals and has none is an error that says that it ends too early."""
    text = 'File type = "ooTextFile"\nObject class = "TextGrid"\n0\n1\n<exists>\n1\n"IntervalTier"\n"x"\n0\n1\n2\n'
    with pytest.raises(PayloadError, match="the TextGrid ends before its last tier is complete"):
        _load(tmp_path, "a.TextGrid", text.encode())


def test_a_time_begins_a_turn_without_a_name() -> None:
    """In plain text, a line that begins with a time is a turn of its own; lines without one continue it."""
    text = "Ann: Good morning.\n[0:01:15] Good night.\nSleep well.\nAnn: Bye."
    for carry, speaker in ((True, "Ann"), (False, None)):
        with pytest.warns(PayloadWarning, match="1 caption or line of 3") if carry else nullcontext():
            turns = text_readers.plain(text, carry=carry)["utterances"]
        assert [(turn["speaker"], turn["text"]) for turn in turns] == [
            ("Ann", "Good morning."),
            (speaker, "Good night. Sleep well."),
            ("Ann", "Bye."),
        ]


def test_fractions_of_a_second_may_be_short() -> None:
    """A fraction of one digit counts tenths of a second, as players read it."""
    (turn,) = text_readers.srt("1\n00:00:01,5 --> 00:00:02,25\nHello.\n")["utterances"]
    assert (turn["start"], turn["end"]) == (1500, 2250)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<inaudible> yes <crosstalk 00:12>", "<inaudible> yes <crosstalk 00:12>"),
        ("a <b and c> d <3 <bold> <string>", "a <b and c> d <3 <bold> <string>"),
        (
            '<I>Hi</I> <font color="red">you</font> <c.yellow>and</c> {\\an8}me<br/>now <00:01.500>on',
            "Hi you and me now on",
        ),
    ],
)
def test_only_tags_of_players_are_removed_from_srt(content: str, text: str) -> None:
    """Other words between "<" and ">" are text, because SRT has no escapes and our own export writes them so."""
    cue = f"1\n00:00:01,000 --> 00:00:02,000\n{content}\n"
    assert [turn["text"] for turn in text_readers.srt(cue)["utterances"]] == [text]
    said = {"id": "a", "words": [{"text": word, "start": 0, "end": 9} for word in text.split()]}
    with warnings.catch_warnings(action="ignore"):
        exported = voxframe.export.srt(voxframe.load_words(said))
    assert text_readers.srt(exported)["text"] == text


def test_fractions_of_a_second_may_be_long_or_missing() -> None:
    """Times as Python writes a timedelta, with microseconds or without a fraction, are read to the millisecond."""
    first, last = timedelta(seconds=1, microseconds=234567), timedelta(hours=101)
    text = f"1\n{first} --> {timedelta(seconds=2)}\nHello.\n\n2\n101:00:00 --> 101:00:00,5\nBye.\n"
    found = [(turn["text"], turn["start"], turn["end"]) for turn in text_readers.srt(text)["utterances"]]
    hours = last // timedelta(milliseconds=1)
    assert found == [("Hello.", 1234, 2000), ("Bye.", hours, hours + 500)]


def test_the_times_of_a_cue_end_the_cue_before() -> None:
    """In WebVTT, a cue needs no empty line before the next one.

    Source: https://www.w3.org/TR/webvtt1/, section 6.1, "collect a WebVTT block".
    """
    text = "WEBVTT\n00:01.000 --> 00:02.000\nHi\n00:02.000 --> 00:03.000\nthere\n"
    turns = text_readers.webvtt(text)["utterances"]
    assert [(turn["text"], turn["start"], turn["end"]) for turn in turns] == [("Hi", 1000, 2000), ("there", 2000, 3000)]


@pytest.mark.parametrize("name", ["a.srt", "a.TextGrid", "a.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_without_a_byte_order_mark_is_named(name: str, encoding: str) -> None:
    """Text in UTF-16 without a byte order mark, or in UTF-32, is the error of other encodings."""
    with pytest.raises(PayloadError, match="the text is neither UTF-8 nor UTF-16 with a byte order mark"):
        converted("1\n00:00:01,000 --> 00:00:02,000\nHi\n".encode(encoding), name)


def test_a_time_beyond_64_bits_is_null(tmp_path: Path) -> None:
    """A time that no column can hold is null with a warning, and the text is kept."""
    with pytest.warns(PayloadWarning, match="not an integer of 64 bits"):
        words = _load(tmp_path, "a.ctm", "rec 1 1e300 0.25 Hi\nrec 1 1.0 0.25 there\n")["words"]
    assert _rows(words, "text", "start_ms") == [["Hi", None], ["there", 1000]]


def test_line_separators_inside_a_text_of_stm(tmp_path: Path) -> None:
    """Only LF, CRLF and CR end a line of STM, so a text may have other line separators."""
    turns = _load(tmp_path, "a.stm", "rec 1 Ann 0.5 1.25 Hi\u2028there\x85you\n")["utterances"]
    assert _rows(turns) == [["Ann", "Hi there you", 500, 1250]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_encodings_of_captions(tmp_path: Path, end: str, encoding: str) -> None:
    """LF, CRLF and CR end a line, with and without a byte order mark."""
    cues = "00:00:01{0}000 --> 00:00:02{0}000\nZoë\nhere\n\n00:00:03{0}000 --> 00:00:04{0}000\nBye\n"
    expected = [[None, "Zoë here", 1000, 2000], [None, "Bye", 3000, 4000]]
    for name, text in (("a.srt", cues.format(",")), ("a.vtt", "WEBVTT\n\n" + cues.format("."))):
        data = text.replace("\n", end).encode(encoding)
        assert _rows(_load(tmp_path, name, data)["utterances"]) == expected


def test_blank_lines_in_srt() -> None:
    """The text of a cue lasts until the next cue, as in the library srt; a number before the times is not text."""
    text = "1\n00:00:01,000 --> 00:00:02,000\nHi\n\nthere\n\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n7\n"
    turns = text_readers.srt(text)["utterances"]
    assert [turn["text"].split() for turn in turns] == [cue.content.split() for cue in srt.parse(text)]


def test_regions_and_spans_of_webvtt() -> None:
    """Regions, identifiers, settings and spans of a cue are not text.

    Source: https://www.w3.org/TR/webvtt1/, sections 1.4, 4.1 and 5.
    """
    text = (
        "WEBVTT\nKind: captions\n\nREGION\nid:left\nwidth:40%\n\n1 - first\n00:01.000 --> 00:02.000 region:left\n"
        "<v.loud Esme>It's <c.yellow>blue</c> &lt;now&gt;</v>\n\n"
        "00:03.000 --> 00:04.000\n<lang en>No</lang> <ruby>漢<rt>kan</rt></ruby>\n"
    )
    turns = text_readers.webvtt(text, carry=False)["utterances"]
    assert [(turn["speaker"], turn["text"]) for turn in turns] == [("Esme", "It's blue <now>"), (None, "No 漢kan")]


def test_labels_without_text_are_no_turns() -> None:
    """Audacity writes a label without text as two times and a tab."""
    turns = text_readers.audacity("1.0\t1.0\t\n2.0\t3.0\n4.0\t5.0\tHi\n")["utterances"]
    assert [(turn["text"], turn["start"]) for turn in turns] == [("Hi", 4000)]


def test_alternatives_of_sclite(tmp_path: Path) -> None:
    """Of alternatives the first counts, "@" is no word, gaps are no turns, and a log-likelihood is no confidence.

    Source: https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm, "ctm" and "stm".
    """
    marks = [f"7654 A * * {mark}" for mark in ("<ALT_BEGIN>", "<ALT>", "<ALT_END>")]
    lines = [
        marks[0],
        "7654 A 12.00 0.34 UM",
        marks[1],
        "7654 A 12.00 0.34 UH",
        marks[2],
        "7654 A 13.30 0.5 CAN -6.763",
    ]
    words = _load(tmp_path, "a.ctm", "\n".join(lines))["words"]
    assert _rows(words, "text", "start_ms", "confidence") == [["UM", 12_000, None], ["CAN", 13_300, None]]
    gap = "rec 1 inter_segment_gap 0 16 <o,,unknown>\n"
    text = gap + "rec 1 Ann 16 17 <o,f0,male> { { i'm / i am } / @ } here { @ / uh }\n"
    assert _rows(_load(tmp_path, "a.stm", text)["utterances"]) == [["Ann", "i'm here", 16_000, 17_000]]


def test_channels_of_stm_are_in_order(tmp_path: Path) -> None:
    """STM is sorted by channel; turns are sorted by time."""
    turns = _load(tmp_path, "a.stm", "rec A Ann 5 6 later\nrec B Bob 1 2 first\n")["utterances"]
    assert _rows(turns, "text", "channel") == [["first", "B"], ["later", "A"]]


def test_points_comments_and_old_headers_of_textgrid(tmp_path: Path) -> None:
    """Points have the same start and end; comments and texts outside of quotes are ignored.

    Source: https://www.fon.hum.uva.nl/praat/manual/TextGrid_file_formats.html
    """
    text = (
        'File type = "ooTextFile short"\n"TextGrid"\n\n0 2.3 ! the time domain, 0 to 2.3 s\n<exists>\n2 tiers\n'
        '"IntervalTier" "Mary" 0 2.3 1 interval coming\n0 2.3 "He ""said"" so"\n'
        '"TextTier" "bell" 0 2.3 1 point coming\n1.5 "ding" ! 3 times\n'
    )
    expected = [["Mary", 'He "said" so', 0, 2300], ["bell", "ding", 1500, 1500]]
    assert _rows(_load(tmp_path, "a.TextGrid", text)["utterances"]) == expected
    with pytest.raises(PayloadError, match="save it in Praat"):
        _load(tmp_path, "a.TextGrid", '"ooTextFile"\n"Praat chronological TextGrid text file"\n0 2.3\n')


@pytest.mark.parametrize(("prefix", "speakers"), [("{} - ", ["Ann", "Ann", "Bob"]), ("", [None, None, None])])
def test_textgrids_of_the_montreal_forced_aligner(tmp_path: Path, prefix: str, speakers: list[str | None]) -> None:
    """Tiers of words give words in turns of their speaker; phones beside them are left out.

    Source: https://montreal-forced-aligner.readthedocs.io, "Corpus formats and structure".
    """
    grid = praatio.textgrid.Textgrid()
    said = {"Ann": [(0, 0.5, "good"), (0.5, 1, "day")], "Bob": [(1, 2, "hi")]}
    if not prefix:
        said = {"": [*said["Ann"], *said["Bob"]]}
    for name, words in said.items():
        grid.addTier(IntervalTier(f"{prefix.format(name)}words", words, 0, 2))
        grid.addTier(IntervalTier(f"{prefix.format(name)}phones", [(0.0, 0.2, "g")], 0, 2))
    grid.save(str(tmp_path / "a.TextGrid"), format="short_textgrid", includeBlankSpaces=True)
    tables = voxframe.tables(tmp_path / "a.TextGrid")
    assert tables["words"]["text"].to_list() == ["good", "day", "hi"]
    assert [row[0] for row in _rows(tables["words"], "speaker")] == speakers
    assert tables["utterances"]["text"].to_list() == (["good day", "hi"] if prefix else [])


def test_dependent_tiers_of_eaf(tmp_path: Path) -> None:
    """Words below a tier belong to its speaker, also if a time between two of them is not aligned.

    A symbolic tier below segments without text has their times. Other layers, such as a translation, are no turns.
    Source: https://www.mpi.nl/tools/elan/EAF_Annotation_Format_3.0_and_ELAN.pdf, sections 2.4 and 2.5.
    """
    slots = {1: 500, 2: 750, 3: None, 4: 1250, 5: 2000, 6: 3000}
    times = "".join(
        f'<TIME_SLOT TIME_SLOT_ID="ts{n}"{f" TIME_VALUE={chr(34)}{t}{chr(34)}" if t else ""}/>'
        for n, t in slots.items()
    )

    def tier(name: str, parent: str, annotations: list[tuple[str, str]]) -> str:
        found = "".join(
            f"<ANNOTATION><{'REF' if 'REF=' in place else 'ALIGNABLE'}_ANNOTATION {place}><ANNOTATION_VALUE>{text}"
            f"</ANNOTATION_VALUE></{'REF' if 'REF=' in place else 'ALIGNABLE'}_ANNOTATION></ANNOTATION>"
            for place, text in annotations
        )
        below = f' PARENT_REF="{parent}"' if parent else ""
        return f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="t"{below}>{found}</TIER>'

    def timed(n: str, first: int, last: int) -> str:
        return f'ANNOTATION_ID="{n}" TIME_SLOT_REF1="ts{first}" TIME_SLOT_REF2="ts{last}"'

    tiers = tier("Ann-translation", "Ann", [('ANNOTATION_ID="t" ANNOTATION_REF="a"', "Well, you?")])
    tiers += tier("Ann", "", [(timed("a", 1, 4), "Und du selbst?")])
    words = [(timed("w3", 3, 4), "selbst?"), (timed("w1", 1, 2), "Und"), (timed("w2", 2, 3), "du")]
    tiers += tier("Ann-words", "Ann", words)
    tiers += tier("Bob-segments", "", [(timed("b", 5, 6), "")])
    tiers += tier("Bob-text", "Bob-segments", [('ANNOTATION_ID="x" ANNOTATION_REF="b"', "Ja.")])
    text = f"<ANNOTATION_DOCUMENT><TIME_ORDER>{times}</TIME_ORDER>{tiers}</ANNOTATION_DOCUMENT>"
    tables = _load(tmp_path, "a.eaf", text)
    assert _rows(tables["utterances"]) == [["Ann", "Und du selbst?", 500, 1250], ["Bob", "Ja.", 2000, 3000]]
    assert _rows(tables["words"])[:3] == [
        ["Ann", "Und", 500, 750],
        ["Ann", "du", 750, 861],  # 500 ms for 2 and 7 characters
        ["Ann", "selbst?", 861, 1250],
    ]


def _tier(attributes: str, annotations: list[tuple[int, int, str]]) -> str:
    """Return a tier of EAF with annotations between numbered time slots."""
    found = "".join(
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{first}" TIME_SLOT_REF1="ts{first}" '
        f'TIME_SLOT_REF2="ts{last}"><ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>'
        for first, last, text in annotations
    )
    return f'<TIER LINGUISTIC_TYPE_REF="t" {attributes}>{found}</TIER>'


def _eaf(tiers: str, times: list[int | None]) -> str:
    values = ("" if time is None else f'TIME_VALUE="{time}"' for time in times)
    slots = "".join(f'<TIME_SLOT TIME_SLOT_ID="ts{n}" {value}/>' for n, value in enumerate(values))
    return f"<ANNOTATION_DOCUMENT><TIME_ORDER>{slots}</TIME_ORDER>{tiers}</ANNOTATION_DOCUMENT>"


def test_annotations_of_eaf_without_a_start_keep_their_place(tmp_path: Path) -> None:
    """A turn whose start is not aligned follows the turn before it on its tier, and shares its time."""
    tiers = _tier('TIER_ID="Ann"', [(0, 1, "one"), (1, 2, "two"), (2, 3, "three")])
    text = _eaf(tiers + _tier('TIER_ID="Bob"', [(4, 5, "four")]), [1000, 2000, None, 3000, 4000, 5000])
    assert _rows(_load(tmp_path, "a.eaf", text)["utterances"]) == [
        ["Ann", "one", 1000, 2000],
        ["Ann", "two", 2000, 2375],  # 1000 ms for 3 and 5 characters
        ["Ann", "three", 2375, 3000],
        ["Bob", "four", 4000, 5000],
    ]


def test_all_tiers_of_eaf_are_read(tmp_path: Path) -> None:
    """Two tiers of one name are both read, and words have the participant of the tier that they belong to."""
    words = _tier('TIER_ID="words" PARENT_REF="A"', [(0, 1, "Hi"), (1, 2, "there")])
    tiers = _tier('TIER_ID="A" PARTICIPANT="Ann"', [(0, 2, "Hi there")]) + words
    tables = _load(tmp_path, "a.eaf", _eaf(tiers, [0, 500, 900]))
    assert _rows(tables["words"]) == [["Ann", "Hi", 0, 500], ["Ann", "there", 500, 900]]
    twice = _tier('TIER_ID="A"', [(0, 1, "Hi")]) + _tier('TIER_ID="A"', [(1, 2, "there")])
    assert _load(tmp_path, "b.eaf", _eaf(twice, [0, 500, 900]))["utterances"]["text"].to_list() == ["Hi", "there"]


def test_only_words_inside_a_turn_are_its_words(tmp_path: Path) -> None:
    """Words that begin before a turn or end after it, or have another text, are not those of the turn."""
    turn = IntervalTier("Ann", [(1, 2, "good day")], 0, 4)
    for words in ([(0.9, 1.5, "good"), (1.5, 2, "day")], [(1, 1.5, "good"), (1.5, 2.1, "day")], [(1, 1.5, "good")]):
        grid = praatio.textgrid.Textgrid()
        grid.addTier(turn)
        grid.addTier(IntervalTier("Ann words", words, 0, 4))
        grid.save(str(tmp_path / "a.TextGrid"), format="long_textgrid", includeBlankSpaces=True)
        found = voxframe.load_words(tmp_path / "a.TextGrid")
        assert _rows(found) == [["Ann", "good", 1000, 1571], ["Ann", "day", 1571, 2000]]
        assert found["timing"].to_list() == ["segment", "segment"]


_Rows = list[tuple[float, float, str]]
_HEY_YOU: _Rows = [(0, 1, "hey"), (1, 3, "you")]


def _tables_of_tiers(form: str, tiers: dict[str, _Rows]) -> dict[str, pd.DataFrame]:
    """Return the tables of a file with these tiers, written by praatio (TextGrid) or pympi (EAF)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{form}"
        if form == "eaf":
            document = Elan.Eaf()
            for name, rows in tiers.items():
                document.add_tier(name)
                for start, end, text in rows:
                    document.add_annotation(name, round(1000 * start), round(1000 * end), text)
            document.to_file(str(path))
        else:
            grid = praatio.textgrid.Textgrid()
            for name, rows in tiers.items():
                grid.addTier(IntervalTier(name, rows, 0, 9))
            grid.save(str(path), format="long_textgrid", includeBlankSpaces=True)
        return voxframe.tables(path)


@pytest.mark.parametrize("form", ["TextGrid", "eaf"])
@pytest.mark.parametrize("name", ["words", "Anna - words"])
@pytest.mark.parametrize(
    "annotations",
    [[(1.5, 1.7, "door")], [(0, 1, "creaky"), (1, 3, "hey you")], [(n, n + 0.5, "nod") for n in range(6)], _HEY_YOU],
)
def test_annotations_beside_words_are_kept_apart(form: str, name: str, annotations: _Rows) -> None:
    """A tier with other texts than the words, or with one annotation per word, adds no turns and is in `extra`."""
    alone = _tables_of_tiers(form, {name: _HEY_YOU})
    for tiers in ({name: _HEY_YOU, "notes": annotations}, {"notes": annotations, name: _HEY_YOU}):
        tables = _tables_of_tiers(form, tiers)
        columns = ("text", "start_ms", "end_ms", "speaker", "timing")
        assert _rows(tables["words"], *columns) == _rows(alone["words"], *columns)
        assert _rows(tables["utterances"]) == _rows(alone["utterances"])
        if annotations is not _HEY_YOU:
            assert "notes" in tables["transcripts"]["extra"][0]


@pytest.mark.parametrize("form", ["TextGrid", "eaf"])
@pytest.mark.parametrize(("text", "spelled"), [("hey you", ["hey", "you"]), ("Hey, you!", ["Hey,", "you!"])])
def test_a_tier_with_the_texts_of_the_words_holds_them(form: str, text: str, spelled: list[str]) -> None:
    """Words have the times of their tier, and the speaker and the spelling of the tier that has their text."""
    tables = _tables_of_tiers(form, {"Anna": [(0, 3, text)], "word": _HEY_YOU, "notes": [(0, 1, "creaky")]})
    assert _rows(tables["utterances"]) == [["Anna", text, 0, 3000]]
    assert _rows(tables["words"]) == [["Anna", spelled[0], 0, 1000], ["Anna", spelled[1], 1000, 3000]]
    assert tables["words"]["timing"].to_list() == ["word", "word"]


def test_words_are_held_once_and_none_is_lost() -> None:
    """One tier of words serves several speakers; a second layer repeats no word; words in no turn are turns."""
    words = [*_HEY_YOU, (3, 4, "yes"), (5, 6, "good"), (6, 7, "bye")]
    tiers = {"Anna": [(0, 3, "hey you")], "Bob": [(3, 4, "yes")], "phrases": [(0, 3, "hey you")], "words": words}
    tables = _tables_of_tiers("TextGrid", tiers)
    assert _rows(tables["utterances"]) == [
        ["Anna", "hey you", 0, 3000],
        ["Bob", "yes", 3000, 4000],
        [None, "good bye", 5000, 7000],
    ]
    assert tables["words"]["text"].to_list() == ["hey", "you", "yes", "good", "bye"]


def test_captions_of_youtube_are_read_once() -> None:
    """Lines that roll up are read once, and words have the times of their timestamps; a line with a blank ends no cue.

    Source: the layout of generated captions that https://github.com/yt-dlp/yt-dlp saves with `--write-auto-subs`.
    """
    at = " align:start position:0%\n"
    text = (
        f"WEBVTT\nKind: captions\nLanguage: en\n\n00:00:00.160 --> 00:00:02.070{at} \n"
        f"hello<00:00:00.480><c> everyone</c>\n\n00:00:02.070 --> 00:00:02.080{at}hello everyone\n \n\n"
        f"00:00:02.080 --> 00:00:04.000{at}hello everyone\n"
        "today<00:00:02.480><c> we</c><00:00:02.600><c>'re here</c>\n\n"
        f"00:00:04.000 --> 00:00:04.010{at}today we're here\n \n\n00:00:09.000 --> 00:00:10.000{at}today we're here\n"
    )
    turns = text_readers.webvtt(text)["utterances"]
    assert [(turn["text"], turn["start"], turn["end"]) for turn in turns] == [
        ("hello everyone", 160, 2070),
        ("today we're here", 2080, 4000),
        ("today we're here", 9000, 10_000),
    ]
    words = [(word["text"], word["start"]) for turn in turns[:2] for word in turn["words"]]
    assert words == [("hello", 160), ("everyone", 480), ("today", 2080), ("we're", 2480), ("here", None)]


@pytest.mark.parametrize(("data", "name"), [("x", "a.txt"), (None, ""), (b"x", 5), (b"x", None)])
def test_a_file_is_bytes_and_a_name(data: Any, name: Any) -> None:
    """Text instead of bytes, and a name that is no text, are refused."""
    with pytest.raises(PayloadError, match="a file is given as its bytes and its name, not as"):
        converted(data, name)


def test_short_answers_are_turns_and_words_without_a_known_name_are_words(tmp_path: Path) -> None:
    """A speaker with answers of one word beside another's talk has turns; words that a turn consists of are in it."""

    def turns_of(tiers: dict[str, list[tuple[float, float, str]]]) -> pd.DataFrame:
        grid = praatio.textgrid.Textgrid()
        for name, entries in tiers.items():
            grid.addTier(IntervalTier(name, entries, 0, 12))
        grid.save(str(tmp_path / "a.TextGrid"), format="long_textgrid", includeBlankSpaces=True)
        return voxframe.load_utterances(tmp_path / "a.TextGrid", corpus=None)

    text = "I tell you part of it".split()
    talk = [(2.0 * n, 2.0 * n + 1, " ".join(text)) for n in range(6)]
    answers = [(2 * n + 1.2, 2 * n + 1.6, "yeah") for n in range(6)]
    turns = turns_of({"Bob": talk, "Ann": answers})
    assert turns.groupby("speaker").size().to_dict() == {"Ann": 6, "Bob": 6}
    words = [(low + n / 6, low + (n + 1) / 6, word) for low, _, _ in talk for n, word in enumerate(text)]
    turns = turns_of({"ORT": words, "Bob": talk})
    assert turns["speaker"].tolist() == ["Bob"] * 6
    assert turns["word_count"].tolist() == [6] * 6
