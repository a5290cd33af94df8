"""TranscriptPlayer: play what you read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import ipywidgets
import numpy as np
import numpy.typing as npt
import pandas as pd
import traitlets

from voxframe.corpus import Corpus
from voxframe.corpus.sources import Fetcher
from voxframe.errors import VoxframeError
from voxframe.plots.style import clock
from voxframe.widgets import columns, media
from voxframe.widgets.base import ScriptedWidget, escaped
from voxframe.widgets.kept import kept
from voxframe.widgets.page import write_page
from voxframe.widgets.passages import passages
from voxframe.widgets.picture import lanes_picture
from voxframe.widgets.source import Given, given_names, keeper, tables

#: Turns in the still picture of a saved notebook, and characters of each.
_SAVED_TURNS, _SAVED_TEXT = 12, 600
#: Layers beside confidence: their table, prefix of their columns, and the column with their text.
_LAYERS = (
    ("chapters", "chapters", "chapter", "headline"),
    ("entities", "entities", "entity", "entity_type"),
    ("safety", "content_safety", "safety", "label"),
)
#: What people say about a transcript, which a corpus keeps.
_SAID = ("names", "turn_names", "corrections")


class TranscriptPlayer(ScriptedWidget):
    """A transcript to read and hear: the word that is said is marked, a click on a word plays from there.

    Space plays, arrows seek, "/" searches; "?" lists the keys. Drag over the lanes or mark text to select, then loop.

    A speaker is renamed and a turn corrected in place. Where the transcript is in a corpus (`source` is an identifier
    or a handle, or `corpus` is given and has it) this is kept there, by `Corpus.name_speakers` and
    `Corpus.correct_turns`, and is there the next time; of a payload it lasts as long as the widget. The service's own
    answer stays as it came.

    A recording is played by address, never put in the notebook: in parts, from the folder Jupyter serves where the
    file is under it, else from a small server in this kernel that only this machine reaches. Where the notebook runs
    on another machine (JupyterHub), put the recording under the notebook's folder or give an https address.

    Args:
        source: One transcript: whatever `voxframe.tables` takes, the tables it gives (a dict of DataFrames of which
            "words" is needed; "chapters", "entities" and "content_safety" are layers), or a DataFrame of words.
        audio: Path or address of the recording; None to read only.
        client: Fetches the transcript, where `source` is an identifier.
        corpus: Where fetched transcripts, names and corrections are kept; None is the default corpus for identifiers
            and handles, and no corpus for all else.
        names: Names of speakers by label, as in `{"A": "Ada"}`; as if they were typed in.
        title: What stands above it; None takes the recording's name.

    Attributes:
        time (int): Where it plays, ms. Setting it seeks. Link it with `player.link(timeline)`.
        interval (list[int]): Start and end of the selection in ms, or empty.
        loop (bool): Whether the selection is played again and again.
        speed (float): 0.25 to 4.
        query (str): What is searched for.
        layers (list[str]): Layers that are shown: "confidence", "chapters", "entities", "safety".
        names (dict[str, str]): Names given to speakers, by label.
        turn_names (dict[str, str]): Who speaks in single turns, by `turn_idx` of `.result` as text: a label or a name.
        corrections (dict[str, str]): Corrected texts of turns, by `turn_idx` of `.result` as text. To be told of a
            change: `player.observe(callback, ["names", "turn_names", "corrections"])`.

    Raises:
        ValueError: The source holds several transcripts, or words lack a column.
        PayloadError: The source is none of those.
        OptionError: `names` holds what a corpus cannot keep, such as a label that nobody has.
        AudioNotFoundError: There is no such recording.

    Example:
        >>> player = TranscriptPlayer({"id": "a", "utterances": None, "words": [
        ...     {"text": "Good", "start": 0, "end": 300, "speaker": "A"},
        ...     {"text": "morning.", "start": 300, "end": 900, "speaker": "A"}]}, names={"A": "Ada"})
        >>> player.result[["speaker", "text"]].values.tolist()
        [['Ada', 'Good morning.']]
    """

    scripts = ("lanes", "sound", "passages", "people", "reader", "editing", "player")
    styles = ("player",)

    # No echo: a browser that hears its own report again would take it for a wish to go back there.
    time = traitlets.Int(0, min=0).tag(sync=True, echo_update=False)
    interval = traitlets.List(traitlets.Int()).tag(sync=True)
    loop = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0, min=0.25, max=4.0).tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    layers = traitlets.List(traitlets.Unicode(), ["confidence", "chapters", "entities", "safety"]).tag(sync=True)
    names = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)
    turn_names = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)
    corrections = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)
    _columns = traitlets.Dict().tag(sync=True)
    _voices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _layers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)
    _editable = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self,
        source: Given,
        audio: str | os.PathLike[str] | None = None,
        *,
        client: Fetcher | None = None,
        corpus: Corpus | None = None,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
    ) -> None:
        given = tables(source, client, corpus)
        self._audio, self._given_corpus = audio, corpus is not None
        self._passages = found = passages(given["words"])
        self._kept = kept(keeper(source, client, corpus), found.words)
        start, end, known = columns.times(found.words)
        self._start, self._end = np.where(known, start, -1), np.where(known, end, -1)
        packed, present = self._packed(given)
        said = self._kept.said() if self._kept else (*given_names(found.words), {})
        name = Path(audio).name if audio is not None else "Transcript"
        super().__init__(
            title=name if title is None else title,
            **dict(zip(_SAID, said, strict=True)),
            _columns=packed,
            _voices=[label or "" for label in found.voices],
            _layers=present,
            _sources=[] if audio is None else media.addresses(audio),
            _until=int(self._end.max(initial=0)),
        )
        if names:
            said = ({**said[0], **names}, *said[1:])
            if self._kept:
                said = self._kept.keep(self._said(), said)
            self.names = said[0]
        if self._kept:
            self._was = self._said()
            self.observe(self._keep, list(_SAID))

    def _packed(self, given: Mapping[str, pd.DataFrame]) -> tuple[dict[str, bytes], list[str]]:
        """Columns for the browser, and the layers that have any."""
        found, present = self._passages, []
        packed = {"start": columns.int32(self._start), "end": columns.int32(self._end)}
        packed["text"], packed["offsets"] = columns.texts(found.words["text"])
        for name in ("first", "turn", "voice"):
            packed[name] = columns.int32(getattr(found, name))
        if "confidence" in found.words.columns and found.words["confidence"].notna().any():
            present.append("confidence")
            packed["confidence"] = columns.float32(found.words["confidence"].to_numpy(np.float64, na_value=np.nan))
        for layer, table, prefix, text in _LAYERS:
            if (rows := given.get(table)) is not None and len(rows):
                present.append(layer)
                packed |= columns.bands(rows, text, prefix)
        return packed, present

    def __repr__(self) -> str:
        found = self._passages
        return (
            f"TranscriptPlayer({self.title!r}, {len(found.words):,} words, {len(found.voices)} speakers, "
            f"{clock(self._until / 1000)})"
        )

    @traitlets.validate("interval")
    def _check_interval(self, proposal: Any) -> list[int]:
        value = proposal["value"]
        if value and (len(value) != 2 or value[0] > value[1]):
            raise traitlets.TraitError(f"interval is [start, end] in ms with start first, or [] for none, not {value}")
        return list(value)

    def _said(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        return dict(self.names), dict(self.turn_names), dict(self.corrections)

    def _keep(self, _: object) -> None:
        """Have the corpus keep what changed, and show what it has then; where it cannot, say why and show what was."""
        if self._kept is None or self._said() == self._was:
            return
        try:
            self._was = self._kept.keep(self._was, self._said())
            self.error = ""
        except VoxframeError as e:
            self.error = f"This was not kept: {e}"
        with self.hold_sync():
            for name, value in zip(_SAID, self._was, strict=True):
                self.set_trait(name, dict(value))

    @traitlets.observe("time")
    def _sought(self, change: Any) -> None:
        """Say it in a message, too: a browser that plays is about to report its own time, and drops ours for that."""
        if "time" not in self._property_lock:
            self.send({"do": "seek", "time": change["new"]})

    def play(self) -> None:
        """Play from where it stands. A browser may want a click first."""
        self.send({"do": "play"})

    def pause(self) -> None:
        """Pause."""
        self.send({"do": "pause"})

    def seek(self, time_ms: int, *, play: bool = False) -> None:
        """Jump to a moment.

        Args:
            time_ms: The moment, in ms from the start of the recording.
            play: Whether to play from there.
        """
        self.time = int(time_ms)
        if play:
            self.play()

    def link(self, other: ipywidgets.Widget) -> None:
        """Keep the time and the selection of another widget, such as a `Timeline`, the same as here, both ways."""
        for trait in ("time", "interval"):
            if other.has_trait(trait):
                ipywidgets.jslink((self, trait), (other, trait))

    @property
    def selection(self) -> pd.DataFrame:
        """The words that touch the selected interval, as they came; no rows where nothing is selected.

        A column `speaker_name`, which a corpus has, holds the names given here, too.
        """
        found, interval = self._passages, self.interval or [0, 0]
        touches = (self._start < interval[1]) & (self._end > interval[0]) & (self._start >= 0)
        words = found.words[touches]
        if "speaker_name" not in words.columns:
            return words
        passage = np.searchsorted(found.first, np.flatnonzero(touches), side="right") - 1
        who = [self._name(str(found.turn[p]), found.voices[found.voice[p]]) for p in passage]
        return words.assign(speaker_name=pd.Series(who, words.index).astype(words["speaker_name"].dtype))

    @property
    def result(self) -> pd.DataFrame:
        """What is read, with names and corrections: one row per turn, in reading order.

        Returns:
            `turn_idx` int64 (`utterance_idx`, where words have it); `speaker` str (the name given, else the label);
            `label` str (as it came); `text` str; `start_ms`, `end_ms` Int64; `word_count` int64 (words of the
            recording); `corrected` bool (its text).
        """
        found = self._passages
        opens = np.flatnonzero(np.r_[True, np.diff(found.turn) != 0][: len(found.turn)])
        turns, first = found.turn[opens], found.first[opens]
        labels = [found.voices[n] for n in found.voice[opens]]
        spoken = found.words["text"].fillna("").to_numpy(object)
        edges = np.r_[first, len(found.words)]
        own = [" ".join(filter(None, spoken[a:b])) for a, b in pairwise(edges)]
        keys = [str(turn) for turn in turns]
        start, end = self._extent(first)
        text = pd.StringDtype("pyarrow", na_value=np.nan)
        return pd.DataFrame(
            {
                "turn_idx": turns,
                "speaker": pd.array([self._name(*at) for at in zip(keys, labels, strict=True)], text),
                "label": pd.array(labels, text),
                "text": pd.array([self.corrections.get(k, said) for k, said in zip(keys, own, strict=True)], text),
                "start_ms": pd.array(np.where(np.isfinite(start), start, np.nan), "Int64"),
                "end_ms": pd.array(np.where(end >= 0, end, np.nan), "Int64"),
                "word_count": np.diff(edges),
                "corrected": np.array([key in self.corrections for key in keys], bool),
            }
        )

    def _name(self, turn: str, label: str | None) -> str | None:
        """Who speaks in a turn."""
        label = self.turn_names.get(turn, label)
        return self.names.get(label or "", label)

    def _extent(self, first: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Start and end of stretches of words, of those that have a time; infinite and -1 where none has."""
        begin = np.where(self._start < 0, np.inf, self._start)
        if not len(first):
            return begin, self._end
        return np.minimum.reduceat(begin, first), np.maximum.reduceat(self._end, first)

    @property
    def code(self) -> str:
        """Lines that show the same again; `source` (and `corpus`) stand for what was given."""
        given = ["source"] if self._audio is None else ["source", f"audio={os.fspath(self._audio)!r}"]
        given += ["corpus=corpus"] if self._given_corpus else []
        lines = ["import voxframe", "", f"player = voxframe.TranscriptPlayer({', '.join(given)})"]
        said = () if self._kept else _SAID
        for trait in ("time", "interval", "loop", "speed", "query", "layers", *said):
            value = getattr(self, trait)
            if value != self.traits()[trait].default():
                lines.append(f"player.{trait} = {value!r}")
        return "\n".join([*lines, "player"])

    def _still_html(self) -> str:
        """A still picture of the lanes and the first turns."""
        turns = self.result
        spans = turns[turns["start_ms"].notna()].astype({"start_ms": float, "end_ms": float}).sort_values("start_ms")
        people = list(dict.fromkeys(None if pd.isna(name) else name for name in turns["speaker"]))
        lanes = []
        for name in people:
            own = spans[spans["speaker"].isna() if name is None else spans["speaker"] == name]
            lanes.append((own["start_ms"].to_numpy(), own["end_ms"].to_numpy()))
        rows = [
            f"<p><strong>{escaped(name)}</strong> {escaped(_shortened(text))}</p>"
            for name, text in turns[["speaker", "text"]].head(_SAVED_TURNS).itertuples(index=False)
        ]
        if (more := len(turns) - len(rows)) > 0:
            rows.append(f"<p><em>and {more:,} more turns: run the notebook to read and hear them.</em></p>")
        picture = lanes_picture(lanes, people, self._until)
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}{''.join(rows)}"

    def to_html(self, path: str | os.PathLike[str], audio: Literal["link", "embed", "none"] = "link") -> None:
        """Write a page that plays this transcript from the disk, with no kernel and no network.

        Args:
            path: Where to write; what is there is replaced.
            audio: "link" refers to the recording by its path relative to the page (keep them together) or by its
                address; "embed" puts a recording from the disk into the page, a third larger than it is; "none"
                leaves it out.

        Raises:
            OptionError: `audio` is none of these, or an address was to be embedded.
            AudioError: The recording cannot be read.
        """
        write_page(self, path, _sources=media.page_addresses(self._audio, Path(path), audio), _editable=False)


def _shortened(text: str) -> str:
    return text if len(text) <= _SAVED_TEXT else text[:_SAVED_TEXT] + " …"
