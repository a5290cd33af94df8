"""`voxframe export`: write a corpus to files that other tools read."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

from voxframe.cli.arguments import add_selection, open_corpus, selected_ids
from voxframe.cli.output import plain
from voxframe.errors import ExportWarning, OptionError

_EPILOG = """\
formats:
  parquet csv jsonl huggingface                        a dataset: one file or folder per table
  srt vtt textgrid eaf audacity rttm ctm stm           one file per transcript; a target such as calls.rttm:
                                                       one file for all
In CSV an empty field is a null and "" is an empty text. Values that the format cannot represent are counted.

examples:
  voxframe export calls-set --corpus calls --partition-by customer --metadata day
  voxframe export captions --format vtt --pii mask
  voxframe export words.csv --format csv --table words
  voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

The target appears only after everything is written.
exit status: 0 success; 1 the target exists or cannot be written; 2 invalid arguments
"""


def add_export(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe export`."""
    parser = commands.add_parser(
        "export",
        help=help_line,
        description="Write datasets, captions or annotations that other tools read.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="directory, file, or URL such as s3://bucket/calls")
    add_selection(parser)
    parser.add_argument(
        "--format", default="parquet", metavar="FORMAT", help="one of the formats below (default: parquet)"
    )
    parser.add_argument("--table", action="append", metavar="NAME", help="export only this table; may be repeated")
    parser.add_argument(
        "--partition-by", action="append", default=[], metavar="COLUMN", help="one folder per value; may be repeated"
    )
    parser.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="COLUMN",
        help="add this metadata column to every table; may be repeated",
    )
    parser.add_argument(
        "--pii",
        choices=("mask", "drop"),
        help="personal data found by entity detection: mask it, as [PERSON_NAME], or drop it",
    )
    parser.add_argument(
        "--pii-type", action="append", metavar="TYPE", help="mask or drop only this type; may be repeated"
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put an apostrophe before texts that a spreadsheet would run as a formula; CSV only",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing target")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object with the files and the values not represented"
    )
    parser.set_defaults(run=export)


def export(given: argparse.Namespace) -> int:
    """Write a corpus to files. Print the target and the number of values that the format could not represent.

    Raises:
        CorpusError: There is no corpus in the directory, or a transcript or table is not in it.
        OptionError: An argument is invalid.
        ExportError: The target exists or cannot be written.
    """
    if given.pii_type and not given.pii:
        raise OptionError("--pii-type requires --pii mask or --pii drop")
    corpus = open_corpus(given.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # printed below
        written = corpus.export(
            given.target,
            given.format,
            tables=given.table,
            ids=selected_ids(corpus, given),
            partition_by=given.partition_by,
            metadata=given.metadata,
            pii=given.pii,
            pii_types=given.pii_type,
            escape_formulas=given.escape_formulas,
            overwrite=given.overwrite,
        )
    if given.json:
        found = {"files": sorted(written), "losses": written.losses, "omitted": written.omitted}
        print(json.dumps({"target": given.target, "format": given.format} | found, ensure_ascii=False))
        return 0
    print(f"{plain(given.target)}: {len(written)} file{'' if len(written) == 1 else 's'}")
    for reason, count in written.losses.items():
        sys.stderr.write(f"voxframe export: {count} {reason}\n")
    return 0
