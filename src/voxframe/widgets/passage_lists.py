"""Lists of passages that play on a click: WordSearch searches a corpus, and PassageList shows rows of any DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from voxframe._arrow import takes_frames
from voxframe._text import quantity
from voxframe.analysis.rows import require
from voxframe.corpus import Corpus
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.search.concordance import check_about
from voxframe.corpus.search.meaning import CLOSE
from voxframe.errors import OptionError, VoxframeError
from voxframe.validators import listed, name_list, nearest, shown
from voxframe.widgets.base import (
    STATIC_ROWS,
    clock_text,
    corpus_call,
    escaped,
    lines_table,
    pack_ints,
    pack_starts,
    pack_texts,
    show_errors,
)
from voxframe.widgets.embedded_player import Audio, CorpusPlayerWidget, RowPlayerWidget, audio_by_name, text_column
from voxframe.widgets.player import TranscriptPlayer

#: Maximum number of groups in the list.
_MAX_GROUPS = 24
_WORD_COLUMNS = ("speaker", "speaker_name", "channel")


class WordSearch(CorpusPlayerWidget):
    """Search a corpus while typing: matches in context, counts per group, and playback.

    Queries are those of `Corpus.search`: case, accents and punctuation are ignored, and `*` stands for any letters.
    Counts per transcript, speaker or another group are shown beside the matches, with a strip of positions per
    transcript. A click on a group shows only its matches. Enter or a click plays a match. "?" lists the keyboard
    shortcuts.

    With `mode = "meaning"`, the sentences close in meaning to the query are listed with their scores, the closest
    first, and the counts are those of the listed sentences; see `Corpus.search`. The first search of this kind encodes
    the sentences.

    The search index of the corpus is updated when the widget is created and by each search.

    Args:
        corpus: Corpus to search. None (default): the default corpus.
        about: Metadata to count by: a DataFrame with `transcript_id`. None (default): the metadata of the corpus.
        player: A player that plays its own transcript; other transcripts use a player below the matches.
        audio: Path or URL of recordings by transcript id, if the corpus does not know them or they were moved.
        query: Initial query.
        title: Title of the widget.

    Attributes:
        query (str): Word or phrase to search for.
        mode (str): "words" or "meaning".
        min_score (float): Least score of a listed sentence, with "meaning": cosine, -1 to 1.
        slop (int): 0 for exact phrases; otherwise the words may occur in any order within this many words.
        by (str): Group of the counts: "transcript_id", "speaker", "speaker_name", "channel" or a column of `about`.
        only (list[str]): The one group to show matches of; empty for all.
        limit (int): Maximum number of listed matches.

    Raises:
        OptionError: `about` has no column `transcript_id`, or `audio` or `player` has the wrong type.
        CorpusError: The corpus cannot be read.

    Example:
        >>> import json, tempfile, voxframe
        >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
        >>> words = [{"text": t, "start": 0, "end": 9} for t in "It's the Climate, change it".split()]
        >>> _ = corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
        >>> search = WordSearch(corpus, query="climate chang*")
        >>> search.result[["left", "match", "right"]].to_numpy().tolist()
        [["It's the", 'Climate, change', 'it']]
    """

    scripts = ("embed", "lines", "word_search")
    styles = ("fields", "lines", "word_search")

    query = traitlets.Unicode("").tag(sync=True)
    mode = traitlets.Enum(["words", "meaning"], "words").tag(sync=True)
    min_score = traitlets.Float(CLOSE, min=-1, max=1).tag(sync=True)
    slop = traitlets.Int(0, min=0).tag(sync=True)
    by = traitlets.Unicode("transcript_id").tag(sync=True)
    only = traitlets.List(traitlets.Unicode(), maxlen=1).tag(sync=True)
    limit = traitlets.Int(100, min=1).tag(sync=True)
    _choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _found = traitlets.Dict().tag(sync=True)

    @takes_frames
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
        corpus = chosen_corpus(corpus)
        self._given_about = about is not None
        self._given_audio = audio_by_name(audio)
        self._about = _metadata(corpus) if about is None else about
        check_about(self._about)
        columns = [] if self._about is None else [str(name) for name in self._about.columns if name != "transcript_id"]
        choices = ["transcript_id", *_WORD_COLUMNS, *columns]
        super().__init__(corpus, audio, player, title=title, _choices=choices, query=query)
        if not query:  # otherwise setting the trait has searched
            self._search()

    def __repr__(self) -> str:
        return f"WordSearch({self._corpus!r}, query={self.query!r})"

    @traitlets.validate("by")
    def _check_by(self, proposal: Any) -> str:
        if self._choices and proposal["value"] not in self._choices:
            raise traitlets.TraitError(f"by must be one of {', '.join(self._choices)}, got {proposal['value']!r}")
        return str(proposal["value"])

    @property
    def result(self) -> pd.DataFrame:
        """All matches, including those not listed, as the table `concordance`.

        With `mode = "meaning"`, the listed sentences as the table `sentence_matches`.
        """
        if not self.query.strip():
            return self._corpus.search("nothing", limit=0)
        limit = self.limit if self.mode == "meaning" else None
        return self._corpus.search(self.query, **self._options(), limit=limit)

    @property
    def counts(self) -> pd.DataFrame:
        """Occurrences of the words of the query per group, in both modes: see `Corpus.counts`."""
        return self._corpus.counts(self.query, by=self.by, slop=self.slop or None, about=self._about_of(self.by))

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `about` and `player` if they were given."""
        given, define = [corpus_call(self._corpus)], {}
        if self._given_about:
            given, define["about"] = [*given, "about=about"], "the DataFrame with metadata"
        if self._linked is not None:
            given, define["player"] = [*given, "player=player"], "the TranscriptPlayer"
        if self._given_audio:
            given.append(f"audio={self._given_audio!r}")
        return self._code("search", given, define, ("by", "slop", "mode", "min_score", "query", "only", "limit"))

    def _static_html(self) -> str:
        """Return the number of matches and the first of them as a table."""
        head = f"<p><strong>{escaped(self.title)}</strong> {escaped(self.query)}</p>"
        if not self._found.get("query"):
            return f"{head}<p>Run the notebook to search.</p>"
        if "of" not in self._found:  # the search failed
            return f"{head}<p>{escaped(self.error)}</p>"
        rows = self._shown.head(STATIC_ROWS)
        places = [
            f"{self._recordings.name(str(i))} {clock_text(ms)}"
            for i, ms in zip(rows["transcript_id"], rows["start_ms"], strict=True)
        ]
        table = lines_table(zip(places, rows["left"], rows["match"], rows["right"], strict=True))
        more = self._found["of_shown"] - len(rows)
        note = f"<p><em>and {more:,} more. Run the notebook to see them all.</em></p>" if more > 0 else ""
        return f"{head}<p>{escaped(_summary(self._found))}</p>{table}{note}"

    @traitlets.observe("query", "mode", "slop", "min_score", "by", "only", "limit")
    def _search(self, change: Any = None) -> None:
        if change is not None and change["name"] == "by" and self.only:
            self.only = []  # which searches again
            return
        with show_errors(self):
            try:
                self._found = self._find()
            except VoxframeError:
                self._found = {"query": self.query, "total": 0}
                raise

    def _find(self) -> dict[str, Any]:
        """Run the search and return the state of the browser."""
        asked = {name: getattr(self, name) for name in ("query", "mode", "slop", "min_score", "by", "only", "limit")}
        if self.mode == "meaning" and self.query.strip():
            return asked | self._find_by_meaning()
        slop = self.slop or None
        per_transcript = self._corpus.counts(self.query if self.query.strip() else "nothing", slop=slop)
        size = {"words": int(per_transcript["words"].sum()), "of": len(per_transcript)}
        if not self.query.strip():
            self._shown = self.result
            return {**size, "query": "", "total": 0}
        rows = self._shown = self._corpus.search(self.query, **self._options(), limit=self.limit)
        groups = per_transcript if self.by == "transcript_id" else self.counts
        most = groups[groups["occurrences"] > 0].sort_values("occurrences", ascending=False, kind="stable")
        keys = self._keys(groups)
        groups_shown = groups[keys.astype(str) == self.only[0]] if self.only else groups
        head = pd.concat([most.head(_MAX_GROUPS), most[most.index.isin(groups_shown.index)] if self.only else most[:0]])
        head = head[~head.index.duplicated()]
        summary = {**asked, **size, "total": int(per_transcript["occurrences"].sum())}
        summary |= {
            "in": int((per_transcript["occurrences"] > 0).sum()),
            "groups": len(most),
            "most": int(most["occurrences"].max() or 0) if len(most) else 0,
        }
        summary["of_shown"] = int(groups_shown["occurrences"].sum())
        return summary | self._packed(rows) | self._packed_groups(head)

    def _find_by_meaning(self) -> dict[str, Any]:
        """Run a search by meaning; groups have the number of their sentences among the closest of all."""
        rows = self._shown = self.result
        best = self._corpus.search(self.query, **self._by_score(), limit=self.limit) if self.only else rows
        about = self._about_of(self.by)
        keys = best if about is None else best[["transcript_id"]].merge(about, how="left", on="transcript_id")
        words = self._corpus.counts("nothing").set_index("transcript_id")["words"]
        of = ["transcript_id", "speaker"] if self.by == "speaker" else self.by
        groups = keys.groupby(of, dropna=False).size().rename("occurrences").reset_index()
        groups["words"] = words.reindex(groups[self.by]).to_numpy() if self.by == "transcript_id" else 0
        groups = groups.sort_values("occurrences", ascending=False, kind="stable")
        summary = {"words": int(words.sum()), "of": len(words), "total": len(rows), "of_shown": len(rows)}
        summary |= {"in": rows["transcript_id"].nunique(), "groups": len(groups)}
        scores = pack_ints((100 * rows["score"]).round())
        return summary | self._packed(rows) | self._packed_groups(groups.head(_MAX_GROUPS), best) | {"score": scores}

    def _packed(self, rows: pd.DataFrame) -> dict[str, bytes]:
        """Return matches as columns for the browser."""
        packed = {"start": pack_starts(rows)}
        names = [self._recordings.name(transcript_id) for transcript_id in rows["transcript_id"]]
        columns = {name: rows[name] for name in ("left", "match", "right")} | {"speaker": rows["speaker_name"]}
        for name, column in columns.items():
            packed[name], packed[f"{name}_at"] = pack_texts(column)
        packed["name"], packed["name_at"] = pack_texts(names)
        return packed

    def _packed_groups(self, groups: pd.DataFrame, falls: pd.DataFrame | None = None) -> dict[str, bytes]:
        """Return groups, and positions of matches in transcripts, as columns for the browser."""
        values = self._keys(groups)
        keys = ["" if pd.isna(value) else str(value) for value in values]
        of_transcripts = self.by == "transcript_id"
        names = [self._recordings.name(key) if of_transcripts and key else key for key in keys]
        packed = {"count": pack_ints(groups["occurrences"]), "size": pack_ints(groups["words"])}
        packed["key"], packed["key_at"] = pack_texts(keys)
        packed["group"], packed["group_at"] = pack_texts(names)
        packed["known"] = pack_ints(values.notna())
        if not of_transcripts:
            return packed
        if falls is None:
            slop = self.slop or None
            falls = self._corpus.search(self.query, slop=slop, ids=keys, context=0) if keys else self._shown[:0]
        falls = falls[falls["transcript_id"].isin(keys) & falls["word_idx"].notna()]
        place = pd.Series(np.arange(len(keys)), keys)
        row = place.loc[falls["transcript_id"].to_numpy()].to_numpy() if len(falls) else np.empty(0, int)
        order = np.argsort(row, kind="stable")
        packed["falls_first"] = pack_ints(np.searchsorted(row[order], np.arange(len(keys) + 1)))
        packed["falls"] = pack_ints(falls["word_idx"].to_numpy()[order])
        packed["falls_ms"] = pack_starts(falls.iloc[order])
        return packed

    def _by_score(self) -> dict[str, Any]:
        """Return the arguments of `Corpus.search` for a search by meaning."""
        return {"mode": "meaning"} | ({} if self.min_score == CLOSE else {"min_score": self.min_score})

    def _options(self) -> dict[str, Any]:
        """Return the arguments of `Corpus.search` for the selected group."""
        options: dict[str, Any] = {"slop": self.slop} if self.slop else {}
        if self.mode == "meaning":
            options = self._by_score()
        if not self.only:
            return options
        if self.by == "transcript_id":
            return options | {"ids": list(self.only)}
        if self.by == "speaker":  # of one transcript
            labels = self._corpus.counts("nothing", by="speaker")
            labels = self._only(labels, self._keys(labels))
            return options | {"ids": labels["transcript_id"].tolist(), "speaker": labels["speaker"].tolist()}
        if self.by == "speaker_name":
            return options | {"speaker": list(self.only)}
        if self.by == "channel":
            return options | {"where": [("channel", "==", self.only[0])]}
        about = self._about_of(self.by)
        assert about is not None
        return options | {"ids": self._only(about, about[self.by])["transcript_id"].tolist()}

    def _only(self, rows: pd.DataFrame, keys: pd.Series[Any]) -> pd.DataFrame:
        """Return the rows of the selected group; one that no row has is an error."""
        if (is_selected := keys == self.only[0]).any():
            return rows[is_selected]
        names = keys.dropna().astype(str).unique().tolist()
        raise OptionError(
            f"there is no {self.by} {shown(self.only[0])}{nearest(self.only[0], names)}; choose from {listed(names)}"
        )

    def _keys(self, groups: pd.DataFrame) -> pd.Series[Any]:
        """Return the key of each group: its value, or the label with the recording, such as "call · A"."""
        if self.by != "speaker":
            return groups[self.by]
        names = groups["transcript_id"].map(self._recordings.name)
        return names.astype(groups["speaker"].dtype) + " · " + groups["speaker"]

    def _about_of(self, by: str) -> pd.DataFrame | None:
        """Return the metadata column to count by; None if the group is not metadata."""
        if self._about is None or by in ("transcript_id", *_WORD_COLUMNS):
            return None
        # As text: if a transcript has no row, 2024 would become 2024.0.
        text = self._about[by].astype("string")
        return pd.DataFrame({"transcript_id": self._about["transcript_id"], by: text})

    def _on_browser_message(self, message: dict[str, Any], _: list[Any]) -> None:
        """Handle a click: play a match, or the match at a position of a transcript."""
        query = self.query if self.mode == "words" and not self.slop else ""
        with show_errors(self):
            if message.get("do") == "match" and 0 <= (n := int(message["row"])) < len(self._shown):
                row = self._shown.iloc[n]
                if pd.isna(row["start_ms"]):
                    raise OptionError("cannot play this match: its words have no times")
                end = None if pd.isna(row["end_ms"]) else int(row["end_ms"])
                self._play(row["transcript_id"], int(row["start_ms"]), end, query)
            elif message.get("do") == "fall":
                self._play(str(message["transcript_id"]), max(0, int(message["start_ms"])), None, query)


