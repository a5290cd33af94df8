"""Many transcripts on disk: raw payloads, Parquet tables, and a ledger of what was sent."""

from voxframe.corpus.corpus import Corpus

__all__ = ["Corpus"]
