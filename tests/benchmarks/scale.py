"""A corpus of 100 to 10,000 one-hour transcripts: throughput and peak memory, beside DuckDB and Polars with schemas.

Payloads are generated on the fly: a few random ones, each repeated under new ids and with a `text` that starts at
another word. Every figure is the processor time of a process of its own, with that of the processes that it starts;
memory is theirs together. Ratios are to `orjson.loads` of the same bytes, or to one Parquet file with the same rows.
What runs on one core decodes each payload with `orjson.loads` just before it is added, and this time is the peer: on a
busy machine, the same work takes up to twice as long a minute later.
"""

import argparse
import contextlib
import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import voxframe
from tests.benchmarks.payloads import payload

_BASES = 16
_CHUNK = 64  # payloads in memory
_AT_ONCE = 1000  # transcripts whose words are in memory: 1.2 GB


def _id(number: int) -> str:
    """Return the id of a transcript. Ids are in another order than the payloads, as those of a service."""
    return hashlib.blake2b(str(number).encode(), digest_size=16).hexdigest()


def payloads(folder: Path, count: int) -> Iterator[bytes]:
    """Yield payloads of an hour each; each id and text is new, and the same in every process."""
    bases = []
    for path in sorted(folder.glob("base*.json")):
        before, key, after = path.read_bytes().partition(b'"text":"')  # the first one is that of the transcript
        text = after[: after.index(b'"')]
        bases.append((before[before.index(b'",') :] + key, text, path, len(before + key + text)))
    for number in range(count):
        before, text, path, end = bases[number % len(bases)]
        start = text.find(b" ", number // len(bases) * 7919 % len(text)) + 1
        new = text[start:] + b" " + text[: start - 1] if start else text
        with path.open("rb", buffering=0) as file:  # the bases would take 30 MB of memory
            file.seek(end)
            yield b"".join([b'{"id":"', _id(number).encode(), before, new, file.read()])


def chunks(folder: Path, count: int) -> Iterator[list[bytes]]:
    """Yield lists of payloads."""
    found = []
    for raw in _beside_loads(payloads(folder, count)):
        found.append(raw)
        if len(found) == _CHUNK:
            yield found
            found = []
    if found:
        yield found


_WORD = 'STRUCT(text VARCHAR, start BIGINT, "end" BIGINT, confidence DOUBLE, speaker VARCHAR)'
_PASSAGE = 'STRUCT(text VARCHAR, start BIGINT, "end" BIGINT, confidence DOUBLE, speaker VARCHAR)[]'
_SCHEMA = {
    "id": "VARCHAR", "status": "VARCHAR", "text": "VARCHAR", "audio_duration": "DOUBLE", "confidence": "DOUBLE",
    "words": f"{_WORD}[]", "utterances": _PASSAGE,
    "entities": 'STRUCT(entity_type VARCHAR, text VARCHAR, start BIGINT, "end" BIGINT)[]',
    "chapters": 'STRUCT(headline VARCHAR, gist VARCHAR, summary VARCHAR, start BIGINT, "end" BIGINT)[]',
    "sentiment_analysis_results":
        'STRUCT(text VARCHAR, start BIGINT, "end" BIGINT, sentiment VARCHAR, confidence DOUBLE, speaker VARCHAR)[]',
}  # fmt: skip
_LISTS = ("words", "utterances", "entities", "chapters", "sentiment_analysis_results")


class _Beside:
    """Payloads that are decoded with `orjson.loads` before they are yielded.

    Attributes:
        took: Seconds that decoding took.
        spent: The same with the time of generating the payloads.
    """

    took = spent = 0.0

    def __call__(self, raws: Iterable[bytes]) -> Iterator[bytes]:
        start = time.thread_time()
        for raw in raws:
            generated = time.thread_time()
            orjson.loads(raw)
            decoded = time.thread_time()
            self.took += decoded - generated
            self.spent += decoded - start
            yield raw
            start = time.thread_time()


_beside_loads = _Beside()


def add(folder: Path, count: int) -> None:
    """Raw copies and all tables, as a user adds them: on all cores."""
    _add(folder, payloads(folder, count))


def add_on_one_core(folder: Path, count: int) -> None:
    """The same on one core, to another corpus."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    _add(folder / "one", _beside_loads(payloads(folder, count)))
    shutil.rmtree(folder / "one")


def _add(folder: Path, raws: Iterator[bytes]) -> None:
    corpus = voxframe.Corpus(folder / "corpus")
    start = time.perf_counter()
    corpus.add(raws, progress=False)
    corpus._archive.wait()
    print(f"{time.perf_counter() - start - _beside_loads.took:.1f} s by the clock")  # with generating, as on all cores


def loads(folder: Path, count: int) -> None:
    """`orjson.loads` of every payload."""
    for raw in payloads(folder, count):
        orjson.loads(raw)


def loads_on_all_cores(folder: Path, count: int) -> None:
    """`orjson.loads` of the same payloads in one process, then in one per core at once: what more cores can gain."""
    clock = {}
    for processes in (1, len(os.sched_getaffinity(0))):
        task = multiprocessing.get_context("fork").Process
        started = [task(target=loads, args=(folder, count // processes)) for _ in range(processes)]
        start = time.perf_counter()
        for process in started:
            process.start()
        for process in started:
            process.join()
        clock[processes] = time.perf_counter() - start
        print(f"{clock[processes]:.1f} s by the clock in {processes}")
    print(f"{clock[1] / clock[processes]:.2f} times as fast")


def with_duckdb(folder: Path, count: int) -> None:
    """Six tables to Parquet with a typed schema, one thread, no raw copy."""
    import duckdb

    columns = "{" + ", ".join(f"{name}: '{kind}'" for name, kind in _SCHEMA.items()) + "}"
    out = folder / "duckdb"
    out.mkdir()
    connection = duckdb.connect(config={"threads": 1})
    for number, some in enumerate(chunks(folder, count)):
        lines = folder / "chunk.json"
        lines.write_bytes(b"\n".join(some))
        connection.execute(
            f"create or replace temp table p as from read_json('{lines}', format='newline_delimited', "
            f"columns={columns}, maximum_object_size=10000000)"
        )
        for name in _LISTS:
            connection.execute(
                f"copy (select id, unnest({name}, max_depth := 2) from p) to '{out}/{name}-{number}.parquet' "
                "(compression zstd)"
            )
        connection.execute(
            f"copy (select id, status, text, audio_duration, confidence from p) to '{out}/t-{number}.parquet'"
        )


def with_polars(folder: Path, count: int) -> None:
    """The same six tables with Polars and a schema, no raw copy."""
    import polars as pl

    passage = pl.Struct(
        {"text": pl.String, "start": pl.Int64, "end": pl.Int64, "confidence": pl.Float64, "speaker": pl.String}
    )
    place = {"start": pl.Int64, "end": pl.Int64}
    schema = {
        "id": pl.String, "status": pl.String, "text": pl.String, "audio_duration": pl.Float64, "confidence": pl.Float64,
        "words": pl.List(passage), "utterances": pl.List(passage),
        "entities": pl.List(pl.Struct({"entity_type": pl.String, "text": pl.String, **place})),
        "chapters": pl.List(pl.Struct({"headline": pl.String, "gist": pl.String, "summary": pl.String, **place})),
        "sentiment_analysis_results": pl.List(
            pl.Struct(
                {"text": pl.String, "sentiment": pl.String, "confidence": pl.Float64, "speaker": pl.String, **place}
            )
        ),
    }  # fmt: skip
    out = folder / "polars"
    out.mkdir()
    for number, some in enumerate(chunks(folder, count)):
        frame = pl.read_ndjson(b"\n".join(some), schema=schema)
        for name in _LISTS:
            rows = frame.select("id", name).explode(name).unnest(name)
            rows.write_parquet(out / f"{name}-{number}.parquet", compression="zstd", compression_level=1)
        frame.drop(_LISTS).write_parquet(out / f"t-{number}.parquet")


def read_words(folder: Path, count: int) -> None:
    """All words to pandas, at most 1,000 transcripts at a time."""
    corpus = voxframe.Corpus(folder / "corpus")
    if count <= _AT_ONCE:
        _print_size(corpus.table("words"))
    else:
        print(sum(map(len, corpus.batches("words", size=_AT_ONCE))))


def read_categories(folder: Path, _count: int) -> None:
    """All words to pandas, with ids and speakers as `category`."""
    _print_size(voxframe.Corpus(folder / "corpus").table("words", category=True))


def _print_size(words: pd.DataFrame) -> None:
    found: dict[int, int] = {}  # of each buffer, which columns may share
    for name in words:
        values: Any = words[name].array
        if isinstance(values, pd.Categorical):
            found |= {id(values): values.nbytes}
            continue
        if hasattr(values, "_pa_array"):
            buffers = [one for chunk in values._pa_array.chunks for one in chunk.buffers() if one is not None]
            found |= {one.address: one.size for one in buffers}
            continue
        arrays = [values._data, values._mask] if hasattr(values, "_mask") else [words[name].to_numpy()]
        found |= {one.ctypes.data: one.nbytes for one in arrays}
    print(f"{len(words)}: {sum(found.values()) / len(words):.0f} MB per million words")


def one_file(folder: Path, _count: int) -> None:
    """The same words from one Parquet file with `pandas.read_parquet`."""
    print(len(pd.read_parquet(folder / "words.parquet")))


def stored_transcripts(folder: Path, _count: int) -> None:
    """The table `transcripts` as stored, with `pandas.read_parquet` of its folder."""
    print(len(pd.read_parquet(folder / "corpus" / "tables" / "transcripts")))


def read_transcripts(folder: Path, _count: int) -> None:
    """`table("transcripts")`."""
    print(len(voxframe.Corpus(folder / "corpus").table("transcripts")))


def some_words(folder: Path, count: int) -> None:
    """Words of 1% of the transcripts."""
    ids = [_id(number) for number in range(0, count, 100)]
    print(len(voxframe.Corpus(folder / "corpus").table("words", where=[("transcript_id", "in", ids)])))


def by_confidence(folder: Path, _count: int) -> None:
    """Words with a low confidence."""
    print(len(voxframe.Corpus(folder / "corpus").table("words", where=[("confidence", "<", 0.5)])))


def one_transcript(folder: Path, count: int) -> float:
    """Words of one transcript, in an open corpus: the median of 21."""
    corpus = voxframe.Corpus(folder / "corpus")
    took = []
    for number in range(21):
        start = time.process_time()
        corpus.table("words", _id(number * 7919 % count))
        took.append(time.process_time() - start)
    print(f"median {sorted(took)[10] * 1000:.1f} ms")
    return sorted(took)[10]


def put_one(folder: Path, count: int) -> None:
    """Put one more transcript: the median of 11."""
    corpus = voxframe.Corpus(folder / "corpus")
    took = []
    files = sum(1 for path in (folder / "corpus").rglob("*") if path.is_file())
    for number, raw in enumerate(payloads(folder, 11)):
        start = time.perf_counter()
        corpus.raw.put(_id(count + number), raw)
        took.append(time.perf_counter() - start)
    more = sum(1 for path in (folder / "corpus").rglob("*") if path.is_file()) - files
    print(f"median {sorted(took)[5] * 1000:.0f} ms, {more / 11:.1f} new files each")


def forget_one(folder: Path, _count: int) -> None:
    """Forget one transcript."""
    corpus = voxframe.Corpus(folder / "corpus")
    start = time.perf_counter()
    corpus.forget(_id(5))
    print(f"{time.perf_counter() - start:.2f} s")


def edit_one(folder: Path, count: int) -> None:
    """Rename a speaker and correct a turn of one transcript: the medians of 11."""
    corpus = voxframe.Corpus(folder / "corpus")
    corpus.speakers.set(_id(1), {"A": "Ada"})
    took: list[list[float]] = [[], []]
    for number in range(11):
        transcript_id = _id(number * 7919 % count)
        start = time.perf_counter()
        corpus.speakers.set(transcript_id, {"A": "Ada", "B": "Grace"})
        middle = time.perf_counter()
        corpus.corrections.set(transcript_id, {3: "We met in Zürich."})
        took[0].append(middle - start)
        took[1].append(time.perf_counter() - middle)
    print("medians " + ", ".join(f"{sorted(times)[5] * 1000:.0f} ms" for times in took))


def rebuild(folder: Path, _count: int) -> None:
    """Rebuild all tables from the raw payloads, on all cores."""
    shutil.rmtree(folder / "corpus" / "tables")
    for path in folder.glob("corpus/catalog.sqlite*"):
        path.unlink()
    start = time.perf_counter()
    corpus = voxframe.Corpus(folder / "corpus")
    print(corpus.raw.rebuild_tables(progress=False), end=" rebuilt in ")
    corpus._archive.wait()
    print(f"{time.perf_counter() - start:.1f} s by the clock")


def open_corpus(folder: Path, _count: int) -> None:
    """List the transcripts of a corpus that was just opened, and how many rows they have."""
    print(voxframe.Corpus(folder / "corpus")._query.rows("transcripts").__len__())


def search_cold(folder: Path, _count: int) -> None:
    """Count a word in a corpus that was just opened, without a search index, which is built."""
    print(len(voxframe.Corpus(folder / "corpus").counts("ba")))


def search_words(folder: Path, _count: int) -> float:
    """Search words and pairs as they were said somewhere, in an open corpus: 200 counts, 200 times 100 rows."""
    corpus, said = voxframe.Corpus(folder / "corpus"), np.random.default_rng(1)
    corpus.counts("nothing")
    words = [re.findall(r"\w+", orjson.loads(path.read_bytes())["text"]) for path in sorted(folder.glob("base*.json"))]
    took: dict[str, list[float]] = {"counts": [], "search": []}
    for number in range(200):
        text = words[said.integers(len(words))]
        at = said.integers(len(text) - 1)
        query = " ".join(text[at : at + 1 + number % 2])
        start = time.process_time()
        corpus.counts(query)
        middle = time.process_time()
        corpus.search(query, limit=100)
        took["counts"].append(1e3 * (middle - start))
        took["search"].append(1e3 * (time.process_time() - middle))
    shown = ((name, *np.percentile(times, [50, 99])) for name, times in took.items())
    print(", ".join(f"{name} median {median:.1f} ms, 99 % {high:.1f} ms" for name, median, high in shown))
    return float(sum(np.median(times) for times in took.values())) / 1e3


_STEPS = (
    loads, add_on_one_core, add, loads_on_all_cores, with_duckdb, with_polars, one_file, read_words, read_categories,
    stored_transcripts, read_transcripts, some_words, by_confidence, one_transcript, open_corpus, put_one, edit_one,
    forget_one, search_cold, search_words, rebuild,
)  # fmt: skip
#: Steps that are left out for more than 1,000 transcripts: they need too much memory, or show nothing new.
_OF_FEW = (add_on_one_core, loads_on_all_cores, with_duckdb, with_polars, one_file, read_categories, by_confidence)
#: Steps whose time should grow with the number of transcripts, and not faster.
_LINEAR = ("loads", "add", "read_words", "read_transcripts", "open_corpus", "some_words", "rebuild", "search_cold")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks scale", description=__doc__.partition("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=[100, 1000], help="numbers of transcripts")
    parser.add_argument("--only", nargs="+", metavar="STEP", help=f"of {', '.join(step.__name__ for step in _STEPS)}")
    parser.add_argument("--folder", type=Path, help="keep corpora here, and use those that are here")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    alone = {"loads", "add_on_one_core", "add", "loads_on_all_cores", "with_duckdb", "with_polars"}
    if given.only and given.folder is None and "add" not in given.only and (others := {*given.only} - alone):
        parser.error(f"{', '.join(sorted(others))} need the corpus that the step add makes: name add, too")
    if given.step:
        voxframe.load_words(payload(10))  # imports what is imported on first use
        voxframe.Corpus(Path(given.step[1], "nothing")).table("words")
        step: Any = next(step for step in _STEPS if step.__name__ == given.step[0])
        first = _used()
        one = step(Path(given.step[1]), given.counts[0])
        own, system = (now - before for now, before in zip(_used(), first, strict=True))
        print(one or 0)
        print(_beside_loads.took)
        print(own - _beside_loads.spent)
        print(own + system - _beside_loads.spent)
        return 0
    measured: dict[int, _Times] = {}
    for count in given.counts:
        steps = [step.__name__ for step in _STEPS if count <= _AT_ONCE or step not in _OF_FEW]
        with tempfile.TemporaryDirectory() as folder:
            kept = (given.folder or Path(folder)) / str(count)
            kept.mkdir(parents=True, exist_ok=True)
            measured[count] = _measure(kept, count, given.only or steps)
    _print_growth(measured)
    return 0


class _Times(NamedTuple):
    """Processor times of the steps, these without the system's, and those of one call in steps that repeat it."""

    whole: dict[str, float]
    own: dict[str, float]
    one: dict[str, float]


def _used() -> tuple[float, float]:
    """Return the processor time of this process and those it has started: its own, and that of the system for it."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime for used in both), sum(used.ru_stime for used in both)


def _print_growth(measured: Mapping[int, _Times]) -> None:
    """Print how times grow from each number of transcripts to the next.

    The system's share is mostly new memory, which takes more time on a busy machine. Times of few transcripts include
    what every process does once, so those of additional transcripts are printed, too.
    """
    for few, many in pairwise(sorted(measured)):
        before, after = measured[few], measured[many]
        print(f"growth from {few} to {many}: time per transcript, relative; without the system's; each additional one")
        for name in _LINEAR:
            if name in before.own and name in after.own:
                whole = after.whole[name] / before.whole[name] * few / many
                own = after.own[name] / (before.own[name] or np.nan) * few / many
                more = (after.own[name] - before.own[name]) / (many - few) * 1e3
                print(f"  {name:20}{whole:8.2f}{own:8.2f}{more:10.3f} ms")
        for name in before.one.keys() & after.one.keys():
            print(f"  {name:20}{after.one[name] / before.one[name]:8.2f} times the time of one call")


def _run(command: list[str]) -> tuple[list[str], float]:
    """Run a process. Return what it printed, and the most memory in MB that it and its children had at one time.

    Memory that processes share is counted once.
    """
    environment = os.environ | {
        "PYTHONWARNINGS": "ignore",
        "POLARS_MAX_THREADS": "1",
        "ARROW_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        most = 0
        while process.poll() is None:
            with contextlib.suppress(OSError):
                others = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                lines = [Path(f"/proc/{one}/smaps_rollup").read_text() for one in (process.pid, *others)]
                most = max(most, sum(int(text.partition("\nPss:")[2].split()[0]) for text in lines))
            time.sleep(0.1)
        assert process.stdout is not None
        out = process.stdout.read().splitlines()
    if process.returncode:
        raise SystemExit(process.returncode)
    return out, most / 1024


def _measure(folder: Path, count: int, steps: Collection[str]) -> _Times:
    """Print the figures of each step. Return the times."""
    for number in range(min(_BASES, count)):
        (folder / f"base{number:02}.json").write_bytes(payload(9000, seed=number))
    print(f"{count} transcripts of an hour")
    times = _Times({}, {}, {})
    took = times.whole
    clock: dict[str, float] = {}
    for step in _STEPS:
        if step.__name__ not in steps:
            continue
        if step is one_file:
            _write_one_file(folder)
        command = [sys.executable, "-m", "tests.benchmarks", "scale", str(count), "--step", step.__name__, str(folder)]
        out, megabytes = _run(command)
        *said, one, beside, own, whole = out
        if step in (add_on_one_core, add):
            clock[step.__name__] = float(said[0].split()[0])
        if step is add and "add_on_one_core" in clock:
            said.append(f"{clock['add_on_one_core'] / clock['add']:.2f} times as fast as on one core")
        took[step.__name__], times.own[step.__name__] = float(whole), float(own)
        if float(one):
            times.one[step.__name__] = float(one)
        peer = "one_file" if step in (read_words, read_categories) else "loads"
        peer = "read_words" if step in (some_words, by_confidence) else peer
        peer = "stored_transcripts" if step is read_transcripts else peer
        compared = float(beside) or took.get(peer)
        ratio = f"{took[step.__name__] / compared:6.2f} of {peer}" if compared else ""
        print(
            f"  {step.__name__:20}{float(whole):8.2f} s {ratio:22} {megabytes:6.0f} MB  {', '.join(said)}", flush=True
        )
    files = list((folder / "corpus" / "tables").rglob("*.parquet"))
    words = [path for path in files if path.parent.name == "words"]
    rows = sum(pq.read_metadata(path).num_rows for path in words)
    if rows:
        print(f"  {len(files)} files of tables, {sum(path.stat().st_size for path in words) / rows:.2f} bytes per word")
    if took.keys() >= {"add", "read_words", "search_cold", "open_corpus"}:
        _extrapolate(folder / "corpus", count, took)
    return times


def _extrapolate(corpus: Path, count: int, took: dict[str, float]) -> None:
    """Print the arithmetic for a million recordings of an hour, from what was measured with `count`."""
    million, per_tb, per_core_hour, cores = 10**6, 23, 0.05, 64
    print(f"  a million recordings (9 billion words), from these {count}; assumed: {per_tb} $ per TB and month,")
    print(f"  {per_core_hour} $ per core hour, {cores} cores (8 machines)")
    sizes = {}
    for name in ("raw", "tables", "search"):
        total = sum(path.stat().st_size for path in (corpus / name).rglob("*") if path.is_file())
        sizes[name] = total / count * million / 1e12
        print(f"    {name + '/':12} {total / count / 1e3:9.1f} kB each x 10^6 = {sizes[name]:.3f} TB")
    storage = sum(sizes.values())
    print(f"    storage      {storage:.2f} TB x {per_tb} $ = {storage * per_tb:.0f} $ per month")
    for name in ("add", "read_words", "search_cold"):
        hours = took[name] / count * million / 3600
        print(
            f"    {name:12} {took[name] / count * 1e3:9.2f} ms each x 10^6 = {hours:.1f} core hours, "
            f"{hours / cores:.1f} h on {cores} cores, {hours * per_core_hour:.2f} $"
        )
    seconds = took["open_corpus"] / count * million
    print(
        f"    open_corpus  {took['open_corpus'] / count * 1e3:9.3f} ms each x 10^6 = {seconds:.0f} s in every process"
    )
    print(
        "    breaks first: opening, which lists every payload and reads every manifest, and the one lock for changes."
    )
    print("    Use one corpus per month or customer, and publish them to Delta tables side by side.")


def _write_one_file(folder: Path) -> None:
    files = sorted((folder / "corpus" / "tables" / "words").glob("[!_]*.parquet"))
    with pq.ParquetWriter(folder / "words.parquet", pq.read_schema(files[0]), compression="zstd") as writer:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(1 << 20):
                writer.write_table(pa.Table.from_batches([batch]))
