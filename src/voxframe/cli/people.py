"""`voxframe people`: name the speakers of recordings, and state which people they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pandas as pd

from voxframe.cli.console import add_command, add_format, add_selection, open_corpus, selected_ids, write
from voxframe.errors import OptionError


def add_people(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe people`."""
    parser = add_command(
        commands,
        "people",
        help_line,
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
