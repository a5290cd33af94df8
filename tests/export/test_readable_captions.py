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


def captions(words: pd.DataFrame, *, speakers: bool = False) -> Iterator[tuple[pd.DataFrame, list[srt.Subtitle]]]:
    """Return the words and the captions of each turn, as a parser of SRT reads them."""
    turns = words["utterance_idx"] if "utterance_idx" in words else words["transcript_id"]
    for _, turn in words.groupby(turns, sort=False):
        yield turn, list(srt.parse(export.srt(turn, speakers=speakers, losses=export.Losses())))


def check(turn: pd.DataFrame, cues: list[srt.Subtitle], name: str = "") -> None:
    """Check the captions of one turn, of which the first may begin with a name."""
    prefix = f"[{name}]: " if cues[0].content.startswith("[") else f"{name}: " if name else ""
    assert " ".join(" ".join(cue.content.split()) for cue in cues) == prefix + " ".join(turn["text"])
    for cue, after in pairwise([*cues, None]):
        lines, length = cue.content.split("\n"), (cue.end - cue.start).total_seconds()
        assert len(lines) <= 2
        assert max(map(len, lines)) <= LINE
        assert len(lines) == 1 or abs(len(lines[0]) - len(lines[1])) <= 14
        assert length >= SHORTEST_S
        pause = after is None or (after.start - cue.end).total_seconds() > 0
        assert not pause or len(cue.content) / length <= SPEED + 0.1
    if len(turn) > 1 and (turn["start_ms"] - turn["end_ms"].shift()).max() < 1000 * PAUSE_S:
        assert all(len(cue.content.removeprefix(prefix).split()) > 1 for cue in cues)


@pytest.mark.parametrize("speakers", [False, True])
@pytest.mark.parametrize("name", ["interview", "panel", "call", "meeting"])
def test_captions_of_speech_read_well(name: str, speakers: bool) -> None:
    """Captions of the recordings of `data/` are long enough, even, and never end in a word alone, also with names."""
    words = voxframe.load_words(f"data/payloads/{name}.json").sort_values("start_ms")
    words = words[words["channel"].fillna("1") == words["channel"].fillna("1").iloc[0]]
    for turn, cues in captions(words, speakers=speakers):
        name = turn["speaker"].iloc[0]
        name = f"channel {turn['channel'].iloc[0]}" if pd.isna(name) else name
        check(turn, cues, name if speakers else "")


@given(st.lists(_word, min_size=1, max_size=60), st.sampled_from(["", "A", "Bartholomew Smith"]))
def test_captions_of_any_words_read_well(spoken: list[tuple[str, str, int]], name: str) -> None:
    """The same holds for random words without pauses."""
    end = pd.Series([length for *_, length in spoken]).cumsum()
    words = pd.DataFrame(
        {
            "transcript_id": "t",
            "speaker": name or "A",
            "text": [a + b for a, b, _ in spoken],
            "start_ms": end.shift(fill_value=0),
            "end_ms": end,
        }
    )
    ((turn, cues),) = captions(words, speakers=bool(name))
    check(turn, cues, name)


_segment = st.tuples(
    st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=40),
    st.integers(20, 6000),  # ms
    st.sampled_from("AB"),
    st.sampled_from([0, 0, 300, 5000]),  # ms before the next one
)


@given(st.lists(_segment, min_size=1, max_size=8))
def test_captions_of_segments_without_word_times_read_well(segments: list[tuple[list[str], int, str, int]]) -> None:
    """The same holds for segments of another engine, however short, fast or alone they are."""
    rows, at = [], 0
    for texts, length, speaker, pause in segments:
        text = " ".join(texts)
        rows.append({"text": text, "start": at / 1000, "end": (at + length) / 1000, "speaker": speaker})
        at += length + pause
    for turn, cues in captions(voxframe.load_words({"segments": rows}), speakers=True):
        check(turn, cues, turn["speaker"].iloc[0])
