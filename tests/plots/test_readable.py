"""Every plot with few and many data, on white and on black: all of its text is readable."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from voxframe import plots
from voxframe.colors import COLORS, GREY, ON_DARK

NAME = "Maximiliana von $Hohenfels$-Traunstein zu Babenhausen und Rain am Lech "


def spoken(voices: int, rows: int = 120, until_ms: int = 5_400_000, name: str = "Speaker ") -> pd.DataFrame:
    """Overlapping spans with all columns that any plot reads."""
    draw = np.random.default_rng(voices)
    start = np.sort(draw.integers(0, until_ms, rows))
    return pd.DataFrame(
        {
            "transcript_id": "t",
            "speaker": [f"{name}{n % max(1, voices)}" for n in range(rows)],
            "text": draw.choice(["tree", "river", "bank"], rows),
            "start_ms": start,
            "end_ms": start + draw.integers(1, until_ms // 60, rows),
            "confidence": draw.uniform(0, 1, rows),
            "sentiment": draw.choice(["POSITIVE", "NEGATIVE", "NEUTRAL", "MIXED"], rows),
        }
    )


CHAPTERS = pd.DataFrame(
    {
        "headline": ["A city counts its trees", "Rain", None, NAME * 3],
        "start_ms": [0, 1_200_000, 1_600_000, 2_000_000],
        "end_ms": [1_500_000, 1_600_000, 2_000_000, 5_400_000],  # the first two overlap
    }
)

DRAW: dict[str, Callable[[pd.DataFrame], Axes]] = {
    "timeline": plots.timeline,
    "packed": lambda df: plots.timeline(df, pack=True),
    "bands": lambda df: plots.timeline(df, bands={"chapters": CHAPTERS, "again": CHAPTERS}),
    "talk_time": plots.talk_time,
    "dispersion": lambda df: plots.dispersion(df, ["tree", "river bank", "nothing"], by="speaker"),
    "confidence": plots.confidence,
    "confidence_by": lambda df: plots.confidence(df, by="speaker"),
    "sentiment": plots.sentiment,
}
CASES = {
    "few": lambda: spoken(2),
    "short": lambda: spoken(2, 3, 1500),
    "many": lambda: spoken(31),
    "long": lambda: spoken(9, name=NAME),
    "empty": lambda: spoken(2).iloc[:0],
}


@pytest.mark.parametrize(
    ("plot", "case"),
    [(plot, case) for plot in DRAW for case in CASES if case not in ("short", "long") or plot in ("timeline", "packed")]
    + [("talk_time", "long"), ("confidence_by", "long"), ("confidence", "short")],
)
def test_no_text_is_cut_off_or_covered(plot, case, texts_of):
    """In a new figure, every text is inside the figure and separate from the others; legends have entries."""
    with plt.style.context("dark_background" if case in ("few", "empty") else "default"):
        ax = DRAW[plot](CASES[case]())
        seen = texts_of(ax)
    if ax.get_legend() is not None:
        assert ax.get_legend().get_texts()
    said = {text.get_text() for text in seen}
    if case == "empty":
        assert plot == "bands" or "nothing to show" in said
    if case == "many" and plot in ("timeline", "bands", "talk_time", "sentiment"):
        assert {f"Speaker {n}" for n in range(31)} <= said
    if case == "long" and plot in ("timeline", "talk_time"):
        assert len([text for text in said if text.startswith("Maximiliana")]) == 9


def test_lanes_too_narrow_for_names_have_every_other_one(texts_of):
    """In given Axes, names become smaller and then fewer, so that they do not overlap."""
    ax = plt.figure(figsize=(4, 1.5), layout="constrained").subplots()
    plots.timeline(spoken(60), ax)
    named = [text for text in texts_of(ax) if text.get_text().startswith("Speaker")]
    assert 5 < len(named) < 60


def luminance(color: object) -> float:
    """Return the relative luminance by WCAG 2."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize(("theme", "background"), [("default", "white"), ("dark_background", "black")])
def test_bars_and_titles_contrast_with_the_background(theme, background):
    """Bars of nine speakers and the titles of bands contrast with a white and a black background."""
    with plt.style.context(theme):
        ax = plots.timeline(spoken(9), bands=CHAPTERS)
        ax.figure.canvas.draw()
    inks = [bars.get_facecolor()[0][:3] for bars in ax.collections[:9]]
    for color in inks:
        bright, dark = sorted((luminance(color), luminance(background)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) > 2
    titles = [text.get_color() for text in ax.texts + ax.artists if text.get_text()]
    assert titles
    assert all(abs(luminance(color) - luminance(background)) > 0.9 for color in titles)


# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009,
# severity 1.0, on linear RGB.
PROTAN = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTAN = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
TRITAN = [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(color: str, seen: object) -> np.ndarray:
    """Return a colour in CIE 1976 L*a*b* (D65)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    xyz = XYZ @ np.clip(np.array(seen) @ linear, 0, 1) / (0.95047, 1.0, 1.08883)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", [np.eye(3), PROTAN, DEUTAN, TRITAN], ids=["all", "protan", "deutan", "tritan"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_first_four_speakers_differ_for_everyone(seen, dark):
    """The first four colours, and those of sentiment, are far apart under simulated colour blindness too."""
    first = [ON_DARK.get(color, color) if dark else color for color in COLORS[:4]]
    for group in (first, [*first[:2], GREY]):
        shown = [lab(color, seen) for color in group]
        distances = [np.linalg.norm(a - b) for n, a in enumerate(shown) for b in shown[:n]]
        assert min(distances) > 10
