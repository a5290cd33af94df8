"""The recordings in data/."""

from pathlib import Path

DATA = Path(__file__).parents[2] / "data"
NAMES = ("call", "interview", "panel")
AUDIO = {name: DATA / f"{name}.flac" for name in NAMES}
