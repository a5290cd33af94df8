"""Convert payloads of the service to the Arrow tables and DataFrames of the data dictionary."""

from typing import TYPE_CHECKING

import lazy_loader

from voxframe.frames.layout import Arrays, as_table, no_rows, uncast_table
from voxframe.frames.tables import (
    decode_transcript,
    derived_passages,
    passage_rows,
    passage_table,
    tables_together,
    transcript_arrays,
    transcript_tables,
    word_match_table,
)

if TYPE_CHECKING:
    from voxframe.frames.dataframes import (
        CATEGORIES,
        all_to_pandas,
        concat_tables,
        empty_table,
        joined,
        suited,
        to_pandas,
    )

__all__ = [
    "CATEGORIES",
    "Arrays",
    "all_to_pandas",
    "as_table",
    "concat_tables",
    "decode_transcript",
    "derived_passages",
    "empty_table",
    "joined",
    "no_rows",
    "passage_rows",
    "passage_table",
    "suited",
    "tables_together",
    "to_pandas",
    "transcript_arrays",
    "transcript_tables",
    "uncast_table",
    "word_match_table",
]

# pandas is imported on first use: processes that only write tables start in a third of the time without it.
__getattr__, *_ = lazy_loader.attach(
    __name__, submod_attrs={"dataframes": [name for name in __all__ if name not in globals()]}
)
