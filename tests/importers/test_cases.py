"""Files of other tools that caused trouble, and the formats of transcription tools and tables."""

# ruff: noqa: RUF005, ISC004, E501  concatenation and long lines keep the documents short

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voxframe
from voxframe.errors import OptionError, PayloadError, PayloadWarning
from voxframe.importers import converted, from_table

_CASES = Path(__file__).parent / "cases"


def _rows(df: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    found = df[[*columns]].astype(object)
    return list(found.where(found.notna(), None).itertuples(index=False, name=None))


def _words(name: str) -> pd.DataFrame:
    return voxframe.load_words(_CASES / name)


def _turns(data: str, name: str) -> list[tuple[Any, ...]]:
    """Return speaker, text, start and end in ms of the turns of a file with this name and content."""
    with warnings.catch_warnings(action="ignore", category=PayloadWarning):
        payload = converted(data.encode(), name)
        return _rows(voxframe.load_utterances(payload), "speaker", "text", "start_ms", "end_ms")


def test_a_pipeline_of_transformers() -> None:
    """Chunks of one word are words; the end of the last one is unknown."""
    rows = _rows(_words("transformers-pipeline.json"), "text", "start_ms", "end_ms")
    assert rows == [("Do", 0, 500), ("it", 500, 900), ("now", 900, None)]


def test_a_dash_of_rev_is_no_speaker() -> None:
    """`<v ->` is a change of speaker and not a name."""
    turns = voxframe.load_utterances(_CASES / "rev-dash.vtt")
    assert _rows(turns, "speaker", "text") == [(None, "The synthesis"), (None, "is summarised here")]


def test_the_offset_of_media_in_elan() -> None:
    """Times are those of the recording; a boundary that was not measured lies between its neighbours, and says so."""
    turns = voxframe.load_utterances(_CASES / "elan-offset.eaf")
    assert turns["start_ms"][0] == 1500
    assert turns["end_ms"][1] == 3500
    assert turns["end_ms"][0] == turns["start_ms"][1] == 1500 + round(2000 * 9 / 19)  # characters of the words
    assert turns["timing"].to_list() == ["shared", "shared"]


def test_channels_of_amazon_without_speakers() -> None:
    """Each channel is a turn; words have their channel."""
    tables = voxframe.tables(_CASES / "aws-channels.json")
    assert _rows(tables["words"], "text", "channel", "start_ms")[::3] == [
        ("When", "ch_0", 12_282),
        ("It", "ch_1", 13_000),
    ]
    assert len(tables["words"]) == 6
    assert tables["utterances"]["text"].to_list() == ["When you try.", "It seems so."]


def test_numbers_that_whisperx_does_not_time() -> None:
    """A number lies between its neighbours, is marked, and belongs to the speaker of the segment."""
    words = _words("whisperx-number.json")
    assert _rows(words, "text", "start_ms", "end_ms", "timing")[1] == ("2266", 41_300, 42_700, "segment")
    assert set(words["speaker"]) == {"SPEAKER_01"}


def test_a_name_lasts_until_the_next() -> None:
    """A caption without a name continues the turn; words stay within their caption; the import counts such captions."""
    with pytest.warns(PayloadWarning, match="1 caption or line of 4 without a speaker got the speaker before"):
        tables = voxframe.tables(_CASES / "two-cues.srt")
    assert tables["utterances"]["speaker"].to_list() == ["Bekah", "Dan", "Bekah"]
    second = tables["words"].query("text == 'and' or text == 'second.'")
    assert (second["start_ms"].iloc[0], second["end_ms"].iloc[1]) == (3000, 4500)
    left = json.loads(converted((_CASES / "two-cues.srt").read_bytes(), "a.srt", carry=False))
    assert [turn["speaker"] for turn in left["utterances"]] == ["Bekah", None, "Dan", "Bekah"]


@pytest.mark.parametrize(
    ("name", "speakers"),
    [
        ("zoom.vtt", ["Anna Smith", "Ben Low", "Anna Smith"]),
        ("whisperx.srt", ["SPEAKER_00", "SPEAKER_01", "SPEAKER_00"]),
        ("segments-with-names.json", ["Eoin", "Luciano"]),
    ],
)
def test_names_before_texts_and_beside_segments(name: str, speakers: list[str]) -> None:
    """Names are in `speaker` and not in the text."""
    turns = voxframe.load_utterances(_CASES / name)
    assert turns["speaker"].to_list() == speakers
    assert not turns["text"].str.contains("Smith|SPEAKER|spk", regex=True).any()


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
def test_a_prefix_that_does_not_repeat_is_text(name: str) -> None:
    """One "Note: " among many captions is no name."""
    cues = [f"0:0{n}:00,000 --> 0:0{n}:02,000\n{text}\n" for n, text in enumerate(["Note: it rains", "a", "b", "c"])]
    text = "\n".join(cues).replace(",", ".") if name == "a.vtt" else "\n".join(cues)
    turns = _turns(f"WEBVTT\n\n{text}" if name == "a.vtt" else text, name)
    assert [turn[:2] for turn in turns][:2] == [(None, "Note: it rains"), (None, "a")]


def _captions(texts: list[str], name: str) -> list[tuple[Any, ...]]:
    """Return speaker and text of captions of one second, one every ten seconds."""
    cues = [f"00:{n // 6:02}:{n % 6}0.000 --> 00:{n // 6:02}:{n % 6}1.000\n{text}\n" for n, text in enumerate(texts)]
    text = "WEBVTT\n\n" + "\n".join(cues) if name == "a.vtt" else "\n".join(cues)
    return [turn[:2] for turn in _turns(text, name)]


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
@pytest.mark.parametrize(
    "speaker",
    [
        "Müller, Jörg",
        "Jane Doe, PhD",
        "Bob | ACME",
        "Anna [Host]",
        "Anna she/her",
        "Anna/Bob",
        "Anna @ Acme",
        "+49 30 555",
    ]
    + [
        "X (she/her) (Host)",
        "Anna \N{CAT}",
        "\N{CAT} Anna",
        "ann@acme.org",
        "A B C D E F G H",
        "Anna O. (de facto chair)",
    ],
)
def test_a_name_may_have_any_characters(name: str, speaker: str) -> None:
    """A prefix that repeats is a name whatever its characters, and its captions belong to nobody else."""
    captions = _captions([f"{speaker}: a", "Bob Lee: b", f"{speaker}: c", "Bob Lee: d", f"{speaker}: e"], name)
    assert captions == [(speaker, "a"), ("Bob Lee", "b"), (speaker, "c"), ("Bob Lee", "d"), (speaker, "e")]


def test_a_name_that_occurs_once_may_have_any_characters_if_each_caption_has_one() -> None:
    """A person who speaks once is not read as the person before."""
    captions = _captions(["Müller, Jörg: a", "ann@acme.org: b", "Müller, Jörg: c"], "a.vtt")
    assert captions == [("Müller, Jörg", "a"), ("ann@acme.org", "b"), ("Müller, Jörg", "c")]


@pytest.mark.parametrize("size", [21, 200])
def test_a_prefix_that_is_rare_is_text(size: int) -> None:
    """A word with a colon that repeats in a lecture is no speaker."""
    texts = [f"{'Example: ' * (n in (4, 9))}part {n}" for n in range(size)]
    assert _captions(texts, "a.srt") == [(None, text) for text in texts]


@pytest.mark.parametrize("text", ["Warning: wet floor", "Warning: wet floor\nMind the step"])
def test_one_prefix_alone_is_text(text: str) -> None:
    """A single prefix in a short file is no speaker."""
    assert _captions(text.split("\n"), "a.srt") == [(None, line) for line in text.split("\n")]
    assert [turn[:2] for turn in _turns(text, "a.txt")] == [(None, text.replace("\n", " "))]


def test_one_prefix_among_names_is_text() -> None:
    """A prefix that does not repeat and is not written like the names is text of the speaker before."""
    captions = _captions(["ANNA: a", "BEN: b", "Warning: c", "ANNA: d", "BEN: e"], "a.srt")
    assert captions == [("ANNA", "a"), ("BEN", "b"), ("BEN", "Warning: c"), ("ANNA", "d"), ("BEN", "e")]


def test_a_label_does_not_last_past_another_prefix_that_repeats() -> None:
    """Captions with a repeated prefix that is not read as a name, and those after them, belong to nobody."""
    texts = ["<v Anna>a</v>", "b", "Example: c", *"defghijklm", "Example: n", "o"]
    expected = [("Anna", "a"), ("Anna", "b"), *((None, text) for text in texts[2:])]
    assert _captions(texts, "a.vtt") == expected


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield str(value)


@pytest.mark.parametrize(
    "document",
    [
        {
            "segments": [
                {"start": 0, "end": 1.5, "text": "Hi", "avg_logprob": -0.25, "mood": {"joy": [0.75]}, "spk": 7001}
                | {"words": [{"word": "Hi", "start": 0.25, "end": 1.25, "score": 0.5, "pitch": 442}]}
            ],
            "language": "en",
            "made": {"by": "someone", "on": ["disk"]},
        },
        {
            "results": {
                "channels": [{"alternatives": [{"words": [{"word": "hi", "start": 1.5, "zeal": 77}], "x": 88}]}],
                "y": 99,
            }
        },
        {
            "jobName": "jj",
            "results": {"items": [{"type": "pronunciation", "alternatives": [{"content": "hi"}], "q": 55}], "z": 66},
        },
    ],
)
def test_no_leaf_of_a_document_is_lost(document: dict[str, Any]) -> None:
    """Every value of a document is in the payload: as it is, or as a time in milliseconds."""
    found = set(_leaves(json.loads(converted(json.dumps(document).encode(), "a.json"))))
    for leaf in _leaves(document):
        shown = {leaf, leaf.strip()}
        if leaf.replace(".", "").isdigit():
            shown |= {str(round(float(leaf) * 1000)), str(float(leaf))}
        assert shown & found or leaf == "pronunciation", leaf


@pytest.mark.parametrize(
    "document",
    [
        [{"start": 0.0, "end": 1.5, "text": " Hi", "speaker": "A"}, {"start": 2.0, "end": 2.5, "text": " Bye"}],
        {
            "version": "1.0.0",
            "segments": [{"startTime": 0, "endTime": 1.5, "body": "Hi", "speaker": "A"}]
            + [{"startTime": 2, "endTime": 2.5, "body": "Bye"}],
        },
        [
            {"session_id": "s", "words": "Hi", "start_time": "0", "end_time": "1.5", "speaker": "A"},
            {"session_id": "s", "words": "Bye", "start_time": 2, "end_time": 2.5},
        ],
        {
            "utterances": [
                {"text": "Hi", "start": 0.0, "end": 1.5, "speaker": "A"},
                {"text": "Bye", "start": 2.0, "end": 2.5},
            ]
        },
        {
            "chunks": [
                {"timestamp": [0.0, 1.5], "text": " Hi", "speaker": "A"},
                {"timestamp": [2.0, 2.5], "text": " Bye"},
            ]
        },
        [
            {"start_ms": 0, "end_ms": 1500, "text": "Hi", "speakerLabel": "A"},
            {"start_ms": 2000, "end_ms": 2500, "text": "Bye"},
        ],
        {"output": {"segments": [{"start": 0, "end": 1.5, "text": "Hi", "speaker": "A"}, {"start": 2, "end": 2.5, "text": "Bye"}]}},
        {"Transcript": [{"ParticipantRole": "A", "Content": "Hi", "BeginOffsetMillis": 0, "EndOffsetMillis": 1500}]
        + [{"Content": "Bye", "BeginOffsetMillis": 2000, "EndOffsetMillis": 2500}]},
        {"results": [{"offset": 0, "duration": 1.5, "text": "Hi", "Speaker Name": "A"}, {"offset": 2, "duration": 0.5, "text": "Bye"}]},
        [{"startTimeMs": 0, "endTimeMs": 1500, "text": "Hi", "speakerName": "A"}, {"startTimeMs": 2000, "endTimeMs": 2500, "text": "Bye"}],
        {"segments": [{"start": "00:00:00.000", "end": "0:01,5", "text": "Hi", "spk": 1}, {"start": "2", "end": 2.5, "text": "Bye"}],
         "speaker_map": {"1": "A"}},
        {"segments": [{"start_offset": 0, "end_offset": 1.5, "text": "Hi", "speakerId": "x"}, {"start_offset": 2, "end_offset": 2.5, "text": "Bye"}],
         "speakers": [{"speakerId": "x", "displayName": "A"}]},
        {"monologues": [{"speaker": 0, "elements": [{"type": "text", "value": "Hi", "ts": 0, "end_ts": 1.5}]},
                        {"speaker": None, "elements": [{"type": "text", "value": "Bye", "ts": 2, "end_ts": 2.5}]}],
         "speakers": [{"id": 0, "name": "A"}, {"id": 1, "name": "never speaks"}]},
        {"utterances": [{"speaker": "A", "start": 0, "end": 1500, "text": "Hi"}, {"start": 2000, "end": 2500, "text": "Bye"}]},
    ],
)  # fmt: skip
def test_segments_in_many_spellings(document: Any) -> None:
    """A list of segments is one transcript, with times in ms whatever their unit and names are."""
    assert _turns(json.dumps(document), "a.json") == [("A", "Hi", 0, 1500), (None, "Bye", 2000, 2500)]


def test_whole_seconds_are_recognised() -> None:
    """Turns that would have several letters in each millisecond have times in seconds; words alone are words."""
    turns = [{"start": 0, "end": 4, "text": "Good day to all"}, {"start": 4, "end": 9, "text": "Well yes, of course"}]
    assert [row[2:] for row in _turns(json.dumps({"utterances": turns}), "a.json")] == [(0, 4000), (4000, 9000)]
    words = [{"text": "Good", "start": 1, "end": 2}, {"text": "day", "start": 2, "end": 3}]
    payload = json.loads(converted(json.dumps({"text": "Good day", "words": words}).encode()))
    assert [word["start"] for word in payload["words"]] == [1000, 2000]
    assert "utterances" not in payload


def test_xml_is_read_in_the_encoding_that_it_declares() -> None:
    """Transcriber writes ISO-8859-1 by default."""
    text = _TRS.replace("UTF-8", "ISO-8859-1").replace("Ann", "Zo\u00e9")
    (first, *_) = json.loads(converted(text.encode("iso-8859-1"), "a.trs"))["utterances"]
    assert first["speaker"] == "Zo\u00e9"


def test_all_fields_of_rttm_are_kept() -> None:
    """Channels and confidences of several channels have their columns, other fields are in `extra`; <NA> is null."""
    lines = "SPEAKER m 1 0.5 1.0 hi lex Ann 0.9 0.25\nSPEAKER m 2 2 1 <NA> <NA> <NA> <NA> <NA>\n"
    turns = voxframe.load_utterances(converted(lines.encode(), "m.rttm"))
    assert _rows(turns, "speaker", "channel", "start_ms", "end_ms", "confidence") == [
        ("Ann", "1", 500, 1500, 0.9),
        (None, "2", 2000, 3000, None),
    ]
    assert json.loads(turns["extra"][0]) == {"orthography": "hi", "subtype": "lex", "lookahead": "0.25"}


def test_a_text_alone_has_words() -> None:
    """The default JSON of OpenAI has only a text and its price; the words of the text have no times."""
    words = voxframe.load_words({"text": "Do it now.", "usage": {"type": "tokens"}})
    assert _rows(words, "text", "start_ms") == [("Do", None), ("it", None), ("now.", None)]


def test_impossible_times_are_kept_and_counted() -> None:
    """An end before its start and a jump back of minutes stay, with one warning."""
    text = "1\n00:02:00,000 --> 00:01:59,000\none\n\n2\n00:00:03,000 --> 00:00:04,000\ntwo\n"
    with pytest.warns(PayloadWarning, match="2 rows of srt with impossible times"):
        payload = json.loads(converted(text.encode(), "a.srt"))
    assert [(turn["start"], turn["end"]) for turn in payload["utterances"]] == [(120_000, 119_000), (3000, 4000)]


_CHAT = """@UTF8
@Begin
@Participants:\tCHI Ross Target_Child, MOT Mary Mother
*MOT:\tdo you [/] you want more &=laughs cookies ? \x151000_2500\x15
%mor:\tmod|do pro|you
*CHI:\t<I want> [//] I need
\tit . \x152600_3000\x15
@End
"""
_TRS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE Trans SYSTEM "trans-14.dtd">
<Trans audio_filename="x"><Speakers><Speaker id="spk1" name="Ann"/><Speaker id="spk2" name="Bob"/></Speakers>
<Episode><Section type="report" startTime="0" endTime="4"><Turn speaker="spk1" startTime="0" endTime="2.5">
<Sync time="0"/>Good day. <Event desc="b"/> <Sync time="1.5"/>How are you?</Turn>
<Turn speaker="spk1 spk2" startTime="2.5" endTime="4"><Sync time="2.5"/><Who nb="1"/>Well. <Who nb="2"/>Fine.</Turn>
</Section></Episode></Trans>"""


def test_what_stands_beside_the_segments_of_a_service_is_used() -> None:
    """A language in any spelling beside the segments is that of the transcript; ids of participants are speakers."""
    row = {"ParticipantId": "agent", "Content": "Good day to you.", "BeginOffsetMillis": 0, "EndOffsetMillis": 900}
    document = {"LanguageCode": "es-US", "JobStatus": "COMPLETED", "Transcript": [row]}
    payload = json.loads(converted(json.dumps(document).encode()))
    assert payload["language_code"] == "es_us"
    assert payload["utterances"][0]["speaker"] == "agent"


def test_what_chat_and_transcriber_say_of_a_recording_is_kept() -> None:
    """Headers that repeat are a list, filled pauses are words, and the language is that of the transcript."""
    chat = "@UTF8\n@Begin\n@ID:\teng|x|CHI|2;06.|\n@ID:\teng|x|MOT||\n*MOT:\tand &-um then &=laughs &+st stop .\n@End\n"
    payload = json.loads(converted(chat.encode(), "a.cha"))
    assert payload["headers"]["ID"] == ["eng|x|CHI|2;06.|", "eng|x|MOT||"]
    assert payload["utterances"][0]["text"] == "and um then stop."
    trs = _TRS.replace('<Trans audio_filename="x">', '<Trans audio_filename="x" xml:lang="fr">')
    assert json.loads(converted(trs.encode(), "a.trs"))["language_code"] == "fr"
    german = chat.replace("@Begin", "@Begin\n@Languages:\tdeu, eng")
    assert json.loads(converted(german.encode(), "a.cha"))["language_code"] == "de"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.cha",
            _CHAT,
            [("Mary", "do you you want more cookies?", 1000, 2500), ("Ross", "I want I need it.", 2600, 3000)],
        ),
        (
            "a.trs",
            _TRS,
            [("Ann", "Good day.", 0, 1500), ("Ann", "How are you?", 1500, 2500), ("Ann", "Well.", 2500, 4000)]
            + [("Bob", "Fine.", 2500, 4000)],
        ),
        (
            "a.otr",
            '{"text": "<p><span class=\\"timestamp\\" data-timestamp=\\"1.5\\">0:01</span>Ann: Hi &amp; bye</p>'
            '<p><span class=\\"timestamp\\" data-timestamp=\\"3\\">0:03</span>Bob: Yes</p>", "media": "x.mp3"}',
            [("Ann", "Hi & bye", 1500, 3000), ("Bob", "Yes", 3000, None)],
        ),
        (
            "a.txt",
            "Anna Smith  0:03\nHello to all.\n\nBen Low  1:05:02\nGood day.\n",
            [("Anna Smith", "Hello to all.", 3000, 3_902_000), ("Ben Low", "Good day.", 3_902_000, None)],
        ),
        (
            "a.txt",
            "#00:00:01-5# I: Why? #00:00:03-0#\n#00:00:03-0# B: So. #00:00:04-0#\n",
            [("I", "Why?", 1500, 3000), ("B", "So.", 3000, 4000)],
        ),
        (
            "a.txt",
            "0:03\nhello all\n0:07\nyes\n",
            [(None, "hello all", 3000, 7000), (None, "yes", 7000, None)],
        ),
        (
            "a.txt",
            "[00:00:03.000 --> 00:00:05.000] Hi there\n[00:00:06.000 --> 00:00:07.000] Yes\n",
            [(None, "Hi there", 3000, 5000), (None, "Yes", 6000, 7000)],
        ),
        (
            "a.srt",
            "1\n0:00:01,000 --> 0:00:02,000\n\u5f20\u4e09\uff1a\u4f60\u597d\n\n2\n0:00:03,000 --> 0:00:04,000\n\u674e\u56db\uff1a\u597d\n",
            [("\u5f20\u4e09", "\u4f60\u597d", 1000, 2000), ("\u674e\u56db", "\u597d", 3000, 4000)],
        ),
        (
            "a.txt",
            "[00:00:12.00] one\n[00:00:14.00] two\n",
            [(None, "one", 12_000, 14_000), (None, "two", 14_000, None)],
        ),
        (
            "a.csv",
            "Speaker,Start Time,End Time,Text,Mood\nAnn,0:01.5,0:02,Good day,glad\nBob,2,3.25,Fine thanks,\n",
            [("Ann", "Good day", 1500, 2000), ("Bob", "Fine thanks", 2000, 3250)],
        ),
        (
            "a.tsv",
            "start\tend\ttext\n0\t1500\tGood day\n1500\t2750\tFine thanks\n",  # as Whisper writes it, in ms
            [(None, "Good day", 0, 1500), (None, "Fine thanks", 1500, 2750)],
        ),
        (
            "a.txt",
            "[00:00:01;15] Q: Why? [00:00:02:00]\n[00:00:03:06] A: So.\n",  # frames
            [("Q", "Why?", 1500, 2000), ("A", "So.", 3200, None)],
        ),
        (
            "a.srt",
            "9\n-00:00:00,500 --> 00:00:01:250\none\n\n4\n00:00:02, 500-->00:03.5\ntwo\n",
            [(None, "one", -500, 1250), (None, "two", 2500, 3500)],
        ),
        (
            "a.otr",
            '{"text": "<p><span data-timestamp=\\"1.5\\" class=\\"timestamp\\">0:01</span>Ann: Hi<br>Ann: Bye</p>", "media-time": 2}',
            [("Ann", "Hi", 1500, None), ("Ann", "Bye", None, None)],
        ),
        ("a.otr", '{"text": "<p>No stamps</p>", "media": "x.mp3", "media-time": 2}', [(None, "No stamps", None, None)]),
    ],
)
def test_formats_of_transcription_tools(name: str, text: str, expected: list[Any]) -> None:
    """Turns have the speakers, texts and times of the file."""
    assert _turns(text, name) == expected


def test_tiers_of_words_are_no_speakers() -> None:
    """Tiers named word and phoneme, in any case and number, give words without a speaker, and no sounds."""
    text = '"ooTextFile short"\n"TextGrid"\n0 2\n<exists>\n2\n"IntervalTier" "Word" 0 2 2 0 1 "good" 1 2 "day"\n'
    words = voxframe.load_words(converted(f'{text}"IntervalTier" "PHONEMES" 0 2 1 0 1 "g"\n'.encode(), "a.TextGrid"))
    assert _rows(words, "text", "speaker") == [("good", None), ("day", None)]


@pytest.mark.parametrize(("tier", "speaker"), [("sentence", None), ("default", None), ("Ann - utterances", "Ann")])
def test_tiers_of_sentences_name_no_speaker(tier: str, speaker: str | None) -> None:
    """A tier named by what it has gives turns without a speaker, or with the one before that name."""
    text = f'"ooTextFile short"\n"TextGrid"\n0 2\n<exists>\n1\n"IntervalTier" "{tier}" 0 2 1 0 1 "good day"\n'
    assert _turns(text, "a.TextGrid") == [(speaker, "good day", 0, 1000)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "hyp.json",
            json.dumps(
                [
                    {"session_id": session, "speaker": "A", "words": "good day", "start_time": 0, "end_time": 1}
                    for session in ("S01", "S02")
                ]
            ),
        ),
        ("hyp.ctm", "S01 1 0.0 0.5 hi\nS02 1 0.0 0.5 ho\n"),
    ],
)
def test_recordings_of_one_file_have_their_own_names(tmp_path: Path, name: str, text: str) -> None:
    """Loaders and a corpus name several transcripts of a file as the file does."""
    (tmp_path / name).write_text(text)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(tmp_path / name)
    for table in (voxframe.load_transcripts(tmp_path / name), corpus.table("transcripts")):
        assert sorted(table["recording"]) == ["S01", "S02"]


def test_a_dash_before_a_voice_tag_is_no_word() -> None:
    """Each of two speakers of a caption may have a dash before the tag; a dash in the text stays."""
    text = (
        "WEBVTT\n\n00:01.000 --> 00:03.000\n- <v Ann>One\n- <v Bob>Two\n\n00:04.000 --> 00:05.000\n<v Ann>Six - ten\n"
    )
    assert [turn[:2] for turn in _turns(text, "a.vtt")] == [("Ann", "One"), ("Bob", "Two"), ("Ann", "Six - ten")]


def test_frames_after_a_point_are_read_as_frames() -> None:
    """If none of many times has more than 29 after the point, these are frames, 30 a second; else hundredths."""
    lines = [f"[00:00:{5 * n:02}.{3 * n:02}] Ann: number {n}\n" for n in range(1, 10)]
    assert [turn[2] for turn in _turns("".join(lines), "a.txt")] == [5000 * n + 100 * n for n in range(1, 10)]
    lines[-1] = lines[-1].replace("45.27", "45.30")
    assert _turns("".join(lines), "a.txt")[0][2] == 5030


def test_ends_that_are_not_in_a_file_are_reported() -> None:
    """Measures warn of turns that end where the next begins, because their file has only starts."""
    text = "".join(f"{name} 0:{at:02}\nGood day to you.\n\n" for name, at in zip("ABAB", (1, 5, 9, 13), strict=True))
    turns = voxframe.load_utterances(converted(text.encode(), "otter.txt")).dropna(subset=["end_ms"])
    with pytest.warns(UserWarning, match="^talk_time: 3 of 3 turns lack a start or an end in their source"):
        voxframe.analysis.talk_time(turns)


def test_a_table_of_turns(tmp_path: Path) -> None:
    """A DataFrame with other column names, and our own TSV of words, come back; other columns are kept."""
    df = pd.DataFrame({"Who": ["Ann", None], "Said": ["Good day.", "Yes?"], "T": [1.5, 2], "Mood": ["glad", None]})
    (payload,) = from_table(df, columns={"speaker": "Who", "text": "Said", "start": "T"})
    turns = voxframe.load_utterances(payload)
    assert _rows(turns, "speaker", "text", "start_ms") == [("Ann", "Good day.", 1500), (None, "Yes?", 2000)]
    assert json.loads(turns["extra"][0]) == {"source": {"Mood": "glad"}}
    words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 5, "end": 9, "speaker": "A"}]})
    voxframe.export.write(words, tmp_path / "w.tsv")
    again = voxframe.load_words(tmp_path / "w.tsv")
    columns = ("transcript_id", "text", "start_ms", "end_ms", "speaker")
    assert _rows(again, *columns) == _rows(words, *columns)
    with pytest.raises(OptionError, match="the table has no column 'X'; it has Who, Said, T, Mood"):
        from_table(df, columns={"text": "X"})
    with pytest.raises(OptionError, match=r"the table has no column with text, .*; its columns are Who, T"):
        voxframe.analyze(df[["Who", "T"]])


def test_numbers_of_speakers_beside_missing_ones() -> None:
    """A DataFrame has them as 1.0 and NaN; the labels are whole numbers."""
    (payload,) = from_table(pd.DataFrame({"speaker": [1.0, None, 2.0], "text": ["good day", "and so", "on it"]}))
    assert [turn["speaker"] for turn in payload["utterances"]] == ["1", None, "2"]


def test_a_table_with_durations_as_times() -> None:
    """Times may be durations, as `timedeltas=True` makes them; both spellings of a column are taken."""
    seconds = pd.to_timedelta([1.5, 3.0], unit="s")
    for start in ("start", "start_ms"):
        (payload,) = from_table(pd.DataFrame({"text": ["good day", "to you"], start: seconds}))
        assert [turn["start"] for turn in payload["utterances"]] == [1500, 3000]


def test_a_time_that_cannot_be_read_is_an_error() -> None:
    """The error has the value and what is allowed; so has that for `columns` that are no dict."""
    with pytest.raises(OptionError, match=r"'soon' in the column of the start is no time; allowed are seconds"):
        from_table(pd.DataFrame({"text": ["good day"], "start": ["soon"]}))
    with pytest.raises(OptionError, match="columns is a dict"):
        from_table(pd.DataFrame({"text": ["good day"]}), columns="text")


def test_tasks_of_label_studio() -> None:
    """Our own tasks come back: transcript, speakers, texts and times."""
    turns = {
        "transcript_id": "t",
        "text": ["Hi.", "Yes."],
        "start_ms": [0, 900],
        "end_ms": [800, 1500],
        "speaker": ["A", "B"],
    }
    text = voxframe.export.label_studio(pd.DataFrame(turns))
    assert _turns(text, "tasks.json") == [("A", "Hi.", 0, 800), ("B", "Yes.", 900, 1500)]


@pytest.mark.parametrize("texts", [["Good morning.", "Hello to you."], "Good morning."])
def test_the_short_export_of_label_studio(texts: list[str] | str) -> None:
    """JSON-MIN has the regions of a task and, beside them, a list of their texts, or one text."""
    regions = [{"start": 0.5, "end": 2, "labels": ["Ann"]}, {"start": 2.5, "end": 4, "labels": ["Bob"]}]
    regions = regions[: 1 if isinstance(texts, str) else 2]
    about = {"annotator": 1, "annotation_id": 7, "created_at": "2024-01-01 10:00 CET", "lead_time": 1.5}
    task = {"audio": "/data/upload a b c.wav", "id": 5, "labels": regions, "transcription": texts, **about}
    expected = [("Ann", "Good morning.", 500, 2000), ("Bob", "Hello to you.", 2500, 4000)]
    assert _turns(json.dumps([task]), "tasks.json") == expected[: len(regions)]
    with pytest.raises(PayloadError, match="JSON-MIN does not say which region a text is of"):
        converted(json.dumps([task | {"transcription": ["a b", "c", "d"]}]).encode(), "tasks.json")


_SECONDS = [{"start": 1.5, "end": 2, "text": "Good"}, {"start": 2, "end": 2.5, "text": "day."}]
_LATER = [{"start": 3, "end": 3.5, "text": "Hi."}]


@pytest.mark.parametrize(
    "document",
    [
        {
            "words": _SECONDS + _LATER,
            "paragraphs": [
                {"id": 0, "start": 1.5, "end": 2.75, "speaker": "A"},
                {"id": 1, "start": 2.75, "end": 3.5, "speaker": "B"},
            ],
        },
        {
            "action": "transcribe",
            "retval": {
                "status": True,
                "words": [
                    {"start": 1.5, "end": 2, "word": "good", "punct": "Good"},
                    {"start": 2, "end": 2.5, "word": "day", "punct": "day."},
                    {"start": 3, "end": 3.5, "word": "hi", "punct": "Hi."},
                ],
                "segmentation": {
                    "segments": [
                        {"start": 1.5, "duration": 1.25, "speaker": {"@id": "A", "gender": "F"}},
                        {"start": 2.75, "duration": 0.75, "speaker": {"@id": "B", "gender": "M"}},
                    ]
                },
            },
        },
    ],
)
def test_speakers_in_a_list_beside_the_words(document: dict[str, Any]) -> None:
    """Words without speakers have those of a list of who speaks when; its spans are the turns."""
    expected = [("A", "Good day.", 1500, 2750), ("B", "Hi.", 2750, 3500)]
    assert _turns(json.dumps(document), "a.json") == expected


def test_segments_with_times_in_their_words_only() -> None:
    """A list of objects that have just words, in seconds, is one transcript with a turn each."""
    turns = _turns(json.dumps([{"words": _SECONDS}, {"words": _LATER}]), "a.json")
    assert turns == [(None, "Good day.", 1500, 2500), (None, "Hi.", 3000, 3500)]


@pytest.mark.parametrize(("names", "speakers"), [("ABCABC", 3), ("ABCABB", 0), ("AB", 0)])
def test_names_where_the_speaker_changes(names: str, speakers: int) -> None:
    """Names in three of a hundred captions are speakers if none is there twice in a row."""
    marks = {33 * n: f"Person {name}: " for n, name in enumerate(names, 1)}
    captions = _captions([f"{marks.get(n, '')}part {n}" for n in range(200)], "a.srt")
    assert len({speaker for speaker, _ in captions} - {None}) == speakers


_WORDS_OF_TTML = (
    '<p begin="{0}.0" end="{1}.0" ttm:agent="a"><span begin="{0}.0" end="{0}.4">Good</span> '
    '<span begin="{0}.5" end="{1}.0">day.</span></p>'
)


@pytest.mark.parametrize("spans", ["absolute", "relative"])
def test_words_of_ttml(spans: str) -> None:
    """Timed spans of one word are words; times that overrun the paragraph are those of the recording, as Apple's."""
    texts = "".join(_WORDS_OF_TTML.format(second, second + 1) for second in (4, 6))
    if spans == "relative":
        for second in (4, 6):
            texts = texts.replace(f'<span begin="{second}.', '<span begin="0.').replace(
                f'end="{second}.4"', 'end="0.4"'
            )
            texts = texts.replace(f'"0.5" end="{second + 1}.0"', '"0.5" end="1.0"')
    text = f'<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata"><body>{texts}</body></tt>'
    payload = converted(text.encode(), "a.ttml")
    words = [("Good", 4000, 4400), ("day.", 4500, 5000), ("Good", 6000, 6400), ("day.", 6500, 7000)]
    assert _rows(voxframe.load_words(payload), "text", "start_ms", "end_ms") == words
    turns = _rows(voxframe.load_utterances(payload), "speaker", "text", "start_ms", "end_ms")
    assert turns == [("a", "Good day.", 4000, 5000), ("a", "Good day.", 6000, 7000)]


def test_tokens_of_fstalign() -> None:
    """Rev's .nlp files, as of the Earnings-21 corpus: punctuation is part of its word."""
    text = "token|speaker|ts|endTs|punctuation|prepunctuation|case\nYes|1|1.5|2.0|,||UC\nso|2|||||LC\n"
    words = voxframe.load_words(converted(text.encode(), "a.nlp"))
    assert _rows(words, "speaker", "text", "start_ms", "end_ms") == [("1", "Yes,", 1500, 2000), ("2", "so", None, None)]


def test_captions_of_subviewer() -> None:
    """YouTube's .sbv has both times on a line, with a comma."""
    sbv = "0:00:01.500,0:00:03.000\nGood day.\n\n0:00:03.500,0:00:04.000\nYes?\n"
    assert _turns(sbv, "a.sbv") == [(None, "Good day.", 1500, 3000), (None, "Yes?", 3500, 4000)]


def test_a_transcription_of_exmaralda() -> None:
    """Events in a row are a turn of the tier's speaker, and may part a word; other tiers are kept."""
    points = "".join(f'<tli id="T{n}" time="{n}.5"/>' for n in range(4))
    events = [("T0", "T1", "Good d"), ("T1", "T2", "ay. ")]
    tier = "".join(f'<event start="{start}" end="{end}">{text}</event>' for start, end, text in events)
    text = (
        '<?xml version="1.0"?><basic-transcription><head><speakertable><speaker id="S0"><abbreviation>Ann</abbreviation>'
        f"</speaker></speakertable></head><basic-body><common-timeline>{points}</common-timeline>"
        f'<tier id="a" speaker="S0" category="v" type="t">{tier}</tier>'
        '<tier id="b" category="nn" type="d"><event start="T2" end="T3">laughs</event></tier>'
        '<tier id="c" category="v" type="t"><event start="T2" end="T3">Yes.</event></tier>'
        "</basic-body></basic-transcription>"
    )
    assert _turns(text, "a.exb") == [("Ann", "Good day.", 500, 2500), (None, "Yes.", 2500, 3500)]
    tiers = json.loads(converted(text.encode(), "a.exb"))["tiers"]
    assert [tier["id"] for tier in tiers] == ["a", "b", "c"]
    assert tiers[1]["event"][0]["text"] == "laughs"


def test_tasks_without_speech_are_refused() -> None:
    """Tasks of Label Studio about pictures are no transcripts without words."""
    result = [{"id": "r", "type": "choices", "value": {"choices": ["cat"]}}]
    with pytest.raises(PayloadError, match="no region with a start, an end and a text"):
        converted(json.dumps([{"id": 1, "annotations": [{"result": result}]}]).encode(), "tasks.json")


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("audio_segments", ("start_timestamp_millis", "end_timestamp_millis", "text", "speaker")),
        ("SpeechSegments", ("SegmentStartTime", "SegmentEndTime", "DisplayText", "SegmentSpeaker")),
        ("phrases_found", ("utterance_start_ms", "utterance_end_ms", "utterance_text", "utterance_speaker")),
    ],
)
def test_a_list_with_any_name(field: str, names: tuple[str, ...]) -> None:
    """Texts with times are read from a list with any name, whatever the fields are said to be of."""
    in_ms = "m" in names[0].casefold().rpartition("start")[2].replace("time", "")
    times = [(1500, 3000), (3500, 4000)] if in_ms else [(1.5, 3.0), (3.5, 4.0)]
    rows = [
        dict(zip(names, (*pair, text, who), strict=True))
        for pair, text, who in zip(times, ("Good day.", "Yes, sir?"), "AB", strict=True)
    ]
    document = json.dumps({"metadata": {"language": "EN"}, "topics": [], field: rows})
    assert _turns(document, "a.json") == [("A", "Good day.", 1500, 3000), ("B", "Yes, sir?", 3500, 4000)]


