"""Groups of rows: columns, speakers and time bins that measures accept as `by=`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.recordings import distinct_names, known_names
from voxframe.analysis.speaker_turns import floats, require, speaker_codes
from voxframe.errors import OptionError
from voxframe.validators import listed, shown

#: Columns to group by: names, a Series with a value for each row, or periods of a date.
By: TypeAlias = "str | pd.Series[Any] | pd.Grouper | Sequence[str | pd.Series[Any] | pd.Grouper] | None"
_BIN = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)$")
_UNITS = {"s": 1, "min": 60, "h": 3600}
#: Columns from which keys are computed.
_NEEDED = {"person": "person", "recording": "transcript_id"}
#: Periods of the calendar, and their names in pandas.
PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]|$)")


class Calendar(str):
    """The column of a `pd.Grouper`, whose dates become periods."""

    __slots__ = ("grouper",)
    grouper: pd.Grouper

    def __new__(cls, grouper: pd.Grouper) -> Self:
        """Check that the Grouper has a column."""
        if not isinstance(getattr(grouper, "key", None), str):
            raise OptionError('a Grouper needs the column of a date, such as pd.Grouper(key="day", freq="W")')
        made = super().__new__(cls, grouper.key)
        made.grouper = grouper
        return made

    def __getnewargs__(self) -> tuple[pd.Grouper]:  # type: ignore[override]  # of str: its text
        return (self.grouper,)


def key_list(by: By, result: Collection[str] = ()) -> list[str | pd.Series[Any]]:
    """Return what to group by as a list. A name that is given twice is in it once.

    Args:
        by: What to group by.
        result: Columns that the caller adds to the groups.

    Raises:
        OptionError: It is neither a column, a Series nor a list of these, or has the name of a column of the result.
    """
    if by is None:
        return []
    is_one = isinstance(by, str | bytes | pd.Series | pd.Grouper) or not isinstance(by, Iterable)
    found: list[str | pd.Series[Any]] = []
    names = set[str]()
    keys: Iterable[Any] = [by] if is_one else by  # type: ignore[assignment]  # mypy knows no Grouper
    for key in keys:
        if isinstance(key, pd.Grouper):
            key = Calendar(key)
        if not isinstance(key, str | pd.Series):
            raise OptionError(f"groups are given as a column, a Series, or a list of these, got {shown(by)}")
        if (name := key.name if isinstance(key, pd.Series) else key) in result:
            raise OptionError(f"the measure has a column {name!r} of its own; rename yours to group by it")
        if isinstance(key, pd.Series):
            found.append(key)
        elif key not in names:
            names.add(key)
            found.append(key)
    return found


def time_bin(key: object) -> dict[str, Any] | None:
    """Return the arguments with which `split_spans` cuts spans for a time bin; None for another key.

    Example:
        >>> time_bin("minute"), time_bin("5min"), time_bin("tenth"), time_bin("topic")
        ({'window_s': 60}, {'window_s': 300.0}, {'parts': 10}, None)
    """
    if key in ("minute", "tenth"):
        return {"window_s": 60} if key == "minute" else {"parts": 10}
    found = _BIN.match(key) if isinstance(key, str) else None
    return {"window_s": float(found[1]) * _UNITS[found[2]]} if found and float(found[1]) > 0 else None


def bin_keys(df: pd.DataFrame, by: By) -> list[str]:
    """Return the time bins among the groups. A column of the same name goes first."""
    given = key_list(by)
    return [key for key in given if isinstance(key, str) and key not in df.columns and time_bin(key)]


def group_columns(
    df: pd.DataFrame, by: By, computed: Mapping[str, Callable[[pd.DataFrame], pd.Series[Any]]]
) -> list[pd.Series[Any]]:
    """Return the groups of the rows of a DataFrame as columns.

    Args:
        df: The rows.
        by: Column, Series with a value for each row, or a list of these. None: no groups.
        computed: Functions that compute further keys from the rows, by name of the key.

    Raises:
        OptionError: There is no such column.
    """
    given = key_list(by)
    found = []
    for key in given:
        if isinstance(key, pd.Series):
            found.append(key.reindex(df.index).rename(str(key.name or "group")))
        elif isinstance(key, Calendar) or (key in PERIODS and key not in df.columns):
            found.append(periods(df, key))
        elif key in df.columns and not (key in ("speaker", "person") and key in computed):
            found.append(df[key])
        elif key in computed and _NEEDED.get(key) in (None, *df.columns):
            found.append(computed[key](df).rename(key))
        else:
            names = [str(name) for name in dict.fromkeys([*computed, *df.columns]) if name != key]
            raise OptionError(
                f"cannot group by {key!r}; choose from {listed(names)}, or read the table with "
                f"metadata={key!r}, or merge it into the DataFrame"
            )
    return found


def periods(df: pd.DataFrame, key: str) -> pd.Series[Any]:
    """Return the period of each row: the first day of its week, month and so on, or the label of a `pd.Grouper`.

    Args:
        df: Rows with a date, such as a column of metadata.
        key: One of `PERIODS`, or a `Calendar`.

    Raises:
        OptionError: The rows have no date, several, or not the column of the Grouper, or it has no dates.
    """
    if isinstance(key, Calendar):
        if key not in df.columns:
            raise OptionError(f"there is no column {str(key)!r} to group by; read the table with metadata={str(key)!r}")
        rows = pd.DataFrame({str(key): _dates(df[key])})
        labels = pd.Series(pd.NaT, index=df.index, dtype=rows[key].dtype, name=str(key))
        for label, inside in rows.reset_index(drop=True).groupby(key.grouper):
            labels.iloc[inside.index] = label
        return labels
    dated = [name for name in df.columns if pd.api.types.is_datetime64_any_dtype(df[name]) or _has_dates(df[name])]
    if len(dated) != 1:
        have = f"has {', '.join(map(str, dated))}" if dated else "has none; read it with metadata="
        raise OptionError(
            f"by={key!r} needs one column with dates, and the table {have}; pd.Grouper(key=..., freq=...) names one"
        )
    dates = _dates(df[dated[0]])
    local = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    found: pd.Series[Any] = local.dt.to_period(PERIODS[key]).dt.start_time.rename(key)
    return found


def _has_dates(column: pd.Series[Any]) -> bool:
    """Return True for a column of dates as objects or ISO text."""
    values = column.dropna() if column.dtype == object or pd.api.types.is_string_dtype(column.dtype) else column[:0]
    return bool(len(values)) and all(
        isinstance(value, date) or (isinstance(value, str) and _DATE.match(value)) for value in values.unique()
    )


def _dates(column: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return pd.to_datetime(column, format=None if pd.api.types.is_datetime64_any_dtype(column) else "ISO8601")
    except (TypeError, ValueError):
        raise OptionError(
            f"the column {column.name!r} has values that are no dates, such as {column.iloc[0]!r}"
        ) from None


def with_keys(
    df: pd.DataFrame, by: By, *, result: Collection[str] = (), split: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Return a DataFrame with its groups as columns, and their names.

    A key is a column, such as metadata that was merged into the DataFrame, a Series, or one of these:

    - "speaker": name, else label, else channel of the speaker within a transcript. Labels of different transcripts are
      different speakers, so `transcript_id` is added to the keys.
    - "person": person across transcripts, in the column `person`. A label without a person is a group of its own:
      "call · A", with the recording or else the id of its transcript.
    - "recording": name of the recording, if the rows come from a corpus or from files; else the id of the transcript.
    - A time bin, by the start of a row: "minute" of the recording, or a length such as "30s", "5min" or "1h". The value
      is the number of the bin, from 0.
    - "day", "week", "month", "quarter" or "year": first day of the period of the only date among the columns, such as
      metadata. `pd.Grouper(key="day", freq="W")` names the column and any period of pandas.
    - "tenth": tenth of the recording in which a row starts, 0 to 9. A recording ends with the last row.

    Args:
        df: The rows.
        by: The keys.
        result: Columns that the caller adds to the groups.
        split: Leave out time bins, which the caller computes after it has cut spans at their limits.

    Raises:
        OptionError: There is no such column, or it has the name of a column of the result.
    """
    given = key_list(by, result)
    names = [key for key in given if isinstance(key, str)]
    if "speaker" in names and "transcript_id" in df.columns and "transcript_id" not in names:
        given = ["transcript_id", *given]
    timed = bin_keys(df, given)
    bins = {key: partial(_bin_number, key=key) for key in ("minute", "5min", "tenth", *timed)}
    computed: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {**_COMPUTED, **bins}
    found = group_columns(df, [key for key in given if not split or not _among(key, timed)], computed)
    columns = {str(key.name): key for key in found}
    names = [key if isinstance(key, str) else str(key.name or "group") for key in given]
    return df.assign(**columns), names


