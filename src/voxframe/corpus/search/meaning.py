"""Search by meaning: the sentences of a corpus that are closest to a text, and clusters of sentences.

Closeness is the cosine of the vectors of `voxframe.encoder`, computed with every sentence, so that no match is missed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import encoder, frames
from voxframe._arrow import TEXT
from voxframe._text import FUNCTION_WORDS, join_words
from voxframe.corpus.archive import Archive
from voxframe.corpus.conditions import Where, expression
from voxframe.corpus.people import named_rows
from voxframe.corpus.search.concordance import select_rows
from voxframe.corpus.search.segment import Ints
from voxframe.corpus.search.sentence_index import COLUMNS, SentenceIndex, SentenceView
from voxframe.encoder import Vectors
from voxframe.errors import OptionError
from voxframe.frames import passage_rows
from voxframe.schema import SENTENCE_MATCHES
from voxframe.validators import Integer, checked, shown

#: Number of sentences that a search by meaning returns unless `limit` is given.
LIMIT = 20
#: Least score of a sentence that is close to a query. It keeps all 17 passages labelled for a topic, and 9 of 220 pairs
#: of a passage and another topic; of 96 questions it keeps the answers of 78, and 19% of the other sentences.
#: `python -m tests.benchmarks.meaning_cutoff` prints this.
CLOSE = 0.2
#: Bound on the difference between a float32 dot product of two unit vectors and the exact one: n * u, with n = 384
#: terms and unit roundoff u = 2**-24 (N. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1).
_ROUNDING = encoder.SIZE * 2.0**-24
_MOST_TOPICS = 30
_FEWEST_WORDS = 4


class DiscoveredTopics(NamedTuple):
    """Topics found in the sentences of a corpus.

    Attributes:
        topics: One row per topic, the largest first: `topic_idx` int64, `words` str (typical words, separated by
            commas), `sentences` int64 (their number), `share` float64 (of all sentences, 0-1), and the most central
            sentence: `text` str, `transcript_id` str, `start_ms` Int64, `end_ms` Int64.
        sentences: One row per sentence, with the columns of `sentence_matches` from `transcript_id` on, and
            `topic_idx` int64; `score` is the cosine with the centre of the topic.
    """

    topics: pd.DataFrame
    sentences: pd.DataFrame


class MeaningSearch:
    """Search by meaning. `Corpus` describes the methods."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._index = SentenceIndex(archive.catalog, self._states, self._sentences)

    def _states(self) -> dict[str, str]:
        """Return a text for each transcript that changes with its sentences."""
        store = self._archive.store
        marks = store.listing("sentences"), self._archive.edits.stamps()
        return {
            store.id_of(stem): " ".join([at, *(other.get(stem, "") for other in marks)])
            for stem, at in store.listing().items()
        }

    def _sentences(self, transcript_id: str) -> pa.Table:
        """Return the sentences of the service, or if these are not stored, those that punctuation separates."""
        words = self._archive.current("words", transcript_id)
        if not self._archive.has(transcript_id, "sentences"):
            return sentences_of(words)
        table = self._archive.current("sentences", transcript_id)
        first, count = table["first_word_idx"], table["word_count"]
        place = pc.index_in(first, words["word_idx"].combine_chunks())
        columns = {name: table[name] for name in ("transcript_id", "text", "speaker", "channel")}
        columns |= {name: table[name] for name in ("sentence_idx", "start_ms", "end_ms")}
        columns |= {"word_idx": first, "last_word_idx": pc.subtract(pc.add(first, count), 1)}
        return pa.table({**columns, "utterance_idx": words["utterance_idx"].take(place)})

    def has(self, transcript_id: str) -> bool:
        """Return True if a file holds sentences of a transcript."""
        return self._index.has(transcript_id)

    def purge(self, transcript_id: str) -> None:
        """Remove the sentences of a deleted transcript."""
        self._index.purge(transcript_id)

    def find(
        self,
        queries: str | Iterable[str],
        context: int,
        *,
        speaker: Sequence[str] | None = None,
        ids: Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        min_score: float | None = None,
        without: tuple[str, int] | None = None,
        progress: bool | None = None,
    ) -> pa.Table:
        """Return the sentences closest to each query as the table `sentence_matches`, the closest first."""
        texts = [queries] if isinstance(queries, str) or not isinstance(queries, Iterable) else [*queries]
        if not texts or any(not isinstance(text, str) or not text.strip() for text in texts):
            raise OptionError(f"pass a sentence or a few words to search for, or a list of them, got {shown(queries)}")
        context = checked("context", context, Integer(0))
        count = checked("limit", LIMIT if limit is None else limit, Integer(0))
        condition = expression(SENTENCE_MATCHES.name, where, person=True)
        coder = encoder.load()
        view = self._index.view(progress)
        tables = []
        for text, vector in zip(dict.fromkeys(texts), coder.encode([*dict.fromkeys(texts)]), strict=True):
            scores = view.scores(vector)
            rows = self._wanted(view, text, scores, speaker, ids, condition)
            if without is not None:
                rows = rows[~_is_sentence(view.table, rows, without)]
            best, exact = top(view, vector, scores, rows, count)
            if min_score is not None:
                best, exact = best[exact >= min_score], exact[exact >= min_score]
            tables.append(self._matches(view, text, best, exact, context))
        return pa.concat_tables([SENTENCE_MATCHES.empty, *tables]).combine_chunks()

    def passages(
        self, queries: Sequence[str], ids: Sequence[str], limit: int, progress: bool | None = None
    ) -> list[pa.Table]:
        """Return the sentences closest to queries with the sentences beside them, in the order of transcripts."""
        limit = checked("passages", limit, Integer(0))
        coder = encoder.load()
        view = self._index.view(progress)
        rows = self._wanted(view, None, np.zeros(0, np.float32), None, ids, None)
        selected: set[int] = set()
        owner = view.table["transcript_id"]
        for vector in coder.encode(queries):
            for at in top(view, vector, view.scores(vector), rows, limit)[0].tolist():
                beside = (near for near in (at - 1, at, at + 1) if 0 <= near < len(owner))
                selected |= {near for near in beside if owner[near] == owner[at]}
        indexes = np.array(sorted(selected), int)
        indexes = indexes[_in_order(view.table, indexes)]
        table = self._matches(view, "", indexes, np.zeros(len(indexes)), context=0)
        first = np.flatnonzero((np.diff(indexes, prepend=-2) != 1) | _changes(table["transcript_id"]))
        return [table.slice(start, end - start) for start, end in pairwise([*first.tolist(), len(indexes)])]

    def topics(
        self,
        topics: int | None,
        ids: Iterable[str] | None,
        speaker: Sequence[str] | None,
        where: Where | None,
        words: int,
        seed: int,
        progress: bool | None,
    ) -> DiscoveredTopics:
        """Cluster the sentences of at least four words."""
        words, seed = checked("words", words, Integer(1)), checked("seed", seed, Integer(0))
        condition = expression(SENTENCE_MATCHES.name, where, person=True)
        view = self._index.view(progress)
        rows = self._wanted(view, None, np.zeros(len(view.table), np.float32), speaker, ids, condition)
        long = pc.greater_equal(pc.list_value_length(pc.utf8_split_whitespace(view.table["text"])), _FEWEST_WORDS)
        rows = rows[long.to_numpy(zero_copy_only=False)[rows]]
        rows = rows[_in_order(view.table, rows)]
        number = min(_MOST_TOPICS, round((len(rows) / 2) ** 0.5)) if topics is None else topics
        number = checked("topics", number, Integer(1 if topics is not None or len(rows) else 0))
        if number > len(rows):
            raise OptionError(
                f"topics={number}, but only {len(rows)} of the selected sentences have {_FEWEST_WORDS} words or more; "
                "select more transcripts, or fewer topics"
            )
        vectors = view.vectors(rows)
        labels, centres = kmeans(vectors, number, seed) if number else (np.zeros(0, np.int64), vectors)
        scores = np.einsum("ij,ij->i", vectors, centres[labels], dtype=np.float64)
        table = self._matches(view, "", rows, scores, context=0)
        sentences = frames.to_pandas(table, SENTENCE_MATCHES.name).drop(columns=["term", "left", "right"])
        sentences = sentences.assign(topic_idx=labels)
        return DiscoveredTopics(_summary(sentences, number, words), sentences)

    def _wanted(
        self,
        view: SentenceView,
        text: str | None,
        scores: Vectors,
        speaker: Sequence[str] | None,
        ids: Iterable[str] | None,
        condition: pc.Expression | None,
    ) -> Ints:
        """Return the rows of the sentences that pass the filters."""
        table = view.table
        rows = np.arange(len(table))
        if ids is not None:
            rows = np.flatnonzero(pc.is_in(table["transcript_id"], pa.array([*ids], pa.string())))
        if speaker is None and condition is None:
            return rows
        keys = table.take(pa.array(rows)).append_column("row", pa.array(rows))
        keys = keys.append_column("score", pa.array(scores[rows].astype(np.float64)))
        keys = keys.append_column("term", pa.array([text], pa.string()).take(pa.array(np.zeros(len(rows), int))))
        selected: Ints = select_rows(named_rows(self._archive, keys), speaker, condition)["row"].to_numpy()
        return selected

    def _matches(self, view: SentenceView, text: str, rows: Ints, scores: Ints, context: int) -> pa.Table:
        hits = view.table.take(pa.array(rows))
        sides = {
            side: pa.array(_beside(view.table, rows, context, step)) for side, step in (("left", -1), ("right", 1))
        }
        columns = {
            **{name: hits[name] for name in COLUMNS.names},
            "term": pa.array([text] * len(rows), pa.string()),
            "match": hits["text"],
            "score": pa.array(np.clip(scores, -1.0, 1.0)),
            **{side: pa.array(values, pa.string()) for side, values in sides.items()},
        }
        named = named_rows(self._archive, pa.table(columns))
        return pa.table([named[name] for name in SENTENCE_MATCHES.names], schema=SENTENCE_MATCHES.arrow)


