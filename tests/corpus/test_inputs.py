import datetime as dt
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest

from voxframe import export
from voxframe.corpus.media import expand
from voxframe.corpus.metadata import metadata_from_json, metadata_to_json
from voxframe.errors import AudioError, AudioNotFoundError, ExportError, OptionError


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A folder with two recordings, one in a subfolder, and other files."""
    for name in ("b.mp3", "deep/a.MP3", "notes.txt", ".hidden.mp3", "deep/[x].wav"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"sound")
    return tmp_path


def names(sources) -> list[str]:
    return [Path(recording.source).name for recording in expand(sources)]


def test_a_folder_gives_its_recordings(calls: Path) -> None:
    """Files are found by extension in any case, without hidden files, sorted."""
    assert names(calls) == ["b.mp3", "[x].wav", "a.MP3"]


def test_patterns_find_files(calls: Path) -> None:
    """`**` includes subfolders; a pattern with an extension matches any file, one without only recordings."""
    assert names(f"{calls}/**/*.mp3") == ["b.mp3"]
    assert names(f"{calls}/*.txt") == ["notes.txt"]
    assert names(f"{calls}/**") == ["b.mp3", "[x].wav", "a.MP3"]


def test_a_file_with_brackets_in_its_name(calls: Path) -> None:
    """A bracket in the name of an existing file is not a pattern."""
    assert names(calls / "deep" / "[x].wav") == ["[x].wav"]


def test_urls_and_lists_keep_their_order(calls: Path) -> None:
    """URLs are not fetched, and each item of a list may be any source."""
    address = "https://audio.example/a b.mp3"
    assert [r.source for r in expand([address, calls / "b.mp3"])] == [address, str(calls / "b.mp3")]
    assert expand(f"file://{calls}/b.mp3")[0].source == f"{calls}/b.mp3"


def test_sources_without_recordings_are_errors(tmp_path: Path) -> None:
    """A folder or pattern without a recording is an error."""
    for source in (tmp_path, f"{tmp_path}/*.mp3"):
        with pytest.raises(AudioNotFoundError, match="matches no recording"):
            expand(source)


def test_the_other_columns_of_a_dataframe_are_metadata(calls: Path) -> None:
    """One column has the sources; the other columns are returned as metadata."""
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
        (pd.DataFrame({"path": ["a.mp3"], "state": ["x"]}), "metadata cannot be named 'state'"),
        (pd.DataFrame([["a.mp3", 1, 2]], columns=["path", "n", "n"]), "column 'n' more than once"),
        (pd.DataFrame({"path": [None]}), "row 0 of the column 'path' must be a path or a URL, got None"),
    ],
)
def test_an_ambiguous_dataframe_is_refused(df: pd.DataFrame, message: str) -> None:
    """Several source columns, and metadata with the name of a column of jobs(), are errors."""
    with pytest.raises(OptionError, match=message):
        expand(df)


@pytest.mark.parametrize("source", [b"bytes", 7, {"path": "a"}, [7], ""])
def test_invalid_sources_are_refused(source) -> None:
    """Bytes, numbers and dicts are not sources."""
    with pytest.raises(OptionError, match="paths, folders, patterns, URLs"):
        expand(source)


def test_columns_that_were_not_separated_are_named() -> None:
    """A file with semicolons that was read as one column gives the advice to read it with that separator."""
    with pytest.raises(
        OptionError, match=r"it has path;customer\. Read the file with pandas\.read_csv\(path, sep=';'\)"
    ):
        expand(pd.DataFrame({"path;customer": ["a.mp3;Acme"]}))


def test_unsupported_metadata_is_refused() -> None:
    """A value that cannot be restored as it was is refused."""
    with pytest.raises(OptionError, match="metadata 'x' must be text, numbers, booleans or dates"):
        metadata_to_json({"x": [1, 2]})


def test_remote_stores() -> None:
    """A file, a folder and a pattern in a remote store are found; an unknown store is named in the error."""
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
    """Error of a store's library that is not an OSError."""


class _Store(fsspec.AbstractFileSystem):
    """A store that requires credentials."""

    protocol = "refusing"

    def ls(self, path, detail=True, **kwargs):
        raise _Refusal("Unable to locate credentials")

    _open = ls


def test_errors_of_a_remote_store_name_the_recording(tmp_path: Path) -> None:
    """Errors of the store's library become errors of voxframe, in reading and in writing."""
    fsspec.register_implementation("refusing", _Store, clobber=True)
    for source in ("refusing://calls/a.mp3", "refusing://calls/*.mp3", "refusing://calls"):
        with pytest.raises(AudioError, match=r"refusing://calls.* cannot be read: Unable to locate credentials"):
            expand(source)
    with pytest.raises(ExportError, match="cannot write 'refusing://set': Unable to locate credentials"):
        export.write(pd.DataFrame({"a": [1]}), "refusing://set", "csv")


def test_file_urls(tmp_path: Path) -> None:
    """A file URL works with spaces as %20 and as they are."""
    path = tmp_path / "a b.mp3"
    path.write_bytes(b"sound")
    assert {r.source for r in expand([path.as_uri(), f"file://{path}"])} == {str(path)}