def _among(key: object, names: list[str]) -> bool:
    return isinstance(key, str) and key in names


def durations_ms(df: pd.DataFrame, transcripts: pd.DataFrame | None = None) -> pd.Series[float]:
    """Return the length of each recording in ms, by `transcript_id`: its audio, else the end of its last row.

    Args:
        df: Rows with `transcript_id` and `end_ms`.
        transcripts: The table `transcripts` with `audio_duration_s`. If rows end later, the recording ends with them.
    """
    end = pd.Series(floats(df["end_ms"]), index=df.index)
    last = end.groupby(df["transcript_id"], sort=False, dropna=False).max().fillna(0.0)
    if transcripts is None:
        return last
    require(transcripts, ("transcript_id", "audio_duration_s"), "the table transcripts")
    seconds = pd.Series(floats(transcripts["audio_duration_s"]), index=transcripts.index)
    known = 1000 * seconds.groupby(transcripts["transcript_id"]).max()
    return last.combine(known.reindex(last.index), np.fmax)


def speakers_of(df: pd.DataFrame) -> pd.Series[str]:
    """Return the speaker of each row, like `row_speakers`, in the dtype of text columns."""
    code, names = speaker_codes(df)
    values = pd.array([*names], dtype=TEXT) if names else pd.array([], dtype=TEXT)
    return pd.Series(values.take(code) if len(df) else values[:0], index=df.index, name="speaker")


