"""Formats of annotation tools: tiers for Praat (TextGrid) and ELAN (EAF), and tasks for Label Studio.

Intervals of one tier must not overlap. Overlapping turns or words of one speaker are put into extra tiers, `A (2)`.

Source of Label Studio's format: https://labelstud.io/guide/predictions and the template "Automatic Speech Recognition
using Segments", https://labelstud.io/templates/automatic_speech_recognition_segments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import pandas as pd

from voxframe._arrow import takes_frames
from voxframe.errors import OptionError, PayloadError
from voxframe.formats.result import Losses, counted
from voxframe.formats.segments import SpeechSegment, grouped, joined, transcripts, turns, whole
from voxframe.formats.tiers import UNKNOWN, speaker_of

_ALIGNMENT = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_OTHER_NAMES = "names that readers take for another, such as 'Ann (2)', 'words' and 'speech'"
_NONCHARACTERS = "texts or names with characters that XML cannot hold, written without them"


@takes_frames
def textgrid(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return one transcript as a Praat TextGrid, in the long text format.

    Times are in seconds; gaps are empty intervals. Segments of zero length are points in a separate tier, such as
    `A words (points)`. Words without times appear only in the text of their turn.

    Args:
        df: Words. Longer rows, such as turns, give one tier per speaker instead of two.
        losses: Counter for values that a TextGrid cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: A TextGrid cannot hold a value.
    """
    with counted(losses, "textgrid") as lost:
        tiers = _tiers(df, "textgrid", lost, points=True)
    end = max((1, *(s.end for tier in tiers.values() for s in tier)))
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
        points = segments[0].start == segments[0].end
        lines += [f"    item [{n}]:", f'        class = "{"TextTier" if points else "IntervalTier"}"']
        lines += [f"        name = {_quoted(name)}", "        xmin = 0", f"        xmax = {_s(end)}"]
        lines += _points(segments) if points else _intervals(segments, end)
    return "\n".join(lines) + "\n"


