"""Where an answer quotes a transcript: found here, by its words, not told by the language model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from voxframe.analysis.terms import spoken
from voxframe.corpus import Corpus
from voxframe.errors import OptionError

#: Fewer words than this in a row may be chance; in quotation marks, fewer do.
LEAST_WORDS, LEAST_QUOTED = 5, 3
#: Sentences of an answer that are looked for.
_MOST = 60
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\d)[^.!?\n]*)*[.!?]*[\"\u201d\u2019)]*")
_QUOTED = re.compile(r"[\"\u201c\u00ab\u201e]([^\"\u201c\u201d\u00ab\u00bb\u201e\n]+)[\"\u201d\u00bb\u201c]")
_MARK = re.compile(r"\s*(?:[-*\u2022\u00b7\u2013]+\s+|\d+[.)]\s+)?(?:[\w ]{1,30}:\s+)?")


@dataclass(frozen=True)
class Citation:
    """A passage of an answer that stands word for word in a transcript.

    Attributes:
        begin: Where it begins in the answer, in characters.
        end: Where it ends.
        transcript_id: The transcript.
        start_ms: When it was said, ms; None where nobody knows.
        end_ms: When it ended, ms.
        speaker: Who said its first word, by name or label.
        text: The words as the transcript has them.
    """

    begin: int
    end: int
    transcript_id: str
    start_ms: int | None
    end_ms: int | None
    speaker: str | None
    text: str


def citations(answer: str, corpus: Corpus, ids: Sequence[str]) -> list[Citation]:
    """Sentences and quotations of an answer that were said in these transcripts, in the order of the answer.

    Words are compared without case, accents and punctuation. A sentence in the model's own words is not found.

    Args:
        answer: The text of the answer.
        corpus: Where the transcripts are.
        ids: The transcripts that were asked about.

    Example:
        >>> import json, tempfile, voxframe
        >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
        >>> words = [{"text": t, "start": 9, "end": 99} for t in "Well, the trees are happy today.".split()]
        >>> _ = corpus.put("a1", json.dumps({"id": "a1", "words": words}).encode())
        >>> [found.text for found in citations("All is well. The trees are happy today!", corpus, ["a1"])]
        ['the trees are happy today.']
    """
    found: list[Citation] = []
    for begin, end in _passages(answer):
        if found and begin < found[-1].end:
            continue  # a quotation in a sentence that was found
        query = " ".join(spoken(answer[begin:end].replace("*", " ")))
        try:
            rows = corpus.search(query, ids=list(ids), context=0, limit=1)
        except OptionError:  # there is no word in it
            continue
        if len(rows):
            found.append(_citation(begin, end, rows.iloc[0]))
    return found


def _passages(answer: str) -> Iterator[tuple[int, int]]:
    """What is looked for: sentences without bullets and names before them, and what is in quotation marks."""
    spans = []
    for sentence in _SENTENCE.finditer(answer):
        mark = _MARK.match(answer, sentence.start(), sentence.end())
        begins = (sentence.start(), mark.end() if mark else sentence.start())
        spans += [(begin, sentence.end(), LEAST_WORDS) for begin in begins]
    spans += [(*quoted.span(1), LEAST_QUOTED) for quoted in _QUOTED.finditer(answer)]
    wanted = {(begin, end) for begin, end, least in spans if len(spoken(answer[begin:end])) >= least}
    return iter(sorted(wanted, key=lambda span: (span[0], -span[1]))[:_MOST])


def _citation(begin: int, end: int, row: pd.Series) -> Citation:
    start, stop = (None if pd.isna(row[name]) else int(row[name]) for name in ("start_ms", "end_ms"))
    who = next((row[name] for name in ("speaker_name", "speaker") if not pd.isna(row[name])), None)
    return Citation(begin, end, str(row["transcript_id"]), start, stop, who, str(row["match"]))
