"""Arguments and output that the commands share."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxframe._text import quantity
from voxframe.client import progress
from voxframe.errors import CorpusError, OptionError
from voxframe.validators import nearest

if TYPE_CHECKING:  # `voxframe models` needs no pandas
    import pandas as pd

    from voxframe.corpus import Corpus


#: Characters in a line of a description that argparse does not wrap.
_HELP_WIDTH = 100


def define(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
    description: str,
    epilog: str | None = None,
) -> None:
    """Set the action and the help of a command. argparse wraps its texts, but not an epilog of several lines.

    Args:
        parser: Parser of the command.
        run: Takes the parsed arguments and returns the exit status.
        description: Text at the start of its help.
        epilog: Text at the end of its help.
    """
    if epilog is not None and "\n" in epilog:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        description = textwrap.fill(description, _HELP_WIDTH)
    parser.description, parser.epilog = description, epilog
    parser.set_defaults(run=run)


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add --corpus."""
    parser.add_argument("--corpus", type=folder, metavar="DIR", help="corpus directory (default: the default corpus)")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add --corpus, and --id and --where, which select transcripts."""
    add_corpus(parser)
    parser.add_argument(
        "--id", action="append", metavar="ID", help="only this transcript, by id or recording; may be repeated"
    )
    parser.add_argument(
        "--where",
        action="append",
        metavar="CONDITION",
        help="only transcripts with this metadata, as COLUMN=VALUE, or that meet a condition on metadata and columns "
        "of the table transcripts, such as 'audio_duration_s > 60 and year == 2026'; may be repeated",
    )


def add_speakers(parser: argparse.ArgumentParser) -> None:
    """Add --speakers."""
    parser.add_argument("--speakers", type=whole, metavar="N", help="number of speakers, if known (1 to 10)")


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add --speakers, --no-speakers and --option."""
    add_speakers(parser)
    parser.add_argument("--no-speakers", action="store_true", help="do not label speakers")
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the jobs; may be repeated"
    )


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add --rows."""
    parser.add_argument("--rows", type=_count, metavar="N", help="print only the first N rows (default for text: 20)")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add --rows, --csv and --json."""
    add_rows(parser)
    parser.add_argument("--csv", dest="form", action="store_const", const="csv", help="print every column as CSV")
    parser.add_argument(
        "--json", dest="form", action="store_const", const="json", help="print one JSON object per line"
    )
    parser.set_defaults(form="text")


