"""Subtitles with styles: Advanced SubStation Alpha through pysubs2, and TTML.

pysubs2 reads TTML without speakers, frames and times relative to an element around, so TTML has a reader here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any
from xml.etree import ElementTree as ET

from voxframe._text import one_line
from voxframe.errors import MissingExtraError, PayloadError
from voxframe.formats.names import by_line, with_names
from voxframe.formats.payload import SpokenTurn, from_turns, ms, xml_fields

_OFFSET = re.compile(r"([\d.]+)(h|ms|m|s|f|t)")
_UNITS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
_USED = frozenset({"begin", "end", "dur", "agent"})


def ass(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read ASS or SSA: the field Name is the speaker; comments, styles and effects are kept in `extra`.

    Raises:
        MissingExtraError: pysubs2 is not installed.
    """
    try:
        import pysubs2
    except ModuleNotFoundError:
        raise MissingExtraError("subtitles", "Reading .ass and .ssa files") from None
    document = pysubs2.SSAFile.from_string(text, format_="ass" if re.search(r"ScriptType:\s*v4\.00\+", text) else "ssa")
    turns, comments = list[SpokenTurn](), []
    for event in document:
        fields = {name: value for name, value in event.as_dict().items() if value not in ("", 0, False, "Dialogue")}
        spoken = by_line(event.plaintext)
        if event.is_comment or event.is_drawing or not spoken:
            comments.append(fields)
            continue
        extra = {name: value for name, value in fields.items() if name not in ("start", "end", "name", "text")}
        extra |= {"markup": event.text} if one_line(event.text) != one_line(spoken) else {}
        turns.append(SpokenTurn(spoken, event.start, event.end, event.name.strip() or None, source=extra))
    about = {"script_info": dict(document.info), "comments": comments}
    return {name: value for name, value in about.items() if value} | from_turns(with_names(turns, carry=carry))


def ttml(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read TTML or DFXP: a paragraph or a timed span is a turn, and `ttm:agent` its speaker.

    Source: W3C, "Timed Text Markup Language 2": times are relative to those of the element around, and may be in
    frames or ticks.
    """
    if re.search(r"<!DOCTYPE[^>]*\[", text):  # its entities could fill the memory
        raise PayloadError("a TTML file has no entities of its own; remove [...] from <!DOCTYPE ...>")
    root = ET.fromstring(re.sub(r"<\?xml[^>]*\?>|<!DOCTYPE[^>]*>", "", text).strip())  # noqa: S314
    settings = _plain(root.attrib)
    people = {}
    for agent in (element for element in root.iter() if _tag(element) == "agent"):
        name = next((one_line("".join(inner.itertext())) for inner in agent if _tag(inner) == "name"), "")
        people[_plain(agent.attrib).get("id", "")] = name
    header = {_tag(element): xml_fields(element) for element in root if _tag(element) != "body"}
    bodies = (element for element in root if _tag(element) == "body")
    turns = [turn for body in bodies for turn in _spoken(body, settings, people, 0, None, None)]
    return {"header": header, **settings, **from_turns(with_names(turns, carry=carry))}


def _spoken(
    element: ET.Element,
    settings: Mapping[str, str],
    people: Mapping[str, str],
    base: int,
    end: int | None,
    speaker: str | None,
) -> Iterator[SpokenTurn]:
    """Yield the turns in an element, given the time at which its own begin and its speaker."""
    fields = _plain(element.attrib)
    begin, until, length = (_time(fields.get(name), settings) for name in ("begin", "end", "dur"))
    start = base + (begin or 0)
    if until is not None:
        end = base + until
    elif length is not None:
        end = start + length
    code = fields.get("agent")
    speaker = speaker if code is None else people.get(code.split()[0]) or code
    inside = [inner for inner in element.iter() if inner is not element]
    if _tag(element) in ("body", "div") or any("begin" in _plain(inner.attrib) for inner in inside):
        timed = None if begin is None and base == 0 and end is None else start
        texts = [element.text, *(inner.tail for inner in element)]
        for loose, inner in zip_longest(texts, element):
            if said := one_line(loose or ""):
                yield SpokenTurn(said, timed, end, speaker)
            if inner is not None:
                yield from _spoken(inner, settings, people, start, end, speaker)
        return
    for line in inside:
        if _tag(line) == "br":
            line.tail = f" {line.tail or ''}"
    if said := one_line("".join(element.itertext())):
        is_timed = begin is not None or base > 0 or end is not None
        source = {name: value for name, value in fields.items() if name not in _USED}
        yield SpokenTurn(said, start if is_timed else None, end, speaker, source=source or None)


def _time(text: str | None, settings: Mapping[str, str]) -> int | None:
    """Return a time expression in milliseconds."""
    if text is None:
        return None
    rate = float(settings.get("frameRate", 30))
    multiplier = settings.get("frameRateMultiplier", "1 1").split()
    rate *= float(multiplier[0]) / float(multiplier[-1])
    if match := _OFFSET.fullmatch(text):
        unit = {**_UNITS, "f": 1000 / rate, "t": 1000 / float(settings.get("tickRate", 1))}[match[2]]
        return round(float(match[1]) * unit)
    return ms(text, rate)


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _plain(fields: Mapping[str, str]) -> dict[str, str]:
    """Return attributes without their namespaces."""
    return {name.rpartition("}")[2]: value for name, value in fields.items()}
