"""`voxframe list`, `delete`, `stream` and `server`: what the service has, live transcription, and the shared server."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from itertools import islice
from pathlib import Path

import pandas as pd

from voxframe._text import clock, quantity
from voxframe.cli.console import add_corpus, add_format, define, note, open_corpus, plain, write
from voxframe.client import connect
from voxframe.client.progress import is_interactive
from voxframe.errors import AudioNotFoundError, OptionError
from voxframe.settings import resolve

_STATUSES = ("queued", "processing", "completed", "error")


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `voxframe list`."""
    define(
        parser,
        list_transcripts,
        "List the transcripts that the service has for this API key, newest first. `voxframe jobs` lists those of a "
        "corpus, and `voxframe sync --adopt` fetches the others.",
    )
    parser.add_argument("--status", choices=_STATUSES, help="only transcripts with this status")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="newest N transcripts; 0: all (default: 20)")
    add_format(parser)


def list_transcripts(given: argparse.Namespace) -> int:
    """Print the transcripts of the service."""
    if given.limit < 0:
        raise OptionError(f"--limit must be a whole number of at least 0, got {given.limit}")
    with connect() as client:
        items = client.iter_transcripts(status=given.status)
        rows = [
            (item.id, item.status, item.created, item.audio_url, item.error)
            for item in islice(items, given.limit or None)
        ]
    df = pd.DataFrame(rows, columns=["transcript_id", "status", "created", "audio_url", "error"])
    write(df, given.form, len(df) if given.form == "text" and given.rows is None else given.rows)
    return 0


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
        "Delete transcripts from a corpus: payloads, tables, names, corrections, search index and job. This cannot be\n"
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
    where = f"the corpus {corpus.path}" + (" and the service" if given.remote else "")
    if not given.yes:
        if not sys.stdin.isatty():
            raise OptionError("there is no terminal to ask on; give --yes to delete without a question")
        print(f"Delete {quantity(len(given.id), 'transcript')} from {plain(where)}? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() != "y":  # at the end of input, such as Ctrl-D, an empty line
            note("nothing was deleted")
            return 1
    for transcript_id in given.id:
        corpus.forget(transcript_id, remote=given.remote)
        print(f"{plain(transcript_id)}  deleted from {plain(where)}", flush=True)
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
        "Print the text of a microphone or a recording while it is spoken, one line per utterance.",
        _STREAM_EPILOG,
    )
    parser.add_argument("audio", nargs="?", metavar="AUDIO", help="recording, or - for raw 16-bit samples on stdin")
    parser.add_argument("--sample-rate", type=int, metavar="HZ", help="sample rate of raw samples or the microphone")
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
        print("no server is running")
    else:
        print(f"stopped the server at {stopped.base_url}; unfinished jobs continue at the next start")
    return 0
