"""Arguments that several commands share, and the corpus, transcripts and options that they select."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxframe.errors import CorpusError, OptionError

if TYPE_CHECKING:  # `voxframe models` needs no pandas
    from voxframe.corpus import Corpus


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add --corpus."""
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="corpus directory (default: the default corpus)")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add --corpus, and --id and --where, which select transcripts."""
    add_corpus(parser)
    parser.add_argument("--id", action="append", metavar="ID", help="only this transcript; may be repeated")
    parser.add_argument(
        "--where", action="append", metavar="COLUMN=VALUE", help="only transcripts with this metadata; may be repeated"
    )


def add_speakers(parser: argparse.ArgumentParser) -> None:
    """Add --speakers."""
    parser.add_argument("--speakers", type=int, metavar="N", help="number of speakers, if known (1 to 10)")


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
        CorpusError: There is no corpus in the directory.
    """
    from voxframe.corpus import Corpus

    corpus = Corpus(directory)
    if not corpus.path.joinpath("raw").is_dir():
        raise CorpusError(
            f"there is no corpus at {corpus.path}; `voxframe transcribe` and `voxframe submit` create one"
        )
    return corpus


def selected_ids(corpus: Corpus, given: argparse.Namespace) -> list[str] | None:
    """Return the transcript ids that the arguments of `add_selection` select. None: all.

    Raises:
        CorpusError: A metadata column does not exist.
        OptionError: A condition is invalid.
    """
    if not given.where:
        return given.id  # type: ignore[no-any-return]
    metadata = corpus.metadata.get(given.id)
    for condition in given.where:
        name, equals, value = condition.partition("=")
        if not equals:
            raise OptionError(f"--where must be COLUMN=VALUE, such as customer=Acme, got {condition!r}")
        if name not in metadata.columns:
            columns = ", ".join(metadata.columns[1:]) or "none"
            raise CorpusError(f"there is no metadata column {name!r}; the columns are: {columns}")
        metadata = metadata[metadata[name].astype("string").eq(value).fillna(False)]
    return metadata["transcript_id"].to_list()


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


def _count(text: str) -> int:
    count = int(text) if text.isdecimal() else -1
    if count < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return count
