"""The command `voxframe`. The module of a subcommand is imported only when that command runs.

A command is the function of its name, whose signature and docstring are its arguments and help. It returns the exit
status, None for 0, or raises an error, which `main` prints.

Exit status: 0 success; 1 the work failed (a transcript, the service, the disk); 2 invalid arguments, input or settings;
130 interrupted with Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from typing import Any, Literal, NoReturn

import voxframe
from voxframe._arguments import Parser, define
from voxframe.cli.console import in_command_terms
from voxframe.client import command_mode
from voxframe.errors import AudioError, MissingExtraError, OptionError, PayloadError, SettingsError, VoxframeError
from voxframe.validators import nearest

_USAGE_ERRORS = (AudioError, MissingExtraError, OptionError, PayloadError, SettingsError)

_EPILOG = """\
Files, queries and names of recordings are arguments; everything else is an option, in any order. Each command that
reads or writes a corpus takes --corpus DIR; without it, it uses the default corpus.

environment:
  VOXFRAME_BASE_URL     URL of a hosted service (default: the embedded server)
  VOXFRAME_API_KEY      API key of the hosted service
  VOXFRAME_DATA_DIR     data directory of the default corpus and the embedded server
  VOXFRAME_MODEL_CACHE  directory for downloaded models
  VOXFRAME_OFFLINE      1: never download models
"""

#: Commands with their help lines, in the order of `voxframe --help`.
COMMANDS = {
    "demo": "turn a recording into tables and a plot, with the embedded server and without a key",
    "serve": "run the embedded server",
    "transcribe": "transcribe recordings into a corpus",
    "submit": "submit many recordings, each only once, without waiting",
    "sync": "fetch finished transcripts from the service",
    "jobs": "show submitted jobs and their states",
    "options": "list the options of a job",
    "add": "add transcripts that you have as files to a corpus",
    "metadata": "show or set columns about recordings, such as customer",
    "tables": "show the tables of a corpus or of a payload file",
    "search": "find words and phrases in a corpus, with context",
    "summarize": "summarize a corpus or ask questions about it",
    "people": "name speakers, and state which people they are",
    "export": "write a corpus to files that other tools read",
    "snapshot": "create or verify a read-only version of a corpus",
    "list": "list the transcripts at the service",
    "delete": "delete transcripts from a corpus, and on request at the service",
    "subtitles": "write captions of transcripts",
    "stream": "transcribe a microphone or a recording while it plays",
    "server": "show or stop the server that commands share",
    "models": "list, download, verify or remove model files",
    "mcp": "serve a corpus to an assistant (Model Context Protocol)",
    "docs": "open the reference of this version in a browser",
    "doctor": "check this installation",
    "completion": "print a shell completion script",
}
#: Modules of the commands that are not here.
_MODULES = {
    **dict.fromkeys(("transcribe", "submit", "sync", "jobs", "options", "add", "metadata"), "transcription"),
    **dict.fromkeys(("tables", "search", "summarize", "people"), "exploration"),
    **dict.fromkeys(("export", "snapshot", "subtitles"), "datasets"),
    **dict.fromkeys(("list", "delete", "stream", "server"), "service"),
    **dict.fromkeys(("models", "doctor"), "installation"),
    **{name: name for name in ("demo", "docs", "mcp")},
}

_START = """\
voxframe turns speech into tidy tables. Commands to start with:

  voxframe demo                    see what it does, with a recording that is included
  voxframe transcribe call.mp3     transcribe recordings into a corpus
  voxframe tables --table words    read the tables of the corpus
  voxframe search 'money back'     find words and phrases, with context
  voxframe docs                    open the reference: commands, Python, tables, options, errors

