"""`voxframe transcribe`, `submit`, `sync`, `jobs`, `options`, `add` and `metadata`: what goes into a corpus."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from voxframe._text import clock
from voxframe.cli.console import (
    add_corpus,
    add_format,
    add_job_options,
    define,
    in_command_terms,
    job_options,
    note,
    open_corpus,
    plain,
    shorten,
    summary,
    whole,
    write,
)
from voxframe.client import connect
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address, is_remote
from voxframe.corpus.batch.media import SOURCE_COLUMNS, Recordings
from voxframe.corpus.batch.submit import CONCURRENCY, BatchResult
from voxframe.dictionary import describe, describe_option
from voxframe.errors import AudioError, AudioNotFoundError, CorpusError, OptionError
from voxframe.loaders import load_paragraphs, load_sentences, load_transcripts
from voxframe.options import check
from voxframe.schema import JOBS

_TYPES = "wav, mp3, m4a, flac, ogg, mp4 or most others"


def add_transcribe(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe transcribe`."""
    define(
        parser,
        transcribe,
        "Transcribe files or URLs and store the transcripts in a corpus. A recording that was transcribed "
        "with the same options before is not sent again. Uses the hosted service at VOXFRAME_BASE_URL, if it is set, "
        "otherwise the embedded server.",
        "-o sets any option of the jobs to a JSON value or text: -o auto_highlights=true "
        "-o word_boost='[\"voxframe\"]' -o language_code=en_uk. `voxframe options` lists them.",
    )
    parser.add_argument("audio", nargs="+", metavar="AUDIO", help="audio or video files, or http(s) URLs")
    add_corpus(parser)
    add_job_options(parser)
    parser.add_argument(
        "--force", action="store_true", help="send recordings again (a hosted service charges for them again)"
    )


def transcribe(given: argparse.Namespace) -> int:
    """Transcribe recordings into a corpus, and print the result of each.

    Returns:
        Exit status: 1 if a recording failed.
    """
    options = job_options(given)
    check(**options)
    for source in given.audio:
        if is_remote(source):
            raise AudioError(
                f"{source!r} is neither a file nor an http(s) URL; `voxframe submit` takes URLs such as s3://, too"
            )
        if not is_address(source):
            check_audio(Path(source))
    corpus = Corpus(given.corpus)
    client = connect()
    failed = 0
    for source in given.audio:
        note(f"{plain(source)} ...")
        transcript_id = corpus.transcribe(source, client=client, force=given.force, **options)
        load_sentences(transcript_id, client=client, corpus=corpus)
        load_paragraphs(transcript_id, client=client, corpus=corpus)
        row = load_transcripts(transcript_id, corpus=corpus).iloc[0]
        name = shorten(plain(row["recording"]), 36)
        if row["status"] == "completed":
            text = row["text"] if isinstance(row["text"], str) else ""
            print(f"{name}  {clock(row['audio_duration_s'])}  {shorten(plain(text), 80)}")
        else:
            failed += 1
            print(f"{name}  failed: {plain(row['error'])}")
    note(f"stored in {corpus.path}")
    return 1 if failed else 0


def check_audio(path: Path) -> None:
    """Check that a file is a recording before anything is sent, so that a mistake costs no time or money.

    The content is checked with the decoder of the embedded server. If it is not installed, the service checks the
    content.

    Args:
        path: The file.

    Raises:
        AudioError: The file does not exist, or holds no audio.
    """
    if path.is_dir():
        raise AudioError(f"{str(path)!r} is a directory; give one of its files")
    if not path.exists():
        raise AudioNotFoundError(f"there is no file {str(path)!r}; check its path")
    if not path.is_file():
        raise AudioError(f"{str(path)!r} is a pipe or a device; save the recording to a file first")
    if path.stat().st_size == 0:
        raise AudioError(f"{str(path)!r} is empty; give a file with audio")
    if find_spec("av") is None:
        return
    from voxframe_engine.errors import JobFailed
    from voxframe_engine.speech.audio import Audio

    try:
        next(Audio(path).blocks(), None)  # the first seconds are enough
    except JobFailed as e:
        raise AudioError(f"{str(path)!r} cannot be transcribed: {e} Give {_TYPES}, at least 160 ms long") from None


#: Columns of jobs shown as text; those of the metadata follow.
_SHOWN = ("recording", "state", "attempts", "audio_duration_s", "source", "error", "id")

