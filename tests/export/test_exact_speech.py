"""Formats of speech hold what they can exactly, and count the rest; read by other tools."""

import csv
import html
import io
import warnings
from pathlib import Path

import pandas as pd
import pympi
import pytest
import srt
import webvtt
from praatio import textgrid
from tests.hostile import HOSTILE

import voxframe
from voxframe import export
from voxframe.errors import ExportWarning
from voxframe.formats.writing import LENGTHENED, WANTED

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"

ESTIMATED = "rows without times, given those of the nearest row of the same speaker"
LEFT_OUT = "rows without times, left out"
OTHER = "texts that are read with another speaker, because they have none or begin like a name"
MARKUP = "captions that a player may read as markup, because SRT has no escapes"
NO_LENGTH = "captions without a length, shown for 0.8 seconds"


def frame(*rows: tuple[str | None, int | None, int | None, str | None], **more: object) -> pd.DataFrame:
    """Words from text, start, end and speaker."""
    texts, starts, ends, speakers = zip(*rows, strict=True)
    columns = {"text": texts, "start_ms": pd.array(starts, "Int64"), "end_ms": pd.array(ends, "Int64")}
    return pd.DataFrame({"transcript_id": "t", "word_idx": range(len(rows)), **columns, "speaker": speakers} | more)


@pytest.fixture
def hard() -> pd.DataFrame:
    """Words without times, an instant within a turn and one alone, overlapping speech, a missing speaker."""
    return frame(
        ("Hello,", 0, 400, "A"),
        ("&amp;", 400, 800, "A"),
        ("<b>", None, None, "A"),
        ("R&D", 800, 800, "A"),
        ("yes", 800, 1200, "B"),
        ("well", 1100, 1100, None),
        ("nowhere", None, None, "C"),
    )


