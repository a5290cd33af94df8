"""Arguments of a wrong type are refused before anything is read or changed."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.errors import CorpusError, CorpusWarning, OptionError, PayloadError


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `corpus`."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("stored") / "corpus")
    corpus.raw.put("t1", json.dumps(payload("t1")).encode())
    return corpus.path


@pytest.fixture
def corpus(stored: Path, tmp_path: Path) -> voxframe.Corpus:
    """A corpus with one transcript of two turns, by A and B."""
    return voxframe.Corpus(shutil.copytree(stored, tmp_path / "corpus"))


@pytest.mark.parametrize("name", [0, None, b"t1", ["t1"], pd.DataFrame({"transcript_id": ["t1"]})])
@pytest.mark.parametrize(
    "read",
    [
        lambda corpus, name: corpus[name],
        lambda corpus, name: corpus.tables(name),
        lambda corpus, name: corpus.forget(name),
        lambda corpus, name: corpus.raw.get(name),
        lambda corpus, name: corpus.speakers.set(name, {"A": "Ada"}),
        lambda corpus, name: corpus.corrections.turns(name),
    ],
)
def test_a_transcript_is_named_by_one_text(corpus: voxframe.Corpus, read: Callable, name: object) -> None:
    """Anything but a text as the name of a transcript is an error that says so, and nothing is changed."""
    with pytest.raises(CorpusError, match=r"named by one text, .* not by .*Corpus\.ids\(\) lists"):
        read(corpus, name)
    assert corpus.ids() == ["t1"]
    assert corpus.speakers.get().empty


def test_the_error_shows_a_table_on_one_line(corpus: voxframe.Corpus) -> None:
    """A DataFrame given instead of an id makes no message of several lines."""
    with pytest.raises(CorpusError) as error:
        corpus.tables(pd.DataFrame({"transcript_id": ["t1", "t2"]}))
    assert "\n" not in str(error.value)


def test_conditions_on_a_null_id_are_allowed(corpus: voxframe.Corpus) -> None:
    """A condition compares ids with null, which is no name of a transcript."""
    assert len(corpus.words(where="transcript_id is not null")) == 3
    assert len(corpus.words(where=[("transcript_id", "in", ["t1", None])])) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda corpus: corpus.corrections.set("t1", "abc"), "the texts of turns must be a dict, .* got 'abc'"),
        (lambda corpus: corpus.corrections.set("t1", None), "the texts of turns must be a dict, .* got None"),
        (lambda corpus: corpus.speakers.set("t1", ["A"]), r"the names of speakers must be a dict, .* got \['A'\]"),
        (
            lambda corpus: corpus.speakers.set("t1", turns=["A"]),
            r"the speakers of turns must be a dict, .* \['A'\]",
        ),
        (lambda corpus: corpus.speakers.set("t1", None), "nothing to set; give names, .* or turns"),
        (lambda corpus: corpus.corrections.split("t1", "1"), "no turn with word '1'; it has 0 to 2"),
        (lambda corpus: corpus.corrections.split("t1", None), "no turn with word None; it has 0 to 2"),
        (lambda corpus: corpus.corrections.split("t1", 1.0), r"no turn with word 1\.0; it has 0 to 2"),
        (lambda corpus: corpus.corrections.split("t1", True), "no turn with word True; it has 0 to 2"),
    ],
)
def test_names_and_texts_are_dicts(corpus: voxframe.Corpus, change: Callable, said: str) -> None:
    """A name or text that is no dict, and no names at all, are errors instead of changes."""
    with pytest.raises(OptionError, match=said):
        change(corpus)
    assert corpus.corrections.history().empty
    assert corpus.speakers.get().empty


def test_a_word_may_be_a_number_of_numpy(corpus: voxframe.Corpus) -> None:
    """A `word_idx` read from a DataFrame names a word like an int."""
    assert corpus.corrections.split("t1", np.int64(1))["text"].to_list() == ["Good", "morning.", "Hello!"]


@pytest.mark.parametrize("by", [None, 5])
def test_groups_of_counts_are_columns(corpus: voxframe.Corpus, by: object) -> None:
    """Groups that are neither a text nor a list are refused; an empty list is one total."""
    with pytest.raises(OptionError, match=rf"by must be a column or a list of columns, \[\] for one total, got {by}"):
        corpus.counts("hello", by=by)  # type: ignore[arg-type]
    assert corpus.counts("hello", by=[])[["occurrences", "words"]].to_numpy().tolist() == [[1, 3]]


@pytest.mark.parametrize("write", ["export", "publish"])
def test_tables_to_write_are_named(corpus: voxframe.Corpus, tmp_path: Path, write: str) -> None:
    """No tables, and tables or columns that are neither a text nor a list, are refused, and nothing is written."""
    target = tmp_path / "written"
    with pytest.raises(OptionError, match="tables is an empty list; name tables, or leave it out for all of them"):
        getattr(corpus, write)(target, tables=[])
    for wrong in ({"tables": 3}, {"partition_by": 3}):
        with pytest.raises(OptionError, match="given as a name or a list of names, got 3"):
            getattr(corpus, write)(target, **wrong)
    assert not target.exists()


@pytest.mark.parametrize("target", [None, "", 5])
@pytest.mark.parametrize("write", ["export", "publish"])
def test_targets_are_paths_or_urls(corpus: voxframe.Corpus, write: str, target: object) -> None:
    """A target that is no text or path is refused, and an empty one does not stand for the current directory."""
    with pytest.raises(OptionError, match=f"a path or URL is needed, .*, got {target!r}$"):
        getattr(corpus, write)(target)


def test_a_licence_is_text(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """A number as the licence of an export is refused, and nothing is written."""
    with pytest.raises(OptionError, match=r"license is text, such as 'cc-by-4\.0', got 3"):
        corpus.export(tmp_path / "written", license=3)  # type: ignore[arg-type]
    assert not (tmp_path / "written").exists()


def test_columns_and_queries_are_text(corpus: voxframe.Corpus) -> None:
    """A number as the columns to read, or as a query, is refused."""
    with pytest.raises(OptionError, match="given as a name or a list of names, got 5"):
        corpus.table("words", columns=5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a query is text, such as 'show tables', got 5"):
        corpus.sql(5)  # type: ignore[arg-type]


def test_columns_may_be_an_iterator(corpus: voxframe.Corpus) -> None:
    """Names of columns that can be read only once are all read."""
    columns = (name for name in ("text", "start_ms"))
    assert corpus.table("words", columns=columns).columns.to_list() == ["text", "start_ms"]  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", 5])
def test_a_corpus_has_a_path(path: object) -> None:
    """An empty path does not stand for the current directory, and a number is refused."""
    with pytest.raises(OptionError, match=f"a corpus is given by the path of its directory, .*, got {path!r}$"):
        voxframe.Corpus(path)  # type: ignore[arg-type]


def test_flags_are_true_or_false(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """A text such as "no" does not count as True where something would be replaced or deleted."""
    target = tmp_path / "words.csv"
    target.write_text("mine")
    flag: Any = "no"
    with pytest.raises(OptionError, match="overwrite must be True or False, got 'no'"):
        corpus.export(target, tables="words", overwrite=flag)
    with pytest.raises(OptionError, match="overwrite must be True or False, got 'no'"):
        voxframe.export.write(corpus.words(), target, overwrite=flag)
    with pytest.raises(OptionError, match="replace must be True or False, got 'no'"):
        corpus.add([payload("t1") | {"text": "another"}], replace=flag)
    with pytest.raises(OptionError, match="remote must be True or False, got 'no'"):
        corpus.forget("t1", remote=flag)
    assert target.read_text() == "mine"
    assert corpus.raw.get("t1") == json.dumps(payload("t1")).encode()


@pytest.mark.parametrize("where", [[5], [[5]], [["speaker == 'A'"]]])
def test_conditions_are_triples(corpus: voxframe.Corpus, where: Any) -> None:
    """A list of anything but triples or lists of triples is refused."""
    with pytest.raises(CorpusError, match=r"where takes \(column, operator, value\) triples"):
        corpus.table("words", where=where)


def test_a_column_is_read_once(corpus: voxframe.Corpus) -> None:
    """A column that is named twice is in the result once."""
    assert corpus.table("words", columns=["text", "start_ms", "text"]).columns.to_list() == ["text", "start_ms"]


def test_metadata_to_read_are_columns(corpus: voxframe.Corpus) -> None:
    """A number as the metadata to add is refused."""
    for call in (corpus.table, lambda name, **more: corpus.export("unused", tables=name, **more)):
        with pytest.raises(OptionError, match="tables and columns are given as a name or a list of names, got 5"):
            call("words", metadata=5)


def test_metadata_to_count_by_is_a_dataframe(corpus: voxframe.Corpus) -> None:
    """A list instead of a DataFrame with ids is refused."""
    with pytest.raises(OptionError, match="about must be a DataFrame with a column transcript_id"):
        corpus.counts("hello", about=["Acme"])  # type: ignore[arg-type]


def test_metadata_to_count_by_keep_apart(corpus: voxframe.Corpus) -> None:
    """Columns of metadata named like a column of the result, in any case, get a prefix that no other column has."""
    about = pd.DataFrame({"transcript_id": ["t1"], "words": ["many"], "metadata_words": ["few"], "Term": ["long"]})
    groups = ["metadata_words", "metadata_metadata_words", "metadata_Term"]
    found = corpus.counts("hello", by=groups, about=about)
    assert found[groups].to_numpy().tolist() == [["few", "many", "long"]]


@pytest.mark.parametrize("client", ["http://127.0.0.1:1", 5])
@pytest.mark.parametrize(
    "send",
    [
        lambda corpus, client: corpus.transcribe("a.mp3", client=client),
        lambda corpus, client: corpus.submit("a.mp3", client=client),
        lambda corpus, client: corpus.sync(client=client),
        lambda corpus, client: corpus.ask("Why?", client=client),
        lambda corpus, client: corpus.raw.captions("t1", client=client),
    ],
)
def test_a_client_is_no_address(corpus: voxframe.Corpus, send: Callable, client: object) -> None:
    """An address or number given as a client is an error that says what to pass."""
    with pytest.raises(OptionError, match=r"client must be the result of voxframe\.connect\(\), not of type (str|int)"):
        send(corpus, client)


@pytest.mark.parametrize("below", [".", "calls"])
def test_a_file_is_no_corpus(tmp_path: Path, below: str) -> None:
    """The path of a file, or a path below one, is refused when the corpus is opened, and the message names the file."""
    file = tmp_path / "call.mp3"
    file.touch()
    with pytest.raises(CorpusError, match=r"call\.mp3' is a file; a corpus is a directory"):
        voxframe.Corpus(file / below)


@pytest.mark.parametrize("speaker", [0.5, [None]])
def test_speakers_to_choose_are_texts(corpus: voxframe.Corpus, speaker: object) -> None:
    """A speaker that is neither a text nor texts is refused by search and counts."""
    for call in (corpus.search, corpus.counts):
        with pytest.raises(OptionError, match="speaker must be a label or a name, or a list of them, got"):
            call("hello", speaker=speaker)


def test_an_unknown_speaker_is_named(corpus: voxframe.Corpus) -> None:
    """Search and counts without words by the speakers warn with the known labels and names, others do not."""
    corpus.speakers.set("t1", {"A": "Ada"})
    said = r"no words are by the speaker 'Adda' \(did you mean 'Ada'\?\); the labels and names are A, Ada, B$"
    with pytest.warns(CorpusWarning, match=said):
        assert corpus.search("hello", speaker="Adda").empty
    with pytest.warns(CorpusWarning, match=said):
        assert corpus.counts("hello", speaker=iter(["Adda"]), by=[])["words"].to_list() == [0]
    assert corpus.search("hello", speaker="Ada").empty  # a known speaker who did not say it
    assert len(corpus.search(["hello", "good"], speaker=iter(["B", "A"]))) == 2


def test_a_corpus_without_speakers_says_so(tmp_path: Path) -> None:
    """If no word has a speaker, a search by speaker warns of it."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", b'{"id": "t1", "status": "completed", "words": [{"text": "Hello"}]}')
    for call in (corpus.search, corpus.counts):
        with pytest.warns(CorpusWarning, match="no words are by the speaker 'A'; no words have a speaker$"):
            assert call("hello", speaker="A").empty


