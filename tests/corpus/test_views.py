"""The tables of a corpus in pandas, SQL and Polars are the same rows."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES

_TABLES = ("transcripts", "words", "utterances", "sentences", "paragraphs")


def _payload(chance: random.Random, name: str) -> bytes:
    """Return a transcript of random turns, of which some have no speaker or no time."""
    words, turns = [], []
    for _ in range(chance.randint(0, 4)):
        speaker = chance.choice(["A", "B", None])
        own = []
        for _ in range(chance.randint(1, 5)):
            at = 100 * (len(words) + len(own))
            text = chance.choice(["yes", "no.", "Zürich", "well,"])
            own.append({"text": text, "start": chance.choice([at, None]), "end": at + 90, "speaker": speaker})
        text = " ".join(word["text"] for word in own)
        turns.append({"text": text, "start": own[0]["start"], "end": own[-1]["end"], "speaker": speaker, "words": own})
        words += own
    text = " ".join(word["text"] for word in words)
    return json.dumps({"id": name, "status": "completed", "text": text, "words": words, "utterances": turns}).encode()


@pytest.mark.filterwarnings("ignore:no :voxframe.errors.CorpusWarning")
@pytest.mark.parametrize("seed", range(4))
def test_sql_and_polars_return_the_rows_of_table(tmp_path: Path, seed: int) -> None:
    """On random corpora with names, people, metadata and edits, all three give the same cells in every column."""
    chance = random.Random(seed)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    ids = [f"t{n}" for n in range(chance.randint(3, 12))]
    corpus.add([_payload(chance, name) for name in ids], progress=False)
    corpus.metadata.set(pd.DataFrame({"transcript_id": ids[::2], "agent": [f"Agent {name}" for name in ids[::2]]}))
    for name in ids:
        turns = corpus.table("utterances", name)
        labels = turns["speaker"].dropna().unique()
        if len(labels) and chance.random() < 0.6:
            corpus.speakers.set(name, {labels[0]: f"Person of {name}"}, turns={0: "Guest"} if seed % 2 else None)
        if len(turns) and chance.random() < 0.6:
            corpus.corrections.set(name, {int(chance.choice(turns["utterance_idx"].tolist())): "other words here."})
        words = len(corpus.words(name))
        if words and chance.random() < 0.3:
            corpus.corrections.relabel(name, [chance.choice(["X", "Y"]) for _ in range(words)])
    corpus.speakers.assign(by="name")
    corpus.raw.put(ids[0], _payload(chance, ids[0]))
    for reader in (corpus, voxframe.Corpus(corpus.path)):
        for name in _TABLES:
            key = ", ".join(CORPUS_TABLES[name].key)
            table = reader.table(name)
            rows = reader.sql(f"select * from {name} order by {key}")
            pd.testing.assert_frame_equal(rows.astype(table.dtypes), table, check_dtype=False)
            polars = reader.to_polars(name).sort(CORPUS_TABLES[name].key).collect().to_pandas().astype(table.dtypes)
            pd.testing.assert_frame_equal(polars, table, check_dtype=False)


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "copy (select 1) to '{file}.copy'",
        "attach '{file}.db'",
        "install httpfs",
        "set enable_external_access = true",
        "select * from read_csv('https://example.com/a.csv')",
    ],
)
def test_a_query_reads_only_the_corpus(tmp_path: Path, query: str) -> None:
    """Files, the network, other databases and extensions are refused; `external=True` allows files."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add(_payload(random.Random(1), "t"))
    with pytest.raises(CorpusError, match="the query failed"):
        corpus.sql(query.format(file=secret))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "secret.csv"]
    assert corpus.sql(f"select a from '{secret}'", external=True)["a"].to_list() == [1]


@pytest.mark.parametrize("query", ["commit; create table kept as select 1 as a; select * from kept", "begin; select 1"])
def test_a_query_cannot_end_its_transaction(tmp_path: Path, query: str) -> None:
    """A query with statements about transactions is refused, so that nothing of it is there for the next one."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([_payload(random.Random(0), "t")], progress=False)
    with pytest.raises(CorpusError, match="leave out begin, commit and rollback"):
        corpus.sql(query)
    with pytest.raises(CorpusError, match="kept"):
        corpus.sql("select * from kept")
    assert corpus.sql("create table own as select 2 as b; select * from own")["b"].to_list() == [2]
    with pytest.raises(CorpusError, match="own"):
        corpus.sql("select * from own")
