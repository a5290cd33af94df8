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
import json
import logging
import os
import re
import sys
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias

import voxframe
from voxframe import _progress as progress
from voxframe._arguments import Parser, count, define, folder
from voxframe._text import one_line, quantity
from voxframe.client import command_mode
from voxframe.errors import (
    AudioError,
    CorpusError,
    MissingExtraError,
    OptionError,
    PayloadError,
    SettingsError,
    VoxframeError,
)
from voxframe.validators import nearest

if TYPE_CHECKING:
    import pandas as pd

    from voxframe.corpus import Corpus

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
    **dict.fromkeys("demo transcribe submit sync jobs options list stream server".split(), "service"),
    **dict.fromkeys("add metadata tables search summarize people export snapshot delete subtitles".split(), "corpus"),
    **dict.fromkeys(("models", "doctor"), "installation"),
    **{name: name for name in ("docs", "mcp")},
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
    """Return the parser; only the chosen commands have their arguments, which imports their modules."""
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
    flags = {("-q", "--quiet"): "print only results and errors", ("-v", "--verbose"): "show each request"}
    for command in (parser, *_subparsers(parser)):
        for names, help_line in flags.items():
            command.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=help_line)
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


_SHOWN_VALUES = 8  # values of a metadata column named in an error
#: COLUMN=VALUE: no operator, quote or bracket before the equals sign, and no blank directly before it.
_METADATA_PAIR = re.compile(r"([^=!<>'\"\[]*[^=!<>'\"\[\s])=(?!=)(.*)", re.DOTALL)
#: Rows of a table that are printed as text if no number is given.
TEXT_ROWS = 20
_CELL = 48

# Unicode direction marks, which can make a line look like different text.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


#: The option of a command that works on a whole corpus.
CorpusOption: TypeAlias = Annotated[Path | None, folder, "corpus (DIR): corpus directory (default: the default corpus)"]
JsonOption: TypeAlias = Annotated[bool, "json: Print JSON, one object per line."]
SpeakersOption: TypeAlias = Annotated[int | None, "speakers (N): number of speakers, if known (1 to 10)"]


@dataclass(frozen=True)
class JobOptions:
    """Options of transcription jobs.

    Args:
        no_speakers: Do not label speakers.
        option (NAME=VALUE): Option of the jobs.
    """

    speakers: SpeakersOption = None
    no_speakers: bool = False
    option: list[str] | None = None

    def values(self) -> dict[str, Any]:
        """Return the options by name. An --option is parsed as JSON if possible, otherwise it is text."""
        values: dict[str, Any] = {
            "speaker_labels": None if self.no_speakers else True,
            "speakers_expected": self.speakers,
        }
        for text in self.option or ():
            name, equals, value = text.partition("=")
            if not equals:
                raise OptionError(f"--option must be NAME=VALUE, such as -o auto_highlights=true, got {text!r}")
            try:
                values[name] = json.loads(value)
            except ValueError:
                values[name] = value
        return values


@dataclass(frozen=True)
class Output:
    """The form of a table.

    Args:
        rows (N): Print only the first N rows (default for text: 20).
        csv: Print every column as CSV.
        json: Print one JSON object per line.
    """

    rows: Annotated[int | None, count] = None
    csv: bool = False
    json: bool = False

    @property
    def is_text(self) -> bool:
        """True if the table is for people to read."""
        return not (self.csv or self.json)

    @property
    def shown(self) -> int:
        """Number of rows that are printed as text."""
        return TEXT_ROWS if self.rows is None else self.rows

    @property
    def limit(self) -> int | None:
        """Number of rows to get; None for all. Text needs one more than it shows, to tell that there are more."""
        return self.shown + 1 if self.is_text else self.rows

    def write(self, df: pd.DataFrame) -> None:
        """Print a table as text, or as CSV or JSON lines in the format of `voxframe export`.

        As text, rows of transcripts begin with the recording instead of the id, because all commands take names, and
        the number of further rows follows.
        """
        if self.is_text:
            _write_text(df, self.shown)
            return
        table = df if self.rows is None else df.head(self.rows)
        is_terminal = sys.stdout.isatty()
        if is_terminal:  # data must not control a terminal; files and pipes get it unchanged
            table = table.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
        from voxframe.export.table_writer import arrow, text_of

        losses: Counter[str] = Counter()
        data = text_of(arrow(table, losses), "jsonl" if self.json else "csv", losses)
        if is_terminal or not isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.write(data.decode())
        else:  # as bytes: other encodings lack characters, and Windows changes line ends inside texts
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        for reason, number in (+losses).items():  # without zeros
            sys.stderr.write(f"voxframe: {number} {reason}\n")


