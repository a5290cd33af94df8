"""`voxframe submit`: many recordings to the service, each only once."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from voxframe.cli.terminal import plain
from voxframe.cli.transcribe import parse_option
from voxframe.corpus import Corpus
from voxframe.corpus.outcome import Outcome
from voxframe.corpus.recordings import Recordings
from voxframe.corpus.submit import CONCURRENCY
from voxframe.errors import OptionError


def submit(given: argparse.Namespace) -> int:
    """Send recordings, or what an earlier run left, or say what would be sent.

    Args:
        given: Arguments as `voxframe.cli.batch` describes them.

    Returns:
        Exit status: 1 where something failed or is uncertain.

    Raises:
        OptionError: An option or a source is wrong; nothing was sent.
        AudioError: A recording cannot be read; nothing was sent.
        ServiceError: The service cannot be used at the moment.
    """
    sources = _sources(given.sources, given.table)
    corpus = Corpus(given.corpus)
    options: Any = {"speaker_labels": None if given.no_speakers else True, "speakers_expected": given.speakers}
    options |= dict(parse_option(text) for text in given.option)
    if given.plan:
        if sources is None:
            raise OptionError("--plan needs recordings: sources, or --table")
        plan = corpus.plan(sources, **options)
        names = ("new", "changed", "unsent", "known", "failed", "uncertain", "duplicates", "audio_s", "unmeasured")
        print(json.dumps({name: getattr(plan, name) for name in names}) if given.json else plan)
        return 0
    concurrency = CONCURRENCY if given.concurrency is None else given.concurrency
    done = Outcome()
    if sources is not None:
        done = corpus.submit(sources, concurrency=concurrency, **options)
    if sources is None or given.failed or given.uncertain:
        again = corpus.retry(failed=given.failed, uncertain=given.uncertain, concurrency=concurrency)
        done = again.after(done)
    return report(done, corpus.path, as_json=given.json)


def report(done: Outcome, path: Path, *, as_json: bool) -> int:
    """Print what came of it; exit status 1 where something failed, is uncertain or was left unsent."""
    print(json.dumps(asdict(done)) if as_json else f"{done}\nin {plain(path)}")
    return 0 if done.good else 1


def _sources(given: list[str], table: Path | None) -> Recordings | None:
    if table is None:
        return given or None
    if given:
        raise OptionError("give recordings as arguments or in --table, not both")
    try:
        return pd.read_parquet(table) if table.suffix == ".parquet" else pd.read_csv(table)
    except (OSError, ValueError) as error:  # pandas's own errors about what is in a file are ValueErrors
        raise OptionError(
            f"--table {str(table)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
