"""Citations: the moments of recordings that an answer rests on.

They are found in three ways, in this order:

1. by numbers of passages in the answer, such as [3];
2. by sentences and quotations that occur word for word in a transcript;
3. by passages that are close in meaning to a sentence of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from voxframe import encoder
from voxframe._arrow import TEXT
from voxframe._text import clock
from voxframe.analysis.search_terms import spoken
from voxframe.errors import OptionError

#: Minimum number of words: shorter matches may be chance. Quotations need fewer.
_MIN_WORDS, _MIN_QUOTED = 5, 3
#: Maximum number of passages to look for.
_MAX_PASSAGES = 60
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\d)[^.!?\n]*)*[.!?]*[\"\u201d\u2019)]*")
_QUOTED = re.compile(r"[\"\u201c\u00ab\u201e]([^\"\u201c\u201d\u00ab\u00bb\u201e\n]+)[\"\u201d\u00bb\u201c]")
_MARK = re.compile(r"\s*(?:[-*\u2022\u00b7\u2013]+\s+|\d+[.)]\s+)?(?:[\w ]{1,30}:\s+)?")


@dataclass(frozen=True)
class Citation:
    """A moment of a recording that a part of an answer rests on.

    Attributes:
        begin: Start in the answer, in characters.
        end: End in the answer, in characters.
        transcript_id: The transcript.
        start_ms: Start in the recording in ms; None if unknown.
        end_ms: End in the recording in ms; None if unknown.
        speaker: Speaker of the first word, by name or label.
        text: The words of the transcript.
    """

    begin: int
    end: int
    transcript_id: str
    start_ms: int | None
    end_ms: int | None
    speaker: str | None
    text: str


def citations(answer: str, search: Callable[..., pd.DataFrame], ids: Sequence[str]) -> list[Citation]:
    """Find sentences and quotations of an answer that occur in transcripts, in the order of the answer."""
    cited: list[Citation] = []
    for begin, end in _passages(answer):
        if cited and begin < cited[-1].end:
            continue  # a quotation inside a sentence already found
        query = " ".join(spoken(answer[begin:end].replace("*", " ")))
        try:
            rows = search(query, ids=list(ids), context=0, limit=1)
        except OptionError:  # no words in it
            continue
        if len(rows):
            cited.append(_citation(begin, end, rows.iloc[0]))
    return cited


def _passages(answer: str) -> Iterator[tuple[int, int]]:
    """Return spans to look for: sentences, without bullets and speaker names, and text in quotation marks."""
    spans = []
    for sentence in _SENTENCE.finditer(answer):
        mark = _MARK.match(answer, sentence.start(), sentence.end())
        begins = (sentence.start(), mark.end() if mark else sentence.start())
        spans += [(begin, sentence.end(), _MIN_WORDS) for begin in begins]
    spans += [(*quoted.span(1), _MIN_QUOTED) for quoted in _QUOTED.finditer(answer)]
    long_spans = {(begin, end) for begin, end, least in spans if len(spoken(answer[begin:end])) >= least}
    return iter(sorted(long_spans, key=lambda span: (span[0], -span[1]))[:_MAX_PASSAGES])


def _citation(begin: int, end: int, row: pd.Series) -> Citation:
    start, stop = (None if pd.isna(row[name]) else int(row[name]) for name in ("start_ms", "end_ms"))
    who = next((row[name] for name in ("speaker_name", "speaker") if not pd.isna(row[name])), None)
    return Citation(begin, end, str(row["transcript_id"]), start, stop, who, str(row["match"]))


class NumberedPassage(NamedTuple):
    """Consecutive sentences of a transcript."""

    number: int  # number in the text of a request, from 1 on
    sentences: pa.Table  # rows of the table `sentence_matches`

    @property
    def transcript_id(self) -> str:
        """The transcript."""
        return str(self.sentences["transcript_id"][0])

    def written(self) -> str:
        """Return the passage as dialogue, after a line with its number and place."""
        start = self.sentences["start_ms"][0].as_py()
        lines, before = (
            [f"[{self.number}: {self.transcript_id}{'' if start is None else f', {clock(start / 1000)}'}]"],
            None,
        )
        names = self.sentences["speaker_name"].to_pylist()
        for who, text in zip(names, self.sentences["match"].to_pylist(), strict=True):
            if who == before and len(lines) > 1:
                lines[-1] += f" {text}"
            else:
                lines.append(text if who is None else f"{who}: {text}")
            before = who
        return "\n".join(lines)


#: Precedes the passages in a request. The extractive answerer takes a line in brackets for a note.
PREAMBLE = (
    "[Passages of transcripts, each after its number. Name the numbers of the passages behind the answer, such as [3].]"
)
_NUMBERED = re.compile(r"\[(\d{1,4}(?:\s*(?:[,;\u2013-]|and)\s*\d{1,4})*)[^\]\n]*\]?")
_RANGE = re.compile(r"(\d+)(?:\s*[\u2013-]\s*(\d+))?")
_LEAST_CLOSENESS = 0.5
_COLUMNS: dict[str, Any] = {
    "question_idx": "int64",
    "transcript_id": TEXT,
    "start_ms": "Int64",
    "end_ms": "Int64",
    "speaker_name": TEXT,
    "text": TEXT,
    "begin": "int64",
    "end": "int64",
}


def cite(
    answers: Sequence[str], passages: Sequence[NumberedPassage], search: Callable[..., pd.DataFrame], ids: Sequence[str]
) -> pd.DataFrame:
    """Return the citations of answers, one row each; see `Answers.citations`."""
    rows = []
    for n, answer in enumerate(answers):
        of_answer = _named(answer, passages) or citations(answer, search, ids)
        if not of_answer and passages:
            of_answer = _closest(answer, passages)
        places: dict[tuple[Any, ...], tuple[int, int]] = {}
        for citation in of_answer:
            moment = (citation.transcript_id, citation.start_ms, citation.end_ms, citation.speaker, citation.text)
            places.setdefault(moment, (citation.begin, citation.end))
        rows += [(n, *moment, *place) for moment, place in places.items()]
    return pd.DataFrame(rows, columns=[*_COLUMNS]).astype(_COLUMNS)


def _named(answer: str, passages: Sequence[NumberedPassage]) -> list[Citation]:
    """Return the passages that an answer names by number, in the order of the answer."""
    by_number = {passage.number: passage for passage in passages}
    cited = []
    for mark in _NUMBERED.finditer(answer):
        ranges = [(int(first), int(last or first)) for first, last in _RANGE.findall(mark[1])]
        for number in (number for first, last in ranges for number in range(first, last + 1)):
            if (passage := by_number.get(number)) is not None:
                table = passage.sentences
                ends = [end for end in table["end_ms"].to_pylist() if end is not None]
                start, speaker = (table[name][0].as_py() for name in ("start_ms", "speaker_name"))
                text = " ".join(table["match"].to_pylist())
                cited.append(
                    Citation(*mark.span(), passage.transcript_id, start, max(ends, default=None), speaker, text)
                )
    return cited


def _closest(answer: str, passages: Sequence[NumberedPassage]) -> list[Citation]:
    """Return for each sentence of an answer the closest sentence of the passages, if it is close."""
    sentences = [match for match in _SENTENCE.finditer(answer) if len(spoken(match[0])) >= _MIN_QUOTED]
    table = pa.concat_tables([passage.sentences for passage in passages])
    coder = encoder.load()
    cosines = coder.encode([match[0].strip() for match in sentences]) @ coder.encode(table["match"].to_pylist()).T
    names = ("transcript_id", "start_ms", "end_ms", "speaker_name", "match")
    best = [
        (match.span(), int(row.argmax()))
        for match, row in zip(sentences, cosines, strict=True)
        if row.max() >= _LEAST_CLOSENESS
    ]
    return [Citation(*span, *(table[name][at].as_py() for name in names)) for span, at in best]
