"""Layouts of transcription services and captions: names and times before the text, in each usual order.

Every file is made up here. The layouts are those of the text, caption and JSON exports of Otter, Rev, Temi, Trint, Sonix,
Descript, Happy Scribe, Fireflies, Fathom, Riverside, Notta, tl;dv, Zoom, Webex, Google Meet, Microsoft Teams and Word;
of SDH subtitles (SRT, WebVTT, CEA-608); of the pipelines of transformers; and of Amazon Transcribe.
"""

# ruff: noqa: RUF001, E501  typographic characters, and a line for each file

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import voxframe
from voxframe.importers import converted

Turns = list[tuple[str | None, float | None, str]]
#: Name of the case: name of the file, content, and the speaker, start in seconds (None: not checked) and text of turns.
CASES: dict[str, tuple[str, str, Turns]] = {}


def add(case: str, file: str, content: Any, turns: Turns) -> None:
    """Add a case."""
    CASES[case] = file, content if isinstance(content, str) else json.dumps(content), turns


def clock(seconds: int, digits: int = 4) -> str:
    """Return a time as m:ss (3 digits), mm:ss (4) or hh:mm:ss (6)."""
    if digits == 6:
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{seconds // 60:0{digits - 2}d}:{seconds % 60:02d}"


A, B = "Anna Smith", "Bob Jones"
T = [(A, "Hello there everyone."), (B, "Good morning Anna."), (A, "Shall we start?"), (B, "Yes please.")]
S = [3, 7, 12, 15]


def rows(ts: Any = S, names: Any = None) -> Turns:
    """Return the turns of `T`."""
    return [((names or {}).get(n, n), t, x) for (n, x), t in zip(T, ts or [None] * 4, strict=True)]


def each(f: Callable[[str, int, str], str], sep: str = "\n\n", head: str = "", tail: str = "") -> str:
    """Return the file whose turns are written by a function."""
    return head + sep.join(f(n, t, x) for (n, x), t in zip(T, S, strict=True)) + tail


add(
    "otter",
    "o.txt",
    each(lambda n, t, x: f"{n}  {clock(t, 3)}  \n{x}", tail="\n\nTranscribed by https://otter.ai\n"),
    rows(),
)
add("otter_unknown", "o.txt", each(lambda n, t, x: f"{n} {clock(t, 3)}\n{x}", tail="\n"), rows())
add("rev_paren", "r.txt", each(lambda n, t, x: f"{n} ({clock(t)}):\n{x}", tail="\n"), rows())
add("rev_tab", "r.txt", each(lambda n, t, x: f"{n}:\t{clock(t)}\t{x}", sep="\n"), rows())
add("trint_inline", "t.txt", each(lambda n, t, x: f"{n} [{clock(t, 6)}] {x}"), rows())
add("trint_colon", "t.txt", each(lambda n, t, x: f"{n}: [{clock(t, 6)}] {x}"), rows())
add("trint_lines", "t.txt", each(lambda n, t, x: f"[{clock(t, 6)}]\n{n}: {x}"), rows())
add("sonix", "s.txt", each(lambda n, t, x: f"{n}: [{clock(t, 6)}] {x}", head="My interview.mp3\n\n"), rows())
add("sonix_two", "s.txt", each(lambda n, t, x: f"[{clock(t, 6)}.00]\n{n}\n{x}"), rows())
add("descript", "d.txt", each(lambda n, t, x: f"[{clock(t, 6)}] {n}: {x}"), rows())
add("descript_md", "d.md", each(lambda n, t, x: f"**{n}:** [{clock(t, 6)}] {x}", head="# Title\n\n"), rows())
add("descript_names", "d.txt", each(lambda n, t, x: f"{n}:\n{x}"), rows(None))
add("zoom_txt", "z.txt", each(lambda n, t, x: f"[{n}] {clock(t, 6)}\n{x}"), rows())
add(
    "zoom_vtt",
    "z.vtt",
    "WEBVTT\n\n" + each(lambda n, t, x: f"{t}\n{clock(t, 6)}.000 --> {clock(t + 2, 6)}.000\n{n}: {x}"),
    rows(),
)
add(
    "teams_vtt",
    "t.vtt",
    "WEBVTT\n\n" + each(lambda n, t, x: f"7f0a-{t}/12-0\n{clock(t, 6)}.000 --> {clock(t + 2, 6)}.000\n<v {n}>{x}</v>"),
    rows(),
)
add("teams_docx_old", "t.txt", each(lambda n, t, x: f"0:0:{t}.0 --> 0:0:{t + 2}.450\n{n}\n{x}"), rows())
add(
    "teams_docx_new",
    "t.txt",
    each(
        lambda n, t, x: f"{n}   {clock(t, 3)}\n{x}",
        head="Weekly call-20240105_100000-Meeting Recording\nJanuary 5, 2024, 10:00AM\n23m 4s\n\n"
        "Anna Smith started transcription\n\n",
    ),
    rows(),
)
add("teams_units", "t.txt", each(lambda n, t, x: f"{n}\n{t} seconds\n{x}"), rows())
add("teams_lines", "t.txt", each(lambda n, t, x: f"{n}\n{clock(t, 3)}\n{x}"), rows())
add(
    "meet",
    "m.txt",
    "Weekly (2024-01-05 10:00 GMT) - Transcript\nAttendees\nAnna Smith, Bob Jones\nTranscript\n00:00:00\n \n"
    + each(lambda n, t, x: f"{n}: {x}", sep="\n"),
    rows(None),
)
add("fireflies", "f.txt", each(lambda n, t, x: f"{clock(t)}\n{n}\n{x}"), rows())
add(
    "happyscribe",
    "h.txt",
    each(lambda n, t, x: f"[{clock(t, 6)}.250] - {n}\n{x}"),
    [(n, t + 0.25, x) for n, t, x in rows()],
)
add("tldv", "h.txt", each(lambda n, t, x: f"[{clock(t)}] {n}: {x}", sep="\n"), rows())
add(
    "fathom",
    "h.txt",
    each(lambda n, t, x: f"{clock(t, 3)} - {n}\n  {x}", head="Weekly - January 5\nVIEW RECORDING - 23 mins\n\n---\n\n"),
    rows(),
)
add("riverside", "h.txt", each(lambda n, t, x: f"{n} ({clock(t)}.200)\n{x}"), [(n, t + 0.2, x) for n, t, x in rows()])
add(
    "temi",
    "h.txt",
    each(lambda n, t, x: f"Speaker {1 if n == A else 2}: {clock(t)} {x}", sep="\n"),
    rows(names={A: "Speaker 1", B: "Speaker 2"}),
)
add(
    "notta",
    "h.txt",
    each(lambda n, t, x: f"Speaker {1 if n == A else 2}  {clock(t)}\n{x}"),
    rows(names={A: "Speaker 1", B: "Speaker 2"}),
)
add(
    "word_transcribe",
    "h.txt",
    each(lambda n, t, x: f"{clock(t, 6)} {n}\n{x}", head="Audio file\nrecording.wav\n\nTranscript\n", sep="\n"),
    rows(),
)
add(
    "youtube_copy",
    "y.txt",
    "0:03\nhello everyone\n0:07\nwelcome to the show\n1:02:05\ngoodbye\n",
    [(None, 3, "hello everyone"), (None, 7, "welcome to the show"), (None, 3725, "goodbye")],
)
add("gotranscript_dash", "g.txt", each(lambda n, t, x: f"{clock(t, 6)} - {n}: {x}"), rows())
add("paren_time", "g.txt", each(lambda n, t, x: f"({clock(t, 6)}) {n}: {x}"), rows())
add(
    "webex_vtt",
    "w.vtt",
    "WEBVTT\n\n" + each(lambda n, t, x: f'{t} "{n}" ({9000 + t})\n{clock(t, 6)}.000 --> {clock(t + 2, 6)}.000\n{x}'),
    rows(),
)
# two names in one cue
add(
    "two_dash_names",
    "c.srt",
    "1\n00:00:01,000 --> 00:00:05,000\n- ANNA: Hello there.\n- BOB: Hi Anna.\n\n2\n00:00:06,000 --> 00:00:09,000\n- ANNA: Coffee?\n- BOB: Sure.\n",
    [("ANNA", 1, "Hello there."), ("BOB", None, "Hi Anna."), ("ANNA", 6, "Coffee?"), ("BOB", None, "Sure.")],
)
add(
    "two_names_one_cue",
    "c.srt",
    "1\n00:00:01,000 --> 00:00:05,000\nAnna: Hello there.\nBob: Hi Anna.\n\n2\n00:00:06,000 --> 00:00:09,000\nAnna: Coffee?\nBob: Sure.\n",
    [("Anna", 1, "Hello there."), ("Bob", None, "Hi Anna."), ("Anna", 6, "Coffee?"), ("Bob", None, "Sure.")],
)
add(
    "two_v_one_cue",
    "c.vtt",
    "WEBVTT\n\n00:01.000 --> 00:05.000\n<v Anna>Hello there.</v>\n<v Bob>Hi Anna.</v>\n\n00:06.000 --> 00:09.000\n<v Anna>Coffee? <v Bob>Sure.\n",
    [("Anna", 1, "Hello there."), ("Bob", None, "Hi Anna."), ("Anna", 6, "Coffee?"), ("Bob", None, "Sure.")],
)
add(
    "dash_no_names",
    "c.srt",
    "1\n00:00:01,000 --> 00:00:05,000\n- Hello there.\n- Hi Anna.\n\n2\n00:00:06,000 --> 00:00:09,000\nLong pause.\n",
    [(None, 1, "Hello there."), (None, None, "Hi Anna."), (None, 6, "Long pause.")],
)
add(
    "chevrons_names",
    "c.srt",
    "1\n00:00:01,000 --> 00:00:05,000\n>> ANNA: Hello there.\n\n2\n00:00:06,000 --> 00:00:09,000\n>> BOB: Hi Anna.\n\n3\n00:00:10,000 --> 00:00:12,000\n>> ANNA: Coffee?\n\n4\n00:00:13,000 --> 00:00:15,000\n>>BOB: Sure.\n",
    [("ANNA", 1, "Hello there."), ("BOB", 6, "Hi Anna."), ("ANNA", 10, "Coffee?"), ("BOB", 13, "Sure.")],
)
add(
    "chevrons_two",
    "c.vtt",
    "WEBVTT\n\n00:01.000 --> 00:05.000\n&gt;&gt; ANNA: Hello there.\n&gt;&gt; BOB: Hi Anna.\n\n00:06.000 --> 00:09.000\n&gt;&gt; ANNA: Coffee?\n\n00:10.000 --> 00:11.000\n&gt;&gt; BOB: Sure.\n",
    [("ANNA", 1, "Hello there."), ("BOB", None, "Hi Anna."), ("ANNA", 6, "Coffee?"), ("BOB", 10, "Sure.")],
)
add(
    "chevrons_only",
    "c.srt",
    "1\n00:00:01,000 --> 00:00:05,000\n>> Hello there.\n\n2\n00:00:06,000 --> 00:00:09,000\n>> Hi Anna.\n",
    [(None, 1, "Hello there."), (None, 6, "Hi Anna.")],
)


def srt(lines: list[str]) -> str:
    """Return captions of three seconds, one every four seconds."""
    return "\n".join(
        f"{i}\n00:00:{i * 4:02d},000 --> 00:00:{i * 4 + 3:02d},000\n{line}\n" for i, line in enumerate(lines, 1)
    )


add(
    "parens",
    "c.srt",
    srt(["(Anna) Hello there.", "(Bob) Hi Anna.", "(Anna) Coffee?", "(Bob) Sure."]),
    [("Anna", 4, "Hello there."), ("Bob", 8, "Hi Anna."), ("Anna", 12, "Coffee?"), ("Bob", 16, "Sure.")],
)
add(
    "parens_colon",
    "c.srt",
    srt(["(ANNA): Hello there.", "(BOB): Hi Anna.", "(ANNA): Coffee?", "(BOB): Sure."]),
    [("ANNA", 4, "Hello there."), ("BOB", 8, "Hi Anna."), ("ANNA", 12, "Coffee?"), ("BOB", 16, "Sure.")],
)
add(
    "parens_sounds",
    "c.srt",
    srt(["(laughs) Hello there.", "(door slams)", "Hi Anna.", "(laughs)"]),
    [(None, 4, "(laughs) Hello there."), (None, 8, "(door slams)"), (None, 12, "Hi Anna."), (None, 16, "(laughs)")],
)
add(
    "lower",
    "c.srt",
    srt(["anna: Hello there.", "bob: Hi Anna.", "anna: Coffee?", "bob: Sure."]),
    [("anna", 4, "Hello there."), ("bob", 8, "Hi Anna."), ("anna", 12, "Coffee?"), ("bob", 16, "Sure.")],
)
add(
    "lower_txt",
    "c.txt",
    "anna: Hello there.\nbob: Hi Anna.\nanna: Coffee?\nbob: Sure.\n",
    [("anna", None, "Hello there."), ("bob", None, "Hi Anna."), ("anna", None, "Coffee?"), ("bob", None, "Sure.")],
)
add(
    "no_blank",
    "c.srt",
    srt(["Anna:Hello there.", "Bob:Hi Anna.", "Anna:Coffee?", "Bob:Sure."]),
    [("Anna", 4, "Hello there."), ("Bob", 8, "Hi Anna."), ("Anna", 12, "Coffee?"), ("Bob", 16, "Sure.")],
)
add(
    "no_blank_txt",
    "c.txt",
    "A:Hello there.\nB:Hi Anna.\nA:Coffee?\nB:Sure.\n",
    [("A", None, "Hello there."), ("B", None, "Hi Anna."), ("A", None, "Coffee?"), ("B", None, "Sure.")],
)
add(
    "fullwidth",
    "c.srt",
    srt(["张三：你好", "李四：早上好", "张三：开始吧", "李四：好的"]),
    [("张三", 4, "你好"), ("李四", 8, "早上好"), ("张三", 12, "开始吧"), ("李四", 16, "好的")],
)
add(
    "once_only",
    "c.srt",
    srt(["Note: this happens once.", "We met at 10:30 today.", "The answer: yes.", "Okay."]),
    [
        (None, 4, "Note: this happens once."),
        (None, 8, "We met at 10:30 today."),
        (None, 12, "The answer: yes."),
        (None, 16, "Okay."),
    ],
)
add(
    "clock_repeat",
    "c.srt",
    srt(["10:30 is fine", "10:45 too", "10:30 then", "http://x.org and http://y.org"]),
    [
        (None, 4, "10:30 is fine"),
        (None, 8, "10:45 too"),
        (None, 12, "10:30 then"),
        (None, 16, "http://x.org and http://y.org"),
    ],
)
add(
    "brackets_sounds",
    "c.srt",
    srt(["[Music]", "Hello [laughs]", "[Music]", "[Applause] thanks"]),
    [(None, 4, "[Music]"), (None, 8, "Hello [laughs]"), (None, 12, "[Music]"), (None, 16, "[Applause] thanks")],
)
add(
    "name_own_line",
    "c.srt",
    srt(["ANNA:\nHello there.", "BOB:\nHi Anna.", "ANNA:\nCoffee?", "BOB:\nSure."]),
    [("ANNA", 4, "Hello there."), ("BOB", 8, "Hi Anna."), ("ANNA", 12, "Coffee?"), ("BOB", 16, "Sure.")],
)
add(
    "html_bold",
    "c.srt",
    srt(["<b>Anna:</b> Hello there.", "<b>Bob:</b> Hi Anna.", "<b>Anna:</b> Coffee?", "<b>Bob:</b> Sure."]),
    [("Anna", 4, "Hello there."), ("Bob", 8, "Hi Anna."), ("Anna", 12, "Coffee?"), ("Bob", 16, "Sure.")],
)
add(
    "role_parens",
    "c.txt",
    "ANNA (HOST): Hello there.\nBOB (GUEST): Hi Anna.\nANNA (HOST): Coffee?\nBOB (GUEST): Sure.\n",
    [
        ("ANNA (HOST)", None, "Hello there."),
        ("BOB (GUEST)", None, "Hi Anna."),
        ("ANNA (HOST)", None, "Coffee?"),
        ("BOB (GUEST)", None, "Sure."),
    ],
)
add(
    "vtt_class",
    "c.vtt",
    "WEBVTT\n\n00:01.000 --> 00:02.000\n<v.loud Anna Smith>Hello.\n\n00:03.000 --> 00:04.000\n<v.first.loud Bob>Hi.\n",
    [("Anna Smith", 1, "Hello."), ("Bob", 3, "Hi.")],
)
add(
    "vtt_two_dash",
    "c.vtt",
    "WEBVTT\n\n00:01.000 --> 00:05.000\n-Anna: Hello there.\n-Bob: Hi Anna.\n\n00:06.000 --> 00:09.000\n-Bob: Sure.\n-Anna: Fine.\n",
    [("Anna", 1, "Hello there."), ("Bob", None, "Hi Anna."), ("Bob", 6, "Sure."), ("Anna", None, "Fine.")],
)
# json
add(
    "tf_list",
    "p.json",
    [
        {
            "text": " Hello there. Bye.",
            "chunks": [{"timestamp": [0.0, 1.5], "text": " Hello there."}, {"timestamp": [1.5, None], "text": " Bye."}],
        }
    ],
    [(None, 0, "Hello there."), (None, 1.5, "Bye.")],
)
add(
    "tf_envelope",
    "p.json",
    {
        "output": {
            "text": " Hello there. Bye.",
            "chunks": [{"timestamp": [0.0, 1.5], "text": " Hello there."}, {"timestamp": [1.5, 2.0], "text": " Bye."}],
        }
    },
    [(None, 0, "Hello there."), (None, 1.5, "Bye.")],
)
add(
    "tf_result_list",
    "p.json",
    {
        "result": [
            {
                "text": " Hello there. Bye.",
                "chunks": [
                    {"timestamp": [0.0, 1.5], "text": " Hello there."},
                    {"timestamp": [1.5, 2.0], "text": " Bye."},
                ],
            }
        ]
    },
    [(None, 0, "Hello there."), (None, 1.5, "Bye.")],
)
add("tf_text_only", "p.json", [{"text": " Hello there. Bye."}], [(None, None, "Hello there. Bye.")])
add(
    "aws_segments",
    "a.json",
    {
        "jobName": "j",
        "results": {
            "transcripts": [{"transcript": "Hello there. Bye."}],
            "items": [],
            "audio_segments": [
                {
                    "id": 0,
                    "transcript": "Hello there.",
                    "start_time": "0.5",
                    "end_time": "1.5",
                    "items": [],
                    "speaker_label": "spk_0",
                },
                {
                    "id": 1,
                    "transcript": "Bye.",
                    "start_time": "2.0",
                    "end_time": "2.5",
                    "items": [],
                    "speaker_label": "spk_1",
                },
            ],
        },
        "status": "COMPLETED",
    },
    [("spk_0", 0.5, "Hello there."), ("spk_1", 2, "Bye.")],
)
add(
    "aws_segments_noitems",
    "a.json",
    {
        "jobName": "j",
        "results": {
            "transcripts": [{"transcript": "Hello there. Bye."}],
            "audio_segments": [
                {
                    "id": 0,
                    "transcript": "Hello there.",
                    "start_time": "0.5",
                    "end_time": "1.5",
                    "speaker_label": "spk_0",
                },
                {"id": 1, "transcript": "Bye.", "start_time": "2.0", "end_time": "2.5", "speaker_label": "spk_1"},
            ],
        },
        "status": "COMPLETED",
    },
    [("spk_0", 0.5, "Hello there."), ("spk_1", 2, "Bye.")],
)
add(
    "aws_speaker_segments_no_items",
    "a.json",
    {
        "jobName": "j",
        "results": {
            "transcripts": [{"transcript": "Hello there. Bye."}],
            "speaker_labels": {
                "speakers": 2,
                "segments": [
                    {"start_time": "0.5", "end_time": "1.5", "speaker_label": "spk_0"},
                    {"start_time": "2.0", "end_time": "2.5", "speaker_label": "spk_1"},
                ],
            },
            "items": [
                {
                    "start_time": "0.5",
                    "end_time": "0.9",
                    "type": "pronunciation",
                    "alternatives": [{"confidence": "0.9", "content": "Hello"}],
                },
                {
                    "start_time": "1.0",
                    "end_time": "1.5",
                    "type": "pronunciation",
                    "alternatives": [{"confidence": "0.9", "content": "there"}],
                },
                {"type": "punctuation", "alternatives": [{"confidence": "0.0", "content": "."}]},
                {
                    "start_time": "2.0",
                    "end_time": "2.5",
                    "type": "pronunciation",
                    "alternatives": [{"confidence": "0.9", "content": "Bye"}],
                },
                {"type": "punctuation", "alternatives": [{"confidence": "0.0", "content": "."}]},
            ],
        },
        "status": "COMPLETED",
    },
    [("spk_0", 0.5, "Hello there."), ("spk_1", 2, "Bye.")],
)
add(
    "webex_json",
    "w.json",
    {
        "items": [
            {
                "id": "1",
                "personName": "Anna",
                "personEmail": "a@x.org",
                "text": "Hello there.",
                "offsetMillisecond": 500,
                "durationMillisecond": 1000,
            },
            {
                "id": "2",
                "personName": "Bob",
                "personEmail": "b@x.org",
                "text": "Bye.",
                "offsetMillisecond": 2000,
                "durationMillisecond": 500,
            },
        ]
    },
    [("Anna", 0.5, "Hello there."), ("Bob", 2, "Bye.")],
)
add(
    "descript_srt",
    "d.srt",
    srt(["Anna Smith: Hello there.", "how are you", "Bob Jones: Hi Anna.", "Anna Smith: Coffee?", "Bob Jones: Sure."]),
    [
        ("Anna Smith", 4, "Hello there. how are you"),
        ("Bob Jones", 12, "Hi Anna."),
        ("Anna Smith", 16, "Coffee?"),
        ("Bob Jones", 20, "Sure."),
    ],
)


@pytest.mark.parametrize("case", CASES)
def test_names_and_times_are_found(case: str, tmp_path: Path) -> None:
    """Each turn has its speaker, its start and its text, without them."""
    file, content, expected = CASES[case]
    (tmp_path / file).write_text(content)
    with warnings.catch_warnings(action="ignore"):
        turns = voxframe.load_utterances(tmp_path / file)
    found = turns[["speaker", "start_ms", "text"]].astype(object)
    rows = list(found.where(found.notna(), None).itertuples(index=False, name=None))
    assert [(speaker, text) for speaker, _, text in rows] == [(speaker, text) for speaker, _, text in expected]
    for (_, start, _), (_, seconds, _) in zip(rows, expected, strict=True):
        assert seconds is None or start == round(1000 * seconds)


def test_what_is_not_said_is_kept() -> None:
    """Headings and credits of text, and identifiers, settings and other blocks of WebVTT are fields of the payload."""
    with warnings.catch_warnings(action="ignore"):
        text = json.loads(converted(CASES["otter"][1].encode(), "a.txt"))
        teams = json.loads(converted(CASES["teams_docx_new"][1].encode(), "a.txt"))
        cues = "WEBVTT - title\n\nNOTE by Eva\n\nSTYLE\n::cue {}\n\nid-1\n00:01.000 --> 00:02.000 line:0\nHi\n"
        captions = json.loads(converted(cues.encode(), "a.vtt"))
        moved = json.loads(converted(b"1\n00:00:01,000 --> 00:00:02,000 X1:40 X2:600\nHi\n", "a.srt"))
    assert text["credit"] == "Transcribed by https://otter.ai"
    assert teams["heading"].endswith("23m 4s Anna Smith started transcription")
    assert captions["webvtt"] == ["WEBVTT - title", "NOTE by Eva", "STYLE\n::cue {}"]
    cue = captions["utterances"][0]
    assert (cue["cue_id"], cue["cue_settings"]) == ("id-1", "line:0")
    assert moved["utterances"][0]["cue_settings"] == "X1:40 X2:600"
    kept = voxframe.load_utterances(captions)["extra"][0]
    assert json.loads(kept) == {"cue_id": "id-1", "cue_settings": "line:0"}


def test_joined_captions_keep_what_each_had() -> None:
    """A turn of several captions has the identifiers of all."""
    cues = "WEBVTT\n\na\n00:01.000 --> 00:02.000\nAnna: Hi\n\nb\n00:02.000 --> 00:03.000\nyou\n\nc\n00:09.000 --> 00:10.000\nAnna: Bye\n"
    with warnings.catch_warnings(action="ignore"):
        turn, _ = json.loads(converted(cues.encode(), "a.vtt"))["utterances"]
    assert (turn["text"], turn["cues"]) == ("Hi you", [{"cue_id": "a"}, {"cue_id": "b"}])


def test_several_results_are_several_transcripts() -> None:
    """A list of results of a pipeline is one transcript each."""
    result = {"text": " Hi.", "chunks": [{"timestamp": [0.0, 1.5], "text": " Hi."}]}
    payloads = json.loads(converted(json.dumps([result, result]).encode(), "a.json"))
    assert [payload["utterances"][0]["end"] for payload in payloads] == [1500, 1500]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.ctm",
            ";; qqnote\nr 1 0.0 0.5 one 0.9 qqtype\nr 1 * * <ALT_BEGIN>\nr 1 1.0 0.5 two 0.9\nr 1 * * <ALT>\nr 1 1.0 0.5 qqtoo 0.9\nr 1 * * <ALT_END>\n",
        ),
        ("a.stm", ";; CATEGORY qqlabel\nr 1 Ann 0.0 1.0 <o> one\nr 1 qqwho 1.0 2.0 ignore_time_segment_in_scoring\n"),
        (
            "a.rttm",
            ";; qqnote\nSPKR-INFO r 1 <NA> <NA> <NA> qqfemale Ann <NA>\nSPEAKER r 1 0.0 0.6 <NA> <NA> Ann <NA>\n",
        ),
        (
            "a.otr",
            json.dumps(
                {"text": '<p><span class="timestamp" data-timestamp="1">0:01</span>Ann: a <b class="qqmark">b</b></p>'}
            ),
        ),
        ("a.vtt", "WEBVTT qqtitle\n\nREGION\nid:qqregion\n\nqqid\n00:01.000 --> 00:02.000 region:qqregion\nHi\n"),
    ],
    ids=lambda value: value if len(value) < 12 else "",
)
def test_what_a_reader_does_not_use_is_in_extra(name: str, text: str) -> None:
    """Each value that begins with qq is in the column `extra` of a table."""
    with warnings.catch_warnings(action="ignore"):
        payload = converted(text.encode(), name)
    tables = voxframe.tables(payload)
    kept = "\n".join(str(value) for table in tables.values() for value in table.get("extra", ()))
    assert [mark for mark in set(re.findall(r"qq[a-z]+", text)) if mark not in kept] == []


@pytest.mark.parametrize(
    "row",
    [
        '{{"start": {0}, "end": {1}, "speaker": "Ann", "text": "one two"}}',
        '{{"audio_filepath": "a.wav", "offset": {0}, "duration": 1.0, "text": "one two"}}',
        '{{"session_id": "a", "speaker": "Ann", "start_time": "{0}", "end_time": "{1}", "words": "one two"}}',
    ],
    ids=["segments", "a manifest", "SegLST"],
)
def test_json_lines_of_segments_are_one_transcript(row: str) -> None:
    """A line per segment reads like a JSON list of these segments."""
    lines = "\r\n".join(row.format(start, start + 1) for start in (0.5, 2.5)).encode()
    words = voxframe.load_words(lines)
    assert words["transcript_id"].nunique() == 1
    assert words["start_ms"].tolist() == [500, 1000, 2500, 3000]


def test_json_lines_of_transcripts_stay_several() -> None:
    """A line per payload of the interface is a transcript per line."""
    row = '{{"id": "{}", "text": "one", "words": [{{"text": "one", "start": 1, "end": 2}}]}}'
    words = voxframe.load_words("\n".join(map(row.format, "ab")).encode())
    assert words["transcript_id"].tolist() == ["a", "b"]