@takes_frames
def eaf(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return one transcript as an ELAN annotation document (EAF). Times are in milliseconds.

    Words without times appear only in the text of their turn.

    Args:
        df: Words. Longer rows, such as turns, give one tier per speaker instead of two.
        losses: Counter for values that EAF cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: EAF cannot hold a value.
    """
    with counted(losses, "eaf") as lost:
        return _eaf(_tiers(df, "eaf", lost), lost)


def _eaf(tiers: dict[str, list[SpeechSegment]], losses: Losses) -> str:
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
        tier = ET.SubElement(root, "TIER", LINGUISTIC_TYPE_REF="default-lt", TIER_ID=_xml(name, losses))
        for s in segments:
            number += 1
            place = {"TIME_SLOT_REF1": slots[s.start], "TIME_SLOT_REF2": slots[s.end], "ANNOTATION_ID": f"a{number}"}
            annotation = ET.SubElement(ET.SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", place)
            ET.SubElement(annotation, "ANNOTATION_VALUE").text = _xml(s.text, losses)
    ET.SubElement(
        root, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID="default-lt", TIME_ALIGNABLE="true", GRAPHIC_REFERENCES="false"
    )
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _tiers(df: pd.DataFrame, purpose: str, losses: Losses, *, points: bool = False) -> dict[str, list[SpeechSegment]]:
    """Return the tiers by name, each sorted and without overlap.

    Words give a tier of turns and a tier of words for each speaker and channel; other rows give one tier.

    Args:
        points: Put segments of zero length into separate tiers.
    """
    of_words = isinstance(df, pd.DataFrame) and "word_idx" in df
    segments = whole(df, purpose, losses, untimed=of_words)
    names = tier_names(segments, losses)
    by_name: dict[str, list[SpeechSegment]] = {}
    for run in grouped(segments):
        name = names[run[0].voice, run[0].channel]
        if of_words:
            by_name.setdefault(name, []).append(joined(run))
            name = f"{name} words"
        by_name.setdefault(name, []).extend(s for s in run if s.timed)
    used_names = set(by_name)
    tiers: dict[str, list[SpeechSegment]] = {}
    for name, in_tier in by_name.items():
        lengthy = [s for s in in_tier if s.end > s.start or not points]
        for n, layer in enumerate(_layers(lengthy)):
            tiers[_free(name, used_names) if n else name] = layer
        for layer in _layers([s for s in in_tier if s.end == s.start and points]):
            tiers[_free(f"{name} (points)", used_names)] = layer
    return tiers


def _layers(segments: list[SpeechSegment]) -> list[list[SpeechSegment]]:
    """Distribute segments over as few lists as possible, without overlap within a list."""
    layers: list[list[SpeechSegment]] = []
    for s in sorted(segments, key=lambda s: s.start):
        layer = next((layer for layer in layers if layer[-1].end <= s.start and layer[-1].start < s.start), None)
        if layer is None:
            layers.append([s])
        else:
            layer.append(s)
    return layers


def _free(base: str, names: set[str]) -> str:
    """Return the wanted name, numbered if a tier already has it, and add it to `names`."""
    name, n = base, 1
    while name in names:
        n += 1
        name = f"{base} ({n})"
    names.add(name)
    return name


def tier_names(segments: list[SpeechSegment], losses: Losses | None = None) -> dict[tuple[str | None, str], str]:
    """Return a tier name for each speaker and channel, numbered if names would clash.

    Args:
        losses: Counter for names that readers take for another: "Ann (2)", "words".
    """
    names: dict[tuple[str | None, str], str] = {}
    used_names: set[str] = set()
    for segment in segments:
        key = (segment.voice, segment.channel)
        if key in names:
            continue
        base = name = segment.voice or UNKNOWN
        n = 1
        while {name, f"{name} words"} & used_names:
            n += 1
            name = f"{base} ({n})"
        if losses is not None and (segment.voice == UNKNOWN or (segment.voice and speaker_of(base) != base)):
            losses[_OTHER_NAMES] += 1
        names[key] = name
        used_names |= {name, f"{name} words"}
    return names


def _intervals(segments: list[SpeechSegment], end: int) -> list[str]:
    """Return the lines of an interval tier, with empty intervals in the gaps."""
    intervals, at = [], 0
    for s in segments:
        if s.start > at:
            intervals.append((at, s.start, ""))
        intervals.append((s.start, s.end, s.text))
        at = s.end
    if at < end:
        intervals.append((at, end, ""))
    lines = [f"        intervals: size = {len(intervals)}"]
    for n, (start, stop, text) in enumerate(intervals, 1):
        lines += [f"        intervals [{n}]:", f"            xmin = {_s(start)}", f"            xmax = {_s(stop)}"]
        lines.append(f"            text = {_quoted(text)}")
    return lines


def _points(segments: list[SpeechSegment]) -> list[str]:
    """Return the lines of a point tier."""
    lines = [f"        points: size = {len(segments)}"]
    for n, s in enumerate(segments, 1):
        lines += [f"        points [{n}]:", f"            number = {_s(s.start)}"]
        lines.append(f"            mark = {_quoted(s.text)}")
    return lines


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _xml(text: str, losses: Losses) -> str:
    """Return the text without U+FFFE and U+FFFF, the only characters left that XML cannot hold."""
    cleaned = text.replace("\ufffe", "").replace("\uffff", "")
    if cleaned != text:
        losses[_NONCHARACTERS] += 1
    return cleaned


def _s(ms: int) -> str:
    return f"{ms / 1000:.3f}"


_LABELS, _TEXT, _AUDIO = "labels", "transcription", "audio"


@takes_frames
def label_studio(df: pd.DataFrame, *, audio: Mapping[str, str] | None = None, losses: Losses | None = None) -> str:
    """Return turns as Label Studio tasks: one per transcript, with a region for each turn.

    Import the text into a project with the labeling configuration of `label_studio_config`. `read_edits` reads what
    was changed in the JSON that Label Studio exports.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        audio: URL of the recording by transcript id, as Label Studio reaches it. None (default): the column `audio_url`
            if there is one, otherwise empty.
        losses: Counter for values that a task cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or `audio` is not a dict.

    Warns:
        ExportWarning: A task cannot hold a value.
    """
    if audio is not None and not isinstance(audio, Mapping):
        raise OptionError(f"audio must be a dict of URLs by transcript id, not of type {type(audio).__name__}")
    tasks = []
    with counted(losses, "labelstudio") as lost:
        if audio is None and {"audio_url", "transcript_id"} <= set(getattr(df, "columns", ())):
            with_audio = df.dropna(subset=["audio_url"]).drop_duplicates("transcript_id")
            audio = dict(zip(map(str, with_audio["transcript_id"]), with_audio["audio_url"], strict=True))
        for transcript_id, segments in transcripts(df, "labelstudio", lost):
            names = tier_names(segments, lost)
            result: list[dict[str, Any]] = []
            for n, turn in enumerate(turns(segments)):
                place = {"start": turn.start / 1000, "end": turn.end / 1000, "channel": 0}
                common = {"id": f"turn-{n}", "to_name": _AUDIO}
                speaker = speaker_of(names[turn.voice, turn.channel])
                result += [
                    {**common, "from_name": _LABELS, "type": "labels", "value": {**place, "labels": [speaker]}},
                    {**common, "from_name": _TEXT, "type": "textarea", "value": {**place, "text": [turn.text]}},
                ]
            data = {_AUDIO: (audio or {}).get(transcript_id, ""), "transcript_id": transcript_id}
            tasks.append({"data": data, "predictions": [{"model_version": "voxframe", "result": result}]})
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


@takes_frames
def label_studio_config(df: pd.DataFrame) -> str:
    """Return the labeling configuration of a Label Studio project for the tasks of `label_studio`.

    Args:
        df: The same rows.

    Raises:
        OptionError: A column is missing.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400, "speaker": "A"})
        >>> print(label_studio_config(words).splitlines()[2].strip())
        <Label value="A"/>
    """
    speakers = [
        speaker_of(name) for _, s in transcripts(df, "labelstudio", Losses()) for name in tier_names(s).values()
    ]
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in dict.fromkeys(speakers))
    return (
        f'<View>\n  <Labels name="{_LABELS}" toName="{_AUDIO}">\n{labels}  </Labels>\n'
        f'  <Audio name="{_AUDIO}" value="${_AUDIO}"/>\n'
        f'  <TextArea name="{_TEXT}" toName="{_AUDIO}" rows="2" editable="true" perRegion="true" required="true"/>\n'
        "</View>\n"
    )


def regions(text: str, transcript_id: str | None) -> list[tuple[str, str, int, int]]:
    """Return speaker, text, start and end (ms) of the regions of a task that Label Studio exported."""
    tasks = json.loads(text)
    mine = [task for task in tasks if task.get("data", {}).get("transcript_id") == transcript_id]
    if not mine:
        raise PayloadError(f"no task has the transcript_id {transcript_id!r} in its data; export the project as JSON")
    done = [
        annotation for task in mine for annotation in task.get("annotations", ()) if not annotation.get("was_cancelled")
    ]
    if not done:
        raise PayloadError(f"the task of {transcript_id!r} has no annotation; submit it in Label Studio first")
    last = max(done, key=lambda annotation: str(annotation.get("updated_at", "")))
    by_id: dict[str, dict[str, Any]] = {}
    for annotation in last.get("result", ()):
        value = annotation.get("value", {})
        if {"start", "end"} <= value.keys():
            text = value.get("text")  # a list, or a string if a program made the annotation
            by_id.setdefault(annotation["id"], {}).update({**value, "text": [text]} if isinstance(text, str) else value)
    return [
        (
            str((value.get("labels") or [UNKNOWN])[0]),
            " ".join(" ".join(value.get("text") or ()).split()),
            round(value["start"] * 1000),
            round(value["end"] * 1000),
        )
        for value in by_id.values()
    ]
