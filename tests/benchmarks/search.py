"""Search time over nine million words, compared with Polars, DuckDB and SQLite FTS5.

The words of the synthetic corpus follow Zipf's law. Queries are drawn from the running text, so frequent words are
queried as often as people say them. Other queries have only words and pairs of the twenty most frequent, each a 20th to
a 150th of all words. Everything runs on one core and is measured in processor time. Each system returns the number of
matches per transcript in its fastest form; FTS5 does not count, so it returns the transcripts that have matches. The
results are checked to be equal. The other systems get normalized words. The last part measures what only voxframe does:
words in context, wildcards, any order, opening and adding.
"""

import argparse
import gc
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.benchmarks.one_core import one_core
from voxframe.corpus.archive import Archive
from voxframe.corpus.search import RowFilter, Search
from voxframe.corpus.search.concordance import SearchQuery
from voxframe.corpus.tables import NewMember
from voxframe.corpus.views import Located
from voxframe.schema import WORDS

#: Milliseconds, 99th percentile.
LIMITS = {"counts": 10.0, "search, first 100 rows": 10.0, "open": 100.0, "add a transcript": 20.0}
_FREQUENT = 20
_TYPES = 100_000
_TURN = 25  # words

Matches = dict[int, int]


class MemoryArchive(Archive):
    """An archive with its words in memory, and raw payloads that only show that a transcript exists."""

    def __init__(self, path: Path, forms: pa.Array, transcripts: np.ndarray) -> None:
        super().__init__(path)
        self._forms = forms
        self._transcripts = transcripts

    def table(self, _: str, transcript_id: str) -> pa.Table:
        """Return the words of one of the transcripts."""
        words = self._transcripts[int(transcript_id[1:])]
        count = np.arange(len(words))
        turn = count // _TURN
        columns = {
            "transcript_id": pa.array([transcript_id]).take(pa.array(count * 0)),
            "word_idx": count,
            "utterance_idx": turn,
            "text": self._forms.take(pa.array(words)),
            "start_ms": count * 400,
            "end_ms": count * 400 + 350,
            "confidence": np.full(len(words), 0.9),
            "speaker": pa.array(["A", "B"]).take(pa.array(turn % 2)),
            "channel": pa.nulls(len(words), pa.string()),
            "extra": pa.nulls(len(words), pa.string()),
        }
        return pa.table(columns, schema=WORDS.arrow)

    def batches(self, _: str, ids: Iterable[str], size: int) -> Iterator[list[str]]:
        """Yield the transcripts a few at a time."""
        every = list(ids)
        return (every[at : at + size] for at in range(0, len(every), size))

    def read(self, name: str, ids: Sequence[str], columns: Sequence[str], *_: object) -> tuple[pa.Table, Located]:
        """Return the words of transcripts."""
        tables = {transcript_id: self.table(name, transcript_id).select(columns) for transcript_id in ids}
        loose = {i: NewMember(i, "", "", None, {name: table}) for i, table in tables.items()}
        return pa.concat_tables(tables.values()), Located(loose=loose)


class Corpus(Search):
    """Search over an archive in memory."""

    def __init__(self, path: Path, forms: pa.Array, transcripts: np.ndarray) -> None:
        archive = MemoryArchive(path, forms, transcripts)
        super().__init__(archive)
        self.path, self.forms, self.transcripts = path, forms, transcripts

    def search(self, query: str, slop: int | None = None, limit: int | None = None) -> pd.DataFrame:
        """Search like `Corpus.search`."""
        return self.find(SearchQuery.check(query, slop), 8, RowFilter(limit=limit))

    def counts(self, query: str, by: str = "transcript_id", slop: int | None = None) -> pd.DataFrame:
        """Count like `Corpus.counts`."""
        return super().counts(query, slop, by, None, None, None, None)

    def put(self, number: int) -> None:
        """Make one of the transcripts known."""
        self._archive.store.put(f"t{number:06}", "transcript", b"%d" % number)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print.

    Returns:
        1 if a figure is above its limit, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks search", description=__doc__.partition("\n")[0])
    parser.add_argument("--transcripts", type=int, default=1000, help="of an hour each (default 1000)")
    parser.add_argument("--words", type=int, default=9000, help="words of each (default 9000)")
    parser.add_argument("--queries", type=int, default=400, help="of each kind (default 400)")
    parser.add_argument("--peer-queries", type=int, default=40, help="of them asked of the peers too (default 40)")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus (default 1)")
    asked = parser.parse_args(arguments)
    one_core()
    rng = np.random.default_rng(asked.seed)
    tokens, forms = _vocabulary(rng)
    said = _zipf(rng, (asked.transcripts + 200) * asked.words).reshape(-1, asked.words)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder, "corpus"), forms, 4 * said + rng.integers(0, 4, said.shape))
        for number in range(asked.transcripts):
            corpus.put(number)
        begin = time.perf_counter()
        corpus.counts("none")
        print(f"{asked.transcripts * asked.words:,} words indexed in {time.perf_counter() - begin:.0f} s; ", end="")
        size = sum(path.stat().st_size for path in Path(folder, "corpus", "search").iterdir())
        print(f"{size / 1e6:.0f} MB in {len(list(Path(folder, 'corpus', 'search').glob('*.arrow')))} segments\n")
        queries = _queries(rng, said[: asked.transcripts], tokens, asked.queries)
        over = _peers(
            corpus, said[: asked.transcripts], tokens, queries, asked.peer_queries, Path(folder, "fts.sqlite")
        )
        over |= _alone(corpus, queries, tokens, rng)
        over |= _open_and_add(corpus, asked.transcripts)
    return int(over)


