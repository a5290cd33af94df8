from pathlib import Path

import pytest
from tests.corpus import torture

from voxframe.corpus.batch import sync

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def settled_soon(monkeypatch) -> None:
    """Requests arrive soon: the faulty service is never late for longer."""
    monkeypatch.setattr(sync, "SETTLE_S", torture.SETTLE_S)


def test_under_faults_nothing_is_lost_or_sent_twice(tmp_path: Path) -> None:
    """With resets, timeouts, 5xx, 429 and lost responses, each recording is transcribed once or reported."""
    found = torture.under_faults(tmp_path, recordings=24, rate=0.2, seed=7)
    assert (found.lost, found.twice) == ([], [])
    assert found.completed + found.uncertain == 24
    assert found.faults.total() > 8


def test_under_kills_nothing_is_lost_or_sent_twice(tmp_path: Path) -> None:
    """A batch that is killed at any moment is continued by the next process."""
    found = torture.under_kills(tmp_path, kills=3, a_life=12, rate=0.05, seed=7)
    assert (found.lost, found.twice) == ([], [])
    assert found.completed + found.uncertain == 36


def test_a_reader_beside_a_killed_writer_reads_whole_files(tmp_path: Path) -> None:
    """Whenever the writer is killed, every read returns the old payload or the new one."""
    seen = torture.beside_a_writer(tmp_path, kills=3, seed=7)
    assert seen.unreadable == []
    assert seen.reads > 20
