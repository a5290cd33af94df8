"""A corpus: many transcripts on disk as raw payloads and Parquet tables, with a ledger of submitted jobs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus

__all__ = ["Corpus"]


def __getattr__(name: str) -> object:
    """Import the facade on first use: `voxframe.corpus.workers` starts faster without it."""
    if name != "Corpus":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from voxframe.corpus.corpus import Corpus

    return Corpus
