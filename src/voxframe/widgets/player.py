"""TranscriptPlayer: play what you read."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import ipywidgets
import numpy as np
import pandas as pd
import traitlets

from voxframe import loaders
from voxframe.corpus import Corpus
from voxframe.corpus.sources import Fetcher, Source
from voxframe.errors import OptionError
from voxframe.plots.style import clock
from voxframe.widgets import columns, media
from voxframe.widgets.base import ScriptedWidget, escaped
from voxframe.widgets.page import write_page
from voxframe.widgets.passages import passages
from voxframe.widgets.picture import lanes_picture
from voxframe.widgets.theme import voice_places

#: Passages in the still picture of a saved notebook.
_SAVED_PASSAGES = 12


class TranscriptPlayer(ScriptedWidget):
    """A transcript to read and hear: the word that is said is marked, a click on a word plays from there.

    Space plays, arrows seek, "/" searches; "?" lists the keys. Drag over the lanes or mark text to select, then loop.
    A speaker is renamed and a passage corrected in place; the transcript itself stays as it is.

    A recording is played by address, never put in the notebook: in parts, from the folder Jupyter serves where the
    file is under it, else from a small server in this kernel that only this machine reaches. Where the notebook runs
    on another machine (JupyterHub), put the recording under the notebook's folder or give an https address.

    Args:
        source: One transcript: whatever `voxframe.tables` takes, the tables it gives (a dict of DataFrames of which
            "words" is needed; "chapters", "entities" and "content_safety" are layers), or a DataFrame of words.
        audio: Path or address of the recording; None to read only.
        client: Fetches the transcript, where `source` is an identifier.
        corpus: Where fetched transcripts are kept; None is the default corpus.
        names: Names of speakers by label, as in `{"A": "Ada"}`.
        title: What stands above it; None takes the recording's name.

    Attributes:
        time (int): Where it plays, ms. Setting it seeks. Link it with `player.link(timeline)`.
        interval (list[int]): Start and end of the selection in ms, or empty.
        loop (bool): Whether the selection is played again and again.
        speed (float): 0.25 to 4.
        query (str): What is searched for.
        layers (list[str]): Layers that are shown: "confidence", "chapters", "entities", "safety".
        names (dict[str, str]): Names given to speakers, by label.
        corrections (dict[str, str]): Corrected text, by `turn_idx` of `.result` as text. To be told of a change:
            `player.observe(callback, ["names", "corrections"])`.

    Raises:
        ValueError: The source holds several transcripts, or words lack a column.
        PayloadError: The source is none of those.
        AudioNotFoundError: There is no such recording.

    Example:
        >>> player = TranscriptPlayer({"id": "a", "utterances": None, "words": [
        ...     {"text": "Good", "start": 0, "end": 300, "speaker": "A"},
        ...     {"text": "morning.", "start": 300, "end": 900, "speaker": "A"}]}, names={"A": "Ada"})
        >>> player.result[["speaker", "text"]].values.tolist()
        [['Ada', 'Good morning.']]
    """

    scripts = ("lanes", "sound", "passages", "reader", "player")
    styles = ("player",)

    time = traitlets.Int(0, min=0).tag(sync=True)
    interval = traitlets.List(traitlets.Int()).tag(sync=True)
    loop = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0, min=0.25, max=4.0).tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    layers = traitlets.List(traitlets.Unicode(), ["confidence", "chapters", "entities", "safety"]).tag(sync=True)
    names = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)
    corrections = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)
    _columns = traitlets.Dict().tag(sync=True)
    _voices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _colors = traitlets.List(traitlets.Int()).tag(sync=True)
    _layers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)
    _editable = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self,
        source: Source | pd.DataFrame | Mapping[str, pd.DataFrame],
        audio: str | os.PathLike[str] | None = None,
        *,
        client: Fetcher | None = None,
        corpus: Corpus | None = None,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
    ) -> None:
        tables = _tables(source, client, corpus)
        self._audio = audio
        self._passages = found = passages(tables["words"])
        start, end, known = columns.times(found.words)
        self._start, self._end = np.where(known, start, -1), np.where(known, end, -1)
        packed = {"start": columns.int32(self._start), "end": columns.int32(self._end)}
        packed["text"], packed["offsets"] = columns.texts(found.words["text"])
        packed["first"], packed["voice"] = columns.int32(found.first), columns.int32(found.voice)
        present = []
        if "confidence" in found.words.columns and found.words["confidence"].notna().any():
            present.append("confidence")
            packed["confidence"] = columns.float32(found.words["confidence"].to_numpy(np.float64, na_value=np.nan))
        for layer, table, prefix, text in _LAYERS:
            if (rows := tables.get(table)) is not None and len(rows):
                present.append(layer)
                packed |= columns.bands(rows, text, prefix)
        name = Path(audio).name if audio is not None else "Transcript"
        super().__init__(
            title=name if title is None else title,
            names=dict(names or {}),
            _columns=packed,
            _voices=[label or "" for label in found.voices],
            _colors=voice_places(found.voices),
            _layers=present,
            _sources=[] if audio is None else media.addresses(audio),
            _until=int(self._end.max(initial=0)),
        )

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
        """The words that touch the selected interval, as they came; no rows where nothing is selected."""
        if not self.interval:
            return self._passages.words.iloc[:0]
        touches = (self._start < self.interval[1]) & (self._end > self.interval[0]) & (self._start >= 0)
        return self._passages.words[touches]

    @property
    def result(self) -> pd.DataFrame:
        """What is read, with names and corrections: one row per turn, long turns in parts.

        Returns:
            `turn_idx` int64; `speaker` str (the name given, else the label); `label` str (as it came); `text` str;
            `start_ms`, `end_ms` Int64; `word_count` int64 (words of the recording); `corrected` bool.
        """
        found, first = self._passages, self._passages.first
        labels = [found.voices[n] for n in found.voice]
        spoken = found.words["text"].fillna("").to_numpy(object)
        own = [" ".join(filter(None, spoken[a:b])) for a, b in pairwise(first)]
        corrected = [str(n) in self.corrections for n in range(len(own))]
        begin = np.where(self._start < 0, np.inf, self._start)
        edges = first[:-1]
        start = np.minimum.reduceat(begin, edges) if len(edges) else begin
        end = np.maximum.reduceat(self._end, edges) if len(edges) else self._end
        text = pd.StringDtype("pyarrow", na_value=np.nan)
        return pd.DataFrame(
            {
                "turn_idx": np.arange(len(own)),
                "speaker": pd.array([self.names.get(label or "", label) for label in labels], text),
                "label": pd.array(labels, text),
                "text": pd.array([self.corrections.get(str(n), spoken) for n, spoken in enumerate(own)], text),
                "start_ms": pd.array(np.where(np.isfinite(start), start, np.nan), "Int64"),
                "end_ms": pd.array(np.where(end >= 0, end, np.nan), "Int64"),
                "word_count": np.diff(first),
                "corrected": np.array(corrected, bool),
            }
        )

    @property
    def code(self) -> str:
        """Lines that show the same again; `source` stands for the transcript that was given."""
        given = ["source"] if self._audio is None else ["source", f"audio={os.fspath(self._audio)!r}"]
        lines = ["import voxframe", "", f"player = voxframe.widgets.TranscriptPlayer({', '.join(given)})"]
        for trait in ("time", "interval", "loop", "speed", "query", "layers", "names", "corrections"):
            value = getattr(self, trait)
            if value != self.traits()[trait].default():
                lines.append(f"player.{trait} = {value!r}")
        return "\n".join([*lines, "player"])

    def static_html(self) -> str:
        """A still picture of the lanes and the first turns."""
        found, turns = self._passages, self.result
        lanes, spans = [], turns[turns["start_ms"].notna()].astype({"start_ms": float, "end_ms": float})
        for n in range(len(found.voices)):
            own = spans[found.voice[spans["turn_idx"]] == n].sort_values("start_ms")
            lanes.append((own["start_ms"].to_numpy(), own["end_ms"].to_numpy()))
        shown = [self.names.get(label or "", label) for label in found.voices]
        rows = [
            f"<p><strong>{escaped(row.speaker)}</strong> {escaped(row.text)}</p>"
            for row in turns.head(_SAVED_PASSAGES).itertuples()
        ]
        more = len(turns) - len(rows)
        rows += (
            [f"<p><em>and {more:,} more turns: run the notebook to read and hear them.</em></p>"] if more > 0 else []
        )
        picture = lanes_picture(lanes, shown, self._until)
        return f"<div><p><strong>{escaped(self.title)}</strong></p>{picture}{''.join(rows)}</div>"

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
        if audio not in ("link", "embed", "none"):
            raise OptionError(f"audio is 'link', 'embed' or 'none', not {audio!r}")
        write_page(
            self, path, _sources=[] if audio == "none" else self._page_sources(Path(path), audio), _editable=False
        )

    def _page_sources(self, page: Path, audio: str) -> list[str]:
        """The recording as a page refers to it."""
        if self._audio is None:
            return []
        if isinstance(self._audio, str) and media.is_address(self._audio):
            if audio == "embed":
                raise OptionError(f"only a file can be embedded, not the address {self._audio!r}; use audio='link'")
            return [self._audio]
        file = media.existing(self._audio)
        if audio == "embed":
            kind = media.media_type(file).replace("application/octet-stream", "audio/mpeg")
            return [f"data:{kind.replace('video/', 'audio/')};base64,{base64.b64encode(file.read_bytes()).decode()}"]
        try:
            near = os.path.relpath(file, page.resolve().parent)
        except ValueError:  # on another drive
            return [file.as_uri()]
        return [quote(Path(near).as_posix())]


#: Layers beside confidence: their table, prefix of their columns, and the column with their text.
_LAYERS = (
    ("chapters", "chapters", "chapter", "headline"),
    ("entities", "entities", "entity", "entity_type"),
    ("safety", "content_safety", "safety", "label"),
)


def _tables(source: Any, client: Fetcher | None, corpus: Corpus | None) -> Mapping[str, pd.DataFrame]:
    """Tables of one transcript, with words even where only turns are known."""
    if isinstance(source, pd.DataFrame):
        return {"words": source}
    if isinstance(source, Mapping) and source and all(isinstance(table, pd.DataFrame) for table in source.values()):
        tables: Mapping[str, pd.DataFrame] = source
    else:
        tables = loaders.tables(source, client=client, corpus=corpus)
    if "words" not in tables:
        raise ValueError(f"TranscriptPlayer needs the table 'words'; there is {', '.join(tables)}")
    if tables["words"].empty and (turns := tables.get("utterances")) is not None and len(turns):
        return {**tables, "words": turns}  # a turn whose words are not known is read, and sought, as one
    return {**tables, "words": _in_turns(tables["words"], tables.get("utterance_words"))}


def _in_turns(words: pd.DataFrame, spoken: pd.DataFrame | None) -> pd.DataFrame:
    """Words with the turn of each: of turns that overlap, as on two channels, only `utterance_words` knows it."""
    if spoken is None or spoken.empty or "utterance_idx" not in words.columns:
        return words
    same = ["text", "start_ms", "end_ms", "speaker", "channel"]
    told = words[same].merge(spoken.drop_duplicates(same)[[*same, "utterance_idx"]], how="left", on=same)
    return words.assign(utterance_idx=words["utterance_idx"].fillna(told["utterance_idx"].set_axis(words.index)))
