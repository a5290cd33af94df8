"""Measures, search, decoding and transcription on Dask, for more than one machine. Needs the extra `dask`."""

from voxframe.scale.dataframes import build_tables, counts, each, ngrams, read_payloads, search, talk_time
from voxframe.scale.transcription import on_workers

__all__ = ["build_tables", "counts", "each", "ngrams", "on_workers", "read_payloads", "search", "talk_time"]
