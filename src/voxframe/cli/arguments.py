"""Arguments that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add --corpus."""
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="corpus directory; default: the default corpus")


def add_speakers(parser: argparse.ArgumentParser) -> None:
    """Add --speakers."""
    parser.add_argument("--speakers", type=int, metavar="N", help="number of speakers, where it is known (1 to 10)")


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add --rows."""
    parser.add_argument("--rows", type=_count, metavar="N", help="only the first N rows (default for text: 20)")


def _count(text: str) -> int:
    count = int(text) if text.isdecimal() else -1
    if count < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return count
