"""Every value of a file of every text format is in its payload."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import voxframe
from voxframe.errors import PayloadError
from voxframe.importers import converted

_TTML = """<?xml version="1.0"?>
<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata"
 xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25" ttp:tickRate="1000">
<tt:head><tt:metadata><ttm:title>qqtitle</ttm:title>
<ttm:agent xml:id="a1" type="person"><ttm:name type="full">Ann Lee</ttm:name></ttm:agent></tt:metadata></tt:head>
<tt:body><tt:div begin="10s"><tt:p begin="1.5s" end="00:00:02.000" ttm:agent="a1" xml:id="qqpara">Good<tt:br/>day</tt:p>
<tt:p begin="00:00:03:05" dur="2s">Yes</tt:p></tt:div><tt:p begin="16000t" end="17000t">No</tt:p></tt:body></tt:tt>"""
_ASS = """[Script Info]
Title: qqtitle
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 3,0:00:11.50,0:00:12.00,qqstyle,Ann Lee,0,0,0,qqeffect,{\\\\an8qq}Good\\Nday
Comment: 0,0:00:11.50,0:00:12.00,Default,Ann Lee,0,0,0,,qqnote
Dialogue: 0,0:00:13.20,0:00:15.20,Default,,0,0,0,,Yes
"""
_TRS = """<?xml version="1.0" encoding="UTF-8"?>
<Trans scribe="qqscribe" audio_filename="qqfile"><Topics><Topic id="to1" desc="qqtopic"/></Topics>
<Speakers><Speaker id="spk1" name="Ann Lee" dialect="qqnative"/></Speakers>
<Episode program="qqprogram"><Section type="report" topic="to1" startTime="0" endTime="14">
<Turn speaker="spk1" fidelity="qqhigh" startTime="11.5" endTime="12.0"><Sync time="11.5"/>Good day
<Event desc="qqbreath" type="noise"/></Turn></Section></Episode></Trans>"""
_EAF = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="qqauthor" DATE="2026-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
<HEADER TIME_UNITS="milliseconds"><MEDIA_DESCRIPTOR MEDIA_URL="qqmedia" MIME_TYPE="audio/x-wav"/></HEADER>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="s1" TIME_VALUE="11500"/>
<TIME_SLOT TIME_SLOT_ID="s2" TIME_VALUE="12000"/></TIME_ORDER>
<TIER TIER_ID="Ann Lee" ANNOTATOR="qqannotator" LINGUISTIC_TYPE_REF="t"><ANNOTATION><ALIGNABLE_ANNOTATION
ANNOTATION_ID="a1" TIME_SLOT_REF1="s1" TIME_SLOT_REF2="s2"><ANNOTATION_VALUE>Good day</ANNOTATION_VALUE>
</ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<TIER TIER_ID="gloss" PARENT_REF="Ann Lee" LINGUISTIC_TYPE_REF="t"><ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a2"
ANNOTATION_REF="a1"><ANNOTATION_VALUE>qqgloss</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION></TIER>
<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" CONSTRAINTS="qqconstraint"/></ANNOTATION_DOCUMENT>"""
_GRID = """"ooTextFile"
"TextGrid"
0 20 <exists> 3
"IntervalTier" "Ann Lee" 0 20 1 11.5 12 "Good day"
"IntervalTier" "Ann Lee - words" 0 20 2 11.5 11.7 "Good" 11.7 12 "day"
"IntervalTier" "Ann Lee - phones" 0 20 1 11.5 11.6 "qqphone"
"""
_OTR = json.dumps(
    {
        "text": '<p><span class="timestamp" data-timestamp="11.5">0:11</span>Ann Lee: Good day<br>Ann Lee: Bye</p>',
        "media": "qqmedia",
    }
)
_STUDIO = json.dumps(
    [
        {
            "id": 7,
            "data": {"audio": "qqaudio"},
            "annotations": [
                {
                    "completed_by": "qqperson",
                    "result": [
                        {"id": "r", "type": "labels", "origin": "qqorigin"}
                        | {"value": {"start": 11.5, "end": 12.0, "labels": ["Ann Lee"], "mood": "qqmood"}},
                        {"id": "r", "type": "textarea", "value": {"start": 11.5, "end": 12.0, "text": ["Good day"]}},
                        {"id": "x", "type": "choices", "value": {"choices": ["qqchoice"]}},
                    ],
                }
            ],
        }
    ]
)
_PODCAST = json.dumps(
    {
        "version": "qqversion",
        "segments": [{"speaker": "Ann Lee", "startTime": 11.5, "endTime": 12.0, "body": "Good day", "tone": "qqtone"}],
    }
)
_CSV = "Who,Text,Start,End,Mood\nAnn Lee,Good day,11.5,12,qqmood\n"
_STM = "rec 1 Ann_Lee 11.50 12.00 <o,qqlabel,male> Good { day / qqother }\n"
_CHAT = "@UTF8\n@Begin\n@Participants:\tANN Ann_Lee Adult\n@Media:\tqqmedia, audio\n"
_CHAT += "*ANN:\tGood day &=qqlaughs \x1511500_12000\x15\n"
_CHAT += "%mor:\tadj|qqgood n|day\n@Comment:\tqqcomment\n@End\n"


