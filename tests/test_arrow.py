"""DataFrames of Polars, pyarrow and DuckDB as arguments of every public function that takes a DataFrame."""

import importlib
import inspect
import re
from functools import cache
from itertools import cycle
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ipywidgets import Widget
from matplotlib.axes import Axes

import voxframe
from voxframe import analysis, compare

DATA = Path(__file__).parents[1] / "data/payloads"

KINDS = {
    "polars": pl.from_pandas,
    "lazy": lambda df: pl.from_pandas(df).lazy(),
    "table": lambda df: pa.Table.from_pandas(df, preserve_index=False).replace_schema_metadata(None),
    "reader": lambda df: pa.Table.from_pandas(df, preserve_index=False).replace_schema_metadata(None).to_reader(),
    "duckdb": lambda df: duckdb.from_arrow(pa.Table.from_pandas(df, preserve_index=False)),
}


@cache
def tables() -> dict[str, pd.DataFrame]:
    """Return tables of a call; the Arrow types hold no more than the columns that they need."""
    loaded = voxframe.tables(DATA / "call.json")
    words = loaded["words"].drop(columns="extra")
    counts = analysis.ngrams(words, by="speaker")
    alignment = compare.align(words, words.assign(text=words["text"].replace({"the": "a"})))
    return loaded | {"words": words, "counts": counts, "pairs": analysis.ngrams(words, 2), "alignment": alignment}


#: Table for the parameters of these names.
BY_NAME = {
    **dict.fromkeys(("df", "words", "spoken", "spans", "source", "data", "reference", "hypothesis"), "words"),
    "labels": "topics",
    "others": "sentiments",
    "sentiments": "sentiments",
    **dict.fromkeys(("alignment", "alignment_a", "alignment_b"), "alignment"),
    "transcripts": "transcripts",
    "counts": "counts",
    "bands": "chapters",
}
#: Other tables and arguments of a function.
ARGUMENTS = {
    "analysis.annotate": {"columns": ["sentiment"]},
    "analysis.collocations": {"counts": lambda: tables()["pairs"]},
    "analysis.compare_groups": {
        "table": lambda: analysis.talk_time(tables()["words"]),
        "value": "talk_s",
        "group": "speaker",
    },
    "analysis.distinctive_words": {"group": "speaker"},
    "analysis.find_words": {"queries": ["the"]},
    "analysis.keyness": {"group": "speaker"},
    "analysis.rates": {
        "table": lambda: analysis.turn_statistics(tables()["words"]),
        "numerator": "turns",
        "denominator": "words",
    },
    "analysis.split_spans": {"parts": 2},
    "export.mask": {"tables": lambda: {name: tables()[name] for name in ("words", "entities")}},
    "plots.disagreements": {"df": lambda: compare.disagreements(tables()["alignment"])},
    "plots.dispersion": {"queries": ["the"]},
    "plots.keyness": {"table": lambda: analysis.keyness(tables()["counts"], "speaker")},
    "plots.rates": {
        "table": lambda: analysis.rates(analysis.turn_statistics(tables()["words"]), "turns", "words"),
    },
    "plots.sentiment": {"df": lambda: tables()["sentiments"]},
    "plots.sentiment_over_time": {"df": lambda: tables()["sentiments"]},
    "plots.small_multiples": {"plot": voxframe.plots.talk_time, "by": "speaker"},
    "widgets.Dispersion": {"queries": ["the"]},
    "widgets.GroupComparison": {
        "value": "confidence",
        "by": "speaker",
    },
}
#: Functions that also need a file or a corpus; the tests below call them.
APART = {"export.write", "export.read_edits", "widgets.WordSearch"}


def functions() -> list[str]:
    """Return the public functions with a DataFrame in their signature."""
    names = []
    for package in "analysis compare export importers plots widgets".split():
        module = importlib.import_module(f"voxframe.{package}")
        for name in module.__all__:
            hints = getattr(getattr(module, name), "__init__" if package == "widgets" else "__call__", None)
            function = getattr(module, name)
            if hints is None or not (inspect.isfunction(function) or package == "widgets"):
                continue
            texts = [str(p.annotation) for p in inspect.signature(function).parameters.values()]
            if any(re.search(r"DataFrame|Spoken|Given", text) for text in texts):
                names.append(f"{package}.{name}")
    return names


def arguments(name: str, function: object) -> dict[str, object]:
    """Return the arguments of a function, with its tables as pandas DataFrames."""
    given = ARGUMENTS.get(name, {})
    values = {key: value() if callable(value) and "plot" not in key else value for key, value in given.items()}
    for parameter in inspect.signature(function).parameters.values():
        if re.search(r"DataFrame|Spoken|Given", str(parameter.annotation)) and parameter.name in BY_NAME:
            values.setdefault(parameter.name, tables()[BY_NAME[parameter.name]])
    return values


