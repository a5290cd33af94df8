"""`voxframe tables`, `search`, `summarize` and `people`: read what a corpus contains, and name its speakers."""

from __future__ import annotations

import argparse
import glob
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from voxframe import loaders
from voxframe._text import clock
from voxframe.cli.console import (
    TEXT_ROWS,
    add_format,
    add_selection,
    define,
    in_command_terms,
    note,
    open_corpus,
    plain,
    selected_ids,
    selection,
    shorten,
    whole,
    write,
)
from voxframe.corpus.importing import is_payload_file
from voxframe.corpus.llm import Answers, Refresh
from voxframe.corpus.reading import unfinished
from voxframe.corpus.store import EXPORTS
from voxframe.errors import OptionError, PayloadError
from voxframe.schema import TRANSCRIPT_TABLES

_TABLES_EPILOG = """\
examples:
  voxframe tables --corpus calls
  voxframe tables --corpus calls --table words --id interview
  voxframe tables --table words --where 'confidence < 0.5'     with --table, a condition selects rows of that table
  voxframe tables old/call.json --table utterances --csv > call.csv

exit status: 0 success; 1 there is no such corpus; 2 invalid arguments
"""


def add_tables(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe tables`."""
    define(
        parser,
        tables,
        "Show the number of rows of each table of a corpus or of payload files, or with --table one table.",
        _TABLES_EPILOG,
    )
    parser.add_argument(
        "file", nargs="*", metavar="FILE", help="payload files, folders or patterns, instead of a corpus"
    )
    add_selection(parser)
    parser.add_argument(
        "--table", choices=[*TRANSCRIPT_TABLES, *EXPORTS], metavar="NAME", help="table to show, such as words"
    )
    add_format(parser)


def tables(given: argparse.Namespace) -> int:
    """Print the number of rows of each table, or one table."""
    table = given.table
    names = [*TRANSCRIPT_TABLES, *EXPORTS] if table is None else [table]
    if given.file:
        if given.corpus or given.id or given.where:
            raise OptionError("payload files and --corpus, --id or --where were given; give files or a corpus")
        found = _from_payloads(given.file, names)
    else:
        corpus = open_corpus(given.corpus)
        if table is None:
            ids = selected_ids(corpus, given)
            # The reading half of `Corpus.table`, which would give the same reason for each empty table.
            found = {name: corpus._query.table(name, ids, ["transcript_id"]) for name in names}
            statuses = corpus.table("transcripts", ids, columns=["recording", "status"])
            failed = statuses[statuses["status"].notna() & (statuses["status"] != "completed")]
            if without := [f"{one.recording!r} ({one.status})" for one in failed.itertuples()]:
                note(f"voxframe tables: {in_command_terms(unfinished('words', without))}")
        else:
            ids, where = selection(corpus, given)
            found = {table: corpus.table(table, ids, where=where, metadata="recording")}
    if table is None:
        write(pd.DataFrame({"table": list(found), "rows": [len(df) for df in found.values()]}), given.form, None)
    else:
        write(found[table], given.form, given.rows)
    return 0


def _from_payloads(files: list[str], names: list[str]) -> dict[str, pd.DataFrame]:
    """Return the tables of the payloads of transcripts, or the table of payloads of exports."""
    for file in files:
        if Path(file, "raw").is_dir():
            raise OptionError(f"{file!r} is a corpus; give it as --corpus {file}")
        if not Path(file).exists() and not glob.has_magic(file) and not is_payload_file(file):
            raise PayloadError(
                f"there is no payload file {file!r}; check its path, or name a transcript or recording of the corpus "
                f"with --id {shlex.quote(file)}"
            )
    if names == ["sentences"]:
        return {"sentences": loaders.load_sentences(files)}
    if names == ["paragraphs"]:
        return {"paragraphs": loaders.load_paragraphs(files)}
    return loaders.tables(files)


_SIDE = 40  # characters on each side of a match
_MATCH = 30


_SEARCH_EPILOG = """\
examples:
  voxframe search 'climate change' --corpus calls
  voxframe search 'econom*' refund --speaker A --json
  voxframe search 'money back' --slop 6                both words in any order, within six words
  voxframe search refund 'money back' --count --by speaker

Case, accents and punctuation are ignored: dont finds don't. Within a word, * matches any letters; alone, it matches
any word.
exit status: 0 success, even without matches; 1 there is no such corpus; 2 invalid arguments
"""


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe search`."""
    define(parser, search, "Show every occurrence of words or phrases with the words around it.", _SEARCH_EPILOG)
    parser.add_argument("query", nargs="+", metavar="QUERY", help="word or phrase; quote it if it contains spaces")
    add_selection(parser)
    parser.add_argument(
        "--context", type=whole, default=8, metavar="N", help="number of words to show on each side (default: 8)"
    )
    parser.add_argument(
        "--slop", type=whole, metavar="N", help="match the words of a query in any order, within N words"
    )
    parser.add_argument(
        "--speaker", action="append", metavar="NAME", help="only matches by this speaker; may be repeated"
    )
    parser.add_argument("--count", action="store_true", help="count the occurrences instead of showing them")
    parser.add_argument(
        "--by",
        action="append",
        metavar="COLUMN",
        help="with --count: group by transcript_id, recording, speaker, person, speaker_name, channel, a metadata "
        "column, or nothing; may be repeated (default: recording and transcript_id)",
    )
    add_format(parser)


def search(given: argparse.Namespace) -> int:
    """Print the occurrences of the queries, or their counts."""
    if given.by and not given.count:
        raise OptionError("--by requires --count")
    corpus = open_corpus(given.corpus)
    ids = selected_ids(corpus, given)
    if given.count:
        by = [name for name in given.by or ["recording", "transcript_id"] if name != "nothing"]
        counted = corpus.counts(given.query, by=by, slop=given.slop, speaker=given.speaker, ids=ids)
        write(counted.round({"per_1000": 3}), given.form, given.rows)
        return 0
    text = given.form == "text"
    rows = TEXT_ROWS if text and given.rows is None else given.rows
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
        rows.append((shorten(plain(row["recording"]), 36), time, speaker, *texts))
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
    for transcript, time, speaker, left, match, right in rows:
        where = f"{transcript:{widths[0]}}  {time:>{widths[1]}}  {speaker:{widths[2]}}"
        print(f"{where}  {left:>{widths[3]}}  {match:{widths[4]}}  {right}".rstrip())
    if more:
        print("... there are more matches; --rows N prints N rows, --csv or --json all")
    elif not rows:
        print("no matches")


_SUMMARIZE_EPILOG = """\
examples:
  voxframe summarize --corpus calls --format 'bullet points'
  voxframe summarize --where customer=Acme --question 'What was promised?' --question 'By when?'
  voxframe summarize --prompt 'Write a letter to the caller' --id interview

If a request would exceed 100 transcripts or 100 hours, it is split, and a final request combines the results.
Responses are cached: the same request is not sent twice.
exit status: 0 success; 1 there is no such corpus, or the service failed; 2 invalid arguments
"""


def add_summarize(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe summarize`."""
    define(
        parser,
        summarize,
        "Summarize transcripts, answer questions about them or run a prompt on them with a language model.",
        _SUMMARIZE_EPILOG,
    )
    add_selection(parser)
    parser.add_argument("--question", action="append", metavar="TEXT", help="question to answer; may be repeated")
    parser.add_argument("--prompt", metavar="TEXT", help="prompt to run")
    parser.add_argument("--action-items", action="store_true", help="list the action items")
    parser.add_argument(
        "--format", dest="answer_format", metavar="TEXT", help="form of the result, such as 'one sentence'"
    )
    parser.add_argument("--refresh", action="store_true", help="repeat earlier requests (charged again)")
    parser.add_argument(
        "--lost", action="store_true", help="repeat requests with a lost response (may be charged twice)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with text, replies and ids")


def summarize(given: argparse.Namespace) -> int:
    """Print a summary of transcripts, answers to questions, or the result of a prompt."""
    found = _ask(given)
    if given.json:
        print(
            json.dumps(
                {
                    "text": found.text,
                    "replies": [asdict(reply) for reply in found.replies],
                    "transcript_ids": found.transcript_ids,
                    "request_ids": [response.request_id for response in found.responses],
                    "usage": asdict(found.usage),
                }
            )
        )
    else:
        for line in found.text.splitlines():
            print(plain(line))
    return 0


def _ask(given: argparse.Namespace) -> Answers:
    corpus = open_corpus(given.corpus)
    ids = selected_ids(corpus, given)
    if sum(map(bool, (given.question, given.prompt, given.action_items))) > 1:
        raise OptionError(
            "--question, --prompt and --action-items exclude each other; give one of them, or none for a summary"
        )
    if given.answer_format and (given.question or given.prompt):
        raise OptionError(
            "--format is for summaries and --action-items only; describe the format in the question or the prompt"
        )
    refresh: Refresh = given.refresh or ("lost" if given.lost else False)
    if given.question:
        return corpus.ask(given.question, ids, refresh=refresh)
    if given.prompt:
        return corpus.task(given.prompt, ids, refresh=refresh)
    ask = corpus.action_items if given.action_items else corpus.summarize
    return ask(ids, answer_format=given.answer_format, refresh=refresh)


def add_people(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe people`."""
    define(
        parser,
        people,
        "Show the speakers of recordings with their names, people, talk time and turns, after the changes given.",
    )
    add_selection(parser)
    parser.add_argument(
        "--name", action="append", metavar="LABEL=NAME", help="name a speaker of the recordings given by --id"
    )
    parser.add_argument(
        "--person", action="append", metavar="LABEL=PERSON", help="assign a person to a speaker of these recordings"
    )
    parser.add_argument("--by-name", action="store_true", help="assign each name as the person")
    parser.add_argument(
        "--by-metadata", action="append", metavar="LABEL=COLUMN", help="assign the person in a metadata column"
    )
    parser.add_argument("--undo", action="store_true", help="revert the last assignment of people")
    add_format(parser)


def people(given: argparse.Namespace) -> int:
    """Change names and people, and print the table of speakers."""
    corpus = open_corpus(given.corpus)
    ids = selected_ids(corpus, given)
    names, persons = _pairs("--name", given.name), _pairs("--person", given.person)
    if (names or persons) and not given.id:
        raise OptionError("--name and --person need --id, because a label belongs to one recording")
    if given.undo:
        corpus.speakers.undo()
    for recording in given.id if names else []:
        corpus.speakers.set(recording, names)
    if persons:
        rows = [(recording, label, person) for recording in given.id for label, person in persons.items()]
        corpus.speakers.assign(pd.DataFrame(rows, columns=["transcript_id", "speaker", "person"]))
    if given.by_name:
        corpus.speakers.assign(by="name", ids=ids)
    if given.by_metadata:
        corpus.speakers.assign(_pairs("--by-metadata", given.by_metadata), by="metadata", ids=ids)
    write(corpus.speakers.table(ids), given.form, given.rows)
    return 0


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Return the labels and values of an option.

    Raises:
        OptionError: A value is not LABEL=VALUE.
    """
    found = {}
    for text in given or ():
        label, equals, value = text.partition("=")
        if not (label and equals and value):
            raise OptionError(f"{option} must be LABEL=VALUE, such as A=Ada, got {text!r}")
        found[label] = value
    return found