def top(view: SentenceView, vector: Vectors, scores: Vectors, rows: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the `count` rows with the greatest cosine, greatest first, and their exact cosines."""
    if not count:
        return rows[:0], np.zeros(0)
    candidates = scores[rows]
    if len(rows) > count:
        least = np.partition(candidates, len(candidates) - count)[len(candidates) - count]
        rows = rows[candidates >= least - 2 * _ROUNDING]
    # Not a matrix product: its sums, unlike these, depend on the other rows, and equal vectors must score the same.
    exact = (view.vectors(rows) * vector.astype(np.float64)).sum(axis=1)
    rank = np.empty(len(rows), np.int64)
    rank[_in_order(view.table, rows)] = np.arange(len(rows))
    best = np.lexsort([rank, -exact])[:count]
    return rows[best], exact[best]


def sentences_of(words: pa.Table) -> pa.Table:
    """Return the sentences of a transcript with the columns `COLUMNS`, ordered by start."""
    columns = ("text", "speaker", "channel", "start_ms", "end_ms", "word_idx", "utterance_idx")
    rows = words.select(columns).to_pylist()
    sentences = [[rows[place] for place in places] for places in sorted(passage_rows(words, "sentences"))]
    ends = [[row["end_ms"] for row in group if row["end_ms"] is not None] for group in sentences]
    values = {name: [group[0][name] for group in sentences] for name in columns if name not in ("text", "end_ms")}
    values |= {"text": [join_words(row["text"] for row in group) for group in sentences]}
    values |= {"end_ms": [max(of_group, default=None) for of_group in ends], "sentence_idx": [*range(len(sentences))]}
    values |= {"last_word_idx": [group[-1]["word_idx"] for group in sentences]}
    values |= {"transcript_id": words["transcript_id"].to_pylist()[:1] * len(sentences)}
    return pa.table({name: values[name] for name in COLUMNS.names}, schema=COLUMNS)


def _changes(ids: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of another transcript than the row before."""
    names = np.array(ids.to_pylist(), object)
    return np.append([True], names[1:] != names[:-1])[: len(names)]


def _in_order(table: pa.Table, rows: Ints) -> Ints:
    """Return the positions of rows, ordered by transcript and sentence."""
    keys = table.select(["transcript_id", "sentence_idx"]).take(pa.array(rows))
    order: Ints = pc.sort_indices(keys, [("transcript_id", "ascending"), ("sentence_idx", "ascending")]).to_numpy()
    return order


def _is_sentence(table: pa.Table, rows: Ints, sentence: tuple[str, int]) -> npt.NDArray[np.bool_]:
    keys = table.select(["transcript_id", "sentence_idx"]).take(pa.array(rows))
    same = pc.and_(pc.equal(keys["transcript_id"], sentence[0]), pc.equal(keys["sentence_idx"], sentence[1]))
    mask: npt.NDArray[np.bool_] = same.to_numpy()
    return mask


def _beside(table: pa.Table, rows: Ints, context: int, step: int) -> list[str]:
    """Return the words before (step -1) or after (step 1) sentences, from the same transcript and channel."""
    ids, channels, texts = table["transcript_id"], table["channel"], table["text"]
    sides = []
    for row in rows.tolist():
        words: list[str] = []
        at = row + step
        while 0 <= at < len(table) and len(words) < context and ids[at] == ids[row]:
            if channels[at].as_py() == channels[row].as_py():
                neighbours = texts[at].as_py().split()
                words = [*neighbours, *words] if step < 0 else [*words, *neighbours]
            at += step
        sides.append(join_words(words[max(0, len(words) - context) :] if step < 0 else words[:context]))
    return sides


def _summary(sentences: pd.DataFrame, number: int, words: int) -> pd.DataFrame:
    """Return one row per topic; `sentences` are those of `DiscoveredTopics`."""
    typical = typical_words(sentences["match"].tolist(), sentences["topic_idx"], clusters=number, words=words)
    central = sentences.sort_values("score", ascending=False, kind="stable").drop_duplicates("topic_idx")
    sizes = sentences["topic_idx"].value_counts().reindex(range(number), fill_value=0)
    table = pd.DataFrame({"topic_idx": np.arange(number), "words": [", ".join(of_topic) for of_topic in typical]})
    table = table.astype({"words": TEXT}).assign(sentences=sizes.to_numpy(), share=sizes.to_numpy() / len(sentences))
    listed = central.rename(columns={"match": "text"})[["topic_idx", "text", "transcript_id", "start_ms", "end_ms"]]
    return table.merge(listed, how="left", on="topic_idx")


_Vectors = npt.NDArray[np.float32]
_Labels = npt.NDArray[np.int64]
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]")  # at least two characters
_ROUNDS = 30
_SAMPLE = 20_000  # sentences from which the first centres are drawn

