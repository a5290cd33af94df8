"""Captions follow the guides of broadcasters: long enough to be read, in two even lines, without lonely words."""

from collections.abc import Iterator
from itertools import combinations, islice, pairwise
from typing import NamedTuple

import pandas as pd
import pytest
import srt
import webvtt
from hypothesis import given
from hypothesis import strategies as st

import voxframe
from voxframe import export

LINE, PAUSE_S, SHORTEST_S, LONGEST_S, SPEED = 42, 2.0, 0.8, 7.0, 17  # Netflix, "Timed Text Style Guide"
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
        assert length >= SHORTEST_S or (after and cue.end == after.start)
        assert length <= LONGEST_S or (turn["end_ms"] - turn["start_ms"]).max() > 2000
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


class Shown(NamedTuple):
    """A caption of one speaker, with the time until which its words are spoken; all times in milliseconds."""

    start: int
    end: int
    speaker: str
    text: str
    spoken: pd.DataFrame

    @property
    def spoken_until(self) -> int:
        """Return the end of the last word."""
        return int(self.spoken["end_ms"].max())


def shown(words: pd.DataFrame) -> list[Shown]:
    """Return the captions of all speakers with their words, as a parser of WebVTT reads them."""
    found = []
    left = {name: rows.iterrows() for name, rows in words.groupby("speaker")}
    for cue in webvtt.from_string(export.vtt(words, losses=export.Losses())).captions:
        times = (int(clock.replace(":", "").replace(".", "")) for clock in (cue.start, cue.end))
        start, end = (
            time // 10_000_000 * 3_600_000 + time // 100_000 % 100 * 60_000 + time % 100_000 for time in times
        )
        spoken = pd.DataFrame([row for _, row in islice(left[cue.voice], len(cue.text.split()))])
        assert " ".join(cue.text.split()) == " ".join(spoken["text"])
        assert spoken["start_ms"].min() == start
        found.append(Shown(start, end, cue.voice, cue.text, spoken))
    assert not any([*rest] for rest in left.values())
    return found


def check_conversation(words: pd.DataFrame) -> None:
    """Check the captions of several speakers: each word once, whole sentences, times, and who is shown when."""
    cues = shown(words)
    assert [cue.start for cue in cues] == sorted(cue.start for cue in cues)
    starts = {cue.start for cue in cues}
    for cue in cues:
        length = cue.end - cue.start
        assert length <= 1000 * LONGEST_S
        assert max(map(len, cue.text.split("\n"))) <= LINE
        is_cut = cue.end in starts or length == 1000 * SHORTEST_S
        assert len(cue.text) / length <= (SPEED + 0.1) / 1000 or is_cut
    for name in words["speaker"].unique():
        own = [cue for cue in cues if cue.speaker == name]
        for before, cue, after in zip([None, *own], own, [*own[1:], None], strict=False):
            assert after is None or cue.end <= after.start
            assert cue.end - cue.start >= 1000 * SHORTEST_S or (after and cue.end == after.start)
            if len(cue.spoken) == 1:
                for one, other in ((before, cue), (cue, after)):
                    if one and other and not one.text.endswith("."):
                        assert other.start - one.spoken_until >= 1000, f"an orphan: {cue.text}"
    for cue, later in combinations(cues, 2):
        if cue.speaker != later.speaker and later.start < cue.end:
            assert later.start < cue.spoken_until or cue.end - cue.start <= 1000 * SHORTEST_S
    for cue in cues:
        assert sum(other.start <= cue.start < other.end for other in cues) <= 2
    name, said = "", dict[str, list[str]]()
    for subtitle in srt.parse(export.srt(words, losses=export.Losses())):
        assert max(map(len, subtitle.content.split("\n"))) <= LINE
        *prefix, text = " ".join(subtitle.content.split()).split(": ", 1)
        name = prefix[0].strip("[]") if prefix else name
        said.setdefault(name, []).extend(text.split())
    assert said == words.groupby("speaker")["text"].apply(list).to_dict()


@pytest.mark.parametrize("name", ["interview", "panel", "call", "meeting"])
def test_captions_of_conversations_read_well(name: str) -> None:
    """Captions of whole recordings, also with channels, have each word once, and no interjection cuts a sentence."""
    check_conversation(voxframe.load_words(f"data/payloads/{name}.json").sort_values("start_ms", kind="stable"))


def test_interjections_do_not_cut_sentences() -> None:
    """In the call, only what a speaker says there in one word is a caption of one word."""
    single = [(cue.speaker, cue.text) for cue in shown(voxframe.load_words("data/payloads/call.json"))]
    assert [pair for pair in single if len(pair[1].split()) == 1] == [("1", "74129."), ("2", "Goodbye.")]
    assert "and her birthday is on Friday.\n" in export.txt(voxframe.load_words("data/payloads/call.json"))


_spoken = st.lists(st.tuples(_word, st.sampled_from([0, 0, 0, 120, 400, 950, 1500, 3000])), min_size=1, max_size=40)


@given(_spoken, _spoken, st.integers(0, 5000))
def test_captions_of_two_speakers_read_well(first: list, second: list, later: int) -> None:
    """The same holds for any words of two speakers who interrupt each other and speak at the same time."""
    rows = []
    for speaker, spoken, begin in (("A", first, 0), ("B", second, later)):
        at = begin
        for (text, mark, length), pause in spoken:
            times = {"start_ms": at, "end_ms": at + length}
            rows.append({"transcript_id": "t", "speaker": speaker, "text": text + mark, **times})
            at += length + pause
    check_conversation(pd.DataFrame(rows).sort_values("start_ms", kind="stable"))
