"""Human-readable data dictionary: `voxframe.describe`, the definitions of measures, and the page `data/dictionary.md`.

Docstrings of measures in `voxframe.analysis` and `voxframe.compare` are completed from `MEASURES`.

python -m voxframe.dictionary            write data/dictionary.md
python -m voxframe.dictionary --check    fail if it is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from voxframe.errors import OptionError
from voxframe.options import FIELDS, option_rows
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES, Table
from voxframe.validators import listed, nearest, shown

Function = TypeVar("Function", bound="Callable[..., object]")


@dataclass(frozen=True)
class Measure:
    """Definition of a measure.

    Attributes:
        denominator: Quantity by which it is divided; empty for none.
        unit: Unit of the values; empty for a number without one.
        source: Publication that defines it; empty for plain sums and ratios.
    """

    name: str
    numerator: str
    denominator: str = ""
    unit: str = ""
    source: str = ""

    def __str__(self) -> str:
        unit = f" ({self.unit})" if self.unit else ""
        return f"`{self.name}`{unit}: {self.numerator}" + (f" / {self.denominator}" if self.denominator else "")


_TURNS = "Heldner and Edlund, Journal of Phonetics 38, 2010"
_EQUALITY = "Pielou, Journal of Theoretical Biology 13, 1966"
_FLUENCY = "Goldman-Eisler, Psycholinguistics, 1968"
_FILLED = "Clark and Fox Tree, Cognition 84, 2002"
_SURPRISE = "Dunning, Computational Linguistics 19, 1993"
_PRIOR = "Monroe, Colaresi and Quinn, Political Analysis 16, 2008"
_LOCATIONS = "Church and Hanks, Computational Linguistics 16, 1990"
_NIST = "NIST, Rich Transcription evaluation plan, 2009"

MEASURES = {
    measure.name: measure
    for measure in (
        # who talks, and how much
        Measure("talk_s", "time of turns, with the pauses inside them", unit="s"),
        Measure("share", "talk_s", "the time that `of` names: talk, speech or recordings of the group", "0 or more"),
        Measure("words_per_minute", "words", "talk time in minutes, with pauses inside turns", "words/min", _FLUENCY),
        Measure("duration_s", "length of the recordings", unit="s"),
        Measure("speech_s", "time in which anybody speaks; overlap counts once", unit="s"),
        Measure("silence_s", "time in which nobody speaks", unit="s"),
        Measure("speech_share", "speech_s", "duration_s", "0-1"),
        Measure("silence_share", "silence_s", "duration_s", "0-1"),
        Measure("overlap_s", "time in which several people speak", unit="s", source=_TURNS),
        Measure("overlap_base_s", "speech_s of recordings that can show overlap", unit="s"),
        Measure("overlap_share", "overlap_s", "overlap_base_s", "0-1"),
        Measure("gini", "mean absolute difference of all pairs of shares", "twice the mean share", "0-1", "Gini, 1912"),
        Measure(
            "entropy_bits", "-sum(p log2 p) over the shares p of the speakers", unit="bits", source="Shannon, 1948"
        ),
        Measure("evenness", "entropy_bits", "log2 of the number of speakers", "0-1", _EQUALITY),
        Measure("effective_speakers", "2 ** entropy_bits", unit="speakers", source="Hill, Ecology 54, 1973"),
        # how they talk
        Measure("articulation_s", "time of words, with silences in a turn that are too short for pauses", unit="s"),
        Measure("articulation_wpm", "words", "articulation_s in minutes", "words/min", _FLUENCY),
        Measure("window_wpm", "words", "length of the window in minutes, also if nobody speaks", "words/min"),
        Measure("pause_s", "time of pauses inside turns", unit="s"),
        Measure("mean_pause_ms", "pause_s", "pauses", "ms"),
        Measure("pauses_per_minute", "pauses", "talk time in minutes, with pauses inside turns", "1/min", _FLUENCY),
        Measure("fillers_per_100", "filled pauses", "100 words", source=_FILLED),
        Measure("questions_per_100", "questions", "100 words"),
        Measure("low_share", "words with a confidence below `low`", "words with a confidence", "0-1"),
        Measure("mean_confidence", "sum of the confidence of words", "words with a confidence", "0-1"),
        Measure("polarity", "positive sentences - negative sentences", "sentences", "-1 to 1"),
        Measure("word_share", "words in spans of the label", "words of the group", "0-1"),
        Measure("strength", "severity, relevance or confidence of the label, added up", "words of the label", "0-1"),
        # how they take turns
        Measure("mean_turn_s", "time of turns that have the floor", "turns", "s"),
        Measure("longest_turn_s", "length of the longest turn", unit="s"),
        Measure("median_offset_ms", "median time from the end of a turn to a transfer", unit="ms", source=_TURNS),
        Measure(
            "response_ms", "median offset of transfers after a question", unit="ms", source="Stivers, PNAS 106, 2009"
        ),
        Measure("transfer_overlap_share", "transfers that begin in overlap", "transfers to the speaker", "0-1"),
        Measure("interruption_share", "transfers that are interruptions", "transfers to the speaker", "0-1"),
        Measure("transfer_share", "transfers from one speaker to another", "transfers from that speaker", "0-1"),
        # which words
        Measure("per_1000", "occurrences in the group", "1000 words of the group"),
        Measure("other_per_1000", "occurrences in all other groups", "1000 words of all other groups"),
        Measure("g2", "log-likelihood ratio of a 2 by 2 table of counts", source=_SURPRISE),
        Measure("log_ratio", "log2 of the ratio of the relative frequencies", unit="doublings", source="Hardie, 2014"),
        Measure("log_odds", "difference of log odds with an informative prior", unit="nats", source=_PRIOR),
        Measure("z", "log_odds", "its standard deviation", source=_PRIOR),
        Measure("expected", "product of the counts of both words", "words", "pairs"),
        Measure("pmi", "log2 of count / expected", unit="bits", source=_LOCATIONS),
        Measure("t_score", "count - expected", "square root of count", source=_LOCATIONS),
        Measure("type_token_ratio", "different words", "words", "0-1"),
        Measure("yules_k", "10,000 times the excess of repeated words", "square of words", source="Yule, 1944"),
        # differences between groups and transcripts
        Measure("rate", "the numerator that was named", "the denominator that was named"),
        Measure("hedges_g", "difference of means", "pooled standard deviation, corrected", source="Hedges, 1981"),
        Measure("cliffs_delta", "pairs in which b is larger - pairs in which a is", "pairs", "-1 to 1", "Cliff, 1993"),
        Measure("wer", "substitutions + deletions + insertions of words", "words of the reference"),
        Measure("cer", "substitutions + deletions + insertions of characters", "characters of the reference"),
        Measure("cpwer", "edits of words under the best assignment of speakers", "words of the reference"),
        Measure("reference_s", "time of the speakers of the reference, added up", unit="s", source=_NIST),
        Measure("missed_s", "time of speakers that the hypothesis lacks", unit="s", source=_NIST),
        Measure("false_alarm_s", "time of speakers that the reference lacks", unit="s", source=_NIST),
        Measure("confusion_s", "time given to the wrong speaker", unit="s", source=_NIST),
        Measure("der", "missed_s + false_alarm_s + confusion_s", "reference_s", source=_NIST),
    )
}


def defines(*names: str) -> Callable[[Function], Function]:
    """Add the definitions of measures to the docstring of a function, before its examples."""
    lines = [f"        - {MEASURES[name]}" for name in names]

    def add(function: Function) -> Function:
        if function.__doc__:  # None under python -OO
            head, _, example = function.__doc__.partition("\n\n    Example:\n")
            listed = "\n".join(["", "", "    Measures:", *lines])
            function.__doc__ = f"{head}{listed}" + (f"\n\n    Example:\n{example}" if example else "")
        function.measures = names  # type: ignore[attr-defined]
        return function

    return add


PAGE = Path("data", "dictionary.md")

_COLUMN_HEADS = ("column", "dtype", "unit", "wire path", "description")
_OPTION_HEADS = ("option", "values", "default", "description")
_MEASURE_HEADS = ("measure", "unit", "numerator", "denominator", "source")
_TABLE_HEADS = ("table", "one row per", "key", "columns", "source")


@dataclass(frozen=True)
class Description:
    """Result of `describe`; displays itself as text, and as HTML in a notebook.

    Attributes:
        title: Name of the table, or of the list of tables.
        notes: Grain, key and source as pairs of label and text.
        heads: Headings of the columns of `rows`.
        rows: One tuple of texts per column of the table, or per table.
    """

    title: str
    notes: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        rows = (self.heads, ["-" * width for width in widths], *self.rows)
        cells = ((text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
        notes = (f"  {label}: {text}" for label, text in self.notes)
        return "\n".join([self.title, *notes, "", *("  ".join(row).rstrip() for row in cells)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<div>{escape(label)}: {escape(text)}</div>" for label, text in self.notes)
        head = "".join(f'<th style="text-align:left">{escape(text)}</th>' for text in self.heads)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(text)}</td>' for text in row) + "</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><strong>{escape(self.title)}</strong>{notes}{table}</div>"


def describe(table: str | None = None) -> Description:
    """Describe a table: its grain and key, and the dtype, unit, response path and meaning of each column.

    Args:
        table: Name of a table; "measures" for the measures of `voxframe.analysis`; "options" for the options of a
            transcription job, or the name of one of them for its values, such as "language_code". None (default): list
            all tables.

    Returns:
        A description that displays itself.

    Raises:
        OptionError: There is no such table or option.

    Example:
        >>> describe("highlights").rows[3][:3]
        ('occurrences', 'Int64', '')
    """
    if table is None:
        rows = tuple((t.name, t.grain, ", ".join(t.key), str(len(t.columns)), t.source) for t in TABLES.values())
        notes = (
            ("more", 'describe("words") shows the columns of a table; describe("options") lists the options of a job'),
            ("definitions", 'describe("measures") defines the measures of voxframe.analysis and voxframe.compare'),
            *_CONVENTIONS,
        )
        return Description("tables of voxframe", notes, _TABLE_HEADS, rows)
    if not isinstance(table, str):
        raise OptionError(f"describe takes the name of a table or of an option, got {shown(table)}")
    if table == "measures":
        return Description("measures of voxframe.analysis and voxframe.compare", (), _MEASURE_HEADS, _measure_rows())
    if table == "options":
        used = ("used by", "Client.transcribe, Client.submit, Corpus.submit, Corpus.plan, Corpus.transcribe")
        values = ("values of an option", 'voxframe.describe("language_code") lists them')
        return Description("options of a transcription job", (used, values), _OPTION_HEADS, tuple(option_rows()))
    if table not in TABLES:
        options = [row[0] for row in option_rows()]
        if table in options:
            return describe_option(table)
        raise OptionError(
            f"there is no table {table!r}{nearest(table, [*TABLES, *options])}; the tables are "
            f"{listed(TABLES)}, and voxframe.describe('options') lists the options"
        )
    columns_of = TABLES[table]
    return Description(columns_of.name, _notes(columns_of), _COLUMN_HEADS, tuple(_columns(columns_of)))


def describe_option(name: str) -> Description:
    """Describe an option of a transcription job; if its values are a list, with a row per value.

    Example:
        >>> describe_option("language_code").rows[6]
        ('de', 'German')
    """
    row = next((row for row in option_rows() if row[0] == name), None)
    if row is None:
        near = nearest(name, [row[0] for row in option_rows()])
        raise OptionError(f"there is no option {name!r}{near}; voxframe.describe('options') lists them all")
    field = FIELDS.get(name)
    if field is None or not field.choices:
        return Description(f"option {name}", (), _OPTION_HEADS, (row,))
    notes = tuple(zip(_OPTION_HEADS[1:], row[1:], strict=True))
    if not field.meanings:
        return Description(f"option {name}", notes, ("value",), tuple((choice,) for choice in field.choices))
    rows = tuple((choice, field.meanings[choice]) for choice in field.choices)
    return Description(f"option {name}", notes, ("value", "meaning"), rows)


_CONVENTIONS = (
    ("times", "integer milliseconds from the start of the media"),
    ("positions", "columns that end in _idx count from 0"),
    ("nulls", "a value that the service did not send is null; voxframe invents no values"),
)


def _notes(table: Table) -> tuple[tuple[str, str], ...]:
    notes = (("one row per", table.grain), ("key", ", ".join(table.key)), ("from", table.source))
    if CORPUS_TABLES.get(table.name, table) == table:
        return notes
    columns = CORPUS_TABLES[table.name].columns
    added = [
        (f"in a corpus, {column.name} after {before.name}", column.description)
        for before, column in pairwise(columns)
        if column not in table.columns
    ]
    return (*notes, *added)


def _columns(table: Table) -> Iterable[tuple[str, ...]]:
    for column in table.columns:
        yield (column.name, column.dtype, column.unit or "", column.path or "", column.description)


def _measure_rows() -> tuple[tuple[str, ...], ...]:
    return tuple((m.name, m.unit, m.numerator, m.denominator, m.source) for m in MEASURES.values())


def page() -> str:
    """Return the text of `data/dictionary.md`."""
    lines = [
        "# Data dictionary",
        "",
        "Written by `python -m voxframe.dictionary`; its texts are in `schema.py` and `dictionary.py` of `voxframe`.",
        f"This is schema version {SCHEMA_VERSION}. `voxframe.describe()` shows the same in Python.",
        "",
        "- dtypes: those of pandas; NaN, NA and NaT are null",
        "- wire path: path in the response of the service; empty if voxframe derives the value from others",
        *(f"- {label}: {text}" for label, text in _CONVENTIONS),
        "",
        *_markdown(_TABLE_HEADS, ((f"[{row[0]}](#{row[0]})", *row[1:]) for row in describe().rows)),
    ]
    for table in TABLES.values():
        lines += ["", f"## {table.name}", ""]
        lines += [f"- {label}: {_cell(text)}" for label, text in _notes(table)]
        rows = ((f"`{n}`", f"`{d}`", u, f"`{p}`" if p else "", text) for n, d, u, p, text in _columns(table))
        lines += ["", *_markdown(_COLUMN_HEADS, rows)]
    measures = [(f"`{name}`", *cells) for name, *cells in _measure_rows()]
    lines += ["", "## measures", "", *_markdown(_MEASURE_HEADS, measures)]
    return "\n".join(lines) + "\n"


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(prog="python -m voxframe.dictionary", description="Write data/dictionary.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    parser.add_argument("page", nargs="?", type=Path, default=PAGE, help=f"the page (default {PAGE.as_posix()})")
    options = parser.parse_args(arguments)
    text = page()
    if not options.check:
        options.page.write_text(text, encoding="utf-8")
        return 0
    if options.page.is_file() and options.page.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{options.page} is not up to date: run python -m voxframe.dictionary\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
