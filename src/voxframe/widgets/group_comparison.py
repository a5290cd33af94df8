"""GroupComparison: an interactive view of a value of passages by group, with playback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from voxframe import analysis
from voxframe._arrow import takes_frames
from voxframe._text import clock, quantity
from voxframe.analysis.rows import require
from voxframe.corpus import Corpus
from voxframe.plots.lanes import lane_values
from voxframe.widgets.base import define_comment
from voxframe.widgets.embedded_player import Audio, text_column
from voxframe.widgets.lane_chart import LaneChart, Marks
from voxframe.widgets.player import TranscriptPlayer

#: Number of steps of the axis.
_STEPS = 100_000


class GroupComparison(LaneChart):
    """Values of passages by group: one stroke per row, and the mean of each group with a bootstrap interval.

    It shows which passages are behind a difference of groups. A tooltip shows the value and the text of a passage, and
    a click plays it if a corpus, a recording or a player is given. A drag selects; Ctrl + wheel zooms.

    Args:
        df: Rows with `start_ms`, `end_ms` (ms), the value and the group, such as turns with metadata merged into them.
            Rows without a value are left out.
        value: Column with the value, such as "offset_ms" of `voxframe.analysis.turn_taking` or "confidence" of words.
        by: Column with the groups; one lane per value.
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name.
        player: A player that plays its own transcript; other transcripts use a player below the lanes.
        label: Label of the axis, with the unit. None (default): the name of the column.
        title: Title of the widget.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, the value is not a number, or there are more than 200 groups.
        OptionError: `audio` is one recording, but the rows belong to several; or it has no recording of the rows.

    Example:
        >>> import voxframe
        >>> turns = voxframe.load_utterances(voxframe.sample().with_name("payloads") / "interview.json")
        >>> groups = GroupComparison(turns, "confidence", "speaker", audio=voxframe.sample())
        >>> groups.means[["speaker", "rows"]].values.tolist()
        [['A', 10], ['B', 10]]
    """

    _what = "Values by group"
    _points = True

    @takes_frames
    def __init__(
        self,
        df: pd.DataFrame,
        value: str,
        by: str,
        *,
        corpus: Corpus | None = None,
        audio: Audio = None,
        player: TranscriptPlayer | None = None,
        label: str | None = None,
        title: str = "Groups",
    ) -> None:
        require(df, ("start_ms", "end_ms", value, by), "GroupComparison")
        if not pd.api.types.is_numeric_dtype(df[value]):
            raise ValueError(f"value must be a column of numbers, but {value!r} is {df[value].dtype}; choose another")
        super().__init__(df, corpus, audio, player, title)
        self._value, self._by, self._label = value, by, label
        rows = self._named()
        group = lane_values(rows, by)
        code, labels = pd.factorize(group.astype("string"), sort=True, use_na_sentinel=False)
        names = [None if pd.isna(name) else str(name) for name in labels]
        number = df[value].to_numpy(np.float64, na_value=np.nan)
        finite = np.flatnonzero(np.isfinite(number))
        low, high = (number[finite].min(), number[finite].max()) if len(finite) else (0.0, 0.0)
        room = 0.02 * float(high - low) or 0.5
        self._low, self._step = float(low) - room, (float(high - low) + 2 * room) / _STEPS
        self._table = self._means_of(rows, code, number)
        place = self._steps(number[finite])
        means = [
            None
            if np.isnan(mean)
            else [None if np.isnan(end) else float(self._steps(end)) for end in (low, mean, high)]
            for low, mean, high in self._table[["low", "mean", "high"]].itertuples(index=False)
        ]
        self._table.insert(0, by, pd.Series(names, dtype=object))
        marks = Marks(place, place + 1, code[finite], finite, names, [0] * len(names), self._tips(rows))
        axis = {"low": self._low, "step": self._step, "label": label or value}
        self._draw(marks, by, _axis=axis, _means=means, _until=_STEPS)

    def __repr__(self) -> str:
        return f"GroupComparison({self._value!r} by {self._by!r}, {quantity(len(self._lanes), 'group')})"

    @property
    def means(self) -> pd.DataFrame:
        """Mean of each group, sorted by group.

        Returns:
            The group; `units` int64 (recordings that the bootstrap draws, or rows if these name no recording), `rows`
            int64, `mean`, `low`, `high` float64 (95 % interval; NaN for fewer than two units).
        """
        return self._table

    @property
    def selection(self) -> pd.DataFrame:
        """The rows with a value in the selected interval; no rows if nothing is selected."""
        if not self.interval:
            return self._df.iloc[:0]
        low, high = (self._low + self._step * end for end in self.interval)
        number = self._df[self._value].to_numpy(np.float64, na_value=np.nan)
        return self._df[(number >= low) & (number <= high)]

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `player`)."""
        arguments, define = self._given()
        arguments += [f"label={self._label!r}"] if self._label else []
        arguments += [f"title={self.title!r}"] if self.title != "Groups" else []
        lines = [define_comment({"df": "the DataFrame with the values", **define}), "import voxframe", ""]
        call = ", ".join(["df", repr(self._value), repr(self._by), *arguments])
        lines += [f"groups = voxframe.GroupComparison({call})", *self._state_code("groups")]
        return "\n".join([*lines, "result = groups.result", "groups"])

    def _steps(self, number: Any) -> Any:
        return np.round((number - self._low) / self._step)

    def _means_of(self, rows: pd.DataFrame, code: Any, number: Any) -> pd.DataFrame:
        """Return the mean of each group and its interval."""
        unit = np.arange(len(rows)) if self._key is None else pd.factorize(rows[self._key])[0]
        table = pd.DataFrame({"group": code, "value": number, "rows": 1, "unit": unit})
        means = analysis.rates(table, "value", "rows", "group", resample="unit").set_index("group")
        means = means.reindex(range(int(code.max()) + 1 if len(code) else 0))
        means = means.rename(columns={"rate": "mean"}).fillna({"units": 0, "rows": 0}).reset_index(drop=True)
        return means[["units", "rows", "mean", "low", "high"]].astype({"units": "int64", "rows": "int64"})

    def _tips(self, rows: pd.DataFrame) -> pd.Series[Any]:
        """Return recording, time, speaker and text of each row."""
        when = ["" if pd.isna(ms) else clock(ms / 1000) for ms in rows["start_ms"]]
        columns = [self._places(rows), when]
        columns += [rows["speaker"].astype("string").fillna("").tolist()] if "speaker" in rows.columns else []
        where = [" ".join(filter(None, values)) for values in zip(*columns, strict=True)]
        name = text_column(rows)
        text = [""] * len(rows) if name is None else rows[name].astype("string").fillna("").tolist()
        return pd.Series([f"{a}: {b}" if b else a for a, b in zip(where, text, strict=True)], dtype=object)