def _vocabulary(rng: np.random.Generator) -> tuple[list[str], pa.Array]:
    """Words as they are compared, and four spellings of each: word, Word, word, (with a comma) and WORD."""
    letters = rng.choice(list("etaoinshrdlucmfwypvbgk"), (2 * _TYPES, 9))
    lengths = rng.integers(3, 10, 2 * _TYPES)
    drawn = ("".join(row[:length]) for row, length in zip(letters, lengths, strict=True))
    tokens = list(dict.fromkeys(drawn))[:_TYPES]
    return tokens, pa.array([form for t in tokens for form in (t, t.capitalize(), f"{t},", t.upper())])


def _zipf(rng: np.random.Generator, size: int) -> np.ndarray:
    weights = 1 / (np.arange(_TYPES) + 2.7)
    return np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(size)).clip(max=_TYPES - 1).astype(np.int32)


def _queries(rng: np.random.Generator, said: np.ndarray, tokens: list[str], count: int) -> dict[str, list[list[int]]]:
    """Words and phrases as they were said somewhere."""

    def drawn(length: int) -> Iterator[list[int]]:
        for _ in range(count):
            row, column = rng.integers(len(said)), rng.integers(said.shape[1] - length)
            yield said[row, column : column + length].tolist()

    kinds = {f"{length} word{'s' * (length > 1)}": list(drawn(length)) for length in (1, 2, 3, 5)}
    kinds["1 frequent word"] = [[word] for word in rng.integers(_FREQUENT, size=count).tolist()]
    kinds["2 frequent words"] = [rng.choice(_FREQUENT, 2, replace=False).tolist() for _ in range(count)]
    return kinds


def _peers(
    corpus: Corpus, said: np.ndarray, tokens: list[str], queries: dict[str, list[list[int]]], few: int, path: Path
) -> bool:
    ways = {"Polars": _polars(said, tokens), "DuckDB": _duckdb(said, tokens), "SQLite FTS5": _fts5(said, tokens, path)}
    print(f"{'matches per transcript, ms':34}{'median':>9}{'99%':>9}{'most':>9}")
    ours_all, over = [], False
    for kind, phrases in queries.items():
        asked = [[tokens[w] for w in words] for words in phrases]
        times, found = _timed(lambda words: corpus.counts(" ".join(words)), asked)
        over |= _show(f"{kind}, voxframe", times, LIMITS["counts"])
        ours_all += times
        for name, way in ways.items():
            peer_times, theirs = _timed(way, asked[:few])
            for ours, other in zip(map(_matches, found), map(_matches, theirs), strict=False):
                if (set(ours) != set(other)) if name == "SQLite FTS5" else (ours != other):
                    raise SystemExit(f"{name} finds something else")
            _show(f"{kind}, {name}", peer_times)
    over |= _show("all kinds, voxframe", ours_all, LIMITS["counts"])
    print("\nresults are equal")
    return over


def _matches(found: pd.DataFrame | pl.DataFrame | list[tuple[int, ...]]) -> Matches:
    """Return the matches that one of the systems found."""
    if isinstance(found, pd.DataFrame):
        some = found[found["occurrences"] > 0]
        return dict(zip(some["transcript_id"].str[1:].astype(int).tolist(), some["occurrences"].tolist(), strict=True))
    return {row[0]: row[-1] for row in (found.iter_rows() if isinstance(found, pl.DataFrame) else found)}


def _polars(said: np.ndarray, tokens: list[str]) -> Callable[[list[str]], pl.DataFrame]:
    document = np.repeat(np.arange(len(said), dtype=np.int32), said.shape[1])
    frame = pl.DataFrame({"document": document, "token": pl.Series(tokens).gather(said.ravel()).cast(pl.Categorical)})

    def ask(words: list[str]) -> pl.DataFrame:
        last = len(words) - 1
        hits = pl.col("document") == pl.col("document").shift(-last)
        for n, word in enumerate(words):
            hits &= pl.col("token").shift(-n) == word
        return frame.lazy().filter(hits).group_by("document").len().collect()

    return ask