def test_results_of_watson() -> None:
    """IBM's words have times beside them and speakers by start; a job has the results in an envelope."""
    best = {"transcript": "good day yes ", "timestamps": [["good", 1.5, 2.0], ["day", 2.0, 2.5], ["yes", 3.0, 3.5]]}
    labels = [{"from": 1.5, "to": 2.0, "speaker": 0}, {"from": 2.0, "to": 2.5, "speaker": 0}]
    results = {
        "results": [{"alternatives": [best]}],
        "speaker_labels": [*labels, {"from": 3.0, "to": 3.5, "speaker": 1}],
    }
    for document in (results, {"id": "j1", "status": "completed", "results": [results]}):
        expected = [("0", "good day", 1500, 2500), ("1", "yes", 3000, 3500)]
        assert _turns(json.dumps(document), "a.json") == expected


@pytest.mark.parametrize("as_lines", [True, False])
def test_rows_of_several_recordings(as_lines: bool) -> None:
    """Rows that name different recordings, as manifests of NeMo do, are a transcript for each of them."""
    rows = [{"audio_filepath": f"/data/{name}.wav", "duration": 3.2, "text": "hello there"} for name in "ab"]
    data = "\n".join(map(json.dumps, rows)) if as_lines else json.dumps(rows)
    payloads = json.loads(converted(data.encode(), "manifest.json"))
    assert [(payload["id"][:2], payload["text"]) for payload in payloads] == [
        ("a-", "hello there"),
        ("b-", "hello there"),
    ]


