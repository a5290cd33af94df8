"""`voxframe snapshot`: create, list or verify read-only versions of a corpus."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pandas as pd

from voxframe.cli.arguments import add_corpus, open_corpus
from voxframe.cli.output import plain, write

_EPILOG = """\
examples:
  voxframe snapshot --corpus calls
  voxframe snapshot --corpus calls --list
  voxframe snapshot --corpus calls --verify

exit status: 0 success; 1 the snapshot cannot be written, or a version is damaged; 2 invalid arguments
"""


def add_snapshot(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe snapshot`."""
    parser = commands.add_parser(
        "snapshot",
        help=help_line,
        description="Write the current state of a corpus as a new read-only version: sorted and compact, with a "
        "manifest of hashes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_corpus(parser)
    parser.add_argument("--list", action="store_true", help="list the versions instead of creating one")
    parser.add_argument(
        "--verify",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="verify a version (default: the latest) instead of creating one",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the manifest as a JSON object; with --list, one per line"
    )
    parser.set_defaults(run=snapshot)


def snapshot(given: argparse.Namespace) -> int:
    """Create, list or verify snapshots, and print their contents.

    Raises:
        CorpusError: There is no corpus in the directory, it cannot be written, or a version is damaged.
    """
    corpus = open_corpus(given.corpus)
    if given.list:
        rows = [corpus.snapshots.open(version).manifest for version in corpus.snapshots.versions()]
        table = pd.DataFrame(rows, columns=["version", "created", "schema_version", "transcripts"])
        write(table, "json" if given.json else "text", None)
        return 0
    found = corpus.snapshots.open(given.verify or None) if given.verify is not None else corpus.snapshots.create()
    if given.verify is not None:
        found.verify()
    if given.json:
        print(json.dumps({"path": str(found.path), **found.manifest}))
    else:
        size = sum(table["bytes"] for table in found.manifest["tables"].values()) / 1e6
        done = "is unchanged" if given.verify is not None else "created"
        print(f"version {found.version} {done}: {found.manifest['transcripts']} transcripts, {size:.1f} MB")
        print(f"in {plain(found.path)}")
    return 0
