"""Commands that transcribe, and about jobs and the service: `voxframe transcribe`, `submit`, `list` and others."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd

import voxframe
from voxframe import analysis, plots
from voxframe._arguments import folder
from voxframe._progress import is_interactive
from voxframe._text import clock, quantity
from voxframe.cli import (
    CorpusOption,
    JobOptions,
    JsonOption,
    Output,
    SpeakersOption,
    columns,
    in_command_terms,
    note,
    plain,
    read_table,
    report,
    shorten,
    summary,
)
from voxframe.client import shared_server
from voxframe.client.embedded import launch
from voxframe.corpus.batch.submit import CONCURRENCY, BatchResult
from voxframe.corpus.job import is_address, is_remote, short_name
from voxframe.corpus.media import Recordings
from voxframe.dictionary import describe, describe_option
from voxframe.errors import AudioError, AudioNotFoundError, CorpusError, OptionError, TranscriptError
from voxframe.options import TranscriptOptions, check
from voxframe.schema import JOBS
from voxframe.settings import resolve

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
    store = voxframe.Corpus(corpus)
    client = voxframe.connect()
    failed = 0
    for source in audio:
        note(f"{plain(source)} ...")
        transcript_id = store.transcribe(source, client=client, force=force, **options)
        voxframe.load_sentences(transcript_id, client=client, corpus=store)
        voxframe.load_paragraphs(transcript_id, client=client, corpus=store)
        row = voxframe.load_transcripts(transcript_id, corpus=store).iloc[0]
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
    json_: JsonOption = False,
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
    recordings: Recordings | None = read_table(sources_, "--sources") if sources_ else sources or None
    store = voxframe.Corpus(corpus)
    options = jobs.values()
    if plan:
        if recordings is None:
            raise OptionError("--plan requires recordings; name files, folders, patterns or URLs, or give --sources")
        planned = store.plan(recordings, **options)
        names = ("new", "new_options", "pending", "known", "failed", "uncertain", "duplicates", "audio_s", "unmeasured")
        fields = {name: getattr(planned, name) for name in names}
        report(in_command_terms(str(planned)), fields, as_json=json_)
        return 0
    done = BatchResult()
    if recordings is not None:
        done = store.submit(recordings, concurrency=concurrency, **options)
    if recordings is None or failed or uncertain:
        done = store.retry(failed=failed, uncertain=uncertain, concurrency=concurrency).after(done)
    return _report(done, store.path, as_json=json_)


def sync(*, corpus: CorpusOption = None, wait: bool = False, adopt: bool = False, json_: JsonOption = False) -> int:
    """Fetch finished transcripts into the corpus, and look up submissions with a lost response at the service.

    You can interrupt the command at any time and run it again.

    Args:
        wait: Wait until every submitted job has finished.
        adopt: Also fetch every other transcript of this API key.
        json_: Print one JSON object with the counts.

    Exit status: 0 success; 1 a job failed or is uncertain; 130 Ctrl-C
    """
    store = voxframe.Corpus(corpus)
    if corpus is not None and not adopt:
        _check_exists(store)
    adopted = store.adopt() if adopt else None
    done = store.sync(wait=wait)
    return _report(done.after(adopted) if adopted is not None else done, store.path, as_json=json_)


def _check_exists(corpus: voxframe.Corpus) -> None:
    if not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` creates one")


_State = Literal["planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"]


def jobs(*, corpus: CorpusOption = None, state: list[_State] | None = None, output: Output) -> None:
    """Show the jobs of a corpus and their states, without a request to the service.

    Args:
        state: Show only jobs in this state.
    """
    store = voxframe.Corpus(corpus)
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
    text = f"{in_command_terms(str(done))}\nin {plain(path)}"
    report(text, asdict(done), as_json=as_json, always=not done.ok)  # failures are printed with --quiet, too
    return 0 if done.ok else 1


def options(name: str | None = None, *, json_: JsonOption = False) -> None:
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


def list_(
    *,
    corpus: CorpusOption = None,
    status: Literal["queued", "processing", "completed", "error"] | None = None,
    output: Output,
) -> None:
    """List the transcripts that the service has for this API key.

    The newest comes first, with the name and length that the corpus knows. `voxframe jobs` lists those of a corpus, and
    `voxframe sync --adopt` fetches the others.

    Args:
        status: Only transcripts with this status.
    """
    with voxframe.connect() as client:
        items = list(islice(client.iter_transcripts(status=status), output.limit))
    recordings = _recordings(voxframe.Corpus(corpus), [item.id for item in items])
    table = []
    for item in items:
        name, length = recordings.get(item.id) or (short_name(item.audio_url or "") or item.id, None)
        table.append((name, item.status, length, item.created, item.error, item.id, item.audio_url))
    columns = ["recording", "status", "audio_duration_s", "created", "error", "transcript_id", "audio_url"]
    df = pd.DataFrame(table, columns=columns)
    if not output.is_text:
        output.write(df)
        return
    df["length"] = [clock(length) if pd.notna(length) else "" for length in df["audio_duration_s"]]
    df["created"] = [f"{created:%Y-%m-%d %H:%M}" if pd.notna(created) else "" for created in df["created"]]
    df = df.rename(columns={"transcript_id": "id"})[["recording", "status", "length", "created", "error", "id"]]
    if output.shown or df.empty:  # otherwise the line below says more than "no rows"
        output.write(df.head(output.shown))
    if len(df) > output.shown:
        print("... there are more transcripts; --rows N prints N rows, --csv or --json all")


def _recordings(corpus: voxframe.Corpus, ids: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Return name and length in seconds of the recordings of transcripts, those that the corpus knows, by id."""
    if not corpus.path.is_dir():
        return {}
    columns = ["transcript_id", "recording", "audio_duration_s"]
    here = [transcript_id for transcript_id in ids if transcript_id in corpus]
    tables = [corpus.jobs(), *([corpus.table("transcripts", here, columns=columns)] if here else [])]
    return {id_: (name, length) for df in tables for id_, name, length in df[columns].itertuples(index=False)}


