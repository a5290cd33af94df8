"""Run Schemathesis from the command line against a server with a few transcripts."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.server.conftest import KEY, Service
from tests.server.test_llm import done, put

ROOT = Path(__file__).parents[2]
#: No limit on requests to the language model, and notifications to where nobody listens.
SERVICE_ARGUMENTS = ("--llm-requests", "0", "--allow-origin", "http://127.0.0.1:9")
# What is well formed may be refused all the same: two times that do not fit each other, a transcript that is not
# completed, a language that the engine does not speak. And a deleted transcript can still be had, emptied.
_CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "429"]
[checks.use_after_free]
enabled = false
"""


@dataclass(frozen=True)
class Run:
    """Number of requests, True if all checks passed, and the output of Schemathesis."""

    cases: int
    passed: bool
    said: str


def run(service: Service, folder: Path, examples: int, phases: str, seed: int = 1) -> Run:
    """Run valid and invalid requests against the server.

    Args:
        service: The server, started with `SERVICE_ARGUMENTS`.
        folder: Folder for files of Schemathesis.
        examples: Maximum number of requests per operation and phase.
        phases: Comma-separated phases: coverage, fuzzing, stateful.
        seed: Seed of the random numbers.
    """
    completed = put(service)
    known = {
        "transcript_id": [completed, put(service, []), completed, put(service, status="error"), put(service)],
        "request_id": [done(service, "summary", transcript_ids=[completed])["request_id"]],
    }
    (folder / "schemathesis.toml").write_text(_CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", "--no-color"]
    command += ["--header", f"Authorization: {KEY}", "--mode", "all", "--phases", phases, "--seed", str(seed)]
    command += ["--max-examples", str(examples), "--generation-database", "none", "--continue-on-failure"]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
        "PYTHONPATH": str(ROOT),
        "SCHEMATHESIS_HOOKS": "tests.server.openapi_hooks",
        "OPENAPI_KNOWN_IDS": json.dumps(known),
    }
    made = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    generated = re.search(r"(\d+) generated", made.stdout)
    return Run(int(generated[1]) if generated else 0, made.returncode == 0, made.stdout + made.stderr)
