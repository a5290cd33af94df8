"""The table of what the embedded service does, in its docstring."""

import re
from importlib.util import find_spec

import pytest

import voxframe.local
from voxframe import options
from voxframe.local import wire
from voxframe.local.jobs import Job

ROWS = [row.split(" | ") for row in re.findall(r"^\| (?!field )(.+) \|$", voxframe.local.__doc__, re.MULTILINE)]
NAMES = {name for row in ROWS for name in row[0].split(", ")}


def test_every_field_of_a_request_is_in_it():
    """And none that is not; each with what is done and where."""
    asked = {name for row in ROWS if len(row) == 3 for name in row[0].split(", ")}
    assert asked == set(options.FIELDS)


def test_every_field_of_a_result_is_in_it():
    """Of a completed and of a failed job."""
    job = Job(1, "id", "error", "now", None, {"audio_url": "http://a/b"}, None, None, "why", 0, None, False)
    fields = set(wire.transcript(job, {"audio_channels": 2})) | {"error"}
    assert fields <= NAMES


@pytest.mark.parametrize("module", sorted({name for row in ROWS if len(row) == 3 for name in row[2].split(", ")}))
def test_every_module_it_names_is_there(module):
    """Whoever wants to know more finds it."""
    assert find_spec(f"voxframe.local.{module}")