def open_corpus(directory: str | Path | None) -> Corpus:
    """Return the corpus in a directory; None for the default corpus.

    Raises:
        CorpusError: There is no corpus in the directory, or no transcript was fetched yet.
    """
    from voxframe.corpus import Corpus

    corpus = Corpus(directory)
    if not corpus.path.joinpath("raw").is_dir():
        if corpus.path.joinpath("catalog.sqlite").exists():
            raise CorpusError(f"the corpus {corpus.path} has no transcripts yet; `voxframe sync` fetches them")
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe transcribe`, `submit` and `add` create one")
    return corpus


_SHOWN_VALUES = 8  # values of a metadata column named in an error
#: COLUMN=VALUE: no operator, quote or bracket before the equals sign, and no blank directly before it.
_METADATA_PAIR = re.compile(r"([^=!<>'\"\[]*[^=!<>'\"\[\s])=(?!=)(.*)", re.DOTALL)


def selection(corpus: Corpus, given: argparse.Namespace) -> tuple[list[str] | None, str | None]:
    """Return what the arguments of `add_selection` select.

    Returns:
        Ids by --id and COLUMN=VALUE, None for all, and the other conditions as `Corpus.table(where=)` takes them.

    Raises:
        CorpusError: A metadata column does not exist, or no transcript has the values.
    """
    pairs, texts = [], []
    for condition in given.where or ():
        if found := _METADATA_PAIR.fullmatch(condition):
            pairs.append(found.groups())
        else:
            texts.append(condition)
    where = texts[0] if len(texts) == 1 else " and ".join(f"({text}\n)" for text in texts) or None
    if not pairs:
        return given.id, where
    metadata = corpus.metadata.get(given.id)
    chosen = metadata
    for name, value in pairs:
        if name not in metadata.columns:
            columns = ", ".join(metadata.columns[1:]) or "none"
            raise CorpusError(f"there is no metadata column {name!r}; the columns are: {columns}")
        values = metadata[name].astype("string")
        if not values.eq(value).any():
            known = values.dropna().unique().tolist()
            some = (
                f"some values are {', '.join(known[:_SHOWN_VALUES])}"
                if len(known) > _SHOWN_VALUES
                else (f"the values are {', '.join(known) or '(none)'}")
            )
            raise CorpusError(f"no transcript meets {name}={value}{nearest(value, known)}; {some}")
        chosen = chosen[values.loc[chosen.index].eq(value).fillna(False)]
    return _not_empty(chosen["transcript_id"].to_list(), given), where


def _not_empty(ids: list[str], given: argparse.Namespace) -> list[str]:
    """Return the ids of selected transcripts, of which there must be one.

    Raises:
        CorpusError: There are none.
    """
    if not ids:
        raise CorpusError(f"no transcript meets {' and '.join(given.where)}; change or leave out a --where")
    return ids


def selected_ids(corpus: Corpus, given: argparse.Namespace) -> list[str] | None:
    """Return the transcript ids that the arguments of `add_selection` select. None: all.

    Raises:
        CorpusError: A column does not exist, a condition is invalid, or no transcript meets the conditions.
    """
    ids, where = selection(corpus, given)
    if where is None:
        return ids
    chosen = corpus.table("transcripts", ids, columns=["transcript_id"], where=where)
    return _not_empty(chosen["transcript_id"].to_list(), given)


def job_options(given: argparse.Namespace) -> dict[str, Any]:
    """Return the job options in the arguments of `add_job_options`.

    Raises:
        OptionError: An --option is not NAME=VALUE.
    """
    options = {"speaker_labels": None if given.no_speakers else True, "speakers_expected": given.speakers}
    return options | dict(_parse_option(text) for text in given.option)


def _parse_option(text: str) -> tuple[str, Any]:
    """Return the name and value of NAME=VALUE. The value is parsed as JSON if possible, otherwise it is text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--option must be NAME=VALUE, such as -o auto_highlights=true, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def whole(text: str) -> int:
    """Convert an argument to a whole number. The function that uses it checks its bounds."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def folder(text: str) -> Path:
    """Convert an argument to the path of a directory; an empty one, such as an unset variable, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("must be the path of a directory, got ''")
    return Path(text)


def _count(text: str) -> int:
    count = whole(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return count


#: Rows of a table that are printed as text if no number is given.
TEXT_ROWS = 20
_CELL = 48

# Unicode direction marks, which can make a line look like different text.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: object) -> str:
    r"""Return text on one line that is safe to print. White space becomes spaces; control characters are removed.

    Example:
        >>> plain("a\x1b[31m\tb\n")
        'a[31m b'
    """
    line = " ".join(str(text).split())
    return "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs") and c not in _TURNING)


def shorten(text: str, width: int) -> str:
    """Return the text, cut to `width` characters with an ellipsis if it is longer."""
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…"


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> str:
    """Return rows as lines with aligned columns: numbers to the right, text to the left.

    Args:
        rows: Rows of cells; the first row holds the headings. Format numbers before the call.
        indent: Start of each line.
    """
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


def write(df: pd.DataFrame, form: str, rows: int | None) -> None:
    """Print a table as text, or as CSV or JSON lines in the format of `voxframe export`.

    As text, rows of transcripts begin with the recording instead of the id, because all commands take names.

    Args:
        df: The table.
        form: "text", "csv" or "json" (one object per line). Files and pipes get the last two in UTF-8.
        rows: Maximum number of rows. None: all, or 20 as text. Text ends with the number of further rows.
    """
    if form == "text" and df.empty:
        print("no rows")
        return
    if form == "text" and "transcript_id" in df.columns:
        from voxframe.analysis.grouping import recordings_of

        names = recordings_of(df, distinct=True)
        df = df.drop(columns=["recording", "transcript_id"], errors="ignore")
        df.insert(0, "recording", names)
    if form == "text":
        shown = df.head(TEXT_ROWS if rows is None else rows)
        if len(shown):
            cells = shown.map(lambda cell: shorten(plain(cell), _CELL) if isinstance(cell, str) else cell)
            print(cells.astype(object).where(cells.notna(), "").to_string(index=False))
        if len(shown) < len(df):
            print(f"... {quantity(len(df) - len(shown), 'more row')}; --rows N prints N rows, --csv or --json all")
        return
    whole = df if rows is None else df.head(rows)
    if sys.stdout.isatty():  # data must not control a terminal; files and pipes get it unchanged
        whole = whole.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
    from voxframe.export.table_writer import arrow, text_of

    losses: Counter[str] = Counter()
    data = text_of(arrow(whole, losses), "csv" if form == "csv" else "jsonl", losses)
    if sys.stdout.isatty() or not isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.write(data.decode())
    else:  # as bytes: other encodings lack characters, and Windows changes line ends inside texts
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    for reason, count in (+losses).items():  # without zeros
        sys.stderr.write(f"voxframe: {count} {reason}\n")


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
        message: The message.
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
    known = {option[2:].replace("-", "_"): option for option in options if option.startswith("--")}
    known |= {name: option for name, option in _PARAMETERS.items() if option in known.values()}
    for name, option in known.items():
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
