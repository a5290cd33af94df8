"""Arguments of `voxframe search` and `export`; what they do is imported when it is asked for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_SEARCH_EPILOG = """\
examples:
  voxframe search 'climate change' --corpus calls
  voxframe search 'econom*' refund --speaker A --json
  voxframe search 'money back' --within 6              in any order, within six words
  voxframe search refund 'money back' --count --by speaker

Case, accents and punctuation make no difference: dont finds don't. In a word * stands for any letters,
alone for any word.
exit status: 0 done, found or not; 1 there is no such corpus; 2 wrong arguments
"""

_EXPORT_EPILOG = """\
formats:
  parquet csv jsonl huggingface                        a data set: a file or folder a table
  srt vtt textgrid eaf audacity rttm ctm stm           a file a transcript; calls.rttm is one file of all

examples:
  voxframe export calls-set --corpus calls --partition-by transcript_id
  voxframe export captions --format vtt --pii mask
  voxframe export words.csv --format csv --table words
  voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

exit status: 0 done; 1 it could not be written, or is there already; 2 wrong arguments; it is written whole or not
at all
"""


def add_arguments(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the two commands."""
    search = commands.add_parser(
        "search",
        help="words and phrases over a corpus, each with what was said around it",
        description="Show every occurrence of words or phrases with the words around it.",
        epilog=_SEARCH_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    search.add_argument("query", nargs="+", metavar="QUERY", help="word or phrase, in quotes where it has blanks")
    _add_which(search)
    search.add_argument("--context", type=int, default=8, metavar="N", help="words on each side (default: 8)")
    search.add_argument("--within", type=int, metavar="N", help="words of a query in any order, within so many words")
    search.add_argument(
        "--speaker", action="append", metavar="NAME", help="only what this speaker says; may be repeated"
    )
    search.add_argument("--count", action="store_true", help="how often instead of where")
    search.add_argument(
        "--by",
        action="append",
        choices=("transcript_id", "speaker", "channel", "nothing"),
        help="with --count: group by this; may be repeated (default: transcript_id)",
    )
    search.add_argument("--rows", type=int, metavar="N", help="only the first N rows (default for text: 20)")
    search.add_argument("--csv", dest="form", action="store_const", const="csv", help="every column as CSV")
    search.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON object a line")
    search.set_defaults(run=_search, form="text")

    export = commands.add_parser(
        "export",
        help="write a corpus to files for others",
        description="Write data sets, captions or annotations that other tools read.",
        epilog=_EXPORT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("target", metavar="TARGET", help="directory, file, or address such as s3://bucket/calls")
    _add_which(export)
    export.add_argument("--format", default="parquet", metavar="FORMAT", help="see below (default: parquet)")
    export.add_argument("--table", action="append", metavar="NAME", help="only this table; may be repeated")
    export.add_argument(
        "--partition-by", action="append", default=[], metavar="COLUMN", help="a folder a value; may be repeated"
    )
    export.add_argument(
        "--pii", choices=("mask", "drop"), help="personal data that entity detection found: [PERSON_NAME], or left out"
    )
    export.add_argument("--pii-type", action="append", metavar="TYPE", help="only this type; may be repeated")
    export.add_argument("--overwrite", action="store_true", help="replace what is there")
    export.add_argument("--json", action="store_true", help="one JSON object with the files")
    export.set_defaults(run=_export)


def _add_which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="corpus directory; default: the default corpus")
    parser.add_argument("--id", action="append", metavar="ID", help="only this transcript; may be repeated")


def _search(given: argparse.Namespace) -> int:
    from voxframe.cli.search import search

    return search(given)


def _export(given: argparse.Namespace) -> int:
    from voxframe.cli.export import export

    return export(given)