def stream(
    audio: str | None = None,
    *,
    sample_rate: int | None = None,
    word_boost: list[str] | None = None,
    fast: bool = False,
    json_: JsonOption = False,
) -> None:
    """Transcribe a microphone or a recording in real time, and print one line per utterance.

    Args:
        audio (AUDIO): Recording, or - for raw 16-bit samples on stdin.
        sample_rate (HZ): Sample rate of raw samples or the microphone.
        word_boost (WORD): Expected word.
        fast: Send a recording faster than it plays.
        json_: Print one JSON object per message, as received.

    Examples:
      voxframe stream                          the microphone, until Ctrl-C; needs voxframe[mic]
      voxframe stream talk.wav --fast          a recording, as fast as the service takes it
      arecord -f S16_LE -r 16000 -t raw | voxframe stream - --sample-rate 16000
      voxframe stream --json > messages.jsonl  every message as received; voxframe.load_stream reads them

    Exit status: 0 success, also after Ctrl-C; 1 the session failed; 2 invalid arguments
    """
    from voxframe.client.stream.audio import StreamSource, microphone
    from voxframe.client.stream.messages import Final, Partial

    source: StreamSource
    if audio is None:
        source = microphone() if sample_rate is None else microphone(sample_rate)
        sample_rate = None
        note("listening; Ctrl-C ends")
    elif audio == "-":
        if sample_rate is None:
            raise OptionError("raw samples on stdin require --sample-rate, such as --sample-rate 16000")
        source = iter(lambda: os.read(sys.stdin.fileno(), 6400), b"")
    else:
        source = Path(audio)
        if not source.exists():
            raise AudioNotFoundError(f"there is no file {audio!r}; check its path")
    live = is_interactive() and not json_
    with voxframe.connect() as client:
        session = client.stream(
            source, sample_rate=sample_rate, word_boost=word_boost, realtime=not fast, partials=live or json_
        )
        try:
            with session:
                for message in session:
                    if json_:
                        print(json.dumps(message.raw, ensure_ascii=False), flush=True)
                    elif isinstance(message, Partial) and live:
                        sys.stderr.write(f"\r\x1b[K{plain(message.text)[-100:]}")
                        sys.stderr.flush()
                    elif isinstance(message, Final) and message.text:
                        sys.stderr.write("\r\x1b[K" * live)
                        print(plain(message.text), flush=True)
        except KeyboardInterrupt:  # the usual end of a session; the block has received the last finals
            note("")


