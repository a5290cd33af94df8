"""`voxframe transcribe`, `submit`, `sync`, `jobs`, `options`, `add` and `metadata`: what goes into a corpus."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pandas as pd

from voxframe._text import clock
from voxframe.cli.console import (
    CorpusOption,
    JobOptions,
    Output,
    in_command_terms,
    note,
    open_corpus,
    plain,
    shorten,
    summary,
)
from voxframe.client import connect
from voxframe.corpus import Corpus
from voxframe.corpus.batch.media import SOURCE_COLUMNS, Recordings
from voxframe.corpus.batch.submit import CONCURRENCY, BatchResult
from voxframe.corpus.job import is_address, is_remote
from voxframe.dictionary import describe, describe_option
from voxframe.errors import AudioError, AudioNotFoundError, CorpusError, OptionError
from voxframe.loaders import load_paragraphs, load_sentences, load_transcripts
from voxframe.options import check
from voxframe.schema import JOBS

_TYPES = "wav, mp3, m4a, flac, ogg, mp4 or most others"


def transcribe(audio: list[str], *, corpus: CorpusOption = None, jobs: JobOptions, force: bool = False) -> int:
    """Transcribe files or URLs and store the transcripts in a corpus.

    A recording that was transcribed with the same options before is not sent again. Uses the hosted service at
    VOXFRAME_BASE_URL, if it is set, otherwise the embedded server.

    Args:
        audio (AUDIO): Audio or video files, or http(s) URLs.
        force: Send recordings again (a hosted service charges for them again).

    Examples:
      voxframe transcribe call.mp3 --speakers 2
      voxframe transcribe *.mp3 -o auto_highlights=true -o word_boost='["voxframe"]' -o language_code=en_uk

    -o sets any option of the jobs to a JSON value or text; `voxframe options` lists the options.
    Exit status: 0 success; 1 a recording failed; 2 invalid arguments; 130 Ctrl-C
    """
    options = jobs.values()
    check(**options)
    for source in audio:
        if is_remote(source):
            raise AudioError(
                f"{source!r} is neither a file nor an http(s) URL; `voxframe submit` takes URLs such as s3://, too"
            )
        if not is_address(source):
            check_audio(Path(source))
    store = Corpus(corpus)
    client = connect()
    failed = 0
    for source in audio:
        note(f"{plain(source)} ...")
        transcript_id = store.transcribe(source, client=client, force=force, **options)
        load_sentences(transcript_id, client=client, corpus=store)
        load_paragraphs(transcript_id, client=client, corpus=store)
        row = load_transcripts(transcript_id, corpus=store).iloc[0]
        name = shorten(plain(row["recording"]), 36)
        if row["status"] == "completed":
            text = row["text"] if isinstance(row["text"], str) else ""
            print(f"{name}  {clock(row['audio_duration_s'])}  {shorten(plain(text), 80)}")
        else:
            failed += 1
            print(f"{name}  failed: {plain(row['error'])}")
    note(f"stored in {store.path}")
    return 1 if failed else 0


def check_audio(path: Path) -> None:
    """Check that a file is a recording before anything is sent, so that a mistake costs no time or money.

    The decoder of the embedded server checks the content if it is installed, otherwise the service does.
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
    from voxframe_engine import JobFailed
    from voxframe_engine.speech.audio import Audio

    try:
        next(Audio(path).blocks(), None)  # the first seconds are enough
    except JobFailed as e:
        raise AudioError(f"{str(path)!r} cannot be transcribed: {e} Give {_TYPES}, at least 160 ms long") from None


#: Columns of jobs shown as text; those of the metadata follow.
_SHOWN = ("recording", "state", "attempts", "audio_duration_s", "source", "error", "id")


def submit(
    sources: list[str] | None = None,
    *,
    corpus: CorpusOption = None,
    sources_: Path | None = None,
    plan: bool = False,
    failed: bool = False,
    uncertain: bool = False,
    jobs: JobOptions,
    concurrency: int = CONCURRENCY,
    json_: bool = False,
) -> int:
    """Submit recordings for transcription, without waiting for the results.

    A recording that was submitted before with the same options is skipped, whatever its file name. You can interrupt
    the command at any time and run it again.

    Args:
        sources (SOURCE): Files, folders, quoted patterns, http(s) or s3:// URLs.
        sources_ (FILE): CSV or Parquet file that lists recordings.
        plan: Show what would be sent, and send nothing.
        failed: Submit failed jobs again.
        uncertain: Submit uncertain jobs again: the service may have them, and may charge twice.
        concurrency (N): Maximum number of concurrent submissions.
        json_: Print one JSON object with the counts.

    Examples:
      voxframe submit 'recordings/**/*.mp3' --corpus calls --plan
      voxframe submit recordings --corpus calls -o auto_highlights=true
      voxframe submit --sources calls.csv --corpus calls    columns other than audio, path or url become metadata
      voxframe submit --corpus calls                        submit jobs that were planned but not sent
      voxframe submit --failed --corpus calls               submit failed jobs again

    -o sets any option of the jobs to a JSON value or text; `voxframe options` lists the options.
    Exit status: 0 all sent; 1 a job failed, is uncertain or could not be sent; 2 invalid arguments; 130 Ctrl-C
    """
    if sources and sources_:
        raise OptionError("recordings were given as arguments and in --sources; give only one of the two")
    recordings: Recordings | None = _read_table(sources_, "--sources") if sources_ else sources or None
    store = Corpus(corpus)
    options = jobs.values()
    if plan:
        if recordings is None:
            raise OptionError("--plan requires recordings; name files, folders, patterns or URLs, or give --sources")
        planned = store.plan(recordings, **options)
        names = ("new", "new_options", "pending", "known", "failed", "uncertain", "duplicates", "audio_s", "unmeasured")
        print(json.dumps({name: getattr(planned, name) for name in names}) if json_ else in_command_terms(str(planned)))
        return 0
    done = BatchResult()
    if recordings is not None:
        done = store.submit(recordings, concurrency=concurrency, **options)
    if recordings is None or failed or uncertain:
        done = store.retry(failed=failed, uncertain=uncertain, concurrency=concurrency).after(done)
    return _report(done, store.path, as_json=json_)


