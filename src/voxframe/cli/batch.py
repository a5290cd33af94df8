"""Arguments of `voxframe submit`, `sync` and `jobs`; what they do is imported when it is asked for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from voxframe.cli.arguments import add_corpus, add_rows, add_speakers

_SUBMIT_EPILOG = """\
examples:
  voxframe submit 'recordings/**/*.mp3' --corpus calls --plan
  voxframe submit recordings --corpus calls -o auto_highlights=true
  voxframe submit --table calls.csv --corpus calls      columns beside audio, path or url become metadata
  voxframe submit --corpus calls                        go on with what was not sent
  voxframe submit --failed --corpus calls               send again what failed

-o takes any option of a job, its value as JSON or text; `voxframe.options.TranscriptOptions` lists them.
exit status: 0 all sent; 1 something failed, is uncertain or could not be sent; 2 wrong arguments; 130 Ctrl-C
"""


def add_arguments(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the three commands."""
    submit = commands.add_parser(
        "submit",
        help="send many recordings, each only once",
        description="Send recordings to be transcribed, without waiting. What was sent before with the same options\n"
        "is not sent again, whatever the file is called. It can be stopped anywhere and run again.",
        epilog=_SUBMIT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    submit.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="files, folders, quoted patterns, http(s) or s3:// addresses"
    )
    add_corpus(submit)
    submit.add_argument("--table", type=Path, metavar="FILE", help="CSV or Parquet with a column of sources")
    submit.add_argument("--plan", action="store_true", help="say what would be sent, and send nothing")
    submit.add_argument("--failed", action="store_true", help="send again what failed")
    submit.add_argument(
        "--uncertain",
        action="store_true",
        help="send again what may be at the service and was not found there; it may be charged twice",
    )
    add_speakers(submit)
    submit.add_argument("--no-speakers", action="store_true", help="do not tell speakers apart")
    submit.add_argument(
        "-o", "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the jobs; may be repeated"
    )
    submit.add_argument("--concurrency", type=int, metavar="N", help="submissions under way at once (default: 4)")
    _add_json(submit, "one JSON object with the counts")
    submit.set_defaults(run=_submit)

    sync = commands.add_parser(
        "sync",
        help="fetch what has finished at the service",
        description="Bring finished transcripts into the corpus, and find out what became of submissions whose answer "
        "was lost. It can be stopped anywhere and run again.",
        epilog="exit status: 0 done; 1 a job failed or is uncertain; 130 Ctrl-C",
    )
    add_corpus(sync)
    sync.add_argument("--wait", action="store_true", help="go on until nothing is left at the service")
    sync.add_argument("--adopt", action="store_true", help="bring in everything else the service has, too")
    _add_json(sync, "one JSON object with the counts")
    sync.set_defaults(run=_sync)

    jobs = commands.add_parser(
        "jobs",
        help="what was submitted, and what became of it",
        description="Show the submissions of a corpus. Asks no service.",
    )
    add_corpus(jobs)
    jobs.add_argument(
        "--state",
        action="append",
        choices=("planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"),
        help="only jobs in this state; may be repeated",
    )
    add_rows(jobs)
    jobs.add_argument("--csv", dest="form", action="store_const", const="csv", help="every column as CSV")
    jobs.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON object a line")
    jobs.set_defaults(run=_jobs, form="text")


def _add_json(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _submit(given: argparse.Namespace) -> int:
    from voxframe.cli.submit import submit

    return submit(given)


def _sync(given: argparse.Namespace) -> int:
    from voxframe.cli.sync import sync

    return sync(given.corpus, wait=given.wait, adopt=given.adopt, as_json=given.json)


def _jobs(given: argparse.Namespace) -> int:
    from voxframe.cli.jobs import jobs

    return jobs(given.corpus, given.state, given.form, given.rows)
