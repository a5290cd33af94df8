"""Values of metadata: what a recording's columns may hold, how they are kept as JSON, and their types."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe.corpus.ledger import Job
from voxframe.corpus.reading import DTYPES
from voxframe.errors import OptionError
from voxframe.schema import JOBS


def metadata_to_json(metadata: Mapping[str, Any]) -> str:
    """Columns about a recording as JSON: text, numbers, booleans, and moments as `{"datetime": ..., "zone": ...}`.

    Raises:
        OptionError: A value is none of these, or text that is not Unicode.
    """
    text = json.dumps({name: _plain(name, value) for name, value in metadata.items()}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"metadata holds half of a surrogate pair, which is no Unicode text: {text!r:.200}") from None
    return text


def metadata_from_json(text: str) -> dict[str, Any]:
    """Columns about a recording, as they were given."""
    found: dict[str, Any] = json.loads(text)
    return {name: _moment(value) if isinstance(value, dict) else value for name, value in found.items()}


def typed(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, pa.Array]:
    """Columns about recordings by name, a row each. Values of a column that have no type in common become text.

    Moments in one time zone keep it, in several they are given in UTC; with and without one they have no type in
    common.

    Args:
        rows: Values by name, as `metadata_from_json` gives them; what is missing is null.
        names: The columns.
    """
    return {name: _column([row.get(name) for row in rows]) for name in names}


def jobs_frame(jobs: Sequence[Job]) -> pd.DataFrame:
    """Submissions as the table `jobs`, with the columns of their metadata."""
    df = frames.to_pandas(pa.Table.from_pylist([asdict(job) for job in jobs], schema=JOBS.arrow), "jobs")
    return beside(df, [job.metadata for job in jobs])


def beside(df: pd.DataFrame, metadata: Sequence[str]) -> pd.DataFrame:
    """A table with the columns of metadata behind its own; `metadata` has the JSON of each row."""
    rows = [metadata_from_json(text) for text in metadata]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return df
    more = pa.table(typed(rows, names)).to_pandas(types_mapper=DTYPES.get)
    return df.assign(**{name: more[name].array for name in names})


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a NumPy scalar
        value = pd.Timestamp(value) if value.dtype.kind == "M" else value.item()
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    if isinstance(value, datetime | date):
        zone = getattr(getattr(value, "tzinfo", None), "key", None)  # of zoneinfo: the offset alone has no summer
        return {"datetime": value.isoformat()} | ({"zone": zone} if zone else {})
    if isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"metadata {name!r} holds {value!r:.100}; give text, numbers, booleans or dates")


def _moment(value: Mapping[str, str]) -> pd.Timestamp:
    moment = pd.Timestamp(value["datetime"])
    return moment.tz_convert(value["zone"]) if "zone" in value else moment


def _column(values: list[Any]) -> pa.Array:
    zones = {str(value.tz) for value in values if isinstance(value, pd.Timestamp)}
    if len(zones) > 1 and "None" not in zones:
        values = [value.tz_convert("UTC") if isinstance(value, pd.Timestamp) else value for value in values]
    try:
        column = None if len(zones) > 1 and "None" in zones else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is None:
        column = pa.array([None if value is None else str(value) for value in values], pa.string())
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column
