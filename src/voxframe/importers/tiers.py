"""Annotation formats with tiers: Praat's TextGrid and ELAN's EAF.

A tier is of one speaker: of the participant of an EAF tier, otherwise of the name of the tier. A tier named
"NAME words" has the words of the tier NAME; so have EAF tiers whose parent is that tier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from voxframe.errors import PayloadError
from voxframe.importers.payload import SpokenTurn, SpokenWord, from_turns, ms

#: A free-standing text, number or flag; Praat ignores everything else.
_TOKEN = re.compile(r'(?<!\S)(?:"((?:[^"]|"")*)"|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))(?=\s|$)')
_WORDS = re.compile(r" words(?: \(points\))?(?: \(\d+\))?$")
_EXTRA = re.compile(r" \(\d+\)$")  # of our own export, for overlapping turns of one speaker


class Tier(NamedTuple):
    """A tier: name, speaker, the tier that it splits into words, and `(text, start, end)` of each annotation."""

    name: str
    speaker: str
    words_of: str | None
    rows: list[tuple[str, int | None, int | None]]


def textgrid(text: str) -> dict[str, Any]:
    """Read a TextGrid in the long or the short text format. Source: the manual of Praat, "TextGrid file formats"."""
    return _joined(textgrid_tiers(text))


def textgrid_tiers(text: str) -> list[Tier]:
    """Return the tiers of a TextGrid."""
    tokens = [float(found[2]) if found[1] is None else found[1].replace('""', '"') for found in _TOKEN.finditer(text)]
    if tokens[:2] != ["ooTextFile", "TextGrid"]:
        raise PayloadError('a TextGrid begins with File type = "ooTextFile" and Object class = "TextGrid"')
    at, tiers = 5, []
    for _ in range(int(tokens[4])):
        kind, name, count = tokens[at], str(tokens[at + 1]), int(tokens[at + 4])
        at += 5
        size = 3 if kind == "IntervalTier" else 2
        rows = []
        for n in range(at, at + size * count, size):
            start, end, label = tokens[n], tokens[n + size - 2], str(tokens[n + size - 1])
            if label.strip():
                rows.append((label, ms(start), ms(end)))
        at += size * count
        tiers.append(_tier(name, rows))
    return tiers


def eaf(text: str) -> dict[str, Any]:
    """Read an EAF file. Source: Max Planck Institute, "EAF Annotation Format" 3.0.

    Annotations without a time of their own, such as symbolic ones, have none.
    """
    return _joined(eaf_tiers(text))


def eaf_tiers(text: str) -> list[Tier]:
    """Return the tiers of an EAF file."""
    if "<!DOCTYPE" in text:  # its entities could fill the memory
        raise PayloadError("an EAF file has no document type; remove <!DOCTYPE ...>")
    root = ET.fromstring(text)  # noqa: S314
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    times = {key: None if value is None else int(value) for key, value in slots.items()}
    tiers = []
    for tier in root.iter("TIER"):
        rows = []
        for annotation in tier.iter():
            if annotation.tag in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
                said = annotation.findtext("ANNOTATION_VALUE") or ""
                start, end = (times.get(annotation.get(f"TIME_SLOT_REF{n}")) for n in (1, 2))
                if said.strip():
                    rows.append((said, start, end))
        found = _tier(tier.get("TIER_ID", ""), rows)
        participant = tier.get("PARTICIPANT") or found.speaker
        parent = tier.get("PARENT_REF")
        tiers.append(found._replace(speaker=participant, words_of=parent or found.words_of))
    return tiers


def _tier(name: str, rows: list[tuple[str, int | None, int | None]]) -> Tier:
    base = _WORDS.sub("", name)
    return Tier(name, speaker_of(name), base if base != name else None, rows)


def speaker_of(name: str) -> str:
    """Return the speaker of a tier of our own export: "A" for "A words (2)"."""
    return _EXTRA.sub("", _WORDS.sub("", name))


def _joined(tiers: Sequence[Tier]) -> dict[str, Any]:
    """Return the turns of all tiers by time, each with the words of its speaker that lie in it."""
    words: dict[str, list[SpokenWord]] = {}
    names = {tier.name for tier in tiers}
    turns = list[SpokenTurn]()
    for tier in tiers:
        if tier.words_of is not None and (tier.words_of in names or _WORDS.search(tier.name)):
            spoken = [SpokenWord(text, start, end, None, tier.speaker) for text, start, end in tier.rows]
            words.setdefault(tier.speaker, []).extend(spoken)
        else:
            turns += [SpokenTurn(text, start, end, tier.speaker) for text, start, end in tier.rows]
    if not turns:
        turns = [SpokenTurn(w.text, w.start, w.end, w.speaker, [w]) for found in words.values() for w in found]
    turns = [turn._replace(words=turn.words or _inside(turn, words)) for turn in turns]
    return from_turns(sorted(turns, key=lambda turn: turn.start or 0))


def _inside(turn: SpokenTurn, words: dict[str, list[SpokenWord]]) -> list[SpokenWord]:
    """Return the words that lie in a turn, or none if they do not give the text of the turn."""
    if turn.start is None or turn.end is None:
        return []
    found = [
        word
        for word in words.get(turn.speaker or "", ())
        if word.start is not None and word.end is not None and turn.start <= word.start and word.end <= turn.end
    ]
    found.sort(key=lambda word: word.start or 0)
    return found if " ".join(word.text for word in found).split() == turn.text.split() else []