def people_of(df: pd.DataFrame) -> pd.Series[str]:
    """Return the person of each row; if it has none, the label with the recording, such as "call · A".

    Args:
        df: Rows with `person`, `speaker` or `channel`, and `transcript_id` or `recording`.
    """
    return df["person"].astype(TEXT).fillna(labels_of(df)).rename("person")


def labels_of(df: pd.DataFrame) -> pd.Series[str]:
    """Return the speaker of each row with the recording, or else the id of the transcript, such as "call · A"."""
    return recordings_of(df, distinct=True).fillna("") + " · " + speakers_of(df).fillna("no speaker")


def recordings_of(df: pd.DataFrame, *, distinct: bool = False) -> pd.Series[str]:
    """Return the recording of each row, or else the id of its transcript.

    Args:
        df: Rows with `transcript_id` or `recording`.
        distinct: Return different names for the transcripts of one recording.
    """
    if "transcript_id" not in df.columns:
        own = df["recording"] if "recording" in df.columns else pd.Series(index=df.index)
        return own.astype(TEXT)
    code, values = pd.factorize(df["transcript_id"])
    ids = list(values)
    known = known_names(ids, df)
    names = distinct_names(ids, df) if distinct else [known.get(one, one) for one in ids]
    texts = pd.array([*names, None], dtype=TEXT)  # the last one is for rows without an id
    return pd.Series(texts.take(code), index=df.index, name="recording")


def _bin_number(df: pd.DataFrame, key: str) -> pd.Series[Any]:
    cut = time_bin(key) or {}
    if "window_s" in cut:
        require(df, ("start_ms",), f"by={key!r}")
        number = np.floor(floats(df["start_ms"]) / (1000 * cut["window_s"]))
    else:
        require(df, ("transcript_id", "start_ms", "end_ms"), f"by={key!r}")
        length = durations_ms(df).reindex(df["transcript_id"]).to_numpy(np.float64)
        number = np.minimum(np.floor(cut["parts"] * ratio(floats(df["start_ms"]), length)), cut["parts"] - 1)
    return pd.Series(number, index=df.index).astype("Int64")


@takes_frames
def relative_time(df: pd.DataFrame, transcripts: pd.DataFrame | None = None) -> pd.Series[float]:
    """Return the middle of each row as a fraction of its recording, so that many recordings can share an axis.

    Definition: the mean of start and end, divided by the length of the recording. Unit: none, 0 (beginning) to 1 (end).
    Denominator: length of the recording. Source: the measure is our own.

    Args:
        df: Rows with `transcript_id`, `start_ms` and `end_ms`.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        A float64 Series named `relative_time` with the index of `df`; NaN for rows without times.

    Raises:
        ValueError: A column is missing.

    Example:
        >>> times = {"start_ms": [0, 6000, 0], "end_ms": [4000, 8000, 10]}
        >>> rows = pd.DataFrame({"transcript_id": ["a", "a", "b"], **times})
        >>> relative_time(rows).tolist()
        [0.25, 0.875, 0.5]
    """
    require(df, ("transcript_id", "start_ms", "end_ms"), "relative_time")
    lengths = durations_ms(df, transcripts)
    whole = lengths.reindex(df["transcript_id"]).to_numpy(np.float64)
    middle = (floats(df["start_ms"]) + floats(df["end_ms"])) / 2
    return pd.Series(ratio(middle, whole), index=df.index, name="relative_time")


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Divide, with NaN if the denominator is 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return part / np.where(whole > 0, whole, np.nan)


_COMPUTED: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {
    "speaker": speakers_of,
    "person": people_of,
    "recording": recordings_of,
}
