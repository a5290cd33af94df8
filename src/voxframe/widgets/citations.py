"""Citations: verbatim quotations of transcripts in an answer, found by comparing words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from voxframe.analysis.search_terms import spoken
from voxframe.corpus import Corpus
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
    """A passage of an answer that occurs verbatim in a transcript.

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


def citations(answer: str, corpus: Corpus, ids: Sequence[str]) -> list[Citation]:
    """Find sentences and quotations of an answer that occur in transcripts, in the order of the answer.

    Words are compared without case, accents and punctuation. Paraphrases are not found.

    Args:
        answer: Text of the answer.
        corpus: Corpus of the transcripts.
        ids: Transcripts to search.

    Example:
        >>> import json, tempfile, voxframe
        >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
        >>> words = [{"text": t, "start": 9, "end": 99} for t in "Well, the trees are happy today.".split()]
        >>> corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
        >>> [found.text for found in citations("All is well. The trees are happy today!", corpus, ["a1"])]
        ['the trees are happy today.']
    """
    found: list[Citation] = []
    for begin, end in _passages(answer):
        if found and begin < found[-1].end:
            continue  # a quotation inside a sentence already found
        query = " ".join(spoken(answer[begin:end].replace("*", " ")))
        try:
            rows = corpus.search(query, ids=list(ids), context=0, limit=1)
        except OptionError:  # no words in it
            continue
        if len(rows):
            found.append(_citation(begin, end, rows.iloc[0]))
    return found


def _passages(answer: str) -> Iterator[tuple[int, int]]:
    """Return spans to look for: sentences, without bullets and speaker names, and text in quotation marks."""
    spans = []
    for sentence in _SENTENCE.finditer(answer):
        mark = _MARK.match(answer, sentence.start(), sentence.end())
        begins = (sentence.start(), mark.end() if mark else sentence.start())
        spans += [(begin, sentence.end(), _MIN_WORDS) for begin in begins]
    spans += [(*quoted.span(1), _MIN_QUOTED) for quoted in _QUOTED.finditer(answer)]
    wanted = {(begin, end) for begin, end, least in spans if len(spoken(answer[begin:end])) >= least}
    return iter(sorted(wanted, key=lambda span: (span[0], -span[1]))[:_MAX_PASSAGES])


def _citation(begin: int, end: int, row: pd.Series) -> Citation:
    start, stop = (None if pd.isna(row[name]) else int(row[name]) for name in ("start_ms", "end_ms"))
    who = next((row[name] for name in ("speaker_name", "speaker") if not pd.isna(row[name])), None)
    return Citation(begin, end, str(row["transcript_id"]), start, stop, who, str(row["match"]))