_SUBMIT_EPILOG = """\
examples:
  voxframe submit 'recordings/**/*.mp3' --corpus calls --plan
  voxframe submit recordings --corpus calls -o auto_highlights=true
  voxframe submit --sources calls.csv --corpus calls    columns other than audio, path or url become metadata
  voxframe submit --corpus calls                        submit jobs that were planned but not sent
  voxframe submit --failed --corpus calls               submit failed jobs again

-o sets any option of the jobs to a JSON value or text; `voxframe options` lists the options.
exit status: 0 all sent; 1 a job failed, is uncertain or could not be sent; 2 invalid arguments; 130 Ctrl-C
"""


def add_submit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe submit`."""
    define(
        parser,
        submit,
        "Submit recordings for transcription, without waiting for the results. A recording that was submitted before "
        "with the same options is skipped, whatever its file name. You can interrupt the command at any time and run "
        "it again.",
        _SUBMIT_EPILOG,
    )
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="files, folders, quoted patterns, http(s) or s3:// URLs"
    )
    add_corpus(parser)
    parser.add_argument(
        "--sources", dest="listed", type=Path, metavar="FILE", help="CSV or Parquet file that lists recordings"
    )
    parser.add_argument("--plan", action="store_true", help="show what would be sent, and send nothing")
    parser.add_argument("--failed", action="store_true", help="submit failed jobs again")
    parser.add_argument(
        "--uncertain",
        action="store_true",
        help="submit uncertain jobs again: the service may have them, and may charge twice",
    )
    add_job_options(parser)
    parser.add_argument(
        "--concurrency", type=whole, metavar="N", help="maximum number of concurrent submissions (default: 4)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with the counts")


def submit(given: argparse.Namespace) -> int:
    """Submit recordings, or the jobs left by an earlier run, or print the plan.

    Returns:
        Exit status: 1 if a job failed, is uncertain or could not be sent.
    """
    sources = _sources(given.sources, given.listed)
    corpus = Corpus(given.corpus)
    options = job_options(given)
    if given.plan:
        if sources is None:
            raise OptionError("--plan requires recordings; name files, folders, patterns or URLs, or give --sources")
        plan = corpus.plan(sources, **options)
        names = ("new", "new_options", "pending", "known", "failed", "uncertain", "duplicates", "audio_s", "unmeasured")
        print(json.dumps({name: getattr(plan, name) for name in names}) if given.json else in_command_terms(str(plan)))
        return 0
    concurrency = CONCURRENCY if given.concurrency is None else given.concurrency
    done = BatchResult()
    if sources is not None:
        done = corpus.submit(sources, concurrency=concurrency, **options)
    if sources is None or given.failed or given.uncertain:
        again = corpus.retry(failed=given.failed, uncertain=given.uncertain, concurrency=concurrency)
        done = again.after(done)
    return _report(done, corpus.path, as_json=given.json)


def add_sync(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe sync`."""
    define(
        parser,
        sync,
        "Fetch finished transcripts into the corpus, and look up submissions with a lost response at the "
        "service. You can interrupt the command at any time and run it again.",
        "exit status: 0 success; 1 a job failed or is uncertain; 130 Ctrl-C",
    )
    add_corpus(parser)
    parser.add_argument("--wait", action="store_true", help="wait until every submitted job has finished")
    parser.add_argument("--adopt", action="store_true", help="also fetch every other transcript of this API key")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the counts")


def sync(given: argparse.Namespace) -> int:
    """Fetch finished transcripts and print the counts of what is left.

    Returns:
        Exit status: 1 if a job failed or is uncertain.
    """
    corpus = Corpus(given.corpus)
    if given.corpus is not None and not given.adopt and not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")
    found = corpus.adopt() if given.adopt else None
    done = corpus.sync(wait=given.wait)
    return _report(done.after(found) if found is not None else done, corpus.path, as_json=given.json)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe jobs`."""
    define(parser, jobs, "Show the jobs of a corpus and their states, without a request to the service.")
    add_corpus(parser)
    parser.add_argument(
        "--state",
        action="append",
        choices=("planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"),
        help="show only jobs in this state; may be repeated",
    )
    add_format(parser)


