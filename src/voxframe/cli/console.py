"""Arguments and output that the commands share."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from voxframe._arguments import count, folder
from voxframe._text import quantity
from voxframe.client import progress
from voxframe.errors import CorpusError, OptionError
from voxframe.validators import nearest

if TYPE_CHECKING:  # `voxframe models` needs no pandas
    import pandas as pd

    from voxframe.corpus import Corpus


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
