"""Processor time of the plots for a million spans, compared with matplotlib's broken_barh.

    python -m tests.benchmarks plots [SPANS]

Minimum and median of five runs in seconds, from the call to the picture in memory. "no spans" is the time of an empty
figure. broken_barh draws a fiftieth of the spans, because all of them would take minutes.
"""

import statistics
import time
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from voxframe import plots

#: Seconds a million spans may take.
LIMIT_S = 0.2


def words(count: int) -> pd.DataFrame:
    """Words of two speakers by turns, as a loader gives them."""
    text = pd.StringDtype("pyarrow", na_value=np.nan)
    start = np.arange(count) * 300
    return pd.DataFrame(
        {
            "transcript_id": pd.array(["t"] * count, text),
            "speaker": pd.array(np.where(np.arange(count) // 9 % 2, "A", "B"), text),
            "start_ms": pd.array(start, "Int64"),
            "end_ms": pd.array(start + 250, "Int64"),
            "confidence": np.linspace(0, 1, count),
        }
    )


def naive(df: pd.DataFrame) -> plt.Axes:
    """A bar a row, as the example in matplotlib's gallery does it."""
    ax = plt.subplots(figsize=(10, 2.1), layout="constrained")[1]
    for n, (_, rows) in enumerate(df.groupby("speaker")):
        ax.broken_barh(
            list(zip(rows["start_ms"] / 1000, (rows["end_ms"] - rows["start_ms"]) / 1000, strict=True)), (n, 1)
        )
    return ax


def measured(draw: Callable[[], plt.Axes]) -> tuple[float, float]:
    """Least and median of five."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        draw().figure.canvas.draw()
        times.append(time.process_time() - begin)
        plt.close("all")
    return min(times), statistics.median(times)


def main(arguments: list[str]) -> int:
    """Measure, and say whether the timeline keeps its limit."""
    mpl.use("agg")
    count = int(arguments[0]) if arguments else 1_000_000
    df = words(count)
    few, some, mixed = df.iloc[:0], df.head(count // 50), df.sample(frac=1, random_state=0)
    ways: dict[str, Callable[[], plt.Axes]] = {
        "no spans": lambda: plots.timeline(few),
        f"timeline, {count:,} spans": lambda: plots.timeline(df),
        "the same packed": lambda: plots.timeline(df, pack=True),
        "an hour of them": lambda: plots.timeline(df, view=(0, 3_600_000)),
        "in any order": lambda: plots.timeline(mixed),
        f"confidence, {count:,} rows": lambda: plots.confidence(df, by="speaker"),
        f"broken_barh, {len(some):,} spans": lambda: naive(some),
    }
    print(f"{'s':34}{'least':>9}{'median':>9}")
    found = {}
    for name, draw in ways.items():
        found[name] = measured(draw)
        print(f"{name:34}{found[name][0]:9.3f}{found[name][1]:9.3f}", flush=True)
    return int(found[f"timeline, {count:,} spans"][0] > LIMIT_S * max(1, count / 1_000_000))