def _status(*, json_: JsonOption = False) -> int:
    """Show its URL, process and unfinished jobs; exit status 1 if none is running."""
    settings = resolve()
    running = shared_server.status(settings)
    if running is None:
        report("no server is running; the next command starts one", {"running": False}, as_json=json_)
        return 1
    record, queued, processing = running
    fields = {"base_url": record.base_url, "pid": record.pid, "version": record.version, "started": record.started}
    report(
        f"running for {clock(time.time() - record.started)} at {record.base_url}, process {record.pid}\n"
        f"{quantity(queued, 'job')} queued, {processing} in progress; data in {plain(settings.data_dir)}",
        {"running": True, **fields, "queued": queued, "processing": processing},
        as_json=json_,
    )
    return 0


def _stop(*, json_: JsonOption = False) -> None:
    """Stop it; unfinished jobs continue at the next start."""
    stopped = shared_server.stop(resolve())
    text = "no server is running"
    if stopped is not None:
        text = f"stopped the server at {stopped.base_url}; unfinished jobs continue at the next start"
    report(text, {"stopped": stopped and stopped.pid}, as_json=json_, always=False)


server = (
    """\
Show or stop the server on this machine that commands start and share. It belongs to one data directory
(VOXFRAME_DATA_DIR), finishes submitted jobs, and ends after 10 minutes without work.
""",
    {"status": _status, "stop": _stop},
)


#: Analyses that the demo requests.
_ANALYSES: TranscriptOptions = {
    "auto_chapters": True,
    "auto_highlights": True,
    "content_safety": True,
    "entity_detection": True,
    "iab_categories": True,
    "sentiment_analysis": True,
}


def demo(
    audio: str | None = None,
    *,
    out: Annotated[Path, folder] = Path("voxframe-demo"),
    speakers: SpeakersOption = None,
) -> None:
    """Transcribe a recording with the embedded server, and show its tables.

    Write every table as Parquet, print who said what, and draw a speaker timeline. A second run reads the stored
    tables.

    Args:
        audio (AUDIO): Recording of English speech: wav, mp3, m4a, flac, ogg, mp4 ... (default: a two-minute interview
            included in voxframe).
        out (DIR): Output directory.
    """
    if out.exists() and not out.is_dir():
        raise OptionError(f"--out must be a directory, but {str(out)!r} is a file; name another directory")
    if any("\ud800" <= c <= "\udfff" for c in str(out)):  # bytes that are not UTF-8: Arrow rejects such a path
        raise OptionError(f"--out {str(out)!r} is not valid UTF-8; name another directory")
    if audio is not None and is_address(audio):
        raise OptionError(f"demo takes a file, got the URL {audio}; use `voxframe transcribe {audio}`")
    recording = voxframe.sample("interview") if audio is None else Path(audio)
    if audio is None and speakers is None:
        speakers = 2
    options: TranscriptOptions = {**_ANALYSES, "speaker_labels": True, "speakers_expected": speakers}
    corpus = voxframe.Corpus(out)
    begin = time.monotonic()
    transcript_id = corpus.parts.batch.find_transcript(recording, **options)
    if transcript_id is not None:
        summary(f"Reading {plain(recording.name)} from {out}; it was transcribed before.")
    else:
        check_audio(recording)
        summary(f"Transcribing {plain(recording.name)} with the embedded server on this machine, without a key.")
        transcript_id = _transcribe(corpus, recording, options)
        summary(f"Done in {time.monotonic() - begin:.0f} s.")
    tables = corpus.tables(transcript_id)
    transcript = tables["transcripts"].iloc[0]
    if transcript["status"] != "completed":
        raise TranscriptError(transcript_id, plain(transcript["error"]))
    _print_tables(tables, transcript["audio_duration_s"])
    picture = _draw(tables, out / f"{recording.stem or 'recording'}.timeline.png")
    _print_next_steps(transcript_id, out, picture)


