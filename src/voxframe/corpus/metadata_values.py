"""Values of metadata: allowed types, their form as JSON, and the types of columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe._text import masked
from voxframe.corpus.job import Job
from voxframe.corpus.reading import DTYPES
from voxframe.errors import OptionError
from voxframe.schema import JOBS


def metadata_to_json(metadata: Mapping[str, Any]) -> str:
    """Return the metadata of a recording as JSON. Times become `{"datetime": ..., "zone": ...}`.

    Args:
        metadata: Text, numbers, booleans, dates, times or nulls by column name.

    Raises:
        OptionError: A value has another type, or text is not valid Unicode.
    """
    text = json.dumps({name: _plain(name, value) for name, value in metadata.items()}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"metadata holds half of a surrogate pair, which is no Unicode text: {text!r:.200}") from None
    return text


def metadata_from_json(text: str) -> dict[str, Any]:
    """Return the metadata of a recording from the JSON of `metadata_to_json`."""
    found: dict[str, Any] = json.loads(text)
    return {name: _moment(value) if isinstance(value, dict) else value for name, value in found.items()}


def typed(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, pa.Array]:
    """Return metadata columns by name, with one value per row.

    A column of values without a common type becomes text. Times keep their time zone if it is the same in all rows, and
    are converted to UTC if it differs. Times with and without a time zone have no common type.

    Args:
        rows: Values of each row by name, as returned by `metadata_from_json`. A missing value becomes null.
        names: Names of the columns.
    """
    return {name: _column([row.get(name) for row in rows]) for name in names}


def jobs_frame(jobs: Sequence[Job]) -> pd.DataFrame:
    """Return jobs as the table `jobs` with their metadata columns. Passwords and signatures in URLs are masked."""
    rows = [asdict(job) | {"source": masked(job.source), "error": job.error and masked(job.error)} for job in jobs]
    df = frames.to_pandas(pa.Table.from_pylist(rows, schema=JOBS.arrow), "jobs")
    return beside(df, [job.metadata for job in jobs])


def beside(df: pd.DataFrame, metadata: Sequence[str]) -> pd.DataFrame:
    """Append metadata columns to a table.

    Args:
        df: The table.
        metadata: Metadata of each row as JSON.
    """
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
        zone = getattr(getattr(value, "tzinfo", None), "key", None)  # the zone's name: an offset lacks summer time
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
