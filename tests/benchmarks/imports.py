"""Import time of voxframe as a ratio to that of pandas, each in fresh interpreters."""

import argparse
import statistics
import subprocess
import sys

LIMIT = 0.15


def main(arguments: list[str] | None = None) -> int:
    """Measure and print.

    Returns:
        1 if the figure is above its limit, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks imports", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="interpreters started for each (default 9)")
    rounds = parser.parse_args(arguments).rounds
    pairs = [(_seconds("voxframe"), _seconds("pandas")) for _ in range(rounds)]
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"import voxframe takes {ratio:.3f} of import pandas (limit {LIMIT}){'  above' if ratio > LIMIT else ''}")
    return int(ratio > LIMIT)


def _seconds(module: str) -> float:
    program = f"import time; begin = time.process_time(); import {module}; print(time.process_time() - begin)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
