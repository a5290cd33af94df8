import pytest

from voxframe.corpus.job import canonical, is_address, is_remote, marked, unmarked, unsigned

BASE = "https://b.example/dir/a%20b.mp3"


@pytest.mark.parametrize("address", [BASE, f"{BASE}?x=1", f"{BASE}#t=10", f"{BASE}?x=1#t=10&u"])
def test_a_tag_is_a_fragment_and_can_be_removed(address: str) -> None:
    """Tags are unique, and removing one gives the original URL."""
    one, two = marked(address), marked(address)
    assert one != two
    assert one.startswith(address)
    assert one.partition("#")[0] == address.partition("#")[0]
    assert unmarked(one) == unmarked(address) == address


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("v=1&X-Amz-Algorithm=A&X-Amz-Expires=9&X-Amz-Signature=s", "?v=1"),
        ("X-Goog-Algorithm=A&X-Goog-Signature=s", ""),
        ("sv=2022&se=2024&sr=b&sp=r&sig=s%3D&snapshot=3", "?snapshot=3"),
        ("AWSAccessKeyId=k&Signature=s&Expires=9", ""),
        ("Policy=p&Signature=s&Key-Pair-Id=k&part=2", "?part=2"),
        ("sig=1", "?sig=1"),
        ("expires=1&x=&y", "?expires=1&x=&y"),
        ("a=1&&b=2", "?a=1&&b=2"),
    ],
)
def test_signatures_are_removed(query: str, left: str) -> None:
    """Only the signature is removed; an unsigned URL is unchanged."""
    assert unsigned(f"{BASE}?{query}") == BASE + left


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a.example/x.mp3", "HTTP://A.Example:80/x.mp3", True),
        ("https://a.example:443/x.mp3#t=10", "https://a.example/x.mp3#t=20", True),
        ("https://u:P@a.example/x.mp3", "https://u:p@a.example/x.mp3", False),
        ("https://a.example/x.mp3", "https://a.example/X.mp3", False),
        ("https://a.example/x.mp3", "https://a.example:8443/x.mp3", False),
        ("https://a.example/x?id=1", "https://a.example/x?id=2", False),
        ("https://a.example/x", "http://a.example/x", False),
        ("https://a.example/x?voxframe=1", "https://a.example/x", False),
    ],
)
def test_spellings_of_one_url(one: str, other: str, same: bool) -> None:
    """Spellings of one URL have the same canonical form, whatever their tag; different URLs do not."""
    assert (canonical(one) == canonical(other)) is same
    assert (canonical(unmarked(marked(one))) == canonical(other)) is same


def test_kinds_of_sources() -> None:
    """The service fetches http and https URLs; other schemes are remote stores, and the rest are paths."""
    assert is_address("HTTPS://a.example/x")
    assert not is_address("a.mp3")
    assert is_remote("s3://bucket/a.mp3")
    assert not is_remote("https://a.example/x")
    assert not is_remote("c:/a.mp3")
