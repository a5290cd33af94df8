"""What voxframe exports it reads again, in every format."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import docx
import pandas as pd
import pytest

import voxframe
from voxframe.errors import ExportWarning, MissingExtraError, PayloadWarning
from voxframe.export import FORMATS
from voxframe.formats import FORMATS as ALL
from voxframe.formats import SPEECH_FORMATS, TABLE_FORMATS
from voxframe.formats.writing import PARTS, WANTED
from voxframe.schema import TRANSCRIPT_TABLES

_SPOKEN = [
    ("Ann", [("Good", 100, 300), ("morning,", 310, 700), ("ben.", 800, 1000)]),
    ("ben", [("Note:", 1500, 1700), ("it", 1700, 1800), ("rains,", 1900, 2200), ("*hard*", 2200, 2500)]),
    ("Ann", [("Yes.", 4000, 4300)]),
    ("ben", [("Fine", 5000, 5200), ("&", 5200, 5300), ("dry", 5300, 5900)]),
]  # fmt: skip


def _payload(transcript_id: str, *, with_speakers: bool = True) -> dict[str, Any]:
    utterances = []
    for speaker, spoken in _SPOKEN:
        who = {"speaker": speaker if with_speakers else None}
        words = [{"text": text, "start": start, "end": end, "confidence": 0.5} | who for text, start, end in spoken]
        text = " ".join(word["text"] for word in words)
        limits = {"start": words[0]["start"], "end": words[-1]["end"]}
        utterances.append({"text": text, "confidence": 0.5, "words": words, **limits, **who})
    words = [word for turn in utterances for word in turn["words"]]
    text = " ".join(turn["text"] for turn in utterances)
    return {"id": transcript_id, "status": "completed", "text": text, "words": words, "utterances": utterances}


def _corpus(path: Path, sources: Any) -> voxframe.Corpus:
    corpus = voxframe.Corpus(path)
    with warnings.catch_warnings(action="ignore"):
        added = corpus.add(sources)
    assert not added.left_out
    return corpus


def _rows(df: pd.DataFrame, columns: list[str]) -> list[list[Any]]:
    return df[columns].astype(object).where(df[columns].notna(), None).to_numpy().tolist()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, voxframe.Corpus]:
    """Corpora that are not changed: of a transcript for a file, of two for a folder, and of one without speakers."""
    folder = tmp_path_factory.mktemp("exported")
    return {
        "file": _corpus(folder / "one", _payload("a")),
        "folder": _corpus(folder / "two", [_payload("a"), _payload("b")]),
        "nobody": _corpus(folder / "nobody", _payload("a", with_speakers=False)),
    }


@pytest.mark.parametrize("where", ["folder", "file"])
@pytest.mark.parametrize("form", SPEECH_FORMATS)
def test_a_transcript_comes_back_in_every_format(
    tmp_path: Path, exported: dict[str, voxframe.Corpus], form: str, where: str
) -> None:
    """A folder and a file of a format have the exported rows, but for columns and losses that were reported."""
    first = exported[where]
    target = tmp_path / (f"out{FORMATS[form]}" if where == "file" else "out")
    with warnings.catch_warnings(action="ignore"):
        result = first.export(target, form)
    second = _corpus(tmp_path / "second", target)
    assert len(second) == len(first)
    kept = [name for name in ("text", "speaker", "start_ms", "end_ms", "confidence") if name not in result.omitted]
    assert {*kept} == {"text", "speaker", "start_ms", "end_ms", "confidence"} & ALL[form].columns
    of_words = form in ("ctm", "tsv", "textgrid", "eaf")
    table = "words" if of_words else "utterances"
    if form in ("srt", "vtt"):  # captions have times of their own
        kept = ["text", "speaker"]
    expected = _rows(first.table(table).sort_values(["transcript_id", "start_ms"], kind="stable"), kept)
    assert _rows(second.table(table).sort_values(["transcript_id", "start_ms"], kind="stable"), kept) == expected
    assert not {reason: count for reason, count in result.losses.items() if reason not in WANTED}


def test_turns_that_tsv_joins_are_counted(tmp_path: Path) -> None:
    """A turn of words after a turn of the same speaker, or of nobody, is read as one with it."""
    words = [{"text": f"w{n}", "start": n, "end": n + 1, "speaker": "A"} for n in range(3)]
    turns = [{"text": w["text"], "start": w["start"], "end": w["end"], "speaker": "A", "words": [w]} for w in words]
    table = voxframe.load_words({"id": "a", "utterances": turns})
    with pytest.warns(ExportWarning, match="2 turns after one of the same speaker"):
        voxframe.export.write(table, tmp_path / "a.tsv")
    assert len(voxframe.load_utterances(tmp_path / "a.tsv")) == len(turns) - 2


@pytest.mark.parametrize(
    "form", ["srt", "vtt", "txt", "md", "docx", "audacity", "stm", "labelstudio", "textgrid", "eaf"]
)
def test_a_transcript_without_speakers_comes_back(
    tmp_path: Path, exported: dict[str, voxframe.Corpus], form: str
) -> None:
    """Texts come back without a speaker, also if they begin like a name."""
    first = exported["nobody"]
    with warnings.catch_warnings(action="ignore"):
        first.export(tmp_path / "out", form)
    second = _corpus(tmp_path / "second", tmp_path / "out")
    assert " ".join(second.table("words")["text"]) == " ".join(first.table("words")["text"])
    assert set(second.table("utterances")["speaker"].dropna()) == set()


@pytest.mark.parametrize("form", ["srt", "txt", "md", "docx"])
def test_a_turn_without_a_speaker_after_a_named_one_is_counted(form: str) -> None:
    """These formats cannot say that nobody is known to speak, so the export reports such turns."""
    turns = pd.DataFrame({"transcript_id": "a", "text": ["Hi.", "Yes."], "start_ms": [0, 9000], "end_ms": [900, 9900]})
    with pytest.warns(ExportWarning, match="1 texts that are read with another speaker"):
        getattr(voxframe.export, form)(turns.assign(speaker=["Ann", None]))


@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_a_data_set_comes_back(tmp_path: Path, form: str) -> None:
    """Every table has the same rows: words, turns, results of analyses and unknown fields, of captions and payloads."""
    srt = "1\n00:00:01,000 --> 00:00:02,000\nAnn: Good day.\n\n2\n00:00:03,000 --> 00:00:04,000\nBen: Hello.\n"
    (tmp_path / "c.srt").write_text(srt)
    call = Path(__file__).parents[2] / "data/payloads/call.json"
    first = _corpus(tmp_path / "first", [_payload("a") | {"mood": {"joy": [0.5]}}, tmp_path / "c.srt", call])
    first.export(tmp_path / "out", form)
    second = _corpus(tmp_path / "second", tmp_path / "out")
    for name in TRANSCRIPT_TABLES:
        with warnings.catch_warnings(action="ignore"):  # no rows
            tables = [corpus.table(name) for corpus in (first, second)]
        keys = [column for column in tables[0] if column in ("transcript_id", "label") or column.endswith("_idx")]
        before, after = (
            table.sort_values(keys).reset_index(drop=True).drop(columns="source", errors="ignore") for table in tables
        )
        pd.testing.assert_frame_equal(before, after)
    loaded = voxframe.load_words(tmp_path / "out")
    assert sorted(loaded["text"]) == sorted(first.table("words")["text"])


@pytest.mark.parametrize("table", ["words", "utterances"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_one_exported_table_comes_back(
    tmp_path: Path, exported: dict[str, voxframe.Corpus], form: str, table: str
) -> None:
    """The words or the turns of two transcripts come back from one file, with their speakers, times and confidences."""
    first = exported["folder"]
    first.export(tmp_path / f"{table}.{form}", form, tables=[table])
    second = _corpus(tmp_path / "second", tmp_path / f"{table}.{form}")
    columns = ["transcript_id", "utterance_idx", "text", "speaker", "start_ms", "end_ms", "confidence"]
    assert _rows(second.table(table), columns) == _rows(first.table(table), columns)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_folder_with_one_table_keeps_the_recordings(tmp_path: Path, form: str) -> None:
    """The words of two files come back from the folder of an export with their recordings."""
    for name in ("call", "talk"):
        (tmp_path / f"{name}.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\nGood {name}.\n")
    first = _corpus(tmp_path / "first", [tmp_path / "call.srt", tmp_path / "talk.srt"])
    first.export(tmp_path / "out", form, tables=["words"])
    second = _corpus(tmp_path / "second", tmp_path / "out")
    columns = ["recording", "text", "start_ms"]
    assert _rows(second.table("words"), columns) == _rows(first.table("words"), columns)


def test_who_speaks_when_comes_back_without_a_speaker(tmp_path: Path) -> None:
    """In RTTM, the speaker `unknown` of our own export is nobody."""
    turns = pd.DataFrame({"transcript_id": "a", "text": "x", "start_ms": [0], "end_ms": [900], "speaker": [None]})
    with pytest.warns(ExportWarning, match="written as 'unknown'"):
        (tmp_path / "a.rttm").write_text(voxframe.export.rttm(turns))
    assert voxframe.load_utterances(tmp_path / "a.rttm")["speaker"].isna().all()


def test_values_of_folders_of_a_data_set_stay_text(tmp_path: Path) -> None:
    """A data set that is divided by speaker comes back, also for a speaker whose label looks like a number."""
    payload = _payload("a")
    for item in [*payload["words"], *payload["utterances"]]:
        item["speaker"] = "001" if item["speaker"] == "Ann" else "a/b=c"
    first = _corpus(tmp_path / "first", [payload])
    first.export(tmp_path / "out", "parquet", partition_by="speaker")
    second = _corpus(tmp_path / "second", tmp_path / "out")
    assert _rows(second.table("words"), ["text", "speaker"]) == _rows(first.table("words"), ["text", "speaker"])


@pytest.mark.parametrize("name", ["LICENSE.txt", "readme.txt", "requirements.txt"])
def test_text_about_other_files_is_no_transcript(tmp_path: Path, name: str) -> None:
    """A text file with such a name, without speakers and times, is left out of a folder and reported."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / name).write_text("You may copy it.\nNo warranty.\n")
    (folder / "a.txt").write_text("So it was.\n")
    (folder / "NOTES.TXT").write_text("Ann: Hi.\nBen: Yes.\n")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    added = corpus.add(folder)
    assert (added.transcripts, len(added.left_out)) == (2, 1)
    assert name in added.left_out[0][0]
    with pytest.warns(PayloadWarning, match="1 of 3 payloads cannot be read"):
        assert len(voxframe.load_transcripts(folder)) == 2