def jobs(given: argparse.Namespace) -> int:
    """Print the jobs of a corpus."""
    corpus = Corpus(given.corpus)
    if not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")
    df = corpus.jobs()
    if given.state is not None:
        df = df[df["state"].isin(given.state)]
    if given.form == "text":
        df = df.rename(columns={"transcript_id": "id"})
        df = df[[name for name in df.columns if name in _SHOWN or name not in JOBS.arrow.names]]
        df = df[[*_SHOWN, *(name for name in df.columns if name not in _SHOWN)]]
    write(df, given.form, given.rows)
    return 0


def _report(done: BatchResult, path: Path, *, as_json: bool) -> int:
    """Print the result. Return the exit status: 1 if a job failed, is uncertain or is still pending."""
    if as_json:
        print(json.dumps(asdict(done)))
    else:
        show = summary if done.ok else print  # failures are printed with --quiet, too
        show(f"{in_command_terms(str(done))}\nin {plain(path)}")
    return 0 if done.ok else 1


def _sources(given: list[str], table: Path | None) -> Recordings | None:
    if table is None:
        return given or None
    if given:
        raise OptionError("recordings were given as arguments and in --sources; give only one of the two")
    return _read_table(table, "--sources")


def _read_table(path: Path, argument: str) -> pd.DataFrame:
    """Return the table in a CSV or Parquet file.

    Raises:
        OptionError: It cannot be read. The message names the argument.
    """
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except (OSError, ValueError) as error:  # pandas raises ValueErrors for invalid files
        raise OptionError(
            f"{argument} {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


#: Columns of CSV files that are text, even if all values are digits: a recording "0012" is not number 12.
_TEXTS = ("transcript_id", "recording", *SOURCE_COLUMNS)


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a file with columns that are separated by commas, semicolons (as spreadsheets write it) or tabs."""
    heads = pd.read_csv(path, nrows=0).columns
    separator = next((sign for sign in ";\t" if len(heads) == 1 and sign in heads[0]), ",")
    return pd.read_csv(path, sep=separator, dtype=dict.fromkeys(_TEXTS, "str"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe options`."""
    define(
        parser,
        options,
        "List the options of a transcription job, as `--option NAME=VALUE` takes them, or the values of one option.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="option to explain, such as language_code")
    parser.add_argument("--json", action="store_true", help="print one JSON object per option or value")


def options(given: argparse.Namespace) -> int:
    """Print the options of a job, or the values of one."""
    found = describe("options") if given.name is None else describe_option(given.name)
    if given.json:
        for row in found.rows:
            print(json.dumps(dict(zip(found.heads, row, strict=True))))
    else:
        print(in_command_terms(str(found)))
    return 0


def add_add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe add`."""
    define(
        parser,
        add,
        "Add transcripts that you have as files: responses of the service, transcripts of other engines, captions and "
        "annotations. Those that are in the corpus already are left as they are.",
        "examples:\n"
        "  voxframe add old/ --corpus calls            every file in a folder\n"
        "  voxframe add 'vendor/*.json' interview.srt  quoted patterns, and single files\n\n"
        "exit status: 0 success; 1 a file was left out; 2 invalid arguments",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, folders, zips or quoted patterns")
    add_corpus(parser)
    parser.add_argument("--replace", action="store_true", help="replace different transcripts with the same ids")


def add(given: argparse.Namespace) -> int:
    """Add files to a corpus, and print how many were added and why others were left out.

    Returns:
        Exit status: 1 if a file was left out.
    """
    corpus = Corpus(given.corpus)
    found = corpus.add(given.files, replace=given.replace)
    show = print if found.left_out else summary  # failures are printed with --quiet, too
    show(f"{plain(repr(found))}\nin {plain(corpus.path)}")
    return 1 if found.left_out else 0


def add_metadata(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe metadata`."""
    define(
        parser,
        metadata,
        "Show the columns about recordings, or set them from a file with a column `recording` or `transcript_id`. "
        "`--where`, `--metadata` and `--partition-by` of other commands take these columns.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="CSV or Parquet file with columns to set")
    add_corpus(parser)
    add_format(parser)


def metadata(given: argparse.Namespace) -> int:
    """Set columns about recordings from a file, and print all of them."""
    corpus = open_corpus(given.corpus)
    about = None if given.file is None else _read_table(given.file, "FILE")
    write(corpus.metadata.get() if about is None else corpus.metadata.set(about), given.form, given.rows)
    return 0
