"""`voxframe list`, `delete`, `stream` and `server`: what the service has, live transcription, and the shared server."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Literal

import pandas as pd

from voxframe._text import clock, quantity
from voxframe.cli.console import CorpusOption, Output, note, open_corpus, plain, summary
from voxframe.client import connect
from voxframe.client.progress import is_interactive
from voxframe.corpus import Corpus
from voxframe.corpus.job import short_name
from voxframe.errors import AudioNotFoundError, OptionError
from voxframe.settings import resolve


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
    with connect() as client:
        items = list(islice(client.iter_transcripts(status=status), output.limit))
    recordings = _recordings(Corpus(corpus), [item.id for item in items])
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


def _recordings(corpus: Corpus, ids: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Return name and length in seconds of the recordings of transcripts, those that the corpus knows, by id."""
    if not corpus.path.is_dir():
        return {}
    columns = ["transcript_id", "recording", "audio_duration_s"]
    here = [transcript_id for transcript_id in ids if transcript_id in corpus]
    tables = [corpus.jobs(), *([corpus.table("transcripts", here, columns=columns)] if here else [])]
    return {id_: (name, length) for df in tables for id_, name, length in df[columns].itertuples(index=False)}


def delete(id_: list[str], *, corpus: CorpusOption = None, remote: bool = False, yes: bool = False) -> int:
    """Delete transcripts from a corpus: payloads, tables, names, corrections, search index and job.

    This cannot be undone.

    Args:
        id_ (ID): Id of a transcript, or its recording.
        remote: Also delete them at the service, with their media.
        yes: Do not ask.

    Examples:
      voxframe delete interview --corpus calls
      voxframe delete interview --remote

    Exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
    """
    store = open_corpus(corpus)
    # Before the question, and before anything is deleted. One transcript may be named twice.
    names = {store.parts.batch.known_id(name): name for name in id_}
    where = f"the corpus {store.path}" + (" and the service" if remote else "")
    if not yes:
        if not sys.stdin.isatty():
            raise OptionError("there is no terminal to ask on; give --yes to delete without a question")
        print(f"Delete {quantity(len(names), 'transcript')} from {plain(where)}? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() != "y":  # at the end of input, such as Ctrl-D, an empty line
            note("nothing was deleted")
            return 1
    for transcript_id, name in names.items():
        store.forget(transcript_id, remote=remote)
        summary(f"{plain(name)}  deleted from {plain(where)}")
    return 0


def stream(
    audio: str | None = None,
    *,
    sample_rate: int | None = None,
    word_boost: list[str] | None = None,
    fast: bool = False,
    json_: bool = False,
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
    from voxframe.client.stream.audio_sources import StreamSource, microphone
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
    with connect() as client:
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


def _status(*, json_: bool = False) -> int:
    """Show its URL, process and unfinished jobs; exit status 1 if none is running.

    Args:
        json_: Print one JSON object.
    """
    from voxframe.client import shared_server

    settings = resolve()
    running = shared_server.status(settings)
    if running is None:
        print(json.dumps({"running": False}) if json_ else "no server is running; the next command starts one")
        return 1
    record, queued, processing = running
    if json_:
        fields = {"base_url": record.base_url, "pid": record.pid, "version": record.version, "started": record.started}
        print(json.dumps({"running": True, **fields, "queued": queued, "processing": processing}))
        return 0
    print(f"running for {clock(time.time() - record.started)} at {record.base_url}, process {record.pid}")
    print(f"{quantity(queued, 'job')} queued, {processing} in progress; data in {plain(settings.data_dir)}")
    return 0


def _stop(*, json_: bool = False) -> None:
    """Stop it; unfinished jobs continue at the next start.

    Args:
        json_: Print one JSON object.
    """
    from voxframe.client import shared_server

    stopped = shared_server.stop(resolve())
    if json_:
        print(json.dumps({"stopped": None if stopped is None else stopped.pid}))
    elif stopped is None:
        summary("no server is running")
    else:
        summary(f"stopped the server at {stopped.base_url}; unfinished jobs continue at the next start")


server = (
    """\
Show or stop the server on this machine that commands start and share. It belongs to one data directory
(VOXFRAME_DATA_DIR), finishes submitted jobs, and ends after 10 minutes without work.
""",
    {"status": _status, "stop": _stop},
)
