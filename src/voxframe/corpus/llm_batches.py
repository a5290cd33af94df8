"""Batches of transcripts that fit into one language-model request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voxframe.corpus.archive import Archive
from voxframe.corpus.correction_files import CurrentCorrections
from voxframe.corpus.query import Query
from voxframe.corpus.speakers import Speakers
from voxframe.errors import OptionError
from voxframe.options import LLM_HOURS, LLM_INPUT_DEFAULT, LLM_TRANSCRIPTS

#: Maximum number of characters of a text. In any language, a token rarely has fewer than two characters.
MAX_CHARS = 2 * LLM_INPUT_DEFAULT


@dataclass(frozen=True)
class LlmBatch:
    """Transcripts of one request.

    Attributes:
        ids: Ids of the transcripts.
        text: Their text, if it is sent. None (default): the service looks up the transcripts by id.
    """

    ids: tuple[str, ...]
    text: str | None = None


class LlmTexts:
    """Splits selections of transcripts into batches that fit into one request."""

    def __init__(self, archive: Archive, query: Query, speakers: Speakers, corrections: CurrentCorrections) -> None:
        self._archive, self._query, self._speakers, self._corrections = archive, query, speakers, corrections

    def batches(self, transcripts: Any) -> list[LlmBatch]:
        """Return the batches of a selection.

        Transcripts sent by id come first, then transcripts with names or corrections as text; both in the given order.
        Transcripts without speech are left out, because a service refuses a request that contains one.

        Args:
            transcripts: A transcript id, an iterable of ids, or a DataFrame with a column `transcript_id`. None: every
                completed transcript.

        Raises:
            CorpusError: A transcript is not in the corpus, or an id is invalid.
            OptionError: The selection is empty, a transcript is not completed, or none contains speech.
        """
        ids = None if transcripts is None else self._archive.recordings.ids(transcripts)
        known = self._query.table("transcripts", ids, columns=["transcript_id", "status", "audio_duration_s"])
        if ids is not None and (undone := known[known["status"] != "completed"]["transcript_id"].to_list()):
            raise OptionError(f"transcript {undone[0]!r} is not completed, so it has no text; leave it out")
        known = known[known["status"] == "completed"]
        if known.empty:
            raise OptionError(f"the selection contains no completed transcript of the corpus {self._archive.path}")
        chosen = known["transcript_id"].tolist()
        spoken = self._archive.with_rows("words", chosen) | self._archive.with_rows("utterances", chosen)
        known = known[known["transcript_id"].isin(spoken)]
        if known.empty:
            raise OptionError(f"the selected transcripts of the corpus {self._archive.path} contain no speech")
        named = {*self._speakers.get(known["transcript_id"])["transcript_id"]}
        named |= self._corrections.edits().keys()
        lengths = (known["audio_duration_s"].fillna(0) / 3600).tolist()
        hours: dict[str, float] = dict(zip(known["transcript_id"].tolist(), lengths, strict=True))
        by_id = [
            LlmBatch(tuple(group)) for group in split_by_limits({i: h for i, h in hours.items() if i not in named})
        ]
        return by_id + list(self.as_texts([i for i in hours if i in named]))

    def as_texts(self, ids: Sequence[str]) -> Iterator[LlmBatch]:
        """Yield batches with the text of transcripts and the names of their speakers, as many per batch as fit."""
        held: list[str] = []
        text = ""
        for transcript_id in ids:
            for piece in _pieces(self._lines(transcript_id)):
                if held and len(text) + 2 + len(piece) > MAX_CHARS:
                    yield LlmBatch(tuple(held), text)
                    held, text = [], ""
                text = f"{text}\n\n{piece}" if text else piece
                if transcript_id not in held:
                    held.append(transcript_id)
        if held:
            yield LlmBatch(tuple(held), text)

    def _lines(self, transcript_id: str) -> Iterator[str]:
        """Yield one line per turn with the name of its speaker and its corrected text."""
        turns = self._query.table("utterances", transcript_id)
        if turns.empty:
            from voxframe.analysis import turns as grouped

            turns = grouped(self._query.table("words", transcript_id))
        from voxframe.analysis.speaker_turns import row_speakers

        for who, text in zip(row_speakers(turns), turns["text"], strict=True):
            if isinstance(text, str) and text.strip():
                yield f"{who}: {text}" if isinstance(who, str) else text


def texts_together(texts: Iterable[str]) -> list[str]:
    """Join texts into as few as possible that each fit into one request."""
    found: list[str] = []
    for text in texts:
        if found and len(found[-1]) + 2 + len(text) <= MAX_CHARS:
            found[-1] += f"\n\n{text}"
        else:
            found.append(text)
    return found


def split_by_limits(hours: dict[str, float]) -> Iterator[list[str]]:
    """Yield groups of transcript ids that each fit into one request, by number and total duration.

    Args:
        hours: Duration of each transcript in hours, by id.
    """
    group: list[str] = []
    total = 0.0
    for transcript_id, length in hours.items():
        if group and (len(group) == LLM_TRANSCRIPTS or total + length > LLM_HOURS):
            yield group
            group, total = [], 0.0
        group.append(transcript_id)
        total += length
    if group:
        yield group


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    piece = ""
    for line in (whole[at : at + MAX_CHARS] for whole in lines for at in range(0, len(whole), MAX_CHARS)):
        if piece and len(piece) + 1 + len(line) > MAX_CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n{line}" if piece else line
    if piece:
        yield piece
