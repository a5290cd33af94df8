import pytest

from voxframe.corpus.addresses import is_address, is_remote, marked, unmarked, unsigned

BASE = "https://b.example/dir/a%20b.mp3"


@pytest.mark.parametrize("address", [BASE, f"{BASE}?x=1", f"{BASE}#t=10", f"{BASE}?x=1#t=10&u"])
def test_a_mark_is_a_fragment_and_can_be_taken_off(address: str) -> None:
    """No two marks are the same, and what is fetched stays as it was."""
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
def test_signatures_are_no_part_of_what_is_fetched(query: str, left: str) -> None:
    """What identifies the media stays, and an address that is not signed stays as it is."""
    assert unsigned(f"{BASE}?{query}") == BASE + left


def test_kinds_of_places() -> None:
    """Http and https go to the service as they are; other schemes are read here; the rest are paths."""
    assert is_address("HTTPS://a.example/x")
    assert not is_address("a.mp3")
    assert is_remote("s3://bucket/a.mp3")
    assert not is_remote("https://a.example/x")
    assert not is_remote("c:/a.mp3")
