"""`voxframe list`, `delete`, `stream` and `server`: what the service has, live transcription, and the shared server."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pandas as pd

from voxframe._text import clock, quantity
from voxframe.cli.console import (
    TEXT_ROWS,
    add_corpus,
    add_format,
    define,
    note,
    open_corpus,
    plain,
    summary,
    whole,
    write,
)
from voxframe.client import connect
from voxframe.client.progress import is_interactive
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import short_name
from voxframe.errors import AudioNotFoundError, OptionError
from voxframe.settings import resolve

_STATUSES = ("queued", "processing", "completed", "error")


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe list`."""
    define(
        parser,
        list_transcripts,
        "List the transcripts that the service has for this API key, newest first, with the names and lengths that the "
        "corpus knows. `voxframe jobs` lists those of a corpus, and `voxframe sync --adopt` fetches the others.",
    )
    add_corpus(parser)
    parser.add_argument("--status", choices=_STATUSES, help="only transcripts with this status")
    add_format(parser)


def list_transcripts(given: argparse.Namespace) -> int:
    """Print the transcripts of the service."""
    text = given.form == "text"
    rows = TEXT_ROWS if text and given.rows is None else given.rows
    with connect() as client:
        items = client.iter_transcripts(status=given.status)
        found = list(islice(items, None if rows is None else rows + text))  # one more row shows that there are more
    known = _known(Corpus(given.corpus), [item.id for item in found])
    table = []
    for item in found:
        name, seconds = known.get(item.id) or (short_name(item.audio_url or "") or item.id, None)
        table.append((name, item.status, seconds, item.created, item.error, item.id, item.audio_url))
    columns = ["recording", "status", "audio_duration_s", "created", "error", "transcript_id", "audio_url"]
    df = pd.DataFrame(table, columns=columns)
    if not text:
        write(df, given.form, None)
        return 0
    df["length"] = [clock(one) if pd.notna(one) else "" for one in df["audio_duration_s"]]
    df["created"] = [f"{one:%Y-%m-%d %H:%M}" if pd.notna(one) else "" for one in df["created"]]
    df = df.rename(columns={"transcript_id": "id"})[["recording", "status", "length", "created", "error", "id"]]
    if rows or df.empty:  # otherwise the line below says more than "no rows"
        write(df.head(rows), "text", rows)
    if len(df) > (rows or 0):
        print("... there are more transcripts; --rows N prints N rows, --csv or --json all")
    return 0


