"""Property-based testing of the REST endpoints: `python -m tests.benchmarks openapi [--examples N] [--seed N]`.

Schemathesis reads `/openapi.json` of a service on loopback and makes some two thousand requests, valid and invalid,
alone and in sequences. None may be answered with a 5xx or otherwise than the description says.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.server.conftest import Service
from tests.server.openapi_run import SERVICE_ARGUMENTS, run


def main(arguments: list[str]) -> int:
    """Run the check and print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks openapi", description=__doc__)
    parser.add_argument("--examples", type=int, default=60, help="most requests of an operation in a phase")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", *SERVICE_ARGUMENTS)
        try:
            made = run(service, Path(folder), given.examples, "coverage,fuzzing,stateful", given.seed)
        finally:
            service.stop()
    print(made.said)
    print(f"{made.cases} requests")
    return 0 if made.passed else 1