def _metadata(corpus: Corpus) -> pd.DataFrame | None:
    """Return the metadata of a corpus by transcript; None if there is none."""
    if not corpus.path.is_dir():  # the search says so in the error pane
        return None
    metadata = corpus.metadata.get().drop(columns=["recording", "source"])
    return metadata if len(metadata.columns) > 1 else None


def _summary(counts: Mapping[str, Any]) -> str:
    """Return the number of matches as text."""
    if counts.get("mode") == "meaning":
        close = quantity(counts["total"], "close sentence")
        return f"{close} (score from {counts['min_score']:.2f}) in {counts['in']:,} of {counts['of']:,} transcripts"
    return f"{quantity(counts['total'], 'match', 'matches')} in {counts.get('in', 0):,} of {counts['of']:,} transcripts"


_SPEAKERS = ("speaker_name", "person", "speaker")


class PassageList(RowPlayerWidget):
    """List the rows of a DataFrame, and play the passage of a row on a click or with Enter.

    It takes every table with times: results of `Corpus.search` in both modes, citations of `Corpus.ask`, differences of
    two transcripts (`voxframe.compare.disagreements`), words of low confidence, questions, or rows of your own.

    Args:
        df: Rows with `start_ms` and `end_ms` (ms). Rows of several recordings have `transcript_id` or `recording`.
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name. Without a corpus, the player
            shows the rows as its text.
        player: A player that plays its own transcript; other transcripts use a player below the list.
        text: Column to show. None (default): "match" or "text", between "left" and "right" if the rows have these.
        columns: Other columns to show in front of the text.
        title: Title of the widget.

    Attributes:
        limit (int): Maximum number of listed rows.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing.
        OptionError: `audio` is one recording, but the rows belong to several; `audio` has no recording of the rows; or
            a corpus was given, and the rows do not name recordings.

    Example:
        >>> import voxframe
        >>> words = voxframe.load_words(voxframe.sample().with_name("payloads") / "interview.json")
        >>> low = voxframe.analysis.low_confidence(words, below=0.6)
        >>> passages = PassageList(low, audio=voxframe.sample(), columns=["mean_confidence"])
        >>> passages.result is low
        True
    """

    scripts = ("embed", "lines", "passage_list")
    styles = ("lines",)

    limit = traitlets.Int(200, min=1).tag(sync=True)
    _rows = traitlets.Dict().tag(sync=True)

    @takes_frames
    def __init__(
        self,
        df: pd.DataFrame,
        *,
        corpus: Corpus | None = None,
        audio: Audio = None,
        player: TranscriptPlayer | None = None,
        text: str | None = None,
        columns: str | Sequence[str] = (),
        title: str = "Passages",
    ) -> None:
        columns = name_list(columns, "columns")
        require(df, ("start_ms", "end_ms", *([text] if text else []), *columns), "PassageList")
        self._text = text or text_column(df)
        self._given_text, self._columns = text, columns
        super().__init__(df, corpus, audio, player, title=title)
        self._show()

    def __repr__(self) -> str:
        return f"PassageList({quantity(len(self._df), 'row')})"

    @property
    def result(self) -> pd.DataFrame:
        """The rows."""
        return self._df

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `player`)."""
        arguments, define = self._given()
        arguments += [f"text={self._given_text!r}"] if self._given_text else []
        arguments += [f"columns={self._columns!r}"] if self._columns else []
        define = {"df": "the DataFrame with start_ms and end_ms", **define}
        return self._code("passages", ["df", *arguments], define, ["limit"])

    @traitlets.observe("limit")
    def _show(self, _: object = None) -> None:
        """Send the first rows to the browser."""
        with show_errors(self):
            rows = self._named().head(self.limit)
            packed: dict[str, Any] = {"of": len(self._df), "start": pack_starts(rows)}
            for name, values in self._parts(rows).items():
                packed[name], packed[f"{name}_at"] = pack_texts(values)
            self._rows = packed

    def _parts(self, rows: pd.DataFrame) -> dict[str, list[str]]:
        """Return the texts of the lines: recording, speaker, other columns, and the passage with its context."""
        nothing = [""] * len(rows)
        who = next((name for name in _SPEAKERS if name in rows.columns), None)
        columns = {"name": self._places(rows), "speaker": nothing if who is None else _shown(rows[who])}
        extra_columns = [_shown(rows[name]) for name in self._columns]
        columns["more"] = (
            [" · ".join(filter(None, values)) for values in zip(*extra_columns, strict=True)]
            if extra_columns
            else nothing
        )
        is_default = self._given_text is None
        for side, name in (("left", "left"), ("match", self._text), ("right", "right")):
            has_side = name is not None and name in rows.columns and (is_default or side == "match")
            columns[side] = _shown(rows[name]) if has_side else nothing
        return columns

    def _static_html(self) -> str:
        """Return the first rows as a table."""
        head = f"<p><strong>{escaped(self.title)}</strong> {quantity(len(self._df), 'row')}</p>"
        rows = self._named().head(STATIC_ROWS)
        parts = self._parts(rows)
        where = [
            " ".join(filter(None, (name, clock_text(ms), more)))
            for name, ms, more in zip(parts["name"], rows["start_ms"], parts["more"], strict=True)
        ]
        table = lines_table(zip(where, parts["left"], parts["match"], parts["right"], strict=True))
        more = len(self._df) - len(rows)
        return head + table + (f"<p><em>and {more:,} more. Run the notebook to see them.</em></p>" if more > 0 else "")


def _shown(values: pd.Series[Any]) -> list[str]:
    """Return values as text; numbers have at most three decimals, and a null is empty."""

    def text(value: Any) -> str:
        if pd.api.types.is_scalar(value) and pd.isna(value):
            return ""
        return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

    return list(map(text, values))