def _known(corpus: Corpus, ids: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Return name and length in seconds of the recordings of transcripts, those that the corpus knows, by id."""
    if not corpus.path.is_dir():
        return {}
    columns = ["transcript_id", "recording", "audio_duration_s"]
    here = [transcript_id for transcript_id in ids if transcript_id in corpus]
    tables = [corpus.jobs(), *([corpus.table("transcripts", here, columns=columns)] if here else [])]
    return {id_: (name, length) for one in tables for id_, name, length in one[columns].itertuples(index=False)}


_DELETE_EPILOG = """\
examples:
  voxframe delete interview --corpus calls
  voxframe delete interview --remote

exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
"""


def add_delete(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe delete`."""
    define(
        parser,
        delete,
        "Delete transcripts from a corpus: payloads, tables, names, corrections, search index and job. This cannot be "
        "undone.",
        _DELETE_EPILOG,
    )
    parser.add_argument("id", nargs="+", metavar="ID", help="id of a transcript, or its recording")
    add_corpus(parser)
    parser.add_argument("--remote", action="store_true", help="also delete them at the service, with their media")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def delete(given: argparse.Namespace) -> int:
    """Delete transcripts, after a question on a terminal."""
    corpus = open_corpus(given.corpus)
    # Before the question, and before anything is deleted. One transcript may be named twice.
    names = {corpus._batch.known_id(name): name for name in given.id}
    where = f"the corpus {corpus.path}" + (" and the service" if given.remote else "")
    if not given.yes:
        if not sys.stdin.isatty():
            raise OptionError("there is no terminal to ask on; give --yes to delete without a question")
        print(f"Delete {quantity(len(names), 'transcript')} from {plain(where)}? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() != "y":  # at the end of input, such as Ctrl-D, an empty line
            note("nothing was deleted")
            return 1
    for transcript_id, name in names.items():
        corpus.forget(transcript_id, remote=given.remote)
        summary(f"{plain(name)}  deleted from {plain(where)}")
    return 0


_STREAM_EPILOG = """\
examples:
  voxframe stream                          the microphone, until Ctrl-C; needs voxframe[mic]
  voxframe stream talk.wav --fast          a recording, as fast as the service takes it
  arecord -f S16_LE -r 16000 -t raw | voxframe stream - --sample-rate 16000
  voxframe stream --json > messages.jsonl  every message as received; voxframe.load_stream reads them

exit status: 0 success, also after Ctrl-C; 1 the session failed; 2 invalid arguments
"""


def add_stream(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe stream`."""
    define(
        parser,
        stream,
        "Transcribe a microphone or a recording in real time, and print one line per utterance.",
        _STREAM_EPILOG,
    )
    parser.add_argument("audio", nargs="?", metavar="AUDIO", help="recording, or - for raw 16-bit samples on stdin")
    parser.add_argument("--sample-rate", type=whole, metavar="HZ", help="sample rate of raw samples or the microphone")
    parser.add_argument("--word-boost", action="append", metavar="WORD", help="expected word; may be repeated")
    parser.add_argument("--fast", action="store_true", help="send a recording faster than it plays")
    parser.add_argument("--json", action="store_true", help="print one JSON object per message, as received")


def stream(given: argparse.Namespace) -> int:
    """Print the finals of a streaming session, and the current partial on a terminal."""
    from voxframe.client.stream.audio_sources import StreamSource, microphone
    from voxframe.client.stream.messages import Final, Partial

    source: StreamSource
    if given.audio is None:
        source = microphone() if given.sample_rate is None else microphone(given.sample_rate)
        note("listening; Ctrl-C ends")
    elif given.audio == "-":
        if given.sample_rate is None:
            raise OptionError("raw samples on stdin require --sample-rate, such as --sample-rate 16000")
        source = iter(lambda: os.read(sys.stdin.fileno(), 6400), b"")
    else:
        source = Path(given.audio)
        if not source.exists():
            raise AudioNotFoundError(f"there is no file {given.audio!r}; check its path")
    live = is_interactive() and not given.json
    rate = None if given.audio is None else given.sample_rate
    with connect() as client:
        session = client.stream(
            source, sample_rate=rate, word_boost=given.word_boost, realtime=not given.fast, partials=live or given.json
        )
        try:
            with session:
                for message in session:
                    if given.json:
                        print(json.dumps(message.raw, ensure_ascii=False), flush=True)
                    elif isinstance(message, Partial) and live:
                        sys.stderr.write(f"\r\x1b[K{plain(message.text)[-100:]}")
                        sys.stderr.flush()
                    elif isinstance(message, Final) and message.text:
                        sys.stderr.write("\r\x1b[K" * live)
                        print(plain(message.text), flush=True)
        except KeyboardInterrupt:  # the usual end of a session; the block has received the last finals
            note("")
    return 0


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `voxframe server`."""
    parser.description = (
        "Show or stop the server on this machine that commands start and share. It belongs to one data directory "
        "(VOXFRAME_DATA_DIR), finishes submitted jobs, and ends after 10 minutes without work."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, run, text in (
        ("status", server_status, "show its URL, process and unfinished jobs; exit status 1 if none is running"),
        ("stop", server_stop, "stop it; unfinished jobs continue at the next start"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=run)


def server_status(given: argparse.Namespace) -> int:
    """Print the state of the shared server.

    Returns:
        Exit status: 1 if none is running.
    """
    from voxframe.client import shared_server

    settings = resolve()
    found = shared_server.status(settings)
    if found is None:
        print(json.dumps({"running": False}) if given.json else "no server is running; the next command starts one")
        return 1
    record, queued, processing = found
    if given.json:
        shown = {"base_url": record.base_url, "pid": record.pid, "version": record.version, "started": record.started}
        print(json.dumps({"running": True, **shown, "queued": queued, "processing": processing}))
        return 0
    print(f"running for {clock(time.time() - record.started)} at {record.base_url}, process {record.pid}")
    print(f"{quantity(queued, 'job')} queued, {processing} in progress; data in {plain(settings.data_dir)}")
    return 0


def server_stop(given: argparse.Namespace) -> int:
    """Stop the shared server, if it is running."""
    from voxframe.client import shared_server

    stopped = shared_server.stop(resolve())
    if given.json:
        print(json.dumps({"stopped": None if stopped is None else stopped.pid}))
    elif stopped is None:
        summary("no server is running")
    else:
        summary(f"stopped the server at {stopped.base_url}; unfinished jobs continue at the next start")
    return 0
