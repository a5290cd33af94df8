"""Exports of turns: the limits of the turns, and transcripts whose words have no times."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voxframe
from voxframe import export
from voxframe.errors import ExportWarning

_WORDS = [
    [
        {"text": "Well,", "start": 1000, "end": 1400, "speaker": "A"},
        {"text": "no.", "start": 5000, "end": 5300, "speaker": "A"},
    ],
    [{"text": "Yes.", "start": 6100, "end": 6400, "speaker": "B"}],
]
_PAYLOAD = {
    "id": "t",
    "status": "completed",
    "utterances": [
        {"speaker": "A", "text": "Well, no.", "start": 900, "end": 5900, "words": _WORDS[0]},
        {"speaker": "B", "text": "Yes.", "start": 6000, "end": 6500, "words": _WORDS[1]},
    ],
}


def test_turns_have_their_own_limits(tmp_path: Path) -> None:
    """One line per turn, also over a pause of seconds, from the start to the end of the turn and not of its words."""
    tables = voxframe.tables(_PAYLOAD)
    both = {name: tables[name] for name in ("words", "utterances")}
    export.write(both, tmp_path / "a.rttm")
    assert [line.split()[3:5] for line in (tmp_path / "a.rttm").read_text().splitlines()] == [
        ["0.900", "5.000"],
        ["6.000", "0.500"],
    ]
    export.write(both, tmp_path / "a.eaf")
    read = voxframe.load_utterances(tmp_path / "a.eaf")
    assert read[["start_ms", "end_ms"]].values.tolist() == tables["utterances"][["start_ms", "end_ms"]].values.tolist()


def test_a_corpus_exports_turns_with_their_limits(tmp_path: Path) -> None:
    """The files of a corpus have the limits of the turns, and the exported tiers read back as unedited."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(_PAYLOAD)
    corpus.export(tmp_path / "stm", "stm")
    (file,) = (tmp_path / "stm").glob("*.stm")
    assert [line.split()[3:5] for line in file.read_text().splitlines()] == [["0.900", "5.900"], ["6.000", "6.500"]]
    corpus.export(tmp_path / "t.eaf", "eaf")
    assert corpus.apply_edits("t", tmp_path / "t.eaf").empty


@pytest.mark.parametrize("form", ["srt", "vtt", "stm", "rttm", "ctm", "txt", "md", "eaf", "textgrid", "audacity"])
def test_segments_without_word_times_are_exported(form: str) -> None:
    """Text with times per segment only is in every format."""
    segment = {"start": 0.5, "end": 2.0, "text": "Good day.", "speaker": "A"}
    words = voxframe.load_words({"segments": [segment], "language": "en"})
    warnings.simplefilter("ignore", ExportWarning)  # shared times are reported by CTM
    content = getattr(export, form)(words)
    assert form == "rttm" or "day." in content
    assert content


@pytest.mark.parametrize(("form", "expected"), [("txt", "Ann: Hi.\n"), ("md", "**Ann**: Hi.\n")])
def test_text_needs_no_times(form: str, expected: str) -> None:
    """A text without any time is written, in order, without time stamps."""
    rows: dict[str, Any] = {"transcript_id": "t", "text": ["Hi.", "Yes."], "start_ms": None, "end_ms": None}
    content = getattr(export, form)(pd.DataFrame(rows | {"speaker": ["Ann", "Bob"]}))
    assert content.startswith(expected)
    assert "Yes." in content
