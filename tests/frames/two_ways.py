"""The comparison of the fast way and the tolerant way on the same bytes."""

import contextlib
import warnings
from typing import Any
from unittest import mock

import pyarrow as pa
from tests.benchmarks.payloads import payload

from voxframe.errors import PayloadError
from voxframe.frames import decode_transcript, tables, tables_together, transcript_tables
from voxframe.schema import TABLES

_OTHER = payload(60)


class LeftToTheOtherError(Exception):
    """The fast way refused."""


def without(way: str, error: Exception, raw: bytes) -> dict[str, pa.Table]:
    """Return the tables if one of the two paths raises an error."""

    def refuse(*_: Any) -> None:
        raise error

    with mock.patch.object(tables, way, refuse):
        return transcript_tables(raw)


def check(raw: bytes) -> None:
    """Assert that the two ways make the same tables of some bytes, or that one of them refuses.

    Also, that the same tables are made together with those of other payloads, or that this is refused.
    """
    fast = tolerant = None
    too_deep = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(LeftToTheOtherError):
            fast = without("_tolerant", LeftToTheOtherError(), raw)
        try:
            tolerant = without("_fast", tables.FastPathUnsupported(), raw)
        except PayloadError as error:  # json.loads needs more of the stack for each level
            too_deep = "nested too deeply" in str(error)
    assert tolerant is not None or fast is None or too_deep, "only the fast way reads this"
    for name, table in (tolerant or {}).items():
        table.validate(full=True)
        assert table.schema.equals(TABLES[name].arrow, check_metadata=True)
        if fast is not None:
            differing = [column for column in table.column_names if not fast[name][column].equals(table[column])]
            assert not differing, f"{name}: {differing} of {raw!r}"
    _check_together(raw)


def _check_together(raw: bytes) -> None:
    sources = [_OTHER, raw.replace(b"{", b'{"id":"b","status":"completed",', 1), _OTHER]
    documents = [decode_transcript(source) for source in sources]
    together = None if None in documents else tables_together(documents, ["a", "b", "c"])
    if together is None:
        return
    for source, transcript_id, made in zip(sources, "abc", together, strict=True):
        try:
            alone = transcript_tables(source, transcript_id=transcript_id)
        except PayloadError as error:  # this way needs more of the stack
            if "nested too deeply" not in str(error):
                raise
            continue
        for name, table in alone.items():
            same = made[name].cast(table.schema)
            same.validate(full=True)
            assert same.equals(table), f"{name} of {raw!r}, together with others"
