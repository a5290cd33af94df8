import ast
import json
from pathlib import Path

import pytest

import voxframe
from voxframe.errors import CorpusError, CorpusWarning

_FOLDER = Path(voxframe.__file__).parent / "corpus"

_FLAT = set(
    "plan submit sync retry jobs add adopt forget transcribe ids tables table words batches sql scan to_polars to_dask "
    "search similar discover_topics counts export apply_edits publish ask summarize task action_items "
    "unanswered analyze".split()
)
_NAMESPACES = {
    "speakers": {"set", "get", "assign", "detect", "undo", "table", "forget_vectors"},
    "corrections": set(
        "set split merge move_boundary relabel set_time undo redo get turns word_turns history stale".split()
    ),
    "analyses": {"analyze", "undo"},
    "metadata": {"set", "get"},
    "snapshots": {"create", "open", "versions"},
    "raw": set(
        "get put original captions word_search redacted_audio responses note_response stale rebuild_tables "
        "rebuild_ledger verify".split()
    ),
}


def _public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_the_public_names_are_those_users_call(tmp_path: Path) -> None:
    """A corpus has the flat methods, its path and six namespaces, and each namespace has its methods."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert _public(corpus) == _FLAT | _NAMESPACES.keys() | {"path", "parts"}
    assert {name: _public(getattr(corpus, name)) for name in _NAMESPACES} == _NAMESPACES


def test_every_namespace_shows_its_corpus(tmp_path: Path) -> None:
    """The repr of a namespace is its name and the path of the corpus."""
    corpus = voxframe.Corpus(tmp_path)
    for name in _NAMESPACES:
        assert repr(getattr(corpus, name)) == f"{name.capitalize()}({str(tmp_path)!r})"


def test_keys_of_a_corpus_are_completed(tmp_path: Path) -> None:
    """IPython completes names of recordings; a transcript without one has its id."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert corpus._ipython_key_completions_() == []
    (tmp_path / "talk.json").write_text('{"id": "t1", "status": "completed", "words": []}')
    corpus.add(tmp_path / "talk.json")
    corpus.raw.put("t2", b'{"id": "t2", "words": []}')
    assert corpus._ipython_key_completions_() == ["t2", "talk"]
    assert all(key in corpus for key in corpus._ipython_key_completions_())


def test_no_part_imports_the_corpus() -> None:
    """No module of the package imports the facade, not even lazily or for types only."""
    for path in _FOLDER.rglob("*.py"):
        if path in (_FOLDER / "corpus.py", _FOLDER / "__init__.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            origin = node.module if isinstance(node, ast.ImportFrom) else None
            assert origin != "voxframe.corpus.corpus", path
            assert "voxframe.corpus.corpus" not in names, path
            assert "Corpus" not in names, path


def test_a_corpus_is_a_container_of_transcripts(tmp_path: Path) -> None:
    """len() counts transcripts, iteration yields their sorted ids, and an id gives the tables of that transcript."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert (len(corpus), list(corpus)) == (0, [])
    for name in ("b", "a"):
        words = [{"text": name, "start": 0, "end": 90}]
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "words": words}).encode())
    assert (len(corpus), list(corpus)) == (2, ["a", "b"])
    assert "a" in corpus
    assert "c" not in corpus
    assert corpus["b"]["words"]["text"].to_list() == ["b"]
    with pytest.raises(CorpusError, match="no transcript 'c'"):
        corpus["c"]
