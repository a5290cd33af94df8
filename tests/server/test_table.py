"""The tables of fields in the docstring of the embedded server."""

import re
from importlib.util import find_spec

import pytest

import voxframe.server
from voxframe import options
from voxframe.server.http import serialization
from voxframe.server.jobs.job_store import JobRecord

ROWS = [row.split(" | ") for row in re.findall(r"^\| (?!field )(.+) \|$", voxframe.server.__doc__, re.MULTILINE)]
NAMES = {name for row in ROWS for name in row[0].split(", ")}


def test_every_field_of_a_request_is_in_it():
    """The table lists exactly the fields of a request."""
    asked = {name for row in ROWS if len(row) == 3 for name in row[0].split(", ")}
    assert asked == set(options.FIELDS)


def test_every_field_of_a_result_is_in_it():
    """The tables list every field of a completed and of a failed job."""
    job = JobRecord(1, "id", "error", "now", None, {"audio_url": "http://a/b"}, None, None, "why", 0, None, False)
    fields = set(serialization.transcript(job, {"audio_channels": 2})) | {"error"}
    assert fields <= NAMES


@pytest.mark.parametrize("module", sorted({name for row in ROWS if len(row) == 3 for name in row[2].split(", ")}))
def test_every_module_it_names_is_there(module):
    """Every module named in the table exists."""
    assert find_spec(f"voxframe.server.{module}")
