"""Caption text: what the client and the server write must not differ, so its rules are tested once."""

import pytest

from voxframe._text import Cue, clock, cues, masked, one_line, readable, srt


@pytest.mark.parametrize(("pause_ms", "captions"), [(1999, ["good day"]), (2000, ["good", "day"])])
def test_a_pause_of_two_seconds_begins_a_caption(pause_ms: int, captions: list[str]) -> None:
    """A shorter pause does not."""
    words = [Cue("good", 0, 100), Cue("day", 100 + pause_ms, 2500)]
    assert [cue.text for cue in cues(words)] == captions


def test_a_caption_lasts_as_long_as_its_longest_word() -> None:
    """Words of speakers on two channels overlap; the last one need not end last."""
    assert [(cue.start, cue.end) for cue in cues([Cue("well", 0, 900), Cue("yes", 100, 200)])] == [(0, 900)]


def test_no_caption_is_longer_than_the_limit() -> None:
    """The space between two words counts."""
    assert [cue.text for cue in cues([Cue("abc", 0, 1), Cue("de", 1, 2)], chars=6)] == ["abc de"]
    assert [cue.text for cue in cues([Cue("abc", 0, 1), Cue("def", 1, 2)], chars=6)] == ["abc", "def"]


def test_text_that_no_file_can_hold_is_left_out() -> None:
    """Control characters and lone surrogates are removed; emoji stay."""
    assert one_line("a\ud800b\x07c 👋\u2028d") == "abc 👋 d"


def test_a_caption_is_visible() -> None:
    """A caption without a length, or before another one, is shown for 0.8 s; one with time left, until it is read."""
    instant, spoken, long = readable([Cue("a", 5, 5), Cue("b", 100, 2000), Cue("c" * 34, 3000, 3500)])
    assert (instant.end, spoken.end, long.end) == (805, 2000, 5000)


def test_an_arrow_ends_no_caption() -> None:
    """A parser would read a line with `-->` as the times of another caption."""
    assert srt([Cue("a --> b", 0, 1)]).count("-->") == 1


def test_an_hour_has_its_own_field() -> None:
    """Times are m:ss up to an hour, and h:mm:ss from then on."""
    assert (clock(3599), clock(3600)) == ("59:59", "1:00:00")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://ada:pw@host/a?x=1", "see https://***@host/a?x=1"),
        ("/a.mp3?v=1&X-Amz-Signature=ab#end", "/a.mp3?v=1&X-Amz-Signature=***#end"),
        (
            "https://host/a?tempauth=ab&authorization=cd&bearer=ef",
            "https://host/a?tempauth=***&authorization=***&bearer=***",
        ),
        ("a = 5; key = 3, ada@host", "a = 5; key = 3, ada@host"),
    ],
)
def test_secrets_in_urls_are_masked(text: str, shown: str) -> None:
    """Logins and secret parameters are masked, also in a URL without scheme and host; other text is unchanged."""
    assert masked(text) == shown
