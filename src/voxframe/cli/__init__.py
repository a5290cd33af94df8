"""The command `voxframe`: one module a subcommand, each imported when it is asked for.

Exit status: 0 done; 1 the work failed (a transcript, the service, the disk); 2 what was asked for cannot be done as
it was asked (a file that is no audio, an option, a setting); 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import voxframe
from voxframe.cli.arguments import add_corpus, add_rows, add_speakers
from voxframe.cli.batch import add_arguments as add_batch_arguments
from voxframe.cli.results import add_arguments as add_result_arguments
from voxframe.errors import AudioError, MissingExtraError, OptionError, PayloadError, SettingsError, VoxframeError

_ASKED_WRONGLY = (AudioError, MissingExtraError, OptionError, PayloadError, SettingsError)

_EPILOG = """\
environment:
  VOXFRAME_BASE_URL   address of a hosted service; without it the embedded one is used
  VOXFRAME_API_KEY    its key
  VOXFRAME_DATA_DIR   where the default corpus and the embedded service keep their data
"""

_COMPLETION_EPILOG = """\
bash: put into ~/.bashrc       eval "$(voxframe completion bash)"
zsh:  into a folder of $fpath  voxframe completion zsh > ~/.zfunc/_voxframe
tcsh: into a file to source    voxframe completion tcsh > ~/.voxframe.completion.csh
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments without the program's name; None takes those of the process.

    Returns:
        Exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character gets "?", not a traceback
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from voxframe.local.start import main as serve

        return serve(arguments[1:])
    parser = _parser()
    given, unknown = parser.parse_known_args(arguments)
    if unknown:  # argparse would name the help of the whole program
        name = f"voxframe {given.command}"
        parser.exit(2, f"{name}: there is no argument {unknown[0]}; `{name} --help` says what it takes\n")
    run: Callable[[argparse.Namespace], int] = given.run
    try:
        return run(given)
    except VoxframeError as e:
        sys.stderr.write("\n".join([f"voxframe {given.command}: {e}", *getattr(e, "__notes__", [])]) + "\n")
        return 2 if isinstance(e, _ASKED_WRONGLY) else 1
    except KeyboardInterrupt:
        sys.stderr.write(f"\nvoxframe {given.command}: stopped; run it again to go on\n")
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, and where to read on."""
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` says what it takes\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        print(f"voxframe {voxframe.__version__}")  # read only now: finding the version takes as long as all the rest
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="voxframe",
        description="Speech to tidy tables: transcribe recordings, keep them as Parquet, look at them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="a recording to tables and a picture, with no key and no network",
        description="Transcribe a recording with the embedded service, write every table as Parquet, print who said "
        "what, and draw a speaker timeline. A second run reads what the first one wrote.",
    )
    demo.add_argument(
        "audio",
        nargs="?",
        metavar="AUDIO",
        help="wav, mp3, m4a, flac, ogg, mp4 ...; without it, an interview of two minutes that comes with voxframe",
    )
    demo.add_argument("--out", type=Path, default=Path("voxframe-demo"), metavar="DIR", help="default: ./voxframe-demo")
    add_speakers(demo)
    demo.set_defaults(run=_demo)

    commands.add_parser("serve", help="run the embedded service", add_help=False)  # main hands its arguments on

    transcribe = commands.add_parser(
        "transcribe",
        help="transcribe recordings into a corpus",
        description="Transcribe files or web addresses and keep them in a corpus. What is there already with the same "
        "options is not sent again. Uses the hosted service that VOXFRAME_BASE_URL names, else the embedded one.",
        epilog="-o takes any option of a job, its value as JSON or text: -o auto_highlights=true "
        "-o word_boost='[\"voxframe\"]' -o language_code=en_uk. `voxframe.options.TranscriptOptions` lists them.",
    )
    transcribe.add_argument("audio", nargs="+", metavar="AUDIO", help="audio or video files, or http(s) addresses")
    add_corpus(transcribe)
    add_speakers(transcribe)
    transcribe.add_argument("--no-speakers", action="store_true", help="do not tell speakers apart")
    transcribe.add_argument(
        "-o", "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the job; may be repeated"
    )
    transcribe.add_argument(
        "--resend", action="store_true", help="send again even what was sent before (a hosted service charges again)"
    )
    transcribe.set_defaults(run=_transcribe)

    add_batch_arguments(commands)

    tables = commands.add_parser(
        "tables",
        help="show the tables of a corpus or of a payload file",
        description="Without --table: the rows of each table. With it: the table itself.",
    )
    tables.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="corpus directory, or .json or .json.zst payload; default: the default corpus",
    )
    tables.add_argument("--table", metavar="NAME", help="table to show, such as words")
    tables.add_argument(
        "--format", choices=("text", "csv", "json"), default="text", help="json is one object a line (default: text)"
    )
    tables.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    add_rows(tables)
    tables.set_defaults(run=_tables)

    add_result_arguments(commands)

    doctor = commands.add_parser(
        "doctor",
        help="check this installation",
        description="Check versions, optional parts, settings, disk, corpus, key and service, and say what to do.",
        epilog="exit status: 0 all is well; 1 something is not",
    )
    add_corpus(doctor)
    doctor.add_argument("--json", action="store_true", help="one JSON object a check")
    doctor.set_defaults(run=_doctor)

    completion = commands.add_parser(
        "completion",
        help="print what a shell needs to complete commands and options",
        description="Print a completion script.",
        epilog=_COMPLETION_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(run=_completion)
    return parser


def _demo(given: argparse.Namespace) -> int:
    from voxframe.cli.demo import demo

    return demo(given.audio, given.out, given.speakers)


def _transcribe(given: argparse.Namespace) -> int:
    from voxframe.cli.transcribe import transcribe

    options = {"speaker_labels": None if given.no_speakers else True, "speakers_expected": given.speakers}
    return transcribe(given.audio, given.corpus, options, given.option, resend=given.resend)


def _tables(given: argparse.Namespace) -> int:
    from voxframe.cli.tables import tables

    return tables(given.source, given.table, given.format, given.rows)


def _doctor(given: argparse.Namespace) -> int:
    from voxframe.cli.doctor import doctor

    return doctor(given.corpus, as_json=given.json)


def _completion(given: argparse.Namespace) -> int:
    from voxframe.cli.completion import completion

    return completion(_parser(), given.shell)
