"""`voxframe search`: words and phrases over a corpus."""

from __future__ import annotations

import argparse

import pandas as pd

from voxframe.cli.tables import write
from voxframe.cli.terminal import plain, shorten
from voxframe.corpus import Corpus
from voxframe.errors import CorpusError, OptionError
from voxframe.plots.style import clock

_TEXT_ROWS = 20
_SIDE = 40  # characters on each side of a match
_MATCH = 30


def search(given: argparse.Namespace) -> int:
    """Print the occurrences of the queries, or how many there are.

    Args:
        given: Arguments of the command.

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place.
        OptionError: An argument is wrong.
    """
    corpus = open_corpus(given)
    ids = chosen_ids(corpus, given)
    if given.count:
        by = [name for name in given.by or ["transcript_id"] if name != "nothing"]
        counted = corpus.counts(given.query, by=by, within=given.within, speaker=given.speaker, ids=ids)
        write(counted.round({"per_1000": 3}), given.form, given.rows)
        return 0
    text = given.form == "text"
    rows = _TEXT_ROWS if text and given.rows is None else given.rows
    found = corpus.search(
        given.query,
        context=given.context,
        within=given.within,
        speaker=given.speaker,
        ids=ids,
        limit=None if rows is None else rows + text,  # one more tells whether there are more
    )
    if text:
        _print(found.head(rows), more=len(found) > (rows or 0))
    else:
        write(found, given.form, None)
    return 0


def open_corpus(given: argparse.Namespace) -> Corpus:
    """The corpus that was named.

    Raises:
        CorpusError: There is none at that place.
    """
    corpus = Corpus(given.corpus)
    if not corpus.path.joinpath("raw").is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe transcribe` and `voxframe submit` make one")
    return corpus


def chosen_ids(corpus: Corpus, given: argparse.Namespace) -> list[str] | None:
    """Identifiers that --id and --where leave; None is all.

    Raises:
        CorpusError: There is no such column of metadata.
        OptionError: A condition is none.
    """
    if not given.where:
        return given.id  # type: ignore[no-any-return]
    about = corpus.metadata(given.id)
    for condition in given.where:
        name, equals, value = condition.partition("=")
        if not equals:
            raise OptionError(f"--where takes COLUMN=VALUE, such as customer=Acme, not {condition!r}")
        if name not in about.columns:
            raise CorpusError(f"there is no metadata {name!r}; there is {', '.join(about.columns[1:]) or 'none'}")
        about = about[about[name].astype("string").eq(value).fillna(False)]
    return about["transcript_id"].to_list()


def _print(found: pd.DataFrame, *, more: bool) -> None:
    """A line a match, the matches below each other."""
    rows = []
    for row in found.to_dict("records"):
        left = plain(row["left"])
        cut = left if len(left) <= _SIDE else "…" + left[-_SIDE + 1 :]
        time = "" if pd.isna(row["start_ms"]) else clock(row["start_ms"] / 1000)
        speaker = shorten(plain(row["speaker"]), 12) if isinstance(row["speaker"], str) else ""
        texts = (cut, shorten(plain(row["match"]), _MATCH), shorten(plain(row["right"]), _SIDE))
        rows.append((shorten(plain(row["transcript_id"]), 36), time, speaker, *texts))
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
    for transcript, time, speaker, left, match, right in rows:
        where = f"{transcript:{widths[0]}}  {time:>{widths[1]}}  {speaker:{widths[2]}}"
        print(f"{where}  {left:>{widths[3]}}  {match:{widths[4]}}  {right}".rstrip())
    if more:
        print("... there are more; --rows N shows more, --csv or --json all")
    elif not rows:
        print("nothing found")
