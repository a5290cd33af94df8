"""`voxframe snapshot`: sealed versions of a corpus."""

from __future__ import annotations

import argparse
import json

import pandas as pd

from voxframe.cli.search import open_corpus
from voxframe.cli.tables import write
from voxframe.cli.terminal import plain


def snapshot(given: argparse.Namespace) -> int:
    """Seal a new version, or list or check those there are, and say what they hold.

    Args:
        given: Arguments of the command.

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place, it cannot be written, or a version is damaged.
    """
    corpus = open_corpus(given)
    if given.list:
        rows = [corpus.load(version).manifest for version in corpus.versions()]
        table = pd.DataFrame(rows, columns=["version", "created", "schema_version", "transcripts"])
        write(table, "json" if given.json else "text", None)
        return 0
    found = corpus.load(given.verify or None) if given.verify is not None else corpus.snapshot()
    if given.verify is not None:
        found.verify()
    if given.json:
        print(json.dumps({"path": str(found.path), **found.manifest}))
    else:
        size = sum(table["bytes"] for table in found.manifest["tables"].values()) / 1e6
        done = "as it was sealed" if given.verify is not None else "sealed"
        print(f"version {found.version} {done}: {found.manifest['transcripts']} transcripts, {size:.1f} MB")
        print(f"in {plain(found.path)}")
    return 0
