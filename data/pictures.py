# ruff: noqa: INP001 a script, not a package
"""Draw the pictures of plots from `data/payloads`: `python data/pictures.py`.

The README shows `plots.png` on light pages and `plots-dark.png` on dark ones. `timeline.png` is the plot that
`voxframe demo` draws.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

import voxframe

HERE = Path(__file__).parent


def draw(path: Path) -> None:
    """Draw the turns, the positions of some words, and the confidence of the interview."""
    turns = voxframe.load_utterances(HERE / "payloads" / "interview.json")
    words = voxframe.load_words(HERE / "payloads" / "interview.json")
    figure, axes = plt.subplots(3, 1, figsize=(9, 5.2), height_ratios=(2, 3, 4), layout="constrained")
    turns.vox.plot_timeline(axes[0])
    words.vox.plot_dispersion(["tree*", "street", "dollars"], axes[1])
    words.vox.plot_confidence(axes[2], by="speaker", window_s=10)
    for ax in axes[:-1]:
        ax.set_xlabel("")
    figure.savefig(path, dpi=100, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(figure)


def draw_timeline(path: Path) -> None:
    """Draw the turns of the interview."""
    figure, ax = plt.subplots(figsize=(10, 2.1), layout="constrained")
    voxframe.load_utterances(HERE / "payloads" / "interview.json").vox.plot_timeline(ax)
    figure.savefig(path, dpi=150, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(figure)


def main() -> None:
    """Parse the command line, and write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=HERE, help="folder to write into (default: data/)")
    folder = parser.parse_args().to
    mpl.use("agg")
    draw(folder / "plots.png")
    draw_timeline(folder / "timeline.png")
    with plt.style.context(["dark_background", {"figure.facecolor": "#0d1117", "axes.facecolor": "#0d1117"}]):
        draw(folder / "plots-dark.png")


if __name__ == "__main__":
    main()
