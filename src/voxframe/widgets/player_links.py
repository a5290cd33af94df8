"""Links from text to moments of recordings: citations in an answer, recordings of a corpus, and an embedded player."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import traitlets
from ipywidgets import widget_serialization

from voxframe.analysis.search_terms import spoken
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address, is_remote
from voxframe.errors import AudioError, CorpusError, CorpusWarning, OptionError
from voxframe.widgets.base import ScriptedWidget
from voxframe.widgets.player import TranscriptPlayer


class RecordingFinder:
    """Finds the recordings of transcripts, from the ledger of a corpus and from the user.

    Args:
        corpus: The corpus.
        audio: Recordings by transcript id, if the ledger does not know them or they were moved.
    """

    def __init__(self, corpus: Corpus, audio: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        self._ledger = corpus._ledger
        self._given = {name: os.fspath(path) for name, path in (audio or {}).items()}
        self._known: dict[str, str] = {}

    def source(self, transcript_id: str) -> str | None:
        """Return the path or URL of a recording; None if it is unknown."""
        if transcript_id not in self._given and transcript_id not in self._known:
            jobs = self._ledger.jobs()
            self._known = {job.transcript_id: job.source for job in jobs if job.transcript_id}
            self._known.setdefault(transcript_id, "")  # do not read the ledger again for it
        return self._given.get(transcript_id) or self._known[transcript_id] or None

    def name(self, transcript_id: str) -> str:
        """Return the file name of a recording, or the transcript id if the recording is unknown."""
        source = self.source(transcript_id)
        return (source.rstrip("/").rpartition("/")[2] or source) if source else transcript_id

    def playable(self, transcript_id: str) -> str | None:
        """Return a path or URL that a player accepts; None if the recording is unknown.

        Raises:
            AudioError: The file does not exist, or a browser cannot reach the store.
        """
        source = self.source(transcript_id)
        if source is None or is_address(source):
            return source
        if is_remote(source):
            raise AudioError(
                f"a browser cannot play {source!r} from this store; give audio={{{transcript_id!r}: a path or URL}}"
            )
        if not Path(source).expanduser().is_file():
            raise AudioError(
                f"the recording of {transcript_id!r} is no longer at {source!r}; give audio={{{transcript_id!r}: path}}"
            )
        return source


class CorpusPlayerWidget(ScriptedWidget):
    """A widget with an embedded player for the transcripts of a corpus. Its `scripts` must include `embed`.

    Args:
        corpus: The corpus. None: the default corpus.
        audio: Recordings by transcript id: see `RecordingFinder`.
        linked: A player elsewhere in the notebook; it plays its own transcript instead of the embedded player.
        **traits: Values of traits.

    Attributes:
        player: The embedded player; None until something is played.
    """

    player = traitlets.Instance(TranscriptPlayer, allow_none=True).tag(sync=True, **widget_serialization)

    def __init__(
        self,
        corpus: Corpus | None,
        audio: Mapping[str, str | os.PathLike[str]] | None,
        linked: TranscriptPlayer | None,
        **traits: Any,
    ) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._recordings = RecordingFinder(self._corpus, audio)
        self._linked = linked
        self._playing: str | None = None
        super().__init__(**traits)

    def play(self, transcript_id: str, start_ms: int, end_ms: int | None = None) -> None:
        """Play a transcript of the corpus from a time to the end of its passage.

        Args:
            transcript_id: The transcript.
            start_ms: Start time in ms.
            end_ms: End of the span to select, in ms. None (default): select nothing.

        Raises:
            CorpusError: The transcript is not in the corpus.

        Warns:
            CorpusWarning: The recording was not found; the transcript is shown without sound.
        """
        if self._linked is not None and self._linked._transcript_id == transcript_id:
            self._linked.cue(start_ms, end_ms)
            self._linked.send({"do": "play"})
            return
        if self.player is None or self._playing != transcript_id:
            old, self.player = self.player, self._open(transcript_id)
            self._playing = transcript_id
            if old is not None:
                old.close()
        self.player.cue(start_ms, end_ms)
        self.send({"do": "play"})  # the browser plays when the player has been rendered

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        if transcript_id not in self._corpus:
            raise CorpusError(
                f"there is no transcript {transcript_id!r} in {self._corpus!r}; corpus.ids() lists those that exist"
            )
        audio = None
        try:
            audio = self._recordings.playable(transcript_id)
        except AudioError as e:
            warnings.warn(str(e), CorpusWarning, stacklevel=3)  # the transcript can still be read
        tables, title = self._corpus.tables(transcript_id), self._recordings.name(transcript_id)
        return TranscriptPlayer(tables, audio, corpus=self._corpus, title=title)


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