@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_values_of_metadata_come_back(tmp_path: Path, form: str) -> None:
    """Numbers come back as numbers and texts as texts, also "001" in CSV; a payload keeps them as fields of its own."""
    first = _corpus(tmp_path / "first", [_payload("a"), _payload("b")])
    about = {"transcript_id": ["a", "b"], "code": ["001", "02"], "age": [41, 7], "share": [0.5, 2.25]}
    first.metadata.set(pd.DataFrame(about))
    first.export(tmp_path / "out", form, metadata=True)
    second = _corpus(tmp_path / "second", tmp_path / "out")
    extra = [json.loads(text) for text in second.table("transcripts")["extra"]]
    assert [(fields["code"], fields["age"], fields["share"]) for fields in extra] == [("001", 41, 0.5), ("02", 7, 2.25)]


def test_tables_of_others_are_no_data_set(tmp_path: Path) -> None:
    """CSV files that have the names of our tables, but no transcripts by id, leave the other files alone."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "words.csv").write_text("start,end,text\n0,1,Hello\n")
    (folder / "topics.csv").write_text("name,share\nWeather,0.5\n")
    (folder / "good.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nGood day.\n")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    added = corpus.add(folder)
    assert sorted(corpus.table("words")["text"]) == ["Good", "Hello", "day."]
    assert [Path(name).name for name, _ in added.left_out] == ["topics.csv"]


def test_a_damaged_data_set_is_left_out_with_a_reason(tmp_path: Path) -> None:
    """A value that cannot be read names the table and the folder; nothing else is lost."""
    first = _corpus(tmp_path / "first", [_payload("a")])
    first.export(tmp_path / "all" / "set", "jsonl")
    words = tmp_path / "all" / "set" / "words.jsonl"
    words.write_text(words.read_text().replace('"extra":null', '"extra":"{"', 1))
    (tmp_path / "all" / "good.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nGood day.\n")
    added = voxframe.Corpus(tmp_path / "corpus").add(tmp_path / "all")
    assert added.transcripts == 1
    ((name, reason),) = added.left_out
    assert name.endswith("set")
    assert "of the data set" in reason


def test_sheets_and_tables_of_documents_are_read(tmp_path: Path) -> None:
    """The first sheet of a workbook, and the cells of a table in a Word document, as people keep interviews."""
    sheet = pd.DataFrame(
        {"Speaker": ["Ann", "Ben"], "Start": [1.5, 2.5], "End": [2.0, 3.0], "Text": ["Good day.", "Hi."]}
    )
    sheet.to_excel(tmp_path / "interview.xlsx", index=False)
    turns = voxframe.load_utterances(tmp_path / "interview.xlsx")
    assert _rows(turns, ["speaker", "start_ms", "text"]) == [["Ann", 1500, "Good day."], ["Ben", 2500, "Hi."]]
    document = docx.Document()
    table = document.add_table(2, 2)
    for row, (name, text) in zip(table.rows, [("Ann:", "Good day."), ("Ben:", "Hi.")], strict=True):
        row.cells[0].text, row.cells[1].text = name, text
    document.save(tmp_path / "table.docx")
    assert " ".join(voxframe.load_words(tmp_path / "table.docx")["text"]) == "Good day. Hi."


def test_a_workbook_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without openpyxl, the error names the extra."""
    pd.DataFrame({"Text": ["Hi."]}).to_excel(tmp_path / "a.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"voxframe\[excel\]"):
        voxframe.load_words(tmp_path / "a.xlsx")


@pytest.mark.parametrize("form", ["txt", "md", "docx"])
def test_partly_timed_turns_keep_their_order(tmp_path: Path, form: str) -> None:
    """Formats of text have all turns in their order, also if only some have times, and names with underscores."""
    times = [(None, None), (1000, 2000), (3000, 4000), (None, None), (None, None)]
    names = ["SPEAKER_00", "B", "SPEAKER_00", "B", "C"]
    turns = [
        {"text": f"part_{n} of it", "speaker": name, "start": start, "end": end}
        for n, (name, (start, end)) in enumerate(zip(names, times, strict=True))
    ]
    corpus = _corpus(tmp_path / "first", {"id": "a", "status": "completed", "utterances": turns})
    corpus.export(tmp_path / f"a.{form}", form)
    again = voxframe.load_utterances(tmp_path / f"a.{form}")
    assert again[["speaker", "text"]].values.tolist() == [[turn["speaker"], turn["text"]] for turn in turns]


@pytest.mark.parametrize(
    ("form", "loss"), [("textgrid", "names that"), ("labelstudio", "names that"), ("stm", "codes")]
)
def test_what_other_formats_take_for_something_else_is_counted(tmp_path: Path, form: str, loss: str) -> None:
    """Names like those of tiers, and braces in STM, are reported."""
    turn = {"text": "three {a/b} four", "speaker": "Sam (2)", "start": 0, "end": 900}
    turns = voxframe.load_utterances({"id": "a", "utterances": [turn]})
    with pytest.warns(ExportWarning, match=loss):
        voxframe.export.write(turns, tmp_path / f"a.{form}", form)


def test_long_turns_of_webvtt_are_counted(tmp_path: Path) -> None:
    """A turn of several captions is read as several turns, which only the losses say."""
    text = " ".join(f"word{n}" for n in range(60))
    turns = voxframe.load_utterances(
        {"id": "a", "utterances": [{"text": text, "start": 0, "end": 20_000, "speaker": "A"}]}
    )
    with pytest.warns(ExportWarning, match="at a time estimated") as said:
        result = voxframe.export.write(turns, tmp_path / "a.vtt", "vtt")
    assert PARTS not in str(said[0].message)
    assert len(voxframe.load_utterances(tmp_path / "a.vtt")) == 1 + result.losses[PARTS] > 1
