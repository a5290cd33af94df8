"""Recordings of a corpus, and widgets with an embedded player."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traitlets
from ipywidgets import widget_serialization

from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address, is_remote, short_name
from voxframe.errors import AudioError, CorpusError, CorpusWarning
from voxframe.widgets.base import ScriptedWidget
from voxframe.widgets.player import TranscriptPlayer


class RecordingFinder:
    """Finds the recordings of transcripts, from the ledger of a corpus and from the user.

    Args:
        corpus: The corpus.
        audio: Recordings by transcript id or name, if the ledger does not know them or they were moved.
    """

    def __init__(self, corpus: Corpus, audio: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        self._ledger, self._store = corpus._ledger, corpus._archive.store
        self._recordings = corpus._archive.recordings
        self._names: dict[str, str] = {}
        self._given = {self._recordings.id(name): os.fspath(path) for name, path in (audio or {}).items()}
        self._known: dict[str, str] = {}

    def id(self, name: str) -> str:
        """Return the id of a transcript, given it or the name of its recording."""
        return self._recordings.id(name)

    def source(self, transcript_id: str) -> str | None:
        """Return the path or URL of a recording; None if it is unknown."""
        if transcript_id not in self._given and transcript_id not in self._known:
            jobs = self._ledger.jobs()
            self._known = {job.transcript_id: job.source for job in jobs if job.transcript_id}
            self._known.setdefault(transcript_id, "")  # do not read the ledger again for it
        return self._given.get(transcript_id) or self._known[transcript_id] or None

    def name(self, transcript_id: str) -> str:
        """Return the name of a recording; the transcript id if it is unknown."""
        if transcript_id not in self._names:
            about = self._recordings.table(self._store.ids())
            self._names = dict(zip(*about.select(["transcript_id", "recording"]).to_pydict().values(), strict=True))
        name = self._names.setdefault(transcript_id, transcript_id)
        given = self._given.get(transcript_id) if name == transcript_id else None
        return (given and short_name(given)) or name

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


class PlayerWidget(ScriptedWidget):
    """A widget with an embedded player. Its `scripts` must include `embed`; subclasses define `_open`.

    Args:
        linked: A player elsewhere in the notebook; it plays its own transcript instead of the embedded player.
        **traits: Values of traits.

    Attributes:
        player: The embedded player; None until something is played.
    """

    player = traitlets.Instance(TranscriptPlayer, allow_none=True).tag(sync=True, **widget_serialization)

    def __init__(self, linked: TranscriptPlayer | None, **traits: Any) -> None:
        self._linked = linked
        self._playing: str | None = None
        super().__init__(**traits)

    def play(self, transcript_id: str, start_ms: int, end_ms: int | None = None) -> None:
        """Play a transcript from a time to the end of its passage.

        Args:
            transcript_id: The transcript.
            start_ms: Start time in ms.
            end_ms: End of the span to select, in ms. None (default): select nothing.

        Raises:
            CorpusError: There is no such transcript.

        Warns:
            CorpusWarning: The recording was not found; the transcript is shown without sound.
        """
        if self._linked is not None and self._is_linked(transcript_id):
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

    def _is_linked(self, transcript_id: str) -> bool:
        """Return True if the player elsewhere in the notebook has this transcript."""
        return self._linked is not None and self._linked._transcript_id == transcript_id

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        """Return a player of a transcript."""
        raise NotImplementedError


class CorpusPlayerWidget(PlayerWidget):
    """A widget with an embedded player for the transcripts of a corpus.

    Args:
        corpus: The corpus. None: the default corpus.
        audio: Recordings by transcript id: see `RecordingFinder`.
        linked: As for `PlayerWidget`.
        **traits: Values of traits.
    """

    def __init__(
        self,
        corpus: Corpus | None,
        audio: Mapping[str, str | os.PathLike[str]] | None,
        linked: TranscriptPlayer | None,
        **traits: Any,
    ) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._recordings = RecordingFinder(self._corpus, audio)
        super().__init__(linked, **traits)

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        return open_player(self._corpus, self._recordings, transcript_id)


def open_player(corpus: Corpus, recordings: RecordingFinder, transcript_id: str) -> TranscriptPlayer:
    """Return a player of a transcript of a corpus.

    Raises:
        CorpusError: The transcript is not in the corpus.

    Warns:
        CorpusWarning: The recording was not found; the transcript is shown without sound.
    """
    if transcript_id not in corpus:
        raise CorpusError(
            f"there is no transcript {transcript_id!r} in {corpus!r}; corpus.ids() lists those that exist"
        )
    audio = None
    try:
        audio = recordings.playable(transcript_id)
    except AudioError as e:
        warnings.warn(str(e), CorpusWarning, stacklevel=4)  # the transcript can still be read
    return TranscriptPlayer(corpus.tables(transcript_id), audio, corpus=corpus, title=recordings.name(transcript_id))