def test_speakers_in_another_list_than_the_segments() -> None:
    """Of two lists with texts and times, that with speakers is read, as insanely-fast-whisper writes it."""
    row = {"text": "Good day.", "timestamp": [0, 1.5]}
    document = {"speakers": [{**row, "speaker": "SPEAKER_00"}], "chunks": [row], "text": "Good day."}
    assert _turns(json.dumps(document), "a.json") == [("SPEAKER_00", "Good day.", 0, 1500)]


@pytest.mark.parametrize(
    "text",
    [
        "speaker,text,start,duration\nAnn,Good day.,1.5,0.5\nBob,To you.,3,1\n",
        "id,speaker,text,start (s),end (s)\n1,Ann,Good day.,1.5,2\n2,Bob,To you.,3,4\n",
        "speaker,text,tmin,tmax\nAnn,Good day.,0 days 00:00:01.5,0 days 00:00:02\nBob,To you.,0 days 00:00:03,0 days 00:00:04\n",
    ],
)
def test_times_of_tables(text: str) -> None:
    """Tables may have a duration for the end, times with a unit or as pandas writes them, and numbers of rows."""
    assert _turns(text, "a.csv") == [("Ann", "Good day.", 1500, 2000), ("Bob", "To you.", 3000, 4000)]


def test_one_caption_of_another_name_in_capitals() -> None:
    """Among names in capitals, one that occurs once is a name too."""
    captions = _captions(["MARY: a", "b", "c", "MAN: d", "MARY: e", "f", "g", "h"], "a.srt")
    assert [speaker for speaker, _ in captions] == ["MARY", "MARY", "MARY", "MAN", *["MARY"] * 4]


