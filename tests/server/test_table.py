"""The tables of fields in the docstring of the embedded server."""

import re
from pathlib import Path

import pytest

import voxframe_server
from voxframe import options
from voxframe_server.http.app import transcript_fields
from voxframe_server.jobs import JobRecord

ROWS = [row.split(" | ") for row in re.findall(r"^\| (?!field )(.+) \|$", voxframe_server.__doc__, re.MULTILINE)]
NAMES = {name for row in ROWS for name in row[0].split(", ")}


def test_every_field_of_a_request_is_in_it():
    """The table lists exactly the fields of a request."""
    asked = {name for row in ROWS if len(row) == 3 for name in row[0].split(", ")}
    assert asked == set(options.FIELDS)


def test_every_field_of_a_result_is_in_it():
    """The tables list every field of a completed and of a failed job."""
    job = JobRecord(1, "id", "error", "now", None, {"audio_url": "http://a/b"}, None, None, "why", 0, None, False)
    fields = set(transcript_fields(job, {"audio_channels": 2})) | {"error"}
    assert fields <= NAMES


@pytest.mark.parametrize("module", sorted({name for row in ROWS if len(row) == 3 for name in row[2].split(", ")}))
def test_every_module_it_names_is_there(module):
    """Every module named in the table is one of the server or of the engine."""
    source = Path(voxframe_server.__file__).parents[1]
    path = module.replace(".", "/")
    assert [*source.glob(f"voxframe_[es]*/{path}.py"), *source.glob(f"voxframe_[es]*/{path}/__init__.py")]
