"""How long it takes from a payload's bytes to DataFrames, as a ratio to `orjson.loads` alone.

A payload of one hour with every analysis, on one core, in processor time. Each way is measured beside `orjson.loads`
again and again, several calls in a row as when many transcripts are loaded, results let go; the figure is the median of
the ratios. Values are checked to be equal to what the other ways give.
"""

import argparse
import gc
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported

import orjson
import pandas as pd

import voxframe
from tests.benchmarks import imports
from tests.benchmarks.one_core import one_core
from tests.benchmarks.payloads import payload, transcript
from tests.benchmarks.peers import Frames, peers
from voxframe.frames import json_lists
from voxframe.frames.json_lists import unknown_texts

LIMITS = {"all tables, pandas": 2.0, "all tables, Arrow": 1.4, "load_words": 1.0, "finding unknown fields": 0.3}
_IN_A_ROW = 5


def main(arguments: list[str] | None = None) -> int:
    """Measure and print.

    Returns:
        1 if a figure is above its limit, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks flatten", description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=9000, help="words of a payload (default 9000, about an hour)")
    parser.add_argument("--rounds", type=int, default=25, help="measurements of each way (default 25)")
    parser.add_argument("--seed", type=int, default=1, help="of the payload (default 1)")
    asked = parser.parse_args(arguments)
    one_core()
    raw = payload(asked.words, seed=asked.seed)
    ways: dict[str, Callable[[bytes], Any]] = {
        "load_words": voxframe.load_words,
        "all tables, Arrow": voxframe.frames.transcript_tables,
        "all tables, pandas": voxframe.tables,
    }
    print(
        f"{len(raw) / 1e6:.2f} MB, {asked.words} words; Python {platform.python_version()}, pandas {pd.__version__}, "
        f"orjson {orjson.__version__}"
    )
    print(f"orjson.loads takes {_per_call(orjson.loads, raw, 20) * 1e3:.1f} ms of processor time\n")
    ratios = {name: _ratio(way, raw, asked.rounds) for name, way in ways.items()}
    ratios["finding unknown fields"] = _finding(asked.words, asked.seed, asked.rounds)
    # Only now: other libraries keep threads of their own busy, and leave memory in pieces.
    others = peers(raw)
    ours = voxframe.tables(raw)
    for name, way in others.items():
        _check_equal(ours, way(raw), name)
    _check_equal(ours, {"words": voxframe.load_words(raw)}, "load_words")
    print(f"values are equal\n\n{'way':28}{'ratio':>7}{'limit':>7}")
    over = False
    for name in [*ratios, *others]:
        ratio = ratios[name] if name in ratios else _ratio(others[name], raw, asked.rounds)
        limit = LIMITS.get(name, math.inf)
        over = over or ratio > limit
        print(f"{name:28}{ratio:7.2f}{limit if name in LIMITS else '':>7}{'  above' if ratio > limit else ''}")
    print()
    return imports.main([]) or int(over)


def _finding(words: int, seed: int, rounds: int) -> float:
    """Return the ratio for finding the unknown fields of a payload that has one in every word."""
    document = transcript(words, seed=seed)
    for n, word in enumerate(document["words"]):  # the turns have the same words
        word["logprob"] = -n / 1000
    raw = orjson.dumps(document)
    with mock.patch.object(json_lists, "unknown_texts", side_effect=unknown_texts) as found:
        extra = voxframe.tables(raw)["words"]["extra"]
    if [orjson.loads(text)["logprob"] for text in extra] != [-n / 1000 for n in range(words)]:
        sys.exit("an unknown field is not in extra")
    given = [call.args for call in found.call_args_list]
    return _ratio(lambda _: [unknown_texts(*arguments) for arguments in given], raw, rounds)


def _ratio(way: Callable[[bytes], Any], raw: bytes, rounds: int) -> float:
    way(raw)  # the first time costs what is done once
    calls = _IN_A_ROW if _per_call(way, raw, 1) < 3 * _per_call(orjson.loads, raw, 1) else 1
    if calls == 1:
        rounds = min(rounds, 9)
    gc.collect()
    return statistics.median(
        _per_call(way, raw, calls) / _per_call(orjson.loads, raw, _IN_A_ROW) for _ in range(rounds)
    )


def _per_call(way: Callable[[bytes], Any], raw: bytes, calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        way(raw)
    return (time.process_time() - begin) / calls


def _check_equal(ours: Frames, theirs: Frames, name: str) -> None:
    """Every column that they made is in ours, with the same values in the same order."""
    for table, frame in theirs.items():
        for column in frame.columns:
            if _values(ours[table][column]) != _values(frame[column]):
                sys.exit(f"{name}: {table}.{column} differs")


def _values(column: Any) -> list[Any]:
    return [None if value is pd.NA or value != value else value for value in column.tolist()]
