"""`voxframe tables`: what is in a corpus or a payload file."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from voxframe import loaders
from voxframe.cli.terminal import plain, shorten
from voxframe.corpus import Corpus
from voxframe.corpus.store import EXPORTS
from voxframe.errors import CorpusError, PayloadError
from voxframe.schema import TRANSCRIPT_TABLES

_TEXT_ROWS = 20
_CELL = 48


def tables(source: str | None, table: str | None, form: str, rows: int | None) -> int:
    """Print the rows of each table, or one table.

    Args:
        source: Corpus directory or payload file; None is the default corpus.
        table: Name of the table; None counts the rows of all.
        form: "text", "csv" or "json" (one object a line).
        rows: Only the first so many rows; None is all (as text: 20).

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place, or no such table.
        PayloadError: The file cannot be read as a payload.
    """
    names = [*TRANSCRIPT_TABLES, *EXPORTS] if table is None else [table]
    payload = source is not None and not Path(source).is_dir()
    if payload and not Path(str(source)).exists() and not str(source).endswith((".json", ".zst")):
        raise PayloadError(f"there is no corpus and no payload file at {source!r}; `voxframe submit` makes a corpus")
    found = _from_payload(str(source), names) if payload else _from_corpus(source, names)
    if table is None:
        write(pd.DataFrame({"table": list(found), "rows": [len(df) for df in found.values()]}), form, None)
    else:
        write(found[table], form, rows)
    return 0


def _from_corpus(source: str | None, names: list[str]) -> dict[str, pd.DataFrame]:
    corpus = Corpus(source)
    if not corpus.path.joinpath("raw").is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe transcribe` and `voxframe demo` make one")
    return {name: corpus.table(name) for name in names}


def _from_payload(source: str, names: list[str]) -> dict[str, pd.DataFrame]:
    """Tables of a transcript's payload, or the one of an export's."""
    if names == ["sentences"]:
        return {"sentences": loaders.load_sentences(Path(source))}
    if names == ["paragraphs"]:
        return {"paragraphs": loaders.load_paragraphs(Path(source))}
    found = loaders.tables(Path(source))
    if len(names) == 1 and names[0] not in found:
        raise PayloadError(f"there is no table {names[0]!r}; there is {', '.join([*TRANSCRIPT_TABLES, *EXPORTS])}")
    return found


def write(df: pd.DataFrame, form: str, rows: int | None) -> None:
    """Print a table as text, CSV or one JSON object a line; rows beyond `rows` are counted or left out."""
    if form == "text" and df.empty:
        print("no rows")
        return
    if form == "text":
        shown = df.head(_TEXT_ROWS if rows is None else rows)
        if len(shown):
            cells = shown.map(lambda cell: shorten(plain(cell), _CELL) if isinstance(cell, str) else cell)
            print(cells.astype(object).where(cells.notna(), "").to_string(index=False))
        if len(shown) < len(df):
            print(f"... {len(df) - len(shown)} more rows; --rows N shows more, --format csv all")
        return
    whole = df if rows is None else df.head(rows)
    if sys.stdout.isatty():  # into a file or a pipe goes the data as it is; a terminal is not to be steered by it
        whole = whole.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
    if form == "csv":
        whole.to_csv(sys.stdout, index=False)
    else:
        whole.to_json(sys.stdout, orient="records", lines=True, date_format="iso")
