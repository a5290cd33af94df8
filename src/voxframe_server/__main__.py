"""Command line `python -m voxframe_server`, which is also `voxframe serve`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence

from voxframe._arguments import Parser, define
from voxframe.errors import MissingExtraError, SettingsError
from voxframe_server.server import serve


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line of `voxframe serve`, run the server, and return the exit status."""
    arguments = make_parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        arguments.run(arguments)
    except (SettingsError, MissingExtraError) as error:
        sys.stderr.write(f"voxframe serve: {error}\n")
        return 2
    except KeyboardInterrupt:
        pass
    _end_at_once()
    return 0


def make_parser() -> Parser:
    """Return the parser of `voxframe serve`. The key of the language model is only read from the environment."""
    parser = Parser(prog="voxframe serve")
    define(parser, serve, without={"llm_key"})
    return parser


def _end_at_once() -> None:
    """End the process even if a thread still waits, for example for a language model. All data is stored by now."""
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