def content(result: object) -> object:
    """Return what can be compared of a result: rows, texts and shapes, or the state of a widget."""
    if isinstance(result, pd.DataFrame):
        return result.astype(object).where(result.notna(), None).to_dict("records")
    if isinstance(result, pd.Series):
        return result.astype(object).where(result.notna(), None).to_list()
    if isinstance(result, dict):
        return {key: content(value) for key, value in result.items()}
    if isinstance(result, Axes):
        texts = [text.get_text() for text in [*result.texts, *result.get_xticklabels(), *result.get_yticklabels()]]
        return texts, [type(child).__name__ for child in result.get_children()], result.get_xlim(), result.get_ylim()
    if isinstance(result, Widget):
        state = {k: v for k, v in result.get_state().items() if "IPY_MODEL" not in str(v) and not k.startswith("_")}
        result.close()
        return state
    if isinstance(result, bytes):  # a Word document has the time in it
        return len(result) // 100
    return [content(axes) for axes in result] if isinstance(result, list | np.ndarray) else result


def converted(kind: str, value: object) -> object:
    if isinstance(value, dict):
        return {key: converted(kind, item) for key, item in value.items()}
    return KINDS[kind](value) if isinstance(value, pd.DataFrame) else value


#: Functions and a kind of frame for each. Every kind is that of some functions.
FUNCTIONS = [*zip([name for name in functions() if name not in APART], cycle(["polars", "lazy", "table", "duckdb"]))]


@pytest.mark.parametrize(("name", "kind"), FUNCTIONS)
def test_every_function_takes_frames_of_other_libraries(name, kind):
    """A DataFrame or LazyFrame of Polars, a table of pyarrow and a relation of DuckDB give equal results.

    A reader of pyarrow, which can be read only once, is given to every function.
    """
    package, _, last = name.partition(".")
    function = getattr(importlib.import_module(f"voxframe.{package}"), last)
    values = arguments(name, function)
    assert any(isinstance(value, pd.DataFrame | dict) for value in values.values())
    expected = content(function(**values))
    for frames in (kind, "reader"):
        assert content(function(**{key: converted(frames, value) for key, value in values.items()})) == expected, frames
    plt.close("all")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus of one call."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    corpus.add(DATA / "call.json")
    return corpus


@pytest.mark.parametrize("kind", KINDS)
def test_exports_loaders_and_corpus_take_frames_of_other_libraries(kind, corpus, tmp_path):
    """Exports write the same files, and ids, metadata, people and groups are read from the columns."""
    words = corpus.table("words")
    other = KINDS[kind]
    for target in (tmp_path / "pandas.csv", tmp_path / "other.csv"):
        voxframe.export.write(words if target.stem == "pandas" else other(words), target)
    assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "pandas.csv").read_bytes()
    ids = pd.DataFrame({"transcript_id": corpus.ids(), "team": kind})
    assert len(corpus.table("words", other(ids))) == len(words)
    assert len(voxframe.load_words(other(ids), corpus=corpus)) == len(words)
    corpus.metadata.set(other(ids))
    assert corpus.metadata.get()["team"].to_list() == [kind]
    assert corpus.counts(["the"], by="team", about=other(ids))["team"].to_list() == [kind]
    people = words[["transcript_id", "speaker"]].drop_duplicates().assign(person="Ada")
    corpus.speakers.assign(other(people))
    assert set(corpus.table("words", columns=["person"])["person"]) == {"Ada"}
    turns = pd.DataFrame({"speaker": ["Ann"], "text": ["I love it."]})
    assert voxframe.analyze(other(turns), sentiment_analysis=True)["sentiments"]["sentiment"].to_list() == ["POSITIVE"]


def test_lazy_frames_of_a_corpus_go_through_plots_and_analysis(corpus):
    """The result of `to_polars` is taken as it is."""
    lazy = corpus.to_polars("words")
    expected = analysis.talk_time(corpus.table("words"))
    assert content(analysis.talk_time(lazy)) == content(expected)
    assert len(voxframe.plots.timeline(lazy).collections) == len(
        voxframe.plots.timeline(corpus.table("words")).collections
    )
    plt.close("all")


def test_columns_are_no_frames(corpus):
    """A column of Polars, which has the Arrow interface, is a list of ids."""
    assert len(corpus.table("words", pl.Series(corpus.ids()))) == len(corpus.table("words"))
