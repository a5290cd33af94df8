import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxframe.file_names import file_name


def test_plain_identifiers_are_their_own_name() -> None:
    """A lower-case UUID is found on disk under itself."""
    for plain in ("7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0", "a_1", "0", "a" * 128):
        assert file_name(plain) == plain


@pytest.mark.parametrize(
    "hostile",
    [
        *(
            "../../etc/passwd",
            "/etc/passwd",
            "..",
            ".",
            ".hidden",
            "a/b",
            "a\\b",
            "C:x",
            "nul",
            "com1",
            "-rf",
            "_schema",
        ),
        *("a\0b", "a\nb", "a*b?", "~", "é", "\ud800", "a" * 129, "x" * 5000, "A", "a.b", "a b", ""),
    ],
)
def test_hostile_identifiers_become_safe_names(hostile: str) -> None:
    """Whatever a service calls a transcript, its file stays in its folder and is seen by every reader."""
    name = file_name(hostile)
    assert name != hostile
    assert len(name) <= 128
    assert name[0].isalnum()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~")


def test_case_alone_keeps_names_apart() -> None:
    """On a file system that ignores case, identifiers that differ only in case still have two files."""
    names = {file_name(text).lower() for text in ("abc", "ABC", "Abc", "aBC")}
    assert len(names) == 4


@given(st.text(), st.text())
def test_different_identifiers_have_different_names(one: str, other: str) -> None:
    """Two identifiers share a name only where they are the same."""
    assert (file_name(one).lower() == file_name(other).lower()) == (one == other)
