"""Transcription with uploads and downloads as Dask tasks, under one rate limit and with one ledger.

Workers read, hash and upload recordings and fetch transcripts. All of that is free and can be repeated, so a worker may
die at any time. The request that is paid for is sent by the process with the corpus, after it wrote the ledger.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voxframe.client import Client, Transcript, api
from voxframe.client.api import View
from voxframe.client.async_bridge import check_wanted
from voxframe.client.http import Transport
from voxframe.client.response import HTTPResponse
from voxframe.client.transfers import UploadSource, upload
from voxframe.corpus.job import is_address, is_remote
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.media import file_place, identify, opened
from voxframe.errors import MissingExtraError, OptionError, ServiceUnreachableError, SettingsError
from voxframe.settings import ENVIRONMENT, Settings, resolve
from voxframe.validators import Number, checked

if TYPE_CHECKING:
    import distributed

T = TypeVar("T")

_SLICE_S = 1.0  # a wait can be cancelled after this time
_HASHED_AT_ONCE = 1000  # recordings


def on_workers(client: Client, *, requests_per_second: float = 10.0) -> WorkerClient:
    """Return a client whose uploads and downloads run on the workers of the current Dask cluster.

    Pass it to `Corpus.submit`, `retry`, `sync` and `adopt`, with a `concurrency` of at least the number of workers'
    threads. Files must be readable by all workers under the same path or URL. A worker takes the key from its own
    environment (`VOXFRAME_API_KEY`), because keys are never sent to other processes.

    Args:
        client: The service.
        requests_per_second: Maximum rate of all requests, by all workers and this process together.

    Returns:
        The client.

    Raises:
        OptionError: The rate is not a number from 0.001 to 1,000,000, or there is no Dask cluster.
        MissingExtraError: Dask is not installed.

    Example:
        >>> with voxframe.scale.on_workers(client, requests_per_second=20) as workers:  # doctest: +SKIP
        ...     corpus.submit("s3://bucket/calls/*.mp3", client=workers, concurrency=64)
        ...     corpus.sync(client=workers, concurrency=64, wait=True)
    """
    requests_per_second = checked("requests_per_second", requests_per_second, Number(0.001, 1_000_000))
    try:
        import distributed
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "voxframe.scale.on_workers") from None
    try:
        cluster = distributed.get_client()
    except ValueError:
        raise OptionError(
            "there is no Dask cluster; create a distributed.Client first, such as distributed.Client(n_workers=4)"
        ) from None
    return WorkerClient(client.settings, cluster, requests_per_second)


class WorkerClient(Client):
    """A client whose uploads and downloads run on Dask workers; see `on_workers`."""

    def __init__(self, settings: Settings, cluster: distributed.Client, requests_per_second: float) -> None:
        self._cluster = cluster
        rate, pause_s = secrets.token_hex(8), 1 / requests_per_second
        super().__init__(settings, transport=_transport(settings, partial(_wait, cluster, rate, pause_s)))
        self._service = _Service(self.base_url, settings.timeout, settings.max_response_mb, rate, pause_s)

    def upload_recording(self, source: str) -> str:
        """Upload a file or an object of a store on a worker. Return its URL at the service."""
        return self._run(_upload, _everywhere(source))

    def hash_recordings(self, sources: Sequence[str], ledger: Ledger) -> None:
        """Hash recordings on the workers and add the hashes to a ledger, which then needs not read the files."""
        hashes = ledger.files()
        places = {file_place(source): _everywhere(source) for source in sources if not is_address(source)}
        unread = [path for place, path in places.items() if place not in hashes]
        for at in range(0, len(unread), _HASHED_AT_ONCE):
            futures = self._cluster.map(_hash, unread[at : at + _HASHED_AT_ONCE], pure=False)
            hashed = self._cluster.gather(futures, errors="skip")  # what fails here is hashed, or reported, later
            ledger.keep_files({place: file for files in hashed for place, file in files.items()})

    def transcript(self, transcript_id: str) -> Transcript:
        """Fetch a transcript in its current state, on a worker."""
        return Transcript(self.transport, transcript_id, self._run(_fetch, transcript_id, "transcript"))

    def fetch(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Fetch the response of the service about a transcript, byte for byte, on a worker."""
        return self._run(_fetch, transcript_id, view).content

    def _run(self, work: Callable[..., T], *args: object) -> T:
        """Run a function of the service and other arguments on a worker, and wait for its result."""
        import distributed

        future = self._cluster.submit(work, self._service, *args, pure=False)
        try:
            while not future.done():
                check_wanted()
                with suppress(TimeoutError):
                    distributed.wait(future, timeout=_SLICE_S)
            result: T = future.result()
        except (distributed.scheduler.KilledWorker, CancelledError, distributed.comm.CommClosedError) as error:
            raise ServiceUnreachableError(
                f"no Dask worker could send the request ({error}). Check the logs of the workers"
            ) from error
        else:
            return result
        finally:
            future.cancel()