#: English words that say nothing about the subject of a sentence.
IGNORED = FUNCTION_WORDS | frozenset(
    "ain aren come couldn didn doesn don hadn hasn haven isn please shouldn uh um wasn weren won wouldn".split()
)


def kmeans(vectors: _Vectors, clusters: int, seed: int = 0) -> tuple[_Labels, _Vectors]:
    """Group vectors by their direction (spherical k-means).

    Source: I. Dhillon and D. Modha, "Concept decompositions for large sparse text data using clustering", Machine
    Learning 42, 2001. The first centres are drawn with k-means++ (D. Arthur and S. Vassilvitskii, SODA 2007). The same
    input and seed give the same clusters.

    Args:
        vectors: Array of shape (n, d), float32, each row of length 1.
        clusters: Number of clusters, from 1 to n.
        seed: Seed of the random numbers.

    Returns:
        The cluster of each vector, int64 of shape (n,), the largest cluster first; and the centres, float32 of shape
        (clusters, d), each of length 1. With several equal vectors, some clusters can be empty.

    Example:
        >>> directions = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 1]], np.float32)
        >>> kmeans(directions, 2)[0].tolist()
        [1, 0, 0, 0]
    """
    chance = np.random.default_rng(seed)
    centres = _first_centres(vectors, clusters, chance)
    labels = np.full(len(vectors), -1, np.int64)
    for _ in range(_ROUNDS):
        new = (vectors @ centres.T).argmax(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        order = np.argsort(labels, kind="stable")
        used, first = np.unique(labels[order], return_index=True)
        sums = np.add.reduceat(vectors[order], first, axis=0)
        centres[used] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    by_size = np.argsort(-np.bincount(labels, minlength=clusters), kind="stable")
    rank = np.empty(clusters, np.int64)
    rank[by_size] = np.arange(clusters)
    return rank[labels], centres[by_size]


def _first_centres(vectors: _Vectors, clusters: int, chance: np.random.Generator) -> _Vectors:
    some = vectors if len(vectors) <= _SAMPLE else vectors[np.sort(chance.choice(len(vectors), _SAMPLE, replace=False))]
    chosen = [int(chance.integers(len(some)))]
    distance = np.full(len(some), np.inf)
    for _ in range(1, clusters):
        # Of vectors of length 1, the squared distance is 2 - 2 cos.
        distance = np.minimum(distance, np.maximum(1 - some @ some[chosen[-1]], 0).astype(np.float64))
        total = distance.sum()
        chosen.append(int(np.searchsorted(np.cumsum(distance), chance.random() * total, "right")) if total else 0)
    return some[np.minimum(chosen, len(some) - 1)].copy()


def typical_words(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    *,
    clusters: int,
    words: int = 10,
) -> list[list[str]]:
    """Return the words that are typical of each cluster, by class-based TF-IDF.

    The weight of a word in a cluster is tf / n * log(1 + a / f): tf counts the word in the cluster, n counts all words
    of the cluster, f counts the word in all clusters, and a is the mean number of words per cluster. Source: M.
    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", arXiv:2203.05794, 2022.

    Args:
        texts: The sentences.
        labels: Cluster of each sentence, 0 or more.
        clusters: Number of clusters.
        words: Maximum number of words per cluster.

    Returns:
        For each cluster its words, the most typical first. Words of equal weight are in alphabetical order.

    Example:
        >>> typical_words(["Trees need rain.", "The trees are old.", "Pay the bill."], [0, 0, 1], clusters=2, words=2)
        [['trees', 'need'], ['bill', 'pay']]
    """
    counts: list[Counter[str]] = [Counter() for _ in range(clusters)]
    for text, label in zip(texts, np.asarray(labels).tolist(), strict=True):
        found = (word.replace("\u2019", "'") for word in _WORD.findall(text.lower()))
        counts[label].update(word for word in found if word.partition("'")[0] not in IGNORED)
    everywhere = sum(counts, Counter[str]())
    mean = everywhere.total() / max(1, clusters)
    weights = [
        {word: n / count.total() * np.log1p(mean / everywhere[word]) for word, n in count.items()} for count in counts
    ]
    return [sorted(weight, key=lambda word: (-weight[word], word))[:words] for weight in weights]
