"""`voxframe jobs`: what was submitted, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from voxframe.cli.tables import write
from voxframe.corpus import Corpus
from voxframe.errors import CorpusError
from voxframe.schema import JOBS

#: Columns of a job that a person looks at first; those of its metadata come after them.
_SHOWN = ("transcript_id", "source", "state", "attempts", "audio_duration_s", "error")


def jobs(directory: Path | None, states: Sequence[str] | None, form: str, rows: int | None) -> int:
    """Print the submissions of a corpus.

    Args:
        directory: Corpus directory; None is the default corpus.
        states: Only those in one of these states; None is all.
        form: "text" (the columns a person looks at first), "csv" or "json" (every column).
        rows: Only the first so many rows.

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place.
    """
    corpus = Corpus(directory)
    if not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` makes one")
    df = corpus.jobs()
    if states is not None:
        df = df[df["state"].isin(states)]
    if form == "text":
        df = df[[name for name in df.columns if name in _SHOWN or name not in JOBS.arrow.names]]
        df = df[[*_SHOWN, *(name for name in df.columns if name not in _SHOWN)]]
    write(df, form, rows)
    return 0