def isolated(text: str) -> str:
    """Return a text that keeps its place among columns: right-to-left text is in Unicode's isolates."""
    is_turned = not text.isascii() and any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
    return f"\u2068{text}\u2069" if is_turned else text


def _write_text(df: pd.DataFrame, rows: int) -> None:
    if df.empty:
        print("no rows")
        return
    if "transcript_id" in df.columns:
        from voxframe.analysis.grouping import recordings_of

        names = recordings_of(df, distinct=True)
        df = df.drop(columns=["recording", "transcript_id"], errors="ignore")
        df.insert(0, "recording", names)
    head = df.head(rows)
    if len(head):
        cells = head.map(lambda cell: isolated(shorten(plain(cell), _CELL)) if isinstance(cell, str) else cell)
        print(cells.astype(object).where(cells.notna(), "").to_string(index=False))
    if len(head) < len(df):
        print(f"... {quantity(len(df) - len(head), 'more row')}; --rows N prints N rows, --csv or --json all")


@dataclass(frozen=True)
class Selected:
    """The transcripts of a corpus that a command works on.

    Args:
        id (ID): Only this transcript, by id or recording.
        where (CONDITION): Only transcripts with this metadata, as COLUMN=VALUE, or that meet a condition on metadata
            and columns of the table transcripts, such as 'audio_duration_s > 60 and year == 2026'.
    """

    corpus: CorpusOption = None
    id: list[str] | None = None
    where: list[str] | None = None

    def parts(self, corpus: Corpus) -> tuple[list[str] | None, str | None]:
        """Return the ids by --id and COLUMN=VALUE, None for all, and other conditions for `Corpus.table(where=)`."""
        matches = [(condition, _METADATA_PAIR.fullmatch(condition)) for condition in self.where or ()]
        texts = [condition for condition, match in matches if not match]
        where = texts[0] if len(texts) == 1 else " and ".join(f"({text}\n)" for text in texts) or None
        if len(texts) == len(matches):
            return self.id, where
        metadata = corpus.metadata.get(self.id)
        rows = metadata
        for name, value in (match.groups() for _, match in matches if match):
            if name not in metadata.columns:
                columns = ", ".join(metadata.columns[1:]) or "none"
                raise CorpusError(f"there is no metadata column {name!r}; the columns are: {columns}")
            values = metadata[name].astype("string")
            if not values.eq(value).any():
                distinct = values.dropna().unique().tolist()
                few = len(distinct) <= _SHOWN_VALUES
                listed = f"{'the' if few else 'some'} values are {', '.join(distinct[:_SHOWN_VALUES]) or '(none)'}"
                raise CorpusError(f"no transcript meets {name}={value}{nearest(value, distinct)}; {listed}")
            rows = rows[values.loc[rows.index].eq(value).fillna(False)]
        return self._not_empty(rows["transcript_id"].to_list()), where

    def ids(self, corpus: Corpus) -> list[str] | None:
        """Return the ids of the transcripts; None for all."""
        ids, where = self.parts(corpus)
        if where is None:
            return ids
        rows = corpus.table("transcripts", ids, columns=["transcript_id"], where=where)
        return self._not_empty(rows["transcript_id"].to_list())

    def _not_empty(self, ids: list[str]) -> list[str]:
        if not ids:
            conditions = " and ".join(self.where or ())
            raise CorpusError(f"no transcript meets {conditions}; change or leave out a --where")
        return ids


