"""A corpus with a faulty service, killed processes and concurrent readers: counts lost, duplicate and unreadable data.

`python -m tests.benchmarks faults` and `test_faults.py` use it. A life is a process of its own:
`python tests/corpus/torture.py batch|write ...`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import requests

import voxframe
from voxframe import settings
from voxframe.client.http import Transport
from voxframe.corpus.batch import sync
from voxframe.errors import CorpusError, PayloadError, ServiceError

#: In place of the 120 s of a real service: longer than the faulty one is silent, or late.
SETTLE_S = 1.5
_READ_TIMEOUT_S = 0.4
_HERE = Path(__file__)


@dataclass
class Figures:
    """Result of a run.

    Attributes:
        recordings: Recordings to submit.
        completed: Those with a transcript in the corpus that has the right text.
        uncertain: Those that are uncertain in `jobs()`.
        lost: Those that are neither, or lack the metadata they were submitted with.
        twice: Recordings for which the service created more than one job.
        faults: Faults of the service, by kind.
        kills: Processes that were killed.
    """

    recordings: int = 0
    completed: int = 0
    uncertain: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0


@contextlib.contextmanager
def faulty_service(seed: int, rate: float, latency_s: float = 0.0) -> Iterator[str]:
    """Run the service as a separate process; yield its URL."""
    command = [sys.executable, str(_HERE.with_name("faulty.py")), "--seed", str(seed), "--rate", str(rate)]
    with subprocess.Popen(
        [*command, "--latency", str(latency_s)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            yield service.stdout.readline().strip()
        finally:
            service.kill()


def client_of(base_url: str) -> voxframe.Client:
    """Return a client with short timeouts."""
    known = settings.resolve(base_url, api_key="k")
    return voxframe.Client(known, transport=Transport(base_url, known.api_key, read_timeout_s=_READ_TIMEOUT_S))


def make_recordings(folder: Path, count: int, seed: int) -> list[str]:
    """Create files of different content; return the hash of each."""
    folder.mkdir(parents=True)
    made = []
    for n in range(count):
        data = f"recording {seed} {n}".encode()
        folder.joinpath(f"{n}.mp3").write_bytes(data)
        made.append(hashlib.sha256(data).hexdigest())
    return made


def addresses(count: int, seed: int) -> list[str]:
    """Return URLs, which the service does not fetch."""
    return [f"https://audio.example/{seed}/{n}.mp3" for n in range(count)]


def work(corpus: voxframe.Corpus, client: voxframe.Client, sources: list[str]) -> None:
    """Run one process of a batch until it ends."""
    table = pd.DataFrame({"source": sources, "customer": list(map(_customer, sources))})
    corpus.submit(table, client=client, progress=False)
    corpus.retry(client=client, progress=False)
    corpus.sync(client=client, progress=False)


def _customer(source: str) -> str:
    """Return the metadata of a recording: the folder or list it comes from."""
    return source.rpartition("/")[0] if source.startswith("https:") else source


def finish(corpus: voxframe.Corpus, base_url: str, sources: list[str], wanted: list[str], kills: int = 0) -> Figures:
    """Stop the faults, complete everything, and count."""
    facts = requests.get(f"{base_url}/facts", timeout=30).json()
    requests.post(f"{base_url}/calm", timeout=30)
    with client_of(base_url) as client:
        for _ in range(2):
            time.sleep(SETTLE_S)
            work(corpus, client, sources)
            corpus.sync(client=client, wait=True, progress=False)
    made = Counter(job["media"] for job in requests.get(f"{base_url}/facts", timeout=30).json()["made"])
    jobs = corpus._ledger.jobs()
    state = {job.media.removeprefix("sha256:"): job for job in jobs}
    text = corpus.table("transcripts").set_index("transcript_id")["text"].to_dict()
    customer = corpus.metadata.get().set_index("transcript_id")["customer"].to_dict()
    found = Figures(recordings=len(wanted), kills=kills, faults=Counter(facts["faults"]))
    for media in wanted:
        job = state.get(media)
        if job is not None and job.state == "completed" and text.get(job.transcript_id) == media:
            found.completed += 1
            submitted = _customer(media) if media.startswith("https:") else str(Path(job.source).parent)
            if customer.get(job.transcript_id) != submitted:
                found.lost.append(f"{media}: its metadata are {customer.get(job.transcript_id)!r}")
        elif job is not None and job.state == "uncertain":
            found.uncertain += 1
        else:
            found.lost.append(f"{media}: {job and job.state}")
        if made[media] > 1:
            found.twice.append(media)
    return found


def under_faults(folder: Path, *, recordings: int, rate: float, seed: int) -> Figures:
    """Run a batch of files and URLs with a failing service, restarted whenever it gives up."""
    with faulty_service(seed, rate) as base_url:
        corpus = voxframe.Corpus(folder / "corpus")
        urls = addresses(recordings // 4, seed)
        wanted = make_recordings(folder / "calls", recordings - len(urls), seed) + urls
        sources = [str(folder / "calls"), *urls]
        with client_of(base_url) as client:
            for _ in range(20):
                with contextlib.suppress(ServiceError):
                    work(corpus, client, sources)
                    break
        return finish(corpus, base_url, sources, wanted)


def under_kills(folder: Path, *, kills: int, a_life: int, rate: float, seed: int) -> Figures:
    """Run batches that are killed (-9) at any moment; each process adds its own recordings to the remaining ones."""
    chance = random.Random(seed)
    wanted: list[str] = []
    sources: list[str] = []
    with faulty_service(seed, rate, latency_s=0.01) as base_url:
        corpus = voxframe.Corpus(folder / "corpus")
        for life in range(kills):
            mine = [str(folder / f"calls{life}"), *addresses(a_life // 4, 1000 * seed + life)]
            wanted += make_recordings(folder / f"calls{life}", a_life - a_life // 4, 1000 * seed + life) + mine[1:]
            sources += mine
            with (
                _life("batch", str(corpus.path), base_url, *mine) as process,
                contextlib.suppress(subprocess.TimeoutExpired),
            ):
                process.wait(chance.uniform(0.02, 0.9))
        return finish(corpus, base_url, sources, wanted, kills)


@dataclass
class Reads:
    """Result of a reader beside a writer: reads, errors, and mixtures of two payloads."""

    reads: int = 0
    unreadable: list[str] = field(default_factory=list)


def beside_a_writer(folder: Path, *, kills: int, seed: int) -> Reads:
    """Read everything repeatedly while another process replaces it, names speakers, and is killed (-9)."""
    chance = random.Random(seed)
    corpus = voxframe.Corpus(folder / "corpus")
    for n in range(_TRANSCRIPTS):
        corpus.raw.put(f"w{n}", _version(n, 0))
    seen = Reads()
    for life in range(kills):
        with _life("write", str(corpus.path), str(life)) as process:
            until = time.monotonic() + chance.uniform(0.05, 0.5)
            while time.monotonic() < until:
                _read(corpus, seen)
            process.kill()
            process.wait()
        _read(corpus, seen)
    return seen


_TRANSCRIPTS = 6


def _version(n: int, version: int) -> bytes:
    count = 40 + version % 17
    words = [{"text": f"v{version}", "start": 9 * i, "end": 9 * i + 8, "speaker": "A"} for i in range(count)]
    return json.dumps({"id": f"w{n}", "status": "completed", "text": f"{count}", "words": words}).encode()


def _read(corpus: voxframe.Corpus, seen: Reads) -> None:
    for n in range(_TRANSCRIPTS):
        seen.reads += 1
        try:
            tables = corpus.tables(f"w{n}")
            words = tables["words"]
            raw = json.loads(corpus.raw.get(f"w{n}"))
            about = corpus.metadata.get(f"w{n}")
            names = corpus.speakers.get(f"w{n}")
        except (CorpusError, PayloadError, OSError, ValueError) as error:
            seen.unreadable.append(repr(error))
            continue
        whole = words["text"].nunique() == 1 and len(words) == 40 + int(words["text"][0][1:]) % 17
        whole &= words["speaker_name"].nunique() == 1 and len(names) <= 1 and len(about) == 1
        if not whole or len(raw["words"]) != int(raw["text"]):
            seen.unreadable.append(f"a mixture: {len(words)} words")


@contextlib.contextmanager
def _life(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has started its work; it is killed at the end."""
    with subprocess.Popen([sys.executable, str(_HERE), *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


def main() -> None:
    """Run in the other process."""
    kind, path, *rest = sys.argv[1:]
    corpus = voxframe.Corpus(path)
    if kind == "batch":
        sync.SETTLE_S = SETTLE_S
        client = client_of(rest[0])
        print("at work", flush=True)
        while True:
            with contextlib.suppress(ServiceError):
                work(corpus, client, rest[1:])
                return
    print("at work", flush=True)
    version = 1000 * (int(rest[0]) + 1)
    while True:
        version += 1
        for n in range(_TRANSCRIPTS):
            corpus.raw.put(f"w{n}", _version(n, version))
            if version % 3 == n % 3:
                corpus.speakers.set(f"w{n}", {"A": f"Ada {version}"})
                corpus.metadata.set(pd.DataFrame({"transcript_id": [f"w{n}"], "customer": [f"{version}"]}))


if __name__ == "__main__":
    main()
