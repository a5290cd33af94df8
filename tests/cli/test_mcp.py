"""`voxframe mcp` with the official client over standard input and output."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

import voxframe
from voxframe.cli import mcp
from voxframe.errors import CorpusError, VoxframeError

DATA = Path(__file__).parents[2] / "data/payloads"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus of two recordings."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("mcp") / "corpus")
    corpus.add([DATA / "call.json", DATA / "meeting.json"])
    corpus.analyze(entity_detection=True, progress=False)
    return corpus.path


def called(folder: Path, *calls: tuple[str, dict], options: tuple[str, ...] = (), **environment: str) -> list:
    """Return (is_error, JSON or text) for calls of one session, and the tools."""
    from mcp import Client, StdioServerParameters  # takes 1 s, and every process of pytest imports this file

    command = ["-m", "voxframe", "mcp", "--corpus", str(folder), *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=os.environ | environment)

    async def session() -> list:
        async with Client(server) as client:
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            listed = (await client.list_tools()).tools
        texts = [result.content[0].text for result in results]
        return [
            *((r.is_error, text if r.is_error else json.loads(text)) for r, text in zip(results, texts, strict=True)),
            listed,
        ]

    return asyncio.run(session())


def test_tools_read_a_corpus(folder):
    """Every tool answers with rows that name recording and time, and pages do not overlap."""
    turns, again, words, counts, talk, sql, tables, recordings, tools = called(
        folder,
        ("read_turns", {"recording": "meeting"}),
        ("read_turns", {"recording": "meeting", "offset": 1}),
        ("search_words", {"query": "books"}),
        ("counts", {"queries": ["books"], "by": "speaker"}),
        ("talk_time", {"recording": "call"}),
        ("sql", {"query": "select count(*) as n from words"}),
        ("describe_tables", {"table": "words"}),
        ("list_recordings", {}),
    )
    assert not any(is_error for is_error, _ in (turns, words, counts, talk, sql, tables, recordings))
    corpus = voxframe.Corpus(folder)
    expected = corpus.table("utterances", "meeting")
    assert [row["text"] for row in turns[1]["rows"]] == expected["text"].to_list()[:50]
    assert again[1]["rows"] == turns[1]["rows"][1:] + again[1]["rows"][len(turns[1]["rows"]) - 1 :]
    assert {row["recording"] for row in words[1]["rows"]} == {"call"}
    said = [
        word["start"]
        for word in json.loads((DATA / "call.json").read_bytes())["words"]
        if "books" in word["text"].lower()
    ]
    assert [row["time"] for row in words[1]["rows"]] == [f"0:{round(start / 1000):02d}" for start in said]
    assert sum(row["occurrences"] for row in counts[1]["rows"]) == len(words[1]["rows"])
    assert {row["recording"] for row in talk[1]["rows"]} == {"call"}
    assert sql[1]["rows"] == [{"n": len(corpus.table("words"))}]
    assert "start_ms" in tables[1]["text"]
    assert [row["recording"] for row in recordings[1]["rows"]] == ["call", "meeting"]
    assert len(tools) == 9
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


_REFUSED = {
    "create table a (x int)": "one SELECT",
    "select 1; drop table words": "one SELECT",
    "select * from read_csv('/etc/passwd')": "reads only the corpus",
    "copy words to 'words.csv'": "one SELECT",
    "select 1) ; attach 'x.db'; select (1": "not valid",
    "select nosuch from words": "nosuch",
}


@pytest.mark.parametrize("query", _REFUSED)
def test_sql_only_reads_the_corpus(folder, query):
    """Changes, several statements and other files are refused, with a message."""
    tools = mcp._Tools(voxframe.Corpus(folder), masked=False, paid=False)
    with pytest.raises(VoxframeError) as refused:
        tools.sql(query)
    assert _REFUSED[query] in str(refused.value)


def test_sql_has_a_time_limit(folder, monkeypatch):
    """A query that takes too long is stopped with a message that names the limit; the next query works."""
    monkeypatch.setattr(mcp, "_SQL_S", 0.5)
    tools = mcp._Tools(voxframe.Corpus(folder), masked=False, paid=False)
    began = time.monotonic()
    with pytest.raises(CorpusError, match=r"limit of 0\.5 seconds; select fewer rows"):
        tools.sql("select count(*) from range(10000000000) a, range(10000000000) b where a.range + b.range = 7")
    assert time.monotonic() - began < 20
    assert tools.sql("select 1 as n")["rows"] == [{"n": 1}]


def test_personal_data_is_masked(folder):
    """With --mask-pii, turns and hits have labels instead of entities, and tools that cannot mask say so."""
    plain, turns, hits, sql, ask, _ = called(
        folder,
        ("read_turns", {"recording": "call", "mask_pii": True}),
        ("read_turns", {"recording": "call"}),
        ("search_words", {"query": "Clark"}),
        ("sql", {"query": "select text from words"}),
        ("ask", {"question": "Who calls?"}),
        options=("--mask-pii",),
    )
    entities = voxframe.Corpus(folder).table("entities", "call")
    names = set(entities.loc[entities["entity_type"] == "person_name", "text"])
    assert names
    for is_error, result in (plain, turns, hits):
        assert not is_error, result
        assert "[PERSON_NAME]" in json.dumps(result)
        assert not any(name in json.dumps(result) for name in names)
    assert sql[0]
    assert "--mask-pii" in sql[1]
    assert ask[0]


def test_ask_pays_for_nothing_unasked(folder):
    """A hosted service is not asked without --paid, and an unknown recording or column is an error with its name."""
    ask, unknown, refused, _ = called(
        folder,
        ("ask", {"question": "Who calls?"}),
        ("read_turns", {"recording": "nosuch"}),
        ("sql", {"query": "select nosuch from words"}),
        VOXFRAME_BASE_URL="http://127.0.0.1:9",
        VOXFRAME_API_KEY="hidden-key",
    )
    assert ask[0]
    assert "--paid" in ask[1]
    assert "hidden-key" not in ask[1]
    for is_error, text in (unknown, refused):
        assert is_error
        assert "nosuch" in text
