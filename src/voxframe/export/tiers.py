"""Annotations with a tier for the turns and one for the words of each voice: Praat's TextGrid and ELAN's EAF."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

import pandas as pd

from voxframe.export.segments import Segment, grouped, joined, whole

_ALIGNMENT = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"


def textgrid(df: pd.DataFrame) -> str:
    """One transcript as a TextGrid of Praat, in its long text format. Times are seconds; gaps are empty intervals.

    Args:
        df: Words; with longer rows, such as turns, there is one tier a voice.

    Raises:
        OptionError: A column is missing, or there are several transcripts.
    """
    tiers = _tiers(df, "textgrid")
    end = max((s.end for tier in tiers.values() for s in tier), default=1)
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {_s(end)}",
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for n, (name, segments) in enumerate(tiers.items(), 1):
        intervals = _without_gaps(segments, end)
        lines += [f"    item [{n}]:", '        class = "IntervalTier"', f"        name = {_quoted(name)}"]
        lines += ["        xmin = 0", f"        xmax = {_s(end)}", f"        intervals: size = {len(intervals)}"]
        for m, (begin, stop, text) in enumerate(intervals, 1):
            lines += [f"        intervals [{m}]:", f"            xmin = {_s(begin)}", f"            xmax = {_s(stop)}"]
            lines.append(f"            text = {_quoted(text)}")
    return "\n".join(lines) + "\n"


def eaf(df: pd.DataFrame) -> str:
    """One transcript as an annotation document of ELAN. Times are milliseconds.

    Args:
        df: Words; with longer rows, such as turns, there is one tier a voice.

    Raises:
        OptionError: A column is missing, or there are several transcripts.
    """
    tiers = _tiers(df, "eaf")
    root = ET.Element("ANNOTATION_DOCUMENT", AUTHOR="", DATE="1970-01-01T00:00:00+00:00", FORMAT="3.0", VERSION="3.0")
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:noNamespaceSchemaLocation", _ALIGNMENT)
    ET.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    times = sorted({time for tier in tiers.values() for s in tier for time in (s.start, s.end)})
    slots = {time: f"ts{n}" for n, time in enumerate(times, 1)}
    order = ET.SubElement(root, "TIME_ORDER")
    for time, slot in slots.items():
        ET.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(time))
    number = 0
    for name, segments in tiers.items():
        tier = ET.SubElement(root, "TIER", LINGUISTIC_TYPE_REF="default-lt", TIER_ID=_xml(name))
        for s in segments:
            number += 1
            where: dict[str, str] = {"TIME_SLOT_REF1": slots[s.start], "TIME_SLOT_REF2": slots[s.end]}
            where["ANNOTATION_ID"] = f"a{number}"
            one = ET.SubElement(ET.SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", where)
            ET.SubElement(one, "ANNOTATION_VALUE").text = _xml(s.text)
    ET.SubElement(
        root, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID="default-lt", TIME_ALIGNABLE="true", GRAPHIC_REFERENCES="false"
    )
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _tiers(df: pd.DataFrame, purpose: str) -> Mapping[str, list[Segment]]:
    """Tiers by name, each in order and without overlap: turns and words of each voice and channel, or the rows."""
    tiers: dict[str, list[Segment]] = {}
    segments = whole(df, purpose)
    names = _names(segments)
    for run in grouped(segments):
        name = names[run[0].voice, run[0].channel]
        if "word_idx" not in df.columns:
            tiers.setdefault(name, []).extend(run)
            continue
        tiers.setdefault(name, []).append(joined(run))
        tiers.setdefault(f"{name} words", []).extend(run)
    return tiers


def _names(segments: list[Segment]) -> dict[tuple[str | None, int], str]:
    """A name for each voice, told apart where one voice is on several channels or named like a tier of words."""
    names: dict[tuple[str | None, int], str] = {}
    taken: set[str] = set()
    for segment in segments:
        key = (segment.voice, segment.channel)
        if key in names:
            continue
        wanted = name = segment.voice or "speech"
        n = 1
        while {name, f"{name} words"} & taken:
            n += 1
            name = f"{wanted} ({n})"
        names[key] = name
        taken |= {name, f"{name} words"}
    return names


def _without_gaps(segments: list[Segment], end: int) -> list[tuple[int, int, str]]:
    intervals, at = [], 0
    for s in segments:
        if s.start > at:
            intervals.append((at, s.start, ""))
        intervals.append((s.start, s.end, s.text))
        at = s.end
    return [*intervals, (at, end, "")] if at < end else intervals


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _xml(text: str) -> str:
    """Text without the two characters that XML cannot hold and no control character is."""
    return text.replace("\ufffe", "").replace("\uffff", "")


def _s(ms: int) -> str:
    return f"{ms / 1000:.3f}"