def sync(*, corpus: CorpusOption = None, wait: bool = False, adopt: bool = False, json_: bool = False) -> int:
    """Fetch finished transcripts into the corpus, and look up submissions with a lost response at the service.

    You can interrupt the command at any time and run it again.

    Args:
        wait: Wait until every submitted job has finished.
        adopt: Also fetch every other transcript of this API key.
        json_: Print one JSON object with the counts.

    Exit status: 0 success; 1 a job failed or is uncertain; 130 Ctrl-C
    """
    store = Corpus(corpus)
    if corpus is not None and not adopt:
        _check_exists(store)
    adopted = store.adopt() if adopt else None
    done = store.sync(wait=wait)
    return _report(done.after(adopted) if adopted is not None else done, store.path, as_json=json_)


def _check_exists(corpus: Corpus) -> None:
    if not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")


_State = Literal["planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"]


def jobs(*, corpus: CorpusOption = None, state: list[_State] | None = None, output: Output) -> None:
    """Show the jobs of a corpus and their states, without a request to the service.

    Args:
        state: Show only jobs in this state.
    """
    store = Corpus(corpus)
    _check_exists(store)
    df = store.jobs()
    if state is not None:
        df = df[df["state"].isin(state)]
    if output.is_text:
        df = df.rename(columns={"transcript_id": "id"})
        df = df[[*_SHOWN, *(name for name in df.columns if name not in {*_SHOWN, *JOBS.arrow.names})]]
    output.write(df)


def _report(done: BatchResult, path: Path, *, as_json: bool) -> int:
    """Print the result. Return the exit status: 1 if a job failed, is uncertain or is still pending."""
    if as_json:
        print(json.dumps(asdict(done)))
    else:
        show = summary if done.ok else print  # failures are printed with --quiet, too
        show(f"{in_command_terms(str(done))}\nin {plain(path)}")
    return 0 if done.ok else 1


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


def options(name: str | None = None, *, json_: bool = False) -> None:
    """List the options of a transcription job, as `--option NAME=VALUE` takes them, or the values of one option.

    Args:
        name (NAME): Option to explain, such as language_code.
        json_: Print one JSON object per option or value.
    """
    table = describe("options") if name is None else describe_option(name)
    if not json_:
        print(in_command_terms(str(table)))
        return
    for row in table.rows:
        print(json.dumps(dict(zip(table.heads, row, strict=True))))


def add(files: list[str], *, corpus: CorpusOption = None, replace: bool = False) -> int:
    """Add transcripts that you have as files.

    Files are responses of the service, transcripts of other engines, captions and annotations. Those that are in the
    corpus already are left as they are.

    Args:
        files (FILE): Files, folders, zips or quoted patterns.
        replace: Replace different transcripts with the same ids.

    Examples:
      voxframe add old/ --corpus calls            every file in a folder
      voxframe add 'vendor/*.json' interview.srt  quoted patterns, and single files

    Exit status: 0 success; 1 a file was left out; 2 invalid arguments
    """
    store = Corpus(corpus)
    added = store.add(files, replace=replace)
    show = print if added.left_out else summary  # failures are printed with --quiet, too
    show(f"{plain(repr(added))}\nin {plain(store.path)}")
    return 1 if added.left_out else 0


def metadata(file: Path | None = None, *, corpus: CorpusOption = None, output: Output) -> None:
    """Show the columns about recordings, or set them from a file with a column `recording` or `transcript_id`.

    `--where`, `--metadata` and `--partition-by` of other commands take these columns.

    Args:
        file (FILE): CSV or Parquet file with columns to set.
    """
    store = open_corpus(corpus)
    about = None if file is None else _read_table(file, "FILE")
    output.write(store.metadata.get() if about is None else store.metadata.set(about))
