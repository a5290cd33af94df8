"""`voxframe options`: list the options of a transcription job."""

from __future__ import annotations

import argparse
import json
from typing import Any

from voxframe.dictionary import describe


def add_options(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe options`."""
    parser = commands.add_parser(
        "options",
        help=help_line,
        description="List the options of a transcription job, as `--option NAME=VALUE` takes them.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per option")
    parser.set_defaults(run=_options)


def _options(given: argparse.Namespace) -> int:
    found = describe("options")
    if given.json:
        for row in found.rows:
            print(json.dumps(dict(zip(found.heads, row, strict=True))))
    else:
        print(found)
    return 0
