"""Data lost, paid for twice or unreadable after 1,000 faults of a service, 200 kills of a batch and 40 of a writer."""

import argparse
import tempfile
from pathlib import Path
from unittest import mock

from tests.corpus import torture
from voxframe.corpus.batch import sync


def main(arguments: list[str]) -> int:
    """Run the three benchmarks and print their figures; return 1 if anything was lost, paid for twice or unreadable."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--recordings", type=int, default=1400)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writer-kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(sync, "SETTLE_S", torture.SETTLE_S):
        faults = torture.under_faults(Path(folder, "faults"), recordings=given.recordings, rate=0.2, seed=given.seed)
        bad += _print(f"{faults.faults.total()} faults", faults)
        print("  " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.faults.items())))
        kills = torture.under_kills(Path(folder, "kills"), kills=given.kills, a_life=16, rate=0.05, seed=given.seed)
        bad += _print(f"{kills.kills} kills of the batch and {kills.faults.total()} faults", kills)
        reads = torture.beside_a_writer(Path(folder, "reads"), kills=given.writer_kills, seed=given.seed)
        print(f"{given.writer_kills} kills of a writer: {reads.reads} reads, {len(reads.unreadable)} unreadable")
        bad += len(reads.unreadable)
    return 1 if bad else 0


def _print(what: str, found: torture.Figures) -> int:
    print(
        f"{what}: {found.recordings} recordings, {found.completed} completed, {found.uncertain} uncertain and "
        f"reported, {len(found.lost)} lost, {len(found.twice)} submitted twice"
    )
    for name in [*found.lost, *found.twice][:10]:
        print(f"  {name}")
    return len(found.lost) + len(found.twice)
