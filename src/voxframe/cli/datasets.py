"""`voxframe export`, `subtitles` and `snapshot`: write a corpus to files and read-only versions."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Annotated, Any, Literal

import pandas as pd

from voxframe._text import quantity
from voxframe.cli.console import CorpusOption, Output, Selected, open_corpus, plain, summary
from voxframe.corpus.store import EXPORTS
from voxframe.errors import ExportWarning
from voxframe.export.writers import FORMATS, format_of
from voxframe.formats import SPEECH_FORMATS, TABLE_FORMATS
from voxframe.formats.text_writers import srt, vtt
from voxframe.schema import TRANSCRIPT_TABLES

_TABLES = (*TRANSCRIPT_TABLES, *EXPORTS)


def export(
    target: str,
    *,
    selected: Selected,
    format_: Annotated[str | None, tuple(FORMATS)] = None,
    table: list[Annotated[str, _TABLES]] | None = None,
    partition_by: list[str] | None = None,
    metadata: list[str] | None = None,
    pii: Literal["mask", "drop"] | None = None,
    pii_type: list[str] | None = None,
    escape_formulas: bool = False,
    license_: str | None = None,
    overwrite: bool = False,
    json_: bool = False,
) -> None:
    """Write datasets, captions or annotations that other tools read.

    Args:
        target (TARGET): Directory, file, or URL such as s3://bucket/calls.
        format_ (FORMAT): One of the formats below (default: by the target's extension, else parquet).
        table (NAME): Export only this table.
        partition_by (COLUMN): One folder per value in each table that has the column.
        metadata (COLUMN): Add this metadata column to every table.
        pii: Personal data found by entity detection: mask it, as [PERSON_NAME], or drop it.
        pii_type (TYPE): Mask or drop only this type.
        escape_formulas: Put an apostrophe before texts that a spreadsheet would run as a formula; CSV only.
        license_ (NAME): Licence of the data, for the data card.
        overwrite: Replace an existing file, or an exported directory without edited files.
        json_: Print one JSON object with the files and the values not represented.

    Formats:
      {TABLE_FORMATS}
          a dataset: one file or folder per table
      {SPEECH_FORMATS}
          one file per transcript; a target such as calls.rttm: one file for all
    Without --format, the extension of the target is the format: words.csv is csv.
    A directory also gets a data card (README.md) and checksums (SHA256SUMS); in parquet, their names begin with "_".
    In CSV an empty field is a null and "" is an empty text. Values that the format cannot represent are counted.

    Examples:
      voxframe export calls-set --corpus calls --partition-by customer --metadata day
      voxframe export captions --format vtt --pii mask
      voxframe export words.csv --table words
      voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

    The target appears only after everything is written.
    Exit status: 0 success; 1 the target exists or cannot be written; 2 invalid arguments
    """
    form = format_of(target, format_)
    corpus = open_corpus(selected.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # printed below
        written = corpus.export(
            target,
            form,
            tables=table,
            ids=selected.ids(corpus),
            partition_by=partition_by or (),
            metadata=metadata or (),
            pii=pii,
            pii_types=pii_type,
            escape_formulas=escape_formulas,
            license=license_,
            overwrite=overwrite,
        )
    if json_:
        fields = {"files": sorted(written), "losses": written.losses, "omitted": written.omitted}
        print(json.dumps({"target": target, "format": form} | fields, ensure_ascii=False))
        return
    summary(f"{plain(target)}: {quantity(len(written), 'file')}")
    for reason, count in written.losses.items():
        sys.stderr.write(f"voxframe export: {count} {reason}\n")


export.__doc__ = (export.__doc__ or "").format(
    TABLE_FORMATS=" ".join(TABLE_FORMATS), SPEECH_FORMATS=" ".join(SPEECH_FORMATS)
)


def subtitles(
    id_: str,
    *,
    corpus: CorpusOption = None,
    format_: Literal["srt", "vtt"] = "srt",
    chars: int | None = None,
    no_speakers: bool = False,
    remote: bool = False,
) -> None:
    """Print the captions of a transcript, with speaker names and corrected text.

    Args:
        id_ (ID): Id of the transcript, or its recording.
        format_: SRT or WebVTT.
        chars (N): Maximum number of characters of a caption.
        no_speakers: Leave out the names of the speakers.
        remote: Print the captions of the service for the transcript with this id, also if it is in no corpus.

    Examples:
      voxframe subtitles interview --corpus calls > interview.srt
      voxframe subtitles interview --format vtt --chars 32 --no-speakers
      voxframe export captions --format srt                captions of every transcript of a corpus

    Exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
    """
    if remote:
        from voxframe.client import connect

        with connect() as client:
            text = client.subtitles(id_, format_, chars_per_caption=chars)
    else:
        words = open_corpus(corpus).table("words", id_)
        limits: dict[str, Any] = {} if chars is None else {"chars": chars}
        text = {"srt": srt, "vtt": vtt}[format_](words, speakers=not no_speakers, **limits)
    if sys.stdout.isatty():  # data must not control a terminal
        text = "\n".join(map(plain, text.splitlines())) + "\n"
    sys.stdout.write(text)


def snapshot(
    *, corpus: CorpusOption = None, list_: bool = False, verify: int | bool = False, json_: bool = False
) -> None:
    """Write the current state of a corpus as a new read-only version: sorted and compact, with a manifest of hashes.

    Args:
        list_: List the versions instead of creating one.
        verify (N): Verify a version (default: the latest) instead of creating one.
        json_: Print the manifest as a JSON object; with --list, one per line.

    Examples:
      voxframe snapshot --corpus calls
      voxframe snapshot --corpus calls --list
      voxframe snapshot --corpus calls --verify

    Exit status: 0 success; 1 the snapshot cannot be written, or a version is damaged; 2 invalid arguments
    """
    snapshots = open_corpus(corpus).snapshots
    if list_:
        rows = [snapshots.open(version).manifest for version in snapshots.versions()]
        table = pd.DataFrame(rows, columns=["version", "created", "schema_version", "transcripts"])
        Output(rows=len(rows), json=json_).write(table)
        return
    is_new = verify is False
    version = snapshots.create() if is_new else snapshots.open(None if verify is True else verify)
    if not is_new:
        version.verify()
    if json_:
        print(json.dumps({"path": str(version.path), **version.manifest}))
    else:
        size = sum(table["bytes"] for table in version.manifest["tables"].values()) / 1e6
        count = quantity(version.manifest["transcripts"], "transcript")
        done = "created" if is_new else "is unchanged"
        show = summary if is_new else print
        show(f"version {version.version} {done}: {count}, {size:.1f} MB\nin {plain(version.path)}")
