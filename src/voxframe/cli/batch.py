"""`voxframe submit`, `sync` and `jobs`: submit many recordings, each only once, and fetch their transcripts."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from voxframe.cli.arguments import add_corpus, add_format, add_job_options, job_options
from voxframe.cli.output import plain, write
from voxframe.corpus import Corpus
from voxframe.corpus.batch.inputs import Recordings
from voxframe.corpus.batch.submit import CONCURRENCY, BatchResult
from voxframe.errors import CorpusError, OptionError
from voxframe.schema import JOBS

#: Columns of jobs shown as text; those of the metadata follow.
_SHOWN = ("transcript_id", "source", "state", "attempts", "audio_duration_s", "error")

_SUBMIT_EPILOG = """\
examples:
  voxframe submit 'recordings/**/*.mp3' --corpus calls --plan
  voxframe submit recordings --corpus calls -o auto_highlights=true
  voxframe submit --table calls.csv --corpus calls      columns other than audio, path or url become metadata
  voxframe submit --corpus calls                        submit jobs that were planned but not sent
  voxframe submit --failed --corpus calls               submit failed jobs again

-o sets any option of the jobs to a JSON value or text; `voxframe options` lists the options.
exit status: 0 all sent; 1 a job failed, is uncertain or could not be sent; 2 invalid arguments; 130 Ctrl-C
"""


def add_submit(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe submit`."""
    parser = commands.add_parser(
        "submit",
        help=help_line,
        description="Submit recordings for transcription, without waiting for the results. A recording that was\n"
        "submitted before with the same options is skipped, whatever its file name. You can interrupt the\n"
        "command at any time and run it again.",
        epilog=_SUBMIT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="files, folders, quoted patterns, http(s) or s3:// URLs"
    )
    add_corpus(parser)
    parser.add_argument("--table", type=Path, metavar="FILE", help="CSV or Parquet with a column of sources")
    parser.add_argument("--plan", action="store_true", help="show what would be sent, and send nothing")
    parser.add_argument("--failed", action="store_true", help="submit failed jobs again")
    parser.add_argument(
        "--uncertain",
        action="store_true",
        help="submit uncertain jobs again: the service may have them, and may charge twice",
    )
    add_job_options(parser)
    parser.add_argument(
        "--concurrency", type=int, metavar="N", help="maximum number of concurrent submissions (default: 4)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with the counts")
    parser.set_defaults(run=submit)


def submit(given: argparse.Namespace) -> int:
    """Submit recordings, or the jobs left by an earlier run, or print the plan.

    Returns:
        Exit status: 1 if a job failed, is uncertain or could not be sent.

    Raises:
        OptionError: An option or a source is invalid; nothing was sent.
        AudioError: A recording cannot be read; nothing was sent.
        ServiceError: The service is unavailable.
    """
    sources = _sources(given.sources, given.table)
    corpus = Corpus(given.corpus)
    options = job_options(given)
    if given.plan:
        if sources is None:
            raise OptionError("--plan requires recordings; name files, folders, patterns or URLs, or give --table")
        plan = corpus.plan(sources, **options)
        names = ("new", "new_options", "pending", "known", "failed", "uncertain", "duplicates", "audio_s", "unmeasured")
        print(json.dumps({name: getattr(plan, name) for name in names}) if given.json else plan)
        return 0
    concurrency = CONCURRENCY if given.concurrency is None else given.concurrency
    done = BatchResult()
    if sources is not None:
        done = corpus.submit(sources, concurrency=concurrency, **options)
    if sources is None or given.failed or given.uncertain:
        again = corpus.retry(failed=given.failed, uncertain=given.uncertain, concurrency=concurrency)
        done = again.after(done)
    return _report(done, corpus.path, as_json=given.json)


def add_sync(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe sync`."""
    parser = commands.add_parser(
        "sync",
        help=help_line,
        description="Fetch finished transcripts into the corpus, and look up submissions with a lost response at the "
        "service. You can interrupt the command at any time and run it again.",
        epilog="exit status: 0 success; 1 a job failed or is uncertain; 130 Ctrl-C",
    )
    add_corpus(parser)
    parser.add_argument("--wait", action="store_true", help="wait until every submitted job has finished")
    parser.add_argument("--adopt", action="store_true", help="also fetch every other transcript of this API key")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the counts")
    parser.set_defaults(run=sync)


def sync(given: argparse.Namespace) -> int:
    """Fetch finished transcripts and print the counts of what is left.

    Returns:
        Exit status: 1 if a job failed or is uncertain.

    Raises:
        CorpusError: The directory does not exist, and --adopt was not given.
        ServiceError: The service is unavailable.
    """
    corpus = Corpus(given.corpus)
    if given.corpus is not None and not given.adopt and not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")
    found = corpus.adopt() if given.adopt else None
    done = corpus.sync(wait=given.wait)
    return _report(done.after(found) if found is not None else done, corpus.path, as_json=given.json)


def add_jobs(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe jobs`."""
    parser = commands.add_parser(
        "jobs",
        help=help_line,
        description="Show the jobs of a corpus and their states, without a request to the service.",
    )
    add_corpus(parser)
    parser.add_argument(
        "--state",
        action="append",
        choices=("planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"),
        help="show only jobs in this state; may be repeated",
    )
    add_format(parser)
    parser.set_defaults(run=jobs)


def jobs(given: argparse.Namespace) -> int:
    """Print the jobs of a corpus.

    Raises:
        CorpusError: There is no corpus in the directory.
    """
    corpus = Corpus(given.corpus)
    if not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")
    df = corpus.jobs()
    if given.state is not None:
        df = df[df["state"].isin(given.state)]
    if given.form == "text":
        df = df[[name for name in df.columns if name in _SHOWN or name not in JOBS.arrow.names]]
        df = df[[*_SHOWN, *(name for name in df.columns if name not in _SHOWN)]]
    write(df, given.form, given.rows)
    return 0


def _report(done: BatchResult, path: Path, *, as_json: bool) -> int:
    """Print the result. Return the exit status: 1 if a job failed, is uncertain or is still pending."""
    print(json.dumps(asdict(done)) if as_json else f"{done}\nin {plain(path)}")
    return 0 if done.ok else 1


def _sources(given: list[str], table: Path | None) -> Recordings | None:
    if table is None:
        return given or None
    if given:
        raise OptionError("recordings were given as arguments and in --table; give only one of the two")
    try:
        return pd.read_parquet(table) if table.suffix == ".parquet" else pd.read_csv(table)
    except (OSError, ValueError) as error:  # pandas raises ValueErrors for invalid files
        raise OptionError(
            f"--table {str(table)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
