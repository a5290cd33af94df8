"""Convert payloads of the service to the Arrow tables and DataFrames of the data dictionary."""

from voxframe.frames.columns import Arrays, as_table, from_table, no_rows, uncast_table
from voxframe.frames.dataframes import (
    CATEGORIES,
    TEXT_DTYPE,
    all_to_pandas,
    concat_tables,
    empty_table,
    joined,
    suited,
    text_array,
    to_pandas,
    with_text_original,
)
from voxframe.frames.passages import derived_passages, paragraph_table, passage_rows, sentence_table, word_match_table
from voxframe.frames.tables import decode_transcript, transcript_arrays, transcript_tables

__all__ = [
    "CATEGORIES",
    "TEXT_DTYPE",
    "Arrays",
    "all_to_pandas",
    "as_table",
    "concat_tables",
    "decode_transcript",
    "derived_passages",
    "empty_table",
    "from_table",
    "joined",
    "no_rows",
    "paragraph_table",
    "passage_rows",
    "sentence_table",
    "suited",
    "text_array",
    "to_pandas",
    "transcript_arrays",
    "transcript_tables",
    "uncast_table",
    "with_text_original",
    "word_match_table",
]