def written(df: pd.DataFrame, path: Path, form: str) -> dict[str, int]:
    """Write a file; the losses that the result and the warning name alike, but for how turns are shown as captions."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        losses = export.write(df, path, form).losses
    losses = {reason: count for reason, count in losses.items() if reason not in WANTED}
    said = "; ".join(f"{count} {reason}" for reason, count in losses.items())
    expected = [f"{path} cannot hold every value exactly: {said}"] if losses else []
    assert [str(one.message) for one in warned if one.category is ExportWarning] == expected
    assert all(one.filename == __file__ for one in warned)
    return losses


def test_captions(hard: pd.DataFrame, tmp_path: Path) -> None:
    """Words without times are shown, an instant adds nothing to its caption, and one alone is counted."""
    both = {ESTIMATED: 1, LEFT_OUT: 1, NO_LENGTH: 1}
    expected = [(0, 800, "Hello, &amp; <b> R&D"), (800, 1600, "yes"), (1100, 1900, "well")]
    assert written(hard, tmp_path / "a.vtt", "vtt") == both | {OTHER: 1}
    cues = webvtt.read(str(tmp_path / "a.vtt")).captions
    times = [tuple(int(clock.replace(":", "").replace(".", "")) for clock in (cue.start, cue.end)) for cue in cues]
    shown = [html.unescape(cue.raw_text.removeprefix(f"<v {cue.voice}>")) for cue in cues]
    assert [(*time, text) for time, text in zip(times, shown, strict=True)] == expected
    assert [cue.voice for cue in cues] == ["A", "B", None]
    assert written(hard, tmp_path / "a.srt", "srt") == both | {MARKUP: 1, OTHER: 1}
    read = list(srt.parse((tmp_path / "a.srt").read_text()))
    named = [
        (start, end, f"{name}{text}") for name, (start, end, text) in zip(("A: ", "B: ", ""), expected, strict=True)
    ]
    assert [
        (round(c.start.total_seconds() * 1000), round(c.end.total_seconds() * 1000), c.content) for c in read
    ] == named


def test_exported_vtt_escapes_ampersands() -> None:
    """Text and names that look like an escape are shown unchanged."""
    made = export.vtt(frame(("&lt;b&gt;", 0, 1, "R&amp;D"), ("R&D", 1, 2, "R&amp;D")))
    assert made.splitlines()[3] == "<v R&amp;amp;D>&amp;lt;b&amp;gt; R&amp;D"


def test_tiers(hard: pd.DataFrame, tmp_path: Path) -> None:
    """Instants are points in a TextGrid and annotations without length in an EAF; no time is changed."""
    turns, words = "Hello, &amp; <b> R&D", [(0, 400, "Hello,"), (400, 800, "&amp;")]
    assert written(hard, tmp_path / "a.TextGrid", "textgrid") == {ESTIMATED: 1, LEFT_OUT: 1}
    grid = textgrid.openTextgrid(str(tmp_path / "a.TextGrid"), includeEmptyIntervals=False)
    read = {
        name: [(*(round(1000 * time) for time in entry[:-1]), entry.label) for entry in grid.getTier(name).entries]
        for name in grid.tierNames
    }
    assert read == {
        "A": [(0, 800, turns)],
        "A words": words,
        "A words (points)": [(800, "R&D")],
        "B": [(800, 1200, "yes")],
        "B words": [(800, 1200, "yes")],
        "speech (points)": [(1100, "well")],
        "speech words (points)": [(1100, "well")],
    }
    assert written(hard, tmp_path / "a.eaf", "eaf") == {ESTIMATED: 1, LEFT_OUT: 1}
    document = pympi.Elan.Eaf(str(tmp_path / "a.eaf"))
    found = {name: [a[:3] for a in document.get_annotation_data_for_tier(name)] for name in document.get_tier_names()}
    assert found == {
        "A": [(0, 800, turns)],
        "A words": [*words, (800, 800, "R&D")],
        "B": [(800, 1200, "yes")],
        "B words": [(800, 1200, "yes")],
        "speech": [(1100, 1100, "well")],
        "speech words": [(1100, 1100, "well")],
    }


@pytest.mark.parametrize("form", ["textgrid", "eaf"])
def test_one_voice_that_overlaps_itself_has_several_tiers(tmp_path: Path, form: str) -> None:
    """Words of one voice at the same time keep their times, in as many tiers as they need."""
    df = frame(("long", 0, 900, "A"), ("in", 200, 300, "A"), ("out", 250, 1000, "A"), ("next", 1000, 1100, "A"))
    path = tmp_path / f"a{export.FORMATS[form]}"
    assert written(df, path, form) == {}
    if form == "eaf":
        document = pympi.Elan.Eaf(str(path))
        tiers = {name: document.get_annotation_data_for_tier(name) for name in document.get_tier_names()}
        read = {name: [(a[0], a[1], a[2]) for a in annotations] for name, annotations in tiers.items()}
    else:
        grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
        read = {
            name: [(round(1000 * e.start), round(1000 * e.end), e.label) for e in grid.getTier(name).entries]
            for name in grid.tierNames
        }
    assert read == {
        "A": [(0, 1100, "long in out next")],
        "A words": [(0, 900, "long"), (1000, 1100, "next")],
        "A words (2)": [(200, 300, "in")],
        "A words (3)": [(250, 1000, "out")],
    }


@pytest.mark.long
def test_lines(hard: pd.DataFrame, tmp_path: Path) -> None:
    """RTTM, CTM, STM and labels have exact times; what they have no place for is counted."""
    from pyannote.database.util import load_rttm

    assert written(hard, tmp_path / "a.rttm", "rttm") == {LEFT_OUT: 2, "turns without a length, left out": 1}
    (speech,) = load_rttm(str(tmp_path / "a.rttm")).values()
    found = [(round(start, 6), round(end, 6), who) for (start, end), _, who in speech.itertracks(yield_label=True)]
    assert found == [
        (0.0, 0.8, "A"),
        (0.8, 1.2, "B"),
    ]
    assert written(hard, tmp_path / "a.ctm", "ctm") == {LEFT_OUT: 2}
    read = pd.read_csv(tmp_path / "a.ctm", sep=" ", names=["file", "channel", "start", "length", "word"], quoting=3)
    assert [tuple(row) for row in read[["start", "length", "word"]].itertuples(index=False)] == [
        (0.0, 0.4, "Hello,"),
        (0.4, 0.4, "&amp;"),
        (0.8, 0.0, "R&D"),
        (0.8, 0.4, "yes"),
        (1.1, 0.0, "well"),
    ]
    unknown = "turns without a speaker, written as 'unknown'"
    assert written(hard, tmp_path / "a.stm", "stm") == {ESTIMATED: 1, LEFT_OUT: 1, unknown: 1}
    assert (tmp_path / "a.stm").read_text().splitlines() == [
        "t 1 A 0.000 0.800 Hello, &amp; <b> R&D",
        "t 1 B 0.800 1.200 yes",
        "t 1 unknown 1.100 1.100 well",
    ]
    assert written(hard, tmp_path / "a.txt", "audacity") == {ESTIMATED: 1, LEFT_OUT: 1}
    with (tmp_path / "a.txt").open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows == [
        ["0.000", "0.800", "A: Hello, &amp; <b> R&D"],
        ["0.800", "1.200", "B: yes"],
        ["1.100", "1.100", "well"],
    ]


def test_confidences_keep_every_digit_in_ctm() -> None:
    """A confidence is the same number in the file, and absent if it is null."""
    made = export.ctm(frame(("a", 0, 1, "A"), ("b", 1, 2, "A"), confidence=[0.12345678901234567, None]))
    assert [[float(field) for field in line.split(" ")[5:]] for line in made.splitlines()] == [
        [0.12345678901234567],
        [],
    ]


def test_an_untimed_word_takes_the_times_of_the_nearest_word_of_its_speaker() -> None:
    """The times of other speakers and of distant words of the same speaker are not used."""
    df = frame(
        ("one", 0, 100, "A"),
        ("other", 100, 200, "B"),
        ("far", 200, 300, "B"),
        ("near", None, None, "A"),
        ("two", 9000, 9100, "A"),
    )
    with pytest.warns(ExportWarning, match="1 rows without times, given"):
        cues = list(srt.parse(export.srt(df, speakers=False)))
    assert [(cue.content, cue.start.total_seconds(), cue.end.total_seconds()) for cue in cues] == [
        ("one", 0.0, 0.8),
        ("other far", 0.1, 0.9),
        ("near two", 9.0, 9.8),
    ]


def test_impossible_values_are_corrected_and_counted(tmp_path: Path) -> None:
    """Negative, half-missing and reversed times, and rows without text or transcript, leave a trace in the result."""
    df = frame(
        ("a", -50, 100, "A"), ("b", None, 200, "A"), ("c", 300, 250, "A"), (None, 300, 400, "A"), ("d\n", 400, 500, "A")
    )
    losses = written(df, tmp_path / "a.ctm", "ctm")
    assert losses == {
        "rows with impossible times (negative, the end before the start, one missing, fractions), corrected": 3,
        "rows with times but no text, left out": 1,
        "texts with control characters, line ends or repeated blanks, written as one line without them": 1,
    }
    times = [line.split(" ")[2:5] for line in (tmp_path / "a.ctm").read_text().splitlines()]
    assert times == [["0.000", "0.100", "a"], ["0.200", "0.000", "b"], ["0.300", "0.000", "c"], ["0.400", "0.100", "d"]]
    with pytest.warns(ExportWarning, match="1 texts with control characters"):
        nobody = export.write(df.tail(1).assign(transcript_id=None), tmp_path / "all", "vtt")
    assert webvtt.read(str(tmp_path / "all" / nobody.files[0])).captions[0].text == "d"


def test_estimated_times_are_counted(tmp_path: Path) -> None:
    """A row that is longer than a caption is split at estimated times, which are counted."""
    turn = frame(("aaaa bbbb cccc dddd", 0, 1600, "A")).drop(columns="word_idx")
    with pytest.warns(ExportWarning, match="2 captions that begin or end inside a row"):
        cues = list(srt.parse(export.srt(turn, chars=9, speakers=False)))
    assert [(cue.content, cue.end.total_seconds()) for cue in cues] == [("aaaa bbbb", 0.8), ("cccc dddd", 1.6)]
    with pytest.warns(ExportWarning, match="4 words of rows with several words"):
        export.ctm(turn)


def test_columns_without_a_field_are_listed(tmp_path: Path) -> None:
    """The result tells which columns a format of speech has no place for, without a warning."""
    words = voxframe.load_words(PAYLOADS / "interview.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = export.write(words, tmp_path / "a.vtt", "vtt")
    before = [*zip(words["start_ms"] / 1000, words["end_ms"] / 1000, strict=True)]
    cues = [*srt.parse(export.srt(words, speakers=False))]
    unchanged = sum(cue.end.total_seconds() in {end for _, end in before} for cue in cues)
    assert result.losses.pop(LENGTHENED) == len(cues) - unchanged
    assert {*result.losses} <= WANTED
    assert result.omitted["confidence"] == len(words)
    assert "text" not in result.omitted
    assert export.write(words, tmp_path / "a.rttm", "rttm").omitted["text"] == len(words)
    assert "confidence" not in export.write(words, tmp_path / "a.ctm", "ctm").omitted


def test_hostile_speech_comes_back(tmp_path: Path) -> None:
    """Every text can be read back, at its time, from every format that has words."""
    texts = [" ".join(text.replace("\x00", "").replace("\ufffe", "").split()) for text in HOSTILE]
    df = frame(*((text, 3000 * n, 3000 * n + 500, text) for n, text in enumerate(texts)))
    for name in ("srt", "vtt"):
        with pytest.warns(ExportWarning):
            export.write(df, tmp_path / f"a.{name}", name)
    export.write(df, tmp_path / "a.TextGrid", "textgrid")
    export.write(df, tmp_path / "a.eaf", "eaf")
    said = [text.replace("-->", "\u2192") for text in texts]
    pieces = [
        cue.content.replace("\n", " ")
        for cue in srt.parse(export.srt(df, speakers=False, chars=10_000, losses=export.Losses()))
    ]
    assert pieces == said
    cues = webvtt.from_string(export.vtt(df, speakers=False, chars=10_000)).captions
    assert [html.unescape(cue.raw_text.replace("\n", " ")) for cue in cues] == texts
    grid = textgrid.openTextgrid(str(tmp_path / "a.TextGrid"), includeEmptyIntervals=False)
    assert [grid.getTier(f"{text} words").entries[0].label for text in texts] == texts
    document = pympi.Elan.Eaf(str(tmp_path / "a.eaf"))
    assert [document.get_annotation_data_for_tier(f"{text} words")[0][2] for text in texts] == texts
    with pytest.warns(ExportWarning, match="names with blanks"):
        lines = export.stm(df).splitlines()
    assert [line.split(" ", 5)[5] for line in lines] == [text.lstrip("< ") for text in texts]
    assert len(
        list(
            csv.reader(io.StringIO(export.audacity(df, losses=export.Losses())), delimiter="\t", quoting=csv.QUOTE_NONE)
        )
    ) == len(texts)
