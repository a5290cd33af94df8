"""WordSearch: words and phrases in a whole corpus, as they are typed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from voxframe.corpus import Corpus
from voxframe.errors import OptionError
from voxframe.plots.style import clock
from voxframe.widgets import columns
from voxframe.widgets.base import escaped
from voxframe.widgets.moments import Moments, Recordings
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.telling import telling

#: Groups that are listed, those with most matches first.
_MOST_GROUPS = 24
#: Matches in the picture of a saved notebook.
_SAVED_ROWS = 12
_OF_WORDS = ("speaker", "speaker_name", "channel")


class WordSearch(Moments):
    """Every occurrence of a word or phrase in a corpus, found while it is typed, counted, and played at a click.

    What can be typed is what `Corpus.search` takes: case, accents and punctuation make no difference, and `*` stands
    for any letters. Beside the matches stands how often each transcript, speaker or other group has them, with a strip
    of where in the transcript they fall; a click there shows the matches of that group only. Enter, or a click on a
    match, plays it. "?" lists the keys.

    The search index of the corpus is brought up to date when the widget is made and by each search.

    Args:
        corpus: Where to search; None is the default corpus.
        about: More about the transcripts to count by: a DataFrame with `transcript_id`. None takes the metadata that
            the corpus has.
        player: A player that plays matches of its own transcript; others are played in one below the matches.
        audio: Path or address of the recording by transcript, for those that the corpus was not told of or that were
            moved.
        query: What to begin with.
        title: What stands above it.

    Attributes:
        query (str): What is searched for.
        within (int): 0 for phrases; else words may come in any order within so many words.
        by (str): What is counted by: "transcript_id", "speaker", "speaker_name", "channel" or a column of `about`.
        only (list[str]): The one group whose matches are shown; empty for all.
        limit (int): How many matches are listed at most.

    Raises:
        OptionError: `about` has no column `transcript_id`.
        CorpusError: The corpus cannot be read.

    Example:
        >>> import json, tempfile, voxframe
        >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
        >>> words = [{"text": t, "start": 0, "end": 9} for t in "It's the Climate, change it".split()]
        >>> _ = corpus.put("a1", json.dumps({"id": "a1", "words": words}).encode())
        >>> search = WordSearch(corpus, query="climate chang*")
        >>> search.result[["left", "match", "right"]].to_numpy().tolist()
        [["It's the", 'Climate, change', 'it']]
    """

    scripts = ("embed", "word_search")
    styles = ("fields", "word_search")

    query = traitlets.Unicode("").tag(sync=True)
    within = traitlets.Int(0, min=0).tag(sync=True)
    by = traitlets.Unicode("transcript_id").tag(sync=True)
    only = traitlets.List(traitlets.Unicode(), maxlen=1).tag(sync=True)
    limit = traitlets.Int(100, min=1).tag(sync=True)
    _choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _found = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        corpus: Corpus | None = None,
        *,
        about: pd.DataFrame | None = None,
        player: TranscriptPlayer | None = None,
        audio: Mapping[str, str | os.PathLike[str]] | None = None,
        query: str = "",
        title: str = "Word search",
    ) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._recordings = Recordings(self._corpus, audio)
        self._linked = player
        self._given_about = about is not None
        self._about = _metadata(self._corpus) if about is None else about
        if self._about is not None and "transcript_id" not in self._about.columns:
            raise OptionError("about is a DataFrame with a column transcript_id and others to count by")
        more = [] if self._about is None else [str(name) for name in self._about.columns if name != "transcript_id"]
        super().__init__(title=title, _choices=["transcript_id", *_OF_WORDS, *more], query=query)
        self.on_msg(self._asked)
        if not query:  # else the trait's change has searched
            self._search()

    def __repr__(self) -> str:
        return f"WordSearch({self._corpus!r}, query={self.query!r})"

    @traitlets.validate("by")
    def _check_by(self, proposal: Any) -> str:
        if self._choices and proposal["value"] not in self._choices:
            raise traitlets.TraitError(f"by is {', '.join(self._choices)}, not {proposal['value']!r}")
        return str(proposal["value"])

    @property
    def result(self) -> pd.DataFrame:
        """Every match, not only those listed: the table `concordance`."""
        if not self.query.strip():
            return self._corpus.search("nothing", limit=0)
        return self._corpus.search(self.query, **self._options())

    @property
    def counts(self) -> pd.DataFrame:
        """How often each group has it: see `Corpus.counts`."""
        return self._corpus.counts(self.query, by=self.by, within=self.within or None, about=self._about_of(self.by))

    @property
    def code(self) -> str:
        """Lines that show the same again and give the same result; `about` and `audio` stand for what was given."""
        given = [f"voxframe.Corpus({str(self._corpus.path)!r})", *(["about=about"] if self._given_about else [])]
        lines = ["import voxframe", "", f"search = voxframe.WordSearch({', '.join(given)})"]
        for trait in ("by", "within", "query", "only", "limit"):
            value = getattr(self, trait)
            if value != self.traits()[trait].default():
                lines.append(f"search.{trait} = {value!r}")
        return "\n".join([*lines, "result = search.result", "search"])

    def _still_html(self) -> str:
        """The number of matches and the first of them, as a table."""
        head = f"<p><strong>{escaped(self.title)}</strong> {escaped(self.query)}</p>"
        if not self._found.get("query"):
            return f"{head}<p>Run the notebook to search.</p>"
        cell, rows = 'style="padding:1px 6px;text-align:', self._shown.head(_SAVED_ROWS)
        table = "".join(
            f'<tr><td {cell}left">{escaped(self._recordings.name(str(row.transcript_id)))} {_clock(row.start_ms)}</td>'
            f'<td {cell}right">{escaped(row.left)}</td><td {cell}center"><strong>{escaped(row.match)}</strong></td>'
            f'<td {cell}left">{escaped(row.right)}</td></tr>'
            for row in rows.itertuples()
        )
        more = self._found["of_shown"] - len(rows)
        note = f"<p><em>and {more:,} more: run the notebook to see and hear them.</em></p>" if more > 0 else ""
        return f"{head}<p>{escaped(_summary(self._found))}</p><table>{table}</table>{note}"

    @traitlets.observe("query", "within", "by", "only", "limit")
    def _search(self, change: Any = None) -> None:
        if change is not None and change["name"] == "by" and self.only:
            self.only = []  # which searches again
            return
        with telling(self):
            try:
                self._found = self._look()
            except OptionError:
                self._found = {"query": self.query, "total": 0}
                raise

    def _look(self) -> dict[str, Any]:
        """What the browser shows."""
        asked = {"query": self.query, "within": self.within, "by": self.by, "only": self.only, "limit": self.limit}
        within = self.within or None
        per_transcript = self._corpus.counts(self.query if self.query.strip() else "nothing", within=within)
        size = {"words": int(per_transcript["words"].sum()), "of": len(per_transcript)}
        if not self.query.strip():
            self._shown = self.result
            return {**size, "query": "", "total": 0}
        rows = self._shown = self._corpus.search(self.query, **self._options(), limit=self.limit)
        groups = per_transcript if self.by == "transcript_id" else self.counts
        most = groups[groups["count"] > 0].sort_values("count", ascending=False, kind="stable")
        chosen = groups[groups[self.by].astype(str) == self.only[0]] if self.only else groups
        head = pd.concat(
            [most.head(_MOST_GROUPS), most[most[self.by].isin(chosen[self.by])] if self.only else most[:0]]
        )
        head = head.drop_duplicates(self.by)
        found = {**asked, **size, "total": int(per_transcript["count"].sum())}
        found |= {
            "in": int((per_transcript["count"] > 0).sum()),
            "groups": len(most),
            "most": int(most["count"].max() or 0) if len(most) else 0,
        }
        found["of_shown"] = int(chosen["count"].sum())
        return found | self._packed(rows) | self._packed_groups(head)

    def _packed(self, rows: pd.DataFrame) -> dict[str, bytes]:
        """Matches as columns for the browser."""
        packed = {"start": columns.int32(rows["start_ms"].fillna(-1).clip(upper=columns.LAST_MS))}
        names = [self._recordings.name(transcript_id) for transcript_id in rows["transcript_id"]]
        shown = {name: rows[name] for name in ("left", "match", "right")} | {"speaker": rows["speaker_name"]}
        for name, column in shown.items():
            packed[name], packed[f"{name}_at"] = columns.texts(column)
        packed["name"], packed["name_at"] = columns.texts(names)
        return packed

    def _packed_groups(self, groups: pd.DataFrame) -> dict[str, bytes]:
        """Groups, and where the matches of transcripts fall, as columns for the browser."""
        values = groups[self.by]
        keys = ["" if pd.isna(value) else str(value) for value in values]
        of_transcripts = self.by == "transcript_id"
        names = [self._recordings.name(key) if of_transcripts and key else key for key in keys]
        packed = {"count": columns.int32(groups["count"]), "size": columns.int32(groups["words"])}
        packed["key"], packed["key_at"] = columns.texts(keys)
        packed["group"], packed["group_at"] = columns.texts(names)
        packed["known"] = columns.int32(values.notna())
        if not of_transcripts:
            return packed
        within = self.within or None
        falls = self._corpus.search(self.query, within=within, ids=keys, context=0) if keys else self._shown[:0]
        place = pd.Series(np.arange(len(keys)), keys)
        row = place.loc[falls["transcript_id"].to_numpy()].to_numpy() if len(falls) else np.empty(0, int)
        order = np.argsort(row, kind="stable")
        packed["falls_first"] = columns.int32(np.searchsorted(row[order], np.arange(len(keys) + 1)))
        packed["falls"] = columns.int32(falls["word_idx"].to_numpy()[order])
        packed["falls_ms"] = columns.int32(falls["start_ms"].fillna(-1).clip(upper=columns.LAST_MS).to_numpy()[order])
        return packed

    def _options(self) -> dict[str, Any]:
        """The arguments of `Corpus.search` for what is shown."""
        options: dict[str, Any] = {"within": self.within} if self.within else {}
        if not self.only:
            return options
        if self.by == "transcript_id":
            return options | {"ids": list(self.only)}
        if self.by in ("speaker", "speaker_name"):
            return options | {"speaker": list(self.only)}
        if self.by == "channel":
            return options | {"where": [("channel", "==", self.only[0])]}
        about = self._about
        assert about is not None
        return options | {"ids": about.loc[about[self.by].astype(str) == self.only[0], "transcript_id"].tolist()}

    def _about_of(self, by: str) -> pd.DataFrame | None:
        """The one column that is counted by, of as many as there are."""
        if self._about is None or by in ("transcript_id", *_OF_WORDS):
            return None
        # As text: where some transcript is not in it, 2024 would become 2024.0.
        text = self._about[by].astype(object).map(str, na_action="ignore")
        return pd.DataFrame({"transcript_id": self._about["transcript_id"], by: text})

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        """A click: play a match, or where a match falls in a transcript."""
        with telling(self):
            if message.get("do") == "match" and 0 <= (n := int(message["row"])) < len(self._shown):
                row = self._shown.iloc[n]
                if pd.isna(row["start_ms"]):
                    raise OptionError("nobody knows when this was said: its words have no times")
                end = None if pd.isna(row["end_ms"]) else int(row["end_ms"])
                self.play(row["transcript_id"], int(row["start_ms"]), end)
            elif message.get("do") == "fall":
                self.play(str(message["transcript_id"]), max(0, int(message["start_ms"])))


def _metadata(corpus: Corpus) -> pd.DataFrame | None:
    """What the corpus knows about recordings, by transcript; None where that is nothing."""
    known = corpus.metadata()
    return known if len(known.columns) > 1 else None


def _summary(found: Mapping[str, Any]) -> str:
    """How many matches there are, in words."""
    matches = f"{found['total']:,} match{'' if found['total'] == 1 else 'es'}"
    return f"{matches} in {found.get('in', 0):,} of {found['of']:,} transcripts"


def _clock(ms: Any) -> str:
    return "" if pd.isna(ms) else clock(ms / 1000)