def _reserve(rate: str, pause_s: float, dask_scheduler: Any) -> float:
    """Return the seconds until the next request may be sent. This runs in the scheduler, one call at a time."""
    begins: dict[str, float] = dask_scheduler.extensions.setdefault("voxframe", {})
    now = time.monotonic()
    begin = max(now, begins.get(rate, now))
    begins[rate] = begin + pause_s
    return begin - now


def _wait(cluster: distributed.Client, rate: str, pause_s: float) -> None:
    """Wait until a request may be sent."""
    until = time.monotonic() + cluster.run_on_scheduler(_reserve, rate, pause_s)
    while (remaining := until - time.monotonic()) > 0:
        check_wanted()
        time.sleep(min(remaining, _SLICE_S))


@dataclass(frozen=True)
class _Service:
    """Settings with which a worker sends requests; the key comes from its own environment."""

    base_url: str
    timeout: float
    max_response_mb: float
    rate: str
    pause_s: float


def _transport(settings: Settings, permit: Callable[[], object], attempts: int = 5) -> Transport:
    assert settings.base_url is not None
    assert settings.api_key is not None
    return Transport(
        settings.base_url,
        settings.api_key,
        response_timeout_s=settings.timeout,
        max_response_bytes=int(settings.max_response_mb * 2**20),
        attempts=attempts,
        concurrency=64,
        permit=permit,
    )


@lru_cache(maxsize=8)
def _on_worker(service: _Service) -> Transport:
    """Return the transport of a worker. It does not repeat requests: the process with the corpus slows all down."""
    import distributed

    settings = resolve(service.base_url, timeout=service.timeout, max_response_mb=service.max_response_mb)
    if settings.api_key is None:
        raise SettingsError(
            f"a Dask worker has no key for {service.base_url}; set {ENVIRONMENT['api_key']} in the environment of "
            "every worker"
        )
    return _transport(settings, lambda: _wait(distributed.get_client(), service.rate, service.pause_s), attempts=1)


def _fetch(service: _Service, transcript_id: str, view: View) -> HTTPResponse:
    return api.get_transcript(_on_worker(service), transcript_id, view)


def _upload(service: _Service, source: str) -> str:
    with opened(source) as file:
        return upload(_on_worker(service), UploadSource(file), progress=False)


class _Hashes(dict[str, tuple[str, str, float | None]]):
    """Hashes of files that were read just now."""

    def file(self, place: str) -> None:
        """Return None: no file is known."""

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Add files."""
        self.update(files)


def _hash(source: str) -> dict[str, tuple[str, str, float | None]]:
    """Return signature, hash and duration of a file, by its key in a ledger."""
    hashes = _Hashes()
    identify(source, hashes)
    return dict(hashes)


def _everywhere(source: str) -> str:
    """Return a path or URL that means the same in every process."""
    return source if is_remote(source) else str(Path(source).absolute())
