"""DataFrames of the tables of a corpus, ids of transcripts, and the reasons why a table has no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._text import html_table, quantity
from voxframe.schema import REQUESTED_BY
from voxframe.validators import listed, nearest, shown

_SHOWN = 5  # transcripts named in one warning
#: The warning about an empty list or DataFrame of transcripts.
NONE_GIVEN = "no transcripts were given, so there are no rows: the list or DataFrame is empty; pass at least one"


class TablesByName(dict[str, pd.DataFrame]):
    """DataFrames by name of table, which are also attributes. The error for another name lists the tables."""

    def __missing__(self, name: str) -> pd.DataFrame:
        raise KeyError(self._no_table(name))

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name in self:
            return self[name]
        raise AttributeError(self._no_table(name), name=name, obj=None)  # without obj, Python suggests nothing itself

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        rows = self._summary()
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())

    def _repr_html_(self) -> str:
        return html_table(self._summary())

    def _no_table(self, name: str) -> str:
        return f"there is no table {name!r}{nearest(name, [*self])}; the tables are {listed(self)}"

    def _summary(self) -> dict[str, str]:
        """Return the recordings, the options that they were transcribed with, and the number of rows of each table."""
        about = self.get("transcripts", pd.DataFrame())
        names = [*map(str, about["recording"])] if "recording" in about else []
        options = {option for of_table in REQUESTED_BY.values() for option in of_table}
        requested = [name for name in about if name in options and _is_set(about[name]).any()]
        rows = {name: len(table) for name, table in self.items()}
        return {
            "recordings" if len(names) > 1 else "recording": _some(names),
            "made with": ", ".join(requested) or "no analyses",
            **{name: quantity(count, "row") for name, count in rows.items() if count},
            "without rows": ", ".join(name for name, count in rows.items() if not count),
        }


def _is_set(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return True for each transcript that was made with an option."""
    return values.notna() & ~values.isin([False, "[]"])


def columns_about(name: str) -> list[str]:
    """Return the columns of `transcripts` that tell why a table has no rows."""
    text = ["text"] if name == "words" else []
    return ["transcript_id", "status", "error", "audio_url", *text, *REQUESTED_BY.get(name, ())]


def why_empty(name: str, about: pa.Table, *, of_all: bool = True) -> str | None:
    """Return why a table has no rows, and what to do about it. None if nothing is missing."""
    if name == "transcripts":
        return None
    rows = about.select(columns_about(name)).to_pylist()
    if failed := [row for row in rows if row["error"] or row["status"] not in (None, "completed")]:
        return unfinished(name, [_why_failed(row) for row in failed])
    if name == "words" and (untimed := [_named(row["transcript_id"]) for row in rows if row["text"]]):
        return (
            f"no words in transcripts with a text but no list of words: {_some(untimed)}; "
            "voxframe.load_transcripts has the text"
        )
    options = REQUESTED_BY.get(name, ())
    asked = any(pc.any(about[option], min_count=0).as_py() for option in options if about[option].type == pa.bool_())
    not_flags = [option for option in options if about[option].type != pa.bool_()]
    if not of_all or not options or not rows or asked or any(about[o].null_count < len(rows) for o in not_flags):
        return None
    setting = options[0] if options[0] in not_flags else f"{options[0]}=True"
    other = {"speaker_labels": "find them by voice with corpus.speakers.detect", "custom_topics": ""}.get(
        options[0], f"add it with corpus.analyze({setting})"
    )
    reason = f"no {name}: the transcripts were made without {options[0]}"
    if pc.all(pc.is_null(about["audio_url"])).as_py():  # imported, so there is nothing that a service could transcribe
        return reason + (other and f"; {other}")
    return f"{reason}; transcribe them with {setting}" + (other and f", or {other}")


def unfinished(name: str, without: Sequence[str]) -> str:
    """Return the message about transcripts without rows because they are not completed."""
    return (
        f"no {name} in transcripts that are not completed: {_some(without)}; voxframe.load_transcripts has status and "
        "error"
    )


def _some(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _named(transcript_id: str | None) -> str:
    return "one without an id" if transcript_id is None else repr(transcript_id)


def _why_failed(row: Mapping[str, Any]) -> str:
    """Return the name of a transcript and its status; without one, the error that the service sent."""
    why = row["status"] or f"the service answered {shown(row['error'])}"
    return f"{_named(row['transcript_id'])} ({why})"