def test_whole_transcripts_in_a_list_or_by_name() -> None:
    """Segments of several recordings, in a list or an object with their names, are a transcript each."""
    one = {"segments": [{"start": 0, "end": 1.5, "text": "Good day to you."}]}
    two = {"segments": [{"start": 2, "end": 3.5, "text": "Yes, it is."}]}
    for document, names in (([one, two], ["a-0-", "a-1-"]), ({"r1": one, "r2": two}, ["r1-", "r2-"])):
        payloads = json.loads(converted(json.dumps(document).encode(), "a.json"))
        assert [payload["text"] for payload in payloads] == ["Good day to you.", "Yes, it is."]
        assert [payload["id"][: len(name)] for payload, name in zip(payloads, names, strict=True)] == names


def test_tasks_of_label_studio_without_regions() -> None:
    """A text of the whole recording is a turn without times; one task may be a document; empty regions are kept."""
    area = {"id": "t", "type": "textarea", "value": {"text": ["Good day to you."]}}
    empty = {"id": "r", "type": "labels", "value": {"start": 1.5, "end": 2, "labels": ["Ann"]}}
    task = {"id": 7, "data": {"audio": "a.wav"}, "annotations": [{"result": [area, empty]}]}
    for document in ([task], task):
        assert _turns(json.dumps(document), "a.json") == [(None, "Good day to you.", None, None)]
        assert json.loads(converted(json.dumps(document).encode(), "a.json"))["regions_without_text"][0]["start"] == 1.5
    short = {"audio": "a.wav", "id": 7, "transcription": "Good day to you.", "annotator": 1, "annotation_id": 3}
    assert _turns(json.dumps([short]), "a.json") == [(None, "Good day to you.", None, None)]


