"""Base of widgets that show rows of a DataFrame and play their passages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from voxframe.analysis.grouping import recordings_of
from voxframe.analysis.speaker_turns import require
from voxframe.corpus import Corpus
from voxframe.errors import OptionError
from voxframe.widgets.base import absolute_path, corpus_call, show_errors
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.player_links import PlayerWidget, RecordingFinder, open_player

#: One recording, or recordings by transcript id or by name.
Audio: TypeAlias = "str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None"


class RowPlayerWidget(PlayerWidget):
    """A widget that shows rows with times and plays the passage of a row.

    Rows of several recordings have the column `transcript_id`, or `recording` with the names of a corpus or of `audio`.

    Args:
        df: Rows with `start_ms` and `end_ms` (ms).
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name. Without a corpus, the player
            shows the rows as its text.
        player: A player that plays its own transcript; other transcripts use a player below this widget.
        **traits: Values of traits.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing.
        OptionError: `audio` is one recording, but the rows belong to several; or a corpus was given, and the rows do
            not name recordings.
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
        self._df, self._corpus = df, corpus
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
        self._audio = {str(name): absolute_path(path) for name, path in (audio or {}).items()}
        self._finder = None if corpus is None else RecordingFinder(corpus, self._audio)
        self._few = len(keys) < 2
        super().__init__(player, **traits)
        self.on_msg(self._on_browser_message)

    @property
    def playable(self) -> bool:
        """True if a click can play: a corpus, a recording or a player was given."""
        return self._corpus is not None or bool(self._audio) or self._linked is not None

    def play_row(self, position: int) -> None:
        """Play the passage of a row.

        Args:
            position: Position of the row in the DataFrame, from 0 on.

        Raises:
            OptionError: The row has no time, or there is nothing to play it from.
        """
        row = self._df.iloc[position]
        if pd.isna(row["start_ms"]):
            raise OptionError("cannot play this row: it has no start_ms")
        if not self.playable:
            raise OptionError("there is nothing to play from; pass corpus=, audio= or player= to this widget")
        end = None if pd.isna(row["end_ms"]) else int(row["end_ms"])
        self.play(self._recording_of(row), max(0, int(row["start_ms"])), end)

    def _recording_of(self, row: pd.Series[Any]) -> str:
        """Return the transcript id of a row, or its recording; "" if it names none."""
        key = "" if self._key is None or pd.isna(row[self._key]) else str(row[self._key])
        return key if self._finder is None else self._finder.id(key)

    def _is_linked(self, transcript_id: str) -> bool:
        # Rows of one recording without an id, such as disagreements, are those of the player.
        return super()._is_linked(transcript_id) or (self._few and self._key != "transcript_id")

    def _open(self, transcript_id: str) -> TranscriptPlayer:
        if self._corpus is not None and self._finder is not None:
            return open_player(self._corpus, self._finder, transcript_id)
        own = self._df
        if self._key is not None and transcript_id:
            own = own[(own[self._key].astype(object).map(str) == transcript_id).to_numpy(bool)]
        names = {transcript_id, *(own["recording"].dropna().astype(str) if "recording" in own.columns else ())}
        audio = next((path for name, path in self._audio.items() if name in names), None)
        if audio is None:
            raise OptionError(f"audio has no recording of {transcript_id!r}, only of {', '.join(self._audio)}; add it")
        spoken = own[[name for name in ("speaker", "speaker_name", "start_ms", "end_ms") if name in own.columns]]
        text = text_column(own)
        spoken = spoken.assign(text="" if text is None else own[text], utterance_idx=range(len(own)))
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
        return [""] * len(rows) if name is None else ["" if pd.isna(one) else str(one) for one in rows[name]]

    def _given(self) -> tuple[list[str], dict[str, str]]:
        """Return the arguments of a call that passes on corpus, recordings and player, and the names to define."""
        given = [] if self._corpus is None else [f"corpus={corpus_call(self._corpus)}"]
        if self._audio:
            given.append(f"audio={self._audio.get('', self._audio)!r}")
        if self._linked is not None:
            return [*given, "player=player"], {"player": "the TranscriptPlayer"}
        return given, {}

    def _on_browser_message(self, _: Any, message: Any, __: Any) -> None:
        """Handle a click on a row."""
        if message.get("do") == "row" and 0 <= (position := int(message["row"])) < len(self._df):
            with show_errors(self):
                self.play_row(position)


def text_column(rows: pd.DataFrame) -> str | None:
    """Return the column with the text of the rows, or their occurrence of a search; None if they have neither."""
    return next((name for name in ("match", "text") if name in rows.columns), None)