def test_conditions_may_be_an_iterator(corpus: voxframe.Corpus) -> None:
    """Conditions that can be read only once all apply, to tables, searches and snapshots."""
    assert corpus.table("words", where=iter([("speaker", "==", "B")]))["text"].to_list() == ["Hello!"]
    assert corpus.search("good", where=iter([("speaker", "==", "B")])).empty
    sealed = corpus.snapshots.create(progress=False)
    assert sealed.table("words", where=iter([("speaker", "==", "B")]))["text"].to_list() == ["Hello!"]


@pytest.mark.parametrize("names", [iter, pd.Index, np.array])
def test_names_of_columns_may_be_an_iterator_or_an_array(
    corpus: voxframe.Corpus, tmp_path: Path, names: Callable
) -> None:
    """Names of columns that can be read only once, or come from pandas or NumPy, are all used."""
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"], "call": ["new"]}))
    assert corpus.words(metadata=names(["customer", "call"])).columns.to_list()[-2:] == ["customer", "call"]
    corpus.export(tmp_path / "parts", tables="words", partition_by=names(["customer", "call"]))
    assert (tmp_path / "parts/words/customer=Acme/call=new/part-0.parquet").is_file()
    corpus.export(tmp_path / "words.csv", tables="words", metadata=names(["call"]))
    assert pd.read_csv(tmp_path / "words.csv")["call"].to_list() == ["new"] * 3
    sealed = corpus.snapshots.create(progress=False)
    found = sealed.table("words", columns=names(["text", "start_ms"]), metadata=names(["call"]))
    assert found.columns.to_list() == ["text", "start_ms", "call"]


