"""`voxframe tables`: show the tables of a corpus or a payload file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from voxframe import loaders
from voxframe.cli.arguments import add_rows, open_corpus
from voxframe.cli.output import write
from voxframe.corpus.store import EXPORTS
from voxframe.errors import PayloadError
from voxframe.schema import TRANSCRIPT_TABLES


def add_tables(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe tables`."""
    parser = commands.add_parser(
        "tables",
        help=help_line,
        description="Show the number of rows of each table, or with --table one table.",
    )
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="corpus directory, or .json or .json.zst payload (default: the default corpus)",
    )
    parser.add_argument("--table", metavar="NAME", help="table to show, such as words")
    parser.add_argument(
        "--format",
        choices=("text", "csv", "json"),
        default="text",
        help="output format; json is one object per line (default: text)",
    )
    for form in ("csv", "json"):
        parser.add_argument(
            f"--{form}", dest="format", action="store_const", const=form, help=f"the same as --format {form}"
        )
    add_rows(parser)
    parser.set_defaults(run=tables)


def tables(given: argparse.Namespace) -> int:
    """Print the number of rows of each table, or one table.

    Raises:
        CorpusError: There is no corpus in the directory, or no such table.
        PayloadError: The file is not a readable payload.
    """
    source, table = given.source, given.table
    names = [*TRANSCRIPT_TABLES, *EXPORTS] if table is None else [table]
    payload = source is not None and not Path(source).is_dir()
    if payload and not Path(str(source)).exists() and not str(source).endswith((".json", ".zst")):
        raise PayloadError(f"there is no corpus and no payload file at {source!r}; `voxframe submit` creates a corpus")
    found = _from_payload(str(source), names) if payload else _from_corpus(source, names)
    if table is None:
        write(pd.DataFrame({"table": list(found), "rows": [len(df) for df in found.values()]}), given.format, None)
    else:
        write(found[table], given.format, given.rows)
    return 0


def _from_corpus(source: str | None, names: list[str]) -> dict[str, pd.DataFrame]:
    corpus = open_corpus(source)
    return {name: corpus.table(name) for name in names}


def _from_payload(source: str, names: list[str]) -> dict[str, pd.DataFrame]:
    """Return the tables of a transcript's payload, or the table of an export's payload."""
    if names == ["sentences"]:
        return {"sentences": loaders.load_sentences(Path(source))}
    if names == ["paragraphs"]:
        return {"paragraphs": loaders.load_paragraphs(Path(source))}
    found = loaders.tables(Path(source))
    if len(names) == 1 and names[0] not in found:
        raise PayloadError(
            f"there is no table {names[0]!r}; the tables are {', '.join([*TRANSCRIPT_TABLES, *EXPORTS])}"
        )
    return found
