"""Widgets with an embedded player, for transcripts of a corpus or rows of a DataFrame, and how they find recordings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import traitlets
from ipywidgets import widget_serialization

from voxframe.analysis.grouping import recordings_of
from voxframe.analysis.rows import require
from voxframe.corpus import Corpus
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.job import is_address, is_remote, short_name
from voxframe.errors import AudioError, CorpusWarning, OptionError, caller
from voxframe.validators import Integer, checked, nearest, shown
from voxframe.widgets.base import ScriptedWidget, absolute_path, corpus_call, require_times, show_errors
from voxframe.widgets.player import TranscriptPlayer

#: One recording, or recordings by transcript id or by name.
Audio: TypeAlias = "str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None"


def audio_by_name(audio: Mapping[str, str | os.PathLike[str]] | None) -> dict[str, str]:
    """Return the paths and URLs of an argument `audio`; paths are absolute."""
    if audio is not None and not isinstance(audio, Mapping):
        raise OptionError(
            "audio must be a dict of paths or URLs by transcript id or recording, such as "
            f"{{'interview': 'interview.flac'}}, got {shown(audio)}"
        )
    return {str(name): absolute_path(path) for name, path in (audio or {}).items()}


class RecordingFinder:
    """Finds the recordings of transcripts, from the ledger of a corpus and from the argument `audio`."""

    def __init__(self, corpus: Corpus, audio: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        self._ledger, self._store = corpus.parts.ledger, corpus.parts.archive.store
        self._recordings = corpus.parts.archive.recordings
        self._names: dict[str, str] = {}
        self._given = {}
        archive = corpus.parts.archive
        for name, path in audio_by_name(audio).items():
            transcript_id = self._recordings.id(name)
            self._given[transcript_id] = path
            if not archive.has_left(transcript_id) and (near := archive.similar(name)):
                text = f"audio is given for {name!r}, which is no recording of the corpus{near}"
                warnings.warn(text, CorpusWarning, stacklevel=caller())
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
        path = self._given.get(transcript_id) if name == transcript_id else None
        return (path and short_name(path)) or name

    def playable(self, transcript_id: str) -> str | None:
        """Return a path or URL that a player accepts; None if the recording is unknown."""
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
    """A widget with an embedded player; a `linked` one elsewhere in the notebook plays its own transcript."""

    player = traitlets.Instance(TranscriptPlayer, allow_none=True).tag(sync=True, **widget_serialization)

    def __init__(self, linked: TranscriptPlayer | None, **traits: Any) -> None:
        if linked is not None and not isinstance(linked, TranscriptPlayer):
            raise OptionError(f"player must be a voxframe.TranscriptPlayer, got {shown(linked)}")
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
        self._play(transcript_id, start_ms, end_ms)

    def _play(self, transcript_id: str, start_ms: int, end_ms: int | None, query: str = "") -> None:
        """Play as `play` does. The embedded player marks the hits of a query."""
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
        self.player.query = query or self.player.query
        self.send({"do": "play"})  # the browser plays when the player has been rendered

    def _is_linked(self, transcript_id: str) -> bool:
        """Return True if the player elsewhere in the notebook has this transcript."""
        return self._linked is not None and self._linked._transcript_id == transcript_id

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        """Return a player of a transcript."""
        raise NotImplementedError


class CorpusPlayerWidget(PlayerWidget):
    """A widget with an embedded player for the transcripts of a corpus."""

    def __init__(
        self,
        corpus: Corpus | None,
        audio: Mapping[str, str | os.PathLike[str]] | None,
        linked: TranscriptPlayer | None,
        **traits: Any,
    ) -> None:
        self._corpus = chosen_corpus(corpus)
        self._recordings = RecordingFinder(self._corpus, audio)
        super().__init__(linked, **traits)

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        return open_player(self._corpus, self._recordings, transcript_id)


def open_player(corpus: Corpus, recordings: RecordingFinder, transcript_id: str) -> TranscriptPlayer:
    """Return a player of a transcript of a corpus."""
    if transcript_id not in corpus:
        raise corpus.parts.archive.missing(transcript_id)
    audio = None
    try:
        audio = recordings.playable(transcript_id)
    except AudioError as e:
        warnings.warn(str(e), CorpusWarning, stacklevel=caller())  # the transcript can still be read
    return TranscriptPlayer(corpus.tables(transcript_id), audio, corpus=corpus, title=recordings.name(transcript_id))


class RowPlayerWidget(PlayerWidget):
    """A widget that shows rows with times and plays the passage of a row: of a corpus, of `audio`, or in a player.

    Rows of several recordings have the column `transcript_id`, or `recording` with the names of a corpus or of `audio`.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        corpus: Corpus | None,
        audio: Audio,
        player: TranscriptPlayer | None,
        **traits: Any,
    ) -> None:
        require(df, ("start_ms", "end_ms"), type(self).__name__)
        require_times(df)
        self._df, self._corpus = df, None if corpus is None else chosen_corpus(corpus)
        self._key = next((name for name in ("transcript_id", "recording") if name in df.columns), None)
        if corpus is not None and self._key is None and player is None:
            raise OptionError(
                "the rows need a column transcript_id or recording to be found in a corpus; add one of them"
            )
        keys = [] if self._key is None else df[self._key].dropna().astype(str).unique().tolist()
        if isinstance(audio, str | os.PathLike):
            if len(keys) > 1:
                raise OptionError(
                    f"audio is one recording, but the rows belong to {len(keys)}; pass a dict by {self._key}, such as "
                    f"{{{keys[0]!r}: {os.fspath(audio)!r}, ...}}"
                )
            audio = {keys[0] if keys else "": audio}
        self._audio = audio_by_name(audio)
        self._finder = None if corpus is None else RecordingFinder(corpus, self._audio)
        self._few = len(keys) < 2
        if self._audio and len(df) and corpus is None and player is None:
            self._check_names(keys)
        super().__init__(player, **traits)

    def _check_names(self, keys: list[str]) -> None:
        """Check that `audio` has a recording of at least one row, so that a misspelled name is not found by a click."""
        rows = self._named()
        names = rows["recording"].dropna().astype(str).unique().tolist() if "recording" in rows.columns else []
        if self._audio.keys() & {"", *keys, *names}:
            return
        given = ", ".join(self._audio)
        if not keys:
            raise OptionError(f"audio is by name ({given}), but the rows have no transcript_id or recording; add one")
        near = next(filter(None, (nearest(name, names or keys) for name in self._audio)), "")
        raise OptionError(
            f"audio has no recording of the rows, only of {given}{near}; the rows belong to {shown(names or keys)}"
        )

    @property
    def playable(self) -> bool:
        """True if a click can play: a corpus, a recording or a player was given."""
        return self._corpus is not None or bool(self._audio) or self._linked is not None

    def play_row(self, position: int) -> None:
        """Play the passage of a row.

        Args:
            position: Position of the row in the DataFrame, from 0 on.

        Raises:
            OptionError: There is no such row, it has no time, or there is nothing to play it from.
        """
        row = self._df.iloc[checked("position", position, Integer(0, len(self._df) - 1))]
        if pd.isna(row["start_ms"]):
            raise OptionError("cannot play this row: it has no start_ms")
        if not self.playable:
            raise OptionError("there is nothing to play from; pass corpus=, audio= or player= to this widget")
        end = None if pd.isna(row["end_ms"]) else int(row["end_ms"])
        term = "" if "score" in row or pd.isna(row.get("term")) else str(row["term"])  # a score: found by meaning
        key = "" if self._key is None or pd.isna(row[self._key]) else str(row[self._key])
        recording = key if self._finder is None else self._finder.id(key)
        self._play(recording, max(0, int(row["start_ms"])), end, term)

    def _is_linked(self, transcript_id: str) -> bool:
        # Rows of one recording without an id, such as disagreements, are those of the player.
        return super()._is_linked(transcript_id) or (self._few and self._key != "transcript_id")

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        if self._corpus is not None and self._finder is not None:
            return open_player(self._corpus, self._finder, transcript_id)
        rows = self._named()
        if self._key is not None and transcript_id:
            rows = rows[(rows[self._key].astype(object).map(str) == transcript_id).to_numpy(bool)]
        names = {transcript_id, *(rows["recording"].dropna().astype(str) if "recording" in rows.columns else ())}
        audio = next((path for name, path in self._audio.items() if name in names), None)
        if audio is None:
            raise OptionError(f"audio has no recording of {transcript_id!r}, only of {', '.join(self._audio)}; add it")
        text = text_column(rows)
        spoken = rows[rows.columns.intersection(["speaker", "speaker_name", "start_ms", "end_ms"], sort=False)]
        spoken = spoken.assign(text="" if text is None else rows[text], utterance_idx=range(len(rows)))
        return TranscriptPlayer(spoken, audio, title=min(names - {transcript_id}, default=transcript_id) or None)

    def _named(self) -> pd.DataFrame:
        """Return the rows with a column `recording`: the names in the corpus, or those that came with the rows."""
        if "recording" in self._df.columns or self._key is None:
            return self._df
        if self._finder is None:
            return self._df.assign(recording=recordings_of(self._df))
        ids = self._df[self._key]
        return self._df.assign(recording=ids.map({i: self._finder.name(str(i)) for i in ids.dropna().unique()}))

    def _places(self, rows: pd.DataFrame) -> list[str]:
        """Return the recording of each of some rows, or its transcript id; an empty text if it is unknown."""
        name = "recording" if "recording" in rows.columns else self._key
        return [""] * len(rows) if name is None else ["" if pd.isna(place) else str(place) for place in rows[name]]

    def _given(self) -> tuple[list[str], dict[str, str]]:
        """Return the arguments of a call that passes on corpus, recordings and player, and the names to define."""
        arguments = [] if self._corpus is None else [f"corpus={corpus_call(self._corpus)}"]
        if self._audio:
            arguments.append(f"audio={self._audio.get('', self._audio)!r}")
        if self._linked is not None:
            return [*arguments, "player=player"], {"player": "the TranscriptPlayer"}
        return arguments, {}

    def _on_browser_message(self, message: dict[str, Any], _: list[Any]) -> None:
        """Handle a click on a row."""
        if message.get("do") == "row" and 0 <= (position := int(message["row"])) < len(self._df):
            with show_errors(self):
                self.play_row(position)


def text_column(rows: pd.DataFrame) -> str | None:
    """Return the column with the occurrence of a search, the text or the term of the rows; None if they have none."""
    return next((name for name in ("match", "text", "term") if name in rows.columns), None)
