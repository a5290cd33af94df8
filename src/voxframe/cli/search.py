"""`voxframe search`: find words and phrases in a corpus."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from voxframe._text import clock
from voxframe.cli.arguments import add_format, add_selection, open_corpus, selected_ids
from voxframe.cli.output import plain, shorten, write

_TEXT_ROWS = 20
_SIDE = 40  # characters on each side of a match
_MATCH = 30


_EPILOG = """\
examples:
  voxframe search 'climate change' --corpus calls
  voxframe search 'econom*' refund --speaker A --json
  voxframe search 'money back' --slop 6                both words in any order, within six words
  voxframe search refund 'money back' --count --by speaker

Case, accents and punctuation are ignored: dont finds don't. Within a word, * matches any letters; alone, it matches
any word.
exit status: 0 success, even without matches; 1 there is no such corpus; 2 invalid arguments
"""


def add_search(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe search`."""
    parser = commands.add_parser(
        "search",
        help=help_line,
        description="Show every occurrence of words or phrases with the words around it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", nargs="+", metavar="QUERY", help="word or phrase; quote it if it contains spaces")
    add_selection(parser)
    parser.add_argument(
        "--context", type=int, default=8, metavar="N", help="number of words to show on each side (default: 8)"
    )
    parser.add_argument("--slop", type=int, metavar="N", help="match the words of a query in any order, within N words")
    parser.add_argument(
        "--speaker", action="append", metavar="NAME", help="only matches by this speaker; may be repeated"
    )
    parser.add_argument("--count", action="store_true", help="count the occurrences instead of showing them")
    parser.add_argument(
        "--by",
        action="append",
        metavar="COLUMN",
        help="with --count: group by transcript_id, speaker, speaker_name, channel, a metadata column, or nothing; "
        "may be repeated (default: transcript_id)",
    )
    add_format(parser)
    parser.set_defaults(run=search)


def search(given: argparse.Namespace) -> int:
    """Print the occurrences of the queries, or their counts.

    Raises:
        CorpusError: There is no corpus in the directory.
        OptionError: An argument is invalid.
    """
    corpus = open_corpus(given.corpus)
    ids = selected_ids(corpus, given)
    if given.count:
        by = [name for name in given.by or ["transcript_id"] if name != "nothing"]
        counted = corpus.counts(given.query, by=by, slop=given.slop, speaker=given.speaker, ids=ids)
        write(counted.round({"per_1000": 3}), given.form, given.rows)
        return 0
    text = given.form == "text"
    rows = _TEXT_ROWS if text and given.rows is None else given.rows
    found = corpus.search(
        given.query,
        context=given.context,
        slop=given.slop,
        speaker=given.speaker,
        ids=ids,
        limit=None if rows is None else rows + text,  # one more row shows that there are more
    )
    if text:
        _print(found.head(rows), more=len(found) > (rows or 0))
    else:
        write(found, given.form, None)
    return 0


def _print(found: pd.DataFrame, *, more: bool) -> None:
    """Print one line per match, with the matches aligned."""
    rows = []
    for row in found.to_dict("records"):
        left = plain(row["left"])
        cut = left if len(left) <= _SIDE else "…" + left[-_SIDE + 1 :]
        time = "" if pd.isna(row["start_ms"]) else clock(row["start_ms"] / 1000)
        speaker = shorten(plain(row["speaker"]), 12) if isinstance(row["speaker"], str) else ""
        texts = (cut, shorten(plain(row["match"]), _MATCH), shorten(plain(row["right"]), _SIDE))
        rows.append((shorten(plain(row["transcript_id"]), 36), time, speaker, *texts))
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
    for transcript, time, speaker, left, match, right in rows:
        where = f"{transcript:{widths[0]}}  {time:>{widths[1]}}  {speaker:{widths[2]}}"
        print(f"{where}  {left:>{widths[3]}}  {match:{widths[4]}}  {right}".rstrip())
    if more:
        print("... there are more matches; --rows N prints N rows, --csv or --json all")
    elif not rows:
        print("no matches")
