"""Captions follow the guides of broadcasters: long enough to be read, in two even lines, without lonely words."""

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd
import pytest
import srt
from hypothesis import given
from hypothesis import strategies as st

import voxframe
from voxframe import export

LINE, PAUSE_S, SHORTEST_S, SPEED = 42, 2.0, 0.8, 17  # Netflix, "Timed Text Style Guide"
_word = st.tuples(
    st.text("abcdefgh", min_size=1, max_size=12), st.sampled_from(["", "", "", ",", "."]), st.integers(60, 900)
)


def captions(words: pd.DataFrame) -> Iterator[list[srt.Subtitle]]:
    """Return the captions of each turn, as a parser of SRT reads them."""
    for _, turn in words.groupby((words["speaker"] != words["speaker"].shift()).cumsum()):
        yield list(srt.parse(export.srt(turn, speakers=False, losses=export.Losses())))


def check(turn: pd.DataFrame, cues: list[srt.Subtitle]) -> None:
    """Check the captions of one turn."""
    assert " ".join(" ".join(cue.content.split()) for cue in cues) == " ".join(turn["text"])
    for cue, after in pairwise([*cues, None]):
        lines, length = cue.content.split("\n"), (cue.end - cue.start).total_seconds()
        assert len(lines) <= 2
        assert max(map(len, lines)) <= LINE
        assert len(lines) == 1 or abs(len(lines[0]) - len(lines[1])) <= 14
        assert length >= SHORTEST_S
        pause = after is None or (after.start - cue.end).total_seconds() > 0
        assert not pause or len(cue.content) / length <= SPEED + 0.1


@pytest.mark.parametrize("name", ["interview", "panel", "call"])
def test_captions_of_speech_read_well(name: str) -> None:
    """Captions of the recordings of `data/` are long enough, even, and never end in a word alone."""
    words = voxframe.load_words(f"data/payloads/{name}.json").sort_values("start_ms")
    words = words[words["channel"].fillna("1") == words["channel"].fillna("1").iloc[0]]
    for (_, turn), cues in zip(
        words.groupby((words["speaker"] != words["speaker"].shift()).cumsum()), captions(words), strict=True
    ):
        check(turn, cues)
        if len(turn) > 1 and (turn["start_ms"] - turn["end_ms"].shift()).max() < 1000 * PAUSE_S:
            assert all(len(cue.content.split()) > 1 for cue in cues)


@given(st.lists(_word, min_size=1, max_size=60))
def test_captions_of_any_words_read_well(spoken: list[tuple[str, str, int]]) -> None:
    """The same holds for random words without pauses."""
    end = pd.Series([length for *_, length in spoken]).cumsum()
    words = pd.DataFrame(
        {
            "transcript_id": "t",
            "speaker": "A",
            "text": [a + b for a, b, _ in spoken],
            "start_ms": end.shift(fill_value=0),
            "end_ms": end,
        }
    )
    (cues,) = captions(words)
    check(words, cues)
    assert len(spoken) == 1 or all(len(cue.content.split()) > 1 for cue in cues)
