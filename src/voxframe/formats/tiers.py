"""Annotation formats with tiers: Praat's TextGrid and ELAN's EAF, read and written.

A tier is of one speaker: of the participant of an EAF tier, otherwise of the name of the tier. A tier named
"NAME words" has the words of the tier NAME; so have EAF tiers whose parent is that tier. Tiers of the Montreal Forced
Aligner are named "NAME - words" and "NAME - phones", or only "words" and "phones"; phones beside words are left out.

A tier of all words is the speech: another tier whose texts are those of the words holds them as turns, and a tier with
other texts, such as notes, tones or gestures, is an annotation, which is kept beside the speech.

Intervals of one tier must not overlap. Overlapping turns or words of one speaker are written to extra tiers, `A (2)`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import UNSPACED, join_words, search_form
from voxframe.errors import PayloadError
from voxframe.formats.payload import SpokenTurn, SpokenWord, from_turns, from_words, ms, xml_fields, xml_root
from voxframe.formats.writing import Losses, SpeechSegment, counted, grouped, joined, whole

#: A free-standing text or number, or a comment; Praat ignores everything else.
_TOKEN = re.compile(r'(?<!\S)(?:"((?:[^"]|"")*)"(?=\s|$)|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s|$)|![^\r\n]*)')
#: Names of tiers of words and of sounds: "words", "Ann - words", "Ann_word (2)", "word@Ann", "Phonemes".
_SIDE = r"(?:^|\s*[-_./:@ ]\s*)"
_MORE = r"(?: \(points\))?(?: \(\d+\))?$"
_WORDS = re.compile(rf"{_SIDE}words?{_MORE}|^words?@", re.IGNORECASE)
_PHONES = re.compile(rf"{_SIDE}(?:phones?|phonemes?|syllables?){_MORE}|^phones?@", re.IGNORECASE)
#: Names of tiers of turns that name no speaker, such as "sentences" and ELAN's "default".
_TURNS = re.compile(
    rf"{_SIDE}(?:sentences?|utterances?|phrases?|transcripts?|transcriptions?|segments?|texts?){_MORE}|^default$",
    re.IGNORECASE,
)
_EXTRA = re.compile(r" \(\d+\)$")  # of our own export, for overlapping turns of one speaker


#: Name of the tier, and label in Label Studio, of turns without a speaker.
UNKNOWN = "speech"
_UNSPACED = re.compile(UNSPACED)
_MANY = 5  # annotations of one word each, for a tier to be one of words


class Tier(NamedTuple):
    """A tier: name, speaker, the tier that it splits into words, and `(text, start, end)` of each annotation.

    The speaker is empty if it is unknown.
    """

    name: str
    speaker: str
    words_of: str | None
    rows: list[tuple[str, int | None, int | None]]


def read_textgrid(text: str) -> dict[str, Any]:
    """Read a TextGrid in the long or the short text format. Source: the manual of Praat, "TextGrid file formats"."""
    return _joined(textgrid_tiers(text))


def textgrid_tiers(text: str) -> list[Tier]:
    """Return the tiers of a TextGrid."""
    tokens = [
        float(match[2]) if match[1] is None else match[1].replace('""', '"')
        for match in _TOKEN.finditer(text)
        if match[1] is not None or match[2] is not None
    ]
    if tokens[:1] not in (["ooTextFile"], ["ooTextFile short"]) or tokens[1:2] != ["TextGrid"]:
        raise PayloadError(
            'a TextGrid begins with File type = "ooTextFile" and Object class = "TextGrid"; '
            'save it in Praat with "Save as text file..." or "Save as short text file..."'
        )
    try:
        return _tiers_of(tokens)
    except IndexError:
        raise PayloadError("the TextGrid ends before its last tier is complete; save it in Praat again") from None


def _tiers_of(tokens: Sequence[Any]) -> list[Tier]:
    """Return the tiers of a TextGrid, given its texts and numbers."""
    at, tiers = 5, []
    for _ in range(int(tokens[4])):
        kind, name, count = tokens[at], str(tokens[at + 1]).strip('"'), int(tokens[at + 4])
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


def read_eaf(text: str) -> dict[str, Any]:
    """Read an EAF file. Source: Max Planck Institute, "EAF Annotation Format" 3.0.

    A symbolic annotation has the times of the annotation that it belongs to, if it is the only one; others have none.
    """
    root = xml_root(text)
    tiers = _eaf_tiers(root)
    header: dict[str, Any] = {
        part.tag.lower(): xml_fields(part) for part in root if part.tag not in ("TIER", "TIME_ORDER")
    }
    header["annotation_tiers"] = [dict(tier.attrib) for tier in root.iter("TIER")]
    return {"header": header, **dict(root.attrib), **_joined(tiers)}


def eaf_tiers(text: str) -> list[Tier]:
    """Return the tiers of an EAF file."""
    return _eaf_tiers(xml_root(text))


def _eaf_tiers(root: ET.Element) -> list[Tier]:
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    media = root.find("HEADER/MEDIA_DESCRIPTOR")
    origin = int((media is not None and media.get("TIME_ORIGIN")) or 0)  # where the annotations' zero is in the media
    times = {key: None if value is None else int(value) + origin for key, value in slots.items()}
    order = {key: n for n, key in enumerate(slots)}
    annotations = {
        tier: [annotation for annotation in tier.iter() if annotation.tag in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")]
        for tier in root.iter("TIER")
    }
    by_id = {annotation.get("ANNOTATION_ID"): annotation for group in annotations.values() for annotation in group}
    siblings = {
        tier: Counter(annotation.get("ANNOTATION_REF") for annotation in group) for tier, group in annotations.items()
    }
    tier_of = {annotation: tier for tier, group in annotations.items() for annotation in group}

    def span(annotation: ET.Element) -> tuple[int | None, int | None]:
        for _ in by_id:  # not endless if annotations refer to each other
            above = by_id.get(annotation.get("ANNOTATION_REF"))
            if above is None or siblings[tier_of[annotation]][annotation.get("ANNOTATION_REF")] > 1:
                break
            annotation = above
        return times.get(annotation.get("TIME_SLOT_REF1")), times.get(annotation.get("TIME_SLOT_REF2"))

    tiers = []
    for tier, group in annotations.items():
        group.sort(key=lambda annotation: order.get(annotation.get("TIME_SLOT_REF1"), -1))
        rows = [(annotation.findtext("ANNOTATION_VALUE") or "", *span(annotation)) for annotation in group]
        read = _tier(tier.get("TIER_ID", ""), [row for row in rows if row[0].strip()])
        tiers.append(read._replace(words_of=tier.get("PARENT_REF") or read.words_of))
    by_name = {tier.name: tier for tier in tiers}
    people = {tier.get("TIER_ID"): tier.get("PARTICIPANT") for tier in annotations}
    tops = [_top(tier, by_name) for tier in tiers]
    return [
        tier._replace(speaker=people.get(tier.name) or people.get(top.name) or top.speaker)
        for tier, top in zip(tiers, tops, strict=True)
    ]


def _top(tier: Tier, tiers: Mapping[str, Tier]) -> Tier:
    """Return the topmost parent of a tier."""
    for _ in tiers:
        tier = tiers.get(tier.words_of or "", tier)
    return tier


def _tier(name: str, rows: list[tuple[str, int | None, int | None]]) -> Tier:
    base = _WORDS.sub("", name)
    return Tier(name, speaker_of(name), base if base != name else None, rows)


def _are_words(tier: Tier) -> bool:
    """Return True if a tier has one word per annotation, by its name or by its texts."""
    if is_word_tier(tier.name):
        return True
    texts = [text for text, _, _ in tier.rows]
    single = sum(len(text.split()) == 1 and not _UNSPACED.search(text) for text in texts)
    return len(texts) >= _MANY and single >= 0.9 * len(texts)


def is_word_tier(name: str) -> bool:
    """Return True if a tier of this name has the words of another one."""
    return _WORDS.search(name) is not None


def speaker_of(name: str) -> str:
    """Return the speaker of a tier of our own export: "A" for "A words (2)"."""
    return _EXTRA.sub("", _TURNS.sub("", _PHONES.sub("", _WORDS.sub("", name))))


class _Placed(NamedTuple):
    """A word, and the times between which it lies: its own, or those of its neighbours if its own are unknown."""

    low: float
    high: float
    word: SpokenWord


def _joined(tiers: Sequence[Tier]) -> dict[str, Any]:
    """Return the turns of all tiers by time, each with the words of its speaker that lie in it.

    Beside words of no tier of turns ("words" alone), a tier has turns only if its texts are those of the words.
    """
    filled = {tier.name for tier in tiers if tier.rows}
    aligned = {_WORDS.sub("", tier.name).casefold() for tier in tiers if is_word_tier(tier.name)}
    free: dict[str, list[_Placed]] = {}  # words of no tier of turns, by speaker
    words: dict[tuple[str, str], list[_Placed]] = {}  # by tier of turns or else by speaker, and by tier of words
    others = list[Tier]()
    for tier in tiers:
        if tier.words_of in filled:
            words[tier.words_of or "", tier.name] = _placed(tier)
        elif is_word_tier(tier.name):
            free.setdefault(tier.speaker, []).extend(_placed(tier))
        elif not (_PHONES.search(tier.name) and {_PHONES.sub("", tier.name).casefold(), ""} & aligned):
            others.append(tier)
    free = {speaker: placed for speaker, placed in free.items() if placed}
    guessed = list[list[_Placed]]()  # they may as well be short turns
    if not free:
        for tier in filter(_are_words, others):
            guessed.append(list(_placed(tier)))
            words.setdefault((tier.speaker, ""), []).extend(guessed[-1])
        others = [tier for tier in others if not _are_words(tier)]
    for in_turn in chain(words.values(), free.values()):
        in_turn.sort(key=lambda placed: placed.low)
    spoken, held = list[tuple[float, SpokenTurn]](), set[int]()  # turns with their places; ids of the words in them
    for tier in others:
        turns = []
        bound = [words[key] for key in words if key[0] in (tier.name, tier.speaker)]
        unheld = ([item for item in placed if id(item) not in held] for placed in (*free.values(), *guessed))
        candidates = [*bound, *unheld]
        for low, _, (text, start, end, _, speaker, *_) in _placed(tier):
            turn = SpokenTurn(text, start, end, speaker)
            turns.append((low, turn, _inside(turn, candidates)))
        with_words = sum(bool(inside) for _, _, inside in turns)
        layered = len(turns) >= sum(map(len, free.values()))  # one annotation per word
        if free and not bound and (layered or 2 * with_words < len(turns)):
            continue
        held.update(id(item) for _, _, inside in turns for item in inside)
        spoken += [(low, _with_words(turn, inside, guessed)) for low, turn, inside in turns]
    if not spoken:
        placed = sorted(chain.from_iterable((free or words).values()), key=lambda p: p.low)
        return from_words([item.word for item in placed], **_unused(tiers, [item.word for item in placed]))
    rest = [item for item in chain(*guessed, *free.values()) if id(item) not in held]
    spoken += _outside([turn for _, turn in spoken], rest)
    turns_in_order = [turn for _, turn in sorted(spoken, key=lambda item: item[0])]
    spans: list[SpokenWord | SpokenTurn] = [*(word for turn in turns_in_order for word in turn.words), *turns_in_order]
    return from_turns(turns_in_order, **_unused(tiers, spans))


def _with_words(turn: SpokenTurn, inside: Sequence[_Placed], guessed: Sequence[Sequence[_Placed]]) -> SpokenTurn:
    """Return a turn with its words, spelled as in the turn if it has as many, and one speaker for all.

    The speaker is that of the words, unless they are of a tier that was guessed to have words.
    """
    if not inside:
        return turn
    spoken, texts = [item.word for item in inside], turn.text.split()
    is_guessed = any(placed is inside[0] for tier in guessed for placed in tier)
    speaker = turn.speaker if is_guessed else spoken[0].speaker or turn.speaker
    if len(texts) != len(spoken):
        texts = [word.text for word in spoken]
    words = [word._replace(text=text, speaker=speaker) for word, text in zip(spoken, texts, strict=True)]
    return turn._replace(words=words, speaker=speaker)


def _outside(turns: Sequence[SpokenTurn], words: Sequence[_Placed]) -> list[tuple[float, SpokenTurn]]:
    """Return words whose middle is in no turn of their speaker as turns, with their places."""
    spans = [(turn.start, turn.end, turn.speaker) for turn in turns if turn.start is not None and turn.end is not None]
    starts = sorted(start for start, _, _ in spans)
    outside = [
        item
        for item in sorted(words, key=lambda item: item.low)
        if not any(
            start <= (item.low + item.high) / 2 <= end
            for start, end, speaker in spans
            if item.word.speaker in (None, speaker)
        )
    ]
    new_turns = []
    for (_, speaker), group in groupby(outside, lambda item: (bisect_right(starts, item.low), item.word.speaker)):
        run = [*group]
        spoken = [item.word for item in run]
        text = join_words(word.text for word in spoken)
        new_turns.append((run[0].low, SpokenTurn(text, spoken[0].start, spoken[-1].end, speaker, spoken)))
    return new_turns


def _unused(tiers: Sequence[Tier], spoken: Sequence[SpokenWord | SpokenTurn]) -> dict[str, Any]:
    """Return the tiers that are not wholly among the turns and words, such as phones, as a field of the payload."""
    there = Counter((item.text, item.start, item.end) for item in spoken)
    unread = [tier for tier in tiers if any(row not in there for row in tier.rows)]
    return {"tiers": [{"name": tier.name, "rows": tier.rows} for tier in unread]} if unread else {}


def _placed(tier: Tier) -> list[_Placed]:
    """Return the words of a tier with their places. Annotations of EAF may begin or end at a time that is unknown."""
    lows, highs, low, high = list[float](), list[float](), -math.inf, -math.inf
    for _, start, end in tier.rows:
        lows.append(low := low if start is None else start)
        low = low if end is None else end
    for _, start, end in reversed(tier.rows):
        highs.append(high := high if end is None else end)
        high = high if start is None else start
    speaker = None if tier.speaker in ("", UNKNOWN) else tier.speaker
    words = [SpokenWord(text, start, end, None, speaker) for text, start, end in tier.rows]
    return [_Placed(*place) for place in zip(lows, reversed(highs), words, strict=True)]


def _inside(turn: SpokenTurn, tiers: Sequence[Sequence[_Placed]]) -> list[_Placed]:
    """Return the words of the first tier that lie in a turn and give its text but for case and punctuation, or none."""
    if turn.start is None or turn.end is None:
        return []
    for words in tiers:
        first = bisect_left(words, float(turn.start), key=lambda placed: placed.low)
        last = bisect_right(words, float(turn.end), key=lambda placed: placed.low)
        inside = [placed for placed in words[first:last] if placed.high <= turn.end]
        if search_form("".join(placed.word.text for placed in inside)) == search_form(turn.text):
            return inside
    return []


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
    """Return the tiers by name, each sorted and without overlap; with `points`, segments of no length are in their own.

    Words give a tier of turns and a tier of words for each speaker and channel; other rows give one tier.
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
    """Return a tier name for each speaker and channel, numbered if names would clash; count names that are misread."""
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
