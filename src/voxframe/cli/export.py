"""`voxframe export`: a corpus to files for others."""

from __future__ import annotations

import argparse
import json

from voxframe.cli.search import chosen_ids, open_corpus
from voxframe.cli.terminal import plain
from voxframe.errors import OptionError


def export(given: argparse.Namespace) -> int:
    """Write a corpus to files, and say what was written.

    Args:
        given: Arguments of the command.

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place, or a transcript or table is not in it.
        OptionError: An argument is wrong.
        ExportError: The target is there already or cannot be written.
    """
    if given.pii_type and not given.pii:
        raise OptionError("--pii-type says what is personal; --pii mask or --pii drop says what becomes of it")
    corpus = open_corpus(given)
    written = corpus.export(
        given.target,
        given.format,
        tables=given.table,
        ids=chosen_ids(corpus, given),
        partition_by=given.partition_by,
        metadata=given.metadata,
        pii=given.pii,
        pii_types=given.pii_type,
        overwrite=given.overwrite,
    )
    if given.json:
        print(json.dumps({"target": given.target, "format": given.format, "files": sorted(written)}))
    else:
        print(f"{plain(given.target)}: {len(written)} file{'' if len(written) == 1 else 's'}")
    return 0
