"""`voxframe export`, `subtitles` and `snapshot`: write a corpus to files and read-only versions."""

from __future__ import annotations

import argparse
import json
import sys
import warnings

import pandas as pd

from voxframe._text import quantity
from voxframe.cli.console import (
    add_corpus,
    add_selection,
    define,
    open_corpus,
    plain,
    selected_ids,
    summary,
    whole,
    write,
)
from voxframe.corpus.store import EXPORTS
from voxframe.errors import ExportWarning
from voxframe.export.table_writer import TABLE_FORMATS
from voxframe.export.text_formats import srt, vtt
from voxframe.export.writers import FORMATS, SPEECH_FORMATS, format_of
from voxframe.schema import TRANSCRIPT_TABLES

_EXPORT_EPILOG = f"""\
formats:
  {" ".join(TABLE_FORMATS)}
      a dataset: one file or folder per table
  {" ".join(SPEECH_FORMATS)}
      one file per transcript; a target such as calls.rttm: one file for all
Without --format, the extension of the target is the format: words.csv is csv.
A directory also gets a data card (README.md) and checksums (SHA256SUMS); in parquet, their names begin with "_".
In CSV an empty field is a null and "" is an empty text. Values that the format cannot represent are counted.

examples:
  voxframe export calls-set --corpus calls --partition-by customer --metadata day
  voxframe export captions --format vtt --pii mask
  voxframe export words.csv --table words
  voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

The target appears only after everything is written.
exit status: 0 success; 1 the target exists or cannot be written; 2 invalid arguments
"""


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe export`."""
    define(parser, export, "Write datasets, captions or annotations that other tools read.", _EXPORT_EPILOG)
    parser.add_argument("target", metavar="TARGET", help="directory, file, or URL such as s3://bucket/calls")
    add_selection(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help="one of the formats below (default: by the target's extension, else parquet)",
    )
    parser.add_argument(
        "--table",
        action="append",
        choices=[*TRANSCRIPT_TABLES, *EXPORTS],
        metavar="NAME",
        help="export only this table; may be repeated",
    )
    parser.add_argument(
        "--partition-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="one folder per value in each table that has the column; may be repeated",
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
    parser.add_argument("--license", metavar="NAME", help="licence of the data, for the data card")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing file, or an exported directory without edited files",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object with the files and the values not represented"
    )


def export(given: argparse.Namespace) -> int:
    """Write a corpus to files. Print the target and the number of values that the format could not represent."""
    form = format_of(given.target, given.format)
    corpus = open_corpus(given.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # printed below
        written = corpus.export(
            given.target,
            form,
            tables=given.table,
            ids=selected_ids(corpus, given),
            partition_by=given.partition_by,
            metadata=given.metadata,
            pii=given.pii,
            pii_types=given.pii_type,
            escape_formulas=given.escape_formulas,
            license=given.license,
            overwrite=given.overwrite,
        )
    if given.json:
        found = {"files": sorted(written), "losses": written.losses, "omitted": written.omitted}
        print(json.dumps({"target": given.target, "format": form} | found, ensure_ascii=False))
        return 0
    summary(f"{plain(given.target)}: {quantity(len(written), 'file')}")
    for reason, count in written.losses.items():
        sys.stderr.write(f"voxframe export: {count} {reason}\n")
    return 0


_SUBTITLES_EPILOG = """\
examples:
  voxframe subtitles interview --corpus calls > interview.srt
  voxframe subtitles interview --format vtt --chars 32 --no-speakers
  voxframe export captions --format srt                captions of every transcript of a corpus

exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
"""


def add_subtitles(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe subtitles`."""
    define(
        parser,
        subtitles,
        "Print the captions of a transcript, with speaker names and corrected text.",
        _SUBTITLES_EPILOG,
    )
    parser.add_argument("id", metavar="ID", help="id of the transcript, or its recording")
    add_corpus(parser)
    parser.add_argument("--format", choices=("srt", "vtt"), default="srt", help="SRT or WebVTT (default: srt)")
    parser.add_argument("--chars", type=whole, metavar="N", help="maximum number of characters of a caption")
    parser.add_argument("--no-speakers", action="store_true", help="leave out the names of the speakers")
    parser.add_argument(
        "--remote",
        action="store_true",
        help="print the captions of the service for the transcript with this id, also if it is in no corpus",
    )


def subtitles(given: argparse.Namespace) -> int:
    """Print captions."""
    if given.remote:
        from voxframe.client import connect

        with connect() as client:
            text = client.subtitles(given.id, given.format, chars_per_caption=given.chars)
    else:
        words = open_corpus(given.corpus).table("words", given.id)
        chars = {} if given.chars is None else {"chars": given.chars}
        text = {"srt": srt, "vtt": vtt}[given.format](words, speakers=not given.no_speakers, **chars)
    if sys.stdout.isatty():  # data must not control a terminal
        text = "\n".join(map(plain, text.splitlines())) + "\n"
    sys.stdout.write(text)
    return 0


_SNAPSHOT_EPILOG = """\
examples:
  voxframe snapshot --corpus calls
  voxframe snapshot --corpus calls --list
  voxframe snapshot --corpus calls --verify

exit status: 0 success; 1 the snapshot cannot be written, or a version is damaged; 2 invalid arguments
"""


def add_snapshot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe snapshot`."""
    define(
        parser,
        snapshot,
        "Write the current state of a corpus as a new read-only version: sorted and compact, with a "
        "manifest of hashes.",
        _SNAPSHOT_EPILOG,
    )
    add_corpus(parser)
    parser.add_argument("--list", action="store_true", help="list the versions instead of creating one")
    parser.add_argument(
        "--verify",
        type=whole,
        nargs="?",
        default=False,
        metavar="N",
        help="verify a version (default: the latest) instead of creating one",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the manifest as a JSON object; with --list, one per line"
    )


def snapshot(given: argparse.Namespace) -> int:
    """Create, list or verify snapshots, and print their contents."""
    corpus = open_corpus(given.corpus)
    if given.list:
        rows = [corpus.snapshots.open(version).manifest for version in corpus.snapshots.versions()]
        table = pd.DataFrame(rows, columns=["version", "created", "schema_version", "transcripts"])
        write(table, "json" if given.json else "text", None)
        return 0
    verify = given.verify is not False
    found = corpus.snapshots.open(given.verify) if verify else corpus.snapshots.create()  # None: the latest
    if verify:
        found.verify()
    if given.json:
        print(json.dumps({"path": str(found.path), **found.manifest}))
    else:
        size = sum(table["bytes"] for table in found.manifest["tables"].values()) / 1e6
        done = "is unchanged" if verify else "created"
        count = quantity(found.manifest["transcripts"], "transcript")
        show = print if verify else summary
        show(f"version {found.version} {done}: {count}, {size:.1f} MB\nin {plain(found.path)}")
    return 0
