"""Moments of a corpus to be heard: the recording of a transcript by name and address, and a player that jumps there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import traitlets
from ipywidgets import widget_serialization

from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address, is_remote
from voxframe.errors import AudioError, CorpusError, CorpusWarning
from voxframe.widgets.base import ScriptedWidget
from voxframe.widgets.player import TranscriptPlayer


class Recordings:
    """What the transcripts of a corpus were made of, as its ledger and the user know it.

    Args:
        corpus: The corpus.
        audio: Recordings by transcript, for those the ledger does not know or that were moved.
    """

    def __init__(self, corpus: Corpus, audio: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        self._ledger = corpus.ledger
        self._given = {name: os.fspath(path) for name, path in (audio or {}).items()}
        self._known: dict[str, str] = {}

    def source(self, transcript_id: str) -> str | None:
        """Path or address of a recording; None where nobody knows."""
        if transcript_id not in self._given and transcript_id not in self._known:
            jobs = self._ledger.jobs()
            self._known = {job.transcript_id: job.source for job in jobs if job.transcript_id}
            self._known.setdefault(transcript_id, "")  # not asked for again
        return self._given.get(transcript_id) or self._known[transcript_id] or None

    def name(self, transcript_id: str) -> str:
        """Name of a recording, else the identifier of its transcript."""
        source = self.source(transcript_id)
        return (source.rstrip("/").rpartition("/")[2] or source) if source else transcript_id

    def playable(self, transcript_id: str) -> str | None:
        """Path or address of a recording that a player can be given; None where nobody knows.

        Raises:
            AudioError: It is not there any more, or where no browser reaches it.
        """
        source = self.source(transcript_id)
        if source is None or is_address(source):
            return source
        if is_remote(source):
            raise AudioError(
                f"{source!r} is in a store that no browser reaches; give audio={{{transcript_id!r}: a path or address}}"
            )
        if not Path(source).expanduser().is_file():
            raise AudioError(
                f"the recording of {transcript_id!r} is not at {source!r} any more; "
                f"give audio={{{transcript_id!r}: path}}"
            )
        return source


class Moments(ScriptedWidget):
    """A widget that plays moments of a corpus. Its scripts include `embed`.

    Attributes:
        player: The player in it, or None before anything was played.
    """

    player = traitlets.Instance(TranscriptPlayer, allow_none=True).tag(sync=True, **widget_serialization)

    _corpus: Corpus
    _recordings: Recordings
    _linked: TranscriptPlayer | None = None
    _playing: str | None = None

    def play(self, transcript_id: str, start_ms: int, end_ms: int | None = None) -> None:
        """Play a transcript of the corpus from a moment on.

        A player that was linked plays its own transcript; others are opened in the player of this widget.

        Args:
            transcript_id: Identifier of the transcript.
            start_ms: The moment, in ms from the start of the recording.
            end_ms: Where what is of interest ends, to be marked; None for no mark.

        Raises:
            CorpusError: The transcript is not in the corpus.

        Warns:
            CorpusWarning: Its recording is not where it was; it can be read only.
        """
        mark = [int(start_ms), int(end_ms)] if end_ms is not None and end_ms >= start_ms else []
        if self._linked is not None and _transcript_of(self._linked) == transcript_id:
            self._linked.interval = mark
            self._linked.seek(start_ms, play=True)
            return
        if self.player is None or self._playing != transcript_id:
            old, self.player = self.player, self._open(transcript_id)
            self._playing = transcript_id
            if old is not None:
                old.close()
        self.player.interval = mark
        self.player.seek(start_ms)
        self.send({"do": "play"})  # the browser plays once the player is there

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        if transcript_id not in self._corpus:
            raise CorpusError(f"there is no transcript {transcript_id!r} in {self._corpus!r}; Corpus.ids() lists them")
        audio = None
        try:
            audio = self._recordings.playable(transcript_id)
        except AudioError as e:
            warnings.warn(str(e), CorpusWarning, stacklevel=3)  # it can still be read
        tables, title = self._corpus.tables(transcript_id), self._recordings.name(transcript_id)
        return TranscriptPlayer(tables, audio, corpus=self._corpus, title=title)


def _transcript_of(player: TranscriptPlayer) -> str | None:
    """Identifier of the transcript that a player shows, where it knows."""
    words = player._passages.words
    return words["transcript_id"].iloc[0] if "transcript_id" in words.columns and len(words) else None
