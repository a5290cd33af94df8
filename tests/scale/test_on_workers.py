import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.corpus import conftest
from tests.corpus.conftest import Peer

import voxframe
from voxframe import scale
from voxframe.errors import OptionError, SettingsError

pytestmark = pytest.mark.long
peer, client = conftest.peer, conftest.client  # fixtures here, too

_RATE = 25.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes with the key of the service in their environment."""
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VOXFRAME_API_KEY", "test-key")
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """A folder of 20 recordings."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for n in range(20):
        folder.joinpath(f"{n:02}.mp3").write_bytes(b"recording %d" % n)
    return folder


@contextlib.contextmanager
def workers_killed(cluster: Any, peer: Peer, after: dict[str, int]) -> Iterator[None]:
    """Kill the worker processes one after the other: each once the service was asked something so many times."""
    ended = threading.Event()
    killed = []

    def kill() -> None:
        for asked, times in after.items():
            while peer.count(asked) < times and not ended.wait(0.005):
                pass
            if not ended.is_set():
                address, pid = next(iter(cluster.run(os.getpid).items()))
                os.kill(pid, signal.SIGKILL)
                killed.append(address)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert len(killed) == len(after)


def _state(corpus: voxframe.Corpus) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the jobs and words of a corpus without what differs between two submissions."""
    jobs = corpus.jobs().set_index("recording")[["source", "state", "error", "audio_duration_s", "customer"]]
    words = corpus.table("words", metadata=["recording"]).drop(columns="transcript_id")
    return jobs.sort_index(), words.sort_values(["recording", "word_idx"], ignore_index=True)


def test_killed_workers_submit_nothing_twice(
    cluster: Any,
    peer: Peer,
    client: voxframe.Client,
    recordings: Path,
    tmp_path: Path,
) -> None:
    """With workers killed midway, jobs and tables equal those of one machine, and all requests keep to the rate."""
    table = pd.DataFrame({"path": sorted(recordings.glob("*.mp3")), "customer": ["Ash", "Elm"] * 10})
    alone, spread = voxframe.Corpus(tmp_path / "alone"), voxframe.Corpus(tmp_path / "spread")
    alone.submit(table, client=client, progress=False)
    alone.sync(client=client, wait=True, progress=False)
    peer.asked.clear()
    peer.asked_at.clear()
    with (
        scale.on_workers(client, requests_per_second=_RATE) as workers,
        workers_killed(cluster, peer, {"POST /v2/upload": 5, "GET /v2/transcript/": 5}),
    ):
        sent = spread.submit(table, client=workers, concurrency=8, progress=False)
        done = spread.sync(client=workers, concurrency=8, wait=True, progress=False)
    assert (sent.sent, done.fetched, done.failed, done.uncertain) == (20, 20, 0, 0)
    assert sum(line == "POST /v2/transcript" for line in peer.asked) == 20
    for mine, theirs in zip(_state(spread), _state(alone), strict=True):
        pd.testing.assert_frame_equal(mine, theirs)
    times = sorted(peer.asked_at)
    assert len(times) >= 60
    assert len(times) <= 2 + _RATE * (times[-1] - times[0])


def test_workers_read_the_recordings(
    cluster: Any,
    peer: Peer,
    client: voxframe.Client,
    recordings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process with the corpus opens no recording: the workers hash and upload them, and fetch the transcripts."""
    now = time.time() - 60
    for path in recordings.iterdir():
        os.utime(path, (now, now))
    time.sleep(0.05)  # a file that changed just now is hashed again
    monkeypatch.setattr("voxframe.corpus.media._open", lambda source: pytest.fail(f"opened {source}"))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    with scale.on_workers(client, requests_per_second=200) as workers:
        assert corpus.submit(recordings, client=workers, concurrency=8, progress=False).sent == 20
        assert corpus.submit(recordings, client=workers, progress=False).known == 20
        assert corpus.sync(client=workers, wait=True, progress=False).fetched == 20
    assert peer.count("POST /v2/upload") == 20


def test_a_limit_of_the_service_slows_all_workers(
    cluster: Any,
    peer: Peer,
    client: voxframe.Client,
    recordings: Path,
    tmp_path: Path,
) -> None:
    """Submissions that are refused because there were too many are repeated, and each recording becomes one job."""
    peer.limit_submissions = 3
    corpus = voxframe.Corpus(tmp_path / "corpus")
    with scale.on_workers(client, requests_per_second=200) as workers:
        assert corpus.submit(recordings, client=workers, concurrency=4, progress=False).sent == 20
    assert len(peer.statuses) == 20


def test_what_is_missing_is_named(
    cluster: Any,
    client: voxframe.Client,
    recordings: Path,
    tmp_path: Path,
) -> None:
    """A rate that is not positive and a worker without the key of the service are errors that say what to do."""
    wrong: Any
    for wrong in (0, -1, "10", None, float("nan")):
        with pytest.raises(OptionError, match=r"requests_per_second must be a number from 0.001 to 1e.06, got"):
            scale.on_workers(client, requests_per_second=wrong)
    cluster.run(lambda: os.environ.pop("VOXFRAME_API_KEY"))
    try:
        corpus = voxframe.Corpus(tmp_path / "corpus")
        with (
            scale.on_workers(client, requests_per_second=200) as workers,
            pytest.raises(SettingsError, match="set VOXFRAME_API_KEY in the environment of every worker"),
        ):
            corpus.submit(recordings, client=workers, progress=False)
    finally:
        cluster.run(os.environ.__setitem__, "VOXFRAME_API_KEY", "test-key")
