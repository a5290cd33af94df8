from itertools import pairwise

import numpy as np
import pandas as pd

from voxframe.widgets.base import pack_bands, pack_texts
from voxframe.widgets.player_data import split_passages


def unpacked(data: bytes, offsets: bytes) -> list[str]:
    edges = np.frombuffer(offsets, "<i4")
    return [data[a:b].decode() for a, b in pairwise(edges)]


def test_texts_survive_encoding():
    """Texts with null characters, line ends and any script survive; a null is empty, half a surrogate pair "?"."""
    given = ["plain", "", None, "nul\x00byte", "two\nlines", "שלום", "🙂", "half \ud800", np.nan]
    wanted = ["plain", "", "", "nul\x00byte", "two\nlines", "שלום", "🙂", "half ?", ""]
    assert unpacked(*pack_texts(given)) == wanted
    assert unpacked(*pack_texts([])) == []


def test_bands_are_in_time_order_and_have_a_time():
    """Chapters are sorted by time; those without a time or with reversed times are left out."""
    chapters = pd.DataFrame(
        {
            "headline": ["second", "first", "no time", "turned around", "beyond"],
            "start_ms": pd.array([500, 0, None, 900, 0], "Int64"),
            "end_ms": pd.array([900, 500, 100, 800, 2**53], "Int64"),
        }
    )
    packed = pack_bands(chapters, "headline", "band")
    assert unpacked(packed["band_text"], packed["band_offsets"]) == ["first", "second"]
    assert np.frombuffer(packed["band_end"], "<i4").tolist() == [500, 900]
    assert pack_bands(None, "headline", "band") == {}


def test_a_chapter_without_a_headline_is_numbered():
    """A chapter that has no subject is called by its number in the order of time."""
    headlines = ["Ovens", "", None]
    chapters = pd.DataFrame({"headline": headlines, "start_ms": [500, 0, 900], "end_ms": [900, 500, 999]})
    packed = pack_bands(chapters, "headline", "band")
    assert unpacked(packed["band_text"], packed["band_offsets"]) == ["Chapter 1", "Ovens", "Chapter 3"]


def test_a_turn_of_eighty_words_is_one_passage():
    """A turn is split if it has more than 80 words."""
    for count, passages in ((80, [0, 80]), (81, [0, 80, 81])):
        words = pd.DataFrame({"speaker": "A", "text": "word", "start_ms": range(count), "end_ms": range(1, count + 1)})
        assert split_passages(words).first.tolist() == passages


def test_turns_are_ordered_by_their_start():
    """Turns are ordered by time, whatever the order of the rows, and keep their words together."""
    words = pd.DataFrame(
        {"utterance_idx": [1, 1, 0, 0], "text": list("cdab"), "start_ms": [20, 40, 0, 30], "end_ms": [21, 41, 1, 31]}
    )
    assert "".join(split_passages(words).words["text"]) == "abcd"
