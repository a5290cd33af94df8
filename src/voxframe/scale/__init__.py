"""Measures, search and decoding on Dask, for corpora that are too large for one machine. Needs the extra `dask`."""

from voxframe.scale.measures import counts, each, ngrams, search, talk_time
from voxframe.scale.payloads import build_tables, read_payloads

__all__ = ["build_tables", "counts", "each", "ngrams", "read_payloads", "search", "talk_time"]
