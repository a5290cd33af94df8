"""Measures, search, decoding and transcription on Dask, for more than one machine. Needs the extra `dask`."""

from voxframe.scale.measures import counts, each, ngrams, search, talk_time
from voxframe.scale.payloads import build_tables, read_payloads
from voxframe.scale.transcription import on_workers

__all__ = ["build_tables", "counts", "each", "ngrams", "on_workers", "read_payloads", "search", "talk_time"]