def test_sheets_of_excel(tmp_path: Path) -> None:
    """Each sheet with texts is a transcript with its name; others are left out."""
    with pd.ExcelWriter(tmp_path / "a.xlsx") as file:
        for name, text in (("call 1", "Good day."), ("call 2", "To you.")):
            pd.DataFrame({"speaker": ["Ann"], "text": [text]}).to_excel(file, sheet_name=name, index=False)
        pd.DataFrame({"key": [1]}).to_excel(file, sheet_name="notes", index=False)
    turns = voxframe.load_utterances(tmp_path / "a.xlsx")
    assert _rows(turns, "recording", "text") == [("call 1", "Good day."), ("call 2", "To you.")]


def test_names_of_speakers_in_a_plain_list() -> None:
    """A list of names beside the segments names the speakers by their numbers."""
    rows = [{"start": n, "end": n + 0.5, "text": "Good day to you.", "speaker_tag": n} for n in (0, 1)]
    turns = _turns(json.dumps({"segments": rows, "speakers": ["Ann", "Bob"]}), "a.json")
    assert [turn[0] for turn in turns] == ["Ann", "Bob"]


def test_relative_times_of_ttml_that_overrun_by_rounding() -> None:
    """Times that are absolute by no reading stay relative, although one ends a little after its paragraph."""
    words = '<span begin="0.1" end="0.4">Good</span> <span begin="0.5" end="1.001">day.</span>'
    text = f'<tt xmlns="http://www.w3.org/ns/ttml"><body><p begin="4.0" end="5.0">{words}</p></body></tt>'
    rows = _rows(voxframe.load_words(converted(text.encode(), "a.ttml")), "text", "start_ms", "end_ms")
    assert rows == [("Good", 4100, 4400), ("day.", 4500, 5001)]
