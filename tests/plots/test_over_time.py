import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from voxframe import plots
from voxframe.colors import GREY, NEGATIVE, POSITIVE


def test_confidence_is_the_mean_of_each_window():
    """The line shows the mean of the words with a time in each window, with a gap for windows without words."""
    df = pd.DataFrame(
        {"start_ms": [0, 900, 1000, 3500, None], "confidence": [0.2, 0.4, 1.0, 0.5, 0.1], "speaker": list("AABAA")}
    )
    with pytest.warns(UserWarning, match="confidence: 1 of 5 rows have no times and are left out"):
        ax = plots.confidence(df, window_s=1)
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [0.5, 1.5, 2.5, 3.5]
    np.testing.assert_allclose(line.get_ydata(), [0.3, 1.0, np.nan, 0.5])
    assert len(ax.collections[0].get_offsets()) == 4
    assert ax.get_ylim()[0] == pytest.approx(0.2)  # below the lowest confidence
    both = plots.confidence(df.dropna(), by="speaker", window_s=1)
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["A", "B"]
    assert both.lines[1].get_ydata().tolist() == [1.0]


def test_a_long_recording_has_no_dots():
    """From five thousand words on, only the line is drawn, with some forty windows of a round length."""
    n = 30_000
    ax = plots.confidence(pd.DataFrame({"start_ms": np.arange(n) * 360, "confidence": 0.5}))
    assert not ax.collections
    assert len(ax.lines[0].get_xdata()) == 36  # three hours in windows of five minutes


def test_confidence_refuses_invalid_input():
    """A window of length 0 and a missing column raise errors; several transcripts have a line each."""
    df = pd.DataFrame({"transcript_id": ["t", "u"], "start_ms": [0, 1], "confidence": [1.0, 1.0]})
    assert [text.get_text() for text in plots.confidence(df).get_legend().get_texts()] == ["t", "u"]
    by_speaker = plots.confidence(df.assign(speaker="A"), by="speaker")
    assert [text.get_text() for text in by_speaker.get_legend().get_texts()] == ["t · A", "u · A"]
    with pytest.raises(ValueError, match=r"window_s must be a number from 0\.001 to 1e\+09, got 0"):
        plots.confidence(df.head(1), window_s=0)
    with pytest.raises(ValueError, match="lacks confidence"):
        plots.confidence(df[["start_ms"]])
    named = plots.confidence(df.assign(recording=["call", "talk"]))
    assert [text.get_text() for text in named.get_legend().get_texts()] == ["call", "talk"]


def test_sentiment_goes_up_and_down_with_its_confidence():
    """Positive bars go up from the middle of the speaker's lane, negative ones go down, and others are thin."""
    df = pd.DataFrame(
        {
            "speaker": ["A", "B", "A", "A"],
            "start_ms": [0, 1000, 2000, 3000],
            "end_ms": [1000, 2000, 3000, 4000],
            "sentiment": ["POSITIVE", "negative", "NEUTRAL", None],
            "confidence": [0.5, None, 0.9, 0.9],
        }
    )
    ax = plots.sentiment(df)
    bars = [of for of in ax.collections if type(of).__name__ == "PolyCollection"]
    up, down, other = ([path.get_extents() for path in of.get_paths()] for of in bars)
    assert [(box.x0, box.x1) for box in up + down] == [(0, 1), (1, 2)]
    assert (up[0].y0, up[0].y1) == pytest.approx((-0.21, 0))  # the axis points down
    assert (down[0].y0, down[0].y1) == pytest.approx((1, 1.42))
    assert [box.x0 for box in other] == [2, 3]
    assert max(box.height for box in other) < 0.2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "B"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["positive", "negative", "neutral or other"]
    assert [to_hex(of.get_facecolor()[0]).upper() for of in bars] == [POSITIVE, NEGATIVE, GREY]


def test_the_legend_names_only_drawn_sentiments():
    """A sentiment that does not occur has no legend entry."""
    df = pd.DataFrame({"start_ms": [0], "end_ms": [9], "sentiment": ["NEGATIVE"]})
    assert [text.get_text() for text in plots.sentiment(df).get_legend().get_texts()] == ["negative"]
    assert plots.sentiment(df.iloc[:0]).get_legend() is None