`voxframe --help` lists all commands, and `voxframe COMMAND --help` explains one."""

_FLAGS = frozenset({"-q", "--quiet", "-v", "--verbose"})

#: The action of a command that is given without one.
_SHOWN = {"models": "list", "server": "status"}
#: Placeholders of arguments that are files.
_FILES = frozenset({"AUDIO", "FILE", "SOURCE", "TARGET"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character gets "?", not a traceback
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        print(_START)
        return 0
    flags = list(takewhile(_FLAGS.__contains__, arguments))
    arguments = arguments[len(flags) :]  # `voxframe -q sync` is `voxframe sync -q`
    has_action = bool({"-h", "--help"}.intersection(arguments)) or any(not a.startswith("-") for a in arguments[1:])
    if arguments and arguments[0] in _SHOWN and not has_action:
        arguments.insert(1, _SHOWN[arguments[0]])
    arguments[1:1] = flags
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(f"\nvoxframe {arguments[0]}: interrupted; run the command again to continue\n")
        return 130
    except BrokenPipeError:  # the reader of the pipe, such as `head`, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: Sequence[str]) -> int:
    """Run a command with its arguments, and return its exit status."""
    if arguments[0] == "serve":
        from voxframe_server.__main__ import main as serve

        return serve(arguments[1:])
    parser = build_parser([name for name in arguments[:1] if name in COMMANDS])
    values, unknown = argparse.Namespace(command=""), list(arguments[:1])
    if not arguments[0].startswith("-") or any(o.startswith(arguments[0]) for o in parser._option_string_actions):
        command = next(
            (candidate for candidate in _subparsers(parser) if candidate.prog == f"voxframe {arguments[0]}"), None
        )
        if command is None or any(_subparsers(command)):
            values, unknown = parser.parse_known_args(arguments)
        else:  # recordings may stand before and after options
            values, unknown = command.parse_known_intermixed_args(arguments[1:])
            values.command = arguments[0]
    options = [option for candidate in (parser, *_subparsers(parser)) for option in candidate._option_string_actions]
    if unknown:  # argparse would refer to the help of the whole program
        from voxframe.options import TranscriptOptions

        name = f"voxframe {values.command}".rstrip()
        asked = unknown[0].partition("=")[0]
        of_job = asked.lstrip("-").replace("-", "_")
        is_of_job = "--option" in options and of_job in TranscriptOptions.__annotations__
        near = f" (for jobs: -o {of_job}=VALUE)" if is_of_job else nearest(asked, options)
        parser.exit(2, f"{name}: unknown argument {unknown[0]}{near}; `{name} --help` lists the arguments\n")
    run: Callable[[argparse.Namespace], int] = values.run
    show = warnings.showwarning

    def show_plainly(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        """Show a warning for users without the line of Python code that caused it."""
        if issubclass(category, UserWarning):
            sys.stderr.write(in_command_terms(f"voxframe {values.command}: {message}", options) + "\n")
        else:
            show(message, category, *place, **more)

    try:
        with (
            command_mode(quiet="quiet" in values),
            _logging() if "verbose" in values else nullcontext(),
            warnings.catch_warnings(),
        ):
            warnings.showwarning = show_plainly
            return run(values)
    except VoxframeError as e:
        message = "\n".join([f"voxframe {values.command}: {e}", *getattr(e, "__notes__", [])])
        sys.stderr.write(in_command_terms(message, options) + "\n")
        return 2 if isinstance(e, _USAGE_ERRORS) else 1


@contextmanager
def _logging() -> Iterator[None]:
    """Show requests, retries and their times on stderr. No log line of voxframe contains a key."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    log = logging.getLogger("voxframe")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        print(f"voxframe {voxframe.__version__}")  # read only here, because looking up the version is slow
        parser.exit()


def build_parser(chosen: Iterable[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        chosen: Commands to add with their arguments, which imports their modules. The others only get a help line.
    """
    parser = Parser(
        prog="voxframe",
        description="Turn speech into tidy tables: transcribe recordings, store them as Parquet, explore them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    for name, help_line in COMMANDS.items():
        if name == "serve" or name not in chosen:  # main passes the arguments of `serve` to the server
            commands.add_parser(name, help=help_line, add_help=False)
        else:
            module = vars(importlib.import_module(f"voxframe.cli.{_MODULES[name]}" if name in _MODULES else __name__))
            define(commands.add_parser(name, help=help_line), module.get(f"{name}_") or module[name])
    for command in (parser, *_subparsers(parser)):
        command.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print only results and errors",
        )
        command.add_argument(
            "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="show each request"
        )
    return parser


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from _subparsers(command)


def completion(shell: Literal["bash", "zsh", "tcsh"]) -> None:
    """Print a script that lets your shell complete voxframe commands, options and files.

    Examples:
      bash, in ~/.bashrc:            eval "$(voxframe completion bash)"
      zsh, in a directory of $fpath: voxframe completion zsh > ~/.zfunc/_voxframe
      tcsh, in a file to source:     voxframe completion tcsh > ~/.voxframe.completion.csh
    """
    import shtab

    parser = build_parser(COMMANDS)
    for action in (action for command in (parser, *_subparsers(parser)) for action in command._actions):
        if action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab reads this attribute
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
