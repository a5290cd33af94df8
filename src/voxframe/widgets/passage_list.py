"""PassageList: rows of any DataFrame as a list of passages that play on a click."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import traitlets

from voxframe._arrow import takes_frames
from voxframe._text import clock, quantity
from voxframe.analysis.rows import require
from voxframe.corpus import Corpus
from voxframe.validators import name_list
from voxframe.widgets import encoding
from voxframe.widgets.base import define_comment, escaped, show_errors
from voxframe.widgets.embedded_player import Audio, RowPlayerWidget, text_column
from voxframe.widgets.player import TranscriptPlayer

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
        arguments += [f"title={self.title!r}"] if self.title != "Passages" else []
        lines = [define_comment({"df": "the DataFrame with start_ms and end_ms", **define}), "import voxframe", ""]
        lines += [f"passages = voxframe.PassageList({', '.join(['df', *arguments])})"]
        lines += [f"passages.limit = {self.limit}"] if self.limit != 200 else []
        return "\n".join([*lines, "result = passages.result", "passages"])

    @traitlets.observe("limit")
    def _show(self, _: object = None) -> None:
        """Send the first rows to the browser."""
        with show_errors(self):
            rows = self._named().head(self.limit)
            packed: dict[str, Any] = {"of": len(self._df), "start": encoding.starts(rows)}
            for name, values in self._parts(rows).items():
                packed[name], packed[f"{name}_at"] = encoding.texts(values)
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
        rows = self._named().head(encoding.STATIC_ROWS)
        parts = self._parts(rows)
        where = [
            " ".join(filter(None, (name, "" if pd.isna(ms) else clock(ms / 1000), more)))
            for name, ms, more in zip(parts["name"], rows["start_ms"], parts["more"], strict=True)
        ]
        table = encoding.lines_table(zip(where, parts["left"], parts["match"], parts["right"], strict=True))
        more = len(self._df) - len(rows)
        return head + table + (f"<p><em>and {more:,} more. Run the notebook to see them.</em></p>" if more > 0 else "")


def _shown(values: pd.Series[Any]) -> list[str]:
    """Return values as text; numbers have at most three decimals, and a null is empty."""

    def text(value: Any) -> str:
        if pd.api.types.is_scalar(value) and pd.isna(value):
            return ""
        return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

    return list(map(text, values))
