from pathlib import Path

import pytest
from tests.corpus import torture

from voxframe.corpus.batch import reconcile

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def settled_soon(monkeypatch) -> None:
    """The faulty service is never silent or late for longer."""
    monkeypatch.setattr(reconcile, "SETTLE_S", torture.SETTLE_S)


def test_under_faults_nothing_is_lost_or_sent_twice(tmp_path: Path) -> None:
    """Resets, silence, 5xx, 429, cut and lost answers, late arrivals: each recording is done once or reported."""
    found = torture.under_faults(tmp_path, recordings=24, rate=0.2, seed=7)
    assert (found.lost, found.twice) == ([], [])
    assert found.completed + found.uncertain == 24
    assert found.faults.total() > 8


def test_under_kills_nothing_is_lost_or_sent_twice(tmp_path: Path) -> None:
    """A batch killed at any moment goes on with the next process."""
    found = torture.under_kills(tmp_path, kills=3, a_life=12, rate=0.05, seed=7)
    assert (found.lost, found.twice) == ([], [])
    assert found.completed + found.uncertain == 36


def test_a_reader_beside_a_killed_writer_reads_whole_files(tmp_path: Path) -> None:
    """Whatever moment the writer dies at, every read gives the old payload or the new one."""
    seen = torture.beside_a_writer(tmp_path, kills=3, seed=7)
    assert seen.unreadable == []
    assert seen.reads > 20