def _transcribe(corpus: voxframe.Corpus, recording: Path, options: TranscriptOptions) -> str:
    """Transcribe a recording into the corpus, with its exports. Return the id of the transcript."""
    service = launch(resolve())  # not voxframe.connect(): it would use a hosted service if one is configured
    with voxframe.connect(service.base_url, api_key=service.api_key) as client:
        transcript_id = corpus.transcribe(recording, client=client, **options)
        for load in (voxframe.load_sentences, voxframe.load_paragraphs):
            load(transcript_id, client=client, corpus=corpus)
    return transcript_id


def _print_tables(tables: dict[str, pd.DataFrame], duration_s: float) -> None:
    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    print(f"\nFound in {clock(duration_s)} of audio, rows per table:")
    filled = [(name, len(df)) for name, df in tables.items() if len(df)]
    print(columns(filled))
    if len(filled) < len(tables):
        print(f"  no rows: {', '.join(name for name, df in tables.items() if not len(df))}")
    if len(tables["highlights"]):
        print(f"\nKey phrases: {shorten(plain(', '.join(tables['highlights']['text'])), 100)}")
    print("\nTalk time:")
    heading = ("speaker", "turns", "words", "talk time", "share", "words/min")
    measures = ["speaker", "turns", "words", "talk_s", "share", "words_per_minute"]
    rows = [
        (_name(speaker), turns, words, clock(talk_s), f"{share:.0%}", f"{pace:.0f}")
        for speaker, turns, words, talk_s, share, pace in analysis.talk_time(spoken)[measures].itertuples(index=False)
    ]
    print(columns([heading, *rows]) if rows else "  no speech")
    print("\nThe conversation begins:")
    turns = spoken if "word_idx" not in spoken.columns else analysis.turns(spoken)
    for turn in turns.head(6).to_dict("records"):
        print(f"  {clock(turn['start_ms'] / 1000):>5}  {_name(turn['speaker'])}: {shorten(plain(turn['text']), 96)}")


def _name(speaker: object) -> str:
    return shorten(plain(speaker), 20) if isinstance(speaker, str) else "(unknown)"


def _draw(tables: dict[str, pd.DataFrame], path: Path) -> Path:
    """Draw the timeline to a file, without the parts of matplotlib that open windows."""
    from matplotlib.figure import Figure

    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    figure = Figure(figsize=(10, 1.2 + 0.45 * max(1, spoken["speaker"].nunique())), layout="constrained")
    plots.timeline(spoken, figure.subplots())
    figure.savefig(path, dpi=150)
    return path


def _command() -> str:
    """Return the command by which this program was called, so that printed commands can be typed."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{Path(sys.executable).name} -m voxframe"
    installed = shutil.which("voxframe")
    return called if installed is None or Path(installed).resolve() != Path(called).resolve() else "voxframe"


def _print_next_steps(transcript_id: str, out: Path, picture: Path) -> None:
    command = _command()
    print("\nWritten:")
    tables = (f"{out}/tables/<table>/*.parquet", "every table, for pandas, DuckDB, Polars ...")
    responses = (f"{out}/raw/*/*.json.zst", "the responses of the service")
    print(columns([tables, responses, (f"{picture}", "the speaker timeline")]))
    print(f"""
Next steps:
  in a notebook       import voxframe
                      tables = voxframe.Corpus({str(out.absolute())!r}).tables({transcript_id!r})
                      tables["words"].vox.plot_timeline()
  your own recording  {command} demo recording.mp3
  another language    {command} transcribe -o language_detection=true recording.mp3
  many recordings     {command} transcribe *.mp3 && {command} tables
  a hosted service    export VOXFRAME_BASE_URL=https://... VOXFRAME_API_KEY=...
                      {command} transcribe recording.mp3""")
