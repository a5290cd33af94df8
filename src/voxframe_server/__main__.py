"""Command line `python -m voxframe_server`, which is also `voxframe serve`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from voxframe.errors import MissingExtraError, SettingsError
from voxframe_server.server import serve


def main(
    argv: Sequence[str] | None = None, parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser
) -> int:
    """Parse the command line and run the server.

    Args:
        argv: Arguments without the program's name. None (default): those of the process.
    """
    given = vars(make_parser(parser_class).parse_args(argv))
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        serve(**given)
    except (SettingsError, MissingExtraError) as error:
        sys.stderr.write(f"voxframe serve: {error}\n")
        return 2
    except KeyboardInterrupt:
        pass
    _end_at_once()
    return 0


def make_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of `voxframe serve`."""
    parser = parser_class(prog="voxframe serve", description="Run the embedded speech service on this machine.")
    _add_arguments(parser)
    parser.add_argument("--parent-pipe", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shared-for", type=_seconds, help=argparse.SUPPRESS)
    return parser


def _end_at_once() -> None:
    """End the process even if a thread still waits, for example for a language model.

    All data is stored by now; a normal exit would wait for the thread.
    """
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def _amount(text: str) -> float:
    """Return a number of at least 0."""
    amount = _number(text)
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return amount


def _seconds(text: str) -> float:
    """Return a number above 0."""
    seconds = _number(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `voxframe serve`. Their names are those of the parameters of `serve`."""
    parser.add_argument("--host", default="127.0.0.1", help="host to bind (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to bind, 0 for a free one (default: 8000)")
    parser.add_argument("--data-dir", type=Path, help="directory of jobs, media, results and the key")
    parser.add_argument(
        "--api-key", help="API key of the server; VOXFRAME_API_KEY is safer, because other processes cannot see it"
    )
    parser.add_argument(
        "--engine",
        metavar="NAME",
        help="speech engine: whisper, sphinx, or an installed one (VOXFRAME_ENGINE, whisper)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="default model, also for speech_model best: a directory, or a name to download such as small or "
        "Systran/faster-whisper-small (VOXFRAME_MODEL; whisper: base, and tiny.en for English with nano)",
    )
    parser.add_argument(
        "--nano-model", metavar="MODEL", help="model for speech_model nano (VOXFRAME_MODEL_NANO, else --model)"
    )
    parser.add_argument("--llm-prefix", help="first path segment of the language-model endpoints (default: llm)")
    parser.add_argument(
        "--llm-url",
        metavar="URL",
        help="URL of an OpenAI-compatible language model such as http://127.0.0.1:11434/v1; its key goes into "
        "VOXFRAME_LLM_KEY (default: VOXFRAME_LLM_URL, else responses quote the transcripts)",
    )
    parser.add_argument("--llm-model", metavar="NAME", help="name of the model (default: VOXFRAME_LLM_MODEL)")
    parser.add_argument(
        "--llm-window",
        type=_count,
        metavar="TOKENS",
        help="size of its context window in tokens (default: VOXFRAME_LLM_WINDOW, 16000)",
    )
    parser.add_argument(
        "--writer",
        metavar="PATH",
        help="GGUF file of a model that writes on this machine, if there is no --llm-url; off for none (default: "
        "VOXFRAME_WRITER, else that of `voxframe models get writer` if it is here)",
    )
    parser.add_argument(
        "--llm-requests",
        type=_count,
        metavar="N",
        help="language-model requests per minute; 0 for no limit (default: 30)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="allow fetching media from this origin, and notifying it, although it is not public; for example "
        "http://127.0.0.1:9000; may be repeated",
    )
    parser.add_argument(
        "--keep-days",
        type=_amount,
        metavar="DAYS",
        help="remove uploads and media of finished jobs after this number of days (default: 30); transcripts are kept",
    )
    parser.add_argument(
        "--keep-gb",
        type=_amount,
        metavar="GB",
        help="remove the oldest media while its total size is larger (default: 20)",
    )
    parser.add_argument(
        "--webhook-interval",
        type=_seconds,
        metavar="SECONDS",
        help="time between two attempts of a notification (default: 10)",
    )


if __name__ == "__main__":
    sys.exit(main())