def _leaves(value: Any) -> Iterator[str]:
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _leaves(inner)
    if not isinstance(value, Mapping | list):
        yield str(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttml", _TTML),
        ("a.dfxp", _TTML.replace("tt:", "").replace("xmlns:tt=", "xmlns=")),
        ("a.ass", _ASS),
        ("a.trs", _TRS),
        ("a.eaf", _EAF),
        ("a.TextGrid", _GRID),
        ("a.otr", _OTR),
        ("a.json", _STUDIO),
        ("a.json", _PODCAST),
        ("a.csv", _CSV),
        ("a.stm", _STM),
        ("a.cha", _CHAT),
    ],
    ids=lambda value: value if len(value) < 12 else "",
)
def test_values_that_no_column_has_are_kept(name: str, text: str) -> None:
    """The turn has its speaker, text and times, and each value that begins with qq is somewhere in the payload."""
    with warnings.catch_warnings(action="ignore"):
        payload = json.loads(converted(text.encode(), name, carry=False))
    turn = payload["utterances"][0]
    end = None if name == "a.otr" else 12_000  # its stamps are starts
    assert (turn["speaker"].replace("_", " "), turn["start"], turn["end"]) == ("Ann Lee", 11_500, end)
    assert turn["text"] == "Good day"
    whole = "\n".join(_leaves(payload))
    assert [mark for mark in set(re.findall(r"qq[a-z]+", text)) if mark not in whole] == []
    tables = voxframe.tables(payload)
    in_tables = "\n".join(str(value) for table in tables.values() for value in table.get("extra", ()))
    assert [mark for mark in set(re.findall(r"qq[a-z]+", text)) if mark not in in_tables] == []


def test_times_of_ttml() -> None:
    """Times are relative to the element around; frames and ticks are of the rates that the file names."""
    payload = json.loads(converted(_TTML.encode(), "a.ttml", carry=False))
    turns = [(turn["speaker"], turn["text"], turn["start"], turn["end"]) for turn in payload["utterances"]]
    assert turns[1:] == [(None, "Yes", 13_200, 15_200), (None, "No", 16_000, 17_000)]


def test_text_beside_timed_spans_is_kept() -> None:
    """A paragraph with a timed span gives the text before it, the span, and the text after it."""
    cue = '<p begin="0s" end="5s">Oh <span begin="1s">my</span> dear</p>'
    text = f'<tt xmlns="http://www.w3.org/ns/ttml"><body>{cue}</body></tt>'
    payload = json.loads(converted(text.encode(), "a.ttml"))
    assert [(turn["text"], turn["start"]) for turn in payload["utterances"]] == [("Oh", 0), ("my", 1000), ("dear", 0)]


def test_fields_beside_an_envelope_are_kept() -> None:
    """The segments in an envelope are the transcript, also beside a status, and all its other fields are kept."""
    segments = [{"start": 0.0, "end": 1.5, "text": "Hi"}]
    beside = {"status": "COMPLETED", "tags": ["x"], "metadata": {"customer": "Acme"}}
    payload = json.loads(converted(json.dumps({"id": "r1", **beside, "output": {"segments": segments}}).encode()))
    assert payload["words"][0]["text"] == "Hi"
    assert payload["envelope"] == {"id": "r1", **beside}


def test_ttml_has_no_entities_of_its_own() -> None:
    """A document type with entities, which could fill the memory, is refused."""
    text = '<?xml version="1.0"?><!DOCTYPE tt [<!ENTITY a "b">]><tt xmlns="http://www.w3.org/ns/ttml"><body/></tt>'
    with pytest.raises(PayloadError, match="entities of its own"):
        converted(text.encode(), "a.ttml")


def test_subtitles_are_read_from_folders(tmp_path: Path) -> None:
    """A folder takes ASS and TTML like other formats."""
    (tmp_path / "a.ass").write_text(_ASS)
    (tmp_path / "b.ttml").write_text(_TTML)
    with warnings.catch_warnings(action="ignore"):
        assert len(voxframe.load_transcripts(tmp_path)) == 2
