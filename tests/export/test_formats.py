"""Every format of speech, read back by a program that is not ours."""

import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pympi
import pytest
import srt
import webvtt
from praatio import textgrid

import voxframe
from voxframe import export
from voxframe.errors import OptionError

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"
HOSTILE = [
    "<b>",
    "a --> b",
    'say "hi"',
    "new\n\nline",
    "R&D",
    "tab\there",
    "\x00\x1b[31m",
    ";;comment",
    "<v Eve>",
    "日本",
    "]]>",
    "NOTE",
    "\ufffe",
    "e\u0301",
]
NAMES = ['Ann "the" <b>', "Bob\n\nSmith & Co", ";;x"]


@pytest.fixture(scope="module")
def words() -> pd.DataFrame:
    """Words of the interview."""
    return voxframe.load_words(PAYLOADS / "interview.json")


@pytest.fixture(scope="module")
def hostile() -> pd.DataFrame:
    """A transcript whose texts and names try to break out, with times that make no sense here and there."""
    count = 3 * len(HOSTILE)
    return pd.DataFrame(
        {
            "transcript_id": "../e vil/\u202eid",
            "word_idx": range(count),
            "text": HOSTILE * 3,
            "start_ms": pd.array([300 * n for n in range(count - 2)] + [None, 100], "Int64"),
            "end_ms": pd.array([300 * n + 400 for n in range(count - 2)] + [900, 50], "Int64"),
            "confidence": [0.5, float("nan")] * (count // 2),
            "speaker": [NAMES[n // 14] for n in range(count)],
            "channel": None,
        }
    )


def spoken(df: pd.DataFrame) -> list[str]:
    """Return the expected words in time order, without control characters and with single spaces."""
    start = df["start_ms"].fillna(df["end_ms"])
    rows = df.loc[start.sort_values(kind="stable").index]
    plain = ("".join(c for c in " ".join(text.split()) if c.isprintable() or c == "\ufffe") for text in rows["text"])
    return [word for text in plain for word in text.split()]


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_srt(words: pd.DataFrame, hostile: pd.DataFrame) -> None:
    """A parser finds every word once, in order and at its time; each turn begins with the speaker."""
    cues = list(srt.parse(export.srt(words)))
    named = [cue.content.partition(": ") for cue in cues if cue.content[:3] in ("A: ", "B: ")]
    assert [name for name, *_ in named[:2]] == ["A", "B"]
    plain = list(srt.parse(export.srt(words, speakers=False)))
    assert " ".join(cue.content for cue in plain).split() == spoken(words)
    assert max(len(cue.content) for cue in plain) <= 84
    assert plain[0].start.total_seconds() * 1000 == words["start_ms"].iloc[0]
    assert all(cue.start < cue.end for cue in cues)
    broken = " ".join(cue.content for cue in srt.parse(export.srt(hostile, speakers=False))).split()
    assert sorted(broken) == sorted(word.replace("-->", "\u2192") for word in spoken(hostile))


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_vtt(words: pd.DataFrame, hostile: pd.DataFrame) -> None:
    """The parser finds every word and every speaker as a voice, whatever they are."""
    cues = webvtt.from_string(export.vtt(words)).captions
    assert " ".join(cue.text for cue in cues).split() == spoken(words)
    assert {cue.voice for cue in cues} == {"A", "B"}
    text = export.vtt(hostile)
    cues = webvtt.from_string(text).captions
    unescaped = " ".join(cue.text for cue in cues)
    for escape, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        unescaped = unescaped.replace(escape, sign)
    assert sorted(unescaped.split()) == sorted(spoken(hostile))
    lines = text.splitlines()
    assert sum("-->" in line for line in lines) == len(cues)
    assert all("<" not in line.removeprefix("<v ").partition(">")[2] for line in lines if line.startswith("<v "))
    assert "\n\n\n" not in text


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_textgrid(words: pd.DataFrame, hostile: pd.DataFrame, tmp_path: Path) -> None:
    """Praat's format has a tier of turns and one of words a voice, and every word at its time."""
    for df in (words, hostile):
        path = tmp_path / "a.TextGrid"
        path.write_text(export.textgrid(df), encoding="utf-8")
        read = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
        tiers = [read.getTier(name) for name in read.tierNames if " words" in name]
        assert sum(name.endswith(" words") for name in read.tierNames) == df["speaker"].nunique()
        labels = [entry.label for tier in tiers for entry in tier.entries]
        assert sorted(word for label in labels for word in label.split()) == sorted(spoken(df))
    first = words.iloc[0]
    path.write_text(export.textgrid(words), encoding="utf-8")
    entry = textgrid.openTextgrid(str(path), includeEmptyIntervals=False).getTier("A words").entries[0]
    assert (entry.start, entry.end, entry.label) == (first["start_ms"] / 1000, first["end_ms"] / 1000, first["text"])


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_eaf(words: pd.DataFrame, hostile: pd.DataFrame, tmp_path: Path) -> None:
    """ELAN's format has the same tiers; XML that another parser reads whatever was said."""
    for df in (words, hostile):
        path = tmp_path / "a.eaf"
        path.write_text(export.eaf(df), encoding="utf-8")
        read = pympi.Elan.Eaf(str(path))
        tiers = [name for name in read.get_tier_names() if " words" in name]
        assert sum(name.endswith(" words") for name in tiers) == df["speaker"].nunique()
        said = [a for name in tiers for a in read.get_annotation_data_for_tier(name)]
        found = sorted(word for _, _, text, *_ in said for word in text.split())
        assert found == sorted(word for word in spoken(df) if word != "\ufffe")
    path.write_text(export.eaf(words), encoding="utf-8")
    first = pympi.Elan.Eaf(str(path)).get_annotation_data_for_tier("A words")[0]
    assert first[:3] == tuple(words.iloc[0][["start_ms", "end_ms", "text"]])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_rttm(words: pd.DataFrame, hostile: pd.DataFrame, tmp_path: Path) -> None:
    """Speech time of each speaker is that of the words, give or take the pauses inside turns."""
    from pyannote.database.util import load_rttm

    path = tmp_path / "a.rttm"
    path.write_text(export.rttm(words), encoding="utf-8")
    (annotation,) = load_rttm(str(path)).values()
    assert sorted(annotation.labels()) == ["A", "B"]
    for speaker, rows in words.groupby("speaker"):
        talked = (rows["end_ms"] - rows["start_ms"]).sum() / 1000
        assert talked - 0.01 <= annotation.label_duration(speaker) < talked + 0.5 * len(rows)
    path.write_text(export.rttm(pd.concat([words, hostile])), encoding="utf-8")
    assert len(load_rttm(str(path))) == 2


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_ctm_and_stm(words: pd.DataFrame, hostile: pd.DataFrame) -> None:
    """Fields by blanks: every word at its time in one, every turn with its speaker in the other."""
    columns = ["file", "channel", "start", "duration", "word", "confidence"]
    read = pd.read_csv(io.StringIO(export.ctm(words)), sep=" ", names=columns, quoting=3, keep_default_na=False)
    assert read["word"].to_list() == spoken(words)
    assert (read["start"] * 1000).round().astype(int).to_list() == words["start_ms"].to_list()
    assert read["confidence"].astype(float).sub(words["confidence"].to_numpy()).abs().max() < 1e-4
    lines = export.ctm(hostile).splitlines()
    assert sorted(line.split(" ")[4] for line in lines) == sorted(spoken(hostile))
    assert {len(line.split(" ")) for line in lines} == {5, 6}
    turns = [line.split(" ", 5) for line in export.stm(words).splitlines()]
    assert {turn[2] for turn in turns} == {"A", "B"}
    assert " ".join(turn[5] for turn in sorted(turns, key=lambda t: float(t[3]))).split() == spoken(words)
    hard = [line.split(" ", 5) for line in export.stm(hostile).splitlines()]
    assert all(len(turn) == 6 and not turn[5].startswith("<") and not turn[0].startswith(";") for turn in hard)


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
def test_audacity(words: pd.DataFrame, hostile: pd.DataFrame) -> None:
    """Three fields with tabs a line, whatever was said."""
    rows = [line.split("\t") for line in export.audacity(words).splitlines()]
    assert " ".join(text.removeprefix("A: ").removeprefix("B: ") for *_, text in rows).split() == spoken(words)
    assert all(0 <= float(start) < float(end) for start, end, _ in rows)
    assert all(len(line.split("\t")) == 3 for line in export.audacity(hostile).splitlines())


def test_turns_and_channels() -> None:
    """Turns stay as they are; without a speaker the channel is named, and a set name replaces the label."""
    call = voxframe.load_words(PAYLOADS / "call.json")
    assert {cue.voice for cue in webvtt.from_string(export.vtt(call.assign(speaker=None))).captions} == {
        "channel 1",
        "channel 2",
    }
    named = call.assign(speaker_name=call["speaker"].map({"1": "Ann"}))
    assert {cue.voice for cue in webvtt.from_string(export.vtt(named)).captions} == {"Ann", "2"}
    turns = voxframe.load_utterances(PAYLOADS / "interview.json")
    assert len(export.audacity(turns).splitlines()) <= len(turns)
    assert [tier.split(" = ")[1] for tier in export.textgrid(turns).splitlines() if "name =" in tier] == ['"A"', '"B"']


def test_nothing_said(words: pd.DataFrame, tmp_path: Path) -> None:
    """A transcript without words is a file without any, which its readers take."""
    nothing = words.head(0)
    assert list(srt.parse(export.srt(nothing))) == []
    assert list(webvtt.from_string(export.vtt(nothing)).captions) == []
    tmp_path.joinpath("a.eaf").write_text(export.eaf(nothing))
    assert list(pympi.Elan.Eaf(str(tmp_path / "a.eaf")).get_tier_names()) == []
    assert "size = 0" in export.textgrid(nothing)
    assert [getattr(export, name)(nothing) for name in ("rttm", "ctm", "stm", "audacity")] == [""] * 4


def test_what_is_wrong_is_told(words: pd.DataFrame) -> None:
    """Missing columns, several transcripts, and objects other than a DataFrame raise OptionError."""
    with pytest.raises(OptionError, match="lacks start_ms"):
        export.srt(words.drop(columns="start_ms"))
    with pytest.raises(OptionError, match="vtt needs one transcript, got 2"):
        export.vtt(pd.concat([words, words.assign(transcript_id="b")]))
    with pytest.raises(OptionError, match="needs a DataFrame"):
        export.rttm("words")
    with pytest.raises(OptionError, match="chars must be a whole number of at least 1, got 0"):
        export.srt(words, chars=0)
    with pytest.raises(OptionError, match="speakers must be True or False, got 'no'"):
        export.vtt(words, speakers="no")
    wrong: Any = 3
    with pytest.raises(OptionError, match="audio must be a dict of URLs by transcript id, not of type int"):
        export.label_studio(words, audio=wrong)
    with pytest.raises(OptionError, match="read_edits needs the path of an edited file, got 3"):
        export.read_edits(words, wrong)
    with pytest.raises(OptionError, match="'text' occurs twice; rename or drop one"):
        export.rttm(pd.concat([words, words[["text"]]], axis=1))


@pytest.mark.parametrize("column", ["start_ms", "end_ms", "confidence"])
@pytest.mark.parametrize("form", ["srt", "ctm", "textgrid", "label_studio"])
def test_times_and_confidences_are_numbers(words: pd.DataFrame, form: str, column: str) -> None:
    """Texts and moments are refused, and the message names the column and a value."""
    for values, shown in ((words["text"], repr(words["text"].iloc[0])), (pd.to_datetime(words["start_ms"]), "Timest")):
        with pytest.raises(OptionError, match=rf"needs numbers in the column {column}, got {re.escape(shown)}"):
            getattr(export, form)(words.assign(**{column: values}))