def open_corpus(directory: str | Path | None) -> Corpus:
    """Return the corpus in a directory; None for the default corpus."""
    from voxframe.corpus import Corpus

    corpus = Corpus(directory)
    if not corpus.path.joinpath("raw").is_dir():
        if corpus.path.joinpath("catalog.sqlite").exists():
            raise CorpusError(f"the corpus {corpus.path} has no transcripts yet; `voxframe sync` fetches them")
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe transcribe`, `submit` and `add` create one")
    return corpus


def read_table(path: Path, argument: str) -> pd.DataFrame:
    """Return the table in a CSV or Parquet file; the message of an error names the argument.

    Columns of a CSV file are separated by commas, semicolons (as spreadsheets write it) or tabs.
    """
    import pandas as pd

    from voxframe.corpus.media import SOURCE_COLUMNS

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        heads = pd.read_csv(path, nrows=0).columns
        separator = next((sign for sign in ";\t" if len(heads) == 1 and sign in heads[0]), ",")
        # As text, even if all values are digits: a recording "0012" is not number 12.
        texts = dict.fromkeys(("transcript_id", "recording", *SOURCE_COLUMNS), "str")
        return pd.read_csv(path, sep=separator, dtype=texts)
    except (OSError, ValueError) as error:  # pandas raises ValueErrors for invalid files
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"{argument} {str(path)!r} cannot be read: {reason}") from None


def report(text: str, fields: Mapping[str, object], *, as_json: bool, always: bool = True) -> None:
    """Print a result as JSON or as text; text that is not printed `always` is left out with --quiet."""
    if as_json:
        print(json.dumps(fields), flush=True)
    elif always or not progress.quiet:
        print(text, flush=True)


def plain(text: object) -> str:
    r"""Return text on one line that is safe to print. White space becomes spaces; control characters are removed.

    Example:
        >>> plain("a\x1b[31m\tb\n")
        'a[31m b'
    """
    return "".join(c for c in one_line(str(text)) if c not in _TURNING)


def shorten(text: str, width: int) -> str:
    """Return the text, cut to `width` characters with an ellipsis if it is longer."""
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…"


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> str:
    """Return rows as lines with aligned columns: numbers to the right, text to the left."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    right = [_is_number(rows[-1][n]) for n in range(len(cells[0]))]
    lines = []
    for row in cells:
        parts = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        lines.append(indent + "  ".join(parts).rstrip())
    return "\n".join(lines)


#: Parameters of the Python interface whose options have another name.
_PARAMETERS = {
    "chars_per_caption": "--chars",
    "ids": "--id",
    "pii_types": "--pii-type",
    "speakers_expected": "--speakers",
    "tables": "--table",
    "version": "--verify",
}
#: Calls in messages of the Python interface, as patterns, and the commands that do the same.
_TERMS = [
    (r"\b(?:client|Client)\.list\(\)", "`voxframe list`"),
    (r"\b(?:[Cc]orpus\.)?retry\(failed=True\)", "`voxframe submit --failed`"),
    (r"\b(?:[Cc]orpus\.)?retry\(uncertain=True\)", "`voxframe submit --uncertain`"),
    (r"\bsubmit\(\.\.\.\)(?: or retry\(\))?", "`voxframe submit`"),
    (
        r"\bsync\(\) fetches them once they are finished",
        "`voxframe sync --wait` waits until they are finished and fetches them",
    ),
    (r"\b(?:[Cc]orpus\.)?(submit|sync|jobs)\(\)", r"`voxframe \1`"),
    (r"\bCall adopt\(\)", "Run `voxframe sync --adopt`"),
    (r"\b[Cc]orpus\.ids\(\)", "`voxframe tables --table transcripts`"),
    (r"\b[Cc]orpus\.unanswered\(\)", "`voxframe doctor`"),
    (r"\b[Cc]orpus\.snapshots\.create\(\)", "`voxframe snapshot`"),
    (r"\bCorpus\.submit and Corpus\.add create", "`voxframe transcribe`, `submit` and `add` create"),
    (r"\bvoxframe\.export\.write\(df, directory, '(\w+)'\)", r"`voxframe export DIRECTORY --format \1`"),
    (r"\bCall connect\(\) to restart", "Run the command again to restart"),
    (r"after the next connect\(\); then client\.wait\('[^']*'\) waits", "at the next command, which waits"),
    (r"client\.wait\('[^']*'\) waits for it again", "run the command again to wait for it"),
    (r"\bgive connect\([a-z_]+=[^)]*\) or set\b", "set"),
    (r"\bconnect\([a-z_]+=[^)]*\) or\b", ""),
    (r"\bCheck base_url\b", "Check VOXFRAME_BASE_URL"),
    (r"\bWithout any of them, connect\(\) uses", "Without any of them, voxframe uses"),
    (r"\bgive it as [a-z_]+='[^']*', or in\b", "give it in"),
    (r"\bgive another data_dir, or set (\w+)", r"set \1 to another directory"),
    (r"\bvoxframe\.load_transcripts has\b", "`voxframe tables --table transcripts` has"),
    (r"`?\bvoxframe\.describe\((['\"])options\1\)`?", "`voxframe options`"),
    (r"\bvoxframe\.describe\((['\"])(language_code|redact_pii_policies)\1\)", r"`voxframe options \2`"),
    (r"\ba DataFrame of recordings must\b", "the file given as --sources must"),
    (r"\bmetadata must be a DataFrame with a column\b", "FILE must have a column"),
    (r", or leave it out with df\.drop\(columns=\.\.\.\)", ", or remove it from the file"),
    (r"`extra_body=\{\.\.\.\}`", "`-o 'extra_body={...}'`"),
    (r"\b(with) ([a-z_]+)=True\b", r"\1 -o \2=true"),
    (r"\bcorpus\.metadata\.set adds\b", "`voxframe metadata` adds"),
    (
        r"\bvoxframe\.tables\('[^']*', client=client, corpus=corpus\) fetches it",
        "`voxframe sync --adopt` fetches others",
    ),
]


def in_command_terms(message: str, options: Iterable[str] = ()) -> str:
    """Return a message of the Python interface with the commands and options that do the same.

    Args:
        options: Options of the command. A parameter such as `by` is recognised in "by=" and "by must"; one with an
            underscore, such as `sample_rate`, anywhere but in quotes, where it is a value.

    Example:
        >>> in_command_terms("jobs() shows the reasons; retry(failed=True) submits them again")
        '`voxframe jobs` shows the reasons; `voxframe submit --failed` submits them again'
        >>> in_command_terms("by must be a column; leave partition_by out", ["--by", "--partition-by"])
        '--by must be a column; leave --partition-by out'
    """
    for pattern, replacement in _TERMS:
        message = re.sub(pattern, replacement, message)
    option_of = {option[2:].replace("-", "_"): option for option in options if option.startswith("--")}
    option_of |= {name: option for name, option in _PARAMETERS.items() if option in option_of.values()}
    for name, option in option_of.items():
        places = [rf"{name}=(?:True\b)?", rf"(?:^|(?<=: )){name}(?= must\b)"]
        places += [rf"{name}\b(?!['\"])"] * ("_" in name)
        message = re.sub(rf"(?<![\w'\"./?&-]){name}=(?=['\"\[])", f"{option} ", message)
        message = re.sub(rf"(?<![\w'\"./?&-])(?:{'|'.join(places)})", option, message)
    return message


def note(line: str) -> None:
    """Print a line about the progress of a command on stderr, except with --quiet."""
    if not progress.quiet:
        sys.stderr.write(f"{line}\n")


def summary(line: str) -> None:
    """Print a line about what a command has done on stdout, except with --quiet, which leaves results and errors."""
    if not progress.quiet:
        print(line, flush=True)


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and cell[:1].isdigit())
