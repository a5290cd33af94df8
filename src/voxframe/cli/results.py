"""Arguments of `voxframe search`, `summarize`, `export` and `snapshot`; the rest is imported when it is asked for."""

from __future__ import annotations

import argparse
from typing import Any

from voxframe.cli.arguments import add_corpus, add_rows

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

_SUMMARIZE_EPILOG = """\
examples:
  voxframe summarize --corpus calls --format 'bullet points'
  voxframe summarize --where customer=Acme --question 'What was promised?' --question 'By when?'
  voxframe summarize --prompt 'Write a letter to the caller' --id 7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0

More transcripts than a request takes (100, or 100 hours) are asked about in several, and what these bring is put
together by one more. What was asked before is not asked again.
exit status: 0 done; 1 there is no such corpus, or the service failed; 2 wrong arguments
"""

_SNAPSHOT_EPILOG = """\
examples:
  voxframe snapshot --corpus calls
  voxframe snapshot --corpus calls --list
  voxframe snapshot --corpus calls --verify

exit status: 0 done; 1 it could not be written, or a version is damaged; 2 wrong arguments
"""

_EXPORT_EPILOG = """\
formats:
  parquet csv jsonl huggingface                        a data set: a file or folder a table
  srt vtt textgrid eaf audacity rttm ctm stm           a file a transcript; calls.rttm is one file of all

examples:
  voxframe export calls-set --corpus calls --partition-by customer --metadata day
  voxframe export captions --format vtt --pii mask
  voxframe export words.csv --format csv --table words
  voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

exit status: 0 done; 1 it could not be written, or is there already; 2 wrong arguments; it is written whole or not
at all
"""


def add_arguments(commands: argparse._SubParsersAction[Any]) -> None:
    """Add these commands."""
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
        metavar="COLUMN",
        help="with --count: group by transcript_id, speaker, speaker_name, channel, a column of the metadata, or "
        "nothing; may be repeated (default: transcript_id)",
    )
    add_rows(search)
    search.add_argument("--csv", dest="form", action="store_const", const="csv", help="every column as CSV")
    search.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON object a line")
    search.set_defaults(run=_search, form="text")

    summarize = commands.add_parser(
        "summarize",
        help="a summary of a corpus, or answers to questions about it",
        description="Have a language model summarize transcripts, answer questions or do something with them.",
        epilog=_SUMMARIZE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_which(summarize)
    summarize.add_argument("--question", action="append", metavar="TEXT", help="answer this; may be repeated")
    summarize.add_argument("--prompt", metavar="TEXT", help="do this")
    summarize.add_argument("--action-items", action="store_true", help="what is to be done")
    summarize.add_argument(
        "--format", dest="answer_format", metavar="TEXT", help="how it should look, such as 'one sentence'"
    )
    summarize.add_argument("--refresh", action="store_true", help="ask even what was asked before (it is paid again)")
    summarize.add_argument(
        "--uncertain", action="store_true", help="ask again where an answer was lost (it may be paid twice)"
    )
    summarize.add_argument("--json", action="store_true", help="one JSON object with text, replies and identifiers")
    summarize.set_defaults(run=_summarize)

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
        "--metadata",
        action="append",
        default=[],
        metavar="COLUMN",
        help="add this column about the recordings; may be repeated",
    )
    export.add_argument(
        "--pii", choices=("mask", "drop"), help="personal data that entity detection found: [PERSON_NAME], or left out"
    )
    export.add_argument("--pii-type", action="append", metavar="TYPE", help="only this type; may be repeated")
    export.add_argument("--overwrite", action="store_true", help="replace what is there")
    export.add_argument("--json", action="store_true", help="one JSON object with the files")
    export.set_defaults(run=_export)

    snapshot = commands.add_parser(
        "snapshot",
        help="seal a version of a corpus that never changes",
        description="Seal all that is in a corpus as a new version: sorted, compact, with a manifest of its hashes.",
        epilog=_SNAPSHOT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_corpus(snapshot)
    snapshot.add_argument("--list", action="store_true", help="list the versions there are, and seal none")
    snapshot.add_argument(
        "--verify",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="check a version (default: the latest), and seal none",
    )
    snapshot.add_argument("--json", action="store_true", help="the manifest as one JSON object; with --list one a line")
    snapshot.set_defaults(run=_snapshot)


def _add_which(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser)
    parser.add_argument("--id", action="append", metavar="ID", help="only this transcript; may be repeated")
    parser.add_argument(
        "--where", action="append", metavar="COLUMN=VALUE", help="only where the metadata says so; may be repeated"
    )


def _search(given: argparse.Namespace) -> int:
    from voxframe.cli.search import search

    return search(given)


def _export(given: argparse.Namespace) -> int:
    from voxframe.cli.export import export

    return export(given)


def _summarize(given: argparse.Namespace) -> int:
    from voxframe.cli.summarize import summarize

    return summarize(given)


def _snapshot(given: argparse.Namespace) -> int:
    from voxframe.cli.snapshot import snapshot

    return snapshot(given)
