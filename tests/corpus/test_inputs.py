import datetime as dt
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest

from voxframe import export
from voxframe.corpus.batch.inputs import expand
from voxframe.corpus.metadata_values import metadata_from_json, metadata_to_json
from voxframe.errors import AudioError, AudioNotFoundError, ExportError, OptionError


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A folder with two recordings, one below the other, and files that are none."""
    for name in ("b.mp3", "deep/a.MP3", "notes.txt", ".hidden.mp3", "deep/[x].wav"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"sound")
    return tmp_path


def names(sources) -> list[str]:
    return [Path(recording.source).name for recording in expand(sources)]


def test_a_folder_stands_for_the_recordings_below_it(calls: Path) -> None:
    """By their extension, whatever its case, without hidden files, sorted."""
    assert names(calls) == ["b.mp3", "[x].wav", "a.MP3"]


def test_patterns_find_files(calls: Path) -> None:
    """`**` goes down; a pattern with an extension takes what matches, one without only recordings."""
    assert names(f"{calls}/**/*.mp3") == ["b.mp3"]
    assert names(f"{calls}/*.txt") == ["notes.txt"]
    assert names(f"{calls}/**") == ["b.mp3", "[x].wav", "a.MP3"]


def test_a_file_whose_name_looks_like_a_pattern_is_itself(calls: Path) -> None:
    """A bracket in the name of a file that exists is no pattern."""
    assert names(calls / "deep" / "[x].wav") == ["[x].wav"]


def test_addresses_and_lists_are_kept_in_order(calls: Path) -> None:
    """An address is not looked at; each item of a list may be any source."""
    address = "https://audio.example/a b.mp3"
    assert [r.source for r in expand([address, calls / "b.mp3"])] == [address, str(calls / "b.mp3")]
    assert expand(f"file://{calls}/b.mp3")[0].source == f"{calls}/b.mp3"


def test_what_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    """A folder or pattern with no recording is said at once; a batch of nothing is no success."""
    for source in (tmp_path, f"{tmp_path}/*.mp3"):
        with pytest.raises(AudioNotFoundError, match="leads to no recording"):
            expand(source)


def test_the_other_columns_of_a_dataframe_are_metadata(calls: Path) -> None:
    """One column names the sources; what else there is comes back as it was given."""
    df = pd.DataFrame(
        {
            "customer": ["A", None],
            "path": [calls / "b.mp3", "https://a.example/x.mp3"],
            "day": pd.to_datetime(["2024-03-11", None]),
            "n": [1, 2],
            "score": [0.5, np.nan],
            "good": [True, False],
        }
    )
    first, second = (metadata_from_json(metadata_to_json(r.metadata)) for r in expand(df))
    assert first == {"customer": "A", "day": pd.Timestamp("2024-03-11"), "n": 1, "score": 0.5, "good": True}
    assert second == {"customer": None, "day": None, "n": 2, "score": None, "good": False}
    assert metadata_from_json(metadata_to_json({"d": dt.date(2024, 3, 11)})) == {"d": pd.Timestamp("2024-03-11")}


@pytest.mark.parametrize(
    ("df", "message"),
    [
        (pd.DataFrame({"name": ["a.mp3"]}), "it has name"),
        (pd.DataFrame({"path": ["a.mp3"], "url": ["b"]}), "it has path and url"),
        (pd.DataFrame({"path": ["a.mp3"], "state": ["x"]}), "metadata cannot be named state"),
        (pd.DataFrame([["a.mp3", 1, 2]], columns=["path", "n", "n"]), "column 'n' more than once"),
        (pd.DataFrame({"path": [None]}), "row 0 of the column 'path' holds None"),
    ],
)
def test_a_dataframe_that_is_not_clear_is_refused(df: pd.DataFrame, message: str) -> None:
    """Which column is meant, and that metadata does not hide a column of jobs(), is never guessed."""
    with pytest.raises(OptionError, match=message):
        expand(df)


@pytest.mark.parametrize("source", [b"bytes", 7, {"path": "a"}, [7], ""])
def test_what_is_no_source_is_refused(source) -> None:
    """Bytes, numbers and dicts are no sources."""
    with pytest.raises(OptionError, match="paths, folders, patterns, addresses"):
        expand(source)


def test_metadata_is_plain() -> None:
    """A value that could not be shown again as it was is refused."""
    with pytest.raises(OptionError, match="metadata 'x' holds"):
        metadata_to_json({"x": [1, 2]})


def test_stores_that_fsspec_knows() -> None:
    """A file, a folder and a pattern in another store; one that nobody knows is named."""
    store = fsspec.filesystem("memory")
    for name in ("/calls/a.mp3", "/calls/deep/b.wav", "/calls/c.txt"):
        store.pipe(name, b"sound")
    try:
        assert [r.source for r in expand("memory://calls")] == ["memory:///calls/a.mp3", "memory:///calls/deep/b.wav"]
        assert names("memory://calls/*.mp3") == ["a.mp3"]
        assert names("memory://calls/c.txt") == ["c.txt"]
    finally:
        store.rm("/calls", recursive=True)
    with pytest.raises(AudioError, match="nosuchstore"):
        expand("nosuchstore://x/a.mp3")


class _Refusal(Exception):  # noqa: N818  stores name theirs as they like
    """What the library of a store raises: no OSError."""


class _Store(fsspec.AbstractFileSystem):
    """A store that needs credentials."""

    protocol = "refusing"

    def ls(self, path, detail=True, **kwargs):
        raise _Refusal("Unable to locate credentials")

    _open = ls


def test_what_the_library_of_a_store_raises_names_the_recording(tmp_path: Path) -> None:
    """No credentials or no connection is an error of voxframe's, in reading and in writing."""
    fsspec.register_implementation("refusing", _Store, clobber=True)
    for source in ("refusing://calls/a.mp3", "refusing://calls/*.mp3", "refusing://calls"):
        with pytest.raises(AudioError, match=r"refusing://calls.* cannot be read: Unable to locate credentials"):
            expand(source)
    with pytest.raises(ExportError, match="cannot write 'refusing://set': Unable to locate credentials"):
        export.write(pd.DataFrame({"a": [1]}), "refusing://set", "csv")


def test_a_file_address_leads_to_its_file(tmp_path: Path) -> None:
    """As `Path.as_uri` writes it, with blanks as %20, and as people do."""
    path = tmp_path / "a b.mp3"
    path.write_bytes(b"sound")
    assert {r.source for r in expand([path.as_uri(), f"file://{path}"])} == {str(path)}
