"""Places at which two transcripts differ, and their strip."""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from voxframe import Timeline, load_words, plots
from voxframe.compare import align, disagreements

mpl.use("agg")
DATA = Path(__file__).parents[2] / "data"


def words(text: str, **columns: object) -> pd.DataFrame:
    """Words of one second each."""
    said = text.split()
    starts = np.arange(len(said)) * 1000
    return pd.DataFrame({"text": said, "start_ms": starts, "end_ms": starts + 900} | columns)


def test_consecutive_edits_are_one_place() -> None:
    """Worked by hand: two words heard as one, a missing word, and an added one, each with time and context."""
    truth = words("We met in the old town hall on Friday morning .", speaker="A")
    heard = words("We met in downtown hall on a Friday", speaker="1")
    found = disagreements(align(truth, heard), context=2)
    assert found["text"].to_list() == ["the old town → downtown", "(nothing) → a", "morning → (nothing)"]
    assert found["edit"].to_list() == ["substitution", "insertion", "deletion"]
    assert found["edits"].to_list() == [3, 1, 1]
    assert found["speaker"].to_list() == ["A", "1", "A"]
    assert found[["left", "right"]].to_numpy().tolist() == [
        ["met in", "hall on"],
        ["hall on", "Friday morning"],
        ["on Friday", ""],
    ]
    # Both versions: the words 3 to 5 of the reference and 3 of the hypothesis; 6 of the hypothesis; 9 of the reference.
    assert found[["start_ms", "end_ms"]].to_numpy().tolist() == [[3000, 5900], [6000, 6900], [9000, 9900]]


def test_without_times_a_place_lies_between_its_neighbours() -> None:
    """A word that only a plain text has lies between the words around it; without any times, the time is null."""
    found = disagreements(align("one two three", words("one three")))
    assert found[["ref_text", "start_ms", "end_ms"]].to_numpy().tolist() == [["two", 900, 1000]]
    assert disagreements(align("one two", "one")).loc[0, ["start_ms", "end_ms"]].isna().all()
    assert disagreements(align("same", "same")).empty


def test_every_edit_is_in_one_place() -> None:
    """For the recordings of data/, the places have as many edits as the alignment, and can be shown on a timeline."""
    sides = []
    for name in ("call", "interview", "panel"):
        turns = json.loads((DATA / f"{name}.json").read_text("utf-8"))["turns"]
        truth = pd.DataFrame([word for turn in turns for word in turn["words"]]).assign(recording=name)
        heard = load_words(DATA / "payloads" / f"{name}.json").assign(recording=name)
        sides.append((truth, heard))
    rows = align(*(pd.concat(side) for side in zip(*sides, strict=True)), on="recording")
    found = disagreements(rows)
    assert found["edits"].groupby(found["recording"]).sum().to_dict() == (
        (rows["edit"] != "match").groupby(rows["recording"]).sum().to_dict()
    )
    assert Timeline(found, by="recording").result is found
    ax = plots.disagreements(rows)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["call", "interview", "panel"]
    assert sum(len(bars.get_paths()) for bars in ax.collections[1:]) == len(found)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == set(found["edit"])
    same = plots.disagreements(found)
    assert sum(len(bars.get_paths()) for bars in same.collections[1:]) == len(found)


def test_bars_are_at_the_times_of_their_places() -> None:
    """A bar covers its place, and the lane the whole recording; nothing is drawn for equal transcripts."""
    heard = words("one too three")
    ax = plots.disagreements(align(words("one two three"), heard))
    lane, bars, *_ = ax.collections
    assert lane.get_paths()[0].get_extents().intervalx.tolist() == [0, 2.9]
    assert bars.get_paths()[0].get_extents().intervalx.tolist() == pytest.approx([1.0, 1.9])
    assert not any(len(bars.get_paths()) for bars in plots.disagreements(align(heard, heard)).collections[1:])
