"""Colours of the widgets as CSS variables: those of the plots, and a lighter or darker twin for the other theme."""

from __future__ import annotations

from collections.abc import Sequence

from voxframe.plots.style import COLORS, themed, voice_colors


def voice_places(names: Sequence[object]) -> list[int]:
    """Number of each speaker's colour, the same as in every plot."""
    return [COLORS.index(color) for color in voice_colors(names)]


def voice_css() -> str:
    """`--vf-voice-N` for each colour, and `--vf-on-voice-N` for text on it, in both themes."""
    rules = []
    for n, light in enumerate(COLORS):
        dark = themed(light, dark=True)
        rules.append(f"--vf-voice-{n}: light-dark({light}, {dark});")
        rules.append(f"--vf-on-voice-{n}: light-dark({_ink(light)}, {_ink(dark)});")
    return ".voxframe { " + " ".join(rules) + " }\n"


def _ink(color: str) -> str:
    """Black or white, whichever stands out more, by WCAG 2's relative luminance."""
    luminance = 0.0
    for weight, place in ((0.2126, 1), (0.7152, 3), (0.0722, 5)):
        part = int(color[place : place + 2], 16) / 255
        luminance += weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"
