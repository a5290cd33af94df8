"""A corpus: many transcripts on disk as raw payloads and Parquet tables, with a ledger of submitted jobs."""

from voxframe.corpus.corpus import Corpus

__all__ = ["Corpus"]
