"""No payload can end the process that reads it."""

import copy
import json
import random
import subprocess
import sys

from tests.benchmarks.fuzz import MUTATIONS, Case, case, outcomes
from tests.benchmarks.payloads import transcript

_LOAD_EACH_LINE = """
import sys, warnings, voxframe
warnings.simplefilter("ignore")
for line in sys.stdin.buffer:
    print(len(voxframe.tables(line)["transcripts"]))
"""


def test_a_nul_is_read_in_the_place_of_every_value() -> None:
    """An escaped NUL in the place of any value of a transcript gives tables, and the process goes on."""
    original = transcript(1, seed=2)
    lines = []
    for number in range(len(Case(random.Random(), original).places())):
        document = copy.deepcopy(original)
        node, key = Case(random.Random(), document).places()[number]
        node[key] = {"a\0": 1} if isinstance(node[key], str) else "1\0"
        lines.append(json.dumps(document).encode())
    assert len(lines) > 100
    command = [sys.executable, "-c", _LOAD_EACH_LINE]
    done = subprocess.run(command, check=False, input=b"\n".join(lines), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split() == [b"1"] * len(lines)


def test_mutated_payloads_give_tables_or_an_error() -> None:
    """Mutated payloads give tables or a PayloadError, equal tables by both ways, and never end the process."""
    cases = 80  # those of all mutations, and two groups of cases that are added to a corpus together
    found = dict(outcomes(seed=7, first=0, last=cases))
    assert {number: outcome for number, outcome in found.items() if outcome not in ("tables", "PayloadError")} == {}
    assert sorted(found) == list(range(cases))
    assert {*found.values()} == {"tables", "PayloadError"}
    assert {name for number in range(cases) for name in case(7, number)[0]} == {*MUTATIONS}
