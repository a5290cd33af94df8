"""TranscriptPlayer: a transcript with synchronised playback."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import ipywidgets
import numpy as np
import pandas as pd
import traitlets

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import clock, join_words, quantity
from voxframe.client import Client
from voxframe.colors import color_indexes
from voxframe.corpus import Corpus
from voxframe.corpus.corpus import chosen_corpus
from voxframe.errors import OptionError, VoxframeError
from voxframe.loaders.sources import Fetcher
from voxframe.validators import Number, checked, shown
from voxframe.widgets import media_server
from voxframe.widgets.base import (
    LAST_MS,
    ScriptedWidget,
    absolute_path,
    check_range,
    connect_call,
    corpus_call,
    escaped,
    lanes_svg,
    show_errors,
    text_map,
    write_page,
)
from voxframe.widgets.player_data import (
    AnnotationStore,
    Given,
    PlayerPassages,
    corrected_passages,
    load_tables,
    origin,
    peaks,
    speaker_names,
    split_passages,
)

#: Maximum number of turns in the static HTML, and of characters per turn.
_STATIC_TURNS, _STATIC_CHARS = 12, 600
#: Traits that a corpus stores.
_ANNOTATIONS = ("names", "turn_names", "corrections")


class TranscriptPlayer(ScriptedWidget):
    """A transcript to read and play: the current word is highlighted, and a click on a word plays from there.

    Space plays, arrow keys seek, "N" goes to the next uncertain word, "/" searches as `Corpus.search` does; "?" lists
    the keyboard shortcuts. Drag over the lanes or select text to select an interval, which can be looped; drag its
    edges to move them.

    Speakers can be renamed and turns corrected in place. If the service sent no turns, they are counted at changes of
    speaker. Turns of a corpus can be split and merged, their boundaries moved (also by dragging the handles of the
    current turn), and the times of words changed. These changes and corrections can be undone and redone, and a list
    of them goes back to any.

    If the transcript is in a corpus (`source` is an id or a handle, or `corpus` has it), the player shows it as the
    corpus has it, and the corpus stores these changes. For a payload, names and corrected texts last as long as the
    widget, which says so and how to keep them; its turns cannot be split or merged. The payload itself never changes.

    A local recording is drawn as a waveform in the colours of the speakers; zoom with Ctrl + wheel, "+" and "-".

    A recording is never stored in the notebook. If the file is in the folder that Jupyter serves, Jupyter serves it;
    otherwise a small server in this kernel does, which only this machine can reach. If the notebook runs on another
    machine (Colab, JupyterHub, remote VS Code), the kernel sends the whole file when it is first played; that of a long
    recording takes time, so put it in the notebook's folder or give an https URL.

    Args:
        source: One transcript: anything that `voxframe.tables` accepts, the tables it returns ("words" is required;
            "chapters", "entities" and "content_safety" are shown as layers), or a DataFrame of words.
        audio: Path or URL of the recording. None (default): no playback.
        client: Client that fetches the transcript if `source` is an id.
        corpus: Corpus for fetched transcripts, names and corrections. None (default): the default corpus for ids and
            handles, otherwise no corpus.
        names: Speaker names by label, such as `{"A": "Ada"}`; the same as renaming in the widget.
        title: Title of the widget. None (default): the name of the recording.

    Attributes:
        time (int): Playback position in ms. Setting it seeks. Link it with `player.link(timeline)`.
        interval (list[int]): Start and end of the selection in ms; empty for none.
        loop (bool): True to repeat the selection.
        speed (float): Playback speed, 0.25 to 4.
        query (str): Search text.
        layers (list[str]): Visible layers: "confidence" (at first hidden), "chapters", "entities", "safety".
        names (dict[str, str]): Speaker names by label.
        turn_names (dict[str, str]): Speakers of single turns, a label or a name, by `turn_idx` of `.result` as text.
        corrections (dict[str, str]): Corrected texts of turns, by `turn_idx` of `.result` as text. To react to changes:
            `player.observe(callback, ["names", "turn_names", "corrections"])`.

    Raises:
        ValueError: The source holds several transcripts, or words lack a column.
        PayloadError: The source has the wrong type.
        OptionError: The corpus cannot store `names`, for example because a label does not exist.
        AudioNotFoundError: The recording does not exist.

    Example:
        >>> player = TranscriptPlayer({"id": "a", "utterances": None, "words": [
        ...     {"text": "Good", "start": 0, "end": 300, "speaker": "A"},
        ...     {"text": "morning.", "start": 300, "end": 900, "speaker": "A"}]}, names={"A": "Ada"})
        >>> player.result[["speaker", "text"]].values.tolist()
        [['Ada', 'Good morning.']]
    """

    scripts = ("lanes", "sound", "passages", "reader", "editing", "player")
    styles = ("player",)

    # No echo: a browser would treat its own reported time, echoed back, as a request to seek.
    time = traitlets.Int(0, min=0).tag(sync=True, echo_update=False)
    interval = traitlets.List(traitlets.Int()).tag(sync=True)
    loop = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0, min=0.25, max=4.0).tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    layers = traitlets.List(traitlets.Unicode(), ["chapters", "entities", "safety"]).tag(sync=True)
    names = text_map()
    turn_names = text_map()
    corrections = text_map()
    _columns = traitlets.Dict().tag(sync=True)
    _speakers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _colors = traitlets.Dict().tag(sync=True)
    _layers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)
    # The loudness of the recording: see `peaks`. Empty until it is known.
    _peaks = traitlets.Bytes(b"").tag(sync=True)
    # Stop time in ms, or 0 for the end; the counter makes repeated requests for the same time distinct.
    _stop_at = traitlets.List(traitlets.Int(), [0, 0]).tag(sync=True)
    _editable = traitlets.Bool(True).tag(sync=True)
    # Says that edits are not stored and how to keep them; empty if a corpus stores them.
    _not_stored = traitlets.Unicode("").tag(sync=True)

    @takes_frames
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
        self._audio = None if audio is None else absolute_path(audio)
        if names is not None and not isinstance(names, Mapping):
            raise OptionError(
                f"names must be a dict of names by speaker label, such as {{'A': 'Ada'}}, got {shown(names)}"
            )
        corpus = None if corpus is None else chosen_corpus(corpus)
        tables = load_tables(source, client, corpus)
        self._measuring: threading.Thread | None = None
        self._origin, self._client = origin(source, client), client
        self._corpus, self._given_title = Corpus() if corpus is None and self._origin.remote else corpus, title
        passages = split_passages(tables["words"])
        home, self._transcript_id = self._corpus, passages.transcript_id
        self._store = None
        if home is not None and self._transcript_id is not None and self._transcript_id in home:
            self._store = AnnotationStore(home, self._transcript_id)
        if self._store:
            tables, passages = self._store.corpus.tables(self._store.transcript_id), self._store.passages()
        self._passages = self._uncorrected = passages
        packed, present = passages.packed(tables)
        annotations = self._store.load() if self._store else (*speaker_names(passages.words), {})
        about = tables.get("transcripts")
        named = about is not None and "recording" in about.columns and len(about) == 1
        recording = str(about["recording"].iloc[0]) if about is not None and named else "Transcript"
        name = recording if audio is None else Path(audio).name
        super().__init__(
            title=name if title is None else title,
            **dict(zip(_ANNOTATIONS, annotations, strict=True)),
            _columns=packed,
            _not_stored="" if self._store else self._advice(),
            _speakers=[label or "" for label in passages.speakers],
            _colors=self._color_indexes(*annotations[:2]),
            _layers=present,
            _sources=[] if audio is None else media_server.media_urls(audio),
            _until=int(passages.end.max(initial=0)),
        )
        if names:
            annotations = ({**annotations[0], **names}, *annotations[1:])
            if self._store:
                self._store.save(self._annotations(), annotations, passages)
                annotations = self._store.load()
            self.names = annotations[0]
            self._recolor()
        if self._store:
            self._saved = self._annotations()
            self.observe(self._save, list(_ANNOTATIONS))
        else:
            self.observe(lambda change: self._show(corrected_passages(self._uncorrected, change["new"])), "corrections")
        self.observe(self._recolor, ["names", "turn_names"])
        if self._audio is not None and Path(self._audio).is_file():
            self._measuring = threading.Thread(target=self._measure, name="voxframe-waveform", daemon=True)
            self._measuring.start()

    def _measure(self) -> None:
        """Send the waveform of the recording."""
        self._peaks = peaks(Path(self._audio or ""))

    def _color_indexes(self, names: Mapping[str, str], turn_names: Mapping[str, str]) -> dict[str, int]:
        """Return the index in `PALETTE` of each label and of each name that only single turns have; "" is no label."""
        keys = list(dict.fromkeys([*self._passages.speakers, *turn_names.values()]))
        people = [names.get(key or "", key) for key in keys]
        ids = [self._transcript_id] * len(people) if self._transcript_id else None
        places = color_indexes(people, names, transcripts=ids)
        return {key or "": place for key, place in zip(keys, places, strict=True)}

    def _recolor(self, _: object = None) -> None:
        self._colors = self._color_indexes(self.names, self.turn_names)

    def __repr__(self) -> str:
        passages = self._passages
        return (
            f"TranscriptPlayer({self.title!r}, {quantity(len(passages.words), 'word')}, "
            f"{quantity(len(passages.speakers), 'speaker')}, {clock(self._until / 1000)})"
        )

    @traitlets.validate("interval")
    def _check_interval(self, proposal: Any) -> list[int]:
        return check_range(proposal)

    def _annotations(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        return dict(self.names), dict(self.turn_names), dict(self.corrections)

    def _save(self, _: object) -> None:
        """Store changes in the corpus and show the stored state; on an error, restore the previous state."""
        if self._store is None or self._annotations() == self._saved:
            return
        try:
            self._store.save(self._saved, self._annotations(), self._passages)
            self.error = ""
        except VoxframeError as e:
            self.error = f"This change was not saved: {e}"
        self._load_again()

    def _load_again(self) -> None:
        """Show the transcript as the corpus has it now."""
        assert self._store is not None
        passages = self._store.passages()
        self._saved = self._store.load()
        with self.hold_sync(), self.hold_trait_notifications():  # first the traits, then their observers
            for name, value in zip(_ANNOTATIONS, self._saved, strict=True):
                self.set_trait(name, dict(value))
            self._show(passages)
        self._send_changes()

    def _send_changes(self) -> None:
        """Send the changes to the page: in a trait, a saved notebook would hold undone texts and their authors."""
        if self._store is not None:
            self.send({"do": "changes", "rows": self._store.changes()})

    def _show(self, passages: PlayerPassages) -> None:
        """Show other words of the transcript."""
        self._passages = passages
        with self.hold_sync():
            self._speakers = [label or "" for label in passages.speakers]
            self._recolor()
            self._until = int(passages.end.max(initial=0))
            self._columns = self._columns | passages.packed({})[0]

    @traitlets.validate("corrections")
    def _without_unchanged(self, proposal: Any) -> dict[str, str]:
        """Leave out texts that are those of the payload."""
        texts: dict[str, str] = proposal["value"]
        if not texts or getattr(self, "_store", None) is not None or not hasattr(self, "_uncorrected"):
            return texts
        return {turn: text for turn, text in texts.items() if text != self._uncorrected.text_of(turn)}

    def _advice(self) -> str:
        """Return what to do so that edits are stored."""
        source, place = self._origin.code or "source", 'voxframe.Corpus("transcripts")'
        add = f"corpus.add({source})" if self._origin.is_payload else "corpus.add(payload)"
        transcript_id = repr(self._transcript_id) if self._transcript_id else '"its id"'
        return (
            "This transcript is in no corpus: names and corrected texts last as long as this widget, and turns cannot "
            f"be split, merged or moved. To keep changes, add it to a corpus: corpus = {place}; {add}; "
            f"voxframe.TranscriptPlayer({transcript_id}, corpus=corpus)."
        )

    def _on_browser_message(self, message: dict[str, Any], _: list[Any]) -> None:
        """Apply an edit from a page, or send a part of the recording to a page that cannot fetch it."""
        do = message.get("do")
        if do == "changes":
            self._send_changes()
        elif do == "part" and self._audio is not None:
            description, content = media_server.file_part(Path(self._audio), max(0, int(message["from"])))
            self.send({"do": "part", **description}, [content])
        elif do == "turn" and self._store is not None:
            with show_errors(self):
                try:
                    self._store.edit(message, self._passages)
                finally:
                    self._load_again()
        elif do == "edit":
            with self.hold_trait_notifications():
                for name in _ANNOTATIONS:
                    self.set_trait(name, message.get(name, getattr(self, name)))

    @traitlets.observe("time")
    def _on_time(self, change: Any) -> None:
        """Send the time as a message too: a playing browser overwrites the trait with its own time."""
        if "time" not in self._property_lock:
            self.send({"do": "seek", "time": change["new"]})

    def play(self) -> None:
        """Play from the current time. A browser may require a click first."""
        self._stop_at = [0, self._stop_at[1] + 1]
        self.send({"do": "play"})

    def cue(self, start_ms: int, end_ms: int | None = None) -> None:
        """Seek to a time; playback then stops at the end of the passage (a turn, or a part of a long turn).

        Args:
            start_ms: Time in ms.
            end_ms: End of the span to select, in ms. None (default): select nothing.

        Raises:
            OptionError: A time is not a number of at least 0.
        """
        start = _whole_ms("start_ms", start_ms)
        end = None if end_ms is None else _whole_ms("end_ms", end_ms)
        selected = [start, end] if end is not None and end >= start else []
        with self.hold_sync():
            self.interval, self.loop = selected, False
            self.time = start
            stop = self._passages.passage_end(start, selected[1] if selected else start)
            self._stop_at = [stop, self._stop_at[1] + 1]

    def pause(self) -> None:
        """Pause playback."""
        self.send({"do": "pause"})

    def seek(self, time_ms: int, *, play: bool = False) -> None:
        """Seek to a time.

        Args:
            time_ms: Time in ms.
            play: Start playback.

        Raises:
            OptionError: The time is not a number of at least 0.
        """
        self.time = _whole_ms("time_ms", time_ms)
        if play:
            self.play()

    def link(self, other: ipywidgets.Widget) -> None:
        """Keep time and selection in sync with another widget, such as a `Timeline`.

        Names are passed on to it, unless it is a player of another transcript, which would store them.

        Raises:
            OptionError: `other` is not a widget.
        """
        if not isinstance(other, ipywidgets.Widget):
            raise OptionError(f"other must be a widget, such as a voxframe.Timeline, got {shown(other)}")
        for trait in ("time", "interval"):
            if other.has_trait(trait):
                ipywidgets.jslink((self, trait), (other, trait))
        of_another = isinstance(other, TranscriptPlayer) and other._transcript_id != self._transcript_id
        if other.has_trait("names") and not of_another:
            _pass_on(other, {}, self.names)
            self.observe(lambda change: _pass_on(other, change["old"], change["new"]), "names")

    @property
    def selection(self) -> pd.DataFrame:
        """The words that overlap the selected interval; no rows if nothing is selected.

        A column `speaker_name`, as words of a corpus have it, includes names given here.
        """
        passages, interval = self._passages, self.interval or [0, 0]
        touches = (passages.start < interval[1]) & (passages.end > interval[0]) & (passages.start >= 0)
        words = passages.words[touches]
        if "speaker_name" not in words.columns:
            return words
        passage = np.searchsorted(passages.first, np.flatnonzero(touches), side="right") - 1
        who = [self._name(str(passages.turn[p]), passages.speakers[passages.speaker[p]]) for p in passage]
        return words.assign(speaker_name=pd.Series(who, words.index).astype(words["speaker_name"].dtype))

    @property
    def result(self) -> pd.DataFrame:
        """The transcript with names and corrections: one row per turn, in reading order.

        Returns:
            `turn_idx` int64 (`utterance_idx` if words have it); `speaker` str (the given name, or the label); `label`
            str (of the service); `text` str; `start_ms`, `end_ms` Int64; `word_count` int64;
            `corrected` bool (True if the text was corrected).
        """
        passages = self._passages
        opens = np.flatnonzero(np.r_[True, np.diff(passages.turn) != 0][: len(passages.turn)])
        turns, first = passages.turn[opens], passages.first[opens]
        labels = [passages.speakers[n] for n in passages.speaker[opens]]
        spoken = passages.words["text"].fillna("").to_numpy(object)
        edges = np.r_[first, len(passages.words)]
        own = [join_words(filter(None, spoken[a:b])) for a, b in pairwise(edges)]
        keys = [str(turn) for turn in turns]
        start, end = passages.extent(first)
        return pd.DataFrame(
            {
                "turn_idx": turns,
                "speaker": pd.array([self._name(*at) for at in zip(keys, labels, strict=True)], TEXT),
                "label": pd.array(labels, TEXT),
                "text": pd.array([self.corrections.get(k, words) for k, words in zip(keys, own, strict=True)], TEXT),
                "start_ms": pd.array(np.where(np.isfinite(start), start, np.nan), "Int64"),
                "end_ms": pd.array(np.where(end >= 0, end, np.nan), "Int64"),
                "word_count": np.diff(edges),
                "corrected": np.array([key in self.corrections for key in keys], bool),
            }
        )

    def _name(self, turn: str, label: str | None) -> str | None:
        """Return the speaker of a turn."""
        label = self.turn_names.get(turn, label)
        return self.names.get(label or "", label)

    @property
    def code(self) -> str:
        """Python code that shows the same. For data in memory, its first line describes `source`."""
        source = self._origin
        arguments = [source.code or "source"]
        arguments += [] if self._audio is None else [f"audio={self._audio!r}"]
        if source.remote and self._store is None:  # not in the corpus yet
            client = self._client if isinstance(self._client, Client) else None
            arguments += [f"client={connect_call(client)}"]
        arguments += [] if self._corpus is None else [f"corpus={corpus_call(self._corpus)}"]
        arguments += [] if self._given_title is None else [f"title={self._given_title!r}"]
        traits = ("time", "interval", "loop", "speed", "query", "layers", *(() if self._store else _ANNOTATIONS))
        return self._code("player", arguments, {} if source.code else {"source": source.kind}, traits)

    def _static_html(self) -> str:
        """Return the lanes as an image, and the first turns."""
        turns = self.result
        spans = turns[turns["start_ms"].notna()].astype({"start_ms": float, "end_ms": float}).sort_values("start_ms")
        colors: dict[str | None, int] = {}  # of people, in reading order
        for turn, label, name in turns[["turn_idx", "label", "speaker"]].itertuples(index=False):
            place = self._colors[self.turn_names.get(str(turn), "" if pd.isna(label) else label)]
            person = None if pd.isna(name) else name
            colors[person] = min(place, colors.get(person, place))
        lanes = []
        for person in colors:
            own = spans[spans["speaker"].isna() if person is None else spans["speaker"] == person]
            lanes.append((own["start_ms"].to_numpy(), own["end_ms"].to_numpy()))
        rows = [
            f"<p><strong>{escaped(name)}</strong> {escaped(_shortened(text))}</p>"
            for name, text in turns[["speaker", "text"]].head(_STATIC_TURNS).itertuples(index=False)
        ]
        if (more := len(turns) - len(rows)) > 0:
            rows.append(f"<p><em>and {more:,} more turns. Run the notebook to see them all.</em></p>")
        picture = lanes_svg(lanes, list(colors), list(colors.values()), self._until)
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}{''.join(rows)}"

    def to_html(self, path: str | os.PathLike[str], audio: Literal["link", "embed", "none"] = "link") -> None:
        """Write the player as an HTML page that needs no kernel and no network.

        Args:
            path: Path of the page; an existing file is replaced.
            audio: "link" (default) refers to the recording by URL or by a path relative to the page, so keep them
                together. "embed" includes a local recording in the page, which adds a third to its size. "none" leaves
                it out.

        Raises:
            OptionError: `audio` is invalid, or a URL cannot be embedded.
            AudioError: The recording cannot be read.
        """
        if self._measuring is not None:
            self._measuring.join()
        write_page(self, path, _sources=media_server.page_urls(self._audio, Path(path), audio), _editable=False)


def _whole_ms(name: str, ms: object) -> int:
    return int(checked(name, ms, Number(0, LAST_MS)))


def _pass_on(other: Any, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Copy changed names to another widget; its names of other speakers stay."""
    changed = {label for label in old.keys() | new.keys() if old.get(label) != new.get(label)}
    unchanged = {label: name for label, name in other.names.items() if label not in changed}
    other.names = unchanged | {label: new[label] for label in new if label in changed}


def _shortened(text: str) -> str:
    return text if len(text) <= _STATIC_CHARS else text[:_STATIC_CHARS] + " …"