def test_every_batch_has_the_same_conditions_and_columns(corpus: voxframe.Corpus) -> None:
    """Conditions and names that can be read only once apply to all batches."""
    corpus.raw.put("t2", json.dumps(payload("t2")).encode())
    chosen = iter([("speaker", "==", "B")])
    found = list(corpus.batches("words", size=1, columns=iter(["text"]), where=chosen, metadata=iter(["recording"])))
    assert [part.columns.to_list() for part in found] == [["text", "recording"]] * 2
    assert [part["text"].to_list() for part in found] == [["Hello!"]] * 2


def test_ids_may_be_an_iterator(corpus: voxframe.Corpus) -> None:
    """A read of a given transcript without matching rows does not warn that no transcripts were given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corpus.words(iter(["t1"]), where="start_ms > 5000").empty


def test_no_column_and_the_person(corpus: voxframe.Corpus) -> None:
    """The person of each row can be read without any column of the table."""
    corpus.speakers.assign(lambda row: "Ada" if row["speaker"] == "A" else None)
    assert corpus.words(columns=[], metadata="person")["person"].fillna("-").to_list() == ["Ada", "Ada", "-"]


def test_a_name_from_a_folder_of_another_encoding(corpus: voxframe.Corpus) -> None:
    """A text with a lone surrogate, as Python returns it for some file names, is the name of no transcript."""
    assert "caf\udce9" not in corpus
    for read in (corpus.tables, corpus.words, corpus.forget, corpus.speakers.undo, corpus.raw.get):
        with pytest.raises(CorpusError, match=r"there is no transcript 'caf\\\\udce9'"):
            read("caf\udce9")


def test_ids_in_a_list_of_lists(corpus: voxframe.Corpus) -> None:
    """A list in the list of ids is refused, and the message shows it."""
    with pytest.raises(CorpusError, match=r"\['t1'\] is not the id of a transcript"):
        corpus.words([["t1"]])  # type: ignore[list-item]


def test_a_payload_is_bytes(corpus: voxframe.Corpus) -> None:
    """Text and dicts are refused by `raw.put`, and text of JSON by `add`; the messages say what to pass."""
    text = json.dumps(payload("t2"))
    for wrong in (text, payload("t2"), None):
        with pytest.raises(OptionError, match=r"a payload is .* bytes, not of type (str|dict|NoneType); Corpus\.add"):
            corpus.raw.put("t2", wrong)  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match=r"matches no payload file; if it is JSON, pass it as bytes: text\.encode"):
        corpus.add(text)
    assert corpus.ids() == ["t1"]
    corpus.raw.put("t2", bytearray(text.encode()))  # type: ignore[arg-type]
    assert corpus.ids() == ["t1", "t2"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda corpus: corpus.raw.rebuild_tables(workers=0), "workers must be a whole number of at least 1, got 0"),
        (lambda corpus: corpus.raw.rebuild_tables(workers="2"), "workers must be a whole number of .*, got '2'"),
        (lambda corpus: corpus.raw.note_response("r1"), "response must be the return value .*, got 'r1'"),
        (lambda corpus: corpus.sql("select ?", 5), r"parameters must be a list .* or a dict for \$name, got 5"),
        (lambda corpus: corpus.sql("select ?", "abc"), "parameters must be a list of values .*, got 'abc'"),
        (
            lambda corpus: corpus.snapshots.create() and corpus.snapshots.open("1"),
            "version must be a whole number of at least 1, got '1'",
        ),
        (lambda corpus: corpus.corrections.merge("t1", [0]), r"has no turn \[0\]; it has 0 to 1"),
        (lambda corpus: corpus.export("unused", "huggingface", audio="a.mp3"), "audio must be .*, got 'a.mp3'"),
        (lambda corpus: corpus.export("unused", "huggingface", audio={"t1": 5}), "audio must be .*, got {'t1': 5}"),
        (lambda corpus: voxframe.Corpus("~nobody_here/calls"), "home directory in '~nobody_here/calls' is unknown"),
    ],
)
def test_numbers_paths_and_values_are_checked(corpus: voxframe.Corpus, call: Callable, said: str) -> None:
    """Arguments of other types, and numbers that are too small, are refused by name."""
    with pytest.raises(OptionError, match=said):
        call(corpus)


def test_values_of_a_query_may_be_an_array(corpus: voxframe.Corpus) -> None:
    """The values of placeholders can come from NumPy."""
    assert corpus.sql("select ? + ? as total", np.array([1, 2]))["total"].to_list() == [3]
    assert corpus.sql("select $n + 1 as total", {"n": np.float64(0.5)})["total"].to_list() == [1.5]