def _duckdb(said: np.ndarray, tokens: list[str]) -> Callable[[list[str]], list]:
    db = duckdb.connect(config={"threads": 1})
    place = np.arange(said.size, dtype=np.int32) + np.repeat(np.arange(len(said), dtype=np.int32), said.shape[1])
    token = pa.DictionaryArray.from_arrays(pa.array(said.ravel()), pa.array(tokens))  # a gap after each transcript
    words = pa.table({"place": place, "document": place // (said.shape[1] + 1), "token": token})
    db.register("given", words)
    db.execute("create table words as select place, document, token::varchar as token from given")

    def ask(words: list[str]) -> list:
        joins = "".join(f" join words w{n} on w{n}.place = w0.place + {n}" for n in range(1, len(words)))
        asked = " and ".join(f"w{n}.token = ?" for n in range(len(words)))
        sql = f"select w0.document, count(*) from words w0{joins} where {asked} group by 1"
        return db.execute(sql, words).fetchall()

    return ask


def _fts5(said: np.ndarray, tokens: list[str], path: Path) -> Callable[[list[str]], list]:
    db = sqlite3.connect(path)
    db.execute("create virtual table words using fts5(text, content='')")
    names = np.array(tokens, object)
    db.executemany(
        "insert into words(rowid, text) values (?, ?)", ((n, " ".join(names[row])) for n, row in enumerate(said))
    )
    db.execute("insert into words(words) values ('optimize')")
    db.commit()

    def ask(words: list[str]) -> list:
        return db.execute("select rowid from words where words match ?", [f'"{" ".join(words)}"']).fetchall()

    return ask


def _alone(corpus: Corpus, queries: dict[str, list[list[int]]], tokens: list[str], rng: np.random.Generator) -> bool:
    phrases = [" ".join(tokens[w] for w in words) for kind in queries.values() for words in kind]
    pairs = [" ".join(tokens[w] for w in rng.permutation(words)[:2]) for words in queries["5 words"]]
    stars = [f"{tokens[word][:3]}*" for (word,) in queries["1 word"] if len(tokens[word]) > 3]
    stars += [f"{tokens[a]} {tokens[b][:3]}*" for a, b in queries["2 words"]]
    frequent = [" ".join(tokens[w] for w in words) for words in queries["2 frequent words"]]
    near = {"two within 5": pairs, "two frequent within 5": frequent}
    print(f"\n{'counts per transcript, ms':34}{'median':>9}{'99%':>9}{'most':>9}")
    over = False
    for kind, asked in near.items():
        over |= _show(kind, _timed(lambda q: corpus.counts(q, slop=5), asked)[0], LIMITS["counts"])
    over |= _show("with *", _timed(corpus.counts, stars)[0], LIMITS["counts"])
    times, _ = _timed(lambda q: corpus.counts(q, by="speaker"), phrases[::6])
    over |= _show("words and phrases, by speaker", times, LIMITS["counts"])
    print(f"\n{'DataFrames of words in context, ms':34}{'median':>9}{'99%':>9}{'most':>9}")
    limit = LIMITS["search, first 100 rows"]
    over |= _show("words and phrases, first 100 rows", _timed(lambda q: corpus.search(q, limit=100), phrases)[0], limit)
    over |= _show("with *, first 100 rows", _timed(lambda q: corpus.search(q, limit=100), stars)[0], limit)
    for kind, asked in near.items():
        times, _ = _timed(lambda q: corpus.search(q, slop=5, limit=100), asked)
        over |= _show(f"{kind}, first 100", times, limit)
    drawn = phrases[: 4 * len(pairs)]  # all kinds but the frequent ones
    times, found = _timed(corpus.search, drawn)
    _show("words and phrases, all rows", times)
    rows = sum(map(len, found))
    print(f"{'':34}({rows:,} rows, {1e3 * sum(times) / max(1, rows):.1f} us each)")
    return over


def _open_and_add(corpus: Corpus, transcripts: int) -> bool:
    print(f"\n{'ms':34}{'median':>9}{'99%':>9}{'most':>9}")

    def reopened(_: int) -> None:
        other = Corpus(corpus.path, corpus.forms, corpus.transcripts)
        other.search("none")

    over = _show("open, and a first search", _timed(reopened, range(20))[0], LIMITS["open"])
    gc.collect()
    times, waited, begun = [], [], time.process_time()
    for number in range(transcripts, len(corpus.transcripts)):
        corpus.put(number)
        begin, clock = time.thread_time(), time.perf_counter()
        corpus.index.view()
        times.append(1e3 * (time.thread_time() - begin))
        waited.append(1e3 * (time.perf_counter() - clock))
    whole = 1e3 * (time.process_time() - begun) / len(times)
    over |= _show(f"add a transcript, {len(times)} times", times, LIMITS["add a transcript"])
    _show("the same with waiting for the disk", waited)
    print(f"(with putting the file, and with merging segments in the background, {whole:.1f} each)")
    return over


def _timed(ask: Callable, queries) -> tuple[list[float], list]:
    """Milliseconds of processor time and result of each call."""
    gc.collect()  # what was left behind before
    times, found = [], []
    for query in queries:
        begin = time.process_time()
        found.append(ask(query))
        times.append(1e3 * (time.process_time() - begin))
    return times, found


def _show(label: str, times: list[float], limit: float | None = None) -> bool:
    """Print a line.

    Returns:
        Whether the 99th percentile is above the limit.
    """
    median, high, most = np.percentile(times, [50, 99, 100])
    over = limit is not None and high > limit
    print(f"{label:34}{median:9.2f}{high:9.2f}{most:9.2f}{f'  above {limit:.0f}' if over else ''}", flush=True)
    return over
